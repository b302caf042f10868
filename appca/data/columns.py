"""Columns of a data set: names of classes, columns of other files, chosen rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import MISSING, Dataset, are_bytes, categories
from appca.words import InputError, counted, listed, shortened


class Wanted(NamedTuple):
    """What rows must look like to stand beside those of a data set."""

    n_features: int
    names: tuple[str, ...] | None = None
    image_shape: tuple[int, ...] | None = None
    dtype: np.dtype | None = None  # of the values the data set holds
    image_range: tuple[float, float] | None = None  # drawn as black and as white


class Matched(NamedTuple):
    """New rows, brought into the columns wanted."""

    dataset: Dataset
    by_name: bool  # columns were found by their names; else they were taken in order
    reordered: bool  # the file has them in another order
    ignored: tuple[str, ...]  # columns of the file that were not wanted


def wanted_by(dataset: Dataset) -> Wanted:
    """Return what new rows must look like to stand beside those of a data set."""
    images = dataset.image_shape is not None
    return Wanted(
        dataset.n_features,
        dataset.feature_names,
        dataset.image_shape,
        dataset.X.dtype,
        dataset.image_range if images else None,
    )


def matched(new: Dataset, wanted: Wanted) -> Matched:
    """Bring new rows into the columns of a data set, and their values into its type.

    Columns are found by name when both sides have names: their order does not matter, others are
    left out, and numbers that were read as a label are taken from there. Without names there must
    be as many, in the same order. Images must have the same size. Raises InputError where they do
    not match.
    """
    if new.image_shape and wanted.image_shape and new.image_shape != wanted.image_shape:
        msg = (
            f"The images of “{shortened(new.name)}” have {_pixels(new.image_shape)}, those of the "
            f"fit {_pixels(wanted.image_shape)}; bring them to that size when they are read."
        )
        raise InputError(msg)
    old, names = wanted.names, new.feature_names
    images = wanted.image_shape is not None and wanted.image_shape == new.image_shape
    pixels = images and not set(old or ()) & set(names or ())  # in order, named in two ways
    if old is not None and names is not None and not pixels:
        return _by_name(new, wanted)
    if new.n_features != wanted.n_features:
        msg = (
            f"“{shortened(new.name)}” has {counted(new.n_features, 'feature')}, but the fit uses "
            f"{counted(wanted.n_features, 'feature')}; give the same columns, in the "
            "same order or with the same names."
        )
        raise InputError(msg)
    return Matched(_built(new, wanted, new.X, new.labels), False, False, ())


def roles_for(report: Mapping[str, Any], wanted: Wanted) -> dict[str, str]:
    """Return the roles with which a table must be read again to give what is wanted; usually none.

    A reader guesses what a column is for by its values, so in another file it may take a wanted
    column for an id or a label, and an unknown one, perhaps with gaps, for a feature. Its `report`
    has ``roles`` where it knows them.
    """
    features, roles = set(wanted.names or ()), report.get("roles")
    if not features or roles is None or not features <= set(roles):
        return {}
    return {
        name: "feature" if name in features else "ignored"
        for name, role in roles.items()
        if (name in features) != (role == "feature")
    }


def read_as(read: Callable[[dict[str, str]], Dataset], wanted: Wanted) -> Matched:
    """Read rows that shall stand beside others, with the roles of their columns as those need them.

    `read` reads the file, with roles by name of the column. Fails as it does, or as `matched`.
    """
    roles: dict[str, str] = {}
    while True:  # each round decides the role of at least one column; one is usually enough
        try:
            new = read(roles)
        except InputError as error:
            more = roles_for(error.report or {}, wanted)
            if more.keys() <= roles.keys():
                raise
        else:
            report = new.provenance.get("report", {})
            more = roles_for(report, wanted)
            if "feature" not in more.values() and not (more and report.get("missing")):
                break
        roles |= more
    columns = matched(new, wanted)
    left_out = dict.fromkeys(report.get("left_out", ()))
    return columns._replace(ignored=tuple(left_out | dict.fromkeys(columns.ignored)))


def _by_name(new: Dataset, wanted: Wanted) -> Matched:
    names = wanted.names or ()
    place = {name: j for j, name in enumerate(new.feature_names or ())}
    numbers = {name for name, column in new.labels.items() if column.dtype.kind in "buif"}
    missing = [name for name in names if name not in place and name not in numbers]
    if missing:
        msg = (
            f"“{shortened(new.name)}” lacks {counted(len(missing), 'column')} that the fit uses, "
            f"{listed(missing)}; add them, or name them as there."
        )
        raise InputError(msg)
    order = [place.get(name, -1) for name in names]
    if order == list(range(new.n_features)):
        return Matched(_built(new, wanted, new.X, new.labels), True, False, ())
    X = _columns(new, names, order)
    if new.missing is not None:
        gaps = new.missing[:, order] & (np.array(order) >= 0)  # labels have no gaps
        new = replace(new, X=X, feature_names=names, image_shape=None, missing=gaps)
    labels = {name: column for name, column in new.labels.items() if name not in set(names)}
    ignored = tuple(name for name in place if name not in set(names))
    places = [j for j in order if j >= 0]
    return Matched(_built(new, wanted, X, labels), True, places != sorted(places), ignored)


def _columns(new: Dataset, names: tuple[str, ...], order: list[int]) -> np.ndarray:
    """Columns by place, or from the labels where there is none."""
    if min(order) >= 0:
        return new.X[:, order]
    X = new.X[:, order].astype(np.float64)
    for j in (j for j, place in enumerate(order) if place < 0):
        X[:, j] = new.labels[names[j]]
    return X


def _built(new: Dataset, wanted: Wanted, X: np.ndarray, labels: dict[str, np.ndarray]) -> Dataset:
    kept = dict(new.provenance)
    if wanted.image_range is not None:
        kept["image_range"] = list(wanted.image_range)  # drawn as the run's own images are
    return replace(
        new,
        X=_in_type(X, wanted.dtype),
        labels=labels,
        image_shape=wanted.image_shape,
        feature_names=wanted.names,
        provenance=kept,
    )


def _in_type(X: np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    """Values in the run's type, so that the same rows give the same bits; never cut to bytes."""
    if dtype is None or X.dtype == dtype or (dtype == np.uint8 and not are_bytes(X)):
        return X
    return X.astype(dtype)


