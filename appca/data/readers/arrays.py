"""Arrays: NPY, NPZ, IDX and ARFF files, and what readers of several arrays share."""

import csv
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

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
    few,
    file_bytes,
    file_stream,
    members,
    note,
    plain_file,
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
from appca.words import InputError, counted, is_text, listed, shortened, unknown

_MOST_LISTED = 6
_EXACT, _EXACT_IN_FLOAT32 = 2.0**53, 1 << 24  # whole numbers below are exact as reals
_ID_NAMES = ("ids", "id")
_FEW_NAMES = 4  # texts that may be classes of however few rows
_MASKS = ("mask", "missing", "{}_mask", "{}_missing")  # arrays that say which cells are missing
_LABEL_NAMES = "label_names"  # beside label_0, label_1, ... in the files this project writes
_SPARSE = {"format", "shape"}  # arrays of `scipy.sparse.save_npz` in every format
_MOST_HEADER = 1 << 16  # bytes of an NPY header


class Item(NamedTuple):
    """An array of a file, as the file states it, and how to read it."""

    shape: tuple[int, ...]
    dtype: np.dtype
    load: Callable[[], np.ndarray]
    columns: Sequence[str] | None = None  # names of its columns, if the file has them
    rows: np.ndarray | None = None  # names of its rows


class ArrayOptions(NamedTuple):
    """How to read a file of several arrays; those in groups are named like ``train/X``."""

    array: str | None = None  # the one with the rows; None takes X, or the only one it can be
    ids: str | None = None  # the array that names the rows; None looks for one
    labels: tuple[str, ...] | None = None  # arrays with one entry a row; None looks for them
    transpose: bool = False  # each column is a row, as MATLAB's tools often have it
    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images
    feature_type: str | None = None  # of 10x counts; None takes gene expression, "all" takes all


class Beside(NamedTuple):
    """Names and labels of rows."""

    ids: np.ndarray | None = None
    labels: Mapping[str, np.ndarray] = MappingProxyType({})


