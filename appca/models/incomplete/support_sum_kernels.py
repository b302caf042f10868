"""Sums over all supports of incomplete rows, compiled; the mathematics is in `support_sums`."""

from typing import Any

from appca.models.algebra.compiled import bare_kernel

ENTER, WEIGH, ADD, LEAVE = 0, 1, 2, 3  # what a step of the walk does


@bare_kernel
def walk(  # noqa: C901, PLR0912, PLR0915 - loops, one after the other
    steps: Any, how: Any, M: Any, N: Any, out: Any, used: Any, room: Any
) -> None:
    """Walk through all sets: weigh them, or add up derivatives by their probabilities.

    Parameters
    ----------
    steps : (n, 4) what to do, the depth, the member taken there, and the number of the first set
        below.
    how : J, and the sign of the quadratic form.
    M : (J Q^2, w) upper triangles of a Q x Q matrix of each depth, Q = K + 1, for w rows.
    N : the same, zero; derivatives by M, those of depth 0 are written.
    out : (2, C, w) last corner and determinant of each set, written; or its probability.
    used : (K, w) to which probabilities of members are added.
    room : (J + Q + 2, w) the first line 1.
    """
    (J, sign), (K, w) = how, used.shape
    Q, x, mass, y = K + 1, J, J + 1, J + 2
    for n in range(len(steps)):
        what, depth, k, leaf = steps[n, 0], steps[n, 1], steps[n, 2], steps[n, 3]
        here, corner = depth * Q * Q, (depth + 1) * Q * Q - 1
        if what == WEIGH:
            for i in range(k + 1, K):
                diagonal, edge = here + i * Q + i, here + i * Q + K
                for v in range(w):
                    s, t = M[diagonal, v], M[edge, v]
                    out[0, leaf, v] = M[corner, v] - t * t / s
                    out[1, leaf, v] = room[depth, v] * s
                leaf += 1
            continue
        if what == ADD:
            for i in range(k + 1, K):
                diagonal, edge = here + i * Q + i, here + i * Q + K
                for v in range(w):
                    p, s = out[0, leaf, v], 1.0 / M[diagonal, v]
                    u = M[edge, v] * s
                    N[edge, v] = sign * p * u
                    N[diagonal, v] = -0.5 * p * (sign * u * u + s)
                    N[corner, v] -= 0.5 * sign * p
                    used[i, v] += p
                leaf += 1
            continue
        away = -Q * Q
        line = here + away + k * Q
        for v in range(w):
            s = M[line + k, v]
            room[x, v] = 1.0 / s
            if what == ENTER:
                room[depth, v] = room[depth - 1, v] * s
            else:
                p = 2.0 * sign * N[corner, v]
                room[mass, v] = p
                used[k, v] -= p
        for i in range(k + 1, Q):
            diagonal = line + i
            for v in range(w):
                room[y + i, v] = M[diagonal, v] * room[x, v] if what == ENTER else 0.0
        for i in range(k + 1, Q):
            apart = K - i if depth == J - 1 and i < K else 1  # sets need but two of a line
            for j in range(i, Q, apart):
                a, left, other = here + i * Q + j, y + i, y + j
                b, diagonal, m = a + away, line + i, line + j
                if what == ENTER:
                    for v in range(w):
                        M[a, v] = M[b, v] - room[left, v] * M[m, v]
                    continue
                for v in range(w):
                    room[left, v] += N[a, v] * M[m, v]
                for v in range(w):
                    room[other, v] += N[a, v] * M[diagonal, v]
                for v in range(w):
                    N[b, v] += N[a, v]
                    N[a, v] = 0.0
        if what == ENTER:
            continue
        for i in range(k + 1, Q):
            diagonal, left = line + i, y + i
            for v in range(w):
                u = room[left, v] * room[x, v]
                N[diagonal, v] -= u
                room[mass, v] += u * M[diagonal, v]
        diagonal = line + k
        for v in range(w):
            N[diagonal, v] += 0.5 * room[x, v] * room[mass, v]
