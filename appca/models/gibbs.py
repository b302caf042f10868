"""Gibbs sampling for models with orthonormal columns: adaptive and nonparametric PPCA.

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I,  x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I)

Orthonormal columns do not compete, so x integrates out component by component and z_n depends on
the data through the logits alone. The models differ in the prior of Z (`PRIORS`); all else is here.

Adaptive PPCA is algorithm 3 of the paper, with its mistakes mended: the score of a component is
divided by 2 sigma2 (sigma2 + tau2), the parameter of W by sigma2 and not by twice that, members are
visited in a random order, and there is no alpha to draw.

For an unknown number of components (the paper's section 4.1.1), the paper's algorithm 2 is not a
valid kernel: a column that only one row uses can never be kept, the number proposed is capped, and
r / (1 + r) is no rule of acceptance. Here Z is labelled by K_max columns, and its prior is the
Indian buffet conditioned on at most K_max used columns, or the finite Beta-Bernoulli prior on K_max
columns.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from appca.models import conditionals, numerics, polynomials, starts, stiefel
from appca.models.chains import (
    Chains,
    Draws,
    Measures,
    Sampler,
    Schedule,
    co_allocation,
    generators,
    initial_states,
    occupancy,
    row_pairs,
    sample,
)
from appca.models.climb import EMControl, SubspaceFit
from appca.models.conditionals import (
    Gamma,
    Indicators,
    InverseGamma,
    draw_alpha_finite,
    draw_alpha_truncated,
    expected_beta_bernoulli,
    expected_buffet,
    log_beta_bernoulli,
    log_buffet,
    of_used,
)
from appca.models.em import EMSettings, SubspaceState
from appca.models.loop import Callback
from appca.models.numerics import Array
from appca.models.products import ChainData, data_of, products, projections
from appca.models.rows import Rows, about, project
from appca.models.settings import OVERDISPERSED
from appca.models.spectrum import principal
from appca.models.starts import closed_form


class SubspaceGibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    W: Array  # (D, K), orthonormal columns
    X: Array  # (N, K), zero where inactive
    Z: Indicators  # (N, K)
    mu: Array  # (D,)
    sigma2: float
    tau2: Array  # (K,), all equal unless each component has its own
    alpha: float  # of the prior of Z; unused where Z has exactly L ones a row


class SubspacePrior(NamedTuple):
    """Hyperparameters; None keeps a quantity fixed, and so does mean_variance 0."""

    noise: InverseGamma
    latent: InverseGamma | None
    each: bool  # one tau2 for each component
    mean_variance: float  # infinite is flat
    alpha: Gamma | None = None


class SubspaceCrossProducts(NamedTuple):
    """Sums of the rows with their scores."""

    products: Array  # (D, K), Y'X
    total: Array  # (K,), sums of the columns of X


class CachedSubspaceState(NamedTuple):
    """A state and its products with the data, which the next sweep and the densities share."""

    state: SubspaceGibbsState
    P: Array  # (N, K), (y_n - mu)' W
    cross: SubspaceCrossProducts


# (rng, state, logits (N, K)) -> Z (N, K)
DrawIndicators = Callable[[np.random.Generator, SubspaceGibbsState, Array], Indicators]


class IndicatorPrior(NamedTuple):
    """A prior of Z; without the rules for alpha, L ones in each row, all sets alike."""

    draw: DrawIndicators
    draw_alpha: Callable[[np.random.Generator, Gamma, float, Indicators], float] | None = None
    expected: Callable[[Indicators, float], Array] = expected_buffet  # (Z, alpha) -> of a new row
    log_density: Callable[[Indicators, float], float] | None = None  # (Z, alpha)


# (rng, F (D, K), W (D, K)) -> W: a draw with density exp(tr(F'W)) or, for the paper's
# MAP-within-Gibbs, its maximum
UpdateDirections = Callable[[np.random.Generator, Array, Array], Array]


def look_at_subspace(data: ChainData, state: SubspaceGibbsState) -> CachedSubspaceState:
    """Take a state's products with the data; goes through it twice."""
    return CachedSubspaceState(state, _projected(data, state), _crossed(data, state.X))


