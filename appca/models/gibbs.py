"""Gibbs sampling of all models, of orthonormal columns and of any W.

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n sigma2 I)

Models differ in W, and in the prior of Z and how it is drawn (`PRIORS`). Where W'W = I, X
integrates out component by component. Learned scales are u_n ~ omega over a grid, learned sizes
l ~ rho, omega and rho uniform. Rows over sqrt(u_n) follow the model without scales, so (u_n, z_n,
x_n) is drawn as one block. Any W has w_dk ~ N(0, sigma2_W), tau2 = 1 and u = 1, as in sections 2
and 3 of the paper (docs/mathematics.md 3.6). A sweep reads the rows twice.

Adaptive PPCA is algorithm 3 of the paper, corrected: scores are divided by 2 sigma2 (sigma2 +
tau2), the parameter of W by sigma2, members are visited in a random order, there is no alpha. The
paper's algorithm 2 (section 4.1.1) is not a valid kernel. Here Z has K_max columns, and its prior
is the Indian buffet conditioned on at most K_max used ones, or the finite Beta-Bernoulli prior.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import (
    climb,
    conditionals,
    independent_components,
    numerics,
    polynomials,
    set_tree,
    stiefel,
    supports,
)
from appca.models.chains import Chains, Draws, Measures, Sampler, Start, row_pairs, sample
from appca.models.climb import EMControl
from appca.models.conditionals import Gamma, Indicators, InverseGamma
from appca.models.em import PAPER, EMSettings, RowModel, SubspaceState, Weighed, evenly, weigh
from appca.models.factor_em import DRAW, PRIOR, FactorFit, coefficients
from appca.models.loop import Callback
from appca.models.numerics import Array
from appca.models.products import ChainData, data_of, products, projections
from appca.models.rows import Rows, project
from appca.models.set_tree import CollapsedModel
from appca.models.stiefel import principal
from appca.models.supports import SETS_IN_PASSING, RowSupports

FIXED, FINITE, INFINITE = "fixed", "finite", "infinite"  # priors of Z where W is any matrix
TAU2 = 1.0 / PRIOR  # and the variance of scores there


class GibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    W: Array  # (D, K), orthonormal or any; an unused column of the infinite model is zero
    X: Array  # (N, K), scores over sqrt(u), zero where inactive
    Z: Indicators  # (N, K)
    mu: Array  # (D,) about the origin of the rows
    sigma2: float
    tau2: Array  # (K,), all equal unless each component has its own
    sigma2_W: float = 1.0  # where W is any matrix
    alpha: float = 1.0  # of the prior of Z, where it has one
    sizes: int | Array = 0  # L, or rho_l (K + 1,); unused with other priors of Z
    u: Array | None = None  # (N,) scales of rows from the grid, where they or sizes are learned
    weights: Array = np.ones(1)  # (J,) omega_j


class Prior(NamedTuple):
    """Hyperparameters; None keeps a quantity fixed, and so does mean_variance 0."""

    noise: InverseGamma
    mean_variance: float  # infinite is flat
    latent: InverseGamma | None = None
    each: bool = False  # one tau2 for each component
    loading: InverseGamma | None = None
    alpha: Gamma | None = None
    unit: float = 1.0  # densities are those of W / unit, lest they depend on the unit of the data


class CrossProducts(NamedTuple):
    """Sums of the rows with their scores x, both over sqrt(u)."""

    products: Array  # (D, K), sum of y x'
    total: Array  # (K,), sum of x / sqrt(u)
    second: Any  # (K, K), sum of x x'; its trace, which is enough where W is orthonormal


class CachedState(NamedTuple):
    """A state and its products with the data."""

    state: GibbsState
    P: Array  # (N, K), (y_n - mu)' W
    squares: float  # sum of |y - mu - W x|^2 / u
    row: Weighed | None  # posterior of rows given the parameters, where scales or sizes are learned


class IndicatorPrior(NamedTuple):
    """A prior of Z; without a density, all sets of a size are alike and sum up exactly."""

    draw: Callable[[Generator, ChainData, CachedState], GibbsState]  # redraws u, Z and X
    draw_alpha: Any = None  # (rng, prior, alpha, Z) -> alpha
    expected: Any = None  # (Z, alpha) -> probabilities (K,) with which a new row uses columns
    log_density: Any = None  # (Z, alpha) -> nats
    any_W: bool = False
    births: bool = False  # whether columns that no row uses do not exist


# (rng, F (D, K), W (D, K)) -> W: a draw with density exp(tr(F'W)) or, for the paper's
# MAP-within-Gibbs, its maximum
UpdateDirections = Callable[[Generator, Array, Array], Array]
DIRECTIONS: dict[str, UpdateDirections] = {
    "sample": stiefel.draw,
    "polar": lambda _rng, F, W: stiefel.polar(F, W),
    "pymanopt": lambda _rng, F, W: stiefel.maximise(F, W),
}


def look(data: ChainData, state: GibbsState, squares: float | None = None) -> CachedState:
    """Take a state's products with the data, one pass, and one more unless `squares` are known."""
    W, mu, row = state.W, state.mu, None
    if squares is None:
        squares = residual_squares(*weighted_sums(data, state.X, state.u, pairs=True), W, mu)
    if data.grid is None:
        P = projections(data.rows, W)
        P -= mu @ W
    else:
        P = projections(data.rows, np.column_stack([W, mu]))
        away = np.maximum(data.each - 2.0 * P[:, -1] + mu @ mu, 0.0)
        P = P[:, :-1] - mu @ W
        variances, d = (state.sigma2, state.tau2), data.rows.d
        row = weigh(P, away, RowModel(*variances, d, 0.0, state.sizes, data.grid, state.weights))
    return CachedState(state, P, squares, row)


