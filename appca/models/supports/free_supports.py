"""Which columns a row uses when any number may be: exact sums over 2^K sets, else estimates.

log p(y, z) = log p(y | nothing) + sum_k log(1 - pi_k) + sum_k z_k log(pi_k / (1 - pi_k)) + f(z)

with independent pi_k for a new row. Up to `MOST_COLUMNS` columns all sets are summed,
those of one size at a time; beyond, the best set comes from annealed searches and the sum from
annealed importance sampling.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, logsumexp, softmax

from appca.models.supports import enumeration, given_supports
from appca.models.supports.row_supports import CollapsedModel, SupportEstimate

if TYPE_CHECKING:
    from appca.models.supports.free_support_kernels import FreeSupportRows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_COLUMNS = 12  # 4,096 sets

SEARCH = np.array([0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0])
RESTARTS = 4
PILOT_SCHEDULE = np.linspace(0.0, 1.0, 9) ** 3
SCHEDULE = np.linspace(0.0, 1.0, 13) ** 2
DEFENSIVE_WEIGHT = 0.1  # of the prior in the base of the paths, so that no set is excluded


class Question(NamedTuple):
    """Rows as a fitted W sees them."""

    c: Floats  # (n, K) W'(y - mu) / sigma2
    G: Floats  # (K, K) W'W / sigma2
    tau2: float
    weights: Floats  # (K,) pi, inside (0, 1)

    @property
    def odds(self) -> Floats:
        """Prior log odds of each column."""
        return np.asarray(np.log(self.weights) - np.log1p(-self.weights))

    @property
    def nothing(self) -> float:
        """Log prior probability that no column is used."""
        return float(np.log1p(-self.weights).sum())


class Best(NamedTuple):
    """A set for each row."""

    Z: Mask  # (n, K)
    value: Floats  # (n,) log p(y, z) - log p(y | nothing)


def best(q: Question) -> Best:
    """Most probable set of each row; beyond `MOST_COLUMNS` the best of four annealed searches."""
    n, K = q.c.shape
    Z, value = np.zeros((n, K), dtype=bool), np.zeros(n)
    if K > MOST_COLUMNS:
        from appca.models.supports import free_support_kernels as kernels

        U = _uniforms((RESTARTS, len(SEARCH), K))
        kernels.search(_sets(q), SEARCH, U, Z, value)
        return Best(Z, value + q.nothing)
    for t in _tables(q):
        members, found = enumeration.best(t, q.c)
        better = found > value
        value[better] = found[better]
        rows = np.flatnonzero(better)[:, None]
        Z[better] = False
        Z[rows, members[better]] = True
    return Best(Z, value + q.nothing)


def summed(q: Question, n_paths: int) -> SupportEstimate:
    """Sum over all sets of a row: exactly, or by `n_paths` importance paths a row."""
    n, K = q.c.shape
    if K > MOST_COLUMNS:
        return _sampled(q, n_paths)
    log_sums, inclusions = [np.zeros(n)], [np.zeros((n, K))]
    for t in _tables(q):
        found = enumeration.posterior(t, q.c)
        log_sums.append(found.log_sum)
        inclusions.append(found.inclusion)
    by_size = np.stack(log_sums, axis=1)  # a row's in one line: added in one order, whatever n
    inclusion = np.einsum("nl,nlk->nk", softmax(by_size, axis=1), np.stack(inclusions, axis=1))
    log_sum = logsumexp(by_size, axis=1) + q.nothing
    return SupportEstimate(log_sum, np.zeros(n), inclusion, f"exact, by enumeration of {2**K} sets")


def scores(q: Question, Z: Mask) -> Floats:
    """Posterior means of x * z given one set a row, (n, K)."""
    from appca.models.supports import free_support_kernels as kernels

    H = np.empty(q.c.shape)
    kernels.scores(_sets(q), Z, H)
    return H


def expected(q: Question) -> Floats:
    """E[x * z | y], (n, K), over all sets; of the best set beyond `MOST_COLUMNS`."""
    if q.c.shape[1] > MOST_COLUMNS:
        return scores(q, best(q).Z)
    log_sums, H = [np.zeros(len(q.c))], [np.zeros(q.c.shape)]
    for t in _tables(q):
        found = enumeration.posterior(t, q.c)
        log_sums.append(found.log_sum)
        H.append(found.H)
    share = softmax(np.stack(log_sums, axis=1), axis=1)
    return np.asarray(np.einsum("nl,nlk->nk", share, np.stack(H, axis=1)))


def log_shares(q: Question, Z: Mask) -> Floats:
    """Log p(y, z) - log p(y | nothing) of one set a row, (n,)."""
    f = given_supports.log_densities(q.c, Z, CollapsedModel(q.G, 1.0 / q.tau2))
    return np.asarray(f + Z @ q.odds + q.nothing)


def draw_scores(rng: np.random.Generator, q: Question, n_paths: int) -> Floats:
    """Draw x * z (n, K) of each row from its posterior.

    Beyond `MOST_COLUMNS` columns a set is drawn column by column from the inclusion probabilities.
    """
    if q.c.shape[1] > MOST_COLUMNS:
        Z = rng.random(q.c.shape) < summed(q, n_paths).inclusion
    else:
        Z = given_supports.draw_supports(rng, q.c, list(_tables(q)), none=True)
    return given_supports.draw_scores(rng, q.c, Z, CollapsedModel(q.G, 1.0 / q.tau2))


def _tables(q: Question) -> Iterator[enumeration.SupportTable]:
    """All sets of each size from one on, with their prior odds in the place of the determinant."""
    for size in range(1, q.c.shape[1] + 1):
        t = enumeration.table(CollapsedModel(q.G, 1.0 / q.tau2), size)
        yield t._replace(half_log_det=t.half_log_det - q.odds[t.sets].sum(axis=1))


def _sampled(q: Question, n_paths: int) -> SupportEstimate:
    """Sum by annealed importance sampling, the base learned from a pilot run.

    Inclusion over the pilot paths is averaged half by their weights, which are poor, and half
    evenly; a defensive mixture of that and the prior is the base of the paths that count. The error
    is that of a mean of weights, carried to its log (delta method).
    """
    prior = np.broadcast_to(q.odds, q.c.shape)
    log_weights, inclusion = _paths(q, prior, PILOT_SCHEDULE, max(n_paths // 2, 4))
    learned = 0.5 * _weighted(log_weights, inclusion) + 0.5 * inclusion.mean(axis=1)
    base = logit((1.0 - DEFENSIVE_WEIGHT) * learned + DEFENSIVE_WEIGHT * q.weights)
    log_weights, inclusion = _paths(q, base, SCHEDULE, n_paths)
    log_sum = logsumexp(log_weights, axis=1) - np.log(n_paths)
    weights = np.exp(log_weights - log_sum[:, None])
    error = weights.std(axis=1, ddof=1) / np.sqrt(n_paths)
    method = f"annealed importance sampling, {n_paths} paths a row"
    estimated = _weighted(log_weights, inclusion)
    return SupportEstimate(log_sum + q.nothing, error, estimated, method)


def _paths(q: Question, base: Floats, betas: Floats, n_paths: int) -> tuple[Floats, Floats]:
    from appca.models.supports import free_support_kernels as kernels

    n, K = q.c.shape
    log_weights, inclusion = np.empty((n, n_paths)), np.empty((n, n_paths, K))
    U = _uniforms((n_paths, len(betas), K))
    kernels.importance(_sets(q), np.ascontiguousarray(base), betas, U, log_weights, inclusion)
    return log_weights, inclusion


def _weighted(log_weights: Floats, inclusion: Floats) -> Floats:
    return np.asarray(np.einsum("nr,nrk->nk", softmax(log_weights, axis=1), inclusion))


def _sets(q: Question) -> "FreeSupportRows":
    from appca.models.supports.free_support_kernels import FreeSupportRows

    A = q.G + np.eye(len(q.G)) / q.tau2
    return FreeSupportRows(A, np.ascontiguousarray(q.c), q.odds, q.tau2)


def _uniforms(shape: tuple[int, ...]) -> Floats:
    """Give the same numbers for every question."""
    return np.random.default_rng(0).random(shape)
