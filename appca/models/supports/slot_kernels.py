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

from appca.models.algebra.compiled import kernel
from appca.models.supports.row_supports import CollapsedModel


class RowState(NamedTuple):
    """Working arrays of the row in hand; one set for each thread, used for one row after another.

    Allocated outside the loop over rows: allocating inside threads is what crashed numba 0.68.
    """

    members: Any  # (L,) int64, the factor in each slot
    candidates: Any  # (K,) int64, the factors in no slot, in the first places
    cov: Any  # (L, L) posterior covariance of the scores, equation (2)
    mean: Any  # (L,) posterior mean of the scores
    coef: Any  # (L, K), a column for each candidate, equation (3)
    schur: Any  # (K,) for each candidate
    resid: Any  # (K,) for each candidate
    cross: Any  # (K,) scratch: r of equation (6)
    column: Any  # (L,) scratch: v of equation (5), u of equation (7)
    increment: Any  # (K,) log-density increments; after a draw their cumulated weights
    order: Any  # (L,) int64, slots in the order of a sweep
    kept: Any  # (L,) int64, a support to come back to
    base: Any  # (K,) log odds of the base distribution that tempered draws mix with
    stream: Any  # (1,) uint64, state of the random numbers


@kernel
def row_state(n_factors: int, n_active: int) -> RowState:
    """Allocate the working arrays of one thread."""
    K, L = n_factors, n_active
    return RowState(
        np.zeros(L, np.int64),
        np.zeros(K, np.int64),
        np.zeros((L, L)),
        np.zeros(L),
        np.zeros((L, K)),
        np.zeros(K),
        np.zeros(K),
        np.zeros(K),
        np.zeros(L),
        np.zeros(K),
        np.zeros(L, np.int64),
        np.zeros(L, np.int64),
        np.zeros(K),
        np.zeros(1, np.uint64),
    )


@kernel
def increment(resid: float, schur: float, prior: float) -> float:
    """Give f(S + k) - f(S) = 1/2 resid^2 / schur - 1/2 log(schur / prior), equation (4)."""
    return float(0.5 * (resid * resid / schur - np.log(schur / prior)))


@kernel
def residual_products(slot: int, i: int, count: int, J: int, A: Any, w: RowState) -> None:
    """For candidate i of J set v = coef_i and r_k = A_ik - A_iS coef_k, without the empty slot."""
    coef, r, k = w.coef, w.cross, w.candidates[i]
    for j in range(J):
        r[j] = A[k, w.candidates[j]]
    for m in range(count):
        w.column[m] = coef[m, i]
        if m != slot:
            a = A[k, w.members[m]]
            for j in range(J):
                r[j] -= a * coef[m, j]


@kernel
def insert(slot: int, i: int, count: int, J: int, A: Any, w: RowState) -> float:
    """Put candidate i of J into the empty one of `count` slots, (5) and (6); give log schur_i.

    The last candidate takes the place of the one that leaves.
    """
    residual_products(slot, i, count, J, A, w)
    cov, mean, coef, schur, resid = w.cov, w.mean, w.coef, w.schur, w.resid
    v, r, last = w.column, w.cross, J - 1
    k, s, t = w.candidates[i], schur[i], resid[i]
    for m in range(count):
        if m != slot:
            f = v[m] / s
            mean[m] -= f * t
            for j in range(count):
                cov[m, j] += f * v[j]
            cov[m, slot] = cov[slot, m] = -f
            for j in range(J):
                coef[m, j] -= f * r[j]
            coef[m, i] = coef[m, last]
    w.members[slot], cov[slot, slot], mean[slot] = k, 1.0 / s, t / s
    for j in range(J):
        coef[slot, j] = r[j] / s
        schur[j] -= r[j] * coef[slot, j]
        resid[j] -= t * coef[slot, j]
    w.candidates[i], coef[slot, i] = w.candidates[last], coef[slot, last]
    schur[i], resid[i] = schur[last], resid[last]
    return float(np.log(s))


@kernel
def remove(slot: int, count: int, J: int, w: RowState) -> float:
    """Empty a slot, (7) and (8); its factor becomes candidate J (from 0). Give log cov_ll."""
    cov, mean, coef, schur, resid = w.cov, w.mean, w.coef, w.schur, w.resid
    u, m, q = w.column, cov[slot, slot], mean[slot]
    for j in range(J):
        schur[j] += coef[slot, j] * coef[slot, j] / m
        resid[j] += coef[slot, j] * q / m
    for j in range(count):
        u[j] = cov[slot, j]
    for i in range(count):
        if i != slot:
            f = u[i] / m
            mean[i] -= f * q
            for j in range(count):
                cov[i, j] -= f * u[j]
            for j in range(J):
                coef[i, j] -= f * coef[slot, j]
            coef[i, J] = -f
    w.candidates[J], schur[J], resid[J] = w.members[slot], 1.0 / m, q / m
    return float(np.log(m))


@kernel
def score_additions(J: int, prior: float, w: RowState) -> None:
    """Write the log-density increment of each of J candidates, equation (4)."""
    for i in range(J):
        s, t = max(w.schur[i], prior), w.resid[i]  # what s is at least, before rounding
        w.increment[i] = 0.5 * (t * t / s - np.log(s / prior))


@kernel
def score_replacements(slot: int, J: int, prior: float, w: RowState) -> None:
    """Write the increments of J candidates, and as number J of its factor, for a slot as if empty.

    By (8): schur_k + coef_lk^2/m and resid_k + coef_lk q/m; 1/m and q/m for the factor in it.
    """
    schur, resid = 1.0 / w.cov[slot, slot], w.mean[slot] / w.cov[slot, slot]
    for i in range(J):
        a = w.coef[slot, i]
        s = max(w.schur[i] + a * a * schur, prior)
        t = w.resid[i] + a * resid
        w.increment[i] = increment(t, s, prior)
    w.increment[J] = increment(resid, schur, prior)


@kernel
def best_of(n: int, w: RowState) -> int:
    """Give the largest of n increments; ties go to the last, the present factor if there is one."""
    top = n - 1
    for i in range(n - 1):
        if w.increment[i] > w.increment[top]:
            top = i
    return top


@kernel
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
        log_det += insert(slot, i, slot, J, model.A, w) - np.log(model.prior)
    return log_det


@kernel
def log_density(log_det: float, c: Any, w: RowState) -> float:
    """Give f(S) = 1/2 c_S' mean - 1/2 log|Lam / prior|, equation (1)."""
    total = -log_det
    for slot in range(len(w.members)):
        total += c[w.members[slot]] * w.mean[slot]
    return 0.5 * total
