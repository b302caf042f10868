"""Compiled tree walks for `set_tree` and loops for `polynomials`, in batches of rows."""

from typing import Any

import numpy as np

from appca.models.numeric_kernels import LANES, bare_kernel, exponentials, reassociated

ENTER, WEIGH, ADD, LEAVE = 0, 1, 2, 3  # kinds of steps of the walk


@bare_kernel
def walk(  # noqa: C901, PLR0912, PLR0913, PLR0917 - loops, one after the other
    steps: Any, how: Any, M: Any, N: Any, g: Any, det: Any, used: Any, room: Any
) -> None:
    """Visit all sets: compute weights, or sum derivatives weighted by probability.

    steps (n, 4): kind, depth, last member, index of the first leaf. how: J and s of `set_tree`.
    M (J, Q, Q, w): upper triangle per depth, Q = K + 1, of w rows; N: gradient by M, zero on entry.
    g, det (C, w or more): corner (WEIGH) or probability (ADD), and determinant of each set. used
    (K, w): probabilities of members are added. room (J + Q + 2, w): workspace, row 0 all ones.
    """
    (J, sign), (K, w) = how, used.shape
    x, mass = room[J], room[J + 1]
    for n in range(len(steps)):
        what, d, k, leaf = steps[n, 0], steps[n, 1], steps[n, 2], steps[n, 3]
        if what in (WEIGH, ADD):
            corner, by_corner, product = M[d, K, K], N[d, K, K], room[d]
            for i in range(k + 1, K):
                s, t, p, total = M[d, i, i], M[d, i, K], g[leaf], det[leaf]
                by_s, by_t, member = N[d, i, i], N[d, i, K], used[i]
                leaf += 1
                if what == WEIGH:
                    for v in range(w):
                        p[v] = corner[v] - t[v] * t[v] / s[v]
                        total[v] = product[v] * s[v]
                    continue
                for v in range(w):
                    per_s = 1.0 / s[v]
                    u = t[v] * per_s
                    by_t[v] = sign * p[v] * u
                    by_s[v] = -0.5 * p[v] * (sign * u * u + per_s)
                    by_corner[v] -= 0.5 * sign * p[v]
                    member[v] += p[v]
            continue
        s, member, by_corner = M[d - 1, k, k], used[k], N[d, K, K]
        for v in range(w):
            x[v] = 1.0 / s[v]
            if what == ENTER:
                room[d, v] = room[d - 1, v] * s[v]
            else:
                mass[v] = 2.0 * sign * by_corner[v]
                member[v] -= mass[v]
        for i in range(k + 1, K + 1):
            y, t = room[J + 2 + i], M[d - 1, k, i]
            for v in range(w):
                y[v] = t[v] * x[v] if what == ENTER else 0.0
        for i in range(k + 1, K + 1):
            y, t = room[J + 2 + i], M[d - 1, k, i]
            apart = K - i if d == J - 1 and i < K else 1  # leaves need two entries per row
            for j in range(i, K + 1, apart):
                z, r = room[J + 2 + j], M[d - 1, k, j]
                if what == ENTER:
                    to, above = M[d, i, j], M[d - 1, i, j]
                    for v in range(w):
                        to[v] = above[v] - y[v] * r[v]
                    continue
                to, above = N[d, i, j], N[d - 1, i, j]
                for v in range(w):
                    y[v] += to[v] * r[v]
                for v in range(w):
                    z[v] += to[v] * t[v]
                for v in range(w):
                    above[v] += to[v]
                    to[v] = 0.0
        if what == ENTER:
            continue
        for i in range(k + 1, K + 1):
            y, t, to = room[J + 2 + i], M[d - 1, k, i], N[d - 1, k, i]
            for v in range(w):
                u = y[v] * x[v]
                to[v] -= u
                mass[v] += u * t[v]
        to = N[d - 1, k, k]
        for v in range(w):
            to[v] += 0.5 * x[v] * mass[v]


@reassociated
def inner(x: Any, y: Any) -> float:
    """Sum x y over lanes, in any order."""
    total = 0.0
    for v in range(len(x)):
        total += x[v] * y[v]
    return total


