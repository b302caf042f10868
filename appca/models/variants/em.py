"""Exact EM for aPPCA with a noise of each feature, a scale of each row, and learned sizes.

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n Psi),  W' Psi^-1 W = I

Psi is sigma2 I, or diag(psi_d); u_n is 1, or one of a grid with learned weights; and z_n is uniform
over the supports of L components, or of each size with learned probabilities. Rows multiplied by
s_d = psi_d^(-1/2) follow the model with orthonormal V = Psi^(-1/2) W and noise variance 1, so that
all variants have the E step of `row_mixture` and the W step of `em`.

The mean is carried as mu = origin + offset - V shift / s.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import MAX_MOMENTUM_LOG_CHANGE as MOST_CHANGE
from appca.models.orthonormal.em import NOISE_FLOOR, EMSettings, floor_of, many_swaps
from appca.models.rows.observations import Observations
from appca.models.variants.expectation import (
    ByKernel,
    ByNumpy,
    VariantStatistics,
    expect_block,
    feature_powers,
)
from appca.models.variants.row_mixture import RowModel

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
