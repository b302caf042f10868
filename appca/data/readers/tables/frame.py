"""A table whose cells are parsed, from CSV or Parquet: roles, numbers, and then a data set."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.intake import (
    FileReport,
    are_bytes,
    left_to_the_model,
    note_quality,
    row_ids,
    settle_missing,
)
from appca.data.readers.source import ReadLimits, check_matrix
from appca.data.readers.tables.roles import (
    Column,
    are_dates,
    counts_matter,
    guess_roles,
    image_side,
    label_order,
    likely_labels,
    why_left_out,
)
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

ImageShape = tuple[int, ...] | Literal["auto"] | None  # auto: squares of grey are images
_LONGEST_LABEL = 500  # characters; a column with longer texts is a label only if chosen as one
_BLOCK_VALUES, _MOST_AT_ONCE = 1 << 20, 1000  # values and columns that are looked at together
_EXACT_DIGITS = 15  # that pandas 2 reads exactly
_MOST_SHOWN = 300  # columns whose first cells a report holds
_LONGEST_SHOWN = 40  # characters of such a cell
_MOSTLY = 0.5  # share of numbers from which words in a column are taken for mistakes
KINDS = {
    "number": "numbers",
    "text": "words",
    "date": "dates",
    "mixed": "numbers and words",
    "empty": "empty",
    "list": "lists",
    "long": "long texts",
}


class TableOptions(NamedTuple):
    """What the readers of tables have in common; see `CsvOptions`."""

    roles: dict[str, str] | None
    missing: str
    image_shape: ImageShape


def build(
    name: str,
    frame: "pd.DataFrame",
    named: list[bool],
    options: TableOptions,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Give the columns of a frame, whose names differ, roles and make a data set of them.

    `named` says whether the column's name is in the file. The report receives rows, columns, the
    kinds of columns that are no numbers, roles, features that may be labels (see `likely_labels`)
    and what the intake notes.
    """
    report.update(rows=len(frame), columns=len(frame.columns))
    check_columns(name, len(frame.columns), limits)
    _check_rows(name, frame, report, limits)
    columns = describe(frame, named)
    report["kinds"] = {each.name: KINDS[each.kind] for each in columns if each.kind != "number"}
    if limits.head_rows:
        report["head"] = _head(frame.iloc[: limits.head_rows, :_MOST_SHOWN])
    report["roles"] = roles = _roles(columns, len(frame), options.roles or {}, report)
    report["left_out"] = {
        each.name: why_left_out(each, len(frame))
        for each in columns
        if roles[each.name] == "ignored"
    }
    features = _with(roles, "feature")
    _check_features(name, features, roles, report)
    check_matrix(name, len(frame), len(features), 8, limits)
    check_texts(frame, roles, limits)
    report["likely_labels"] = likely_labels(
        columns, roles, lambda column: frame[column].to_numpy(np.float64)
    )
    matrix = _matrix(frame, features, report)
    X, rows = settle_missing(matrix, features, options.missing, report, limits.least_rows)
    note_quality(X, features, report, limits.least_rows)
    report["constant"] += [name for name, why in report["left_out"].items() if why == "one value"]
    report["n_constant"] = len(report["constant"])
    shape = _image_shape(options.image_shape, features, any(named), X)
    report["image_shape"] = shape
    provenance: dict[str, Any] = {"source": "file", "files": [name], "report": report}
    if shape is not None:
        provenance["image_range"] = image_range(X)
        X = X.astype(np.uint8) if are_bytes(X) else X
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=ids_of(frame, roles)[rows],
        labels={column: values[rows] for column, values in labels_of(frame, roles).items()},
        image_shape=shape,
        feature_names=None if shape is not None and not any(named) else tuple(features),
        provenance=provenance,
        missing=left_to_the_model(matrix, options.missing),
        least_rows=limits.least_rows,
    )


def check_columns(name: str, n_columns: int, limits: ReadLimits) -> None:
    """Refuse a table of more columns than are read."""
    if n_columns > limits.columns:
        msg = (
            f"“{name}” has {n_columns:,} columns, more than the {limits.columns:,} of a table; "
            "take fewer, turn it so that these are rows, or save the numbers as NPY."
        )
        raise InputError(msg)


def _head(frame: "pd.DataFrame") -> dict[str, list[str | None]]:
    """Return first cells as texts, None where they are missing."""
    cells: dict[str, list[str | None]] = {}
    for name in frame.columns:
        texts = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in frame[name].tolist()]
        cells[str(name)] = [
            None if gap else shortened(text, _LONGEST_SHOWN)
            for text, gap in zip(texts, frame[name].isna(), strict=True)
        ]
    return cells


