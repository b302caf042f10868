"""Columns of a table: what each is for, and the data set that they make."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from appca.data.dataset import Dataset, are_bytes
from appca.data.files import ReadLimits, check_matrix
from appca.data.readers import intake
from appca.data.readers.intake import FileReport
from appca.words import InputError, counted, shortened, unknown

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("id", "label", "feature", "ignored")
KINDS = {  # of columns that hold no numbers, in words
    "text": "words",
    "date": "dates",
    "empty": "empty",
    "list": "lists",
    "long": "long texts",
}
_LABEL_NAME = re.compile(
    r"(label|class|target|species|category|group|cluster|digit|diagnosis|type|y)s?", re.IGNORECASE
)
_ID_NAME = re.compile(r"(.*[ _-])?(id|ids|index|key|name|filename|file)|unnamed: 0", re.IGNORECASE)
_PIXEL_NAME = re.compile(r"(pixel|px|x|p)?[ _]*\d+([x_,]\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2})|(?=\d{1,2}:\d)"
    r"|\d{1,2}[-. ]{1,2}(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ](\d{4}|\d{2}))"
    r"([T ]*\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AP]M)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?",
    re.IGNORECASE,
)
_FEWEST_COUNTED = 8  # rows from which on growing numbers, and shares of classes, are no accident
FEW = 100  # distinct values up to which a column of whole numbers may be a label
_FEW_CLASSES, _FEWEST_EACH = 30, 3  # of a column that is suggested as a label
_MOST_LIKELY = 5  # columns that are said to be perhaps labels; more are counts
_LONGEST_LABEL = 500  # characters; a column with longer texts is a label only if chosen as one
_BLOCK_VALUES = 1 << 20  # that are copied at once
_LOOKED_AT = 500  # rows by which most columns are known not to be whole
_MOST_SHOWN, _LONGEST_SHOWN = 300, 40  # columns and characters of the first cells in a report

ImageShape = tuple[int, ...] | Literal["auto"] | None  # auto: squares of grey are images


class Table(NamedTuple):
    """Columns with names that differ: numbers, or texts with None in the gaps."""

    frame: "pd.DataFrame"
    named: list[bool]  # the name of the column is in the file
    report: FileReport  # how the file is written
    # of columns of texts: their kind, as the file declares it, or why numbers among them are none
    said: Mapping[str, str] = MappingProxyType({})


class Column(NamedTuple):
    """What the guess needs to know of a column."""

    name: str
    named: bool
    kind: str = "number"  # or "text", "date", "long", "list" or "empty"
    complete: bool = False  # no cell is missing
    distinct: int = 0  # values; of numbers only where the name makes it matter
    whole: bool = False  # all numbers are whole
    grows: bool = False  # whole numbers, each greater than the one above
    span: float = 0.0  # between the least and the greatest of the numbers
    is_large: bool = False  # whole numbers of so many digits that they can only be names
    note: str = ""  # why numbers are read as text
    called_id: bool = False  # its name is one of ids

    @property
    def is_constant(self) -> bool:
        """Whether a column says nothing; of pixels, which have their place in an image, never."""
        same = self.kind == "number" and self.span == 0 and not self.is_large
        same |= self.kind == "text" and self.complete and self.distinct == 1
        return same and self.named and _PIXEL_NAME.fullmatch(self.name.strip()) is None


def is_label_name(name: str) -> bool:
    """Whether a column of this name is usually a class or a target."""
    return _LABEL_NAME.fullmatch(name.strip()) is not None


def _is_id_name(name: str) -> bool:
    return _ID_NAME.fullmatch(name.strip()) is not None


def build(name: str, table: Table, options: Any, limits: ReadLimits) -> Dataset:
    """Make a data set of a table, by the fields that all options of tables have.

    The table's report receives what was found and done: rows, columns, kinds, roles, what is left
    out and why, features that may be labels (see `likely_labels`), values far off, and what
    `intake` notes.
    """
    frame, report, n = table.frame, table.report, len(table.frame)
    report.update(rows=n, columns=len(frame.columns))
    check_columns(name, len(frame.columns), limits)
    if n < limits.least_rows:
        needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
        msg = f"“{name}” has {counted(n, 'row')} of data; at least {needed} needed, add rows."
        raise InputError(msg, report)
    columns = describe(table)
    report["kinds"] = {each.name: KINDS[each.kind] for each in columns if each.kind != "number"}
    if limits.head_rows:
        report["head"] = _head(frame.iloc[: limits.head_rows, :_MOST_SHOWN])
    roles, left_out = guess_roles(columns, n, options.roles or {}, report)
    report.update(roles=roles, left_out=left_out)
    features = _with(roles, "feature")
    if len(features) < (limits.least_rows if options.transpose else 2):
        remedy = "check the separator or change" if "separator" in report else "change"
        why = [f"“{shortened(key)}”: {why}" for key, why in left_out.items() if why]
        because = f" (left out: {'; '.join(why[:3])})" if why else ""
        msg = (
            f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}{because}; "
            f"at least 2 are needed, so {remedy} the columns' roles."
        )
        raise InputError(msg, report)
    check_matrix(name, n, len(features), 8, limits)
    ids, labels = _ids_and_labels(frame, roles, report, limits)
    ids = intake.row_ids(np.arange(n)) if ids is None else ids
    matrix = _matrix(frame, features, report, intake.as_list(options.na_values))
    if options.transpose:
        left_out |= dict.fromkeys(labels, "says nothing of the columns")
        matrix, features, ids, labels = matrix.T.copy(), ids.tolist(), np.array(features), {}
    else:
        report["likely_labels"] = likely_labels(columns, roles, frame)
    far = intake.far_values(matrix)
    report["far"] = {features[j]: [*values.items()] for j, values in far.items()}
    X, rows = intake.settle_missing(matrix, features, options.missing, report, limits.least_rows)
    intake.note_quality(X, features, report, limits.least_rows)
    numbers = [each.name for each in columns if each.kind == "number"]
    report["constant"] += [key for key in numbers if left_out.get(key) == "one value"]
    report["n_constant"] = len(report["constant"])
    named = any(table.named) or options.transpose
    report["image_shape"] = shape = _image_shape(options.image_shape, features, named, X)
    provenance: dict[str, Any] = {"source": "file", "files": [name], "report": report}
    if shape is not None:
        low, high = float(X.min()), float(X.max())
        usual = [white for white in (1.0, 16.0, 255.0) if low >= 0 and high <= white]
        provenance["image_range"] = [0.0, usual[0]] if usual else [low, high]
        X = X.astype(np.uint8) if are_bytes(X) else X
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=ids[rows],
        labels={column: values[rows] for column, values in labels.items()},
        image_shape=shape,
        feature_names=tuple(features) if named else None,
        provenance=provenance,
        missing=intake.left_to_the_model(matrix, options.missing),
        least_rows=limits.least_rows,
    )


def names_beside(
    table: Table, limits: ReadLimits, *, all_words: bool = True
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Return the names and the labels of rows by a table that lies beside them: no features.

    Columns of words are labels, all or those of few. The table's report gets what is not used.
    """
    columns = describe(table)
    roles, left_out = guess_roles(columns, len(table.frame), {}, table.report)
    for each in columns:
        words = all_words and each.kind == "text" and roles[each.name] == "ignored"
        if words or roles[each.name] == "feature":
            roles[each.name] = "label"
    table.report["unused"] = {key: why for key, why in left_out.items() if roles[key] == "ignored"}
    return _ids_and_labels(table.frame, roles, table.report, limits)