@bare_kernel
def leave_shared(d: int, k: int, how: Any, at: tuple[Any, ...]) -> None:
    """Add derivatives of depth d to those of depth d - 1, then zero them."""
    S, T, b, N, used, lanes = at
    (J, sign), (K, w), e = how, used.shape, d - 1
    weights, x, y, t, per_s = lanes[0], lanes[1], lanes[2], b[e, k], 1.0 / S[e, k, k]
    mass, above, member, to = N[d, K], N[e, K], used[k], N[e, k]
    for v in range(w):
        u = t[v] * per_s
        x[v] = weights[v] * u
        y[v] = sign * mass[v] * u
        to[v] += y[v]
        above[v] += mass[v]
        member[v] += mass[v]
    slope = -0.5 * (inner(y, x) + per_s * inner(mass, weights))
    for v in range(w):
        mass[v] = 0.0
    for i in range(k + 1, K):
        r, line, upper = S[e, k, i] * per_s, N[d, i], N[e, i]
        a = inner(line, x)
        for v in range(w):
            upper[v] += line[v]
            to[v] -= r * line[v]
            line[v] = 0.0
        T[e, k, i] -= a
        slope += r * a
        for j in range(i, i + 1 if d == J - 1 else K):
            q, a = S[e, k, j] * per_s, T[d, i, j]
            T[d, i, j] = 0.0
            T[e, i, j] += a
            T[e, k, i] -= q * a
            T[e, k, j] -= r * a
            slope += r * q * a
    T[e, k, k] += slope


@bare_kernel
def walk_shared(  # noqa: C901 - loops, one after the other
    steps: Any, how: Any, forms: tuple[Any, ...], rows: tuple[Any, ...]
) -> None:
    """Like `walk`, but rows share M, and derivatives by M are summed over rows.

    forms: S (J, K, K), upper triangle of M per depth; T, gradient; logs (J,), log products of
    pivots plus costs (K,), half of which log weights lose. rows: b (J, Q, w) per depth, then the
    corner; N, gradient, then the total probability below; g (C, w), log weights or probabilities;
    used (K, w), as in `walk`; lanes (3, w), row counts, then workspace.
    """
    (S, T, logs, costs), (b, N, g, used, lanes) = forms, rows
    (J, sign), (K, w) = how, used.shape
    weights, x = lanes[0], lanes[1]
    for n in range(len(steps)):
        what, d, k, leaf = steps[n, 0], steps[n, 1], steps[n, 2], steps[n, 3]
        if what == WEIGH:
            corner = b[d, K]
            for i in range(k + 1, K):
                s, t, to = S[d, i, i], b[d, i], g[leaf]
                log_det, half = logs[d] + np.log(s) + costs[i], 0.5 * sign / s
                for v in range(w):
                    to[v] = half * t[v] * t[v] - 0.5 * (log_det + sign * corner[v])
                leaf += 1
            continue
        if what == ADD:
            mass = N[d, K]
            for i in range(k + 1, K):
                per_s, t, p, to, member = 1.0 / S[d, i, i], b[d, i], g[leaf], N[d, i], used[i]
                for v in range(w):
                    u = t[v] * per_s
                    to[v] = sign * p[v] * u
                    x[v] = weights[v] * u
                    mass[v] += p[v]
                    member[v] += p[v]
                T[d, i, i] -= 0.5 * (inner(to, x) + per_s * inner(p, weights))
                leaf += 1
            continue
        e = d - 1
        s, t = S[e, k, k], b[e, k]
        per_s = 1.0 / s
        if what == ENTER:
            logs[d] = logs[e] + np.log(s) + costs[k]
            for i in range(k + 1, K):
                r, to, line = S[e, k, i] * per_s, b[d, i], b[e, i]
                for v in range(w):
                    to[v] = line[v] - r * t[v]
                for j in range(i, i + 1 if d == J - 1 else K):
                    S[d, i, j] = S[e, i, j] - r * S[e, k, j]
            corner, to = b[e, K], b[d, K]
            for v in range(w):
                to[v] = corner[v] - t[v] * t[v] * per_s
            continue
        leave_shared(d, k, how, (S, T, b, N, used, lanes))


