"""Rows by a rule on one column: a class, a value, or a place in the order of all values."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, cast

import numpy as np

from appca.analysis.components.components import name_of
from appca.analysis.explore.subspaces import supports
from appca.analysis.fitted import DescribedRows, FittedModel, FittedRun
from appca.data.dataset import Dataset, categories
from appca.words.errors import InputError

MOST_FEATURES = 1000  # that are offered by name at once
FEW_INTEGERS = 20  # whole numbers with at most so many different values are classes
MEASURES = {
    "residual": "error",
    "membership": "membership",
    "likelihood": "log_likelihood_rows",
}
CHANNELS = ("red", "green", "blue")
OF_CLASSES = {"is": "is one of", "is not": "is none of"}
OF_NUMBERS = {
    "above": "is above",
    "below": "is below",
    "highest": "is among the highest, %",
    "lowest": "is among the lowest, %",
}


class RowValues(NamedTuple):
    """Something that every row has: a class or a number."""

    name: str
    values: np.ndarray  # (N,) numbers, or codes into names
    names: tuple[str, ...] | None = None  # of the classes; None for numbers


def names_of(dataset: Dataset, fitted: FittedRun, wanted: str = "") -> dict[str, str]:
    """Return what a rule can be about, key to name: labels, the model's measures, features.

    Of very many features, the first `MOST_FEATURES` are named that hold the text `wanted`.
    """
    names = {f"label:{name}": name for name in dataset.labels}
    names["subspace"] = "subspace"
    names |= {key: key for key in MEASURES}
    n_components = fitted.scores.shape[1]
    names |= {f"score:{k}": score_name(fitted, k) for k in range(n_components)}
    if dataset.image_shape is None:
        text = wanted.casefold()
        features = (
            (j, name) for j, name in enumerate(dataset.column_names) if text in name.casefold()
        )
        names |= {f"feature:{j}": name for j, name in islice(features, MOST_FEATURES)}
    return names


def score_name(model: FittedModel, k: int) -> str:
    """Return what the score on component k, counted from 0, is called."""
    return f"score on {name_of(model, k)}"


def column_of(dataset: Dataset, fitted: FittedRun, key: str) -> RowValues:
    """Return the column a key of `names_of` stands for.

    A row that does not use a component has no score on it: NaN, not the zero that is stored.
    """
    kind, _, rest = key.partition(":")
    if kind == "label":
        return label_column(rest, dataset.labels[rest])
    if kind == "subspace":
        return subspace_column(fitted.active)
    if kind == "score":
        k = int(rest)
        scores = np.where(fitted.active[:, k], fitted.scores[:, k], np.nan)
        return RowValues(score_name(fitted, k), scores)
    if kind == "feature":
        return feature_column(dataset, int(rest))
    return RowValues(kind, measure(fitted, kind))


def measure(rows: DescribedRows, kind: str) -> np.ndarray:
    """Return one number a row, (N,), by a key of `MEASURES`."""
    return np.asarray(getattr(rows, MEASURES[kind]))


def feature_column(dataset: Dataset, j: int) -> RowValues:
    """Return a feature as numbers, NaN where its cell is missing."""
    values = dataset.X[:, j]
    if dataset.missing is not None:
        values = np.where(dataset.missing[:, j], np.nan, values)
    return RowValues(feature_name(dataset, j), values)


def feature_name(dataset: Dataset, j: int) -> str:
    """Return a feature's own name, a pixel's place counted from 1 at the top left, or a number."""
    if dataset.feature_names is not None:
        return dataset.feature_names[j]
    if dataset.image_shape is None:
        return f"feature {j + 1}"
    row, column, *channel = np.unravel_index(j, dataset.image_shape)
    shade = f", {CHANNELS[channel[0]]}" if channel else ""
    return f"pixel row {row + 1}, column {column + 1}{shade}"


def label_column(name: str, values: np.ndarray) -> RowValues:
    """Return a label as classes where it is text or has few whole numbers, else as numbers."""
    few = values.dtype.kind in "iub" and len(np.unique(values)) <= FEW_INTEGERS
    if values.dtype.kind == "U" or few:
        names, codes = categories(values)
        return RowValues(name, codes, tuple(names))
    return RowValues(name, values)


def subspace_column(active: np.ndarray) -> RowValues:
    """Return which subspace each row lies in, the fullest first."""
    codes, names = supports(active)
    return RowValues("subspace", codes, tuple(names))


def matching(column: RowValues, relation: str, value: float | Sequence[str]) -> np.ndarray:
    """Return the rows that a rule holds for, (N,) bool.

    `relation` is a key of `OF_CLASSES` for classes, which `value` names, and of `OF_NUMBERS` for
    numbers: "highest" 5 are the rows above the 95% quantile. Raises InputError when it does not
    suit the column, or a share is not one.
    """
    rules = OF_NUMBERS if column.names is None else OF_CLASSES
    if relation not in rules:
        kind = "numbers" if column.names is None else "classes"
        msg = f"“{column.name}” has {kind}, so a rule is one of {', '.join(rules)}; got {relation}."
        raise InputError(msg)
    if column.names is not None:
        chosen = (value,) if isinstance(value, float | int) else value
        wanted = [code for code, name in enumerate(column.names) if name in chosen]
        return np.isin(column.values, wanted, invert=relation == "is not")
    values = np.asarray(column.values, dtype=np.float64)
    limit = float(cast("float", value))
    if relation in ("highest", "lowest"):
        limit = _quantile(values, relation, limit)
    with np.errstate(invalid="ignore"):  # a missing value is neither above nor below
        return values > limit if relation in ("above", "highest") else values < limit


def _quantile(values: np.ndarray, relation: str, percent: float) -> float:
    if not 0 < percent < 100:
        msg = f"A share of the rows lies between 0 and 100%; got {percent:g}."
        raise InputError(msg)
    there = values[np.isfinite(values)]
    if not len(there):
        return np.inf if relation == "highest" else -np.inf
    return float(np.percentile(there, 100 - percent if relation == "highest" else percent))
