"""Fit aPPCA and PPCA around missing entries: filled rows give a start, then exact EM takes over."""

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import STOPPED, EMResult
from appca.models.algebra.stiefel import polar
from appca.models.incomplete.missing_em import (
    IncompleteEMControl,
    IncompleteState,
    climb,
    completed,
    expect,
    view,
)
from appca.models.incomplete.queries import IncompleteFit
from appca.models.orthonormal.closed_form import closed_form
from appca.models.orthonormal.em import floor_of
from appca.models.orthonormal.em_fit import fit_by_em
from appca.models.orthonormal.screening import EMControl
from appca.models.orthonormal.starts import Candidate
from appca.models.rows.incomplete_rows import (
    IncompleteData,
    filled,
    observed_mean,
    refuse_empty_columns,
    split,
)
from appca.models.rows.observations import Rows, about, centre_of
from appca.models.rows.spectrum import principal

__all__ = ["fit_around", "initial_imputation"]

FIRST_PASSES, FIRST_TOL = 100, 1e-2  # of the fits that only lead to a start
FILLING = "fill the gaps by PPCA"


def initial_imputation(X: Array, *, zero_mean: bool = False) -> Rows:
    """Rows X (N, D) with NaN, filled with what was observed of each feature on average, or zero.

    About the same values; what needs complete rows to judge sizes and scales may look at them.
    """
    refuse_empty_columns(X)
    origin = np.zeros(X.shape[1], X.dtype) if zero_mean else observed_mean(X)
    return about(filled(X, origin), origin)


def fit_around(
    rng: np.random.Generator,
    X: Array,
    rows: Rows,
    start: Array | list[Candidate],
    course: EMControl,
) -> IncompleteFit:
    """Fit to X (N, D) with NaN.

    PPCA with as many components is fitted around the gaps and fills them; the usual race and EM on
    the filled rows lead to W, mean and variances; EM over the observed entries goes on from there.
    At L = K, where no start is to be found, it does so from the principal directions.

    Parameters
    ----------
    rows : the `stand_in` of X.
    start, course : as in `em_fit.fit_by_em`.
    """
    origin = np.zeros(X.shape[1], X.dtype) if rows.origin is None else rows.origin
    gappy, settings = split(X, origin), course.settings
    state = _principal_state(rng, rows, course)
    stopped = False
    if settings.n_active < settings.n_components:
        filler = _fill(state, gappy, course)
        stopped = filler.stop_reason == STOPPED
        short = course._replace(
            max_iter=1 if stopped else min(FIRST_PASSES, course.max_iter),
            tol=max(FIRST_TOL, course.tol),
            callback=None if stopped else course.callback,
        )
        state, again = _begin(rng, (X, gappy), filler.state, start, short)
        stopped = stopped or again
    pace = IncompleteEMControl(course.max_iter, course.tol, course.accelerate, course.callback)
    if stopped:  # a single step, so that the fit is complete
        pace = pace._replace(max_iter=1, callback=None)
    run = climb(state, gappy, settings, pace)
    reason = STOPPED if stopped else run.stop_reason
    second = expect(run.state, gappy, settings)[0].second
    return IncompleteFit(gappy, run.state, second, run.log_likelihoods, reason)


def _principal_state(rng: np.random.Generator, rows: Rows, course: EMControl) -> IncompleteState:
    """PPCA of the stand-in, with latent variances as the settings want them."""
    settings = course.settings
    first = closed_form(rows, principal(rng, rows, settings.n_components), settings.floor)
    latent = first.latent
    if settings.n_active == settings.n_components and settings.latent != "component":
        shared = latent.mean() if isinstance(settings.latent, str) else settings.latent
        latent = np.full_like(latent, shared)
    return IncompleteState(
        first.W, np.zeros(rows.X.shape[1]), latent, max(first.noise, floor_of(rows))
    )


def _fill(
    state: IncompleteState, gappy: IncompleteData, course: EMControl
) -> EMResult[IncompleteState]:
    settings = course.settings
    K = settings.n_components
    ppca = settings._replace(n_active=K, latent="component", update=polar)
    tol, passes = max(FIRST_TOL, course.tol), min(FIRST_PASSES, course.max_iter)
    return climb(
        state, gappy, ppca, IncompleteEMControl(passes, tol, True, course.callback, FILLING)
    )


def _begin(
    rng: np.random.Generator,
    data: tuple[Array, IncompleteData],
    filler: IncompleteState,
    start: Array | list[Candidate],
    course: EMControl,
) -> tuple[IncompleteState, bool]:
    """Fit to the rows as PPCA fills them; and whether the callback has stopped that."""
    X, gappy = data
    K = course.settings.n_components
    whole = completed(X, gappy, view(filler, K))
    origin = centre_of(whole) if course.settings.learn_mean else gappy.origin
    fit = fit_by_em(rng, about(whole, origin), start, course)
    offset = origin - gappy.origin - fit.state.W @ fit.state.shift
    state = IncompleteState(fit.state.W, offset, fit.state.latent, fit.state.noise)
    return state, fit.stop_reason == STOPPED
