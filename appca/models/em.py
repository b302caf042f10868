"""EM for adaptive PPCA: the state, the exact E step and the M step.

    y_n = Psi^1/2 W (x_n * z_n) + mu + e_n,  W'W = I,  x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n Psi)

X and Z are integrated out. In the paper's model (section 4), Psi = sigma2 I, u = 1, and z_n is
uniform over the supports of L of 1..K. A `Variant` has a noise variance psi_d per feature, scales u
from a grid, or learned probabilities of sizes |z_n|; sums are still exact.

Psi^-1/2 = diag(s) / sigma. The mean is mu = origin + offset - diag(1/s) W shift, with offset zero
if rows have no scales. Both products run over a few rows at a time, which stay in cache.

    p(y) = sum_j omega_j sum_S p(S) p(y | S, noise u_j sigma2, factor variances u_j tau2_k)

is exact up to rounding, although negligible scales are skipped.
"""

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from appca.models import polynomials
from appca.models.numerics import Array, inverse_or_zero, share_of, zeros
from appca.models.products import ThinProducts
from appca.models.rows import Block, Observations, Rows, added, least_kept, narrowed, tiles
from appca.models.stiefel import polar

NEGLIGIBLE = 37.0  # nats below a row's most probable scale that vanish in rounding


def logits(P: Array, noise: Any, latent: Array) -> Array:
    """Return the gain in log density (N, K), in nats, if row n uses component k.

    a_nk = tau2_k p_nk^2 / (2 sigma2 (sigma2 + tau2_k)) - 1/2 log(1 + tau2_k / sigma2)
    """
    slope = posterior(noise, latent)[0] / (2.0 * noise)  # squaring a variance could overflow
    a = np.square(P, dtype=np.float64)
    a *= slope
    a -= 0.5 * np.log1p(latent / noise)
    return a


def background(squares: Any, noise: Any, n_features: int) -> Array:
    """Return the log density of a row without components: N(0, sigma2 I) at y."""
    return np.asarray(-0.5 * n_features * np.log(2.0 * math.pi * noise) - squares / (2.0 * noise))


def posterior(noise: Any, latent: Array) -> tuple[Array, Array]:
    """Shrinkage tau2 / (tau2 + sigma2) and variance of x_nk given that it is active."""
    shrink = latent / (latent + noise)
    return shrink, shrink * noise


class RowModel(NamedTuple):
    """Model of a row, given its projections and squared length."""

    noise: Any  # sigma2; 1 if each feature has its own noise; (N, 1) if rows differ
    latent: Array  # (K,) tau2_k, or (N, K)
    n_features: int  # number of features in the likelihood
    log_scale: float  # sum of the logs of the factors of features
    sizes: int | Array  # L, or probabilities (K + 1,) of 0 to K components
    grid: Array  # (J,) scales of rows
    weights: Array  # (J,) their probabilities


class RowPosterior(NamedTuple):
    """Posterior of rows."""

    log_density: Array  # (N,) nats
    scales: Array  # (N, J) posterior probabilities
    inclusion: Array  # (N, K)
    by_scale: Array  # (N, K) E[z u^moment], by default E[z / u]
    sizes: Array | None  # (N, K + 1) posterior probabilities, if sizes are learned


def weigh(P: Array, squares: Array, model: RowModel, moment: float = -1.0) -> RowPosterior:
    """Sum over scales and supports, for projections P (N, K) and squared distances (N,)."""
    J = len(model.grid)
    if J == 1:
        log_sum, r, sizes = polynomials.over_supports(_logits(P, model), model.sizes)
        density = _unexplained(squares, model)[:, 0] + log_sum
        return RowPosterior(density, np.ones((len(P), 1)), r, r, sizes)
    power = np.square(P, dtype=np.float64) * slope(model)
    offset = 0.5 * np.log1p(model.latent / model.noise)
    around = _unexplained(squares, model) + np.log(model.weights)
    rows, at = np.nonzero(_promising(power, offset, around, model))
    u = model.grid[at]
    log_sum, r, sizes = polynomials.over_supports(power[rows] / u[:, None] - offset, model.sizes)
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
    return RowPosterior(peak + np.log(total), scales, inclusion, by_scale, sizes)


