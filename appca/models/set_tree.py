"""Sums over all supports of L components, as derivatives of the logarithm of one sum.

Each incomplete row has a matrix (`gaps`); rows of adaptive factor analysis share a matrix. With
Lam = I + A of `gaps`, or Lam = prior I + A of `slot_kernels`, take M = Lam, b = c and J = L in

    F(M, b) = log sum_R exp g(R),    g(R) = -1/2 log|M_RR| + s/2 b_R' inv(M_RR) b_R,    s = 1,

over all sets R of J members. Then E[u z] = dF/db and E[(u z)(u z)'] = -2 dF/dM. If K - L is
smaller, J = K - L, R are the components outside a support, M = inv(Lam), b = M c, s = -1, and

    log sum_S exp f(S) = F + 1/2 (log|M| + b'c),    E[u z] = b + M h,    h = dF/db,
    E[(u z)(u z)'] = M + b b' + b (M h)' + (M h) b' + 2 M (dF/dM) M.

Sets are leaves of a tree. Entering a branch eliminates its component from M, which is bordered by b
with corner 0: the corner becomes -b_R' inv(M_RR) b_R, the product of the pivots |M_RR|. Leaving a
branch adds its derivatives to those of its parent (reverse-mode differentiation).
"""

import itertools
import math
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from appca.models.numerics import Floats, Mask, Members, zeros
from appca.models.products import times
from appca.models.threads import in_order

LANES, MOST_NUMBERS = 64, 2**18  # limits of rows processed together, and of their numbers
LEAST_ROWS_A_THREAD, MOST_SHARES = 512, 16
STEEP = 1e4  # condition number of Lam above which sums over left-out components lose digits


class CollapsedModel(NamedTuple):
    """The parameters of log p(y | S), with the scores x integrated out."""

    A: Floats  # (K, K) W'W / sigma2
    prior: float  # 1 / tau2, the prior precision of a score


class SetSums(NamedTuple):
    """Posterior over the supports of n rows; pairs are the entries k <= l of a matrix."""

    log_sum: Floats  # (n,) log sum over S of exp f(S), or f(S) of a single support
    value: Floats  # (n,) f of the most probable support
    best: Any  # that support: members (n, L), or (n, K) bool if sizes differ
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    H: Floats  # (n, K) E[u z]
    second: Floats  # (n, P) pairs of E[(u z)(u z)'], or its weighted sum (K, K) over rows
    drawn: Any = None  # a support drawn from the posterior, as `best`


@cache
def supports(n_components: int, n_active: int) -> Members:
    """List all supports (C, L), in the order of the left-out components if these are fewer."""
    K, J = n_components, min(n_active, n_components - n_active)
    sets = list(itertools.combinations(range(K), J))
    if n_active > J:
        sets = [tuple(set(range(K)).difference(left_out)) for left_out in sets]
    return np.sort(np.array(sets, np.int64), axis=1)


def unfolded(pairs: Floats, K: int) -> Floats:
    """Return the symmetric matrices (n, K, K) of pairs (n, P)."""
    i, j = np.triu_indices(K)
    whole = np.empty((len(pairs), K, K))
    whole[:, i, j] = whole[:, j, i] = pairs
    return whole


