"""The IDX format of MNIST: a magic number, the sides as 32-bit numbers, then the bytes."""

import gzip
import math
import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import numpy as np

from appca.storage.errors import InputError

_BYTES = 0x08  # the type code of unsigned bytes
MOST_SIDES = 4


def read_idx(path: Path, first: int | None = None) -> np.ndarray:
    """Read unsigned bytes from an IDX file, packed by gzip or not.

    Parameters
    ----------
    path : Path
    first : int or None
        Read this many items only (all when there are fewer).

    Returns
    -------
    ndarray of uint8
        The sides are those of the header, the first cut to `first`.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as stream:
            return _read(stream, path.name, first)
    except (EOFError, OSError, zlib.error) as error:
        msg = f"{path.name} breaks off or is damaged inside its gzip packing; fetch it again."
        raise InputError(msg) from error


def header(
    file: BinaryIO | gzip.GzipFile, name: str, kinds: Collection[int], what: str
) -> tuple[int, list[int]]:
    """Read the beginning of an unpacked IDX file.

    Parameters
    ----------
    file : binary file object
        At its start; left where the numbers begin.
    name : str
        For people.
    kinds : collection of int
        Codes of the types of numbers that can be used.
    what : str
        What the file should be, for people: "an IDX file".

    Returns
    -------
    The code of the type, and the sides.

    Raises
    ------
    InputError
        When the file is something else or breaks off.
    """
    magic = file.read(4)
    known = len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in kinds
    if not known or not 1 <= magic[3] <= MOST_SIDES:
        start = magic.hex() or "nothing"
        msg = f"“{name}” is not {what} (it starts with {start}); choose another file."
        raise InputError(msg)
    sides = file.read(4 * magic[3])
    if len(sides) < 4 * magic[3]:
        msg = f"“{name}” ends within its header; copy or fetch it again."
        raise InputError(msg)
    return magic[2], list(struct.unpack(f">{magic[3]}I", sides))


def _read(file: BinaryIO | gzip.GzipFile, name: str, first: int | None) -> np.ndarray:
    _, sides = header(file, name, {_BYTES}, "an IDX file of bytes")
    complete = first is None or first >= sides[0]
    sides[0] = sides[0] if first is None else min(first, sides[0])
    expected = math.prod(sides)
    data = file.read(expected)
    if len(data) < expected or (complete and file.read(1)):
        msg = (
            f"{name} must hold {' x '.join(map(str, sides))} = {expected} bytes after its header; "
            f"it holds {'more' if len(data) == expected else len(data)}, so fetch it again."
        )
        raise InputError(msg)
    return np.frombuffer(data, np.uint8).reshape(sides)