def describe_rows(P: Array, squares: Array, model: RowModel) -> tuple[RowPosterior, Array, Array]:
    """Posterior of rows, their likeliest supports (N, K) bool, and the supports' probabilities."""
    if len(model.grid) > 1:
        row, active = weigh(P, squares, model), likeliest(P, squares, model)
        return row, active, share_of(support_density(P, squares, active, model) - row.log_density)
    a = _logits(P, model)
    log_sum, r, sizes = polynomials.over_supports(a, model.sizes)
    active, value = polynomials.best(a, model.sizes)
    density, scales = _unexplained(squares, model)[:, 0] + log_sum, np.ones((len(P), 1))
    return RowPosterior(density, scales, r, r, sizes), active, share_of(value - log_sum)


def log_density(P: Array, squares: Array, model: RowModel) -> Array:
    """Log p(y), (N,) in nats."""
    if len(model.grid) > 1:
        return weigh(P, squares, model).log_density
    log_sum = polynomials.over_supports(_logits(P, model), model.sizes, wanted=False)[0]
    return _unexplained(squares, model)[:, 0] + log_sum


def membership(P: Array, squares: Array, model: RowModel) -> Array:
    """Posterior probabilities (N,) of the likeliest supports."""
    if len(model.grid) > 1:
        joint = support_density(P, squares, likeliest(P, squares, model), model)
        return share_of(joint - weigh(P, squares, model).log_density)
    a = _logits(P, model)
    log_sum = polynomials.over_supports(a, model.sizes, wanted=False)[0]
    return share_of(polynomials.best(a, model.sizes)[1] - log_sum)


def likeliest(P: Array, squares: Array, model: RowModel) -> Array:
    """Support (N, K) bool of the most probable scale and support together."""
    if len(model.grid) == 1 and isinstance(model.sizes, int):
        return polynomials.top(_logits(P, model), model.sizes)
    best, chosen = np.full(len(P), -np.inf), np.zeros(P.shape, dtype=bool)
    around = _unexplained(squares, model) + np.log(model.weights)
    for j, u in enumerate(model.grid):
        active, value = polynomials.best(_logits(P, model, u), model.sizes)
        value += around[:, j]
        better = value > best
        chosen[better] = active[better]
        np.maximum(best, value, out=best)
    return chosen


def support_density(P: Array, squares: Array, chosen: Array, model: RowModel) -> Array:
    """Log density (N,) of rows together with supports (N, K) bool."""
    joint = _unexplained(squares, model) + np.log(model.weights)
    for j, u in enumerate(model.grid):
        joint[:, j] += polynomials.log_weight(_logits(P, model, u), chosen, model.sizes)
    return np.asarray(np.logaddexp.reduce(joint, axis=1))


def slope(model: RowModel) -> Array:
    """Slope (K,) of the logits in squared projections, at u = 1."""
    return np.asarray(posterior(model.noise, model.latent)[0] / (2.0 * model.noise))


def _logits(P: Array, model: RowModel, u: float = 1.0) -> Array:
    return logits(P, u * model.noise, u * model.latent)


def _unexplained(squares: Array, model: RowModel) -> Array:
    """Log density (N, J) of rows without components, for each scale."""
    noise = model.noise * model.grid
    return model.log_scale + background(squares[:, None], noise, model.n_features)


def _promising(power: Array, offset: Array, around: Array, model: RowModel) -> Array:
    """Whether (N, J) a scale may add more than rounding to the density of a row."""
    L, K, u = model.sizes, len(offset), model.grid
    if isinstance(L, int):
        ordered, costs = np.partition(power, K - L, axis=1), np.sort(offset)
        most = ordered[:, K - L :].sum(axis=1)[:, None] / u - costs[:L].sum()
        gap = polynomials.log_binomial(K, L) + costs[K - L :].sum() - costs[:L].sum()
    else:
        most = np.column_stack([np.maximum(power / scale - offset, 0.0).sum(axis=1) for scale in u])
        gap = -float((np.log(L) - polynomials.log_counts(K)).min())
    most += around
    return np.asarray(~(most < most.max(axis=1, keepdims=True) - gap - NEGLIGIBLE))


NOISE_FLOOR = 1e-8  # minimum of sigma2 relative to the mean feature variance

# The E step is compiled from this number of rows x K x swaps; the app's first fit does not wait.
LEAST_COMPILED, MOST_COUNTED = 20_000, 15
MANY_SWAPS = 50  # above this, a Fourier transform is faster than a table
MAX_MOMENTUM_LOG_CHANGE = 1.0  # maximum change of a log variance by momentum
GRID = np.geomspace(0.1, 10.0, 10)  # row scales; 0.3 to 3.5 lost 31 nats per row of COIL-20
LEAST_PROBABILITY = 1e-10  # minimum probability of a scale or a size
PSI_FLOOR = 1e-2  # minimum noise share of a feature; with less, a component copies it
FLOOR_ROWS = 4.0  # (kurtosis - 3) / N times this: the floor if few rows make up the variance
LEAST_ROWS = 2.0  # minimum N / kurtosis that determines a variance; 3 rows give 2
ROUNDING = 1e-6
CONSTANT = 8.0  # a deviation of fewer roundings of the mean is zero
W_STEPS = 3  # number of alternating updates of W and s within an M step


