"""The E step of a block of rows by compiled code: projections, inclusion and sums.

Few components over wide rows in float32 go through in tiles, so that rows are still in cache for
the second product; else a BLAS makes both products. What kernels are handed is laid out here, by
NumPy, and their order is decided here: a compiled function around them would take longer to compile
than they do.
"""

import threading
from typing import Any

import numpy as np

from appca.models.algebra import aligned, gaussian
from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Block
from appca.models.rows.shifted_sparse import ShiftedSparse

TILE_BYTES, MOST_LANES_A_TILE = 2**20, 8  # of rows between the two products
# Rows between the two products of a BLAS. It takes half the time for K sums over 1,024 rows in 64
# coordinates as for those over 2,048, and calls cost nothing beside so many.
TILE_ROWS = 1024
MOST_KEPT_BYTES = 2**20  # of projections that a thread keeps the memory of, with six times it


def expect(
    block: Block, state: Any, n_active: int, beta: float, means: Array | None = None
) -> tuple[float, Array, Array, Array, Array]:
    """Return what `SubspaceStatistics` holds, by soft assignment; write means of the block."""
    from appca.models.algebra.product_kernels import suits

    sparse = isinstance(block.X, ShiftedSparse)
    by = _tiled if suits(block.X.dtype, *state.W.shape) and not sparse else _by_blas
    X = np.ascontiguousarray(block.X) if by is _tiled else block.X
    if not sparse:
        X = X.view()
        X.flags.writeable = False  # whether the data are or not, so that one kernel serves both
    means = None if means is None else means[block.part]
    value, A, totals = by(X, state.W, constants(block, state, beta), n_active, means)
    if block.origin is not None:
        A -= np.outer(block.origin, totals[0])
    return value, A, *totals


def constants(block: Block, state: Any, beta: float) -> Array:
    """Return the numbers (5, K) of `expectation_kernels.weigh`."""
    q = np.empty((5, len(state.latent)))
    q[0] = state.shift if block.origin is None else state.shift - block.origin @ state.W
    q[3], q[4] = gaussian.posterior(state.noise, state.latent)
    np.sqrt(q[3] * (beta / (2.0 * state.noise)), out=q[1])
    np.multiply(np.log1p(state.latent / state.noise), 0.5 * beta, out=q[2])
    return q


class Lanes:
    """Rows side by side, a few lanes of 64 at a time, and what they add up to.

    `n_lines` is K, or more for products that take several directions together; rows go through
    `n_tiles` times, so many lanes at a time. P (n_lines, n_lanes * LANES) has the projections of
    the rows that go through, then posterior means.
    """

    def __init__(
        self, n_lines: int, n_components: int, n_active: int, n_tiles: int, n_lanes: int
    ) -> None:
        from appca.models.algebra.exponential_kernels import LANES
        from appca.models.orthonormal.expectation_kernels import share, weigh

        K, lanes = n_components, (n_lanes, LANES)
        self._weigh, self._share = weigh, share
        J, flipped = min(n_active, K - n_active), 2 * n_active > K
        self._how = J, -1.0 if flipped else 1.0
        self.width = n_lanes * LANES
        self.P = aligned.zeros((n_lines, self.width))
        self._level, self._total = aligned.zeros((2, n_tiles, *lanes))
        self._weights, self._sums = aligned.zeros((2, K, *lanes)), aligned.zeros((3, K, LANES))
        self._table = aligned.zeros(((K + 2) * (J + 2) + 1, LANES))
        self._table[1] = 1.0
        room = aligned.zeros((J + 1, LANES))
        self._room = room[:J], room[J]
        self._lanes = self.P.reshape(n_lines, *lanes)

    def begin(self, q: Array, n: int, means: Array | None) -> None:
        """Forget the rows before n others, of constants q; write their means (n, K), if asked."""
        self._q, self._n, self._means = q, n, means
        self._sums[:] = 0.0

    def turn(self, start: int) -> None:
        """Turn projections of the rows from `start` on into posterior means."""
        tile, left = start // self.width, self._n - start
        if left < self.width:
            self.P[:, left:] = 0.0
        weighing = self._q, self._how, self._weights
        self._weigh(self._lanes, *weighing, self._level[tile], self._room)
        out = self._total[tile], self._sums
        self._share(self._lanes, left, *weighing, out, self._table)
        if self._means is not None:
            some = self._means[start : start + self.width]
            some[:] = self.P[: some.shape[1], : len(some)].T

    def summed(self) -> tuple[float, Array]:
        """Sum over all rows of log e_L(exp a), and totals (3, K) of their moments."""
        value = np.log(self._total)
        value += self._level
        return float(value.ravel()[: self._n].sum()), self._sums.sum(axis=2)


_kept = threading.local()


def lanes_for(n_lines: int, K: int, n_active: int, most: int, n: int) -> Lanes:
    """Lanes for n rows, `most` at a time: those of this thread's last E step, if they suit.

    Fresh ones took a tenth of an E step of 4,000 rows.
    """
    from appca.models.algebra.exponential_kernels import LANES

    most = min(most, -(-n // LANES))
    shape = n_lines, K, n_active, -(-n // (most * LANES)), most
    lanes: Lanes | None = getattr(_kept, "lanes", None)
    if lanes is None or _kept.shape != shape:
        lanes = Lanes(*shape)
        if lanes.P.nbytes <= MOST_KEPT_BYTES:
            _kept.shape, _kept.lanes = shape, lanes
    return lanes


def _tiled(
    X: Array, W: Array, q: Array, n_active: int, means: Array | None
) -> tuple[float, Array, Array]:
    """Return the sum over rows X (n, d) of log e_L, the sum of x s' (d, K), and moments (3, K)."""
    from appca.models.algebra.exponential_kernels import LANES
    from appca.models.algebra.product_kernels import QUAD, add_outer, project

    (n, d), K = X.shape, W.shape[1]
    most = min(max(TILE_BYTES // (d * X.itemsize * LANES), 1), MOST_LANES_A_TILE)
    directions, part = aligned.zeros((2, -(-K // QUAD) * QUAD, d), X.dtype)
    directions[:K] = W.T
    lanes, A = lanes_for(len(directions), K, n_active, most, n), np.zeros(directions.shape)
    lanes.begin(q, n, means)
    for start in range(0, n, lanes.width):
        rows = X[start : start + lanes.width]
        project(rows, directions, lanes.P)
        lanes.turn(start)
        part[:] = 0
        add_outer(rows, lanes.P.astype(X.dtype, copy=False), part)
        A += part
    value, totals = lanes.summed()
    return value, A[:K].T, totals


def _by_blas(
    X: Array, W: Array, q: Array, n_active: int, means: Array | None
) -> tuple[float, Array, Array]:
    from appca.models.algebra.exponential_kernels import LANES

    (n, d), K = X.shape, W.shape[1]
    most = -(-n // (LANES * -(-n // TILE_ROWS)))  # lanes, as many in each tile
    lanes, A = lanes_for(K, K, n_active, most, n), np.zeros((K, d))
    lanes.begin(q, n, means)
    P, Wt = lanes.P, np.ascontiguousarray(W.T, X.dtype)
    by_columns = (
        not isinstance(X, ShiftedSparse) and X.flags.f_contiguous
    )  # then what kernels read comes out of the product as it is
    for start in range(0, n, lanes.width):
        rows = X[start : start + lanes.width]
        P[:, : len(rows)] = Wt @ rows.T if by_columns else (rows @ Wt.T).T
        lanes.turn(start)
        A += P[:, : len(rows)].astype(X.dtype) @ rows
    value, totals = lanes.summed()
    return value, A.T, totals
