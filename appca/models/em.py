"""EM for adaptive PPCA: the state, the exact E step and the M step.

One exact EM step of aPPCA (the paper's section 4 with X and Z integrated out).

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I,  x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I),
    z_n uniform over the supports of L of 1..K

The mean is carried as mu = origin - W shift: the learned mean has that form after every step,
and the fixed ones are shift = 0.

The E step of a block of rows by compiled code: projections, inclusion and sums.

Few components over wide rows in float32 go through in tiles, so that rows are still in cache for
the second product; else a BLAS makes both products.
"""

import math
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from appca.models import numerics, polynomials
from appca.models.numerics import Array
from appca.models.rows import Block, Observations, about, centre_of
from appca.models.sparse_rows import ShiftedSparse
from appca.models.stiefel import polar

NOISE_FLOOR = 1e-8  # of the mean feature variance: below it sigma2 is rounding, not noise

# Rows times K times swaps from which a fit uses the compiled E step. A pass takes half to a
# third of the time with it, and compiling it 2 s the first time (`compiled_expectation`): below,
# whole fits take half a second without. The app's first picture, of 1,797 digits at K = 4, L = 2,
# is below, so that on a fresh machine it need not wait for the compiler.
LEAST_COMPILED, MOST_COUNTED = 20_000, 15
# Swaps from which a Fourier transform costs less than a table of counts, see `poisson_binomial`.
# Measured, microseconds a row: K = 30, L = 15: 0.6 by a table and 1.2 by points; 50, 25: 1.2 and
# 2.7; 100, 35: 3.6 and 5.5; 100, 50: 5.7 and 5.3.
MANY_SWAPS = 50
MAX_MOMENTUM_LOG_CHANGE = 1.0  # most a variance may change ahead of EM, in logs


class SubspaceState(NamedTuple):
    """Everything an EM step reads and writes."""

    W: Array  # (d, K) orthonormal columns
    shift: Array  # (K,) with mean = origin - W shift
    latent: Array  # (K,) latent variances tau2_k
    noise: float  # sigma2


class EMSettings(NamedTuple):
    """What stays fixed over the iterations of EM."""

    n_components: int  # K
    n_active: int  # L
    latent: Literal["shared", "component"] | float  # how latent variances are estimated, or fixed
    learn_mean: bool  # else the mean stays at the origin of the rows
    hard: bool  # rows wholly to their best support (classification EM) instead of by posterior
    update: Callable[[Array, Array], Array]  # (A, previous W) -> argmax of tr(W'A)
    floor: float  # least variance
    compiled: bool = False  # whether the E step is worth a compiler, see `worth_compiling`


class SubspaceStatistics(NamedTuple):
    """Expected sufficient statistics of one pass over the rows."""

    log_likelihood: float  # total, nats
    A: Array  # (d, K) sum of (y - origin) s'
    s: Array  # (K,) sum of s, the posterior means of x * z
    second: Array  # (K,) sum of E[(x z)^2]
    used: Array  # (K,) sum of inclusion probabilities


def floor_of(rows: Observations) -> float:
    """Least variance allowed: a fixed share of the mean feature variance about the origin."""
    return NOISE_FLOOR * rows.total / (rows.mass * rows.n_features)


def worth_compiling(n_rows: int, n_components: int, n_active: int) -> bool:
    """Whether to run the compiled E step: it saves more than the compiler takes, once a machine.

    By size alone, so that neither the machine nor what ran before decides about the bits.
    """
    return sums_a_pass(n_rows, n_components, n_active) >= LEAST_COMPILED


def sums_a_pass(n_rows: int, n_components: int, n_active: int) -> int:
    """Rows times K times swaps, by which the time of an E step in few coordinates grows."""
    return n_rows * n_components * min(n_active, n_components - n_active, MOST_COUNTED)


def many_swaps(settings: EMSettings) -> bool:
    """Whether inclusion is taken from points of a Fourier transform."""
    return min(settings.n_active, settings.n_components - settings.n_active) >= MANY_SWAPS


def responsibilities(a: Array, settings: EMSettings, beta: float) -> tuple[Array, Array]:
    """Log weight (N,) of a row's supports and inclusion r (N, K); hard: of the best one alone.

    Tempered iterations are soft under both: a hard assignment has no temperature.
    """
    if settings.hard and beta == 1.0:
        active = polynomials.top(a, settings.n_active)
        return np.where(active, a, 0.0).sum(axis=1), active.astype(np.float64)
    a = a if beta == 1.0 else beta * a
    if not settings.compiled or not many_swaps(settings):
        return polynomials.inclusion(a, settings.n_active)
    return polynomials.by_points(a, settings.n_active)


