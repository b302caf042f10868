"""Which label a component goes with, in a line: "higher for 0s, lower for 1s"."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from appca.analysis.groups.row_query import label_column
from appca.data.dataset import Dataset
from appca.words.wording import shortened

MOST_LABELS, MOST_CLASSES = 8, 60  # columns that are looked at, and classes of one
LEAST = 0.06  # of a score's variance that a label explains, below which nothing is said
APART = 0.5  # standard deviations of a class's mean from all others' before the class is named
NAMED = 2  # classes at each end


class _Label(NamedTuple):
    name: str
    names: tuple[str, ...]  # of its classes; none of a number
    values: np.ndarray  # (N,) codes, or finite numbers


def goes_with(dataset: Dataset, scores: np.ndarray) -> list[str]:
    """Say of each component which classes or numbers have high and low scores; empty where none.

    Scores (N, K) are zero where a row does not use a component.
    """
    labels = list(_labels(dataset))
    spread = scores.std(axis=0, dtype=np.float64)
    centred = (scores - scores.mean(axis=0, dtype=np.float64)) / np.where(spread > 0, spread, 1.0)
    explanations = [_explained(label, centred) for label in labels]
    told = []
    for k in range(scores.shape[1]):
        explained = [shares[k] for shares, _ in explanations]
        best = int(np.argmax(explained)) if explained else 0
        enough = bool(explained) and explained[best] >= LEAST
        told.append(_said(labels[best], explanations[best][1][:, k]) if enough else "")
    return told


def _labels(dataset: Dataset) -> Sequence[_Label]:
    labels = []
    for name, values in list(dataset.labels.items())[:MOST_LABELS]:
        column = label_column(name, values)
        if column.names is not None and 2 <= len(column.names) <= MOST_CLASSES:
            labels.append(_Label(name, column.names, np.asarray(column.values)))
        elif column.names is None:
            numbers = np.asarray(column.values, dtype=np.float64)
            if np.isfinite(numbers).all() and numbers.std() > 0:
                labels.append(_Label(name, (), (numbers - numbers.mean()) / numbers.std()))
    return labels


def _explained(label: _Label, centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of each score's variance, and class means (C, K) or correlations (1, K)."""
    if not label.names:
        r = label.values @ centred / len(centred)
        return r**2, r[None]
    labelled = label.values >= 0
    codes = label.values[labelled]
    sums = np.zeros((len(label.names), centred.shape[1]))
    np.add.at(sums, codes, centred[labelled])
    counts = np.bincount(codes, minlength=len(label.names))[:, None]
    means = sums / np.maximum(counts, 1)
    return (means**2 * counts).sum(axis=0) / len(centred), means


def _said(label: _Label, slopes: np.ndarray) -> str:
    if not label.names:
        way = "rises" if slopes[0] > 0 else "falls"
        return f"{way} with {shortened(label.name)}"
    order = np.argsort(-slopes, kind="stable")
    high = [label.names[c] for c in order[:NAMED] if slopes[c] >= APART]
    low = [label.names[c] for c in order[::-1][:NAMED] if slopes[c] <= -APART]
    ends = (("higher", high), ("lower", low))
    return ", ".join(f"{way} for {_joined(names)}" for way, names in ends if names)


def _joined(names: Sequence[str]) -> str:
    """Join classes; a class that is one letter or digit reads better as several: "0s and 6s"."""
    return " and ".join(
        f"{name}s" if len(name) == 1 and name.isalnum() else shortened(name, 24) for name in names
    )
