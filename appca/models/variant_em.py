"""Exact EM for aPPCA with a noise of each feature, a scale of each row, and learned sizes.

What a row says of its scale, its number of components and its support.

    p(y) = sum_j omega_j sum_S p(S) p(y | S, noise u_j sigma2, factor variances u_j tau2_k)

Scales u_j are those of a grid, and p(S) is uniform over the supports of L components, or over those
of each size. All sums are exact: one over supports for every scale, see `polynomials` and
`polynomials`, of which those are left out that add less than rounding.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from appca.models import numerics, polynomials
from appca.models.em import MAX_MOMENTUM_LOG_CHANGE as MOST_CHANGE
from appca.models.em import NOISE_FLOOR, EMSettings, floor_of, many_swaps
from appca.models.numerics import Array
from appca.models.rows import Block, Observations, added, tile_rows, tiles
from appca.models.sparse_rows import dense
from appca.models.stiefel import polar

NEGLIGIBLE = 37.0  # nats below the likeliest scale of a row: its share is below rounding of 1


class RowModel(NamedTuple):
    """What decides about a row, given its projections and its squared distance from the mean.

    Both are in noise units: rows are multiplied by `scale` (D,) of their features first.
    """

    noise: float  # sigma2; 1 where each feature has its own noise
    latent: Array  # (K,) tau2_k
    n_features: int  # that the likelihood counts
    log_scale: float  # sum of the logs of what features are multiplied by
    sizes: int | Array  # L, or probabilities (K + 1,) of 0 to K components
    grid: Array  # (J,) scales of rows
    weights: Array  # (J,) their probabilities


class Weighed(NamedTuple):
    """Posterior of rows."""

    log_density: Array  # (N,) nats
    scales: Array  # (N, J) posterior probabilities
    inclusion: Array  # (N, K)
    by_scale: Array  # (N, K) E[z u^moment], by default E[z / u]
    sizes: Array | None  # (N, K + 1) posterior probabilities, where sizes are learned


def weigh(P: Array, squares: Array, model: RowModel, moment: float = -1.0) -> Weighed:
    """Sum over scales and supports, for projections P (N, K) and squared distances (N,)."""
    power = np.square(P, dtype=np.float64) * slope(model)
    offset = 0.5 * np.log1p(model.latent / model.noise)
    J = len(model.grid)
    if J == 1:
        log_sum, r, sizes = _over_supports(power - offset, model.sizes)
        density = log_sum + background(squares, model)[:, 0]
        return Weighed(density, np.ones((len(P), 1)), r, r, sizes)
    around = background(squares, model) + np.log(model.weights)
    rows, at = np.nonzero(_promising(power, offset, around, model))
    u = model.grid[at]
    log_sum, r, sizes = _over_supports(power[rows] / u[:, None] - offset, model.sizes)
    joint = np.full((len(P), J), -np.inf)
    joint[rows, at] = log_sum + around[rows, at]
    peak = joint.max(axis=1)
    scales = np.exp(joint - peak[:, None])
    total = scales.sum(axis=1)
    scales /= total[:, None]
    share, first = scales[rows, at][:, None], np.searchsorted(rows, np.arange(len(P)))
    shared = share * r
    inclusion = np.add.reduceat(shared, first)
    by_scale = np.add.reduceat(shared * (u**moment)[:, None], first)
    sizes = None if sizes is None else np.add.reduceat(share * sizes, first)
    return Weighed(peak + np.log(total), scales, inclusion, by_scale, sizes)


def likeliest(P: Array, squares: Array, model: RowModel) -> Array:
    """Support (N, K) bool of the most probable scale and support together."""
    best, chosen = np.full(len(P), -np.inf), np.zeros(P.shape, dtype=bool)
    around = background(squares, model) + np.log(model.weights)
    for j, u in enumerate(model.grid):
        a = numerics.logits(P, u * model.noise, u * model.latent)
        if isinstance(model.sizes, int):
            active = polynomials.top(a, model.sizes)
            value = a.sum(axis=1, where=active)
        else:
            active, value = polynomials.best(a, model.sizes)
        better = value + around[:, j] > best
        chosen[better] = active[better]
        best = np.maximum(best, value + around[:, j])
    return chosen


def support_density(P: Array, squares: Array, chosen: Array, model: RowModel) -> Array:
    """Log density (N,) of rows together with supports (N, K) bool."""
    joint = background(squares, model) + np.log(model.weights)
    for j, u in enumerate(model.grid):
        a = numerics.logits(P, u * model.noise, u * model.latent)
        if isinstance(model.sizes, int):
            of_support = a.sum(axis=1, where=chosen)
            of_support -= numerics.log_binomial(a.shape[1], model.sizes)
        else:
            of_support = polynomials.log_weight(a, chosen, model.sizes)
        joint[:, j] += of_support
    density: Array = np.logaddexp.reduce(joint, axis=1)
    return density


def slope(model: RowModel) -> Array:
    """Slope (K,) of the logits in squared projections, at u = 1."""
    return numerics.posterior(model.noise, model.latent)[0] / (2.0 * model.noise)


def background(squares: Array, model: RowModel) -> Array:
    """Log density (N, J) of rows that no component explains, for each scale."""
    columns = [numerics.background(squares, u * model.noise, model.n_features) for u in model.grid]
    return np.column_stack(columns) + model.log_scale


def _over_supports(a: Array, sizes: int | Array) -> tuple[Array, Array, Array | None]:
    if not isinstance(sizes, int):
        return polynomials.sized_inclusion(a, sizes)
    log_e, r = polynomials.inclusion(a, sizes)
    return log_e - numerics.log_binomial(a.shape[1], sizes), r, None


def _promising(power: Array, offset: Array, around: Array, model: RowModel) -> Array:
    """Whether (N, J) a scale may add to the density of a row more than rounding."""
    L, K, u = model.sizes, len(offset), model.grid
    if isinstance(L, int):
        ordered, costs = np.partition(power, K - L, axis=1), np.sort(offset)
        most = ordered[:, K - L :].sum(axis=1)[:, None] / u - costs[:L].sum()
        gap = numerics.log_binomial(K, L) + costs[K - L :].sum() - costs[:L].sum()
    else:
        gains = [np.maximum(power / scale - offset, 0.0).sum(axis=1) for scale in u]
        most = np.column_stack(gains)
        gap = -float((np.log(L) - polynomials.log_counts(K)).min())
    most += around
    return np.asarray(~(most < most.max(axis=1, keepdims=True) - gap - NEGLIGIBLE))


class VariantStatistics(NamedTuple):
    """Expected sufficient statistics of one pass over the rows; u is the scale of a row."""

    log_likelihood: float  # total, nats
    A: Array  # (d, K) sum of E[(y - origin) s' / u]
    s: Array  # (K,) sum of E[s / u]
    second: Array  # (K,) sum of E[(x z)^2 / u]
    used: Array  # (K,) sum of inclusion probabilities
    inverse: Array  # () sum of E[1 / u]
    first: Array  # (d,) sum of E[1 / u] (y - origin)
    power: Array  # (d,) sum of E[1 / u] (y - origin)_d^2
    scales: Array  # (J,) sum of the posterior probabilities of scales
    sizes: Array  # (K + 1,) of sizes


class RowSums(NamedTuple):
    """What some rows add up to, but for products with them."""

    log_likelihood: float
    s: Array
    second: Array
    used: Array
    inverse: Array
    scales: Array
    sizes: Array


class RowWork(Protocol):
    """Weighs the scales and supports of rows, some at a time, and adds up what they say."""

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """Return E[1 / u] (n,) times the weights (n,) of rows, from their squared distances (n,).

        Projections P (K, n) are overwritten by E[x z / u] times the weight.
        """

    def sums(self) -> RowSums:
        """Return the sums over all rows so far."""


def expect_block(
    block: Block,
    *,
    scale: Array,
    V: Array,
    m: Array,
    model: RowModel,
    weigh: Callable[[RowModel], RowWork],
    moving: bool,
) -> VariantStatistics:
    """Add up one block about origin + m (d,); `moving`: rows have scales, and squares count."""
    X, (d, K), work = block.X, V.shape, weigh(model)
    directions = scale[:, None] * V
    about = m if block.origin is None else block.origin + m
    centre = about.astype(X.dtype)
    thin, rest = (
        ThinProducts(directions, scale if moving else None, X),
        (about - centre) @ directions,
    )
    weights = np.ones(len(X)) if block.weights is None else block.weights
    A, power = np.zeros((K + 1, d)), np.zeros(d)
    for part, B, squares in thin.tiles(X, centre):
        P = thin.project(B)
        P -= rest[:, None]
        inverse = work(P, squares, weights[part])
        A += thin.outer(P, inverse, B)
        if moving:
            power += thin.power(inverse, B)
    row = work.sums()
    away = centre - (0.0 if block.origin is None else block.origin.astype(np.float64))
    first, G = A[K], row.inverse
    A, first, power = (
        A[:K].T + np.outer(away, row.s),
        first + G * away,
        power + 2.0 * away * first + G * np.square(away),
    )
    value, s, second, used, inverse, scales, sizes = row
    return VariantStatistics(value, A, s, second, used, inverse, first, power, scales, sizes)


class ThinProducts:
    """Products of a few rows of X with a few directions (d, K), compiled where that is faster.

    Squares are weighted by those of `scale` (d,), where it is given.
    """

    def __init__(self, directions: Array, scale: Array | None, X: Array) -> None:
        from appca.models import product_kernels as kernels

        self._kernels = kernels if kernels.suits(X.dtype, *directions.shape) else None
        self._quad = kernels.QUAD if self._kernels else 1
        (d, K), size = directions.shape, tile_rows(X)
        self._K, self._W = K, numerics.zeros((-(-K // self._quad) * self._quad, d), X.dtype)
        self._W[:K] = numerics.narrowed(directions.T, X.dtype)
        self._squared = None if scale is None else np.square(scale).astype(X.dtype)
        self._room = np.empty((0 if scale is None or self._kernels else size, d), X.dtype)

    def tiles(self, X: Array, centre: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield a few rows about a centre (d,) at a time, and their weighted squares (n,)."""
        if self._kernels is None or self._squared is None:
            for part, B in tiles(X, centre):
                yield part, B, self._squares(B)
            return
        size = tile_rows(X)
        place, squares = numerics.zeros((size, X.shape[1]), X.dtype), np.empty(size, X.dtype)
        for start in range(0, len(X), size):
            rows = np.ascontiguousarray(dense(X[start : start + size])).view()
            rows.flags.writeable = False  # whether the data are or not: one kernel serves both
            self._kernels.centre(rows, centre, self._squared, place, squares)
            yield slice(start, start + len(rows)), place[: len(rows)], squares[: len(rows)]

    def _squares(self, B: Array) -> Array:
        if self._squared is None:
            return np.zeros(len(B))
        weighted: Array = np.square(B, out=self._room[: len(B)]) @ self._squared
        return weighted

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
        both[:K, : len(B)] = numerics.narrowed(S, B.dtype)
        both[K, : len(B)] = numerics.narrowed(last, B.dtype)
        if self._kernels is None:
            return both[: K + 1] @ B
        A: Array = np.zeros((len(both), B.shape[1]), B.dtype)
        self._kernels.add_outer(B, both, A)
        return A[: K + 1]

    def power(self, last: Array, B: Array) -> Array:
        """Sum `last` (n,) times squares of the rows B of the tile at hand, (d,)."""
        if self._kernels is None:
            return np.asarray(numerics.narrowed(last, B.dtype) @ self._room[: len(B)])
        weights = np.zeros(-(-len(B) // self._quad) * self._quad, B.dtype)
        weights[: len(B)] = numerics.narrowed(last, B.dtype)
        power = np.zeros(B.shape[1], B.dtype)
        self._kernels.add_squares(B, weights, power)
        return power


class ByNumpy:
    """Weighs rows of any variant."""

    def __init__(self, model: RowModel) -> None:
        self._model, self._sums = model, list[RowSums]()
        self._shrink, self._v = numerics.posterior(model.noise, model.latent)

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """See `RowWork`."""
        row, m = weigh(P.T, squares, self._model), self._shrink[:, None] * P
        P[:] = row.by_scale.T * m * weights
        used, scales = weights @ row.inclusion, weights @ row.scales
        inverse = weights * (row.scales @ (1.0 / self._model.grid))
        second = np.einsum("kn,kn->k", P, m) + used * self._v
        sizes = np.zeros(len(m) + 1) if row.sizes is None else weights @ row.sizes
        value, G = float(weights @ row.log_density), np.asarray(inverse.sum())
        self._sums.append(RowSums(value, P.sum(axis=1), second, used, G, scales, sizes))
        return np.asarray(inverse)

    def sums(self) -> RowSums:
        """See `RowWork`."""
        return reduce(added, self._sums)


class ByKernel:
    """Weighs rows of L components, 0 < L < K, by compiled code."""

    def __init__(self, model: RowModel) -> None:
        L, K, u = int(np.asarray(model.sizes)), len(model.latent), model.grid
        J, sign = (L, 1.0) if 2 * L <= K else (K - L, -1.0)
        offset, supports = 0.5 * np.log1p(model.latent / model.noise), numerics.log_binomial(K, L)
        posterior = numerics.posterior(model.noise, model.latent)
        least = np.sort(offset)
        costs = least[:L].sum()
        gap = supports + least[K - L :].sum() - costs + NEGLIGIBLE
        nothing = background(np.zeros(1), model)[0] + np.log(model.weights) - supports
        scales = np.array([u, nothing, 1.0 / (2.0 * u * model.noise)])
        q = np.array([slope(model), offset, *posterior])
        self._fixed = q, scales, np.array([sign, costs, gap])
        table = np.zeros((K + 1, J + 2))
        table[0, 1] = 1.0
        self._room = table, np.empty((len(u), K)), np.empty((2, len(u))), np.empty((5, K + 1))
        self._moments, self._scales, self._value = np.zeros((3, K)), np.zeros(len(u)), 0.0

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """See `RowWork`."""
        from appca.models.em_kernels import weigh_mixtures

        inverse = np.empty(len(squares))
        out = self._moments, self._scales, inverse
        squares = squares.astype(np.float64)
        self._value += weigh_mixtures(P, squares, weights, *self._fixed, out, self._room)
        return inverse

    def sums(self) -> RowSums:
        """See `RowWork`."""
        second, used, s = self._moments
        inverse, sizes = np.asarray(self._scales @ (1.0 / self._fixed[1][0])), np.zeros(len(s) + 1)
        return RowSums(self._value, s, second, used, inverse, self._scales, sizes)


def squared_distances(block: Block, m: Array, weights: Array) -> Array:
    """Weighted squares (n,) of rows about origin + m: sum over features of w_d (y - o - m)_d^2."""
    out, X = np.empty(len(block.X)), block.X
    about = m if block.origin is None else block.origin + m
    for part, B in tiles(X, about.astype(X.dtype)):
        out[part] = np.square(B) @ weights.astype(X.dtype)
    return out


def feature_powers(rows: Observations) -> Array:
    """Sum (y - origin)_d^2 and (y - origin)_d^4 over rows, (2, d)."""

    def powers(block: Block) -> Array:
        out = np.zeros((2, rows.d))
        weights = np.ones(len(block.X)) if block.weights is None else block.weights
        for part, B in tiles(block.X, block.origin):
            squares = np.square(B)
            out[0] += weights[part].astype(B.dtype) @ squares
            out[1] += weights[part] @ np.square(squares, dtype=np.float64)
        return out

    return rows.summed(powers, np.zeros((2, rows.d)))


# Scales of rows. From 0.3 to 3.5 in six steps, COIL-20 lost 31 held-out nats a row and MNIST 7, and
# EM stayed where the paper's variances put it, as no place was left to move all rows to.
GRID = np.geomspace(0.1, 10.0, 10)
LEAST_PROBABILITY = 1e-10  # of a scale or a size
PSI_FLOOR = 1e-2  # of the variance of a feature: below it a component is that feature
# Times (kurtosis - 3) / N is the floor where few rows make up the variance: in held-out rows of
# solids and digits it is 1 + 4 kurtosis / N times that of the training rows.
FLOOR_ROWS = 4.0
LEAST_ROWS = 2.0  # that a variance rests on; below, nothing is known of what a new row brings
ROUNDING = 1e-6  # of that number: three rows have exactly two
CONSTANT = 8.0  # a deviation of so many roundings of the mean is none
W_STEPS = 3  # of V and s in turns within an M step, on the same sums


class Variant(NamedTuple):
    """Which assumptions of the paper's model are given up."""

    by_feature: bool  # noise="feature"
    row_scales: bool  # row_scale="learned"
    learn_sizes: bool  # n_active="learned"


PAPER = Variant(by_feature=False, row_scales=False, learn_sizes=False)


class VariantSettings(NamedTuple):
    """What stays fixed over the iterations."""

    em: EMSettings  # of the paper's model; n_active is L, or where learned sizes start
    variant: Variant
    power: Array  # (d,) sums over rows of (y - origin)_d^2
    unit: Array  # (d,) s_d at which a start is looked for: all variance is noise
    most: Array  # (d,) largest s_d: 0 of a constant feature; 1 with one noise for all

    @property
    def grid(self) -> Array:
        """Scales (J,) that a row may have."""
        return GRID if self.variant.row_scales else np.ones(1)


def settings_for(em: EMSettings, variant: Variant, rows: Observations) -> VariantSettings:
    """Return the settings of EM on these rows."""
    power, fourth = feature_powers(rows)
    unit = most = np.ones(rows.d)
    if variant.by_feature:
        unit, most = bounds_of_scales(rows, power, fourth)
    return VariantSettings(em._replace(floor=floor_of(rows)), variant, power, unit, most)


class VariantState(NamedTuple):
    """Everything an EM step reads and writes."""

    V: Array  # (d, K) orthonormal columns
    shift: Array  # (K,)
    offset: Array  # (d,)
    latent: Array  # (K,) tau2_k
    noise: float  # sigma2; 1 with a noise of each feature
    scale: Array  # (d,) s_d, 0 for a constant feature; 1 with one noise for all
    weights: Array  # (J,) probabilities of the scales of rows
    sizes: Array  # (K + 1,) probabilities of the sizes; not read where L is fixed

    @property
    def inverse_scale(self) -> Array:
        """Noise deviations (d,) of features in units of sigma, 0 for constant ones."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0.0)

    @property
    def displacement(self) -> Array:
        """Mean less the origin of the rows, (d,)."""
        return np.asarray(self.offset - self.inverse_scale * (self.V @ self.shift))

    def row_model(self, settings: VariantSettings) -> RowModel:
        """Return what decides about a row under this state."""
        counted = self.scale > 0.0
        return RowModel(
            self.noise,
            self.latent,
            int(counted.sum()),
            float(np.log(self.scale[counted]).sum()),
            self.sizes if settings.variant.learn_sizes else settings.em.n_active,
            settings.grid,
            self.weights,
        )


def expect(state: VariantState, rows: Observations, settings: VariantSettings) -> VariantStatistics:
    """E step: posterior sums under `state` and its exact log-likelihood."""
    (d, K), J = state.V.shape, len(settings.grid)
    k, many = np.zeros(K), np.zeros(d)
    start = VariantStatistics(
        0.0, np.zeros((d, K)), k, k, k, np.zeros(()), many, many, np.zeros(J), np.zeros(K + 1)
    )
    m, model, moving = state.displacement, state.row_model(settings), settings.variant.row_scales
    compiled = settings.em.compiled and not settings.variant.learn_sizes
    rule = ByKernel if compiled and not many_swaps(settings.em) else ByNumpy
    sums = rows.summed(
        partial(
            expect_block, scale=state.scale, V=state.V, m=m, model=model, weigh=rule, moving=moving
        ),
        start,
    )
    if moving:
        return sums
    around = settings.power + rows.mass * m**2  # rows sum to their origin wherever m is not 0
    outside = float(np.square(state.scale) @ around) / (2.0 * state.noise)
    value = sums.log_likelihood - outside
    return sums._replace(log_likelihood=value, first=many, power=settings.power)


def maximise(
    sums: VariantStatistics, state: VariantState, rows: Observations, settings: VariantSettings
) -> VariantState:
    """M step, in closed form given the sums; see docs/mathematics.md 1.12.

    V and s are improved in turns, each given the other; all else is joint.
    """
    em, n, weight = settings.em, rows.mass, float(sums.inverse)
    offset, shift = np.zeros_like(state.offset), np.zeros_like(sums.s)
    if em.learn_mean:
        offset, shift = sums.first / weight, sums.s / weight
    A = sums.A - np.outer(offset, sums.s)
    power = sums.power - weight * np.square(offset)
    V, scale, noise = state.V, state.scale, state.noise
    for _ in range(W_STEPS if settings.variant.by_feature else 1):
        V = em.update(scale[:, None] * A, V)
        if settings.variant.by_feature:
            # n log s - s^2 power / 2 + s c is largest at this s, up to bounds
            c, p = np.sum(V * A, axis=1), np.maximum(power, np.finfo(np.float64).tiny)
            scale = np.minimum((c + np.sqrt(c**2 + 4.0 * n * p)) / (2.0 * p), settings.most)
    if not settings.variant.by_feature:
        residual = power.sum() - 2.0 * np.sum(V * A) - weight * (shift @ shift)
        noise = max(float(residual + sums.second.sum()) / (n * rows.n_features), em.floor)
    return VariantState(
        V,
        shift,
        offset,
        _latent(sums, state, settings),
        noise,
        scale,
        probabilities(sums.scales),
        probabilities(sums.sizes) if settings.variant.learn_sizes else state.sizes,
    )


def bounds_of_scales(rows: Observations, power: Array, fourth: Array) -> tuple[Array, Array]:
    """Scales s (d,) at which all variance is noise, and bounds of s; 0 for features left out.

    Left out is what is constant, or varies in fewer than `LEAST_ROWS` rows.
    """
    variance, eps = power / rows.mass, float(np.finfo(rows.dtype).eps)
    origin = np.zeros(rows.d) if rows.origin is None else rows.origin
    counts = variance > np.square(CONSTANT * eps * origin.astype(np.float64))
    counts &= varying_rows(power, fourth) > LEAST_ROWS * (1.0 - ROUNDING)
    share = floor_shares(power, fourth, rows.mass)

    def scale_at(noise: Array) -> Array:
        return np.divide(1.0, np.sqrt(noise), out=np.zeros(rows.d), where=counts)

    return scale_at(np.maximum(share, 1.0) * variance), scale_at(share * variance)


def varying_rows(power: Array, fourth: Array) -> Array:
    """Count the rows (d,) that make up the variance: N over the kurtosis, 0 without variance.

    If m of very many rows deviate, all by as much, it is m.
    """
    return np.square(power) / np.where(fourth > 0.0, fourth, 1.0)


def floor_shares(power: Array, fourth: Array, n: float) -> Array:
    """Least noise variance (d,) over the variance of a feature; `power` and `fourth` are sums."""
    rows = np.maximum(varying_rows(power, fourth), 1.0)
    return np.asarray(np.maximum(FLOOR_ROWS * (1.0 / rows - 3.0 / n), PSI_FLOOR))


def _latent(sums: VariantStatistics, state: VariantState, settings: VariantSettings) -> Array:
    if settings.em.latent == "shared":
        tau2 = np.full_like(state.latent, sums.second.sum() / max(sums.used.sum(), 1e-300))
    elif settings.em.latent == "component":
        some = sums.used > 1e-9 * sums.used.sum()
        tau2 = np.where(some, sums.second / np.where(some, sums.used, 1.0), state.latent)
    else:
        return state.latent
    return np.maximum(tau2, _floor(settings))


def _floor(settings: VariantSettings) -> float:
    """Least variance allowed, relative to the noise where each feature has its own."""
    return NOISE_FLOOR if settings.variant.by_feature else settings.em.floor


def probabilities(counts: Array) -> Array:
    """Normalise what scales or sizes were counted; none has probability 0."""
    p = np.maximum(counts / counts.sum(), LEAST_PROBABILITY)
    return np.asarray(p / p.sum())


def step(
    state: VariantState, rows: Observations, settings: VariantSettings
) -> tuple[float, VariantState]:
    """Log-likelihood of `state` (total, nats) and the state one EM iteration later; pure."""
    sums = expect(state, rows, settings)
    if not math.isfinite(sums.log_likelihood):
        return -math.inf, state
    return sums.log_likelihood, maximise(sums, state, rows, settings)


def extend(
    before: VariantState, now: VariantState, beta: float, settings: VariantSettings
) -> VariantState:
    """Take a momentum step: now + beta (now - before), in logs where numbers are positive."""
    floor = _floor(settings)

    def ahead(first: Array, last: Array) -> Array:
        return np.asarray(last + beta * (last - first))

    def in_logs(first: Any, last: Any) -> Array:
        first, last = np.asarray(first), np.asarray(last)
        some = (first > 0.0) & (last > 0.0)
        change = beta * np.log(np.where(some, last, 1.0) / np.where(some, first, 1.0))
        return np.asarray(last * np.exp(np.clip(change, -MOST_CHANGE, MOST_CHANGE)))

    fixed = not isinstance(settings.em.latent, str)
    return VariantState(
        polar(ahead(before.V, now.V), now.V),
        ahead(before.shift, now.shift),
        ahead(before.offset, now.offset),
        now.latent if fixed else np.maximum(in_logs(before.latent, now.latent), floor),
        max(float(in_logs(before.noise, now.noise)), floor),
        np.minimum(in_logs(before.scale, now.scale), settings.most),
        probabilities(in_logs(before.weights, now.weights)),
        probabilities(in_logs(before.sizes, now.sizes)),
    )
