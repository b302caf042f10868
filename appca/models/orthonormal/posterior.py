"""What a fit with W'W = I and exactly L of K components active says of rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.base.answers import (
    Description,
    PosteriorOfDraw,
    RowSummary,
    sampled_rows,
    share_of,
)
from appca.models.base.data_checks import warn_of_rank
from appca.models.base.publishing import publish
from appca.models.decompositions.spectrum import Coordinates
from appca.models.polynomials import subsets
from appca.models.rows.observations import Block, Observations, Rows
from appca.models.rows.shifted_sparse import squared_lengths
from appca.models.sampling.query_draws import ParameterDraw

UP_TO_LIKELIHOOD = 1 + Description._fields.index("log_likelihood")  # columns of `described`


@dataclass(frozen=True, eq=False)
class BlockwisePosterior(PosteriorOfDraw):
    """Answers about blocks of centred rows B (n, D) with projections P (n, K), for W'W = I."""

    components: Array  # (K, D)
    mean: Array  # (D,)

    @property
    def directions(self) -> Array:
        """Directions (D, K) that centred rows are projected on."""
        return self.components.T

    @property
    def shrinkage(self) -> Array:
        """Posterior mean (K,) of x over the projection."""
        raise NotImplementedError

    def chosen(self, B: Array, P: Array) -> Array:
        """Supports (n, K) bool of largest probability."""
        raise NotImplementedError

    def summed(self, B: Array, P: Array) -> tuple[Array, Array]:
        """Log-likelihoods (n,) and inclusion (n, K), over all supports."""
        raise NotImplementedError

    def described(self, B: Array, P: Array) -> tuple[Array, ...]:
        """Say what `Description` has up to the log-likelihood, and scales where rows have them."""
        raise NotImplementedError

    def _each_block(self, X: Array, answer: Callable[[Array, Array], Any]) -> list[Any]:
        rows = Rows(X, self.mean.astype(X.dtype), np.empty(0), X.shape[1], careful=True)
        W = self.directions
        return list(rows.over(lambda block: answer(block.X, block.times(W))))

    def _by_blocks(self, X: Array, answer: Callable[[Array, Array], Array]) -> Array:
        return np.concatenate(self._each_block(X, answer))

    def scores(self, X: Array, scale: Array | None) -> Array:
        factor = self.shrinkage if scale is None else self.shrinkage / scale

        def gated(B: Array, P: Array) -> Array:
            scaled = P * factor.astype(P.dtype)
            return np.asarray(np.where(self.chosen(B, P), scaled, P.dtype.type(0.0)))

        return self._by_blocks(X, gated)

    def expected(self, X: Array) -> Array:

        def mean_scores(B: Array, P: Array) -> Array:
            expected = self.summed(B, P)[1] * (P * self.shrinkage)
            return np.asarray(expected).astype(P.dtype, copy=False)

        return self._by_blocks(X, mean_scores)

    def supports(self, X: Array, support: str) -> Array:
        del support  # the components of largest posterior inclusion are the MAP support
        return self._by_blocks(X, self.chosen)

    def summary(self, X: Array) -> RowSummary:
        rows = self._by_blocks(X, lambda B, P: np.column_stack(self.summed(B, P)))
        return RowSummary(rows[:, 0], np.zeros(len(rows)), rows[:, 1:], "exact")

    def description(self, X: Array) -> Description:
        parts = self._each_block(X, self.described)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        told: list[Any] = columns[:UP_TO_LIKELIHOOD]
        scales = columns[UP_TO_LIKELIHOOD:]
        rows = Description._make([*told, np.zeros(len(told[0])), "exact", None])
        return rows._replace(row_scales=scales[0]) if scales else rows


