"""What models share whose scores are integrated out and whose supports are summed over."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.base.estimator import (
    ALL,
    Description,
    RowSummary,
    SampledModel,
    refuse_support,
)
from appca.models.supports.row_supports import SupportEstimate


class RowEstimate(NamedTuple):
    """Log-likelihoods of rows and how they were come by."""

    log_likelihood: Array  # (N,) nats
    error: Array  # (N,) standard error, nats; 0 where exact
    method: str


class SupportModel(SampledModel):
    """Queries that sum over the supports of a row, or estimate the sum.

    Where the supports are few, all of them are summed over: up to 12,870 in adaptive factor
    analysis, up to 16 factors in sparse factor analysis, any number in nonparametric PPCA. Beyond,
    a row's support is the best of a few annealed searches, and sums are estimated by annealed
    importance sampling with `n_paths` paths a row: unbiased for p(y_n), hence on average a little
    low for its log.
    """

    def _seen(self, X: Array) -> Any:
        """Project checked rows, in float64; the result has their `background`, log p(y | no z)."""
        raise NotImplementedError

    def _best(self, seen: Any) -> tuple[Array, Array]:
        """Choose a support for each row; log p(y, z) - log p(y | no z) up to `_log_supports`."""
        raise NotImplementedError

    def _summed(self, seen: Any) -> SupportEstimate:
        raise NotImplementedError

    def _means(self, seen: Any, supports: Array) -> Array:
        """Posterior means (n, K) of x * z given the supports that `_best` chose."""
        raise NotImplementedError

    def _indicators(self, supports: Array) -> Array:
        """Write supports as (n, K) bool."""
        return supports

    def _log_supports(self) -> float:
        """Log of the number of supports that a uniform prior shares out."""
        return 0.0

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._seen(self._validated(X, reset=False))

    def transform(self, X: Any, support: str = "auto") -> Array:
        """Posterior mean scores (N, K) of each row's most probable support, zero elsewhere.

        With support="all" E[x * z | y] over all supports, where they can be summed over. With
        `whiten` every score is divided by its root mean square over the training rows that use its
        component.
        """
        refuse_support(support)
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        seen = self._seen(X)
        H = self._expected(seen) if support == ALL else self._means(seen, self._best(seen)[0])
        scores: Array = (H / self.scale_ if self.whiten else H).astype(X.dtype, copy=False)
        return scores

    def allocate(self, X: Any, support: str = "auto") -> Array:
        """Each row's most probable support, (N, K) bool; empty where no component is likely.

        Of exactly L components where their number in a row is fixed; as exact as `transform`. With
        support="all" the components of largest posterior inclusion.
        """
        refuse_support(support)
        if support == ALL:
            return self._likely(self.inclusion_probabilities(X))
        return self._indicators(self._best(self._checked(X))[0])

    def _likely(self, inclusion: Array) -> Array:
        """Choose components (N, K) by posterior inclusion."""
        raise NotImplementedError

    def _expected(self, seen: Any) -> Array:
        """E[x * z | y], (n, K): over all supports, or of the best where they are too many."""
        raise NotImplementedError

    def _log_support(self, seen: Any, Z: Array) -> Array:
        """Log p(y, z) - log p(y | no z), (n,), of supports (n, K) up to `_log_supports`."""
        raise NotImplementedError

    def _expected_scores(self, X: Any) -> Array:
        return self._expected(self._checked(X))

    def _summary(self, X: Any) -> RowSummary:
        seen = self._checked(X)
        found = self._summed(seen)
        value = seen.background + found.log_sum - self._log_supports()
        return RowSummary(value, found.error, found.inclusion, found.method)

    def _support_probability(self, X: Any, Z: Array) -> Array:
        seen = self._checked(X)
        log_share = self._log_support(seen, Z) - self._summed(seen).log_sum
        return np.asarray(np.exp(np.minimum(log_share, 0.0)))

    def inclusion_probabilities(self, X: Any) -> Array:
        """Probability p(z_nk = 1 | y_n) that a row uses a component, (N, K).

        A row sums to L where that is fixed.
        """
        return self._summed(self._checked(X)).inclusion

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the support that `allocate` chose; below 0.5: doubtful."""
        seen = self._checked(X)
        log_share = self._best(seen)[1] - self._summed(seen).log_sum
        share: Array = np.exp(np.minimum(log_share, 0.0))
        return share

    def estimate_score_samples(self, X: Any) -> RowEstimate:
        """Log-likelihood log p(y_n) of every row with its standard error and the method.

        Where the number of components is learned, a new row uses those there are, each with its
        weight; a new row's own components are left out.
        """
        found = self._asked(X)
        return RowEstimate(found.log_likelihood, found.error, found.method)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood log p(y_n) of every row, (N,) in nats; see `estimate_score_samples`."""
        return self.estimate_score_samples(X).log_likelihood

    def describe(self, X: Any) -> Description:
        """Say of every row what `transform`, `allocate` and the others say, in one go."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        seen = self._seen(X)
        (supports, value), found = self._best(seen), self._summed(seen)
        H = self._means(seen, supports)
        return Description(
            H.astype(X.dtype, copy=False),
            self._indicators(supports),
            found.inclusion,
            np.exp(np.minimum(value - found.log_sum, 0.0)),
            self._residual(X, H),
            seen.background + found.log_sum - self._log_supports(),
            found.error,
            found.method,
        )