def check_columns(name: str, n_columns: int, limits: ReadLimits) -> None:
    """Refuse a table of more columns than are read."""
    if n_columns > limits.columns:
        msg = (
            f"“{name}” has {n_columns:,} columns, more than the {limits.columns:,} of a table; "
            "take fewer, turn it so that these are rows, or save the numbers as NPY."
        )
        raise InputError(msg)


def unique(names: Sequence[str]) -> list[str]:
    """Return names of which a second one of the same spelling is called "name (2)"."""
    taken, numbers = set(names), Counter[str]()
    result = []
    for name in names:
        numbers[name] += 1
        new = name
        while numbers[name] > 1 and (new := f"{name} ({numbers[name]})") in taken:
            numbers[name] += 1
        taken.add(new)
        result.append(new)
    return result


def describe(table: Table) -> list[Column]:
    """Say of every column what the guess of its role needs to know."""
    return [
        _numbers(values.to_numpy(), column, is_first=not j)
        if values.dtype.kind in "iuf"
        else _words(values.dropna(), column, len(values), table.said.get(column.name, ""))
        for j, (name, values) in enumerate(table.frame.items())
        for column in [Column(str(name), table.named[j], called_id=_is_id_name(str(name)))]
    ]


def _numbers(values: np.ndarray, column: Column, *, is_first: bool) -> Column:
    """Describe a column of numbers."""
    low, high = values.min(), values.max()
    complete = not np.isnan(low)
    if not complete:
        values = values[~np.isnan(values)]
        if not len(values):
            return column._replace(kind="empty")
        low, high = values.min(), values.max()
    some, is_large = values[:_LOOKED_AT], values.dtype.kind in "iu" and bool(high >= 2**53)
    whole = bool((some == np.floor(some)).all() and np.isfinite([low, high]).all())
    whole = whole and (values.dtype.kind != "f" or bool((values == np.floor(values)).all()))
    grows = whole and complete and len(values) > 1 and bool((values[:-1] < values[1:]).all())
    matters = column.called_id or is_label_name(column.name) or is_large
    matters = matters or (is_first and whole and not column.named)
    return column._replace(
        complete=complete,
        distinct=len(np.unique(values)) if matters else 0,
        whole=whole,
        grows=grows,
        span=0.0 if low == high else float(high) - float(low),
        is_large=is_large,
    )


