"""Multi-start EM for adaptive PPCA: all starts run on a sample, the best on all rows.

No start is best on all real data, and the first iterations hardly predict the best one. Therefore
EM runs to convergence from all starts on a sample in principal coordinates, from the best three on
more rows, and from the best of these on all rows. Variants start from a fit of the paper's model.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.random import Generator

from appca.models import em, loop, polynomials, stiefel
from appca.models.independent_components import fast_ica
from appca.models.numerics import Array
from appca.models.rows import Block, Observations, Rows, about, project, some_rows, stored_width

ANNEALED_ITERATIONS = 30  # number of iterations in which beta rises geometrically from 0.001 to 1
FIRST_BETA, MAX_QUARTIMAX_STEPS = 0.001, 200
MAX_ICA_STEPS = 80  # K = 500 takes 45 steps; a step costs two products
QUARTIMAX_PRECISION = 1e-4  # maximum change of the rotation in the last step


def closed_form(rows: Observations, leading: stiefel.Principal, floor: float) -> em.SubspaceState:
    """Return the maximum of the PPCA likelihood: Tipping and Bishop (1999), equations 7 and 8."""
    n, q = rows.mass, len(leading.values)
    total, spare = rows.total / n, rows.n_features - q
    noise = max((total - leading.values.sum()) / spare if spare else 0.0, floor)
    latent = np.maximum(leading.values - noise, floor)
    return em.SubspaceState(leading.V, np.zeros(q), latent, noise)


class Candidate(NamedTuple):
    """A named start: principal directions times a rotation, with or without annealing."""

    name: str
    rotation: Callable[[Generator, Array], Array]  # (rng, scores (N, K)) -> (K, K)
    annealed: bool = False
    needs_many_rows: bool = False  # whether it needs scores of K^2 rows
    spare: bool = False  # omitted if runs to convergence are expensive
    extra: bool = False  # used only if all extra starts cost less than a second


def quartimax(_rng: Generator, P: Array) -> Array:
    """Return the rotation that maximizes fourth powers of scores P (N, K): R <- polar(P'(PR)^3)."""
    if not P.any():  # a sample of equal rows
        return np.eye(P.shape[1])
    lines = np.ascontiguousarray(P.T / np.sqrt(np.mean(P**2)))  # twice as fast as rows
    R, cubes = np.eye(len(lines)), np.empty_like(lines)
    for _ in range(MAX_QUARTIMAX_STEPS):
        before, Q = R, R.T.astype(lines.dtype) @ lines
        np.multiply(Q, Q, out=cubes)
        cubes *= Q
        R = stiefel.polar(lines @ cubes.T, before)
        if np.max(np.abs(R - before)) < QUARTIMAX_PRECISION:
            break
    return R


independent = partial(fast_ica, most=MAX_ICA_STEPS)  # the most independent components


def unrotated(_rng: Generator, P: Array) -> Array:
    """Return the identity, which keeps the principal directions."""
    return np.eye(P.shape[1])


def random_rotation(rng: Generator, P: Array) -> Array:
    """Draw a uniform orthogonal matrix, the polar factor of a Gaussian matrix."""
    return stiefel.polar(rng.standard_normal((P.shape[1],) * 2))


QUARTIMAX, PCA = Candidate("quartimax", quartimax), Candidate("PCA", unrotated)
ANNEALED_PCA = Candidate("annealed PCA", unrotated, annealed=True)
ANNEALED_QUARTIMAX = Candidate("annealed quartimax", quartimax, annealed=True)
ICA = Candidate("independent components", independent, needs_many_rows=True)

RANDOM = Candidate("random rotation", random_rotation)
SPARE_STARTS, EXTRA_STARTS = 5, 25  # on handwritten digits, one of them usually wins
SPARE = [RANDOM._replace(spare=True)] * SPARE_STARTS + [RANDOM._replace(extra=True)] * EXTRA_STARTS

NAMED = {"annealed": ANNEALED_PCA, "ica": ICA, "pca": PCA, "quartimax": QUARTIMAX, "random": RANDOM}
AUTOMATIC = (QUARTIMAX, ANNEALED_PCA, PCA, ANNEALED_QUARTIMAX, *SPARE)
MANY_COMPONENTS = 100  # above this K, quartimax on the sample fails
FOR_MANY = (ICA, ANNEALED_PCA, PCA)


def candidates(init: str, n_init: int, n_components: int) -> list[Candidate]:
    """Return the starts for `init`, and n_init - 1 random rotations."""
    automatic = FOR_MANY if n_components > MANY_COMPONENTS else AUTOMATIC
    return [*(automatic if init == "auto" else [NAMED[init]]), *[RANDOM] * (n_init - 1)]


def first_state(rows: Observations, W: Array, settings: em.EMSettings) -> em.SubspaceState:
    """Return variances after assigning each row to its L largest projections on W."""
    K, L, n = settings.n_components, settings.n_active, rows.mass

    def top_power(block: Block) -> tuple[Array, Array]:
        power = np.square(block.times(W), dtype=np.float64)
        active = polynomials.top(power, L).astype(np.float64)
        weights = np.ones(len(power)) if block.weights is None else block.weights
        return weights @ (power * active), weights @ active

    captured, used = rows.summed(top_power, (np.zeros(K), np.zeros(K)))
    left, spare = rows.total - float(captured.sum()), n * (rows.n_features - L)
    noise = max(left / spare if spare else captured.sum() / (2 * n * L), settings.floor)
    if settings.latent == "shared":
        tau2 = np.full(K, captured.sum() / (n * L) - noise)
    elif settings.latent == "component":
        tau2 = captured / np.where(used > 0.0, used, 1.0) - noise
    else:
        tau2 = np.full(K, settings.latent)
    return em.SubspaceState(W, np.zeros(K), np.maximum(tau2, settings.floor), noise)


def annealed(
    start: em.SubspaceState, rows: Observations, settings: em.EMSettings
) -> loop.Path[em.SubspaceState]:
    """Run EM with logits times beta, which rises to 1; yielded values may decrease."""
    yield -math.inf, start
    state, em_map = start, em.EMMap(rows, settings)
    for beta in np.geomspace(FIRST_BETA, 1.0, ANNEALED_ITERATIONS):
        value, state = em_map(state, em.expect(state, rows, settings, float(beta)))
        yield value, state


def ascent(
    start: em.SubspaceState, em_map: em.EMMap, *, accelerate: bool = True, age: int = 0
) -> loop.Path[em.SubspaceState]:
    """Run EM from `start`, with momentum of a given age or without."""
    ahead = partial(em.extend, settings=em_map.settings) if accelerate else None
    return loop.nesterov(em_map, start, ahead, age)


SCREENING_ITERATIONS, REFINEMENT_ITERATIONS = 20, 200  # per candidate and per later run
# Limit of rows x K x swaps up to which all candidates run to convergence on the sample. At K = 30,
# L = 8 ten such runs took 22 s, five times as long as the fit without them.
MOST_SUMS = 400_000
FEW_SUMS, FEW_NUMBERS = 50_000, 2**18  # limits for 25 more rotations on all rows
SCREENING_TOL = FIRST_TOL = 1e-2  # nats per row; less overfits the sample
# A run on a sample ends if three times the gain of its last ten iterations would not reach the end
# of another run. On all rows of COIL-20, this rule would have lost the best run in 3 of 12 fits.
PATIENCE = 3.0

# From samples of 2,500 rows of MNIST, the best fit to 60,000 rows loses 0.1 nats per row.
SAMPLE_ROWS_PER_COMPONENT, MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 400, 2500, 10_000
COORDINATES_PER_COMPONENT, MIN_COORDINATES = 8, 64  # half as many for a sample
SAMPLE_COORDINATES_PER_COMPONENT = 2
LARGER_SAMPLE, FINALISTS = 3, 3  # factor of rows of the larger sample; number of fits to it
LATER_AGE = 6  # age of momentum on new rows; saves two or three iterations
LAST_SHARE, LAST_SHARE_OF_VARIANTS = 20.0, 200.0  # multiples of tol after sample runs
LAST_WINDOW = 3  # few iterations, because runs on samples have passed the plateaus
DIFFERENT = 1e-2  # nats per row between distinct results
ROUGH_TOL, ROUGH_ITERATIONS = 3e-2, 50  # at K = 500, 200 iterations overfit a sample of 10,000 rows
MAX_COORDINATE_BYTES = MAX_SAMPLE_BYTES = 2**28  # of all rows, of the sample
MAX_SCORES_BYTES = 2**29  # maximum size of principal scores for starts that need many rows

Run = loop.EMResult[em.SubspaceState]
Runs = list[Run]


class EMControl(NamedTuple):
    """Settings of all stages of a fit."""

    settings: Any  # `EMSettings` or `FactorSettings`
    callback: loop.Callback | None
    max_iter: int  # maximum in every stage
    tol: float  # nats per row over ten iterations on all rows
    accelerate: bool  # whether the final fit uses momentum; screening always does
    mass: float  # mass of all rows, to which log-likelihoods of samples are scaled
    # The other fields are for adaptive factor analysis.
    exact: bool = True  # sum over all supports, or one support per row
    annealing: int = 0  # number of iterations with drawn supports
    least_change: float = 0.0  # minimum share of slots that an iteration changes
    screened_rows: int = 0  # size of the sample that screens starts; 0: fit every start fully

    def after(self, stopped: bool) -> "EMControl":
        """Return these settings; after a stop, limited to one step, which completes the fit."""
        return self._replace(max_iter=1, callback=None) if stopped else self

    def run(
        self, stage: str, path: loop.Path[loop.S], rows: Any, limit: int, tol: float, **how: Any
    ) -> loop.EMResult[loop.S]:
        """Run at most `limit` iterations; `tol` is nats per row over ten iterations."""
        limit, n = min(limit, self.max_iter), rows.mass
        watch = loop.watcher(self.callback, stage, limit, self.mass / n)
        return loop.iterate(path, tol=tol * n, max_iter=limit, watch=watch, **how)


def screen(
    rng: Generator, em_map: em.EMMap, candidates: list[Candidate], control: EMControl
) -> tuple[Run, bool]:
    """Return the best candidate's result in all coordinates, and whether samples were used."""
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
        runs = _go_on(_best(runs, 1, sample.mass), sample, control, tol, limit=iterations)
    if not whole and runs[-1].stop_reason != loop.STOPPED:
        fitting = MAX_COORDINATE_BYTES // (drawn.basis.shape[1] * rows.dtype.itemsize)
        held = _coordinates(rng, rows, drawn.basis, max(fitting, sample.n))
        runs, size = _best(runs, FINALISTS, sample.mass), LARGER_SAMPLE * sample.n
        part = some_rows(rng, held, size, learn_mean=settings.learn_mean) if size < held.n else held
        runs = _best(_go_on(runs, part, control, tol, limit=iterations), 1, part.mass)
        runs = _go_on(runs, held, control, loop.WINDOW * control.tol, window=LAST_WINDOW)
    best = max(runs, key=lambda run: run.log_likelihood)
    W = stiefel.polar(drawn.basis[:, : len(best.state.W)] @ best.state.W)
    run = best._replace(state=best.state._replace(W=W), stop_reason=runs[-1].stop_reason)
    return run, not whole


def _go_on(
    runs: Runs, rows: Rows, control: EMControl, tol: float, age: int = 0, **how: Any
) -> Runs:
    """Continue runs on other rows, possibly in more coordinates."""
    how = {"limit": REFINEMENT_ITERATIONS} | how
    em_map, further = em.EMMap(rows, control.settings), Runs()
    for run in runs:
        if run.stop_reason == loop.STOPPED:
            return runs
        W = np.zeros((rows.d, run.state.W.shape[1]))
        W[: len(run.state.W)] = run.state.W
        path = while_promising(ascent(run.state._replace(W=W), em_map, age=age), further)
        further.append(control.run(f"refinement on {rows.n:,} rows", path, rows, tol=tol, **how))
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
) -> stiefel.Coordinates:
    """Draw rows, relative to their mean if it is learned, in their principal coordinates."""
    n, d, K = rows.n, rows.d, settings.n_components
    size = sample_size(rows, K)
    each = COORDINATES_PER_COMPONENT // (1 if size == n else 2)
    q = min(max(each * K, MIN_COORDINATES), size, d)
    sample = some_rows(rng, rows, size, learn_mean=settings.learn_mean) if size < n else rows
    in_thin_coordinates = rows.n_features != d  # already principal coordinates
    basis = np.eye(d, q) if in_thin_coordinates else stiefel.sketched(rng, sample, q)
    few = q if size == n else min(SAMPLE_COORDINATES_PER_COMPONENT * K, q)
    return stiefel.Coordinates(_coordinates(rng, sample, basis[:, :few], size), basis)