def weighted_sums(
    data: ChainData, X: Array, u: Any, pairs: bool = False
) -> tuple[ChainData, CrossProducts]:
    """Sum up the rows over sqrt(u) (N,), and with scores X (N, K) over sqrt(u); one pass."""
    second = X.T @ X if pairs else float(np.square(X).sum())
    if u is None:
        return data, CrossProducts(products(data.rows, X), X.sum(axis=0), second)
    inverse = 1.0 / u
    S = X * np.sqrt(inverse)[:, None]
    sums = products(data.rows, np.column_stack([S, inverse]))
    squares, mass = float(inverse @ data.each), float(inverse.sum())
    scaled = data._replace(total=sums[:, -1], squares=squares, mass=mass)
    return scaled, CrossProducts(sums[:, :-1], S.sum(axis=0), second)


def residual_squares(data: ChainData, cross: CrossProducts, W: Array, mu: Array) -> float:
    """Sum of |y - mu - W x|^2 from the sums; at least 0, where rounding says otherwise."""
    fit = np.vdot(W, cross.products) - mu @ (W @ cross.total)
    power = np.vdot(W.T @ W, cross.second) if np.ndim(cross.second) else cross.second
    return max(float(data.squares_about(mu) - 2.0 * fit + power), 0.0)


def sweep(
    rng: Generator,
    data: ChainData,
    seen: CachedState,
    prior: Prior,
    indicators: IndicatorPrior,
    update_directions: UpdateDirections = stiefel.draw,
) -> CachedState:
    """Redraw the block (u, Z, X), then W, mu, sigma2, tau2 or sigma2_W, alpha, omega and rho."""
    state = indicators.draw(rng, data, seen)
    W, Z, mu, sigma2_W = state.W, state.Z, state.mu, state.sigma2_W
    if indicators.any_W:
        state, used = draw_scales(rng, state), Z.any(axis=0) | (not indicators.births)
        scaled, cross = weighted_sums(data, state.X, None, pairs=True)
        left, pairs = cross.products - np.outer(mu, cross.total), cross.second[np.ix_(used, used)]
        loadings = conditionals.loadings(left[:, used], pairs, state.sigma2, sigma2_W)
        W = np.zeros_like(W)
        W[:, used] = conditionals.draw_rows(rng, loadings)
    else:
        scaled, cross = weighted_sums(data, state.X, state.u)
        W = update_directions(rng, concentration(cross, mu, state.sigma2), W)
    if prior.mean_variance > 0:
        left = scaled.total - W @ cross.total
        conditional = conditionals.mean(left, scaled.mass, state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, conditional)
    squares = residual_squares(scaled, cross, W, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    sigma2, tau2 = float(conditionals.draw_inverse_gamma(rng, noise)), state.tau2
    if prior.latent is not None:
        latent = conditionals.latent_variance(prior.latent, state.X, Z, prior.each)
        drawn = conditionals.draw_inverse_gamma(rng, latent)
        tau2 = np.broadcast_to(drawn, tau2.shape).copy()
    if prior.loading is not None:
        loading = conditionals.loading_variance(prior.loading, W[:, used])
        sigma2_W = float(conditionals.draw_inverse_gamma(rng, loading))
    state = state._replace(W=W, mu=mu, sigma2=sigma2, tau2=tau2, sigma2_W=sigma2_W)
    if prior.alpha is not None and indicators.draw_alpha is not None:
        state = state._replace(alpha=indicators.draw_alpha(rng, prior.alpha, state.alpha, Z))
    if data.grid is not None and state.u is not None and len(state.weights) > 1:
        counts = np.bincount(np.searchsorted(data.grid, state.u), minlength=len(state.weights))
        state = state._replace(weights=rng.dirichlet(conditionals.shares(counts)))
    if not isinstance(state.sizes, int):
        counts = np.bincount(Z.sum(axis=1), minlength=len(state.sizes))
        state = state._replace(sizes=rng.dirichlet(conditionals.shares(counts)))
    return look(data, state, squares)


def concentration(cross: CrossProducts, mu: Array, sigma2: float) -> Array:
    """Give F (D, K) of the density exp(tr(F'W)): F = sum_n (y_n - mu)(x_n * z_n)' / sigma2."""
    F = np.outer(cross.total, -mu).T  # columns next to each other, as draws of W want them
    F += cross.products
    F /= sigma2
    return F


def draw_scales(rng: Generator, state: GibbsState) -> GibbsState:
    """Move every used column along w_k -> c w_k, x_k -> x_k / c, where the likelihood is flat."""
    W, X, Z = state[:3]
    used = np.asarray(Z.any(axis=0))
    conditional = conditionals.scales(W[:, used], X[:, used], Z[:, used], state.sigma2_W, TAU2)
    scale = np.ones(len(used))
    scale[used] = np.exp(conditionals.draw_log_scales(rng, conditional) / 2)
    return state._replace(W=W * scale, X=X / scale)


# Draws of Z and X under orthonormal columns --------------------------------------------------


def draw_block(
    rng: Generator,
    data: ChainData,
    seen: CachedState,
    draw_Z: Callable[[Generator, GibbsState, Array], Indicators],
) -> GibbsState:
    """Redraw u where rows have scales, then Z by its logits (N, K), then X."""
    state, P = seen.state, seen.P
    if seen.row is not None and data.grid is not None:
        u = data.grid[conditionals.draw_categories(rng, seen.row.scales)]
        state, P = state._replace(u=u), P / np.sqrt(u)[:, None]
    Z = draw_Z(rng, state, numerics.logits(P, state.sigma2, state.tau2))
    X = draw_scores(rng, P, Z, state.sigma2, state.tau2)
    return state._replace(X=X, Z=Z)


def draw_scores(rng: Generator, P: Array, Z: Array, sigma2: float, tau2: Array) -> Array:
    """Draw x_nk ~ N(m_nk, v_k) where z_nk = 1, zero elsewhere."""
    shrink, variance = numerics.posterior(sigma2, tau2)
    draws = rng.standard_normal(P.shape)
    draws *= np.sqrt(variance)
    draws += P * shrink
    draws[~Z] = 0.0
    return draws


def draw_swaps(rng: Generator, state: GibbsState, logits: Array) -> Indicators:
    """Redraw the L members of each row in a fresh random order: the paper's order is not valid."""
    from appca.models.gibbs_kernels import scan_swaps

    Z = state.Z.copy()
    shape = len(Z), int(state.sizes)
    order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
    scan_swaps(Z, logits, order, rng.random(shape))
    return Z


def draw_columns(rng: Generator, state: GibbsState, logits: Array, *, finite: bool) -> Indicators:
    """Redraw Z row by row under the truncated buffet or the finite Beta-Bernoulli prior."""
    from appca.models.gibbs_kernels import scan_beta_bernoulli, scan_truncated

    Z, (N, K) = state.Z.copy(), state.Z.shape
    if finite:
        scan_beta_bernoulli(Z, logits, state.alpha / K, rng.random((N, K)))
    else:
        scan_truncated(Z, logits, float(np.log(state.alpha / N)), rng.random((N, K + 1)))
    return Z


# Draws of Z and X under any W ----------------------------------------------------------------


def scan_fixed(rng: Generator, _data: ChainData, seen: CachedState) -> GibbsState:
    """Redraw Z, every slot of every row once in a fresh random order, and X."""
    state, (c, model) = seen.state, projected(seen)
    rows = RowSupports(c, supports.members_of(state.Z), supports.draw_seeds(rng, len(c)))
    members = supports.search(rows, DRAW, model)[0]
    Z = supports.indicators(members, c.shape[1])
    return state._replace(X=supports.draw_scores_given(rng, c, Z, model), Z=Z)


def scan_free(rng: Generator, data: ChainData, seen: CachedState, *, births: bool) -> GibbsState:
    """Redraw Z, X integrated out, and X, row by row; with `births` columns come and go."""
    from appca.models import gibbs_kernels as kernels

    state, (N, K) = seen.state, seen.P.shape
    Z, X, v = state.Z.copy(), np.zeros_like(state.X), kernels.Variances(state.sigma2, TAU2)
    if births:
        kappa = rng.poisson(state.alpha / N, N)
        columns = np.sqrt(state.sigma2_W) * rng.standard_normal((kappa.sum(), data.rows.d))
    order = rng.permuted(np.tile(np.arange(K), (N, 1)), axis=1)
    numbers = kernels.Numbers(rng.random((N, K + 1)), rng.standard_normal((N, K)), order)
    if not births:
        kernels.scan_finite(Z, X, state.W.T @ state.W, seen.P, v, state.alpha / K, numbers)
        return state._replace(X=X, Z=Z)
    Y, Wt = data.rows.X.view(), np.ascontiguousarray(state.W.T)
    Y.flags.writeable = False  # for all rows: a kernel for each kind takes seconds to compile
    origin = 0.0 if data.rows.origin is None else data.rows.origin
    centred = kernels.Centred(Y, np.asarray(origin + state.mu, np.float64), seen.P.copy())
    kernels.scan_infinite(Z, X, Wt, centred, v, kernels.Proposal(kappa, columns), numbers)
    return state._replace(W=Wt.T * Z.any(axis=0), X=X, Z=Z)


def projected(seen: CachedState) -> tuple[Array, CollapsedModel]:
    """Give c = W'(y - mu) / sigma2 (N, K) and A = W'W / sigma2."""
    state = seen.state
    return seen.P / state.sigma2, CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)