class Variant(NamedTuple):
    """Extensions of the paper's model."""

    by_feature: bool = False  # noise="feature"
    row_scales: bool = False  # row_scale="learned"
    learn_sizes: bool = False  # n_active="learned"


PAPER = Variant()


class EMSettings(NamedTuple):
    """Settings that stay fixed over the iterations of EM."""

    n_components: int  # K
    n_active: int  # L, or the start of learned sizes
    latent: Literal["shared", "component"] | float  # estimate of latent variances, or their value
    learn_mean: bool  # False: the mean stays at the origin of the rows
    hard: bool  # classification EM: assign rows to their best support
    update: Callable[[Array, Array], Array]  # (A, previous W) -> argmax of tr(W'A)
    floor: float  # minimum variance
    compiled: bool = False  # whether to compile the E step; see `worth_compiling`
    variant: Variant = PAPER
    # With noise per feature, (d,); s is 0 for a constant feature.
    power: Any = None  # sums over rows of (y - origin)_d^2
    unit: Array = np.ones(())  # s if all variance is noise, for screening starts
    most: Array = np.ones(())  # maximum of s

    @property
    def grid(self) -> Array:
        """Scales (J,) of rows."""
        return GRID if self.variant.row_scales else np.ones(1)

    @property
    def least_variance(self) -> float:
        """Minimum variance, relative to the noise if each feature has its own."""
        return NOISE_FLOOR if self.variant.by_feature else self.floor


