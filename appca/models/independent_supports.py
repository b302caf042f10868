"""Which columns a row uses when they are orthonormal: each decides for itself, exactly, for any K.

The gain of `free_supports` is then f(z) = sum_k z_k a_k with the logits a_k of `gaussian`, so that
p(y) = p(y | nothing) prod_k (1 - pi_k + pi_k exp(a_k)).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from appca.models.free_supports import Best, Question
from appca.models.supports import SupportEstimate

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def best(q: Question) -> Best:
    """Most probable set of each row."""
    log_odds = gains(q) + q.odds
    Z = log_odds > 0
    return Best(Z, log_odds.sum(axis=1, where=Z) + q.nothing)


def summed(q: Question, n_paths: int = 0, stream: int = 0) -> SupportEstimate:
    """Sum over all sets of a row; no paths are needed."""
    del n_paths, stream
    log_odds = gains(q) + q.odds
    log_sum = np.logaddexp(0.0, log_odds).sum(axis=1) + q.nothing
    return SupportEstimate(
        log_sum, np.zeros(len(log_sum)), expit(log_odds), "exact, column by column"
    )


def scores(q: Question, Z: Mask) -> Floats:
    """Posterior means of x * z given one set a row, (n, K)."""
    return np.asarray(np.where(Z, q.c / _precision(q), 0.0))


def expected(q: Question) -> Floats:
    """E[x * z | y], (n, K), over all sets."""
    return np.asarray(expit(gains(q) + q.odds) * (q.c / _precision(q)))


def log_shares(q: Question, Z: Mask) -> Floats:
    """Log p(y, z) - log p(y | nothing) of one set a row, (n,)."""
    return np.asarray((gains(q) + q.odds).sum(axis=1, where=Z) + q.nothing)


def draw_scores(rng: np.random.Generator, q: Question, n_paths: int = 0) -> Floats:
    """Draw x * z (n, K) of each row from its posterior."""
    del n_paths
    s = _precision(q)
    drawn = q.c / s + rng.standard_normal(q.c.shape) / np.sqrt(s)
    return np.where(rng.random(q.c.shape) < expit(gains(q) + q.odds), drawn, 0.0)


def gains(q: Question) -> Floats:
    """Logits a_nk: gain in log density of using a column, from its own projection alone."""
    s = _precision(q)
    return np.asarray(0.5 * np.square(q.c) / s - 0.5 * np.log(q.tau2 * s))


def _precision(q: Question) -> Floats:
    return np.asarray(np.diagonal(q.G) + 1.0 / q.tau2)
