"""Compiled moves, search and annealed paths of supports in adaptive factor analysis.

The support S of a row is the set of the L factors it uses, one in each of L slots. The density of a
row given S, with the scores x_S integrated out (docs/mathematics.md 3.1), is

    log p(y | S) = const + f(S),    f(S) = -1/2 log|Lam / prior| + 1/2 c_S' inv(Lam) c_S,     (1)
    Lam = prior I + A_SS,    A = W'W / sigma2,    c = W'(y - mu) / sigma2,    prior = 1 / tau2.

Stored for a row are the posterior of x_S and, for each of the K - L candidates k outside S, the
regression of k on S, the Schur complement of Lam in its extension by k, and the residual of c_k,

    cov = inv(Lam) (L, L),    mean = cov c_S (L,),                                            (2)
    coef_k = cov A_Sk (L,),  schur_k = prior + A_kk - A_kS coef_k,  resid_k = c_k - A_kS mean,  (3)

Adding k multiplies |Lam| by schur_k, hence the log-density increment

    f(S + k) - f(S) = 1/2 resid_k^2 / schur_k - 1/2 log(schur_k / prior).                     (4)

*Insertion* of candidate i, with v = coef_i, s = schur_i, t = resid_i and, for the others,
r_k = A_ik - A_iS coef_k:

    cov <- [cov + v v'/s, -v/s; -v'/s, 1/s],    mean <- [mean - v t/s; t/s],                  (5)
    coef_k <- [coef_k - v r_k/s; r_k/s],    schur_k <- schur_k - r_k^2/s,
    resid_k <- resid_k - t r_k/s.                                                             (6)

*Removal* of slot l, with u = cov_.l, m = cov_ll, q = mean_l:

    cov <- cov - u u'/m,    mean <- mean - u q/m,                                             (7)
    coef_k <- coef_k - u coef_lk/m,    schur_k <- schur_k + coef_lk^2/m,
    resid_k <- resid_k + coef_lk q/m,                                                         (8)

all without entry l; the removed factor becomes a candidate with coef = -u/m, schur = 1/m,
resid = q/m. Thus a slot can be scored as if it were empty, without removing its factor.

coef and cov are in one table whose row l is (coef_l., cov_l.): if L' slots are filled, the first
K - L' columns are for candidates, and cov of slot m >= l is in column K - 1 - m. With y = (r, -v),
an insertion subtracts (v/s) y' from the rows and adds the row r/s. An *exchange* is a removal and
an insertion in one pass: if x is the old row l,

    table <- table - (u/m) x' - (v/s) y',    v_l = -1,                                        (9)

where the removed factor takes the candidate's column, filled so that (8) gives its values.

Annealed paths of a row advance together, from independent factors to the posterior (sequential
Monte Carlo, systematic resampling). Each row has its own random stream (`uniform`).
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models import numerics
from appca.models.numeric_kernels import LANES, bare_kernel, exponentials, logarithms, reassociated

LINE = 8  # numbers in a cache line


class RowState(NamedTuple):
    """Working arrays of a thread, allocated outside, because numba 0.68 crashed inside threads."""

    members: Any  # (L,) int64, the factor in each slot
    candidates: Any  # (K,) int64, the factors in no slot come first
    table: Any  # (L, K or a few more): coef and half of cov, see above
    mean: Any  # (L,) posterior mean of the scores, equation (2)
    schur: Any  # (K,) for each candidate
    resid: Any  # (K,) for each candidate
    column: Any  # (L,) A_iS of equation (6)
    leaving: Any  # (K,) x of equation (9)
    entering: Any  # (K,) y of equation (9)
    out: Any  # (L,) u/m
    into: Any  # (L,) v/s, or v
    increment: Any  # (P,) log-density increments, after a draw weights; P >= K
    fit: Any  # (P,) resid^2 / schur, then the increments, unchanged by a draw
    power: Any  # (P,), see `exponentials`
    increment_bits: Any  # (P,) int64, the same memory as `increment`
    power_bits: Any  # (P,) int64, the same memory as `power`
    order: Any  # (L,) int64, slots in the order of a sweep
    kept: Any  # (L,) int64, support to restore
    base: Any  # (K,) log odds of the base distribution of tempered draws
    stream: Any  # (1,) uint64, state of the random numbers


def row_state(n_factors: int, n_active: int) -> RowState:
    """Allocate the working arrays of one thread."""
    K, L = n_factors, n_active
    support = [array[0] for array in walkers(1, K, L)[:6]]
    increment, fit, power = np.zeros((3, (K + LANES - 1) // LANES * LANES))
    moves = np.zeros(L), lines(K), lines(K), np.zeros(L), np.zeros(L)
    draws = increment, fit, power, increment.view(np.int64), power.view(np.int64)
    order, kept = np.zeros((2, L), np.int64)
    rest = order, kept, np.zeros(K), np.zeros(1, np.uint64)
    arrays: Any = (*support, *moves, *draws, *rest)
    return RowState(*arrays)


def lines(*shape: int) -> Any:
    """Allocate zeros, padded along the last axis so that each row starts a cache line."""
    *rest, K = shape
    return numerics.zeros((*rest, (K + LINE - 1) // LINE * LINE))


@bare_kernel
def cross_products(slots: int, J: int, row_of_A: Any, w: RowState) -> None:
    """Write r_j = A_kj - A_kS coef_j for J candidates into y, four slots at a time."""
    table, y, a = w.table, w.entering, w.column
    for j in range(J):
        y[j] = row_of_A[w.candidates[j]]
    whole = slots - slots % 4
    for b in range(0, whole, 4):
        a0, a1, a2, a3 = a[b], a[b + 1], a[b + 2], a[b + 3]
        for j in range(J):
            total = a0 * table[b, j] + a1 * table[b + 1, j]
            y[j] -= total + a2 * table[b + 2, j] + a3 * table[b + 3, j]
    for b in range(whole, slots):
        for j in range(J):
            y[j] -= a[b] * table[b, j]


@bare_kernel
def insert(slot: int, i: int, A: Any, w: RowState) -> float:
    """Insert candidate i into the first empty slot, (5) and (6); return log schur_i."""
    table, y, K = w.table, w.entering, len(w.candidates)
    J, k, s, t = K - slot, w.candidates[i], w.schur[i], w.resid[i]
    row_of_A = A[k]
    for b in range(slot):
        w.column[b] = row_of_A[w.members[b]]
    cross_products(slot, J, row_of_A, w)
    last = J - 1
    for b in range(slot):
        y[K - 1 - b] = -table[b, i]
    for b in range(slot):
        f = table[b, i] / s
        for j in range(K - b):
            table[b, j] -= f * y[j]
        table[b, i], table[b, last] = table[b, last], -f
        w.mean[b] -= f * t
    w.mean[slot] = t / s
    for j in range(J):
        table[slot, j] = y[j] / s
        w.schur[j] -= y[j] * table[slot, j]
        w.resid[j] -= t * table[slot, j]
    w.members[slot], w.candidates[i] = k, w.candidates[last]
    table[slot, i], table[slot, last] = table[slot, last], 1.0 / s
    w.schur[i], w.resid[i] = w.schur[last], w.resid[last]
    return float(np.log(s))


@bare_kernel
def exchange(slot: int, i: int, A: Any, w: RowState) -> float:
    """Assign a slot to candidate i, equation (9); return the change of log|Lam|."""
    L, K, k, d = len(w.members), len(w.candidates), w.candidates[i], 0.0
    J, a, last, table = K - L, w.column, K - 1 - slot, w.table
    x, y, out, into, schur, resid = w.leaving, w.entering, w.out, w.into, w.schur, w.resid
    for j in range(last + 1):
        x[j] = table[slot, j]
    for b in range(slot):
        x[K - 1 - b] = table[b, last]
    m, q, shared = x[last], w.mean[slot], x[i]
    s, t = schur[i] + shared * shared / m, resid[i] + shared * q / m  # without the slot
    per_m, per_s, of_m, of_s = 1.0 / m, 1.0 / s, q / m, t / s
    row_of_A = A[k]
    for b in range(L):
        out[b] = x[K - 1 - b] * per_m
        v = table[b, i] - out[b] * shared
        into[b], y[K - 1 - b] = v * per_s, -v
        table[b, i], a[b] = 0.0, row_of_A[w.members[b]]
    out[slot], into[slot], y[last], a[slot] = 1.0, -per_s, 1.0, 0.0
    table[slot, i] = x[i] = 1.0
    schur[i] = resid[i] = 0.0
    for b in range(L):
        d += a[b] * out[b]
    w.candidates[i], w.members[slot] = w.members[slot], k
    cross_products(L, J, row_of_A, w)
    for j in range(J):
        y[j] += d * x[j]  # coef without the slot is coef - (u/m) x
        schur[j] += per_m * x[j] * x[j] - per_s * y[j] * y[j]
        resid[j] += of_m * x[j] - of_s * y[j]
    for b in range(L):
        f, g = out[b], into[b]
        for j in range(K - b):
            table[b, j] -= f * x[j] + g * y[j]
        w.mean[b] -= f * q + g * t
    return float(np.log(m * s))


@bare_kernel
def increment(resid: float, schur: float, prior: float) -> float:
    """Return f(S + k) - f(S) = 1/2 resid^2 / schur - 1/2 log(schur / prior), equation (4)."""
    return float(0.5 * (resid * resid / schur - np.log(schur / prior)))


@bare_kernel
def score_replacements(slot: int, J: int, prior: float, w: RowState) -> None:
    """Write increments for a slot as if it were empty: of J candidates, then of its factor."""
    row, K, increment, fit = w.table[slot], len(w.candidates), w.increment, w.fit
    m, per_prior = row[K - 1 - slot], 1.0 / prior
    schur, resid = 1.0 / m, w.mean[slot] / m
    for i in range(J):
        a = row[i]
        s = max(w.schur[i] + a * a * schur, prior)
        t = w.resid[i] + a * resid
        increment[i], fit[i] = s * per_prior, t * t / s
    increment[J], fit[J] = schur / prior, resid * resid / schur
    for start in range(0, J + 1, LANES):
        part = slice(start, start + LANES)
        logarithms(increment[part], w.increment_bits[part], w.power[part])
    for i in range(J + 1):
        increment[i] = fit[i] = 0.5 * (fit[i] - increment[i])


@bare_kernel
def build(members: Any, model: Any, c: Any, w: RowState) -> float:
    """Fill the slots with given members, greedily if members[0] < 0; return log|Lam / prior|."""
    K, prior, log_det = len(c), model.prior, 0.0
    for k in range(K):  # the empty support
        w.candidates[k] = k
        w.schur[k] = prior + model.A[k, k]
        w.resid[k] = c[k]
    for slot in range(len(w.members)):
        i = K - slot - 1
        if members[0] < 0:
            best = increment(w.resid[i], max(w.schur[i], prior), prior)
            for j in range(i):  # schur is at least `prior`, except for rounding
                gain = increment(w.resid[j], max(w.schur[j], prior), prior)
                if gain > best:
                    i, best = j, gain
        else:
            i = 0
            while w.candidates[i] != members[slot]:
                i += 1
        log_det += insert(slot, i, model.A, w) - np.log(prior)
    return log_det


@bare_kernel
def log_density(log_det: float, c: Any, w: RowState) -> float:
    """Return f(S) = 1/2 c_S' mean - 1/2 log|Lam / prior|, equation (1)."""
    total = -log_det
    for slot in range(len(w.members)):
        total += c[w.members[slot]] * w.mean[slot]
    return 0.5 * total