class SubspaceState(NamedTuple):
    """Parameters and options that an EM step reads and writes."""

    W: Array  # (d, K) orthonormal columns
    shift: Array  # (K,)
    latent: Array  # (K,) latent variances tau2_k
    noise: float  # sigma2; 1 with noise per feature
    offset: Array = np.zeros(())  # (d,), or zero
    scale: Array = np.ones(())  # (d,) s_d, 0 for a constant feature; 1 with shared noise
    weights: Array = np.ones(1)  # (J,) probabilities of the scales of rows
    sizes: Array | None = None  # (K + 1,) probabilities of the sizes, if they are learned
    members: Any = None  # supports (n, L) of blocks of incomplete rows, if not summed

    @property
    def inverse_scale(self) -> Array:
        """Noise deviations of features in units of sigma, (d,) or 1; 0 for constant features."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0.0)

    @property
    def directions(self) -> Array:
        """Directions (d, K) of rows whose products are in noise units."""
        return self.scale[:, None] * self.W if self.scale.ndim else self.W

    @property
    def displacement(self) -> Array:
        """Mean minus the origin of the rows, (d,)."""
        return np.asarray(self.offset - self.inverse_scale * (self.W @ self.shift))

    def row_model(self, n_active: int, n_features: int) -> RowModel:
        """Return the model of a row of `n_features` features under this state."""
        log_scale = 0.0
        if self.scale.ndim:
            counted = self.scale > 0.0
            n_features, log_scale = int(counted.sum()), float(np.log(self.scale[counted]).sum())
        sizes = n_active if self.sizes is None else self.sizes
        grid = GRID if len(self.weights) > 1 else np.ones(1)
        return RowModel(self.noise, self.latent, n_features, log_scale, sizes, grid, self.weights)


class SubspaceStatistics(NamedTuple):
    """Expected sufficient statistics of one pass over the rows; u is the scale of a row."""

    log_likelihood: float  # total, nats
    A: Any  # (d, K) sum of E[(y - origin) s' / u], s the posterior means of x * z
    s: Array  # (K,) sum of E[s / u]
    second: Array  # (K,) sum of E[(x z)^2 / u]
    used: Array  # (K,) sum of inclusion probabilities
    inverse: float = 0.0  # sum of E[1 / u]
    first: Any = 0.0  # (d,) sum of E[1 / u] (y - origin), or zero
    power: Any = 0.0  # sum of E[1 / u] |y - origin|^2; (d,) with noise per feature
    scales: Any = 0.0  # (J,) sum of the posterior probabilities of scales
    sizes: Any = 0.0  # (K + 1,) the same for sizes


def floor_of(rows: Observations) -> float:
    """Return the minimum variance, a fixed share of the mean feature variance about the origin."""
    return NOISE_FLOOR * rows.total / (rows.mass * rows.n_features)


def settings_on(rows: Observations, settings: EMSettings) -> EMSettings:
    """Return the settings with the floors, powers and bounds for these rows.

    N / kurtosis of a feature counts the rows that make up its variance. Features that are constant,
    or vary in fewer than `LEAST_ROWS` rows, are omitted.
    """
    settings = settings._replace(floor=floor_of(rows))
    if not settings.variant.by_feature:
        return settings
    of_one, mean_square = 1.0, rows.total / (rows.mass * rows.n_features)
    if isinstance(rows, Rows) and rows.weights is not None:
        multiples = rows.weights / rows.weights.min()
        repeated = np.allclose(multiples, np.round(multiples), rtol=1e-9, atol=0.0)
        of_one = float(rows.weights.min() if repeated else rows.weights.mean())

    def powers(block: Block) -> Array:
        out = np.zeros((2, rows.d))
        weights = np.ones(len(block.X)) if block.weights is None else block.weights
        for part, B in tiles(block.X, block.origin):
            squares = np.square(B)
            relative = squares / B.dtype.type(mean_square)  # so that no fourth power overflows
            out[0] += weights[part] @ squares
            out[1] += weights[part] @ np.square(relative, dtype=np.float64)
        return out

    power, fourth = rows.summed(powers, np.zeros((2, rows.d)))
    relative, variance = power / mean_square, power / rows.mass
    varying = relative / of_one * (relative / np.where(fourth > 0.0, fourth, 1.0))
    origin = np.zeros(rows.d) if rows.origin is None else rows.origin.astype(np.float64)
    counts = variance > np.square(CONSTANT * float(np.finfo(rows.dtype).eps) * origin)
    counts &= varying > LEAST_ROWS * (1.0 - ROUNDING)
    share = floor_shares(varying, rows.mass / of_one)
    noises = np.maximum(share, 1.0) * variance, share * variance
    unit, most = (inverse_or_zero(np.sqrt(noise) * counts) for noise in noises)
    return settings._replace(power=power, unit=unit, most=most)


def floor_shares(varying: Array, n: float) -> Array:
    """Return minimum noise shares (d,) of features whose variance is due to `varying` of n rows."""
    shares = FLOOR_ROWS * (1.0 / np.maximum(varying, 1.0) - 3.0 / n)
    return np.asarray(np.maximum(shares, PSI_FLOOR))


def worth_compiling(n_rows: int, n_components: int, n_active: int) -> bool:
    """Whether to compile the E step; depends on size only, so all machines give the same bits."""
    return sums_a_pass(n_rows, n_components, n_active) >= LEAST_COMPILED


def sums_a_pass(n_rows: int, n_components: int, n_active: int) -> int:
    """Return rows x K x swaps, a measure of the time of an E step in few coordinates."""
    return n_rows * n_components * min(n_active, n_components - n_active, MOST_COUNTED)


def expect(
    state: SubspaceState, rows: Observations, settings: EMSettings, beta: float = 1.0
) -> SubspaceStatistics:
    """E step: posterior sums under `state` and its exact log-likelihood.

    r_nk = p(z_nk = 1 | y_n),  s_n = r_n * m_n,  m_nk = tau2_k/(tau2_k + sigma2) p_nk

    With hard assignment, the log-likelihood is log p(Y, Z) at the best Z. `beta` tempers logits.
    """
    variant, K = settings.variant, state.W.shape[1]
    swaps, soft = min(settings.n_active, K - settings.n_active), not settings.hard or beta != 1.0
    compiled = settings.compiled and soft and not variant.learn_sizes and swaps < MANY_SWAPS
    work: Any
    if variant.by_feature or variant.row_scales:
        model = state.row_model(settings.n_active, rows.n_features)
        rule = ByKernel if compiled else ByNumpy
        work = partial(_expect_tiles, state=state, model=model, rule=rule, settings=settings)
    elif compiled:
        work = partial(expect_compiled, state=state, n_active=settings.n_active, beta=beta)
    else:
        work = partial(expect_block, state=state, settings=settings, beta=beta)
    sums: SubspaceStatistics = rows.summed(work)
    if variant.row_scales:
        return sums
    # If the mean differs from the origin, rows sum to zero about the origin: no cross term.
    n, power, shift = rows.mass, rows.total, state.shift
    value, around = sums.log_likelihood, power + n * float(shift @ shift)
    if variant.by_feature:
        power = settings.power
        around = np.square(state.scale) @ (power + n * np.square(state.displacement))
    else:
        value -= 0.5 * n * rows.n_features * math.log(2.0 * math.pi * state.noise)
    value -= float(around) / (2.0 * state.noise)
    return sums._replace(log_likelihood=value, inverse=n, power=power)


def expect_block(
    block: Block, state: SubspaceState, settings: EMSettings, beta: float = 1.0
) -> SubspaceStatistics:
    """Sum over a block; the log-likelihood lacks terms that are equal for all rows."""
    P = block.times(state.W).astype(np.float64, copy=False) + _moved(state)
    shrink, v = posterior(state.noise, state.latent)
    a = logits(P, state.noise, state.latent)
    if beta != 1.0:
        a *= beta
    if settings.hard and beta == 1.0:
        r, p = polynomials.top(a, settings.n_active).astype(np.float64), None
        log_sum = np.einsum("nk,nk->n", a, r)
        log_sum -= polynomials.log_binomial(a.shape[1], settings.n_active)
    else:
        prior = settings.n_active if state.sizes is None else state.sizes
        log_sum, r, p = polynomials.over_supports(a, prior)
    P *= shrink
    r = block.weighted(r)
    S, used = r * P, r.sum(axis=0)
    second = np.einsum("nk,nk->k", S, P) + used * v
    value = float(block.weighted(log_sum).sum())
    sizes = 0.0 if p is None else block.weighted(p).sum(axis=0)
    moments = block.transposed_times(S), S.sum(axis=0), second, used
    return SubspaceStatistics(value, *moments, sizes=sizes)


def _moved(state: SubspaceState) -> Array:
    """Return projections about the mean minus projections about the origin, (K,)."""
    return state.shift - state.offset @ state.W if state.offset.ndim else state.shift


def _expect_tiles(
    block: Block, state: SubspaceState, model: RowModel, rule: Any, settings: EMSettings
) -> SubspaceStatistics:
    """Sum over a block of a variant, a few centred rows at a time."""
    work: ByNumpy | ByKernel = rule(model)
    X, (d, K), directions = block.X, state.W.shape, state.directions
    mean = state.displacement + (0.0 if block.origin is None else block.origin)
    centre = mean.astype(X.dtype)
    scaled, by_feature = settings.variant.row_scales, settings.variant.by_feature
    thin = ThinProducts(directions, np.broadcast_to(state.scale, d) if scaled else None, X)
    rest = (mean - centre) @ directions
    weights = np.ones(len(X)) if block.weights is None else block.weights
    A, power = np.zeros((K + 1, d)), np.zeros(d if by_feature else ())
    for part, B, squares in thin.tiles(X, centre):
        P = thin.project(B)
        P -= rest[:, None]
        inverse = work(P, squares, weights[part])
        A += thin.outer(P, inverse, B)
        if scaled:
            power += thin.power(inverse, B) if by_feature else inverse @ squares
    sums = work.sums
    away = centre - (0.0 if block.origin is None else block.origin.astype(np.float64))
    A, first = A[:K].T + np.outer(away, sums.s), A[K]
    if not scaled:
        return sums._replace(A=A, inverse=0.0)
    moved = 2.0 * away * first + sums.inverse * np.square(away)
    power += moved if by_feature else moved.sum()
    return sums._replace(A=A, first=first + sums.inverse * away, power=power)


def maximise(
    sums: SubspaceStatistics, state: SubspaceState, rows: Any, settings: EMSettings
) -> SubspaceState:
    """M step: joint closed-form update of W, mean, tau2 and sigma2 given the sums.

    W = argmax tr(W' sum E[(y - ybar)(s - sbar)' / u]),  mu = ybar - W sbar,
    sigma2 = (sum E[|y - mu|^2 / u] - 2 tr(W' sum E[(y - mu) s' / u]) + sum E[(x z)^2 / u]) / (N D)

    Averages are weighted by E[1 / u]. With noise per feature, W and s alternate (1.12).
    """
    n, weight, variant = rows.mass, sums.inverse, settings.variant
    A, offset = sums.A, np.zeros(())
    shift = sums.s / weight if settings.learn_mean else np.zeros_like(sums.s)
    if settings.learn_mean and isinstance(sums.first, np.ndarray):
        offset = sums.first / weight
        A = A - np.outer(offset, sums.s)
    W, scale, noise = state.W, state.scale, state.noise
    if variant.by_feature:
        power = sums.power - weight * np.square(offset)
        for _ in range(W_STEPS):
            W = settings.update(scale[:, None] * A, W)
            # this s maximizes log s - s^2 p / 2 + s c, up to bounds
            c, p = np.sum(W * A, axis=1) / n, np.maximum(power / n, np.finfo(np.float64).tiny)
            scale = np.minimum((c + np.sqrt(c**2 + 4.0 * p)) / (2.0 * p), settings.most)
    else:
        W = settings.update(A, W)
        away = float(shift @ shift) + (float(offset @ offset) if offset.ndim else 0.0)
        residual = sums.power - 2.0 * np.sum(W * A) - weight * away
        noise = max(float(residual + sums.second.sum()) / (n * rows.n_features), settings.floor)
    weights = probabilities(sums.scales) if variant.row_scales else state.weights
    sizes = probabilities(sums.sizes) if variant.learn_sizes else state.sizes
    latent = _latent(sums, state, settings)
    return SubspaceState(W, shift, latent, noise, offset, scale, weights, sizes)


def _latent(sums: SubspaceStatistics, state: SubspaceState, settings: EMSettings) -> Array:
    """Return tau2 = sum E[(x z)^2 / u] / sum r, or one per component; unused ones are unchanged."""
    if settings.latent == "shared":
        tau2 = np.full_like(state.latent, sums.second.sum() / max(sums.used.sum(), 1e-300))
    elif settings.latent == "component":
        some = sums.used > 1e-9 * sums.used.sum()
        tau2 = np.where(some, sums.second / np.where(some, sums.used, 1.0), state.latent)
    else:
        return state.latent
    return np.maximum(tau2, settings.least_variance)


def probabilities(counts: Array) -> Array:
    """Normalize counts of scales or sizes to positive probabilities."""
    p = np.maximum(counts / counts.sum(), LEAST_PROBABILITY)
    return np.asarray(p / p.sum())


def extend(before: SubspaceState, now: SubspaceState, beta: float, settings: Any) -> SubspaceState:
    """Return now + beta (now - before), in logs of positive numbers and the polar factor of W."""
    most = math.exp(MAX_MOMENTUM_LOG_CHANGE)

    def ahead(first: Array, last: Array) -> Array:
        return last + beta * (last - first)

    def in_logs(first: Any, last: Any) -> Any:
        return last * np.minimum(np.maximum((last / first) ** beta, 1.0 / most), most)

    latent = now.latent
    if isinstance(settings.latent, str):
        latent = np.maximum(in_logs(before.latent, latent), settings.least_variance)
    noise = max(float(in_logs(before.noise, now.noise)), settings.least_variance)
    W, shift = polar(ahead(before.W, now.W), now.W), ahead(before.shift, now.shift)
    offset = ahead(before.offset, now.offset) if now.offset.ndim else now.offset
    state = now._replace(W=W, shift=shift, latent=latent, noise=noise, offset=offset)
    if settings.variant == PAPER:
        return state
    counted, scale = now.scale > 0.0, np.zeros_like(now.scale)
    scale[counted] = in_logs(before.scale[counted], now.scale[counted])
    scale = np.minimum(scale, settings.most) if scale.ndim else scale
    weights = probabilities(in_logs(before.weights, now.weights))
    sizes = None if now.sizes is None else probabilities(in_logs(before.sizes, now.sizes))
    return state._replace(scale=scale, weights=weights, sizes=sizes)


def resumed(state: SubspaceState, settings: EMSettings) -> SubspaceState:
    """Adapt a fitted state to these settings for a warm start."""
    shift, latent = state.shift * settings.learn_mean, state.latent
    if settings.latent != "component":
        common = latent.mean() if isinstance(settings.latent, str) else settings.latent
        latent = np.full_like(latent, common)
    return SubspaceState(state.W, shift, latent, max(state.noise, settings.floor))


def evenly(state: SubspaceState, settings: EMSettings) -> SubspaceState:
    """Return a state of the paper's model with all scales, and sizes, equally probable."""
    K, J = settings.n_components, len(settings.grid)
    sizes = np.full(K + 1, 1.0 / (K + 1)) if settings.variant.learn_sizes else None
    return state._replace(weights=np.full(J, 1.0 / J), sizes=sizes)


