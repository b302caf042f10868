"""Matrices in files larger than memory, as Dask arrays that workers read a part of at a time.

Workers open the file themselves, so it must lie where all of them see it.
"""

import importlib.util
from bisect import bisect
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.words.errors import InputError

if TYPE_CHECKING:
    from dask.array import Array
    from pyarrow import Schema
    from pyarrow.parquet import ParquetFile

CHUNK_BYTES = 2**26
BATCH_BYTES = 2**23  # of a row group decoded at a time
MOST_BYTES = 2**28  # of a row group read at once; of a larger one, each part is read past others
KINDS = ".npy, .parquet (or a folder of them) or .zarr"


class NpyRows:
    """Rows of an NPY file; what travels to a worker is its name."""

    ndim = 2

    def __init__(self, path: Path) -> None:
        X = self._opened(path)
        self.path, self.shape, self.dtype = path, X.shape, X.dtype

    def __getitem__(self, key: Any) -> np.ndarray:
        """Return a part, mapped: read once it is looked at, and let go of with the part."""
        return np.asarray(self._opened(self.path)[key])

    @staticmethod
    def _opened(path: Path) -> np.ndarray:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def open_lazily(path: Path) -> "Array":
    """Open a matrix (N, D), rows by features, of which nothing but the header is read.

    Raises InputError for a file of another kind, or one that holds no matrix of numbers; OSError
    where there is none.
    """
    path = path.absolute()
    path.stat()
    if path.suffix == ".npy":
        return _npy(path)
    if path.suffix == ".zarr":
        return _zarr(path)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or any(file.suffix != ".parquet" for file in files):
        msg = f"A cluster reads {KINDS}; got “{path.name}”: save the rows as one of these."
        raise InputError(msg)
    return _parquet(files)


def _npy(path: Path) -> "Array":
    import dask.array as da

    try:
        rows = NpyRows(path)
    except (ValueError, EOFError) as error:
        msg = f"“{path.name}” is not an NPY file of numbers; save the rows with numpy.save."
        raise InputError(msg) from error
    _check_matrix(path, rows)
    n, d = rows.shape
    meta = np.empty((0, 0), rows.dtype)
    return da.from_array(rows, chunks=(min(_at_once(rows), max(n, 1)), d), meta=meta)


def _zarr(path: Path) -> "Array":
    """Whole chunks of the file at a time, as many as make some megabytes; a worker opens it."""
    if importlib.util.find_spec("zarr") is None:
        msg = "Zarr files need the package zarr, which is not installed: pip install zarr."
        raise InputError(msg)
    import dask.array as da
    import zarr

    try:
        rows = zarr.open_array(path, mode="r")
    except (ValueError, KeyError, TypeError) as error:
        msg = f"“{path.name}” is not a Zarr array; name the folder of the array itself."
        raise InputError(msg) from error
    _check_matrix(path, rows)
    n, d = rows.shape
    stored = rows.chunks[0]
    size = max(1, _at_once(rows) // stored) * stored
    return da.from_zarr(rows, chunks=(min(size, max(n, 1)), d))


def _at_once(rows: Any) -> int:
    """Return how many rows make a chunk."""
    return int(max(1, CHUNK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize)))


def _check_matrix(path: Path, rows: Any) -> None:
    """Raise InputError for what is no matrix of numbers."""
    if len(rows.shape) != 2:
        msg = (
            f"“{path.name}” must hold a matrix, rows by features, but has {len(rows.shape)} "
            "dimension(s); reshape it."
        )
        raise InputError(msg)
    if rows.dtype.kind not in "fiub":
        msg = f"“{path.name}” must hold numbers, but holds {rows.dtype}; convert it first."
        raise InputError(msg)


