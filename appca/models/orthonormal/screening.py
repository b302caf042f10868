"""A short race between starts, cheap because it sees the data small.

No single start wins on real data (PCA on COIL-20, quartimax on MNIST), so a few are tried. They
race on a sample of the rows in the leading principal coordinates, where a pass costs a fraction of
one over all the data. The winner settles there, then on all rows: in the same coordinates (EM with
W held to a subspace), or, where there are many rows, by strides (see `strides`). Its state starts
the fit proper, which alone decides where EM ends.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import (
    CONVERGED,
    STOPPED,
    WINDOW,
    Callback,
    EMResult,
    iterate,
    watcher,
)
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMSettings, Passes, SubspaceState
from appca.models.orthonormal.starts import (
    ANNEALED_PASSES,
    Candidate,
    annealed,
    ascent,
    first_state,
    sprint,
)
from appca.models.orthonormal.variance_reduced_em import Sample, strides, widened
from appca.models.rows.observations import Block, Observations, Rows, about, centre_of, project
from appca.models.rows.spectrum import principal

__all__ = ["Arena", "EMControl", "ScreenedStart", "arena", "race", "search"]

RACE_PASSES = 20  # of each candidate, after annealing
SETTLE_PASSES = 200
RACE_TOL = 1e-2  # nats a row over ten passes; below it EM fits the sample rather than the data

# Measured on MNIST and COIL-20: smaller samples and fewer coordinates save no time, because the
# fit proper then starts further from its end; larger ones save no passes.
SAMPLE_ROWS_PER_COMPONENT, MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 400, 2500, 10_000
COORDINATES_PER_COMPONENT, MIN_COORDINATES = 8, 64
SECOND_SAMPLE = 4  # times the first one, before all rows: passes over these are the cheaper ones
MAX_SETTLE_BYTES = 2**27  # of coordinates of all rows, whatever the size of the data

# Where strides follow (see `strides`), rough is enough: each looks at all rows, and adds the
# directions it finds to the coordinates, of which half as many then do. Measured on MNIST, 60,000
# rows, K = 10, L = 3: 1.9 s where twice the coordinates and a third of the tolerance take 2.5 s.
ROUGH_TOL = 3e-2
ROUGH_PASSES = 50  # at K = 500 two hundred fit 10,000 rows instead of the data
MAX_SCORES_BYTES = 2**29  # of principal scores of many rows, for starts that want them
MAX_SAMPLE_BYTES = 2**28  # of a sample in all features
MOST_STRIDES = 100

# After ten passes over all rows in leading coordinates that gained nothing, only the directions
# outside can gain. Those converge within a pass or two, because no other component wants them.
SETTLED_WINDOW = 3


class Arena(NamedTuple):
    """The rows in leading principal coordinates; basis @ W leads back."""

    sample: Rows  # drawn rows, or all of them
    more: Array | None  # (n, d) a larger draw as it is, where there are many more rows yet
    basis: Array  # (d, q) orthonormal


class ScreenedStart(NamedTuple):
    """Where the fit proper starts."""

    climb: EMResult[SubspaceState]  # in the coordinates of the data
    window: int  # passes over all rows that must yet gain nothing


class EMControl(NamedTuple):
    """What all stages of a fit share."""

    settings: EMSettings
    callback: Callback | None
    max_iter: int  # bound on every stage
    tol: float  # nats a row over ten passes, where all rows are looked at
    accelerate: bool  # whether the fit proper leaps; the search always does
    n_rows: int  # log-likelihoods of fewer rows are reported as if of so many

    def run(
        self,
        stage: str,
        path: Iterator[tuple[float, SubspaceState]],
        rows: Observations,
        passes: int,
        tol: float,
        *,
        window: int = WINDOW,
    ) -> EMResult[SubspaceState]:
        """Follow a path for at most so many passes; `tol` in nats a row over ten of them."""
        limit, n = min(passes, self.max_iter), rows.n
        watch = watcher(self.callback, stage, limit, self.n_rows / n)
        return iterate(path, tol=tol * n, max_iter=limit, window=window, watch=watch)


def search(
    rng: np.random.Generator, passes: Passes, field: list[Candidate], course: EMControl
) -> ScreenedStart:
    """Race, settle, and return the winner in the coordinates of all rows.

    If its reason to stop is the callback's, then so should be the fit's.
    """
    rows = passes.rows
    ring = arena(rng, rows, course.settings)
    run = race(rng, ring.sample, field, course, partial(_scores, rng, rows, ring))
    if ring.sample.n < rows.n:
        last = ring.more is None
        tol, most = (RACE_TOL, SETTLE_PASSES) if last else (ROUGH_TOL, ROUGH_PASSES)
        run = _settle(run, ring.sample, course, tol, most)
    run = run._replace(state=_lifted(run.state, ring.basis))
    if ring.more is not None and run.stop_reason != STOPPED:
        sample = Sample(ring.more, rows.origin, ring.basis)
        run = _stride_on_all(run, passes, sample, course)
        if run.stop_reason.startswith(CONVERGED):
            return ScreenedStart(run, window=1)
    width = ring.basis.shape[1] + len(run.state.shift)
    small = rows.n * width * rows.dtype.itemsize <= MAX_SETTLE_BYTES
    if run.stop_reason == STOPPED or width > rows.d / 2 or not small:
        return ScreenedStart(run, WINDOW)
    run = _settle_on_all(run, passes, ring.basis, course)
    return ScreenedStart(run, SETTLED_WINDOW if run.stop_reason.startswith(CONVERGED) else WINDOW)


def _settle(
    run: EMResult[SubspaceState],
    rows: Rows,
    course: EMControl,
    tol: float,
    most: int = SETTLE_PASSES,
) -> EMResult[SubspaceState]:
    if run.stop_reason == STOPPED:
        return run
    path = ascent(run.state, Passes(rows, course.settings))
    return course.run(f"settle on {rows.n:,} rows", path, rows, most, tol)


def _stride_on_all(
    run: EMResult[SubspaceState], passes: Passes, sample: Sample, course: EMControl
) -> EMResult[SubspaceState]:
    """Go on with all rows and twenty passes over the sample for each pass over them."""
    path = strides(run.state, passes, sample)
    stage = f"stride over {passes.rows.n:,} rows"
    return course.run(stage, path, passes.rows, MOST_STRIDES, WINDOW * course.tol, window=1)


def _settle_on_all(
    run: EMResult[SubspaceState], passes: Passes, basis: Array, course: EMControl
) -> EMResult[SubspaceState]:
    """Go on with all rows, in coordinates that hold the next EM step from where `run` ended.

    The leading coordinates of a sample leave out what the components have in the others. One step
    with all features tells what that is, and its K directions join the basis.
    """
    rows, (value, state) = passes.rows, passes(run.state)
    wider = widened(basis, state.W)
    inside = state._replace(W=polar(wider.T @ state.W))
    part = _coordinates(rows, wider)
    run = _settle(run._replace(state=inside, log_likelihood=value), part, course, course.tol)
    return run._replace(state=_lifted(run.state, wider))


def _lifted(state: SubspaceState, basis: Array) -> SubspaceState:
    return state._replace(W=polar(basis @ state.W))


def arena(rng: np.random.Generator, rows: Observations, settings: EMSettings) -> Arena:
    """Draw the sample of rows and find its leading principal coordinates.

    A learned mean has the form origin - W shift only about the mean of the rows at hand, so
    samples are taken about their own.
    """
    n, d = rows.n, rows.d
    K = settings.n_components
    fitting = max(MAX_SAMPLE_BYTES // (d * rows.dtype.itemsize), MIN_SAMPLE_ROWS)
    size = max(SAMPLE_ROWS_PER_COMPONENT * K, MIN_SAMPLE_ROWS)
    size = min(size, MAX_SAMPLE_ROWS, fitting, n)
    first, more = _draws(rng, rows, size)
    q = min(max(COORDINATES_PER_COMPONENT * K, MIN_COORDINATES), size, d)
    q = q if more is None else max(q // 2, min(K, d))

    def own(X: Array) -> Rows:
        origin = centre_of(X) if settings.learn_mean else rows.origin
        return about(X, origin)._replace(n_features=rows.n_features)

    sample = rows if first is None else own(first)
    in_thin_coordinates = rows.n_features != d  # principal ones already
    basis = np.eye(d, q) if in_thin_coordinates else principal(rng, sample, q).V
    return Arena(_coordinates(sample, basis), more, basis)


def _draws(
    rng: np.random.Generator, rows: Observations, size: int
) -> tuple[Array | None, Array | None]:
    """Draw `size` rows, unless that is all, and some times as many that hold them, if not all."""
    if size == rows.n:
        return None, None
    first = np.sort(rng.choice(rows.n, size, replace=False))
    larger = SECOND_SAMPLE * size
    if larger >= rows.n or larger * rows.d * rows.dtype.itemsize > MAX_SAMPLE_BYTES:
        return rows.take(first), None
    others = rng.choice(rows.n, larger, replace=False)
    others = others[~np.isin(others, first)][: larger - size]
    numbers = np.sort(np.concatenate([first, others]))
    drawn = rows.take(numbers)
    return drawn[np.searchsorted(numbers, first)], drawn


def _coordinates(rows: Observations, basis: Array) -> Rows:
    squares = rows.squares if isinstance(rows, Rows) else np.full(rows.n, rows.total / rows.n)
    return Rows(project(rows, basis), None, squares, rows.n_features)


def _scores(rng: np.random.Generator, rows: Observations, ring: Arena, K: int) -> Array:
    """Principal scores (n, K) of K^2 rows, or all, or as many as memory is set apart for."""
    sample, leading = ring.sample, ring.basis[:, :K]
    size = min(K * K, rows.n, MAX_SCORES_BYTES // (K * rows.dtype.itemsize))
    if size <= sample.n:
        return sample.X[:, :K]
    if size == rows.n:
        return project(rows, leading)
    P = np.empty((size, K), rows.dtype)
    numbers = np.sort(rng.choice(rows.n, size, replace=False))
    for part, values in rows.over(partial(_chosen, numbers=numbers, W=leading)):
        P[part] = values
    return P


def _chosen(block: Block, numbers: NDArray[np.intp], W: Array) -> tuple[slice, Array]:
    """Project the rows of a block that are among `numbers`, and say which of those they are."""
    low, high = np.searchsorted(numbers, [block.part.start, block.part.stop])
    some = block._replace(X=block.X[numbers[low:high] - block.part.start])
    return slice(int(low), int(high)), some.times(W)


def race(
    rng: np.random.Generator,
    rows: Rows,
    field: list[Candidate],
    course: EMControl,
    scores: Callable[[int], Array] | None = None,
) -> EMResult[SubspaceState]:
    """Give every candidate some passes; the one with the highest likelihood wins.

    `rows` are in principal coordinates: the first K are the scores that rotations are chosen by,
    unless they are chosen by scores (n, K) of more rows, which `scores` gives for K.
    """
    P = rows.X[:, : course.settings.n_components]
    runs: list[EMResult[SubspaceState]] = []
    for i, candidate in enumerate(field, start=1):
        seen = scores(P.shape[1]) if candidate.wants_many_rows and scores is not None else P
        W = np.eye(rows.X.shape[1], P.shape[1]) @ candidate.rotation(rng, seen)
        del seen  # they may be as large as the rows
        stage = f"race {i} of {len(field)}: {candidate.name}"
        runs.append(_heat(stage, candidate, W, rows, course))
        if runs[-1].stop_reason == STOPPED:
            break
    leader = max(runs, key=lambda run: run.log_likelihood)
    return leader._replace(stop_reason=runs[-1].stop_reason)


def _heat(
    stage: str, candidate: Candidate, W: Array, rows: Rows, course: EMControl
) -> EMResult[SubspaceState]:
    state = first_state(rows, W, course.settings)
    if candidate.annealed:
        path = annealed(state, rows, course.settings)
        run = course.run(stage, path, rows, ANNEALED_PASSES, -math.inf)
        if run.stop_reason == STOPPED:
            return run
        state = run.state
    path = sprint(state, rows, course.settings)
    return course.run(stage, path, rows, RACE_PASSES, RACE_TOL)
