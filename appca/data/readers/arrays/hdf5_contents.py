"""What an untrusted HDF5 file holds: the arrays that lie in it, and no other file ever opened.

Only hard links are followed. A data set whose numbers lie elsewhere (virtual, or in files beside)
or are packed by a filter that is not part of the library is left out, before it is looked into.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from appca.data.readers.arrays.choice import ArrayInfo
from appca.data.readers.intake import FileReport
from appca.data.readers.source import ReadLimits
from appca.words.errors import InputError
from appca.words.wording import is_text, shortened

if TYPE_CHECKING:
    import h5py

_MOST_OBJECTS, _DEEPEST = 10_000, 16
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}  # whose output is bounded
_PIECE = 64  # texts read at a time: each may be as long as the file


class Hdf5Array(NamedTuple):
    """An array as the file states it."""

    info: ArrayInfo
    dataset: Any  # of h5py
    chunk_bytes: int  # that are unpacked at a time


def opened(name: str, stream: BinaryIO) -> "h5py.File":
    """Open a file for reading."""
    import h5py

    try:
        return h5py.File(stream, "r")
    except Exception as error:  # the library fails in as many ways as there are fields
        raise damaged(name) from error


def damaged(name: str) -> InputError:
    """Return the sentence for a file that cannot be read."""
    return InputError(f"“{name}” is not an HDF5 file or is damaged; write it again.")


def arrays(name: str, file: "h5py.File", report: FileReport) -> dict[str, Hdf5Array]:
    """List the arrays by their paths; ``report["unused"]`` says what was left out, and why."""
    usable: dict[str, Hdf5Array] = {}
    unused: dict[str, str] = {}
    try:
        for path, dataset, why in _walk(name, file):
            described = None if why else _described(dataset)
            if described is None or isinstance(described, str):
                unused[path] = why or described or "no numbers or texts"
            else:
                usable[path] = described
    except InputError:
        raise
    except Exception as error:  # as above
        raise damaged(name) from error
    report["unused"] = unused
    return usable


def load(name: str, path: str, item: Hdf5Array, limits: ReadLimits) -> np.ndarray:
    """Read an array whose size was checked.

    Raises InputError when it, its chunks, or the texts it refers to are larger than allowed.
    """
    size = math.prod(item.info.shape) * item.info.dtype.itemsize
    if size > limits.n_bytes:
        msg = (
            f"“{shortened(path)}” in “{name}” has {size / 1e6:,.0f} MB, more than {limits.most}; "
            "keep fewer rows or columns, and write the file again."
        )
        raise InputError(msg)
    if item.chunk_bytes > limits.n_bytes:
        msg = (
            f"The chunks of “{shortened(path)}” in “{name}” unpack to {item.chunk_bytes / 1e6:,.0f}"
            f" MB each, more than {limits.most}; write it in smaller ones."
        )
        raise InputError(msg)
    try:
        if item.info.dtype.kind != "U":
            return np.asarray(item.dataset[()])
        values = _texts(item.dataset, limits.n_bytes // 8)
    except Exception as error:  # as above
        raise damaged(name) from error
    if values is None or not is_text(values):
        what = "texts that are too long" if values is None else "characters that do not exist"
        msg = f"“{shortened(path)}” in “{name}” holds {what}; write it again."
        raise InputError(msg)
    return values


def _walk(name: str, file: "h5py.File") -> Iterator[tuple[str, Any, str]]:
    """Yield path, data set and why it is left out, if it is; each object once."""
    import h5py

    waiting: list[tuple[str, Any, int]] = [("", file["/"], 0)]
    seen = {h5py.h5o.get_info(file["/"].id).addr}
    while waiting:
        above, group, depth = waiting.pop()
        for key in group:
            link = group.get(key, getlink=True)
            text = key if isinstance(key, str) else key.decode("utf-8", "replace")
            path = f"{above}{text}".encode("utf-8", "replace").decode()
            if not isinstance(link, h5py.HardLink):
                yield path, None, "a link"
                continue
            about = h5py.h5o.get_info(group.id, key.encode("utf-8", "surrogateescape"))
            if about.addr in seen:
                continue
            seen.add(about.addr)
            if len(seen) > _MOST_OBJECTS:
                msg = f"“{name}” holds more than {_MOST_OBJECTS:,} arrays and groups; save fewer."
                raise InputError(msg)
            if about.type == h5py.h5o.TYPE_GROUP and depth < _DEEPEST:
                waiting.append((f"{path}/", group[key], depth + 1))
            elif about.type == h5py.h5o.TYPE_DATASET:
                dataset = group[key]
                yield path, dataset, _elsewhere(dataset)


def _elsewhere(dataset: Any) -> str:
    """Say why a data set must not be looked into; nothing where its numbers lie in the file."""
    import h5py

    plan = dataset.id.get_create_plist()
    if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
        return "its numbers lie in other files"
    used = [plan.get_filter(j)[0] for j in range(plan.get_nfilters())]
    unknown = [code for code in used if code not in _FILTERS]
    return f"packed by filter {unknown[0]}; write it with gzip" if unknown else ""


def _described(dataset: Any) -> Hdf5Array | str:
    import h5py

    if dataset.shape is None:
        return "empty"
    try:
        dtype = np.dtype(dataset.dtype)
    except TypeError:  # a type that NumPy does not have
        return "no numbers or texts"
    if h5py.check_string_dtype(dtype) is not None:
        dtype = np.dtype(("U", max(1, 0 if dtype.hasobject else dtype.itemsize)))
    elif dtype.hasobject or dtype.kind not in "buif":
        return "no numbers or texts"
    chunk = math.prod(dataset.chunks or ()) * dtype.itemsize
    return Hdf5Array(ArrayInfo(tuple(dataset.shape), dtype), dataset, chunk)


def _texts(dataset: Any, most: int) -> np.ndarray | None:
    """Read texts, a few at a time: any number of them can be one and the same long one."""
    texts_read: list[str] = []
    longest = 1
    for start in range(0, math.prod(dataset.shape), _PIECE):
        part = np.ravel(dataset[start : start + _PIECE])
        texts = [
            cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
            for cell in part
        ]
        longest = max(longest, *map(len, texts))
        texts_read += texts
        if longest * len(dataset) > most:
            return None
    return np.array(texts_read, f"U{longest}").reshape(dataset.shape)
