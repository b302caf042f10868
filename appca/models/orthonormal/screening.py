"""Multi-start screening: EM climbs from several starts to their ends, the most likely one goes on.

No single start wins on real data (PCA on COIL-20, quartimax on MNIST, a random rotation on digits),
and the first twenty iterations hardly tell which will. So all of them climb to their end, on a
sample of the rows in the leading principal coordinates, where an iteration costs a fraction of one
over all the data. The most likely one, and the first where that is another, go on with all rows: in
the same coordinates (EM with W held to a subspace); where there are many rows the best alone, by
variance-reduced EM (see `variance_reduced_em`), in coordinates if they fit. The better end starts
the fit proper, which alone decides where EM ends.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

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
from appca.models.orthonormal.em import EMMap, EMSettings, SubspaceState, sums_a_pass
from appca.models.orthonormal.starts import (
    ANNEALED_ITERATIONS,
    Candidate,
    annealed,
    ascent,
    first_state,
    random_rotation,
)
from appca.models.orthonormal.variance_reduced_em import (
    AnchoredSample,
    augmented_basis,
    variance_reduced_em,
)
from appca.models.rows.observations import Block, Observations, Rows, about, centre_of, project
from appca.models.rows.spectrum import principal

# Of a candidate where climbs to the end are dear, and of any other climb.
SCREENING_ITERATIONS, REFINEMENT_ITERATIONS = 20, 200
# Rows times K times swaps, of the sample, up to which all candidates climb to their ends: up to
# K = 16 on 5,000 rows at L = 5. At K = 30, L = 8 ten climbs took 22 s, five times the fit without.
MOST_SUMS = 400_000
# Nats a row over ten iterations; below it EM fits the sample rather than the data.
SCREENING_TOL = 1e-2
# A climb on a sample ends where it would stay below another's end though it gained three times what
# its last ten iterations gained. Measured on MNIST: 0.6 of the iterations, and in none of twelve
# fits a lower start; on all rows of COIL-20 it would have lost the best in three of twelve.
PATIENCE = 3.0

# Measured on MNIST and COIL-20: smaller samples and fewer coordinates save no time, because the
# fit proper then starts further from its end; larger ones save no iterations.
SAMPLE_ROWS_PER_COMPONENT, MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 400, 2500, 10_000
COORDINATES_PER_COMPONENT, MIN_COORDINATES = 8, 64
LARGER_SAMPLE = (
    4  # times the first one, before all rows: iterations over these are the cheaper ones
)
MAX_COORDINATE_BYTES = 2**27  # of coordinates of all rows, whatever the size of the data

# Where variance-reduced EM follows, a rough refinement is enough: each outer iteration looks at all
# rows, and adds the directions it finds to the coordinates, of which half as many then do. Measured
# on MNIST, 60,000 rows, K = 10, L = 3: 1.9 s where twice the coordinates and a third of the
# tolerance take 2.5 s.
ROUGH_TOL = 3e-2
ROUGH_ITERATIONS = 50  # at K = 500 two hundred fit 10,000 rows instead of the data
MAX_SCORES_BYTES = 2**29  # of principal scores of many rows, for starts that need them
MAX_SAMPLE_BYTES = 2**28  # of a sample in all features
MAX_OUTER_ITERATIONS = 100

# After EM has converged on all rows in leading coordinates, only the directions outside can raise
# the likelihood. Those converge within an iteration or two: no other component explains them.
CONFIRMATION_WINDOW = 3


class ScreeningSample(NamedTuple):
    """The rows in leading principal coordinates; basis @ W leads back."""

    sample: Rows  # drawn rows, or all of them
    larger: NDArray[np.intp] | None  # numbers of a larger draw, where there are many more rows yet
    basis: Array  # (d, q) orthonormal
    about_own_mean: Callable[[Array], Rows]  # takes drawn rows as EM does


class ScreenedStart(NamedTuple):
    """Where the fit proper starts."""

    run: EMResult[SubspaceState]  # in the coordinates of the data
    window: int  # iterations over all rows that must yet improve by less than tol


class EMControl(NamedTuple):
    """What all stages of a fit share."""

    settings: EMSettings
    callback: Callback | None
    max_iter: int  # bound on every stage
    tol: float  # nats per row over ten iterations, where all rows are looked at
    accelerate: bool  # whether the fit proper is accelerated; screening always is
    mass: float  # of all rows; log-likelihoods of fewer are reported as if of so many

    def run(
        self,
        stage: str,
        path: Iterator[tuple[float, SubspaceState]],
        rows: Observations,
        iterations: int,
        tol: float,
        *,
        window: int = WINDOW,
    ) -> EMResult[SubspaceState]:
        """Follow a path for at most so many iterations; `tol` in nats per row over ten of them."""
        limit, n = min(iterations, self.max_iter), rows.mass
        watch = watcher(self.callback, stage, limit, self.mass / n)
        return iterate(path, tol=tol * n, max_iter=limit, window=window, watch=watch)


def screen(
    rng: np.random.Generator, em_map: EMMap, candidates: list[Candidate], control: EMControl
) -> ScreenedStart:
    """Screen the candidates, go on with the best, and return its end in coordinates of all rows.

    If its reason to stop is the callback's, then so should be the fit's.
    """
    rows, settings = em_map.rows, control.settings
    drawn = draw_screening_sample(rng, rows, settings)
    scores = partial(_scores, rng, rows, drawn)
    dear = sums_a_pass(drawn.sample.n, settings.n_components, settings.n_active) > MOST_SUMS
    chosen = [c for c in candidates if not (dear and c.spare)]
    whole = drawn.larger is None
    tol = SCREENING_TOL if whole else ROUGH_TOL
    iterations = REFINEMENT_ITERATIONS if whole else ROUGH_ITERATIONS
    first = SCREENING_ITERATIONS if dear else iterations
    runs = climb(rng, drawn.sample, chosen, control, first, tol, scores)
    best = max(runs, key=lambda run: run.log_likelihood)._replace(stop_reason=runs[-1].stop_reason)
    if dear:
        best = _refine_on_sample(best, drawn.sample, control, tol, iterations)
    finalists = [best]
    apart = best.log_likelihood - runs[0].log_likelihood > tol * drawn.sample.mass
    if apart and whole and not dear and best.stop_reason != STOPPED:
        finalists.append(runs[0])  # the sample may be wrong
    found: list[ScreenedStart] = []
    for run in finalists:
        found.append(_finished(run, em_map, drawn, control, alone=len(finalists) == 1))
        if found[-1].run.stop_reason == STOPPED:
            return found[0]._replace(run=found[0].run._replace(stop_reason=STOPPED))
    return max(found, key=lambda start: start.run.log_likelihood)


def _finished(
    run: EMResult[SubspaceState],
    em_map: EMMap,
    drawn: ScreeningSample,
    control: EMControl,
    *,
    alone: bool,
) -> ScreenedStart:
    """Go on from the end on the sample with all rows; one that is not `alone` to its end."""
    rows, many = em_map.rows, drawn.larger is not None
    width = drawn.basis.shape[1] + len(run.state.shift)
    held = rows.n * width * rows.dtype.itemsize <= MAX_COORDINATE_BYTES and width <= rows.d / 2
    if drawn.larger is not None and not held:
        larger = rows.take(drawn.larger)
        run = _refine_on_larger_sample(run, em_map, larger, drawn, control)
    else:
        run = run._replace(state=_lifted(run.state, drawn.basis))
    if run.stop_reason == STOPPED:
        return ScreenedStart(run, WINDOW)
    if held:
        run = _refine_in_subspace(run, em_map, drawn, control)
    elif not many and not alone:
        path, stage = ascent(run.state, em_map), f"comparison on {rows.n:,} rows"
        end = control.run(stage, path, rows, REFINEMENT_ITERATIONS, control.tol)
        # The fit proper climbs there again: its curve is the whole climb on all rows.
        return ScreenedStart(end._replace(state=run.state), WINDOW)
    if not (held or many) or not run.stop_reason.startswith(CONVERGED):
        return ScreenedStart(run, WINDOW)
    return ScreenedStart(run, 1 if many else CONFIRMATION_WINDOW)


def _refine_on_sample(
    run: EMResult[SubspaceState],
    rows: Rows,
    control: EMControl,
    tol: float,
    iterations: int = REFINEMENT_ITERATIONS,
) -> EMResult[SubspaceState]:
    if run.stop_reason == STOPPED:
        return run
    path = ascent(run.state, EMMap(rows, control.settings))
    return control.run(f"refinement on {rows.n:,} rows", path, rows, iterations, tol)


def _refine_on_larger_sample(
    run: EMResult[SubspaceState],
    em_map: EMMap,
    larger: Array,
    drawn: ScreeningSample,
    control: EMControl,
) -> EMResult[SubspaceState]:
    """Go on with more rows (n, d), then with all of them by variance-reduced EM."""
    part = _coordinates(drawn.about_own_mean(larger), drawn.basis)
    run = _refine_on_sample(run, part, control, SCREENING_TOL, ROUGH_ITERATIONS)
    run = run._replace(state=_lifted(run.state, drawn.basis))
    if run.stop_reason == STOPPED:
        return run
    sample = AnchoredSample(larger, em_map.rows.origin, drawn.basis)
    return _refine_by_variance_reduced_em(run, em_map, sample, control, control.tol)


def _refine_by_variance_reduced_em(
    run: EMResult[SubspaceState],
    em_map: EMMap,
    sample: AnchoredSample,
    control: EMControl,
    tol: float,
) -> EMResult[SubspaceState]:
    """Go on with all rows, twenty iterations over the sample for each pass over them."""
    path = variance_reduced_em(run.state, em_map, sample)
    stage = f"variance-reduced EM on {em_map.rows.n:,} rows"
    return control.run(stage, path, em_map.rows, MAX_OUTER_ITERATIONS, WINDOW * tol, window=1)


def _refine_in_subspace(
    run: EMResult[SubspaceState], em_map: EMMap, drawn: ScreeningSample, control: EMControl
) -> EMResult[SubspaceState]:
    """Go on with all rows, in coordinates that hold the next EM step from where `run` ended.

    The leading coordinates of a sample leave out what the components have in the others. One step
    with all features tells what that is, and its K directions join the basis: once to go on from
    the sample, and once more from the end of that.
    """
    rows, q = em_map.rows, drawn.basis.shape[1]
    leading = _coordinates(rows, drawn.basis)
    for tol in (SCREENING_TOL, control.tol):
        value, state = em_map(run.state)
        wider = augmented_basis(drawn.basis, state.W)
        part = leading._replace(X=np.hstack([leading.X, project(rows, wider[:, q:])]))
        inside = state._replace(W=polar(wider.T @ state.W))
        run = run._replace(state=inside, log_likelihood=value)
        if drawn.larger is None:
            run = _refine_on_sample(run, part, control, tol)
        else:
            sample = AnchoredSample(part.X[drawn.larger], None, np.eye(part.d))
            part_map = EMMap(part, control.settings)
            run = _refine_by_variance_reduced_em(run, part_map, sample, control, tol)
        run = run._replace(state=_lifted(run.state, wider))
        if run.stop_reason == STOPPED:
            break
    return run


def _lifted(state: SubspaceState, basis: Array) -> SubspaceState:
    return state._replace(W=polar(basis @ state.W))


def draw_screening_sample(
    rng: np.random.Generator, rows: Observations, settings: EMSettings
) -> ScreeningSample:
    """Draw the sample of rows and find its leading principal coordinates.

    A learned mean has the form origin - W shift only about the mean of the rows at hand, so
    samples are taken about their own.
    """
    n, d = rows.n, rows.d
    K = settings.n_components
    fitting = max(MAX_SAMPLE_BYTES // (d * rows.dtype.itemsize), MIN_SAMPLE_ROWS)
    size = max(SAMPLE_ROWS_PER_COMPONENT * K, MIN_SAMPLE_ROWS)
    size = min(size, MAX_SAMPLE_ROWS, fitting, n)
    first, larger, chosen = _draws(rng, rows, size)
    q = min(max(COORDINATES_PER_COMPONENT * K, MIN_COORDINATES), size, d)
    q = q if first is None else max(q // 2, min(K, d))

    def about_own_mean(X: Array) -> Rows:
        weights = None if chosen is None or len(chosen) != len(X) else _weights(rows, chosen)
        origin = centre_of(X, weights) if settings.learn_mean else rows.origin
        return about(X, origin, weights)._replace(n_features=rows.n_features)

    sample = rows if first is None else about_own_mean(first)
    in_thin_coordinates = rows.n_features != d  # principal ones already
    basis = np.eye(d, q) if in_thin_coordinates else principal(rng, sample, q).V
    return ScreeningSample(_coordinates(sample, basis), larger, basis, about_own_mean)


def _draws(
    rng: np.random.Generator, rows: Observations, size: int
) -> tuple[Array | None, NDArray[np.intp] | None, NDArray[np.intp] | None]:
    """Draw `size` rows, unless that is all, and the numbers of some times as many, if not all.

    And say which the former are.
    """
    if size == rows.n:
        return None, None, None
    first = np.sort(rng.choice(rows.n, size, replace=False))
    larger = LARGER_SAMPLE * size
    large = larger * rows.d * rows.dtype.itemsize > MAX_SAMPLE_BYTES
    if larger >= rows.n or large or _weights(rows, first) is not None:
        return rows.take(first), None, first
    return rows.take(first), np.sort(rng.choice(rows.n, larger, replace=False)), first


def _weights(rows: Observations, which: NDArray[np.intp]) -> Array | None:
    weights = rows.weights if isinstance(rows, Rows) else None
    return None if weights is None else weights[which]


def _coordinates(rows: Observations, basis: Array) -> Rows:
    squares = rows.squares if isinstance(rows, Rows) else np.full(rows.n, rows.total / rows.n)
    weights = rows.weights if isinstance(rows, Rows) else None
    return Rows(project(rows, basis), None, squares, rows.n_features, weights=weights)


def _scores(rng: np.random.Generator, rows: Observations, drawn: ScreeningSample, K: int) -> Array:
    """Principal scores (n, K) of K^2 rows, or all, or as many as memory is set apart for."""
    sample, leading = drawn.sample, drawn.basis[:, :K]
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


def climb(
    rng: np.random.Generator,
    rows: Rows,
    candidates: list[Candidate],
    control: EMControl,
    iterations: int,
    tol: float,
    scores: Callable[[int], Array] | None = None,
) -> list[EMResult[SubspaceState]]:
    """Run EM from every candidate, for at most so many iterations.

    `rows` are in principal coordinates: the first K are the scores that rotations are chosen by,
    unless they are chosen by scores (n, K) of more rows, which `scores` gives for K. On a
    sample, climbs that are far behind end early, see `PATIENCE`.
    """
    P = rows.X[:, : control.settings.n_components]
    if rows.weights is not None:
        P = P * rows.weights[:, None] ** 0.25  # by fourth powers of which rotations are chosen
    runs: list[EMResult[SubspaceState]] = []
    rotations: dict[Any, Array] = {}
    for i, candidate in enumerate(candidates, start=1):
        seen = scores(P.shape[1]) if candidate.needs_many_rows and scores is not None else P
        if candidate.rotation is random_rotation or candidate.rotation not in rotations:
            rotations[candidate.rotation] = candidate.rotation(rng, seen)
        W = np.eye(rows.X.shape[1], P.shape[1]) @ rotations[candidate.rotation]
        del seen  # they may be as large as the rows
        stage = f"screening {i} of {len(candidates)}: {candidate.name}"
        run = _warmed(stage, candidate, W, rows, control)
        if run.stop_reason != STOPPED:
            path = ascent(run.state, EMMap(rows, control.settings))
            if rows.mass < control.mass:
                best = max((other.log_likelihood for other in runs), default=-math.inf)
                path = _while_promising(path, best)
            run = control.run(stage, path, rows, iterations, tol)
        runs.append(run)
        if run.stop_reason == STOPPED:
            break
    return runs


def _while_promising(
    path: Iterator[tuple[float, SubspaceState]], best: float
) -> Iterator[tuple[float, SubspaceState]]:
    """Follow a path while it may end above `best`, see `PATIENCE`."""
    values: list[float] = []
    for value, state in path:
        yield value, state
        values.append(value)
        if len(values) > WINDOW and value + PATIENCE * (value - values[-1 - WINDOW]) < best:
            return


def _warmed(
    stage: str, candidate: Candidate, W: Array, rows: Rows, control: EMControl
) -> EMResult[SubspaceState]:
    """Return where a candidate's climb begins: after annealing, if it is annealed."""
    state = first_state(rows, W, control.settings)
    if not candidate.annealed:
        return EMResult(state, -math.inf, [], "")
    path = annealed(state, rows, control.settings)
    return control.run(stage, path, rows, ANNEALED_ITERATIONS, -math.inf)
