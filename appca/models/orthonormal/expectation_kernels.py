"""The E step of one block of rows, compiled: projections, inclusion and sums in one sweep.

The mathematics is that of `subsets` (swaps into and out of the L largest logits) without the
sort: a member of the top can only be swapped out and any other column only in, so each column
keeps its place and has weight zero in the table of the half it does not belong to. Rows go through
in lanes of 64, so that all inner loops run over neighbours in memory and become vector
instructions, and in tiles small enough to be still in cache for the second product.

All of it is computed in the dtype of the rows, and summed over tiles in float64.
"""

import math
from typing import Any

import numpy as np

from appca.models.algebra.compiled import wide_kernel
from appca.models.algebra.exponential_kernels import LANES, exponentials
from appca.models.algebra.product_kernels import add_outer, project

SUMMED = 16 * LANES  # rows whose moments are added in their own dtype
TILE_BYTES, MOST_LANES_A_TILE = 2**19, 8  # of rows between the two products


@wide_kernel
def largest(a: Any, top: Any, x: Any) -> None:
    """Put the L largest of the columns a (K, LANES) into top (L, LANES), in falling order."""
    K, L = len(a), len(top)
    for j in range(L):
        for i in range(LANES):
            top[j, i] = -np.inf
    for k in range(K):
        for i in range(LANES):
            x[i] = a[k, i]
        for j in range(min(k + 1, L)):
            for i in range(LANES):
                high = max(top[j, i], x[i])
                x[i] = min(top[j, i], x[i])
                top[j, i] = high


@wide_kernel
def weigh(a: Any, top: Any, member: Any, out: Any, into: Any, room: Any, e: Any) -> None:
    """Tell members of the top from others, and weigh what it costs to swap each.

    Of columns equal to the L-th largest logit the first ones are members, so that L are in all.
    """
    K, L = len(a), len(top)
    x, left, power, bits = room
    for i in range(LANES):
        left[i] = L
    for j in range(L):
        for i in range(LANES):
            left[i] -= 1.0 if top[j, i] > top[L - 1, i] else 0.0
    for k in range(K):
        for i in range(LANES):
            d = a[k, i] - top[L - 1, i]
            tied = d == 0.0 and left[i] > 0.0
            left[i] -= 1.0 if tied else 0.0
            member[k, i] = 1.0 if d > 0.0 or tied else 0.0
            x[i] = -abs(d)
        exponentials(x, e, power, bits)
        for i in range(LANES):
            out[k, i] = x[i] * member[k, i]
            into[k, i] = x[i] - out[k, i]


@wide_kernel
def kept(v: Any, least: Any) -> Any:
    """Return v, or 0 if it is below: products of such would be denormal, a hundred times slower."""
    return v if v > least else v - v


@wide_kernel
def forward(w: Any, table: Any, tiny: Any) -> None:
    """Fill table[k + 1, j] = table[k, j] + w_k table[k, j - 1], shape (K + 1, J + 1, LANES)."""
    J = table.shape[1] - 1
    for i in range(LANES):
        table[0, 0, i] = 1.0
    for j in range(1, J + 1):
        for i in range(LANES):
            table[0, j, i] = 0.0
    for k in range(len(w)):
        for i in range(LANES):
            table[k + 1, 0, i] = 1.0
        for j in range(1, J + 1):
            for i in range(LANES):
                v = table[k, j, i] + w[k, i] * table[k, j - 1, i]
                table[k + 1, j, i] = kept(v, tiny)


@wide_kernel
def backward(w: Any, table: Any, other: Any, r: Any, sign: Any, few: Any, room: Any) -> None:
    """Add `sign` times each column's probability of being swapped to r (K, LANES).

    `other` (J + 1, LANES) is the last line of the other half's table over the total.
    """
    J = table.shape[1] - 1
    after, x = room
    after[:] = other
    for k in range(len(w) - 1, -1, -1):
        for i in range(LANES):
            x[i] = 0.0
        for j in range(J):
            for i in range(LANES):
                x[i] += table[k, j, i] * after[j + 1, i]
            for i in range(LANES):
                after[j, i] = kept(after[j, i] + w[k, i] * after[j + 1, i], few)
        for i in range(LANES):
            r[k, i] += sign * w[k, i] * kept(x[i], few)


@wide_kernel
def summed(top: Any, count: int) -> float:
    """Sum the L largest logits of `count` lanes, in float64."""
    value = 0.0
    for j in range(len(top)):
        for i in range(count):
            value += top[j, i]
    return value


@wide_kernel
def combined(members: Any, rest: Any, count: int, total: Any, few: Any) -> float:
    """Sum log e_L less `summed`; the last lines of both tables are left over the totals."""
    for i in range(LANES):
        total[i] = 0.0
    for j in range(len(members)):
        for i in range(LANES):
            total[i] += members[j, i] * rest[j, i]
    value = 0.0
    for i in range(count):
        value += math.log(total[i])
    for j in range(len(members)):
        for i in range(LANES):
            members[j, i] = kept(members[j, i] / total[i], few)
            rest[j, i] = kept(rest[j, i] / total[i], few)
    return value