def _words(present: "pd.Series[Any]", column: Column, n_rows: int, said: str) -> Column:
    """Describe a column of texts."""
    once = [] if said == "list" else present.unique().tolist()
    texts = [str(text).strip() for text in once]
    kind, note = (said, "") if said in KINDS else ("text", said)
    if kind == "text" and not texts:
        kind = "empty"
    elif kind == "text" and max(map(len, texts)) > _LONGEST_LABEL:
        kind = "long"
    elif kind == "text" and all(map(_DATE.fullmatch, texts)):
        kind = "date"
    complete = len(present) == n_rows
    return column._replace(kind=kind, complete=complete, distinct=len(once), note=note)


def guess_roles(
    columns: list[Column], n_rows: int, chosen: Mapping[str, str], report: FileReport
) -> tuple[dict[str, str], dict[str, str]]:
    """Give every column a role; those that a person chose are kept.

    Returns also why a column is ignored: no words where a person alone wants it so. Raises
    InputError when a chosen column or role does not exist, or when two columns are ids.
    """
    names = [column.name for column in columns]
    for name, role in chosen.items():
        msg = ""
        if name not in names:
            error = unknown("column", name, names)
            error.report = report
            raise error
        if role not in ROLES:
            msg = f"A role is one of {', '.join(ROLES)}; column “{shortened(name)}” got {role!r}."
        elif list(chosen.values()).count("id") > 1:
            msg = "Only one column can be the id; make the others labels or ignored."
        if msg:
            raise InputError(msg, report)
    counters = {each.name for each in columns if each.grows and n_rows >= _FEWEST_COUNTED}
    one_value = {each.name for each in columns if n_rows > 1 and each.is_constant}
    numbers = {each.name for each in columns if each.kind == "number"}
    if len(numbers - counters - one_value) < 2:  # each column of numbers is needed
        counters &= {each.name for each in columns if each.called_id}
        one_value = set()
    best = None if "id" in chosen.values() else _id_among(columns, n_rows, counters, chosen)
    roles, left_out = dict[str, str](), dict[str, str]()
    for column in columns:
        name = column.name
        role, why = _plain_role(column, n_rows)
        if name in counters or name in one_value:
            role, why = "ignored", "counts the rows" if name in counters else "one value"
        roles[name] = chosen.get(name, "id" if name == best else role)
        if roles[name] == "ignored":
            left_out[name] = why
    return roles, left_out


