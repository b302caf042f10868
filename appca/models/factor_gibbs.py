"""Gibbs sampling for adaptive, finite and infinite sparse factor analysis.

Gibbs sweep of adaptive factor analysis (docs/mathematics.md 3.6).

The model of the paper's section 3:

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I),  w_dk ~ N(0, sigma2_W),
    z_n uniform over the L-subsets of 1..K

z_n is drawn slot by slot with x_n integrated out, then x_n given z_n: one block. The scale of a
column is W's (the factor variance stays 1).

Sparse factor analysis by Gibbs sampling: what the finite and the infinite model share.

    y_n = W (x_n * z_n) + mu + e_n,  x ~ N(0, tau2),  W ~ N(0, sigma2_W),  e ~ N(0, sigma2)

The scale of a column is W's, tau2 stays fixed. Only the prior of Z tells the finite model
(Beta-Bernoulli) from the infinite one (Indian buffet).
"""

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models import (
    conditionals,
    fixed_size_supports,
    gibbs,
    independent_components,
    numerics,
    row_sums,
    set_tree,
)
from appca.models.chains import Draws, Measures, Sampler, co_allocation, occupancy, row_pairs
from appca.models.conditionals import (
    Gamma,
    InverseGamma,
    expected_beta_bernoulli,
    expected_buffet,
    log_beta_bernoulli,
    log_buffet,
    log_density,
    log_gamma_density,
    of_used,
)
from appca.models.factor_em import DRAW, PRIOR, FactorFit, coefficients
from appca.models.products import ChainData
from appca.models.row_sums import FactorCrossProducts, background_of
from appca.models.rows import Rows, project
from appca.models.supports import BLOCK_FLOATS, CollapsedModel, Members, RowSupports

if TYPE_CHECKING:
    from appca.models.gibbs_kernels import Numbers

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
    from appca.models import gibbs_kernels as kernels

    state, P = seen.state, seen.P
    Z, X = state.Z.copy(), np.zeros_like(state.X)
    v, G = kernels.Variances(state.sigma2, prior.tau2), state.W.T @ state.W
    kernels.scan_finite(Z, X, G, P, v, state.alpha / Z.shape[1], draw_numbers(rng, Z))
    return SparseState(state.W, X, Z, *state[3:])


def scan_infinite(
    rng: np.random.Generator, data: ChainData, seen: CachedSparseState, prior: SparsePrior
) -> SparseState:
    """Redraw Z, with X integrated out, and X; columns come into W and leave it on the way."""
    from appca.models import gibbs_kernels as kernels

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
    from appca.models.gibbs_kernels import Numbers

    N, K = Z.shape
    order = rng.permuted(np.tile(np.arange(K), (N, 1)), axis=1)
    return Numbers(rng.random((N, K + 1)), rng.standard_normal((N, K)), order)


def draw_parameters(
    rng: np.random.Generator,
    data: ChainData,
    state: SparseState,
    prior: "SparsePrior | FactorPrior",
    used: NDArray[np.bool_] | None = None,
) -> CachedSparseState:
    """Redraw W, mu, sigma2 and sigma2_W given Z and X; columns not `used` do not exist."""
    W, mu, n, sigma2_W = np.zeros_like(state.W), state.mu, data.rows.n, state.sigma2_W
    cross = products = row_sums.crossed(data, state.X)
    if used is not None:
        products = FactorCrossProducts(
            cross.products[:, used], cross.total[used], cross.second[np.ix_(used, used)]
        )
    drawn = conditionals.draw_rows(
        rng, row_sums.loadings(products, mu, state.sigma2, state.sigma2_W)
    )
    if used is None:
        W = drawn
    else:
        W[:, used] = drawn
    if prior.mean_variance > 0:
        left = data.total - W @ cross.total
        free = conditionals.mean(left, n, state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, free)
    squares = row_sums.residual_squares(data, cross, W, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    sigma2 = float(conditionals.draw_inverse_gamma(rng, noise))
    if prior.loading is not None:
        loading = conditionals.loading_variance(prior.loading, W if used is None else W[:, used])
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
    from appca.models.gibbs_kernels import Variances, support_increments

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


class FactorGibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    W: Array  # (D, K)
    X: Array  # (N, K), zero where inactive
    members: Members  # (N, L)
    mu: Array  # (D,)
    sigma2: float
    sigma2_W: float


CachedGibbsState = row_sums.CachedFactorState[FactorGibbsState]


class FactorPrior(NamedTuple):
    """Hyperparameters; loading None keeps sigma2_W fixed, mean_variance 0 keeps mu fixed."""

    noise: InverseGamma
    loading: InverseGamma | None
    mean_variance: float  # infinite is flat


class ScoreNormal(NamedTuple):
    """Normal distributions of the active scores, one a row."""

    mean: Array  # (N, L)
    precision: Array  # (N, L, L)


def projected(seen: CachedGibbsState) -> tuple[Array, CollapsedModel]:
    """Give c = W'(y - mu) / sigma2 (N, K) and A = W'W / sigma2."""
    state = seen.state
    return seen.P / state.sigma2, CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)


