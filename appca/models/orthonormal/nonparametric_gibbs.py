"""Gibbs sampling for PPCA with an unknown number of components (the paper's section 4.1.1).

The paper's algorithm 2 is not a valid kernel: a column that only one row uses can never be kept,
the number proposed is capped, and r / (1 + r) is no rule of acceptance. Here W has K_max
orthonormal columns, Z is labelled by them, and its prior is the Indian buffet conditioned on at
most K_max used columns, or the finite Beta-Bernoulli prior on K_max columns.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra import gaussian, stiefel
from appca.models.decompositions.spectrum import principal
from appca.models.orthonormal.starts import closed_form
from appca.models.orthonormal.subspace_gibbs import (
    CachedSubspaceState,
    DrawIndicators,
    SubspaceGibbsState,
    SubspacePrior,
    average,
    complete_density,
    describe,
    hyper_density,
    logits_of,
    row_background,
    sweep,
)
from appca.models.rows.observations import Rows, project
from appca.models.rows.precise_products import ChainData
from appca.models.sampling.chains import Draws, Measures, Sampler
from appca.models.sampling.conditionals import Gamma, draw_alpha_finite, draw_alpha_truncated
from appca.models.sampling.feature_priors import (
    expected_beta_bernoulli,
    expected_buffet,
    log_beta_bernoulli,
    log_buffet,
    of_used,
)

# Share of the mean feature variance: where W spans the data nothing is left to measure noise on.
LEAST_NOISE = 0.01

Array = NDArray[np.float64]
Indicators = NDArray[np.bool_]


class FeaturePrior(NamedTuple):
    """What a prior of Z with free row sums must be able to do."""

    expected: Callable[[Indicators, float], Array]  # (Z, alpha) -> weights for a new row
    draw_indicators: DrawIndicators
    draw_alpha: Callable[[np.random.Generator, Gamma, float, Indicators], float]
    log_density: Callable[[Indicators, float], float]  # (Z, alpha)


def draw_truncated(
    rng: np.random.Generator, state: SubspaceGibbsState, logits: Array
) -> Indicators:
    """Redraw Z row by row under the truncated buffet."""
    from appca.models.orthonormal.ibp_kernels import scan_truncated

    Z = state.Z.copy()
    N, K = Z.shape
    scan_truncated(Z, logits, float(np.log(state.alpha / N)), rng.random((N, K + 1)))
    return Z


def draw_beta_bernoulli(
    rng: np.random.Generator, state: SubspaceGibbsState, logits: Array
) -> Indicators:
    """Redraw Z row by row under the finite Beta-Bernoulli prior."""
    from appca.models.orthonormal.ibp_kernels import scan_beta_bernoulli

    Z = state.Z.copy()
    scan_beta_bernoulli(Z, logits, state.alpha / Z.shape[1], rng.random(Z.shape))
    return Z


PRIORS = {
    "ibp": FeaturePrior(
        expected_buffet, draw_truncated, draw_alpha_truncated, partial(log_buffet, labelled=True)
    ),
    "beta-bernoulli": FeaturePrior(
        expected_beta_bernoulli, draw_beta_bernoulli, draw_alpha_finite, log_beta_bernoulli
    ),
}


def first_state(
    rng: np.random.Generator, rows: Rows, max_components: int, tau2: float | None, *, rotated: bool
) -> SubspaceGibbsState:
    """Start from PPCA, every column used where it pays, or from a random rotation of it.

    Columns die more easily than they are born, so all of them start.
    """
    lead = principal(rng, rows, max_components)
    variance = float(rows.squares.mean()) / rows.n_features
    start = closed_form(rows, lead, LEAST_NOISE * variance)
    W = lead.V @ stiefel.random(rng, *[max_components] * 2) if rotated else lead.V
    latent = np.full(max_components, start.latent.mean() if tau2 is None else tau2)
    Z = gaussian.logits(project(rows, W), start.noise, latent) > 0
    return SubspaceGibbsState(W, np.zeros(Z.shape), Z, np.zeros(len(W)), start.noise, latent, 1.0)


def advance(
    rng: np.random.Generator,
    data: ChainData,
    seen: CachedSubspaceState,
    prior: SubspacePrior,
    features: FeaturePrior,
) -> CachedSubspaceState:
    """Redraw everything once. Unused columns of W have F = 0, so they wander freely."""
    seen = sweep(rng, data, seen, prior, features.draw_indicators)
    if prior.alpha is None:
        return seen
    state = seen.state
    alpha = features.draw_alpha(rng, prior.alpha, state.alpha, state.Z)
    return seen._replace(state=state._replace(alpha=alpha))


def sampler(
    data: ChainData, prior: SubspacePrior, features: FeaturePrior
) -> Sampler[CachedSubspaceState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    return Sampler(
        lambda rng, seen: advance(rng, data, seen, prior, features),
        partial(measure, data, prior, features),
        partial(record, data, features),
        average,
    )


def measure(
    data: ChainData, prior: SubspacePrior, features: FeaturePrior, seen: CachedSubspaceState
) -> Measures:
    """Give log p(Y | Z), X integrated out, and with the priors of Z and of the variances."""
    state = seen.state
    likelihood = row_background(data, state) + float(logits_of(seen).sum(where=state.Z))
    return Measures(
        likelihood,
        likelihood + features.log_density(state.Z, state.alpha) + hyper_density(state, prior),
    )


def record(data: ChainData, features: FeaturePrior, seen: CachedSubspaceState) -> Draws:
    """Keep what a draw keeps; the joint is the paper's complete-data likelihood.

    It is a density of scores in units of the root mean square of the data: their number differs
    between draws, and in the data's own unit so would what another unit adds.
    """
    state = seen.state
    joint = complete_density(data, seen) + features.log_density(state.Z, state.alpha)
    joint += 0.5 * int(state.Z.sum()) * float(np.log(data.squares / data.size))
    return describe(data.rows, state) | {
        "log_joint": np.asarray(joint),
        "alpha": np.asarray(state.alpha),
        "n_components": np.asarray(state.Z.any(axis=0).sum()),
        "weights": of_used(features.expected(state.Z, state.alpha), state.Z),
    }
