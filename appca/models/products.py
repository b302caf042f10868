"""Products of rows with a few columns.

For chains, sums are float64, because residuals are their differences. For importance sampling, the
bits of a row's products depend on this row only (`numeric_kernels`).
"""

from collections import deque
from collections.abc import Iterator
from functools import reduce
from typing import Literal, NamedTuple

import numpy as np

from appca.models.numerics import Array, zeros
from appca.models.rows import Block, Rows, added, dense, narrowed, tile_rows, tiles

TILE_BYTES, MOST_COLUMNS = 2**19, 1024  # tiles of 1 MB are a third slower


class ChainData(NamedTuple):
    """The rows y_n relative to their origin, and their sums."""

    rows: Rows
    total: Array  # (D,)
    squares: float  # sum of squares of all entries
    mass: float  # sum of the weights of rows
    each: Array  # (N,) |y_n|^2
    grid: Array | None = None  # (J,) possible scales of rows, if scales or sizes are learned

    @property
    def size(self) -> int:
        """Number N D of entries."""
        return self.rows.n * self.rows.d

    def squares_about(self, mu: Array) -> float:
        """Sum of |y_n - mu|^2 over the rows."""
        return float(self.squares - 2.0 * (mu @ self.total) + self.mass * (mu @ mu))


def data_of(rows: Rows, grid: Array | None = None) -> ChainData:
    """Compute the sums of rows, whose origin should be near their mean to keep all digits."""

    def summed(block: Block) -> tuple[Array, Array]:
        sums, squares = np.zeros(rows.d), np.zeros(len(block.X))
        for part, columns, B in _tiles(block):
            sums[columns] += B.sum(axis=0)
            squares[part] += np.einsum("nd,nd->n", B, B)
        return sums, squares

    sums, squares = zip(*_precise(rows).over(summed), strict=True)
    each = np.concatenate(squares)
    return ChainData(rows, reduce(added, sums), float(each.sum()), float(rows.n), each, grid)


def projections(rows: Rows, W: Array) -> Array:
    """(y_n - origin)' W, (N, K), for W (d, K)."""
    P = np.zeros((rows.n, W.shape[1]))

    def write(block: Block) -> None:
        some = P[block.part]
        for part, columns, B in _tiles(block):
            some[part] += B @ W[columns]

    deque(_precise(rows).over(write), maxlen=0)
    return P


def products(rows: Rows, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K), for S (N, K)."""

    def multiplied(block: Block) -> Array:
        A, scores = np.zeros((rows.d, S.shape[1])), S[block.part]
        for part, columns, B in _tiles(block):
            A[columns] += B.T @ scores[part]
        return A

    return reduce(added, _precise(rows).over(multiplied))


def _precise(rows: Rows) -> Rows:
    """Return rows whose tiles are centred in float64."""
    origin = None if rows.origin is None else rows.origin.astype(np.float64)
    return rows._replace(origin=origin, careful=False)


def _tiles(block: Block, most_columns: int = MOST_COLUMNS) -> Iterator[tuple[slice, slice, Array]]:
    """Yield rows, columns and centred float64 numbers of tiles; each tile overwrites the last."""
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


KERNEL: tuple[Literal["C"], Literal["W"]] = ("C", "W")  # flags of arrays for kernels


class Projections(NamedTuple):
    """Float64 projections of rows relative to their origin."""

    products: Array  # (N, K)
    squares: Array  # (N,) |y - origin|^2


def times(X: Array, W: Array) -> Array:
    """X W (N, K) for X (N, d) and W (d, K), summed in float64, in the dtype of X."""
    rows = Rows(X, None, np.empty(0), X.shape[1])
    return projected(rows, W).products.astype(X.dtype, copy=False)


def projected(rows: Rows, W: Array) -> Projections:
    """(y_n - origin)' W for W (d, K), and the squares of y_n - origin."""
    from appca.models import numeric_kernels as kernels

    W = np.require(W, np.float64, KERNEL)
    P, squares = np.empty((rows.n, W.shape[1])), np.empty(rows.n)

    def write(block: Block) -> None:
        of_block, lengths = P[block.part], squares[block.part]
        for part, _, B in _tiles(block, rows.d):
            kernels.multiply(B, W, of_block[part])
            kernels.squares(B, lengths[part])

    deque(rows.over(write), maxlen=0)
    return Projections(P, squares)


