"""EM for adaptive factor analysis: the steps and the whole fit (docs/mathematics.md 3.3).

The paper's algorithm 1, corrected:

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I),  w_dk ~ N(0, sigma2_W),
    z_n uniform over the L-subsets of 1..K;  W is any D x K matrix,  mu = origin - W shift

With few supports, EM sums over all of them and maximizes the likelihood. With many, it assigns each
row a support (classification EM) and maximizes log p(Y, Z), the paper's objective.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.random import Generator

from appca.models import climb, em, independent_components, polynomials, supports
from appca.models.climb import halt as at_floor
from appca.models.em import MAX_MOMENTUM_LOG_CHANGE, SubspaceStatistics
from appca.models.independent_components import Start
from appca.models.loop import STOPPED, WINDOW, EMResult, nesterov, watcher
from appca.models.numerics import Array, Members
from appca.models.rows import Rows, outer_sum, project, some_rows
from appca.models.set_tree import CollapsedModel
from appca.models.stiefel import Thin, lower, thin
from appca.models.supports import ANNEALED, MANY, RowSupports, SupportsOfRows

PRIOR = 1.0  # 1 / tau2
MODE, DRAW = np.array([math.inf]), np.array([1.0])
# Fraction of worst-fitting rows searched again each iteration; 0 for many slots and factors, where
# searches are slow and gained only 0.1 of 1664 nats per row (MNIST, K = 100, L = 50).
WORST = 0.05


class FactorState(NamedTuple):
    """Parameters that an EM step reads and writes."""

    W: Array  # (d, K)
    shift: Array  # (K,) with mean = origin - W shift
    noise: float  # sigma2


class FactorSettings(NamedTuple):
    """Settings that stay fixed over the iterations of EM."""

    n_active: int  # L
    loading_variance: float  # sigma2_W; infinite without a prior on W
    learn_mean: bool  # False: the mean stays at the origin of the rows
    floor: float  # minimum variance


def coefficients(state: FactorState, rows: Rows, n_active: int) -> SupportsOfRows:
    """Project the rows; |y - mu|^2 = |y - origin|^2 + 2 shift'W'(y - origin) + |W shift|^2."""
    G = (state.W.T @ state.W).astype(np.float64, copy=False)
    P, toward = project(rows, state.W).astype(np.float64, copy=False), G @ state.shift
    squares = rows.squares + 2.0 * (P @ state.shift) + state.shift @ toward
    background = em.background(squares, state.noise, rows.n_features)
    c, model = (P + toward) / state.noise, CollapsedModel(G / state.noise, PRIOR)
    return SupportsOfRows(c, model, n_active, background=background)


def expect_all(state: FactorState, rows: Rows, settings: FactorSettings) -> SubspaceStatistics:
    """E step over all supports: exact posterior sums and the exact log-likelihood."""
    seen = coefficients(state, rows, settings.n_active)
    every = seen.every_set(weights=rows.weights)
    moments = every.H, every.second, rows.weighted(every.inclusion).sum(axis=0)
    return _sums(seen.background + every.log_sum, moments, state, rows, settings)


def expect_sets(
    rng: Generator, state: FactorState, rows: Rows, settings: Any, chosen: Any, betas: Any = MODE
) -> tuple[SubspaceStatistics, Members, Array]:
    """E step of classification EM, for log p(Y, Z): choose a support per row, then sum.

    `chosen` are the current members (N, L), negative if none, and log p(y_n | S_n) of the last
    pass; the rows with the lowest values are searched again. `betas` are for `supports.search`.
    """
    seen = coefficients(state, rows, settings.n_active)
    members, log_conditional = chosen
    seeds = supports.draw_seeds(rng, len(members))
    few_slots = seen.c.shape[1] * members.shape[1] <= MANY
    if log_conditional is not None and betas is MODE and few_slots:
        order = np.argsort(log_conditional)
        counted = np.cumsum(rows.weighted(np.ones(rows.n))[order])
        worst = order[: int(np.searchsorted(counted, WORST * rows.mass)) + 1]
        few = RowSupports(seen.c[worst], members[worst], seeds[worst])
        members = members.copy()
        members[worst] = supports.search(few, ANNEALED, seen.model, keep=True)[0]
    at = RowSupports(seen.c, members, seeds)
    members, moments = supports.search(at, betas, seen.model, weights=rows.weights)
    log_conditional, counts = seen.background + moments.value, rows.weighted(np.ones(members.shape))
    used = np.bincount(members.ravel(), counts.ravel(), minlength=len(seen.model.A))
    sums = _sums(log_conditional, (moments.H, moments.second, used), state, rows, settings)
    return sums, members, log_conditional


def _sums(
    values: Array, moments: Any, state: FactorState, rows: Rows, settings: FactorSettings
) -> SubspaceStatistics:
    """Return all sums from nats (N,), E[x z] (N, K), and sums of E[(x z)(x z)'] and of z."""
    (H, second, used), K, v = moments, state.W.shape[1], settings.loading_variance
    total = float(rows.weighted(values).sum())
    total -= rows.mass * polynomials.log_binomial(K, settings.n_active)
    if math.isfinite(v):
        total -= 0.5 * rows.n_features * K * math.log(2.0 * math.pi * v)
        total -= 0.5 * float(np.square(state.W).sum()) / v
    H = rows.weighted(H)
    return SubspaceStatistics(total, outer_sum(rows, H), H.sum(axis=0), second, used)


def maximise(
    sums: SubspaceStatistics, state: FactorState, rows: Rows, settings: FactorSettings
) -> FactorState:
    """M step for W, mean and sigma2 in closed form; it never lowers the objective.

    With s = E[x z], bars for averages and M = sum E[(s - sbar)(s - sbar)'] over rows,

        W = B (M + sigma2/sigma2_W I)^-1,   mu = ybar - W sbar,
        sigma2 = (sum |y - ybar|^2 - 2 tr(W'B) + tr(W'W M)) / (N D).

    Without a prior, W is scaled by the best factor deviation (Liu, Rubin and Wu 1998).
    """
    n = rows.mass
    mean = sums.s / n if settings.learn_mean else np.zeros_like(sums.s)
    M = sums.second - n * np.outer(mean, mean)
    free = not math.isfinite(settings.loading_variance)
    ridge = 0.0 if free else state.noise / settings.loading_variance
    some = sums.used > 1e-9 * n if free else np.ones(len(M), dtype=bool)
    W = state.W.copy()
    left = M[np.ix_(some, some)] + ridge * np.eye(int(some.sum()))
    W[:, some] = scipy.linalg.solve(left, sums.A[:, some].T, assume_a="pos").T
    squares = rows.total - 2.0 * np.sum(W * sums.A) + np.sum((W.T @ W) * M)
    noise = max(float(squares) / (n * rows.n_features), settings.floor)
    if free:
        stretch = math.sqrt(float(np.trace(sums.second)) / (n * settings.n_active))
        W, mean = W * stretch, mean / stretch
    return FactorState(W, mean, noise)


def extend(before: FactorState, now: FactorState, beta: float, settings: Any) -> FactorState:
    """Take a momentum step theta = now + beta (now - before), with sigma2 in logs."""
    change, most = beta * math.log(now.noise / before.noise), MAX_MOMENTUM_LOG_CHANGE
    noise = now.noise * math.exp(min(max(change, -most), most))
    W = now.W + beta * (now.W - before.W)
    return FactorState(W, now.shift + beta * (now.shift - before.shift), max(noise, settings.floor))


SAMPLE_TOL = 1e-2  # nats per row over ten iterations on the first sample
SAMPLE_GROWTH, MUCH_LESS = 4, 3  # growth of samples, up to 1/3 of the rows


class FactorFit(NamedTuple):
    """Result of EM."""

    state: FactorState
    sums: SubspaceStatistics  # sums at that state
    members: Members | None  # (N, L) supports assigned to rows, if any
    log_likelihoods: list[float]
    stop_reason: str
    same_order: bool = False  # whether a warm start kept the order and signs of components


# name, and (rng, rows, their thin coordinates if they are a sample) -> first loadings
Begins = list[tuple[str, Callable[[Generator, Rows, Thin | None], Start]]]


class ClassificationState(NamedTuple):
    """State of classification EM, one support per row."""

    state: FactorState
    members: Members  # (N, L)
    log_conditional: Array | None  # (N,) log p(y_n | S_n)
    changed: float  # share of slots that the last iteration changed
    iterations: int


def given_start(
    W: Array, noise: Any, rows: Rows, _rng: Any, work: Rows, space: Thin | None, shift: Any = None
) -> Start:
    """Return a start from loadings W (D, K), and the noise and shift of a fit."""
    W = W if space is None else lower(W, space, rows)
    start = independent_components.from_loadings(work, W)
    return start if noise is None else start._replace(noise=noise, shift=shift)


def sample_size(n_components: int) -> int:
    """Return the size of the first sample of many rows."""
    return max(climb.MIN_SAMPLE_ROWS, climb.SAMPLE_ROWS_PER_COMPONENT * n_components)


def fit(rng: Generator, rows: Rows, begins: Begins, control: climb.EMControl) -> FactorFit:
    """Fit from every start and keep the likeliest fit; if N < D, fit in the span of the rows."""
    n, d = rows.X.shape
    space = thin(rows) if n < d and n <= climb.THIN_LIMIT else None
    work = rows if space is None else space.rows
    screened, stopped = len(begins) > 1 and control.screened_rows > 0, False
    if screened:
        start, stopped = _screened(rng, begins, work, space, control)
        begins = [("screened", lambda *_: start)]
    fits: list[FactorFit] = []
    for i, (name, begin) in enumerate(begins, start=1):
        stage = "fit" if len(begins) == 1 else f"start {i} of {len(begins)}: {name}"
        fits.append(fit_from(rng, begin(rng, work, space), work, control.after(stopped), stage))
        stopped |= fits[-1].stop_reason == STOPPED
        if stopped:
            break
    best = max(fits, key=lambda fit: fit.sums.log_likelihood)
    state, same_order = best.state, best.same_order and not screened
    if space is not None:
        state = state._replace(W=outer_sum(rows, space.duals @ state.W))
    reason = STOPPED if stopped else best.stop_reason
    return best._replace(state=state, stop_reason=reason, same_order=same_order)


def _screened(
    rng: Generator, begins: Begins, rows: Rows, space: Thin | None, control: climb.EMControl
) -> tuple[Start, bool]:
    """Run EM from all starts on a sample of rows; return the best result, and if it was stopped."""
    sample, few, runs = rows, rows.n <= control.screened_rows, list[EMResult[FactorState]]()
    if not few:
        sample = some_rows(rng, rows, control.screened_rows, learn_mean=control.settings.learn_mean)
    most = min(climb.REFINEMENT_ITERATIONS, control.max_iter)
    short = control._replace(tol=max(SAMPLE_TOL, control.tol), max_iter=most)
    for i, (name, begin) in enumerate(begins, start=1):
        stage = f"screening {i} of {len(begins)}: {name}"
        state = _first_state(begin(rng, sample, space)._replace(shift=None), control)
        runs.append(_exact_ascent(state, sample, short, stage, runs))
        if runs[-1].stop_reason == STOPPED:
            break
    best = max(runs, key=lambda run: run.log_likelihood).state
    shift = best.shift if few else None
    return Start(best.W, best.noise, shift=shift), runs[-1].stop_reason == STOPPED


def _first_state(start: Start, control: climb.EMControl) -> FactorState:
    shift = np.zeros(start.W.shape[1]) if start.shift is None else start.shift
    return FactorState(start.W, shift, max(start.noise, control.settings.floor))


def fit_from(rng: Generator, start: Start, rows: Rows, control: Any, stage: str) -> FactorFit:
    """Fit from one start, on samples first if there are many rows."""
    same_order, stopped, state = start.shift is not None, False, _first_state(start, control)
    if not control.exact:
        annealing = 0 if same_order else max(control.annealing, start.annealing)
        control = control._replace(annealing=annealing)
        return _classification_em(rng, state, rows, control, stage)._replace(same_order=same_order)
    size, tol = sample_size(start.W.shape[1]), SAMPLE_TOL
    while MUCH_LESS * size <= rows.n and not same_order and not stopped:
        sample = some_rows(rng, rows, size, learn_mean=control.settings.learn_mean)
        part, words = control._replace(tol=max(tol, control.tol)), f"refinement on {size:,} rows"
        ended = _exact_ascent(state, sample, part, words)
        state, stopped = ended.state, ended.stop_reason == STOPPED
        size, tol = SAMPLE_GROWTH * size, tol / SAMPLE_GROWTH
    ended = _exact_ascent(state, rows, control.after(stopped), stage)
    sums = expect_all(ended.state, rows, control.settings)
    reason = STOPPED if stopped else ended.stop_reason
    return FactorFit(ended.state, sums, None, ended.log_likelihoods, reason, same_order)


def _exact_ascent(
    start: FactorState, rows: Rows, control: climb.EMControl, stage: str, others: Sequence[Any] = ()
) -> EMResult[FactorState]:
    settings = control.settings

    def advance(state: FactorState) -> tuple[float, FactorState]:
        sums = expect_all(state, rows, settings)
        if not math.isfinite(sums.log_likelihood):
            return -math.inf, state
        return sums.log_likelihood, maximise(sums, state, rows, settings)

    path = nesterov(advance, start, partial(extend, settings=settings))
    path = climb.while_promising(path, list(others)) if others else path
    stop = partial(at_floor, floor=settings.floor)
    return control.run(stage, path, rows, control.max_iter, control.tol, halt=stop)


def _classification_em(
    rng: Generator, start: FactorState, rows: Rows, control: climb.EMControl, stage: str
) -> FactorFit:
    settings, least, stopped = control.settings, control.least_change, False
    last: dict[str, Any] = {}  # the E step at the current state of EM

    def advance(before: ClassificationState, betas: Array = MODE) -> Any:
        sums, members, values = expect_sets(rng, before.state, rows, settings, before[1:3], betas)
        last.update(sums=sums, members=members)
        state = maximise(sums, before.state, rows, settings)
        member = supports.indicators(before.members, len(sums.second))
        kept = np.take_along_axis(member, members, axis=1).mean(axis=1)
        changed = float(1.0 - np.average(kept, weights=rows.weights))
        after = state, members, values, changed, before.iterations + 1
        return sums.log_likelihood, ClassificationState(*after)

    def halt(before: ClassificationState) -> str | None:
        few = f"converged: an iteration changed less than {least:g} of the slots"
        enough = before.iterations >= WINDOW and before.changed < least
        return at_floor(before.state, settings.floor) or (few if enough else None)

    none = np.full((len(rows.X), settings.n_active), -1, dtype=np.int64)
    before = ClassificationState(start, none, None, 1.0, 0)
    watch = watcher(control.callback, f"{stage}, annealing", control.annealing)
    for i in range(1, control.annealing + 1):
        value, before = advance(before, DRAW)
        if stopped := watch(i, value):
            break
    control, path = control.after(stopped), nesterov(advance, before._replace(iterations=0))
    ended = control.run(stage, path, rows, control.max_iter, control.tol, halt=halt)
    reason = STOPPED if stopped else ended.stop_reason
    e_step = last["sums"], last["members"]
    return FactorFit(ended.state.state, *e_step, ended.log_likelihoods, reason)
