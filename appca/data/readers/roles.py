"""What each column of a table is for: the rows' names, a label, a feature, or nothing."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from appca.data.dataset import are_bytes
from appca.words import InputError, counted, shortened, unknown

ROLES = ("id", "label", "feature", "ignored")
_LABEL_NAME = re.compile(
    r"(label|class|target|species|category|group|cluster|digit|diagnosis|type|y)s?", re.IGNORECASE
)
_ID_NAME = re.compile(r"(.*[ _-])?(id|ids|index|key|name|filename|file)|unnamed: 0", re.IGNORECASE)
_PIXEL_NAME = re.compile(r"(pixel|px|x|p)?[ _]*\d+([x_,]\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2})|(?=\d{1,2}:\d))"
    r"([T ]*\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AP]M)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?",
    re.IGNORECASE,
)
_FEWEST_COUNTED = 8  # rows from which on growing numbers are no accident
FEW = 100  # distinct values up to which a column of whole numbers may be a label
_FEW_CLASSES = 30  # of such a column whose name does not say that it is one
_MOST_LIKELY = 5  # columns that are said to be perhaps labels; more are counts


class Column(NamedTuple):
    """What the guess needs to know of a column."""

    name: str
    named: bool  # the name is in the file
    kind: str  # "number", "text", "date", "mixed" (numbers and words), "long", "list" or "empty"
    distinct: int  # values; 0 in a column of numbers where `counts_matter` says no
    whole: bool  # all numbers are whole
    complete: bool  # no cell is missing
    grows: bool  # whole numbers, each greater than the one above
    example: str = ""  # of the words in a mixed column
    n_odd: int = 0  # how many words a mixed column holds
    low: float = 0.0  # the least and the greatest of whole numbers
    high: float = 0.0


def guess_roles(columns: list[Column], n_rows: int, chosen: dict[str, str]) -> dict[str, str]:
    """Give every column a role; what the person chose stands.

    Raises InputError when a chosen column or role does not exist, when two columns are ids, or when
    a column of numbers holds some words and no role was chosen for it.
    """
    _check_choice(chosen, [column.name for column in columns])
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
        if column.name in roles:
            continue
        if column.kind == "mixed":
            msg = (
                f"Column “{shortened(column.name)}” has {counted(column.n_odd, 'word')} among its "
                f"numbers, “{shortened(column.example)}”; correct that, or make the column a label "
                "or ignored."
            )
            raise InputError(msg)
        constant = wide and _is_constant(column, n_rows)
        left_out = constant or column.name in counters
        roles[column.name] = "ignored" if left_out else _plain_role(column, n_rows)
    if list(roles.values()).count("id") > 1:
        msg = "Only one column can be the id; make the others labels or ignored."
        raise InputError(msg)
    return {column.name: roles[column.name] for column in columns}


def why_left_out(column: Column, n_rows: int) -> str:
    """Say why a column is ignored unless a person wants it otherwise; no words if it is not so."""
    if column.grows:
        return "counts the rows"
    if _is_constant(column, n_rows):
        return "one value"
    reasons = {
        "date": "dates",
        "empty": "empty",
        "list": "lists",
        "long": "long texts",
        "mixed": "numbers and words",
    }
    return reasons.get(column.kind, "")


def likely_labels(
    columns: list[Column], roles: dict[str, str], values_of: Callable[[str], np.ndarray]
) -> dict[str, int]:
    """Return the features that may be labels, with how many values each has.

    They hold few whole numbers, each of them more than once on average, as a group, a batch or a
    population does. Nobody can tell them from counts, so they are features until a person says
    otherwise; where most columns are of that kind, none is named. `values_of` returns a column's
    values by its name.
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
        values = values_of(column.name)
        distinct = len(np.unique(values))
        if distinct <= min(_FEW_CLASSES, len(values) // 3):
            labels[column.name] = distinct
    return labels if len(labels) <= min(_MOST_LIKELY, len(features) // 2) else {}


def label_order(names: list[str], distinct: dict[str, int], n_rows: int) -> list[str]:
    """Put the class first: columns named like one, then others, those without repeats last."""

    def rank(name: str) -> tuple[bool, bool]:
        return distinct[name] >= n_rows, not _LABEL_NAME.fullmatch(name.strip())

    return sorted(names, key=rank)


def image_side(names: list[str], named: bool, X: np.ndarray) -> int | None:
    """Return the side of square images when the features look like their pixels, else None."""
    side = int(np.sqrt(len(names)))
    if side < 8 or side * side != len(names):
        return None
    anonymous = not named or all(_PIXEL_NAME.fullmatch(name.strip()) for name in names)
    return side if anonymous and are_bytes(X) else None


def is_label_name(name: str) -> bool:
    """Whether a column of this name is usually a class or a target."""
    return bool(_LABEL_NAME.fullmatch(name.strip()))


def counts_matter(name: str) -> bool:
    """Whether how many values a column of numbers has can decide its role."""
    name = name.strip()
    return bool(_ID_NAME.fullmatch(name) or _LABEL_NAME.fullmatch(name))


def are_dates(texts: list[str]) -> bool:
    """Whether all texts are dates, times or both."""
    return bool(texts) and all(_DATE.fullmatch(text.strip()) for text in texts)


def _ids_among(columns: list[Column], n_rows: int, counters: set[str]) -> list[str]:
    """Return the columns that may name the rows: those called so first, then words, then counts."""

    def rank(column: Column) -> int | None:
        if not column.complete:
            return None
        unique = column.distinct == n_rows
        if unique and _ID_NAME.fullmatch(column.name.strip()):
            return 0 if column.kind in ("text", "date") or column.whole else None
        if unique and n_rows > 1 and column.kind == "text":
            return None if _LABEL_NAME.fullmatch(column.name.strip()) else 1
        return 2 if column.name in counters else None

    ranked = [(rank(column), j) for j, column in enumerate(columns)]
    return [columns[j].name for _, j in sorted(entry for entry in ranked if entry[0] is not None)]


def _counters(columns: list[Column], n_rows: int) -> set[str]:
    """Return the columns that only count the rows; in a short table, one before all names."""
    if n_rows >= _FEWEST_COUNTED:
        return {column.name for column in columns if column.grows}
    first = columns[0]
    index = n_rows > 1 and first.grows and not first.named and any(each.named for each in columns)
    return {first.name} if index else set()


def _is_constant(column: Column, n_rows: int) -> bool:
    """Whether a column says nothing; of pixels, which have their place in an image, never."""
    pixel = not column.named or _PIXEL_NAME.fullmatch(column.name.strip())
    return n_rows > 1 and column.kind == "number" and column.low == column.high and not pixel


def _plain_role(column: Column, n_rows: int) -> str:
    if column.kind == "empty" and column.named and n_rows == 1:  # of new rows; a gap of this one
        return "feature"
    if column.kind in ("empty", "list", "long", "date"):
        return "ignored"
    if column.kind == "text":
        return "label"
    few = column.whole and column.distinct <= FEW
    return "label" if few and _LABEL_NAME.fullmatch(column.name.strip()) else "feature"


def _check_choice(chosen: dict[str, str], names: list[str]) -> None:
    for name, role in chosen.items():
        if name not in names:
            refusal = unknown("column", name, names)
            raise refusal
        if role not in ROLES:
            msg = f"A role is one of {', '.join(ROLES)}; column “{shortened(name)}” got {role!r}."
            raise InputError(msg)
