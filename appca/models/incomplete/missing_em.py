"""Exact EM for aPPCA with incomplete data (and for PPCA, its case L = K).

    y_n = W (x_n * z_n) + mu + e_n as in `em`, of which the entries O_n are observed, M_n missing

Write h = x * z for the scores. The complete data of EM are y, x and z; entries are missing at
random (Little & Rubin 2019), so the likelihood is that of the observed ones, and the E step expects
the missing ones together with x and z. Given the observed entries of row n, with h_n = E[h | y_O]
and S_n = E[h h' | y_O] over all supports,

    E[y_d | y_O]      = y_d              for d in O_n,    mu_d + w_d' h_n        for d in M_n,
    E[y_d h' | y_O]   = y_d h_n'         for d in O_n,    mu_d h_n' + w_d' S_n   for d in M_n,
    E[y_d^2 | y_O]    = y_d^2            for d in O_n,
                        mu_d^2 + 2 mu_d w_d' h_n + w_d' S_n w_d + sigma2         for d in M_n.

All sums are taken about the present mean, where mu_d = 0 and y is y - mu. The M step (`maximise`)
is that of complete data, given the expected sufficient statistics: with bars for averages over the
N rows and A = sum E[(y - ybar)(h - hbar)'],

    W = polar(A),    mu <- mu + ybar - W hbar,    sigma2 = sum E|y - mu - W h|^2 / (N D).

Every iteration raises the likelihood of the observed entries; see `fit` for what it raises where
there are too many supports to sum over.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import EMResult, iterate, nesterov, plain, watcher
from appca.models.algebra.threads import in_order
from appca.models.incomplete import missing_supports
from appca.models.incomplete.missing_supports import IncompleteProjections
from appca.models.incomplete.support_sums import IncompletePosterior, unfolded
from appca.models.orthonormal import em
from appca.models.orthonormal.em import EMSettings
from appca.models.orthonormal.em_fit import halt
from appca.models.orthonormal.screening import EMControl
from appca.models.rows.incomplete_rows import IncompleteBlock, IncompleteData
from appca.models.rows.observations import added

NOT_SUMMED = (
    f", with more than {missing_supports.MOST_SETS:,} supports: incomplete rows count with their "
    "best support and its exchanges of one component, not with all"
)


class IncompleteState(NamedTuple):
    """Everything an EM step reads and writes."""

    W: Array  # (D, K) orthonormal columns
    offset: Array  # (D,) with mean mu = origin + offset
    latent: Array  # (K,) latent variances tau2_k
    noise: float  # sigma2
    members: tuple[Array, ...] | None = None  # of each block (n, L), where supports are not summed


class IncompleteStatistics(NamedTuple):
    """Expected sufficient statistics given the observed entries; y about the present mean."""

    log_likelihood: float  # total of the observed entries, nats
    A: Array  # (D, K) sum of E[y h']
    y: Array  # (D,) sum of E[y]
    squares: float  # sum of E|y|^2
    h: Array  # (K,) sum of E[h]
    second: Array  # (K,) sum of E[h_k^2]
    used: Array  # (K,) sum of inclusion probabilities


class EStepParameters(NamedTuple):
    """What an E step over blocks of rows needs of the state, made once."""

    W: Array  # (D, K) float64
    offset: Array  # (D,)
    latent: Array  # (K,)
    noise: float
    pairs: Array  # (D, P) products w_dk w_dl, k <= l
    n_active: int


def e_step_parameters(state: IncompleteState, n_active: int) -> EStepParameters:
    """Prepare an E step."""
    W = state.W.astype(np.float64, copy=False)
    i, j = np.triu_indices(W.shape[1])
    return EStepParameters(W, state.offset, state.latent, state.noise, W[:, i] * W[:, j], n_active)


def project(
    block: IncompleteBlock, at: EStepParameters
) -> tuple[IncompleteProjections, Array, Array]:
    """Give what the posterior of some incomplete rows depends on, with W_O the rows of W in O_n.

    W_O'W_O = I - sum_{d missing} w_d w_d'
    W_O'(y - mu)_O = W'y - W'mu + sum_{d missing} mu_d w_d
    |(y - mu)_O|^2 = |y|^2 - 2 y'mu + |mu|^2 - sum_{d missing} mu_d^2

    with y zero where it is missing, as `IncompleteBlock` holds it. The projections are in units of
    the scores' standard deviation (see `missing_supports`); squares and numbers |O_n| are (n,).
    """
    mean, snr = at.offset, np.sqrt(at.latent / at.noise)
    i, j = np.triu_indices(at.W.shape[1])
    missing = block.missing[:1] if block.same_pattern else block.missing
    A = ((i == j) - missing @ at.pairs) * (snr[i] * snr[j])
    c = (block.X @ at.W.astype(block.X.dtype, copy=False)).astype(np.float64)
    c += block.missing @ (mean[:, None] * at.W) - mean @ at.W
    squares = np.einsum("nd,nd->n", block.X, block.X, dtype=np.float64)
    squares -= 2.0 * (block.X @ mean)
    squares += mean @ mean - block.missing @ np.square(mean)
    n_observed = block.X.shape[1] - np.diff(block.missing.indptr)
    projections = IncompleteProjections(A, c * (snr / np.sqrt(at.noise)))
    return projections, np.maximum(squares, 0.0), n_observed


def log_densities(
    posterior: IncompletePosterior, squares: Array, n_observed: Array, at: EStepParameters
) -> Array:
    """Log p(y_O) of every row of a block; a lower bound where few are summed.

    log p(y_O) = -|O|/2 log(2 pi sigma2) - |(y - mu)_O|^2 / (2 sigma2) + log sum_S exp f(S)
                 - log C(K, L)
    """
    background = -0.5 * n_observed * np.log(2.0 * np.pi * at.noise) - squares / (2.0 * at.noise)
    density: Array = background + posterior.log_sum
    return density - gaussian.log_binomial(at.W.shape[1], at.n_active)


def impute(X: Array, data: IncompleteData, at: EStepParameters) -> Array:
    """Copy of X (N, D) with the posterior mean of every missing entry in its place.

    E[y_d | y_O] = mu_d + w_d' E[h | y_O], over all supports where they are summed.
    """
    full, mean = X.copy(), data.origin + at.offset
    for block in data.blocks:
        H = missing_supports.posterior(project(block, at)[0], at.n_active).H * np.sqrt(at.latent)
        expected = (H @ at.W.T + mean).astype(X.dtype)
        observed = X[block.rows]
        full[block.rows] = np.where(np.isnan(observed), expected, observed)
    return full


def expect(
    state: IncompleteState, data: IncompleteData, settings: EMSettings
) -> tuple[IncompleteStatistics, IncompleteState]:
    """E step under `state`; and the state with the supports found on the way."""
    at = e_step_parameters(state, settings.n_active)
    summed = missing_supports.is_exact(settings.n_components, settings.n_active)
    statistics = _expect_complete(state, data, settings)
    members_before = state.members or (None,) * len(data.blocks)
    members: list[Array] = []
    work = list(zip(data.blocks, members_before, strict=True))
    for part, members_of_part in in_order(partial(_expect_block, at=at), work):
        statistics = added(statistics, part)
        members.append(members_of_part)
    return statistics, state if summed else state._replace(members=tuple(members))


def _expect_complete(
    state: IncompleteState, data: IncompleteData, settings: EMSettings
) -> IncompleteStatistics:
    """E step of the rows without missing entries, whose sums over supports are those of `em`."""
    X, n = data.complete, len(data.complete)
    K, D = settings.n_components, data.shape[1]
    if not n:
        none = np.zeros(K)
        return IncompleteStatistics(0.0, np.zeros((D, K)), np.zeros(D), 0.0, none, none, none)
    mean, total = state.offset, X.sum(axis=0, dtype=np.float64)
    P = (X @ state.W.astype(X.dtype, copy=False)).astype(np.float64) - mean @ state.W
    squares = float(np.square(X, dtype=np.float64).sum() - 2.0 * total @ mean + n * mean @ mean)
    logits = gaussian.logits(P, state.noise, state.latent)
    log_e, r = em.responsibilities(logits, settings, beta=1.0)
    shrink, v = gaussian.posterior(state.noise, state.latent)
    m = P * shrink
    H = r * m
    value = n * float(gaussian.background(np.asarray(squares / n), state.noise, D))
    value += float(log_e.sum()) - n * gaussian.log_binomial(K, settings.n_active)
    h, used = H.sum(axis=0), r.sum(axis=0)
    A = (X.T @ H.astype(X.dtype, copy=False)).astype(np.float64) - np.outer(mean, h)
    second = (H * m).sum(axis=0) + used * v
    return IncompleteStatistics(value, A, total - n * mean, squares, h, second, used)


def _expect_block(
    work: tuple[IncompleteBlock, Array | None], at: EStepParameters
) -> tuple[IncompleteStatistics, Array]:
    """E step of some incomplete rows, by the equations of the module; and their supports.

    Sums over the rows that miss an entry d are products with the sparse matrix of missing entries.
    """
    block, members = work
    projections, squares, n_observed = project(block, at)
    posterior = missing_supports.posterior(projections, at.n_active, members)
    mean, tau = at.offset, np.sqrt(at.latent)
    i, j = np.triu_indices(len(tau))
    H, S = posterior.H * tau, posterior.second * (tau[i] * tau[j])  # h_n (n, K), S_n (n, pairs)
    missing, X = block.missing.T.tocsr(), block.X
    h = H.sum(axis=0)
    h_missing = missing @ H  # (D, K) sum of h_n' over the rows that miss d
    WS_missing = np.einsum("dk,dkl->dl", at.W, unfolded(missing @ S, len(tau)))  # of w_d' S_n
    n_rows_observed = len(H) - np.bincount(block.missing.indices, minlength=len(at.W))
    A_observed = (X.T @ H.astype(X.dtype, copy=False)).astype(np.float64)
    A_observed -= mean[:, None] * (h - h_missing)
    y_observed = X.sum(axis=0, dtype=np.float64) - n_rows_observed * mean
    statistics = IncompleteStatistics(
        log_likelihood=float(log_densities(posterior, squares, n_observed, at).sum()),
        A=A_observed + WS_missing,
        y=y_observed + (at.W * h_missing).sum(axis=1),
        squares=float(squares.sum() + np.sum(at.W * WS_missing) + block.missing.nnz * at.noise),
        h=h,
        second=S[:, i == j].sum(axis=0),
        used=posterior.inclusion.sum(axis=0),
    )
    return statistics, posterior.members


def maximise(
    statistics: IncompleteStatistics,
    state: IncompleteState,
    data: IncompleteData,
    settings: EMSettings,
) -> IncompleteState:
    """M step: joint closed-form update of W, mean, tau2 and sigma2.

    W = argmax tr(W'A), A = sum E[y h'] - N ybar hbar',    mu <- mu + ybar - W hbar,
    N D sigma2 = sum E|y|^2 - N |ybar|^2 - 2 tr(W'A) - N |hbar|^2 + sum E|h|^2
    """
    n, D = data.shape
    ybar, hbar = statistics.y / n, statistics.h / n
    if not settings.learn_mean:
        ybar, hbar = np.zeros_like(ybar), np.zeros_like(hbar)
    A = statistics.A - n * np.outer(ybar, hbar)
    W = settings.update(A, state.W)
    residual = statistics.squares - n * ybar @ ybar - 2.0 * np.sum(W * A) - n * hbar @ hbar
    noise = float(residual + statistics.second.sum()) / (n * D)
    latent = em.update_latent(
        em.SubspaceStatistics(0.0, statistics.A, statistics.h, statistics.second, statistics.used),
        em.SubspaceState(state.W, state.offset, state.latent, state.noise),
        n,
        settings,
    )
    offset = state.offset + ybar - W @ hbar
    return IncompleteState(W, offset, latent, max(noise, settings.floor), state.members)


def step(
    state: IncompleteState, data: IncompleteData, settings: EMSettings
) -> tuple[float, IncompleteState]:
    """Log-likelihood of `state` (total, nats) and the state one EM iteration later."""
    statistics, state = expect(state, data, settings)
    if not np.isfinite(statistics.log_likelihood):
        return -np.inf, state
    return statistics.log_likelihood, maximise(statistics, state, data, settings)


def extend(
    before: IncompleteState, now: IncompleteState, beta: float, settings: EMSettings
) -> IncompleteState:
    """Take a momentum step as `em` does; the offset follows as the shift does there."""
    a, b = (em.SubspaceState(x.W, x.offset, x.latent, x.noise) for x in (before, now))
    ahead = em.extend(a, b, beta, settings)
    return IncompleteState(ahead.W, ahead.shift, ahead.latent, ahead.noise, now.members)


def fit(
    start: IncompleteState, data: IncompleteData, control: EMControl, stage: str = "fit"
) -> EMResult[IncompleteState]:
    """EM from `start`; the log-likelihood is that of all observed entries and never falls.

    With too many supports to sum, it is a lower bound, of the observed entries together with the
    supports around the best of each incomplete row. That never falls either, and the stop reason
    says so.
    """
    settings = control.settings
    advance = partial(step, data=data, settings=settings)
    path = plain(advance, start)
    if control.accelerate:
        path = nesterov(advance, start, partial(extend, settings=settings))
    result = iterate(
        path,
        tol=control.tol * data.shape[0],
        max_iter=control.max_iter,
        watch=watcher(control.callback, stage, control.max_iter),
        halt=partial(halt, floor=settings.floor),
    )
    if missing_supports.is_exact(settings.n_components, settings.n_active):
        return result
    return result._replace(stop_reason=result.stop_reason + NOT_SUMMED)
