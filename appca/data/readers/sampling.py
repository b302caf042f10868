"""Files larger than memory: some of their rows, drawn at random, read as a file of these alone.

The file is read part by part: a memory map (NPY), row groups (Parquet, also a folder of files),
chunks (Zarr) or blocks of annotated data (H5AD, Zarr). A process with bounded memory does it, where
the file is.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.data.annotated import HIGHLY_VARIABLE
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, Files, ReadLimits
from appca.data.readers import annotated, kind_of, worker
from appca.data.readers.intake import row_ids
from appca.data.readers.parquet import other_columns
from appca.data.readers.process import opened, work_apart
from appca.words import InputError, naming_extra

MOST_ROWS = 2_000_000  # as many as the canvas draws
TASK = "appca.data.readers.sampling:lay_down"
_BLOCK_BYTES = 1 << 26
_ROW_BYTES = 64  # of a row's id
_SAID = {"_index", "column-order", "encoding-type", "shape", "h5sparse_format", "h5sparse_shape"}


class Drawn(NamedTuple):
    """Which rows of a file were written."""

    of: int  # rows of the file
    rows: np.ndarray  # their numbers, ascending
    kind: str  # of the file that now holds them


def read_sample(files: Files, *, limits: ReadLimits = LIMITS, **options: Any) -> Dataset:
    """Read rows of one file, drawn at random: at most 2,000,000, in half of the bytes allowed.

    The name of the data set, and ``provenance["sample"]``, say of how many rows it is a sample.
    Raises InputError when the file is of another kind, or as
    `appca.data.readers.process.read_apart`.
    """
    name, path = files[0]
    kind = "parquet" if any(Path(str(path)).glob("*.parquet")) else kind_of(name)
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
    try:
        n, rows, made = _DRAW[kind](
            Path(str(path)), target, limits.n_bytes // 2, options.get("array") or "X"
        )
    except (OSError, ValueError, KeyError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"“{name}” is damaged or not a {kind.upper()} file; save it again."
        raise InputError(msg) from error
    title = f"{Path(name).stem}.{made}"
    facts = worker.read([(title, str(target))], place, limits, **options)
    facts["name"] += f", sample of {n:,} rows"
    facts["provenance"] |= {"files": [name], "sample": {"of": n}}
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


def _copied(source: Any, rows: np.ndarray, make: Callable[..., Any]) -> None:
    """Copy drawn rows of an array that is sliced into one that `make` makes, block by block."""
    made, first = make(shape=(len(rows), *source.shape[1:]), dtype=source.dtype), 0
    for block, places in _blocks(rows, source.shape[0], _at_once(source)):
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
    """Return how many rows to read together: whole chunks, where the file has chunks."""
    chunk = int((getattr(source, "chunks", None) or (1,))[0])
    return max(1, _BLOCK_BYTES // max(1, _row_bytes(source)) // chunk) * chunk


def _into_npy(source: Any, target: Path, most: int) -> Drawn:
    rows = drawn(source.shape[0], _row_bytes(source), most)
    _copied(source, rows, partial(np.lib.format.open_memmap, target, "w+"))
    return Drawn(int(source.shape[0]), rows, "npy")


def _from_npy(path: Path, target: Path, most: int, _: str) -> Drawn:
    return _into_npy(np.load(path, mmap_mode="r", allow_pickle=False), target, most)


def _from_zarr(path: Path, target: Path, most: int, wanted: str) -> Drawn:
    with annotated.opened_zarr(path.name, path, LIMITS._replace(n_bytes=sys.maxsize)) as source:
        if hasattr(source, "shape"):
            return _into_npy(source, target, most)
        return _from_annotated(source, target, most, wanted)


def _from_h5ad(path: Path, target: Path, most: int, wanted: str) -> Drawn:
    import h5py

    with h5py.File(path, "r") as source:
        return _from_annotated(source, target, most, wanted)


def _from_parquet(path: Path, target: Path, most: int, _: str) -> Drawn:
    from pyarrow.parquet import ParquetFile, ParquetWriter

    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    with ExitStack() as ends:
        sources = [ends.enter_context(ParquetFile(part)) for part in paths]
        abouts, schema = [source.metadata for source in sources], sources[0].schema_arrow
        n = sum(about.num_rows for about in abouts)
        groups = [about.row_group(i) for about in abouts for i in range(about.num_row_groups)]
        stored = sum(group.total_byte_size for group in groups)
        row_bytes = max(8 * len(schema), stored / max(1, n))
        rows, first = drawn(n, row_bytes, most), 0
        made = ends.enter_context(ParquetWriter(target, schema))
        for part, source in zip(paths, sources, strict=True):
            if not source.schema_arrow.equals(schema):
                raise other_columns(part.name)
            for batch in source.iter_batches(max(1, int(_BLOCK_BYTES // row_bytes))):
                low, high = np.searchsorted(rows, [first, first + len(batch)])
                made.write_batch(batch.take(rows[low:high] - first))
                first += len(batch)
    return Drawn(n, rows, "parquet")


def _from_annotated(source: Any, target: Path, most: int, wanted: str) -> Drawn:
    """Copy rows of a group of HDF5 or Zarr into an .h5ad file."""
    import h5py

    with h5py.File(target, "w") as made:
        matrix, obs = source[wanted], source["obs"]
        n = int(obs[obs.attrs["_index"]].shape[0])
        _take_table(source["var"], made.create_group("var"), slice(None))
        is_sparse = not hasattr(matrix, "shape")
        width = int(matrix.attrs["shape"][1]) if is_sparse else 1
        if is_sparse and HIGHLY_VARIABLE in source["var"]:
            width = max(2, int(np.sum(source[f"var/{HIGHLY_VARIABLE}"][()])))
        rows = drawn(n, 4 * width if is_sparse else _row_bytes(matrix), most)
        _take_table(obs, made.create_group("obs"), rows)
        if is_sparse:
            _take_sparse(matrix, made.create_group(wanted), rows)
        else:
            _copied(matrix, rows, partial(made.create_dataset, wanted))
    return Drawn(n, rows, "h5ad")


def _say(source: Any, made: Any) -> None:
    made.attrs.update({key: value for key, value in source.attrs.items() if key in _SAID})


def _take_table(source: Any, made: Any, rows: np.ndarray | slice) -> None:
    """Copy rows of the columns of obs or var; categories are copied whole."""
    import h5py

    _say(source, made)
    for name in source:
        item = source[name]
        if not hasattr(item, "shape"):
            _take_table(item, made.create_group(name), rows)
            continue
        values = item[()]
        texts = values.dtype.kind == "T"  # of Zarr
        made.create_dataset(
            name,
            data=(values.astype(object) if texts else values)[() if name == "categories" else rows],
            dtype=h5py.string_dtype() if texts else item.dtype,
        )


def _take_sparse(source: Any, made: Any, rows: np.ndarray) -> None:
    """Copy rows of a sparse matrix that is stored row by row or column by column."""
    _say(source, made)
    said = source.attrs.get("encoding-type", source.attrs.get("h5sparse_format", ""))
    n, d = (int(side) for side in source.attrs["shape"])
    new = np.full(n, -1)
    new[rows] = np.arange(len(rows))
    by_row, begins = "csc" not in str(said), source["indptr"][()].astype(np.int64)
    counts = np.zeros(len(begins) - 1, np.int64)
    parts = {
        part: made.create_dataset(part, (0,), source[part].dtype, maxshape=(None,))
        for part in ("data", "indices")
    }
    for start in range(0, int(begins[-1]), _BLOCK_BYTES // 8):
        block = slice(start, min(start + _BLOCK_BYTES // 8, int(begins[-1])))
        lines = np.repeat(np.arange(len(counts)), np.diff(begins.clip(block.start, block.stop)))
        indices = source["indices"][block]
        places = new[lines if by_row else indices]
        keep = places >= 0
        chosen = {"data": source["data"][block], "indices": indices if by_row else places}
        for part, stored in parts.items():
            stored.resize((len(stored) + int(keep.sum()),))
            stored[len(stored) - int(keep.sum()) :] = chosen[part][keep]
        counts += np.bincount(lines[keep], minlength=len(counts))
    made["indptr"] = np.concatenate([[0], np.cumsum(counts[rows] if by_row else counts)])
    made.attrs["shape"] = np.array([len(rows), d])


_DRAW = {"npy": _from_npy, "parquet": _from_parquet, "zarr": _from_zarr, "h5ad": _from_h5ad}
