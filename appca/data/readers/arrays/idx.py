"""IDX files, as MNIST has them: images or vectors, and their labels in files of their own.

A file is a magic number, the sides as 32-bit numbers, then the numbers themselves.
"""

import math
import re
import struct
from typing import BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.arrays.choice import (
    ArrayInfo,
    Beside,
    build,
    check_array,
    kept_type,
    mapped,
)
from appca.data.readers.intake import FileReport
from appca.data.readers.reader import Reader
from appca.data.readers.source import LIMITS, File, Files, ReadLimits, check_matrix, plain_file
from appca.words.errors import InputError
from appca.words.wording import counted

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_SIDES = 4
_ROLE = re.compile(r"images?|imgs?|labels?|idx\d?|ubyte|gz|[^a-z0-9]")  # what pairs do not share


class IdxOptions(NamedTuple):
    """How to read IDX files."""

    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


class IdxArray(NamedTuple):
    """One file, its numbers still on the disk."""

    name: str
    values: np.ndarray  # (N,) labels, else (N, ...)


def read_many(files: Files, options: IdxOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read images and, from files with one number for each, their labels.

    Several files of images are put one below the other, and the label ``file`` says which. Images
    and labels find each other by what their names share; one of each always does. Bytes stay bytes,
    and those of a single file of images stay on the disk.
    """
    parts = [_part(name, file, limits) for name, file in files]
    rows = [part for part in parts if part.values.ndim > 1]
    columns = [part for part in parts if part.values.ndim == 1]
    if not rows:
        msg = f"“{parts[0].name}” holds labels alone; give the file of images with it."
        raise InputError(msg)
    _check_alike(rows, limits)
    names = {"class": _labels(rows, columns)} if columns else {}
    if len(rows) > 1:
        sizes = [len(part.values) for part in rows]
        names["file"] = np.repeat([part.name.split(".", maxsplit=1)[0] for part in rows], sizes)
    values = rows[0].values
    values = np.concatenate([part.values for part in rows]) if len(rows) > 1 else values
    report: FileReport = {}
    beside = Beside(None, names)
    dataset = build(
        rows[0].name, values, beside, options.missing, options.image_shape, report, limits
    )
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def _part(name: str, file: File, limits: ReadLimits) -> IdxArray:
    with plain_file(name, file, limits) as stream:
        array = _header(name, stream)
        start = stream.tell()
        _check_length(name, array, stream.seek(0, 2) - start)
        if len(array.shape) > 1:
            check_array(name, array, limits)
        else:
            check_matrix(name, array.shape[0], 1, kept_type(array.dtype).itemsize, limits)
        return IdxArray(name, mapped(stream, array, start))


def _header(name: str, stream: BinaryIO) -> ArrayInfo:
    """Read the beginning of an unpacked file, up to where the numbers begin."""
    magic = stream.read(4)
    is_idx = len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in _TYPES
    if not is_idx or not 1 <= magic[3] <= _MOST_SIDES:
        start = magic.hex() or "nothing"
        msg = f"“{name}” is not an IDX file (it starts with {start}); choose another file."
        raise InputError(msg)
    sides = stream.read(4 * magic[3])
    if len(sides) < 4 * magic[3]:
        msg = f"“{name}” ends within its header; copy or download it again."
        raise InputError(msg)
    return ArrayInfo(struct.unpack(f">{magic[3]}I", sides), np.dtype(_TYPES[magic[2]]))


def _check_length(name: str, array: ArrayInfo, present: int) -> None:
    expected = math.prod(array.shape) * array.dtype.itemsize
    if present != expected or not expected:
        sides = " x ".join(map(str, array.shape))
        msg = (
            f"“{name}” must hold {sides} numbers in {expected:,} bytes after its header; it holds "
            f"{present:,}, so copy or download it again."
        )
        raise InputError(msg)


def _check_alike(rows: list[IdxArray], limits: ReadLimits) -> None:
    first = rows[0]
    for part in rows[1:]:
        if part.values.shape[1:] != first.values.shape[1:]:
            sides = [" x ".join(map(str, array.values.shape[1:])) for array in (first, part)]
            msg = (
                f"“{part.name}” has images of {sides[1]}, “{first.name}” of {sides[0]}; read them "
                "one after the other."
            )
            raise InputError(msg)
    total = sum(len(part.values) for part in rows)
    columns = math.prod(first.values.shape[1:])
    check_matrix(first.name, total, columns, first.values.itemsize, limits)


def _labels(rows: list[IdxArray], columns: list[IdxArray]) -> np.ndarray:
    """Return the labels of all images, each file's own beside it."""
    if len(columns) != len(rows):
        msg = (
            f"There are {counted(len(rows), 'file')} of images and {len(columns)} of labels; give "
            "each its own, or none."
        )
        raise InputError(msg)
    by_name = {_shared(part.name): part for part in columns}
    ordered = columns
    if len(rows) > 1:
        ordered = [by_name[key] for part in rows if (key := _shared(part.name)) in by_name]
    if len(ordered) < len(rows) or len(by_name) < len(columns):
        names = ", ".join(f"“{part.name}”" for part in columns)
        msg = f"The names do not say which images {names} belong to; give one pair at a time."
        raise InputError(msg)
    for part, labels in zip(rows, ordered, strict=True):
        if len(part.values) != len(labels.values):
            msg = (
                f"“{labels.name}” holds {len(labels.values):,} labels and “{part.name}” "
                f"{len(part.values):,} images; give files that belong together."
            )
            raise InputError(msg)
    return np.concatenate([np.asarray(labels.values) for labels in ordered])


def _shared(name: str) -> str:
    return _ROLE.sub("", name.lower())


READER = Reader(IdxOptions, None, read_many)
