"""Products of all rows with a few columns in float64, without a copy of the rows in float64.

EM takes the products with float32 rows in float32. A chain takes its residual as a difference of
sums, so it takes all of them in float64: tile by tile, each centred in a core's own cache.
"""

from collections import deque
from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Block, Rows, added

# Measured at 10,000 x 784 and 1,296 x 16,384, ten columns: as fast as products with a copy of the
# rows in float64, and tiles of 1 MB and more are slower by a third.
TILE_BYTES = 2**19
MOST_COLUMNS = 1024


class ChainData(NamedTuple):
    """The rows about their origin, which are the y_n here, and their sums."""

    rows: Rows
    total: Array  # (D,)
    squares: float  # of all entries
    mass: float  # number of rows, each counted by its weight

    @property
    def size(self) -> int:
        """Number N D of entries."""
        return self.rows.n * self.rows.d


def data_of(rows: Rows) -> ChainData:
    """Sum up the rows once; the origin should be near their mean, or the sums lose digits."""
    return ChainData(rows, *totals(rows), float(rows.n))


def projections(rows: Rows, W: Array) -> Array:
    """(y_n - origin)' W, (N, K), for W (d, K)."""
    P = np.zeros((rows.n, W.shape[1]))

    def write(block: Block) -> None:
        some = P[block.part]
        for part, columns, B in _tiles(block):
            some[part] += B @ W[columns]

    deque(_precise(rows).over_uncentred(write), maxlen=0)
    return P


def products(rows: Rows, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K), for S (N, K)."""

    def multiplied(block: Block) -> Array:
        A, scores = np.zeros((rows.d, S.shape[1])), S[block.part]
        for part, columns, B in _tiles(block):
            A[columns] += B.T @ scores[part]
        return A

    return reduce(added, _precise(rows).over_uncentred(multiplied))


def row_squares(rows: Rows) -> Array:
    """|y_n - origin|^2, (N,)."""

    def squared(block: Block) -> Array:
        squares = np.zeros(len(block.X))
        for part, _, B in _tiles(block):
            squares[part] += np.einsum("nd,nd->n", B, B)
        return squares

    return np.concatenate(list(_precise(rows).over_uncentred(squared)))


def totals(rows: Rows) -> tuple[Array, float]:
    """Sum up the rows about their origin (d,), and the squares of all entries."""

    def summed(block: Block) -> tuple[Array, float]:
        sums, squares = np.zeros(rows.d), 0.0
        for _, columns, B in _tiles(block):
            sums[columns] += B.sum(axis=0)
            squares += float(np.vdot(B, B))
        return sums, squares

    return reduce(added, _precise(rows).over_uncentred(summed))


def _precise(rows: Rows) -> Rows:
    return rows if rows.origin is None else rows._replace(origin=rows.origin.astype(np.float64))


def _tiles(block: Block) -> Iterator[tuple[slice, slice, Array]]:
    """Yield rows, columns and centred float64 numbers of all tiles of a block.

    Each tile takes the place of the one before: fresh memory costs more than the numbers in it.
    """
    n, d = block.X.shape
    width = min(d, MOST_COLUMNS)
    height = min(max(1, TILE_BYTES // (width * np.dtype(np.float64).itemsize)), n)
    place = np.empty(height * width)
    for top in range(0, n, height):
        for left in range(0, d, width):
            part, columns = slice(top, top + height), slice(left, left + width)
            X = block.X[part, columns]
            B = place[: X.size].reshape(X.shape)
            B[...] = X
            if block.origin is not None:
                B -= block.origin[columns]
            yield part, columns, B
