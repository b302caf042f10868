"""Zarr stores, folders or zips of them: annotated data (AnnData), or one array of rows."""

import json
import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import Any, BinaryIO, cast

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.archive import content, members
from appca.data.readers.arrays.choice import ArrayInfo, Beside, check_array, native
from appca.data.readers.intake import FileReport
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, ReadLimits, chunks_of, file_stream
from appca.data.readers.sparse.filling import build, check_rows
from appca.data.readers.sparse.h5ad import Contents, H5adOptions, read_contents
from appca.words.errors import InputError
from appca.words.wording import is_text, shortened

_DEEPEST = 16
_DESCRIPTIONS = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
_PACKING = ("filters", "compressor", "codecs", "index_codecs")
_CODECS = {
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "crc32", "crc32c", "shuffle"),
    *("bytes", "delta", "fixedscaleoffset", "sharding_indexed", "transpose", "vlen-utf8"),
}


def read(name: str, file: File, options: H5adOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read annotated data as from .h5ad, or the rows of an array."""
    import zarr

    with opened(name, file, limits) as root:
        if isinstance(root, zarr.Array):
            return _rows(name, root, options, limits)
        return read_contents(contents_of(name, root, limits), options)


def contents_of(name: str, root: Any, limits: ReadLimits) -> Contents:
    """Return the annotated data in a group that `opened` yields."""
    arrays = _arrays(name, root)
    if not any(path.startswith("obs/") for path in arrays):
        msg = f"“{name}” holds neither AnnData nor a single array; give the store of one array."
        raise InputError(msg)
    infos = {path: _info(array) for path, array in arrays.items()}
    return Contents(
        name,
        {path: info for path, info in infos.items() if info is not None},
        lambda path: _load(name, arrays[path], limits),
        lambda path: root[path].attrs,
        _damaged,
        limits,
    )


def packed(store: Path) -> BinaryIO:
    """Return a temporary file, a zip of a store in a folder; equal stores make equal files."""
    kept = TemporaryFile()  # noqa: SIM115 (the caller closes it)
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for path in store.rglob("*") if path.is_file()):
            named = zipfile.ZipInfo(path.relative_to(store).as_posix())  # without a date
            archive.writestr(named, path.read_bytes())
    return cast("BinaryIO", kept)


def _rows(name: str, array: Any, options: H5adOptions, limits: ReadLimits) -> Dataset:
    info = _info(array)
    if info is None or info.dtype.kind == "U":
        msg = f"“{name}” must hold numbers, but holds {array.dtype}; convert it first."
        raise InputError(msg)
    check_rows(name, info.shape, limits)
    check_array(name, info, limits)
    X = native(_load(name, array, limits))
    report: FileReport = {"dtype": str(info.dtype)}
    return build(name, X, Beside(None, {}), None, options.missing, report, limits)


@contextmanager
def opened(name: str, file: File, limits: ReadLimits) -> Iterator[Any]:
    """Open the group or array at the root of a zip or a folder, after checking what it claims."""
    import zarr

    if isinstance(file, (str, Path)) and Path(file).is_dir():
        paths = (path for path in Path(file).rglob("*") if path.name in _DESCRIPTIONS)
        _check_codecs(name, (path.read_bytes() for path in paths))
        yield zarr.open(file, mode="r", use_consolidated=False)
        return
    with file_stream(name, file, limits) as stream:
        archive, _ = members(name, stream, limits)
        folder = root_of(archive)
        texts = [item for item in archive.infolist() if _last(item.filename) in _DESCRIPTIONS]
        _check_codecs(name, (content(name, archive, item) for item in texts))
        stream.seek(0)
        path = str(file)
        if not isinstance(file, (str, Path)):  # the library opens nothing else
            kept = NamedTemporaryFile(dir=limits.scratch)  # noqa: SIM115 (it ends with the block)
            kept.writelines(chunks_of(stream))
            kept.flush()
            path = kept.name
        try:
            store = zarr.storage.ZipStore(path, mode="r")
            root = zarr.open(store=store, path=folder, mode="r", use_consolidated=False)
        except Exception as error:  # the library fails in as many ways as there are fields
            raise _damaged(name) from error
        try:
            yield root
        finally:
            store.close()


def root_of(archive: zipfile.ZipFile) -> str:
    """Return the folder of the store in a zip, "" where it is not in one."""
    names = [item for item in archive.namelist() if _last(item) in _DESCRIPTIONS]
    return min((item.rpartition("/")[0] for item in names), key=len, default="")


def _check_codecs(name: str, texts: Iterable[bytes]) -> None:
    """Refuse arrays packed by a codec that is not among the usual ones: "pickle" runs code."""
    for text in texts:
        try:
            codecs = set(_codecs(json.loads(text)))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(name) from error
        if not codecs <= _CODECS:
            codec = shortened(min(codecs - _CODECS))
            msg = f"“{name}” is packed by the codec “{codec}”; use Blosc, Zstandard or gzip."
            raise InputError(msg)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _codecs(described: Any) -> Iterator[str]:
    """Yield the names of all codecs in a description of arrays, consolidated ones among them."""
    if isinstance(described, list):
        for part in described:
            yield from _codecs(part)
    elif isinstance(described, dict):
        for key, value in described.items():
            if key in _PACKING and value is not None:
                for codec in value if isinstance(value, list) else [value]:
                    yield str(codec.get("id") or codec.get("name"))
            yield from _codecs(value)


def _arrays(name: str, root: Any) -> dict[str, Any]:
    import zarr

    try:
        inside = dict(root.members(max_depth=_DEEPEST))
    except Exception as error:  # as above
        raise _damaged(name) from error
    return {path: item for path, item in inside.items() if isinstance(item, zarr.Array)}


def _info(array: Any) -> ArrayInfo | None:
    """Return shape and type of numbers or texts; None of anything else."""
    kind = array.dtype.kind
    if kind in "OTU":
        return ArrayInfo(tuple(array.shape), np.dtype("U1"))
    return ArrayInfo(tuple(array.shape), np.dtype(array.dtype)) if kind in "buif" else None


def _load(name: str, array: Any, limits: ReadLimits) -> np.ndarray:
    """Read an array whose sides were checked; texts become those of NumPy."""
    most = max(math.prod(array.shape), math.prod(array.chunks)) * max(1, array.dtype.itemsize)
    if most > limits.n_bytes:
        msg = (
            f"An array in “{name}” has {most / 1e6:,.0f} MB, or chunks of as many, more than "
            f"{limits.most}; keep fewer rows or columns, and write the store again."
        )
        raise InputError(msg)
    try:
        values = np.asarray(array[...])
        if values.dtype.kind in "OT":
            values = _texts(values, limits)
    except InputError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise _damaged(name) from error
    if not is_text(values):
        msg = f"“{shortened(array.path)}” in “{name}” contains invalid Unicode; save it again."
        raise InputError(msg)
    return values


def _texts(values: np.ndarray, limits: ReadLimits) -> np.ndarray:
    texts = [str(text) for text in values.ravel().tolist()]
    if len(texts) * max(map(len, texts), default=1) > limits.n_bytes // 8:
        msg = "The store holds texts that are too long; write shorter ones."
        raise InputError(msg)
    return np.array(texts, str).reshape(values.shape)


def _damaged(name: str) -> InputError:
    return InputError(f"“{name}” is not a Zarr store in a zip, or is damaged; save it again.")


READER = Reader(H5adOptions, read)
