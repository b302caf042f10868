"""Supports and likelihoods of rows in adaptive factor analysis with W given.

Exact by enumeration while there are at most `MOST_SETS` supports. Beyond, the MAP support comes
from annealed searches, inclusion probabilities from Gibbs sweeps, and the sum over supports from
annealed importance sampling; every estimate is a function of the row alone (see
`row_blocks.row_seeds`).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from appca.models.algebra.threads import single_threaded_blas
from appca.models.supports import enumeration, given_supports, row_blocks
from appca.models.supports.row_supports import (
    AnnealingSchedule,
    CollapsedModel,
    Floats,
    Members,
    RowSupports,
    Seeds,
    SupportEstimate,
)

MOST_SETS = 12_870  # summed once, for a question about rows: any L at K = 16, under 1 ms a row
SETS_IN_PASSING = 256  # summed in every E step or sweep
HONEST_PATHS = 64  # from which stated errors hold on each of nine designs (docs/measurements.md)
RESTARTS, RESTARTS_OF_MANY = 4, 1  # measured, see factor_em
# From nearly flat to the posterior in eight sweeps, then to the best. Measured on rows with many
# modes (K = 16, L = 8, D = 10): four of these miss the best set in 29% of rows, by 0.2 nats on
# average, where sweeps from beta = 1 on miss it in 48%, by 1.1 nats.
ANNEALED = np.array([*((np.arange(1, 9) / 8.0) ** 3), *[math.inf] * 20])
GIBBS_SWEEPS = 10  # from the best support to a drawn one
MANY = 1000  # slots times factors from which a search is dear, see `factor_em.WORST`
CHUNK = 4096  # rows whose paths are held at a time


class Route(NamedTuple):
    """How the sum of a row is estimated."""

    pilots: int  # pilot paths, from the uniform distribution
    pilot: AnnealingSchedule
    paths: AnnealingSchedule  # of the paths that count
    defensive: float  # weight of the uniform distribution in their base


# The base distribution of the paths is learned from a pilot run that starts from the uniform one.
# A defensive mixture with that (Hesterberg 1995) excludes no support; with many factors more of it
# would put a wrong one into each first support. Nats off by 16 paths, against enumeration at
# K = 16, L = 8: 0.09 where a row has one likely set, 0.03 where it has a thousand, 0.4 to 0.6 where
# it has dozens that no single change connects (D = 10).
LONG = Route(
    8,
    AnnealingSchedule((np.arange(8) / 7.0) ** 4, 4),
    AnnealingSchedule((np.arange(8) / 7.0) ** 2, 2),
    0.1,
)
# Where pilot paths disagree, the posterior has modes that no single change connects. A base learned
# from some of them keeps all paths out of the others, and the weights do not show what is missing:
# at K = 18, L = 7, D = 10 and noise of standard deviation 0.1, where nine of ten rows are such, the
# errors of 16 paths by LONG are 7 times the stated ones. Such rows start near the uniform base and
# rise slowly: 2 times, and 1.0 with 64 paths (root mean square over rows, docs/measurements.md).
SPLIT = Route(8, LONG.pilot, AnnealingSchedule((np.arange(48) / 47.0) ** 3, 2), 0.9)
# With many slots and factors a sweep mostly leaves nothing of where it began, and two pilot paths
# that agree tell so: on digits at K = 100, L = 50 no two of 60 rows differ by more than 0.61 in the
# inclusion of any factor, and where 16 short paths are more than 1.5 nats off, two do by 0.98 or
# more. 0.29 nats off on digits after 62 sweeps; rows whose pilots disagree go the long way.
SHORT = Route(
    2,
    AnnealingSchedule(np.array([0.0, 1.0]), 6),
    AnnealingSchedule(np.array([0.0, 0.5, 1.0]), 1),
    0.01,
)
SAME = 0.7  # inclusion of a factor by two pilot paths that agree


def means(c: Floats, members: Members, model: CollapsedModel) -> Floats:
    """Posterior means of x * z given one set a row, (n, K): inv(Lam_S) c_S in S, zero elsewhere."""
    n, L = members.shape
    H = np.zeros(c.shape)
    size = max(1, enumeration.BLOCK_FLOATS // L**2)
    with single_threaded_blas():  # whose number would decide the last bits of large sets
        for start in range(0, n, size):
            S = members[start : start + size]
            rows = np.arange(start, start + len(S))[:, None]
            Lam = model.A[S[:, :, None], S[:, None, :]] + model.prior * np.eye(L)
            H[rows, S] = np.linalg.solve(Lam, c[rows, S][:, :, None])[:, :, 0]
    return H


def expected(c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds) -> Floats:
    """E[x * z | y], (n, K), over all sets; of the best set where they are more than `MOST_SETS`."""
    if math.comb(c.shape[1], n_active) <= MOST_SETS:
        return enumeration.posterior(enumeration.table(model, n_active), c).H
    return means(c, best(c, model, n_active, seeds)[0], model)


def draw(
    rng: np.random.Generator, c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds
) -> NDArray[np.bool_]:
    """Draw a support of each row, (n, K) bool, from its posterior.

    Where there are more than `MOST_SETS`, ten Gibbs sweeps from the best one found.
    """
    if math.comb(c.shape[1], n_active) <= MOST_SETS:
        t = enumeration.table(model, n_active)
        return given_supports.draw_supports(rng, c, t)
    members = best(c, model, n_active, seeds)[0]
    rows = RowSupports(c, members, row_blocks.seeds(rng, len(c)))
    members = row_blocks.search(rows, np.ones(GIBBS_SWEEPS), model)[0]
    Z = np.zeros(c.shape, dtype=bool)
    np.put_along_axis(Z, members, True, axis=1)
    return Z


def best(c: Floats, model: CollapsedModel, n_active: int, seeds: Seeds) -> tuple[Members, Floats]:
    """Most probable set of each row, (n, L), and its f(S)."""
    if math.comb(c.shape[1], n_active) <= MOST_SETS:
        return enumeration.best(enumeration.table(model, n_active), c)
    rows = RowSupports(c, np.full((len(c), n_active), -1), seeds)
    members, searched = row_blocks.search(rows, ANNEALED[-1:], model)
    few = c.shape[1] * n_active <= MANY
    for i in range(RESTARTS if few else RESTARTS_OF_MANY):
        rows = RowSupports(c, members, seeds + np.uint64(i + 1))
        members, searched = row_blocks.search(rows, ANNEALED, model, keep=True)
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
        exact = enumeration.posterior(enumeration.table(model, n_active), c)
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


def _sampled(
    rows: RowSupports, model: CollapsedModel, n_paths: int
) -> tuple[Floats, Floats, Floats]:
    """Log sum, its standard error and inclusion probabilities by annealed importance sampling.

    Rows whose pilot paths disagree go a longer way than the others.
    """
    (n, K), L = rows.c.shape, rows.members.shape[1]
    longer = LONG._replace(pilots=max(n_paths // 2, 4))
    many = K * L > MANY
    route, other = (SHORT, longer._replace(defensive=SHORT.defensive)) if many else (longer, SPLIT)
    pilot = _pilot(rows, route, model)
    agree = np.ptp(pilot, axis=1).max(axis=1) < SAME
    part, others = (RowSupports(*(array[some] for array in rows)) for some in (agree, ~agree))
    again = _pilot(others, other, model) if many else pilot[~agree]
    estimates = np.empty(n), np.empty(n), np.empty((n, K))
    for some, mine, first, way in (
        (agree, part, pilot[agree], route),
        (~agree, others, again, other._replace(pilots=again.shape[1])),
    ):
        for array, new in zip(estimates, _annealed(mine, first, way, model, n_paths), strict=True):
            array[some] = new
    return estimates


def _pilot(rows: RowSupports, route: Route, model: CollapsedModel) -> Floats:
    """Inclusion (n, pilots, K) over pilot paths."""
    uniform = np.full(rows.c.shape, rows.members.shape[1] / rows.c.shape[1])
    return row_blocks.importance(rows, uniform, route.pilots, route.pilot, model).inclusion


def _annealed(
    rows: RowSupports, pilot: Floats, route: Route, model: CollapsedModel, n_paths: int
) -> tuple[Floats, Floats, Floats]:
    """Anneal paths from what pilot paths (n, pilots, K) included.

    The error is that of a mean of weights, carried to its log (delta method), and 1/n_paths: what
    happens to one path in n_paths goes unseen every third time. Inclusion is averaged over the
    weighted paths and the pilot paths, in proportion to their sweeps.
    """
    (n, K), L = rows.c.shape, rows.members.shape[1]
    learned, d = pilot.mean(axis=1), route.defensive
    again = rows._replace(seeds=rows.seeds + np.uint64(1))
    base = (1.0 - d) * _capped(learned) + d * L / K
    paths = row_blocks.importance(again, base, n_paths, route.paths, model)
    log_sum = logsumexp(paths.log_weights, axis=1) - np.log(n_paths)
    weights = np.zeros((n, n_paths))  # of families, which alone are independent
    each = np.exp(paths.log_weights - log_sum[:, None])
    np.add.at(weights, (np.arange(n)[:, None], paths.families), each)
    error = np.hypot(weights.std(axis=1, ddof=1) / np.sqrt(n_paths), 1.0 / n_paths)
    sweeps = np.array([route.pilots * route.pilot.after, n_paths * route.paths.after])
    weighted = row_blocks.weighted(paths.log_weights, paths.inclusion)
    inclusion = np.average([learned, weighted], axis=0, weights=sweeps)
    return log_sum, error, _capped(inclusion)


def _capped(p: Floats) -> Floats:
    """Make estimates (n, K) at most 1, and give their excess to the others as these have room."""
    below = np.minimum(p, 1.0)
    room = 1.0 - below
    excess: Floats = (p - below).sum(axis=1) / room.sum(axis=1)
    return below + excess[:, None] * room
