"""Matrices in files larger than memory, as Dask arrays that workers read a part of at a time.

Workers open the file themselves, so it must lie where all of them see it.
"""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.data.errors import InputError

if TYPE_CHECKING:
    from dask.array import Array
    from pyarrow.parquet import ParquetFile

CHUNK_BYTES = 2**26
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
        return np.load(path, mmap_mode="r", allow_pickle=False)


def open_lazily(path: Path) -> "Array":
    """
    Open a matrix (N, D), rows by features, of which nothing but the header is read.

    Raises
    ------
    InputError
        For a file of another kind, or one that holds no matrix of numbers.
    OSError
        Where there is none.
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
        msg = f"“{path.name}” is no NPY file of numbers; save the rows with numpy.save."
        raise InputError(msg) from error
    if len(rows.shape) != 2:
        msg = (
            f"“{path.name}” must hold a matrix, rows by features, but has {len(rows.shape)} "
            "dimension(s); reshape it."
        )
        raise InputError(msg)
    n, d = rows.shape
    size = max(1, CHUNK_BYTES // max(1, d * rows.dtype.itemsize))
    meta = np.empty((0, 0), rows.dtype)
    return da.from_array(rows, chunks=(min(size, max(n, 1)), d), meta=meta)


def _zarr(path: Path) -> "Array":
    import dask.array as da

    if importlib.util.find_spec("zarr") is None:
        msg = "Zarr files need the package zarr, which is not installed: pip install zarr."
        raise InputError(msg)
    return da.from_zarr(str(path))


def _parquet(files: list[Path]) -> "Array":
    """Row groups of files as chunks; the columns of the first file, all of them numbers."""
    import dask.array as da
    from dask.delayed import delayed

    parts, names, task = [], None, delayed(_row_group, pure=False)
    for file in files:
        opened = _opened_parquet(file)
        names = opened.schema_arrow.names if names is None else names
        _check_columns(file, opened, names)
        for i in range(opened.num_row_groups):
            shape = (opened.metadata.row_group(i).num_rows, len(names))
            parts.append(da.from_delayed(task(file, i, names), shape, np.float64))
    if not parts:
        msg = f"“{files[0].name}” holds no rows; check what wrote it."
        raise InputError(msg)
    return da.concatenate(parts)


def _opened_parquet(file: Path) -> "ParquetFile":
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(file)
    except ArrowInvalid as error:
        msg = f"“{file.name}” is no Parquet file; save the table again."
        raise InputError(msg) from error


def _check_columns(file: Path, opened: "ParquetFile", names: list[str]) -> None:
    from pyarrow import types

    schema = opened.schema_arrow
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


def _row_group(file: Path, i: int, names: list[str]) -> np.ndarray:
    """Read the rows of a group (n, D); empty cells become NaN."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        table = opened.read_row_group(i, columns=names)
    columns = [column.to_numpy().astype(np.float64) for column in table.columns]
    return np.column_stack(columns)
