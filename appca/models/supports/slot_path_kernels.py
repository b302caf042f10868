"""Annealed paths over the supports of a row: sequential Monte Carlo from coins to the posterior.

The paths of a row walk side by side. Where their weights have become unequal, paths of little
weight are replaced by copies of others (systematic resampling), which leaves the mean of the
weights what it is on average and keeps its variance from growing with the product of all steps.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.compiled import bare_kernel
from appca.models.supports.row_supports import (
    AnnealedPaths,
    AnnealingSchedule,
    CollapsedModel,
    RowSupports,
)
from appca.models.supports.slot_kernels import RowState, build, exchange, lines, log_density
from appca.models.supports.slot_search_kernels import draw_slot, largest, shuffle, total_of, uniform

LEAST_EVEN = 0.5  # share of the paths that the weights must be worth, or paths are resampled


class Walkers(NamedTuple):
    """The supports that the n paths of a row have reached."""

    members: Any  # (n, L)
    candidates: Any  # (n, K)
    table: Any  # (n, L, K)
    mean: Any  # (n, L)
    schur: Any  # (n, K)
    resid: Any  # (n, K)
    lead: Any  # (n,), see `lead`
    log_weight: Any  # (n,)
    family: Any  # (n,) int64, the path that each descends from
    weight: Any  # (n,) scratch of `anneal`
    count: Any  # (n,) int64, scratch of `resample`


def walkers(n: int, K: int, L: int) -> Walkers:
    """Allocate them."""
    return Walkers(
        np.zeros((n, L), np.int64),
        np.zeros((n, K), np.int64),
        lines(n, L, K),
        np.zeros((n, L)),
        np.zeros((n, K)),
        np.zeros((n, K)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n, np.int64),
    )


@bare_kernel
def one_of(of: Walkers, p: int, w: RowState) -> RowState:
    """Return walker p as a state that moves in place, with the scratch space of another."""
    return RowState(
        of.members[p],
        of.candidates[p],
        of.table[p],
        of.mean[p],
        of.schur[p],
        of.resid[p],
        w.scratch,
        w.order,
        w.kept,
        w.base,
        w.stream,
    )


@bare_kernel
def poisson_binomial(r: Any, P: Any) -> None:
    """Write P[k, l] = p(z_1 + ... + z_k = l) of independent z_k ~ Bernoulli(r_k)."""
    for j in range(P.shape[1]):
        P[0, j] = 0.0
    P[0, 0] = 1.0
    for k in range(len(r)):
        for j in range(P.shape[1]):
            P[k + 1, j] = (1.0 - r[k]) * P[k, j] + (r[k] * P[k, j - 1] if j > 0 else 0.0)


@bare_kernel
def draw_base(r: Any, P: Any, w: RowState) -> None:
    """Draw `kept` from q(S): independent z_k ~ Bernoulli(r_k) given that L of them are 1.

    From k = K down, p(z_k = 1 | z_1 + ... + z_k = l) = r_k P[k - 1, l - 1] / P[k, l].
    """
    left = len(w.kept)
    for k in range(len(r) - 1, -1, -1):
        if left > 0 and uniform(w.stream) * P[k + 1, left] < r[k] * P[k, left - 1]:
            left -= 1
            w.kept[left] = k


@bare_kernel
def lead(log_det: float, c: Any, w: RowState) -> float:
    """Give f(S) - base'z, by whose multiples a path's weight grows."""
    log_weight = log_density(log_det, c, w)
    for k in w.members:
        log_weight -= w.base[k]
    return log_weight


@bare_kernel
def climb(
    p: int, first: float, last: float, model: CollapsedModel, of: Walkers, w: RowState
) -> None:
    """Sweep a walker's slots once while beta rises from visit to visit, from `first` to `last`.

    Its root rises evenly. Before each visit the weight grows by exp(rise lead); what a draw adds to
    f tells the next lead.
    """
    J, L, lead, grown = len(w.candidates) - len(w.members), len(w.members), of.lead[p], 0.0
    beta, gain = first, w.scratch.fit
    step = (np.sqrt(last) - np.sqrt(first)) / L
    shuffle(w)
    for v in range(L):
        slot, member = w.order[v], w.members[w.order[v]]
        before, beta = beta, (np.sqrt(first) + (v + 1) * step) ** 2
        grown += (beta - before) * lead
        i = draw_slot(slot, beta, model.prior, w)
        if i < J:
            lead += gain[i] - gain[J] - w.base[w.candidates[i]] + w.base[member]
            exchange(slot, i, model.A, w)
    of.lead[p] = lead
    of.log_weight[p] += grown


@bare_kernel
def weigh(log_weight: Any, weight: Any) -> float:
    """Write normalised weights (n,); give the number of equal weights that are worth as much."""
    high, total, squares = largest(log_weight, len(log_weight)), 0.0, 0.0
    for p in range(len(weight)):
        weight[p] = np.exp(log_weight[p] - high)
        total += weight[p]
    for p in range(len(weight)):
        weight[p] /= total
        squares += weight[p] * weight[p]
    return float(1.0 / squares)


@bare_kernel
def copy_walker(of: Walkers, p: int, giver: int) -> None:
    """Put walker p where another is; in loops, which are compiled in a tenth of the time."""
    for a in range(of.members.shape[1]):
        of.members[p, a], of.mean[p, a] = of.members[giver, a], of.mean[giver, a]
        for k in range(of.table.shape[2]):
            of.table[p, a, k] = of.table[giver, a, k]
    for k in range(of.candidates.shape[1]):
        of.candidates[p, k] = of.candidates[giver, k]
        of.schur[p, k], of.resid[p, k] = of.schur[giver, k], of.resid[giver, k]
    of.lead[p], of.family[p] = of.lead[giver], of.family[giver]


@bare_kernel
def resample(of: Walkers, u: float) -> None:
    """Copy walkers over others, n weight_p of p on average; all get the mean weight."""
    weight, count = of.weight, of.count
    n, upto, p, total = len(weight), 0.0, 0, 0.0
    high = largest(of.log_weight, n)
    for j in range(n):
        total += np.exp(of.log_weight[j] - high)
        count[j] = 0
    mean = np.log(total / n) + high
    for j in range(n):
        while p < n - 1 and upto + weight[p] < (u + j) / n:
            upto += weight[p]
            p += 1
        count[p] += 1
    giver = 0
    for p in range(n):
        of.log_weight[p] = mean
        if count[p] == 0:
            while count[giver] < 2:
                giver += 1
            count[giver] -= 1
            copy_walker(of, p, giver)


@bare_kernel
def add_inclusion(model: CollapsedModel, w: RowState, r: Any) -> None:
    """Make a Gibbs sweep that adds to r (K,) four estimates of each factor's inclusion.

    They are the support before, that after, and twice the sum over visits of the conditional
    probabilities of the slot, which is above p(z_k = 1) where k is left out and below where it is
    in: their mean varies a third as much as the support alone. An estimate may exceed 1.
    """
    J, drawn = len(w.candidates) - len(w.members), w.scratch.increment
    for k in w.members:
        r[k] += 1.0
    shuffle(w)
    for slot in w.order:
        i = draw_slot(slot, 1.0, model.prior, w)
        share = 2.0 / total_of(drawn, J + 1)
        for j in range(J + 1):
            r[w.candidates[j]] += share * drawn[j]
        if i < J:
            exchange(slot, i, model.A, w)
    for k in w.members:
        r[k] += 1.0


@bare_kernel
def anneal(of: Walkers, betas: Any, model: CollapsedModel, w: RowState) -> None:
    """Take all walkers along exp(beta f(S) + (1 - beta) base'z), a sweep from one beta to the next.

    The exponentials of their log weights, times those they begin with, have the sum of exp f(S)
    over that of exp(base'z) as mean.
    """
    n = len(of.log_weight)
    for p in range(n):
        of.log_weight[p] += betas[0] * of.lead[p]
    for t in range(1, len(betas)):
        for p in range(n):
            climb(p, betas[t - 1], betas[t], model, of, one_of(of, p, w))
        if t < len(betas) - 1 and weigh(of.log_weight, of.weight) < LEAST_EVEN * n:
            resample(of, uniform(w.stream))


@bare_kernel
def importance(
    rows: RowSupports,
    r: Any,
    schedule: AnnealingSchedule,
    model: CollapsedModel,
    out: AnnealedPaths,
    room: tuple[RowState, Walkers, Any],
) -> None:
    """Estimate sum_S exp f(S) of every row; see `row_blocks.importance`.

    `room` is that of `row_state` and `walkers`, and (K + 1, L + 1) for `poisson_binomial`.

    From q(S) = exp(base'z) / sum of it over all supports, base = logit r, drawn exactly.
    """
    w, of, P = room
    n, K, L = len(of.weight), len(w.candidates), len(w.members)
    for i in range(len(r)):
        c = rows.c[i]
        w.stream[0] = rows.seeds[i]
        poisson_binomial(r[i], P)
        log_norm = np.log(P[K, L])  # of exp(base'z) over the supports
        for k in range(K):
            log_norm -= np.log1p(-r[i, k])
            w.base[k] = np.log(r[i, k]) - np.log1p(-r[i, k])
        for p in range(n):
            draw_base(r[i], P, w)
            path = one_of(of, p, w)
            of.lead[p] = lead(build(w.kept, model, c, path), c, path)
            of.log_weight[p], of.family[p] = log_norm, p
        anneal(of, schedule.betas, model, w)
        for p in range(n):
            out.log_weights[i, p], out.families[i, p] = of.log_weight[p], of.family[p]
            path, inclusion = one_of(of, p, w), out.inclusion[i, p]
            for k in range(K):
                inclusion[k] = 0.0
            for _ in range(schedule.after):
                add_inclusion(model, path, inclusion)
            for k in range(K):
                inclusion[k] /= 4.0 * max(schedule.after, 1)