@bare_kernel
def uniform(stream: Any) -> Any:
    """Return the next number in [0, 1) of splitmix64 (Steele, Lea and Flood 2014), 53 bits."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0  # 2^53


@bare_kernel
def slot_mode(slot: int, J: int, prior: float, w: RowState) -> int:
    """Return the mode of a slot's full conditional: a candidate, or J for the slot's own factor.

    schur >= prior bounds an increment by 1/2 t^2 / s, which avoids most logarithms. Equation (4) is
    inlined, because calls of `increment` took a tenth of the time.
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
    """Return the largest of n numbers by four independent chains of comparisons."""
    a = b = c = d = x[0]
    for i in range(0, n - n % 4, 4):
        a, b, c, d = max(a, x[i]), max(b, x[i + 1]), max(c, x[i + 2]), max(d, x[i + 3])
    for i in range(n - n % 4, n):
        a = max(a, x[i])
    return float(max(a, b, c, d))


@reassociated
def total_of(x: Any, n: int) -> float:
    """Sum n numbers, in any order."""
    total = 0.0
    for i in range(n):
        total += x[i]
    return total


@bare_kernel
def draw_slot(slot: int, beta: float, prior: float, w: RowState) -> int:
    """Draw from a slot's tempered full conditional: a candidate, or K - L for its own factor.

    Weights are exp(beta increment + (1 - beta) base), written to `increment`.
    """
    n, increment = 1 + len(w.candidates) - len(w.members), w.increment
    power, bits = w.power, w.power_bits
    score_replacements(slot, n - 1, prior, w)
    w.candidates[n - 1] = w.members[slot]
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
def shuffle(w: RowState) -> None:
    """Shuffle the slots uniformly (Fisher and Yates)."""
    n = len(w.order)
    for i in range(n):
        w.order[i] = i
    for i in range(n - 1, 0, -1):
        j = int(uniform(w.stream) * (i + 1))
        w.order[i], w.order[j] = w.order[j], w.order[i]


