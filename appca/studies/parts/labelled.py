"""Labelled data for a classifier, by name: values, codes of the classes, and folds."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.data.dataset import MISSING, Dataset, categories
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.readers import read
from appca.data.sources.builtin import SOURCES, load
from appca.data.store import DatasetStore
from appca.words.errors import InputError

LEAST_FOLDS = 2


class Labelled(NamedTuple):
    """Rows of known class."""

    name: str
    X: np.ndarray  # (N, D) as they were read
    y: np.ndarray  # (N,) codes of the classes
    names: tuple[str, ...]  # of the classes
    preprocessing: Preprocessing  # fitted to the training rows of a fold, never to all


class LabelledFold(NamedTuple):
    """One division of the rows, preprocessed."""

    X: np.ndarray  # (n, D) float32, to learn from
    y: np.ndarray
    X_test: np.ndarray  # (m, D)
    y_test: np.ndarray


@lru_cache(maxsize=1)
def labelled(source: str, n_rows: int, column: str = "") -> Labelled:
    """Open labelled data and keep at most the first `n_rows` rows of known class.

    The source is a built-in data set, a file, or the folder of a stored data set; `column` the
    labels with the classes, the first ones if empty. Raises InputError when the data cannot be had
    or have no classes.
    """
    return classified(_opened(source, n_rows), n_rows, column)


def _opened(source: str, n_rows: int) -> Dataset:
    if source in SOURCES:
        return load(source, n=n_rows) if source == "mnist" else load(source)
    path = Path(source).expanduser()
    if path.is_dir():
        return DatasetStore(path.parent.parent).get(path.name)
    if not path.is_file():
        msg = (
            f"“{source}” is neither a file nor a built-in data set; the built-in ones are "
            f"{', '.join(SOURCES)}."
        )
        raise InputError(msg)
    return read(path.name, path)


def classified(dataset: Dataset, n_rows: int, column: str = "") -> Labelled:
    """Take the first rows of known class; see `labelled`."""
    if not dataset.labels:
        msg = f"“{dataset.name}” has no labels, and a classifier needs a class for every row."
        raise InputError(msg)
    if column and column not in dataset.labels:
        msg = (
            f"“{dataset.name}” has no column of labels called “{column}”; choose among "
            f"{', '.join(dataset.labels)}."
        )
        raise InputError(msg)
    names, codes = categories(dataset.labels[column or next(iter(dataset.labels))])
    has_class = np.flatnonzero(codes != names.index(MISSING)) if MISSING in names else codes >= 0
    X, codes = dataset.X[has_class][:n_rows], codes[has_class][:n_rows]
    there, y = np.unique(codes, return_inverse=True)
    if len(there) < 2:
        msg = f"“{dataset.name}” has fewer than two classes, so there is nothing to distinguish."
        raise InputError(msg)
    return Labelled(dataset.name, X, y, tuple(names[code] for code in there), suggest(dataset))


def folds(data: Labelled, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide the rows (train, test), each class evenly.

    Raises InputError for fewer than two folds, or more than the rarest class has rows.
    """
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(data.y)
    if n_folds < LEAST_FOLDS or counts.min() < n_folds:
        msg = (
            f"folds must lie between {LEAST_FOLDS} and the {counts.min():,} rows of the rarest "
            f"class, “{data.names[int(counts.argmin())]}”; got {n_folds}."
        )
        raise InputError(msg)
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(data.X, data.y))


def fold(data: Labelled, n_folds: int, seed: int, number: int) -> LabelledFold:
    """Give one of the folds, preprocessed as its training rows ask for."""
    train, test = folds(data, n_folds, seed)[number]
    fitted = data.preprocessing.fit(data.X[train])
    X, X_test = (np.asarray(fitted.transform(data.X[rows]), np.float32) for rows in (train, test))
    return LabelledFold(X, data.y[train], X_test, data.y[test])
