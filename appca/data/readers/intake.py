"""Convert table columns to numbers or text, guess their roles, and check every matrix."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from appca.data.dataset import ROWS_GONE, Dataset, NumberedNames, are_bytes
from appca.data.files import ReadLimits, check_matrix, few, note
from appca.frames import UNIT, unique
from appca.ordered import numbered
from appca.words import InputError, counted, is_text, refuse_if, shortened, unknown

if TYPE_CHECKING:
    import pandas as pd

MISSING_CHOICES = ("refuse", "model", "mean", "drop")
_MOST_NUMBERED = 1000  # maximum number of unnamed columns that a report lists
FileReport = dict[str, Any]  # findings in a file, with remedies
GAPS = frozenset(  # strings for missing values among numbers, in lower case
    ["", "na", "n/a", "#n/a", "<na>", "n.a.", "null", "none", "nan", "nil", "?", "-", "--", "—"]
) | frozenset([".", "..", "…", "*", "#value!", "#div/0!", "#ref!", "#num!", "#name?", "#null!"])
_SIGNS = str.maketrans(
    dict.fromkeys("\u2212\u2012\u2013\ufe63\uff0d", "-")
    | dict.fromkeys("\u00a0\u202f\u2009\u2007", " ")
    | {"\u2019": "'"}
)
_ENDS = " \t\n\r\u00a0\u202f\u2009\u2007\u3000\ufeff\u200b"  # blanks around a cell
_CURRENCY = r"[$€£¥₹₩₽]|R\$|USD|EUR|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|INR|BRL|CAD|AUD|Rs\.?"
# a single capital is a unit only after a blank: 1A is a name
_UNIT = (
    r" ?(?:[%‰]|[°µ$€£¥₹₩₽][^\s<>=;,()\d]{0,5})| [^\W\d_][^\s<>=;,()\d]{0,8}(?:-?[1-3])?"
    r"|[^\W\d_](?:[^\s<>=;,()\d]{1,8}(?:-?[1-3])?|(?<![A-Z]))"
)
# unambiguous, because backtracking over a million digits would take hours
_NUMBER = {
    mark: re.compile(
        rf"(?P<open>\()?(?P<sign>[+-] ?)?(?P<money>{_CURRENCY})? ?(?P<inner>[+-])?"
        rf"(?:(?P<body>(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})(?:(?:{group})\d{{3}})*(?!\d)|{lakh}\d+)"
        rf"(?:{dot}\d*)?|{dot}\d+)(?P<power>(?:[eE]|[dD](?=[+-]))[+-]?\d+)?"
        rf"|(?P<inf>[iI][nN][fF](?:inity)?))(?P<tail>-)?(?P<unit>{_UNIT})?(?P<close>\))?"
    )
    for mark, dot, group, lakh in (
        (".", r"\.", "[,' ]", r"[1-9]\d?(?:,\d\d)+,\d{3}(?!\d)|"),  # Indian grouping: 12,34,567
        (",", ",", r"[.' ]", ""),
    )
}
_GROUPING = {".": str.maketrans("", "", ",' "), ",": str.maketrans(",", ".", ".' ")}
_PLAIN = {
    mark: re.compile(rf"[+-]?(?:(?:0|[1-9]\d*)(?:[{mark}]\d*)?|[{mark}]\d+)(?:[eE][+-]\d+)?")
    for mark in ".,"
}
PLAIN_GAPS, _WHOLE = frozenset(["", "NA", "NaN", "nan"]), re.compile(r"[+-]?\d+")
_CODE = re.compile(r"0\d+|\d+[eE]\d+")  # codes, not numbers, if all cells look like this
_MOSTLY = 0.9  # minimum share of numbers in a numeric column; other cells become missing
_MANY_NUMBERS = 0.5  # minimum share of numbers for a text column to be reported
_LOOKED_AT = 400  # distinct cells or values sampled to judge a column
EXACT = 2**53
_MOST_LISTED = 50  # maximum number of distinct non-numeric cells listed per column
_LARGEST = 1e150
_FAR = 3.0  # an outlier's minimum distance, relative to the range of the others
_JUDGED_ROWS, _MOST_JUDGED = 1000, 200  # rows and columns searched for outliers
_NINES = re.compile(r"-?9{2,}(?:\.0)?")


def bare(cell: str) -> str:
    """Return a cell without leading and trailing blanks."""
    return cell.strip(_ENDS)


def decoded(cell: object) -> str:
    """Return a cell as text."""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def number_in(cell: str, mark: str) -> re.Match[str] | None:
    """Match a number with decimal sign `mark`, optional sign, grouping and unit."""
    return _NUMBER[mark].fullmatch(bare(cell).translate(_SIGNS))


def real(cell: str) -> float:
    """Return the number in a cell, with the first decimal sign that is valid, or NaN."""
    for mark in ".,":
        if match := number_in(cell, mark):
            return _value(match, mark)
    return np.nan


def is_plain(cell: str, decimal: str) -> bool:
    """Whether pandas and `convert` read a cell as the same number or missing value."""
    return cell in PLAIN_GAPS or _PLAIN[decimal].fullmatch(cell) is not None


def decimal_of(cells: Sequence[str]) -> tuple[str, bool]:
    """Return the decimal sign of cells, and whether it is ambiguous, as in 1.234."""
    marked = [cell for cell in cells if "." in cell or "," in cell]
    votes = Counter("".join(mark for mark in ".," if number_in(cell, mark)) for cell in marked)
    in_doubt = votes[".,"] > 0 and not votes["."] and not votes[","]
    return "," if votes[","] > votes["."] else ".", in_doubt


def convert(
    column: "pd.Series[Any]",
    name: str,
    report: FileReport,
    na_values: Sequence[str] = (),
    *,
    is_chosen: bool = False,
) -> "tuple[pd.Series[Any], str]":
    """Convert a column if 90% are numbers (50% if chosen); also return why numbers stay text."""
    import pandas as pd

    codes, raw = pd.factorize(column if column.dtype == "category" else column.astype(object))
    texts = [bare(decoded(text)) for text in raw.tolist()]
    texts = ["" if text in na_values else text for text in texts] if na_values else texts
    decimal = report.get("decimal", ".")
    some = texts[:: max(1, len(texts) // _LOOKED_AT)]
    hits = {mark: sum(bool(number_in(text, mark)) for text in some) for mark in ".,"}
    mark = max(".,", key=lambda mark: (hits[mark], mark == decimal))
    mark = decimal if report.get("same_decimal") else mark
    n_filled = sum(text.lower() not in GAPS for text in some)
    values: np.ndarray | str = ""
    said: dict[str, Any] = {}
    if n_filled and hits[mark] >= _MANY_NUMBERS * n_filled:
        values = _numbers_of(texts, codes, mark, na_values, said, is_chosen)
    elif not any(texts):
        values = np.full(len(column), np.nan)
    if isinstance(values, np.ndarray):
        said["decimals"] = mark if said.get("decimals") and mark != decimal else ""
        for key in filter(said.get, said):
            report.setdefault(key, {})[name] = said[key]
        return pd.Series(values, index=column.index), ""
    words = np.array([*(text or None for text in texts), None], object)
    return pd.Series(words[codes], index=column.index, dtype=object), values


def _numbers_of(
    texts: list[str],  # distinct cells of the column
    codes: np.ndarray,  # (N,) index of each row's cell; -1 if missing
    mark: str,
    none: Sequence[str],
    said: dict[str, Any],
    is_chosen: bool,
) -> np.ndarray | str:
    """Return the column as numbers, exact beyond 2^53, or the reason why it is text."""
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    gaps = np.array([text.lower() in GAPS for text in texts])
    matches = [None if gap else number_in(x, mark) for x, gap in zip(texts, gaps, strict=True)]
    hit = np.array([match is not None for match in matches])
    n_numbers = counts[hit].sum()
    if n_numbers < (_MANY_NUMBERS if is_chosen else _MOSTLY) * counts[~gaps].sum():
        others = [texts[i] for i in np.flatnonzero(~hit & ~gaps)]
        what = "limits" if all(text[0] in "<>≤≥~" for text in others) else "words"
        return f"numbers and {what} such as “{shortened(others[0], 20)}”"
    numbers = [text for text, is_hit in zip(texts, hit, strict=True) if is_hit]
    coded = [text for text in numbers if _CODE.fullmatch(text)]
    is_code = any(text[0] == "0" for text in coded) or (coded and len(set(map(len, numbers))) == 1)
    if is_code and not is_chosen and all(t.isdigit() or _CODE.fullmatch(t) for t in numbers):
        return ""
    units: Counter[str] = Counter()
    reals = np.full(len(texts) + 1, np.nan)  # last entry: missing cells
    for i, match in enumerate(matches):
        if match is not None:
            units[(match["unit"] or match["money"] or "").strip(" .")] += int(counts[i])
            reals[i] = _value(match, mark)
    unit = max(units, key=lambda unit: (units[unit], unit))
    if units[unit] < _MOSTLY * n_numbers or units.keys() - {"", unit}:
        return f"numbers of different units: {', '.join([name or 'none' for name in units][:3])}"
    reals[np.isin(reals, plain_numbers(none))] = np.nan
    is_complete = hit.all() and not (codes < 0).any()
    is_large = not is_chosen and (np.abs(reals) >= EXACT).any()
    if (is_complete or is_large) and all(map(_WHOLE.fullmatch, numbers)):
        for kind in (np.int64, np.uint64) if is_complete else ():
            with suppress(OverflowError, ValueError):
                return np.asarray(np.array([int(text) for text in texts], kind)[codes])
        if is_large:
            return "whole numbers of more than 15 digits"
    listed = [i for i in np.flatnonzero(~hit).tolist() if texts[i]]
    odd = {shortened(texts[i]): int(counts[i]) for i in listed[:_MOST_LISTED]}
    if rest := int(counts[listed[_MOST_LISTED:]].sum()):
        odd["others"] = rest
    said |= {"not_numbers": odd, "units": unit, "decimals": any(mark in text for text in numbers)}
    return np.asarray(reals[codes])


def _value(match: re.Match[str], mark: str) -> float:
    is_negative = any("-" in (match[part] or "") for part in ("sign", "inner", "tail"))
    sign = -1.0 if is_negative != bool(match["open"] and match["close"]) else 1.0
    if match["inf"]:
        return sign * np.inf
    power = (match["power"] or "").upper().replace("D", "E")  # Fortran writes D
    return sign * float(match["body"].translate(_GROUPING[mark]) + power)


def as_list(na_values: Any) -> list[str]:
    """Return one or several strings for missing values as a list of strings."""
    several = isinstance(na_values, (list, tuple))
    return [str(value) for value in (na_values if several else [na_values]) if value is not None]


def plain_numbers(texts: Sequence[str]) -> list[float]:
    """Return the numbers among strings, ignoring those that are not plain numbers."""
    return [float(text) for text in texts if _PLAIN["."].fullmatch(text)]


def far_values(X: np.ndarray) -> dict[int, dict[float, int]]:
    """Return outliers such as -999, repeated or all nines, by column of X (N, D)."""
    far: dict[int, dict[float, int]] = {}
    some = np.sort(X[:: max(1, len(X) // _JUDGED_ROWS)], axis=0)  # NaN is sorted last
    first, third = some[len(some) // 4], some[3 * len(some) // 4]
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        reach = _FAR * np.maximum(third - first, 1e-300)
        least, most = first - reach, third + reach
        is_far = ((low < least) | (high > most)) & np.isfinite(high - low)
    least = np.where(first >= 0, np.maximum(least, 0), least)
    for j in np.flatnonzero(is_far)[:_MOST_JUDGED].tolist():
        column = np.ascontiguousarray(X[:, j])
        inner = column[(column >= least[j]) & (column <= most[j])]
        outer = column[(column < least[j]) | (column > most[j])]  # excludes NaN
        inner = np.array([*inner[:_JUDGED_ROWS], inner.min(), inner.max()])
        values = np.unique(np.concatenate([outer, inner])).tolist()
        while len(values) > 3:
            is_low = values[1] - values[0] > values[-1] - values[-2]
            value = values.pop(0 if is_low else -1)
            gap = values[0] - value if is_low else value - values[-1]
            lonely = gap > _FAR * (values[-1] - values[0]) or value < 0 <= values[0]
            count = int(np.count_nonzero(column == value)) if lonely else 0
            if not (count > 1 or (lonely and _NINES.fullmatch(f"{value:g}"))):
                break
            far.setdefault(j, {})[value] = count
    return far


@dataclass(frozen=True)
class Upload:
    """A file being read: its title, the options, and the report."""

    name: str
    limits: ReadLimits
    report: FileReport = field(default_factory=lambda: {"unused": {}})

    @contextmanager
    def or_damaged(self, why: str) -> Iterator[None]:
        """Raise InputError for any exception of a library."""
        try:
            yield
        except (InputError, MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:  # libraries raise many kinds of exceptions
            msg = f"“{self.name}” {why}."
            raise InputError(msg) from error

    def check_size(self, path: str, n_bytes: int) -> None:
        """Raise InputError for an array that would fill the memory."""
        msg = f"“{shortened(path)}” in “{self.name}” has {n_bytes / 1e6:,.0f} MB, more than "
        msg += f"{self.limits.most}; save fewer rows or columns."
        refuse_if(n_bytes > self.limits.n_bytes, msg)

    def texts(self, path: str, values: np.ndarray) -> np.ndarray:
        """Return variable-length strings as a NumPy array of strings."""
        strings = [*map(str, values.ravel().tolist())]
        self.check_size(path, 4 * len(strings) * max(map(len, strings), default=1))
        texts = np.array(strings, dtype=str).reshape(values.shape)
        msg = f"“{shortened(path)}” in “{self.name}” contains invalid Unicode; save it again."
        refuse_if(not is_text(texts), msg)
        return texts


class Beside(NamedTuple):
    """Names and labels of rows, and column names, of which some may be equal."""

    ids: np.ndarray | None = None
    labels: Mapping[str, np.ndarray] = MappingProxyType({})
    features: Sequence[str] | None = None


def data_set(
    upload: Upload,
    X: np.ndarray,
    features: Sequence[str],
    missing: str,
    beside: Beside,
    image_shape: tuple[int, ...] | None = None,
) -> Dataset:
    """Build a data set from a matrix (N, D); handle missing cells (NaN) and report quality.

    `missing` is "refuse" (raise an error), "model" (insert the column mean as a placeholder for
    models), "mean" (impute it) or "drop" (drop incomplete rows). `features` are D names for
    messages; `beside` has the names in the file.
    """
    name, limits, report = upload.name, upload.limits, upload.report
    rows, gaps, n_read = np.arange(len(X)), None, len(X)
    most = _MOST_NUMBERED if isinstance(features, NumberedNames) else None
    report.update(missing={}, n_missing=0, filled=0, dropped=0)
    msg = f"missing must be one of {', '.join(MISSING_CHOICES)}; got {missing!r}."
    refuse_if(missing not in MISSING_CHOICES, msg, report)
    if X.dtype.kind == "f" and X.size and np.isnan(X.min()):
        gaps = np.isnan(X)
        if limits.least_rows > 1 and 1 < (measured := ~gaps.all(axis=1)).sum() < len(X):
            unmeasured = counted(len(X) - int(measured.sum()), "row")
            note(report, "Set aside", f"{unmeasured} without any measurement")
            X, rows, gaps = X[measured], rows[measured], gaps[measured]
        if (counts := gaps.sum(axis=0)).any():
            columns = {features[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()[:most]}
            report.update(missing=columns, n_missing=int(counts.sum()))
            X, kept = _settled(upload, X, gaps, features, missing)
            rows = rows[kept]
    low, high = X.min(axis=0), X.max(axis=0)
    if X.dtype.kind == "f" and np.isinf([low, high]).any():
        row, column = np.argwhere(np.isinf(X))[0]
        name = shortened(features[column])
        msg = f"“{name}” is infinite in row {row + 1}; values must be finite: correct or remove it."
        raise InputError(msg, report)
    _check_magnitudes(low, high, features, report)
    constant = low == high
    report["constant"] = [features[j] for j in np.flatnonzero(constant).tolist()[:most]]
    msg = f"All {counted(len(X), 'row')} are the same; choose data that vary."
    refuse_if(constant.all() and limits.least_rows > 1, msg, report)
    named = row_ids if beside.ids is None else beside.ids.__getitem__
    if len(gone := np.setdiff1d(np.arange(n_read), rows)):
        note(report, ROWS_GONE, few([shortened(of) for of in named(gone)]))
    dataset = Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=named(rows),
        labels={key: column[rows] for key, column in beside.labels.items()},
        image_shape=image_shape,
        feature_names=None if beside.features is None else tuple(beside.features),
        provenance={"source": "file", "files": [name], "report": report},
        missing=gaps if missing == "model" else None,
        least_rows=limits.least_rows,
    )
    report.update(n_constant=int(constant.sum()), duplicates=len(dataset.repeated_rows))
    return dataset


def _settled(
    upload: Upload, X: np.ndarray, gaps: np.ndarray, features: Sequence[str], missing: str
) -> tuple[np.ndarray, np.ndarray]:
    """Fill missing cells or drop their rows; return the matrix and the mask of kept rows."""
    report, least_rows = upload.report, upload.limits.least_rows
    empty, keep, msg = gaps.all(axis=0), ~gaps.any(axis=1), ""
    if empty.any() and (least_rows > 1 or missing not in ("refuse", "model")):
        shown = few([f"“{shortened(features[j])}”" for j in np.flatnonzero(empty).tolist()])
        msg = f"There is no number in column {shown}; ignore the column or fill it."
    elif missing == "refuse":
        listed = few([f"“{shortened(key)}” ({n})" for key, n in report["missing"].items()])
        msg = f"The data have {counted(report['n_missing'], 'missing cell')}, in {listed}; "
        msg += "let the model fill them, impute column means, drop the rows, or correct the file."
    elif missing == "drop" and keep.sum() < least_rows:
        left = f"would leave {keep.sum()} of {len(X)} rows"
        msg = f"Dropping the rows with missing cells {left}; fill the cells or ignore columns."
    refuse_if(msg, msg, report)
    if missing == "drop":
        report["dropped"] = int((~keep).sum())
        return X[keep], np.flatnonzero(keep)
    _check_magnitudes(np.fmin.reduce(X), np.fmax.reduce(X), features, report)
    means = np.nanmean(np.where(empty, 0, X), axis=0, dtype=np.float64)
    report["filled" if missing == "mean" else "modelled"] = report["n_missing"]
    return np.where(gaps, means.astype(X.dtype), X), np.arange(len(X))


def _check_magnitudes(
    low: np.ndarray, high: np.ndarray, names: Sequence[str], report: FileReport
) -> None:
    if low.dtype != np.float64:
        return
    with np.errstate(over="ignore"):
        spread = high - low
    large, small = np.maximum(-low, high), np.where(spread > 0, spread, 1)
    odd = [("up to", large, large > _LARGEST), ("that differ by", small, small < 1 / _LARGEST)]
    for word, sizes, bad in odd:
        j = int(np.argmax(bad))
        refuse_if(
            bad[j],
            f"“{shortened(names[j])}” contains numbers {word} {sizes[j]:.3g}, whose squares "
            "overflow; give the column in another unit, or ignore it.",
            report,
        )


def row_ids(rows: np.ndarray) -> np.ndarray:
    """Return ``row-1`` and so on for row numbers, vectorized."""
    return np.strings.add("row-", (rows + 1).astype(f"U{len(str(rows.max(initial=0) + 1))}"))


ROLES = ("id", "label", "feature", "ignored")
# kinds of non-numeric columns
KINDS = {"text": "words", "date": "dates", "empty": "empty", "list": "lists", "long": "long text"}
KINDS["other"] = "of another table"
_LABEL_NAME = re.compile(
    r"(label|class|target|species|category|group|cluster|digit|diagnosis|type|y)s?", re.IGNORECASE
)
_CODE_NAME = re.compile(
    r"(?i)(^|[^a-z])(p?class|year|grade|level|group|type|month|cyl|stage|wave|sex|gender)([^a-z]|$)"
)
_CLASS_OR_CODE = re.compile(rf"(?i)({_LABEL_NAME.pattern})$|(.*[ _-])?(code|iso|abb)")
_ID_NAME = re.compile(
    r"(.*[ _-])?(ids?|index|key|name|filename|file)|idno|unnamed: 0|barcode"
    r"|(sample|specimen|subject|patient|participant|respondent)([ _-]?(number|no|nr)[.]?)?",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?i)(^|[^a-z])(year|season|month|week|day|wave|round)s?([^a-z]|$)")
_INDEX = re.compile(r"(?i)(index|key)$")  # an id only if it counts or differs in all rows
_PIXEL_NAME = re.compile(r"(pixel|px|x|p)?[ _]*\d+([x_,]\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2})|(?=\d\d?:\d[^-]*$)"
    r"|\d{1,2}[-. ]{1,2}(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ](\d{4}|\d{2}))"
    r"([T ]*\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AP]M)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?",
    re.IGNORECASE,
)
_FEWEST = 8  # minimum number of rows for an index or a label
_FILLED = 0.1  # minimum share of filled cells of a feature, if most features have it
FEW = 100  # maximum number of distinct whole numbers in a label
_FEW_CLASSES, _FEWEST_EACH, _FEWEST_ITEMS = 30, 3, 5  # limits of a suggested label
_MOST_LIKELY = 5  # maximum number of labels to suggest; if more, columns are counts
_LONGEST_LABEL = 500  # maximum number of characters in a label
_MOST_SHOWN, _LONGEST_SHOWN = 300, 40  # columns and characters in a report's first rows

_FLAGS = {"true": 1.0, "false": 0.0}

ImageShape = tuple[int, ...] | Literal["auto"] | None  # "auto": square greyscale rows are images


class TableOptions(NamedTuple):
    """Options for a table with typed, named columns: Parquet or ARFF."""

    roles: dict[str, str] | None = None  # name to role, see `ROLES`
    missing: str = "refuse"  # or "model", "mean", "drop"
    image_shape: ImageShape = None  # "auto": square greyscale rows are images
    na_values: Any = ()  # additional strings for missing values, such as -999
    transpose: bool = False  # whether columns are samples


class Table(NamedTuple):
    """Columns with unique names: numbers, or text with None for missing cells."""

    frame: "pd.DataFrame"
    named: list[bool]
    report: FileReport  # how the file was read
    # kind of text columns, if declared, or why they remain text
    said: Mapping[str, str] = MappingProxyType({})


class Column(NamedTuple):
    """Description of a column, from which its role is guessed."""

    name: str
    named: bool
    kind: str = "number"  # or "text", "date", "long", "list" or "empty"
    complete: bool = False  # no missing cells
    filled: float = 1.0  # share of cells with a number
    distinct: int = 0  # distinct values; computed for numbers only if the name requires it
    whole: bool = False  # all numbers are whole
    grows: bool = False
    span: float = 0.0
    is_large: bool = False  # integers so long that they are probably ids
    note: str = ""  # why numbers are read as text
    called_id: bool = False  # the name suggests an id
    declared: bool = False  # its kind is stated in the file

    @property
    def is_constant(self) -> bool:
        """Whether a column is uninformative; never true for pixels, whose position matters."""
        same = self.kind == "number" and self.span == 0 and not self.is_large
        same |= self.kind == "text" and self.complete and self.distinct == 1
        return same and self.named and _PIXEL_NAME.fullmatch(self.name.strip()) is None


def is_label_name(name: str) -> bool:
    """Whether a column of this name is usually a class or target."""
    return bool(_LABEL_NAME.fullmatch(name.strip()) or UNIT.search(name.strip()))


def build(name: str, table: Table, options: Any, limits: ReadLimits) -> Dataset:
    """Build a data set from a table with the fields of `TableOptions`."""
    frame, report, n = _with_flags(table), table.report, len(table.frame)
    table = table._replace(frame=frame)
    report.update(rows=n, columns=len(frame.columns))
    check_columns(name, len(frame.columns), limits)
    needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
    msg = f"“{name}” has {counted(n, 'row')} of data; at least {needed} needed, add rows."
    refuse_if(n < limits.least_rows, msg, report)
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
        because = f" (ignored: {'; '.join(why[:3])})" if why else ""
        msg = f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}{because}; "
        msg += f"at least 2 are needed, so {remedy} the columns' roles."
        raise InputError(msg, report)
    check_matrix(name, n, len(features), 8, limits)
    ids, labels = _ids_and_labels(frame, roles, report, limits)
    matrix = _matrix(frame, features, report, as_list(options.na_values))
    if options.transpose:
        left_out |= dict.fromkeys(labels, "not about the columns")
        names = (row_ids(np.arange(n)) if ids is None else ids).tolist()
        matrix, features, ids, labels = matrix.T.copy(), names, np.array(features), {}
    else:
        likely, chosen = likely_labels(columns, roles, frame), options.roles or {}
        report["likely_labels"] = {name: n for name, n in likely.items() if name not in chosen}
    report["far"] = {features[j]: [*values.items()] for j, values in far_values(matrix).items()}
    named = any(table.named) or options.transpose
    beside = Beside(ids, labels, features if named else None)
    dataset = data_set(Upload(name, limits, report), matrix, features, options.missing, beside)
    numbers = [each.name for each in columns if each.kind == "number"]
    report["constant"] += [key for key in numbers if left_out.get(key) == "one value"]
    report["n_constant"] = len(report["constant"])
    X = dataset.X
    report["image_shape"] = shape = _image_shape(options.image_shape, features, named, X)
    if shape is None:
        return dataset
    low, high = float(X.min()), float(X.max())
    usual = [white for white in (1.0, 16.0, 255.0) if low >= 0 and high <= white]
    dataset.provenance["image_range"] = [0.0, usual[0]] if usual else [low, high]
    return replace(dataset, image_shape=shape, X=X.astype(np.uint8) if are_bytes(X) else X)


def _with_flags(table: Table) -> "pd.DataFrame":
    """Return the columns, with TRUE as 1 and FALSE as 0 if most are of these words."""
    texts = table.frame.select_dtypes(exclude="number")
    plain = [name for name in texts if not table.said.get(str(name))]
    words = {x: {str(word).lower() for word in {*texts[x].dropna().tolist()}} for x in plain}
    flags = [name for name, said in words.items() if said == _FLAGS.keys()]
    if 2 * len(flags) <= table.frame.shape[1]:
        return table.frame
    note(table.report, "Flags", f"TRUE is 1 and FALSE 0 in {counted(len(flags), 'column')}")
    numbers = texts[flags].apply(lambda column: column.astype(str).str.lower().map(_FLAGS))
    return table.frame.assign(**numbers)


def names_beside(
    table: Table, limits: ReadLimits
) -> tuple[np.ndarray | None, dict[str, np.ndarray], dict[str, str]]:
    """Return row names and labels from a second table, and why its other columns are unused."""
    columns = describe(table)
    roles, unused = guess_roles(columns, len(table.frame), {}, table.report)
    for each in columns:
        if roles[each.name] == "feature" or (roles[each.name] == "ignored" and each.kind == "text"):
            roles[each.name] = "label"
            unused.pop(each.name, None)
    return *_ids_and_labels(table.frame, roles, table.report, limits), unused


def check_columns(name: str, n_columns: int, limits: ReadLimits) -> None:
    """Raise InputError for a table with too many columns."""
    msg = f"“{name}” has {n_columns:,} columns, more than the limit of {limits.columns:,}; "
    msg += "take fewer, transpose it, or save the numbers as NPY."
    refuse_if(n_columns > limits.columns, msg)


def describe(table: Table) -> list[Column]:
    """Describe every column, to guess its role."""
    columns = []
    for j, (key, values) in enumerate(table.frame.items()):
        name = str(key)
        column = Column(name, table.named[j], called_id=bool(_ID_NAME.fullmatch(name.strip())))
        if table.said.get(name) == "other":
            columns.append(column._replace(kind="other"))
            continue
        if values.dtype.kind in "iuf":
            columns.append(_described(values.to_numpy(), column, is_first=not j))
            continue
        said, present = table.said.get(name, ""), values.dropna()
        once = [] if said == "list" else {*present.tolist()}  # faster than pandas' unique
        texts = [str(text).strip() for text in once]
        kind = said if said in KINDS else "text" if texts else "empty"
        if kind == "text" and max(map(len, texts)) > _LONGEST_LABEL:
            kind = "long"
        elif kind == "text" and all(map(_DATE.fullmatch, texts)):
            kind = "date"
        facts: dict[str, Any] = {"complete": len(present) == len(values), "distinct": len(once)}
        facts |= {"note": "" if said in KINDS else said, "declared": said in KINDS}
        columns.append(column._replace(kind=kind, **facts))
    return columns


def _described(values: np.ndarray, column: Column, *, is_first: bool) -> Column:
    """Describe a column of numbers."""
    has_gaps = values.dtype.kind == "f" and np.isnan(values.min())
    present = values[~np.isnan(values)] if has_gaps else values
    if not len(present):
        return column._replace(kind="empty")
    low, high = present.min(), present.max()
    complete, is_large = present is values, values.dtype.kind in "iu" and bool(high >= EXACT)
    judged = (present[:_LOOKED_AT], present) if values.dtype.kind == "f" else ()
    whole = bool(np.isfinite([low, high]).all()) and all((x == np.floor(x)).all() for x in judged)
    grows = whole and complete and len(values) > 1 and bool((values[:-1] < values[1:]).all())
    grows = grows and (is_first or column.called_id or high - low == len(values) - 1)
    matters = column.called_id or is_label_name(column.name) or is_large or (is_first and whole)
    distinct, next_ = len(np.unique(present)) if matters else 0, values[1:]
    counts = complete and bool(((next_ == values[:-1] + 1) | (next_ == values[0])).all())
    is_measure = _INDEX.search(column.name) and not counts and distinct < len(values)
    return column._replace(
        called_id=column.called_id and not is_measure,
        complete=complete,
        filled=len(present) / len(values),
        distinct=distinct,
        whole=whole,
        grows=grows,
        span=0.0 if low == high else float(high) - float(low),
        is_large=is_large,
    )


def guess_roles(
    columns: list[Column], n_rows: int, chosen: Mapping[str, str], report: FileReport
) -> tuple[dict[str, str], dict[str, str]]:
    """Assign every column its chosen or guessed role; also return why columns are ignored."""
    names = [column.name for column in columns]
    for name, role in chosen.items():
        if name not in names:
            error = unknown("column", name, names)
            error.report = report
            raise error
        msg = f"A role must be one of {', '.join(ROLES)}; column “{shortened(name)}” got {role!r}."
        refuse_if(role not in ROLES, msg, report)
    msg = "Only one column can be the id; make the others labels, or ignore them."
    refuse_if([*chosen.values()].count("id") > 1, msg, report)
    numbers = {each.name for each in columns if each.kind == "number"}
    counters = {each.name for each in columns if each.grows and n_rows >= _FEWEST}
    constant = {each.name for each in columns if each.is_constant and n_rows > 1}
    if len(numbers - counters - constant) < 2:  # too few features would remain
        counters &= {each.name for each in columns if each.called_id}
        constant -= numbers
    why = dict.fromkeys(counters, "counts the rows") | dict.fromkeys(constant, "one value")
    is_code = columns[0].whole and columns[0].complete and columns[0].distinct == n_rows >= _FEWEST
    if is_code and any(each.kind == "text" and 2 * each.distinct > n_rows for each in columns):
        why |= dict.fromkeys([columns[0].name] * (len(numbers) > 3), "a code of each row")
    sparse = [each.name for each in columns if each.filled < _FILLED]
    why |= dict.fromkeys(sparse * (2 * len(sparse) < len(numbers)), "over 90% empty")
    best = None if "id" in chosen.values() else _id_among(columns, n_rows, counters, chosen)
    roles, left_out = dict[str, str](), dict[str, str]()
    for column in columns:
        name = column.name
        role, reason = ("ignored", why[name]) if name in why else _plain_role(column, n_rows)
        roles[name] = chosen.get(name, "id" if name == best else role)
        if roles[name] == "ignored":
            left_out[name] = reason
    is_short = len(_with(roles, "feature")) < 2
    y = {"y", "Y"} if {"x", "y"} <= {name.lower() for name in names} else set()  # coordinates
    for name in numbers - {*chosen}:
        if roles[name] == "label" and (is_short or name in y):
            roles[name] = "feature"
    features = _with(roles, "feature")
    axis = [name for name in features if (value := numbered([name])) and not value[1]]
    if len(axis) >= 12 and numbered(axis) and len(features) < 1.25 * len(axis):
        roles |= dict.fromkeys({*features} - {*axis, *chosen}, "label")  # next to a series
    return roles, left_out


def _id_among(
    columns: list[Column], n_rows: int, counters: set[str], chosen: Mapping[str, str]
) -> str | None:
    """Return the column that names the rows best."""
    has_names = any(column.named for column in columns if column.name not in chosen)
    best: tuple[int, str | None] = 8, None
    for column in columns:
        is_unique, is_text = column.distinct == n_rows, column.kind == "text" and n_rows > 1
        is_word, is_number = is_text and not column.note, column.called_id and column.whole
        is_index = column is columns[0] and column.whole and not column.named and n_rows > 1
        able = (
            is_unique and column.called_id and (is_text or column.whole or column.kind == "date"),
            is_unique and is_index and has_names,
            is_unique and is_word and not _CLASS_OR_CODE.match(column.name.strip()),
            is_unique and is_word,
            is_unique and column.kind == "date" and not column.declared and n_rows > 1,
            n_rows >= _FEWEST and column.distinct > n_rows / 2 and (is_word or is_number),
            column.name in counters,
            is_unique and column.is_large,
        )
        if column.complete and column.name not in chosen and True in able[: best[0]]:
            best = able.index(True), column.name
    return best[1]


def _plain_role(column: Column, n_rows: int) -> tuple[str, str]:
    """Return the role suggested by a column's content, and the reason if it is ignored."""
    n = column.distinct
    are_classes = n <= n_rows / 2 if n_rows >= _FEWEST else n < max(2, n_rows)
    if column.is_large:
        return "ignored", "whole numbers of more than 15 digits"
    if column.called_id and column.kind == "number" and column.whole:
        why = "repeated ids" if n < n_rows else "other ids"
        return ("label", "") if n <= FEW and are_classes else ("ignored", why)
    if column.kind == "number":
        few_values = column.whole and n <= FEW and are_classes and is_label_name(column.name)
        return "label" if few_values else "feature", ""
    if column.kind == "empty" and column.named and n_rows == 1:
        return "feature", ""  # a single new row may lack this value
    if column.kind == "text" and not column.note and are_classes:
        return "label", ""
    differ = f"{n:,} different values in {counted(n_rows, 'row')}"
    return "ignored", column.note or (differ if column.kind == "text" else KINDS[column.kind])


