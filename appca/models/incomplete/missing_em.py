"""Exact EM of aPPCA over what was observed (and of PPCA, its case L = K).

    y_n = W (x_n * z_n) + mu + e_n as in `em`, rows known on O_n only

The missing entries are expected together with x and z. With s_n = E[x z], M_n = E[(x z)(x z)'],

    E[y s'] = y_O s_n' on O_n,  mu + W M_n elsewhere;  W = polar(sum E[(y - ybar)(s - sbar)'])
    mu = ybar - W sbar;  sigma2 = sum E|y - mu - W (x z)|^2 / (N D)

where ybar counts what is expected of missing entries, each of which has variance sigma2 beside
that of its W (x z). Every iteration raises the likelihood of the observed entries; see `climb` for
what it raises where there are too many sets to sum.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra import gaussian
from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import Callback, EMResult, accelerated, iterate, plain, watcher
from appca.models.algebra.threads import in_order
from appca.models.incomplete import missing_supports
from appca.models.incomplete.missing_supports import IncompletePosterior, IncompleteProjections
from appca.models.orthonormal import em, squarem
from appca.models.orthonormal.em import EMSettings
from appca.models.rows.incomplete_rows import IncompleteBlock, IncompleteData

__all__ = [
    "EStepParameters",
    "IncompleteEMControl",
    "IncompleteState",
    "IncompleteStatistics",
    "climb",
    "completed",
    "expect",
    "log_densities",
    "looked_at",
    "maximise",
    "searched",
    "step",
    "view",
]

NOT_SUMMED = (
    f", with more than {missing_supports.MOST_SETS:,} sets: incomplete rows count with the best "
    "set found for them, not with all"
)


class IncompleteState(NamedTuple):
    """Everything an EM step reads and writes."""

    W: Array  # (D, K) orthonormal columns
    offset: Array  # (D,) with mean = origin + offset
    latent: Array  # (K,) latent variances tau2_k
    noise: float  # sigma2
    members: tuple[Array, ...] | None = None  # of each chunk (n, L), where sets are not summed


class IncompleteStatistics(NamedTuple):
    """Expected sufficient statistics of one pass, y about the present mean."""

    log_likelihood: float  # total, nats
    A: Array  # (D, K) sum of E[y s']
    y: Array  # (D,) sum of E[y]
    squares: float  # sum of E|y|^2
    s: Array  # (K,)
    second: Array  # (K,) sum of E[(x z)^2]
    used: Array  # (K,) sum of inclusion probabilities


class EStepParameters(NamedTuple):
    """What a pass over chunks needs of the state, made once."""

    W: Array  # (D, K) float64
    offset: Array
    latent: Array
    noise: float
    pairs: Array  # (D, P) products w_dk w_dl, k <= l
    n_active: int

    @property
    def unfold(self) -> Array:
        """Number (K, K) of the pair of every entry of a symmetric matrix."""
        K = self.W.shape[1]
        number = np.zeros((K, K), dtype=np.int64)
        number[np.triu_indices(K)] = np.arange(self.pairs.shape[1])
        return np.maximum(number, number.T)


def view(state: IncompleteState, n_active: int) -> EStepParameters:
    """Prepare a pass."""
    W = state.W.astype(np.float64, copy=False)
    i, j = np.triu_indices(W.shape[1])
    return EStepParameters(W, state.offset, state.latent, state.noise, W[:, i] * W[:, j], n_active)


def looked_at(
    chunk: IncompleteBlock, at: EStepParameters
) -> tuple[IncompleteProjections, Array, Array]:
    """Give what W sees of a chunk, |y - mu|^2 over observed entries, and how many those are."""
    i, j = np.triu_indices(at.W.shape[1])
    root = np.sqrt(at.latent / at.noise)
    gaps = chunk.gaps[:1] if chunk.alike else chunk.gaps
    A = ((i == j) - gaps @ at.pairs) * (root[i] * root[j])
    P = (chunk.X @ at.W.astype(chunk.X.dtype, copy=False)).astype(np.float64)
    P += chunk.gaps @ (at.offset[:, None] * at.W) - at.offset @ at.W
    squares = np.einsum("nd,nd->n", chunk.X, chunk.X, dtype=np.float64)
    squares -= 2.0 * (chunk.X @ at.offset)
    squares += at.offset @ at.offset - chunk.gaps @ np.square(at.offset)
    seen = chunk.X.shape[1] - np.diff(chunk.gaps.indptr)
    return IncompleteProjections(A, P * (root / np.sqrt(at.noise))), np.maximum(squares, 0.0), seen


def log_densities(
    found: IncompletePosterior, squares: Array, seen: Array, at: EStepParameters
) -> Array:
    """Log p(y_O) of every row of a chunk; with sets not summed, of the row and its set."""
    background = -0.5 * seen * np.log(2.0 * np.pi * at.noise) - squares / (2.0 * at.noise)
    density: Array = background + found.log_sum
    return density - gaussian.log_binomial(at.W.shape[1], at.n_active)


def searched(
    seen: IncompleteProjections, at: EStepParameters, members: Array | None = None
) -> IncompletePosterior:
    """Sum over all sets where that is possible, else climb to one."""
    if missing_supports.is_exact(at.W.shape[1], at.n_active):
        return missing_supports.posterior(seen, at.n_active)
    return missing_supports.best_found(seen, at.n_active, members)


def completed(X: Array, rows: IncompleteData, at: EStepParameters) -> Array:
    """Copy of X (N, D) with the posterior mean of every missing entry in its place.

    E[y_d | y_O] = mu_d + w_d' E[x * z | y_O], over all sets where they are summed.
    """
    whole, mean = X.copy(), rows.origin + at.offset
    for chunk in rows.chunks:
        H = searched(looked_at(chunk, at)[0], at).H * np.sqrt(at.latent)
        guess = (H @ at.W.T + mean).astype(X.dtype)
        whole[chunk.rows] = np.where(np.isnan(X[chunk.rows]), guess, X[chunk.rows])
    return whole


def expect(
    state: IncompleteState, rows: IncompleteData, settings: EMSettings
) -> tuple[IncompleteStatistics, IncompleteState]:
    """E step: posterior sums under `state`; and the state with the sets found on the way."""
    at = view(state, settings.n_active)
    summed = missing_supports.is_exact(settings.n_components, settings.n_active)
    sums = _expect_complete(state, rows, settings)
    known = state.members or (None,) * len(rows.chunks)
    members: list[Array] = []
    work = list(zip(rows.chunks, known, strict=True))
    for part, found in in_order(partial(_expect_chunk, at=at), work):
        sums = _added(sums, part)
        members.append(found)
    return sums, state if summed else state._replace(members=tuple(members))


def _added(a: IncompleteStatistics, b: IncompleteStatistics) -> IncompleteStatistics:
    return IncompleteStatistics(
        a.log_likelihood + b.log_likelihood,
        a.A + b.A,
        a.y + b.y,
        a.squares + b.squares,
        a.s + b.s,
        a.second + b.second,
        a.used + b.used,
    )


def _expect_complete(
    state: IncompleteState, rows: IncompleteData, settings: EMSettings
) -> IncompleteStatistics:
    """Rows without gaps, whose sums over sets are those of `em`."""
    X, n = rows.complete, len(rows.complete)
    K, D = settings.n_components, rows.shape[1]
    if not n:
        none = np.zeros(K)
        return IncompleteStatistics(0.0, np.zeros((D, K)), np.zeros(D), 0.0, none, none, none)
    mean = state.offset
    P = (X @ state.W.astype(X.dtype, copy=False)).astype(np.float64) - mean @ state.W
    total = X.sum(axis=0, dtype=np.float64)
    squares = float(np.square(X, dtype=np.float64).sum() - 2.0 * total @ mean + n * mean @ mean)
    log_e, r = em.responsibilities(
        gaussian.logits(P, state.noise, state.latent), settings, beta=1.0
    )
    shrink, v = gaussian.posterior(state.noise, state.latent)
    m = P * shrink
    S = r * m
    value = n * float(gaussian.background(np.asarray(squares / n), state.noise, D))
    value += float(log_e.sum()) - n * gaussian.log_binomial(K, settings.n_active)
    used = r.sum(axis=0)
    A = (X.T @ S.astype(X.dtype, copy=False)).astype(np.float64) - np.outer(mean, S.sum(axis=0))
    second = (S * m).sum(axis=0) + used * v
    return IncompleteStatistics(value, A, total - n * mean, squares, S.sum(axis=0), second, used)


def _expect_chunk(
    work: tuple[IncompleteBlock, Array | None], at: EStepParameters
) -> tuple[IncompleteStatistics, Array]:
    chunk, members = work
    seen, squares, n_seen = looked_at(chunk, at)
    found = searched(seen, at, members)
    root = np.sqrt(at.latent)
    i, j = np.triu_indices(len(root))
    H, second = found.H * root, found.second * (root[i] * root[j])
    into = chunk.gaps.T.tocsr()
    WM = np.einsum("dk,dkl->dl", at.W, (into @ second)[:, at.unfold])
    gap_H = into @ H
    total, counts = H.sum(axis=0), len(H) - np.bincount(chunk.gaps.indices, minlength=len(at.W))
    A = (chunk.X.T @ H.astype(chunk.X.dtype, copy=False)).astype(np.float64)
    sums = IncompleteStatistics(
        float(log_densities(found, squares, n_seen, at).sum()),
        A - at.offset[:, None] * (total - gap_H) + WM,
        chunk.X.sum(axis=0, dtype=np.float64) - counts * at.offset + (at.W * gap_H).sum(axis=1),
        float(squares.sum() + np.sum(at.W * WM) + chunk.gaps.nnz * at.noise),
        total,
        second[:, i == j].sum(axis=0),
        found.inclusion.sum(axis=0),
    )
    return sums, found.members


def maximise(
    sums: IncompleteStatistics, state: IncompleteState, rows: IncompleteData, settings: EMSettings
) -> IncompleteState:
    """M step: joint closed-form update of W, mean, tau2 and sigma2."""
    n, D = rows.shape
    ybar, sbar = sums.y / n, sums.s / n
    if not settings.learn_mean:
        ybar, sbar = np.zeros_like(ybar), np.zeros_like(sbar)
    A = sums.A - n * np.outer(ybar, sbar)
    W = settings.update(A, state.W)
    residual = sums.squares - n * ybar @ ybar - 2.0 * np.sum(W * A) - n * sbar @ sbar
    noise = float(residual + sums.second.sum()) / (n * D)
    like = em.SubspaceStatistics(0.0, sums.A, sums.s, sums.second, sums.used)
    before = em.SubspaceState(state.W, state.offset, state.latent, state.noise)
    latent = em.update_latent(like, before, n, settings)
    offset = state.offset + ybar - W @ sbar
    return IncompleteState(W, offset, latent, max(noise, settings.floor), state.members)


def step(
    state: IncompleteState, rows: IncompleteData, settings: EMSettings
) -> tuple[float, IncompleteState]:
    """Log-likelihood of `state` (total, nats) and the state one EM iteration later."""
    sums, state = expect(state, rows, settings)
    if not np.isfinite(sums.log_likelihood):
        return -np.inf, state
    return sums.log_likelihood, maximise(sums, state, rows, settings)


def extrapolate(
    x0: IncompleteState, x1: IncompleteState, x2: IncompleteState, settings: EMSettings
) -> IncompleteState:
    """Leap through three states as `squarem` does; the offset follows as the shift does there."""
    a, b, c = (em.SubspaceState(x.W, x.offset, x.latent, x.noise) for x in (x0, x1, x2))
    leap = squarem.extrapolate(a, b, c, settings)
    return IncompleteState(leap.W, leap.shift, leap.latent, leap.noise, x2.members)


class IncompleteEMControl(NamedTuple):
    """How long to climb and who is told."""

    max_iter: int
    tol: float  # nats a row over ten passes
    accelerate: bool = True
    callback: Callback | None = None
    stage: str = "fit"


def climb(
    start: IncompleteState, rows: IncompleteData, settings: EMSettings, pace: IncompleteEMControl
) -> EMResult[IncompleteState]:
    """EM from `start`; the log-likelihood is that of all observed entries and never falls.

    With too many sets to sum, it is that of the observed entries together with the best set found
    for each incomplete row, which never falls either, and the stop reason says so.
    """
    advance = partial(step, rows=rows, settings=settings)
    path = plain(advance, start)
    if pace.accelerate:
        path = accelerated(advance, start, partial(extrapolate, settings=settings))
    watch = watcher(pace.callback, pace.stage, pace.max_iter)
    n = rows.shape[0]
    found = iterate(
        path, tol=pace.tol * n, max_iter=pace.max_iter, watch=watch, halt=partial(_halt, settings)
    )
    if missing_supports.is_exact(settings.n_components, settings.n_active):
        return found
    return found._replace(stop_reason=found.stop_reason + NOT_SUMMED)


def _halt(settings: EMSettings, state: IncompleteState) -> str | None:
    if state.noise > settings.floor:
        return None
    return "the noise variance reached its floor, 1e-8 of the mean feature variance"
