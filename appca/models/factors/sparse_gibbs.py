"""Sparse factor analysis by Gibbs sampling: what the finite and the infinite model share.

    y_n = W (x_n * z_n) + mu + e_n,  x ~ N(0, tau2),  W ~ N(0, sigma2_W),  e ~ N(0, sigma2)

The scale of a column is W's, tau2 stays fixed. Only the prior of Z tells the finite model
(Beta-Bernoulli) from the infinite one (Indian buffet).
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.rows.precise_products import ChainData
from appca.models.sampling import conditionals, row_sums
from appca.models.sampling.conditionals import Gamma, InverseGamma
from appca.models.sampling.feature_priors import log_beta_bernoulli, log_buffet
from appca.models.sampling.row_sums import FactorCrossProducts

if TYPE_CHECKING:
    from appca.models.factors.sparse_kernels import Numbers

Array = NDArray[np.float64]


class SparseState(NamedTuple):
    """Everything one sweep reads and writes; an unused column of the infinite model is zero."""

    W: Array  # (D, K)
    X: Array  # (N, K), zero where inactive
    Z: NDArray[np.bool_]  # (N, K)
    mu: Array  # (D,)
    sigma2: float
    sigma2_W: float
    alpha: float


CachedSparseState = row_sums.CachedFactorState[SparseState]


class SparsePrior(NamedTuple):
    """Hyperparameters; alpha None keeps alpha fixed, mean_variance 0 keeps mu fixed."""

    noise: InverseGamma
    loading: InverseGamma
    alpha: Gamma | None
    mean_variance: float  # infinite is flat
    tau2: float = 1.0
    unit: float = 1.0  # densities are those of W / unit, lest they depend on the unit of the data


def sweep_finite(
    rng: np.random.Generator, data: ChainData, seen: CachedSparseState, prior: SparsePrior
) -> CachedSparseState:
    """Redraw everything once under the finite Beta-Bernoulli prior."""
    state = scan_finite(rng, seen, prior)
    every = np.ones(state.Z.shape[1], dtype=bool)
    seen = draw_parameters(rng, data, draw_scales(rng, state, prior.tau2), prior, every)
    if prior.alpha is None:
        return seen
    state = seen.state
    alpha = conditionals.draw_alpha_finite(rng, prior.alpha, state.alpha, state.Z)
    return seen._replace(state=state._replace(alpha=alpha))


def sweep_infinite(
    rng: np.random.Generator, data: ChainData, seen: CachedSparseState, prior: SparsePrior
) -> CachedSparseState:
    """Redraw everything once under the buffet prior cut at K columns."""
    state = scan_infinite(rng, data, seen, prior)
    used = np.asarray(state.Z.any(axis=0))
    seen = draw_parameters(rng, data, draw_scales(rng, state, prior.tau2), prior, used)
    if prior.alpha is None:
        return seen
    state = seen.state
    alpha = conditionals.draw_alpha_truncated(rng, prior.alpha, state.alpha, state.Z)
    return seen._replace(state=state._replace(alpha=alpha))


def scan_finite(
    rng: np.random.Generator, seen: CachedSparseState, prior: SparsePrior
) -> SparseState:
    """Redraw Z, with X integrated out, and X; column by column, row by row."""
    from appca.models.factors import sparse_kernels as kernels

    state, P = seen.state, seen.P
    Z, X = state.Z.copy(), np.zeros_like(state.X)
    v, G = kernels.Variances(state.sigma2, prior.tau2), state.W.T @ state.W
    kernels.scan_finite(Z, X, G, P, v, state.alpha / Z.shape[1], draw_numbers(rng, Z))
    return SparseState(state.W, X, Z, *state[3:])


def scan_infinite(
    rng: np.random.Generator, data: ChainData, seen: CachedSparseState, prior: SparsePrior
) -> SparseState:
    """Redraw Z, with X integrated out, and X; columns come into W and leave it on the way."""
    from appca.models.factors import sparse_kernels as kernels

    state, Y = seen.state, data.rows.X.view()
    Y.flags.writeable = False  # for all rows: a kernel for each kind takes seconds to compile
    Z, X = state.Z.copy(), np.zeros_like(state.X)
    Wt = np.ascontiguousarray(state.W.T)
    kappa = rng.poisson(state.alpha / len(Y), len(Y))
    columns = np.sqrt(state.sigma2_W) * rng.standard_normal((kappa.sum(), Y.shape[1]))
    v = kernels.Variances(state.sigma2, prior.tau2)
    proposal = kernels.Proposal(kappa, columns)
    origin = 0.0 if data.rows.origin is None else data.rows.origin
    centred = kernels.Centred(Y, np.asarray(origin + state.mu, np.float64), seen.P.copy())
    kernels.scan_infinite(Z, X, Wt, centred, v, proposal, draw_numbers(rng, Z))
    return SparseState(Wt.T * Z.any(axis=0), X, Z, *state[3:])


def draw_numbers(rng: np.random.Generator, Z: NDArray[np.bool_]) -> "Numbers":
    """Draw the random numbers of one scan over Z."""
    from appca.models.factors.sparse_kernels import Numbers

    N, K = Z.shape
    order = rng.permuted(np.tile(np.arange(K), (N, 1)), axis=1)
    return Numbers(rng.random((N, K + 1)), rng.standard_normal((N, K)), order)


def draw_parameters(
    rng: np.random.Generator,
    data: ChainData,
    state: SparseState,
    prior: SparsePrior,
    used: NDArray[np.bool_],
) -> CachedSparseState:
    """Redraw W, mu, sigma2 and sigma2_W given Z and X; columns not `used` do not exist."""
    W, mu, n = np.zeros_like(state.W), state.mu, data.rows.n
    cross = row_sums.crossed(data, state.X)
    products = FactorCrossProducts(
        cross.products[:, used], cross.total[used], cross.second[np.ix_(used, used)]
    )
    normal = row_sums.loadings(products, mu, state.sigma2, state.sigma2_W)
    W[:, used] = conditionals.draw_rows(rng, normal)
    if prior.mean_variance > 0:
        left = data.total - W @ cross.total
        free = conditionals.mean(left, n, state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, free)
    squares = row_sums.residual_squares(data, cross, W, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    loading = conditionals.loading_variance(prior.loading, W[:, used])
    sigma2 = float(conditionals.draw_inverse_gamma(rng, noise))
    sigma2_W = float(conditionals.draw_inverse_gamma(rng, loading))
    moved = SparseState(W, state.X, state.Z, mu, sigma2, sigma2_W, state.alpha)
    return row_sums.seen_by(data, moved, squares)


def draw_scales(rng: np.random.Generator, state: SparseState, tau2: float) -> SparseState:
    """Move every used column along w_k -> c w_k, x_k -> x_k / c, which the likelihood cannot see.

    Drawing X given W and W given X alone walks along it in steps of the noise, so that at a high
    signal the scale never moves.
    """
    W, X, Z = state[:3]
    used = np.asarray(Z.any(axis=0))
    conditional = conditionals.scales(W[:, used], X[:, used], Z[:, used], state.sigma2_W, tau2)
    scale = np.ones(len(used))
    scale[used] = np.exp(conditionals.draw_log_scales(rng, conditional) / 2)
    return SparseState(W * scale, X / scale, *state[2:])


def log_marginal(data: ChainData, seen: CachedSparseState, prior: SparsePrior) -> float:
    """Give log p(Y | Z) with X integrated out."""
    from appca.models.factors.sparse_kernels import Variances, support_increments

    state = seen.state
    v = Variances(state.sigma2, prior.tau2)
    increments = support_increments(state.Z, state.W.T @ state.W, seen.P, v)
    return row_sums.background_of(data, state) + float(increments.sum())


def log_complete(
    data: ChainData, seen: CachedSparseState, prior: SparsePrior, infinite: bool
) -> float:
    """Give the complete-data density of the paper: log p(Y, W, X, Z | variances, alpha)."""
    state = seen.state
    total = _log_normal(seen.squares, data.size, state.sigma2)
    total += _log_normal(_squares(state.X), int(state.Z.sum()), prior.tau2)
    return total + log_structure(state, infinite, prior.unit)


def log_structure(state: SparseState, infinite: bool, unit: float) -> float:
    """Give log p(W / unit, Z | sigma2_W, alpha).

    In the infinite model the number of entries of W differs between draws, and with it the factor
    by which another unit of the data would change the density of W.
    """
    n_columns = int(state.Z.any(axis=0).sum()) if infinite else state.W.shape[1]
    n_entries = n_columns * len(state.W)
    prior_Z = (
        log_buffet(state.Z, state.alpha, labelled=False)
        if infinite
        else log_beta_bernoulli(state.Z, state.alpha)
    )
    loadings = _log_normal(_squares(state.W), n_entries, state.sigma2_W)
    return loadings + n_entries * math.log(unit) + prior_Z


def _squares(entries: Array) -> float:
    return float(np.square(entries).sum())


def _log_normal(squares: float, n: int, variance: float) -> float:
    """Give the log density of n normal entries with that sum of squares."""
    return -0.5 * n * float(np.log(2 * np.pi * variance)) - squares / (2 * variance)