def likely_labels(
    columns: list[Column], roles: dict[str, str], frame: "pd.DataFrame"
) -> dict[str, int]:
    """Map features that may be labels, not items of one range, to their numbers of integers."""
    features = [each for each in columns if roles[each.name] == "feature"]
    narrow = [each for each in features if each.whole and 1 <= each.span < FEW]
    ranges = {each.name: (frame[each.name].min(), each.span) for each in narrow}
    alike = Counter(ranges.values())
    others = [name for name, limits in ranges.items() if alike[limits] < _FEWEST_ITEMS]
    likely, is_survey = dict[str, int](), 2 * (len(narrow) - len(others)) >= len(features)
    for name in others if len(others) <= 2 * _MOST_LIKELY else filter(_CODE_NAME.search, others):
        counts = frame[name].value_counts()
        if is_survey or (len(counts) <= _FEW_CLASSES and counts.min() >= _FEWEST_EACH):
            likely[name] = len(counts)
    is_sure = len(likely) <= min(_MOST_LIKELY, len(features) // 2)
    return {name: n for name, n in likely.items() if is_sure or _CODE_NAME.search(name)}


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column in roles if roles[column] == role]


def _matrix(
    frame: "pd.DataFrame", features: list[str], report: FileReport, none: Sequence[str]
) -> np.ndarray:
    import pandas as pd

    X = np.empty((len(frame), len(features)))
    for j, place in enumerate(frame.columns.get_indexer(pd.Index(features, dtype=object)).tolist()):
        values = frame.iloc[:, place]
        if values.dtype.kind not in "iuf":
            texts = values
            values, _ = convert(texts, features[j], report, is_chosen=True)
            refuse_if(
                values.dtype.kind not in "iuf",
                f"Column “{shortened(features[j])}” cannot be a feature: it has words, such as "
                f"“{shortened(next(iter(texts.dropna()), ''))}”; make it a label, or ignore it.",
                report,
            )
        X[:, j] = values.to_numpy(np.float64)
    X[np.isin(X, plain_numbers(none))] = np.nan
    return X