@dataclass(frozen=True, eq=False)
class SubspacePosterior(BlockwisePosterior):
    """The paper's model y = W (x * z) + mean + e; sums over supports are exact."""

    noise: float
    latent: Array  # (K,)
    n_active: int

    def at(self, draw: ParameterDraw, stream: int) -> Self:
        del stream
        components, mean, noise, latent = draw[:4]
        return replace(self, components=components, mean=mean, noise=noise, latent=latent)

    @property
    def shrinkage(self) -> Array:
        return gaussian.posterior(self.noise, self.latent)[0]

    def _logits(self, P: Array) -> Array:
        return gaussian.logits(P, self.noise, self.latent)

    def chosen(self, B: Array, P: Array) -> Array:
        return subsets.top(self._logits(P), self.n_active)

    def _log_binomial(self) -> float:
        return gaussian.log_binomial(len(self.components), self.n_active)

    def summed(self, B: Array, P: Array) -> tuple[Array, Array]:
        squares = squared_lengths(B)
        log_e, r = subsets.inclusion(self._logits(P), self.n_active)
        nothing = gaussian.background(squares, self.noise, B.shape[1])
        return nothing + log_e - self._log_binomial(), r

    def membership(self, X: Array) -> Array:

        def probability(B: Array, P: Array) -> Array:
            a = self._logits(P)
            chosen = np.where(self.chosen(B, P), a, 0.0).sum(axis=1)
            return share_of(chosen - subsets.log_elementary(a, self.n_active))

        return self._by_blocks(X, probability)

    def log_likelihood(self, X: Array) -> Array:

        def log_density(B: Array, P: Array) -> Array:
            squares = squared_lengths(B)
            log_e = subsets.log_elementary(self._logits(P), self.n_active)
            return gaussian.background(squares, self.noise, B.shape[1]) + log_e

        return self._by_blocks(X, log_density) - self._log_binomial()

    def probability_of(self, X: Array, Z: Array) -> Array:
        a = self._by_blocks(X, lambda _B, P: self._logits(P))
        return share_of(a.sum(axis=1, where=Z) - subsets.log_elementary(a, self.n_active))

    def drawn_scores(self, rng: np.random.Generator, X: Array) -> Array:
        P = self._by_blocks(X, lambda _B, P: P)
        Z = subsets.draw(rng, self._logits(P), self.n_active)
        shrink, v = gaussian.posterior(self.noise, self.latent)
        drawn = P * shrink + np.sqrt(v) * rng.standard_normal(P.shape)
        return np.asarray(np.where(Z, drawn, 0.0))

    def likely(self, inclusion: Array) -> Array:
        return subsets.top(inclusion, self.n_active)

    def described(self, B: Array, P: Array) -> tuple[Array, ...]:
        P = P.astype(np.float64)
        a = self._logits(P)
        log_e, inclusion = subsets.inclusion(a, self.n_active)
        active = subsets.top(a, self.n_active)
        scores = np.where(active, P * self.shrinkage, 0.0)
        chosen = np.where(active, a, 0.0).sum(axis=1)
        squares = squared_lengths(B)
        # |y - Ws|^2 = |y|^2 - 2 s'p + s's, because the columns of W are orthonormal
        error = np.maximum(squares + np.einsum("nk,nk->n", scores, scores - 2.0 * P), 0.0)
        error /= B.shape[1]
        background = gaussian.background(squares, self.noise, B.shape[1])
        log_likelihood = background + log_e - self._log_binomial()
        membership = np.minimum(np.exp(chosen - log_e), 1.0)
        return scores.astype(B.dtype), active, inclusion, membership, error, log_likelihood

    def sample(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        Z = subsets.draw(rng, np.zeros((n, len(self.components))), self.n_active)
        return sampled_rows(rng, Z, self.components, self.mean, self.latent, self.noise), Z


def posterior_of(model: Any) -> SubspacePosterior:
    """Return what a fitted estimator says of rows."""
    noise, latent = model.noise_variance_, model.latent_variance_
    return SubspacePosterior(model.components_, model.mean_, noise, latent, model.n_active_)


class Gate(NamedTuple):
    """What decides which components a row uses."""

    W: Array  # (D, K)
    shift: Array  # (K,) to add to projections
    noise: float
    latent: Array  # (K,)
    n_active: int


def _active_power(block: Block, gate: Gate) -> tuple[Array, Array, Array, Array]:
    """Sum (K,) the squared projections of the rows that use a component, and count those.

    And sum up the projections of all rows (K,) and their products (K, K).
    """
    P = block.times(gate.W) + gate.shift
    active = subsets.top(gaussian.logits(P, gate.noise, gate.latent), gate.n_active)
    squares = np.square(np.where(active, P, 0.0), dtype=np.float64)
    P = P.astype(np.float64, copy=False)
    weighted, active = block.weighted(P), block.weighted(active)
    return (
        block.weighted(squares).sum(axis=0),
        active.sum(axis=0),
        weighted.sum(axis=0),
        weighted.T @ P,
    )


def publish_subspace(
    model: Any,
    rows: Observations,
    state: Any,
    n_active: int,
    second: Array,
    held: Coordinates | None = None,
    *,
    same_order: bool = False,
) -> Array:
    """Set the fitted attributes of an estimator, as `publish`; return the order of components.

    `rows` are in features, not in thin coordinates; second (K,) are sums over rows of E[(x z)^2].
    `held`, coordinates of all rows whose directions span those of the state, spare a pass over all
    features.
    """
    model.n_active_ = n_active
    order = publish(model, rows, state, second / rows.mass, state.latent, same_order=same_order)
    model.scale_ = _active_scale(model, rows, held)
    return order


def _active_scale(model: Any, rows: Observations, held: Coordinates | None) -> Array:
    """Root mean square of every component's score over the training rows that use it."""
    K = len(model.components_)
    origin = 0.0 if rows.origin is None else rows.origin.astype(np.float64)
    W: Array = model.components_.T
    shift = (origin - model.mean_) @ W.astype(np.float64)
    if held is not None:
        rows, W = held.rows, held.basis.T @ W
    noise, latent = model.noise_variance_, model.latent_variance_
    gate = Gate(W, shift, noise, latent, model.n_active_)
    zeros = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((K, K))
    power, used, total, products = rows.summed(partial(_active_power, gate=gate), zeros)
    warn_of_rank(total, products, rows.mass, rows.n_features, float(np.finfo(rows.dtype).eps))
    scale = gaussian.posterior(noise, latent)[0] * np.sqrt(power / np.where(used > 0, used, 1.0))
    return np.where(scale > 0.0, scale, 1.0)
