"""Match the columns of new rows, rename classes, and select rows by a condition."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from appca.data.dataset import MISSING, Dataset, are_bytes, categories
from appca.data.files import explained
from appca.frames import class_names, numbers_of
from appca.words import InputError, counted, listed, refuse_if, refuse_unknown, shortened


class Wanted(NamedTuple):
    """Columns and types that new rows need for a comparison with a data set."""

    n_features: int
    names: tuple[str, ...] | None = None
    image_shape: tuple[int, ...] | None = None
    dtype: np.dtype | None = None  # dtype of the stored values
    image_range: tuple[float, float] | None = None  # values displayed as black and as white


class Matched(NamedTuple):
    """New rows with the wanted columns."""

    dataset: Dataset
    by_name: bool  # columns were matched by name, not by order
    reordered: bool  # the file has a different column order
    ignored: tuple[str, ...]


def wanted_by(dataset: Dataset) -> Wanted:
    """Return the columns that new rows need to be compared with a data set."""
    names, shape, X = dataset.feature_names, dataset.image_shape, dataset.X
    return Wanted(X.shape[1], names, shape, X.dtype, dataset.image_range if shape else None)


def matched(new: Dataset, wanted: Wanted) -> Matched:
    """Match new rows to the columns of a data set, and convert their values to its type.

    If both sides have names, columns are matched by name, others are left out, and a wanted column
    that became a numeric label is used; else there must be as many. Images must have the same size.
    Raises InputError if columns do not match.
    """
    title, names, shape = shortened(new.name), new.feature_names, new.image_shape
    shapes = [each for each in (shape, wanted.image_shape) if each]
    sides = [f"{h} × {w} pixels{' in colour' * len(rest)}" for h, w, *rest in shapes]
    msg = f"The images of “{title}” have {', those of the fit '.join(sides)}; resize them when "
    msg += "you open the file."
    refuse_if(len(set(shapes)) > 1, msg)
    X, labels, missing, order = new.X, dict(new.labels), new.missing, [0]
    ignored: tuple[str, ...] = ()
    wishes, has = wanted.names or (), names or ()
    by_name = wanted.names is not None and names is not None
    if shape and shape == wanted.image_shape:  # pixels with different names have the same order
        by_name &= bool({*wishes} & {*has})
    if by_name:
        place = {name: j for j, name in enumerate(has)}
        numbers = {name for name, column in labels.items() if column.dtype.kind in "buif"}
        lacking = [name for name in wishes if name not in place.keys() | numbers]
        msg = f"“{title}” lacks {counted(len(lacking), 'column')} that the fit uses, "
        msg += f"{listed(lacking)}; add them, empty if not measured, or rename columns to match."
        refuse_if(lacking, msg)
        places = np.array([place.get(name, -1) for name in wishes])
        order = places[places >= 0].tolist()
        if order != list(range(new.n_features)) or len(order) < len(places):
            dtype = X.dtype if len(order) == len(places) else np.float64
            X = X[:, places].astype(dtype, copy=False)
            for j in np.flatnonzero(places < 0):
                X[:, j] = labels[wishes[j]]
            missing = None if missing is None else missing[:, places] & (places >= 0)
            labels = {name: column for name, column in labels.items() if name not in wishes}
            ignored = tuple(name for name in place if name not in wishes)
    refuse_if(
        X.shape[1] != wanted.n_features,
        f"“{title}” has {counted(X.shape[1], 'feature')}, but the fit uses "
        f"{counted(wanted.n_features, 'feature')}; give the same columns, in the same order or "
        "with the same names.",
    )
    if wanted.dtype is not None and (wanted.dtype != np.uint8 or are_bytes(X)):
        X = X.astype(wanted.dtype, copy=False)  # equal rows then have equal bits
    white = {} if wanted.image_range is None else {"image_range": list(wanted.image_range)}
    parts: dict[str, Any] = {"X": X, "labels": labels, "missing": missing}
    parts |= {"provenance": new.provenance | white}
    dataset = replace(new, image_shape=wanted.image_shape, feature_names=wanted.names, **parts)
    return Matched(dataset, by_name, order != sorted(order), ignored)


def read_as(read: Callable[[dict[str, str]], Dataset], wanted: Wanted) -> Matched:
    """Read new rows with the column roles of the data set they are compared with.

    A reader guesses roles from values, so it may guess other roles in another file: a feature of
    the data set may become a label there. `read` reads the file with the given roles by column
    name. Raises the errors of `read` and `matched`.
    """
    features = set(wanted.names or ())
    roles: dict[str, str] = {}
    while True:
        refusal = None
        try:
            new = read(roles)
            report = new.provenance.get("report", {})
        except InputError as error:
            refusal, report = error, error.report or {}
        guessed = report.get("roles") or {}
        more = {
            name: "feature" if name in features else "ignored"
            for name, role in guessed.items()
            if features and features <= set(guessed) and (name in features) != (role == "feature")
        }
        if refusal is not None and more.keys() <= roles.keys():
            raise refusal
        has_gaps = bool(more and report.get("missing"))
        if refusal is None and not has_gaps and "feature" not in more.values():
            break
        roles |= more
    columns, left_out = matched(new, wanted), dict.fromkeys(report.get("left_out", ()))
    return columns._replace(ignored=tuple(left_out | dict.fromkeys(columns.ignored)))


def renamed(dataset: Dataset, names: Mapping[str, Mapping[str, str]]) -> Dataset:
    """Return a data set with renamed classes, but the digest of the stored one.

    `names` maps a label column to a mapping from class to new name; two classes may be merged.
    Classes keep their order and colours.
    """
    labels, order = dict(dataset.labels), {}
    for label in labels.keys() & names.keys():
        classes, codes = categories(labels[label])
        names_now = [{MISSING: "", **names[label]}.get(name, name) for name in classes]
        labels[label], order[label] = np.array(names_now)[codes], list(dict.fromkeys(names_now))
    other = replace(dataset, labels=labels, provenance=dataset.provenance | {"class_order": order})
    other.__dict__["digest"] = dataset.digest  # fits, selections and links remain valid
    return other


NAME_LENGTH = 60


def tidy(name: str) -> str:
    """Return a name in its stored form: one line of at most `NAME_LENGTH` characters."""
    return shortened(name, NAME_LENGTH)


_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CONDITION = re.compile(r"(.+?)\s*(<=|>=|!=|==|=|<|>)\s*(.*)")


def meeting(condition: str, dataset: Dataset) -> np.ndarray:
    """Return a mask (N,) of rows that meet COLUMN RELATION VALUE; missing values meet only !=."""
    if (parts := _CONDITION.fullmatch(condition.strip())) is None:
        msg = f"A condition is like 'alcohol>12' or kind=red,white; got “{shortened(condition)}”."
        raise InputError(msg)
    name, relation, value = parts.groups()
    features = dict(zip(dataset.column_names, dataset.with_gaps().T, strict=True))
    columns = features | dataset.labels | {"id": dataset.ids}
    refuse_unknown("column", name, columns)
    if relation in _ORDERS:
        msg = f"“{shortened(condition)}” must have a number after {relation}; write one."
        with explained(msg, ValueError):
            limit = float(value)
        return np.asarray(_ORDERS[relation](numbers_of(columns[name]), limit))
    is_text = np.asarray(columns[name]).dtype.kind == "U"
    names = columns[name] if is_text else class_names(columns[name])
    equal = np.isin(names, [value]) if value in names else np.isin(names, value.split(","))
    return ~equal if relation == "!=" else equal
