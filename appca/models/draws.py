"""Posterior draws that queries average over, aligned to the published components."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from appca.models.chains import Draws, levels
from appca.models.em import PAPER
from appca.models.numerics import Array, Floats, share_of
from appca.models.posterior import Description, Posterior, PosteriorOfDraw, SubspacePosterior
from appca.models.supports import RowSummary
from appca.models.threads import single_threaded_blas

MOST_BYTES = 2**25  # maximum size of the components kept for queries
MOST_DRAWS, LEAST_DRAWS = 100, 8  # bounds on the draws that queries average over
CHEAP_SUPPORTS = 256  # queries use all `MOST_DRAWS` up to this number of supports
FEW_NUMBERS = 2**20  # maximum size of rows x draws for a single call
BAND_ROWS, LEAST_SCORES = 500, 40  # rows per block; minimum number of scores drawn per row


class QueryDraws(NamedTuple):
    """S draws of at most K' components each; the first K match the published components."""

    chain: NDArray[np.intp]  # (S,)
    draw: NDArray[np.intp]  # (S,) index of the draw in its chain
    components: Floats  # (S, K', D), in the dtype of the data; zero if missing from a draw
    mean: Floats  # (S, D)
    noise_variance: Floats  # (S,)
    latent_variance: Floats  # (S, K')
    weights: Floats | None = None  # (S, K'), zero if a draw lacks the component
    row_scale_probabilities: Floats | None = None  # (S, J)
    size_probabilities: Floats | None = None  # (S, K + 1)

    def thinned(self, most: int) -> "QueryDraws":
        """Return at most `most` evenly spaced draws."""
        kept = np.linspace(0, len(self.chain) - 1, min(most, len(self.chain))).round().astype(int)
        return QueryDraws(*(None if a is None else a[kept] for a in self))  # type: ignore[arg-type]


class Pairing(NamedTuple):
    """A one-to-one pairing of two sets of components that maximizes the sum of |cos|."""

    first: NDArray[np.intp]  # (min(K, K'),) ascending
    second: NDArray[np.intp]
    sign: Floats  # sign of the cosine
    cosine: Floats  # |cos|; 0 for a component of zeros


def match(first: ArrayLike, second: ArrayLike) -> Pairing:
    """Match components (K, D) to components (K', D) of any order, sign and length."""
    from scipy.optimize import linear_sum_assignment

    similarity = _unit(first) @ _unit(second).T
    rows, columns = linear_sum_assignment(-np.abs(similarity))
    cosine = similarity[rows, columns]
    return Pairing(rows, columns, np.where(cosine < 0, -1.0, 1.0), np.minimum(np.abs(cosine), 1.0))


