"""One idea of numbers, gaps and text for all tables, and the checks on every matrix."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.data.dataset import NumberedNames, distinct
from appca.data.files import few
from appca.words import InputError, counted, shortened

if TYPE_CHECKING:
    import pandas as pd

FileReport = dict[str, Any]  # what was found in a file, and what was done about it
GAPS = frozenset(  # stand for no number, in lower case; in a column of words only "" is a gap
    ["", "na", "n/a", "#n/a", "<na>", "n.a.", "null", "none", "nan", "nil", "?", "-", "--", "—"]
) | frozenset([".", "..", "…", "*", "#value!", "#div/0!", "#ref!", "#num!", "#name?", "#null!"])
_SIGNS = str.maketrans(
    dict.fromkeys("\u2212\u2012\u2013\ufe63\uff0d", "-")
    | dict.fromkeys("\u00a0\u202f\u2009\u2007", " ")
    | {"\u2019": "'"}
)
_ENDS = " \t\n\r\u00a0\u202f\u2009\u2007\u3000\ufeff\u200b"  # blanks around a cell
_CURRENCY = r"[$€£¥₹₩₽]|R\$|USD|EUR|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|INR|BRL|CAD|AUD|Rs\.?"
# a capital alone needs a blank before it: 1A is a name
_UNIT = (
    r" ?(?:[%‰]|[°µ$€£¥₹₩₽][^\s<>=;,()\d]{0,5})| [^\W\d_][^\s<>=;,()\d]{0,8}(?:-?[1-3])?"
    r"|[^\W\d_](?:[^\s<>=;,()\d]{1,8}(?:-?[1-3])?|(?<![A-Z]))"
)
# every digit matches in one way only: else a cell of a million digits takes hours
_NUMBER = {
    mark: re.compile(
        rf"(?P<open>\()?(?P<sign>[+-] ?)?(?P<money>{_CURRENCY})? ?(?P<inner>[+-])?"
        rf"(?:(?P<body>(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})(?:(?:{group})\d{{3}})*(?!\d)|\d+)"
        rf"(?:{dot}\d*)?|{dot}\d+)(?P<power>[eE][+-]?\d+)?|(?P<inf>[iI][nN][fF](?:inity)?))"
        rf"(?P<unit>{_UNIT})?(?P<close>\))?",
    )
    for mark, dot, group in ((".", r"\.", "[,' ]"), (",", ",", r"[.' ]"))
}
_GROUPING = {".": str.maketrans("", "", ",' "), ",": str.maketrans(",", ".", ".' ")}
_PLAIN = {
    mark: re.compile(rf"[+-]?(?:(?:0|[1-9]\d*)(?:[{mark}]\d*)?|[{mark}]\d+)(?:[eE][+-]\d+)?")
    for mark in ".,"
}
PLAIN_GAPS = frozenset(["", "NA", "NaN", "nan"])
_WHOLE = re.compile(r"[+-]?\d+")
_CODE = re.compile(r"0\d+|\d+[eE]\d+")  # digits that are no number when all cells are of the kind
_MOSTLY = 0.9  # share of numbers from which the other cells of a column are gaps
_MANY_NUMBERS = 0.5  # share from which a column of text is said to hold numbers, too
_LOOKED_AT = 400  # distinct cells by which a column of words is known
EXACT = 2**53  # whole numbers up to it are exact as reals
_MOST_LISTED = 50  # different cells that are no numbers, of a column
_LARGEST = 1e150  # number whose squares can be summed up
_FAR = 3.0  # times the range of the others
_JUDGED_ROWS, _MOST_JUDGED = 1000, 200  # rows and columns in which values far off are looked for
_NINES = re.compile(r"-?9{2,}(?:\.0)?")


def bare(cell: str) -> str:
    """Return a cell without the blanks at its ends."""
    return cell.strip(_ENDS)


def number_in(cell: str, mark: str) -> re.Match[str] | None:
    """Return the parts of a number with a decimal sign, with whatever sign, grouping or unit."""
    return _NUMBER[mark].fullmatch(bare(cell).translate(_SIGNS))


def real(cell: str) -> float:
    """Return the number in a cell, with the first decimal sign that makes it one, or NaN."""
    for mark in ".,":
        if match := number_in(cell, mark):
            return _value(match, mark)
    return np.nan


def is_plain(cell: str, decimal: str) -> bool:
    """Whether pandas reads a cell as the same number, or gap, as `convert` does."""
    return cell in PLAIN_GAPS or _PLAIN[decimal].fullmatch(cell) is not None


def decimal_of(cells: Sequence[str]) -> tuple[str, bool]:
    """Return the decimal sign of cells, and whether it is in doubt: all marks are as in 1.234."""
    fits = [
        "".join(mark for mark in ".," if number_in(cell, mark))
        for cell in cells
        if "." in cell or "," in cell
    ]
    votes = Counter(fits)
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
    """Read a column of texts: numbers where at least 90% of the cells that are there are numbers.

    Half is enough for a column that a person has chosen as numbers, and codes are numbers then.

    The decimal sign is the report's unless the column makes sense with the other one only. Whole
    numbers beyond 2^53 stay exact, as whole numbers or as text. Digits with leading zeros, and
    codes such as 1E5 among digits, are text.

    Returns numbers, or texts with None in the gaps, and why numbers among the texts are none. The
    report receives ``not_numbers`` (cells that are none, with how often), ``units``, and the
    ``decimals`` that are not the file's.
    """
    import pandas as pd

    codes, raw = pd.factorize(column.astype(object), use_na_sentinel=True)
    texts = [bare(str(text)) for text in raw.tolist()]
    texts = ["" if text in na_values else text for text in texts] if na_values else texts
    decimal = report.get("decimal", ".")
    some = texts[:: max(1, len(texts) // _LOOKED_AT)]
    hits = {mark: sum(bool(number_in(text, mark)) for text in some) for mark in ".,"}
    mark = max(".,", key=lambda mark: (hits[mark], mark == decimal))
    n_filled = sum(text.lower() not in GAPS for text in some)
    values: np.ndarray | str = ""
    if n_filled and hits[mark] >= _MANY_NUMBERS * n_filled:
        said: dict[str, Any] = {}
        values = _numbers(texts, codes, mark, na_values, said, is_chosen)
        if isinstance(values, np.ndarray):
            said["decimals"] = mark if said.get("decimals") and mark != decimal else ""
            for key, value in said.items():
                if value:
                    report.setdefault(key, {})[name] = value
    elif not any(texts):
        values = np.full(len(column), np.nan)
    if isinstance(values, np.ndarray):
        return pd.Series(values, index=column.index), ""
    words = np.array([*(text or None for text in texts), None], object)
    return pd.Series(words[codes], index=column.index, dtype=object), values


def _numbers(
    texts: list[str],  # the distinct cells of a column
    codes: np.ndarray,  # (N,) place of each row's cell; -1 where there is none
    mark: str,
    none: Sequence[str],
    said: dict[str, Any],
    is_chosen: bool,
) -> np.ndarray | str:
    """Return the column as numbers, of which there is something to be said; or why it is text."""
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    matches = [number_in(text, mark) for text in texts]
    gaps = np.array([text.lower() in GAPS for text in texts])
    hit = np.array([match is not None for match in matches]) & ~gaps
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
    reals = np.full(len(texts) + 1, np.nan)  # the last one is that of cells that are missing
    for i in np.flatnonzero(hit).tolist():
        match = matches[i]
        assert match is not None
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
    has_mark = any(mark in text for text in numbers)
    said |= {"not_numbers": odd, "units": unit, "decimals": has_mark}
    return np.asarray(reals[codes])


def _value(match: re.Match[str], mark: str) -> float:
    sign = -1.0 if "-" in (match["sign"] or "") + (match["inner"] or "") else 1.0
    sign = -sign if match["open"] and match["close"] else sign
    if match["inf"]:
        return sign * np.inf
    return sign * float(match["body"].translate(_GROUPING[mark]) + (match["power"] or ""))


def as_list(na_values: Any) -> list[str]:
    """Return cells that are gaps, one or several, as texts."""
    several = isinstance(na_values, (list, tuple))
    return [str(value) for value in (na_values if several else [na_values]) if value is not None]


def plain_numbers(texts: Sequence[str]) -> list[float]:
    """Return the texts that are plain numbers as numbers."""
    return [float(text) for text in texts if _PLAIN["."].fullmatch(text)]


def far_values(X: np.ndarray) -> dict[int, dict[float, int]]:
    """Return values that may stand for a gap, with how often they occur, by column of X (N, D).

    They are the least or the greatest of their column, far off from all others, and repeated or
    written with nines alone, such as -999.
    """
    far: dict[int, dict[float, int]] = {}
    some = np.sort(X[:: max(1, len(X) // _JUDGED_ROWS)], axis=0)  # gaps come last
    first, third = some[len(some) // 4], some[3 * len(some) // 4]
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        reach = _FAR * np.maximum(third - first, 1e-300)
        is_far = ((low < first - reach) | (high > third + reach)) & np.isfinite(high - low)
    for j in np.flatnonzero(is_far)[:_MOST_JUDGED].tolist():
        values, counts = np.unique(X[:, j][~np.isnan(X[:, j])], return_counts=True)
        while len(values) > 3:
            gaps = values[1] - values[0], values[-1] - values[-2]
            end, rest = (0, slice(1, None)) if gaps[0] > gaps[1] else (-1, slice(-1))
            value, count, others = float(values[end]), int(counts[end]), values[rest]
            lonely = max(gaps) > _FAR * (others[-1] - others[0]) or (value < 0 <= others[0])
            if not lonely or not (count > 1 or _NINES.fullmatch(f"{value:g}")):
                break
            far.setdefault(j, {})[value] = count
            values, counts = others, counts[rest]
    return far


MISSING_CHOICES = ("refuse", "model", "mean", "drop")
_MOST_NUMBERED = 1000  # columns that a report lists though they have no names of their own


def settle_missing(
    X: np.ndarray, names: Sequence[str], how: str, report: FileReport, least_rows: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Deal with missing cells (NaN) as the person chose, and note it in the report.

    "refuse" refuses the data; "model" puts the column's mean in as a placeholder that a model may
    fill (see `left_to_the_model`), "mean" for good; "drop" leaves out the rows concerned. The
    report receives ``missing`` (cells by column), ``n_missing``, ``filled`` (cells), ``modelled``
    (cells, if left to the model) and ``dropped`` (rows). There must be `least_rows`; of a single
    one, a column may be empty that is left to the model; its placeholder is 0.

    Returns the matrix without gaps, the same one if there were none, and the rows kept.
    """
    if how not in MISSING_CHOICES:
        msg = f"missing must be one of {', '.join(MISSING_CHOICES)}; got {how!r}."
        raise InputError(msg, report)
    rows = np.arange(len(X))
    some = X.dtype.kind == "f" and X.size and np.isnan(X.min())
    gaps = np.isnan(X) if some else np.zeros((0, X.shape[1]), bool)
    counts = gaps.sum(axis=0)
    total = int(counts.sum())
    most = _MOST_NUMBERED if isinstance(names, NumberedNames) else None
    columns = {names[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()[:most]}
    report.update(missing=columns, n_missing=total, filled=0, dropped=0)
    if not columns:
        return X, rows
    empty = counts == len(X)
    keep = ~gaps.any(axis=1)
    msg = ""
    if empty.any() and (least_rows > 1 or how not in ("refuse", "model")):
        shown = few([f"“{shortened(names[j])}”" for j in np.flatnonzero(empty).tolist()])
        msg = f"No cell of column {shown} holds a number; ignore the column or fill it."
    elif how == "refuse":
        listed = few([f"“{shortened(name)}” ({n})" for name, n in columns.items()])
        msg = (
            f"The data have {counted(total, 'missing cell')}, in {listed}; "
            "choose to let the model fill them, to put the column's mean in, or to drop the rows, "
            "or correct the file."
        )
    elif how == "drop" and keep.sum() < least_rows:
        msg = (
            f"Dropping the rows with missing cells would leave {keep.sum()} of {len(X)} rows; "
            "fill the cells with the column's mean, or ignore the columns with most gaps."
        )
    if msg:
        raise InputError(msg, report)
    if how == "drop":
        report["dropped"] = int((~keep).sum())
        return X[keep], rows[keep]
    _check_magnitudes(np.fmin.reduce(X), np.fmax.reduce(X), names, report)
    means = np.nanmean(np.where(empty, 0, X), axis=0, dtype=np.float64)
    report["filled" if how == "mean" else "modelled"] = total
    return np.where(gaps, means.astype(X.dtype), X), rows


def left_to_the_model(X: np.ndarray, how: str) -> np.ndarray | None:
    """Return the cells (N, D) that a data set is to keep as missing; None where there are none.

    `X` is as read, before `settle_missing` has put placeholders in. Pass the result to
    `Dataset(missing=...)`.
    """
    gaps = np.isnan(X) if how == "model" and X.dtype.kind == "f" else None
    return gaps if gaps is not None and gaps.any() else None


def note_quality(
    X: np.ndarray, names: Sequence[str], report: FileReport, least_rows: int = 2
) -> None:
    """Note constant columns and duplicate rows; refuse infinite values and data all the same.

    Rows of which a single one is enough may be all the same, too.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    if X.dtype.kind == "f" and np.isinf([low, high]).any():
        row, column = np.argwhere(np.isinf(X))[0]
        msg = (
            f"“{shortened(names[column])}” is infinite in row {row + 1}; "
            "every value must be a finite number, so correct or remove it."
        )
        raise InputError(msg, report)
    _check_magnitudes(low, high, names, report)
    constant = low == high
    most = _MOST_NUMBERED if isinstance(names, NumberedNames) else None
    report["constant"] = [names[j] for j in np.flatnonzero(constant).tolist()[:most]]
    report["n_constant"] = int(constant.sum())
    report["duplicates"] = duplicate_rows(X)
    if constant.all() and least_rows > 1:
        msg = f"All {counted(len(X), 'row')} are the same; choose data that vary."
        raise InputError(msg, report)


def _check_magnitudes(
    low: np.ndarray, high: np.ndarray, names: Sequence[str], report: FileReport
) -> None:
    """Refuse columns whose squares overflow, or whose variance vanishes."""
    if low.dtype != np.float64:
        return
    with np.errstate(over="ignore"):
        spread = high - low
    large, small = np.maximum(-low, high), np.where(spread > 0, spread, 1)
    for sizes, bad, word in (
        (large, large > _LARGEST, "up to"),
        (small, small < 1 / _LARGEST, "that differ by"),
    ):
        if bad.any():
            j = int(np.argmax(bad))
            msg = (
                f"“{shortened(names[j])}” holds numbers {word} {sizes[j]:.3g}, whose squares are "
                "beyond the range of a computer; give it in another unit, or ignore it."
            )
            raise InputError(msg, report)


def duplicate_rows(X: np.ndarray) -> int:
    """Count the rows that equal an earlier row."""
    return len(X) - distinct(X)


def row_ids(rows: np.ndarray) -> np.ndarray:
    """Return ``row-1`` and so on for row numbers, with no object for each in between."""
    numbers = (rows + 1).astype(f"U{len(str(rows.max(initial=0) + 1))}")
    return np.strings.add("row-", numbers)
