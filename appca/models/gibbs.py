"""Gibbs sampling for models with orthonormal columns: adaptive and nonparametric PPCA.

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I,  x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n sigma2 I)

X integrates out component by component. The models differ in the prior of Z (`PRIORS`). Learned
scales are u_n ~ omega over a grid, learned sizes l ~ rho, omega and rho uniform. Rows over
sqrt(u_n) follow the model without scales, so (u_n, z_n, x_n) is drawn as one block.

Adaptive PPCA is algorithm 3 of the paper, corrected: scores are divided by 2 sigma2 (sigma2 +
tau2), the parameter of W by sigma2, members are visited in a random order, there is no alpha. The
paper's algorithm 2 (section 4.1.1) is not a valid kernel. Here Z has K_max columns, and its prior
is the Indian buffet conditioned on at most K_max used ones, or the finite Beta-Bernoulli prior.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import conditionals, numerics, polynomials, starts, stiefel
from appca.models.chains import (
    Chains,
    Draws,
    Measures,
    Sampler,
    Schedule,
    generators,
    initial_states,
    row_pairs,
    sample,
)
from appca.models.climb import EMControl
from appca.models.em import PAPER, EMSettings, SubspaceState, evenly
from appca.models.loop import Callback
from appca.models.numerics import Array
from appca.models.products import ChainData, data_of, products, projections, row_squares
from appca.models.row_model import RowModel, Weighed, weigh
from appca.models.rows import Rows, project
from appca.models.settings import OVERDISPERSED
from appca.models.spectrum import principal


class SubspaceGibbsState(NamedTuple):
    """State of a chain."""

    W: Array  # (D, K), orthonormal columns
    X: Array  # (N, K), scores over sqrt(u), zero where inactive
    Z: conditionals.Indicators  # (N, K)
    mu: Array  # (D,)
    sigma2: float
    tau2: Array  # (K,), all equal unless each component has its own
    alpha: float = 1.0  # of the prior of Z, where it has one
    sizes: int | Array = 0  # L, or rho_l (K + 1,); unused with other priors of Z
    u: Array | None = None  # (N,) scales of rows from the grid, where they or sizes are learned
    weights: Array = np.ones(1)  # (J,) omega_j


class SubspacePrior(NamedTuple):
    """Hyperparameters; None keeps a quantity fixed, and so does mean_variance 0."""

    noise: conditionals.InverseGamma
    latent: conditionals.InverseGamma | None
    each: bool  # one tau2 for each component
    mean_variance: float  # infinite is flat
    alpha: conditionals.Gamma | None = None


class SubspaceCrossProducts(NamedTuple):
    """Sums of the rows with their scores."""

    products: Array  # (D, K), Y'X
    total: Array  # (K,), sums of the columns of X


class CachedSubspaceState(NamedTuple):
    """A state and its products with the data."""

    state: SubspaceGibbsState
    P: Array  # (N, K), (y_n - mu)' W
    scaled: ChainData  # sums of the rows over sqrt(u)
    cross: SubspaceCrossProducts  # of these rows
    row: Weighed | None  # posterior of rows given the parameters, where scales or sizes are learned


# (rng, state, logits (N, K)) -> Z (N, K)
DrawIndicators = Callable[[Generator, SubspaceGibbsState, Array], conditionals.Indicators]


class IndicatorPrior(NamedTuple):
    """A prior of Z; without a density, all sets of a size are alike and sum up exactly."""

    draw: DrawIndicators
    draw_alpha: (
        Callable[[Generator, conditionals.Gamma, float, conditionals.Indicators], float] | None
    ) = None
    expected: Callable[[conditionals.Indicators, float], Array] = (
        conditionals.expected_buffet
    )  # (Z, alpha) -> of a new row
    log_density: Callable[[conditionals.Indicators, float], float] | None = None  # (Z, alpha)


# (rng, F (D, K), W (D, K)) -> W: a draw with density exp(tr(F'W)) or, for the paper's
# MAP-within-Gibbs, its maximum
UpdateDirections = Callable[[Generator, Array, Array], Array]


def look(data: ChainData, state: SubspaceGibbsState, sums: Any = None) -> CachedSubspaceState:
    """Take a state's products with the data, one pass; `sums` are its `weighted_sums`."""
    scaled, cross = weighted_sums(data, state.X, state.u) if sums is None else sums
    W, mu, row = state.W, state.mu, None
    if data.grid is None:
        P = projections(data.rows, W)
        P -= mu @ W
    else:
        P = projections(data.rows, np.column_stack([W, mu]))
        squares = np.maximum(data.each - 2.0 * P[:, -1] + mu @ mu, 0.0)
        P = P[:, :-1] - mu @ W
        variances, d = (state.sigma2, state.tau2), data.rows.d
        row = weigh(P, squares, RowModel(*variances, d, 0.0, state.sizes, data.grid, state.weights))
    return CachedSubspaceState(state, P, scaled, cross, row)