def _projected(data: ChainData, state: SubspaceGibbsState) -> Array:
    P = projections(data.rows, state.W)
    P -= state.mu @ state.W
    return P


def _crossed(data: ChainData, X: Array) -> SubspaceCrossProducts:
    return SubspaceCrossProducts(products(data.rows, X), X.sum(axis=0))


def sweep(
    rng: np.random.Generator,
    data: ChainData,
    seen: CachedSubspaceState,
    prior: SubspacePrior,
    indicators: IndicatorPrior,
    update_directions: UpdateDirections = stiefel.draw,
) -> CachedSubspaceState:
    """Redraw Z with x integrated out, then X, W, mu, sigma2, tau2 and alpha.

    (Z, X) is one block, so X must be redrawn before anything that depends on it. Two products
    with the data are all that a sweep costs.
    """
    state, P = seen.state, seen.P
    Z = indicators.draw(rng, state, numerics.logits(P, state.sigma2, state.tau2))
    X = draw_scores(rng, P, Z, state.sigma2, state.tau2)
    cross = _crossed(data, X)
    moved = redraw_parameters(rng, data, cross, state._replace(X=X, Z=Z), prior, update_directions)
    if prior.alpha is not None and indicators.draw_alpha is not None:
        alpha = indicators.draw_alpha(rng, prior.alpha, state.alpha, Z)
        moved = moved._replace(alpha=alpha)
    return CachedSubspaceState(moved, _projected(data, moved), cross)


