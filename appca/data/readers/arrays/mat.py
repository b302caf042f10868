"""MATLAB's MAT files from version 5: one of their matrices. Objects and cells are not read.

Those of version 7.3 are HDF5 files, in which the sides of every matrix stand in reverse.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.pixels import PixelShape, check_length, pixel_order
from appca.data.readers.arrays import hdf5_contents
from appca.data.readers.arrays.choice import (
    ArrayInfo,
    RowNames,
    beside,
    build,
    check_array,
    choose,
    native,
)
from appca.data.readers.intake import FileReport
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, ReadLimits, plain_file
from appca.words.errors import InputError
from appca.words.wording import shortened

_HDF5 = b"\x89HDF\r\n\x1a\n"  # the start of what follows the header in version 7.3
_HEADER, _HEADER_OF_7_3 = 128, 512
_NUMBERS = {"double": "f8", "single": "f4", "logical": "?"}
_NUMBERS |= {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class MatVariables(NamedTuple):
    """What is in a file, and how to get at it."""

    arrays: dict[str, ArrayInfo]
    load: Callable[[str], np.ndarray]


class MatOptions(NamedTuple):
    """How to read a MAT file."""

    array: str | None = None  # the variable with the rows; None takes X, or the only one it can be
    transpose: bool = False  # each column of the variable is a row, as MATLAB's tools often have it
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) when rows are images
    by_column: bool = True  # pixels run down the columns of the image, as in MATLAB's img(:)


def read(name: str, file: File, options: MatOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one variable as rows, and vectors with one entry per row as labels.

    Three sides are images: (n, h, w), or with `transpose` (h, w, n). With `image_shape`, pixels are
    put in row-major order.
    """
    report: FileReport = {}
    with (
        plain_file(name, file, limits) as stream,
        _opened(name, stream, report, limits) as (arrays, load),
    ):
        wanted = choose(name, arrays, options.array, report, limits)
        *front, last = arrays[wanted].shape
        turned = arrays[wanted]._replace(shape=(last, *front))
        check_array(shortened(wanted), turned if options.transpose else arrays[wanted], limits)
        report |= {"array": wanted, "dtype": str(arrays[wanted].dtype)}
        rows = load(wanted)
        matrix = native(np.moveaxis(rows, -1, 0) if options.transpose else rows)
        named = RowNames(name, wanted, len(matrix))
        named_rows = beside(named, arrays, load, report, limits)
    matrix = _row_major(matrix, options)
    return build(name, matrix, named_rows, options.missing, options.image_shape, report, limits)


@contextmanager
def _opened(
    name: str, stream: BinaryIO, report: FileReport, limits: ReadLimits
) -> Iterator[MatVariables]:
    """Open a file of either kind."""
    start = stream.read(_HEADER_OF_7_3 + len(_HDF5))
    if start.startswith((_HDF5, b"MATLAB 7.3")) or start.endswith(_HDF5):
        stream.seek(0)
        with hdf5_contents.opened(name, stream) as file:
            yield _of_7_3(name, hdf5_contents.arrays(name, file, report), limits)
        return
    if len(start) < _HEADER or start[126:128] not in (b"IM", b"MI"):
        msg = f"“{name}” is not a MAT file of version 5 or later; save it in MATLAB with '-v7'."
        raise InputError(msg)
    inside = _contents(name, stream)
    yield MatVariables(inside, lambda key: _load(name, stream, key, inside[key].dtype))


def _of_7_3(
    name: str, inside: dict[str, hdf5_contents.Hdf5Array], limits: ReadLimits
) -> MatVariables:
    arrays = {}
    for key, array in inside.items():
        kind = array.dataset.attrs.get("MATLAB_class", b"")
        kind = kind.decode("latin-1") if isinstance(kind, bytes) else kind
        if not key.startswith("#") and kind in _NUMBERS:
            arrays[key] = array.info._replace(shape=array.info.shape[::-1])
    return MatVariables(
        arrays, lambda key: np.transpose(hdf5_contents.load(name, key, inside[key], limits))
    )


def _contents(name: str, stream: BinaryIO) -> dict[str, ArrayInfo]:
    """List the variables that are numbers or text, by the sizes that the file states."""
    from scipy.io import whosmat

    stream.seek(0)
    try:
        variables = whosmat(stream)
    except Exception as error:  # SciPy fails in as many ways as there are fields
        raise _damaged(name) from error
    arrays = {}
    for key, shape, kind in variables:
        if kind in _NUMBERS or kind == "char":
            arrays[key] = ArrayInfo(shape, np.dtype(_NUMBERS.get(kind, "U1")))
    return arrays


def _load(name: str, stream: BinaryIO, key: str, dtype: np.dtype) -> np.ndarray:
    from scipy.io import loadmat

    stream.seek(0)
    try:
        values = np.asarray(loadmat(stream, variable_names=[key])[key])
    except Exception as error:  # as above
        raise _damaged(name) from error
    if values.dtype.kind == "c":
        msg = f"“{shortened(key)}” in “{name}” holds complex numbers; save real ones."
        raise InputError(msg)
    return np.char.rstrip(values, " \0") if dtype.kind == "U" else values.astype(dtype)


def _damaged(name: str) -> InputError:
    return InputError(f"“{name}” is damaged or no MAT file; save it again in MATLAB with '-v7'.")


def _row_major(values: np.ndarray, options: MatOptions) -> np.ndarray:
    """Bring pixels that run down an image's columns into the order of its rows."""
    if not (options.image_shape and options.by_column and values.ndim == 2):
        return values
    h, w, *colour = options.image_shape
    shape = PixelShape(h, w, int(np.prod(colour)), by_column=True)
    check_length(shape, values.shape[1])
    return np.ascontiguousarray(values[:, pixel_order(shape)])


READER = Reader(MatOptions, read)