@dataclass
class EMMap:
    """EM steps over the same rows that cache the last three E steps."""

    rows: Any
    settings: EMSettings
    e_step: Callable[..., Any] = expect
    _seen: deque[tuple[SubspaceState, Any]] = field(default_factory=lambda: deque(maxlen=3))

    def sums(self, state: SubspaceState) -> Any:
        """E step under `state`, cached."""
        for seen, sums in self._seen:
            if seen is state:
                return sums
        self._seen.append((state, self.e_step(state, self.rows, self.settings)))
        return self._seen[-1][1]

    def __call__(self, state: SubspaceState, sums: Any = None) -> tuple[float, SubspaceState]:
        """Return the log-likelihood of `state` (total, nats), and the next state of EM."""
        sums = self.sums(state) if sums is None else sums
        if not math.isfinite(sums.log_likelihood):
            return -math.inf, state
        return sums.log_likelihood, maximise(sums, state, self.rows, self.settings)


def compile_ahead() -> None:
    """Compile E steps for few coordinates, wide rows and many swaps, in both precisions."""
    many = MANY_SWAPS
    for K, L, d in [(4, 2, 8), (4, 2, 256), (2 * many, many, 2 * many)]:
        for dtype in (np.float64, np.float32):
            rows = Rows(np.eye(d, dtype=dtype), None, np.ones(d), d)
            settings = EMSettings(K, L, "shared", True, False, polar, 1e-8, compiled=True)
            expect(SubspaceState(np.eye(d, K), np.zeros(K), np.ones(K), 1.0), rows, settings)


