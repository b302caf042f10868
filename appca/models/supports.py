"""Rows and their supports, of exactly L factors or any number, if W is not orthogonal.

    log p(y | z) = log p(y | nothing) + f(z),  f(z) = -1/2 log|tau2 M| + 1/2 c_z' inv(M) c_z

with c_z = c * z, M = I / tau2 + A * zz', A = W'W / sigma2 and c = W'(y - mu) / sigma2.

If exact sums (`set_tree`) take too long, supports come from annealed searches, and sums from
annealed importance sampling. A row's results depend only on its numbers and its seed, not on blocks
or threads. If rows use any number of factors, then

    log p(y, z) = log p(y | nothing) + sum_k log(1 - pi_k) + sum_k z_k log(pi_k / (1 - pi_k)) + f(z)

For orthonormal columns, f(z) is a sum over k, and p(y) a product.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax

from appca.models import set_tree
from appca.models.numerics import Floats, Mask, Members
from appca.models.set_tree import CollapsedModel, SetSums
from appca.models.settings import MOST_COLUMNS, MOST_SETS
from appca.models.threads import in_order, single_threaded_blas

Seeds = NDArray[np.uint64]

BLOCK_FLOATS = 2**18  # floats per block, 2 MB
LEAST_ROWS, MOST_BLOCKS = 64, 64  # rows per block, blocks; a call takes 0.1 ms
SEED_BYTES = 2**19  # bytes of rows processed together


class RowSupports(NamedTuple):
    """Projections of rows, each with its support."""

    c: Floats  # (n, K) W'(y - mu) / sigma2
    members: Members  # (n, L), the factor in each slot; negative if empty
    seeds: Seeds  # (n,) seed of each row's random stream


class SupportMoments(NamedTuple):
    """The posterior of the scores x * z given one support per row."""

    H: Floats  # (n, K) posterior means, zero outside the support
    second: Floats  # (K, K) weighted sum over rows of E[(x z)(x z)']
    value: Floats  # (n,) f(S)


class AnnealingSchedule(NamedTuple):
    """The inverse temperatures of one annealed importance path (Neal 2001)."""

    betas: Floats  # ascending to 1
    after: int  # number of further sweeps at beta = 1


class AnnealedPaths(NamedTuple):
    """Annealed importance sampling of each row's sum over supports."""

    log_weights: Floats  # (n, n_paths); mean exp(log_weights) estimates sum_S exp f(S)
    inclusion: Floats  # (n, n_paths, K) estimates of p(z_k = 1), sum L
    families: Members  # (n, n_paths), first ancestor of each path


class RowSummary(NamedTuple):
    """The posterior over supports, summed over all of them or by importance sampling."""

    log_likelihood: Floats  # (n,) nats, log of the sum over S of p(S) p(y | S)
    error: Floats  # (n,) its standard error in nats; 0 if exact
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    method: str


def indicators(members: Members, n_components: int) -> Mask:
    """Return Z (n, K) of the members (n, L)."""
    Z = np.zeros((len(members), n_components), dtype=bool)
    np.put_along_axis(Z, members, True, axis=1)
    return Z


def members_of(Z: Mask) -> Members:
    """Return the members (N, L), ascending, of rows Z (N, K) that all use L components."""
    return np.nonzero(Z)[1].reshape(len(Z), -1)