def expect(
    state: SubspaceState,
    rows: Observations,
    settings: EMSettings,
    beta: float = 1.0,
    means: Array | None = None,
) -> SubspaceStatistics:
    """E step: posterior sums under `state` and its exact log-likelihood.

    r_nk = p(z_nk = 1 | y_n),  s_n = r_n * m_n,  m_nk = tau2_k/(tau2_k + sigma2) p_nk

    With hard assignment the log-likelihood is log p(Y, Z) at the best Z. `beta` below 1 tempers
    the logits (annealing); the log-likelihood then means nothing. The s_nk are written to `means`
    (N, K), where it is given.
    """
    n, K = rows.mass, state.W.shape[1]
    # Mean of |y - mu|^2. The cross term vanishes: where there is a shift, rows sum to their origin.
    spread = rows.total / n + state.shift @ state.shift
    outside = float(numerics.background(spread, state.noise, rows.n_features))
    outside -= numerics.log_binomial(K, settings.n_active)
    sums = SubspaceStatistics(
        n * outside, np.zeros_like(state.W), np.zeros(K), np.zeros(K), np.zeros(K)
    )
    soft = not settings.hard or beta != 1.0
    compiled = settings.compiled and soft and not many_swaps(settings)
    block = _expect_compiled if compiled else _expect_block
    work = partial(block, state=state, settings=settings, beta=beta, means=means)
    return rows.summed(work, sums)


def _expect_block(
    block: Block,
    state: SubspaceState,
    settings: EMSettings,
    beta: float,
    means: Array | None = None,
) -> SubspaceStatistics:
    """Add up one block; its log-likelihood lacks what all rows have in common."""
    shrink, v = numerics.posterior(state.noise, state.latent)
    P = block.times(state.W).astype(np.float64, copy=False) + state.shift
    log_e, r = responsibilities(numerics.logits(P, state.noise, state.latent), settings, beta)
    P *= shrink
    r = block.weighted(r)
    S = r * P
    if means is not None:
        means[block.part] = S
    used = r.sum(axis=0)
    second = np.einsum("nk,nk->k", S, P) + used * v
    return SubspaceStatistics(
        float(block.weighted(log_e).sum()), block.transposed_times(S), S.sum(axis=0), second, used
    )


def _expect_compiled(
    block: Block, state: SubspaceState, settings: EMSettings, beta: float, means: Array | None
) -> SubspaceStatistics:
    """Do the same by compiled code, while rows are in cache."""
    n_active = settings.n_active
    return SubspaceStatistics(*expect_compiled(block, state, n_active, beta, means))


def maximise(
    sums: SubspaceStatistics, state: SubspaceState, rows: Observations, settings: EMSettings
) -> SubspaceState:
    """M step: joint closed-form update of W, mean, tau2 and sigma2.

    W = argmax tr(W' sum (y - ybar)(s - sbar)'),  mu = ybar - W sbar,
    sigma2 = (sum |y - mu|^2 - 2 tr(W' sum (y - mu) s') + sum E[(x z)^2]) / (N D)

    The origin is ybar whenever the mean is learned, hence sum (y - ybar)(s - sbar)' = A and the
    sums about the new mean need no further pass.
    """
    n = rows.mass
    W = settings.update(sums.A, state.W)
    shift = sums.s / n if settings.learn_mean else np.zeros_like(sums.s)
    residual = rows.total - 2.0 * np.sum(W * sums.A) - n * (shift @ shift)
    noise = float(residual + sums.second.sum()) / (n * rows.n_features)
    return SubspaceState(
        W, shift, update_latent(sums, state, n, settings), max(noise, settings.floor)
    )


def update_latent(
    sums: SubspaceStatistics, state: SubspaceState, n: float, settings: EMSettings
) -> Array:
    """tau2 = sum E[(x z)^2] / (N L), or per component / sum r_k; unused components keep theirs."""
    if settings.latent == "shared":
        tau2 = np.full_like(state.latent, sums.second.sum() / (n * settings.n_active))
    elif settings.latent == "component":
        some = sums.used > 1e-9 * n
        tau2 = np.where(some, sums.second / np.where(some, sums.used, 1.0), state.latent)
    else:
        return state.latent
    return np.maximum(tau2, settings.floor)