_FINITE = (
    conditionals.draw_alpha_finite,
    conditionals.expected_beta_bernoulli,
    conditionals.log_beta_bernoulli,
)
_BUFFET = conditionals.draw_alpha_truncated, conditionals.expected_buffet
PRIORS = {
    # every row's L-subset as a whole, independent of where it was
    "block": IndicatorPrior(
        partial(draw_block, draw_Z=lambda rng, at, a: polynomials.draw(rng, a, at.sizes))
    ),
    "swap": IndicatorPrior(partial(draw_block, draw_Z=draw_swaps)),
    "ibp": IndicatorPrior(
        partial(draw_block, draw_Z=partial(draw_columns, finite=False)),
        *_BUFFET,
        partial(conditionals.log_buffet, labelled=True),
    ),
    "beta-bernoulli": IndicatorPrior(
        partial(draw_block, draw_Z=partial(draw_columns, finite=True)), *_FINITE
    ),
    FIXED: IndicatorPrior(scan_fixed, any_W=True),
    FINITE: IndicatorPrior(partial(scan_free, births=False), *_FINITE, any_W=True),
    INFINITE: IndicatorPrior(
        partial(scan_free, births=True),
        *_BUFFET,
        partial(conditionals.log_buffet, labelled=False),
        any_W=True,
        births=True,
    ),
}