def slot(c: Array, members: Members, number: int, model: CollapsedModel) -> tuple[Members, Array]:
    """Give p(factor in slot `number` | the other slots, y) of one row, x integrated out.

    Returns
    -------
    candidates (K - L + 1,) and their log weights, the increments of `slot_kernels`, equation (4).
    """
    from appca.models import slot_kernels as kernels

    K, L = len(c), len(members)
    w = kernels.row_state(K, L)
    kernels.build(members, model, c, w)
    kernels.score_replacements(number, K - L, model.prior, w)
    w.candidates[K - L] = members[number]
    return w.candidates[: K - L + 1].copy(), w.scratch.increment[: K - L + 1].copy()


def scores(c: Array, members: Members, model: CollapsedModel) -> ScoreNormal:
    """Give p(x_n | z_n, y_n): precision Lam_S = I/tau2 + A_SS, mean inv(Lam_S) c_S."""
    L = members.shape[1]
    precision = model.A[members[:, :, None], members[:, None, :]] + model.prior * np.eye(L)
    c_S = np.take_along_axis(c, members, axis=1)
    mean = np.asarray(np.linalg.solve(precision, c_S[:, :, None])[:, :, 0], dtype=np.float64)
    return ScoreNormal(mean, precision)


def draw_sets(
    rng: np.random.Generator, c: Array, members: Members, model: CollapsedModel
) -> Members:
    """Visit every slot of every row once, in a fresh random order, and redraw it."""
    rows = RowSupports(c, members, fixed_size_supports.draw_seeds(rng, len(c)))
    return fixed_size_supports.search(rows, DRAW, model)[0]


def draw_scores(rng: np.random.Generator, normal: ScoreNormal) -> Array:
    """Draw active scores (N, L): with precision C C', inv(C') e has covariance inv(C C')."""
    C = np.linalg.cholesky(normal.precision)
    e = rng.standard_normal(normal.mean.shape)[:, :, None]
    return normal.mean + np.linalg.solve(np.swapaxes(C, 1, 2), e)[:, :, 0]


def parts(members: Members) -> list[slice]:
    """Divide the rows into blocks whose L x L matrices stay in cache."""
    n, L = members.shape
    size = max(1, BLOCK_FLOATS // L**2)
    return [slice(start, start + size) for start in range(0, n, size)]


def drawn_scores(
    rng: np.random.Generator, c: Array, members: Members, model: CollapsedModel
) -> Array:
    """Draw the scores (N, K) of all rows given their sets, zero where inactive."""
    X = np.zeros(c.shape)
    for part in parts(members):
        drawn = draw_scores(rng, scores(c[part], members[part], model))
        np.put_along_axis(X[part], members[part], drawn, axis=1)
    return X


def indicators(members: Members, n_factors: int) -> NDArray[np.bool_]:
    """Give Z (N, K) of the members (N, L)."""
    Z = np.zeros((len(members), n_factors), dtype=bool)
    np.put_along_axis(Z, members, True, axis=1)
    return Z


def sweep(
    rng: np.random.Generator, data: ChainData, seen: CachedGibbsState, prior: FactorPrior
) -> CachedGibbsState:
    """Redraw (Z, X), the scales of the columns, W, mu, sigma2 and sigma2_W.

    X follows Z at once: nothing that depends on X may come between them.
    """
    state, (c, model) = seen.state, projected(seen)
    members = draw_sets(rng, c, state.members, model)
    X = drawn_scores(rng, c, members, model)
    Z = indicators(members, X.shape[1])
    moved = SparseState(state.W, X, Z, state.mu, state.sigma2, state.sigma2_W, alpha=0.0)
    moved = draw_scales(rng, moved, 1.0 / PRIOR)
    seen_sparse = draw_parameters(rng, data, moved, prior)
    W, X, _, mu, sigma2, sigma2_W, _ = seen_sparse.state
    now = FactorGibbsState(W, X, members, mu, sigma2, sigma2_W)
    return CachedGibbsState(now, *seen_sparse[1:])


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
        seeds = fixed_size_supports.draw_seeds(rng, len(rows.X))
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
        f = set_tree.weighed(c, model, L).log_sum
    else:
        f = support_log_densities(seen)
    total = background_of(data, state) + float(f.sum()) - n * numerics.log_binomial(K, L)
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
        "log_joint": np.asarray(joint - n * numerics.log_binomial(K, L)),
    }


