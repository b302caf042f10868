"""Gibbs sweeps for models with orthonormal columns.

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I,  x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I)

Orthonormal columns do not compete, so x integrates out component by component and z_n depends on
the data through the logits alone. The models differ in the prior of Z and hence in the function
that draws Z from the logits; all else is here.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra import gaussian, stiefel
from appca.models.rows.observations import Rows
from appca.models.rows.precise_products import ChainData, products, projections
from appca.models.sampling import conditionals
from appca.models.sampling.chains import Draws
from appca.models.sampling.conditionals import Gamma, InverseGamma
from appca.models.sampling.invariants import co_allocation, occupancy, row_pairs

Array = NDArray[np.float64]


class SubspaceGibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    W: Array  # (D, K), orthonormal columns
    X: Array  # (N, K), zero where inactive
    Z: NDArray[np.bool_]  # (N, K)
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
DrawIndicators = Callable[[np.random.Generator, SubspaceGibbsState, Array], NDArray[np.bool_]]
# (rng, F (D, K), W (D, K)) -> W: a draw with density exp(tr(F'W)) or, for the paper's
# MAP-within-Gibbs, its maximum
UpdateDirections = Callable[[np.random.Generator, Array, Array], Array]


def look(data: ChainData, state: SubspaceGibbsState) -> CachedSubspaceState:
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
    draw_indicators: DrawIndicators,
    update_directions: UpdateDirections = stiefel.draw,
) -> CachedSubspaceState:
    """Redraw Z with x integrated out, then X, W, mu, sigma2 and tau2; alpha is left alone.

    (Z, X) is one block, so X must be redrawn before anything that depends on it. Two products
    with the data are all that a sweep costs.
    """
    state, P = seen.state, seen.P
    Z = draw_indicators(rng, state, gaussian.logits(P, state.sigma2, state.tau2))
    X = draw_scores(rng, P, Z, state.sigma2, state.tau2)
    cross = _crossed(data, X)
    moved = redraw_parameters(rng, data, cross, state._replace(X=X, Z=Z), prior, update_directions)
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
    rng: np.random.Generator, P: Array, Z: NDArray[np.bool_], sigma2: float, tau2: Array
) -> Array:
    """Draw x_nk ~ N(m_nk, v_k) where z_nk = 1, zero elsewhere."""
    shrink, variance = gaussian.posterior(sigma2, tau2)
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
    about_mu = data.squares - 2 * (mu @ data.total) + data.mass * (mu @ mu)
    fit = np.vdot(W, cross.products) - mu @ (W @ cross.total)
    return float(about_mu - 2 * fit + np.square(X).sum())


def draw_latent(
    rng: np.random.Generator, prior: SubspacePrior, X: Array, Z: NDArray[np.bool_], tau2: Array
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
    about_mu = data.squares - 2 * (state.mu @ data.total) + data.rows.n * (state.mu @ state.mu)
    constant = -0.5 * data.size * np.log(2 * np.pi * state.sigma2)
    return float(constant - about_mu / (2 * state.sigma2))


def logits_of(seen: CachedSubspaceState) -> Array:
    """Give the logits (N, K) of a state."""
    return gaussian.logits(seen.P, seen.state.sigma2, seen.state.tau2)


def hyper_density(state: SubspaceGibbsState, prior: SubspacePrior) -> float:
    """Give the log prior density of the variances and of alpha, where they are learned."""
    total = conditionals.log_density(prior.noise, state.sigma2)
    if prior.latent is not None:
        learned = state.tau2 if prior.each else float(state.tau2[0])
        total += conditionals.log_density(prior.latent, learned)
    if prior.alpha is not None:
        total += conditionals.log_gamma_density(prior.alpha, state.alpha)
    return total


def describe(rows: Rows, state: SubspaceGibbsState) -> Draws:
    """Give what a draw keeps, whatever the prior of Z; W and mu as precise as the data."""
    return {
        "components": state.W.T.astype(rows.dtype),
        "mean": state.mu.astype(rows.dtype),
        "noise_variance": np.asarray(state.sigma2),
        "latent_variance": state.tau2,
        "occupancy": occupancy(state.Z),
        "shared": co_allocation(state.Z, row_pairs(len(state.Z))),
    }


def average(seen: CachedSubspaceState) -> Draws:
    """Give what is only kept as a running mean."""
    return {"Z_mean": seen.state.Z.astype(np.float64), "X_mean": seen.state.X}
