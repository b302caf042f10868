"""Whitening and classifying inside each subspace of aPPCA."""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.studies.study import Options

BATCH, LEAST_BATCH = 200, 32  # rows of a step of the optimiser
LEAST_ROWS = 100  # of a subspace that gets a classifier of its own


class Scores(NamedTuple):
    """Projections of rows by aPPCA."""

    H: np.ndarray  # (N, K) whitened scores, 0 where inactive
    Z: np.ndarray  # (N, K) bool


def whitened_within(train: Scores, test: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Make scores uncorrelated, of mean 0 and variance 1, inside each subspace; (N, K) and (M, K).

    The coordinates are turned as little as possible (the symmetric root), so that a coordinate
    means nearly the same in all subspaces. Mean and covariance of a subspace are drawn towards 0
    and the identity by as many rows as twice its dimensions. Rows of `test` in a subspace that
    `train` does not have stay as they are.
    """
    H, H_test = np.zeros_like(train.H), test.H.copy()
    for members, others, active in subspaces(train, test):
        scores = train.H[np.ix_(members, active)].astype(np.float64)
        n, L = scores.shape
        prior = 2.0 * L
        mean = scores.sum(axis=0) / (n + prior)
        centred = scores - mean
        covariance = (centred.T @ centred + prior * np.eye(L)) / (n + prior)
        values, vectors = np.linalg.eigh(covariance)
        root = (vectors / np.sqrt(values)) @ vectors.T
        H[np.ix_(members, active)] = (scores - mean) @ root
        H_test[np.ix_(others, active)] = (test.H[np.ix_(others, active)] - mean) @ root
    return H, H_test


def subspaces(train: Scores, test: Scores) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, for each set in `train`: its rows there, its rows in `test`, its components."""
    sets, codes = np.unique(train.Z, axis=0, return_inverse=True)
    for number, chosen in enumerate(sets):
        others = np.flatnonzero((chosen == test.Z).all(axis=1))
        yield np.flatnonzero(codes.ravel() == number), others, np.flatnonzero(chosen)


def predict(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, options: Options, n_all: int | None = None
) -> np.ndarray:
    """Train a perceptron with one hidden layer on (n, d); predict the classes of `X_test` (m, d).

    The options are hidden (units), epochs and seed. Where X is a part of `n_all` rows, it gets as
    many steps as the whole would.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    n, whole = len(X), n_all or len(X)
    batch = min(n, max(LEAST_BATCH, BATCH * n // whole))
    steps = options["epochs"] * -(-whole // BATCH)
    network = MLPClassifier(
        (options["hidden"],),
        batch_size=batch,
        max_iter=max(1, round(steps / -(-n // batch))),
        random_state=options["seed"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # all get the same number of steps
        return np.asarray(network.fit(X, y).predict(X_test))


def predict_each(
    train: Scores, y: np.ndarray, test: Scores, joint: np.ndarray, options: Options
) -> np.ndarray:
    """Classify by a perceptron of its own in every subspace.

    Small subspaces, and those of a single class that others may contradict, keep the prediction
    `joint` (M,) of the classifier of all rows.
    """
    answer = joint.copy()
    for members, others, active in subspaces(train, test):
        classes = y[members]
        if len(others) and len(members) >= LEAST_ROWS and len(np.unique(classes)) > 1:
            X, X_test = train.H[np.ix_(members, active)], test.H[np.ix_(others, active)]
            answer[others] = predict(X, classes, X_test, options, len(y))
    return answer
