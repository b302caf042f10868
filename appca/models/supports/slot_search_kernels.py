"""Moves over supports, one slot at a time: search, Gibbs draws, annealed importance sampling.

Every kernel that takes `RowSupports` goes through its rows one after another and writes into arrays
of theirs; `row_blocks` shares all rows out over threads. The full conditional of one slot given the
others, the scores integrated out, is

    p(factor k in the slot | y, the other slots) proportional to exp(f(S - l + k)),

whose logarithms are the increments of `slot_kernels`. Random numbers come from a counter in the
row itself (`uniform`), not from arrays made outside: a row's stream then depends on nothing but its
seed, so that the same row gets the same answer in whatever company and on however many threads.
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
from appca.models.supports.slot_kernels import (
    RowState,
    best_of,
    build,
    insert,
    log_density,
    remove,
    row_state,
    score_replacements,
)

# exp(-40) of the largest weight is below what a 53-bit uniform number can hit.
NEGLIGIBLE = -40.0


@kernel
def uniform(stream: Any) -> Any:
    """Next number in [0, 1) of splitmix64 (Steele, Lea and Flood 2014), 53 bits."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0  # 2^53


@kernel
def slot_mode(slot: int, J: int, prior: float, w: RowState) -> int:
    """Give the mode of a slot's full conditional: a candidate, or J if its factor is no worse.

    As `score_replacements` and `best_of`, but schur >= prior bounds an increment by 1/2 t^2 / s,
    which spares most of the logarithms, and the divisions. Equation (4) is written out, because
    calls of `increment` took a tenth of the time.
    """
    schur, resid = 1.0 / w.cov[slot, slot], w.mean[slot] / w.cov[slot, slot]
    top, highest = J, 0.5 * (resid * resid / schur - np.log(schur / prior))
    for i in range(J):
        a = w.coef[slot, i]
        s, t = max(w.schur[i] + a * a * schur, prior), w.resid[i] + a * resid
        if 0.5 * t * t > highest * s:
            found = 0.5 * (t * t / s - np.log(s / prior))
            if found > highest:
                top, highest = i, found
    return top


@kernel
def draw_candidate(n: int, beta: float, w: RowState) -> int:
    """Draw one of n candidates with log weights beta increment + (1 - beta) base, beta at most 1.

    Afterwards `increment` holds the cumulated weights, over the largest.
    """
    if beta < 1.0:
        for i in range(n):
            w.increment[i] = beta * w.increment[i] + (1.0 - beta) * w.base[w.candidates[i]]
    top = best_of(n, w)
    largest, total = w.increment[top], 0.0
    for i in range(n):
        log_weight = w.increment[i] - largest
        if log_weight > NEGLIGIBLE:
            total += np.exp(log_weight)
        w.increment[i] = total
    u = uniform(w.stream) * total
    for i in range(n):
        if u < w.increment[i]:
            return i
    return top


@kernel
def draw_slot(slot: int, beta: float, prior: float, w: RowState) -> int:
    """Draw from a slot's tempered full conditional: a candidate, or K - L for its own factor."""
    J = len(w.candidates) - len(w.members)
    score_replacements(slot, J, prior, w)
    w.candidates[J] = w.members[slot]
    return draw_candidate(J + 1, beta, w)


@kernel
def replace(slot: int, i: int, A: Any, w: RowState) -> float:
    """Give a slot to candidate i, not its own factor; give the change of log|Lam|."""
    L = len(w.members)
    J = len(w.candidates) - L
    change = remove(slot, L, J, w)
    return change + insert(slot, i, L, J + 1, A, w)


@kernel
def shuffle(w: RowState) -> None:
    """Put the slots into a fresh uniformly random order (Fisher and Yates)."""
    n = len(w.order)
    for i in range(n):
        w.order[i] = i
    for i in range(n - 1, 0, -1):
        j = int(uniform(w.stream) * (i + 1))
        w.order[i], w.order[j] = w.order[j], w.order[i]


@kernel
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
            change += replace(slot, i, model.A, w)
    return change


@kernel
def search(
    counted: tuple[RowSupports, Any],
    betas: Any,
    keep: bool,
    model: CollapsedModel,
    out: SupportMoments,
) -> None:
    """Sweep every row's slots once for each beta; see `row_blocks.search`.

    `counted` are the rows and how often each counts (n,).

    Stops early once a sweep of modes changes nothing. With `keep` a row that ends lower than it
    began goes back.
    """
    rows, counts = counted
    n, K = rows.c.shape
    L = rows.members.shape[1]
    w = row_state(K, L)
    for i in range(n):
        c = rows.c[i]
        w.stream[0] = rows.seeds[i]
        log_det = build(rows.members[i], model, c, w)
        first_log_det, first = log_det, log_density(log_det, c, w)
        w.kept[:] = w.members
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
        rows.members[i] = w.members


