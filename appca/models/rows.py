"""Observations about an origin, visited in blocks."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from appca.models.gaussian import Array
from appca.models.threads import in_order

__all__ = ["Block", "Rows", "about", "centre_of", "over_blocks", "project", "transposed_product"]

R = TypeVar("R")

# Blocks small enough to keep the (rows, K) temporaries of a pass small beside the data, and large
# enough for the cost of a call not to matter. They do not depend on the number of cores, so
# neither do the bits of a sum over them.
BLOCK_BYTES = 2**24
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 256, 8192
MIN_SHARED_ROWS = 4096  # fewer are not worth a second thread

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
    rows = Rows(X, origin, np.empty(0), X.shape[1], careful=True)
    squares = np.concatenate(
        list(over_blocks(lambda b: np.einsum("nd,nd->n", b.X, b.X, dtype=np.float64), rows))
    )
    if origin is None:
        return rows._replace(squares=squares)
    length = float(np.sum(np.square(origin, dtype=np.float64)))
    careful = length > NEAR**2 * float(squares.mean())
    return rows._replace(squares=squares, careful=careful)


def over_blocks(work: Callable[[Block], R], rows: Rows) -> Iterator[R]:
    """Yield work(block) for blocks of rows, in order, computed on all cores.

    Where the origin is far off, a block holds a centred copy of its rows.
    """
    n, d = rows.X.shape
    most = min(max(BLOCK_BYTES // (d * rows.X.itemsize), MIN_BLOCK_ROWS), MAX_BLOCK_ROWS)
    count = -(-n // most)
    if count % 2 and n >= 2 * MIN_SHARED_ROWS:
        count += 1
    edges = [n * i // count for i in range(count + 1)]

    def block(ends: tuple[int, int]) -> R:
        part = slice(*ends)
        if rows.careful and rows.origin is not None:
            return work(Block(part, rows.X[part] - rows.origin, None))
        return work(Block(part, rows.X[part], rows.origin))

    return in_order(block, list(pairwise(edges)))


def project(rows: Rows, W: Array) -> Array:
    """Projections (y_n - origin)' W, (N, K) in the dtype of the data."""
    return np.concatenate(list(over_blocks(lambda block: block.times(W), rows)))


def transposed_product(rows: Rows, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K) float64, for S (N, K)."""
    A = np.zeros((rows.X.shape[1], S.shape[1]))
    for part in over_blocks(lambda block: block.transposed_times(S[block.part]), rows):
        A += part
    return A
