"""Sums over all sets of factors, row by row: what `enumeration` says of the posterior.

Sets lie along the last axis, so that one instruction works on several of them.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.compiled import wide_kernel

NEGLIGIBLE = -40.0  # exp of it is below the rounding of the largest weight, which is 1


class SupportArrays(NamedTuple):
    """What all rows share, see `enumeration.SupportTable`."""

    members: Any  # (L, C), ascending
    root: Any  # (L, L, C), root root' = inv(Lam), upper triangular
    half_log_det: Any  # (C,)


class PosteriorSums(NamedTuple):
    """What is written, see `enumeration.EnumeratedPosterior`."""

    log_sum: Any  # (n,)
    inclusion: Any  # (n, K)
    H: Any  # (n, K)
    weight: Any  # (C,) weighted sum over rows of a set's probability
    moment: Any  # (C, L, L) the same of it times m m', m being the mean of x_S


@wide_kernel
def gather(members: Any, c: Any, projections: Any) -> None:
    """Set own (L, C) = c_S."""
    for a in range(len(projections)):
        for s in range(projections.shape[1]):
            projections[a, s] = c[members[a, s]]


@wide_kernel
def weigh(sets: SupportArrays, projections: Any, white: Any, f: Any) -> None:
    """Set white (L, C) = root' c_S and f (C,) = f(S) of one row with own (L, C) = c_S."""
    L, C = projections.shape
    for s in range(C):
        f[s] = -sets.half_log_det[s]
    for a in range(L):
        line = white[a]
        line[:] = 0.0
        for b in range(a + 1):
            root, x = sets.root[b, a], projections[b]
            for s in range(C):
                line[s] += root[s] * x[s]
        for s in range(C):
            f[s] += 0.5 * line[s] * line[s]


@wide_kernel
def normalise(f: Any) -> float:
    """Turn log weights f (C,) into probabilities; give the log of the sum of the weights."""
    high, total = f.max(), 0.0
    for s in range(len(f)):
        away = f[s] - high
        f[s] = np.exp(away) if away > NEGLIGIBLE else 0.0
        total += f[s]
    for s in range(len(f)):
        f[s] /= total
    return float(high + np.log(total))


@wide_kernel
def add_sets(
    sets: SupportArrays, f: Any, white: Any, m: Any, row: tuple[Any, Any, float], out: PosteriorSums
) -> None:
    """Add what the sets, of probabilities f (C,), say of one row; m (L,) is scratch.

    Of the row come its inclusion and H, (K,) each, and how often it counts.

    One call a row: a call hands over all arrays, which takes longer than what a set has to say.
    """
    L, C = white.shape
    root, weight, moment = sets.root, out.weight, out.moment
    inclusion, H, count = row
    for s in range(C):
        p = f[s]
        if p > 0.0:
            weight[s] += count * p
            for a in range(L):
                total = 0.0
                for b in range(a, L):
                    total += root[a, b, s] * white[b, s]
                m[a] = total
            for a in range(L):
                k = sets.members[a, s]
                inclusion[k] += p
                H[k] += p * m[a]
                for b in range(L):
                    moment[s, a, b] += count * p * m[a] * m[b]


@wide_kernel
def best(sets: SupportArrays, c: Any, which: Any, value: Any) -> None:
    """Find the number (n,) of the most probable set of each row c (n, K), and its f(S) (n,)."""
    L, C = sets.members.shape
    f, projections, white = np.empty(C), np.empty((L, C)), np.empty((L, C))
    for i in range(len(c)):
        gather(sets.members, c[i], projections)
        weigh(sets, projections, white, f)
        which[i] = f.argmax()
        value[i] = f[which[i]]


@wide_kernel
def posterior(sets: SupportArrays, c: Any, counts: Any, out: PosteriorSums) -> None:
    """Go through the rows c (n, K), each of which counts as often as counts (n,) says."""
    L, C = sets.members.shape
    f, projections, white, m = np.empty(C), np.empty((L, C)), np.empty((L, C)), np.empty(L)
    for i in range(len(c)):
        gather(sets.members, c[i], projections)
        weigh(sets, projections, white, f)
        out.log_sum[i] = normalise(f)
        out.inclusion[i] = 0.0
        out.H[i] = 0.0
        add_sets(sets, f, white, m, (out.inclusion[i], out.H[i], counts[i]), out)