def weighted_sums(data: ChainData, X: Array, u: Any) -> tuple[ChainData, SubspaceCrossProducts]:
    """Sum up the rows over sqrt(u) (N,), and with scores X (N, K) over sqrt(u); one pass."""
    if u is None:
        return data, SubspaceCrossProducts(products(data.rows, X), X.sum(axis=0))
    inverse = 1.0 / u
    S = X * np.sqrt(inverse)[:, None]
    sums = products(data.rows, np.column_stack([S, inverse]))
    squares, mass = float(inverse @ data.each), float(inverse.sum())
    scaled = data._replace(total=sums[:, -1], squares=squares, mass=mass)
    return scaled, SubspaceCrossProducts(sums[:, :-1], S.sum(axis=0))


def sweep(
    rng: Generator,
    data: ChainData,
    seen: CachedSubspaceState,
    prior: SubspacePrior,
    indicators: IndicatorPrior,
    update_directions: UpdateDirections = stiefel.draw,
) -> CachedSubspaceState:
    """Redraw the block (u, Z, X), then W, mu, sigma2, tau2, alpha, omega and rho; two products."""
    state, P = seen.state, seen.P
    if seen.row is not None and data.grid is not None:
        at = conditionals.draw_categories(rng, seen.row.scales)
        u = data.grid[at]
        state, P = state._replace(u=u), P / np.sqrt(u)[:, None]
    Z = indicators.draw(rng, state, numerics.logits(P, state.sigma2, state.tau2))
    X = draw_scores(rng, P, Z, state.sigma2, state.tau2)
    sums = weighted_sums(data, X, state.u)
    state = redraw_parameters(rng, *sums, state._replace(X=X, Z=Z), prior, update_directions)
    if prior.alpha is not None and indicators.draw_alpha is not None:
        state = state._replace(alpha=indicators.draw_alpha(rng, prior.alpha, state.alpha, Z))
    if len(state.weights) > 1:
        counts = np.bincount(at, minlength=len(state.weights))
        state = state._replace(weights=rng.dirichlet(conditionals.shares(counts)))
    if not isinstance(state.sizes, int):
        counts = np.bincount(Z.sum(axis=1), minlength=len(state.sizes))
        state = state._replace(sizes=rng.dirichlet(conditionals.shares(counts)))
    return look(data, state, sums)


