"""Fit aPPCA by EM from data to parameters: coordinates, start, climb.

Other ways of inference take the same rows and settings and stand beside this module.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.em import Settings, State, expect, step
from appca.models.gaussian import Array
from appca.models.loop import STOPPED, Climb, iterate, plain, watcher
from appca.models.ppca import closed_form
from appca.models.race import Course, search
from appca.models.rows import Rows
from appca.models.spectrum import Thin, lift, lower, principal, thin
from appca.models.starts import Candidate, ascent, first_state
from appca.models.stiefel import polar

__all__ = ["Fit", "fit_by_em", "fit_in_closed_form"]

THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem is cheap beside the passes it saves


class Fit(NamedTuple):
    """A fitted state in the features of the data, and how it was reached."""

    state: State
    second: Array  # (K,) sums over rows of E[(x z)^2]
    log_likelihoods: list[float]  # after each iteration, total, nats
    stop_reason: str


def fit_in_closed_form(rng: np.random.Generator, rows: Rows, course: Course) -> Fit:
    """Fit at L = K, where all rows use all components and the model is PPCA."""
    settings = course.settings
    state = closed_form(rows, principal(rng, rows, settings.n_components), settings.floor)
    if settings.latent == "shared":
        state = state._replace(latent=np.full_like(state.latent, state.latent.mean()))
    sums = expect(state, rows, settings)
    watcher(course.callback, "closed form", 1)(1, sums.log_likelihood)
    reason = "closed form, because n_active equals n_components"
    return Fit(state, sums.second, [sums.log_likelihood], reason)


def fit_by_em(
    rng: np.random.Generator, rows: Rows, start: Array | list[Candidate], course: Course
) -> Fit:
    """Climb from given directions (D, K), or from the winner of a race between candidates.

    With fewer rows than features all of it happens in the rows' own space, see `thin`.
    """
    settings = course.settings
    space = _thin_space(rows, settings)
    work = rows if space is None else space.rows
    if isinstance(start, list):
        # Starts race under the polar update whatever the fit's is: both have the same maximum.
        race = course._replace(settings=settings._replace(update=polar))
        climb = search(rng, work, start, race)
    else:
        W = polar(start if space is None else lower(start, space, rows))
        climb = Climb(first_state(work, W, settings), np.nan, [], "")
    climb = _climb(climb.state, work, course, stopped=climb.stop_reason == STOPPED)
    state, second = climb.state, expect(climb.state, work, settings).second
    if space is not None:
        state = state._replace(W=lift(state.W, space, rows))
    return Fit(state, second, climb.log_likelihoods, climb.stop_reason)


def _thin_space(rows: Rows, settings: Settings) -> Thin | None:
    """Coordinates in the row space, where that is cheap to find and holds K directions."""
    n, d = rows.X.shape
    if n >= d or n > THIN_LIMIT:
        return None
    space = thin(rows)
    return space if space.rows.X.shape[1] >= settings.n_components else None


def _climb(start: State, rows: Rows, course: Course, *, stopped: bool) -> Climb[State]:
    """Run EM on all rows; after a callback's stop a single step, so that the fit is complete."""
    settings = course.settings
    if stopped:
        path = plain(partial(step, rows=rows, settings=settings), start)
        return iterate(path, tol=0.0, max_iter=1)._replace(stop_reason=STOPPED)
    return iterate(
        ascent(start, rows, settings, accelerate=course.accelerate),
        tol=course.tol * len(rows.X),
        max_iter=course.max_iter,
        watch=watcher(course.callback, "fit", course.max_iter),
        halt=partial(_halt, floor=settings.floor),
    )


def _halt(state: State, floor: float) -> str | None:
    if state.noise > floor:
        return None
    return "the noise variance reached its floor, 1e-8 of the mean feature variance"
