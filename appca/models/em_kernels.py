"""The compiled E step of adaptive PPCA and its variants: inclusion and posterior means.

Tables are those of `polynomials`, of J = L logits or of J = K - L negative logits. Rows are
processed in lanes of 64, which become vector instructions. Each kernel is one function, because
numba compiles called functions both separately and in each caller, which takes three times as long.
"""

import math
from typing import Any

import numpy as np

from appca.models import numeric_kernels as _k
from appca.models.numeric_kernels import LANES, LEAST, bare_kernel

TINY = 1e-100  # smaller products count as 0, because denormal numbers are 100 times slower


@bare_kernel
def weigh_components(P: Any, q: Any, how: Any, weights: Any, level: Any, room: Any) -> None:
    """Compute the weights of components of all rows, both if used and if not.

    P (K or more, lanes, LANES) projections. q (5, K): shift of these; root p and offset of logits
    a = (root p)^2 - offset; shrinkage and variance of x. `how`: J, sign of logits (-1: excluded),
    least mean that counts. weights (2, K, lanes, LANES), in and out, and level (lanes,
    LANES), the log of their unit, are written. room: (J, LANES), (LANES,).
    """
    (_, K), (J, sign, _) = q.shape, how
    top, x = room
    _, lanes, _ = P.shape
    for b in range(lanes):
        for j in range(J):
            for i in range(LANES):
                top[j, i] = -np.inf
        for k in range(K):
            for i in range(LANES):
                P[k, b, i] += q[0, k]
                h = q[1, k] * P[k, b, i]
                x[i] = sign * (h * h - q[2, k])
                weights[0, k, b, i] = x[i]
            for j in range(k + 1 if k < J else J):
                for i in range(LANES):
                    high, low = top[j, i], x[i]
                    top[j, i] = high if high > low else low
                    x[i] = low if high > low else high
        for i in range(LANES):
            level[b, i] = J * top[J - 1, i]
        for k in range(K):  # inlines `exponentials`, because a call takes longer to compile
            for i in range(LANES):
                a = weights[0, k, b, i]
                d = a - top[J - 1, i]
                away = -abs(d)
                y = away if away > LEAST else LEAST
                power = y * _k.PER_STEP + _k.ROUND
                n = power - _k.ROUND
                y = (y - n * _k.STEP) - n * _k.REST
                v = ((((_k.C13 * y + _k.C12) * y + _k.C11) * y + _k.C10) * y + _k.C9) * y + _k.C8
                v = (((v * y + _k.C7) * y + _k.C6) * y + _k.C5) * y + _k.C4
                v = ((v * y + _k.C3) * y + _k.C2) * y + 1.0
                w = v * y + 1.0 if away > LEAST else 0.0
                w *= np.int64((np.float64(power).view(np.int64) + 1023) << 52).view(np.float64)
                above = d if d > 0.0 else 0.0 * d  # NaN stays NaN
                level[b, i] += above if sign > 0.0 else above - a
                weights[0, k, b, i] = 1.0 if d > 0.0 else w
                weights[1, k, b, i] = w if d > 0.0 else 1.0


@bare_kernel
def share(P: Any, n: int, q: Any, how: Any, weights: Any, out: Any, table: Any) -> None:
    """Turn projections into posterior means of x * z, zero from row n on, and add up moments.

    The first arguments are those of `weigh_components`. out: (lanes, LANES) last entries of tables;
    (3, K, LANES) sums of E[x z], E[(x z)^2] and inclusion. table: ((K + 2) (J + 2) + 1, LANES), its
    first line 0 and then 1.
    """
    total, sums = out
    (_, K), (J, sign, least), x = q.shape, how, table[len(table) - 1]
    last = K * (J + 2) + 1
    _, lanes, _ = P.shape
    for b in range(lanes):
        for k in range(K):
            line = k * (J + 2) + 1
            for j in range(line + max(J - K + k + 1, 0), line + min(k + 1, J) + 1):
                for i in range(LANES):
                    v = weights[1, k, b, i] * table[j, i]
                    v += weights[0, k, b, i] * table[j - 1, i]
                    table[j + J + 2, i] = v if v > TINY else v - v
        for i in range(LANES):
            total[b, i] = table[last + J, i]
            x[i] = 1.0 / total[b, i]
        for j in range(last, last + J):  # from here on, tables of the components after k
            for i in range(LANES):
                table[j, i] = x[i]
                x[i] = 0.0
        for k in range(K - 1, -1, -1):
            line = k * (J + 2) + J + last
            for j in range(last + min(K - k, J - 1), last + max(J - 1 - k, 0) - 1, -1):
                for i in range(LANES):
                    x[i] += table[line - j, i] * table[j, i]
                    v = weights[1, k, b, i] * table[j, i]
                    v += weights[0, k, b, i] * table[j - 1, i]
                    table[j, i] = v if v > TINY else v - v
            for i in range(LANES):
                r = weights[0, k, b, i] * x[i] if x[i] > TINY else x[i] - x[i]
                r = 0.0 if b * LANES + i >= n else r if sign > 0.0 else 1.0 - r
                m = q[3, k] * P[k, b, i]
                P[k, b, i] = r * m if abs(r * m) > least else 0.0 * m
                sums[0, k, i] += r * m
                sums[1, k, i] += r * (m * m + q[4, k])
                sums[2, k, i] += r
                x[i] = 0.0


