"""Sums over all supports of incomplete rows, compiled; the mathematics is in `missing_supports`.

With inv(Lam_S) = T'T, T triangular, v_S = T'w for w = T c_S, and 2 f(S) = |w|^2 - log|Lam_S|.
Supports come in rising order, and each takes over the lines of T that belong to the slots it shares
with the one before. Rows go through in lanes, as in `expectation_kernels`.
"""

import math
from typing import Any

from appca.models.algebra.compiled import bare_kernel

LANES = 64


@bare_kernel
def shared(held: Any, S: Any) -> int:
    """Count the leading slots that two supports share."""
    first = 0
    while first < len(S) and held[first] == S[first]:
        first += 1
    return first


@bare_kernel
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


@bare_kernel
def scale(s: int, T: Any, g: Any, w: Any, q: Any) -> None:
    """Divide by the root of g[s], and put 2 f of the slots up to s into q (L + 1, LANES)."""
    for i in range(LANES):
        q[s + 1, i] = q[s, i] - math.log(g[s, i])
    for i in range(LANES):
        g[s, i] = 1.0 / math.sqrt(g[s, i])
        w[s, i] *= g[s, i]
        q[s + 1, i] += w[s, i] * w[s, i]
        T[s, s, i] = g[s, i]


@bare_kernel
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


@bare_kernel
def add(p: Any, S: Any, pairs: Any, factors: Any, sums: Any) -> None:
    """Add p (LANES,) times the moments given S to sums."""
    T, _, w, _, v, _ = factors
    inclusion, H, second = sums
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
            add_second(p, m, j, factors, second[pairs[S[m], S[j]]])


@bare_kernel
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


@bare_kernel
def visit(data: Any, sets: Any, factors: Any, f: Any, sums: Any, probable: bool) -> None:
    """Fill f (C, LANES) of all supports; or, where it is probabilities, add up their moments.

    Parameters
    ----------
    data : (P, LANES) pairs of A and (K, LANES) c of the rows; (K, K) number of each pair.
    sets : (C, L) supports in rising order.
    factors : (L, L, LANES) T; (L, LANES) g and w; (L + 1, LANES) q, whose first line is 0;
        (L, LANES) v and (LANES,) x, for `add`.
    sums : (K, LANES) inclusion and E[u z], (P, LANES) pairs of E[(u z)(u z)']; added to.
    """
    (T, g, w, q, _, _), (_, _, pairs) = factors, data
    C, L = sets.shape
    last = -1
    for n in range(C):
        for s in range(shared(sets[last], sets[n]) if last >= 0 else 0, L):
            eliminate(data, sets[n], s, T, g, w)
            scale(s, T, g, w, q)
            invert(s, T, g)
        last = n
        if probable:
            add(f[n], sets[n], pairs, factors, sums)
            continue
        for i in range(LANES):
            f[n, i] = 0.5 * q[L, i]