# Densities, and what is kept of a draw ---------------------------------------------------------


def log_normal(squares: float, n: int, variance: float) -> float:
    """Log density of n normal numbers around 0, given the sum of their squares."""
    return -0.5 * n * math.log(2.0 * math.pi * variance) - squares / (2.0 * variance)


def support_density(state: GibbsState, indicators: IndicatorPrior) -> float:
    """Give log P(Z | alpha) or log P(Z | rho)."""
    if indicators.log_density is not None:
        return float(indicators.log_density(state.Z, state.alpha))
    N, K = state.Z.shape
    if isinstance(state.sizes, int):
        return -float(N * numerics.log_binomial(K, state.sizes))
    each = np.log(state.sizes) - polynomials.log_counts(K)
    return float(each[state.Z.sum(axis=1)].sum())


def loading_density(state: GibbsState, prior: Prior, indicators: IndicatorPrior) -> float:
    """Give log p(W / unit | sigma2_W) of any W, where columns are born of those in use."""
    columns = int(state.Z.any(axis=0).sum()) if indicators.births else state.W.shape[1]
    n = columns * len(state.W)
    return log_normal(float(np.square(state.W).sum()), n, state.sigma2_W) + n * math.log(prior.unit)


def row_gains(seen: CachedState, indicators: IndicatorPrior) -> Array:
    """Log p(y | Z), or log of sum_Z p(y | Z) where sets are alike and few, less log p(y | none)."""
    state, K = seen.state, seen.P.shape[1]
    if not indicators.any_W:
        a = numerics.logits(seen.P, state.sigma2, state.tau2)
        if indicators.log_density is not None:
            return np.asarray(a.sum(axis=1, where=state.Z))
        return polynomials.log_elementary(a, int(state.sizes))
    if indicators.log_density is not None:
        from appca.models.gibbs_kernels import Variances, support_increments

        v, G = Variances(state.sigma2, TAU2), state.W.T @ state.W
        return np.asarray(support_increments(state.Z, G, seen.P, v))
    (c, model), L = projected(seen), int(state.sizes)
    if math.comb(K, L) <= SETS_IN_PASSING:
        return set_tree.sums(c, model, L, moments=False).log_sum
    return supports.log_densities(c, state.Z, model)


