"""Scans over the rows of Z for orthonormal columns, x integrated out.

Orthonormal columns do not compete for a row: given W the logit a_nk is all the data say about
z_nk, so that a row is redrawn from its full conditional as one block.
"""

from math import lgamma
from typing import Any

import numpy as np

from appca.models.algebra.compiled import kernel
from appca.models.supports.support_kernels import probability


@kernel
def scan_beta_bernoulli(Z: Any, logits: Any, pseudo: float, U: Any) -> None:
    """Redraw Z (N, K) in place: odds (m + alpha/K) / (N - m) for every column; pseudo = alpha/K."""
    N, K = Z.shape
    counts = Z.sum(axis=0)
    for n in range(N):
        for k in range(K):
            m = counts[k] - Z[n, k]
            Z[n, k] = U[n, k] < probability(np.log(m + pseudo) - np.log(N - m) + logits[n, k])
            counts[k] = m + Z[n, k]


@kernel
def log_add(a: float, b: float) -> float:
    """Give log(e^a + e^b), minus infinity allowed."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else float(high + np.log1p(np.exp(low - high)))


@kernel
def log_elementary_table(a: Any, u: int, table: Any) -> None:
    """Fill table[i, t] = log e_t(exp a_1 .. exp a_i) for i, t <= u."""
    table[: u + 1, : u + 1] = -np.inf
    table[0, 0] = 0.0
    for i in range(1, u + 1):
        table[i, 0] = 0.0
        for t in range(1, i + 1):
            table[i, t] = log_add(table[i - 1, t], a[i - 1] + table[i - 1, t - 1])


@kernel
def draw_size(last: Any, u: int, log_rate: float, uniform: float) -> int:
    """Draw |T| with P(t) proportional to (alpha/N)^t (u - t)! e_t(exp a)."""
    logs = np.empty(u + 1)
    for t in range(u + 1):
        logs[t] = t * log_rate + lgamma(u - t + 1.0) + last[t]
    weights = np.exp(logs - logs.max())
    return pick(weights, uniform)


@kernel
def scan_truncated(Z: Any, logits: Any, log_rate: float, U: Any) -> None:
    """Redraw Z (N, K) in place under the buffet conditioned on at most K columns.

    log_rate = log(alpha / N); U uniform (N, K + 1). Columns that other rows use have prior odds
    m / (N - m); the active ones among the rest, the row's own singletons included, are drawn
    exactly as a set: first its size, then its members by walking the table backwards.
    """
    N, K = Z.shape
    counts = Z.sum(axis=0)
    table = np.empty((K + 1, K + 1))
    free, a = np.empty(K, np.int64), np.empty(K)
    for n in range(N):
        u = 0
        for k in range(K):
            m = counts[k] - Z[n, k]
            if m > 0:
                Z[n, k] = U[n, k] < probability(np.log(m) - np.log(N - m) + logits[n, k])
            else:
                free[u], a[u] = k, logits[n, k]
                u += 1
                Z[n, k] = False
            counts[k] = m + Z[n, k]
        log_elementary_table(a, u, table)
        t = draw_size(table[u], u, log_rate, U[n, K])
        for i in range(u, 0, -1):
            if t > 0:
                log_chance = a[i - 1] + table[i - 1, t - 1] - table[i, t]
                if np.log(U[n, free[i - 1]]) < log_chance:
                    Z[n, free[i - 1]] = True
                    counts[free[i - 1]] = 1
                    t -= 1


@kernel
def scan_swaps(Z: Any, logits: Any, order: Any, U: Any) -> None:
    """Redraw Z in place, one active column at a time; rows keep their number L of them.

    order (N, L) says in which order the members are visited: it must not depend on the state.
    """
    N, K = Z.shape
    L = order.shape[1]
    members, weights = np.empty(L, np.int64), np.empty(K)
    for n in range(N):
        n_members = 0
        for k in range(K):
            if Z[n, k]:
                members[n_members] = k
                n_members += 1
        for i in order[n]:
            Z[n, members[i]] = False
            highest = -np.inf
            for k in range(K):
                if not Z[n, k]:
                    highest = max(highest, logits[n, k])
            for k in range(K):
                weights[k] = 0.0 if Z[n, k] else np.exp(logits[n, k] - highest)
            members[i] = pick(weights, U[n, i])
            Z[n, members[i]] = True


@kernel
def pick(weights: Any, uniform: float) -> int:
    """Choose an index with probability proportional to its weight, never one of weight zero."""
    left = uniform * weights.sum()
    last = 0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            last = k
            left -= weights[k]
            if left < 0.0:
                break
    return last