@bare_kernel
def normalise(g: Any, flat: Any, top: Any, best: Any, total: Any, power: Any, bits: Any) -> None:
    """Replace log weights g (C, w) with probabilities; write maximum, argmax and sum of exp.

    `flat` is g padded to a multiple of LANES, itself a multiple of w.
    """
    w = len(top)
    for v in range(w):
        top[v] = -np.inf
        total[v] = 0.0
    for s in range(len(g)):
        f = g[s]
        for v in range(w):
            larger = f[v] > top[v]
            top[v] = f[v] if larger else top[v]
            best[v] = s if larger else best[v]
    for i in range(len(g) * w, len(flat)):
        flat[i] = -np.inf
    for start in range(0, len(flat), LANES):
        part = flat[start : start + LANES]
        for s in range(0, LANES, w):
            for v in range(w):
                part[s + v] -= top[v]
        exponentials(part, power, bits)
        for s in range(0, LANES, w):
            for v in range(w):
                total[v] += part[s + v]
    for s in range(len(g)):
        f = g[s]
        for v in range(w):
            f[v] /= total[v]


@bare_kernel
def draw(g: Any, uniforms: Any, passed: Any, drawn: Any) -> None:
    """Write set indices, drawn by uniform numbers (m,) from probabilities g (C, w)."""
    m = len(uniforms)
    passed[:m], drawn[:] = 0.0, 0
    for s in range(len(g) - 1):
        f = g[s]
        for v in range(m):
            passed[v] += f[v]
            drawn[v] += passed[v] <= uniforms[v]


@bare_kernel
def tilted(up: Any, down: Any, factor: Any, p: Any, mean: Any, variance: Any) -> None:
    """Write p (K, w) of `polynomials`, mean and variance (w,) of sum B_k; up / down are odds."""
    K, w = up.shape
    for i in range(w):
        mean[i] = 0.0
        variance[i] = 0.0
    for k in range(K):
        for i in range(w):
            likely = up[k, i] / (up[k, i] + down[k, i] * factor[i])
            p[k, i] = likely
            mean[i] += likely
            variance[i] += likely * (1.0 - likely)


@bare_kernel
def characteristic(p: Any, less: Any, sine: Any, re: Any, im: Any) -> None:
    """Multiply re + i im (M, w) by prod_k (1 + p_k (less + i sine)), less = cos theta - 1."""
    (K, w), M = p.shape, len(less)
    for m in range(M):
        for k in range(0, K, 2):
            for i in range(w):
                c, s = less[m, i], sine[m, i]
                a, b = 1.0 + p[k, i] * c, p[k, i] * s
                u, v = 1.0 + p[k + 1, i] * c, p[k + 1, i] * s
                x, y = a * u - b * v, a * v + b * u
                u, v = re[m, i], im[m, i]
                re[m, i] = u * x - v * y
                im[m, i] = u * y + v * x


@bare_kernel
def inclusion(p: Any, less: Any, sine: Any, re: Any, im: Any, x: Any, r: Any) -> None:
    """Write the inclusion of `polynomials` into r (K, w); pairs of points share a division."""
    (K, w), M = r.shape, len(less)
    for k in range(K):
        for i in range(w):
            x[1, i] = x[0, i]
        for m in range(0, M, 2):
            for i in range(w):
                a = p[k, i]
                u, v = 1.0 + a * less[m, i], a * sine[m, i]
                weight, size = re[m, i] * u + im[m, i] * v, u * u + v * v
                u, v = 1.0 + a * less[m + 1, i], a * sine[m + 1, i]
                other, length = re[m + 1, i] * u + im[m + 1, i] * v, u * u + v * v
                x[1, i] += (weight * length + other * size) / (size * length)
        for i in range(w):
            probability = p[k, i] * x[1, i]
            r[k, i] = 0.0 if probability < 0.0 else (1.0 if probability > 1.0 else probability)
