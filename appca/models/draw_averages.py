"""Averages of what is said of rows over draws of the posterior of the parameters."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from appca.models.draws import QueryDraws, band
from appca.models.numerics import Array
from appca.models.posterior import Description, Posterior, PosteriorOfDraw, RowSummary

MOST_DRAWS, LEAST_DRAWS = 100, 8  # that queries average over
CHEAP_SUPPORTS = 256  # up to so many, all of `MOST_DRAWS` are asked
BAND_ROWS, LEAST_SCORES = 500, 40  # rows, and scores of each, that are drawn together


class PlacedDraw(NamedTuple):
    """The posterior given one draw, and where its components belong."""

    posterior: PosteriorOfDraw
    places: Array  # its components that are published ones
    published: Array  # which those are


class AveragedPosterior(Posterior):
    """Averages over draws; where rows have many supports, over some of them.

    Averages need memory for two arrays (N, K), whatever the number of draws.
    """

    def __init__(self, published: PosteriorOfDraw, draws: QueryDraws) -> None:
        most = int(MOST_DRAWS * CHEAP_SUPPORTS / published.n_supports)
        self.published, self.draws = published, draws.thinned(max(LEAST_DRAWS, most))
        self.K, self.n_draws = len(published.components), len(self.draws.chain)

    def _each(self) -> Iterator[PlacedDraw]:
        for stream, draw in enumerate(self.draws.each()):
            placed = np.flatnonzero(draw.places < self.K)
            yield PlacedDraw(self.published.at(draw, stream), placed, draw.places[placed])

    def summary(self, X: Array) -> RowSummary:
        n = len(X)
        total, variance = np.full(n, -np.inf), np.full(n, -np.inf)
        inclusion, method = np.zeros((n, self.K)), ""
        for draw in self._each():
            rows = draw.posterior.summary(X)
            method = rows.method
            total = np.logaddexp(total, rows.log_likelihood)
            with np.errstate(divide="ignore"):
                relative = 2.0 * (rows.log_likelihood + np.log(rows.error))
            variance = np.logaddexp(variance, relative)
            inclusion[:, draw.published] += rows.inclusion[:, draw.places]
        error = np.exp(0.5 * variance - total)
        method = f"{method}; average over {self.n_draws} draws"
        return RowSummary(total - np.log(self.n_draws), error, inclusion / self.n_draws, method)

    def expected(self, X: Array) -> Array:
        total = np.zeros((len(X), self.K))
        for draw in self._each():
            total[:, draw.published] += draw.posterior.expected(X)[:, draw.places]
        total /= self.n_draws
        return total

    def scores(self, X: Array, scale: Array | None) -> Array:
        H = self.expected(X)
        return (H if scale is None else H / scale).astype(X.dtype, copy=False)

    def supports(self, X: Array, support: str) -> Array:
        del support
        return self.published.likely(self.inclusion(X))

    def membership(self, X: Array) -> Array:
        """Probability (N,) of the components of largest inclusion."""
        chosen, total = self.supports(X, ""), np.zeros(len(X))
        for draw in self._each():
            Z = np.zeros((len(X), len(draw.posterior.components)), dtype=bool)
            Z[:, draw.places] = chosen[:, draw.published]
            lacking = np.delete(chosen, draw.published, axis=1).any(axis=1)
            total += np.where(lacking, 0.0, draw.posterior.probability_of(X, Z))
        return total / self.n_draws

    def description(self, X: Array) -> Description:
        """Averages of log-likelihood and inclusion; all else of the published draw.

        A picture needs scores that are zero outside of one support.
        """
        summary = self.summary(X)
        return self.published.description(X)._replace(
            inclusion=summary.inclusion,
            log_likelihood=summary.log_likelihood,
            standard_error=summary.error,
            method=summary.method,
        )

    def mean_of(self, ask: Callable[[Any], Array]) -> Array:
        """Average over draws of what `ask` says of their posteriors, which names no component."""
        total: Array = sum(ask(draw.posterior) for draw in self._each())  # type: ignore[assignment]
        return total / self.n_draws

    def means(self) -> tuple[Array, Array]:
        """Return the averages of components (K, D) and mean (D,)."""
        components = self.draws.components[:, : self.K].mean(axis=0, dtype=np.float64)
        return components, self.draws.mean.mean(axis=0, dtype=np.float64)

    def bands_of(self, rng: np.random.Generator, X: Array, level: float) -> Array:
        """Credible bands (2, N, K) of x * z: quantiles over draws of all draws."""
        bands = np.zeros((2, len(X), self.K))
        draws = list(self._each())
        draws *= -(-LEAST_SCORES // len(draws))
        for start in range(0, len(X), BAND_ROWS):
            rows = X[start : start + BAND_ROWS]
            drawn = np.zeros((len(draws), len(rows), self.K))
            for s, draw in enumerate(draws):
                scores = draw.posterior.drawn_scores(rng, rows)
                drawn[s][:, draw.published] = scores[:, draw.places]
            bands[:, start : start + len(rows)] = band(drawn, level)
        return bands
