"""Supports of any size of a row: exact sums over 2^K sets, else estimates.

log p(y, z) = log p(y | nothing) + sum_k log(1 - pi_k) + sum_k z_k log(pi_k / (1 - pi_k)) + f(z)

Up to `MOST_COLUMNS` columns all sets are summed (`set_tree`); beyond, sums and sets are estimated.
For orthonormal columns f(z) is the sum of z_k a_k, so that

    p(y) = p(y | nothing) prod_k (1 - pi_k + pi_k exp(a_k)).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import expit, logit, logsumexp

from appca.models import fixed_size_supports, set_tree, supports
from appca.models.set_tree import EverySet
from appca.models.settings import MOST_COLUMNS
from appca.models.supports import CollapsedModel, Floats, Mask, SupportEstimate

SEARCH = np.array([0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0])
RESTARTS = 4
PILOT_SCHEDULE = np.linspace(0.0, 1.0, 9) ** 3
SCHEDULE = np.linspace(0.0, 1.0, 13) ** 2
DEFENSIVE_WEIGHT = 0.1  # of the prior in the base of the paths, so that no set is excluded


class Best(NamedTuple):
    """A set for each row."""

    Z: Mask  # (n, K)
    value: Floats  # (n,) log p(y, z) - log p(y | nothing)


class Question(NamedTuple):
    """Projections of rows, to ask about."""

    c: Floats  # (n, K) W'(y - mu) / sigma2
    G: Floats  # (K, K) W'W / sigma2
    tau2: float
    weights: Floats  # (K,) pi, inside (0, 1)
    orthonormal: bool = False
    n_paths: int = 16  # importance paths a row
    stream: int = 0  # of random numbers for these
    background: Floats = np.zeros(())  # (n,) log p(y | nothing)

    @property
    def odds(self) -> Floats:
        """Prior log odds of each column."""
        return np.asarray(np.log(self.weights) - np.log1p(-self.weights))

    @property
    def precision(self) -> Floats:
        """Posterior precision (K,) of each score alone."""
        return np.asarray(np.diagonal(self.G) + 1.0 / self.tau2)

    @property
    def log_odds(self) -> Floats:
        """Posterior log odds (n, K) of each column alone."""
        s = self.precision
        return np.asarray(0.5 * np.square(self.c) / s - 0.5 * np.log(self.tau2 * s) + self.odds)

    @property
    def nothing(self) -> float:
        """Log prior probability that no column is used."""
        return float(np.log1p(-self.weights).sum())

    def every_set(self, uniforms: Floats | None = None) -> EverySet:
        """Sum over all 2^K sets; with numbers in [0, 1) (n,), also draw one of them."""
        model = CollapsedModel(self.G, 1.0 / self.tau2)
        sums = set_tree.over_every_set(self.c, model, self.odds, uniforms)
        return sums._replace(log_sum=sums.log_sum + self.nothing, value=sums.value + self.nothing)

    def best(self) -> Best:
        """Most probable set of each row; beyond `MOST_COLUMNS` the best of four searches."""
        n, K = self.c.shape
        if self.orthonormal:
            Z = (log_odds := self.log_odds) > 0
            return Best(Z, log_odds.sum(axis=1, where=Z) + self.nothing)
        if K <= MOST_COLUMNS:
            sums = self.every_set()
            return Best(sums.best, sums.value)
        from appca.models import gibbs_kernels as kernels

        Z, value = np.zeros((n, K), dtype=bool), np.zeros(n)
        kernels.search(self._rows(), SEARCH, _uniforms((RESTARTS, len(SEARCH), K), (0,)), Z, value)
        return Best(Z, value + self.nothing)

    def summed(self) -> SupportEstimate:
        """Sum over all sets of a row: exactly, or by `n_paths` importance paths a row."""
        n, K = self.c.shape
        if self.orthonormal:
            log_sum = np.logaddexp(0.0, log_odds := self.log_odds).sum(axis=1) + self.nothing
            inclusion = expit(log_odds)
            return SupportEstimate(log_sum, np.zeros(n), inclusion, "exact, column by column")
        if K > MOST_COLUMNS:
            return self._sampled()
        method = f"exact, by enumeration of {2**K} sets"
        sums = self.every_set()
        return SupportEstimate(sums.log_sum, np.zeros(n), sums.inclusion, method)

    def means(self, Z: Mask) -> Floats:
        """Posterior means of x * z given one set a row, (n, K)."""
        if self.orthonormal:
            return np.where(Z, self.c / self.precision, 0.0)
        from appca.models import gibbs_kernels as kernels

        H = np.empty(self.c.shape)
        kernels.scores(self._rows(), Z, H)
        return H

    def expected(self) -> Floats:
        """E[x * z | y], (n, K), over all sets; of the best set beyond `MOST_COLUMNS`."""
        if self.orthonormal:
            return np.asarray(expit(self.log_odds) * (self.c / self.precision))
        return self.every_set().H if self.c.shape[1] <= MOST_COLUMNS else self.means(self.best().Z)

    def log_support(self, Z: Mask) -> Floats:
        """Log p(y, z) - log p(y | nothing) of one set a row, (n,)."""
        if self.orthonormal:
            return np.asarray(self.log_odds.sum(axis=1, where=Z) + self.nothing)
        f = supports.log_densities(self.c, Z, CollapsedModel(self.G, 1.0 / self.tau2))
        return np.asarray(f + Z @ self.odds + self.nothing)

    def drawn_scores(self, rng: Generator) -> Floats:
        """Draw x * z (n, K) of each row; beyond `MOST_COLUMNS` columns from their inclusion."""
        if self.orthonormal:
            drawn = rng.standard_normal(self.c.shape) / np.sqrt(self.precision)
            drawn = self.c / self.precision + drawn
            return np.where(rng.random(self.c.shape) < expit(self.log_odds), drawn, 0.0)
        if self.c.shape[1] > MOST_COLUMNS:
            Z = rng.random(self.c.shape) < self.summed().inclusion
        else:
            Z = self.every_set(rng.random(len(self.c))).drawn
        return supports.draw_scores_given(rng, self.c, Z, CollapsedModel(self.G, 1.0 / self.tau2))

    def _sampled(self) -> SupportEstimate:
        n_paths = self.n_paths
        prior = np.broadcast_to(self.odds, self.c.shape)
        pilots, key = max(n_paths // 2, 4), (self.stream, 0)
        log_weights, inclusion = self._paths(prior, PILOT_SCHEDULE, pilots, key)
        averaged = fixed_size_supports.weighted_paths
        learned = 0.5 * averaged(log_weights, inclusion) + 0.5 * inclusion.mean(axis=1)
        base = logit((1.0 - DEFENSIVE_WEIGHT) * learned + DEFENSIVE_WEIGHT * self.weights)
        log_weights, inclusion = self._paths(base, SCHEDULE, n_paths, (self.stream, 1))
        log_sum = logsumexp(log_weights, axis=1) - np.log(n_paths)
        weights = np.exp(log_weights - log_sum[:, None])
        error = np.hypot(weights.std(axis=1, ddof=1) / np.sqrt(n_paths), 1.0 / n_paths)
        method = f"annealed importance sampling, {n_paths} paths a row"
        inclusion = averaged(log_weights, inclusion)
        return SupportEstimate(log_sum + self.nothing, error, inclusion, method)

    def _paths(
        self, base: Floats, betas: Floats, n_paths: int, key: tuple[int, int]
    ) -> tuple[Floats, Floats]:
        from appca.models import gibbs_kernels as kernels

        n, K = self.c.shape
        log_weights, inclusion = np.empty((n, n_paths)), np.empty((n, n_paths, K))
        U, base = _uniforms((n_paths, len(betas), K), key), np.ascontiguousarray(base)
        kernels.importance(self._rows(), base, betas, U, log_weights, inclusion)
        return log_weights, inclusion

    def _rows(self) -> Any:
        from appca.models.gibbs_kernels import FreeSupportRows

        A = self.G + np.eye(len(self.G)) / self.tau2
        return FreeSupportRows(A, np.ascontiguousarray(self.c), self.odds, self.tau2)


def _uniforms(shape: tuple[int, ...], key: tuple[int, ...]) -> Floats:
    return np.random.default_rng(key).random(shape)
