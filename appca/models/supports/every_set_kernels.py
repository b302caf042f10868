"""Exact sums over all 2^K sets of columns, W not orthogonal: one walk through the tree of sets.

The children of a set have one more column, behind its last one. Taking column k in eliminates it
from the columns j behind it (Gauss), with s, r and f as in `support_kernels`:

    s_ij -> s_ij - s_ik s_kj / s_k    r_j -> r_j - s_jk r_k / s_k    f -> f + increment of column k

Half of the sets have no column behind them, a quarter one, and so on: on average a set costs a row
one such step and one exponential. On the way back the posterior mean of x_k follows from those
behind it: x_k = (r_k - sum_j s_jk x_j) / s_k. Rows lie along the last axis, so that one instruction
works on several of them.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.compiled import wide_kernel
from appca.models.supports.free_support_kernels import FreeSupportRows
from appca.models.supports.slot_search_kernels import uniform

NEGLIGIBLE = -60.0  # a million times exp of it is below the rounding of the largest weight


class SetSums(NamedTuple):
    """Sums over the sets of m rows, of weights in units of exp(top)."""

    top: Any  # (m,) largest log weight
    best: Any  # (m,) its set, bit k for column k
    total: Any  # (K + 1, m), at [0] over all sets
    means: Any  # (K + 1, K, m), at [0] of weights times posterior means of x * z
    inclusion: Any  # (K, m) of the sets that have a column
    drawn: Any  # (m,) a set drawn with probability proportional to its weight
    passed: Any  # (m,) sum of the weights of all sets visited
    edge: Any  # (m,) where `passed` exceeds it, `drawn` changes
    streams: Any  # (m, 1) of random numbers


class Tree(NamedTuple):
    """State of the sets on the way from the empty set to the current one, by size."""

    s: Any  # (K + 1, K, K) Schur complements, lower triangles
    r: Any  # (K + 1, K, m) residual correlations
    f: Any  # (K + 1, m) log weights


@wide_kernel
def weigh(f: Any, size: int, code: int, out: SetSums) -> None:
    """Add a set with log weights f (m,); `size` is 0 for the empty set.

    A set that was drawn when the weights had summed to C is still the one drawn when they sum to
    C' with probability C / C': so the next one is where they exceed C / u, u uniform.
    """
    for i in range(len(f)):
        gap = f[i] - out.top[i]
        if gap > 0.0:
            shrink = np.exp(-gap)
            out.top[i], out.best[i], gap = f[i], code, 0.0
            out.passed[i] *= shrink
            out.edge[i] *= shrink
            out.inclusion[:, i] *= shrink
            for d in range(size):
                out.total[d, i] *= shrink
                out.means[d, :, i] *= shrink
        weight = np.exp(gap) if gap > NEGLIGIBLE else 0.0
        out.total[size, i] = weight
        out.passed[i] += weight
        if out.passed[i] > out.edge[i]:
            out.drawn[i] = code
            out.edge[i] = out.passed[i] / (1.0 - uniform(out.streams[i]))


@wide_kernel
def eliminate(t: Tree, d: int, k: int, out: SetSums) -> None:
    """Take column k in: fill level d + 1 of the tree from level d."""
    s, r = t.s[d], t.r[d]
    for j in range(k + 1, len(s)):
        factor = s[j, k] / s[k, k]
        for i in range(k + 1, j + 1):
            t.s[d + 1, j, i] = s[j, i] - factor * s[i, k]
        to, line, lead = t.r[d + 1, j], r[j], r[k]
        for i in range(len(lead)):
            to[i] = line[i] - factor * lead[i]
        out.means[d + 1, j] = 0.0


@wide_kernel
def gather(t: Tree, d: int, k: int, out: SetSums) -> None:
    """Add the sums of the sets that go on from column k, on level d + 1, to those of level d."""
    s, lead, below, above = t.s[d], t.r[d, k], out.total[d + 1], out.total[d]
    mean, to = out.means[d + 1, k], out.means[d, k]
    for i in range(len(lead)):
        above[i] += below[i]
        out.inclusion[k, i] += below[i]
        mean[i] = lead[i] * below[i]
    for j in range(k + 1, len(s)):
        line, upper, factor = out.means[d + 1, j], out.means[d, j], s[j, k]
        for i in range(len(lead)):
            mean[i] -= factor * line[i]
            upper[i] += line[i]
    for i in range(len(lead)):
        to[i] += mean[i] / s[k, k]


@wide_kernel
def walk(rows: FreeSupportRows, t: Tree, members: Any, out: SetSums) -> None:
    """Sum over all sets, from a tree that is filled at level 0; members (K,) is scratch."""
    K, d, k, code = len(members), 0, 0, 0
    weigh(t.f[0], 0, 0, out)
    while d > 0 or k < K:
        if k < K:
            s, line, f, to = t.s[d, k, k], t.r[d, k], t.f[d], t.f[d + 1]
            gain = rows.odds[k] - 0.5 * np.log(rows.tau2 * s)
            for i in range(len(f)):
                to[i] = f[i] + gain + 0.5 * line[i] * line[i] / s
            members[d], code = k, code + (1 << k)
            weigh(to, d + 1, code, out)
            eliminate(t, d, k, out)
            d += 1
        else:
            d -= 1
            k = members[d]
            code -= 1 << k
            gather(t, d, k, out)
        k += 1
