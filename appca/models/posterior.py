"""Queries about rows, and the form of their results, for all models."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from appca.models.numerics import Array

MAP, ALL = "map", "all"


class ParameterDraw(NamedTuple):
    """Parameters of one draw; the columns it uses only."""

    components: Array  # (K', D)
    mean: Array  # (D,)
    noise: float
    latent: Array  # (K',)
    weights: Array | None  # (K',) probability that a new row uses a component, where it has one
    places: Array  # (K',) of its components among the published ones; K or more: none
    row_scale_probabilities: Array | None  # (J,), where learned
    size_probabilities: Array | None  # (K + 1,), where learned


class Description(NamedTuple):
    """All results about some rows at once.

    Attributes
    ----------
    scores, active, inclusion : ndarray, shape (N, K)
        As `transform` and `allocate` with support="map", not whitened; `inclusion_probabilities`.
    membership : ndarray, shape (N,)
        Posterior probability of `active`; of a sampled fit at the published draw.
    error : ndarray, shape (N,)
        Mean squared residual per feature, |y - mean - W scores|^2 / D, of the reconstruction.
    log_likelihood, standard_error : ndarray, shape (N,)
        Nats, and the standard error of estimated sums over supports, 0 where they are exact.
    method : str
        How the sums over supports were computed.
    row_scales : ndarray, shape (N,), or None
        Scale of each row at the published draw, where scales are learned.
    """

    scores: Array
    active: Array
    inclusion: Array
    membership: Array
    error: Array
    log_likelihood: Array
    standard_error: Array
    method: str
    row_scales: Array | None = None


class RowSummary(NamedTuple):
    """Averages over the supports of a row."""

    log_likelihood: Array  # (N,) nats
    error: Array  # (N,) its standard error, nats; 0 where exact
    inclusion: Array  # (N, K)
    method: str


class RowEstimate(NamedTuple):
    """Log-likelihoods (N,) of rows in nats, their standard errors (0 if exact) and the method."""

    log_likelihood: Array
    error: Array
    method: str


class Posterior:
    """The posterior of the supports and scores of checked rows X (n, D), from its `description`."""

    description: Callable[[Array], Description]
    expected: Callable[[Array], Array]  # X -> E[x * z | y], (n, K), over all supports

    def scores(self, X: Array, scale: Array | None) -> Array:
        """Posterior means (n, K) of x * z, over `scale` (K,), as `transform` gives them."""
        scores = self.description(X).scores
        return scores if scale is None else scores / scale.astype(scores.dtype)

    def supports(self, X: Array, support: str) -> Array:
        """Supports (n, K) bool, as `allocate` gives them."""
        del support
        return self.description(X).active

    def membership(self, X: Array) -> Array:
        """Probabilities (n,) of `supports`."""
        return self.description(X).membership

    def summary(self, X: Array) -> RowSummary:
        """Log-likelihood and inclusion."""
        rows = self.description(X)
        return RowSummary(rows.log_likelihood, rows.standard_error, rows.inclusion, rows.method)

    def inclusion(self, X: Array) -> Array:
        """Probabilities p(z_nk = 1 | y_n), (n, K)."""
        return self.summary(X).inclusion

    def log_likelihood(self, X: Array) -> Array:
        """Log p(y_n), (n,) in nats."""
        return self.summary(X).log_likelihood


class PosteriorOfDraw(Posterior):
    """The posterior given one draw of the parameters, over several of which can be averaged."""

    components: Array  # (K, D)
    n_supports: Any = 1.0  # terms of the sums over supports, which decide about the cost of a draw
    at: Any  # (`ParameterDraw`, stream of random numbers) -> the posterior given this draw
    probability_of: Any  # (X, Z (n, K)) -> probabilities (n,) of these supports
    drawn_scores: Any  # (rng, X) -> x * z (n, K) of a drawn support
    likely: Callable[[Array], Array]  # inclusion (n, K) -> components (n, K) bool of the largest
    sample: Any  # (rng, n) -> rows (n, D) and the components (n, K) bool that they use


def refuse_support(support: str) -> None:
    """Raise ValueError for an unknown way to treat the supports of a row."""
    if support not in ("auto", ALL, MAP):
        msg = f"support must be 'auto', 'all' or 'map'; got {support!r}."
        raise ValueError(msg)


def share_of(log_share: Array) -> Array:
    """Probabilities from their logs, which rounding may leave above 0."""
    return np.asarray(np.exp(np.minimum(log_share, 0.0)))
