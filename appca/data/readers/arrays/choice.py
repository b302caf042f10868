"""What files of arrays share: which array holds the rows, what names them, and the data set."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from appca.data.dataset import DTYPES, Dataset, NumberedNames
from appca.data.readers.intake import (
    FileReport,
    left_to_the_model,
    note_quality,
    row_ids,
    settle_missing,
)
from appca.data.readers.source import LIMITS, ReadLimits, check_matrix
from appca.data.readers.tables.roles import FEW, is_label_name
from appca.words.errors import InputError, unknown
from appca.words.wording import counted, shortened

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
    # The digest of a data set has numbered names: a file keeps the one that it has always had.
    numbered = NumberedNames("column", X.shape[1])
    names = None if sides or len(numbered) > limits.columns else tuple(numbered)
    report["image_shape"] = sides
    return settled(name, X, named, names, missing, report, limits)


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