def _pixels(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} × {shape[1]} pixels{' in colour' if len(shape) == 3 else ''}"


LONGEST = 60  # characters of a name
_SEPARATORS = "\t,;="


def renamed(dataset: Dataset, names: Mapping[str, Mapping[str, str]]) -> Dataset:
    """Return a data set whose classes have other names, with the digest of the stored one.

    `names` maps a label column to a mapping from class to new name; two classes may become one.
    The classes stay in their order, and so in their colours.
    """
    labels, order = dict(dataset.labels), {}
    for label in labels.keys() & names.keys():
        classes, codes = categories(labels[label])
        now = {MISSING: "", **names[label]}
        names_now = [now.get(name, name) for name in classes]
        labels[label], order[label] = np.array(names_now)[codes], list(dict.fromkeys(names_now))
    noted = dataset.provenance | {"class_order": order}
    other = replace(dataset, labels=labels, provenance=noted)
    other.__dict__["digest"] = dataset.digest  # fits, selections and links go on
    return other


def names_in(text: str, classes: Sequence[str]) -> dict[str, str]:
    """Read names of classes: a line each in the order of `classes`, or old and new name in a line.

    Raises InputError where there are fewer lines than classes, or a line names no class.
    """
    lines = [line.strip() for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    pairs = [_pair(line, classes) for line in lines]
    if pairs and all(pairs):
        return dict(pair for pair in pairs if pair)
    if len(lines) != len(classes):
        msg = (
            f"The file has {counted(len(lines), 'line')} and the label {len(classes):,} classes; "
            f"give one name a line, or lines such as “{shortened(classes[0], 20)},new name”."
        )
        raise InputError(msg)
    return {old: tidy(new) for old, new in zip(classes, lines, strict=True)}


def tidy(name: str) -> str:
    """Return a name as it is kept."""
    return shortened(" ".join(name.split()), LONGEST)


def _pair(line: str, classes: Sequence[str]) -> tuple[str, str] | None:
    for separator in _SEPARATORS:
        old, mark, new = line.partition(separator)
        if mark and old.strip() in classes and new.strip():
            return old.strip(), tidy(new)
    return None


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
