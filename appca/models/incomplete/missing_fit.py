"""Fit aPPCA and PPCA to incomplete data: imputed rows give a start, then exact EM takes over."""

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import STOPPED
from appca.models.algebra.stiefel import polar
from appca.models.decompositions.spectrum import principal
from appca.models.incomplete.missing_em import (
    IncompleteState,
    e_step_parameters,
    expect,
    fit,
    impute,
)
from appca.models.incomplete.posterior import IncompleteFit
from appca.models.orthonormal.em import SubspaceState, floor_of
from appca.models.orthonormal.em_fit import fit_by_em
from appca.models.orthonormal.screening import EMControl
from appca.models.orthonormal.starts import Candidate, closed_form
from appca.models.rows.incomplete_rows import (
    IncompleteData,
    imputed,
    observed_mean,
    refuse_empty_columns,
    split_incomplete,
)
from appca.models.rows.observations import Rows, about, centre_of

# Of the fits that only lead to a start.
FIRST_ITERATIONS, FIRST_TOL = 100, 1e-2
IMPUTATION = "initial imputation by PPCA"


def initial_imputation(X: Array, *, zero_mean: bool = False) -> Rows:
    """Rows X (N, D) with NaN, imputed by the mean of each feature's observed entries, or by zero.

    About the same values; what needs complete rows to judge sizes and scales may look at them.
    """
    refuse_empty_columns(X)
    origin = np.zeros(X.shape[1], X.dtype) if zero_mean else observed_mean(X)
    return about(imputed(X, origin), origin)


def fit_incomplete(
    rng: np.random.Generator,
    X: Array,
    rows: Rows,
    start: Array | SubspaceState | list[Candidate],
    control: EMControl,
    mean: Array | None = None,
) -> IncompleteFit:
    """Fit to X (N, D) with NaN; `rows` are its `initial_imputation`.

    PPCA with as many components is fitted to the observed entries and imputes the others; screening
    and EM on the imputed rows lead to W, mean and variances; EM over the observed entries goes on
    from there. At L = K, where no start is to be found, it does so from the principal directions,
    and from a whole state `start`, to which `mean` belongs, at once.
    """
    origin = np.zeros(X.shape[1], X.dtype) if rows.origin is None else rows.origin
    data, settings = split_incomplete(X, origin), control.settings
    stopped = False
    if isinstance(start, SubspaceState):
        offset = np.zeros(X.shape[1])
        if settings.learn_mean and mean is not None:
            offset = mean.astype(np.float64) - origin
        state = IncompleteState(start.W, offset, start.latent, start.noise)
    elif settings.n_active == settings.n_components:
        state = _principal_state(rng, rows, control)
    else:
        state = _principal_state(rng, rows, control)
        K = settings.n_components  # PPCA is the case L = K with a factor variance each
        first = control._replace(
            settings=settings._replace(n_active=K, latent="component", update=polar),
            max_iter=min(FIRST_ITERATIONS, control.max_iter),
            tol=max(FIRST_TOL, control.tol),
            accelerate=True,
        )
        ppca = fit(state, data, first, IMPUTATION)
        stopped = ppca.stop_reason == STOPPED
        short = control._replace(
            max_iter=1 if stopped else min(FIRST_ITERATIONS, control.max_iter),
            tol=max(FIRST_TOL, control.tol),
            callback=None if stopped else control.callback,
        )
        state, again = _fit_imputed(rng, (X, data), ppca.state, start, short)
        stopped = stopped or again
    if stopped:  # a single step, so that the fit is complete
        control = control._replace(max_iter=1, callback=None)
    run = fit(state, data, control)
    reason = STOPPED if stopped else run.stop_reason
    second = expect(run.state, data, settings)[0].second
    whole = isinstance(start, SubspaceState)
    return IncompleteFit(data, run.state, second, run.log_likelihoods, reason, whole)


def _principal_state(rng: np.random.Generator, rows: Rows, control: EMControl) -> IncompleteState:
    """PPCA of the initial imputation, with factor variances as the settings want them."""
    settings = control.settings
    first = closed_form(rows, principal(rng, rows, settings.n_components), settings.floor)
    latent = first.latent
    if settings.n_active == settings.n_components and settings.latent != "component":
        common = latent.mean() if isinstance(settings.latent, str) else settings.latent
        latent = np.full_like(latent, common)
    noise = max(first.noise, floor_of(rows))
    return IncompleteState(first.W, np.zeros(rows.X.shape[1]), latent, noise)


def _fit_imputed(
    rng: np.random.Generator,
    incomplete: tuple[Array, IncompleteData],
    ppca: IncompleteState,
    start: Array | list[Candidate],
    control: EMControl,
) -> tuple[IncompleteState, bool]:
    """Fit to the rows as PPCA imputes them; and whether the callback has stopped that."""
    X, data = incomplete
    full = impute(X, data, e_step_parameters(ppca, control.settings.n_components))
    origin = centre_of(full) if control.settings.learn_mean else data.origin
    fit = fit_by_em(rng, about(full, origin), start, control)
    W, shift, latent, noise = fit.state
    offset = origin - data.origin - W @ shift
    return IncompleteState(W, offset, latent, noise), fit.stop_reason == STOPPED