def measure(
    data: ChainData, prior: Prior, indicators: IndicatorPrior, seen: CachedState
) -> Measures:
    """Give the exact log-likelihood, X and if possible u and Z integrated out, and with priors."""
    state, of_Z, number = seen.state, 0.0, 0
    if seen.row is not None:
        likelihood = float(seen.row.log_density.sum())
    else:
        # of all rows if no component explained any of them
        likelihood = log_normal(data.squares_about(state.mu), data.size, state.sigma2)
        likelihood += float(row_gains(seen, indicators).sum())
        of_Z = support_density(state, indicators)
        if indicators.log_density is None:
            likelihood, of_Z = likelihood + of_Z, 0.0
    total = likelihood + of_Z + conditionals.log_density(prior.noise, state.sigma2)
    if indicators.any_W:
        total += loading_density(state, prior, indicators)
        number = 0 if indicators.log_density is None else int(state.Z.any(axis=0).sum())
    if prior.latent is not None:
        learned = state.tau2 if prior.each else float(state.tau2[0])
        total += conditionals.log_density(prior.latent, learned)
    if prior.loading is not None:
        total += conditionals.log_density(prior.loading, state.sigma2_W)
    if prior.alpha is not None:
        total += conditionals.log_gamma_density(prior.alpha, state.alpha)
    return Measures(likelihood, total, number)


def complete_density(data: ChainData, seen: CachedState) -> float:
    """Give log p(Y, X, u | W, Z, mu, sigma2, tau2, omega), scores in the unit of the data."""
    state = seen.state
    active = -0.5 * (np.log(2 * np.pi * state.tau2) + np.square(state.X) / state.tau2)
    total = log_normal(seen.squares, data.size, state.sigma2) + float(active.sum(where=state.Z))
    if state.u is not None and data.grid is not None:
        total -= 0.5 * float((data.rows.d + state.Z.sum(axis=1)) @ np.log(state.u))
        total += float(np.log(state.weights)[np.searchsorted(data.grid, state.u)].sum())
    return total


