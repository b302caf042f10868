"""MATLAB's MAT files up to version 7: one of their matrices. Objects and cells are not read."""

import struct
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.errors import InputError
from appca.data.readers.arrays import Found, beside, build, check_array, choose, native
from appca.data.readers.source import LIMITS, Limits, plain_file
from appca.data.wording import shortened

_KINDS = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "double": "float64",
    "single": "float32",
    "logical": "bool",
    "char": "U1",
}
_COMPRESSED = 15  # the type of an element packed by zlib
_HEADER = 128  # bytes before the first element
_CHUNK = 1 << 20


class Options(NamedTuple):
    """How to read a MAT file."""

    array: str | None = None  # the variable with the rows; None takes X, or the only one it can be
    transpose: bool = False  # each column of the variable is a row, as MATLAB's tools often have it
    missing: str = "refuse"  # or "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) when rows are images
    by_column: bool = True  # pixels run down the columns of the image, as in MATLAB's img(:)


def read(
    name: str, file: Path | str | BinaryIO, options: Options, limits: Limits = LIMITS
) -> Dataset:
    """
    Read one variable as rows, and vectors with one entry a row as labels.

    Three sides are images: (n, h, w), or with `transpose` (h, w, n).

    Returns
    -------
    Dataset
        With `image_shape`, pixels are put in row-major order.
    """
    report: dict = {}
    with plain_file(name, file, limits) as stream:
        _check_version(name, stream)
        _check_packing(name, stream, limits)
        arrays = _contents(name, stream)
        wanted = choose(name, arrays, options.array, report)
        check_array(shortened(wanted), _turned(arrays[wanted], options.transpose), limits)
        report |= {"array": wanted, "dtype": str(arrays[wanted].dtype)}
        values = native(_turn(_load(name, stream, wanted), options.transpose))
        others = {key: one for key, one in arrays.items() if key != wanted}
        rows = beside(len(values), others, lambda key: _load(name, stream, key))
    values = _row_major(values, options)
    return build(name, values, rows, options.missing, options.image_shape, report)


def _check_version(name: str, stream: BinaryIO) -> None:
    start = stream.read(_HEADER)
    if start[:10] == b"MATLAB 7.3" or b"\x89HDF\r\n\x1a\n" in start + stream.read(512):
        msg = (
            f"“{name}” is a MAT file of version 7.3; save it in MATLAB with "
            "save('name.mat', 'X', '-v7')."
        )
        raise InputError(msg)
    if len(start) < _HEADER or start[126:128] not in (b"IM", b"MI"):
        msg = f"“{name}” is not a MAT file of version 5 to 7; save it in MATLAB with '-v7'."
        raise InputError(msg)


def _check_packing(name: str, stream: BinaryIO, limits: Limits) -> None:
    """Unpack every variable, keeping nothing, so that what they claim cannot fill the memory."""
    stream.seek(126)
    order = "<" if stream.read(2) == b"IM" else ">"
    total = 0
    while len(tag := stream.read(8)) == 8:
        kind, size = struct.unpack(f"{order}II", tag)
        after = stream.tell() + size
        if kind == _COMPRESSED:
            total += _unpacked_size(stream, size, limits.n_bytes - total)
        if total > limits.n_bytes:
            msg = (
                f"“{name}” unpacks to more than {limits.n_bytes / 1e6:,.0f} MB; save fewer "
                "variables or rows."
            )
            raise InputError(msg)
        stream.seek(after)
    stream.seek(0)


def _unpacked_size(stream: BinaryIO, size: int, most: int) -> int:
    """Count the bytes of a packed element, up to one chunk more than `most`."""
    engine, total = zlib.decompressobj(), 0
    while size > 0 and total <= most:
        piece = stream.read(min(_CHUNK, size))
        if not piece:
            break
        size -= len(piece)
        try:
            while piece and total <= most:
                total += len(engine.decompress(piece, _CHUNK))
                piece = engine.unconsumed_tail
        except zlib.error:
            break  # the reader will say that it is damaged
    return total


def _contents(name: str, stream: BinaryIO) -> dict[str, Found]:
    """Name, shape and type of what can be read: numbers and texts."""
    from scipy.io import whosmat

    stream.seek(0)
    try:
        listed = whosmat(stream)
    except Exception as error:  # SciPy fails in as many ways as there are fields to be wrong
        raise _damaged(name) from error
    return {
        key: Found(tuple(shape), np.dtype(_KINDS[kind]))
        for key, shape, kind in listed
        if kind in _KINDS and not key.startswith("__")
    }


def _load(name: str, stream: BinaryIO, variable: str) -> np.ndarray:
    from scipy.io import loadmat

    stream.seek(0)
    try:
        values = loadmat(stream, variable_names=[variable])[variable]
    except Exception as error:  # as above
        raise _damaged(name) from error
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "buifU":
        msg = (
            f"“{shortened(variable)}” in “{name}” holds {values.dtype} values, not plain numbers; "
            "save its real part or another variable."
        )
        raise InputError(msg)
    return values


def _damaged(name: str) -> InputError:
    return InputError(f"“{name}” is damaged or no MAT file; save it again in MATLAB with '-v7'.")


def _turned(array: Found, transpose: bool) -> Found:
    return array._replace(shape=_order(array.shape)) if transpose else array


def _order(sides: tuple) -> tuple:
    return (sides[-1], *sides[:-1])


def _turn(values: np.ndarray, transpose: bool) -> np.ndarray:
    return np.moveaxis(values, -1, 0) if transpose else values


def _row_major(values: np.ndarray, options: Options) -> np.ndarray:
    """Bring pixels that run down an image's columns into the order of its rows."""
    if not (options.image_shape and options.by_column and values.ndim == 2):
        return values
    h, w, *colour = options.image_shape
    if h * w * int(np.prod(colour)) != values.shape[1]:
        msg = (
            f"Images of {h} x {w} pixels have {h * w * int(np.prod(colour)):,} values; the rows "
            f"have {values.shape[1]:,}, so give another height and width."
        )
        raise InputError(msg)
    stack = values.reshape(len(values), *colour[::-1], w, h)
    return np.ascontiguousarray(np.moveaxis(stack, (-1, -2), (1, 2)).reshape(len(values), -1))
