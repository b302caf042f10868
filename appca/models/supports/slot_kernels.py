"""The support of one row in adaptive factor analysis: O(K) to score a slot, O(L K) to change one.

The support S of a row is the set of the L factors it uses, one in each of L slots. Its density
with the scores x_S integrated out (docs/mathematics.md 3.1) is

    log p(y | S) = const + f(S),    f(S) = -1/2 log|Lam / prior| + 1/2 c_S' inv(Lam) c_S,     (1)
    Lam = prior I + A_SS,    A = W'W / sigma2,    c = W'(y - mu) / sigma2,    prior = 1 / tau2,

where Lam is the posterior precision of x_S. A row carries the posterior of x_S,

    cov = inv(Lam) (L, L),    mean = cov c_S (L,),                                            (2)

and for each of the K - L candidates k, the factors outside S,

    coef_k  = cov A_Sk                      (L,) the regression of factor k on the support,
    schur_k = prior + A_kk - A_kS coef_k    the Schur complement of Lam in its extension by k,  (3)
    resid_k = c_k - A_kS mean               what the support leaves of c_k.

Adding k multiplies |Lam| by schur_k, hence the log-density increment

    f(S + k) - f(S) = 1/2 resid_k^2 / schur_k - 1/2 log(schur_k / prior).                     (4)

*Insertion* of candidate i, with v = coef_i, s = schur_i, t = resid_i and, for the others,
r_k = A_ik - A_iS coef_k: a rank-one update and a border (inverse of a partitioned matrix),

    cov <- [cov + v v'/s, -v/s; -v'/s, 1/s],    mean <- [mean - v t/s; t/s],                  (5)
    coef_k <- [coef_k - v r_k/s; r_k/s],    schur_k <- schur_k - r_k^2/s,
    resid_k <- resid_k - t r_k/s.                                                             (6)

*Removal* of slot l, with u = cov_.l, m = cov_ll, q = mean_l: a rank-one downdate,

    cov <- cov - u u'/m,    mean <- mean - u q/m,                                             (7)
    coef_k <- coef_k - u coef_lk/m,    schur_k <- schur_k + coef_lk^2/m,
    resid_k <- resid_k + coef_lk q/m,                                                         (8)

all without entry l; the factor that leaves is a candidate with coef = -u/m, schur = 1/m,
resid = q/m. By the last two lines a slot is scored as if it were empty without emptying it.

coef and cov lie in one table whose row l is (coef_l., cov_l.), K numbers however many slots are
filled: where L' are, the first K - L' columns are candidates' and cov stands from the right, slot m
in column K - 1 - m. cov is symmetric and is kept for m >= l alone, so that row l has K - l columns.
With y = (r, -v), an insertion takes (v/s) y' from the rows there are and adds the row r/s. An
*exchange* is a removal and an insertion in one pass: with x row l before and y of what is left,

    table <- table - (u/m) x' - (v/s) y',    v_l = -1,                                        (9)

where the factor that leaves takes the candidate's column, filled beforehand so that (8) gives what
it is to be as a candidate: coef 0 but 1 in row l, schur and resid 0.

Examples
--------
Two factors, A = [3 2; 2 3], c = (4, 6), prior = 1. With S = {0}, Lam = (4):

    cov = (1/4),  mean = (1);  for factor 1  coef = 1/2,  schur = 1 + 3 - 2/2 = 3,  resid = 6 - 2.

Inserting factor 1 by (5), v = 1/2, s = 3, t = 4:

    cov = [1/4 + 1/12, -1/6; -1/6, 1/3] = [1/3 -1/6; -1/6 1/3],    mean = (1 - 2/3, 4/3),

the inverse of Lam = [4 2; 2 4] and its product with c; f rises by 8/3 - 1/2 log 3. Removing slot 0
by (7), u = (1/3, -1/6), m = q = 1/3:

    cov_11 = 1/3 - 1/12 = 1/4,  mean_1 = 4/3 + 1/6 = 3/2;  factor 0:  coef = 1/2,  schur = 3,
    resid = 1,

which is the row with S = {1}. `slot_search_kernels` searches and samples with these moves.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra import aligned
from appca.models.algebra.compiled import bare_kernel
from appca.models.algebra.exponential_kernels import LANES, logarithms
from appca.models.supports.row_supports import CollapsedModel

LINE = 8  # numbers in a cache line


class RowState(NamedTuple):
    """Working arrays of the row in hand; one set for each thread, used for one row after another.

    Allocated outside the loop over rows: allocating inside threads is what crashed numba 0.68.
    """

    members: Any  # (L,) int64, the factor in each slot
    candidates: Any  # (K,) int64, the factors in no slot, in the first places
    table: Any  # (L, K or a few more): coef and half of cov beside each other, see above
    mean: Any  # (L,) posterior mean of the scores, equation (2)
    schur: Any  # (K,) for each candidate
    resid: Any  # (K,) for each candidate
    scratch: "Scratch"
    order: Any  # (L,) int64, slots in the order of a sweep
    kept: Any  # (L,) int64, a support to come back to
    base: Any  # (K,) log odds of the base distribution that tempered draws mix with
    stream: Any  # (1,) uint64, state of the random numbers


class Scratch(NamedTuple):
    """What a move needs room for."""

    column: Any  # (L,) A_iS of equation (6)
    leaving: Any  # (K,) x of equation (9)
    entering: Any  # (K,) y of equation (9)
    out: Any  # (L,) u/m
    into: Any  # (L,) v/s, or v
    increment: Any  # (P,) log-density increments; after a draw their weights; P >= K
    fit: Any  # (P,) resid^2 / schur, then the increments, which a draw leaves as they are
    power: Any  # (P,), see `exponentials`
    increment_bits: Any  # (P,) int64, the same memory as `increment`
    power_bits: Any  # (P,) int64, the same memory as `power`


def row_state(n_factors: int, n_active: int) -> RowState:
    """Allocate the working arrays of one thread."""
    K, L = n_factors, n_active
    return RowState(
        np.zeros(L, np.int64),
        np.zeros(K, np.int64),
        lines(L, K),
        np.zeros(L),
        np.zeros(K),
        np.zeros(K),
        _scratch(K, L),
        np.zeros(L, np.int64),
        np.zeros(L, np.int64),
        np.zeros(K),
        np.zeros(1, np.uint64),
    )


def lines(*shape: int) -> Any:
    """Allocate zeros, at least as many as asked along the last axis, which begins a cache line.

    An exchange in a table that straddles lines takes 1.5 microseconds instead of 1.1.
    """
    *rest, K = shape
    return aligned.zeros((*rest, (K + LINE - 1) // LINE * LINE))


def _scratch(K: int, L: int) -> Scratch:
    P = (K + LANES - 1) // LANES * LANES
    increment, power = np.zeros(P), np.zeros(P)
    return Scratch(
        np.zeros(L),
        lines(K),
        lines(K),
        np.zeros(L),
        np.zeros(L),
        increment,
        np.zeros(P),
        power,
        increment.view(np.int64),
        power.view(np.int64),
    )


@bare_kernel
def cross_products(slots: int, J: int, row_of_A: Any, w: RowState) -> None:
    """Write r_j = A_kj - A_kS coef_j for J candidates into y, with `own` = A_k. (K,).

    Four slots at a time: half of what the loop does would else be to read and write r. With
    A_kS = `column`, of the first slots.
    """
    table, y, a = w.table, w.scratch.entering, w.scratch.column
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
    """Put candidate i into the first empty slot, (5) and (6); give log schur_i.

    The last candidate takes the place of the one that leaves.
    """
    table, y, K = w.table, w.scratch.entering, len(w.candidates)
    J, k, s, t = K - slot, w.candidates[i], w.schur[i], w.resid[i]
    row_of_A = A[k]
    for b in range(slot):
        w.scratch.column[b] = row_of_A[w.members[b]]
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
def take_out(slot: int, i: int, w: RowState) -> tuple[float, float, float]:
    """Set x, u/m, v/s and y but r of equation (9) for an exchange with candidate i, and its column.

    Gives m, s and t: as of the row without the slot.
    """
    table, L, K = w.table, len(w.members), len(w.candidates)
    x, y, out, into = w.scratch.leaving, w.scratch.entering, w.scratch.out, w.scratch.into
    last = K - 1 - slot
    for j in range(last + 1):
        x[j] = table[slot, j]
    for b in range(slot):
        x[K - 1 - b] = table[b, last]
    m, a = x[last], x[i]
    s, t = w.schur[i] + a * a / m, w.resid[i] + a * w.mean[slot] / m
    per_m, per_s = 1.0 / m, 1.0 / s
    for b in range(L):
        out[b] = x[K - 1 - b] * per_m
        v = table[b, i] - out[b] * a
        into[b], y[K - 1 - b] = v * per_s, -v
        table[b, i] = 0.0
    out[slot], into[slot], y[last] = 1.0, -per_s, 1.0
    table[slot, i] = x[i] = 1.0
    w.schur[i] = w.resid[i] = 0.0
    return m, s, t


@bare_kernel
def exchange(slot: int, i: int, A: Any, w: RowState) -> float:
    """Give a slot to candidate i, equation (9); give the change of log|Lam|.

    The factor that leaves takes the candidate's place.
    """
    L, K, k, d = len(w.members), len(w.candidates), w.candidates[i], 0.0
    J, a, table = K - L, w.scratch.column, w.table
    m, s, t = take_out(slot, i, w)
    row_of_A = A[k]
    for b in range(L):
        a[b] = row_of_A[w.members[b]]
    a[slot] = 0.0
    for b in range(L):
        d += a[b] * w.scratch.out[b]
    w.candidates[i], w.members[slot] = w.members[slot], k
    cross_products(L, J, row_of_A, w)
    x, y, q, schur, resid = w.scratch.leaving, w.scratch.entering, w.mean[slot], w.schur, w.resid
    per_m, per_s, of_m, of_s = 1.0 / m, 1.0 / s, q / m, t / s
    for j in range(J):
        y[j] += d * x[j]  # coef without the slot is coef - (u/m) x
        schur[j] += per_m * x[j] * x[j] - per_s * y[j] * y[j]
        resid[j] += of_m * x[j] - of_s * y[j]
    for b in range(L):
        f, g = w.scratch.out[b], w.scratch.into[b]
        for j in range(K - b):
            table[b, j] -= f * x[j] + g * y[j]
        w.mean[b] -= f * q + g * t
    return float(np.log(m * s))


@bare_kernel
def increment(resid: float, schur: float, prior: float) -> float:
    """Give f(S + k) - f(S) = 1/2 resid^2 / schur - 1/2 log(schur / prior), equation (4)."""
    return float(0.5 * (resid * resid / schur - np.log(schur / prior)))


@bare_kernel
def score_additions(J: int, prior: float, w: RowState) -> None:
    """Write the log-density increment of each of J candidates, equation (4)."""
    for i in range(J):
        s = max(w.schur[i], prior)  # what it is at least, before rounding
        w.scratch.increment[i] = increment(w.resid[i], s, prior)


@bare_kernel
def score_replacements(slot: int, J: int, prior: float, w: RowState) -> None:
    """Write the increments of J candidates, and as number J of its factor, for a slot as if empty.

    By (8): schur_k + coef_lk^2/m and resid_k + coef_lk q/m; 1/m and q/m for the factor in it.
    """
    row, K, increment, fit = w.table[slot], len(w.candidates), w.scratch.increment, w.scratch.fit
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
        logarithms(increment[part], w.scratch.increment_bits[part], w.scratch.power[part])
    for i in range(J + 1):
        increment[i] = fit[i] = 0.5 * (fit[i] - increment[i])


@bare_kernel
def best_of(n: int, w: RowState) -> int:
    """Give the largest of n increments; ties go to the last, the present factor if there is one."""
    top, increment = n - 1, w.scratch.increment
    for i in range(n - 1):
        if increment[i] > increment[top]:
            top = i
    return top


@bare_kernel
def build(members: Any, model: CollapsedModel, c: Any, w: RowState) -> float:
    """Fill the slots with given members, greedily if members[0] < 0; give log|Lam / prior|."""
    K, log_det = len(c), 0.0
    for k in range(K):  # the empty support
        w.candidates[k] = k
        w.schur[k] = model.prior + model.A[k, k]
        w.resid[k] = c[k]
    for slot in range(len(w.members)):
        J = K - slot
        if members[0] < 0:
            score_additions(J, model.prior, w)
            i = best_of(J, w)
        else:
            i = 0
            while w.candidates[i] != members[slot]:
                i += 1
        log_det += insert(slot, i, model.A, w) - np.log(model.prior)
    return log_det


@bare_kernel
def log_density(log_det: float, c: Any, w: RowState) -> float:
    """Give f(S) = 1/2 c_S' mean - 1/2 log|Lam / prior|, equation (1)."""
    total = -log_det
    for slot in range(len(w.members)):
        total += c[w.members[slot]] * w.mean[slot]
    return 0.5 * total