@bare_kernel
def weigh_mixtures(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one piece compiles faster
    P: Any, squares: Any, weights: Any, q: Any, scales: Any, how: Any, out: Any, room: Any
) -> float:
    """Weigh scales and supports of rows, add up moments, and return their log-likelihood.

    P (K or more, n or more) becomes E[x z / u] times the weight; squares, weights (n,). q (4, K):
    slope and offset of logits a = slope p^2 / u - offset, shrinkage, variance. scales (3, J'): u,
    the term added to log e_L - squares / (2 u noise), that factor. `how`: sign, least sum of L
    offsets, nats from which a scale is skipped. out: (3, K) sums of E[(x z)^2 / u], inclusion and
    E[x z / u]; (J',) of scales; (n or more,) E[1 / u] times the weight. room: (K + 1, J + 2), its
    first line 0, 1, 0, ..., its first column 0; (J', K); (2, J'); (5, K + 1).
    """
    moments, by_scale, inverse = out
    table, inclusion, joint, line = room
    (_, K), n_scales, J = q.shape, scales.shape[1], table.shape[1] - 2
    sign, costs, gap = how
    a, into, away, top, h = line[0], line[1], line[2], line[3], line[4]
    L, value = J if sign > 0.0 else K - J, 0.0
    for i in range(len(squares)):
        for j in range(L):
            top[j] = -math.inf
        for k in range(K):
            h[k] = q[0, k] * P[k, i] * P[k, i]
            x = h[k]
            for j in range(L):
                y = top[j]
                top[j] = y if y > x else x
                x = x if y > x else y
        largest, best = 0.0, -math.inf
        for j in range(L):
            largest += top[j]
        for s in range(n_scales):  # an upper bound by the largest term
            joint[0, s] = scales[1, s] - scales[2, s] * squares[i]
            joint[1, s] = joint[0, s] + largest / scales[0, s] - costs
            best = joint[1, s] if joint[1, s] > best else best
        peak = -math.inf
        for s in range(n_scales):
            if joint[1, s] < best - gap:
                joint[0, s] = -math.inf
                continue
            for j in range(J):
                top[j] = -math.inf
            for k in range(K):
                a[k] = sign * (h[k] / scales[0, s] - q[1, k])
                x = a[k]
                for j in range(J):
                    y = top[j]
                    top[j] = y if y > x else x
                    x = x if y > x else y
            c, level = top[J - 1], J * top[J - 1]
            for k in range(K):
                d = a[k] - c
                w = math.exp(-abs(d)) if abs(d) < -LEAST else 0.0 * d
                into[k], away[k] = (1.0, w) if d > 0.0 else (w, 1.0)
                level += d if d > 0.0 else 0.0
                level -= a[k] if sign < 0.0 else 0.0
            for k in range(K):
                for j in range(1, J + 2):
                    v = away[k] * table[k, j] + into[k] * table[k, j - 1]
                    table[k + 1, j] = v if v > TINY else v - v
            total = table[K, J + 1]
            for j in range(J + 1):  # from here on, tables of components after k, over the total
                top[j] = 0.0
            top[0] = 1.0 / total
            for k in range(K - 1, -1, -1):
                x = 0.0
                for j in range(J):
                    x += table[k, 1 + j] * top[J - 1 - j]
                inclusion[s, k] = x * into[k] if sign > 0.0 else 1.0 - x * into[k]
                for j in range(J, 0, -1):
                    v = away[k] * top[j] + into[k] * top[j - 1]
                    top[j] = v if v > TINY else v - v
                top[0] *= away[k]
            joint[0, s] += level + math.log(total)
            peak = joint[0, s] if joint[0, s] > peak else peak
        total, g = 0.0, 0.0
        for s in range(n_scales):
            joint[1, s] = math.exp(joint[0, s] - peak)
            total += joint[1, s]
        for k in range(K):
            a[k], into[k] = 0.0, 0.0
        for s in range(n_scales):
            share = joint[1, s] / total * weights[i]
            if share > 0.0:
                by_scale[s] += share
                g += share / scales[0, s]
                for k in range(K):
                    a[k] += share * inclusion[s, k]
                    into[k] += share / scales[0, s] * inclusion[s, k]
        for k in range(K):
            m = q[2, k] * P[k, i]
            P[k, i] = into[k] * m
            moments[0, k] += into[k] * m * m + a[k] * q[3, k]
            moments[1, k] += a[k]
            moments[2, k] += P[k, i]
        inverse[i] = g
        value += weights[i] * (peak + math.log(total))
    return value
