"""What rows say of their scale and support, compiled: `row_mixture.weigh` at L components a row."""

import math
from typing import Any

from appca.models.algebra.compiled import bare_kernel
from appca.models.algebra.exponential_kernels import LEAST

TINY = 1e-100  # products below it count as 0: denormal numbers are a hundred times slower


@bare_kernel
def weigh(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - in one piece, as in `expectation_kernels`
    P: Any, squares: Any, weights: Any, q: Any, scales: Any, how: Any, out: Any, room: Any
) -> float:
    """Weigh scales and supports of rows, add up what they say, and return their log-likelihood.

    Of a scale, log e_L(exp a) is taken as in `expectation_kernels`: relative to the J-th largest
    logit, of the components that are in, or of those left out where these are fewer.

    Parameters
    ----------
    P : (K or more, n or more) projections. Overwritten by E[x z / u] of a row, times its weight.
    squares, weights : (n,) squared distance from the mean, and how often a row counts.
    q : (4, K) slope and offset of the logits, a = slope p^2 / u - offset; shrinkage and variance of
        x given the row, at u = 1.
    scales : (3, scales) u; what is added to log e_L - squares / (2 u noise); that factor.
    how : sign, -1 if tables are of components left out; least sum of L offsets; nats below the
        largest term of the likeliest scale from which a scale is left out.
    out : (3, K) to which sums of E[(x z)^2 / u], inclusion and E[x z / u] are added; (scales,) to
        which the probabilities of scales are; (n or more,) written: E[1 / u] times the weight.
    room : (K + 1, J + 2) table, its first line 0, 1, 0, ..., its first column 0; (scales, K) and
        (2, scales) room; (5, K + 1) room.
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
        for s in range(n_scales):  # what the largest term says, at most
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
            for j in range(J + 1):  # from here on of the components behind k, over the total
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
