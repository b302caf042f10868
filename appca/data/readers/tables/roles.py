"""What each column of a table is for: the rows' names, a label, a feature, or nothing."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from appca.data.readers.intake import are_bytes
from appca.storage.errors import InputError, unknown
from appca.storage.wording import counted, shortened

ROLES = ("id", "label", "feature", "ignored")
_LABEL_NAME = re.compile(
    r"(label|class|target|species|category|group|cluster|digit|diagnosis|type|y)s?", re.IGNORECASE
)
_ID_NAME = re.compile(r"(.*[ _-])?(id|ids|index|key|name|filename|file)|unnamed: 0", re.IGNORECASE)
_PIXEL_NAME = re.compile(r"(pixel|px|x|p)?[ _]*\d+([x_,]\d+)?", re.IGNORECASE)
FEW = 100  # distinct values up to which a column of whole numbers may be a label
_FEW_CLASSES = 30  # of such a column whose name does not say that it is one
_MOST_LIKELY = 5  # columns that are said to be perhaps labels; more are counts


class Column(NamedTuple):
    """What the guess needs to know of a column."""

    name: str
    named: bool  # the name is in the file
    kind: str  # "number", "text", "mixed" (numbers and words), "long", "list" or "empty"
    distinct: int  # values; 0 in a column of numbers where `counts_matter` says no
    whole: bool  # all numbers are whole
    complete: bool  # no cell is missing
    counts: bool  # 0, 1, 2, ... or 1, 2, 3, ...
    example: str = ""  # of the words in a mixed column
    n_odd: int = 0  # how many words a mixed column holds
    low: float = 0.0  # the least and the greatest of whole numbers
    high: float = 0.0


def guess_roles(columns: list[Column], n_rows: int, chosen: dict[str, str]) -> dict[str, str]:
    """Give every column a role; what the person chose stands.

    Raises
    ------
    InputError
        When a chosen column or role does not exist, when two columns are ids, or when a column of
        numbers holds some words and no role was chosen for it.
    """
    _check_choice(chosen, [column.name for column in columns])
    roles = dict(chosen)
    free = "id" not in roles.values()
    for j, column in enumerate(columns):
        if column.name in roles:
            continue
        if free and column.distinct == n_rows and column.complete and _is_id(column, j, n_rows):
            roles[column.name] = "id"
            free = False
        elif column.kind == "mixed":
            msg = (
                f"Column “{shortened(column.name)}” has {counted(column.n_odd, 'word')} among its "
                f"numbers, “{shortened(column.example)}”; correct that, or make the column a label "
                "or ignored."
            )
            raise InputError(msg)
        else:
            roles[column.name] = _plain_role(column)
    if list(roles.values()).count("id") > 1:
        msg = "Only one column can be the id; make the others labels or ignored."
        raise InputError(msg)
    return {column.name: roles[column.name] for column in columns}


def likely_labels(
    columns: list[Column], roles: dict[str, str], values_of: Callable[[str], np.ndarray]
) -> dict[str, int]:
    """Return the features that may be labels, with how many values each has.

    They hold few whole numbers, each of them more than once on average, as a group, a batch or a
    population does. Nobody can tell them from counts, so they are features until a person says
    otherwise; where most columns are of that kind, none is named.

    Parameters
    ----------
    columns : list of Column
    roles : dict of str to str
    values_of : callable
        Returns a column's values by its name.
    """
    features = [column for column in columns if roles[column.name] == "feature"]
    narrow = [
        column
        for column in features
        if column.whole and column.complete and 1 <= column.high - column.low < FEW
    ]
    if len(narrow) > 2 * _MOST_LIKELY:
        return {}
    found = {}
    for column in narrow:
        values = values_of(column.name)
        distinct = len(np.unique(values))
        if distinct <= min(_FEW_CLASSES, len(values) // 3):
            found[column.name] = distinct
    return found if len(found) <= min(_MOST_LIKELY, len(features) // 2) else {}


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


def counts_matter(name: str, position: int) -> bool:
    """Whether how many values a column of numbers has can decide its role."""
    name = name.strip()
    return position == 0 or bool(_ID_NAME.fullmatch(name) or _LABEL_NAME.fullmatch(name))


def _is_id(column: Column, position: int, n_rows: int) -> bool:
    if _ID_NAME.fullmatch(column.name.strip()):
        return column.kind == "text" or column.whole
    if n_rows < 2:  # that its values differ says nothing
        return False
    if column.kind == "text":
        return not _LABEL_NAME.fullmatch(column.name.strip())
    return position == 0 and not column.named and column.counts


def _plain_role(column: Column) -> str:
    if column.kind == "empty":
        return "feature" if column.named else "ignored"
    if column.kind in ("list", "long"):
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
