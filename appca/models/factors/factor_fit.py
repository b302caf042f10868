"""A whole fit of adaptive factor analysis by EM: start, annealed passes, climb, report.

With few sets a pass sums over all of them and EM climbs the likelihood itself. With many, every row
is given to one set: first drawn from its posterior (annealing), then the best found, which climbs
log p(Y, Z), the paper's objective.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import (
    STOPPED,
    WINDOW,
    Callback,
    EMResult,
    iterate,
    plain,
    swinging,
    watcher,
)
from appca.models.factors.factor_em import (
    FactorSettings,
    FactorState,
    FactorStatistics,
    expect_all,
    expect_sets,
    extend,
    maximise,
)
from appca.models.rows import independent_components
from appca.models.rows.independent_components import Start
from appca.models.rows.observations import Rows, about, centre_of, transposed_product
from appca.models.rows.spectrum import Thin, lower, thin
from appca.models.supports.row_supports import Members

__all__ = ["Begin", "FactorEMControl", "FactorFit", "begin_given", "begin_named", "climb", "fit"]

THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem is cheap beside the passes it saves

# Rows, and nats a row over ten passes, to settle on before all rows; then again on four times as
# many to a quarter of it.
SAMPLE_ROWS, SAMPLE_ROWS_PER_FACTOR, SAMPLE_TOL = 2500, 400, 1e-2
SAMPLE_GROWTH, MUCH_LESS = 4, 3  # a sample is at most a third of the rows

FLOOR_REACHED = "the noise variance reached its floor, 1e-8 of the mean feature variance"


class FactorEMControl(NamedTuple):
    """How the fit goes."""

    settings: FactorSettings
    exact: bool  # sum over all sets, or one set a row
    annealing: int  # passes with drawn sets
    max_iter: int
    tol: float  # nats a row
    least_change: float  # share of slots
    callback: Callback | None


class FactorFit(NamedTuple):
    """Where EM ended."""

    state: FactorState
    sums: FactorStatistics  # of that state
    members: Members | None  # (N, L) the sets given to rows, if they were
    log_likelihoods: list[float]
    stop_reason: str


# (rng, rows to start on, their thin coordinates if they are some) -> first loadings
Begin = Callable[[np.random.Generator, Rows, Thin | None], Start]


class ClassificationState(NamedTuple):
    """State of EM with one set a row."""

    state: FactorState
    members: Members  # (N, L)
    worth: Array | None  # (N,) log p(y_n | S_n)
    changed: float  # share of the slots that the last pass changed
    passes: int


def begin_named(
    name: str, n_components: int, n_active: int, rng: np.random.Generator, rows: Rows, *_: object
) -> Start:
    """Start as `ica.NAMED` says."""
    return independent_components.NAMED[name](rng, rows, n_components, n_active)


def begin_given(
    W: Array, rows: Rows, _rng: np.random.Generator, work: Rows, space: Thin | None
) -> Start:
    """Start from loadings W (D, K) in the features of `rows`."""
    return independent_components.given(work, W if space is None else lower(W, space, rows))


def fit(
    rng: np.random.Generator, rows: Rows, begins: list[tuple[str, Begin]], course: FactorEMControl
) -> FactorFit:
    """Fit from every start and keep the likeliest.

    W never leaves the row space, so fewer rows than features are fitted in coordinates of theirs.
    """
    n, d = rows.X.shape
    space = thin(rows) if n < d and n <= THIN_LIMIT else None
    work = rows if space is None else space.rows
    fits: list[FactorFit] = []
    for i, (name, begin) in enumerate(begins, start=1):
        stage = "fit" if len(begins) == 1 else f"start {i} of {len(begins)}: {name}"
        fits.append(climb(rng, begin(rng, work, space), work, course, stage))
        if fits[-1].stop_reason == STOPPED:
            break
    leader = max(fits, key=lambda one: one.sums.log_likelihood)
    if fits[-1].stop_reason == STOPPED:
        leader = leader._replace(stop_reason=STOPPED)
    if space is None:
        return leader
    W = transposed_product(rows, space.duals @ leader.state.W)
    return leader._replace(state=leader.state._replace(W=W))


def climb(
    rng: np.random.Generator, start: Start, rows: Rows, course: FactorEMControl, stage: str
) -> FactorFit:
    """Fit from one start."""
    K = start.W.shape[1]
    course = course._replace(annealing=max(course.annealing, start.annealing))
    state = FactorState(start.W, np.zeros(K), max(start.noise, course.settings.floor))
    if course.exact:
        state, stopped = _settled(rng, state, rows, course)
        if stopped:  # a single step, so that the fit is complete
            short = course._replace(max_iter=1, callback=None)
            return _climb_all(state, rows, short, stage)._replace(stop_reason=STOPPED)
        return _climb_all(state, rows, course, stage)
    return _climb_sets(rng, state, rows, course, stage)


def _settled(
    rng: np.random.Generator, state: FactorState, rows: Rows, course: FactorEMControl
) -> tuple[FactorState, bool]:
    """Climb on samples of the rows first, where there are many more; and whether it was stopped.

    Columns trade factors slowly, and a sample tells where to almost as well as all rows do. The
    climb over all rows alone decides where EM ends. Samples lie about their own mean, because a
    learned one has the form origin - W shift only there.
    """
    n, K = len(rows.X), state.W.shape[1]
    size, tol = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_FACTOR * K), SAMPLE_TOL
    while MUCH_LESS * size <= n:
        drawn = rows.X[np.sort(rng.choice(n, size, replace=False))]
        sample = about(drawn, centre_of(drawn) if course.settings.learn_mean else rows.origin)
        part = course._replace(tol=max(tol, course.tol))
        ended = _ascent(state, sample, part, f"settle on {size:,} rows", n / size)
        state = ended.state
        if ended.stop_reason == STOPPED:
            return state, True
        size, tol = SAMPLE_GROWTH * size, tol / SAMPLE_GROWTH
    return state, False


def _climb_all(start: FactorState, rows: Rows, course: FactorEMControl, stage: str) -> FactorFit:
    ended = _ascent(start, rows, course, stage)
    sums = expect_all(ended.state, rows, course.settings)
    return FactorFit(ended.state, sums, None, ended.log_likelihoods, ended.stop_reason)


def _ascent(
    start: FactorState, rows: Rows, course: FactorEMControl, stage: str, scale: float = 1.0
) -> EMResult[FactorState]:
    """Climb the likelihood of the rows; the callback sees `scale` times it.

    With momentum: on 10,000 digits, K = 10, L = 3, it ends after 134 passes where SQUAREM's leaps
    end after 348, 0.06 nats a row higher there, one lower on rows held back.
    """
    settings = course.settings

    def advance(state: FactorState) -> tuple[float, FactorState]:
        sums = expect_all(state, rows, settings)
        if not math.isfinite(sums.log_likelihood):
            return -math.inf, state
        return sums.log_likelihood, maximise(sums, state, rows, settings)

    return iterate(
        swinging(advance, start, partial(extend, settings=settings)),
        tol=course.tol * len(rows.X),
        max_iter=course.max_iter,
        watch=watcher(course.callback, stage, course.max_iter, scale),
        halt=lambda state: FLOOR_REACHED if state.noise <= settings.floor else None,
    )


def _climb_sets(
    rng: np.random.Generator, start: FactorState, rows: Rows, course: FactorEMControl, stage: str
) -> FactorFit:
    settings = course.settings
    seen: list[tuple[FactorStatistics, Members]] = []

    def advance(
        given: ClassificationState, *, draw: bool = False
    ) -> tuple[float, ClassificationState]:
        chosen = given.members, given.worth
        sums, members, worth = expect_sets(rng, given.state, rows, settings, chosen, draw=draw)
        seen[:] = [(sums, members)]
        state = maximise(sums, given.state, rows, settings)
        changed = _changed(given.members, members, len(sums.second))
        return sums.log_likelihood, ClassificationState(
            state, members, worth, changed, given.passes + 1
        )

    def halt(given: ClassificationState) -> str | None:
        if given.state.noise <= settings.floor:
            return FLOOR_REACHED
        if given.passes >= WINDOW and given.changed < course.least_change:
            return f"converged: a pass changed less than {course.least_change:g} of the slots"
        return None

    none = np.full((len(rows.X), settings.n_active), -1, dtype=np.int64)
    given, stopped = ClassificationState(start, none, None, 1.0, 0), False
    watch = watcher(course.callback, f"{stage}, annealing", course.annealing)
    for i in range(1, course.annealing + 1):
        value, given = advance(given, draw=True)
        stopped = watch(i, value)
        if stopped:
            break
    ended: EMResult[ClassificationState] = iterate(
        plain(advance, given._replace(passes=0)),
        tol=course.tol * len(rows.X),
        max_iter=1 if stopped else course.max_iter,
        watch=watcher(None if stopped else course.callback, stage, course.max_iter),
        halt=halt,
    )
    # The last pass is the one that looked at the state the climb ended in.
    sums, members = seen[0]
    reason = STOPPED if stopped else ended.stop_reason
    return FactorFit(ended.state.state, sums, members, ended.log_likelihoods, reason)


def _changed(before: Members, after: Members, n_factors: int) -> float:
    """Share of the slots whose factor was not in the row's set before."""
    n, L = after.shape
    member = np.zeros((n, n_factors), dtype=bool)
    if before.min() >= 0:
        np.put_along_axis(member, before, True, axis=1)
    return float(1.0 - np.take_along_axis(member, after, axis=1).sum() / (n * L))
