"""Moves over active sets, and what is made of them: searches, draws, importance paths.

Every kernel that takes `Rows` goes through them one after another and writes into arrays of theirs;
`blocks` shares all rows out over threads. Random numbers come from a counter in the row itself
(`uniform`), not from arrays made outside: a row's stream then depends on nothing but its seed, so
that the same row gets the same answer in whatever company and on however many threads it is asked.
"""

from typing import Any

import numpy as np

from appca.models.algebra.compiled import kernel
from appca.models.supports.row_supports import (
    AnnealedPaths,
    AnnealingSchedule,
    CollapsedModel,
    RowSupports,
    SupportMoments,
)
from appca.models.supports.slot_kernels import Row, best, build, gains, insert, remove, row, value

# exp(-40) of the largest weight is below what a 53-bit uniform number can hit.
NEGLIGIBLE = -40.0


@kernel
def uniform(state: Any) -> Any:
    """Next number in [0, 1) of splitmix64 (Steele, Lea and Flood 2014), 53 bits."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0  # 2^53


@kernel
def climb(slot: int, J: int, prior: float, w: Row) -> int:
    """Give the best candidate for a slot, number J (its member) where none is better.

    As `gains` and `best`, but s >= prior spares most of the logarithms, and the divisions.
    """
    m, q = 1.0 / w.Mi[slot, slot], w.q[slot] / w.Mi[slot, slot]
    top, high = J, 0.5 * (q * q / m - np.log(m / prior))
    for i in range(J):
        v = w.V[slot, i]
        s, t = max(w.s[i] + v * v * m, prior), w.t[i] + v * q
        if 0.5 * t * t > high * s:
            gain = 0.5 * (t * t / s - np.log(s / prior))
            if gain > high:
                top, high = i, gain
    return top


@kernel
def draw(n: int, beta: float, w: Row) -> int:
    """Draw one of n candidates, log weights beta gain + (1 - beta) bias, beta at most 1.

    Afterwards `gain` holds the cumulated weights.
    """
    if beta < 1.0:
        for i in range(n):
            w.gain[i] = beta * w.gain[i] + (1.0 - beta) * w.bias[w.outside[i]]
    top = best(n, w)
    largest, total = w.gain[top], 0.0
    for i in range(n):
        logit = w.gain[i] - largest
        if logit > NEGLIGIBLE:
            total += np.exp(logit)
        w.gain[i] = total
    u = uniform(w.state) * total
    for i in range(n):
        if u < w.gain[i]:
            return i
    return top


@kernel
def pick(slot: int, beta: float, prior: float, w: Row) -> int:
    """Draw among the candidates for a slot and its member, which is number K - L."""
    J = len(w.outside) - len(w.members)
    gains(slot, J, prior, w)
    w.outside[J] = w.members[slot]
    return draw(J + 1, beta, w)


@kernel
def replace(slot: int, i: int, A: Any, w: Row) -> float:
    """Give a slot to candidate i, not its own member; give the change of log|Lam|."""
    L = len(w.members)
    J = len(w.outside) - L
    change = remove(slot, L, J, w)
    return change + insert(slot, i, L, J + 1, A, w)


@kernel
def shuffle(w: Row) -> None:
    """Put the slots into a fresh uniformly random order."""
    n = len(w.order)
    for i in range(n):
        w.order[i] = i
    for i in range(n - 1, 0, -1):
        j = int(uniform(w.state) * (i + 1))
        w.order[i], w.order[j] = w.order[j], w.order[i]


@kernel
def sweep(beta: float, model: CollapsedModel, w: Row) -> float:
    """Visit every slot once, in random order; give the change of log|tau2 Lam|.

    The order must not depend on the members: with re-sorted members the draw is not invariant.
    Infinite beta puts the best into every slot. A slot that keeps its member is left without a
    further call: a call hands over all of `w`, and late in a climb that was a quarter of the time.
    """
    change, J = 0.0, len(w.outside) - len(w.members)
    shuffle(w)
    for slot in w.order:
        best_one = beta == np.inf
        i = climb(slot, J, model.prior, w) if best_one else pick(slot, beta, model.prior, w)
        if i < J:
            change += replace(slot, i, model.A, w)
    return change


@kernel
def search(
    rows: RowSupports, betas: Any, keep: bool, model: CollapsedModel, out: SupportMoments
) -> None:
    """Sweep every row's slots once for each beta; infinite is to the best, 1 a posterior draw.

    Stops early once a sweep to the best changes nothing. With `keep` a row that ends lower than
    it began goes back.
    """
    n, K = rows.c.shape
    L = rows.members.shape[1]
    w = row(K, L)
    for i in range(n):
        c = rows.c[i]
        w.state[0] = rows.seeds[i]
        log_det = build(rows.members[i], model, c, w)
        began, f = log_det, value(log_det, c, w)
        w.kept[:] = w.members
        for beta in betas:
            change = sweep(beta, model, w)
            log_det += change
            if beta == np.inf and change == 0.0:
                break
        ended = value(log_det, c, w)
        if keep and ended < f:
            build(w.kept, model, c, w)
            ended = value(began, c, w)
        out.value[i] = ended
        add_moments(i, w, out)
        rows.members[i] = w.members


@kernel
def add_moments(i: int, w: Row, out: SupportMoments) -> None:
    """Write E[x z] = q of row i and add E[(x z)(x z)'] = Mi + q q'."""
    L = len(w.members)
    out.H[i] = 0.0
    for a in range(L):
        k = w.members[a]
        out.H[i, k] = w.q[a]
        for b in range(L):
            out.second[k, w.members[b]] += w.Mi[a, b] + w.q[a] * w.q[b]


@kernel
def tally(model: CollapsedModel, w: Row, r: Any) -> float:
    """Sweep as a draw, adding to r (K,) every factor's chance to be in S after each visit.

    Averaging over a draw's odds instead of counting its outcome (Rao-Blackwell) is less noisy.
    """
    L, K = len(w.members), len(r)
    change = 0.0
    shuffle(w)
    for slot in w.order:
        for m in range(L):
            r[w.members[m]] += 1.0
        r[w.members[slot]] -= 1.0
        i = pick(slot, 1.0, model.prior, w)
        below = 0.0
        for j in range(K - L + 1):
            r[w.outside[j]] += (w.gain[j] - below) / w.gain[K - L]
            below = w.gain[j]
        if i < K - L:
            change += replace(slot, i, model.A, w)
    return change


@kernel
def count_table(r: Any, P: Any) -> None:
    """P[k, l] = chance that l of the first k independent coins come up heads, coin k by r[k]."""
    P[:] = 0.0
    P[0, 0] = 1.0
    for k in range(len(r)):
        for j in range(P.shape[1]):
            P[k + 1, j] = (1.0 - r[k]) * P[k, j] + (r[k] * P[k, j - 1] if j > 0 else 0.0)


@kernel
def draw_start(r: Any, P: Any, w: Row) -> None:
    """Draw `kept`: the heads of the coins, given that they are exactly L (walk down the table)."""
    left = len(w.kept)
    for k in range(len(r) - 1, -1, -1):
        if left > 0 and uniform(w.state) * P[k + 1, left] < r[k] * P[k, left - 1]:
            left -= 1
            w.kept[left] = k


@kernel
def paths(
    rows: RowSupports, r: Any, route: AnnealingSchedule, model: CollapsedModel, out: AnnealedPaths
) -> None:
    """Annealed importance sampling (Neal 2001) of sum_S exp f(S), `out.log_weights` (n, n_paths).

    From q(S) proportional to exp(sum of bias over S), bias = logit r, drawn exactly, along
    beta f + (1 - beta) sum bias to f, one sweep at each inner beta. The exponentials of the log
    weights have that sum as mean for any r. `out.inclusion` (n, n_paths, K) is each factor's chance
    to be in S over the last sweeps of a path, those that follow at beta 1.
    """
    K, L = r.shape[1], rows.members.shape[1]
    w = row(K, L)
    P = np.zeros((K + 1, L + 1))
    for i in range(len(r)):
        c = rows.c[i]
        w.state[0] = rows.seeds[i]
        count_table(r[i], P)
        log_q = np.log(P[K, L])
        for k in range(K):
            log_q -= np.log1p(-r[i, k])
            w.bias[k] = np.log(r[i, k]) - np.log1p(-r[i, k])
        for path in range(out.log_weights.shape[1]):
            draw_start(r[i], P, w)
            log_det = build(w.kept, model, c, w)
            out.log_weights[i, path] = log_q + anneal(route.betas, log_det, c, model, w)
            out.inclusion[i, path] = 0.0
            for _ in range(route.after):
                tally(model, w, out.inclusion[i, path])
            out.inclusion[i, path] /= max(route.after, 1) * L


@kernel
def anneal(betas: Any, log_det: float, c: Any, model: CollapsedModel, w: Row) -> float:
    """Follow one path; give the sum over betas of the rise in beta times f - sum of bias."""
    total, beta = 0.0, 0.0
    for following in betas:
        if beta > 0.0:
            log_det += sweep(beta, model, w)
        lean = 0.0
        for k in w.members:
            lean += w.bias[k]
        total += (following - beta) * (value(log_det, c, w) - lean)
        beta = following
    return total
