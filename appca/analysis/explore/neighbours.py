"""Nearest rows of every row: exact by scikit-learn, of very many rows nearly so by PyNNDescent."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Report = Callable[[str, float], None]  # stage, fraction done; raising from it ends the work
MOST_EXACT = 20_000  # rows: 15 s at 784 features; PyNNDescent is compiled for 30 s, then takes 6 s
_QUERIES = 512  # between two reports
_STAGE = "finding neighbours"


class Neighbours(NamedTuple):
    """Nearest rows of every row, itself first."""

    indices: np.ndarray  # (N, k) int32
    distances: np.ndarray  # (N, k) float32, Euclidean


def nearest(X: np.ndarray, k: int, report: Report = lambda _stage, _share: None) -> Neighbours:
    """Return the k nearest rows of every row in Euclidean distance.

    Parameters
    ----------
    X : ndarray of shape (N, D)
        Worked on in float32. Of more than `MOST_EXACT` rows some neighbours in a thousand may be
        others that are hardly farther.
    k : int
        At most N, including the row itself, which comes first even before equal rows.
    report : callable, optional
        Told (stage, fraction) between blocks of rows.
    """
    X = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)  # small norms round less
    X = np.ascontiguousarray(X, dtype=np.float32)
    indices, distances = (_exact if len(X) <= MOST_EXACT else _nearly)(X, k, report)
    indices, distances = indices.astype(np.int32), distances.astype(np.float32)
    _put_self_first(indices, distances)
    return Neighbours(indices, distances)


def _exact(X: np.ndarray, k: int, report: Report) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X)
    distances, indices = np.empty((len(X), k)), np.empty((len(X), k), np.int64)
    for first in range(0, len(X), _QUERIES):
        report(_STAGE, first / len(X))
        own = slice(first, first + _QUERIES)
        distances[own], indices[own] = search.kneighbors(X[own])
    return indices, distances


def _nearly(X: np.ndarray, k: int, report: Report) -> tuple[np.ndarray, np.ndarray]:
    from pynndescent import NNDescent

    report(_STAGE, 0.0)
    indices, distances = NNDescent(X, n_neighbors=k, random_state=0, n_jobs=1).neighbor_graph
    return indices, distances


def _put_self_first(indices: np.ndarray, distances: np.ndarray) -> None:
    """UMAP takes the first neighbour for the row itself; among equal rows another may lead."""
    own = np.arange(len(indices))
    place = (indices == own[:, None]).argmax(axis=1)
    found = indices[own, place] == own
    place[~found] = indices.shape[1] - 1  # more equal rows than k: give up the last of them
    indices[own, place] = indices[:, 0]
    indices[:, 0], distances[:, 0] = own, 0.0