def redraw_parameters(
    rng: np.random.Generator,
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
    sigma2 = float(conditionals.draw_inverse_gamma(rng, noise))
    tau2 = draw_latent(rng, prior, X, Z, state.tau2)
    return SubspaceGibbsState(W, X, Z, mu, sigma2, tau2, state.alpha)


def draw_scores(
    rng: np.random.Generator, P: Array, Z: Indicators, sigma2: float, tau2: Array
) -> Array:
    """Draw x_nk ~ N(m_nk, v_k) where z_nk = 1, zero elsewhere."""
    shrink, variance = numerics.posterior(sigma2, tau2)
    draws = rng.standard_normal(P.shape)
    draws *= np.sqrt(variance)
    draws += P * shrink
    draws[~Z] = 0.0
    return draws


def concentration(cross: SubspaceCrossProducts, mu: Array, sigma2: float) -> Array:
    """Give F (D, K) of the density exp(tr(F'W)) of W: F = sum_n (y_n - mu)(x_n * z_n)' / sigma2.

    The paper divides by 2 sigma2: the same maximum, another distribution.
    """
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


def draw_latent(
    rng: np.random.Generator, prior: SubspacePrior, X: Array, Z: Indicators, tau2: Array
) -> Array:
    """Draw tau2 (K,) from the active entries only."""
    if prior.latent is None:
        return tau2
    conditional = conditionals.latent_variance(prior.latent, X, Z, prior.each)
    return np.broadcast_to(conditionals.draw_inverse_gamma(rng, conditional), tau2.shape).copy()


def complete_density(data: ChainData, seen: CachedSubspaceState) -> float:
    """Give log p(Y, X | W, Z, mu, sigma2, tau2): the complete-data density without p(Z)."""
    state = seen.state
    squares = residual_squares(data, seen.cross, state.W, state.X, state.mu)
    residual = -0.5 * data.size * np.log(2 * np.pi * state.sigma2) - squares / (2 * state.sigma2)
    active = -0.5 * (np.log(2 * np.pi * state.tau2) + np.square(state.X) / state.tau2)
    return float(residual + active.sum(where=state.Z))


def row_background(data: ChainData, state: SubspaceGibbsState) -> float:
    """Give the log density of all rows if no component explained any of them."""
    constant = -0.5 * data.size * np.log(2 * np.pi * state.sigma2)
    return float(constant - data.squares_about(state.mu) / (2 * state.sigma2))


def logits_of(seen: CachedSubspaceState) -> Array:
    """Give the logits (N, K) of a state."""
    return numerics.logits(seen.P, seen.state.sigma2, seen.state.tau2)


def hyper_density(state: SubspaceGibbsState, prior: SubspacePrior) -> float:
    """Give the log prior density of the variances and of alpha, where they are learned."""
    total = conditionals.log_density(prior.noise, state.sigma2)
    if prior.latent is not None:
        learned = state.tau2 if prior.each else float(state.tau2[0])
        total += conditionals.log_density(prior.latent, learned)
    if prior.alpha is not None:
        total += conditionals.log_gamma_density(prior.alpha, state.alpha)
    return total


def describe(rows: Rows, state: Any, **more: Array) -> Draws:
    """Give what a draw keeps, whatever the prior of Z; W and mu as precise as the data."""
    return {
        "components": state.W.T.astype(rows.dtype),
        "mean": state.mu.astype(rows.dtype),
        "noise_variance": np.asarray(state.sigma2),
        **more,
        "occupancy": occupancy(state.Z),
        "shared": co_allocation(state.Z, row_pairs(len(state.Z))),
    }


def average(seen: Any) -> Draws:
    """Give what is only kept as a running mean."""
    return {"Z_mean": seen.state.Z.astype(np.float64), "X_mean": seen.state.X}


def draw_swaps(rng: np.random.Generator, state: SubspaceGibbsState, logits: Array) -> Indicators:
    """Visit the L members of each row in a fresh random order and redraw each: the paper's move.

    The paper's order, l = 1..L of re-sorted members, does not leave the posterior alone.
    """
    from appca.models.gibbs_kernels import scan_swaps

    Z = state.Z.copy()
    shape = len(Z), int(Z[0].sum())
    order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
    scan_swaps(Z, logits, order, rng.random(shape))
    return Z


DIRECTIONS: dict[str, UpdateDirections] = {
    "sample": stiefel.draw,
    # W at the maximum of its conditional: the paper's MAP-within-Gibbs
    "polar": lambda _rng, F, W: stiefel.polar(F, W),
    "pymanopt": lambda _rng, F, W: stiefel.maximise(F, W),
}


S = TypeVar("S")


class Plan(NamedTuple):
    """How the posterior is sampled."""

    schedule: Schedule
    indicators: str  # a name in PRIORS
    directions: str  # a name in DIRECTIONS
    own_starts: bool  # whether every chain starts from an EM fit of its own
    overdispersed: bool  # whether chains after the first start from random rotations, without EM
    noise: InverseGamma  # priors, in units of the mean feature variance
    latent: InverseGamma


def plan_of(model: Any) -> Plan:
    """Read the plan off the parameters of an estimator."""
    return Plan(
        Schedule(model.n_chains, model.burn_in, model.n_draws, model.thin),
        model.z_update,
        "sample" if model.w_update == "auto" else model.w_update,
        own_starts=isinstance(model.init, str) and model.init == "random",
        overdispersed=model.chain_starts == OVERDISPERSED,
        noise=InverseGamma(model.noise_shape, model.noise_scale),
        latent=InverseGamma(model.latent_shape, model.latent_scale),
    )


def fit_by_gibbs(
    rng: np.random.Generator,
    rows: Rows,
    begin: Callable[[np.random.Generator, EMControl], SubspaceFit],
    control: EMControl,
    plan: Plan,
) -> tuple[SubspaceFit, Rows, Chains[CachedSubspaceState]]:
    """Sample; return the draw of largest density as a fit, the rows about its mean, and the chains.

    The first chain starts from `begin`, a fit by EM. A callback that stops that gets chains of a
    single sweep.
    """
    settings, data = control.settings, data_of(rows)

    def start(rng: np.random.Generator, heard: Callback | None) -> tuple[CachedSubspaceState, str]:
        fit = begin(rng, control._replace(callback=heard))
        return look_at_subspace(data, first_state(fit, rows, settings.n_active)), fit.stop_reason

    def afar(rng: np.random.Generator) -> CachedSubspaceState:
        V = principal(rng, rows, settings.n_components).V
        V = V @ starts.random_rotation(rng, V)  # as far from any mode as another
        fit = SubspaceFit(starts.first_state(rows, V, settings), np.empty(0), [], "")
        return look_at_subspace(data, first_state(fit, rows, settings.n_active))

    prior = prior_of(plan, settings, data.squares / data.size)
    steps = sampler(data, prior, PRIORS[plan.indicators], DIRECTIONS[plan.directions])
    chains = run_chains(rng, rows, plan, start, afar, steps, control.callback)
    best = chains.best.state
    about_mean = about(rows.X, (origin_of(rows) + best.mu).astype(rows.dtype))
    K = best.W.shape[1]
    state = SubspaceState(W=best.W, shift=np.zeros(K), latent=best.tau2, noise=best.sigma2)
    fit = SubspaceFit(state, second_moments(chains.best, settings.n_active), [], chains.stop_reason)
    return fit, about_mean, chains


def run_chains(
    rng: np.random.Generator,
    rows: Rows,
    plan: Plan,
    begin: Callable[[np.random.Generator, Callback | None], tuple[S, str]],
    afar: Callable[[np.random.Generator], S],
    sampler: Sampler[S],
    callback: Callback | None,
) -> Chains[S]:
    """Start the chains as the plan says, see `initial_states`, and run them."""
    rngs = generators(rng, plan.schedule.n_chains)
    others = afar if plan.overdispersed else None
    first, stopped = initial_states(rngs, begin, callback, others, apart=plan.own_starts)
    origin = origin_of(rows)
    return sample(rngs, first, sampler, plan.schedule, callback, origin=origin, stopped=stopped)


def origin_of(rows: Rows) -> Array:
    """Return what the rows are taken about, (D,)."""
    return np.zeros(rows.d) if rows.origin is None else rows.origin.astype(np.float64)


def prior_of(plan: Plan, settings: EMSettings, variance: float) -> SubspacePrior:
    """Priors for data with mean feature variance `variance`; the mean's is flat."""
    learned = plan.latent.in_units_of(variance) if isinstance(settings.latent, str) else None
    return SubspacePrior(
        noise=plan.noise.in_units_of(variance),
        latent=learned,
        each=settings.latent == "component",
        mean_variance=np.inf if settings.learn_mean else 0.0,
    )


def first_state(fit: SubspaceFit, rows: Rows, n_active: int) -> SubspaceGibbsState:
    """Turn a fit by EM into the state of a chain: each row's best support, scores still to come."""
    W, shift, latent, noise = fit.state[:4]
    mu = -(W @ shift)
    a = numerics.logits(projections(rows, W) - mu @ W, noise, latent)
    return SubspaceGibbsState(
        W, np.zeros(a.shape), polynomials.top(a, n_active), mu, noise, latent, 1.0
    )


def second_moments(seen: CachedSubspaceState, n_active: int) -> Array:
    """Sum E[(x z)^2] over the rows, (K,), given the parameters of a draw and not its x and z."""
    shrink, v = numerics.posterior(seen.state.sigma2, seen.state.tau2)
    r = polynomials.inclusion(logits_of(seen), n_active)[1]
    return np.asarray(np.einsum("nk,nk->k", r, np.square(seen.P * shrink)) + r.sum(axis=0) * v)


# Share of the mean feature variance: where W spans the data nothing is left to measure noise on.
LEAST_NOISE = 0.01


def draw_truncated(
    rng: np.random.Generator, state: SubspaceGibbsState, logits: Array
) -> Indicators:
    """Redraw Z row by row under the truncated buffet."""
    from appca.models.gibbs_kernels import scan_truncated

    Z = state.Z.copy()
    N, K = Z.shape
    scan_truncated(Z, logits, float(np.log(state.alpha / N)), rng.random((N, K + 1)))
    return Z


def draw_beta_bernoulli(
    rng: np.random.Generator, state: SubspaceGibbsState, logits: Array
) -> Indicators:
    """Redraw Z row by row under the finite Beta-Bernoulli prior."""
    from appca.models.gibbs_kernels import scan_beta_bernoulli

    Z = state.Z.copy()
    scan_beta_bernoulli(Z, logits, state.alpha / Z.shape[1], rng.random(Z.shape))
    return Z


PRIORS = {
    # every row's L-subset as a whole, independent of where it was
    "block": IndicatorPrior(lambda rng, at, a: polynomials.draw(rng, a, int(at.Z[0].sum()))),
    "swap": IndicatorPrior(draw_swaps),
    "ibp": IndicatorPrior(
        draw_truncated, draw_alpha_truncated, expected_buffet, partial(log_buffet, labelled=True)
    ),
    "beta-bernoulli": IndicatorPrior(
        draw_beta_bernoulli, draw_alpha_finite, expected_beta_bernoulli, log_beta_bernoulli
    ),
}


def first_nonparametric_state(
    rng: np.random.Generator, rows: Rows, max_components: int, tau2: float | None, *, rotated: bool
) -> SubspaceGibbsState:
    """Start from PPCA, every column used where it pays, or from a random rotation of it."""
    lead = principal(rng, rows, max_components)
    variance = float(rows.squares.mean()) / rows.n_features
    start = closed_form(rows, lead, LEAST_NOISE * variance)
    W = lead.V @ stiefel.random(rng, *[max_components] * 2) if rotated else lead.V
    latent = np.full(max_components, start.latent.mean() if tau2 is None else tau2)
    Z = numerics.logits(project(rows, W), start.noise, latent) > 0
    return SubspaceGibbsState(W, np.zeros(Z.shape), Z, np.zeros(len(W)), start.noise, latent, 1.0)


def sampler(
    data: ChainData,
    prior: SubspacePrior,
    indicators: IndicatorPrior,
    update_directions: UpdateDirections = stiefel.draw,
) -> Sampler[CachedSubspaceState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior, indicators, update_directions),
        partial(measure, data, prior, indicators),
        partial(record, data, indicators),
        average,
    )