def redraw_parameters(
    rng: Generator,
    data: ChainData,
    cross: SubspaceCrossProducts,
    state: SubspaceGibbsState,
    prior: SubspacePrior,
    update_directions: UpdateDirections = stiefel.draw,
) -> SubspaceGibbsState:
    """Redraw W, mu, sigma2 and tau2 given X and Z, whose sums with the rows are `cross`."""
    X, Z, mu = state.X, state.Z, state.mu
    W = update_directions(rng, concentration(cross, mu, state.sigma2), state.W)
    if prior.mean_variance > 0:
        left = data.total - W @ cross.total
        conditional = conditionals.mean(left, data.mass, state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, conditional)
    squares = residual_squares(data, cross, W, X, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    sigma2, tau2 = float(conditionals.draw_inverse_gamma(rng, noise)), state.tau2
    if prior.latent is not None:
        latent = conditionals.latent_variance(prior.latent, X, Z, prior.each)
        drawn = conditionals.draw_inverse_gamma(rng, latent)
        tau2 = np.broadcast_to(drawn, tau2.shape).copy()
    return state._replace(W=W, mu=mu, sigma2=sigma2, tau2=tau2)


def draw_scores(rng: Generator, P: Array, Z: Array, sigma2: float, tau2: Array) -> Array:
    """Draw x_nk ~ N(m_nk, v_k) where z_nk = 1, zero elsewhere."""
    shrink, variance = numerics.posterior(sigma2, tau2)
    draws = rng.standard_normal(P.shape)
    draws *= np.sqrt(variance)
    draws += P * shrink
    draws[~Z] = 0.0
    return draws


def concentration(cross: SubspaceCrossProducts, mu: Array, sigma2: float) -> Array:
    """Give F (D, K) of the density exp(tr(F'W)): F = sum_n (y_n - mu)(x_n * z_n)' / sigma2."""
    F = np.outer(cross.total, -mu).T  # columns next to each other, as draws of W want them
    F += cross.products
    F /= sigma2
    return F


def residual_squares(
    data: ChainData, cross: SubspaceCrossProducts, W: Array, X: Array, mu: Array
) -> float:
    """Sum the squares of y - mu - W x from the sums; |W x| = |x|, as W is orthonormal."""
    fit = np.vdot(W, cross.products) - mu @ (W @ cross.total)
    return float(data.squares_about(mu) - 2 * fit + np.square(X).sum())


def complete_density(seen: CachedSubspaceState) -> float:
    """Give log p(Y, X, u | W, Z, mu, sigma2, tau2, omega), scores in the unit of the data."""
    state, data = seen.state, seen.scaled
    squares = residual_squares(data, seen.cross, state.W, state.X, state.mu)
    residual = -0.5 * data.size * np.log(2 * np.pi * state.sigma2) - squares / (2 * state.sigma2)
    active = -0.5 * (np.log(2 * np.pi * state.tau2) + np.square(state.X) / state.tau2)
    total = float(residual + active.sum(where=state.Z))
    if state.u is not None and data.grid is not None:
        total -= 0.5 * float((data.rows.d + state.Z.sum(axis=1)) @ np.log(state.u))
        total += float(np.log(state.weights)[np.searchsorted(data.grid, state.u)].sum())
    return total


def support_density(state: SubspaceGibbsState, indicators: IndicatorPrior) -> float:
    """Give log P(Z | alpha) or log P(Z | rho)."""
    if indicators.log_density is not None:
        return float(indicators.log_density(state.Z, state.alpha))
    N, K = state.Z.shape
    if isinstance(state.sizes, int):
        return -float(N * numerics.log_binomial(K, state.sizes))
    each = np.log(state.sizes) - polynomials.log_counts(K)
    return float(each[state.Z.sum(axis=1)].sum())


def logits_of(seen: CachedSubspaceState) -> Array:
    """Give the logits (N, K) of a state, of rows that have no scales."""
    return numerics.logits(seen.P, seen.state.sigma2, seen.state.tau2)


def describe(rows: Rows, state: Any, weights: Array | None) -> Draws:
    """Record a draw, W and mu as precise as the data; `weights` (K,) are those of new rows."""
    pairs = state.Z[row_pairs(len(state.Z))]  # how many columns both rows of some use
    kept: Draws = {
        "components": state.W.T.astype(rows.dtype),
        "mean": state.mu.astype(rows.dtype),
        "noise_variance": np.asarray(state.sigma2),
        "occupancy": np.sort(state.Z.sum(axis=0))[::-1],
        "shared": pairs.all(axis=1).sum(axis=1),
    }
    if weights is not None:
        used = state.Z.any(axis=0)
        kept |= {"alpha": np.asarray(state.alpha), "n_components": np.asarray(used.sum())}
        kept["weights"] = np.where(used, weights, 0.0)
        if not used.any():
            kept["weights"][0] = conditionals.LEAST_WEIGHT
    return kept


def average(seen: Any) -> Draws:
    """Record the arrays that are kept as running means."""
    X, u = seen.state.X, getattr(seen.state, "u", None)
    scores = X if u is None else X * np.sqrt(u)[:, None]
    return {"Z_mean": seen.state.Z.astype(np.float64), "X_mean": scores}


def draw_swaps(rng: Generator, state: SubspaceGibbsState, logits: Array) -> conditionals.Indicators:
    """Redraw the L members of each row in a fresh random order: the paper's order is not valid."""
    from appca.models.gibbs_kernels import scan_swaps

    Z = state.Z.copy()
    shape = len(Z), int(state.sizes)
    order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
    scan_swaps(Z, logits, order, rng.random(shape))
    return Z


DIRECTIONS: dict[str, UpdateDirections] = {
    "sample": stiefel.draw,
    # W at the maximum of its conditional: the paper's MAP-within-Gibbs
    "polar": lambda _rng, F, W: stiefel.polar(F, W),
    "pymanopt": lambda _rng, F, W: stiefel.maximise(F, W),
}


def fit_by_gibbs(
    rng: Generator, rows: Rows, begin: Any, control: EMControl, model: Any
) -> Chains[CachedSubspaceState]:
    """Sample the posterior of adaptive PPCA, the first chain from `begin`, a fit by EM."""
    settings, data = control.settings, data_of(rows)
    if settings.variant != PAPER:
        data = data._replace(each=row_squares(rows), grid=settings.grid)

    def start(rng: Generator, heard: Callback | None) -> tuple[CachedSubspaceState, str]:
        fit = begin(rng, control._replace(callback=heard))
        return look(data, first_state(fit.state, data, settings)), fit.stop_reason

    def afar(rng: Generator) -> CachedSubspaceState:
        V = principal(rng, rows, settings.n_components).V
        V = V @ starts.random_rotation(rng, V)  # as far from any mode as another
        begun = evenly(starts.first_state(rows, V, settings), settings)
        return look(data, first_state(begun, data, settings))

    unit = data.squares / data.size  # priors are in units of the mean feature variance
    latent = conditionals.InverseGamma(model.latent_shape, model.latent_scale).in_units_of(unit)
    prior = SubspacePrior(
        noise=conditionals.InverseGamma(model.noise_shape, model.noise_scale).in_units_of(unit),
        latent=latent if isinstance(settings.latent, str) else None,
        each=settings.latent == "component",
        mean_variance=np.inf if settings.learn_mean else 0.0,
    )
    directions = DIRECTIONS["sample" if model.w_update == "auto" else model.w_update]
    steps = sampler(data, prior, PRIORS[model.z_update], directions)
    schedule = Schedule(model.n_chains, model.burn_in, model.n_draws, model.thin)
    rngs = generators(rng, model.n_chains)
    others = afar if model.chain_starts == OVERDISPERSED else None
    apart = isinstance(model.init, str) and model.init == "random"
    first, stopped = initial_states(rngs, start, control.callback, others, apart=apart)
    origin = np.zeros(rows.d) if rows.origin is None else rows.origin.astype(np.float64)
    return sample(rngs, first, steps, schedule, control.callback, origin=origin, stopped=stopped)


def drawn_parameters(state: SubspaceGibbsState) -> SubspaceState:
    """Take a draw's parameters as EM has them."""
    sizes = None if isinstance(state.sizes, int) else state.sizes
    at = SubspaceState(state.W, np.zeros(len(state.tau2)), state.tau2, state.sigma2, state.mu)
    return at._replace(weights=state.weights, sizes=sizes)


def first_state(state: SubspaceState, data: ChainData, settings: EMSettings) -> SubspaceGibbsState:
    """Turn parameters into the state of a chain: each row's best support, scores still to come."""
    W, mu, L = state.W, state.displacement, settings.n_active
    a = numerics.logits(projections(data.rows, W) - mu @ W, state.noise, state.latent)
    begun = W, np.zeros(a.shape), polynomials.top(a, L), mu, state.noise, state.latent
    sizes, u = L if state.sizes is None else state.sizes, None
    if data.grid is not None:
        u = np.full(len(a), data.grid[0])
    return SubspaceGibbsState(*begun, sizes=sizes, u=u, weights=state.weights)


def second_moments(seen: CachedSubspaceState, n_active: int) -> Array:
    """Sum E[(x z)^2] over the rows, (K,), given the parameters of a draw and not its x and z."""
    shrink, v = numerics.posterior(seen.state.sigma2, seen.state.tau2)
    r = polynomials.inclusion(logits_of(seen), n_active)[1]
    return np.asarray(np.einsum("nk,nk->k", r, np.square(seen.P * shrink)) + r.sum(axis=0) * v)


LEAST_NOISE = 0.01  # of the mean feature variance, where W spans the data


def draw_columns(
    rng: Generator, state: SubspaceGibbsState, logits: Array, *, finite: bool
) -> conditionals.Indicators:
    """Redraw Z row by row under the truncated buffet or the finite Beta-Bernoulli prior."""
    from appca.models.gibbs_kernels import scan_beta_bernoulli, scan_truncated

    Z, (N, K) = state.Z.copy(), state.Z.shape
    if finite:
        scan_beta_bernoulli(Z, logits, state.alpha / K, rng.random((N, K)))
    else:
        scan_truncated(Z, logits, float(np.log(state.alpha / N)), rng.random((N, K + 1)))
    return Z


PRIORS = {
    # every row's L-subset as a whole, independent of where it was
    "block": IndicatorPrior(lambda rng, at, a: polynomials.draw(rng, a, at.sizes)),
    "swap": IndicatorPrior(draw_swaps),
    "ibp": IndicatorPrior(
        partial(draw_columns, finite=False),
        conditionals.draw_alpha_truncated,
        conditionals.expected_buffet,
        partial(conditionals.log_buffet, labelled=True),
    ),
    "beta-bernoulli": IndicatorPrior(
        partial(draw_columns, finite=True),
        conditionals.draw_alpha_finite,
        conditionals.expected_beta_bernoulli,
        conditionals.log_beta_bernoulli,
    ),
}


def first_nonparametric_state(
    rng: Generator, rows: Rows, max_components: int, tau2: float | None, *, rotated: bool
) -> SubspaceGibbsState:
    """Start from PPCA, every column used where it pays, or from a random rotation of it."""
    lead = principal(rng, rows, max_components)
    variance = float(rows.squares.mean()) / rows.n_features
    start = starts.closed_form(rows, lead, LEAST_NOISE * variance)
    W = lead.V @ stiefel.random(rng, *[max_components] * 2) if rotated else lead.V
    latent = np.full(max_components, start.latent.mean() if tau2 is None else tau2)
    Z = numerics.logits(project(rows, W), start.noise, latent) > 0
    return SubspaceGibbsState(W, np.zeros(Z.shape), Z, np.zeros(len(W)), start.noise, latent)


def sampler(
    data: ChainData,
    prior: SubspacePrior,
    indicators: IndicatorPrior,
    update_directions: UpdateDirections = stiefel.draw,
) -> Sampler[CachedSubspaceState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    kept = partial(measure, data, prior, indicators), partial(record, data, indicators), average
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior, indicators, update_directions), *kept
    )


