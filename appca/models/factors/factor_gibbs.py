"""Gibbs sweep of adaptive factor analysis (docs/mathematics.md 3.6).

The model of the paper's section 3:

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I),  w_dk ~ N(0, sigma2_W),
    z_n uniform over the L-subsets of 1..K

z_n is drawn slot by slot with x_n integrated out, then x_n given z_n: one block. The scale of a
column is W's (the factor variance stays 1).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.factors import sparse_gibbs
from appca.models.rows.precise_products import ChainData
from appca.models.sampling import conditionals, row_sums
from appca.models.sampling.conditionals import InverseGamma
from appca.models.supports import row_blocks
from appca.models.supports.enumeration import BLOCK_FLOATS
from appca.models.supports.row_supports import CollapsedModel, Members, RowSupports

Array = NDArray[np.float64]

DRAW = np.array([1.0])
PRIOR = 1.0  # 1 / tau2


class FactorGibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    W: Array  # (D, K)
    X: Array  # (N, K), zero where inactive
    members: Members  # (N, L)
    mu: Array  # (D,)
    sigma2: float
    sigma2_W: float


CachedGibbsState = row_sums.CachedFactorState[FactorGibbsState]


class FactorPrior(NamedTuple):
    """Hyperparameters; loading None keeps sigma2_W fixed, mean_variance 0 keeps mu fixed."""

    noise: InverseGamma
    loading: InverseGamma | None
    mean_variance: float  # infinite is flat


class ScoreNormal(NamedTuple):
    """Normal distributions of the active scores, one a row."""

    mean: Array  # (N, L)
    precision: Array  # (N, L, L)


def projected(seen: CachedGibbsState) -> tuple[Array, CollapsedModel]:
    """Give c = W'(y - mu) / sigma2 (N, K) and A = W'W / sigma2."""
    state = seen.state
    return seen.P / state.sigma2, CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)


def slot(c: Array, members: Members, number: int, model: CollapsedModel) -> tuple[Members, Array]:
    """Give p(factor in slot `number` | the other slots, y) of one row, x integrated out.

    Returns
    -------
    candidates (K - L + 1,) and their log weights, the increments of `slot_kernels`, equation (4).
    """
    from appca.models.supports import slot_kernels as kernels

    K, L = len(c), len(members)
    w = kernels.row_state(K, L)
    kernels.build(members, model, c, w)
    kernels.score_replacements(number, K - L, model.prior, w)
    w.candidates[K - L] = members[number]
    return w.candidates[: K - L + 1].copy(), w.scratch.increment[: K - L + 1].copy()


def scores(c: Array, members: Members, model: CollapsedModel) -> ScoreNormal:
    """Give p(x_n | z_n, y_n): precision Lam_S = I/tau2 + A_SS, mean inv(Lam_S) c_S."""
    L = members.shape[1]
    precision = model.A[members[:, :, None], members[:, None, :]] + model.prior * np.eye(L)
    c_S = np.take_along_axis(c, members, axis=1)
    mean = np.asarray(np.linalg.solve(precision, c_S[:, :, None])[:, :, 0], dtype=np.float64)
    return ScoreNormal(mean, precision)


def draw_sets(
    rng: np.random.Generator, c: Array, members: Members, model: CollapsedModel
) -> Members:
    """Visit every slot of every row once, in a fresh random order, and redraw it."""
    rows = RowSupports(c, members, row_blocks.seeds(rng, len(c)))
    return row_blocks.search(rows, DRAW, model)[0]


def draw_scores(rng: np.random.Generator, normal: ScoreNormal) -> Array:
    """Draw active scores (N, L): with precision C C', inv(C') e has covariance inv(C C')."""
    C = np.linalg.cholesky(normal.precision)
    e = rng.standard_normal(normal.mean.shape)[:, :, None]
    return normal.mean + np.linalg.solve(np.swapaxes(C, 1, 2), e)[:, :, 0]


def parts(members: Members) -> list[slice]:
    """Divide the rows into blocks whose L x L matrices stay in cache."""
    n, L = members.shape
    size = max(1, BLOCK_FLOATS // L**2)
    return [slice(start, start + size) for start in range(0, n, size)]


def drawn_scores(
    rng: np.random.Generator, c: Array, members: Members, model: CollapsedModel
) -> Array:
    """Draw the scores (N, K) of all rows given their sets, zero where inactive."""
    X = np.zeros(c.shape)
    for part in parts(members):
        drawn = draw_scores(rng, scores(c[part], members[part], model))
        np.put_along_axis(X[part], members[part], drawn, axis=1)
    return X


def indicators(members: Members, n_factors: int) -> NDArray[np.bool_]:
    """Give Z (N, K) of the members (N, L)."""
    Z = np.zeros((len(members), n_factors), dtype=bool)
    np.put_along_axis(Z, members, True, axis=1)
    return Z


def sweep(
    rng: np.random.Generator, data: ChainData, seen: CachedGibbsState, prior: FactorPrior
) -> CachedGibbsState:
    """Redraw (Z, X), the scales of the columns, W, mu, sigma2 and sigma2_W.

    X follows Z at once: nothing that depends on X may come between them.
    """
    state, (c, model) = seen.state, projected(seen)
    members = draw_sets(rng, c, state.members, model)
    X = drawn_scores(rng, c, members, model)
    Z = indicators(members, X.shape[1])
    moved = sparse_gibbs.SparseState(
        state.W, X, Z, state.mu, state.sigma2, state.sigma2_W, alpha=0.0
    )
    W, X = sparse_gibbs.draw_scales(rng, moved, 1.0 / PRIOR)[:2]
    cross = row_sums.crossed(data, X)
    W = conditionals.draw_rows(
        rng, row_sums.loadings(cross, state.mu, state.sigma2, state.sigma2_W)
    )
    mu = state.mu
    if prior.mean_variance > 0:
        left = data.total - W @ cross.total
        normal = conditionals.mean(left, len(X), state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, normal)
    squares = row_sums.residual_squares(data, cross, W, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    sigma2 = float(conditionals.draw_inverse_gamma(rng, noise))
    sigma2_W = state.sigma2_W
    if prior.loading is not None:
        loading = conditionals.loading_variance(prior.loading, W)
        sigma2_W = float(conditionals.draw_inverse_gamma(rng, loading))
    return row_sums.seen_by(data, FactorGibbsState(W, X, members, mu, sigma2, sigma2_W), squares)
