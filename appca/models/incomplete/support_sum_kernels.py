"""Sums over all supports of incomplete rows, compiled; the mathematics is in `missing_supports`.

With inv(Lam_S) = T'T, T triangular, v_S = T'w for w = T c_S, and 2 f(S) = |w|^2 - log|Lam_S|.
Supports come in rising order, and each takes over the lines of T that belong to the slots it shares
with the one before. Rows go through in lanes, as in `expectation_kernels`.
"""

import math
from typing import Any

import numpy as np

from appca.models.algebra.compiled import wide_kernel

LANES = 64
LEAST = 1e-18  # probability of a support in all lanes below which it adds nothing


@wide_kernel
def shared(held: Any, S: Any) -> int:
    """Count the leading slots that two supports share."""
    first = 0
    while first < len(S) and held[first] == S[first]:
        first += 1
    return first


@wide_kernel
def eliminate(data: Any, S: Any, s: int, T: Any, g: Any, w: Any) -> None:
    """Fill g[:s], the covariances of slot s with the earlier ones, and what is left in g[s], w[s].

    S (L,) a support; T (L, L, LANES); g, w (L, LANES).
    """
    a, c, pairs = data
    diagonal = pairs[S[s], S[s]]
    for i in range(LANES):
        g[s, i] = 1.0 + a[diagonal, i]
        w[s, i] = c[S[s], i]
    for m in range(s):
        for i in range(LANES):
            g[m, i] = 0.0
        for j in range(m + 1):
            pair = pairs[S[s], S[j]]
            for i in range(LANES):
                g[m, i] += T[m, j, i] * a[pair, i]
        for i in range(LANES):
            g[s, i] -= g[m, i] * g[m, i]
            w[s, i] -= g[m, i] * w[m, i]


@wide_kernel
def scale(s: int, T: Any, g: Any, w: Any, q: Any) -> None:
    """Divide by the root of g[s], and put 2 f of the slots up to s into q (L + 1, LANES)."""
    for i in range(LANES):
        q[s + 1, i] = q[s, i] - math.log(g[s, i])
    for i in range(LANES):
        g[s, i] = 1.0 / math.sqrt(g[s, i])
        w[s, i] *= g[s, i]
        q[s + 1, i] += w[s, i] * w[s, i]
        T[s, s, i] = g[s, i]


@wide_kernel
def invert(s: int, T: Any, g: Any) -> None:
    """Fill the line of T that belongs to slot s, but for its diagonal."""
    for j in range(s):
        for i in range(LANES):
            T[s, j, i] = 0.0
        for m in range(j, s):
            for i in range(LANES):
                T[s, j, i] -= g[m, i] * T[m, j, i]
        for i in range(LANES):
            T[s, j, i] *= g[s, i]


@wide_kernel
def weigh(f: Any, best: Any, log_sum: Any, probability: Any) -> None:
    """Turn f (C, LANES) into probabilities, and say which support is best and how probable."""
    for i in range(LANES):
        best[i] = 0
        for s in range(len(f)):
            if f[s, i] > f[best[i], i]:
                best[i] = s
        top, total = f[best[i], i], 0.0
        for s in range(len(f)):
            f[s, i] = math.exp(f[s, i] - top)
            total += f[s, i]
        for s in range(len(f)):
            f[s, i] /= total
        log_sum[i], probability[i] = top + math.log(total), f[best[i], i]


@wide_kernel
def add(p: Any, S: Any, pairs: Any, factors: Any, sums: Any) -> None:
    """Add p (LANES,) times the moments given S to sums."""
    T, _, w, _, v, _ = factors
    inclusion, H, _ = sums
    for m in range(len(S)):
        for i in range(LANES):
            v[m, i] = 0.0
        for s in range(m, len(S)):
            for i in range(LANES):
                v[m, i] += T[s, m, i] * w[s, i]
        for i in range(LANES):
            inclusion[S[m], i] += p[i]
            H[S[m], i] += p[i] * v[m, i]
        for j in range(m + 1):
            add_second(p, m, j, factors, sums[2][pairs[S[m], S[j]]])


@wide_kernel
def add_second(p: Any, m: int, j: int, factors: Any, total: Any) -> None:
    """Add p times entry m, j of inv(Lam_S) + v_S v_S' to total (LANES,)."""
    T, _, _, _, v, x = factors
    for i in range(LANES):
        x[i] = v[m, i] * v[j, i]
    for s in range(m, len(T)):
        for i in range(LANES):
            x[i] += T[s, m, i] * T[s, j, i]
    for i in range(LANES):
        total[i] += p[i] * x[i]


@wide_kernel
def visit(data: Any, sets: Any, factors: Any, f: Any, sums: Any, probable: bool) -> None:
    """Fill f (C, LANES) of all supports; or add up the moments of those that are `probable`."""
    T, g, w, q, _, _ = factors
    last = -1
    for n in range(len(sets)):
        if probable and f[n].max() < LEAST:
            continue
        for s in range(shared(sets[last], sets[n]) if last >= 0 else 0, sets.shape[1]):
            eliminate(data, sets[n], s, T, g, w)
            scale(s, T, g, w, q)
            invert(s, T, g)
        last = n
        if probable:
            add(f[n], sets[n], data[2], factors, sums)
            continue
        for i in range(LANES):
            f[n, i] = 0.5 * q[-1, i]


@wide_kernel
def posterior(A: Any, c: Any, sets: Any, pairs: Any, found: Any) -> None:
    """Fill `found`, the arrays of an `IncompletePosterior` but its scores, from all supports.

    Parameters
    ----------
    A : (n, P) or, where it is the same for all rows, (1, P); c : (n, K).
    sets : (C, L) supports in rising order; pairs : (K, K) number of each pair.
    """
    log_sum, inclusion, H, second, members, probability = found
    (n, K), (C, L), P = c.shape, sets.shape, A.shape[1]
    a, b, f = np.empty((P, LANES)), np.empty((K, LANES)), np.empty((C, LANES))
    T, g, w = np.empty((L, L, LANES)), np.empty((L, LANES)), np.empty((L, LANES))
    q, v, x = np.zeros((L + 1, LANES)), np.empty((L, LANES)), np.empty(LANES)
    sums = np.empty((K, LANES)), np.empty((K, LANES)), np.empty((P, LANES))
    best, total, most = np.empty(LANES, np.int64), np.empty(LANES), np.empty(LANES)
    for start in range(0, n, LANES):
        for i in range(LANES):  # the last row again where there are fewer
            row = min(start + i, n - 1)
            a[:, i] = A[min(row, len(A) - 1)]
            b[:, i] = c[row]
        for part in sums:
            part[:] = 0.0
        visit((a, b, pairs), sets, (T, g, w, q, v, x), f, sums, False)
        weigh(f, best, total, most)
        visit((a, b, pairs), sets, (T, g, w, q, v, x), f, sums, True)
        for i in range(min(LANES, n - start)):
            row = start + i
            log_sum[row], probability[row], members[row] = total[i], most[i], sets[best[i]]
            inclusion[row], H[row], second[row] = sums[0][:, i], sums[1][:, i], sums[2][:, i]