def extend(
    before: SubspaceState, now: SubspaceState, beta: float, settings: EMSettings
) -> SubspaceState:
    """Take a momentum step: theta = now + beta (now - before).

    theta = (W, shift, log tau2, log sigma2) is a vector but for W, which is brought back to
    orthonormal columns by its polar factor (a retraction onto the Stiefel manifold).
    """
    most = math.exp(MAX_MOMENTUM_LOG_CHANGE)
    W = polar(now.W + beta * (now.W - before.W), now.W)
    shift = now.shift + beta * (now.shift - before.shift)
    # Variances (K + 1,) in logs, above the floor; fixed tau2 stay as they are.
    last, first = (np.array([*x.latent, x.noise]) for x in (now, before))
    change = np.minimum(np.maximum((last / first) ** beta, 1.0 / most), most)
    variances = np.maximum(last * change, settings.floor)
    fixed = settings.latent not in ("shared", "component")
    return SubspaceState(W, shift, now.latent if fixed else variances[:-1], float(variances[-1]))


def resumed(state: SubspaceState, settings: EMSettings) -> SubspaceState:
    """Return the state of a fit as these settings have it, to go on with."""
    shift, latent = state.shift * settings.learn_mean, state.latent
    if settings.latent != "component":
        common = latent.mean() if isinstance(settings.latent, str) else settings.latent
        latent = np.full_like(latent, common)
    return SubspaceState(state.W, shift, latent, max(state.noise, settings.floor))


class EMMap:
    """EM steps over the same rows that remember their last sums: no pass is made twice."""

    def __init__(self, rows: Observations, settings: EMSettings) -> None:
        self.rows = rows
        self.settings = settings
        self._seen: deque[tuple[SubspaceState, SubspaceStatistics]] = deque(maxlen=3)

    def know(self, state: SubspaceState, sums: SubspaceStatistics) -> None:
        """Take the sums under `state` from elsewhere."""
        self._seen.append((state, sums))

    def sums(self, state: SubspaceState) -> SubspaceStatistics:
        """E step under `state`, or what it gave when last asked for this very state."""
        for seen, sums in self._seen:
            if seen is state:
                return sums
        sums = expect(state, self.rows, self.settings)
        self.know(state, sums)
        return sums

    def within(self, state: SubspaceState) -> SubspaceStatistics:
        """Return the sums under `state` with W'A (K, K) for A, the same in all coordinates."""
        sums = self.sums(state)
        return sums._replace(A=state.W.T @ sums.A)

    def __call__(self, state: SubspaceState) -> tuple[float, SubspaceState]:
        """Log-likelihood of `state` and the state one EM iteration later, as `step`."""
        return _stepped(self.sums(state), state, self.rows, self.settings)


def step(
    state: SubspaceState, rows: Observations, settings: EMSettings, beta: float = 1.0
) -> tuple[float, SubspaceState]:
    """Log-likelihood of `state` (total, nats) and the state one EM iteration later; pure."""
    return _stepped(expect(state, rows, settings, beta), state, rows, settings)


def _stepped(
    sums: SubspaceStatistics, state: SubspaceState, rows: Observations, settings: EMSettings
) -> tuple[float, SubspaceState]:
    if not math.isfinite(sums.log_likelihood):
        return -math.inf, state
    return sums.log_likelihood, maximise(sums, state, rows, settings)


def compile_ahead() -> None:
    """Compile the E steps for both precisions, once a machine, so that no fit waits for it."""
    many = MANY_SWAPS
    # In few coordinates, over wide rows, and with many swaps.
    for K, L, d in [(4, 2, 8), (4, 2, 256), (2 * many, many, 2 * many)]:
        for dtype in (np.float64, np.float32):
            rows = about(np.eye(d, dtype=dtype), centre_of(np.eye(d, dtype=dtype)))
            settings = EMSettings(K, L, "shared", True, False, polar, 1e-8, compiled=True)
            state = SubspaceState(np.eye(d, K), np.zeros(K), np.ones(K), 1.0)
            expect(state, rows, settings)


TILE_BYTES, MOST_LANES_A_TILE = 2**20, 8  # of rows between the two products
# Rows between the two products of a BLAS. It takes half the time for K sums over 1,024 rows in 64
# coordinates as for those over 2,048, and calls cost nothing beside so many.
TILE_ROWS = 1024
MOST_KEPT_BYTES = 2**20  # of projections that a thread keeps the memory of, with six times it