def _roles(
    columns: list[Column], n: int, chosen: dict[str, str], report: FileReport
) -> dict[str, str]:
    try:
        return guess_roles(columns, n, chosen)
    except InputError as error:
        odd = [each.name for each in columns if each.kind == "mixed" and each.name not in chosen]
        error.report = report | ({"unclear": odd} if odd else {})
        raise


def describe(frame: "pd.DataFrame", named: list[bool]) -> list[Column]:
    """Say of every column what the guess of its role needs to know."""
    names = [str(label) for label in frame.columns]
    plain = np.array([kind.kind in "iuf" for kind in frame.dtypes], bool)
    described: dict[int, Column] = {}
    step = _at_once(frame)
    numbers = np.flatnonzero(plain)
    for start in range(0, len(numbers), step):
        part = numbers[start : start + step]
        block = frame.iloc[:, part].to_numpy()  # numbers of one kind stay what they are
        described |= zip(part.tolist(), _numbers(block, part, names, named), strict=True)
    for j in np.flatnonzero(~plain).tolist():
        described[j] = _words(frame.iloc[:, j], names[j], named[j])
    return [described[j] for j in range(len(names))]


def _numbers(
    block: np.ndarray, places: np.ndarray, names: list[str], named: list[bool]
) -> Iterator[Column]:
    """Describe columns of numbers (n, d) together, for there may be very many."""
    real = block.dtype.kind == "f"
    gaps = np.isnan(block).sum(axis=0) if real else np.zeros(block.shape[1], int)
    filled = np.where(np.isnan(block), 0, block) if gaps.any() else block
    whole = np.ones(block.shape[1], bool)
    if real:
        whole = np.isfinite(filled).all(axis=0) & (filled == np.floor(filled)).all(axis=0)
    low, high = filled.min(axis=0), filled.max(axis=0)
    grows = (gaps == 0) & whole & (filled[:2][0] < filled[:2][-1])
    grows[grows] = (np.diff(filled[:, grows], axis=0) > 0).all(axis=0)
    for i, j in enumerate(places.tolist()):
        if gaps[i] == len(block):
            yield Column(names[j], named[j], "empty", 0, whole=False, complete=False, grows=False)
            continue
        distinct = 0
        if counts_matter(names[j]):
            values = block[:, i]
            distinct = len(np.unique(values[~np.isnan(values)] if gaps[i] else values))
        yield Column(
            *(names[j], named[j], "number", distinct, bool(whole[i]), not gaps[i], bool(grows[i])),
            low=float(low[i]),
            high=float(high[i]),
        )


def _words(values: "pd.Series[Any]", name: str, named: bool) -> Column:
    """Describe a column that is not stored as numbers; it may hold some all the same."""
    import pandas as pd

    present = values.dropna()
    complete = len(present) == len(values)
    base = Column(name, named, "empty", 0, whole=False, complete=complete, grows=False)
    if not len(present) or isinstance(present.iloc[0], (list, dict, np.ndarray)):
        return base._replace(kind="list") if len(present) else base
    once, codes = _distinct(present)  # a text that many rows share is parsed once
    base = base._replace(distinct=len(once))
    if max((len(value) for value in once if isinstance(value, str)), default=0) > _LONGEST_LABEL:
        return base._replace(kind="long")
    flags = all(isinstance(value, (bool, np.bool_)) for value in once)
    plain = pd.Series([str(value) for value in once] if flags else once, dtype=object)
    floats = _as_numbers(plain).to_numpy(np.float64)[codes]
    odd = np.isnan(floats)
    if odd.all() and are_dates([str(value) for value in once]):
        return base._replace(kind="date")
    if odd.any():
        mixed = odd.sum() < _MOSTLY * len(present)
        kind, n_odd = ("mixed", int(odd.sum())) if mixed else ("text", 0)
        example = str(present.iloc[int(odd.argmax())])
        return base._replace(kind=kind, example=example, n_odd=n_odd)
    whole = bool(np.isfinite(floats).all() and (floats == np.floor(floats)).all())
    grows = complete and whole and len(floats) > 1 and bool((np.diff(floats) > 0).all())
    low, high = float(floats.min()), float(floats.max())
    return base._replace(kind="number", whole=whole, grows=grows, low=low, high=high)


def _distinct(values: "pd.Series[Any]") -> tuple[list[Any], np.ndarray]:
    """Return the different values and their places in the rows, by hashes Python keeps."""
    places: dict[tuple[type, Any], int] = {}
    codes = [places.setdefault((type(value), value), len(places)) for value in values.tolist()]
    return [value for _, value in places], np.array(codes)