def scores_given(
    c: Floats, Z: Mask, model: CollapsedModel, rng: Generator | None = None
) -> tuple[Floats, Floats]:
    """Return the posterior means of x * z (n, K) given each row's support, or draws, and f(z) (n,).

    With M = C C', x = inv(C') (inv(C) c_z + e), where e is standard normal if x is drawn by `rng`.
    """
    sizes = Z.sum(axis=1)
    most = int(sizes.max(initial=0))
    L = most if (sizes == most).all() else None  # None: M has all K rows
    size, X, f = max(1, BLOCK_FLOATS // (L or Z.shape[1]) ** 2), np.zeros(c.shape), np.empty(len(c))
    with single_threaded_blas():  # the last bits would depend on the number of threads
        for start in range(0, len(c), size):
            part = slice(start, start + size)
            z, c_z = Z[part], c[part]
            if L is None:
                M, c_z = model.A * (z[:, :, None] & z[:, None, :]), c_z * z
            else:
                members = members_of(z)
                M = model.A[members[:, :, None], members[:, None, :]]
                c_z = np.take_along_axis(c_z, members, axis=1)
            M += model.prior * np.eye(M.shape[1])
            C = np.linalg.cholesky(M)
            half = np.linalg.solve(C, c_z[:, :, None])
            log_det = np.log(np.diagonal(C, axis1=1, axis2=2) / math.sqrt(model.prior))
            f[part] = 0.5 * np.square(half).sum(axis=(1, 2)) - log_det.sum(axis=1)
            if rng is not None:
                half += rng.standard_normal(half.shape)
            x = np.linalg.solve(np.swapaxes(C, 1, 2), half)[:, :, 0]
            if L is None:
                X[part] = np.where(z, x, 0.0)
            else:
                np.put_along_axis(X[part], members, x, axis=1)
    return X, f


def draw_seeds(rng: Generator, n: int) -> Seeds:
    """Draw a new seed for each row."""
    return rng.integers(0, 2**64, n, dtype=np.uint64)


def row_seeds(X: NDArray[np.floating]) -> Seeds:
    """Hash the bits of each row X (n, D) to its seed, by a random linear form."""
    factors = draw_seeds(np.random.default_rng(0), X.shape[1]) | np.uint64(1)
    form, size = np.empty(len(X), np.uint64), max(1, SEED_BYTES // (8 * X.shape[1]))
    for start in range(0, len(X), size):
        part = np.ascontiguousarray(X[start : start + size])
        bits = part.view(np.uint64 if X.dtype == np.float64 else np.uint32)
        form[start : start + size] = bits.astype(np.uint64, copy=False) @ factors
    return form


def search(
    rows: RowSupports, betas: Floats, model: CollapsedModel, keep: bool = False, weights: Any = None
) -> tuple[Members, SupportMoments]:
    """Sweep the slots of every row once for each beta; return members (n, L) and their moments.

    Members of -1 start greedily. An infinite beta chooses the most probable factor of each slot; 1
    draws from the posterior. `keep` restores a row's first support if f(S) has decreased.
    """
    from appca.models import slot_kernels as kernels

    (n, K), L = rows.c.shape, rows.members.shape[1]
    mine = rows._replace(members=rows.members.copy())
    H, second, value = np.empty((n, K)), np.zeros((K, K)), np.empty(n)
    counts = np.ones(n) if weights is None else weights

    def share(part: slice) -> Floats:
        moments = SupportMoments(H[part], np.zeros((K, K)), value[part])
        counted = _part(mine, part), counts[part]
        kernels.search(counted, betas, keep, model, moments, kernels.row_state(K, L))
        return moments.second

    for of_part in _share(share, n):
        second += of_part
    return mine.members, SupportMoments(H, second, value)


def importance(
    rows: RowSupports, r: Floats, n_paths: int, schedule: AnnealingSchedule, model: CollapsedModel
) -> AnnealedPaths:
    """Estimate sum_S exp f(S) by annealed importance sampling from q(S).

    q(S) is the distribution of independent Bernoulli(r_k), r (n, K), given that L of them are 1.
    Only paths of different families are independent.
    """
    from appca.models import slot_kernels as kernels

    (n, K), L = rows.c.shape, rows.members.shape[1]
    shape = n, n_paths
    out = AnnealedPaths(np.empty(shape), np.empty((*shape, K)), np.empty(shape, np.int64))

    def share(part: slice) -> None:
        room = kernels.row_state(K, L), kernels.walkers(n_paths, K, L), np.zeros((K + 1, L + 1))
        some, mine = _part(rows, part), _part(out, part)
        kernels.importance(some, r[part], schedule, model, mine, room)

    deque(_share(share, n), maxlen=0)
    return out


def weighted_paths(log_weights: Floats, inclusion: Floats) -> Floats:
    """Average inclusion (n, paths, K) over the paths of each row by their weights."""
    return np.asarray(np.einsum("nr,nrk->nk", softmax(log_weights, axis=1), inclusion))


def _part(rows: Any, part: Any) -> Any:
    """Select some rows of all arrays in a tuple."""
    return rows._make(array[part] for array in rows)


def _share(work: Callable[[slice], Any], n: int) -> Iterator[Any]:
    size = max(LEAST_ROWS, -(-n // MOST_BLOCKS))
    return in_order(work, [slice(start, start + size) for start in range(0, n, size)])


SETS_IN_PASSING = 256  # maximum number of supports summed in every E step or sweep
HONEST_PATHS = 64  # minimum for correct errors on all nine designs of docs/measurements.md
RESTARTS, RESTARTS_OF_MANY = 4, 1  # measured, see factor_em
# Eight sweeps from nearly flat to the posterior, then to the best support. In rows with many modes,
# four restarts missed it in 29%; if sweeps started at beta = 1, in 48%.
ANNEALED = np.array([*((np.arange(1, 9) / 8.0) ** 3), *[math.inf] * 20])
GIBBS_SWEEPS = 10  # number of sweeps from the best support to a drawn support
MANY = 1000  # slots x factors from which a search is slow, see `factor_em.WORST`
CHUNK = 4096  # number of rows whose paths are in memory together


class Route(NamedTuple):
    """Settings for estimating the sum of a row."""

    pilots: int  # number of pilot paths, from the uniform distribution
    pilot: AnnealingSchedule
    paths: AnnealingSchedule  # schedule of the final paths
    defensive: float  # weight of the uniform distribution in their base


# The base of the paths is learned from a pilot run, and mixed with the uniform one to include all
# supports (Hesterberg 1995); with many factors, a larger share would spoil the first supports.
_PILOT, _PATHS = (np.arange(8) / 7.0) ** 4, (np.arange(8) / 7.0) ** 2
LONG = Route(8, AnnealingSchedule(_PILOT, 4), AnnealingSchedule(_PATHS, 2), 0.1)
# If pilot paths disagree, the posterior has separate modes, and paths from a learned base would
# miss some. Such rows start near the uniform base, and beta rises slowly.
SPLIT = Route(8, LONG.pilot, AnnealingSchedule((np.arange(48) / 47.0) ** 3, 2), 0.9)
# With many slots and factors, a sweep mostly forgets its start, which two agreeing pilots confirm.
_PILOT, _PATHS = np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0])
SHORT = Route(2, AnnealingSchedule(_PILOT, 6), AnnealingSchedule(_PATHS, 1), 0.01)
SAME = 0.7  # minimum inclusion of a factor by two pilot paths that agree
# Sets of any size: sweeps of draws, then a search for the best set, which ends early.
DRAWN_SWEEPS = 7
SEARCH = np.array([0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0, *[math.inf] * 100])
PILOT_SCHEDULE, SCHEDULE = np.linspace(0.0, 1.0, 9) ** 3, np.linspace(0.0, 1.0, 13) ** 2
DEFENSIVE_WEIGHT = 0.1  # weight of the prior in the base of the paths: no set is excluded


class SupportsOfRows(NamedTuple):
    """Projections of rows for queries; f includes prior log odds if sizes differ.

    Exact up to `MOST_SETS` supports of L factors, or `MOST_COLUMNS` independent factors.
    """

    c: Floats  # (n, K) W'(y - mu) / sigma2
    model: CollapsedModel
    prior: Any  # L, or pi (K,), inside (0, 1), where rows use any number of factors
    seeds: Seeds = np.zeros(0, np.uint64)  # (n,) for searches and paths, given L
    n_paths: int = 16  # importance paths per row
    background: Floats = np.zeros(())  # (n,) log p(y | nothing), with p(S) given L
    orthonormal: bool = False  # factors are independent
    stream: int = 0  # stream of random numbers for paths, if L is not fixed

    @property
    def fixed(self) -> bool:
        """Whether rows use exactly L factors."""
        return np.ndim(self.prior) == 0

    @property
    def n_sets(self) -> int:
        """Number of supports."""
        K = self.c.shape[1]
        return math.comb(K, self.prior) if self.fixed else 2**K

    @property
    def exact(self) -> bool:
        """Whether sums are over all supports."""
        return self.n_sets <= (MOST_SETS if self.fixed else 2**MOST_COLUMNS)

    @property
    def odds(self) -> Any:
        """Prior log odds (K,) of each factor; None given L."""
        return None if self.fixed else np.log(self.prior) - np.log1p(-self.prior)

    @property
    def nothing(self) -> float:
        """Log prior probability of the empty set; 0 given L."""
        return 0.0 if self.fixed else float(np.log1p(-self.prior).sum())

    @property
    def alone(self) -> tuple[Floats, Floats]:
        """Posterior precision (K,) of scores and log odds (n, K) of factors, each factor alone."""
        s = np.diagonal(self.model.A) + self.model.prior
        gain = np.square(self.c) / s - np.log(s / self.model.prior)
        return np.asarray(s), np.asarray(0.5 * gain + self.odds)

    def every_set(self, **how: Any) -> SetSums:
        """Sum over all supports, as `set_tree.sums` with `how`."""
        L = self.prior if self.fixed else None
        sums = set_tree.sums(self.c, self.model, L, odds=self.odds, **how)
        return sums._replace(log_sum=sums.log_sum + self.nothing, value=sums.value + self.nothing)

    def best(self) -> tuple[Mask, Floats]:
        """Return each row's most probable support (n, K) and f, by search if sums are inexact."""
        (n, K), L = self.c.shape, self.prior
        if self.orthonormal:
            Z = (log_odds := self.alone[1]) > 0
            return Z, log_odds.sum(axis=1, where=Z) + self.nothing
        if self.exact:
            sums = self.every_set(moments=False)
            return indicators(sums.best, K) if self.fixed else sums.best, sums.value
        if not self.fixed:
            from appca.models import gibbs_kernels as kernels

            Z, value = np.zeros((n, K), dtype=bool), np.zeros(n)
            U = np.random.default_rng((0,)).random((RESTARTS, DRAWN_SWEEPS, K))
            kernels.search(self._rows(), SEARCH, U, Z, value)
            return Z, value + self.nothing
        rows = RowSupports(self.c, np.full((n, L), -1), self.seeds)
        members, searched = search(rows, ANNEALED[-1:], self.model)
        for i in range(RESTARTS if K * L <= MANY else RESTARTS_OF_MANY):
            rows = RowSupports(self.c, members, self.seeds + np.uint64(i + 1))
            members, searched = search(rows, ANNEALED, self.model, keep=True)
        return indicators(members, K), searched.value

    def summed(self) -> RowSummary:
        """Sum over all supports of a row: exactly, or by `n_paths` importance paths per row."""
        error, method = np.zeros(len(self.c)), f"annealed importance sampling, {self.n_paths} paths"
        if self.orthonormal:
            log_odds, method = self.alone[1], "exact, column by column"
            log_sum, inclusion = np.logaddexp(0.0, log_odds).sum(axis=1), expit(log_odds)
            log_sum += self.nothing
        elif self.exact:
            sums, method = self.every_set(), f"exact, by enumeration of {self.n_sets} sets"
            log_sum, inclusion = sums.log_sum, sums.inclusion
        elif self.fixed:
            few = f" (errors may be too small; use {HONEST_PATHS} paths)"
            method += " a row" + few * (self.n_paths < HONEST_PATHS)
            rows = RowSupports(self.c, np.full((len(self.c), self.prior), -1), self.seeds)
            chunks = (slice(start, start + CHUNK) for start in range(0, len(self.c), CHUNK))
            parts = [_sampled(_part(rows, part), self.model, self.n_paths) for part in chunks]
            log_sum, error, inclusion = map(np.concatenate, zip(*parts, strict=True))
        else:
            (log_sum, error, inclusion), method = self._by_paths(), f"{method} a row"
        return RowSummary(self.background + log_sum, error, inclusion, method)

    def means(self, Z: Mask) -> Floats:
        """Posterior means of x * z given one support per row, (n, K)."""
        if self.orthonormal:
            return np.where(Z, self.c / self.alone[0], 0.0)
        if self.fixed:
            return scores_given(self.c, Z, self.model)[0]
        H = np.empty(self.c.shape)
        from appca.models import gibbs_kernels as kernels

        A, c, _, tau2 = self._rows()
        kernels.scores(A, c, Z, tau2, H)
        return H

    def expected(self) -> Floats:
        """E[x * z | y], (n, K), over all supports, or given the best support."""
        if self.orthonormal:
            s, log_odds = self.alone
            return np.asarray(expit(log_odds) * (self.c / s))
        return self.every_set().H if self.exact else self.means(self.best()[0])

    def log_support(self, Z: Mask) -> Floats:
        """Return f of one support per row, (n,)."""
        if self.orthonormal:
            return np.asarray(self.alone[1].sum(axis=1, where=Z) + self.nothing)
        f = scores_given(self.c, Z, self.model)[1]
        return f if self.fixed else np.asarray(f + Z @ self.odds + self.nothing)

    def drawn_scores(self, rng: Generator) -> Floats:
        """Draw x * z (n, K): exactly or, if sums are inexact, by Gibbs sweeps or from inclusion."""
        n, K = self.c.shape
        drawn: Any
        if self.orthonormal:
            s, log_odds = self.alone
            x = self.c / s + rng.standard_normal((n, K)) / np.sqrt(s)
            return np.where(rng.random((n, K)) < expit(log_odds), x, 0.0)
        if self.exact:
            drawn = self.every_set(uniforms=rng.random(n), moments=False).drawn
        elif self.fixed:
            rows = RowSupports(self.c, members_of(self.best()[0]), draw_seeds(rng, n))
            drawn = search(rows, np.ones(GIBBS_SWEEPS), self.model)[0]
        else:
            drawn = rng.random((n, K)) < self.summed().inclusion
        Z = indicators(drawn, K) if self.fixed else drawn
        return scores_given(self.c, Z, self.model, rng)[0]

    def _rows(self) -> Any:
        A, prior = self.model
        A = A + prior * np.eye(len(A))
        return A, np.ascontiguousarray(self.c), self.odds, 1.0 / prior

    def _by_paths(self) -> tuple[Floats, Floats, Floats]:
        """Log sums (n,), errors (n,) and inclusion (n, K) of sets of any size, by paths."""
        from appca.models import gibbs_kernels as kernels

        (n, K), rows = self.c.shape, self._rows()

        def walked(base: Floats, betas: Floats, n_paths: int, which: int) -> tuple[Floats, Floats]:
            log_weights, inclusion = np.empty((n, n_paths)), np.empty((n, n_paths, K))
            U = np.random.default_rng((self.stream, which)).random((n_paths, len(betas), K))
            kernels.importance(rows, np.full((n, K), base), betas, U, log_weights, inclusion)
            return log_weights, inclusion

        log_weights, inclusion = walked(self.odds, PILOT_SCHEDULE, max(self.n_paths // 2, 4), 0)
        learned = 0.5 * weighted_paths(log_weights, inclusion) + 0.5 * inclusion.mean(axis=1)
        base = logit((1.0 - DEFENSIVE_WEIGHT) * learned + DEFENSIVE_WEIGHT * self.prior)
        log_weights, inclusion = walked(base, SCHEDULE, self.n_paths, 1)
        log_sum, error = _averaged(log_weights, np.arange(self.n_paths))
        return log_sum + self.nothing, error, weighted_paths(log_weights, inclusion)


def root_mean_square(H: Floats, Z: Mask, weights: Floats | None = None) -> Floats:
    """Root mean square (K,) of each factor's score over the rows that use it; 1 if none does."""
    counts = np.ones(len(H)) if weights is None else weights
    used = counts @ Z
    power = counts @ np.square(H) / np.where(used > 0.0, used, 1.0)
    return np.sqrt(np.where(power > 0.0, power, 1.0))


def _sampled(rows: RowSupports, model: CollapsedModel, n_paths: int) -> tuple[Floats, ...]:
    """Return log sums (n,), errors (n,), inclusion (n, K); use longer paths if pilots disagree."""
    (n, K), L = rows.c.shape, rows.members.shape[1]
    easy, hard = LONG._replace(pilots=max(n_paths // 2, 4)), SPLIT
    if many := K * L > MANY:
        easy, hard = SHORT, easy._replace(defensive=SHORT.defensive)
    else:
        hard = hard._replace(pilots=easy.pilots)
    pilot = _pilot(rows, easy, model)
    agree = np.ptp(pilot, axis=1).max(axis=1) < SAME
    estimates = np.empty(n), np.empty(n), np.empty((n, K))
    for some, route in ((agree, easy), (~agree, hard)):
        part = _part(rows, some)
        first = _pilot(part, route, model) if many and route is hard else pilot[some]
        of_route = _annealed(part, first, route, model, n_paths)
        for array, values in zip(estimates, of_route, strict=True):
            array[some] = values
    return estimates


def _pilot(rows: RowSupports, route: Route, model: CollapsedModel) -> Floats:
    uniform = np.full(rows.c.shape, rows.members.shape[1] / rows.c.shape[1])
    return importance(rows, uniform, route.pilots, route.pilot, model).inclusion


def _annealed(
    rows: RowSupports, pilot: Floats, route: Route, model: CollapsedModel, n_paths: int
) -> tuple[Floats, Floats, Floats]:
    K, L = rows.c.shape[1], rows.members.shape[1]
    learned, d = pilot.mean(axis=1), route.defensive
    again = rows._replace(seeds=rows.seeds + np.uint64(1))
    base = (1.0 - d) * _capped(learned) + d * L / K
    paths = importance(again, base, n_paths, route.paths, model)
    log_sum, error = _averaged(paths.log_weights, paths.families)
    sweeps = np.array([route.pilots * route.pilot.after, n_paths * route.paths.after])
    weighted = weighted_paths(paths.log_weights, paths.inclusion)
    return log_sum, error, _capped(np.average([learned, weighted], axis=0, weights=sweeps))


def _capped(p: Floats) -> Floats:
    """Limit estimates (n, K) to 1, and distribute their excess over the other components."""
    below = np.minimum(p, 1.0)
    room = 1.0 - below
    excess: Floats = (p - below).sum(axis=1) / room.sum(axis=1)
    return below + excess[:, None] * room


def _averaged(log_weights: Floats, families: Any) -> tuple[Floats, Floats]:
    """Log (n,) of the mean weight of paths (n, r), and its standard error, by their families."""
    n, n_paths = log_weights.shape
    log_sum = logsumexp(log_weights, axis=1) - np.log(n_paths)
    weights = np.zeros((n, n_paths))  # sum of weights per family, as only families are independent
    np.add.at(weights, (np.arange(n)[:, None], families), np.exp(log_weights - log_sum[:, None]))
    return log_sum, np.hypot(weights.std(axis=1, ddof=1) / np.sqrt(n_paths), 1.0 / n_paths)
