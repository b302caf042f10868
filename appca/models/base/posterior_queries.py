"""Queries after sampling: averages over draws of the posterior where one draw stood before."""

import copy
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.base.estimator import (
    MAP,
    Description,
    RowSummary,
    SampledModel,
    generator,
    refuse_support,
)
from appca.models.sampling.chains import ChainLevels, levels
from appca.models.sampling.query_draws import (
    ParameterDraw,
    QueryDraws,
    band,
    choose,
    component_bands,
)

PREFIX = "draws_"  # of the names of arrays
MOST_DRAWS, LEAST_DRAWS = 100, 8  # that queries average over
CHEAP_SUPPORTS = 256  # up to so many, all of `MOST_DRAWS` are asked
DRAWS_A_SHARE = 4  # by which the importance paths of a draw are fewer than those of one model
BAND_ROWS, LEAST_SCORES = 500, 40  # rows, and scores of each, that are drawn together


class OneDraw(NamedTuple):
    """A draw as a model, and where its components belong."""

    model: Any
    own: Array  # its components that are published ones
    published: Array  # which those are


class PosteriorQueries(SampledModel):
    """A sampled model whose queries average over draws; put it before the class that answers.

    After sampling `query_draws_` holds the draws that are averaged over: at most 100, evenly chosen
    from the chains that count (`chain_levels_`), fewer where their components would take more than
    32 MB; its `chain` and `draw` say which. Queries about rows with more than 256 supports take
    some of them, 8 from 3,200 supports on. They were brought into the order and signs of the
    published components. Averages need memory for two arrays (N, K), whatever the number of draws.

    `published` gives the model of the published draw alone, which answers as a fit by EM does.
    """

    query_draws_: QueryDraws
    _stream: int = 0  # of random numbers for importance paths: one a draw

    @property
    def chain_levels_(self) -> ChainLevels:
        """Mean log-posterior of each chain, whether averages count it, and why; after sampling."""
        check_is_fitted(self, "posterior_")
        return levels(self.posterior_["log_posterior"])

    def _keep_query_draws(self) -> None:
        """Choose the draws that queries average over, after components were published.

        Warns where chains stay on lower peaks.
        """
        if not self.chain_levels_.counts.all():
            warnings.warn(self.chain_levels_.why, stacklevel=4)
        self.query_draws_ = choose(self.posterior_, self.components_, MOST_DRAWS)

    @property
    def _row_draws(self) -> QueryDraws:
        """The draws that queries about rows average over."""
        most = int(MOST_DRAWS * CHEAP_SUPPORTS / self._supports_of_a_row())
        return self.query_draws_.thinned(max(LEAST_DRAWS, most))

    def _supports_of_a_row(self) -> float:
        """Terms of the sums over supports, which decide what a draw costs; 1 if there is no sum."""
        return 1.0

    def _forget_draws(self) -> None:
        super()._forget_draws()
        self.__dict__.pop("query_draws_", None)

    def published(self) -> Self:
        """Return a fitted copy that answers from the published draw alone, as after EM."""
        check_is_fitted(self)
        alone = copy.copy(self)
        alone._forget_draws()
        return alone

    def fitted_arrays(self) -> dict[str, Array]:
        """Everything that answers about new rows depend on, by name without the underscore."""
        found = super().fitted_arrays()
        if self._has_draws():
            given = self.query_draws_._asdict()
            found |= {PREFIX + name: a for name, a in given.items() if a is not None}
        return found

    def restore(self, arrays: dict[str, Array]) -> Self:
        """Become the fitted estimator whose `fitted_arrays` these are.

        Queries give what they gave; `posterior_`, all draws, does not come back.
        """
        super().restore(arrays)
        self._forget_draws()
        given = {name: arrays.get(PREFIX + name) for name in QueryDraws._fields}
        if given["chain"] is not None:
            self.query_draws_ = QueryDraws(**given)  # type: ignore[arg-type]
        return self

    def _has_draws(self) -> bool:
        return hasattr(self, "query_draws_")

    def _each_draw(self) -> Iterator[OneDraw]:
        K = len(self.components_)
        alone = self.published()
        alone.__dict__.pop("feature_names_in_", None)  # rows have been checked
        alone.whiten = False
        for stream, given in enumerate(self._row_draws.each()):
            alone._stream = stream
            own = np.flatnonzero(given.places < K)
            yield OneDraw(alone._at(given), own, given.places[own])

    def _at(self, given: ParameterDraw) -> Self:
        """Return a copy with the parameters of a draw."""
        one = copy.copy(self)
        one.components_, one.mean_ = given.components, given.mean
        one.noise_variance_, one.latent_variance_ = given.noise, given.latent
        one.scale_ = np.ones(len(given.components))
        if given.weights is not None:
            one.weights_, one.n_components_ = given.weights, len(given.weights)
        if hasattr(one, "n_paths"):
            one.n_paths = max(2, one.n_paths // DRAWS_A_SHARE)
        return one

    def _averaged(self, X: Array) -> RowSummary:
        """Average p(y_n) and p(z_n | y_n) over the draws; X has been checked."""
        n, K = len(X), len(self.components_)
        total, variance = np.full(n, -np.inf), np.full(n, -np.inf)
        inclusion, method, number = np.zeros((n, K)), "", len(self._row_draws.chain)
        for one in self._each_draw():
            found = one.model._summary(X)
            method = found.method
            total = np.logaddexp(total, found.log_likelihood)
            with np.errstate(divide="ignore"):
                relative = 2.0 * (found.log_likelihood + np.log(found.error))
            variance = np.logaddexp(variance, relative)
            inclusion[:, one.published] += found.inclusion[:, one.own]
        error = np.exp(0.5 * variance - total)
        method = f"{method}; average over {number} draws"
        return RowSummary(total - np.log(number), error, inclusion / number, method)

    def _asked(self, X: Any) -> RowSummary:
        if not self._has_draws():
            return super()._asked(X)
        return self._averaged(self._whole(X))

    def transform(self, X: Any, support: str = "auto") -> Array:
        """Posterior mean scores (N, K).

        Parameters
        ----------
        X : (N, D) rows.
        support : {"auto", "all", "map"}
            "all": E[x * z | y], over all supports of a row and, after sampling, over draws
            (`query_draws_`). "map": given each row's most probable support, zero elsewhere; after
            sampling at the published draw. "auto" is "all" after sampling, else "map".

        Notes
        -----
        With `whiten` every score is divided by its root mean square over the training rows that
        use its component. Where supports are too many to sum over, "all" takes the MAP support of
        each draw.
        """
        if support == MAP or not self._has_draws():
            return super().transform(X, support)
        refuse_support(support)
        X = self._whole(X)
        total = np.zeros((len(X), len(self.components_)))
        for one in self._each_draw():
            total[:, one.published] += one.model._expected_scores(X)[:, one.own]
        total /= len(self._row_draws.chain)
        return (total / self.scale_ if self.whiten else total).astype(X.dtype, copy=False)

    def inverse_transform(self, X: Any, support: str = "auto") -> Array:
        """Return the data (N, D) that scores (N, K) stand for: W scores + mean.

        After sampling W and the mean are averages over draws, the counterpart of
        `transform(X)`; with support="map" those of the published draw.
        """
        if support == MAP or not self._has_draws():
            return super().inverse_transform(X, support)
        refuse_support(support)
        K, draws = len(self.components_), self._row_draws
        alone = self.published()
        alone.components_ = draws.components[:, :K].mean(axis=0, dtype=np.float64)
        alone.mean_ = draws.mean.mean(axis=0, dtype=np.float64)
        return alone.inverse_transform(X, support)

    def allocate(self, X: Any, support: str = "auto") -> Array:
        """Which components each row uses, (N, K) bool.

        `support` as in `transform`: "map" is each row's most probable support; "all", and "auto"
        after sampling, the L components of largest posterior inclusion, or where rows may use any
        number those whose posterior inclusion exceeds one half.
        """
        if support == MAP or not self._has_draws():
            return super().allocate(X, support)
        refuse_support(support)
        return self._likely(self._asked(X).inclusion)

    def inclusion_probabilities(self, X: Any) -> Array:
        """Probability p(z_nk = 1 | y_n) that a row uses a component, (N, K); averaged over draws.

        A draw without a component counts as one that does not use it.
        """
        return self._asked(X).inclusion if self._has_draws() else super().inclusion_probabilities(X)

    def allocation_probability(self, X: Any) -> Array:
        """Posterior probability (N,) of the support that `allocate` chose; below 0.5: doubtful."""
        if not self._has_draws():
            return super().allocation_probability(X)
        X = self._whole(X)
        chosen, total = self._likely(self._averaged(X).inclusion), np.zeros(len(X))
        for one in self._each_draw():
            Z = np.zeros((len(X), len(one.model.components_)), dtype=bool)
            Z[:, one.own] = chosen[:, one.published]
            lacking = np.delete(chosen, one.published, axis=1).any(axis=1)
            share = one.model._support_probability(X, Z)
            total += np.where(lacking, 0.0, share)
        return total / len(self._row_draws.chain)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood log p(y_n) of every row, (N,) in nats.

        After sampling the log of the average of p(y_n) over draws, the posterior predictive.
        """
        return self._asked(X).log_likelihood if self._has_draws() else super().score_samples(X)

    def describe(self, X: Any) -> Description:
        """Say of every row what the other queries say, in one go.

        After sampling log-likelihood and inclusion are averages over draws; scores, support, its
        membership and the error are those of the published draw, `transform(X, "map")`: a picture
        needs scores that are zero outside of one support.
        """
        found = super().describe(X)
        if not self._has_draws():
            return found
        told = self._asked(X)
        return found._replace(
            inclusion=told.inclusion,
            log_likelihood=told.log_likelihood,
            standard_error=told.error,
            method=told.method,
        )

    def component_bands(self, level: float = 0.9) -> Array:
        """Credible bands (2, K, D) of the entries of components: lower and upper ends.

        Each entry lies between its ends with posterior probability `level`, by quantiles over
        `query_draws_` after alignment; a draw that lacks a component does not count for it.
        """
        check_is_fitted(self, "query_draws_")
        return component_bands(self.query_draws_, self.components_, level)

    def score_bands(self, X: Any, level: float = 0.9) -> Array:
        """Credible bands (2, N, K) of the scores x * z of rows: lower and upper ends.

        Supports and scores are drawn for every row at each of `query_draws_`, or of some where rows
        have many supports, at least 40 in all, and the ends are quantiles over these. A component
        that a row surely does not use has a band of zeros.
        """
        check_is_fitted(self, "query_draws_")
        X = self._whole(X)
        K = len(self.components_)
        rng = generator(0)  # the same rows have the same bands
        bands = np.zeros((2, len(X), K))
        models = list(self._each_draw())
        models *= -(-LEAST_SCORES // len(models))
        for start in range(0, len(X), BAND_ROWS):
            rows = X[start : start + BAND_ROWS]
            drawn = np.zeros((len(models), len(rows), K))
            for s, one in enumerate(models):
                drawn[s][:, one.published] = one.model._drawn_scores(rng, rows)[:, one.own]
            bands[:, start : start + len(rows)] = band(drawn, level)
        return bands / self.scale_ if self.whiten else bands

    def _likely(self, inclusion: Array) -> Array:
        """Components (N, K) bool of largest posterior inclusion."""
        raise NotImplementedError