@bare_kernel
def sweep(beta: float, model: Any, w: RowState) -> float:
    """Redraw every slot once, in a random order; return the change of log|Lam|."""
    change, J = 0.0, len(w.candidates) - len(w.members)
    shuffle(w)
    for slot in w.order:
        modes = beta == np.inf
        i = slot_mode(slot, J, model.prior, w) if modes else draw_slot(slot, beta, model.prior, w)
        if i < J:
            change += exchange(slot, i, model.A, w)
    return change


@bare_kernel
def search(counted: Any, betas: Any, keep: bool, model: Any, out: Any, w: RowState) -> None:
    """Sweep every row's slots once for each beta; see `supports.search`."""
    (rows, counts), L, K = counted, len(w.members), len(w.candidates)
    for i in range(len(counts)):
        c = rows.c[i]
        w.stream[0] = rows.seeds[i]
        log_det = build(rows.members[i], model, c, w)
        first_log_det, first = log_det, log_density(log_det, c, w)
        for a in range(L):
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
        for k in range(K):
            out.H[i, k] = 0.0
        for a in range(L):  # E[x z] = mean, E[(x z)(x z)'] = cov + mean mean'
            k = w.members[a]
            rows.members[i, a], out.H[i, k] = k, w.mean[a]
            for b in range(L):
                cov = w.table[min(a, b), K - 1 - max(a, b)]
                out.second[k, w.members[b]] += counts[i] * (cov + w.mean[a] * w.mean[b])


