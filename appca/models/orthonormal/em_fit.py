"""Fit aPPCA by EM from data to parameters: coordinates, start, climb.

Other ways of inference take the same rows and settings and stand beside this module.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import STOPPED, WINDOW, EMResult, iterate, plain, watcher
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.closed_form import closed_form
from appca.models.orthonormal.em import EMSettings, Passes, SubspaceState, expect
from appca.models.orthonormal.screening import EMControl, ScreenedStart, search
from appca.models.orthonormal.starts import Candidate, ascent, first_state
from appca.models.rows.observations import Observations, Rows
from appca.models.rows.spectrum import Thin, lift, lower, principal, thin

__all__ = ["SubspaceFit", "fit_by_em", "fit_in_closed_form"]

THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem is cheap beside the passes it saves


class SubspaceFit(NamedTuple):
    """A fitted state in the features of the data, and how it was reached."""

    state: SubspaceState
    second: Array  # (K,) sums over rows of E[(x z)^2]
    log_likelihoods: list[float]  # after each iteration, total, nats
    stop_reason: str


def fit_in_closed_form(
    rng: np.random.Generator, rows: Observations, course: EMControl
) -> SubspaceFit:
    """Fit at L = K, where all rows use all components and the model is PPCA."""
    settings = course.settings
    state = closed_form(rows, principal(rng, rows, settings.n_components), settings.floor)
    if settings.latent == "shared":
        state = state._replace(latent=np.full_like(state.latent, state.latent.mean()))
    sums = expect(state, rows, settings)
    watcher(course.callback, "closed form", 1)(1, sums.log_likelihood)
    reason = "closed form, because n_active equals n_components"
    return SubspaceFit(state, sums.second, [sums.log_likelihood], reason)


def fit_by_em(
    rng: np.random.Generator, rows: Observations, start: Array | list[Candidate], course: EMControl
) -> SubspaceFit:
    """Climb from given directions (D, K), or from the winner of a race between candidates.

    With fewer rows than features all of it happens in the rows' own space, see `thin`.
    """
    settings = course.settings
    space = _thin_space(rows, settings)
    work: Observations = rows if space is None else space.rows
    passes = Passes(work, settings)
    if isinstance(start, list):
        # Starts race under the polar update whatever the fit's is: both have the same maximum.
        passes.settings = settings._replace(update=polar)
        found = search(rng, passes, start, course._replace(settings=passes.settings))
        passes.settings = settings
    else:
        W = polar(start if space is None else lower(start, space, rows))
        found = ScreenedStart(EMResult(first_state(work, W, settings), np.nan, [], ""), WINDOW)
    climb = _climb(found, passes, course)
    state, second = climb.state, passes.sums(climb.state).second
    if space is not None:
        state = state._replace(W=lift(state.W, space, rows))
    return SubspaceFit(state, second, climb.log_likelihoods, climb.stop_reason)


def _thin_space(rows: Observations, settings: EMSettings) -> Thin | None:
    """Coordinates in the row space, where that is cheap to find and holds K directions."""
    if rows.n >= rows.d or rows.n > THIN_LIMIT or not isinstance(rows, Rows):
        return None
    space = thin(rows)
    return space if space.rows.d >= settings.n_components else None


def _climb(found: ScreenedStart, passes: Passes, course: EMControl) -> EMResult[SubspaceState]:
    """Run EM on all rows; after a callback's stop a single step, so that the fit is complete."""
    settings, start = course.settings, found.climb.state
    if found.climb.stop_reason == STOPPED:
        path = plain(passes, start)
        return iterate(path, tol=0.0, max_iter=1)._replace(stop_reason=STOPPED)
    # After strides, of twenty passes over a sample each, one pass stands for ten.
    each = WINDOW if found.window == 1 else 1
    return iterate(
        ascent(start, passes, accelerate=course.accelerate),
        tol=each * course.tol * passes.rows.n,
        max_iter=course.max_iter,
        window=found.window,
        watch=watcher(course.callback, "fit", course.max_iter),
        halt=partial(_halt, floor=settings.floor),
    )


def _halt(state: SubspaceState, floor: float) -> str | None:
    if state.noise > floor:
        return None
    return "the noise variance reached its floor, 1e-8 of the mean feature variance"
