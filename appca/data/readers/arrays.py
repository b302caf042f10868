"""NPY, NPZ and IDX files, and sparse matrices in NPZ."""

import io
import math
import re
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from appca.data.dataset import DTYPES, Dataset, NumberedNames
from appca.data.files import (
    LIMITS,
    LONGEST_NAME,
    File,
    Files,
    Reader,
    ReadLimits,
    check_matrix,
    content,
    file_stream,
    members,
    plain_file,
    temporary_file,
    unpacked,
)
from appca.data.readers import parquet, tables
from appca.data.readers.intake import (
    FileReport,
    left_to_the_model,
    note_quality,
    row_ids,
    settle_missing,
)
from appca.data.readers.roles import FEW, is_label_name, names_beside
from appca.storage.packed import npy_header
from appca.words import InputError, counted, is_text, shortened, unknown

_MOST_LISTED = 6
_EXACT = 2.0**53  # whole numbers below it are exact as reals, too
_ID_NAMES = ("ids", "id")
_LABEL_NAMES = "label_names"  # beside label_0, label_1, ... in the files this project writes


class ArrayInfo(NamedTuple):
    """An array as a file states it, before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype


class RowNames(NamedTuple):
    """Which rows are to be named, and by what a person chose."""

    file: str
    array: str  # the one with the rows
    n_rows: int
    ids: str | None = None  # None looks for an array that can be them
    labels: tuple[str, ...] | None = None  # None looks for arrays that can be them


class Beside(NamedTuple):
    """What names the rows."""

    ids: np.ndarray | None
    labels: dict[str, np.ndarray]


def choose(
    name: str,
    arrays: Mapping[str, ArrayInfo],
    wanted: str | None,
    report: FileReport,
    limits: ReadLimits = LIMITS,
) -> str:
    """Return the name of the array that holds the rows.

    It is the one `wanted` by a person, else that named X, or the only one it can be; one with less
    rows than usual is taken only where no other can be. The report receives ``arrays``: those it
    can be, with their sizes in words.
    """
    possible = _matrices(arrays, LIMITS.least_rows) or _matrices(arrays, limits.least_rows)
    report["arrays"] = {key: _sides(info.shape) for key, info in possible.items()}
    if wanted is not None:
        if wanted not in arrays:
            error = unknown(
                "array", wanted, arrays, f" in “{name}”", f"choose of {_listed(arrays) or 'none'}"
            )
            error.report = report
            raise error
        return wanted
    if "X" in possible or len(possible) == 1:
        return "X" if "X" in possible else next(iter(possible))
    if not possible:
        only = f", only {_listed(arrays)}" if arrays else ""
        if not arrays and report.get("unused"):
            left_out = [f"“{shortened(key)}” ({why})" for key, why in report["unused"].items()]
            only = f" that can be read, only {', '.join(left_out[:_MOST_LISTED])}"
        msg = (
            f"“{name}” holds no matrix of numbers{only}; save one with a row for each object and "
            "at least 2 columns."
        )
        raise InputError(msg, report)
    report["option"] = f"array={next(iter(possible))}"  # that would do
    msg = f"“{name}” holds several arrays, {_listed(possible)}; choose the one with the rows."
    raise InputError(msg, report)


def check_array(name: str, array: ArrayInfo, limits: ReadLimits) -> None:
    """Refuse what is no matrix and no stack of images, or is more than one file may hold."""
    shape, dtype = array
    check_sides(name, shape)
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
    if shape[0] < limits.least_rows or math.prod(shape[1:]) < 2:
        least = counted(limits.least_rows, "row")
        msg = f"“{name}” has shape {shape}; at least {least} and 2 values in each are needed."
        raise InputError(msg)
    itemsize = max(4, kept_type(dtype).itemsize)  # bytes are worked on as float32
    check_matrix(name, shape[0], math.prod(shape[1:]), itemsize, limits)


def check_sides(name: str, shape: tuple[Any, ...]) -> None:
    """Refuse what a header may give in the place of a side: True, or less than none."""
    if any(isinstance(side, bool) or side < 0 for side in shape):
        msg = f"“{name}” declares the shape {shape}; sides are whole numbers; save it again."
        raise InputError(msg)


def mapped(file: BinaryIO, array: ArrayInfo, offset: int, *, fortran: bool = False) -> np.ndarray:
    """Map numbers of a file on the disk into memory, where they stay if their type may."""
    shape, dtype = array
    order: Literal["F", "C"] = "F" if fortran else "C"
    values = np.memmap(file, dtype, "r", offset, shape, order)
    return native(values)


def native(values: np.ndarray) -> np.ndarray:
    """Return numbers in a type data sets have, row by row; a copy only where one is needed."""
    return np.ascontiguousarray(values, dtype=kept_type(values.dtype))


def kept_type(dtype: np.dtype) -> np.dtype:
    """Return the type in which a data set holds numbers of a type."""
    kept = dtype.newbyteorder("=")
    if kept == np.float16:
        return np.dtype(np.float32)
    return kept if kept in DTYPES else np.dtype(np.float64)


def beside(
    wanted: RowNames,
    arrays: Mapping[str, ArrayInfo],
    load: Callable[[str], np.ndarray],
    report: FileReport,
    limits: ReadLimits = LIMITS,
) -> Beside:
    """Find ids and label columns among the arrays that have one entry for each row.

    As this project writes them (``ids``, ``label_names``, ``label_0`` ...), else by what they hold:
    texts, few whole numbers, or numbers under a name such as class or target. `load` returns an
    array by its name; the report receives ``unused``: vectors that name no rows, and why.

    Raises InputError when what is called ids or labels has not one entry for each row of any array.
    """
    others = {key: info for key, info in arrays.items() if key != wanted.array and _is_vector(info)}
    one_each = {key: info for key, info in others.items() if math.prod(info.shape) == wanted.n_rows}
    names = _written_names(arrays, load, limits)
    written = {f"label_{i}": text for i, text in enumerate(names)}
    _check_chosen(wanted, arrays, one_each)
    for key in others.keys() - one_each.keys():
        _check_length(wanted, key, others[key], arrays, key in written, load)
    unused = {
        key: f"{counted(math.prod(info.shape), 'value')} for {counted(wanted.n_rows, 'row')}"
        for key, info in others.items()
        if key not in one_each and key != _LABEL_NAMES and math.prod(info.shape) > 1
    }
    large = [key for key, info in one_each.items() if _held(info) > limits.n_bytes // 4]
    unused |= dict.fromkeys(large, "its texts are too long for a label")
    kinds = {key: info.dtype.kind for key, info in one_each.items() if key not in large}
    able = sorted(key for key in kinds if _title(key) in _ID_NAMES and kinds[key] in "USiu")
    key_of_ids = wanted.ids or min(able, key=lambda key: key not in _ID_NAMES, default=None)
    ids = None if key_of_ids is None else _column(np.ravel(load(key_of_ids))).astype(str)
    if ids is not None and wanted.ids is None and len(np.unique(ids)) < wanted.n_rows:
        ids, key_of_ids = None, None
    labels = {written.get(key, key): key for key in written if key in kinds}
    if not written:
        labels = {key: key for key in wanted.labels or kinds if key != key_of_ids}
    columns = {title: _column(np.ravel(load(key))) for title, key in labels.items()}
    sure = bool(written) or wanted.labels is not None
    kept = {title for title, column in columns.items() if sure or _names_rows(title, column)}
    unused |= dict.fromkeys(columns.keys() - kept, "numbers, of which many differ")
    report["unused"] = report.get("unused", {}) | unused
    return Beside(ids, {title: column for title, column in columns.items() if title in kept})


def _check_chosen(
    wanted: RowNames, arrays: Mapping[str, ArrayInfo], one_each: Mapping[str, ArrayInfo]
) -> None:
    """Refuse ids or labels that were asked for by a name that stands for none."""
    for key in [*filter(None, [wanted.ids]), *(wanted.labels or ())]:
        if key not in arrays:
            listed = _listed(arrays) or "none"
            msg = f"There is no array “{shortened(key)}” in “{wanted.file}”; choose of {listed}."
            raise InputError(msg)
        if key not in one_each:
            raise _other_length(wanted, key, arrays[key])


def _check_length(
    wanted: RowNames,
    key: str,
    info: ArrayInfo,
    arrays: Mapping[str, ArrayInfo],
    written: bool,
    load: Callable[[str], np.ndarray],
) -> None:
    """Refuse what is called ids or labels and has another length, unless it goes with others."""
    length = math.prod(info.shape)
    title = _title(key)
    named = written or title in _ID_NAMES or is_label_name(title)
    matrices = _matrices(arrays, 1)
    if not named or any(length in (other.shape[0], other.shape[-1]) for other in matrices.values()):
        return
    few = info.dtype.kind in "US" and length < wanted.n_rows and not written
    if few and title not in _ID_NAMES and _held(info) < 1 << 20:
        texts = np.ravel(load(key))
        if len(np.unique(texts)) == length:  # the names of the classes, each once
            return
    raise _other_length(wanted, key, info)


def _other_length(wanted: RowNames, key: str, info: ArrayInfo) -> InputError:
    return InputError(
        f"“{shortened(key)}” in “{wanted.file}” has {_sides(info.shape)} entries for the "
        f"{counted(wanted.n_rows, 'row')} of “{shortened(wanted.array)}”; save one for each row, "
        "or leave it out of the file."
    )


def _title(key: str) -> str:
    """Return the last part of an array's path."""
    return key.rsplit("/", 1)[-1]