def sample_size(rows: Observations, n_components: int) -> int:
    """Return the number of rows on which starts are screened."""
    width = stored_width(rows.X) if isinstance(rows, Rows) else rows.d
    fitting = max(MAX_SAMPLE_BYTES // (width * rows.dtype.itemsize), MIN_SAMPLE_ROWS)
    size = max(SAMPLE_ROWS_PER_COMPONENT * n_components, MIN_SAMPLE_ROWS)
    return min(size, MAX_SAMPLE_ROWS, fitting, rows.n)


def _coordinates(rng: Generator, rows: Observations, basis: Array, most: int) -> Rows:
    squares = rows.squares if isinstance(rows, Rows) else np.full(rows.n, rows.total / rows.n)
    weights = rows.weights if isinstance(rows, Rows) else None
    if most >= rows.n:
        X = project(rows, basis, "F")  # the fastest order for the E step
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


def _scores(rng: Generator, rows: Observations, drawn: stiefel.Coordinates, K: int) -> Array:
    """Return principal scores (n, K) of K^2 rows, or of fewer rows if memory is short."""
    size = min(K * K, rows.n, MAX_SCORES_BYTES // (K * rows.dtype.itemsize))
    if size <= drawn.rows.n:
        return drawn.rows.X[:, :K]
    return _coordinates(rng, rows, drawn.basis[:, :K], size).X


def climb(
    rng: Generator,
    rows: Rows,
    candidates: list[Candidate],
    control: EMControl,
    iterations: int,
    tol: float,
    scores: Callable[[int], Array] | None = None,
) -> Runs:
    """Run EM from every candidate on `rows` in principal coordinates."""
    P = rows.X[:, : control.settings.n_components]
    if rows.weights is not None:
        P = P * rows.weights[:, None] ** 0.25  # rotations depend on fourth powers
    runs: Runs = []
    rotations: dict[Any, Array] = {}
    for i, candidate in enumerate(candidates, start=1):
        seen = scores(P.shape[1]) if candidate.needs_many_rows and scores is not None else P
        if candidate.rotation is random_rotation or candidate.rotation not in rotations:
            rotations[candidate.rotation] = candidate.rotation(rng, seen)
        W = np.eye(rows.X.shape[1], P.shape[1]) @ rotations[candidate.rotation]
        del seen  # may be as large as the rows
        stage = f"screening {i} of {len(candidates)}: {candidate.name}"
        state = first_state(rows, W, control.settings)
        run = loop.EMResult(state, -math.inf, list[float](), "")
        if candidate.annealed:
            path = annealed(state, rows, control.settings)
            run = control.run(stage, path, rows, ANNEALED_ITERATIONS, -math.inf)
        if run.stop_reason != loop.STOPPED:
            path = ascent(run.state, em.EMMap(rows, control.settings))
            if rows.mass < control.mass or candidate.extra:
                path = while_promising(path, runs)
            run = control.run(stage, path, rows, iterations, tol)
        runs.append(run)
        if run.stop_reason == loop.STOPPED:
            break
    return runs


def while_promising(path: loop.Path[loop.S], others: list[loop.EMResult[Any]]) -> loop.Path[loop.S]:
    """Yield from a path while it may surpass the other runs; see `PATIENCE`."""
    best, values = max((run.log_likelihood for run in others), default=-math.inf), list[float]()
    for value, state in path:
        yield value, state
        values.append(value)
        gain = value - values[-1 - loop.WINDOW] if len(values) > loop.WINDOW else math.inf
        if value + PATIENCE * gain < best:
            return


THIN_LIMIT = 2000  # maximum N for which an N x N eigenproblem is worth its cost


class SubspaceFit(NamedTuple):
    """A fitted state in the features of the data."""

    state: em.SubspaceState
    second: Array | None  # (K,) sums over rows of E[(x z)^2]; None for variants
    log_likelihoods: list[float]  # total after each iteration, in nats
    stop_reason: str
    sums: em.SubspaceStatistics | None = None  # at the state, with W'A (K, K) in place of A
    same_order: bool = False  # whether a warm start kept the order and signs of components


def fit_in_closed_form(rng: Generator, rows: Observations, control: EMControl) -> SubspaceFit:
    """Fit with L = K: all rows use all components, so the model is PPCA."""
    settings = control.settings
    lead = stiefel.principal(rng, rows, settings.n_components)
    state = closed_form(rows, lead, settings.floor)
    if settings.latent == "shared":
        state = state._replace(latent=np.full_like(state.latent, state.latent.mean()))
    n, noise, (shrink, v) = rows.mass, state.noise, em.posterior(state.noise, state.latent)

    def moments(block: Block) -> tuple[Array, Array]:
        P = block.times(state.W).astype(np.float64, copy=False)
        return block.weighted(P).sum(axis=0), block.weighted(P).T @ P

    total, products = rows.summed(moments, (np.zeros(len(v)), np.zeros((len(v), len(v)))))
    second, base = products.diagonal(), em.background(rows.total / n, noise, rows.n_features)
    gain = shrink @ second / (2.0 * noise) - 0.5 * n * np.log1p(state.latent / noise).sum()
    value, second = float(n * base + gain), second * shrink**2 + n * v
    of_rows = products * shrink, total * shrink, second, np.full(len(v), n)
    loop.watcher(control.callback, "closed form", 1)(1, value)
    if settings.latent == "component":
        second = np.maximum(lead.values - noise, 0.0) * n
    sums = em.SubspaceStatistics(value, *of_rows)
    return SubspaceFit(state, second, [value], halt(state, settings.floor) or "closed form", sums)


def fit_state(rng: Generator, control: EMControl, rows: Observations, start: Any) -> SubspaceFit:
    """Fit the model of these settings, from directions, a state or candidates."""
    settings = control.settings
    if settings.variant != em.PAPER:
        return fit_variant(rng, rows, start, control)
    if settings.n_active == settings.n_components and isinstance(settings.latent, str):
        return fit_in_closed_form(rng, rows, control)
    return fit_by_em(rng, rows, start, control)


def fit_by_em(rng: Generator, rows: Observations, start: Any, control: EMControl) -> SubspaceFit:
    """Run EM from directions (D, K), a state, or the best of several candidates."""
    settings, space, whole = control.settings, None, isinstance(start, em.SubspaceState)
    if rows.n < rows.d and rows.n <= THIN_LIMIT and isinstance(rows, Rows):
        thinned = stiefel.thin(rows)
        space = thinned if thinned.rows.d >= settings.n_components else None
    work: Observations = rows if space is None else space.rows
    em_map, sampled = em.EMMap(work, settings), False
    if isinstance(start, list):
        # Starts are screened with the polar update, because every update has the same maximum.
        em_map.settings = settings._replace(update=stiefel.polar)
        begun, sampled = screen(rng, em_map, start, control._replace(settings=em_map.settings))
        em_map.settings = settings
    else:
        W: Array = start.W if whole else np.asarray(start)
        W = stiefel.polar(W if space is None else stiefel.lower(W, space, rows))
        first = start._replace(W=W) if whole else first_state(work, W, settings)
        begun = loop.EMResult(first, np.nan, [], "")
    run = last_climb(begun, em_map, control, LAST_SHARE if sampled else None)
    state, sums = run.state, em_map.sums(run.state)
    sums = sums._replace(A=state.W.T @ sums.A)  # the same in all coordinates
    if space is not None:
        state = state._replace(W=stiefel.lift(state.W, space, rows))
    return SubspaceFit(state, sums.second, run.log_likelihoods, run.stop_reason, sums, whole)


def last_climb(
    start: Run, em_map: em.EMMap, control: EMControl, share: float | None, stage: str = "fit"
) -> Run:
    """Run EM on all rows until an iteration gains less than `share` tol; one step after a stop."""
    stopped = start.stop_reason == loop.STOPPED
    control = control.after(stopped)
    settings, age = em_map.settings, 0 if share is None else LATER_AGE
    path = ascent(start.state, em_map, accelerate=control.accelerate, age=age)
    window, factor = (loop.WINDOW, 1.0) if share is None else (1, share * loop.WINDOW)
    stop = partial(halt, floor=0.0 if settings.variant.by_feature else settings.floor)
    at = em_map.rows, control.max_iter, factor * control.tol
    run = control.run(stage, path, *at, window=window, halt=stop)
    if share is not None and run.stop_reason.startswith(loop.CONVERGED):
        words = f"the last iteration gained less than {share:g} times tol"
        run = run._replace(stop_reason=f"{loop.CONVERGED}: {words}")
    return run._replace(stop_reason=loop.STOPPED) if stopped else run


def halt(state: Any, floor: float) -> str | None:
    """Return the reason to end EM if the noise variance is at its floor, else None."""
    if state.noise > floor:
        return None
    return "the noise variance reached its floor, 1e-8 of the mean feature variance"


SAMPLE_TOL, LARGER_TOL = 3e-2, 0.3  # nats per row, on the sample and on the larger sample


def fit_variant(rng: Generator, rows: Observations, start: Any, control: EMControl) -> SubspaceFit:
    """Fit a variant by EM, on samples of many rows first."""
    settings, whole = control.settings, isinstance(start, em.SubspaceState)

    def drawn(size: int) -> tuple[Rows, EMControl]:
        """Draw rows, but keep the noise floors of all rows."""
        sample = some_rows(rng, rows, size, learn_mean=settings.learn_mean)
        at = em.settings_on(sample, settings)
        at = at._replace(most=np.where(at.most > 0.0, settings.most, 0.0))
        return sample, control._replace(settings=at)

    def moved(run: Run, sample: Any, rows: Any, settings: em.EMSettings) -> Run:
        """Continue on other rows; the variance of features that were constant becomes noise."""
        state, away = run.state, 0.0
        if rows is not sample and rows.origin is not None and sample.origin is not None:
            away = sample.origin.astype(np.float64) - rows.origin
        scale = np.where(state.scale > 0.0, state.scale, settings.unit)
        offset, scale = state.offset + away, np.asarray(np.minimum(scale, settings.most))
        return run._replace(state=state._replace(offset=offset, scale=scale))

    sample: Any = rows
    run, at, sampled = loop.EMResult(start, np.nan, list[float](), ""), control, False
    if not whole:
        size = sample_size(rows, settings.n_components)
        if size < rows.n or not isinstance(rows, Rows):
            sample, at = drawn(size)
        run = _best_start(rng, sample, start, at, several=sample is rows)
        if sampled := sample.n < rows.n:
            run, size = _go_on([run], sample, at, SAMPLE_TOL)[0], LARGER_SAMPLE * sample.n
            if size * LARGER_SAMPLE <= rows.n:
                before, (sample, at) = sample, drawn(size)
                run = moved(run, before, sample, at.settings)
                run = _go_on([run], sample, at, LARGER_TOL, age=LATER_AGE)[0]
    share = LAST_SHARE_OF_VARIANTS if sampled else None
    run = last_climb(moved(run, sample, rows, settings), em.EMMap(rows, settings), control, share)
    return SubspaceFit(run.state, None, run.log_likelihoods, run.stop_reason, None, whole)


def _best_start(rng: Generator, rows: Rows, start: Any, control: EMControl, several: bool) -> Run:
    """Return a start; if rows are few, the best run from it and its random rotations."""
    settings, unit = control.settings, np.broadcast_to(control.settings.unit, rows.d)[:, None]
    first = run = _paper_start(rng, rows, start, control)
    sums = em.sums_a_pass(rows.n, settings.n_components, settings.n_active)
    runs, em_map, others = Runs(), em.EMMap(rows, settings), 0
    few = 0 < sums <= FEW_SUMS and rows.n * rows.d <= FEW_NUMBERS
    if several and isinstance(start, list) and few:
        others = sum(c.rotation is random_rotation and not c.extra for c in start)
    while others and run.stop_reason != loop.STOPPED:
        stage = f"start {len(runs) + 1} of {others + 1}"
        path = ascent(run.state, em_map)
        runs.append(control.run(stage, path, rows, REFINEMENT_ITERATIONS, SCREENING_TOL))
        if runs[-1].stop_reason == loop.STOPPED or len(runs) > others:
            run = runs[-1]
            break
        V = first.state.W @ random_rotation(rng, first.state.W)
        W = np.divide(V, unit, out=np.zeros_like(V), where=unit > 0.0)
        run = _paper_start(rng, rows, W, control)
    highest = max(runs, key=lambda run: run.log_likelihood, default=first)
    return highest._replace(stop_reason=run.stop_reason)


def _paper_start(rng: Generator, rows: Rows, start: Any, control: EMControl) -> Run:
    """Fit the paper's model, after scaling features to unit variance if each has its own noise."""
    settings, varies = control.settings, np.broadcast_to(control.settings.unit, rows.d) > 0.0
    if settings.variant.by_feature:
        c, X = settings.unit[varies].astype(rows.dtype), cast(Any, rows.X)
        origin = None if rows.origin is None else rows.origin[varies] * c
        start = start if isinstance(start, list) else start[varies] * c[:, None]
        is_dense = isinstance(X, np.ndarray)  # else sparse
        X = X[:, varies] * c if is_dense else X.scaled(columns=settings.unit, kept=varies)
        rows = about(X, origin, rows.weights)
    unit, floor = np.ones(()), em.floor_of(rows)
    paper = settings._replace(variant=em.PAPER, power=None, unit=unit, most=unit, floor=floor)

    def hear(progress: loop.Progress) -> None:
        if control.callback is not None:
            control.callback(progress._replace(stage=f"start: {progress.stage}"))

    tol = max(FIRST_TOL, control.tol)
    first = control._replace(settings=paper, tol=tol, mass=rows.mass, callback=hear)
    fit = fit_state(rng, first, rows, start)
    state = em.evenly(fit.state, settings)
    if settings.variant.by_feature:
        W, by = np.zeros((len(varies), paper.n_components)), np.sqrt(state.noise)
        W[varies] = state.W
        latent, scale = state.latent / state.noise, np.minimum(settings.unit / by, settings.most)
        state = state._replace(W=W, shift=state.shift / by, latent=latent, noise=1.0, scale=scale)
    return loop.EMResult(state, np.nan, [], fit.stop_reason)
