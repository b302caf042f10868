"""Supports of exactly L factors for rows in adaptive factor analysis, W given.

Exact up to `MOST_SETS` supports; beyond by annealed searches and annealed importance sampling. What
a row gets depends on its numbers and its seed only, not on blocks or threads.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from appca.models import set_tree
from appca.models.settings import MOST_SETS
from appca.models.supports import (
    AnnealedPaths,
    AnnealingSchedule,
    CollapsedModel,
    Floats,
    Members,
    RowSupports,
    Seeds,
    SupportEstimate,
    SupportMoments,
    indicators,
    scores_given,
)
from appca.models.threads import in_order, single_threaded_blas

T = TypeVar("T")

LEAST_ROWS, MOST_BLOCKS = 64, 64  # of blocks for threads; a call of a kernel takes 0.1 ms
SEED_BYTES = 2**19  # of the bits of rows that are processed together


def draw_seeds(rng: Generator, n: int) -> Seeds:
    """Draw a fresh seed a row."""
    return rng.integers(0, 2**64, n, dtype=np.uint64)


def row_seeds(X: NDArray[np.floating]) -> Seeds:
    """Make each row's seed from its own numbers, X (n, D): a random linear form of the bits."""
    factors = draw_seeds(np.random.default_rng(0), X.shape[1]) | np.uint64(1)
    form = np.empty(len(X), np.uint64)
    size = max(1, SEED_BYTES // (8 * X.shape[1]))
    for start in range(0, len(X), size):
        part = np.ascontiguousarray(X[start : start + size])
        bits = part.view(np.uint64 if X.dtype == np.float64 else np.uint32)
        form[start : start + size] = bits.astype(np.uint64, copy=False) @ factors
    return form


def search(
    rows: RowSupports, betas: Floats, model: CollapsedModel, keep: bool = False, weights: Any = None
) -> tuple[Members, SupportMoments]:
    """Sweep the slots of every row once for each beta; return members (n, L) and their moments.

    Members of -1 start greedily. Infinite betas take the most probable factor of each slot, 1 draws
    from the posterior. `keep` returns a row to its first support if f(S) ends lower.
    """
    from appca.models import slot_kernels as kernels
    from appca.models.slot_kernels import row_state

    n, K = rows.c.shape
    mine = rows._replace(members=rows.members.copy())
    out = SupportMoments(np.empty((n, K)), np.zeros((K, K)), np.empty(n))
    betas = np.asarray(betas, dtype=np.float64)
    counts = np.ones(n) if weights is None else weights

    def share(part: slice) -> Floats:
        second = np.zeros((K, K))
        moments = SupportMoments(out.H[part], second, out.value[part])
        room = row_state(K, mine.members.shape[1])
        some = RowSupports(mine.c[part], mine.members[part], mine.seeds[part])
        kernels.search((some, counts[part]), betas, keep, model, moments, room)
        return second

    for second in _share(share, n):
        np.add(out.second, second, out=out.second)
    return mine.members, out


def importance(
    rows: RowSupports, r: Floats, n_paths: int, schedule: AnnealingSchedule, model: CollapsedModel
) -> AnnealedPaths:
    """Estimate sum_S exp f(S) by annealed importance sampling from q(S).

    q is that of independent Bernoulli(r_k), r (n, K), given that L of them are 1. Only paths of
    different families are independent.
    """
    from appca.models import slot_kernels as kernels
    from appca.models.slot_kernels import row_state

    (n, K), L = rows.c.shape, rows.members.shape[1]
    families = np.empty((n, n_paths), np.int64)
    out = AnnealedPaths(np.empty((n, n_paths)), np.empty((n, n_paths, K)), families)

    def share(part: slice) -> None:
        mine = AnnealedPaths(out.log_weights[part], out.inclusion[part], families[part])
        w, of = row_state(K, L), kernels.walkers(n_paths, K, L)
        room = w, of, np.zeros((K + 1, L + 1))
        some = RowSupports(rows.c[part], rows.members[part], rows.seeds[part])
        kernels.importance(some, r[part], schedule, model, mine, room)

    deque(_share(share, n), maxlen=0)
    return out


def weighted_paths(log_weights: Floats, inclusion: Floats) -> Floats:
    """Average inclusion (n, paths, K) over the paths of each row by their weights."""
    return np.asarray(np.einsum("nr,nrk->nk", softmax(log_weights, axis=1), inclusion))


def _share(work: Callable[[slice], T], n: int) -> Iterator[T]:
    size = max(LEAST_ROWS, -(-n // MOST_BLOCKS))
    return in_order(work, [slice(start, start + size) for start in range(0, n, size)])


SETS_IN_PASSING = 256  # summed in every E step or sweep
HONEST_PATHS = 64  # from which stated errors hold on each of nine designs (docs/measurements.md)
RESTARTS, RESTARTS_OF_MANY = 4, 1  # measured, see factor_em
# From nearly flat to the posterior in eight sweeps, then to the best: missed in 29% of rows with
# many modes after four restarts, by sweeps from beta = 1 on in 48%.
ANNEALED = np.array([*((np.arange(1, 9) / 8.0) ** 3), *[math.inf] * 20])
GIBBS_SWEEPS = 10  # from the best support to a drawn one
MANY = 1000  # slots times factors from which a search is expensive, see `factor_em.WORST`
CHUNK = 4096  # rows whose paths are held at a time


class Route(NamedTuple):
    """How the sum of a row is estimated."""

    pilots: int  # pilot paths, from the uniform distribution
    pilot: AnnealingSchedule
    paths: AnnealingSchedule  # of the paths that count
    defensive: float  # weight of the uniform distribution in their base


# The base of the paths is learned from a pilot run, with a defensive mixture that excludes no
# support (Hesterberg 1995); with many factors more of it would spoil each first support.
_PILOT, _PATHS = (np.arange(8) / 7.0) ** 4, (np.arange(8) / 7.0) ** 2
LONG = Route(8, AnnealingSchedule(_PILOT, 4), AnnealingSchedule(_PATHS, 2), 0.1)
# Where pilot paths disagree, the posterior has modes that no single change connects, and a learned
# base would keep all paths out of some. Such rows start near the uniform base and rise slowly.
SPLIT = Route(8, LONG.pilot, AnnealingSchedule((np.arange(48) / 47.0) ** 3, 2), 0.9)
# With many slots and factors a sweep mostly forgets its beginning, as two agreeing pilots show.
_PILOT, _PATHS = np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0])
SHORT = Route(2, AnnealingSchedule(_PILOT, 6), AnnealingSchedule(_PATHS, 1), 0.01)
SAME = 0.7  # inclusion of a factor by two pilot paths that agree


def means(c: Floats, members: Members, model: CollapsedModel) -> Floats:
    """Posterior means of x * z given one set a row, (n, K): inv(Lam_S) c_S in S, zero elsewhere."""
    H = np.zeros(c.shape)
    with single_threaded_blas():  # the number of threads would decide about last bits
        for normal in scores_given(c, indicators(members, c.shape[1]), model):
            np.put_along_axis(H[normal.part], normal.members, normal.mean, axis=1)
    return H


def expected(c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds) -> Floats:
    """E[x * z | y], (n, K), over all sets; of the best set where they are more than `MOST_SETS`."""
    if math.comb(c.shape[1], n_active) <= MOST_SETS:
        return set_tree.posterior(c, model, n_active).H
    return means(c, best(c, model, n_active, seeds)[0], model)


def draw(
    rng: Generator, c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds
) -> NDArray[np.bool_]:
    """Draw a support of each row, (n, K) bool; beyond `MOST_SETS` by ten Gibbs sweeps."""
    if math.comb(c.shape[1], n_active) <= MOST_SETS:
        members = set_tree.weighed(c, model, n_active, rng.random(len(c))).drawn
    else:
        members = best(c, model, n_active, seeds)[0]
        rows = RowSupports(c, members, draw_seeds(rng, len(c)))
        members = search(rows, np.ones(GIBBS_SWEEPS), model)[0]
    return indicators(members, c.shape[1])


def best(c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds) -> tuple[Members, Floats]:
    """Most probable set of each row, (n, L), and its f(S)."""
    if math.comb(c.shape[1], n_active) <= MOST_SETS:
        return set_tree.weighed(c, model, n_active)[:2]
    rows = RowSupports(c, np.full((len(c), n_active), -1), seeds)
    members, searched = search(rows, ANNEALED[-1:], model)
    few = c.shape[1] * n_active <= MANY
    for i in range(RESTARTS if few else RESTARTS_OF_MANY):
        rows = RowSupports(c, members, seeds + np.uint64(i + 1))
        members, searched = search(rows, ANNEALED, model, keep=True)
    return np.sort(members, axis=1), searched.value


def root_mean_square(H: Floats, members: Members, weights: Floats | None = None) -> Floats:
    """Root mean square (K,) of each factor's score over the rows that use it; 1 if none does."""
    counts = np.ones(len(H)) if weights is None else weights
    used = np.bincount(members.ravel(), np.repeat(counts, members.shape[1]), H.shape[1])
    power = counts @ np.square(H) / np.where(used > 0.0, used, 1.0)
    return np.sqrt(np.where(power > 0.0, power, 1.0))


def summed(
    c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds, n_paths: int
) -> SupportEstimate:
    """Sum over all sets of a row: exactly, or by `n_paths` importance paths a row."""
    n, K = c.shape
    count = math.comb(K, n_active)
    if count <= MOST_SETS:
        exact = set_tree.posterior(c, model, n_active)
        method = f"exact, by enumeration of {count} sets"
        return SupportEstimate(exact.log_sum, np.zeros(n), exact.inclusion, method)
    method = f"annealed importance sampling, {n_paths} paths a row"
    if n_paths < HONEST_PATHS:
        method += f" (its errors may be too small; with {HONEST_PATHS} they hold)"
    log_sum, error, inclusion = np.empty(n), np.empty(n), np.empty((n, K))
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        none = np.full((len(c[part]), n_active), -1)
        rows = RowSupports(c[part], none, seeds[part])
        log_sum[part], error[part], inclusion[part] = _sampled(rows, model, n_paths)
    return SupportEstimate(log_sum, error, inclusion, method)


def _sampled(rows: RowSupports, model: CollapsedModel, n_paths: int) -> tuple[Floats, ...]:
    (n, K), L = rows.c.shape, rows.members.shape[1]
    longer = LONG._replace(pilots=max(n_paths // 2, 4))
    many = K * L > MANY
    route, other = (SHORT, longer._replace(defensive=SHORT.defensive)) if many else (longer, SPLIT)
    pilot = _pilot(rows, route, model)
    agree = np.ptp(pilot, axis=1).max(axis=1) < SAME
    part, others = (RowSupports(*(array[some] for array in rows)) for some in (agree, ~agree))
    again = _pilot(others, other, model) if many else pilot[~agree]
    estimates = np.empty(n), np.empty(n), np.empty((n, K))
    other = other._replace(pilots=again.shape[1])
    halves = (agree, part, pilot[agree], route), (~agree, others, again, other)
    for some, mine, first, way in halves:
        for array, new in zip(estimates, _annealed(mine, first, way, model, n_paths), strict=True):
            array[some] = new
    return estimates


def _pilot(rows: RowSupports, route: Route, model: CollapsedModel) -> Floats:
    uniform = np.full(rows.c.shape, rows.members.shape[1] / rows.c.shape[1])
    return importance(rows, uniform, route.pilots, route.pilot, model).inclusion


def _annealed(
    rows: RowSupports, pilot: Floats, route: Route, model: CollapsedModel, n_paths: int
) -> tuple[Floats, Floats, Floats]:
    (n, K), L = rows.c.shape, rows.members.shape[1]
    learned, d = pilot.mean(axis=1), route.defensive
    again = rows._replace(seeds=rows.seeds + np.uint64(1))
    base = (1.0 - d) * _capped(learned) + d * L / K
    paths = importance(again, base, n_paths, route.paths, model)
    log_sum = logsumexp(paths.log_weights, axis=1) - np.log(n_paths)
    weights = np.zeros((n, n_paths))  # of families, which alone are independent
    each = np.exp(paths.log_weights - log_sum[:, None])
    np.add.at(weights, (np.arange(n)[:, None], paths.families), each)
    error = np.hypot(weights.std(axis=1, ddof=1) / np.sqrt(n_paths), 1.0 / n_paths)
    sweeps = np.array([route.pilots * route.pilot.after, n_paths * route.paths.after])
    weighted = weighted_paths(paths.log_weights, paths.inclusion)
    inclusion = np.average([learned, weighted], axis=0, weights=sweeps)
    return log_sum, error, _capped(inclusion)


def _capped(p: Floats) -> Floats:
    """Make estimates (n, K) at most 1, and share their excess among the others."""
    below = np.minimum(p, 1.0)
    room = 1.0 - below
    excess: Floats = (p - below).sum(axis=1) / room.sum(axis=1)
    return below + excess[:, None] * room