def choose(posterior: Draws, published: Floats, most: int) -> QueryDraws:
    """Return evenly spaced draws of the chains in use, aligned to the `published` components."""
    W, K = posterior["components"], len(published)
    good = np.flatnonzero(levels(posterior["log_posterior"]).counts)
    total, each = len(good) * W.shape[1], W[0, 0].nbytes
    n = max(1, min(most, total, MOST_BYTES // each))
    chosen = np.linspace(0, total - 1, n).round().astype(np.intp)
    chain, draw = good[chosen // W.shape[1]], chosen % W.shape[1]
    at: Any = {k: posterior[k][chain, draw] for k in QueryDraws._fields if k in posterior}
    W, ones = at["components"], np.ones(at["components"].shape[:2])
    weights, tau2 = at.get("weights", ones), at.get("latent_variance", ones)
    orders = [_order(*of_draw, published) for of_draw in zip(W, weights > 0.0, strict=True)]
    width = max(K, *(len(order) for order, _ in orders))
    components, latent = np.zeros((n, width, W.shape[2]), W.dtype), np.ones((n, width))
    share = np.zeros((n, width))
    for s, (order, sign) in enumerate(orders):
        there = np.flatnonzero(order >= 0)
        components[s, there] = W[s, order[there]] * sign[there, None]
        latent[s, there], share[s, there] = tau2[s, order[there]], weights[s, order[there]]
    at |= {"components": components, "latent_variance": latent}
    at |= {"weights": share} if "weights" in at else {}
    return QueryDraws(chain, draw, **at)


def component_bands(draws: QueryDraws, published: Floats, level: float) -> Floats:
    """Return credible bands (2, K, D) of components' entries, over the draws that contain them."""
    bands = np.empty((2, *published.shape))
    for k in range(len(published)):
        has = slice(None) if draws.weights is None else draws.weights[:, k] > 0.0
        some = draws.components[has, k]
        some = some if len(some) else published[[k]]
        bands[:, k] = band(some.astype(np.float64), level)
    return bands


def band(draws: Floats, level: float) -> Floats:
    """Return the ends (2, ...) of the middle `level` of draws (S, ...), by Weibull's quantiles."""
    return np.asarray(np.quantile(draws, band_ends(level), axis=0, method="weibull"))


def number_band(numbers: ArrayLike, level: float) -> tuple[int, int]:
    """Return the smallest and largest number of components in the middle `level` of the draws."""
    low, high = np.quantile(np.asarray(numbers, float), band_ends(level), method="nearest")
    return int(low), int(high)


def band_ends(level: float) -> list[float]:
    """Return the quantiles at the ends of the middle `level` of a distribution."""
    if not 0.0 < level < 1.0:
        msg = f"level must be a number between 0 and 1; got {level!r}."
        raise ValueError(msg)
    return [(1.0 - level) / 2.0, (1.0 + level) / 2.0]


def _order(
    components: Floats, used: NDArray[np.bool_], published: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """Return the column of a draw that matches each component, or -1, and its sign."""
    in_use, K = np.flatnonzero(used), len(published)
    order, sign = np.full(K, -1), np.ones(K)
    if len(in_use):
        places, matched, turned, _ = match(published, components[in_use])
        order[places], sign[places] = in_use[matched], turned
    rest = np.setdiff1d(in_use, order)
    return np.concatenate([order, rest]), np.concatenate([sign, np.ones(len(rest))])


def _unit(W: ArrayLike) -> Floats:
    W = np.asarray(W, dtype=np.float64)
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return np.asarray(W / np.where(norms > 0, norms, 1.0))


def _summed(answers: Array, n: int) -> Array:
    if len(answers) == n:
        return answers
    return np.asarray(answers.reshape(-1, n, *answers.shape[1:]).sum(axis=0, dtype=np.float64))


class SubspaceAtDraws(SubspacePosterior):
    """The paper's model at S draws, with results for S n rows, draw by draw."""

    def _columns(self, X: Array, answer: Callable[[Array, Array], Any]) -> list[Array]:
        B = X - self.mean[:, None].astype(X.dtype)
        P = B @ np.swapaxes(self.components, 1, 2).astype(X.dtype)
        return list(answer(*(rows.reshape(-1, rows.shape[2]) for rows in (B, P))))


class AveragedPosterior(Posterior):
    """Averages over draws, or over some draws if rows have many supports."""

    def __init__(self, published: PosteriorOfDraw, draws: QueryDraws) -> None:
        most = int(MOST_DRAWS * CHEAP_SUPPORTS / published.n_supports)
        self.published, self.draws = published, draws.thinned(max(LEAST_DRAWS, most))
        self.K, self.n_draws = len(published.components), len(self.draws.chain)

    def _each(self, X: Any = ()) -> Iterator[tuple[Any, slice, Array]]:
        """Yield the posterior and its components at each draw, or at all draws if rows are few."""
        of, draws, K = self.published, self.draws, self.draws.components.shape[1]
        few = 0 < len(X) * draws.components.size <= FEW_NUMBERS * self.K
        if few and isinstance(of, SubspacePosterior) and of.variant == PAPER:
            noise = np.repeat(draws.noise_variance, len(X))[:, None]
            latent = np.repeat(draws.latent_variance, len(X), axis=0)
            at = SubspaceAtDraws(draws.components, draws.mean, noise, latent, of.n_active)
            yield at, slice(K), np.arange(K)
            return
        with single_threaded_blas():
            for s in range(self.n_draws):
                values: Any = (x if x is None else x[s] for x in draws)
                draw: Any = QueryDraws(*values)
                used = np.arange(K) if draw.weights is None else np.flatnonzero(draw.weights)
                if draw.weights is not None:
                    W, latent, weights = draw.components, draw.latent_variance, draw.weights
                    draw = draw._replace(components=W[used], latent_variance=latent[used])
                    draw = draw._replace(weights=weights[used])
                published = used[: np.searchsorted(used, self.K)]
                yield of.at(draw, s), slice(len(published)), published

    def summary(self, X: Array) -> RowSummary:
        return self._summed_up(X)[0]

    def _summed_up(self, X: Array) -> tuple[RowSummary, list[Array]]:
        n, values = len(X), list[Array]()
        variance, inclusion, method = np.full(n, -np.inf), np.zeros((n, self.K)), ""
        for posterior, places, published in self._each(X):
            rows = posterior.summary(X)
            method = rows.method
            values.append(rows.log_likelihood)
            if rows.error.any():
                with np.errstate(divide="ignore"):
                    relative = 2.0 * (rows.log_likelihood + np.log(rows.error))
                variance = np.logaddexp(variance, relative)
            inclusion[:, published] += _summed(rows.inclusion, n)[:, places]
        total = np.logaddexp.reduce(np.concatenate(values).reshape(-1, n))
        error = np.exp(0.5 * variance - total)
        method = f"{method}; average over {self.n_draws} draws"
        value, inclusion = total - np.log(self.n_draws), inclusion / self.n_draws
        return RowSummary(value, error, inclusion, method), values

    def expected(self, X: Array) -> Array:
        total = np.zeros((len(X), self.K))
        for posterior, places, published in self._each(X):
            total[:, published] += _summed(posterior.expected(X), len(X))[:, places]
        return total / self.n_draws

    scores = expected

    def supports(self, X: Array, support: str) -> Array:
        del support
        return np.asarray(self.published.most_included(self.inclusion(X)))

    def membership(self, X: Array) -> Array:
        (_, _, inclusion, _), values = self._summed_up(X)
        chosen, total = self.published.most_included(inclusion), np.zeros(len(X))
        for (posterior, places, published), value in zip(self._each(X), values, strict=True):
            Z = np.zeros((len(X), posterior.components.shape[-2]), dtype=bool)
            Z[:, places] = chosen[:, published]
            lacking = np.delete(chosen, published, axis=1).any(axis=1)
            share = share_of(posterior.log_joint(X, Z) - value)
            total += np.where(lacking, 0.0, _summed(share, len(X)))
        return total / self.n_draws

    def description(self, X: Array) -> Description:
        """Return average log-likelihood and inclusion, and other results of the published draw."""
        value, error, inclusion, method = self.summary(X)
        rows = self.published.description(X)._replace(inclusion=inclusion, method=method)
        return rows._replace(log_likelihood=value, standard_error=error)

    def mean_of(self, ask: Callable[[Any], Array]) -> Array:
        """Average `ask(posterior)` over draws; its result must not depend on component names."""
        return np.asarray(sum(ask(posterior) for posterior, _, _ in self._each()) / self.n_draws)

    def means(self) -> tuple[Array, Array]:
        """Return the averages of components (K, D) and mean (D,)."""
        components = self.draws.components[:, : self.K].mean(axis=0, dtype=np.float64)
        return components, self.draws.mean.mean(axis=0, dtype=np.float64)

    def bands_of(self, rng: Generator, X: Array, level: float) -> Array:
        """Return credible bands (2, N, K) of x * z, quantiles of scores drawn at all draws."""
        bands, draws = np.zeros((2, len(X), self.K)), list(self._each())
        draws *= -(-LEAST_SCORES // len(draws))
        for start in range(0, len(X), BAND_ROWS):
            rows = X[start : start + BAND_ROWS]
            drawn = np.zeros((len(draws), len(rows), self.K))
            for s, (posterior, places, published) in enumerate(draws):
                drawn[s][:, published] = posterior.drawn_scores(rng, rows)[:, places]
            bands[:, start : start + len(rows)] = band(drawn, level)
        return bands
