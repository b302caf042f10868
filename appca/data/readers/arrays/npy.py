"""NumPy's NPY files: a matrix, or a stack of images. Pickled objects are never loaded."""

import io
import math
from dataclasses import replace
from typing import BinaryIO, NamedTuple

from appca.data.dataset import Dataset
from appca.data.readers.arrays.choice import (
    ArrayInfo,
    Beside,
    build,
    check_array,
    check_sides,
    mapped,
)
from appca.data.readers.reader import LONGEST_NAME, Reader
from appca.data.readers.source import LIMITS, File, Files, ReadLimits, plain_file
from appca.storage.packed import npy_header
from appca.words.errors import InputError
from appca.words.wording import shortened

_MOST_HEADER = 1 << 16  # bytes; NumPy itself believes no header of more than 10,000


class NpyOptions(NamedTuple):
    """How to read an array."""

    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


class Header(NamedTuple):
    """What an NPY file states before its numbers."""

    array: ArrayInfo
    fortran: bool  # the first index runs fastest


def read(name: str, file: File, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read an array of numbers: (N, D), images (N, h, w) or (N, h, w, 3).

    uint8, float32 and float64 stay, and stay on the disk until they are used; float16 becomes
    float32, other numbers float64.
    """
    with plain_file(name, file, limits) as stream:
        start = header(name, stream)
        check_length(name, stream, start.array)
        check_array(name, start.array, limits)
        values = mapped(stream, start.array, stream.tell(), fortran=start.fortran)
    report = {"dtype": str(start.array.dtype)}
    return build(
        name, values, Beside(None, {}), options.missing, options.image_shape, report, limits
    )


def header(name: str, stream: BinaryIO) -> Header:
    """Shape and type as the file states them, before anything of that size is made."""
    start = stream.tell()
    piece = io.BytesIO(stream.read(_MOST_HEADER))  # its length is a field, which may say anything
    try:
        shape, fortran, dtype = npy_header(piece)
    except Exception as error:  # NumPy parses a text here, and fails in as many ways as it can
        msg = f"“{name}” is not an NPY file; save it with numpy.save."
        raise InputError(msg) from error
    stream.seek(start + piece.tell())
    return Header(ArrayInfo(shape, dtype), fortran)


def check_length(name: str, stream: BinaryIO, array: ArrayInfo) -> None:
    """Refuse a file with fewer bytes behind its header than that promises."""
    start = stream.tell()
    present = stream.seek(0, 2) - start
    stream.seek(start)
    check_sides(name, array.shape)
    expected = math.prod(array.shape) * array.dtype.itemsize
    if not array.dtype.hasobject and present < expected:
        msg = (
            f"“{name}” is truncated: its header declares {expected:,} bytes and {present:,} are "
            "present; copy or save it again."
        )
        raise InputError(msg)


def read_many(files: Files, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read an array, and a table beside it, whose columns name and label the rows."""
    kinds = {
        "npy" if name.lower().endswith(".npy") else "table": (name, file) for name, file in files
    }
    name, file = kinds["npy"] if len(files) > 1 else files[0]
    dataset = read(shortened(name, LONGEST_NAME), file, options, limits)
    if len(files) == 1:
        return dataset
    from appca.data.readers.tables.beside import named_by

    table, content = kinds["table"]
    kind = "parquet" if table.lower().endswith((".parquet", ".pq")) else "csv"
    if dataset.provenance["report"].get("dropped"):
        msg = (
            f"“{shortened(name)}” has rows with missing values, which were left out, and "
            f"“{shortened(table)}” says nothing of which; keep them (missing=model)."
        )
        raise InputError(msg)
    named = named_by(shortened(table, LONGEST_NAME), content, kind, dataset.n_rows, limits)
    dataset.provenance["files"] = [name for name, _ in files]
    ids = dataset.ids if named.ids is None else named.ids
    return replace(dataset, ids=ids, labels=named.labels)


READER = Reader(NpyOptions, None, read_many)
