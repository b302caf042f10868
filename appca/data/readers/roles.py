"""Columns of a table: what each is for, and the data set that they make."""

import re
from collections.abc import Iterator, Mapping, Sequence
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
_BLOCK_VALUES, _MOST_AT_ONCE = 1 << 20, 1000  # values and columns that are looked at together
_LOOKED_AT = 500  # rows by which most columns are known not to be whole
_MOST_SHOWN, _LONGEST_SHOWN = 300, 40  # columns and characters of the first cells in a report

ImageShape = tuple[int, ...] | Literal["auto"] | None  # auto: squares of grey are images


class Table(NamedTuple):
    """Columns with names that differ: numbers, or texts with None in the gaps."""

    frame: "pd.DataFrame"
    named: list[bool]  # the name of the column is in the file
    report: FileReport  # how the file is written
    notes: Mapping[str, str] = MappingProxyType({})  # why a column of numbers is read as text
    kinds: Mapping[str, str] = MappingProxyType({})  # of columns, as the file declares them


class TableOptions(NamedTuple):
    """What the readers of tables have in common; see `tables.CsvOptions`."""

    roles: Mapping[str, str] | None = None
    missing: str = "refuse"
    image_shape: ImageShape = "auto"
    transpose: bool = False
    na_values: Sequence[str] = ()

    @classmethod
    def of(cls, options: Any) -> "TableOptions":
        """Take the common fields of a reader's options."""
        common = {key: getattr(options, key) for key in cls._fields}
        return cls(**common | {"na_values": intake.as_list(options.na_values)})


class Column(NamedTuple):
    """What the guess needs to know of a column."""

    name: str
    named: bool
    kind: str  # "number", "text", "date", "long", "list" or "empty"
    distinct: int  # values; of numbers only where the name makes it matter
    complete: bool  # no cell is missing
    whole: bool = False  # all numbers are whole
    grows: bool = False  # whole numbers, each greater than the one above
    low: float = 0.0  # the least and the greatest of the numbers
    high: float = 0.0
    is_large: bool = False  # whole numbers of so many digits that they can only be names
    note: str = ""  # why numbers are read as text

    def is_label_like(self, n_rows: int) -> bool:
        """Whether few enough values are shared by the rows to be classes."""
        if n_rows < _FEWEST_COUNTED:
            return self.distinct < max(2, n_rows)
        return self.distinct <= n_rows / 2


def build(name: str, table: Table, options: TableOptions, limits: ReadLimits) -> Dataset:
    """Make a data set of a table, whose report receives what was found and done.

    These are rows, columns, kinds, roles, what is left out and why, features that may be labels
    (see `likely_labels`), values far off, and what `intake` notes.
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
    chosen = dict(options.roles or {})
    try:
        report["roles"] = roles = guess_roles(columns, n, chosen)
    except InputError as error:
        error.report = report
        raise
    report["left_out"] = {
        each.name: why_left_out(each, n) for each in columns if roles[each.name] == "ignored"
    }
    features = _with(roles, "feature")
    if len(features) < 2 and not options.transpose:
        remedy = "check the separator or change" if "separator" in report else "change"
        why = [f"“{shortened(key)}”: {why}" for key, why in report["left_out"].items() if why]
        left_out = f" (left out: {'; '.join(why[:3])})" if why else ""
        msg = (
            f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}{left_out}; "
            f"at least 2 are needed, so {remedy} the columns' roles."
        )
        raise InputError(msg, report)
    check_matrix(name, n, len(features), 8, limits)
    _check_texts(frame, roles, limits)
    matrix = _matrix(table, features, options.na_values)
    ids, labels = _ids(frame, roles, report), _labels(frame, roles)
    if options.transpose:
        report["left_out"] |= dict.fromkeys(labels, "says nothing of the columns")
        matrix, features, ids, labels = matrix.T.copy(), ids.tolist(), np.array(features), {}
    else:
        report["likely_labels"] = likely_labels(columns, roles, frame)
    far = intake.far_values(matrix)
    report["far"] = {features[j]: [*values.items()] for j, values in far.items()}
    X, rows = intake.settle_missing(matrix, features, options.missing, report, limits.least_rows)
    intake.note_quality(X, features, report, limits.least_rows)
    values = {each.name for each in columns if each.kind == "number"}
    one_value = [key for key, why in report["left_out"].items() if why == "one value"]
    report["constant"] += [key for key in one_value if key in values]
    report["n_constant"] = len(report["constant"])
    named = any(table.named) or options.transpose
    shape = _image_shape(options.image_shape, features, named, X)
    report["image_shape"] = shape
    provenance: dict[str, Any] = {"source": "file", "files": [name], "report": report}
    if shape is not None:
        provenance["image_range"] = image_range(X)
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
    table: Table, limits: ReadLimits
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Return the names and the labels of rows by a table that lies beside them: no features."""
    columns, n = describe(table), len(table.frame)
    roles = guess_roles(columns, n, {})
    spare = {each.name: "label" for each in columns if roles[each.name] == "feature"}
    unlike = [each for each in columns if each.kind == "text" and roles[each.name] == "ignored"]
    roles |= spare | {each.name: "label" for each in unlike}
    _check_texts(table.frame, roles, limits)
    ids = _ids(table.frame, roles, {}) if "id" in roles.values() else None
    return ids, _labels(table.frame, roles)


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
    taken, seen = set(names), dict[str, int]()
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        new = name
        while seen[name] > 1 and (new := f"{name} ({seen[name]})") in taken:
            seen[name] += 1
        taken.add(new)
        result.append(new)
    return result


