"""Which rows to keep: the first n, the first n of each class, or chosen classes."""

from collections.abc import Iterable, Sequence

import numpy as np

from appca.data.dataset import categories
from appca.words.errors import InputError


def choose_rows(
    column: np.ndarray,
    first: int | None = None,
    per_class: int | None = None,
    classes: Sequence[object] | None = None,
) -> np.ndarray:
    """Choose rows by their class (N,), in file order; returns rising row numbers.

    Of `classes`, named as in `categories`, or all, the first `per_class` rows each are kept, or
    all; of these the first `first`, or all.
    """
    names, codes = categories(column)
    wanted = names if classes is None else _known(classes, names)
    rows_of = {name: np.flatnonzero(codes == names.index(name)) for name in wanted}
    for what, count in (("rows of each class", per_class), ("rows", first)):
        whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
        if count is not None and not (whole and count >= 1):
            msg = f"The number of {what} must be a whole number from 1 on; got {count!r}."
            raise InputError(msg)
    if per_class is not None:
        small = min(rows_of, key=lambda name: len(rows_of[name]))
        if len(rows_of[small]) < per_class:
            msg = (
                f"{per_class} rows of each class were asked for, but class {small} has "
                f"{len(rows_of[small])}; ask for at most that many."
            )
            raise InputError(msg)
    return np.sort(np.concatenate([members[:per_class] for members in rows_of.values()]))[:first]


def options_of(
    n: int | None, per_class: int | None, classes: Sequence[object] | None
) -> dict[str, object]:
    """Return the options of `choose_rows`, JSON-able, as a source records them."""
    named = None if classes is None else [str(name) for name in classes]
    return {"n": n, "per_class": per_class, "classes": named}


def check_first(n: int | None, total: int, owns: str) -> None:
    """Refuse a number of first rows that makes no data set; `owns` says how many rows there are."""
    if n is None:
        return
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 2 <= n <= total:
        msg = f"{owns}, so n must be a whole number from 2 to {total:,}; got {n!r}."
        raise InputError(msg)


def in_words(
    n_rows: int, per_class: int | None, classes: Sequence[object] | None, rows: str, groups: str
) -> str:
    """Return what a subset of `n_rows` rows is, for the name of its data set.

    It was chosen as by `choose_rows`. `rows` and `groups` are what rows and classes are, in the
    plural: "views" of "objects".
    """
    which = groups if classes is None else f"{groups} {', '.join(map(str, classes))}"
    if per_class is not None:
        return f"{which}, {per_class:,} each"
    return f"{n_rows:,} {rows}" if classes is None else f"{n_rows:,} of {which}"


def _known(classes: Sequence[object], names: list[str]) -> list[str]:
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        msg = f"Classes are given as a list, such as [{', '.join(names[:2])}]; got {classes!r}."
        raise InputError(msg)
    wanted = list(dict.fromkeys(str(name) for name in classes))
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
        got = ", ".join(unknown[:5]) or "none"
        msg = f"Choose classes among {shown}; got {got}."
        raise InputError(msg)
    return wanted