def record(data: ChainData, prior: Prior, indicators: IndicatorPrior, seen: CachedState) -> Draws:
    """Record a draw with the paper's complete-data log-likelihood; W and mu as precise as data."""
    state, dtype, unbounded = seen.state, data.rows.dtype, indicators.log_density is not None
    joint = complete_density(data, seen) + support_density(state, indicators)
    if indicators.any_W:
        joint += loading_density(state, prior, indicators) if unbounded else 0.0  # else given W
    elif unbounded or not isinstance(state.sizes, int):
        # Draws differ in the number of scores, whose densities would depend on the unit of the data
        joint += 0.5 * int(state.Z.sum()) * float(np.log(data.squares / data.size))
    pairs = state.Z[row_pairs(len(state.Z))]  # how many columns both rows of some use
    kept: Draws = {
        "components": state.W.T.astype(dtype),
        "mean": state.mu.astype(dtype),
        "noise_variance": np.asarray(state.sigma2),
        "occupancy": np.sort(state.Z.sum(axis=0))[::-1],
        "shared": pairs.all(axis=1).sum(axis=1),
        "log_joint": np.asarray(joint),
    }
    if indicators.expected is not None:
        used = state.Z.any(axis=0)
        kept |= {"alpha": np.asarray(state.alpha), "n_components": np.asarray(used.sum())}
        kept["weights"] = np.where(used, indicators.expected(state.Z, state.alpha), 0.0)
        if not used.any():
            kept["weights"][0] = conditionals.LEAST_WEIGHT
    if indicators.any_W:
        return kept | {"loading_variance": np.asarray(state.sigma2_W)}
    kept["latent_variance"] = state.tau2
    if len(state.weights) > 1:
        kept["row_scale_probabilities"] = state.weights
    if not isinstance(state.sizes, int):
        kept["size_probabilities"] = state.sizes
    return kept


def average(seen: CachedState) -> Draws:
    """Record the arrays that are kept as running means."""
    X, u = seen.state.X, seen.state.u
    scores = X if u is None else X * np.sqrt(u)[:, None]
    return {"Z_mean": seen.state.Z.astype(np.float64), "X_mean": scores}


# Fits -----------------------------------------------------------------------------------------


def prior_of(model: Any, variance: float, *learned: str, **more: Any) -> Prior:
    """Return the prior by an estimator's parameters, in units of the mean feature variance."""
    for name in ("noise", *learned):
        shape, scale = (getattr(model, f"{name}_{part}") for part in ("shape", "scale"))
        more[name] = InverseGamma(shape, scale).in_units_of(variance)
    if getattr(model, "alpha", None) == "infer":
        more["alpha"] = Gamma(model.alpha_shape, model.alpha_rate)
    return Prior(mean_variance=math.inf if model.mean == "learned" else 0.0, **more)


def run_chains(
    rng: Generator,
    data: ChainData,
    model: Any,
    sampling: tuple[Any, ...],
    start: Start,
    callback: Callback | None,
    *,
    apart: bool = True,
) -> Chains[CachedState]:
    """Sample by a `Prior`, an `IndicatorPrior` and perhaps directions; see `chains.sample`."""
    prior, indicators, *directions = sampling
    sampler = Sampler(
        partial(look, data),
        lambda rng, seen: sweep(rng, data, seen, prior, indicators, *directions),
        partial(measure, data, prior, indicators),
        partial(record, data, prior, indicators),
        average,
    )
    origin = data.rows.origin
    origin = np.zeros(data.rows.d) if origin is None else origin.astype(np.float64)
    return sample(rng, model, sampler, start, callback, origin=origin, apart=apart)


def fit_by_gibbs(
    rng: Generator, rows: Rows, begin: Any, control: EMControl, model: Any
) -> Chains[CachedState]:
    """Sample the posterior of adaptive PPCA, the first chain from `begin`, a fit by EM."""
    settings = control.settings
    data = data_of(rows, None if settings.variant == PAPER else settings.grid)

    def start(rng: Generator, heard: Callback | None, far: bool) -> tuple[GibbsState, str]:
        if far:
            V = principal(rng, rows, settings.n_components).V
            V = V @ climb.random_rotation(rng, V)  # as far from any mode as another
            state, reason = evenly(climb.first_state(rows, V, settings), settings), ""
        else:
            fit = begin(rng, control._replace(callback=heard))
            state, reason = fit.state, fit.stop_reason
        return first_state(state, data, settings), reason

    learned = ["latent"] * isinstance(settings.latent, str)
    each = settings.latent == "component"
    prior = prior_of(model, data.squares / data.size, *learned, each=each)
    directions = DIRECTIONS["sample" if model.w_update == "auto" else model.w_update]
    sampling = prior, PRIORS[model.z_update], directions
    apart = isinstance(model.init, str) and model.init == "random"
    return run_chains(rng, data, model, sampling, start, control.callback, apart=apart)


