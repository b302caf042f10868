"""Products of rows with a few columns in float64, and sums that give each row the same bits.

A chain takes its residual as a difference of sums, all of them in float64, tile by tile. The bits
of a row depend on it alone (`product_kernels`), because importance sampling follows every bit.
"""

from collections import deque
from collections.abc import Iterator
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np

from appca.models.numerics import Array
from appca.models.rows import Block, Rows, added

TILE_BYTES, MOST_COLUMNS = 2**19, 1024  # tiles of 1 MB and more are slower by a third


class ChainData(NamedTuple):
    """The rows y_n about their origin, and their sums."""

    rows: Rows
    total: Array  # (D,)
    squares: float  # of all entries
    mass: float  # number of rows, each counted by its weight
    each: Array  # (N,) |y_n|^2
    grid: Array | None = None  # (J,) scales that rows may have, where these or sizes are learned

    @property
    def size(self) -> int:
        """Number N D of entries."""
        return self.rows.n * self.rows.d

    def squares_about(self, mu: Array) -> float:
        """Sum of |y_n - mu|^2 over the rows."""
        return float(self.squares - 2.0 * (mu @ self.total) + self.mass * (mu @ mu))


def data_of(rows: Rows, grid: Array | None = None) -> ChainData:
    """Sum up the rows once; the origin should be near their mean, or the sums lose digits."""

    def summed(block: Block) -> tuple[Array, Array]:
        sums, squares = np.zeros(rows.d), np.zeros(len(block.X))
        for part, columns, B in _tiles(block):
            sums[columns] += B.sum(axis=0)
            squares[part] += np.einsum("nd,nd->n", B, B)
        return sums, squares

    sums, squares = zip(*_precise(rows).over_uncentred(summed), strict=True)
    each = np.concatenate(squares)
    return ChainData(rows, reduce(added, sums), float(each.sum()), float(rows.n), each, grid)


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


def _precise(rows: Rows) -> Rows:
    return rows if rows.origin is None else rows._replace(origin=rows.origin.astype(np.float64))


def _tiles(block: Block, most_columns: int = MOST_COLUMNS) -> Iterator[tuple[slice, slice, Array]]:
    """Yield rows, columns and centred float64 numbers of tiles, each in place of the one before."""
    n, d = block.X.shape
    width = min(d, most_columns)
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


KERNEL: tuple[Literal["C"], Literal["W"]] = ("C", "W")  # kernels are compiled for such arrays


class Projections(NamedTuple):
    """Float64 projections of rows about their origin."""

    products: Array  # (N, K)
    squares: Array  # (N,) |y - origin|^2


def times(X: Array, W: Array) -> Array:
    """X W (N, K) for X (N, d) and W (d, K), summed in float64, in the dtype of X."""
    rows = Rows(X, None, np.empty(0), X.shape[1])
    return projected(rows, W).products.astype(X.dtype, copy=False)


def projected(rows: Rows, W: Array) -> Projections:
    """(y_n - origin)' W for W (d, K), and the squares of y_n - origin."""
    from appca.models import product_kernels as kernels

    W = np.require(W, np.float64, KERNEL)
    P, squares = np.empty((rows.n, W.shape[1])), np.empty(rows.n)

    def write(block: Block) -> None:
        of_block, lengths = P[block.part], squares[block.part]
        for part, _, B in _tiles(block, rows.d):
            kernels.multiply(B, W, of_block[part])
            kernels.squares(B, lengths[part])

    deque(rows.over_uncentred(write), maxlen=0)
    return Projections(P, squares)


def mean_squares(rows: Rows, H: Array, C: Array) -> Array:
    """Mean over features of the squares of y_n - origin - C' h_n, (N,), for H (N, K), C (K, d)."""
    from appca.models import product_kernels as kernels

    H, C = np.require(H, np.float64, KERNEL), np.require(C, np.float64, KERNEL)
    squares = np.empty(rows.n)

    def write(block: Block) -> None:
        lengths, scores = squares[block.part], H[block.part]
        for part, _, B in _tiles(block, rows.d):
            kernels.subtract(scores[part], C, B)
            kernels.squares(B, lengths[part])

    deque(rows.over_uncentred(write), maxlen=0)
    return squares / rows.d
