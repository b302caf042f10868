"""One row's L slots in adaptive factor analysis: O(K) to score a slot, O(L K) to change one.

The collapsed density of a row given its active set S (docs/mathematics.md 3.1), in the scaled
quantities A = W'W / sigma2, c = W'(y - mu) / sigma2 and prior = 1 / tau2, is

    log p(y | S) = const + f(S),   f(S) = -1/2 log|tau2 Lam| + 1/2 c_S' inv(Lam) c_S,
    Lam = prior I + A_SS.

A row carries Mi = inv(Lam) (L, L), q = Mi c_S (L,), and for the K - L factors k outside S the
columns V_.k = Mi A_Sk and the two numbers

    s_k = prior + A_kk - A_kS V_.k   (the Schur complement),     t_k = c_k - A_kS q.

Taking k in besides S gains 1/2 t_k^2 / s_k - 1/2 log(tau2 s_k) nats. With slot l empty, s_k is
larger by V_lk^2 / Mi_ll and t_k by V_lk q_l / Mi_ll, and for the member itself they are 1 / Mi_ll
and q_l / Mi_ll: a slot is scored without undoing anything.

This module is the algebra of one row; `slot_search_kernels` moves about with it.
"""

from typing import Any, NamedTuple

import numpy as np

from appca.models.algebra.compiled import kernel
from appca.models.supports.row_supports import CollapsedModel


class Row(NamedTuple):
    """Working arrays of the row in hand; one set for each thread, used for one row after another.

    Allocated outside the loop over rows: allocating inside threads is what crashed numba 0.68.
    """

    members: Any  # (L,) int64, the factor in each slot
    outside: Any  # (K,) int64, the candidates: factors in no slot, in the first places
    Mi: Any  # (L, L)
    V: Any  # (L, K), a column for each candidate
    q: Any  # (L,)
    s: Any  # (K,) for each candidate
    t: Any  # (K,) for each candidate
    r: Any  # (K,) scratch
    u: Any  # (L,) scratch
    gain: Any  # (K,) scratch: gains of the candidates, then their cumulated weights
    order: Any  # (L,) int64, slots in the order of a sweep
    kept: Any  # (L,) int64, members to come back to
    bias: Any  # (K,) logits that a tempered draw leans on
    state: Any  # (1,) uint64, of the random stream


