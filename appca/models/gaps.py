"""Missing values in aPPCA and PPCA (L = K): exact EM, supports and posteriors of incomplete rows.

Equations are in docs/mathematics.md 1.8. Entries are missing at random (Little & Rubin 2019), so
the likelihood is that of a row's observed entries O. Sums are about the current mean. With W_O the
rows of W in O, x = sqrt(tau2) u, Lam = I + sqrt(tau2) W_O'W_O sqrt(tau2) / sigma2 and
c = sqrt(tau2) W_O'(y - mu)_O / sigma2,

    log p(S | y_O) = const + f(S),    f(S) = -1/2 log|Lam_SS| + 1/2 c_S' inv(Lam_SS) c_S,

summed over all supports up to `MOST_SETS` (`set_tree`), or else over the best support S and all T
that exchange one of its members, a lower bound. The exchange of i in S for j, with P =
inv(Lam_SS), v = P c_S, D_j = P Lam_Sj, s_j = Lam_jj - Lam_jS D_j, x_j = (c_j - Lam_jS v) / s_j and
Q_ij = P_ii + D_ij^2 / s_j, has

    b_ij = (v_i - D_ij x_j) / Q_ij,    y_ij = x_j + D_ij b_ij / s_j,    d_j = (-D_j, 1),
    f(T) = f(S) + (s_j x_j^2 - log s_j - Q_ij b_ij^2 - log Q_ij) / 2,    q = P_i - d_j D_ij / s_j,
    v_T = v + d_j y_ij - P_i b_ij,    inv(Lam_TT) = P + d_j d_j' / s_j - q q' / Q_ij,

so sums over all L (K - L) exchanges are products with the matrix B = [P, d] of all P_i and d_j.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.random import Generator

from appca.models import climb, em, polynomials, set_tree
from appca.models.climb import EMControl, SubspaceFit, closed_form
from appca.models.em import EMSettings, SubspaceState, SubspaceStatistics, floor_of, resumed
from appca.models.loop import STOPPED, EMResult
from appca.models.numerics import Array, Floats, Members, share_of
from appca.models.posterior import Description, Posterior, SubspacePosterior
from appca.models.rows import Rows, about, added, centre_of, narrowed
from appca.models.set_tree import SetSums, unfolded
from appca.models.settings import ENUMERATED as MOST_SETS
from appca.models.stiefel import polar, principal
from appca.models.supports import indicators
from appca.models.threads import in_order

LEAST_GAIN = 1e-9  # nats; smaller gains are rounding
MOST_NUMBERS = 2**20  # maximum size of an array


class Exchanges(NamedTuple):
    """The supports of n rows that differ from S by one member."""

    order: Members  # (n, K) the members of S, followed by the other components
    P: Floats  # (n, L, L)
    v: Floats  # (n, L)
    D: Floats  # (n, L, K - L)
    s: Floats  # (n, 1, K - L)
    x: Floats  # (n, 1, K - L)
    Q: Floats  # (n, L, K - L)
    b: Floats  # (n, L, K - L)
    f: Floats  # (n,) f(S)
    gain: Floats  # (n, L, K - L) f(T) - f(S)

    @property
    def log_sum(self) -> Floats:
        """Log of the sum of exp f over S and its exchanges, (n,)."""
        gain = self.gain.reshape(len(self.f), -1)
        return np.asarray(self.f + np.logaddexp(0.0, np.logaddexp.reduce(gain, axis=1)))


def exchanges(Lam: Floats, c: Floats, members: Members) -> Exchanges:
    """Compute all exchanges in supports `members` (n, L) of rows with c (n, K), Lam (n, K, K)."""
    (n, K), L = c.shape, members.shape[1]
    outside = np.ones((n, K), dtype=bool)
    np.put_along_axis(outside, members, values=False, axis=1)
    order = np.hstack([members, np.nonzero(outside)[1].reshape(n, K - L)])
    Lam = Lam[np.arange(n)[:, None, None], order[:, :, None], order[:, None, :]]
    c = np.take_along_axis(c, order, axis=1)
    P: Floats = np.linalg.inv(Lam[:, :L, :L]).astype(np.float64, copy=False)
    cross = Lam[:, :L, L:]
    v, D = np.matvec(P, c[:, :L]), P @ cross
    s = np.diagonal(Lam, axis1=1, axis2=2)[:, L:] - np.sum(cross * D, axis=1)
    x = (c[:, L:] - np.vecmat(v, cross)) / s
    s, x = s[:, None, :], x[:, None, :]
    Q = np.diagonal(P, axis1=1, axis2=2)[:, :, None] + np.square(D) / s
    b, f = (v[:, :, None] - D * x) / Q, 0.5 * (np.linalg.slogdet(P)[1] + np.vecdot(c[:, :L], v))
    gain = 0.5 * (s * np.square(x) - np.log(s) - Q * np.square(b) - np.log(Q))
    return Exchanges(order, P, v, D, s, x, Q, b, f, gain)


def climbed(Lam: Floats, c: Floats, members: Members) -> Members:
    """Apply the best exchange of each row until none increases f."""
    members, rows = members.copy(), np.arange(len(c))
    while len(rows):
        near = exchanges(Lam[rows], c[rows], members[rows])
        gain = near.gain.reshape(len(rows), -1)
        best = gain.argmax(axis=1)
        better = gain[np.arange(len(rows)), best] > LEAST_GAIN
        i, j = np.divmod(best[better], near.gain.shape[2])
        rows = rows[better]
        members[rows, i] = near.order[better, members.shape[1] + j]
    return members


def summed(pairs: Floats, c: Floats, n_active: int, members: Members | None) -> SetSums:
    """Sum over the best support near `members` (n, L) and its exchanges, c (n, K), pairs of Lam."""
    (n, K), sums, size = c.shape, list[tuple[Any, ...]](), max(1, MOST_NUMBERS // len(c.T) ** 2)
    pairs, (i, j) = np.broadcast_to(pairs, (n, pairs.shape[1])), np.triu_indices(K)
    for part in (slice(first, first + size) for first in range(0, n, size)):
        Lam, b = unfolded(pairs[part], K), c[part]
        alone = np.diagonal(Lam, axis1=1, axis2=2)
        gain = np.square(b) / alone - np.log(alone)
        start = np.argsort(-gain, axis=1, kind="stable")[:, :n_active]
        start = start if members is None else members[part]
        best = climbed(Lam, b, start)
        moved = np.flatnonzero((best != start).any(axis=1))
        if members is not None and len(moved):
            now, before = (exchanges(Lam[moved], b[moved], m[moved]).log_sum for m in (best, start))
            best[moved[now < before]] = start[moved[now < before]]
        near = exchanges(Lam, b, best)
        total = near.log_sum
        p = np.exp(near.f[:, None, None] + near.gain - total[:, None, None])
        inclusion, H, second = _moments(near, p)
        places = np.argsort(near.order, axis=1)
        second = second[np.arange(len(b))[:, None], places[:, i], places[:, j]]
        inclusion, H = (np.take_along_axis(a, places, axis=1) for a in (inclusion, H))
        sums.append((total, near.f, best, inclusion, H, second))
    return SetSums(*map(np.concatenate, zip(*sums, strict=True)))


def _moments(near: Exchanges, p: Floats) -> tuple[Floats, Floats, Floats]:
    """Inclusion (n, K), E[u z] and E[(u z)(u z)'] in `near.order`; p are probabilities of T."""
    _, P, v, D, s, x, Q, b, _, _ = near
    n, L, J = D.shape
    y, left, into, out = x + D * b / s, p.sum(axis=2), np.arange(L, L + J), np.arange(L)
    B, middle = np.zeros((n, L + J, L + J)), np.zeros((n, L + J, L + J))
    B[:, :L, :L], B[:, :L, L:], B[:, into, into] = P, -D, 1.0
    middle[:, out, out] = np.sum(p * (np.square(b) - 1.0 / Q), axis=2)
    middle[:, into, into] = np.sum(p * (1.0 / s - np.square(D / s) / Q + np.square(y)), axis=1)
    middle[:, :L, L:] = p * (D / (s * Q) - y * b)
    middle[:, L:, :L] = np.swapaxes(middle[:, :L, L:], 1, 2)
    away = np.hstack([-np.sum(p * b, axis=2), np.sum(p * y, axis=1)])
    change, H = np.matvec(B, away), np.zeros((n, L + J))
    H[:, :L] = v
    H += change
    second = B @ middle @ np.swapaxes(B, 1, 2)
    second[:, :L, :L] += P
    second += H[:, :, None] * H[:, None, :] - change[:, :, None] * change[:, None, :]
    return np.hstack([1.0 - left, p.sum(axis=1)]), H, second


def is_exact(n_components: int, n_active: int) -> bool:
    """Whether all supports are summed."""
    return math.comb(n_components, n_active) <= MOST_SETS


def sum_supports(Lam: Floats, c: Floats, n_active: int, members: Members | None = None) -> SetSums:
    """Sum over all supports of a row, or over its best, searched from `members`, and exchanges."""
    if is_exact(c.shape[1], n_active):
        return set_tree.summed(Lam, c, n_active)
    return summed(Lam, c, n_active, members)


def support_scores(Lam: Floats, c: Floats, members: Members) -> Floats:
    """Return E[u z] (n, K) given the members (n, L) of each row's support."""
    rows = np.minimum(np.arange(len(c)), len(Lam) - 1)[:, None, None]
    of_members = unfolded(Lam, c.shape[1])[rows, members[:, :, None], members[:, None, :]]
    v = np.linalg.solve(of_members, np.take_along_axis(c, members, axis=1)[:, :, None])[:, :, 0]
    means = np.zeros(c.shape)
    np.put_along_axis(means, members, v, axis=1)
    return means


def compile_ahead() -> None:
    """Compile the sum over supports, once per machine, so that no fit waits for it."""
    sum_supports(np.ones((1, 3)), np.zeros((1, 2)), 1)


NOT_SUMMED = f", with more than {MOST_SETS:,} supports: for incomplete rows, only the best support "
NOT_SUMMED += "and its exchanges of one component are summed"
BLOCK_ROWS = 512  # number of rows whose second moments are in memory together
SAME_PATTERN = 64  # minimum number of rows for a block with a common pattern of missing entries


class IncompleteBlock(NamedTuple):
    """Some incomplete rows; missing entries are zero, so that products omit them."""

    rows: Array  # (n,) row indices
    X: Array  # (n, D) about the origin
    missing: scipy.sparse.csr_array  # (n, D), 1 for missing entries
    same_pattern: bool  # whether the same entries are missing in all rows


class IncompleteData(NamedTuple):
    """Complete rows, and blocks of incomplete rows."""

    shape: tuple[int, int]
    origin: Array  # (D,)
    complete: Array  # (n, D) the complete rows, about the origin
    complete_rows: Array  # (n,) their indices
    blocks: list[IncompleteBlock]  # the incomplete rows

    @property
    def mass(self) -> float:
        """Number of rows."""
        return float(self.shape[0])

    @property
    def n_features(self) -> int:
        """Number D of features."""
        return self.shape[1]


def imputed(X: Array, values: Array) -> Array:
    """Return a copy of X (N, D) with missing entries replaced by `values` (D,) or (N, D)."""
    return np.asarray(np.where(np.isnan(X), values.astype(X.dtype, copy=False), X))


def split_incomplete(X: Array, origin: Array) -> IncompleteData:
    """Group rows X (N, D) relative to `origin` (D,) by missing entries, common patterns first."""
    missing, blocks = np.isnan(X), list[IncompleteBlock]()
    some = missing.any(axis=1)
    incomplete, complete = np.flatnonzero(some), np.flatnonzero(~some)
    packed = np.packbits(missing[incomplete], axis=1)
    _, code, count = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    code = code.ravel()
    groups = [incomplete[code == i] for i in np.flatnonzero(count >= SAME_PATTERN)]
    alike = len(groups)
    for i, rows in enumerate([*groups, incomplete[count[code] < SAME_PATTERN]]):
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            about = np.where(missing[part], X.dtype.type(0.0), X[part] - origin)
            mask = scipy.sparse.csr_array(missing[part].astype(np.float64))
            blocks.append(IncompleteBlock(part, about, mask, i < alike))
    return IncompleteData(X.shape, origin, X[complete] - origin, complete, blocks)


class BlockPosterior(NamedTuple):
    """The posterior of n incomplete rows; pairs are the entries k <= l of a symmetric matrix."""

    Lam: Floats  # (n, P) pairs of I + A; (1, P) if all rows miss the same entries
    c: Floats  # (n, K), in units of the scores' standard deviation
    supports: SetSums  # supports and moments of u = x / sqrt(tau2)
    H: Floats  # (n, K) E[x z]
    log_density: Floats  # (n,) log p(y_O); a lower bound if only some supports are summed
    squares: Floats  # (n,) |(y - mu)_O|^2
    n_observed: Members  # (n,) |O|


class IncompleteModel(NamedTuple):
    """Parameters of an E step over blocks of rows, mean = origin of the rows + offset."""

    W: Array  # (D, K) float64
    offset: Array  # (D,)
    latent: Array  # (K,)
    noise: float
    n_active: int
    pairs: Array  # (D, P) products w_dk w_dl, k <= l

    def posterior(self, block: IncompleteBlock, members: Members | None = None) -> BlockPosterior:
        """Return the posterior of a block; searches for supports start from `members`.

        W_O'W_O = I - sum_{d missing} w_d w_d'
        W_O'(y - mu)_O = W'y - W'mu + sum_{d missing} mu_d w_d
        |(y - mu)_O|^2 = |y|^2 - 2 y'mu + |mu|^2 - sum_{d missing} mu_d^2
        """
        mean, snr, K = self.offset, np.sqrt(self.latent / self.noise), len(self.latent)
        i, j = np.triu_indices(K)
        missing = block.missing[:1] if block.same_pattern else block.missing
        Lam = ((i == j) - missing @ self.pairs) * (snr[i] * snr[j]) + (i == j)
        c = (block.X @ narrowed(self.W, block.X.dtype)).astype(np.float64)
        c += block.missing @ (mean[:, None] * self.W) - mean @ self.W
        squares = np.einsum("nd,nd->n", block.X, block.X, dtype=np.float64)
        squares -= 2.0 * (block.X @ mean)
        squares += mean @ mean - block.missing @ np.square(mean)
        np.maximum(squares, 0.0, out=squares)
        n_observed = block.X.shape[1] - np.diff(block.missing.indptr)
        c *= snr / np.sqrt(self.noise)
        supports = sum_supports(Lam, c, self.n_active, members)
        density = supports.log_sum - squares / (2.0 * self.noise)
        density -= 0.5 * n_observed * np.log(2.0 * np.pi * self.noise)
        density -= polynomials.log_binomial(K, self.n_active)
        H = supports.H * np.sqrt(self.latent)
        return BlockPosterior(Lam, c, supports, H, density, squares, n_observed)

    def imputed(self, X: Array, data: IncompleteData) -> Array:
        """Impute missing entries in a copy of X (N, D) by E[y_d | y_O] = mu_d + w_d' E[h | y_O]."""
        full, mean = X.copy(), data.origin + self.offset
        for block in data.blocks:
            full[block.rows] = imputed(X[block.rows], self.posterior(block).H @ self.W.T + mean)
        return full


def model_at(state: SubspaceState, n_active: int) -> IncompleteModel:
    """Return the parameters of a state with shift zero, and the products of W."""
    W, (i, j) = state.W.astype(np.float64, copy=False), np.triu_indices(len(state.latent))
    return IncompleteModel(W, state.offset, state.latent, state.noise, n_active, W[:, i] * W[:, j])


def expect(
    state: SubspaceState, data: IncompleteData, settings: EMSettings
) -> tuple[SubspaceStatistics, tuple[Array, ...]]:
    """Run the E step under `state`; also return the best supports of each block."""
    at, mean, X = model_at(state, settings.n_active), state.offset, data.complete
    none = np.zeros(settings.n_components)
    statistics = SubspaceStatistics(0.0, np.zeros(at.W.shape), none, none, none)
    if len(X):
        complete = Rows(X, mean, np.square(X - mean).sum(axis=1), len(mean))
        plain = settings._replace(compiled=False)  # compiling takes longer than it saves
        statistics = em.expect(state._replace(offset=np.zeros(())), complete, plain)
        statistics = statistics._replace(first=X.sum(axis=0, dtype=np.float64) - len(X) * mean)
    before, members = state.members or (None,) * len(data.blocks), list[Array]()
    work = list(zip(data.blocks, before, strict=True))
    for part, best in in_order(partial(_expect_block, at=at), work):
        statistics = added(statistics, part)
        members.append(best)
    return statistics, tuple(members)


def _expect_block(
    work: tuple[IncompleteBlock, Array | None], at: IncompleteModel
) -> tuple[SubspaceStatistics, Array]:
    block, members = work
    rows = at.posterior(block, members)
    mean, tau, supports = at.offset, np.sqrt(at.latent), rows.supports
    i, j = np.triu_indices(len(tau))
    H, S = rows.H, supports.second * (tau[i] * tau[j])  # h_n (n, K), S_n (n, pairs)
    missing, X, h = block.missing.T.tocsr(), block.X, rows.H.sum(axis=0)
    h_missing = missing @ H  # (D, K) sum of h_n' over the rows that miss d
    WS_missing = np.einsum("dk,dkl->dl", at.W, unfolded(missing @ S, len(tau)))  # sum of w_d' S_n
    n_rows_observed = len(H) - np.bincount(block.missing.indices, minlength=len(at.W))
    A_observed = (X.T @ narrowed(H, X.dtype)).astype(np.float64)
    A_observed -= mean[:, None] * (h - h_missing)
    y_observed = X.sum(axis=0, dtype=np.float64) - n_rows_observed * mean
    power = rows.squares.sum() + np.sum(at.W * WS_missing) + block.missing.nnz * at.noise
    moments = A_observed + WS_missing, h, S[:, i == j].sum(axis=0), supports.inclusion.sum(axis=0)
    first, value = y_observed + (at.W * h_missing).sum(axis=1), float(rows.log_density.sum())
    return SubspaceStatistics(value, *moments, float(len(H)), first, float(power)), supports.best


@dataclass
class IncompleteMap(em.EMMap):
    """EM steps over all observed entries, for states with shift zero: mean = origin + offset."""

    e_step: Callable[..., Any] = expect

    def __call__(self, state: SubspaceState, sums: Any = None) -> tuple[float, SubspaceState]:
        """Return the log-likelihood of `state`, or a lower bound, and the next state."""
        sums, members = self.sums(state)
        value, moved = super().__call__(state, sums)
        if moved is state:  # not finite
            return value, state
        best = None if is_exact(len(state.latent), self.settings.n_active) else members
        mean, none = state.offset + moved.displacement, np.zeros_like(moved.shift)
        return value, moved._replace(offset=mean, shift=none, members=best)


BOUND = "best support and its exchanges of one component where entries are missing: a lower bound"


@dataclass(frozen=True, eq=False)
class PosteriorWithGaps(Posterior):
    """Posterior of rows with NaN under a model with orthonormal components."""

    whole: SubspacePosterior  # posterior of rows without NaN

    @property
    def model(self) -> IncompleteModel:
        """Parameters of the E step, for rows about the mean."""
        of, (K, D) = self.whole, self.whole.components.shape
        at = SubspaceState(of.components.T, np.zeros(K), np.asarray(of.latent), of.noise)
        return model_at(at._replace(offset=np.zeros(D)), of.n_active)

    def _split(self, X: Array) -> IncompleteData:
        return split_incomplete(X, self.whole.mean.astype(X.dtype))

    def imputed(self, X: Array) -> Array:
        return self.model.imputed(X, self._split(X))

    def expected(self, X: Array) -> Array:
        data, at = self._split(X), self.model
        scores = np.zeros((len(X), len(at.latent)), X.dtype)
        if len(data.complete_rows):
            scores[data.complete_rows] = self.whole.expected(X[data.complete_rows])
        for block in data.blocks:
            scores[block.rows] = at.posterior(block).H
        return scores

    def description(self, X: Array) -> Description:
        data, at = self._split(X), self.model
        n, K = len(X), len(at.latent)
        scores, inclusion = np.zeros((n, K), X.dtype), np.zeros((n, K))
        columns = scores, np.zeros((n, K), bool), inclusion, *np.zeros((3, n))
        answers: list[tuple[Array, Any]] = []
        if len(data.complete_rows):
            whole = self.whole.description(X[data.complete_rows])
            answers.append((data.complete_rows, whole[: len(columns)]))
        for block in data.blocks:
            rows = at.posterior(block)
            sums = rows.supports
            H = support_scores(rows.Lam, rows.c, sums.best) * np.sqrt(at.latent)
            fit = H @ at.W.T  # at.offset is zero: the origin is the mean
            residual = np.square(block.X - fit, dtype=np.float64).sum(axis=1)
            residual -= (block.missing * np.square(fit)).sum(axis=1)
            error = np.maximum(residual, 0.0) / np.maximum(rows.n_observed, 1)
            share, Z = share_of(sums.value - sums.log_sum), indicators(sums.best, K)
            answers.append((block.rows, (H, Z, sums.inclusion, share, error, rows.log_density)))
        for numbers, values in answers:
            for column, of_rows in zip(columns, values, strict=True):
                column[numbers] = of_rows
        method = "exact" if is_exact(K, at.n_active) else BOUND
        return Description(*columns, np.zeros(n), method)  # type: ignore[call-arg]


FIRST_ITERATIONS = 100  # maximum for fits that only provide a start
IMPUTATION = "initial imputation by PPCA"


def initial_imputation(X: Array, *, zero_mean: bool = False) -> Rows:
    """Return centred rows X (N, D) with missing entries filled by column means, or by zero."""
    empty = int(np.isnan(X).all(axis=0).sum())
    if empty:
        msg = f"Every feature of X must be observed in some row, but {empty} of {X.shape[1]} are "
        msg += "missing in all rows: drop those features."
        raise ValueError(msg)
    origin = np.zeros(X.shape[1]) if zero_mean else np.nanmean(X, axis=0, dtype=np.float64)
    origin = origin.astype(X.dtype)
    return about(imputed(X, origin), origin)


def fit_incomplete(
    rng: Generator, X: Array, rows: Rows, start: Any, control: EMControl, mean: Array | None = None
) -> SubspaceFit:
    """Fit to X (N, D) with NaN; `rows` are its `initial_imputation`.

    PPCA imputes the missing entries; EM on the imputed rows provides the start of EM over the
    observed entries. If `start` is a state, with its `mean`, EM starts there instead.
    """
    settings, K, D, reason = control.settings, control.settings.n_components, X.shape[1], ""
    origin = np.zeros(D, X.dtype) if rows.origin is None else rows.origin
    data, whole = split_incomplete(X, origin), isinstance(start, SubspaceState)
    if isinstance(start, SubspaceState):
        state = start._replace(shift=np.zeros(K), offset=np.zeros(D))
        if settings.learn_mean and mean is not None:
            state = state._replace(offset=mean.astype(np.float64) - origin)
    else:
        state = closed_form(rows, principal(rng, rows, K), settings.floor)
        state = state._replace(offset=np.zeros(D), noise=max(state.noise, floor_of(rows)))
        if settings.n_active == K:
            state = resumed(state, settings)._replace(offset=state.offset)
        else:  # PPCA is the case L = K with a factor variance per component
            tol, most = max(climb.FIRST_TOL, control.tol), min(FIRST_ITERATIONS, control.max_iter)
            short = control._replace(max_iter=most, tol=tol)
            alike = settings._replace(n_active=K, latent="component", update=polar)
            first, begun = short._replace(accelerate=True), EMResult(state, np.nan, [], "")
            ppca = climb.last_climb(begun, IncompleteMap(data, alike), first, None, IMPUTATION)
            full = model_at(ppca.state, K).imputed(X, data)
            middle = centre_of(full) if settings.learn_mean else origin
            short = short.after(ppca.stop_reason == STOPPED)
            again = climb.fit_by_em(rng, about(full, middle), start, short)
            reason = STOPPED if STOPPED in (ppca.stop_reason, again.stop_reason) else ""
            offset = middle - origin - again.state.W @ again.state.shift
            state = again.state._replace(shift=np.zeros(K), offset=offset)
    em_map = IncompleteMap(data, settings)
    run = climb.last_climb(EMResult(state, np.nan, [], reason), em_map, control, None)
    exact = run.stop_reason == STOPPED or is_exact(K, settings.n_active)
    reason, second = run.stop_reason, em_map.sums(run.state)[0].second
    reason += "" if exact else NOT_SUMMED
    return SubspaceFit(run.state, second, run.log_likelihoods, reason, None, whole)