def _image_shape(
    chosen: ImageShape, features: list[str], named: bool, X: np.ndarray
) -> tuple[int, ...] | None:
    if chosen != "auto":
        return None if chosen is None else tuple(chosen)
    side = int(np.sqrt(len(features)))
    is_square = side >= 8 and side * side == len(features)
    anonymous = not named or all(_PIXEL_NAME.fullmatch(name.strip()) for name in features)
    return (side, side) if is_square and anonymous and are_bytes(X) else None


def _ids_and_labels(
    frame: "pd.DataFrame", roles: dict[str, str], report: FileReport, limits: ReadLimits
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    def rank(name: str) -> tuple[bool, bool, bool]:
        n_values, named = len({*frame[name].dropna().tolist()}), is_label_name(name)
        return n_values >= len(frame), n_values > _FEW_CLASSES and not named, not named

    total, columns = 0, dict[str, np.ndarray]()
    id_of = next(iter(_with(roles, "id")), None)
    for name in [*sorted(_with(roles, "label"), key=rank), *([] if id_of is None else [id_of])]:
        values = frame[name]
        if values.dtype.kind in "iuf":
            columns[name] = values.to_numpy()
            continue
        longest = max((len(str(text)) for text in {*values.tolist()}), default=0)
        total += 4 * longest * len(frame)
        msg = f"Column “{shortened(name)}” contains text of up to {longest:,} characters, "
        msg += "too long for a label or an id; ignore it."
        refuse_if(total > limits.n_bytes // 2, msg)
        texts = values.astype("object").where(values.notna(), "").astype(str)
        columns[name] = texts.to_numpy(dtype=str)
    named = [name for name, x in columns.items() if x.dtype.kind == "U"]
    named.sort(key=lambda name: (not _ID_NAME.fullmatch(name.strip()), -len({*columns[name]})))
    if id_of is None and not named:
        return None, columns
    firsts = [columns.pop(id_of).astype(str)] if id_of is not None else [columns[x] for x in named]
    n_repeated = len(ids := firsts[0]) - len({*ids})
    is_name = id_of is not None and n_repeated < len(ids) / 2
    whole = [x for x in frame if frame[x].dtype.kind in "iu" and _TIME.search(str(x))]
    times = [frame[x] for x in [x for x in frame if _DATE.fullmatch(str(frame[x].iloc[0]))] + whole]
    others = ([*columns.values()] * (id_of is not None) + times) * bool(n_repeated)
    each = ((np.char.add(first, ", "), x) for first in firsts for x in others)
    pairs = (np.char.add(first, np.array(x).astype(str)) for first, x in each)
    by_two = next((each for each in pairs if len(np.unique(each)) == len(ids)), None)
    if by_two is not None:
        alone = np.isin(ids, [name for name, n in Counter(ids.tolist()).items() if n == 1])
        return np.where(alone & is_name, ids, by_two), columns
    if is_name and n_repeated:
        report["repeated_ids"], ids = n_repeated, np.array(unique(ids.tolist()))
    return None if id_of is None else ids, columns


def _head(frame: "pd.DataFrame") -> dict[str, list[str | None]]:
    cells: dict[str, list[str | None]] = {}
    for name, values in frame.items():
        texts = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in values.tolist()]
        pairs = zip(texts, values.isna(), strict=True)
        cells[str(name)] = [None if gap else shortened(text, _LONGEST_SHOWN) for text, gap in pairs]
    return cells