def _is_vector(array: ArrayInfo) -> bool:
    shape, dtype = array
    long = bool(shape) and math.prod(shape) == max(shape) > 0
    return long and dtype.kind in "USbiuf" and not dtype.hasobject


def _held(array: ArrayInfo) -> int:
    """Return the bytes that a vector takes as a label; texts have four a character."""
    itemsize = array.dtype.itemsize * (4 if array.dtype.kind == "S" else 1)
    return math.prod(array.shape) * max(8, itemsize)


def _written_names(
    arrays: Mapping[str, ArrayInfo], load: Callable[[str], np.ndarray], limits: ReadLimits
) -> list[str]:
    """Return what label_0, label_1 ... are called in a file that this project has written."""
    info = arrays.get(_LABEL_NAMES)
    if info is None or info.dtype.kind != "U" or _held(info) > limits.n_bytes // 4:
        return []
    return [str(name) for name in np.ravel(load(_LABEL_NAMES))]


def build(
    name: str,
    array: np.ndarray,
    named: Beside,
    missing: str,
    image_shape: Sequence[int] | None,
    report: FileReport,
    limits: ReadLimits = LIMITS,
) -> Dataset:
    """Make a data set of an array (N, ...) that was checked; sides beyond the first are pixels."""
    sides = tuple(image_shape) if image_shape else image_sides(array.shape)
    X = array.reshape(len(array), -1)
    report.setdefault("dtype", str(array.dtype))
    report["image_shape"] = sides
    return settled(name, X, named, None, missing, report, limits)