def drawn_parameters(state: GibbsState) -> SubspaceState:
    """Take a draw's parameters as EM has them."""
    sizes = None if isinstance(state.sizes, int) else state.sizes
    at = SubspaceState(state.W, np.zeros(len(state.tau2)), state.tau2, state.sigma2, state.mu)
    return at._replace(weights=state.weights, sizes=sizes)


def second_moments(seen: CachedState, n_active: int) -> Array:
    """Sum E[(x z)^2] over the rows, (K,), given the parameters of a draw and not its x and z."""
    state = seen.state
    shrink, v = numerics.posterior(state.sigma2, state.tau2)
    r = polynomials.inclusion(numerics.logits(seen.P, state.sigma2, state.tau2), n_active)[1]
    return np.asarray(np.einsum("nk,nk->k", r, np.square(seen.P * shrink)) + r.sum(axis=0) * v)


def first_state(state: SubspaceState, data: ChainData, settings: EMSettings) -> GibbsState:
    """Turn parameters into the state of a chain: each row's best support, scores still to come."""
    W, mu, L = state.W, state.displacement, settings.n_active
    a = numerics.logits(projections(data.rows, W) - mu @ W, state.noise, state.latent)
    begun = W, np.zeros(a.shape), polynomials.top(a, L), mu, state.noise, state.latent
    sizes, u = L if state.sizes is None else state.sizes, None
    if data.grid is not None:
        u = np.full(len(a), data.grid[0])
    return GibbsState(*begun, sizes=sizes, u=u, weights=state.weights)


def first_factor_state(
    rng: Generator, rows: Rows, fit: FactorFit, loading_variance: float | None
) -> GibbsState:
    """Take a fit by EM as the state of a chain: each row's best set, scores at their means."""
    W, N = np.asarray(fit.state.W, dtype=np.float64), len(rows.X)
    K, L = W.shape[1], round(float(fit.sums.used.sum()) / N)
    at = coefficients(fit.state, rows, L)
    if fit.members is None:
        Z = at._replace(seeds=supports.draw_seeds(rng, N)).best()[0]
    else:
        Z = supports.indicators(fit.members, K)
    v = float(np.mean(np.square(W))) if loading_variance is None else loading_variance
    mu, tau2 = -(W @ fit.state.shift), np.full(K, TAU2)
    return GibbsState(W, at.means(Z), Z, mu, fit.state.noise, tau2, v, sizes=L)


ACTIVE = 0.5  # a score this large, in root mean squares of its column, starts as active
LEAST_NOISE = 0.01  # of the mean feature variance, where W spans the data


def first_sparse_state(rng: Generator, rows: Rows, kind: str, K: int, init: str) -> GibbsState:
    """Start as `init` says; large scores start as active, further directions as unused."""
    N, D = rows.X.shape
    q = min(K, N - 1, D)
    begin = independent_components.NAMED["random rotation" if init == "random" else init]
    start = begin(rng, rows, q, math.ceil(q / 2))
    W, Z = np.zeros((D, K)), np.zeros((N, K), dtype=bool)
    W[:, :q] = start.W
    scores = project(rows, np.linalg.pinv(W[:, :q]).T).astype(np.float64)
    Z[:, :q] = np.abs(scores) > ACTIVE * np.sqrt(np.square(scores).mean(axis=0))
    loading = float(np.square(W[:, :q]).mean())
    if kind == FINITE:
        W[:, q:] = np.sqrt(loading) * rng.standard_normal((D, K - q))
    return GibbsState(W, np.zeros((N, K)), Z, np.zeros(D), start.noise, np.full(K, TAU2), loading)


def first_nonparametric_state(
    rng: Generator, rows: Rows, max_components: int, tau2: float | None, *, rotated: bool
) -> GibbsState:
    """Start from PPCA, every column used where it pays, or from a random rotation of it."""
    lead = principal(rng, rows, max_components)
    variance = float(rows.squares.mean()) / rows.n_features
    start = climb.closed_form(rows, lead, LEAST_NOISE * variance)
    W = lead.V @ stiefel.random(rng, *[max_components] * 2) if rotated else lead.V
    latent = np.full(max_components, start.latent.mean() if tau2 is None else tau2)
    Z = numerics.logits(project(rows, W), start.noise, latent) > 0
    return GibbsState(W, np.zeros(Z.shape), Z, np.zeros(len(W)), start.noise, latent)