def expect_compiled(
    block: Block, state: Any, n_active: int, beta: float, means: Array | None = None
) -> tuple[float, Array, Array, Array, Array]:
    """Return what `SubspaceStatistics` holds, by soft assignment; write means of the block."""
    from appca.models.product_kernels import suits

    sparse = isinstance(block.X, ShiftedSparse)
    by = _tiled if suits(block.X.dtype, *state.W.shape) and not sparse else _by_blas
    X = np.ascontiguousarray(block.X) if by is _tiled else block.X
    if not sparse:
        X = X.view()
        X.flags.writeable = False  # whether the data are or not, so that one kernel serves both
    means = None if means is None else means[block.part]
    least = numerics.least_kept(math.sqrt(state.latent.max()), X.dtype)
    value, A, totals = by(X, state.W, constants(block, state, beta), n_active, means, least)
    if block.origin is not None:
        A -= np.outer(block.origin, totals[0])
    return value, A, *totals


def constants(block: Block, state: Any, beta: float) -> Array:
    """Return the numbers (5, K) of `expectation_kernels.weigh`."""
    q = np.empty((5, len(state.latent)))
    q[0] = state.shift if block.origin is None else state.shift - block.origin @ state.W
    q[3], q[4] = numerics.posterior(state.noise, state.latent)
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
        from appca.models.em_kernels import share, weigh_components
        from appca.models.numeric_kernels import LANES

        K, lanes = n_components, (n_lanes, LANES)
        self._weigh, self._share = weigh_components, share
        J, flipped = min(n_active, K - n_active), 2 * n_active > K
        self._how = J, -1.0 if flipped else 1.0, 0.0
        self.width = n_lanes * LANES
        self.P = numerics.zeros((n_lines, self.width))
        self._level, self._total = numerics.zeros((2, n_tiles, *lanes))
        self._weights, self._sums = numerics.zeros((2, K, *lanes)), numerics.zeros((3, K, LANES))
        self._table = numerics.zeros(((K + 2) * (J + 2) + 1, LANES))
        self._table[1] = 1.0
        room = numerics.zeros((J + 1, LANES))
        self._room = room[:J], room[J]
        self._lanes = self.P.reshape(n_lines, *lanes)

    def begin(self, q: Array, n: int, means: Array | None, least: float) -> None:
        """Forget the rows before n others, of constants q; write their means (n, K), if asked.

        Means below `least` become 0.
        """
        self._q, self._n, self._means = q, n, means
        self._how = *self._how[:2], least
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
    from appca.models.numeric_kernels import LANES

    most = min(most, -(-n // LANES))
    shape = n_lines, K, n_active, -(-n // (most * LANES)), most
    lanes: Lanes | None = getattr(_kept, "lanes", None)
    if lanes is None or _kept.shape != shape:
        lanes = Lanes(*shape)
        if lanes.P.nbytes <= MOST_KEPT_BYTES:
            _kept.shape, _kept.lanes = shape, lanes
    return lanes


def _tiled(
    X: Array, W: Array, q: Array, n_active: int, means: Array | None, least: float
) -> tuple[float, Array, Array]:
    """Return the sum over rows X (n, d) of log e_L, the sum of x s' (d, K), and moments (3, K)."""
    from appca.models.numeric_kernels import LANES
    from appca.models.product_kernels import QUAD, add_outer, project

    (n, d), K = X.shape, W.shape[1]
    most = min(max(TILE_BYTES // (d * X.itemsize * LANES), 1), MOST_LANES_A_TILE)
    directions, part = numerics.zeros((2, -(-K // QUAD) * QUAD, d), X.dtype)
    directions[:K] = numerics.narrowed(W.T, X.dtype)
    lanes, A = lanes_for(len(directions), K, n_active, most, n), np.zeros(directions.shape)
    lanes.begin(q, n, means, least)
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
    X: Array, W: Array, q: Array, n_active: int, means: Array | None, least: float
) -> tuple[float, Array, Array]:
    from appca.models.numeric_kernels import LANES

    (n, d), K = X.shape, W.shape[1]
    most = -(-n // (LANES * -(-n // TILE_ROWS)))  # lanes, as many in each tile
    lanes, A = lanes_for(K, K, n_active, most, n), np.zeros((K, d))
    lanes.begin(q, n, means, least)
    P, Wt = lanes.P, np.ascontiguousarray(numerics.narrowed(W.T, X.dtype))
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
