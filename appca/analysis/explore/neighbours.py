"""Exact nearest rows of every row, by scikit-learn."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Report = Callable[[str, float], None]  # stage, fraction done; raising from it ends the work
_QUERIES = 512  # between two reports
FLAT = 3  # columns, as those of a map, up to which a tree is faster than all distances


class Neighbours(NamedTuple):
    """Exact nearest rows of every row, itself first."""

    indices: np.ndarray  # (N, k) int32
    distances: np.ndarray  # (N, k) float32, Euclidean


def nearest(X: np.ndarray, k: int, report: Report = lambda _stage, _share: None) -> Neighbours:
    """Return the k nearest rows of every row of X (N, D) in Euclidean distance, in float32.

    k is at most N and includes the row itself, which comes first even before equal rows.
    """
    from sklearn.neighbors import NearestNeighbors

    X = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)  # small norms round less
    X = np.ascontiguousarray(X, dtype=np.float32)
    algorithm = "kd_tree" if X.shape[1] <= FLAT else "brute"
    search = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(X)
    distances, indices = np.empty((len(X), k), np.float32), np.empty((len(X), k), np.int32)
    for first in range(0, len(X), _QUERIES):
        report("finding neighbours", first / len(X))
        queries = slice(first, first + _QUERIES)
        distances[queries], indices[queries] = search.kneighbors(X[queries])
    _put_self_first(indices, distances)
    return Neighbours(indices, distances)


def _put_self_first(indices: np.ndarray, distances: np.ndarray) -> None:
    """UMAP takes the first neighbour for the row itself; among equal rows another may lead."""
    rows = np.arange(len(indices))
    place = (indices == rows[:, None]).argmax(axis=1)
    is_listed = indices[rows, place] == rows
    place[~is_listed] = indices.shape[1] - 1  # more equal rows than k: give up the last of them
    indices[rows, place] = indices[:, 0]
    indices[:, 0], distances[:, 0] = rows, 0.0
