"""Observations about an origin, visited in blocks."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.models.gaussian import Array

__all__ = ["Block", "Rows", "about", "blocks", "centre_of", "project", "transposed_product"]

BLOCK_BYTES = 2**24  # of data; keeps the (rows, K) temporaries of a pass small beside the data
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 256, 8192

# Where the origin is at most this many times as long as a typical row about it, its products may
# be subtracted instead of itself, which saves a copy: at most one more decimal digit is lost than
# the rounding of X has lost already.
NEAR = 10.0


class Rows(NamedTuple):
    """N observations y_n as stored numbers about an origin, perhaps in orthonormal coordinates."""

    X: Array  # (N, d) the data itself, or its coordinates in d orthonormal directions
    origin: Array | None  # (d,) subtracted on the fly; None where X is already about its origin
    squares: Array  # (N,) float64, |y_n - origin|^2 over all D features
    n_features: int  # D, at least d
    careful: bool = False  # whether to subtract the origin before products, not after


class Block(NamedTuple):
    """Some rows; products with them are products with the rows about the origin."""

    part: slice
    X: Array  # (n, d)
    origin: Array | None  # still to be subtracted

    def times(self, W: Array) -> Array:
        """(y - origin)' W, (n, K), in the dtype of the data."""
        P: Array = self.X @ W.astype(self.X.dtype, copy=False)
        return P if self.origin is None else P - (self.origin @ W).astype(P.dtype)

    def transposed_times(self, S: Array) -> Array:
        """Sum of (y - origin) s', (d, K), in float64."""
        A: Array = (self.X.T @ S.astype(self.X.dtype, copy=False)).astype(np.float64)
        return A if self.origin is None else A - np.outer(self.origin, S.sum(axis=0))


def centre_of(X: Array) -> Array:
    """Mean row (d,), summed in float64, in the dtype of X so that X minus it stays exact."""
    mean: Array = X.mean(axis=0, dtype=np.float64)
    return mean.astype(X.dtype)


def about(X: Array, origin: Array | None) -> Rows:
    """Take X (N, D) about an origin without copying it; costs one pass for the squared norms."""
    squares = np.empty(len(X))
    rows = Rows(X, origin, squares, X.shape[1], careful=True)
    for part, B, _ in blocks(rows):
        np.einsum("nd,nd->n", B, B, dtype=np.float64, out=squares[part])
    if origin is None:
        return rows
    length = float(np.sum(np.square(origin, dtype=np.float64)))
    return rows._replace(careful=length > NEAR**2 * float(squares.mean()))


def blocks(rows: Rows) -> Iterator[Block]:
    """Visit all rows in order; a block is only valid until the next one.

    Where the origin is far off, a block holds a centred copy of its rows.
    """
    n, d = rows.X.shape
    size = BLOCK_BYTES // (d * rows.X.itemsize)
    size = min(max(size, MIN_BLOCK_ROWS), MAX_BLOCK_ROWS)
    copied = rows.careful and rows.origin is not None
    buffer = np.empty((min(size, n), d), rows.X.dtype) if copied else None
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        if buffer is None or rows.origin is None:
            yield Block(part, rows.X[part], rows.origin)
        else:
            centred = np.subtract(rows.X[part], rows.origin, out=buffer[: part.stop - start])
            yield Block(part, centred, None)


def project(rows: Rows, W: Array) -> Array:
    """Projections (y_n - origin)' W, (N, K) in the dtype of the data."""
    P = np.empty((len(rows.X), W.shape[1]), rows.X.dtype)
    for block in blocks(rows):
        P[block.part] = block.times(W)
    return P


def transposed_product(rows: Rows, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K) float64, for S (N, K)."""
    A = np.zeros((rows.X.shape[1], S.shape[1]))
    for block in blocks(rows):
        A += block.transposed_times(S[block.part])
    return A