def _as_numbers(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return floats, NaN where there is none; pandas itself fails on whole numbers above 1e308."""
    import pandas as pd

    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except OverflowError:
        numbers = pd.to_numeric(values.astype(str), errors="coerce")
    if int(pd.__version__.partition(".")[0]) < 3:  # whose last bit is another for long texts
        for place in np.flatnonzero(numbers.notna()).tolist():
            text = values.iloc[place]
            if isinstance(text, str) and len(text) > _EXACT_DIGITS:
                numbers.iloc[place] = float(text)
    return numbers


def _check_rows(name: str, frame: "pd.DataFrame", report: FileReport, limits: ReadLimits) -> None:
    if len(frame) < limits.least_rows:
        needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
        rows = counted(len(frame), "row")
        msg = f"“{name}” has {rows} of data; at least {needed} needed, add rows."
        raise InputError(msg, report)


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column, role_of in roles.items() if role_of == role]


def _check_features(
    name: str, features: list[str], roles: dict[str, str], report: FileReport
) -> None:
    if len(features) < 2:
        msg = (
            f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}; at least 2 "
            "are needed, so check the separator or change the columns' roles."
        )
        raise InputError(msg, report)


def _matrix(frame: "pd.DataFrame", features: list[str], report: FileReport) -> np.ndarray:
    import pandas as pd

    places = frame.columns.get_indexer(pd.Index(features, dtype=object))
    X = np.empty((len(frame), len(places)))
    plain = np.array([kind.kind in "iuf" for kind in frame.dtypes.iloc[places]], bool)
    step, numeric = _at_once(frame), np.flatnonzero(plain)
    for start in range(0, len(numeric), step):  # pandas copies each column of a selection apart
        part = numeric[start : start + step]
        X[:, part] = frame.iloc[:, places[part]].to_numpy(np.float64)
    for j in np.flatnonzero(~plain):
        column = features[j]
        numbers = _as_numbers(frame[column].astype("object"))
        odd = frame[column][numbers.isna() & frame[column].notna()]
        if len(odd):
            msg = (
                f"Column “{shortened(column)}” cannot be a feature: it holds words, such as "
                f"“{shortened(odd.iloc[0])}” in row {odd.index[0] + 1}; make it a label or ignored."
            )
            raise InputError(msg, report)
        X[:, j] = numbers.to_numpy(np.float64)
    return X


def _at_once(frame: "pd.DataFrame") -> int:
    """Return how many columns are looked at together."""
    return min(_MOST_AT_ONCE, max(1, _BLOCK_VALUES // max(1, len(frame))))


def _image_shape(
    chosen: ImageShape, features: list[str], named: bool, X: np.ndarray
) -> tuple[int, ...] | None:
    if chosen != "auto":
        return None if chosen is None else tuple(chosen)
    side = image_side(features, named, X)
    return None if side is None else (side, side)


def image_range(X: np.ndarray) -> list[float]:
    """Black and white of images: the usual scale they fit into, else their own extremes."""
    low, high = float(X.min()), float(X.max())
    for white in (1.0, 16.0, 255.0):
        if low >= 0 and high <= white:
            return [0.0, white]
    return [low, high]


def check_texts(frame: "pd.DataFrame", roles: dict[str, str], limits: ReadLimits) -> None:
    """Refuse labels and ids whose longest texts, times the rows, would fill the memory."""
    total = 0
    for column in [*_with(roles, "label"), *_with(roles, "id")]:
        if frame[column].dtype.kind in "iufb":
            continue
        longest = max((len(str(text)) for text in _distinct(frame[column])[0]), default=0)
        total += 4 * longest * len(frame)
        if total > limits.n_bytes // 2:
            msg = (
                f"Column “{shortened(column)}” holds texts of up to {longest:,} characters, too "
                "long for a label or an id; make it ignored."
            )
            raise InputError(msg)


def _label(values: "pd.Series[Any]") -> np.ndarray:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return values.to_numpy()
    return values.astype("object").where(values.notna(), "").astype(str).to_numpy(dtype=str)


def labels_of(frame: "pd.DataFrame", roles: dict[str, str]) -> dict[str, np.ndarray]:
    """Return the columns that are labels, the class first."""
    distinct = {column: int(frame[column].nunique()) for column in _with(roles, "label")}
    return {
        column: _label(frame[column])
        for column in label_order(list(distinct), distinct, len(frame))
    }


def ids_of(frame: "pd.DataFrame", roles: dict[str, str]) -> np.ndarray:
    """Return the names of the rows, by the column that is the id or by their number."""
    column = _with(roles, "id")
    if not column:
        return row_ids(np.arange(len(frame)))
    return _label(frame[column[0]]).astype(str)
