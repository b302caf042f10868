"""NumPy's NPZ files: several arrays, one of which holds the rows. Nothing is ever unpickled."""

import io
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.archive import content, members, unpacked
from appca.data.readers.arrays import npy
from appca.data.readers.arrays.choice import (
    ArrayInfo,
    Beside,
    RowNames,
    beside,
    build,
    check_array,
    choose,
    mapped,
)
from appca.data.readers.intake import FileReport
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, ReadLimits, file_stream, temporary_file
from appca.data.readers.sparse.filling import Compressed, check_rows, filled
from appca.data.readers.sparse.filling import build as sparse_build
from appca.words.errors import InputError
from appca.words.wording import is_text, shortened

_SPARSE = {"format", "shape", "data", "indices", "indptr"}


class NpzOptions(NamedTuple):
    """How to read a file of arrays."""

    array: str | None = None  # the one with the rows; None takes X, or the only one it can be
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read(name: str, file: File, options: NpzOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array as rows, and those with one entry per row as ids and labels.

    Types are as from NPY. A sparse matrix of SciPy is filled with its zeros. What ``python -m appca
    data --out x.npz`` writes comes back as it was.
    """
    report: FileReport = {}
    with file_stream(name, file, limits) as stream:
        archive, items = members(name, stream, limits)
        arrays_in = [item for item in items if item.filename.endswith(".npy")]
        inside = {item.filename.removesuffix(".npy"): item for item in arrays_in}
        arrays = {key: info_of(name, archive, item) for key, item in inside.items()}
        if options.array is None and arrays.keys() >= _SPARSE:
            matrix = _compressed(name, lambda key: small(name, archive, inside[key]))
            check_rows(name, matrix.shape, limits)
            X = filled(name, matrix, None, limits)
            missing, report["dtype"] = options.missing, str(X.dtype)
            return sparse_build(name, X, Beside(None, {}), None, missing, report, limits)
        wanted = choose(name, arrays, options.array, report, limits)
        check_array(shortened(wanted), arrays[wanted], limits)
        values = _values(name, archive, inside[wanted], limits)
        report |= {"array": wanted, "dtype": str(arrays[wanted].dtype)}
        named = RowNames(name, wanted, len(values))
        rows = beside(named, arrays, lambda key: small(name, archive, inside[key]), report, limits)
    return build(name, values, rows, options.missing, options.image_shape, report, limits)


def _compressed(name: str, load: Callable[[str], np.ndarray]) -> Compressed:
    """Read what `scipy.sparse.save_npz` wrote; by row and by column alone, for others are rare."""
    kind = str(np.ravel(load("format")).astype("U8")[0])
    if kind not in ("csr", "csc"):
        msg = f"“{name}” is a sparse matrix of the kind {shortened(kind)}; save it as csr or csc."
        raise InputError(msg)
    shape = tuple(int(side) for side in np.ravel(load("shape"))[:3])
    return Compressed(shape, load("data"), load("indices"), load("indptr"), by_row=kind == "csr")


def info_of(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> ArrayInfo:
    """Return what an array states of itself."""
    start = next(unpacked(name, archive, item), b"")  # a megabyte: more than any header has
    return npy.header(shortened(item.filename), io.BytesIO(start)).array


def _values(
    name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo, limits: ReadLimits
) -> np.ndarray:
    label = shortened(item.filename)
    with temporary_file(name, unpacked(name, archive, item), limits) as stream:
        start = npy.header(label, stream)
        npy.check_length(label, stream, start.array)
        return mapped(stream, start.array, stream.tell(), fortran=start.fortran)


def small(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> np.ndarray:
    """Read an array into memory."""
    stream = io.BytesIO(content(name, archive, item))
    start = npy.header(shortened(item.filename), stream)
    npy.check_length(shortened(item.filename), stream, start.array)
    stream.seek(0)
    values = np.lib.format.read_array(stream, allow_pickle=False)
    if not is_text(values):
        label = shortened(item.filename)
        msg = f"“{label}” in “{name}” contains invalid Unicode; save it again."
        raise InputError(msg)
    return values


READER = Reader(NpzOptions, read)
