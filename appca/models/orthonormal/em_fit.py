"""Fit aPPCA by EM from data to parameters: coordinates, start, iteration.

Other ways of inference take the same rows and settings and stand beside this module.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import STOPPED, WINDOW, EMResult, iterate, plain, watcher
from appca.models.algebra.stiefel import polar
from appca.models.decompositions.spectrum import Coordinates, lift, lower, principal, thin
from appca.models.orthonormal.em import EMMap, SubspaceState, SubspaceStatistics, expect
from appca.models.orthonormal.last_climb import climb_all
from appca.models.orthonormal.screening import EMControl, ScreenedStart, screen
from appca.models.orthonormal.starts import Candidate, ascent, closed_form, first_state
from appca.models.rows.observations import Observations, Rows

THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem is cheap beside the passes it saves


class SubspaceFit(NamedTuple):
    """A fitted state in the features of the data, and how it was reached."""

    state: SubspaceState
    second: Array  # (K,) sums over rows of E[(x z)^2]
    log_likelihoods: list[float]  # after each iteration, total, nats
    stop_reason: str
    held: Coordinates | None = None  # of all rows, in the span of which the components are
    sums: SubspaceStatistics | None = None  # of the rows under the state, with W'A (K, K) for A
    same_order: bool = False  # whether EM went on from a whole state, in its order and signs


def fit_in_closed_form(
    rng: np.random.Generator, rows: Observations, control: EMControl
) -> SubspaceFit:
    """Fit at L = K, where all rows use all components and the model is PPCA."""
    settings = control.settings
    state = closed_form(rows, principal(rng, rows, settings.n_components), settings.floor)
    if settings.latent == "shared":
        state = state._replace(latent=np.full_like(state.latent, state.latent.mean()))
    sums = expect(state, rows, settings)
    watcher(control.callback, "closed form", 1)(1, sums.log_likelihood)
    reason = "closed form, because n_active equals n_components"
    within = sums._replace(A=state.W.T @ sums.A)
    return SubspaceFit(state, sums.second, [sums.log_likelihood], reason, None, within)


def fit_by_em(
    rng: np.random.Generator,
    rows: Observations,
    start: Array | SubspaceState | list[Candidate],
    control: EMControl,
) -> SubspaceFit:
    """Run EM from directions (D, K), from a whole state, or from the best of candidate starts.

    With fewer rows than features all of it happens in the rows' own space, see `thin`.
    """
    settings = control.settings
    space = None
    if rows.n < rows.d and rows.n <= THIN_LIMIT and isinstance(rows, Rows):  # cheap to find
        thinned = thin(rows)
        space = thinned if thinned.rows.d >= settings.n_components else None
    work: Observations = rows if space is None else space.rows
    em_map = EMMap(work, settings)
    if isinstance(start, list):
        # Starts are screened under the polar update whatever the fit's is: the maximum is the same.
        em_map.settings = settings._replace(update=polar)
        screened = screen(rng, em_map, start, control._replace(settings=em_map.settings))
        em_map.settings = settings
    else:
        whole_start = start if isinstance(start, SubspaceState) else None
        W = np.asarray(start) if whole_start is None else whole_start.W
        W = polar(W if space is None else lower(W, space, rows))
        first = first_state(work, W, settings) if whole_start is None else whole_start._replace(W=W)
        screened = ScreenedStart(EMResult(first, np.nan, [], ""), WINDOW)
    stopped = screened.run.stop_reason == STOPPED
    if screened.held is not None and settings.update is polar and not stopped:
        at_floor = partial(halt, floor=settings.floor)
        run, sums, held = climb_all(screened.run.state, screened.held, work, control, at_floor)
        return SubspaceFit(run.state, sums.second, run.log_likelihoods, run.stop_reason, held, sums)
    run = _ascend(screened, em_map, control)
    state, sums = run.state, em_map.within(run.state)
    if space is not None:
        state = state._replace(W=lift(state.W, space, rows))
    whole = isinstance(start, SubspaceState)
    return SubspaceFit(state, sums.second, run.log_likelihoods, run.stop_reason, None, sums, whole)


def _ascend(screened: ScreenedStart, em_map: EMMap, control: EMControl) -> EMResult[SubspaceState]:
    """Run EM on all rows; after a callback's stop a single step, so that the fit is complete."""
    settings, start = control.settings, screened.run.state
    if screened.run.stop_reason == STOPPED:
        path = plain(em_map, start)
        return iterate(path, tol=0.0, max_iter=1)._replace(stop_reason=STOPPED)
    # After climbs on samples only the directions outside their coordinates are left, which
    # converge within an iteration or two: one stands for ten.
    each = WINDOW if screened.window == 1 else 1
    return iterate(
        ascent(start, em_map, accelerate=control.accelerate),
        tol=each * control.tol * em_map.rows.mass,
        max_iter=control.max_iter,
        window=screened.window,
        watch=watcher(control.callback, "fit", control.max_iter),
        halt=partial(halt, floor=settings.floor),
    )


def halt(state: Any, floor: float) -> str | None:
    """Say that EM must end because the noise variance of a state has reached its floor."""
    if state.noise > floor:
        return None
    return "the noise variance reached its floor, 1e-8 of the mean feature variance"
