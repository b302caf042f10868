"""Fit aPPCA with row scales or learned sizes by Gibbs sampling: starts, chains, published draw."""

from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import Callback
from appca.models.decompositions.spectrum import principal
from appca.models.orthonormal import starts
from appca.models.orthonormal.adaptive_ppca_gibbs import DIRECTIONS
from appca.models.orthonormal.em import SubspaceState
from appca.models.orthonormal.gibbs_fit import Beginnings, Plan, prior_of, run_chains
from appca.models.orthonormal.screening import EMControl
from appca.models.orthonormal.starts import Candidate
from appca.models.orthonormal.subspace_gibbs import SubspaceGibbsState
from appca.models.rows.observations import Rows
from appca.models.sampling.chains import Chains
from appca.models.variants import gibbs
from appca.models.variants.em import VariantSettings, VariantState
from appca.models.variants.fit import VariantFit, fit_variant
from appca.models.variants.gibbs import CachedVariantState, VariantGibbsState


class SampledVariant(NamedTuple):
    """The published draw as a state of EM, and all chains."""

    fit: VariantFit
    chains: Chains[CachedVariantState]


def fit_variant_by_gibbs(
    rng: np.random.Generator,
    rows: Rows,
    start: Array | list[Candidate] | VariantState,
    control: EMControl,
    settings: VariantSettings,
    plan: Plan,
) -> SampledVariant:
    """Sample; publish the draw of largest density. The first chain starts from a fit by EM."""
    data = gibbs.data_of(rows, settings.grid)

    def fitted(rng: np.random.Generator, heard: Callback | None) -> tuple[CachedVariantState, str]:
        fit = fit_variant(rng, rows, start, control._replace(callback=heard), settings)
        return gibbs.look(data, _first(fit.state, rows.n, settings)), fit.stop_reason

    def afar(rng: np.random.Generator) -> CachedVariantState:
        V = principal(rng, rows, settings.em.n_components).V
        V = V @ starts.random_rotation(rng, V)  # far from any mode
        begun = _about_origin(starts.first_state(rows, V, settings.em), rows.d, settings)
        return gibbs.look(data, _first(begun, rows.n, settings))

    prior = prior_of(plan, settings.em, float(data.squares.mean()) / rows.d)
    sampler = gibbs.sampler(data, prior, DIRECTIONS[plan.directions])
    chains = run_chains(rng, rows, plan, Beginnings(fitted, afar), sampler, control.callback)
    paper, _, weights, sizes = chains.best.state
    at = SubspaceState(paper.W, np.zeros(paper.W.shape[1]), paper.tau2, paper.sigma2)
    state = _about_origin(at, rows.d, settings)._replace(offset=paper.mu, weights=weights)
    state = state if isinstance(sizes, int) else state._replace(sizes=sizes)
    return SampledVariant(VariantFit(state, settings, [], chains.stop_reason), chains)


def _first(state: VariantState, n: int, settings: VariantSettings) -> VariantGibbsState:
    """Turn parameters into the state of a chain, whose first sweep draws all else."""
    sizes = state.sizes if settings.variant.learn_sizes else settings.em.n_active
    X = np.zeros((n, len(state.latent)))
    scaled = SubspaceGibbsState(
        state.V, X, X.astype(bool), state.displacement, state.noise, state.latent, 1.0
    )
    return VariantGibbsState(scaled, np.full(n, settings.grid[0]), state.weights, sizes)


def _about_origin(state: SubspaceState, d: int, settings: VariantSettings) -> VariantState:
    """Take a state of the paper's model without a mean; all scales and sizes as probable."""
    (W, shift, latent, noise), J = state, len(settings.grid)
    K = len(latent)
    even = np.full(J, 1.0 / J), np.full(K + 1, 1.0 / (K + 1))
    return VariantState(W, shift, np.zeros(d), latent, noise, np.ones(d), *even)
