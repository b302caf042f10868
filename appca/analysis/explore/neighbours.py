"""Exact nearest rows of every row, without computing most of the distances.

With p_n the first m principal coordinates of row n about the mean and r_n the length of the rest,

    |x_i - x_j|^2  >=  |p_i - p_j|^2 + (r_i - r_j)^2

so a matrix product of m + 1 columns rules out nearly all pairs, exactly. On 70,000 digits of 784
pixels, 359 distances a row are left to compute with m = 96, and one thread needs about a minute;
scikit-learn's brute force computes all 70,000 in double precision, ten times the work.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from appca.data.principal import principal_axes

Report = Callable[[str, float], None]  # stage, fraction done; raising from it ends the work
BOUND_AXES = 96
_AXES_ROWS = 500  # the axes need not be the best ones for the bound to hold
_QUERIES, _ROWS = 512, 2048  # a tile of 4 MB
_MARGIN = 1e-5  # of the squared norms: far above the rounding of a bound in float32


class Neighbours(NamedTuple):
    """Exact nearest rows of every row, itself first."""

    indices: np.ndarray  # (N, k) int32
    distances: np.ndarray  # (N, k) float32, Euclidean


class _Bound(NamedTuple):
    """What the lower bound needs of every row."""

    coordinates: np.ndarray  # (N, m + 1) float32: principal coordinates, and length of the rest
    norms: np.ndarray  # (N,) float32: squared, less the margin for rounding


def nearest(X: np.ndarray, k: int, report: Report = lambda _stage, _share: None) -> Neighbours:
    """Return the k nearest rows of every row in Euclidean distance.

    Parameters
    ----------
    X : ndarray of shape (N, D)
        Worked on in float32.
    k : int
        At most N, including the row itself, which comes first even before equal rows.
    report : callable, optional
        Told (stage, fraction) between blocks of rows.
    """
    from appca.analysis.explore.neighbour_scan import scan

    n = len(X)
    X = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)  # small norms round less
    X = np.ascontiguousarray(X, dtype=np.float32)
    bound = _bound(X)
    indices, squares = np.full((n, k), -1, np.int32), np.full((n, k), np.inf, np.float32)
    buffer = np.empty((_QUERIES, _ROWS), np.float32)
    for first in range(0, n, _QUERIES):
        report("finding neighbours", first / n)
        own = slice(first, min(first + _QUERIES, n))
        for row in range(0, n, _ROWS):
            tile = _fill(buffer, bound, own, slice(row, min(row + _ROWS, n)))
            scan(tile, X, first, row, indices[own], squares[own])
    order = np.lexsort((indices, squares))
    indices = np.take_along_axis(indices, order, axis=1)
    distances = np.sqrt(np.take_along_axis(squares, order, axis=1))
    _put_self_first(indices, distances)
    return Neighbours(indices, distances)


def _bound(X: np.ndarray) -> _Bound:
    n = len(X)
    norms = np.einsum("nd,nd->n", X, X, dtype=np.float64)
    if not norms.any():
        return _Bound(np.zeros((n, 1), np.float32), norms.astype(np.float32))
    chosen = np.random.default_rng(0).permutation(n)[:_AXES_ROWS]
    sample = X[np.sort(chosen)].astype(np.float64)
    sample = sample if sample.any() else X[[norms.argmax()]].astype(np.float64)
    axes = principal_axes(lambda: iter([sample.copy()]), sample.shape, _count(sample))
    coordinates = np.empty((n, axes.shape[1] + 1), np.float32)
    coordinates[:, :-1] = X @ axes.astype(np.float32)
    inside = np.einsum("nm,nm->n", coordinates[:, :-1], coordinates[:, :-1], dtype=np.float64)
    coordinates[:, -1] = np.sqrt(np.maximum(norms - inside, 0.0))
    return _Bound(coordinates, (norms * (1.0 - _MARGIN)).astype(np.float32))


def _count(sample: np.ndarray) -> int:
    return int(min(BOUND_AXES, *sample.shape))


def _fill(buffer: np.ndarray, bound: _Bound, queries: slice, rows: slice) -> np.ndarray:
    """Lower bounds (q, r) of the squared distances in a tile."""
    tile = buffer[: queries.stop - queries.start, : rows.stop - rows.start]
    np.matmul(bound.coordinates[queries] * np.float32(-2.0), bound.coordinates[rows].T, out=tile)
    tile += bound.norms[queries, None]
    tile += bound.norms[rows]
    return tile


def _put_self_first(indices: np.ndarray, distances: np.ndarray) -> None:
    """UMAP takes the first neighbour for the row itself; among equal rows another may lead."""
    own = np.arange(len(indices))
    place = (indices == own[:, None]).argmax(axis=1)
    found = indices[own, place] == own
    place[~found] = indices.shape[1] - 1  # more equal rows than k: give up the last of them
    indices[own, place] = indices[:, 0]
    indices[:, 0] = own