TILE_BYTES, MOST_LANES_A_TILE = 2**20, 8  # limits of a tile of rows
TILE_ROWS = 1024  # rows per tile with BLAS; 2,048 take twice as long
MOST_KEPT_BYTES = 2**20  # maximum size of the projections that a thread caches


class Lanes:
    """Memory for projections of a few lanes of 64 rows, reused because allocation takes time."""

    def __init__(self, n_lines: int, K: int, J: int, n_tiles: int, n_lanes: int) -> None:
        from appca.models.numeric_kernels import LANES

        lanes = n_lanes, LANES
        self.P = zeros((n_lines, n_lanes * LANES))  # projections
        self.level, self.total = zeros((2, n_tiles, *lanes))
        self.weights, self.sums = zeros((2, K, *lanes)), zeros((3, K, LANES))
        self.table = zeros(((K + 2) * (J + 2) + 1, LANES))
        self.table[1] = 1.0
        room = zeros((J + 1, LANES))
        self.room = room[:J], room[J]
        self.lines = self.P.reshape(n_lines, *lanes)


_kept = threading.local()


def expect_compiled(block: Block, state: Any, n_active: int, beta: float) -> SubspaceStatistics:
    """Run `expect_block` as compiled code, with soft assignment, while rows are in cache."""
    from appca.models.em_kernels import share, weigh_components
    from appca.models.numeric_kernels import LANES, QUAD, add_outer, project, suits

    (n, d), K, X = block.X.shape, state.W.shape[1], block.X
    sparse = not isinstance(X, np.ndarray)
    tiled = suits(X.dtype, d, K) and not sparse
    if not sparse:
        X = (np.ascontiguousarray(X) if tiled else X).view()
        X.flags.writeable = False  # avoids a second kernel for writeable rows
    most = -(-n // (LANES * -(-n // TILE_ROWS)))  # lanes per tile
    directions = np.ascontiguousarray(narrowed(state.W.T, X.dtype))
    if tiled:
        most = min(max(TILE_BYTES // (d * X.itemsize * LANES), 1), MOST_LANES_A_TILE)
        padded, part = zeros((-(-K // QUAD) * QUAD, d), X.dtype), zeros((K + K % 2, d), X.dtype)
        padded[:K], directions = directions, padded
    most, J = min(most, -(-n // LANES)), min(n_active, K - n_active)
    shape, width = (len(directions), K, J, -(-n // (most * LANES)), most), most * LANES
    at: Lanes = _kept.lanes if getattr(_kept, "shape", None) == shape else Lanes(*shape)
    if at.P.nbytes <= MOST_KEPT_BYTES:
        _kept.shape, _kept.lanes = shape, at
    q = np.empty((5, K))  # as in `em_kernels.weigh_components`
    q[0] = _moved(state) if block.origin is None else _moved(state) - block.origin @ state.W
    q[3], q[4] = posterior(state.noise, state.latent)
    np.sqrt(q[3] * (beta / (2.0 * state.noise)), out=q[1])
    np.multiply(np.log1p(state.latent / state.noise), 0.5 * beta, out=q[2])
    least = least_kept(math.sqrt(state.latent.max()), X.dtype)
    how, A, P = (J, -1.0 if 2 * n_active > K else 1.0, least), np.zeros((K + K % 2, d)), at.P
    by_columns = not sparse and X.strides[0] == X.itemsize  # gives the product in the order of P
    at.sums[:] = 0.0
    for tile, start in enumerate(range(0, n, width)):
        rows = X[start : start + width]
        if tiled:
            project(rows, directions, P)
        else:
            P[:, : len(rows)] = directions @ rows.T if by_columns else (rows @ directions.T).T
        P[:, len(rows) :] = 0.0
        weigh_components(at.lines, q, how, at.weights, at.level[tile], at.room)
        share(at.lines, n - start, q, how, at.weights, (at.total[tile], at.sums), at.table)
        if tiled:
            part[:] = 0
            add_outer(rows, P[: len(part)].astype(X.dtype, copy=False), part)
            A += part
        else:
            A[:K] += P[:, : len(rows)].astype(X.dtype) @ rows
    value, totals, A = np.log(at.total), at.sums.sum(axis=2), A[:K].T
    value += at.level
    if block.origin is not None:
        A -= np.outer(block.origin, totals[0])
    supports = n * polynomials.log_binomial(K, n_active)
    return SubspaceStatistics(float(value.ravel()[:n].sum()) - supports, A, *totals)


class ByNumpy:
    """Sums over scales and supports of some rows at a time, and accumulates moments."""

    def __init__(self, model: RowModel) -> None:
        none = np.zeros(len(model.latent))
        self.sums = SubspaceStatistics(0.0, 0.0, none, none, none)  # without products with rows
        self._model = model
        self._shrink, self._v = posterior(model.noise, model.latent)

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """Return E[1 / u] (n,) times weights; P (K, n) becomes E[x z / u] times weights."""
        row, m = weigh(P.T, squares, self._model), self._shrink[:, None] * P
        P[:] = row.by_scale.T * m * weights
        used, scales = weights @ row.inclusion, weights @ row.scales
        inverse: Array = weights * (row.scales @ (1.0 / self._model.grid))
        second = np.einsum("kn,kn->k", P, m) + used * self._v
        sizes = 0.0 if row.sizes is None else weights @ row.sizes
        value, total = float(weights @ row.log_density), float(inverse.sum())
        of_rows = value, 0.0, P.sum(axis=1), second, used, total
        self.sums = added(self.sums, SubspaceStatistics(*of_rows, scales=scales, sizes=sizes))
        return inverse


class ByKernel:
    """`ByNumpy` as compiled code, for 0 < L < K."""

    def __init__(self, model: RowModel) -> None:
        L, K, u = int(np.asarray(model.sizes)), len(model.latent), model.grid
        J, sign = (L, 1.0) if 2 * L <= K else (K - L, -1.0)
        offset = 0.5 * np.log1p(model.latent / model.noise)
        supports, least = polynomials.log_binomial(K, L), np.sort(offset)
        costs = least[:L].sum()
        gap = supports + least[K - L :].sum() - costs + NEGLIGIBLE
        nothing = _unexplained(np.zeros(1), model)[0] + np.log(model.weights) - supports
        scales = np.array([u, nothing, 1.0 / (2.0 * u * model.noise)])
        q = np.array([slope(model), offset, *posterior(model.noise, model.latent)])
        self._fixed = q, scales, np.array([sign, costs, gap])
        table = np.zeros((K + 1, J + 2))
        table[0, 1] = 1.0
        self._room = table, np.empty((len(u), K)), np.empty((2, len(u))), np.empty((5, K + 1))
        self._moments, self._scales, self._value = np.zeros((3, K)), np.zeros(len(u)), 0.0

    def __call__(self, P: Array, squares: Array, weights: Array) -> Array:
        """See `ByNumpy`."""
        from appca.models.em_kernels import weigh_mixtures

        inverse = np.empty(len(squares))
        out = self._moments, self._scales, inverse
        squares = squares.astype(np.float64)
        self._value += weigh_mixtures(P, squares, weights, *self._fixed, out, self._room)
        return inverse

    @property
    def sums(self) -> SubspaceStatistics:
        """See `ByNumpy.sums`."""
        second, used, s = self._moments
        inverse = float(self._scales @ (1.0 / self._fixed[1][0]))
        return SubspaceStatistics(self._value, 0.0, s, second, used, inverse, scales=self._scales)