def mean_squares(rows: Rows, H: Array, C: Array) -> Array:
    """Mean over features of the squares of y_n - origin - C' h_n, (N,), for H (N, K), C (K, d)."""
    from appca.models import numeric_kernels as kernels

    H, C = np.require(H, np.float64, KERNEL), np.require(C, np.float64, KERNEL)
    squares = np.empty(rows.n)

    def write(block: Block) -> None:
        lengths, scores = squares[block.part], H[block.part]
        for part, _, B in _tiles(block, rows.d):
            kernels.subtract(scores[part], C, B)
            kernels.squares(B, lengths[part])

    deque(rows.over(write), maxlen=0)
    return squares / rows.d


class ThinProducts:
    """Products of a few rows of X with a few directions (d, K), compiled if that is faster."""

    def __init__(self, directions: Array, scale: Array | None, X: Array) -> None:
        from appca.models import numeric_kernels as kernels

        self._kernels = kernels if kernels.suits(X.dtype, *directions.shape) else None
        self._quad = kernels.QUAD if self._kernels else 1
        (d, K), size = directions.shape, tile_rows(X)
        self._K, self._W = K, zeros((-(-K // self._quad) * self._quad, d), X.dtype)
        self._W[:K] = narrowed(directions.T, X.dtype)
        self._squared = None if scale is None else np.square(scale).astype(X.dtype)
        self._room = np.empty((0 if scale is None or self._kernels else size, d), X.dtype)

    def tiles(self, X: Array, centre: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield tiles of rows minus a centre (d,), and their weighted squares (n,)."""
        if self._kernels is None or self._squared is None:
            for part, B in tiles(X, centre):
                if self._squared is None:
                    yield part, B, np.zeros(len(B))
                else:
                    yield part, B, np.square(B, out=self._room[: len(B)]) @ self._squared
            return
        size = tile_rows(X)
        place, squares = zeros((size, X.shape[1]), X.dtype), np.empty(size, X.dtype)
        for start in range(0, len(X), size):
            rows = np.ascontiguousarray(dense(X[start : start + size])).view()
            rows.flags.writeable = False  # avoids a second kernel
            self._kernels.centre(rows, centre, self._squared, place, squares)
            yield slice(start, start + len(rows)), place[: len(rows)], squares[: len(rows)]

    def project(self, B: Array) -> Array:
        """Return projections (K, n) float64 of rows B (n, d)."""
        if self._kernels is None:
            return (self._W @ B.T).astype(np.float64)
        P = np.empty((len(self._W), len(B)))
        self._kernels.project(B, self._W, P)
        return P[: self._K]

    def outer(self, S: Array, last: Array, B: Array) -> Array:
        """Sum S (K, n) and, in the last line, `last` (n,) times rows B: (K + 1, d)."""
        K, quad = self._K, self._quad
        both = np.zeros((K + 1 + (K + 1) % 2, -(-len(B) // quad) * quad), B.dtype)
        both[:K, : len(B)] = narrowed(S, B.dtype)
        both[K, : len(B)] = narrowed(last, B.dtype)
        if self._kernels is None:
            return both[: K + 1] @ B
        A: Array = np.zeros((len(both), B.shape[1]), B.dtype)
        self._kernels.add_outer(B, both, A)
        return A[: K + 1]

    def power(self, last: Array, B: Array) -> Array:
        """Sum `last` (n,) times squares of the rows B of the current tile, (d,)."""
        if self._kernels is None:
            return np.asarray(narrowed(last, B.dtype) @ self._room[: len(B)])
        weights = np.zeros(-(-len(B) // self._quad) * self._quad, B.dtype)
        weights[: len(B)] = narrowed(last, B.dtype)
        power = np.zeros(B.shape[1], B.dtype)
        self._kernels.add_squares(B, weights, power)
        return power
