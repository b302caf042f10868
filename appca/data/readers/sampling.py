"""Files larger than memory: some of their rows, drawn at random, read as a file of these alone.

The file is gone through part by part: a memory map (NPY), row groups (Parquet), chunks (Zarr) or
blocks of an HDF5 file (H5AD). A process with bounded memory does it, where the file is.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.data.annotated import HIGHLY_VARIABLE
from appca.data.dataset import Dataset
from appca.data.readers import kind_of, worker
from appca.data.readers.intake import row_ids
from appca.data.readers.process import opened, work_apart
from appca.data.readers.source import LIMITS, Files, ReadLimits
from appca.words.errors import InputError, naming_extra

if TYPE_CHECKING:
    import h5py

MOST_ROWS = 2_000_000  # as many as the canvas draws
TASK = "appca.data.readers.sampling:lay_down"
_BLOCK_BYTES = 1 << 26
_ROW_BYTES = 64  # of a row's id


def read_sample(files: Files, *, limits: ReadLimits = LIMITS, **options: Any) -> Dataset:
    """Read rows of one file, drawn at random: at most 2,000,000, in half of the bytes allowed.

    The name of the data set, and ``provenance["sample"]``, say of how many rows it is a sample.

    Raises
    ------
    InputError
        When the file is of another kind, or as `appca.data.readers.process.read_apart`.
    """
    name, path = files[0]
    kind = kind_of(name)
    if len(files) > 1 or kind not in _DRAW:
        size = f"{limits.n_bytes / 1e6:,.0f} MB"
        msg = (
            f"“{name}” needs more than {size}; rows can be drawn from larger files of the kinds "
            "NPY, Parquet, Zarr and H5AD, so write it as one of these."
        )
        raise InputError(msg)
    place = [(name, str(Path(str(path)).absolute()))]
    return work_apart(TASK, opened, place, limits=limits, in_place=True, kind=kind, **options)


@naming_extra()
def lay_down(
    files: Files, place: Path, limits: ReadLimits, *, kind: str, **options: Any
) -> dict[str, Any]:
    """Read rows of a file as `worker.read` reads a whole one; the task `TASK`."""
    name, path = files[0]
    target = place / "sample"
    draw = {"npy": _from_npy, "parquet": _from_parquet, "zarr": _from_zarr, "h5ad": _from_h5ad}[
        kind
    ]
    try:
        n, rows = draw(Path(str(path)), target, limits.n_bytes // 2, options.get("array"))
    except (OSError, ValueError, KeyError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"“{name}” is damaged or not a {kind.upper()} file; save it again."
        raise InputError(msg) from error
    title = f"{Path(name).stem}.npy" if kind == "zarr" else name
    facts = worker.read([(title, str(target))], place, limits, **options)
    about = facts["about"]
    about["name"] += f", sample of {n:,} rows"
    about["provenance"] |= {"files": [name], "sample": {"of": n}}
    _number(place / "ids.npy", rows)
    return facts


def _number(file: Path, rows: np.ndarray) -> None:
    """Let rows that are only counted have their numbers in the whole file."""
    ids = np.load(file, allow_pickle=False)
    if len(ids) and all(text.startswith("row-") and text[4:].isdigit() for text in ids.tolist()):
        counted = [int(text[4:]) - 1 for text in ids.tolist()]
        np.save(file, row_ids(rows[counted]), allow_pickle=False)


def drawn(n: int, row_bytes: float, most_bytes: int) -> np.ndarray:
    """Return the numbers of the rows to read, ascending; always the same ones."""
    k = int(min(n, MOST_ROWS, most_bytes // (row_bytes + _ROW_BYTES)))
    if k < min(n, 2):
        msg = f"Each row has {row_bytes / 1e6:,.0f} MB, too much to read two; keep fewer columns."
        raise InputError(msg)
    return np.sort(np.random.default_rng(0).choice(n, k, replace=False, shuffle=False))


def _blocks(rows: np.ndarray, n: int, size: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the blocks of rows that hold some of the drawn ones, and which those are in it."""
    for start in range(0, n, size):
        low, high = np.searchsorted(rows, [start, start + size])
        if low < high:
            yield slice(start, min(start + size, n)), rows[low:high] - start


def _copied(source: Any, rows: np.ndarray, size: int, make: Callable[..., Any]) -> None:
    """Copy drawn rows of an array that is sliced into one that `make` makes, block by block."""
    made, first = make(shape=(len(rows), *source.shape[1:]), dtype=source.dtype), 0
    for block, places in _blocks(rows, source.shape[0], max(1, size)):
        made[first : first + len(places)] = source[block][places]
        first += len(places)


def _row_bytes(source: Any) -> int:
    """Return what a row takes as data: types other than float32 and uint8 become float64."""
    if len(source.shape) < 2 or source.dtype.kind not in "buif":
        msg = f"A matrix of numbers is needed; got {source.dtype} of shape {source.shape}."
        raise InputError(msg)
    each = source.dtype.itemsize if source.dtype in (np.uint8, np.float32) else 8
    return int(np.prod(source.shape[1:])) * each


