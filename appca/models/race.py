"""A short race between starts, cheap because it sees the data small.

No single start wins on real data (PCA on COIL-20, quartimax on MNIST), so a few are tried. They
race on a sample of the rows in the leading principal coordinates, where a pass costs a fraction of
one over all the data. The winner settles there, then on all rows in the same coordinates (EM with
W held to a subspace), and its state starts the fit proper, which alone decides where EM ends.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.models.em import Settings, State
from appca.models.gaussian import Array
from appca.models.loop import STOPPED, Callback, Climb, iterate, watcher
from appca.models.rows import Rows, about, centre_of, project
from appca.models.spectrum import principal
from appca.models.starts import ANNEALED_PASSES, Candidate, annealed, ascent, first_state
from appca.models.stiefel import polar

__all__ = ["Arena", "Course", "arena", "race", "search"]

RACE_PASSES = 20  # of each candidate, after annealing
SETTLE_PASSES = 200
RACE_TOL = 1e-2  # nats a row over ten passes; below it EM fits the sample rather than the data

# Measured on MNIST and COIL-20: smaller samples and fewer coordinates save no time, because the
# fit proper then starts further from its end; larger ones save no passes.
SAMPLE_ROWS_PER_COMPONENT, MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 400, 2500, 10_000
COORDINATES_PER_COMPONENT, MIN_COORDINATES = 8, 64


class Arena(NamedTuple):
    """The rows in leading principal coordinates; basis @ W leads back."""

    sample: Rows  # drawn rows, or all of them
    settling: list[Rows]  # what the winner settles on, one after the other
    basis: Array  # (d, q)


class Course(NamedTuple):
    """What all stages of a fit share."""

    settings: Settings
    callback: Callback | None
    max_iter: int  # bound on every stage
    tol: float  # nats a row over ten passes, where all rows are looked at
    accelerate: bool  # whether the fit proper leaps; the search always does
    n_rows: int  # log-likelihoods of fewer rows are reported as if of so many

    def run(
        self, stage: str, path: Iterator[tuple[float, State]], rows: Rows, passes: int, tol: float
    ) -> Climb[State]:
        """Follow a path for at most so many passes; `tol` in nats a row over ten of them."""
        limit, n = min(passes, self.max_iter), len(rows.X)
        watch = watcher(self.callback, stage, limit, self.n_rows / n)
        return iterate(path, tol=tol * n, max_iter=limit, watch=watch)


def search(
    rng: np.random.Generator, rows: Rows, field: list[Candidate], course: Course
) -> Climb[State]:
    """Race, settle, and return the winner in the coordinates of `rows`.

    If its reason to stop is the callback's, then so should be the fit's.
    """
    ring = arena(rng, rows, course.settings)
    run = race(rng, ring.sample, field, course)
    for part in ring.settling:
        if run.stop_reason != STOPPED:
            path = ascent(run.state, part, course.settings)
            tol = course.tol if len(part.X) == course.n_rows else RACE_TOL
            stage = f"settle on {len(part.X):,} rows"
            run = course.run(stage, path, part, SETTLE_PASSES, tol)
    return run._replace(state=run.state._replace(W=polar(ring.basis @ run.state.W)))


def arena(rng: np.random.Generator, rows: Rows, settings: Settings) -> Arena:
    """Draw the sample of rows and find its leading principal coordinates.

    A learned mean has the form origin - W shift only about the mean of the rows at hand, so the
    sample is then taken about its own.
    """
    n, d = rows.X.shape
    K = settings.n_components
    size = min(max(SAMPLE_ROWS_PER_COMPONENT * K, MIN_SAMPLE_ROWS), MAX_SAMPLE_ROWS, n)
    q = min(max(COORDINATES_PER_COMPONENT * K, MIN_COORDINATES), size, d)
    if size == n:
        drawn = rows
    else:
        part = rows.X[np.sort(rng.choice(n, size, replace=False))]
        origin = centre_of(part) if settings.learn_mean else rows.origin
        drawn = about(part, origin)._replace(n_features=rows.n_features)
    in_thin_coordinates = rows.n_features != d  # principal ones already
    basis = np.eye(d, q) if in_thin_coordinates else principal(rng, drawn, q).V
    sample = _coordinates(drawn, basis)
    settling = [] if size == n else [sample]
    if q <= d / 2:
        settling.append(sample if size == n else _coordinates(rows, basis))
    return Arena(sample, settling, basis)


def _coordinates(rows: Rows, basis: Array) -> Rows:
    return Rows(project(rows, basis), None, rows.squares, rows.n_features)


def race(
    rng: np.random.Generator, rows: Rows, field: list[Candidate], course: Course
) -> Climb[State]:
    """Give every candidate some passes; the one with the highest likelihood wins.

    `rows` are in principal coordinates: the first K are the scores that rotations are chosen by.
    """
    P = rows.X[:, : course.settings.n_components]
    runs: list[Climb[State]] = []
    for i, candidate in enumerate(field, start=1):
        W = np.eye(rows.X.shape[1], P.shape[1]) @ candidate.rotation(rng, P)
        stage = f"race {i} of {len(field)}: {candidate.name}"
        runs.append(_heat(stage, candidate, W, rows, course))
        if runs[-1].stop_reason == STOPPED:
            break
    leader = max(runs, key=lambda run: run.log_likelihood)
    return leader._replace(stop_reason=runs[-1].stop_reason)


def _heat(stage: str, candidate: Candidate, W: Array, rows: Rows, course: Course) -> Climb[State]:
    state = first_state(rows, W, course.settings)
    if candidate.annealed:
        path = annealed(state, rows, course.settings)
        run = course.run(stage, path, rows, ANNEALED_PASSES, -math.inf)
        if run.stop_reason == STOPPED:
            return run
        state = run.state
    path = ascent(state, rows, course.settings)
    return course.run(stage, path, rows, RACE_PASSES, RACE_TOL)