def describe(table: Table) -> list[Column]:
    """Say of every column what the guess of its role needs to know."""
    frame = table.frame
    names = [str(label) for label in frame.columns]
    kinds = np.array([str(kind) if kind.kind in "iuf" else "" for kind in frame.dtypes])
    described: dict[int, Column] = {}
    step = _at_once(frame)
    for kind in set(kinds) - {""}:  # numbers of one kind stay what they are
        numbers = np.flatnonzero(kinds == kind)
        for start in range(0, len(numbers), step):
            part = numbers[start : start + step]
            block = frame.iloc[:, part].to_numpy()
            described |= zip(part.tolist(), _numbers(block, part, names, table.named), strict=True)
    for j in np.flatnonzero(kinds == "").tolist():
        column = _words(frame.iloc[:, j], names[j], table.named[j])
        kind = table.kinds.get(names[j], column.kind)
        described[j] = column._replace(kind=kind, note=table.notes.get(names[j], ""))
    return [described[j] for j in range(len(names))]


def _at_once(frame: "pd.DataFrame") -> int:
    """Return how many columns are looked at together."""
    return min(_MOST_AT_ONCE, max(1, _BLOCK_VALUES // max(1, len(frame))))


def _numbers(
    block: np.ndarray, places: np.ndarray, names: list[str], named: list[bool]
) -> Iterator[Column]:
    """Describe columns of numbers (n, d) together, for there may be very many."""
    low, high = (np.array(end, np.float64) for end in (block.min(axis=0), block.max(axis=0)))
    gaps = np.isnan(low)
    whole = np.full(block.shape[1], block.dtype.kind in "iu")
    if block.dtype.kind == "f":
        some = block[:_LOOKED_AT]
        whole = ((some == np.floor(some)) | np.isnan(some)).all(axis=0)
    for i, j in enumerate(places.tolist()):
        values = block[:, i]
        if gaps[i]:
            values = values[~np.isnan(values)]
            if not len(values):
                yield Column(names[j], named[j], "empty", 0, complete=False)
                continue
            low[i], high[i] = values.min(), values.max()
        is_whole = bool(whole[i] and np.isfinite([low[i], high[i]]).all())
        is_whole = is_whole and bool((values == np.floor(values)).all())
        grows = is_whole and not gaps[i] and bool((values[:-1] < values[1:]).all())
        matters = _ID_NAME.fullmatch(names[j].strip()) or is_label_name(names[j])
        first = is_whole and j == 0 and not named[j]
        large = block.dtype.kind in "iu" and high[i] >= 2**53
        distinct = len(np.unique(values)) if matters or first or large else 0
        yield Column(
            *(names[j], named[j], "number", distinct, not gaps[i], is_whole),
            *(grows and len(values) > 1, float(low[i]), float(high[i]), bool(large)),
        )


def _words(values: "pd.Series[Any]", name: str, named: bool) -> Column:
    """Describe a column of texts."""
    present = values.dropna()
    complete = len(present) == len(values)
    base = Column(name, named, "empty", 0, complete)
    if not len(present):
        return base
    if not isinstance(present.iloc[0], (str, bool, np.bool_)):
        return base._replace(kind="list")
    once = present.unique().tolist()
    base = base._replace(distinct=len(once))
    if max((len(text) for text in once if isinstance(text, str)), default=0) > _LONGEST_LABEL:
        return base._replace(kind="long")
    is_date = all(_DATE.fullmatch(str(text).strip()) for text in once)
    return base._replace(kind="date" if is_date else "text")


def guess_roles(columns: list[Column], n_rows: int, chosen: Mapping[str, str]) -> dict[str, str]:
    """Give every column a role; those that a person chose are kept.

    Raises InputError when a chosen column or role does not exist, or when two columns are ids.
    """
    _check_choice(chosen, [column.name for column in columns])
    if list(chosen.values()).count("id") > 1:
        msg = "Only one column can be the id; make the others labels or ignored."
        raise InputError(msg)
    open_ones = [column for column in columns if column.name not in chosen]
    counters = _counters(columns, n_rows)
    values = [
        each.name
        for each in columns
        if each.kind == "number" and each.name not in counters and not _is_constant(each, n_rows)
    ]
    wide = len(values) > 1  # else each column of numbers is needed
    counters &= {each.name for each in columns if wide or _ID_NAME.fullmatch(each.name.strip())}
    names = [] if "id" in chosen.values() else _ids_among(open_ones, n_rows, counters)
    roles = dict(chosen) | dict.fromkeys(names[:1], "id")
    for column in open_ones:
        constant = wide and _is_constant(column, n_rows)
        left_out = constant or column.name in counters
        roles.setdefault(column.name, "ignored" if left_out else _plain_role(column, n_rows))
    return {column.name: roles[column.name] for column in columns}


def why_left_out(column: Column, n_rows: int) -> str:
    """Say why a column is ignored unless a person wants it otherwise; no words if it is not so."""
    if column.grows:
        return "counts the rows"
    if _is_constant(column, n_rows):
        return "one value"
    if column.is_large:
        return "whole numbers of more than 15 digits"
    if column.note:
        return column.note
    if column.kind == "text" and not column.is_label_like(n_rows):
        return f"{counted(column.distinct, 'different text')} in {counted(n_rows, 'row')}"
    return KINDS[column.kind] if column.kind not in ("number", "text") else ""


def likely_labels(
    columns: list[Column], roles: dict[str, str], frame: "pd.DataFrame"
) -> dict[str, int]:
    """Return the features that may be labels, with how many values each has.

    They hold 2 to 30 whole numbers, each of them in at least 3 rows, as a group, a batch or a
    population does. Nobody can tell them from counts, so they are features until a person says
    otherwise; where most columns are of that kind, none is named.
    """
    features = [column for column in columns if roles[column.name] == "feature"]
    narrow = [
        column
        for column in features
        if column.whole and column.complete and 1 <= column.high - column.low < FEW
    ]
    if len(narrow) > 2 * _MOST_LIKELY:
        return {}
    labels = {}
    for column in narrow:
        counts = np.unique(frame[column.name].to_numpy(np.float64), return_counts=True)[1]
        if len(counts) <= _FEW_CLASSES and counts.min() >= _FEWEST_EACH:
            labels[column.name] = len(counts)
    return labels if len(labels) <= min(_MOST_LIKELY, len(features) // 2) else {}


def is_label_name(name: str) -> bool:
    """Whether a column of this name is usually a class or a target."""
    return bool(_LABEL_NAME.fullmatch(name.strip()))


def _ids_among(columns: list[Column], n_rows: int, counters: set[str]) -> list[str]:
    """Return the columns that may name the rows, the best first.

    These are columns called so, an index without a name, different words, running or very large
    numbers, and last words of which most differ.
    """
    has_names = any(column.named for column in columns)

    def rank(place: int, column: Column) -> int | None:
        is_unique, is_text = column.distinct == n_rows, column.kind == "text" and n_rows > 1
        is_word = is_text and not column.note
        is_index = column.whole and place == 0 and has_names and not column.named and n_rows > 1
        mostly = n_rows >= _FEWEST_COUNTED and column.distinct > n_rows / 2
        named = _ID_NAME.fullmatch(column.name.strip())
        able = (
            is_unique and bool(named) and (is_text or column.whole or column.kind == "date"),
            is_unique and is_index,
            is_unique and is_word and not is_label_name(column.name),
            is_unique and is_word,
            column.name in counters,
            is_unique and column.is_large,
            mostly and is_word,
        )
        return able.index(True) if column.complete and any(able) else None

    ranked = [(rank(j, column), j) for j, column in enumerate(columns)]
    return [columns[j].name for _, j in sorted(entry for entry in ranked if entry[0] is not None)]


def _counters(columns: list[Column], n_rows: int) -> set[str]:
    """Return the columns that only count the rows."""
    return {each.name for each in columns if each.grows} if n_rows >= _FEWEST_COUNTED else set()


def _is_constant(column: Column, n_rows: int) -> bool:
    """Whether a column says nothing; of pixels, which have their place in an image, never."""
    pixel = not column.named or _PIXEL_NAME.fullmatch(column.name.strip())
    same = column.kind == "number" and column.low == column.high and not column.is_large
    same |= column.kind == "text" and column.complete and column.distinct == 1
    return n_rows > 1 and same and not pixel


def _plain_role(column: Column, n_rows: int) -> str:
    if column.kind == "empty" and column.named and n_rows == 1:  # of new rows; a gap of this one
        return "feature"
    if column.kind == "text" and not column.note:
        return "label" if column.is_label_like(n_rows) else "ignored"
    if column.kind != "number" or column.is_large:
        return "ignored"
    few = column.whole and column.distinct <= FEW and column.is_label_like(n_rows)
    return "label" if few and is_label_name(column.name) else "feature"


def _check_choice(chosen: Mapping[str, str], names: list[str]) -> None:
    for name, role in chosen.items():
        if name not in names:
            refusal = unknown("column", name, names)
            raise refusal
        if role not in ROLES:
            msg = f"A role is one of {', '.join(ROLES)}; column “{shortened(name)}” got {role!r}."
            raise InputError(msg)


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column, role_of in roles.items() if role_of == role]


def _matrix(table: Table, features: list[str], none: Sequence[str]) -> np.ndarray:
    """Return the features (n, d); words in a column that was chosen as one become gaps."""
    import pandas as pd

    frame, report = table.frame, table.report
    places = frame.columns.get_indexer(pd.Index(features, dtype=object))
    X = np.empty((len(frame), len(places)))
    plain = np.array([kind.kind in "iuf" for kind in frame.dtypes.iloc[places]], bool)
    step, numeric = _at_once(frame), np.flatnonzero(plain)
    for start in range(0, len(numeric), step):  # pandas copies each column of a selection apart
        part = numeric[start : start + step]
        X[:, part] = frame.iloc[:, places[part]].to_numpy(np.float64)
    for j in np.flatnonzero(~plain).tolist():
        texts = frame[features[j]]
        read = intake.convert(texts, report.get("decimal", "."), is_chosen=True)
        if not isinstance(read.values, np.ndarray):
            word = shortened(texts.dropna().iloc[0])
            msg = (
                f"Column “{shortened(features[j])}” cannot be a feature: it holds words, such as "
                f"“{word}”; make it a label or ignored."
            )
            raise InputError(msg, report)
        X[:, j] = read.values
        if read.odd:
            report["not_numbers"] = report.get("not_numbers", {}) | {features[j]: read.odd}
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


def image_range(X: np.ndarray) -> list[float]:
    """Black and white of images: the usual scale they fit into, else their own extremes."""
    low, high = float(X.min()), float(X.max())
    for white in (1.0, 16.0, 255.0):
        if low >= 0 and high <= white:
            return [0.0, white]
    return [low, high]


def _check_texts(frame: "pd.DataFrame", roles: dict[str, str], limits: ReadLimits) -> None:
    """Refuse labels and ids whose longest texts, times the rows, would fill the memory."""
    total = 0
    for column in [*_with(roles, "label"), *_with(roles, "id")]:
        if frame[column].dtype.kind in "iufb":
            continue
        longest = max((len(str(text)) for text in frame[column].unique().tolist()), default=0)
        total += 4 * longest * len(frame)
        if total > limits.n_bytes // 2:
            msg = (
                f"Column “{shortened(column)}” holds texts of up to {longest:,} characters, too "
                "long for a label or an id; make it ignored."
            )
            raise InputError(msg)


def _label(values: "pd.Series[Any]") -> np.ndarray:
    if values.dtype.kind in "iuf":
        return values.to_numpy()
    return values.astype("object").where(values.notna(), "").astype(str).to_numpy(dtype=str)


def _labels(frame: "pd.DataFrame", roles: dict[str, str]) -> dict[str, np.ndarray]:
    """Return the labels, the class first: columns called so, then others, many values last."""

    def rank(name: str) -> tuple[bool, bool, bool]:
        n_values, named = int(frame[name].nunique()), is_label_name(name)
        return n_values >= len(frame), n_values > _FEW_CLASSES and not named, not named

    return {column: _label(frame[column]) for column in sorted(_with(roles, "label"), key=rank)}


def _ids(frame: "pd.DataFrame", roles: dict[str, str], report: FileReport) -> np.ndarray:
    """Return the names of the rows, by the column that is the id or by their number."""
    column = _with(roles, "id")
    if not column:
        return intake.row_ids(np.arange(len(frame)))
    texts = _label(frame[column[0]]).astype(str)
    n_distinct = frame[column[0]].nunique(dropna=False)
    if n_distinct == len(texts) or n_distinct <= len(texts) / 2:
        return texts
    report["repeated_ids"] = len(texts) - int(n_distinct)
    return np.array(unique(texts.tolist()))


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
