"""Multi-start EM for adaptive PPCA: climbs from several starts on a sample, the best on all rows.

No single start wins on real data, and the first iterations hardly tell which will. So all climb to
their end on a sample in principal coordinates, the best three with more rows, and the best of these
with all rows. Variants go on from the end of a fit of the paper's model.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import em, loop, starts
from appca.models.numerics import Array
from appca.models.rows import Block, Observations, Rows, about, centre_of, project
from appca.models.sparse_rows import ShiftedSparse, stored_width
from appca.models.spectrum import Coordinates, lift, lower, principal, sketched, thin
from appca.models.stiefel import polar

SCREENING_ITERATIONS, REFINEMENT_ITERATIONS = 20, 200  # of a candidate of many, and of a climb
# Rows times K times swaps of the sample, up to which all candidates climb to their ends. At K = 30,
# L = 8 ten climbs took 22 s, five times the fit without.
MOST_SUMS = 400_000
FEW_SUMS, FEW_NUMBERS = 50_000, 2**18  # up to which 25 more rotations climb on all rows
SCREENING_TOL = FIRST_TOL = 1e-2  # nats a row; less fits the sample rather than the data
# A climb on a sample ends where three times the gain of its last ten iterations would leave it
# below another's end; on all rows of COIL-20 that would have lost the best of 3 in 12.
PATIENCE = 3.0

# Of samples of 2,500 rows of MNIST the best end is worse by 0.1 nats a row at 60,000 rows.
SAMPLE_ROWS_PER_COMPONENT, MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 400, 2500, 10_000
COORDINATES_PER_COMPONENT, MIN_COORDINATES = 8, 64  # half as many of a sample
SAMPLE_COORDINATES_PER_COMPONENT = 2
LARGER_SAMPLE, FINALISTS = 3, 3  # times the first one, before all rows
LATER_AGE = 6  # of momentum on other rows: without it they take two or three iterations more
LAST_SHARE, LAST_SHARE_OF_VARIANTS = 1.0, 200.0  # times tol, after climbs on samples
LAST_WINDOW = 3  # iterations over all rows: a sample has brought the climb past its plateaus
DIFFERENT = 1e-2  # nats a row between ends that are not the same
ROUGH_TOL, ROUGH_ITERATIONS = 3e-2, 50  # at K = 500 two hundred fit 10,000 rows, not the data
MAX_COORDINATE_BYTES = MAX_SAMPLE_BYTES = 2**28  # of coordinates of all rows, of sampled features
MAX_SCORES_BYTES = 2**29  # of principal scores, for starts that need many rows

Run = loop.EMResult[em.SubspaceState]
Runs = list[Run]


class EMControl(NamedTuple):
    """Settings of all stages of a fit."""

    settings: Any  # `EMSettings` or `FactorSettings`
    callback: loop.Callback | None
    max_iter: int  # bound on every stage
    tol: float  # nats per row over ten iterations on all rows
    accelerate: bool  # of the fit proper; screening always is accelerated
    mass: float  # of all rows, to which reported log-likelihoods of samples are scaled
    # in adaptive factor analysis
    exact: bool = True  # sum over all supports, or one support a row
    annealing: int = 0  # iterations with drawn supports
    least_change: float = 0.0  # share of slots
    screened_rows: int = 0  # of the sample that starts are screened on; 0: each goes to its end

    def after(self, stopped: bool) -> "EMControl":
        """Return these settings; after a stop those of one step, so that the fit is complete."""
        return self._replace(max_iter=1, callback=None) if stopped else self

    def run(
        self,
        stage: str,
        path: Iterator[tuple[float, loop.S]],
        rows: Any,
        iterations: int,
        tol: float,
        *,
        window: int = loop.WINDOW,
        halt: Callable[[loop.S], str | None] = lambda _state: None,
    ) -> loop.EMResult[loop.S]:
        """Follow a path for at most so many iterations; `tol` in nats per row over ten of them."""
        limit, n = min(iterations, self.max_iter), rows.mass
        watch = loop.watcher(self.callback, stage, limit, self.mass / n)
        how: Any = {"window": window, "watch": watch, "halt": halt}
        return loop.iterate(path, tol=tol * n, max_iter=limit, **how)


def screen(
    rng: Generator, em_map: em.EMMap, candidates: list[starts.Candidate], control: EMControl
) -> tuple[Run, bool]:
    """Return the end of the best candidate in all coordinates, and whether samples were used."""
    rows, settings = em_map.rows, control.settings
    drawn = draw_screening_sample(rng, rows, settings)
    sample = drawn.rows
    sums = em.sums_a_pass(sample.n, settings.n_components, settings.n_active)
    whole, dear = sample.n == rows.n, sums > MOST_SUMS
    cheap = whole and sums <= FEW_SUMS and sample.X.size <= FEW_NUMBERS
    chosen = [c for c in candidates if not (dear and c.spare) and (cheap or not c.extra)]
    tol = SCREENING_TOL if whole else ROUGH_TOL
    iterations = REFINEMENT_ITERATIONS if whole else ROUGH_ITERATIONS
    first = SCREENING_ITERATIONS if dear else iterations
    runs = climb(rng, sample, chosen, control, first, tol, partial(_scores, rng, rows, drawn))
    if dear:
        runs = _go_on(_best(runs, 1, sample.mass), sample, control, tol, iterations=iterations)
    if not whole and runs[-1].stop_reason != loop.STOPPED:
        fitting = MAX_COORDINATE_BYTES // (drawn.basis.shape[1] * rows.dtype.itemsize)
        held = _coordinates(rng, rows, drawn.basis, max(fitting, sample.n))
        runs = _best(runs, FINALISTS, sample.mass)
        size = LARGER_SAMPLE * sample.n
        part = _some(rng, held, size, settings) if size < held.n else held
        runs = _best(_go_on(runs, part, control, tol, iterations=iterations), 1, part.mass)
        runs = _go_on(runs, held, control, loop.WINDOW * control.tol, window=LAST_WINDOW)
    best = max(runs, key=lambda run: run.log_likelihood)
    W = polar(drawn.basis[:, : len(best.state.W)] @ best.state.W)
    run = best._replace(state=best.state._replace(W=W), stop_reason=runs[-1].stop_reason)
    return run, not whole


def _go_on(
    runs: Runs, rows: Rows, control: EMControl, tol: float, age: int = 0, **how: Any
) -> Runs:
    """Climb from the ends of runs with other rows, perhaps in more coordinates."""
    how = {"iterations": REFINEMENT_ITERATIONS} | how
    em_map, further = em.EMMap(rows, control.settings), Runs()
    for run in runs:
        if run.stop_reason == loop.STOPPED:
            return runs
        W = np.zeros((rows.d, run.state.W.shape[1]))
        W[: len(run.state.W)] = run.state.W
        path = while_promising(starts.ascent(run.state._replace(W=W), em_map, age=age), further)
        stage = f"refinement on {rows.n:,} rows"
        further.append(control.run(stage, path, rows, tol=tol, **how))
        if further[-1].stop_reason == loop.STOPPED:
            break
    return further


def _best(runs: Runs, most: int, mass: float) -> Runs:
    if runs[-1].stop_reason == loop.STOPPED:
        return runs
    different: Runs = []
    for run in sorted(runs, key=lambda run: -run.log_likelihood):
        apart = (different[-1].log_likelihood - run.log_likelihood) if different else math.inf
        if apart > DIFFERENT * mass:
            different.append(run)
    return different[:most]


def draw_screening_sample(
    rng: Generator, rows: Observations, settings: em.EMSettings
) -> Coordinates:
    """Draw rows, about their own mean if it is learned, in their principal coordinates."""
    n, d, K = rows.n, rows.d, settings.n_components
    size = sample_size(rows, K)
    each = COORDINATES_PER_COMPONENT // (1 if size == n else 2)
    q = min(max(each * K, MIN_COORDINATES), size, d)
    sample = some_rows(rng, rows, size, learn_mean=settings.learn_mean) if size < n else rows
    in_thin_coordinates = rows.n_features != d  # principal ones already
    basis = np.eye(d, q) if in_thin_coordinates else sketched(rng, sample, q)
    few = q if size == n else min(SAMPLE_COORDINATES_PER_COMPONENT * K, q)
    return Coordinates(_coordinates(rng, sample, basis[:, :few], size), basis)


def sample_size(rows: Observations, n_components: int) -> int:
    """Return the number of rows that starts are screened on."""
    width = stored_width(rows.X) if isinstance(rows, Rows) else rows.d
    fitting = max(MAX_SAMPLE_BYTES // (width * rows.dtype.itemsize), MIN_SAMPLE_ROWS)
    size = max(SAMPLE_ROWS_PER_COMPONENT * n_components, MIN_SAMPLE_ROWS)
    return min(size, MAX_SAMPLE_ROWS, fitting, rows.n)


def some_rows(rng: Generator, rows: Observations, size: int, *, learn_mean: bool) -> Rows:
    """Draw rows in all features, about their own mean if it is learned."""
    which = np.sort(rng.choice(rows.n, size, replace=False))
    weights = rows.weights[which] if isinstance(rows, Rows) and rows.weights is not None else None
    X = rows.take(which)
    origin = centre_of(X, weights) if learn_mean else rows.origin
    return about(X, origin, weights)._replace(n_features=rows.n_features)


def _coordinates(rng: Generator, rows: Observations, basis: Array, most: int) -> Rows:
    squares = rows.squares if isinstance(rows, Rows) else np.full(rows.n, rows.total / rows.n)
    weights = rows.weights if isinstance(rows, Rows) else None
    if most >= rows.n:
        X = np.asfortranarray(project(rows, basis))  # as the E step reads coordinates fastest
        return Rows(X, None, squares, rows.n_features, weights=weights)
    X = np.empty((most, basis.shape[1]), rows.dtype, order="F")
    numbers = np.sort(rng.choice(rows.n, most, replace=False))

    def chosen(block: Block) -> tuple[slice, Array]:
        low, high = np.searchsorted(numbers, [block.part.start, block.part.stop])
        some = block._replace(X=block.X[numbers[low:high] - block.part.start])
        return slice(int(low), int(high)), some.times(basis)

    for part, values in rows.over(chosen):
        X[part] = values
    weights = None if weights is None else weights[numbers]
    return Rows(X, None, squares[numbers], rows.n_features, weights=weights)


def _some(rng: Generator, rows: Rows, size: int, settings: em.EMSettings) -> Rows:
    """Draw rows in coordinates, centred within these."""
    which = np.sort(rng.choice(rows.n, size, replace=False))
    X, squares = rows.X[which], rows.squares[which]
    weights = None if rows.weights is None else rows.weights[which]
    if settings.learn_mean:
        centred = X - centre_of(X, weights)
        squares = squares + np.sum(np.square(centred) - np.square(X), axis=1, dtype=np.float64)
        X = centred
    return Rows(X, None, squares, rows.n_features, weights=weights)


def _scores(rng: Generator, rows: Observations, drawn: Coordinates, K: int) -> Array:
    """Principal scores (n, K) of K^2 rows, or of fewer for their memory."""
    size = min(K * K, rows.n, MAX_SCORES_BYTES // (K * rows.dtype.itemsize))
    if size <= drawn.rows.n:
        return drawn.rows.X[:, :K]
    return _coordinates(rng, rows, drawn.basis[:, :K], size).X


def climb(
    rng: Generator,
    rows: Rows,
    candidates: list[starts.Candidate],
    control: EMControl,
    iterations: int,
    tol: float,
    scores: Callable[[int], Array] | None = None,
) -> Runs:
    """Run EM from every candidate on `rows` in principal coordinates."""
    P = rows.X[:, : control.settings.n_components]
    if rows.weights is not None:
        P = P * rows.weights[:, None] ** 0.25  # rotations are chosen by fourth powers
    runs: Runs = []
    rotations: dict[Any, Array] = {}
    for i, candidate in enumerate(candidates, start=1):
        seen = scores(P.shape[1]) if candidate.needs_many_rows and scores is not None else P
        if candidate.rotation is starts.random_rotation or candidate.rotation not in rotations:
            rotations[candidate.rotation] = candidate.rotation(rng, seen)
        W = np.eye(rows.X.shape[1], P.shape[1]) @ rotations[candidate.rotation]
        del seen  # they may be as large as the rows
        stage = f"screening {i} of {len(candidates)}: {candidate.name}"
        state = starts.first_state(rows, W, control.settings)
        run = loop.EMResult(state, -math.inf, list[float](), "")
        if candidate.annealed:
            path = starts.annealed(state, rows, control.settings)
            run = control.run(stage, path, rows, starts.ANNEALED_ITERATIONS, -math.inf)
        if run.stop_reason != loop.STOPPED:
            path = starts.ascent(run.state, em.EMMap(rows, control.settings))
            if rows.mass < control.mass or candidate.extra:
                path = while_promising(path, runs)
            run = control.run(stage, path, rows, iterations, tol)
        runs.append(run)
        if run.stop_reason == loop.STOPPED:
            break
    return runs


def while_promising(
    path: Iterator[tuple[float, loop.S]], others: list[loop.EMResult[loop.S]]
) -> Iterator[tuple[float, loop.S]]:
    """Follow a path while it may end above others, see `PATIENCE`."""
    best, values = max((run.log_likelihood for run in others), default=-math.inf), list[float]()
    for value, state in path:
        yield value, state
        values.append(value)
        if (
            len(values) > loop.WINDOW
            and value + PATIENCE * (value - values[-1 - loop.WINDOW]) < best
        ):
            return


THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem costs less than the passes it saves


class SubspaceFit(NamedTuple):
    """A fitted state in the features of the data."""

    state: em.SubspaceState
    second: Array | None  # (K,) sums over rows of E[(x z)^2]; None of variants
    log_likelihoods: list[float]  # after each iteration, total, nats
    stop_reason: str
    sums: em.SubspaceStatistics | None = None  # of the rows under the state, with W'A (K, K) for A
    same_order: bool = False  # whether EM went on from a state, in its order and signs


def fit_in_closed_form(rng: Generator, rows: Observations, control: EMControl) -> SubspaceFit:
    """Fit at L = K, where all rows use all components and the model is PPCA."""
    settings = control.settings
    state = starts.closed_form(rows, principal(rng, rows, settings.n_components), settings.floor)
    if settings.latent == "shared":
        state = state._replace(latent=np.full_like(state.latent, state.latent.mean()))
    sums = em.expect(state, rows, settings)
    loop.watcher(control.callback, "closed form", 1)(1, sums.log_likelihood)
    reason = "closed form, because n_active equals n_components"
    within = sums._replace(A=state.W.T @ sums.A)
    return SubspaceFit(state, sums.second, [sums.log_likelihood], reason, within)


def fit_by_em(rng: Generator, rows: Observations, start: Any, control: EMControl) -> SubspaceFit:
    """Run EM from directions (D, K), a whole state or the best of candidates."""
    settings, space, whole = control.settings, None, isinstance(start, em.SubspaceState)
    if rows.n < rows.d and rows.n <= THIN_LIMIT and isinstance(rows, Rows):
        thinned = thin(rows)
        space = thinned if thinned.rows.d >= settings.n_components else None
    work: Observations = rows if space is None else space.rows
    em_map, sampled = em.EMMap(work, settings), False
    if isinstance(start, list):
        # Starts are screened under the polar update whatever the fit's is: the maximum is the same.
        em_map.settings = settings._replace(update=polar)
        begun, sampled = screen(rng, em_map, start, control._replace(settings=em_map.settings))
        em_map.settings = settings
    else:
        W: Array = start.W if whole else np.asarray(start)
        W = polar(W if space is None else lower(W, space, rows))
        first = start._replace(W=W) if whole else starts.first_state(work, W, settings)
        begun = loop.EMResult(first, np.nan, [], "")
    run = last_climb(begun, em_map, control, LAST_SHARE if sampled else None)
    state, sums = run.state, em_map.within(run.state)
    if space is not None:
        state = state._replace(W=lift(state.W, space, rows))
    return SubspaceFit(state, sums.second, run.log_likelihoods, run.stop_reason, sums, whole)


def last_climb(start: Run, em_map: em.EMMap, control: EMControl, share: float | None) -> Run:
    """Run EM on all rows until an iteration gains under `share` tol; after a stop a single step."""
    stopped = start.stop_reason == loop.STOPPED
    control = control.after(stopped)
    settings, age = em_map.settings, 0 if share is None else LATER_AGE
    run = control.run(
        "fit",
        starts.ascent(start.state, em_map, accelerate=control.accelerate, age=age),
        em_map.rows,
        control.max_iter,
        (1.0 if share is None else share * loop.WINDOW) * control.tol,
        window=loop.WINDOW if share is None else 1,
        halt=partial(halt, floor=0.0 if settings.variant.by_feature else settings.floor),
    )
    if share not in (None, 1.0) and run.stop_reason.startswith(loop.CONVERGED):
        words = f"the last iteration gained below {share:g} times tol"
        run = run._replace(stop_reason=f"{loop.CONVERGED}: {words}")
    return run._replace(stop_reason=loop.STOPPED) if stopped else run


def halt(state: Any, floor: float) -> str | None:
    """Say that EM must end because the noise variance of a state has reached its floor."""
    if state.noise > floor:
        return None
    return "the noise variance reached its floor, 1e-8 of the mean feature variance"


SAMPLE_TOL, LARGER_TOL = 3e-2, 0.3  # nats a row, on the sample and the larger one


def fit_variant(rng: Generator, rows: Observations, start: Any, control: EMControl) -> SubspaceFit:
    """Fit a variant by EM, on samples of many rows first."""
    settings, whole = control.settings, isinstance(start, em.SubspaceState)
    if whole:
        state = start._replace(scale=_scale_from(start.scale, settings))
        run, sampled = loop.EMResult(state, np.nan, list[float](), ""), False
    else:
        size = sample_size(rows, settings.n_components)
        if size == rows.n and isinstance(rows, Rows):
            sample, at = rows, control
        else:
            sample = some_rows(rng, rows, size, learn_mean=settings.learn_mean)
            at = _control_on(sample, control)
        run = _highest_start(rng, sample, start, at, several=sample is rows)
        if sampled := sample.n < rows.n:
            run = _go_on([run], sample, at, SAMPLE_TOL)[0]
            size = LARGER_SAMPLE * sample.n
            if size * LARGER_SAMPLE <= rows.n:
                larger = some_rows(rng, rows, size, learn_mean=settings.learn_mean)
                at = _control_on(larger, control)
                run = _on_other_rows(run, sample, larger, at.settings)
                run, sample = _go_on([run], larger, at, LARGER_TOL, age=LATER_AGE)[0], larger
        run = _on_other_rows(run, sample, rows, settings)
    share = LAST_SHARE_OF_VARIANTS if sampled else None
    run = last_climb(run, em.EMMap(rows, settings), control, share)
    return SubspaceFit(run.state, None, run.log_likelihoods, run.stop_reason, None, whole)


def _control_on(sample: Rows, control: EMControl) -> EMControl:
    """Return the settings of EM on some of the rows, with the floors of noise of all rows."""
    at, most = em.settings_on(sample, control.settings), control.settings.most
    return control._replace(settings=at._replace(most=np.where(at.most > 0.0, most, 0.0)))


def _highest_start(
    rng: Generator, rows: Rows, start: Any, control: EMControl, several: bool
) -> Run:
    """Return a start, or the highest end of climbs from it and, with few rows, rotations of it."""
    settings, unit = control.settings, np.broadcast_to(control.settings.unit, rows.d)[:, None]
    first = run = _paper_start(rng, rows, start, control)
    sums = em.sums_a_pass(rows.n, settings.n_components, settings.n_active)
    few, others = 0 < sums <= FEW_SUMS and rows.n * rows.d <= FEW_NUMBERS, 0
    if several and isinstance(start, list) and few:
        others = sum(c.rotation is starts.random_rotation and not c.extra for c in start)
    runs, em_map = Runs(), em.EMMap(rows, settings)
    while others and run.stop_reason != loop.STOPPED:
        stage = f"start {len(runs) + 1} of {others + 1}"
        path = starts.ascent(run.state, em_map)
        runs.append(control.run(stage, path, rows, REFINEMENT_ITERATIONS, SCREENING_TOL))
        if runs[-1].stop_reason == loop.STOPPED or len(runs) > others:
            run = runs[-1]
            break
        V = first.state.W @ starts.random_rotation(rng, first.state.W)
        W = np.divide(V, unit, out=np.zeros_like(V), where=unit > 0.0)
        run = _paper_start(rng, rows, W, control)
    highest = max(runs, key=lambda run: run.log_likelihood, default=first)
    return highest._replace(stop_reason=run.stop_reason)


def _paper_start(rng: Generator, rows: Rows, start: Any, control: EMControl) -> Run:
    settings = control.settings
    by_feature, varies = settings.variant.by_feature, np.broadcast_to(settings.unit, rows.d) > 0.0
    if by_feature:
        c = settings.unit[varies].astype(rows.dtype)
        origin = None if rows.origin is None else rows.origin[varies] * c
        start = start if isinstance(start, list) else start[varies] * c[:, None]
        X: Any = rows.X
        sparse = isinstance(X, ShiftedSparse)
        X = X.scaled(columns=settings.unit, kept=varies) if sparse else X[:, varies] * c
        rows = about(X, origin, rows.weights)
    paper = settings._replace(
        floor=em.floor_of(rows), variant=em.PAPER, power=None, unit=np.ones(()), most=np.ones(())
    )

    def hear(progress: loop.Progress) -> None:
        if control.callback is not None:
            control.callback(progress._replace(stage=f"start: {progress.stage}"))

    first = control._replace(
        settings=paper, tol=max(FIRST_TOL, control.tol), mass=rows.mass, callback=hear
    )
    if paper.n_active == paper.n_components and isinstance(paper.latent, str):
        fit = fit_in_closed_form(rng, rows, first)
    else:
        fit = fit_by_em(rng, rows, start, first)
    state = em.evenly(fit.state, settings)
    if by_feature:
        W = np.zeros((len(varies), paper.n_components))
        W[varies] = state.W
        by = np.sqrt(state.noise)
        latent, scale = state.latent / state.noise, np.minimum(settings.unit / by, settings.most)
        state = state._replace(W=W, shift=state.shift / by, latent=latent, noise=1.0, scale=scale)
    return loop.EMResult(state, np.nan, [], fit.stop_reason)


def _on_other_rows(run: Run, sample: Rows, rows: Observations, settings: em.EMSettings) -> Run:
    state = run.state
    away = np.zeros(rows.d)
    if rows.origin is not None and sample.origin is not None:
        away = sample.origin.astype(np.float64) - rows.origin
    scale = _scale_from(state.scale, settings)
    return run._replace(state=state._replace(offset=state.offset + away, scale=scale))


def _scale_from(scale: Array, settings: em.EMSettings) -> Array:
    """Scales of other rows; of features that were constant, all variance is noise."""
    return np.asarray(np.minimum(np.where(scale > 0.0, scale, settings.unit), settings.most))