def measure(
    data: ChainData, prior: SubspacePrior, indicators: IndicatorPrior, seen: CachedSubspaceState
) -> Measures:
    """Give the exact log-likelihood, X and if possible u and Z integrated out, and with priors."""
    state, of_Z = seen.state, 0.0
    if seen.row is not None:
        likelihood = float(seen.row.log_density.sum())
    else:
        # of all rows if no component explained any of them
        likelihood = -0.5 * data.size * float(np.log(2 * np.pi * state.sigma2))
        likelihood -= data.squares_about(state.mu) / (2 * state.sigma2)
        of_Z = support_density(state, indicators)
        if indicators.log_density is not None:
            likelihood += float(logits_of(seen).sum(where=state.Z))
        else:
            of_rows = polynomials.log_elementary(logits_of(seen), int(state.sizes))
            likelihood, of_Z = likelihood + float(of_rows.sum()) + of_Z, 0.0
    total = likelihood + of_Z + conditionals.log_density(prior.noise, state.sigma2)
    if prior.latent is not None:
        learned = state.tau2 if prior.each else float(state.tau2[0])
        total += conditionals.log_density(prior.latent, learned)
    if prior.alpha is not None:
        total += conditionals.log_gamma_density(prior.alpha, state.alpha)
    return Measures(likelihood, total)


def record(data: ChainData, indicators: IndicatorPrior, seen: CachedSubspaceState) -> Draws:
    """Record a draw, with the paper's complete-data log-likelihood."""
    state, weights = seen.state, None
    joint = complete_density(seen) + support_density(state, indicators)
    if indicators.log_density is not None or not isinstance(state.sizes, int):
        # Draws differ in the number of scores, whose densities would depend on the unit of the data
        joint += 0.5 * int(state.Z.sum()) * float(np.log(data.squares / data.size))
    if indicators.log_density is not None:
        weights = indicators.expected(state.Z, state.alpha)
    kept = describe(data.rows, state, weights)
    kept |= {"latent_variance": state.tau2, "log_joint": np.asarray(joint)}
    if len(state.weights) > 1:
        kept["row_scale_probabilities"] = state.weights
    if not isinstance(state.sizes, int):
        kept["size_probabilities"] = state.sizes
    return kept
