"""Observations about an origin, visited in blocks small enough to stay in the cache."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.models.gaussian import Array

__all__ = ["Rows", "about", "blocks", "centre_of", "project", "transposed_product"]

# A block of 2 MB is read from memory once and found in the cache by both products of a pass.
BLOCK_BYTES = 2**21
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 256, 8192


class Rows(NamedTuple):
    """N observations y_n as stored numbers about an origin, perhaps in orthonormal coordinates."""

    X: Array  # (N, d) the data itself, or its coordinates in d orthonormal directions
    origin: Array | None  # (d,) subtracted on the fly; None where X is already about its origin
    squares: Array  # (N,) float64, |y_n - origin|^2 over all D features
    n_features: int  # D, at least d


def centre_of(X: Array) -> Array:
    """Mean row (d,), summed in float64, in the dtype of X so that X minus it stays exact."""
    mean: Array = X.mean(axis=0, dtype=np.float64)
    return mean.astype(X.dtype)


def about(X: Array, origin: Array | None) -> Rows:
    """Take X (N, D) about an origin without copying it; costs one pass for the squared norms."""
    rows = Rows(X, origin, np.empty(0), X.shape[1])
    squares = [np.einsum("nd,nd->n", B, B, dtype=np.float64) for _, B in blocks(rows)]
    return rows._replace(squares=np.concatenate(squares))


def blocks(rows: Rows) -> Iterator[tuple[slice, Array]]:
    """Yield (rows of the block, centred block); the block is only valid until the next one."""
    n, d = rows.X.shape
    size = BLOCK_BYTES // (d * rows.X.itemsize)
    size = min(max(size, MIN_BLOCK_ROWS), MAX_BLOCK_ROWS)
    buffer = None if rows.origin is None else np.empty((min(size, n), d), rows.X.dtype)
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        if buffer is None or rows.origin is None:
            yield part, rows.X[part]
        else:
            yield part, np.subtract(rows.X[part], rows.origin, out=buffer[: part.stop - start])


def project(rows: Rows, W: Array) -> Array:
    """Projections (y_n - origin)' W, (N, K) in the dtype of the data."""
    W = W.astype(rows.X.dtype, copy=False)
    P = np.empty((len(rows.X), W.shape[1]), rows.X.dtype)
    for part, B in blocks(rows):
        np.matmul(B, W, out=P[part])
    return P


def transposed_product(rows: Rows, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K) float64, for S (N, K)."""
    S = S.astype(rows.X.dtype, copy=False)
    A = np.zeros((rows.X.shape[1], S.shape[1]))
    for part, B in blocks(rows):
        A += B.T @ S[part]
    return A