def settled(
    name: str,
    X: np.ndarray,
    named: Beside,
    names: tuple[str, ...] | None,
    missing: str,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Make a data set of a matrix (N, D) whose features may have names.

    If its rows are images, the report says so.
    """
    sides = report.setdefault("image_shape", None)
    features = names or NumberedNames("column", X.shape[1])
    report |= {"rows": len(X), "columns": X.shape[1]}
    gaps = left_to_the_model(X, missing)
    X, rows = settle_missing(X, features, missing, report, limits.least_rows)
    note_quality(X, features, report, limits.least_rows)
    ids = row_ids(rows) if named.ids is None else named.ids[rows]
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=ids,
        labels={key: column[rows] for key, column in named.labels.items()},
        image_shape=sides,
        feature_names=names,
        provenance={"source": "file", "files": [name], "report": report},
        missing=gaps,
        least_rows=limits.least_rows,
    )


def image_sides(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return (h, w) or (h, w, 3) of a stack of images, None of a matrix."""
    if len(shape) == 2:
        return None
    return shape[1:3] if len(shape) == 3 or shape[3] == 1 else shape[1:]


def _matrices(arrays: Mapping[str, ArrayInfo], least_rows: int) -> dict[str, ArrayInfo]:
    return {key: info for key, info in arrays.items() if _is_matrix(info, least_rows)}


def _is_matrix(array: ArrayInfo, least_rows: int) -> bool:
    shape, dtype = array
    plain = dtype.kind in "buif" and not dtype.hasobject
    return plain and len(shape) >= 2 and shape[0] >= least_rows and math.prod(shape[1:]) >= 2


def _names_rows(title: str, column: np.ndarray) -> bool:
    """Whether a vector looks like a label: few whole numbers, texts, or a target by its name."""
    if column.dtype.kind in "Ub" or is_label_name(_title(title)):
        return True
    return column.dtype.kind in "iu" and len(np.unique(column)) <= FEW


def _column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind == "f" and (np.abs(values) < _EXACT).all():
        whole = values.astype(np.int64)
        return whole if (values == whole).all() else values
    return values


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{side:,}" for side in shape) or "one value"


def _listed(arrays: Mapping[str, ArrayInfo]) -> str:
    shown = [
        f"“{shortened(key)}” ({_sides(info.shape)})"
        for key, info in list(arrays.items())[:_MOST_LISTED]
    ]
    more = len(arrays) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


_MOST_HEADER = 1 << 16  # bytes; NumPy itself believes no header of more than 10,000


class NpyOptions(NamedTuple):
    """How to read an array."""

    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


class Header(NamedTuple):
    """What an NPY file states before its numbers."""

    array: ArrayInfo
    fortran: bool  # the first index runs fastest


def read_npy(name: str, file: File, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
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


def read_npy_files(files: Files, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read an array, and a table beside it, whose columns name and label the rows."""
    kinds = {
        "npy" if name.lower().endswith(".npy") else "table": (name, file) for name, file in files
    }
    name, file = kinds["npy"] if len(files) > 1 else files[0]
    dataset = read_npy(shortened(name, LONGEST_NAME), file, options, limits)
    if len(files) == 1:
        return dataset

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


NPY_READER = Reader(NpyOptions, None, read_npy_files)


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


def read_idx_files(files: Files, options: IdxOptions, limits: ReadLimits = LIMITS) -> Dataset:
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
        _check_idx_length(name, array, stream.seek(0, 2) - start)
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


def _check_idx_length(name: str, array: ArrayInfo, present: int) -> None:
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


IDX_READER = Reader(IdxOptions, None, read_idx_files)


def named_by(name: str, file: File, kind: str, n_rows: int, limits: ReadLimits) -> Beside:
    """Read a table, "csv" or "parquet", with one line for each row of an array.

    All columns are labels but those that name the rows and those that a table leaves out. Raises
    InputError when it has another number of lines, or cannot be read.
    """
    reader = tables.table_beside if kind == "csv" else parquet.table_beside
    table = reader(name, file, n_rows, limits)
    if len(table.frame) != n_rows:
        msg = (
            f"“{shortened(name)}” has {counted(len(table.frame), 'line')} for the "
            f"{counted(n_rows, 'row')} of the array; give a table with one line for each row."
        )
        raise InputError(msg)
    return Beside(*names_beside(table, limits))


_EXACT_SPARSE = 1 << 24  # whole numbers below it are exact in float32
REMEDY = "keep fewer rows or columns, such as highly variable genes, and save the file again"


class Compressed(NamedTuple):
    """A sparse matrix as files state it, row by row (CSR) or column by column (CSC)."""

    shape: tuple[int, ...]
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    by_row: bool = True

    def turned(self) -> "Compressed":
        """Return the transposed matrix."""
        return self._replace(shape=self.shape[::-1], by_row=not self.by_row)


def filled(
    name: str, matrix: Compressed, columns: np.ndarray | None, limits: ReadLimits
) -> np.ndarray:
    """Return the matrix (N, D) with its zeros, or some of its columns.

    Raises InputError when the parts do not fit together, or the result is larger than allowed.
    """
    _check(name, matrix)
    n, d = matrix.shape[0], matrix.shape[1] if columns is None else len(columns)
    dtype = _type(matrix.data)
    check_matrix(name, n, d, dtype.itemsize, limits, REMEDY)
    from scipy import sparse

    kind = sparse.csr_matrix if matrix.by_row else sparse.csc_matrix
    parts = (matrix.data.astype(dtype), matrix.indices, matrix.indptr)
    whole = kind(parts, shape=matrix.shape)
    part = whole if columns is None else whole[:, columns]
    dense: np.ndarray = part.toarray(order="C")
    return dense


def _type(data: np.ndarray) -> np.dtype:
    if data.dtype.kind in "bui" and np.abs(data).max(initial=0) < _EXACT_SPARSE:
        return np.dtype(np.float32)
    return kept_type(data.dtype) if data.dtype.kind == "f" else np.dtype(np.float64)


def _check(name: str, matrix: Compressed) -> None:
    """Refuse parts with which SciPy's compiled code would read beyond an array."""
    shape, data, indices, indptr, by_row = matrix
    sides = len(shape) == 2 and min(shape) > 0
    vectors = all(part.ndim == 1 for part in (data, indices, indptr))
    plain = data.dtype.kind in "buif" and indices.dtype.kind in "ui" and indptr.dtype.kind in "ui"
    fits = sides and vectors and plain and len(data) == len(indices)
    if fits:
        major, minor = shape if by_row else shape[::-1]
        ends = len(indptr) == major + 1 and indptr[0] == 0 and indptr[-1] == len(data)
        inside = not len(indices) or (indices.min() >= 0 and indices.max() < minor)
        fits = bool(ends and inside and (indptr[:-1] <= indptr[1:]).all())
    if not fits:
        msg = (
            f"The sparse matrix in “{name}” is damaged: its values, indices and shape do not fit "
            "together; write the file again."
        )
        raise InputError(msg)


def build_sparse(
    name: str,
    X: np.ndarray,
    named: Beside,
    features: Sequence[str] | None,
    missing: str,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Make a data set of a matrix (N, D) whose features may have names."""
    names = None if features is None or len(features) > limits.columns else tuple(unique(features))
    ids = None if named.ids is None else np.array(unique(named.ids.tolist()))
    return settled(name, X, named._replace(ids=ids), names, missing, report, limits)


def unique(names: Sequence[str]) -> list[str]:
    """Return the names; a second one of the same name gets “-1”, as in anndata."""
    taken, again = set(names), dict[str, int]()
    seen: set[str] = set()
    result = []
    for name in names:
        new = name
        while new in seen or (new != name and new in taken):
            again[name] = again.get(name, 0) + 1
            new = f"{name}-{again[name]}"
        seen.add(new)
        result.append(new)
    return result


def check_rows(name: str, shape: tuple[int, ...], limits: ReadLimits) -> None:
    """Refuse a matrix with too few rows or columns to be data."""
    if len(shape) != 2 or shape[0] < limits.least_rows or shape[1] < 2:
        sides = " x ".join(f"{side:,}" for side in shape)
        msg = (
            f"“{shortened(name)}” has {sides} numbers; a matrix of at least {limits.least_rows} "
            "rows and 2 columns is needed."
        )
        raise InputError(msg)


_SPARSE = {"format", "shape", "data", "indices", "indptr"}


class NpzOptions(NamedTuple):
    """How to read a file of arrays."""

    array: str | None = None  # the one with the rows; None takes X, or the only one it can be
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read_npz(name: str, file: File, options: NpzOptions, limits: ReadLimits = LIMITS) -> Dataset:
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
            return build_sparse(name, X, Beside(None, {}), None, missing, report, limits)
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
    return header(shortened(item.filename), io.BytesIO(start)).array


def _values(
    name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo, limits: ReadLimits
) -> np.ndarray:
    label = shortened(item.filename)
    with temporary_file(name, unpacked(name, archive, item), limits) as stream:
        start = header(label, stream)
        check_length(label, stream, start.array)
        return mapped(stream, start.array, stream.tell(), fortran=start.fortran)


def small(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> np.ndarray:
    """Read an array into memory."""
    stream = io.BytesIO(content(name, archive, item))
    start = header(shortened(item.filename), stream)
    check_length(shortened(item.filename), stream, start.array)
    stream.seek(0)
    values = np.lib.format.read_array(stream, allow_pickle=False)
    if not is_text(values):
        label = shortened(item.filename)
        msg = f"“{label}” in “{name}” contains invalid Unicode; save it again."
        raise InputError(msg)
    return values


NPZ_READER = Reader(NpzOptions, read_npz)
