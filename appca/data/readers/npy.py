"""NumPy's NPY files: a matrix, or a stack of images. Pickled objects are never loaded."""

import io
import math
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import DTYPES, Dataset
from appca.data.errors import InputError
from appca.data.readers.intake import note_quality, settle_missing
from appca.data.readers.source import LIMITS, Limits, check_matrix, file_bytes

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Options(NamedTuple):
    """How to read an array."""

    missing: str = "refuse"  # or "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read(
    name: str, file: Path | str | BinaryIO, options: Options, limits: Limits = LIMITS
) -> Dataset:
    """
    Read an array of numbers: (N, D), images (N, h, w) or (N, h, w, 3).

    Returns
    -------
    Dataset
        uint8, float32 and float64 stay; float16 becomes float32, other numbers float64.
    """
    data = file_bytes(name, file, limits)
    shape, dtype = _header(name, data)
    _check(name, shape, dtype, limits)
    array = _array(name, data)
    sides = tuple(options.image_shape) if options.image_shape else _image_sides(shape)
    X = array.reshape(len(array), -1)
    report = {"rows": len(X), "columns": X.shape[1], "dtype": str(dtype), "image_shape": sides}
    features = [f"column {j + 1}" for j in range(X.shape[1])]
    X, rows = settle_missing(X, features, options.missing, report)
    note_quality(X, features, report)
    return Dataset(
        name=Path(name).stem or name,
        X=X,
        ids=np.array([f"row-{row + 1}" for row in rows]),
        image_shape=sides,
        feature_names=None if sides else tuple(features),
        provenance={"source": "file", "files": [name], "report": report},
    )


def _header(name: str, data: bytes) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type as the file states them, before anything of that size is made."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        shape, _, dtype = _HEADERS.get(version, _HEADERS[2, 0])(stream)
    except Exception as error:  # NumPy parses a text here, and fails in as many ways as it can
        msg = f"“{name}” does not start like an NPY file; write it with numpy.save."
        raise InputError(msg) from error
    expected = math.prod(shape) * dtype.itemsize
    present = len(data) - stream.tell()
    if not dtype.hasobject and present < expected:
        msg = (
            f"“{name}” breaks off: its header promises {expected:,} bytes of numbers and "
            f"{present:,} are there; copy or write it again."
        )
        raise InputError(msg)
    return shape, dtype


def _check(name: str, shape: tuple[int, ...], dtype: np.dtype, limits: Limits) -> None:
    if dtype.hasobject or dtype.kind not in "buif":
        kind = "Python objects" if dtype.hasobject else f"values of type {dtype}"
        msg = f"“{name}” holds {kind}, not plain numbers; save it as an array of float or uint8."
        raise InputError(msg)
    colours = len(shape) == 4 and shape[3] in (1, 3)
    if len(shape) not in (2, 3) and not colours:
        msg = (
            f"“{name}” has shape {shape}; give a matrix (rows, columns), grey images (n, height, "
            "width) or colour images (n, height, width, 3)."
        )
        raise InputError(msg)
    if shape[0] < 2 or math.prod(shape[1:]) < 2:
        msg = f"“{name}” has shape {shape}; at least 2 rows and 2 values in each are needed."
        raise InputError(msg)
    check_matrix(name, shape[0], math.prod(shape[1:]), max(4, dtype.itemsize), limits)


def _array(name: str, data: bytes) -> np.ndarray:
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        msg = f"“{name}” cannot be read as an NPY file; write it again with numpy.save."
        raise InputError(msg) from error
    native = array.dtype.newbyteorder("=")
    if native == np.float16:
        native = np.dtype(np.float32)
    elif native not in DTYPES:
        native = np.dtype(np.float64)
    return np.ascontiguousarray(array, dtype=native)


def _image_sides(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    if len(shape) == 2:
        return None
    return shape[1:3] if len(shape) == 3 or shape[3] == 1 else shape[1:]
