"""The fields of MATLAB's MAT files, version 5: what each states is compared with what is there.

SciPy's reader believes a field's length and place, so that one wrong bit can end the process (a
segmentation fault, SciPy 1.17). Only numbers and texts are read; the format is described in
MathWorks' "MAT-File Format".
"""

import math
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Literal, NamedTuple, NoReturn

import numpy as np

HEADER = 128  # bytes before the first variable
_PACKED, _MATRIX = 15, 14  # types of elements
_STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
    18: "u4",  # UTF-8, 16 and 32
}
_CLASSES = {
    6: "f8",
    7: "f4",
    8: "i1",
    9: "u1",
    10: "i2",
    11: "u2",
    12: "i4",
    13: "u4",
    14: "i8",
    15: "u8",
}
_TEXT = 4  # the class of texts
_COMPLEX, _LOGICAL = 0x08, 0x02  # flags
_START = 1 << 16  # bytes of a variable in which its name and sides must be
_CHUNK = 1 << 20


Order = Literal["<", ">"]  # of the bytes of a number


class Variable(NamedTuple):
    """A variable as the file states it, and where it lies."""

    shape: tuple[int, ...]  # a column of texts has one entry for each
    dtype: np.dtype
    sides: tuple[int, ...]  # as stored
    place: int  # of its element in the file
    size: int  # bytes of that element
    packed: bool
    order: Order
    body: int  # where its numbers begin, within the unpacked element
    plain: bool  # whether it is numbers or texts, none of them complex


def variables(stream: BinaryIO, most: int) -> dict[str, Variable]:
    """List the variables, unpacking each to see how long it is, and keeping nothing.

    Raises ValueError when a field does not fit what is there; OverflowError when they unpack to
    more than `most` bytes.
    """
    end = stream.seek(0, 2)
    stream.seek(126)
    order: Order = "<" if stream.read(2) == b"IM" else ">"
    found: dict[str, Variable] = {}
    total = 0
    while stream.tell() + 8 <= end:
        kind, size = struct.unpack(f"{order}II", stream.read(8))
        place = stream.tell()
        if size > end - place:
            _refuse("a variable that is longer than the file")
        packed = kind == _PACKED
        start = b""
        for chunk in _unpacked(stream, size) if packed else [stream.read(min(size, _START))]:
            start += chunk[: _START - len(start)]
            total += len(chunk)
            if total > most:
                raise OverflowError
        if packed or kind == _MATRIX:
            name, variable = _variable(start, order, place, size, packed=packed)
            found.setdefault(name, variable)
        stream.seek(place + size)
    return found


def values(stream: BinaryIO, variable: Variable, most: int) -> np.ndarray:
    """Read a variable's numbers, or its texts as a vector.

    Raises ValueError when there are not as many as its sides say.
    """
    stream.seek(variable.place)
    if variable.packed:
        engine = zlib.decompressobj()
        data = engine.decompress(stream.read(variable.size), most)
    else:
        data = stream.read(variable.size)
    kind, body, _ = _element(data, variable.body, variable.order)
    if kind not in _STORED:
        _refuse("numbers of an unknown type")
    stored = np.dtype(_STORED[kind]).newbyteorder(variable.order)
    if variable.dtype.kind == "U":
        return _texts(body, kind, stored, variable.sides)
    if len(body) != math.prod(variable.sides) * stored.itemsize:
        _refuse("more or fewer numbers than its sides say")
    with np.errstate(invalid="ignore"):  # reals stored for whole numbers, in files that are broken
        return np.frombuffer(body, stored).astype(variable.dtype).reshape(variable.sides, order="F")


def _unpacked(stream: BinaryIO, size: int) -> Iterator[bytes]:
    engine = zlib.decompressobj()
    while size > 0 and not engine.eof:
        piece = stream.read(min(_CHUNK, size))
        size -= len(piece)
        while piece and not engine.eof:
            yield engine.decompress(piece, _CHUNK)
            piece = engine.unconsumed_tail


def _variable(
    start: bytes, order: Order, place: int, size: int, *, packed: bool
) -> tuple[str, Variable]:
    """Parse what stands before the numbers: flags, sides and name."""
    at = 0
    if packed:  # what was packed is a whole element, with a tag of its own
        kind, _ = struct.unpack_from(f"{order}II", start)
        at = 8
        if kind != _MATRIX:
            _refuse("a packed element that is no variable")
    _, flags, at = _element(start, at, order)
    word = struct.unpack_from(f"{order}I", flags)[0]
    _, raw, at = _element(start, at, order)
    sides = struct.unpack(f"{order}{len(raw) // 4}i", raw[: len(raw) // 4 * 4])
    _, name, at = _element(start, at, order)
    if len(sides) < 2 or min(sides) < 0:
        _refuse(f"sides of {sides}")
    number, marks = word & 0xFF, word >> 8
    plain = (number in _CLASSES or number == _TEXT) and not marks & _COMPLEX
    dtype = np.dtype("U1" if number == _TEXT else _CLASSES.get(number, "O"))
    shape = sides[:-1] if number == _TEXT else sides
    if marks & _LOGICAL and dtype.kind == "u":
        dtype = np.dtype(bool)
    return name.decode("latin-1"), Variable(
        shape, dtype, sides, place, size, packed, order, at, plain
    )


def _element(data: bytes, at: int, order: str) -> tuple[int, bytes, int]:
    """Return type and bytes of the element at a place, and the place of the next."""
    kind, size = struct.unpack_from(f"{order}II", data, at)
    if kind >> 16:  # up to four bytes stand in the tag itself
        kind, size, begin, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        if size > 4:
            _refuse("a short element of more than four bytes")
    else:
        begin = at + 8
        after = begin + -(-size // 8) * 8
    if begin + size > len(data):
        _refuse("an element that is longer than what holds it")
    return kind, data[begin : begin + size], after


def _texts(body: bytes, kind: int, stored: np.dtype, sides: tuple[int, ...]) -> np.ndarray:
    """Join characters, which run down the columns, to one text per row."""
    if kind == 16:
        codes = np.array([ord(sign) for sign in body.decode("utf-8", "replace")], np.uint32)
    else:
        codes = np.frombuffer(body[: len(body) // stored.itemsize * stored.itemsize], stored)
        codes = codes.astype(np.uint32)
    if len(codes) != math.prod(sides):
        _refuse("more or fewer letters than its sides say")
    codes[(codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))] = 0xFFFD
    rows = codes.reshape(sides, order="F").reshape(-1, sides[-1])
    texts = ["".join(map(chr, row)).rstrip(" \0") for row in rows.tolist()]
    return np.array(texts, dtype=str).reshape(sides[:-1])


def _refuse(what: str) -> NoReturn:
    msg = f"the file holds {what}"
    raise ValueError(msg)
