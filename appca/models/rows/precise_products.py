"""Products of all rows with a few columns in float64, without a copy of the rows in float64.

EM takes the products with float32 rows in float32. A chain takes its residual as a difference of
sums, so it takes all of them in float64: tile by tile, each centred in a core's own cache.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import MIN_BLOCK_ROWS, Block, Rows, over_blocks

R = TypeVar("R")

# Measured at 10,000 x 784 and 1,296 x 16,384, ten columns: as fast as products with a copy of the
# rows in float64, and tiles of 1 MB and more are slower by a third.
TILE_BYTES = 2**19
MOST_COLUMNS = 1024


class Totals(NamedTuple):
    """Sums of the rows about their origin."""

    rows: Array  # (d,)
    squares: float  # of all entries


def projections(rows: Rows, W: Array) -> Array:
    """(y_n - origin)' W, (N, K), for W (d, K)."""
    P = np.empty((rows.n, W.shape[1]))
    for part, values in _over(partial(_projected, W=W), rows):
        P[part] = values
    return P


def products(rows: Rows, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K), for S (N, K)."""
    A = np.zeros((rows.d, S.shape[1]))
    for part in _over(partial(_multiplied, S=S), rows):
        A += part
    return A


def row_squares(rows: Rows) -> Array:
    """|y_n - origin|^2, (N,)."""
    squares = np.empty(rows.n)
    for part, values in _over(_squared, rows):
        squares[part] = values
    return squares


def totals(rows: Rows) -> Totals:
    """Sum up the rows and their squares."""
    sums, squares = np.zeros(rows.d), 0.0
    for part in _over(_totals, rows):
        sums += part.rows
        squares += part.squares
    return Totals(sums, squares)


def _over(work: Callable[[Block], R], rows: Rows) -> Iterator[R]:
    # Tiles are centred where they are made; whole blocks of centred rows would be copies.
    origin = None if rows.origin is None else rows.origin.astype(np.float64)
    rows = rows._replace(origin=origin, careful=False)
    if rows.n <= MIN_BLOCK_ROWS:  # one block; to share it out would cost more than the work
        return iter([work(Block(slice(0, rows.n), rows.X, rows.origin))])
    return over_blocks(work, rows)


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


def _projected(block: Block, W: Array) -> tuple[slice, Array]:
    P = np.zeros((len(block.X), W.shape[1]))
    for part, columns, B in _tiles(block):
        P[part] += B @ W[columns]
    return block.part, P


def _multiplied(block: Block, S: Array) -> Array:
    A, S = np.zeros((block.X.shape[1], S.shape[1])), S[block.part]
    for part, columns, B in _tiles(block):
        A[columns] += B.T @ S[part]
    return A


def _squared(block: Block) -> tuple[slice, Array]:
    squares = np.zeros(len(block.X))
    for part, _, B in _tiles(block):
        squares[part] += np.einsum("nd,nd->n", B, B)
    return block.part, squares


def _totals(block: Block) -> Totals:
    sums, squares = np.zeros(block.X.shape[1]), 0.0
    for _, columns, B in _tiles(block):
        sums[columns] += B.sum(axis=0)
        squares += float(np.vdot(B, B))
    return Totals(sums, squares)