def _id_among(
    columns: list[Column], n_rows: int, counters: set[str], chosen: Mapping[str, str]
) -> str | None:
    """Return the column that names the rows best.

    These are columns called so, an index without a name, different words, running or very large
    numbers, and last words of which most differ.
    """
    has_names = any(column.named for column in columns if column.name not in chosen)
    best: tuple[int, str | None] = 7, None
    for column in columns:
        is_unique, is_text = column.distinct == n_rows, column.kind == "text" and n_rows > 1
        is_word = is_text and not column.note
        is_index = column is columns[0] and column.whole and not column.named and n_rows > 1
        mostly = n_rows >= _FEWEST_COUNTED and column.distinct > n_rows / 2
        able = (
            is_unique and column.called_id and (is_text or column.whole or column.kind == "date"),
            is_unique and is_index and has_names,
            is_unique and is_word and not is_label_name(column.name),
            is_unique and is_word,
            column.name in counters,
            is_unique and column.is_large,
            mostly and is_word,
        )
        if column.complete and column.name not in chosen and True in able[: best[0]]:
            best = able.index(True), column.name
    return best[1]


def _plain_role(column: Column, n_rows: int) -> tuple[str, str]:
    """Return what a column is for by what it holds, and why if it is to be ignored."""
    n = column.distinct
    are_classes = n <= n_rows / 2 if n_rows >= _FEWEST_COUNTED else n < max(2, n_rows)
    few = column.whole and n <= FEW and are_classes
    differ = f"{n:,} different texts in {counted(n_rows, 'row')}"
    rules = (
        (column.is_large, "ignored", "whole numbers of more than 15 digits"),
        (column.kind == "number" and few and is_label_name(column.name), "label", ""),
        (column.kind == "number", "feature", ""),
        # of a single new row, a gap of this one
        (column.kind == "empty" and column.named and n_rows == 1, "feature", ""),
        (column.note != "", "ignored", column.note),
        (column.kind == "text", "label" if are_classes else "ignored", differ),
        (True, "ignored", KINDS.get(column.kind, "")),
    )
    return next((role, why) for holds, role, why in rules if holds)


def likely_labels(
    columns: list[Column], roles: dict[str, str], frame: "pd.DataFrame"
) -> dict[str, int]:
    """Return the features that may be labels, with how many values each has.

    They hold 2 to 30 whole numbers, each of them in at least 3 rows, as a group, a batch or a
    population does. Nobody can tell them from counts, so they are features until a person says
    otherwise; where most columns are of that kind, none is named.
    """
    features = [each for each in columns if roles[each.name] == "feature"]
    narrow = [each for each in features if each.whole and each.complete and 1 <= each.span < FEW]
    labels = {}
    for column in narrow if len(narrow) <= 2 * _MOST_LIKELY else []:
        counts = np.unique(frame[column.name].to_numpy(np.float64), return_counts=True)[1]
        if len(counts) <= _FEW_CLASSES and counts.min() >= _FEWEST_EACH:
            labels[column.name] = len(counts)
    return labels if len(labels) <= min(_MOST_LIKELY, len(features) // 2) else {}


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column, role_of in roles.items() if role_of == role]