def average(seen: CachedGibbsState) -> Draws:
    """Give what is only kept as a running mean."""
    X, members = seen.state.X, seen.state.members
    return {"Z_mean": indicators(members, X.shape[1]).astype(np.float64), "X_mean": X}


# A score this large, in units of its column's root mean square, starts as active.
ACTIVE = 0.5


class Kind(NamedTuple):
    """Finite or infinite, and on how many columns."""

    infinite: bool
    max_components: int


STARTS: dict[str, independent_components.Named] = {
    "ica": independent_components.ica,
    "pca": independent_components.pca,
    "random": independent_components.turned,
}


def first_sparse_state(
    rng: np.random.Generator, rows: Rows, kind: Kind, alpha: float, init: str
) -> SparseState:
    """Start from a named one of `STARTS`; its scores say which rows use which column.

    Directions beyond the data's own are left unused. At little noise a chain stays for ever where
    it started, hence independent components: with N = 1000, D = 50, K = 10 and noise 0.1, two
    hundred sweeps from there end at the true columns, from elsewhere 17 nats per row below.
    """
    N, D = rows.X.shape
    K = kind.max_components
    q = min(K, N - 1, D)
    start = STARTS[init](rng, rows, q, math.ceil(q / 2))
    W = np.zeros((D, K))
    W[:, :q] = start.W
    scores = project(rows, np.linalg.pinv(W[:, :q]).T).astype(np.float64)
    Z = np.zeros((N, K), dtype=bool)
    Z[:, :q] = np.abs(scores) > ACTIVE * np.sqrt(np.square(scores).mean(axis=0))
    loading = float(np.square(W[:, :q]).mean())
    if not kind.infinite:
        W[:, q:] = np.sqrt(loading) * rng.standard_normal((D, K - q))
    return SparseState(W, np.zeros((N, K)), Z, np.zeros(D), start.noise, loading, alpha)


def sparse_sampler(data: ChainData, prior: SparsePrior, kind: Kind) -> Sampler[CachedSparseState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    sweep = sweep_infinite if kind.infinite else sweep_finite
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior),
        partial(measure_sparse, data, prior, kind),
        partial(record_sparse, data, prior, kind),
        gibbs.average,
    )


def measure_sparse(
    data: ChainData, prior: SparsePrior, kind: Kind, seen: CachedSparseState
) -> Measures:
    """Give log p(Y | Z), X integrated out, and with the priors of Z, W and the variances."""
    state, log_likelihood = seen.state, log_marginal(data, seen, prior)
    total = log_likelihood + log_structure(state, kind.infinite, prior.unit)
    total += log_density(prior.noise, state.sigma2) + log_density(prior.loading, state.sigma2_W)
    if prior.alpha is not None:
        total += log_gamma_density(prior.alpha, state.alpha)
    return Measures(log_likelihood, total, int(state.Z.any(axis=0).sum()))


def record_sparse(
    data: ChainData, prior: SparsePrior, kind: Kind, seen: CachedSparseState
) -> Draws:
    """Keep what a draw keeps; the joint is the paper's complete-data likelihood.

    Components and mean are as precise as the data.
    """
    state = seen.state
    return {
        "components": state.W.T.astype(data.rows.dtype),
        "mean": state.mu.astype(data.rows.dtype),
        "noise_variance": np.asarray(state.sigma2),
        "loading_variance": np.asarray(state.sigma2_W),
        "alpha": np.asarray(state.alpha),
        "n_components": np.asarray(state.Z.any(axis=0).sum()),
        "weights": of_used(expected(state, kind), state.Z),
        "occupancy": occupancy(state.Z),
        "shared": co_allocation(state.Z, row_pairs(len(state.Z))),
        "log_joint": np.asarray(log_complete(data, seen, prior, kind.infinite)),
    }


def expected(state: SparseState, kind: Kind) -> Array:
    """Give the probability (K,) that a new row uses a column."""
    rule = expected_buffet if kind.infinite else expected_beta_bernoulli
    return rule(state.Z, state.alpha)
