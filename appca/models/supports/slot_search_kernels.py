"""Moves over supports, one slot at a time: search and Gibbs draws.

Every kernel that takes `RowSupports` goes through its rows one after another and writes into arrays
of theirs; `row_blocks` shares all rows out over threads. The full conditional of one slot given the
others, the scores integrated out, is

    p(factor k in the slot | y, the other slots) proportional to exp(f(S - l + k)),

whose logarithms are the increments of `slot_kernels`. Random numbers come from a counter in the
row itself (`uniform`), not from arrays made outside: a row's stream then depends on nothing but its
seed, so that the same row gets the same answer among any other rows and on any number of threads.
"""

from typing import Any

import numpy as np

from appca.models.algebra.compiled import bare_kernel, reassociated
from appca.models.algebra.exponential_kernels import LANES, exponentials
from appca.models.supports.row_supports import CollapsedModel, RowSupports, SupportMoments
from appca.models.supports.slot_kernels import (
    RowState,
    build,
    exchange,
    log_density,
    score_replacements,
)


@bare_kernel
def uniform(stream: Any) -> Any:
    """Next number in [0, 1) of splitmix64 (Steele, Lea and Flood 2014), 53 bits."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0  # 2^53


@bare_kernel
def slot_mode(slot: int, J: int, prior: float, w: RowState) -> int:
    """Give the mode of a slot's full conditional: a candidate, or J if its factor is no worse.

    As `score_replacements` and `best_of`, but schur >= prior bounds an increment by 1/2 t^2 / s,
    which spares most of the logarithms, and the divisions. Equation (4) is written out, because
    calls of `increment` took a tenth of the time.
    """
    row, K = w.table[slot], len(w.candidates)
    m = row[K - 1 - slot]
    schur, resid = 1.0 / m, w.mean[slot] / m
    top, highest = J, 0.5 * (resid * resid / schur - np.log(schur / prior))
    for i in range(J):
        a = row[i]
        s, t = max(w.schur[i] + a * a * schur, prior), w.resid[i] + a * resid
        if 0.5 * t * t > highest * s:
            gain = 0.5 * (t * t / s - np.log(s / prior))
            if gain > highest:
                top, highest = i, gain
    return top


@bare_kernel
def largest(x: Any, n: int) -> float:
    """Give the largest of n numbers; each of four comparisons need not wait for the others."""
    a = b = c = d = x[0]
    for i in range(0, n - n % 4, 4):
        a, b, c, d = max(a, x[i]), max(b, x[i + 1]), max(c, x[i + 2]), max(d, x[i + 3])
    for i in range(n - n % 4, n):
        a = max(a, x[i])
    return float(max(a, b, c, d))


@reassociated
def total_of(x: Any, n: int) -> float:
    """Add up n numbers, in any order."""
    total = 0.0
    for i in range(n):
        total += x[i]
    return total


@bare_kernel
def draw_candidate(n: int, beta: float, w: RowState) -> int:
    """Draw one of n candidates with log weights beta increment + (1 - beta) base, beta at most 1.

    Afterwards `increment` holds the weights, over the largest.
    """
    increment, power, bits = w.scratch.increment, w.scratch.power, w.scratch.power_bits
    if beta < 1.0:
        for i in range(n):
            increment[i] = beta * increment[i] + (1.0 - beta) * w.base[w.candidates[i]]
    top = largest(increment, n)
    for i in range(n):
        increment[i] -= top
    for start in range(0, n, LANES):
        part = slice(start, start + LANES)
        for i in range(n, start + LANES):
            increment[i] = -np.inf
        exponentials(increment[part], power[part], bits[part])
    left = uniform(w.stream) * total_of(increment, n)
    for i in range(n - 1):
        left -= increment[i]
        if left < 0.0:
            return i
    return n - 1


@bare_kernel
def draw_slot(slot: int, beta: float, prior: float, w: RowState) -> int:
    """Draw from a slot's tempered full conditional: a candidate, or K - L for its own factor."""
    J = len(w.candidates) - len(w.members)
    score_replacements(slot, J, prior, w)
    w.candidates[J] = w.members[slot]
    return draw_candidate(J + 1, beta, w)


@bare_kernel
def shuffle(w: RowState) -> None:
    """Put the slots into a fresh uniformly random order (Fisher and Yates)."""
    n = len(w.order)
    for i in range(n):
        w.order[i] = i
    for i in range(n - 1, 0, -1):
        j = int(uniform(w.stream) * (i + 1))
        w.order[i], w.order[j] = w.order[j], w.order[i]


@bare_kernel
def sweep(beta: float, model: CollapsedModel, w: RowState) -> float:
    """Visit every slot once, in random order; give the change of log|Lam|.

    Infinite beta puts the mode into every slot (iterated conditional modes), 1 is a Gibbs sweep.
    The order must not depend on the members: with re-sorted members the draw is not invariant.
    A slot that keeps its factor is left without a further call: a call hands over all of `w`, and
    late in a search that was a quarter of the time.
    """
    change, J = 0.0, len(w.candidates) - len(w.members)
    shuffle(w)
    for slot in w.order:
        modes = beta == np.inf
        i = slot_mode(slot, J, model.prior, w) if modes else draw_slot(slot, beta, model.prior, w)
        if i < J:
            change += exchange(slot, i, model.A, w)
    return change


@bare_kernel
def search(
    counted: tuple[RowSupports, Any],
    betas: Any,
    keep: bool,
    model: CollapsedModel,
    out: SupportMoments,
    w: RowState,
) -> None:
    """Sweep every row's slots once for each beta; see `row_blocks.search`.

    `counted` are the rows and how often each counts (n,); `w` is room.

    Stops early once a sweep of modes changes nothing. With `keep` a row that ends lower than it
    began goes back.
    """
    rows, counts = counted
    for i in range(len(counts)):
        c = rows.c[i]
        w.stream[0] = rows.seeds[i]
        log_det = build(rows.members[i], model, c, w)
        first_log_det, first = log_det, log_density(log_det, c, w)
        for a in range(len(w.members)):
            w.kept[a] = w.members[a]
        for beta in betas:
            change = sweep(beta, model, w)
            log_det += change
            if beta == np.inf and change == 0.0:
                break
        last = log_density(log_det, c, w)
        if keep and last < first:
            build(w.kept, model, c, w)
            last = log_density(first_log_det, c, w)
        out.value[i] = last
        add_moments(i, counts[i], w, out)
        for a in range(len(w.members)):
            rows.members[i, a] = w.members[a]


@bare_kernel
def add_moments(i: int, count: float, w: RowState, out: SupportMoments) -> None:
    """Write E[x z] = mean of row i and add count E[(x z)(x z)'] = count (cov + mean mean')."""
    L, K = len(w.members), len(w.candidates)
    for k in range(K):
        out.H[i, k] = 0.0
    for a in range(L):
        k = w.members[a]
        out.H[i, k] = w.mean[a]
        for b in range(L):
            cov = w.table[min(a, b), K - 1 - max(a, b)]
            out.second[k, w.members[b]] += count * (cov + w.mean[a] * w.mean[b])
