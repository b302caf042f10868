"""Gibbs sampling for adaptive, finite and infinite sparse factor analysis.

The model of the paper's sections 2 and 3 (docs/mathematics.md 3.6):

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I),  w_dk ~ N(0, sigma2_W)

The prior of Z is uniform over the L-subsets (`FIXED`), Beta-Bernoulli (`FINITE`) or the Indian
buffet (`INFINITE`). A sweep reads the rows twice; residuals follow from sums in float64.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import (
    conditionals,
    fixed_size_supports,
    gibbs,
    independent_components,
    numerics,
    set_tree,
    supports,
)
from appca.models.chains import Draws, Measures, Sampler
from appca.models.factor_em import DRAW, PRIOR, FactorFit, coefficients
from appca.models.numerics import Array
from appca.models.products import ChainData, products, projections
from appca.models.rows import Rows, project
from appca.models.supports import CollapsedModel, Members, RowSupports, indicators

FIXED, FINITE, INFINITE = "fixed", "finite", "infinite"  # priors of Z
TAU2 = 1.0 / PRIOR


class FactorGibbsState(NamedTuple):
    """Everything one sweep reads and writes; an unused column of the infinite model is zero."""

    W: Array  # (D, K)
    X: Array  # (N, K), zero where inactive
    Z: conditionals.Indicators  # (N, K)
    mu: Array  # (D,) about the origin of the rows
    sigma2: float
    sigma2_W: float
    alpha: float = 0.0


class FactorPrior(NamedTuple):
    """Hyperparameters; None, or mean_variance 0, keeps a quantity fixed."""

    noise: conditionals.InverseGamma
    loading: conditionals.InverseGamma | None
    mean_variance: float  # infinite is flat
    alpha: conditionals.Gamma | None = None
    unit: float = 1.0  # densities are those of W / unit, lest they depend on the unit of the data


class FactorCrossProducts(NamedTuple):
    """Sums of the rows with their scores s."""

    products: Array  # (D, K), sum of y s'
    total: Array  # (K,), sum of s
    second: Array  # (K, K), sum of s s'


class CachedFactorState(NamedTuple):
    """A state and its products with the data."""

    state: FactorGibbsState
    P: Array  # (N, K), (y_n - mu)'W
    squares: float  # sum of |y - mu - W s|^2


def look(data: ChainData, state: FactorGibbsState) -> CachedFactorState:
    """Take a state's products with the rows; goes through them twice."""
    return _seen_by(data, state, residual_squares(data, crossed(data, state.X), state.W, state.mu))


def _seen_by(data: ChainData, state: FactorGibbsState, squares: float) -> CachedFactorState:
    P = projections(data.rows, state.W)
    P -= state.mu @ state.W
    return CachedFactorState(state, P, squares)


def crossed(data: ChainData, X: Array) -> FactorCrossProducts:
    """Sum up the rows with scores X (N, K), one pass."""
    return FactorCrossProducts(products(data.rows, X), X.sum(axis=0), X.T @ X)


def residual_squares(data: ChainData, cross: FactorCrossProducts, W: Array, mu: Array) -> float:
    """Sum of |y - mu - W s|^2 over the rows; at least 0, where rounding says otherwise."""
    fit = np.vdot(W, cross.products) - mu @ (W @ cross.total)
    squares = data.squares_about(mu) - 2.0 * fit + np.vdot(W.T @ W, cross.second)
    return max(float(squares), 0.0)


def sweep(
    rng: Generator, data: ChainData, seen: CachedFactorState, prior: FactorPrior, kind: str
) -> CachedFactorState:
    """Redraw (Z, X) as one block, scales of columns, W, mu, sigma2, sigma2_W and alpha."""
    if kind == FIXED:
        state = scan_fixed(rng, seen)
    elif kind == FINITE:
        state = scan_finite(rng, seen)
    else:
        state = scan_infinite(rng, data, seen)
    used = np.full(state.Z.shape[1], kind != INFINITE) | state.Z.any(axis=0)
    seen = draw_parameters(rng, data, draw_scales(rng, state), prior, used)
    if prior.alpha is None:
        return seen
    infinite, state = kind == INFINITE, seen.state
    rule = conditionals.draw_alpha_truncated if infinite else conditionals.draw_alpha_finite
    alpha = rule(rng, prior.alpha, state.alpha, state.Z)
    return seen._replace(state=state._replace(alpha=alpha))


def scan_fixed(rng: Generator, seen: CachedFactorState) -> FactorGibbsState:
    """Redraw Z, every slot of every row once in a fresh random order, and X."""
    state, (c, model) = seen.state, projected(seen)
    seeds = fixed_size_supports.draw_seeds(rng, len(c))
    rows = RowSupports(c, members_of(state.Z), seeds)
    members = fixed_size_supports.search(rows, DRAW, model)[0]
    Z = indicators(members, c.shape[1])
    return state._replace(X=supports.draw_scores_given(rng, c, Z, model), Z=Z)