def read_items(
    name: str,
    items: Mapping[str, Item],
    options: ArrayOptions,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Read one array as rows, and vectors with one entry a row as ids and labels.

    ``report["unused"]`` names the arrays that were not used, each with the reason.
    """
    wanted = choose(name, items, options.array, report, limits)
    item = items[wanted]
    turned = item.shape[-1:] + item.shape[:-1] if options.transpose else item.shape
    check_array(shortened(wanted), turned, item.dtype, limits)
    values = item.load()
    unused = report.setdefault("unused", {})
    for key in (mask.format(wanted) for mask in _MASKS):
        if key in items and items[key].shape == item.shape and items[key].dtype == bool:
            values = np.where(items[key].load(), np.nan, values)
            note(report, "Masked", f"cells that “{key}” marks are missing")
            items = {other: kept for other, kept in items.items() if other != key}
    values = native(np.moveaxis(values, -1, 0) if options.transpose else values)
    report |= {"array": wanted, "dtype": str(item.dtype)}
    named = _rows_named(name, wanted, len(values), items, options, report)
    for key, other in items.items():
        if key != wanted and key not in unused and not _is_vector(other):
            is_matrix = _is_matrix(other, 1)
            choice = f"another matrix; array={key} reads it"
            unused[key] = choice if is_matrix else f"{_sides(other.shape)}, no matrix of numbers"
    if item.columns is not None and not options.transpose:
        return settled(name, values, named, unique(item.columns), options.missing, report, limits)
    return build(name, values, named, options.missing, options.image_shape, report, limits)


def choose(
    name: str,
    items: Mapping[str, Item],
    wanted: str | None,
    report: FileReport,
    limits: ReadLimits = LIMITS,
) -> str:
    """Return the name of the array that holds the rows.

    It is the one `wanted` by a person, else that named X, or the only one it can be; one with fewer
    rows than usual is taken only where no other can be. The report receives ``arrays``: those it
    can be, with their sizes in words.
    """
    possible = _matrices(items, LIMITS.least_rows) or _matrices(items, limits.least_rows)
    report["arrays"] = {key: _sides(item.shape) for key, item in possible.items()}
    if wanted is not None:
        if wanted not in items:
            there = f"choose of {_listed(items) or 'none'}"
            error = unknown("array", wanted, items, f" in “{name}”", there)
            error.report = report
            raise error
        return wanted
    if "X" in possible or len(possible) == 1:
        return "X" if "X" in possible else next(iter(possible))
    if not possible:
        unused = report.get("unused", {})
        arrays = [_listed(items)] if items else []
        arrays += [
            f"“{shortened(key)}” ({why})" for key, why in list(unused.items())[:_MOST_LISTED]
        ]
        only = f", only {', '.join(arrays)}" if arrays else ""
        msg = (
            f"“{name}” holds no matrix of numbers{only}; save one with a row for each object and "
            "at least 2 columns."
        )
        raise InputError(msg, report)
    report["option"] = f"array={next(iter(possible))}"  # that would do
    msg = f"“{name}” holds several arrays, {_listed(possible)}; choose the one with the rows."
    raise InputError(msg, report)


def check_array(name: str, shape: tuple[int, ...], dtype: np.dtype, limits: ReadLimits) -> None:
    """Refuse what is no matrix and no stack of images, or is more than one file may hold."""
    if any(isinstance(side, bool) or side < 0 for side in shape):
        msg = f"“{name}” declares the shape {shape}; sides are whole numbers; save it again."
        raise InputError(msg)
    if dtype.hasobject or dtype.kind not in "buif":
        kind = "Python objects" if dtype.hasobject else f"values of type {dtype}"
        kind = "complex numbers" if dtype.kind == "c" else kind
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


def native(values: np.ndarray) -> np.ndarray:
    """Return numbers in a type data sets have, row by row; a copy only where one is needed."""
    return np.ascontiguousarray(values, dtype=kept_type(values.dtype))


def kept_type(dtype: np.dtype) -> np.dtype:
    """Return the type in which a data set holds numbers of a type."""
    kept = dtype.newbyteorder("=")
    if kept == np.float16:
        return np.dtype(np.float32)
    return kept if kept in DTYPES else np.dtype(np.float64)


def _rows_named(
    name: str,
    wanted: str,
    n_rows: int,
    items: Mapping[str, Item],
    options: ArrayOptions,
    report: FileReport,
) -> Beside:
    """Find ids and label columns among the arrays that have one entry for each row.

    As this project writes them (``ids``, ``label_names``, ``label_0`` ...), else by what they hold:
    texts, few whole numbers, or numbers under a name such as class or target. Texts that all
    differ name the rows. Raises InputError when what is called ids or labels has not one entry for
    each row of any array.
    """
    others = {key: item for key, item in items.items() if key != wanted and _is_vector(item)}
    one_each = {key: item for key, item in others.items() if math.prod(item.shape) == n_rows}
    written = _written_names(items)
    rows = f"the {counted(n_rows, 'row')} of “{shortened(wanted)}”"
    for key in [*filter(None, [options.ids]), *(options.labels or ())]:
        if key not in items:
            msg = (
                f"There is no array “{shortened(key)}” in “{name}”; choose of "
                f"{_listed(items) or 'none'}."
            )
            raise InputError(msg)
        if key not in one_each:
            raise _other_length(name, key, items[key], rows)
    unused = report["unused"]
    for key in others.keys() - one_each.keys():
        if _must_fit(key, others[key], n_rows, items, key in written):
            raise _other_length(name, key, others[key], rows)
        if key != _LABEL_NAMES:
            length = math.prod(others[key].shape)
            unused[key] = f"{counted(length, 'value')} for {counted(n_rows, 'row')}"
    ids, key_of_ids = items[wanted].rows, options.ids
    able = [key for key in sorted(one_each) if _title(key) in _ID_NAMES]
    able = [key for key in able if one_each[key].dtype.kind in "USiu"]
    key_of_ids = key_of_ids or min(able, key=lambda key: key not in _ID_NAMES, default=None)
    if key_of_ids is not None:
        ids = _column(one_each[key_of_ids]).astype(str)
        if options.ids is None and len(np.unique(ids)) < n_rows:
            ids, key_of_ids = None, None
    keys = options.labels or [key for key in one_each if key != key_of_ids]
    keys = [key for key in written if key in one_each] if written else keys
    labels = {}
    for key in keys:
        column = _column(one_each[key])
        use = "label" if written or options.labels else _use_of(key, column)
        if use == "names" and ids is None:
            ids = column
        elif use == "label":
            labels[written.get(key, key)] = column
        else:
            what = "texts" if column.dtype.kind == "U" else "numbers"
            unused[key] = f"{what}, of which many differ"
    return Beside(ids, labels)


def _use_of(key: str, column: np.ndarray) -> str:
    """Return whether a vector is a "label" or "names" of rows, or "" where it is neither."""
    n_distinct, n_rows = len(np.unique(column)), len(column)
    if column.dtype.kind == "U" and n_distinct > max(_FEW_NAMES, n_rows / 2):
        return "names" if n_distinct == n_rows else ""
    few = column.dtype.kind in "bU" or (column.dtype.kind in "iu" and n_distinct <= FEW)
    return "label" if few or is_label_name(_title(key)) else ""


def _must_fit(
    key: str, item: Item, n_rows: int, items: Mapping[str, Item], is_written: bool
) -> bool:
    """Whether ids or labels of another length than the rows say that the file is wrong."""
    length, title = math.prod(item.shape), _title(key)
    is_named = is_written or title in _ID_NAMES or is_label_name(title)
    matrices = _matrices(items, 1).values()
    if not is_named or any(length in (other.shape[0], other.shape[-1]) for other in matrices):
        return False
    names_classes = item.dtype.kind in "US" and length < n_rows and title not in _ID_NAMES
    return not (names_classes and not is_written and len(np.unique(_column(item))) == length)


def _other_length(name: str, key: str, item: Item, rows: str) -> InputError:
    return InputError(
        f"“{shortened(key)}” in “{name}” has {_sides(item.shape)} entries for {rows}; save one for "
        "each row, or leave it out of the file."
    )


def _title(key: str) -> str:
    """Return the last part of an array's path."""
    return key.rsplit("/", 1)[-1]


def _is_vector(item: Item) -> bool:
    plain = item.dtype.kind in "USbiuf" and not item.dtype.hasobject
    return bool(item.shape) and math.prod(item.shape) == max(item.shape) > 0 and plain


def _matrices(items: Mapping[str, Item], least_rows: int) -> dict[str, Item]:
    return {key: item for key, item in items.items() if _is_matrix(item, least_rows)}


def _is_matrix(item: Item, least_rows: int) -> bool:
    plain = item.dtype.kind in "buifc" and not item.dtype.hasobject
    large = len(item.shape) >= 2 and item.shape[0] >= least_rows and math.prod(item.shape[1:]) >= 2
    return plain and large


def _written_names(items: Mapping[str, Item]) -> dict[str, str]:
    """Return the names of label_0, label_1 ... in a file that this project has written."""
    item = items.get(_LABEL_NAMES)
    if item is None or item.dtype.kind != "U":
        return {}
    return {f"label_{i}": str(name) for i, name in enumerate(np.ravel(item.load()))}


def _column(item: Item) -> np.ndarray:
    values = np.ravel(item.load())
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind == "f" and (np.abs(values) < _EXACT).all():
        whole = values.astype(np.int64)
        return whole if (values == whole).all() else values
    return values


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{side:,}" for side in shape) or "one value"


def _listed(items: Mapping[str, Item]) -> str:
    shown = [f"“{shortened(key)}” ({_sides(item.shape)})" for key, item in items.items()]
    more = len(shown) - _MOST_LISTED
    return ", ".join(shown[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


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
    sides = tuple(image_shape) if image_shape else None
    if sides is None and array.ndim > 2:
        sides = array.shape[1:3] if array.ndim == 3 or array.shape[3] == 1 else array.shape[1:]
    X = array.reshape(len(array), -1)
    report.setdefault("dtype", str(array.dtype))
    report["image_shape"] = sides
    return settled(name, X, named, None, missing, report, limits)


def settled(
    name: str,
    X: np.ndarray,
    named: Beside,
    names: Sequence[str] | None,
    missing: str,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Make a data set of a matrix (N, D) whose features may have unique names."""
    sides = report.setdefault("image_shape", None)
    names = None if names is None or len(names) > limits.columns else tuple(names)
    features: Sequence[str] = names or NumberedNames("column", X.shape[1])
    empty = _without_numbers(X) if sides is None and limits.least_rows > 1 else np.zeros(0, int)
    if 0 < len(empty) <= X.shape[1] - 2:
        left_out = few([features[j] for j in empty[:6].tolist()], len(empty))
        note(report, "Left out", f"{counted(len(empty), 'feature')} without a number: {left_out}")
        keep = np.setdiff1d(np.arange(X.shape[1]), empty)
        features = [features[j] for j in keep.tolist()]
        names = tuple(features) if len(features) <= limits.columns else None
        X = X[:, keep]
    report.setdefault("dtype", str(X.dtype))
    report |= {"rows": len(X), "columns": X.shape[1]}
    gaps = left_to_the_model(X, missing)
    X, rows = settle_missing(X, features, missing, report, limits.least_rows)
    note_quality(X, features, report, limits.least_rows)
    ids = row_ids(rows) if named.ids is None else np.array(unique(named.ids.tolist()))[rows]
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


def _without_numbers(X: np.ndarray) -> np.ndarray:
    """Return the numbers of the columns of X (N, D) of which every cell is missing."""
    if X.dtype.kind != "f" or not X.size or not np.isnan(X.min()):
        return np.zeros(0, int)
    return np.flatnonzero(np.isnan(X).all(axis=0))


def unique(names: Sequence[str]) -> list[str]:
    """Return the names; a second one of the same name gets “-1”, as in anndata."""
    taken, again = set(names), dict[str, int]()
    seen: dict[str, None] = {}
    for name in names:
        new = name
        while new in seen or (new != name and new in taken):
            again[name] = again.get(name, 0) + 1
            new = f"{name}-{again[name]}"
        seen[new] = None
    return list(seen)


GENES = "Gene Expression"  # the feature type that is read unless another is chosen


def of_type(
    name: str, types: np.ndarray | None, wanted: str | None, report: FileReport
) -> np.ndarray | None:
    """Return the places of the features of the wanted type; None where all are read.

    `types` (D,) are those of the file, such as Gene Expression and Antibody Capture, if it states
    them. The report says which were read, and how to choose others.
    """
    kinds, counts = np.unique([] if types is None else types, return_counts=True)
    if wanted not in (None, "all", *kinds.tolist()):
        error = unknown("feature type", wanted, kinds.tolist(), f" in “{name}”")
        raise error
    if types is None or len(kinds) < 2:
        return None
    chosen = wanted or (GENES if GENES in kinds.tolist() else "all")
    sizes = [
        f"{kind} ({n:,}{'' if chosen in (kind, 'all') else ', not read'})"
        for kind, n in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    example = next(kind for kind in ("all", *kinds.tolist()) if kind != chosen)
    note(report, "Feature types", f"{', '.join(sizes)}; choose by feature_type={example}")
    return None if chosen == "all" else np.flatnonzero(types == chosen)


def dense(
    name: str, make: Callable[[], Any], columns: np.ndarray | None, limits: ReadLimits
) -> np.ndarray:
    """Return a sparse matrix of SciPy as an array (N, D) with its zeros, or some of its columns.

    `make` makes the matrix of a file's parts. Raises InputError when the parts do not fit together,
    or the result is larger than allowed.
    """
    try:
        matrix = make()
        matrix = matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
        matrix.check_format(full_check=True)  # else compiled code reads beyond an array
    except (ValueError, TypeError, IndexError, OverflowError, RuntimeWarning) as error:
        msg = (
            f"The sparse matrix in “{name}” is damaged: its values, indices and shape do not fit "
            "together; write the file again."
        )
        raise InputError(msg) from error
    check_rows(name, matrix.shape, limits)
    data = matrix.data
    if data.dtype.kind == "c":
        msg = f"“{name}” holds complex numbers; save their real parts."
        raise InputError(msg)
    exact = data.dtype.kind in "bui" and np.abs(data).max(initial=0) < _EXACT_IN_FLOAT32
    dtype = np.dtype(np.float32) if exact else kept_type(data.dtype)
    dtype = np.dtype(np.float64) if dtype.kind != "f" else dtype
    d = matrix.shape[1] if columns is None else len(columns)
    remedy = "keep fewer rows or columns, such as highly variable genes, and save the file again"
    check_matrix(name, matrix.shape[0], d, dtype.itemsize, limits, remedy)
    part = matrix.astype(dtype)
    return np.asarray((part if columns is None else part[:, columns]).toarray(order="C"))


def check_rows(name: str, shape: tuple[int, ...], limits: ReadLimits) -> None:
    """Refuse a matrix with too few rows or columns to be data."""
    if len(shape) != 2 or shape[0] < limits.least_rows or shape[1] < 2:
        msg = (
            f"“{shortened(name)}” has {_sides(shape)} numbers; a matrix of at least "
            f"{limits.least_rows} rows and 2 columns is needed."
        )
        raise InputError(msg)


class NpyOptions(NamedTuple):
    """How to read an array, or IDX files."""

    missing: str = "refuse"  # or "model", "mean", "drop": what to do with NaN
    image_shape: tuple[int, ...] | None = None  # (h, w) or (h, w, 3) when rows are images


def read_npy_files(files: Files, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read an array: (N, D), images (N, h, w) or (N, h, w, 3), and a table beside it.

    uint8, float32 and float64 stay, and stay on the disk until they are used; float16 becomes
    float32, other numbers float64. The columns of the table name and label the rows.
    """
    is_array = [name.lower().endswith(".npy") for name, _ in files]
    name, file = files[is_array.index(True) if len(files) > 1 else 0]
    title = shortened(name, LONGEST_NAME)
    with plain_file(title, file, limits) as stream:
        values = _mapped(title, stream, limits)
    dataset = build(title, values, Beside(), options.missing, options.image_shape, {}, limits)
    if len(files) == 1:
        return dataset
    table, packed = files[is_array.index(False)]
    if dataset.provenance["report"].get("dropped"):
        msg = (
            f"“{title}” has rows with missing values, which were left out, and "
            f"“{shortened(table)}” says nothing of which; keep them (missing=model)."
        )
        raise InputError(msg)
    named = _named_by(shortened(table, LONGEST_NAME), packed, dataset.n_rows, limits)
    dataset.provenance["files"] = [name for name, _ in files]
    ids = dataset.ids if named.ids is None else named.ids
    return replace(dataset, ids=ids, labels=dict(named.labels))


def _named_by(name: str, file: File, n_rows: int, limits: ReadLimits) -> Beside:
    """Return ids and labels of rows from a table beside an array; see `names_beside`."""
    is_parquet = name.lower().endswith((".parquet", ".pq"))
    table = (parquet if is_parquet else tables).table_beside(name, file, n_rows, limits)
    if len(table.frame) != n_rows:
        msg = (
            f"“{shortened(name)}” has {counted(len(table.frame), 'line')} for the "
            f"{counted(n_rows, 'row')} of the array; give a table with one line for each row."
        )
        raise InputError(msg)
    return Beside(*names_beside(table, limits))


def _header(name: str, stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, whether the first index runs fastest, and type; nothing of that size is made."""
    start = stream.tell()
    piece = io.BytesIO(stream.read(_MOST_HEADER))  # its length is a field, which may say anything
    try:
        shape, fortran, dtype = npy_header(piece)
    except Exception as error:  # NumPy parses a text here, and fails in as many ways as it can
        msg = f"“{name}” is not an NPY file; save it with numpy.save."
        raise InputError(msg) from error
    stream.seek(start + piece.tell())
    return shape, fortran, dtype


def _mapped(name: str, stream: BinaryIO, limits: ReadLimits) -> np.ndarray:
    """Map numbers of an NPY file on the disk into memory, where they stay if their type may."""
    shape, fortran, dtype = _header(name, stream)
    start = stream.tell()
    present = stream.seek(0, io.SEEK_END) - start
    expected = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and present < expected:
        msg = (
            f"“{name}” is truncated: its header declares {expected:,} bytes and {present:,} are "
            "present; copy or save it again."
        )
        raise InputError(msg)
    check_array(name, shape, dtype, limits)
    return native(np.memmap(stream, dtype, "r", start, shape, "F" if fortran else "C"))


def read_npz(name: str, file: File, options: ArrayOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read one array as rows, and those with one entry per row as ids and labels.

    Types are as from NPY. A sparse matrix of SciPy is filled with its zeros. What ``python -m appca
    data --out x.npz`` writes comes back as it was.
    """
    report: FileReport = {"unused": {}}
    with file_stream(name, file, limits) as stream:
        archive, members_in = members(name, stream, limits)
        inside = {item.filename.removesuffix(".npy"): item for item in members_in}
        if options.array is None and inside.keys() >= _SPARSE:
            from scipy import sparse

            stream.seek(0)
            X = dense(name, lambda: sparse.load_npz(stream), None, limits)
            return build(name, X, Beside(), options.missing, None, report, limits)
        items = {}
        for key, member in inside.items():
            label = shortened(member.filename)
            if not member.filename.endswith(".npy"):
                report["unused"][key] = "not an NPY file"
                continue
            start = next(unpacked(name, archive, member), b"")  # a megabyte
            shape, _, dtype = _header(label, io.BytesIO(start))
            if dtype.hasobject and key != options.array:
                report["unused"][key] = "Python objects; save it with dtype float or str"
                continue
            items[key] = Item(shape, dtype, partial(_from_npz, name, archive, member))
        return read_items(name, items, options, report, limits)


def _from_npz(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    label = shortened(member.filename)
    try:
        with archive.open(member) as stream:
            values = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        msg = f"“{label}” in “{name}” is truncated or damaged; save it again."
        raise InputError(msg) from error
    if not is_text(values):
        msg = f"“{label}” in “{name}” contains invalid Unicode; save it again."
        raise InputError(msg)
    return np.asarray(values)


_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_ROLE = re.compile(r"images?|imgs?|labels?|idx\d?|ubyte|gz|[^a-z0-9]")  # what pairs do not share


def read_idx_files(files: Files, options: NpyOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read images and, from files with one number for each, their labels.

    Several files of images are put one below the other, and the label ``file`` says which. Images
    and labels find each other by what their names share; one of each always does. Bytes stay bytes,
    and those of a single file of images stay on the disk.
    """
    parts = [(name, _idx(name, file, limits)) for name, file in files]
    rows = [(name, values) for name, values in parts if values.ndim > 1]
    columns = [(name, values) for name, values in parts if values.ndim == 1]
    if not rows:
        msg = f"“{parts[0][0]}” holds labels alone; give the file of images with it."
        raise InputError(msg)
    first, images = rows[0]
    for name, values in rows:
        if values.shape[1:] != images.shape[1:]:
            msg = (
                f"“{name}” has images of {_sides(values.shape[1:])}, “{first}” of "
                f"{_sides(images.shape[1:])}; read them one after the other."
            )
            raise InputError(msg)
    sizes = [len(values) for _, values in rows]
    check_matrix(first, sum(sizes), math.prod(images.shape[1:]), images.itemsize, limits)
    labels = {"class": _idx_labels(rows, columns)} if columns else {}
    if len(rows) > 1:
        labels["file"] = np.repeat([name.split(".", maxsplit=1)[0] for name, _ in rows], sizes)
        images = np.concatenate([values for _, values in rows])
    X = native(images)
    dataset = build(
        first, X, Beside(None, labels), options.missing, options.image_shape, {}, limits
    )
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def _idx(name: str, file: File, limits: ReadLimits) -> np.ndarray:
    """Map the numbers of an IDX file: zeros, type, number of sides, sides, numbers."""
    with plain_file(name, file, limits) as stream:
        start = stream.read(4)
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _IDX_TYPES or start[3] > 4:
            beginning = start.hex() or "nothing"
            msg = f"“{name}” is not an IDX file (it starts with {beginning}); choose another file."
            raise InputError(msg)
        sides = stream.read(4 * start[3])
        shape = struct.unpack(f">{len(sides) // 4}I", sides[: len(sides) // 4 * 4])
        dtype = np.dtype(_IDX_TYPES[start[2]])
        begin = stream.tell()
        present, expected = stream.seek(0, io.SEEK_END) - begin, math.prod(shape) * dtype.itemsize
        if len(shape) != start[3] or not expected or present != expected:
            msg = (
                f"“{name}” must hold {' x '.join(map(str, shape))} numbers in {expected:,} bytes "
                f"after its header; it holds {present:,}, so copy or download it again."
            )
            raise InputError(msg)
        if len(shape) > 1:
            check_array(name, shape, dtype, limits)
        return np.memmap(stream, dtype, "r", begin, shape)


def _idx_labels(
    rows: list[tuple[str, np.ndarray]], columns: list[tuple[str, np.ndarray]]
) -> np.ndarray:
    """Return the labels of all images, each file's own beside it."""
    if len(columns) != len(rows):
        msg = (
            f"There are {counted(len(rows), 'file')} of images and {len(columns)} of labels; give "
            "each its own, or none."
        )
        raise InputError(msg)
    ordered = columns
    if len(rows) > 1:
        by_name = {_ROLE.sub("", name.lower()): (name, values) for name, values in columns}
        shared = [_ROLE.sub("", name.lower()) for name, _ in rows]
        if set(shared) != by_name.keys() or len(by_name) < len(columns):
            names = listed([name for name, _ in columns])
            msg = f"The names do not say which images {names} belong to; give one pair at a time."
            raise InputError(msg)
        ordered = [by_name[key] for key in shared]
    for (name, images), (label, values) in zip(rows, ordered, strict=True):
        if len(images) != len(values):
            msg = (
                f"“{label}” holds {len(values):,} labels and “{name}” {len(images):,} images; give "
                "files that belong together."
            )
            raise InputError(msg)
    return np.concatenate([values.astype(values.dtype.newbyteorder("=")) for _, values in ordered])


class ArffOptions(NamedTuple):
    """How to read an ARFF file."""

    missing: str = "refuse"  # or "model", "mean", "drop": what to do with gaps


_ATTRIBUTE = re.compile(r"""^\s*@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+?)\s*$""", re.I | re.M)
_MOST_CLASSES = 1000


def read_arff(name: str, file: File, options: ArffOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a file of Weka: numeric attributes are features, others labels; ? is a gap.

    The reader of SciPy takes neither quoted values nor texts.
    """
    text = file_bytes(name, file, limits).decode("utf-8-sig", "replace")
    head, _, body = re.sub(r"(?i)^\s*@data.*$", "\0", text, count=1, flags=re.M).partition("\0")
    kinds = {key.strip("'\""): kind.lower() for key, kind in _ATTRIBUTE.findall(head)}
    lines = [line for line in body.splitlines() if line.strip() and line.lstrip()[0] != "%"]
    quote = '"' if body.count('"') > body.count("'") else "'"
    cells = csv.reader(lines, quotechar=quote, escapechar="\\", skipinitialspace=True)
    try:
        columns = dict(zip(kinds, zip(*cells, strict=True), strict=True))
        if not columns:
            msg = "no attributes"
            raise ValueError(msg)
        numbers = [key for key in kinds if kinds[key].split()[0] in ("numeric", "real", "integer")]
        values = [[cell.strip().replace("?", "nan") for cell in columns[key]] for key in numbers]
        X = np.array(values, np.float64).T
    except (ValueError, csv.Error) as error:
        sparse = lines and lines[0].lstrip().startswith("{")
        why = "a sparse ARFF file, which is not read" if sparse else "not an ARFF file or damaged"
        msg = f"“{name}” is {why}; write it again, or as CSV."
        raise InputError(msg) from error
    check_rows(name, (len(lines), len(numbers)), limits)
    texts = {key: np.array(column) for key, column in columns.items() if key not in numbers}
    labels = {key: np.where(column == "?", "", column) for key, column in texts.items()}
    many = [key for key, column in labels.items() if len(np.unique(column)) > _MOST_CLASSES]
    report: FileReport = {"unused": dict.fromkeys(many, "texts, of which many differ")}
    kept = {key: column for key, column in labels.items() if key not in many}
    return settled(name, X, Beside(None, kept), numbers, options.missing, report, limits)


NPY_READER = Reader(NpyOptions, None, read_npy_files)
NPZ_READER = Reader(ArrayOptions, read_npz)
IDX_READER = Reader(NpyOptions, None, read_idx_files)
ARFF_READER = Reader(ArffOptions, read_arff)