def _at_once(source: Any) -> int:
    return int(_BLOCK_BYTES // max(1, _row_bytes(source)))


def _into_npy(target: Path) -> Callable[..., Any]:
    return partial(np.lib.format.open_memmap, target, "w+")


def _from_npy(path: Path, target: Path, most: int, _: str | None) -> tuple[int, np.ndarray]:
    source = np.load(path, mmap_mode="r", allow_pickle=False)
    rows = drawn(len(source), _row_bytes(source), most)
    _copied(source, rows, _at_once(source), _into_npy(target))
    return len(source), rows


def _from_zarr(path: Path, target: Path, most: int, _: str | None) -> tuple[int, np.ndarray]:
    import zarr

    if not path.is_dir() or (path / "obs").is_dir():
        msg = (
            f"“{path.name}” is too large to read; write it as .h5ad, or as the folder of an array."
        )
        raise InputError(msg)
    source = zarr.open_array(path, mode="r")
    rows = drawn(source.shape[0], _row_bytes(source), most)
    chunk = source.chunks[0]
    _copied(source, rows, max(1, _at_once(source) // chunk) * chunk, _into_npy(target))
    return int(source.shape[0]), rows


def _from_parquet(path: Path, target: Path, most: int, _: str | None) -> tuple[int, np.ndarray]:
    from pyarrow.parquet import ParquetFile, ParquetWriter

    with ParquetFile(path) as source:
        about = source.metadata
        n = about.num_rows
        stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        row_bytes = max(8 * about.num_columns, stored / max(1, n))
        rows, first = drawn(n, row_bytes, most), 0
        with ParquetWriter(target, source.schema_arrow) as made:
            for batch in source.iter_batches(max(1, int(_BLOCK_BYTES // row_bytes))):
                low, high = np.searchsorted(rows, [first, first + len(batch)])
                made.write_batch(batch.take(rows[low:high] - first))
                first += len(batch)
    return n, rows


def _from_h5ad(path: Path, target: Path, most: int, array: str | None) -> tuple[int, np.ndarray]:
    import h5py

    with h5py.File(path, "r") as source, h5py.File(target, "w") as made:
        wanted = array or "X"
        matrix, obs = source[wanted], source["obs"]
        n = len(obs[obs.attrs["_index"]])
        source.copy("var", made)
        is_sparse = isinstance(matrix, h5py.Group)
        width = int(matrix.attrs["shape"][1]) if is_sparse else 1
        if is_sparse and HIGHLY_VARIABLE in source["var"]:
            width = max(2, int(np.sum(source[f"var/{HIGHLY_VARIABLE}"][()])))
        rows = drawn(n, 4 * width if is_sparse else _row_bytes(matrix), most)
        _take_table(obs, made.create_group("obs"), rows)
        if is_sparse:
            _take_sparse(path.name, matrix, made.create_group(wanted), rows)
        else:
            where = made.create_dataset
            _copied(matrix, rows, _at_once(matrix), lambda **about: where(wanted, **about))
    return n, rows


def _take_table(source: "h5py.Group", made: "h5py.Group", rows: np.ndarray) -> None:
    """Copy rows of the columns of obs; categories are copied whole."""
    made.attrs.update(source.attrs)
    for name, item in source.items():
        if not hasattr(item, "shape"):
            _take_table(item, made.create_group(name), rows)
        elif name == "categories":
            source.copy(name, made)
        else:
            made.create_dataset(name, data=item[()][rows], dtype=item.dtype)
            made[name].attrs.update(item.attrs)


def _take_sparse(name: str, source: "h5py.Group", made: "h5py.Group", rows: np.ndarray) -> None:
    """Copy rows of a sparse matrix that is stored row by row."""
    said = source.attrs.get("encoding-type", source.attrs.get("h5sparse_format", ""))
    if "csc" in str(said):
        msg = f"“{name}” is stored column by column (CSC); write it row by row (CSR)."
        raise InputError(msg)
    begins = source["indptr"][()].astype(np.int64)
    counts = np.diff(begins)[rows]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    made["indptr"] = indptr
    for part in ("data", "indices"):
        stored = source[part]
        values = made.create_dataset(part, shape=(int(indptr[-1]),), dtype=stored.dtype)
        first = 0
        mean = max(1, len(stored) // max(1, len(begins) - 1))
        for block, places in _blocks(rows, len(begins) - 1, max(1, _BLOCK_BYTES // (8 * mean))):
            low = begins[block.start]
            held = stored[low : begins[block.stop]]
            keep = np.zeros(block.stop - block.start, bool)
            keep[places] = True
            chosen = held[np.repeat(keep, np.diff(begins[block.start : block.stop + 1]))]
            values[first : first + len(chosen)] = chosen
            first += len(chosen)
    made.attrs.update(source.attrs)
    made.attrs["shape"] = np.array([len(rows), int(source.attrs["shape"][1])])


_DRAW = {"npy": _from_npy, "parquet": _from_parquet, "zarr": _from_zarr, "h5ad": _from_h5ad}