LEAST_EVEN = 0.5  # paths are resampled below this effective share


class Walkers(NamedTuple):
    """The current supports of the n paths of a row."""

    members: Any  # (n, L); this and the next five are as in `RowState`
    candidates: Any  # (n, K)
    table: Any  # (n, L, K)
    mean: Any  # (n, L)
    schur: Any  # (n, K)
    resid: Any  # (n, K)
    lead: Any  # (n,) f(S) - base'z, which updates log weights
    log_weight: Any  # (n,)
    family: Any  # (n,) int64, index of the first ancestor
    weight: Any  # (n,) scratch of `importance`
    count: Any  # (n,) int64, scratch of `resample`


def walkers(n: int, K: int, L: int) -> Walkers:
    """Allocate the supports of n paths."""
    members, candidates = np.zeros((n, L), np.int64), np.zeros((n, K), np.int64)
    posterior = lines(n, L, K), np.zeros((n, L)), np.zeros((n, K)), np.zeros((n, K))
    family, count = np.zeros((2, n), np.int64)
    lead, log_weight, weight = np.zeros((3, n))
    return Walkers(members, candidates, *posterior, lead, log_weight, family, weight, count)


@bare_kernel
def one_of(of: Walkers, p: int, w: RowState) -> RowState:
    """Return walker p as a state that changes in place, with the scratch space of w."""
    moved = of.members[p], of.candidates[p], of.table[p], of.mean[p], of.schur[p], of.resid[p]
    moves = w.column, w.leaving, w.entering, w.out, w.into
    draws = w.increment, w.fit, w.power, w.increment_bits, w.power_bits
    return RowState(*moved, *moves, *draws, w.order, w.kept, w.base, w.stream)


@bare_kernel
def set_base(r: Any, P: Any, w: RowState) -> float:
    """Set base = logit r and P[k, l] = p(z_1 + ... + z_k = l) of independent z_k ~ Bernoulli(r_k).

    Returns the log of the sum of exp(base'z) over the supports.
    """
    for j in range(P.shape[1]):
        P[0, j] = 1.0 if j == 0 else 0.0
    for k in range(len(r)):
        for j in range(P.shape[1]):
            P[k + 1, j] = (1.0 - r[k]) * P[k, j] + (r[k] * P[k, j - 1] if j > 0 else 0.0)
    log_norm = np.log(P[len(r), len(w.kept)])
    for k in range(len(r)):
        log_norm -= np.log1p(-r[k])
        w.base[k] = np.log(r[k]) - np.log1p(-r[k])
    return float(log_norm)