def scan_finite(rng: Generator, seen: CachedFactorState) -> FactorGibbsState:
    """Redraw Z, with X integrated out, and X; column by column, row by row."""
    from appca.models import gibbs_kernels as kernels

    state, P = seen.state, seen.P
    Z, X = state.Z.copy(), np.zeros_like(state.X)
    v, G = kernels.Variances(state.sigma2, TAU2), state.W.T @ state.W
    kernels.scan_finite(Z, X, G, P, v, state.alpha / Z.shape[1], draw_numbers(rng, Z))
    return state._replace(X=X, Z=Z)


def scan_infinite(rng: Generator, data: ChainData, seen: CachedFactorState) -> FactorGibbsState:
    """Redraw Z, with X integrated out, and X; columns come into W and leave it on the way."""
    from appca.models import gibbs_kernels as kernels

    state, Y = seen.state, data.rows.X.view()
    Y.flags.writeable = False  # for all rows: a kernel for each kind takes seconds to compile
    Z, X = state.Z.copy(), np.zeros_like(state.X)
    Wt = np.ascontiguousarray(state.W.T)
    kappa = rng.poisson(state.alpha / len(Y), len(Y))
    columns = np.sqrt(state.sigma2_W) * rng.standard_normal((kappa.sum(), Y.shape[1]))
    v = kernels.Variances(state.sigma2, TAU2)
    proposal = kernels.Proposal(kappa, columns)
    origin = 0.0 if data.rows.origin is None else data.rows.origin
    centred = kernels.Centred(Y, np.asarray(origin + state.mu, np.float64), seen.P.copy())
    kernels.scan_infinite(Z, X, Wt, centred, v, proposal, draw_numbers(rng, Z))
    return state._replace(W=Wt.T * Z.any(axis=0), X=X, Z=Z)


def draw_numbers(rng: Generator, Z: conditionals.Indicators) -> Any:
    """Draw the random numbers of one scan over Z."""
    from appca.models.gibbs_kernels import Numbers

    N, K = Z.shape
    order = rng.permuted(np.tile(np.arange(K), (N, 1)), axis=1)
    return Numbers(rng.random((N, K + 1)), rng.standard_normal((N, K)), order)


def draw_parameters(
    rng: Generator, data: ChainData, state: FactorGibbsState, prior: FactorPrior, used: Array
) -> CachedFactorState:
    """Redraw W, mu, sigma2 and sigma2_W given Z and X; columns not `used` do not exist."""
    W, mu, n, sigma2_W = np.zeros_like(state.W), state.mu, data.rows.n, state.sigma2_W
    cross = crossed(data, state.X)
    existing = FactorCrossProducts(
        cross.products[:, used], cross.total[used], cross.second[np.ix_(used, used)]
    )
    about_mu = existing.products - np.outer(mu, existing.total)
    free_W = conditionals.loadings(about_mu, existing.second, state.sigma2, sigma2_W)
    W[:, used] = conditionals.draw_rows(rng, free_W)
    if prior.mean_variance > 0:
        left = data.total - W @ cross.total
        free = conditionals.mean(left, n, state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, free)
    squares = residual_squares(data, cross, W, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    sigma2 = float(conditionals.draw_inverse_gamma(rng, noise))
    if prior.loading is not None:
        loading = conditionals.loading_variance(prior.loading, W[:, used])
        sigma2_W = float(conditionals.draw_inverse_gamma(rng, loading))
    moved = FactorGibbsState(W, state.X, state.Z, mu, sigma2, sigma2_W, state.alpha)
    return _seen_by(data, moved, squares)


def draw_scales(rng: Generator, state: FactorGibbsState) -> FactorGibbsState:
    """Move every used column along w_k -> c w_k, x_k -> x_k / c, where the likelihood is flat."""
    W, X, Z = state[:3]
    used = np.asarray(Z.any(axis=0))
    conditional = conditionals.scales(W[:, used], X[:, used], Z[:, used], state.sigma2_W, TAU2)
    scale = np.ones(len(used))
    scale[used] = np.exp(conditionals.draw_log_scales(rng, conditional) / 2)
    return state._replace(W=W * scale, X=X / scale)


def projected(seen: CachedFactorState) -> tuple[Array, CollapsedModel]:
    """Give c = W'(y - mu) / sigma2 (N, K) and A = W'W / sigma2."""
    state = seen.state
    return seen.P / state.sigma2, CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)


def members_of(Z: conditionals.Indicators) -> Members:
    """Give the members (N, L), ascending, of rows Z (N, K) that use as many components each."""
    return np.nonzero(Z)[1].reshape(len(Z), -1)


