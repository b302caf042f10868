"""Chains of adaptive factor analysis: where they start, what they keep, what they are judged by."""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra import gaussian
from appca.models.factors.factor_em import PRIOR, coefficients
from appca.models.factors.factor_fit import FactorFit
from appca.models.factors.factor_gibbs import (
    CachedGibbsState,
    FactorGibbsState,
    FactorPrior,
    indicators,
    parts,
    projected,
    scores,
    sweep,
)
from appca.models.rows.observations import Rows
from appca.models.rows.precise_products import ChainData
from appca.models.sampling import conditionals
from appca.models.sampling.chains import Draws, Measures, Sampler
from appca.models.sampling.invariants import co_allocation, occupancy, row_pairs
from appca.models.sampling.row_sums import background_of
from appca.models.supports import enumeration, fixed_size_supports, row_blocks

Array = NDArray[np.float64]


def first_state(
    rng: np.random.Generator, rows: Rows, fit: FactorFit, loading_variance: float | None
) -> FactorGibbsState:
    """Take a fit by EM as the state of a chain: each row's best set, scores at their means.

    The mean is about the origin of the rows.
    """
    W = np.asarray(fit.state.W, dtype=np.float64)
    seen = coefficients(fit.state, rows)
    members = fit.members
    if members is None:
        L = round(float(fit.sums.used.sum()) / len(rows.X))
        seeds = row_blocks.seeds(rng, len(rows.X))
        members = fixed_size_supports.best(seen.c, seen.model, L, seeds)[0]
    v = float(np.mean(np.square(W))) if loading_variance is None else loading_variance
    X = fixed_size_supports.means(seen.c, members, seen.model)
    return FactorGibbsState(W, X, members, -(W @ fit.state.shift), fit.state.noise, v)


def sampler(data: ChainData, prior: FactorPrior) -> Sampler[CachedGibbsState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior),
        partial(measure, data, prior),
        partial(record, data),
        average,
    )


def support_log_densities(seen: CachedGibbsState) -> Array:
    """Give f(S_n) of each row's support, equation (1) of `slot_kernels`, (N,)."""
    c, model = projected(seen)
    f = np.empty(len(c))
    for part in parts(seen.state.members):
        members = seen.state.members[part]
        normal = scores(c[part], members, model)
        projections = np.take_along_axis(c[part], members, axis=1)
        log_det = np.linalg.slogdet(normal.precision / model.prior)[1]
        f[part] = 0.5 * (np.einsum("nl,nl->n", projections, normal.mean) - log_det)
    return f


def measure(data: ChainData, prior: FactorPrior, seen: CachedGibbsState) -> Measures:
    """Give log p(Y | W), x and Z integrated out; log p(Y, Z | W) where sets are too many."""
    state = seen.state
    (n, K), L = seen.P.shape, state.members.shape[1]
    if math.comb(K, L) <= fixed_size_supports.SETS_IN_PASSING:
        c, model = projected(seen)
        f = enumeration.posterior(enumeration.table(model, L), c).log_sum
    else:
        f = support_log_densities(seen)
    total = background_of(data, state) + float(f.sum()) - n * gaussian.log_binomial(K, L)
    return Measures(total, total + log_prior(state, prior))


def log_prior(state: FactorGibbsState, prior: FactorPrior) -> float:
    """Give log p(W, sigma2, sigma2_W); mu is left out, its prior is flat by default."""
    v = state.sigma2_W
    total = -0.5 * state.W.size * float(np.log(2 * np.pi * v))
    total -= float(np.square(state.W).sum()) / (2 * v)
    total += conditionals.log_density(prior.noise, state.sigma2)
    if prior.loading is not None:
        total += conditionals.log_density(prior.loading, v)
    return total


def record(data: ChainData, seen: CachedGibbsState) -> Draws:
    """Keep what a draw keeps; the joint is the paper's complete-data likelihood.

    Components and mean are as precise as the data.
    """
    state = seen.state
    (n, K), L = seen.P.shape, state.members.shape[1]
    joint = -0.5 * data.size * np.log(2 * np.pi * state.sigma2)
    joint -= seen.squares / (2 * state.sigma2)
    joint -= 0.5 * (n * L * np.log(2 * np.pi / PRIOR) + PRIOR * np.square(state.X).sum())
    Z = indicators(state.members, K)
    return {
        "components": state.W.T.astype(data.rows.dtype),
        "mean": state.mu.astype(data.rows.dtype),
        "noise_variance": np.asarray(state.sigma2),
        "loading_variance": np.asarray(state.sigma2_W),
        "occupancy": occupancy(Z),
        "shared": co_allocation(Z, row_pairs(len(Z))),
        "log_joint": np.asarray(joint - n * gaussian.log_binomial(K, L)),
    }


def average(seen: CachedGibbsState) -> Draws:
    """Give what is only kept as a running mean."""
    X, members = seen.state.X, seen.state.members
    return {"Z_mean": indicators(members, X.shape[1]).astype(np.float64), "X_mean": X}
