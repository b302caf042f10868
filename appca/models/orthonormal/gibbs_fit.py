"""Fit aPPCA by Gibbs sampling from data to draws: starts, chains, the draw that is published."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.loop import Callback
from appca.models.decompositions.spectrum import principal
from appca.models.orthonormal import adaptive_ppca_gibbs, starts
from appca.models.orthonormal.em import EMSettings, SubspaceState
from appca.models.orthonormal.em_fit import SubspaceFit
from appca.models.orthonormal.screening import EMControl
from appca.models.orthonormal.subspace_gibbs import (
    Array,
    CachedSubspaceState,
    SubspaceGibbsState,
    SubspacePrior,
    logits_of,
    look,
)
from appca.models.polynomials import subsets
from appca.models.rows.observations import Rows, about
from appca.models.rows.precise_products import data_of, projections
from appca.models.sampling.chains import (
    Chains,
    Sampler,
    Schedule,
    generators,
    initial_states,
    sample,
)
from appca.models.sampling.conditionals import InverseGamma
from appca.models.settings.table import OVERDISPERSED

S = TypeVar("S")


class Plan(NamedTuple):
    """How the posterior is sampled."""

    schedule: Schedule
    indicators: str  # a name in adaptive_ppca_gibbs.INDICATORS
    directions: str  # a name in adaptive_ppca_gibbs.DIRECTIONS
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


class Sampled(NamedTuple):
    """The published draw as a fit about its own mean, and all chains."""

    fit: SubspaceFit
    rows: Rows  # about the mean of that draw
    chains: Chains[CachedSubspaceState]


def fit_by_gibbs(
    rng: np.random.Generator,
    rows: Rows,
    begin: Callable[[np.random.Generator, EMControl], SubspaceFit],
    control: EMControl,
    plan: Plan,
) -> Sampled:
    """Sample; publish the draw of largest density.

    The first chain starts from `begin`, a fit by EM. A callback that stops that gets chains of a
    single sweep.
    """
    settings, data = control.settings, data_of(rows)

    def start(rng: np.random.Generator, heard: Callback | None) -> tuple[CachedSubspaceState, str]:
        fit = begin(rng, control._replace(callback=heard))
        return look(data, first_state(fit, rows, settings.n_active)), fit.stop_reason

    def afar(rng: np.random.Generator) -> CachedSubspaceState:
        return look(data, rotated_state(rng, rows, settings))

    prior = prior_of(plan, settings, data.squares / data.size)
    sampler = adaptive_ppca_gibbs.sampler(data, prior, plan.indicators, plan.directions)
    chains = run_chains(rng, rows, plan, Beginnings(start, afar), sampler, control.callback)
    best = chains.best.state
    about_mean = about(rows.X, (origin_of(rows) + best.mu).astype(rows.dtype))
    K = best.W.shape[1]
    state = SubspaceState(W=best.W, shift=np.zeros(K), latent=best.tau2, noise=best.sigma2)
    fit = SubspaceFit(state, second_moments(chains.best, settings.n_active), [], chains.stop_reason)
    return Sampled(fit, about_mean, chains)


class Beginnings(NamedTuple, Generic[S]):
    """Where chains start."""

    fitted: Callable[[np.random.Generator, Callback | None], tuple[S, str]]  # see `initial_states`
    afar: Callable[[np.random.Generator], S]  # without EM


def run_chains(
    rng: np.random.Generator,
    rows: Rows,
    plan: Plan,
    beginnings: Beginnings[S],
    sampler: Sampler[S],
    callback: Callback | None,
) -> Chains[S]:
    """Start the chains as the plan says, and run them."""
    rngs = generators(rng, plan.schedule.n_chains)
    others = beginnings.afar if plan.overdispersed else None
    first, stopped = initial_states(
        rngs, beginnings.fitted, callback, others, apart=plan.own_starts
    )
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


def rotated_state(rng: np.random.Generator, rows: Rows, settings: EMSettings) -> SubspaceGibbsState:
    """Start from a random rotation of the principal directions, as far from any mode as another."""
    V = principal(rng, rows, settings.n_components).V
    begun = starts.first_state(rows, V @ starts.random_rotation(rng, V), settings)
    return first_state(SubspaceFit(begun, np.empty(0), [], ""), rows, settings.n_active)


def first_state(fit: SubspaceFit, rows: Rows, n_active: int) -> SubspaceGibbsState:
    """Turn a fit by EM into the state of a chain: each row's best support, scores still to come."""
    W, shift, latent, noise = fit.state
    mu = -(W @ shift)
    a = gaussian.logits(projections(rows, W) - mu @ W, noise, latent)
    return SubspaceGibbsState(
        W, np.zeros(a.shape), subsets.top(a, n_active), mu, noise, latent, 1.0
    )


def second_moments(seen: CachedSubspaceState, n_active: int) -> Array:
    """Sum E[(x z)^2] over the rows, (K,), given the parameters of a draw and not its x and z."""
    shrink, v = gaussian.posterior(seen.state.sigma2, seen.state.tau2)
    r = subsets.inclusion(logits_of(seen), n_active)[1]
    return np.asarray(np.einsum("nk,nk->k", r, np.square(seen.P * shrink)) + r.sum(axis=0) * v)
