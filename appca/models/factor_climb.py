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

from appca.models import ica
from appca.models.blocks import Members
from appca.models.factor_em import (
    Settings,
    State,
    Sums,
    expect_all,
    expect_sets,
    extrapolate,
    maximise,
)
from appca.models.gaussian import Array
from appca.models.ica import Start
from appca.models.loop import (
    STOPPED,
    WINDOW,
    Callback,
    Climb,
    accelerated,
    iterate,
    plain,
    watcher,
)
from appca.models.rows import Rows, transposed_product
from appca.models.spectrum import Thin, lower, thin

__all__ = ["Begin", "Course", "Fit", "begin_given", "begin_named", "climb", "fit"]

THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem is cheap beside the passes it saves

FLOOR_REACHED = "the noise variance reached its floor, 1e-8 of the mean feature variance"


class Course(NamedTuple):
    """How the fit goes."""

    settings: Settings
    exact: bool  # sum over all sets, or one set a row
    annealing: int  # passes with drawn sets
    max_iter: int
    tol: float  # nats a row
    least_change: float  # share of slots
    callback: Callback | None


class Fit(NamedTuple):
    """Where EM ended."""

    state: State
    sums: Sums  # of that state
    members: Members | None  # (N, L) the sets given to rows, if they were
    log_likelihoods: list[float]
    stop_reason: str


# (rng, rows to start on, their thin coordinates if they are some) -> first loadings
Begin = Callable[[np.random.Generator, Rows, Thin | None], Start]


class Given(NamedTuple):
    """State of EM with one set a row."""

    state: State
    members: Members  # (N, L)
    worth: Array | None  # (N,) log p(y_n | S_n)
    changed: float  # share of the slots that the last pass changed
    passes: int


def begin_named(
    name: str, n_components: int, n_active: int, rng: np.random.Generator, rows: Rows, *_: object
) -> Start:
    """Start as `ica.NAMED` says."""
    return ica.NAMED[name](rng, rows, n_components, n_active)


def begin_given(
    W: Array, rows: Rows, _rng: np.random.Generator, work: Rows, space: Thin | None
) -> Start:
    """Start from loadings W (D, K) in the features of `rows`."""
    return ica.given(work, W if space is None else lower(W, space, rows))


def fit(
    rng: np.random.Generator, rows: Rows, begins: list[tuple[str, Begin]], course: Course
) -> Fit:
    """Fit from every start and keep the likeliest.

    W never leaves the row space, so fewer rows than features are fitted in coordinates of theirs.
    """
    n, d = rows.X.shape
    space = thin(rows) if n < d and n <= THIN_LIMIT else None
    work = rows if space is None else space.rows
    fits: list[Fit] = []
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


def climb(rng: np.random.Generator, start: Start, rows: Rows, course: Course, stage: str) -> Fit:
    """Fit from one start."""
    K = start.W.shape[1]
    course = course._replace(annealing=max(course.annealing, start.annealing))
    state = State(start.W, np.zeros(K), max(start.noise, course.settings.floor))
    if course.exact:
        return _climb_all(state, rows, course, stage)
    return _climb_sets(rng, state, rows, course, stage)


def _climb_all(start: State, rows: Rows, course: Course, stage: str) -> Fit:
    settings = course.settings

    def advance(state: State) -> tuple[float, State]:
        sums = expect_all(state, rows, settings)
        if not math.isfinite(sums.log_likelihood):
            return -math.inf, state
        return sums.log_likelihood, maximise(sums, state, rows, settings)

    ended = iterate(
        accelerated(advance, start, partial(extrapolate, settings=settings)),
        tol=course.tol * len(rows.X),
        max_iter=course.max_iter,
        watch=watcher(course.callback, stage, course.max_iter),
        halt=lambda state: FLOOR_REACHED if state.noise <= settings.floor else None,
    )
    sums = expect_all(ended.state, rows, settings)
    return Fit(ended.state, sums, None, ended.log_likelihoods, ended.stop_reason)


def _climb_sets(
    rng: np.random.Generator, start: State, rows: Rows, course: Course, stage: str
) -> Fit:
    settings = course.settings
    seen: list[tuple[Sums, Members]] = []

    def advance(given: Given, *, draw: bool = False) -> tuple[float, Given]:
        chosen = given.members, given.worth
        sums, members, worth = expect_sets(rng, given.state, rows, settings, chosen, draw=draw)
        seen[:] = [(sums, members)]
        state = maximise(sums, given.state, rows, settings)
        changed = _changed(given.members, members, len(sums.second))
        return sums.log_likelihood, Given(state, members, worth, changed, given.passes + 1)

    def halt(given: Given) -> str | None:
        if given.state.noise <= settings.floor:
            return FLOOR_REACHED
        if given.passes >= WINDOW and given.changed < course.least_change:
            return f"converged: a pass changed less than {course.least_change:g} of the slots"
        return None

    none = np.full((len(rows.X), settings.n_active), -1, dtype=np.int64)
    given, stopped = Given(start, none, None, 1.0, 0), False
    watch = watcher(course.callback, f"{stage}, annealing", course.annealing)
    for i in range(1, course.annealing + 1):
        value, given = advance(given, draw=True)
        stopped = watch(i, value)
        if stopped:
            break
    ended: Climb[Given] = iterate(
        plain(advance, given._replace(passes=0)),
        tol=course.tol * len(rows.X),
        max_iter=1 if stopped else course.max_iter,
        watch=watcher(None if stopped else course.callback, stage, course.max_iter),
        halt=halt,
    )
    # The last pass is the one that looked at the state the climb ended in.
    sums, members = seen[0]
    reason = STOPPED if stopped else ended.stop_reason
    return Fit(ended.state.state, sums, members, ended.log_likelihoods, reason)


def _changed(before: Members, after: Members, n_factors: int) -> float:
    """Share of the slots whose factor was not in the row's set before."""
    n, L = after.shape
    member = np.zeros((n, n_factors), dtype=bool)
    if before.min() >= 0:
        np.put_along_axis(member, before, True, axis=1)
    return float(1.0 - np.take_along_axis(member, after, axis=1).sum() / (n * L))