@kernel
def add_moments(i: int, count: float, w: RowState, out: SupportMoments) -> None:
    """Write E[x z] = mean of row i and add count E[(x z)(x z)'] = count (cov + mean mean')."""
    L = len(w.members)
    out.H[i] = 0.0
    for a in range(L):
        k = w.members[a]
        out.H[i, k] = w.mean[a]
        for b in range(L):
            out.second[k, w.members[b]] += count * (w.cov[a, b] + w.mean[a] * w.mean[b])


@kernel
def add_inclusion(model: CollapsedModel, w: RowState, r: Any) -> float:
    """Make a Gibbs sweep that adds to r (K,) each factor's conditional inclusion probability.

    After a visit that is p(z_k = 1 | y, the other slots): 1 for those, the full conditional of the
    slot for the candidates and its own factor. Rao-Blackwellised: the probabilities of a draw vary
    less than its outcome. Gives the change of log|Lam|.
    """
    L, K = len(w.members), len(r)
    change = 0.0
    shuffle(w)
    for slot in w.order:
        for m in range(L):
            r[w.members[m]] += 1.0
        r[w.members[slot]] -= 1.0
        i = draw_slot(slot, 1.0, model.prior, w)
        below, total = 0.0, w.increment[K - L]
        for j in range(K - L + 1):
            r[w.candidates[j]] += (w.increment[j] - below) / total
            below = w.increment[j]
        if i < K - L:
            change += replace(slot, i, model.A, w)
    return change


@kernel
def poisson_binomial(r: Any, P: Any) -> None:
    """Write P[k, l] = p(z_1 + ... + z_k = l) of independent z_k ~ Bernoulli(r_k)."""
    P[:] = 0.0
    P[0, 0] = 1.0
    for k in range(len(r)):
        for j in range(P.shape[1]):
            P[k + 1, j] = (1.0 - r[k]) * P[k, j] + (r[k] * P[k, j - 1] if j > 0 else 0.0)


@kernel
def draw_base(r: Any, P: Any, w: RowState) -> None:
    """Draw `kept` from q(S): independent z_k ~ Bernoulli(r_k) given that L of them are 1.

    From k = K down, p(z_k = 1 | z_1 + ... + z_k = l) = r_k P[k - 1, l - 1] / P[k, l].
    """
    left = len(w.kept)
    for k in range(len(r) - 1, -1, -1):
        if left > 0 and uniform(w.stream) * P[k + 1, left] < r[k] * P[k, left - 1]:
            left -= 1
            w.kept[left] = k


@kernel
def importance(
    rows: RowSupports,
    r: Any,
    schedule: AnnealingSchedule,
    model: CollapsedModel,
    out: AnnealedPaths,
) -> None:
    """Annealed importance sampling (Neal 2001) of sum_S exp f(S), `out.log_weights` (n, n_paths).

    From q(S) = exp(base'z) / sum of it over all supports, base = logit r, drawn exactly, along
    exp(beta f(S) + (1 - beta) base'z) to exp f(S), one sweep at each inner beta. The exponentials
    of the log weights have that sum as mean for any r. `out.inclusion` (n, n_paths, K) is each
    factor's inclusion probability over the last sweeps of a path, those that follow at beta 1.
    """
    K, L = r.shape[1], rows.members.shape[1]
    w = row_state(K, L)
    P = np.zeros((K + 1, L + 1))
    for i in range(len(r)):
        c = rows.c[i]
        w.stream[0] = rows.seeds[i]
        poisson_binomial(r[i], P)
        log_norm = np.log(P[K, L])  # of exp(base'z) over the supports
        for k in range(K):
            log_norm -= np.log1p(-r[i, k])
            w.base[k] = np.log(r[i, k]) - np.log1p(-r[i, k])
        for path in range(out.log_weights.shape[1]):
            draw_base(r[i], P, w)
            log_det = build(w.kept, model, c, w)
            out.log_weights[i, path] = log_norm + anneal(schedule.betas, log_det, c, model, w)
            out.inclusion[i, path] = 0.0
            for _ in range(schedule.after):
                add_inclusion(model, w, out.inclusion[i, path])
            out.inclusion[i, path] /= max(schedule.after, 1) * L


@kernel
def anneal(betas: Any, log_det: float, c: Any, model: CollapsedModel, w: RowState) -> float:
    """Follow one path; give the sum over t of (beta_t - beta_(t-1)) (f(S_t) - base'z_t)."""
    total, beta = 0.0, 0.0
    for following in betas:
        if beta > 0.0:
            log_det += sweep(beta, model, w)
        base = 0.0
        for k in w.members:
            base += w.base[k]
        total += (following - beta) * (log_density(log_det, c, w) - base)
        beta = following
    return total