@bare_kernel
def draw_base(r: Any, P: Any, w: RowState) -> None:
    """Draw `kept`: p(z_k = 1 | z_1 + ... + z_k = l) = r_k P[k - 1, l - 1] / P[k, l]."""
    left = len(w.kept)
    for k in range(len(r) - 1, -1, -1):
        if left > 0 and uniform(w.stream) * P[k + 1, left] < r[k] * P[k, left - 1]:
            left -= 1
            w.kept[left] = k


@bare_kernel
def climb(p: int, first: float, last: float, model: Any, of: Walkers, w: RowState) -> None:
    """Raise beta, multiply the weight by exp(rise lead), and sweep a walker's slots once."""
    J, L, lead, grown = len(w.candidates) - len(w.members), len(w.members), of.lead[p], 0.0
    beta, gain = first, w.fit
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
def weigh(log_weight: Any, weight: Any) -> tuple[float, float]:
    """Write normalized weights (n,); return their effective number and log mean."""
    high, total, squares = largest(log_weight, len(log_weight)), 0.0, 0.0
    for p in range(len(weight)):
        weight[p] = np.exp(log_weight[p] - high)
        total += weight[p]
    for p in range(len(weight)):
        weight[p] /= total
        squares += weight[p] * weight[p]
    return 1.0 / squares, np.log(total / len(weight)) + high


@bare_kernel
def resample(of: Walkers, log_mean: float, u: float) -> None:
    """Resample walkers: n weight_p copies of p on average, all with the mean weight.

    Loops copy the numbers, because they compile ten times as fast.
    """
    weight, count = of.weight, of.count
    n, upto, p = len(weight), 0.0, 0
    for j in range(n):
        count[j] = 0
    for j in range(n):
        while p < n - 1 and upto + weight[p] < (u + j) / n:
            upto += weight[p]
            p += 1
        count[p] += 1
    giver = 0
    for p in range(n):
        of.log_weight[p] = log_mean
        if count[p] == 0:
            while count[giver] < 2:
                giver += 1
            count[giver] -= 1
            for a in range(of.members.shape[1]):
                of.members[p, a], of.mean[p, a] = of.members[giver, a], of.mean[giver, a]
                for k in range(of.table.shape[2]):
                    of.table[p, a, k] = of.table[giver, a, k]
            for k in range(of.candidates.shape[1]):
                of.candidates[p, k] = of.candidates[giver, k]
                of.schur[p, k], of.resid[p, k] = of.schur[giver, k], of.resid[giver, k]
            of.lead[p], of.family[p] = of.lead[giver], of.family[giver]


@bare_kernel
def add_inclusion(model: Any, w: RowState, r: Any) -> None:
    """Make a Gibbs sweep, and add four estimates of each factor's inclusion to r (K,).

    These are the supports before and after the sweep, and twice the sum of conditional
    probabilities, whose mean varies a third as much. An estimate may exceed 1.
    """
    J, drawn = len(w.candidates) - len(w.members), w.increment
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
def importance(rows: Any, r: Any, schedule: Any, model: Any, out: Any, room: Any) -> None:
    """Estimate sum_S exp f(S) of every row along exp(beta f(S) + (1 - beta) base'z)."""
    (w, of, P), betas = room, schedule.betas
    n, K = len(of.weight), len(w.candidates)
    for i in range(len(r)):
        c = rows.c[i]
        w.stream[0] = rows.seeds[i]
        log_norm = set_base(r[i], P, w)
        for p in range(n):
            path = one_of(of, p, w)
            draw_base(r[i], P, w)
            of.lead[p] = log_density(build(w.kept, model, c, path), c, path)
            for k in path.members:
                of.lead[p] -= w.base[k]
            of.log_weight[p], of.family[p] = log_norm + betas[0] * of.lead[p], p
        for t in range(1, len(betas)):
            for p in range(n):
                climb(p, betas[t - 1], betas[t], model, of, one_of(of, p, w))
            worth, log_mean = weigh(of.log_weight, of.weight)
            if t < len(betas) - 1 and worth < LEAST_EVEN * n:
                resample(of, log_mean, uniform(w.stream))
        for p in range(n):
            out.log_weights[i, p], out.families[i, p] = of.log_weight[p], of.family[p]
            path, inclusion = one_of(of, p, w), out.inclusion[i, p]
            for k in range(K):
                inclusion[k] = 0.0
            for _ in range(schedule.after):
                add_inclusion(model, path, inclusion)
            for k in range(K):
                inclusion[k] /= 4.0 * max(schedule.after, 1)
