"""What is added up of a row when it is described: the same bits whatever other rows are described.

A BLAS takes its sums in an order that follows the shape of the call, the threads and a row's place
among the others. Importance sampling follows every bit, so that such a rounding moved what was said
of a row by its whole standard error. Here the bits depend on the row alone (`steady_kernels`).
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Block, Rows

TILE_BYTES = 2**19  # of centred rows, which stay in a core's own cache
# What a kernel is compiled for, once: rows in one line, not read-only.
KERNEL: tuple[Literal["C"], Literal["W"]] = ("C", "W")


class Projections(NamedTuple):
    """Rows about their origin, as a model sees them; float64."""

    products: Array  # (N, K)
    squares: Array  # (N,) |y - origin|^2


def times(X: Array, W: Array) -> Array:
    """X W (N, K) for X (N, d) and W (d, K), summed in float64, in the dtype of X."""
    rows = Rows(X, None, np.empty(0), X.shape[1])
    return projected(rows, W).products.astype(X.dtype, copy=False)


def projected(rows: Rows, W: Array) -> Projections:
    """(y_n - origin)' W for W (d, K), and the squares of y_n - origin."""
    W = np.require(W, np.float64, KERNEL)
    parts = list(rows.over_uncentred(partial(_projected, W=W)))
    return Projections(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def mean_squares(rows: Rows, H: Array, C: Array) -> Array:
    """Mean over features of the squares of y_n - origin - C' h_n, (N,), for H (N, K), C (K, d)."""
    C = np.require(C, np.float64, KERNEL)
    H = np.require(H, np.float64, KERNEL)
    return np.concatenate(list(rows.over_uncentred(partial(_mean_squares, H=H, C=C))))


def _tiles(block: Block) -> Iterator[tuple[slice, Array]]:
    """Yield rows of a block, centred, in float64."""
    n, d = block.X.shape
    height = max(1, TILE_BYTES // (d * np.dtype(np.float64).itemsize))
    for start in range(0, n, height):
        part = slice(start, min(start + height, n))
        B = block.X[part].astype(np.float64, order="C")
        if block.origin is not None:
            B -= block.origin
        yield part, B


def _projected(block: Block, W: Array) -> tuple[Array, Array]:
    from appca.models.rows import steady_kernels as kernels

    n = len(block.X)
    P, squares = np.empty((n, W.shape[1])), np.empty(n)
    for part, B in _tiles(block):
        kernels.multiply(B, W, P[part])
        kernels.squares(B, squares[part])
    return P, squares


def _mean_squares(block: Block, H: Array, C: Array) -> Array:
    from appca.models.rows import steady_kernels as kernels

    squares = np.empty(len(block.X))
    H = H[block.part]
    for part, B in _tiles(block):
        kernels.subtract(H[part], C, B)
        kernels.squares(B, squares[part])
    squares /= block.X.shape[1]
    return squares