class ParquetRows:
    """Rows of the row groups of files; what travels to a worker is where they are."""

    ndim = 2

    def __init__(self, files: list[Path]) -> None:
        names, dtype = _columns(files)
        self.names, self.dtype = names, dtype
        self.parts: list[tuple[Path, int, int, int]] = []  # file, row group, its rows from and to
        for file in files:
            with _opened_parquet(file) as opened:
                groups = [opened.metadata.row_group(i) for i in range(opened.num_row_groups)]
            for i, group in enumerate(groups):
                cuts = _cut(group.num_rows, len(names) * dtype.itemsize)
                self.parts += [(file, i, begin, end) for begin, end in cuts]
        self.sizes = tuple(end - begin for *_, begin, end in self.parts)
        self.starts = [0, *accumulate(self.sizes)]
        self.shape = (self.starts[-1], len(names))

    def __getitem__(self, key: tuple[slice, slice]) -> np.ndarray:
        """Return the rows of one part."""
        file, i, begin, end = self.parts[bisect(self.starts, key[0].start) - 1]
        return _rows_of_group(file, i, slice(begin, end), self.names, self.dtype)[:, key[1]]


def _parquet(files: list[Path]) -> "Array":
    """Row groups of files as chunks; the columns of the first file, all of them numbers."""
    import dask.array as da

    rows = ParquetRows(files)
    if not rows.parts:
        msg = f"“{files[0].name}” holds no rows; check what wrote it."
        raise InputError(msg)
    meta = np.empty((0, 0), rows.dtype)
    return da.from_array(rows, chunks=(rows.sizes, rows.shape[1:]), meta=meta)


def _cut(count: int, row_bytes: int) -> list[tuple[int, int]]:
    """Where the parts of a row group begin and end that are read at once."""
    n_parts = -(-count * row_bytes // MOST_BYTES)
    return list(pairwise(count * i // n_parts for i in range(n_parts + 1))) if n_parts else []


def _opened_parquet(file: Path) -> "ParquetFile":
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(file)
    except ArrowInvalid as error:
        msg = f"“{file.name}” is not a Parquet file; save the table again."
        raise InputError(msg) from error


def _columns(files: list[Path]) -> tuple[list[str], np.dtype]:
    """Return the columns of the first file, which all must have, and a type that holds them."""
    names: list[str] = []
    single = True
    for file in files:
        with _opened_parquet(file) as opened:
            schema = opened.schema_arrow
        names = names or schema.names
        _check_columns(file, schema, names)
        single &= all(str(field.type) in ("float", "halffloat") for field in schema)
    return names, np.dtype(np.float32 if single else np.float64)


def _check_columns(file: Path, schema: "Schema", names: list[str]) -> None:
    from pyarrow import types

    if schema.names != names:
        msg = f"“{file.name}” has other columns than the files before it; keep the same ones."
        raise InputError(msg)
    numbers = (types.is_floating, types.is_integer, types.is_boolean)
    others = [field.name for field in schema if not any(is_one(field.type) for is_one in numbers)]
    if others:
        msg = (
            f"All columns of “{file.name}” must be numbers, but “{others[0]}” is not; "
            "leave it out of the file."
        )
        raise InputError(msg)


def _rows_of_group(
    file: Path, i: int, part: slice, names: list[str], dtype: np.dtype
) -> np.ndarray:
    """Read some rows of a row group (n, D), some at a time; empty cells become NaN."""
    from pyarrow.parquet import ParquetFile

    out, first = np.empty((part.stop - part.start, len(names)), dtype), 0
    size = max(1, BATCH_BYTES // (len(names) * dtype.itemsize))
    with ParquetFile(file) as opened:
        batches = opened.iter_batches(size, row_groups=[i], columns=names, use_threads=False)
        for batch in batches:
            last = first + len(batch)
            low, high = max(first, part.start), min(last, part.stop)
            if low < high:
                some = batch.slice(low - first, high - low)
                for j, column in enumerate(some.columns):
                    values = column.to_numpy(zero_copy_only=False)
                    out[low - part.start : high - part.start, j] = values
            first = last
            if first >= part.stop:
                break
    return out
