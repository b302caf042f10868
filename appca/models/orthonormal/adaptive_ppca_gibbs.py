"""Gibbs sampling for adaptive PPCA: algorithm 3 of the paper, with its mistakes mended.

The score of a component is divided by 2 sigma2 (sigma2 + tau2), the parameter of W by sigma2 and
not by twice that, members are visited in a random order, and there is no alpha to draw.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra import gaussian, stiefel
from appca.models.orthonormal.subspace_gibbs import (
    CachedSubspaceState,
    DrawIndicators,
    SubspaceGibbsState,
    SubspacePrior,
    UpdateDirections,
    average,
    complete_density,
    describe,
    hyper_density,
    logits_of,
    row_background,
    sweep,
)
from appca.models.polynomials import subsets
from appca.models.rows.precise_products import ChainData
from appca.models.sampling.chains import Draws, Measures, Sampler

Array = NDArray[np.float64]


def draw_block(
    rng: np.random.Generator, state: SubspaceGibbsState, logits: Array
) -> NDArray[np.bool_]:
    """Draw every row's L-subset as a whole, independent of where it was."""
    return np.asarray(subsets.draw(rng, logits, int(state.Z[0].sum())))


def draw_swaps(
    rng: np.random.Generator, state: SubspaceGibbsState, logits: Array
) -> NDArray[np.bool_]:
    """Visit the L members of each row in a fresh random order and redraw each one.

    The paper's move. Its order, members re-sorted and l = 1..L, depends on the state and does not
    leave the posterior alone.
    """
    from appca.models.orthonormal.ibp_kernels import scan_swaps

    Z = state.Z.copy()
    shape = len(Z), int(Z[0].sum())
    order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
    scan_swaps(Z, logits, order, rng.random(shape))
    return Z


INDICATORS: dict[str, DrawIndicators] = {"block": draw_block, "swap": draw_swaps}
DIRECTIONS: dict[str, UpdateDirections] = {
    "sample": stiefel.draw,
    # W at the maximum of its conditional: the paper's MAP-within-Gibbs
    "polar": lambda _rng, F, W: stiefel.polar(F, W),
    "pymanopt": lambda _rng, F, W: stiefel.maximise(F, W),
}


def sampler(
    data: ChainData, prior: SubspacePrior, indicators: str, directions: str
) -> Sampler[CachedSubspaceState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    draw_indicators, update_directions = INDICATORS[indicators], DIRECTIONS[directions]
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior, draw_indicators, update_directions),
        partial(measure, data, prior),
        partial(record, data),
        average,
    )


def measure(data: ChainData, prior: SubspacePrior, seen: CachedSubspaceState) -> Measures:
    """Give the exact log-likelihood, X and Z integrated out; W is uniform and mu flat."""
    (N, K), n_active = seen.P.shape, int(seen.state.Z[0].sum())
    sums = subsets.log_elementary(logits_of(seen), n_active)
    total = row_background(data, seen.state) + float(sums.sum())
    total -= N * gaussian.log_binomial(K, n_active)
    return Measures(total, total + hyper_density(seen.state, prior))


def record(data: ChainData, seen: CachedSubspaceState) -> Draws:
    """Keep what a draw keeps; the joint is the paper's complete-data likelihood."""
    (N, K), n_active = seen.P.shape, int(seen.state.Z[0].sum())
    joint = complete_density(data, seen) - N * gaussian.log_binomial(K, n_active)
    return describe(data.rows, seen.state) | {"log_joint": np.asarray(joint)}
