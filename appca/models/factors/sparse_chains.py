"""Chains of sparse factor analysis: where they start, what they keep, what they are judged by."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.decompositions import independent_components
from appca.models.factors.sparse_gibbs import (
    CachedSparseState,
    SparsePrior,
    SparseState,
    log_complete,
    log_marginal,
    log_structure,
    sweep_finite,
    sweep_infinite,
)
from appca.models.rows.observations import Rows, project
from appca.models.rows.precise_products import ChainData
from appca.models.sampling.chains import Draws, Measures, Sampler
from appca.models.sampling.conditionals import log_density, log_gamma_density
from appca.models.sampling.feature_priors import expected_beta_bernoulli, expected_buffet, of_used
from appca.models.sampling.invariants import co_allocation, occupancy, row_pairs

Array = NDArray[np.float64]

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


def first_state(
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


def sampler(data: ChainData, prior: SparsePrior, kind: Kind) -> Sampler[CachedSparseState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    sweep = sweep_infinite if kind.infinite else sweep_finite
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior),
        partial(measure, data, prior, kind),
        partial(record, data, prior, kind),
        average,
    )


def measure(data: ChainData, prior: SparsePrior, kind: Kind, seen: CachedSparseState) -> Measures:
    """Give log p(Y | Z), X integrated out, and with the priors of Z, W and the variances."""
    state, log_likelihood = seen.state, log_marginal(data, seen, prior)
    total = log_likelihood + log_structure(state, kind.infinite, prior.unit)
    total += log_density(prior.noise, state.sigma2) + log_density(prior.loading, state.sigma2_W)
    if prior.alpha is not None:
        total += log_gamma_density(prior.alpha, state.alpha)
    return Measures(log_likelihood, total, int(state.Z.any(axis=0).sum()))


def record(data: ChainData, prior: SparsePrior, kind: Kind, seen: CachedSparseState) -> Draws:
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


def average(seen: CachedSparseState) -> Draws:
    """Give what is only kept as a running mean."""
    state = seen.state
    return {"Z_mean": state.Z.astype(np.float64), "X_mean": state.X}


def expected(state: SparseState, kind: Kind) -> Array:
    """Give the probability (K,) that a new row uses a column."""
    rule = expected_buffet if kind.infinite else expected_beta_bernoulli
    return rule(state.Z, state.alpha)
