"""Gibbs sampling for aPPCA with a scale of each row, or sizes, that are learned.

    u_n ~ omega over a grid,  z_n ~ rho_l / C(K, l) with l = |z_n|,  omega and rho uniform

The row (y_n - mu) / sqrt(u_n) follows the paper's model, and its scores are x_n / sqrt(u_n). So
(u_n, z_n, x_n) is drawn as one block, each given the ones before it and with the others integrated
out; then the paper's conditionals hold for the scaled rows.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models import conditionals, gibbs, numerics, polynomials, starts
from appca.models.chains import Chains, Draws, Measures, Sampler
from appca.models.climb import EMControl, fit_variant
from appca.models.em import EMSettings, SubspaceState, evenly
from appca.models.gibbs import (
    DIRECTIONS,
    Plan,
    SubspaceCrossProducts,
    SubspaceGibbsState,
    SubspacePrior,
    UpdateDirections,
    prior_of,
    run_chains,
)
from appca.models.loop import Callback
from appca.models.numerics import Array
from appca.models.products import ChainData, products, projections, row_squares
from appca.models.row_model import RowModel, Weighed, weigh
from appca.models.rows import Rows
from appca.models.spectrum import principal
from appca.models.starts import Candidate


class VariantGibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    scaled: SubspaceGibbsState  # of the paper's model; its scores X are x_n / sqrt(u_n)
    u: Array  # (N,) scales of rows, from the grid
    weights: Array  # (J,) omega_j
    sizes: int | Array  # L, or rho_l (K + 1,)

    def row_model(self, n_features: int, grid: Array) -> RowModel:
        """Return what decides about a row."""
        sigma2, tau2 = self.scaled.sigma2, self.scaled.tau2
        return RowModel(sigma2, tau2, n_features, 0.0, self.sizes, grid, self.weights)


class VariantData(NamedTuple):
    """The rows, and what no sweep changes."""

    rows: Rows
    squares: Array  # (N,) |y_n - origin|^2
    grid: Array  # (J,) scales of rows


class CachedVariantState(NamedTuple):
    """A state, its products with the rows, and the posterior of rows given its parameters."""

    state: VariantGibbsState
    P: Array  # (N, K), (y_n - mu)' W
    row: Weighed
    log_joint: float  # of scaled rows, their scores and supports; 0 before the first sweep


def look_at_variant(
    data: VariantData, state: VariantGibbsState, log_joint: float = 0.0
) -> CachedVariantState:
    """Project the rows, and weigh their scales, sizes and supports."""
    paper, K = state.scaled, state.scaled.W.shape[1]
    P = projections(data.rows, np.column_stack([paper.W, paper.mu]))
    about_mu = data.squares - 2.0 * P[:, K] + paper.mu @ paper.mu
    P = P[:, :K] - paper.mu @ paper.W
    row = weigh(P, np.maximum(about_mu, 0.0), state.row_model(data.rows.d, data.grid))
    return CachedVariantState(state, P, row, log_joint)


def sweep(
    rng: np.random.Generator,
    data: VariantData,
    seen: CachedVariantState,
    prior: SubspacePrior,
    update_directions: UpdateDirections,
) -> CachedVariantState:
    """Redraw scales, supports and scores of rows, then the parameters given these."""
    state, J = seen.state, len(data.grid)
    at = conditionals.draw_categories(rng, seen.row.scales)
    u, paper = data.grid[at], state.scaled
    P = seen.P / np.sqrt(u)[:, None]
    Z = draw_supports(rng, numerics.logits(P, paper.sigma2, paper.tau2), state.sizes)
    X = gibbs.draw_scores(rng, P, Z, paper.sigma2, paper.tau2)
    scaled, cross = weighted_sums(data, X, u)
    paper = paper._replace(X=X, Z=Z)
    paper = gibbs.redraw_parameters(rng, scaled, cross, paper, prior, update_directions)
    weights, sizes = state.weights, state.sizes
    if J > 1:
        weights = rng.dirichlet(conditionals.shares(np.bincount(at, minlength=J)))
    if not isinstance(sizes, int):
        counts = np.bincount(Z.sum(axis=1), minlength=len(sizes))
        sizes = rng.dirichlet(conditionals.shares(counts))
    moved = VariantGibbsState(paper, u, weights, sizes)
    return look_at_variant(data, moved, complete_density(data, moved, scaled, cross))


def draw_supports(rng: np.random.Generator, logits: Array, sizes: int | Array) -> Array:
    """Draw the support of each row as a whole, of L components or of any number."""
    if isinstance(sizes, int):
        return np.asarray(polynomials.draw(rng, logits, sizes))
    return np.asarray(polynomials.draw_sized(rng, logits, sizes))


def weighted_sums(data: VariantData, X: Array, u: Array) -> tuple[ChainData, SubspaceCrossProducts]:
    """Sum up the rows over sqrt(u) (N,), and with scores X (N, K) over sqrt(u); one pass."""
    inverse, K = 1.0 / u, X.shape[1]
    S = X * np.sqrt(inverse)[:, None]
    sums = products(data.rows, np.column_stack([S, inverse]))
    squares, mass = float(inverse @ data.squares), float(inverse.sum())
    scaled = ChainData(data.rows, sums[:, K], squares, mass)
    return scaled, SubspaceCrossProducts(sums[:, :K], S.sum(axis=0))


def complete_density(
    data: VariantData, state: VariantGibbsState, scaled: ChainData, cross: SubspaceCrossProducts
) -> float:
    """Give log p(Y, X, Z, u | parameters), x_n the scores in the unit of the data."""
    paper, u, weights, sizes = state
    total = gibbs.complete_density(scaled, gibbs.CachedSubspaceState(paper, np.empty(0), cross))
    used = paper.Z.sum(axis=1)
    total -= 0.5 * float((data.rows.d + used) @ np.log(u))
    total += float(np.log(weights[np.searchsorted(data.grid, u)]).sum())
    K = paper.Z.shape[1]
    if isinstance(sizes, int):
        return total - len(u) * numerics.log_binomial(K, sizes)
    return total + float((np.log(sizes) - polynomials.log_counts(K))[used].sum())


def measure(prior: SubspacePrior, seen: CachedVariantState) -> Measures:
    """Give the exact log-likelihood, all of a row integrated out; omega and rho are uniform."""
    total = float(seen.row.log_density.sum())
    return Measures(total, total + gibbs.hyper_density(seen.state.scaled, prior))


def record(data: VariantData, seen: CachedVariantState) -> Draws:
    """Keep what a draw keeps."""
    paper = seen.state.scaled
    kept = gibbs.describe(data.rows, paper, latent_variance=paper.tau2)
    kept["log_joint"] = np.asarray(seen.log_joint)
    if len(data.grid) > 1:
        kept["row_scale_probabilities"] = seen.state.weights
    if not isinstance(seen.state.sizes, int):
        kept["size_probabilities"] = seen.state.sizes
    return kept


def average(seen: CachedVariantState) -> Draws:
    """Give what is only kept as a running mean."""
    paper, u = seen.state.scaled, seen.state.u
    scores = paper.X * np.sqrt(u)[:, None]
    return {"Z_mean": paper.Z.astype(np.float64), "X_mean": scores}


def fit_variant_by_gibbs(
    rng: np.random.Generator,
    rows: Rows,
    start: Array | list[Candidate] | SubspaceState,
    control: EMControl,
    plan: Plan,
) -> tuple[SubspaceState, Chains[CachedVariantState]]:
    """Sample; publish the draw of largest density. The first chain starts from a fit by EM."""
    settings = control.settings
    data = VariantData(rows, row_squares(rows), settings.grid)

    def fitted(rng: np.random.Generator, heard: Callback | None) -> tuple[CachedVariantState, str]:
        fit = fit_variant(rng, rows, start, control._replace(callback=heard))
        return look_at_variant(data, _first(fit.state, rows.n, settings)), fit.stop_reason

    def afar(rng: np.random.Generator) -> CachedVariantState:
        V = principal(rng, rows, settings.n_components).V
        V = V @ starts.random_rotation(rng, V)  # far from any mode
        begun = evenly(starts.first_state(rows, V, settings), settings)
        return look_at_variant(data, _first(begun, rows.n, settings))

    prior = prior_of(plan, settings, float(data.squares.mean()) / rows.d)
    update = DIRECTIONS[plan.directions]
    sampler = Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior, update),
        partial(measure, prior),
        partial(record, data),
        average,
    )
    chains = run_chains(rng, rows, plan, fitted, afar, sampler, control.callback)
    paper, _, weights, sizes = chains.best.state
    at = SubspaceState(paper.W, np.zeros(paper.W.shape[1]), paper.tau2, paper.sigma2, paper.mu)
    state = at._replace(weights=weights, sizes=None if isinstance(sizes, int) else sizes)
    return state, chains


def _first(state: SubspaceState, n: int, settings: EMSettings) -> VariantGibbsState:
    """Turn parameters into the state of a chain, whose first sweep draws all else."""
    sizes = settings.n_active if state.sizes is None else state.sizes
    X = np.zeros((n, len(state.latent)))
    scaled = SubspaceGibbsState(
        state.W, X, X.astype(bool), state.displacement, state.noise, state.latent, 1.0
    )
    return VariantGibbsState(scaled, np.full(n, settings.grid[0]), state.weights, sizes)