def sampler(data: ChainData, prior: FactorPrior, kind: str) -> Sampler[CachedFactorState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    kept = partial(measure, data, prior, kind), partial(record, data, prior, kind), gibbs.average
    return Sampler(lambda rng, seen: sweep(rng, data, seen, prior, kind), *kept)


def measure(data: ChainData, prior: FactorPrior, kind: str, seen: CachedFactorState) -> Measures:
    """Give log p(Y | Z), or log p(Y) where supports are few, X integrated out; and with priors."""
    state, K = seen.state, seen.P.shape[1]
    if kind == FIXED:
        L = int(state.Z[0].sum())
        c, model = projected(seen)
        if math.comb(K, L) <= fixed_size_supports.SETS_IN_PASSING:
            f = set_tree.weighed(c, model, L).log_sum
        else:
            f = supports.log_densities(c, state.Z, model)
        f = f - numerics.log_binomial(K, L)
    else:
        from appca.models.gibbs_kernels import Variances, support_increments

        v = Variances(state.sigma2, TAU2)
        f = support_increments(state.Z, state.W.T @ state.W, seen.P, v)
    # of all rows if no factor explained any of them
    likelihood = -data.squares_about(state.mu) / (2.0 * state.sigma2) + float(f.sum())
    likelihood -= 0.5 * data.size * math.log(2.0 * math.pi * state.sigma2)
    total = likelihood + log_structure(state, kind, prior.unit)
    total += conditionals.log_density(prior.noise, state.sigma2)
    if prior.loading is not None:
        total += conditionals.log_density(prior.loading, state.sigma2_W)
    if prior.alpha is not None:
        total += conditionals.log_gamma_density(prior.alpha, state.alpha)
    number = 0 if kind == FIXED else int(state.Z.any(axis=0).sum())
    return Measures(likelihood, total, number)


def log_structure(state: FactorGibbsState, kind: str, unit: float) -> float:
    """Give log p(W / unit, Z | sigma2_W, alpha); supports of fixed size count in the likelihood."""
    n_columns = int(state.Z.any(axis=0).sum()) if kind == INFINITE else state.W.shape[1]
    n_entries = n_columns * len(state.W)
    total = _log_normal(float(np.square(state.W).sum()), n_entries, state.sigma2_W)
    total += n_entries * math.log(unit)
    if kind == FINITE:
        total += conditionals.log_beta_bernoulli(state.Z, state.alpha)
    elif kind == INFINITE:
        total += conditionals.log_buffet(state.Z, state.alpha, labelled=False)
    return total


def _log_normal(squares: float, n: int, variance: float) -> float:
    return -0.5 * n * float(np.log(2 * np.pi * variance)) - squares / (2 * variance)


def record(data: ChainData, prior: FactorPrior, kind: str, seen: CachedFactorState) -> Draws:
    """Keep what a draw keeps, with the paper's log p(Y, W, X, Z | variances, alpha)."""
    state = seen.state
    total = _log_normal(seen.squares, data.size, state.sigma2)
    total += _log_normal(float(np.square(state.X).sum()), int(state.Z.sum()), TAU2)
    if kind == FIXED:  # given W
        n, K = state.Z.shape
        total -= n * numerics.log_binomial(K, int(state.Z[0].sum()))
    else:
        total += log_structure(state, kind, prior.unit)
    more = {"loading_variance": np.asarray(state.sigma2_W), "log_joint": np.asarray(total)}
    weights = None if kind == FIXED else expected(state, kind)
    return gibbs.describe(data.rows, state, weights) | more


def expected(state: FactorGibbsState, kind: str) -> Array:
    """Give the probability (K,) that a new row uses a column."""
    if kind == INFINITE:
        return conditionals.expected_buffet(state.Z, state.alpha)
    return conditionals.expected_beta_bernoulli(state.Z, state.alpha)


def first_state(
    rng: Generator, rows: Rows, fit: FactorFit, loading_variance: float | None
) -> FactorGibbsState:
    """Take a fit by EM as the state of a chain: each row's best set, scores at their means."""
    W = np.asarray(fit.state.W, dtype=np.float64)
    seen = coefficients(fit.state, rows)
    members = fit.members
    if members is None:
        L = round(float(fit.sums.used.sum()) / len(rows.X))
        seeds = fixed_size_supports.draw_seeds(rng, len(rows.X))
        members = fixed_size_supports.best(seen.c, seen.model, L, seeds)[0]
    v = float(np.mean(np.square(W))) if loading_variance is None else loading_variance
    X = fixed_size_supports.means(seen.c, members, seen.model)
    Z = indicators(members, X.shape[1])
    return FactorGibbsState(W, X, Z, -(W @ fit.state.shift), fit.state.noise, v)


# A score this large, in units of its column's root mean square, starts as active.
ACTIVE = 0.5


def first_sparse_state(rng: Generator, rows: Rows, kind: str, K: int, init: str) -> Any:
    """Start as `init` says; large scores start as active, further directions as unused."""
    N, D = rows.X.shape
    q = min(K, N - 1, D)
    begin = independent_components.NAMED["random rotation" if init == "random" else init]
    start = begin(rng, rows, q, math.ceil(q / 2))
    W = np.zeros((D, K))
    W[:, :q] = start.W
    scores = project(rows, np.linalg.pinv(W[:, :q]).T).astype(np.float64)
    Z = np.zeros((N, K), dtype=bool)
    Z[:, :q] = np.abs(scores) > ACTIVE * np.sqrt(np.square(scores).mean(axis=0))
    loading = float(np.square(W[:, :q]).mean())
    if kind == FINITE:
        W[:, q:] = np.sqrt(loading) * rng.standard_normal((D, K - q))
    return FactorGibbsState(W, np.zeros((N, K)), Z, np.zeros(D), start.noise, loading)