def walked(
    M: Floats,
    b: Floats,
    how: tuple[int, float],
    counts: Floats | None = None,
    costs: Any = None,
    uniforms: Floats | None = None,
    moments: bool = True,
) -> tuple[Members, Floats, Floats, Floats, Floats, Floats]:
    """Compute the weights of all sets for rows b (n, K), and the derivatives of F.

    `how`: J and s. M: pairs of each row (n, P), or common pairs (1, P); with `counts` (n,) of rows,
    one matrix (K, K). With `costs` (K,) of members, sums are over sets of all sizes. Returns
    indices of the most probable set and of a drawn set (2, n), the largest g and the sum of exp(g -
    largest) (n,), probabilities of members and dF/db (n, K), and dF/dM: pairs of each row (n, P),
    or the upper triangle (K, K), summed over rows.
    """
    (n, K), (J, sign), shared = b.shape, how, counts is not None
    Q, P, size = K + 1, K * (K + 1) // 2, math.comb(K, J) if costs is None else 2**K
    slopes = np.zeros((J or 1, K, K) if shared else (n, P))
    which, (r, h) = np.zeros((2, n), np.int64), np.zeros((2, n, K))
    value, mass = np.zeros(n), np.ones(n)
    sums = which, value, mass, r, h, slopes[0] if shared else slopes
    if not J:  # the only set is empty, so nothing is compiled
        return sums
    from appca.models.set_kernels import draw, normalise, walk, walk_shared

    weighing, adding, _ = steps(K, J, costs is not None)
    levels = J * Q * (1 if shared else Q)
    # rows that go together, of few numbers each; and their weights, in whole LANES
    w = max(w for w in (8, 16, 32, LANES) if w == 8 or w < min(2 * n, 1 + MOST_NUMBERS // levels))
    padded = -(-size * w // LANES) * LANES
    flat, room = zeros((padded + LANES,)), zeros((2 * levels + K + 5, w))
    flat, power, g = flat[:padded], flat[padded:], flat[: size * w].reshape(size, w)
    used, lanes, (top, total), room = room[-K - 5 : -5], room[-5:-2], room[-2:], room[: 2 * levels]
    best, run = np.zeros(w, np.int64), cast(Any, walk_shared if shared else walk)
    if shared:
        S, (at, N) = np.zeros((J, K, K)), room.reshape(2, J, Q, w)
        S[0], price = M, np.zeros(K) if costs is None else costs
        memory: Any = (S, slopes, np.zeros(J), price), (at, N, g, used, lanes)
    else:
        (at, N), det = room.reshape(2, J, Q, Q, w), np.ones(g.shape)
        at[0, range(K), range(K)], (i, j) = 1.0, np.triu_indices(K)
        memory = at, N, g, det, used, np.ones((J + Q + 2, w))
    for start in range(0, n, w):
        part, m = slice(start, start + w), min(w, n - start)
        if counts is not None:
            at[0, :-1, :m], lanes[0] = b[part].T, 0.0
            lanes[0, :m] = counts[part]
        else:
            at[0, i, j, :m] = (M[part] if len(M) > 1 else M).T
            at[0, :K, K, :m] = b[part].T
        run(weighing, how, *memory)
        if costs is not None:
            g[-1] = 0.0
        if not shared:
            g *= sign
            g += np.log(det)
            g *= -0.5
        normalise(g, flat, top, best, total, power, power.view(np.int64))
        which[0, part], value[part], mass[part] = best[:m], top[:m], total[:m]
        if uniforms is not None:
            draw(g, uniforms[part], total, which[1, part])
        if not moments:
            continue
        used[:] = N[0] = 0.0
        run(adding, how, *memory)
        r[part], h[part] = used[:, :m].T, (N[0] if shared else N[0, :, K])[:K, :m].T
        if not shared:
            slopes[part] = N[0, i, j, :m].T
    return sums


def summed(pairs: Floats, c: Floats, n_active: int) -> SetSums:
    """Sum over all supports of rows c (n, K), with pairs of Lam (n, P), or (1, P) for all rows."""
    K, L, M, b, offset = c.shape[1], n_active, pairs, c, 0.0
    i, j = np.triu_indices(K)
    left_out = L > K - L  # then sums are over sets of left-out components
    if left_out:
        Lam = unfolded(pairs, K)
        inverse: Floats = np.asarray(np.linalg.inv(Lam), np.float64)
        M, b = inverse[:, i, j], np.matvec(inverse, c)
        offset = 0.5 * (np.vecdot(b, c) - np.linalg.slogdet(Lam)[1])
    which, top, total, used, h, slopes = walked(M, b, (K - L, -1.0) if left_out else (L, 1.0))
    second = slopes * np.where(i == j, -2.0, -1.0)  # a pair k < l is two entries of M
    if left_out:
        change, both = np.matvec(inverse, h), inverse - inverse @ unfolded(second, K) @ inverse
        used, h = 1.0 - used, b + change
        second = both[:, i, j] + h[:, i] * h[:, j] - change[:, i] * change[:, j]
    value = top + offset
    return SetSums(value + np.log(total), value, supports(K, L)[which[0]], used, h, second)


def sums(
    c: Floats,
    model: CollapsedModel,
    n_active: int | None = None,
    *,
    odds: Any = None,
    weights: Floats | None = None,
    uniforms: Floats | None = None,
    moments: bool = True,
) -> SetSums:
    """Sum over all supports of L components of rows c (n, K) that share Lam.

    With log odds (K,) of components, sums are over all 2^K sets of f(S) plus the odds of members.
    `second` is weighted by `weights` (N,). With uniform numbers (N,), a support per row is drawn.
    Without `moments`, inclusion, H and `second` are zero.
    """
    (n, K), counts = c.shape, np.ones(len(c)) if weights is None else weights
    L, M, left_out = n_active, model.A.copy(), False
    M.flat[:: K + 1] += model.prior
    sets: Any
    if L is None:
        costs, offset = -2.0 * odds - math.log(model.prior), 0.0
        sets, how = steps(K, K, True)[2], (K, 1.0)
    else:
        costs, sets, how, offset = None, supports(K, L), (L, 1.0), 0.5 * L * math.log(model.prior)
        if L > K - L:
            values = np.linalg.eigvalsh(M)
            left_out = L == K or values[-1] <= STEEP * values[0]
            sets = sets if left_out else sets[::-1]  # order of the members
    if left_out:
        offset -= 0.5 * float(np.log(values).sum())
        M, how = np.asarray(np.linalg.inv(M), np.float64), (K - L, -1.0)
    which, value, log_sum = np.zeros((2, n), np.int64), np.empty(n), np.empty(n)
    used, H, second = np.zeros((n, K)), np.zeros((n, K)), np.zeros((K, K))

    def share(rows: slice) -> Floats:
        b, w, u = c[rows], counts[rows], None if uniforms is None else uniforms[rows]
        b = times(b, M) if left_out else b
        which[:, rows], top, total, r, h, T = walked(M, b, how, w, costs, u, moments)
        value[rows] = top + offset + (0.5 * np.vecdot(b, c[rows]) if left_out else 0.0)
        log_sum[rows], T = value[rows] + np.log(total), T + T.T
        used[rows], H[rows] = r, h
        if not left_out or not moments:
            return -T
        change = times(h, M)
        used[rows], H[rows] = 1.0 - r, b + change
        h = H[rows]
        return np.asarray(w.sum() * M + M @ T @ M + (h.T * w) @ h - (change.T * w) @ change)

    size = max(LEAST_ROWS_A_THREAD, -(-n // MOST_SHARES))
    shares = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    alone = len(shares) == 1 and L is None  # no BLAS is called
    for part in map(share, shares) if alone else in_order(share, shares):
        second += part
    best, drawn = sets[which]
    return SetSums(log_sum, value, best, used, H, second, drawn)


@cache
def steps(n_components: int, n_members: int, all_sizes: bool) -> tuple[Members, Members, Mask]:
    """List the steps (n, 4) of `set_kernels.walk` that compute weights, and those that sum.

    Also returns the sets (2^K, K) of all sizes, in the order of the steps, with the empty set last.
    """
    from appca.models.set_kernels import ADD, ENTER, LEAVE, WEIGH

    K, J, instructions, codes = n_components, n_members, [], list[int]()

    def below(depth: int, first: int, code: int) -> None:
        if all_sizes or depth == J - 1:
            instructions.append((WEIGH, depth, first - 1, len(codes)))
            codes.extend(code | 1 << k for k in range(first, K))
        if depth == J - 1:
            return
        for k in range(first, K - (1 if all_sizes else J - depth - 1)):
            instructions.append((ENTER, depth + 1, k, len(codes)))
            below(depth + 1, k + 1, code | 1 << k)
            instructions.append((LEAVE, depth + 1, k, len(codes)))

    below(0, 0, 0)
    adding = np.array(instructions)
    weighing = adding[adding[:, 0] != LEAVE]
    adding[adding[:, 0] == WEIGH, 0] = ADD
    sets = np.array([*codes, 0] if all_sizes else [0])[:, None] >> np.arange(K) & 1
    return weighing, adding, sets.astype(bool)
