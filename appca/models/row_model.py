"""Posterior of a row's scale, number of components and support.

    p(y) = sum_j omega_j sum_S p(S) p(y | S, noise u_j sigma2, factor variances u_j tau2_k)

p(S) is uniform over the supports of L components, or over those of each size. Sums are exact;
scales that add less than rounding are left out.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models import numerics, polynomials
from appca.models.numerics import Array, share_of

NEGLIGIBLE = 37.0  # nats below the likeliest scale of a row: less than the rounding of 1


class RowModel(NamedTuple):
    """The parameters that decide about a row, given its projections and squared length."""

    noise: Any  # sigma2; 1 where each feature has its own noise; (N, 1) where rows differ
    latent: Array  # (K,) tau2_k, or (N, K)
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
    J = len(model.grid)
    if J == 1:
        log_sum, r, sizes = _over_supports(_logits(P, model), model.sizes)
        return Weighed(_nothing(squares, model) + log_sum, np.ones((len(P), 1)), r, r, sizes)
    power = np.square(P, dtype=np.float64) * slope(model)
    offset = 0.5 * np.log1p(model.latent / model.noise)
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


def judged(P: Array, squares: Array, model: RowModel) -> tuple[Weighed, Array, Array]:
    """Posterior of rows, their likeliest supports (N, K) bool, and probabilities (N,) of these."""
    if len(model.grid) > 1:
        row, active = weigh(P, squares, model), likeliest(P, squares, model)
        chosen = support_density(P, squares, active, model)
        return row, active, share_of(chosen - row.log_density)
    a = _logits(P, model)
    log_sum, r, sizes = _over_supports(a, model.sizes)
    active, value = polynomials.best(a, model.sizes)
    density = _nothing(squares, model) + log_sum
    return Weighed(density, np.ones((len(P), 1)), r, r, sizes), active, share_of(value - log_sum)


def log_density(P: Array, squares: Array, model: RowModel) -> Array:
    """Log p(y), (N,) in nats."""
    if len(model.grid) > 1 or not isinstance(model.sizes, int):
        return weigh(P, squares, model).log_density
    log_e = polynomials.log_elementary(_logits(P, model), model.sizes)
    return _nothing(squares, model) + log_e - numerics.log_binomial(P.shape[1], model.sizes)


def membership(P: Array, squares: Array, model: RowModel) -> Array:
    """Posterior probabilities (N,) of the likeliest supports."""
    if len(model.grid) > 1:
        joint = support_density(P, squares, likeliest(P, squares, model), model)
        return share_of(joint - weigh(P, squares, model).log_density)
    a = _logits(P, model)
    if isinstance(model.sizes, int):
        log_sum = polynomials.log_elementary(a, model.sizes)
        log_sum -= numerics.log_binomial(a.shape[1], model.sizes)
    else:
        log_sum = polynomials.sized_inclusion(a, model.sizes)[0]
    return share_of(polynomials.best(a, model.sizes)[1] - log_sum)


def likeliest(P: Array, squares: Array, model: RowModel) -> Array:
    """Support (N, K) bool of the most probable scale and support together."""
    if len(model.grid) == 1 and isinstance(model.sizes, int):
        return polynomials.top(_logits(P, model), model.sizes)
    best, chosen = np.full(len(P), -np.inf), np.zeros(P.shape, dtype=bool)
    around = background(squares, model) + np.log(model.weights)
    for j, u in enumerate(model.grid):
        active, value = polynomials.best(_logits(P, model, u), model.sizes)
        value += around[:, j]
        better = value > best
        chosen[better] = active[better]
        np.maximum(best, value, out=best)
    return chosen


def _logits(P: Array, model: RowModel, u: float = 1.0) -> Array:
    return numerics.logits(P, u * model.noise, u * model.latent)


def support_density(P: Array, squares: Array, chosen: Array, model: RowModel) -> Array:
    """Log density (N,) of rows together with supports (N, K) bool."""
    joint = background(squares, model) + np.log(model.weights)
    for j, u in enumerate(model.grid):
        joint[:, j] += polynomials.log_weight(_logits(P, model, u), chosen, model.sizes)
    return np.asarray(np.logaddexp.reduce(joint, axis=1))


def slope(model: RowModel) -> Array:
    """Slope (K,) of the logits in squared projections, at u = 1."""
    return numerics.posterior(model.noise, model.latent)[0] / (2.0 * model.noise)


def background(squares: Array, model: RowModel) -> Array:
    """Log density (N, J) of rows that no component explains, for each scale."""
    twice = 2.0 * model.noise * model.grid
    constant = model.log_scale - 0.5 * model.n_features * np.log(np.pi * twice)
    return np.asarray(constant - squares[:, None] / twice)


def _nothing(squares: Array, model: RowModel) -> Array:
    noise = model.noise[:, 0] if np.ndim(model.noise) else model.noise
    return numerics.background(squares, noise, model.n_features) + model.log_scale


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