def _matrix(
    frame: "pd.DataFrame", features: list[str], report: FileReport, none: Sequence[str]
) -> np.ndarray:
    """Return the features (n, d); words in a column that was chosen as one become gaps."""
    import pandas as pd

    places = frame.columns.get_indexer(pd.Index(features, dtype=object))
    X = np.empty((len(frame), len(places)))
    plain = np.array([kind.kind in "iuf" for kind in frame.dtypes.iloc[places]], bool)
    step, numeric = max(1, _BLOCK_VALUES // len(frame)), np.flatnonzero(plain)
    for start in range(0, len(numeric), step):  # pandas copies each column of a selection apart
        part = numeric[start : start + step]
        X[:, part] = frame.iloc[:, places[part]].to_numpy(np.float64)
    for j in np.flatnonzero(~plain).tolist():
        texts = frame[features[j]]
        values, _ = intake.convert(texts, features[j], report, is_chosen=True)
        if values.dtype.kind not in "iuf":
            word = shortened(texts.dropna().iloc[0])
            msg = (
                f"Column “{shortened(features[j])}” cannot be a feature: it holds words, such as "
                f"“{word}”; make it a label or ignored."
            )
            raise InputError(msg, report)
        X[:, j] = values
    if numbers := intake.plain_numbers(none):
        X[np.isin(X, numbers)] = np.nan
    return X


def _image_shape(
    chosen: ImageShape, features: list[str], named: bool, X: np.ndarray
) -> tuple[int, ...] | None:
    """Return the chosen shape, or that of squares whose names and values are those of pixels."""
    if chosen != "auto":
        return None if chosen is None else tuple(chosen)
    side = int(np.sqrt(len(features)))
    if side < 8 or side * side != len(features):
        return None
    anonymous = not named or all(_PIXEL_NAME.fullmatch(name.strip()) for name in features)
    return (side, side) if anonymous and are_bytes(X) else None


def _ids_and_labels(
    frame: "pd.DataFrame", roles: dict[str, str], report: FileReport, limits: ReadLimits
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Return the names of the rows, if a column has them, and the labels.

    The class comes first: columns called so, then others, many values last. Refuses texts whose
    longest, times the rows, would fill the memory.
    """

    def rank(name: str) -> tuple[bool, bool, bool]:
        n_values, named = int(frame[name].nunique()), is_label_name(name)
        return n_values >= len(frame), n_values > _FEW_CLASSES and not named, not named

    total = 0
    columns = dict[str, np.ndarray]()
    id_of = next(iter(_with(roles, "id")), None)
    for name in [*sorted(_with(roles, "label"), key=rank), *([] if id_of is None else [id_of])]:
        values = frame[name]
        if values.dtype.kind in "iuf":
            columns[name] = values.to_numpy()
            continue
        longest = max((len(str(text)) for text in values.unique().tolist()), default=0)
        total += 4 * longest * len(frame)
        if total > limits.n_bytes // 2:
            msg = (
                f"Column “{shortened(name)}” holds texts of up to {longest:,} characters, too "
                "long for a label or an id; make it ignored."
            )
            raise InputError(msg)
        texts = values.astype("object").where(values.notna(), "").astype(str)
        columns[name] = texts.to_numpy(dtype=str)
    if id_of is None:
        return None, columns
    ids = columns.pop(id_of).astype(str)
    n_distinct = int(frame[id_of].nunique(dropna=False))
    if len(ids) / 2 < n_distinct < len(ids):
        report["repeated_ids"] = len(ids) - n_distinct
        ids = np.array(unique(ids.tolist()))
    return ids, columns


def _head(frame: "pd.DataFrame") -> dict[str, list[str | None]]:
    """Return first cells as texts, None where they are missing."""
    cells: dict[str, list[str | None]] = {}
    for name, values in frame.items():
        texts = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in values.tolist()]
        cells[str(name)] = [
            None if gap else shortened(text, _LONGEST_SHOWN)
            for text, gap in zip(texts, values.isna(), strict=True)
        ]
    return cells
