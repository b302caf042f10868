"""The rows as chains of factor analysis see them: a few sums, and products with a few columns.

    y_n = W s_n + mu + e_n,  s_n = x_n * z_n,  W any D x K matrix

A sweep reads the rows twice, for (y - mu)'W and for the sum of y s'; the residual follows from
sums, all of them in float64 (see `precise_products`), and no array is as large as the rows.
"""

from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from appca.models import conditionals
from appca.models.conditionals import RowNormal
from appca.models.numerics import Array, background
from appca.models.products import ChainData, products, projections


class Linear(Protocol):
    """A state of a chain."""

    @property
    def W(self) -> Array:
        """Loadings (D, K)."""

    @property
    def X(self) -> Array:
        """Scores (N, K), zero where inactive."""

    @property
    def mu(self) -> Array:
        """Mean (D,) about the origin of the rows."""

    @property
    def sigma2(self) -> float:
        """Noise variance."""


S = TypeVar("S", bound=Linear)


class FactorCrossProducts(NamedTuple):
    """Sums of the rows with their scores."""

    products: Array  # (D, K), sum of y s'
    total: Array  # (K,), sum of s
    second: Array  # (K, K), sum of s s'


class CachedFactorState(NamedTuple, Generic[S]):
    """A state and what the rows are to it: the next sweep and the densities need no more."""

    state: S
    P: Array  # (N, K), (y_n - mu)'W
    squares: float  # sum of |y - mu - W s|^2


def look(data: ChainData, state: S) -> CachedFactorState[S]:
    """Take a state's products with the rows; goes through them twice."""
    return seen_by(data, state, residual_squares(data, crossed(data, state.X), state.W, state.mu))


def seen_by(data: ChainData, state: S, squares: float) -> CachedFactorState[S]:
    """Project the rows, one pass, where the squares of the residual are known."""
    P = projections(data.rows, state.W)
    P -= state.mu @ state.W
    return CachedFactorState(state, P, squares)


def crossed(data: ChainData, X: Array) -> FactorCrossProducts:
    """Sum up the rows with scores X (N, K), one pass."""
    return FactorCrossProducts(products(data.rows, X), X.sum(axis=0), X.T @ X)


def about_mean(data: ChainData, mu: Array) -> float:
    """Sum of |y - mu|^2 over the rows."""
    return float(data.squares - 2.0 * (mu @ data.total) + data.rows.n * (mu @ mu))


def residual_squares(data: ChainData, cross: FactorCrossProducts, W: Array, mu: Array) -> float:
    """Sum of |y - mu - W s|^2 over the rows; at least 0, where rounding says otherwise."""
    fit = np.vdot(W, cross.products) - mu @ (W @ cross.total)
    squares = about_mean(data, mu) - 2.0 * fit + np.vdot(W.T @ W, cross.second)
    return max(float(squares), 0.0)


def background_of(data: ChainData, state: Linear) -> float:
    """Log density of all rows if no factor explained any of them."""
    n, d = data.rows.n, data.rows.d
    each = background(np.asarray(about_mean(data, state.mu) / n), state.sigma2, d)
    return n * float(each)


def loadings(cross: FactorCrossProducts, mu: Array, sigma2: float, sigma2_W: float) -> RowNormal:
    """Give the conditional of W, the rows taken about mu."""
    about_mu = cross.products - np.outer(mu, cross.total)
    return conditionals.loadings(about_mu, cross.second, sigma2, sigma2_W)
