"""Sums over the best support of incomplete rows and its exchanges of one component for another.

Let S be the best support that exchanges find, Lam = I + A of `missing_supports`, P = inv(Lam_SS),
D_j = P Lam_Sj for j outside, s_j = Lam_jj - Lam_jS D_j and x_j = (c_j - Lam_jS v_S) / s_j. The
inverses of a bordered and of a reduced matrix give, for a support T that gains j and then loses i,

    Q_ij = P_ii + D_ij^2 / s_j,    b_ij = (v_i - D_ij x_j) / Q_ij,    y_ij = x_j + D_ij b_ij / s_j,
    f(T) = f(S) + (s_j x_j^2 - log s_j - Q_ij b_ij^2 - log Q_ij) / 2,
    v_T = v + d_j y_ij - P_i b_ij,    inv(Lam_TT) = P + d_j d_j' / s_j - q q' / Q_ij,

with d_j = (-D_j, 1), q = P_i - d_j D_ij / s_j and zeros elsewhere. So sums over all L (K - L)
exchanges are products with the matrix B = [P, d] of all P_i and d_j.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.incomplete.support_sums import IncompletePosterior, unfolded

Floats = NDArray[np.float64]
Members = NDArray[np.int64]

LEAST_GAIN = 1e-9  # nats; less is rounding
MOST_NUMBERS = 2**20  # of the largest array


class Exchanges(NamedTuple):
    """The supports of n rows that differ from S by one member."""

    order: Members  # (n, K) the members of S, then the others
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
    """Weigh all exchanges of the supports `members` (n, L) of rows c (n, K), Lam (n, K, K)."""
    (n, K), L = c.shape, members.shape[1]
    outside = np.ones((n, K), dtype=bool)
    np.put_along_axis(outside, members, values=False, axis=1)
    order = np.hstack([members, np.nonzero(outside)[1].reshape(n, K - L)])
    rows = np.arange(n)[:, None, None]
    Lam = Lam[rows, order[:, :, None], order[:, None, :]]
    c = np.take_along_axis(c, order, axis=1)
    P: Floats = np.linalg.inv(Lam[:, :L, :L]).astype(np.float64, copy=False)
    cross = Lam[:, :L, L:]
    v, D = np.matvec(P, c[:, :L]), P @ cross
    s = np.diagonal(Lam, axis1=1, axis2=2)[:, L:] - np.sum(cross * D, axis=1)
    x = (c[:, L:] - np.vecmat(v, cross)) / s
    s, x = s[:, None, :], x[:, None, :]
    Q = np.diagonal(P, axis1=1, axis2=2)[:, :, None] + np.square(D) / s
    b = (v[:, :, None] - D * x) / Q
    f = 0.5 * (np.linalg.slogdet(P)[1] + np.vecdot(c[:, :L], v))
    gain = 0.5 * (s * np.square(x) - np.log(s) - Q * np.square(b) - np.log(Q))
    return Exchanges(order, P, v, D, s, x, Q, b, f, gain)


def climbed(Lam: Floats, c: Floats, members: Members) -> Members:
    """Make the best exchange of each row until none raises f."""
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


def summed(pairs: Floats, c: Floats, n_active: int, members: Members | None) -> IncompletePosterior:
    """Sum over the best support and its exchanges, of rows c (n, K), pairs of Lam (n or 1, P).

    The best one is searched for from `members` (n, L), or from the components that explain most
    alone. With `members`, the sum is never less than about these.
    """
    n, size = len(c), max(1, MOST_NUMBERS // c.shape[1] ** 2)
    pairs = np.broadcast_to(pairs, (n, pairs.shape[1]))
    parts = [slice(start, start + size) for start in range(0, n, size)]
    sums = [
        _summed(pairs[part], c[part], n_active, None if members is None else members[part])
        for part in parts
    ]
    return IncompletePosterior(*map(np.concatenate, zip(*sums, strict=True)))


def _summed(pairs: Floats, c: Floats, L: int, members: Members | None) -> IncompletePosterior:
    Lam, start = unfolded(pairs, c.shape[1]), members
    if start is None:
        alone = np.diagonal(Lam, axis1=1, axis2=2)
        start = np.argsort(np.log(alone) - np.square(c) / alone, axis=1, kind="stable")[:, :L]
    best = climbed(Lam, c, start)
    moved = np.flatnonzero((best != start).any(axis=1))
    if members is not None and len(moved):
        now, before = (exchanges(Lam[moved], c[moved], m[moved]).log_sum for m in (best, start))
        best[moved[now < before]] = start[moved[now < before]]
    near = exchanges(Lam, c, best)
    total = near.log_sum
    p = np.exp(near.f[:, None, None] + near.gain - total[:, None, None])
    inclusion, H, second = _moments(near, p)
    places = np.argsort(near.order, axis=1)
    i, j = np.triu_indices(c.shape[1])
    second = second[np.arange(len(c))[:, None], places[:, i], places[:, j]]
    inclusion, H = (np.take_along_axis(a, places, axis=1) for a in (inclusion, H))
    return IncompletePosterior(total, inclusion, H, second, best, np.exp(near.f - total))


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
