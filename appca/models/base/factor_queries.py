"""What a fitted adaptive factor analysis can be asked, about training rows and new ones alike."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.base.estimator import Description, SampledModel
from appca.models.factors import factor_gibbs
from appca.models.factors.factor_em import PRIOR
from appca.models.rows.observations import Rows
from appca.models.rows.steady_products import projected, times
from appca.models.supports import fixed_size_supports, row_blocks
from appca.models.supports.row_supports import CollapsedModel, Members, Seeds, SupportEstimate


class RowEstimate(NamedTuple):
    """Log-likelihoods of rows and how they were come by."""

    log_likelihood: Array  # (N,) nats
    error: Array  # (N,) standard error, nats; 0 where exact
    method: str


class FactorQuery(NamedTuple):
    """Rows as the fitted W sees them."""

    c: Array  # (N, K) W'(y - mu) / sigma2
    background: Array  # (N,) log density of a row that no factor explains
    model: CollapsedModel
    seeds: Seeds  # (N,) each a function of its row


class FactorModel(SampledModel):
    """Queries of a fitted y = W (x * z) + mu + e with any W and exactly L of K factors active.

    Subclasses fit and call `_publish_factors`; parameters they must have: `whiten`,
    `random_state`, `n_active`, `n_paths`.
    """

    n_paths: int

    def _publish_factors(
        self,
        rows: Rows,
        factors: tuple[Array, Array, float],
        second: Array,
        members: Members | None,
    ) -> None:
        """Set the fitted attributes; by explained variance, largest entry positive.

        Parameters
        ----------
        factors : W (D, K), mean (D,), sigma2.
        second : (K,) sums over rows of E[(x z)^2].
        members : the training rows' sets, if they were given one.
        """
        W, mean, noise = factors
        power = second * np.square(W).sum(axis=0)
        order = np.argsort(-power, kind="stable")
        largest = W[np.argmax(np.abs(W), axis=0), np.arange(W.shape[1])]
        W = (W * np.where(largest < 0.0, -1.0, 1.0))[:, order]
        dtype = rows.X.dtype
        self.n_active_ = self.n_active
        self.components_ = np.ascontiguousarray(W.T, dtype=dtype)
        self.mean_ = mean.astype(dtype)
        self.noise_variance_ = float(noise)
        self.latent_variance_ = np.full(W.shape[1], 1.0 / PRIOR)
        self.explained_variance_ = power[order] / len(rows.X)
        seen = self._seen(rows.X)
        sets = self._best(seen)[0] if members is None else np.argsort(order)[members]
        H = fixed_size_supports.means(seen.c, sets, seen.model)
        self.scale_ = fixed_size_supports.root_mean_square(H, sets)

    def _seen(self, X: Array) -> FactorQuery:
        """Project checked rows, in float64."""
        C, noise = self.components_.astype(np.float64), self.noise_variance_
        found = projected(Rows(X, self.mean_, np.empty(0), X.shape[1]), C.T)
        background = gaussian.background(found.squares, noise, X.shape[1])
        model = CollapsedModel(times(C, C.T) / noise, PRIOR)
        return FactorQuery(found.products / noise, background, model, row_blocks.row_seeds(X))

    def _checked(self, X: Any) -> FactorQuery:
        check_is_fitted(self)
        return self._seen(self._validated(X, reset=False))

    def _best(self, seen: FactorQuery) -> tuple[Members, Array]:
        return fixed_size_supports.best(seen.c, seen.model, self.n_active_, seen.seeds)

    def _summed(self, seen: FactorQuery) -> SupportEstimate:
        model, L = seen.model, self.n_active_
        return fixed_size_supports.summed(seen.c, model, L, seen.seeds, self.n_paths)

    def transform(self, X: Any) -> Array:
        """Posterior mean scores (N, K) of each row's most probable L factors, zero elsewhere.

        The set is exact up to 5,000 sets, else the best of a few annealed searches. With `whiten`
        every score is divided by its root mean square over the training rows that use its factor.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        seen = self._seen(X)
        H = fixed_size_supports.means(seen.c, self._best(seen)[0], seen.model)
        scores: Array = (H / self.scale_ if self.whiten else H).astype(X.dtype, copy=False)
        return scores

    def allocate(self, X: Any) -> Array:
        """Each row's most probable L factors, (N, K) bool; as exact as `transform`."""
        seen = self._checked(X)
        return factor_gibbs.indicators(self._best(seen)[0], len(self.components_))

    def inclusion_probabilities(self, X: Any) -> Array:
        """Probability p(z_nk = 1 | y_n) that a row uses a factor, (N, K); rows sum to L.

        Exact up to 5,000 sets, else estimated by annealed importance sampling.
        """
        seen = self._checked(X)
        return self._summed(seen).inclusion

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the set that `allocate` chose; below 0.5: doubtful."""
        seen = self._checked(X)
        total = self._summed(seen).log_sum
        probability: Array = np.exp(np.minimum(self._best(seen)[1] - total, 0.0))
        return probability

    def estimate_score_samples(self, X: Any) -> RowEstimate:
        """Log-likelihood log p(y_n) of every row with its standard error and the method.

        Exact up to 5,000 sets (error 0). Beyond, annealed importance sampling with `n_paths` paths
        a row: unbiased for p(y_n), hence on average a little low for its log.
        """
        seen = self._checked(X)
        found = self._summed(seen)
        log_sets = gaussian.log_binomial(len(self.components_), self.n_active_)
        value = seen.background + found.log_sum - log_sets
        return RowEstimate(value, found.error, found.method)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood log p(y_n) of every row, (N,) in nats; see `estimate_score_samples`."""
        return self.estimate_score_samples(X).log_likelihood

    def describe(self, X: Any) -> Description:
        """Say of every row what `transform`, `allocate` and the others say, in one go."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        seen = self._seen(X)
        sets, value = self._best(seen)
        found = self._summed(seen)
        K = len(self.components_)
        H = fixed_size_supports.means(seen.c, sets, seen.model)
        return Description(
            H.astype(X.dtype, copy=False),
            factor_gibbs.indicators(sets, K),
            found.inclusion,
            np.exp(np.minimum(value - found.log_sum, 0.0)),
            self._residual(X, H),
            seen.background + found.log_sum - gaussian.log_binomial(K, self.n_active_),
            found.error,
            found.method,
        )