@wide_kernel
def read(P: Any, start: int, count: int, shift: Any, q: Any, m: Any, a: Any) -> None:
    """Put projections about the mean and logits of `count` rows into lanes, zeros into the rest."""
    for k in range(len(m)):
        for i in range(count):
            m[k, i] = P[k, start + i] + shift[k]
        for i in range(count, LANES):
            m[k, i] = 0
        for i in range(LANES):
            h = q[0, k] * m[k, i]
            a[k, i] = h * h - q[1, k]


@wide_kernel
def write(m: Any, r: Any, q: Any, count: int, S: Any, start: int, sums: Any) -> None:
    """Turn projections m into posterior means of x * z, in S, and add up their moments."""
    for k in range(len(m)):
        for i in range(count, LANES):
            r[k, i] = 0
        for i in range(LANES):
            m[k, i] *= q[2, k]
        for i in range(LANES):
            sums[0, k, i] += r[k, i] * m[k, i]
        for i in range(LANES):
            sums[1, k, i] += r[k, i] * (m[k, i] * m[k, i] + q[3, k])
        for i in range(LANES):
            sums[2, k, i] += r[k, i]
        for i in range(min(LANES, S.shape[1] - start)):
            S[k, start + i] = r[k, i] * m[k, i]


@wide_kernel
def add_up(sums: Any, totals: Any) -> None:
    """Add moments (3, K, LANES) of any dtype to totals (3, K) in float64."""
    for j in range(3):
        for k in range(totals.shape[1]):
            for i in range(LANES):
                totals[j, k] += sums[j, k, i]


@wide_kernel
def expect(P: Any, n: int, given: Any, totals: Any) -> float:
    """Return the sum over n rows of log e_L(exp a), and turn projections into posterior means.

    Parameters
    ----------
    P : (at least K, at least n) projections, overwritten by the posterior means of x * z, and by
        zeros from n on.
    given : what is the same for all rows, in the dtype of P:
        (K,) to be added to projections, which are then about the mean;
        (4, K) root of the slope and offset of the logits, a = (root p)^2 - offset, shrinkage and
        variance of x given the row; how to take exponentials;
        K, L (0 < L < K), and whether a row goes wholly to its best support, whose logits are then
        summed instead of log e_L.
    totals : (3, K) float64, to which the sums of E[x z], E[(x z)^2] and r are added.
    """
    shift, q, e, (K, n_active, hard) = given
    J, kind = min(n_active, K - n_active), P.dtype
    m, a, r = np.empty((K, LANES), kind), np.empty((K, LANES), kind), np.empty((K, LANES), kind)
    out, into = np.empty((K, LANES), kind), np.empty((K, LANES), kind)
    top, after = np.empty((n_active, LANES), kind), np.empty((J + 1, LANES), kind)
    members, rest = np.empty((K + 1, J + 1, LANES), kind), np.empty((K + 1, J + 1, LANES), kind)
    x, total, power = np.empty(LANES, kind), np.empty(LANES, kind), np.empty(LANES, kind)
    room = x, total, power, power.view(type(e.bias))
    sums = np.empty((3, K, LANES), kind)
    value, one, few = 0.0, e.terms[13], math.sqrt(e.tiny)
    for first in range(0, n, SUMMED):
        sums[:] = 0
        for start in range(first, min(first + SUMMED, n), LANES):
            count = min(LANES, n - start)
            read(P, start, count, shift, q, m, a)
            largest(a, top, x)
            weigh(a, top, r, out, into, room, e)
            value += summed(top, count)
            if not hard:
                forward(out, members, e.tiny)
                forward(into, rest, e.tiny)
                value += combined(members[K], rest[K], count, total, few)
                backward(into, rest, members[K], r, one, few, (after, x))
                backward(out, members, rest[K], r, -one, few, (after, x))
            write(m, r, q, count, P, start, sums)
        add_up(sums, totals)
    return value


@wide_kernel
def sweep(X: Any, W: Any, given: Any, A: Any, totals: Any) -> float:
    """Do `expect` for rows X (n, d), and add the sum of s x' to A, s being those means.

    Parameters
    ----------
    W : (K and up to three lines of zeros, d) directions, of the dtype of X.
    A : (as W) float64.
    """
    n, d = X.shape
    tile = LANES * min(max(TILE_BYTES // (d * X.itemsize * LANES), 1), MOST_LANES_A_TILE)
    P, part = np.zeros((len(W), tile), X.dtype), np.empty(W.shape, X.dtype)
    value = 0.0
    for first in range(0, n, tile):
        rows = X[first : first + tile]
        project(rows, W, P)
        value += expect(P, len(rows), given, totals)
        part[:] = 0
        add_outer(rows, P, part)
        A += part
    return value