@kernel
def row(n_factors: int, n_active: int) -> Row:
    """Allocate the working arrays of one thread."""
    K, L = n_factors, n_active
    return Row(
        np.zeros(L, np.int64),
        np.zeros(K, np.int64),
        np.zeros((L, L)),
        np.zeros((L, K)),
        np.zeros(L),
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
def meet(slot: int, i: int, count: int, J: int, A: Any, w: Row) -> None:
    """For candidate i of J, set u = V_.k and r = A_k. - A_kS V, what S leaves of its row of A."""
    V, r = w.V, w.r
    k = w.outside[i]
    for j in range(J):
        r[j] = A[k, w.outside[j]]
    for m in range(count):
        w.u[m] = V[m, i]
        if m != slot:
            a = A[k, w.members[m]]
            for j in range(J):
                r[j] -= a * V[m, j]


@kernel
def insert(slot: int, i: int, count: int, J: int, A: Any, w: Row) -> float:
    """Put candidate i of J into an empty slot beside the filled ones of `count`; give log s.

    The new inverse is Mi + u u'/s bordered by -u/s and 1/s; the old rows of V fall by u r/s and
    the new one is r/s.
    """
    V, Mi, r, u = w.V, w.Mi, w.r, w.u
    meet(slot, i, count, J, A, w)
    k, s, t = w.outside[i], w.s[i], w.t[i]
    u[slot] = -1.0  # the border is the rank-one update with this entry
    for m in range(count):
        if m != slot:
            f = u[m] / s
            w.q[m] -= f * t
            Mi[m, slot] = 0.0
            for j in range(count):
                Mi[m, j] += f * u[j]
            Mi[m, slot] = Mi[slot, m] = -f
            for j in range(J):
                V[m, j] -= f * r[j]
            V[m, i] = V[m, J - 1]  # the last candidate takes the place of the one that leaves
    Mi[slot, slot], w.q[slot], w.members[slot] = 1.0 / s, t / s, k
    for j in range(J):
        V[slot, j] = r[j] / s
        w.s[j] -= r[j] * V[slot, j]
        w.t[j] -= t * V[slot, j]
    V[slot, i], w.s[i], w.t[i] = V[slot, J - 1], w.s[J - 1], w.t[J - 1]
    w.outside[i] = w.outside[J - 1]
    return float(np.log(s))


@kernel
def remove(slot: int, count: int, J: int, w: Row) -> float:
    """Empty a slot, its member becomes candidate J (from 0); give the change of log|Lam|."""
    V, Mi, u = w.V, w.Mi, w.u
    m, q = Mi[slot, slot], w.q[slot]
    for j in range(J):
        w.s[j] += V[slot, j] * V[slot, j] / m
        w.t[j] += V[slot, j] * q / m
    for j in range(count):
        u[j] = Mi[slot, j]
    for i in range(count):
        if i != slot:
            f = u[i] / m
            w.q[i] -= f * q
            for j in range(count):
                Mi[i, j] -= f * u[j]
            for j in range(J):
                V[i, j] -= f * V[slot, j]
            V[i, J] = -f
    w.outside[J], w.s[J], w.t[J] = w.members[slot], 1.0 / m, q / m
    return float(np.log(m))


@kernel
def gains(slot: int, J: int, prior: float, w: Row) -> None:
    """Score the J candidates for a slot, and as number J its member, the slot taken as empty.

    gain_k = 1/2 t_k^2 / s_k - 1/2 log(tau2 s_k); a negative slot means none is to be emptied.
    """
    n = J
    if slot < 0:
        for i in range(J):
            w.r[i] = max(w.s[i], prior)  # what it is at least, before rounding
            w.gain[i] = w.t[i] * w.t[i] / w.r[i]
    else:
        m, q = 1.0 / w.Mi[slot, slot], w.q[slot] / w.Mi[slot, slot]
        for i in range(J):
            v = w.V[slot, i]
            w.r[i] = max(w.s[i] + v * v * m, prior)
            w.gain[i] = (w.t[i] + v * q) ** 2 / w.r[i]
        w.r[J], w.gain[J] = m, q * q / m
        n = J + 1
    for i in range(n):
        w.gain[i] = 0.5 * (w.gain[i] - np.log(w.r[i] / prior))


@kernel
def best(n: int, w: Row) -> int:
    """Give the best of n candidates; ties go to the last, the present member if there is one."""
    top = n - 1
    for i in range(n - 1):
        if w.gain[i] > w.gain[top]:
            top = i
    return top


@kernel
def build(given: Any, model: CollapsedModel, c: Any, w: Row) -> float:
    """Fill an empty row with given members, greedily if given[0] < 0; give log|tau2 Lam|."""
    K, log_det = len(c), 0.0
    for k in range(K):
        w.outside[k], w.s[k], w.t[k] = k, model.prior + model.A[k, k], c[k]
    for slot in range(len(w.members)):
        if given[0] < 0:
            gains(-1, K - slot, model.prior, w)
            i = best(K - slot, w)
        else:
            i = 0
            while w.outside[i] != given[slot]:
                i += 1
        log_det += insert(slot, i, slot, K - slot, model.A, w) - np.log(model.prior)
    return log_det


@kernel
def value(log_det: float, c: Any, w: Row) -> float:
    """Give f(S) = 1/2 c_S' q - 1/2 log|tau2 Lam|."""
    total = -log_det
    for slot in range(len(w.members)):
        total += c[w.members[slot]] * w.q[slot]
    return 0.5 * total
