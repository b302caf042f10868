"""What the subspace models share as scikit-learn estimators: checks and queries.

Loadings are (d, K) in kernels and (K, d) in `components_`; they are transposed here and nowhere
else. No name that scikit-learn keeps private is used.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import upright
from appca.models.base.data_checks import refuse_not_finite, row_weights, warn_of_rank
from appca.models.base.parameters import Rule, refuse
from appca.models.base.saved import Saved
from appca.models.base.state import ModelState
from appca.models.decompositions.spectrum import Coordinates
from appca.models.polynomials import subsets
from appca.models.rows.observations import Block, Observations, Rows, over_blocks
from appca.models.rows.steady_products import mean_squares
from appca.models.rows.streams import NO_ROWS, Blocks, checked
from appca.models.sampling.chains import Draws, to_arviz

if TYPE_CHECKING:
    from arviz import InferenceData


class Description(NamedTuple):
    """Everything a fitted model says of some rows, from one look at them."""

    scores: Array  # (N, K) as `transform` with support="map", without whitening
    active: Array  # (N, K) bool, as `allocate` with support="map"
    inclusion: Array  # (N, K) as `inclusion_probabilities`
    membership: Array  # (N,) posterior probability of `active`; of a sampled fit at its one draw
    # (N,) |y - mean - W scores|^2 / D: the reconstruction from `scores` and no average over the
    # posterior, whether or not the fit was sampled.
    error: Array
    log_likelihood: Array  # (N,) nats, as `score_samples`
    # (N,) of that, nats: of the sums over supports alone, hence 0 where they are exact. It does not
    # count that there are finitely many draws.
    standard_error: Array
    method: str  # how the sums over supports were come by


class RowSummary(NamedTuple):
    """What averages over the supports of a row."""

    log_likelihood: Array  # (N,) nats
    error: Array  # (N,) its standard error, nats; 0 where exact
    inclusion: Array  # (N, K)
    method: str


MAP, ALL = "map", "all"


def refuse_support(support: str) -> None:
    """Raise ValueError for what names no way to treat the supports of a row."""
    if support not in ("auto", ALL, MAP):
        msg = f"support must be 'auto', 'all' or 'map'; got {support!r}."
        raise ValueError(msg)


def generator(random_state: Any) -> np.random.Generator:
    """One Generator from whatever scikit-learn accepts as `random_state`.

    None is NumPy's global one, so that `np.random.seed` holds here as it does in scikit-learn.
    """
    chosen = check_random_state(None) if random_state is None else random_state
    return np.random.default_rng(chosen)


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


class SubspaceModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Saved):  # type: ignore[misc]
    """Queries of a fitted model y = W (x * z) + mu + e with exactly L of K components active.

    Subclasses fit and call `_publish`. Those to be used are dataclasses, whose fields are their
    parameters and must include `whiten` and `random_state`; equality and `repr` are scikit-learn's.
    """

    mean_: Array
    noise_variance_: float
    latent_variance_: Array
    explained_variance_: Array
    scale_: Array
    n_active_: int

    _rules: ClassVar[dict[str, Rule]]
    _found: ClassVar[tuple[str, ...]] = (
        "components_",
        "mean_",
        "noise_variance_",
        "latent_variance_",
        "explained_variance_",
        "scale_",
        "n_active_",
    )

    def _validated(self, X: Any, *, reset: bool) -> Array:
        if reset:
            refuse(self._rules, self.get_params(deep=False))
        checked: Array = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite=False,
        )
        self._refuse_cells(checked)
        return checked

    def _whole(self, X: Any) -> Array:
        """Check rows for a query that takes no missing entries."""
        check_is_fitted(self)
        return self._validated(X, reset=False)

    @staticmethod
    def _refuse_cells(X: Array) -> None:
        """Raise ValueError for cells the model cannot take."""
        refuse_not_finite(X)

    def _publish(
        self,
        rows: Observations,
        state: ModelState,
        n_active: int,
        second: Array,
        held: Coordinates | None = None,
        *,
        same_order: bool = False,
    ) -> Array:
        """Set the fitted attributes, as `_publish_state`; return the order of components.

        Parameters
        ----------
        rows : the training data in features (not in thin coordinates).
        state : with W (D, K).
        second : (K,) sums over rows of E[(x z)^2].
        held : coordinates of all rows whose directions span those of the state, where there are
            some: they spare a pass over all features.
        """
        self.n_active_ = n_active
        order = self._publish_state(rows, state, second / rows.mass, same_order=same_order)
        self.scale_ = self._active_scale(rows, held)
        return order

    def _publish_state(
        self, rows: Observations, state: ModelState, second: Array, *, same_order: bool = False
    ) -> Array:
        """Set what needs no rows but their origin; give the order of components.

        It is by explained variance, with the largest entry of each positive, unless the state has
        the same order and signs as a fit before. `second` (K,) is the mean over rows of
        E[(x z)^2].
        """
        order = np.arange(len(second)) if same_order else np.argsort(-second, kind="stable")
        W = state.W if same_order else upright(state.W[:, order])
        origin = 0.0 if rows.origin is None else rows.origin
        dtype = rows.dtype
        self.components_ = np.ascontiguousarray(W.T, dtype=dtype)
        self.mean_ = (origin - state.W @ state.shift).astype(dtype)
        self.noise_variance_ = float(state.noise)
        self.latent_variance_ = state.latent[order]
        self.explained_variance_ = second[order]
        return order

    def _active_scale(self, rows: Observations, held: Coordinates | None = None) -> Array:
        """Root mean square of every component's score over the training rows that use it."""
        K = len(self.components_)
        origin = 0.0 if rows.origin is None else rows.origin.astype(np.float64)
        W: Array = self.components_.T
        shift = (origin - self.mean_) @ W.astype(np.float64)
        if held is not None:
            rows, W = held.rows, held.basis.T @ W
        gate = Gate(W, shift, self.noise_variance_, self.latent_variance_, self.n_active_)
        zeros = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((K, K))
        power, used, total, second = rows.summed(partial(_active_power, gate=gate), zeros)
        warn_of_rank(total, second, rows.mass, rows.n_features, float(np.finfo(rows.dtype).eps))
        scale: Array = self._shrinkage() * np.sqrt(power / np.where(used > 0, used, 1.0))
        return np.where(scale > 0.0, scale, 1.0)

    def _shrinkage(self) -> Array:
        return gaussian.posterior(self.noise_variance_, self.latent_variance_)[0]

    def _logits(self, P: Array) -> Array:
        return gaussian.logits(P, self.noise_variance_, self.latent_variance_)

    def _top(self, P: Array) -> Array:
        return subsets.top(self._logits(P), self.n_active_)

    def _by_blocks(self, X: Any, answer: Callable[[Array, Array], Array]) -> Array:
        """Join answer(centred rows (n, D), their projections (n, K)) over blocks of rows of X."""
        return np.concatenate(self._each_block(X, answer))

    def _each_block(self, X: Any, answer: Callable[[Array, Array], Any]) -> list[Any]:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        rows = Rows(X, self.mean_.astype(X.dtype), np.empty(0), X.shape[1], careful=True)
        W = self._directions()
        return list(over_blocks(lambda b: answer(b.X, b.times(W)), rows))

    def _directions(self) -> Array:
        """Return what rows about the mean are projected on, (D, K)."""
        return self.components_.T

    def _support(self, _B: Array, P: Array) -> Array:
        """Most probable support (n, K) bool of centred rows B (n, D), of projections P (n, K)."""
        return self._top(P)

    def _inclusion(self, _B: Array, P: Array) -> Array:
        return subsets.inclusion(self._logits(P), self.n_active_)[1]

    def transform(self, X: Any, support: str = "auto") -> Array:
        """Posterior mean scores (N, K) of each row's most probable L components, zero elsewhere.

        With support="all" E[x * z | y] over all supports. With `whiten` every score is divided by
        its root mean square over the training rows that use its component.
        """
        refuse_support(support)
        if support == ALL:
            H = self._expected_scores(X)
            return H / self.scale_.astype(H.dtype) if self.whiten else H

        def scores(B: Array, P: Array) -> Array:
            factor = self._shrinkage() / (self.scale_ if self.whiten else 1.0)
            gated = np.where(self._support(B, P), P * factor.astype(P.dtype), P.dtype.type(0.0))
            return np.asarray(gated)

        return self._by_blocks(X, scores)

    def _expected_scores(self, X: Any) -> Array:
        """E[x * z | y], (N, K), over all supports."""
        shrink = self._shrinkage()

        def scores(B: Array, P: Array) -> Array:
            expected = self._inclusion(B, P) * (P * shrink)
            return np.asarray(expected).astype(P.dtype, copy=False)

        return self._by_blocks(X, scores)

    def inverse_transform(self, X: Any, support: str = "auto") -> Array:
        """Return the data (N, D) that scores (N, K) stand for: W scores + mean."""
        refuse_support(support)
        check_is_fitted(self)
        scores = check_array(X, dtype=[np.float64, np.float32])
        K = len(self.components_)
        if scores.shape[1] != K:
            msg = f"X must have {K} columns, one per component; got {scores.shape[1]} columns."
            raise ValueError(msg)
        if self.whiten:
            scores = scores * self.scale_.astype(scores.dtype)
        data: Array = scores @ self.components_.astype(scores.dtype) + self.mean_.astype(
            scores.dtype
        )
        return data

    def allocate(self, X: Any, support: str = "auto") -> Array:
        """Each row's most probable L components, (N, K) bool."""
        refuse_support(support)  # the L of largest posterior inclusion are the MAP support
        return self._by_blocks(X, self._support)

    def inclusion_probabilities(self, X: Any) -> Array:
        """Probability p(z_nk = 1 | y_n) that a row uses a component, (N, K); rows sum to L."""
        return self._by_blocks(X, self._inclusion)

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the support that `allocate` chose; below 0.5: doubtful."""

        def probability(_B: Array, P: Array) -> Array:
            a = self._logits(P)
            chosen = np.where(self._top(P), a, 0.0).sum(axis=1)
            log_share = chosen - subsets.log_elementary(a, self.n_active_)
            share: Array = np.exp(np.minimum(log_share, 0.0))
            return share

        return self._by_blocks(X, probability)

    def score_samples(self, X: Any) -> Array:
        """Exact log-likelihood log p(y_n) of every row, (N,) in nats."""

        def log_density(B: Array, P: Array) -> Array:
            squares = np.einsum("nd,nd->n", B, B, dtype=np.float64)
            log_e = subsets.log_elementary(self._logits(P), self.n_active_)
            return gaussian.background(squares, self.noise_variance_, B.shape[1]) + log_e

        n_subsets = gaussian.log_binomial(len(self.components_), self.n_active_)
        return self._by_blocks(X, log_density) - n_subsets

    def _summary(self, X: Any) -> RowSummary:
        """Log-likelihood and inclusion of rows in one go."""
        log_binomial = gaussian.log_binomial(len(self.components_), self.n_active_)

        def both(B: Array, P: Array) -> Array:
            squares = np.einsum("nd,nd->n", B, B, dtype=np.float64)
            log_e, r = subsets.inclusion(self._logits(P), self.n_active_)
            nothing = gaussian.background(squares, self.noise_variance_, B.shape[1])
            return np.column_stack([nothing + log_e - log_binomial, r])

        found = self._by_blocks(X, both)
        return RowSummary(found[:, 0], np.zeros(len(found)), found[:, 1:], "exact")

    def _asked(self, X: Any) -> RowSummary:
        """Return what queries about rows answer from: this summary, or an average of several."""
        return self._summary(X)

    def _support_probability(self, X: Any, Z: Array) -> Array:
        """Posterior probability (N,) of a support (N, K) of each row."""
        a = self._by_blocks(X, lambda _B, P: self._logits(P))
        log_share = a.sum(axis=1, where=Z) - subsets.log_elementary(a, self.n_active_)
        return np.asarray(np.exp(np.minimum(log_share, 0.0)))

    def _drawn_scores(self, rng: np.random.Generator, X: Any) -> Array:
        """Draw a support and scores x * z (N, K) of each row from their posterior."""
        P = self._by_blocks(X, lambda _B, P: P)
        Z = subsets.draw(rng, self._logits(P), self.n_active_)
        shrink, v = gaussian.posterior(self.noise_variance_, self.latent_variance_)
        drawn = P * shrink + np.sqrt(v) * rng.standard_normal(P.shape)
        return np.asarray(np.where(Z, drawn, 0.0))

    def describe(self, X: Any) -> Description:
        """Say of every row what `transform`, `allocate` and the others say, in one go."""
        parts = self._each_block(X, self._described)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return Description._make([*columns, np.zeros(len(columns[0])), "exact"])

    def _described(self, B: Array, P: Array) -> tuple[Array, ...]:
        """Describe centred rows B (n, D) with projections P (n, K)."""
        K, D = self.components_.shape
        P = P.astype(np.float64)
        a = self._logits(P)
        log_e, inclusion = subsets.inclusion(a, self.n_active_)
        active = subsets.top(a, self.n_active_)
        scores = np.where(active, P * self._shrinkage(), 0.0)
        chosen = np.where(active, a, 0.0).sum(axis=1)
        squares = np.einsum("nd,nd->n", B, B, dtype=np.float64)
        # |y - Ws|^2 = |y|^2 - 2 s'p + s's, because the columns of W are orthonormal
        error = np.maximum(squares + np.einsum("nk,nk->n", scores, scores - 2.0 * P), 0.0) / D
        background = gaussian.background(squares, self.noise_variance_, D)
        log_likelihood = background + log_e - gaussian.log_binomial(K, self.n_active_)
        membership = np.minimum(np.exp(chosen - log_e), 1.0)
        return scores.astype(B.dtype), active, inclusion, membership, error, log_likelihood

    def _residual(self, X: Array, H: Array) -> Array:
        """Mean squared reconstruction error a feature (n,) of checked rows with scores H."""
        rows = Rows(X, self.mean_, np.empty(0), X.shape[1])
        return mean_squares(rows, H, self.components_)

    def transform_blocks(self, blocks: Blocks) -> Iterator[Array]:
        """Yield the scores (n_i, K) of each block of rows (n_i, D), as `transform`."""
        yield from (self.transform(block) for block in checked(blocks, once=True)())

    def score_blocks(self, blocks: Blocks) -> float:
        """Mean log-likelihood of all rows that come in blocks, in nats, as `score`."""
        total, n = 0.0, 0
        for block in checked(blocks, once=True)():
            total += float(self.score_samples(block).sum())
            n += len(block)
        if n == 0:
            raise ValueError(NO_ROWS)
        return total / n

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats, each counted `sample_weight` (N,) times."""
        del y
        each = self.score_samples(X)
        return float(np.average(each, weights=row_weights(sample_weight, len(each))))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, return_supports: bool = False
    ) -> Any:
        """Draw rows (n_samples, D) from the model, in the dtype it was fitted in.

        The same seed gives the same rows; `random_state` defaults to the estimator's own. With
        `return_supports` also the components (n_samples, K) bool that each row uses.
        """
        check_is_fitted(self)
        rng = generator(self.random_state if random_state is None else random_state)
        K, D = self.components_.shape
        Z = self._drawn_supports(rng, n_samples)
        X = rng.standard_normal((n_samples, K)) * np.sqrt(self.latent_variance_)
        noise = rng.standard_normal((n_samples, D)) * math.sqrt(self.noise_variance_)
        rows = ((X * Z) @ self.components_ + self.mean_ + noise).astype(self.components_.dtype)
        return (rows, Z.astype(bool)) if return_supports else rows

    def _drawn_supports(self, rng: np.random.Generator, n_samples: int) -> Array:
        return subsets.draw(rng, np.zeros((n_samples, len(self.components_))), self.n_active_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SampledModel(SubspaceModel):
    """A model that can keep draws of its posterior."""

    posterior_: Draws

    def _forget_draws(self) -> None:
        """Drop the draws of an earlier fit: this one may not sample."""
        if hasattr(self, "posterior_"):
            del self.posterior_

    def to_arviz(self) -> "InferenceData":
        """Hand the draws to ArviZ; only where the fit has sampled."""
        check_is_fitted(self, "posterior_")
        return to_arviz(self.posterior_)
