"""Products of wide rows with a few directions by the kernels of the E step, tile by tile.

Measured at 60,000 x 784 in float32 with ten directions: projections take 28 ms and the products
with them 26, by a BLAS 38 and 30.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from appca.models.algebra import aligned
from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Block, Observations

TILE_ROWS = 256


def project(rows: Observations, W: Array) -> Array:
    """Projections (y_n - origin)' W, (N, K) in the dtype of the data."""
    P = np.empty((rows.n, W.shape[1]), rows.dtype)
    for part, values in rows.over(partial(_projected, W=W)):
        P[part] = values
    return P


def transposed_product(rows: Observations, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K) float64, for S (N, K)."""
    return rows.summed(partial(_multiplied, S=S), np.zeros((rows.d, S.shape[1])))


def _projected(block: Block, W: Array) -> tuple[slice, Array]:
    from appca.models.algebra import product_kernels

    (d, K), dtype = W.shape, block.X.dtype
    directions, P = aligned.zeros((_rounded_up(K), d), dtype), np.zeros((_rounded_up(K), TILE_ROWS))
    directions[:K] = W.T
    out = np.empty((len(block.X), K), dtype)
    for part, rows in _tiles(block):
        product_kernels.project(rows, directions, P)
        out[part] = P[:K, : len(rows)].T
    return block.part, out if block.origin is None else out - (block.origin @ W).astype(dtype)


def _multiplied(block: Block, S: Array) -> Array:
    from appca.models.algebra import product_kernels

    S, dtype = S[block.part], block.X.dtype
    shape = _rounded_up(S.shape[1]), block.X.shape[1]
    part_S, A = aligned.zeros((shape[0], TILE_ROWS), dtype), np.zeros(shape)
    sums = aligned.zeros(shape, dtype)
    for part, rows in _tiles(block):
        part_S[: S.shape[1], : len(rows)] = S[part].T
        part_S[:, len(rows) :] = 0
        sums[:] = 0
        product_kernels.add_outer(rows, part_S, sums)
        A += sums
    found: Array = A[: S.shape[1]].T
    return found if block.origin is None else found - np.outer(block.origin, S.sum(axis=0))


def _tiles(block: Block) -> Iterator[tuple[slice, Array]]:
    X = np.ascontiguousarray(block.X).view()
    X.flags.writeable = False  # whether the data are or not, so that one kernel serves both
    for start in range(0, len(X), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        yield part, X[part]


def _rounded_up(n_directions: int) -> int:
    from appca.models.algebra.product_kernels import QUAD

    return -(-n_directions // QUAD) * QUAD
