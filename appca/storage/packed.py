"""Untrusted zip files of arrays (NPY) and text (JSON), checked before any content is read.

An NPZ file is such a zip. Names of members never become paths; pickles are refused. `give_back`
releases memory pages of mapped arrays.
"""

import io
import json
import math
import mmap
import zipfile
from collections.abc import Mapping
from typing import IO, Any, BinaryIO, NoReturn

import numpy as np

from appca.words import InputError, is_text, refuse_if, shortened

MOST_BYTES = 1 << 32  # maximum unpacked size of a file
MOST_MEMBERS = 10_000
MOST_TEXT = 1 << 26  # maximum bytes of a JSON text, which becomes many small objects
_RATIO = 50  # maximum compression ratio; tables of numbers have 2 to 20
_SMALL, _SMALL_TEXT = 1 << 26, 1 << 23  # unpacked bytes always allowed
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other methods unpack in one step


class Packed:
    """The members of a zip, each read when it is needed.

    The stream stays open. Raises InputError if it is not a zip, or its declared size is too large.
    """

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        packed = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        most_bytes = min(MOST_BYTES, max(_SMALL, _RATIO * packed))
        self._most_text = min(MOST_TEXT, max(_SMALL_TEXT, 4 * packed))
        try:
            self._archive = zipfile.ZipFile(stream)
        except Exception as error:  # zipfile raises any exception
            self._refuse("is not a zip file or is damaged", error)
        items = [item for item in self._archive.infolist() if not item.filename.endswith("/")]
        self._items = {item.filename: item for item in items}
        self.n_bytes = sum(item.file_size for item in items)
        if len(items) > MOST_MEMBERS or len(self._items) < len(items):
            self._refuse(f"contains {len(items):,} files, too many or with repeated names")
        if any(item.compress_type not in _METHODS for item in items):
            self._refuse("is compressed by a rare method")
        if self.n_bytes > most_bytes:
            size, most = self.n_bytes / 1e6, most_bytes / 1e6
            self._refuse(f"unpacks to {size:,.0f} MB, more than {most:,.0f} MB")
        for item in items:  # names of unread members can be damaged, too
            try:
                self._archive.open(item).close()
            except Exception as error:
                self._refuse(f"contains a damaged “{shortened(item.filename)}”", error)

    def __contains__(self, member: str) -> bool:
        return member in self._items

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members, in file order."""
        return tuple(self._items)

    def array(self, member: str) -> np.ndarray:
        """Read one NPY member; InputError if it is missing or damaged, or contains objects."""
        item = self._item(member)
        try:
            with self._archive.open(item) as stream:
                shape, by_columns, dtype = npy_header(stream)
                expected = math.prod(shape) * dtype.itemsize
                is_plain = dtype.kind in "biufU" and not dtype.hasobject
                is_odd = not is_plain or min(shape, default=0) < 0 or expected > item.file_size
                refuse_if(is_odd, "not an array of numbers or text, or of the wrong length")
                data = stream.read(item.file_size)
                refuse_if(len(data) != expected, f"{len(data)} bytes instead of {expected}")
            values = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
            refuse_if(not is_text(values), "invalid characters")
            return values.astype(dtype.newbyteorder("="), copy=False)
        except Exception as error:
            self._refuse(f"contains a damaged “{shortened(member)}”", error)

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """Read all NPY members whose names begin with `prefix`; keys are the rest of the names."""
        members = {
            member: member.removeprefix(prefix).removesuffix(".npy")
            for member in self._items
            if member.startswith(prefix) and member.endswith(".npy")
        }
        return {key: self.array(member) for member, key in members.items()}

    def json(self, member: str) -> dict[str, Any]:
        """Read a JSON member, which must be an object.

        Raises InputError if it is missing, damaged, or too long for the size of the file.
        """
        item = self._item(member)
        if item.file_size > self._most_text:
            self._refuse(f"contains a text of {item.file_size:,} bytes")
        try:
            with self._archive.open(item) as stream:
                return as_object(stream.read(item.file_size).decode())
        except Exception as error:
            self._refuse(f"contains a damaged “{shortened(member)}”", error)

    def _item(self, member: str) -> zipfile.ZipInfo:
        if member not in self._items:
            self._refuse(f"lacks “{shortened(member)}”")
        return self._items[member]

    def _refuse(self, what: str, cause: Exception | None = None) -> NoReturn:
        msg = f"“{shortened(self.name)}” {what}; download or save it again."
        raise InputError(msg) from cause


def as_object(text: str) -> dict[str, Any]:
    """Parse a JSON text that must be an object.

    Raises ValueError for any other text.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        msg = f"expected an object, got a {type(value).__name__}"
        raise ValueError(msg)
    return value


def write(
    stream: BinaryIO,
    texts: Mapping[str, Mapping[str, Any]],
    arrays: Mapping[str, np.ndarray],
    compression: int = zipfile.ZIP_DEFLATED,
) -> None:
    """Write a zip of JSON texts and NPY arrays for `Packed`; the same input gives the same bytes.

    Members are named with their extensions; `compression` is as in `zipfile`.
    """
    with zipfile.ZipFile(stream, "w", compression, compresslevel=1) as archive:
        for member, value in texts.items():
            text = json.dumps(value, indent=1, ensure_ascii=False)
            archive.writestr(_entry(member, compression), text.encode())
        for member, values in arrays.items():
            with archive.open(_entry(member, compression), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)


def _entry(member: str, compression: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(member)
    entry.compress_type = compression
    entry.external_attr = 0o644 << 16
    return entry


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, whether the order is Fortran's, and dtype; raises like NumPy's parsers."""
    return _HEADERS.get(np.lib.format.read_magic(stream), _HEADERS[2, 0])(stream)


def give_back(part: np.ndarray) -> None:
    """Let the system free the memory pages of some rows, which remain in the file.

    Arrays in memory and copy-on-write maps are unaffected.
    """
    base: Any = part
    while base is not None and not isinstance(base, mmap.mmap):
        if getattr(base, "mode", "r") == "c":
            return
        base = base.base if isinstance(base, np.ndarray) else None
    if base is None or not part.flags.c_contiguous or not part.size:
        return
    if not hasattr(mmap, "MADV_DONTNEED"):  # not available on every system
        return
    begin = part.ctypes.data - np.frombuffer(base, np.uint8).ctypes.data
    first = begin - begin % mmap.PAGESIZE
    base.madvise(mmap.MADV_DONTNEED, first, begin + part.nbytes - first)