def measure(
    data: ChainData, prior: SubspacePrior, indicators: IndicatorPrior, seen: CachedSubspaceState
) -> Measures:
    """Give the exact log-likelihood, X integrated out, and with the priors.

    W is uniform and mu flat. Z is integrated out, too, where all of its sets are alike; else the
    prior of Z counts in the posterior.
    """
    state, (N, K) = seen.state, seen.P.shape
    if indicators.log_density is None:
        L = int(state.Z[0].sum())
        of_rows = float(polynomials.log_elementary(logits_of(seen), L).sum())
        of_rows -= N * numerics.log_binomial(K, L)
        of_Z = 0.0
    else:
        of_rows = float(logits_of(seen).sum(where=state.Z))
        of_Z = indicators.log_density(state.Z, state.alpha)
    likelihood = row_background(data, state) + of_rows
    return Measures(likelihood, likelihood + of_Z + hyper_density(state, prior))


def record(data: ChainData, indicators: IndicatorPrior, seen: CachedSubspaceState) -> Draws:
    """Keep what a draw keeps; the joint is the paper's complete-data likelihood.

    Where the number of scores differs between draws, it is a density of scores in units of the root
    mean square of the data: in the data's own unit it would depend on that unit.
    """
    state, (N, K) = seen.state, seen.P.shape
    kept = describe(data.rows, state, latent_variance=state.tau2)
    joint = complete_density(data, seen)
    if indicators.log_density is None:
        joint -= N * numerics.log_binomial(K, int(state.Z[0].sum()))
    else:
        joint += indicators.log_density(state.Z, state.alpha)
        joint += 0.5 * int(state.Z.sum()) * float(np.log(data.squares / data.size))
        kept["alpha"] = np.asarray(state.alpha)
        kept["n_components"] = np.asarray(state.Z.any(axis=0).sum())
        kept["weights"] = of_used(indicators.expected(state.Z, state.alpha), state.Z)
    return kept | {"log_joint": np.asarray(joint)}
