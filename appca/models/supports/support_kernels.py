"""The Gaussian algebra of one row's support when the columns of W are not orthogonal.

For a row y and an support S, with A = I/tau2 + W'W/sigma2 and beta = W'y/sigma2, the sweep
operator applied to the tableau [A | beta] on the members of S leaves

    in S:      -inv(A_SS) and the posterior mean q = inv(A_SS) beta_S of x_S,
    outside:   the Schur complements s_k = A_kk - A_kS inv(A_SS) A_Sk and
               the residual correlations r_k = beta_k - A_kS q,

so that the log-density increment of a column, all x integrated out, costs O(1):

    log p(y | S with k) - log p(y | S) = 1/2 r_k^2 / s_k - 1/2 log(tau2 s_k) .

Taking a column in or out is one more sweep, O(K^2). The algebra is that of `slot_kernels`, whose
cov, mean, schur and resid are -T_SS, T_S,beta, T_kk and T_k,beta here. The tableau has no more to
keep track of, which suits supports of any size; at L of K columns a change there costs O(L K).

Examples
--------
Two columns, A = [4 2; 2 4], beta = (4, 6). Sweeping column 0 in,

    [4 2 | 4; 2 4 | 6]  ->  [-1/4 1/2 | 1; 1/2 3 | 4],

leaves the posterior variance 1/4 and mean 1 of x_0, and of column 1 s = 4 - 2 * 2/4 = 3 and
r = 6 - 2 * 1 = 4. Sweeping column 1 in, too,

    ->  [-1/3 1/6 | 1/3; 1/6 -1/3 | 4/3],

leaves the negative inverse of A and inv(A) beta.
"""

from typing import Any

import numpy as np

from appca.models.algebra.compiled import kernel


@kernel
def pivot(T: Any, k: int, inside: bool) -> None:
    """Sweep the tableau T (K, K + 1) on column k: in, or out again if it is `inside`."""
    d = T[k, k]
    sign = -1.0 if inside else 1.0
    K = len(T)
    for i in range(K):
        if i != k and T[i, k] != 0.0:
            factor = T[i, k] / d
            for j in range(K + 1):
                if j != k:
                    T[i, j] -= factor * T[k, j]
            T[i, k] = sign * factor
    for j in range(K + 1):
        if j != k:
            T[k, j] *= sign / d
    T[k, k] = -1.0 / d


@kernel
def increment(T: Any, k: int, inside: bool, tau2: float) -> float:
    """Give log p(y | S with k) - log p(y | S without k), whether or not k is `inside` now."""
    s = T[k, k]
    r = T[k, len(T)]
    if inside:  # what the tableau would hold with k out
        r = -r / s
        s = -1.0 / s
    return float(0.5 * (r * r / s - np.log(tau2 * s)))


@kernel
def fill(T: Any, A: Any, beta: Any, z: Any) -> None:
    """Set up the tableau of a row with active columns z."""
    K = len(A)
    for i in range(K):
        for j in range(K):
            T[i, j] = A[i, j]
        T[i, K] = beta[i]
    for k in range(K):
        if z[k]:
            pivot(T, k, False)


@kernel
def cholesky(M: Any, n: int) -> None:
    """Overwrite the lower triangle of M[:n, :n] by its Cholesky factor."""
    for i in range(n):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            M[i, j] = np.sqrt(total) if i == j else total / M[j, j]


@kernel
def draw_scores(T: Any, z: Any, normals: Any, x: Any, M: Any) -> None:
    """Draw x_S ~ N(q, inv(A_SS)) into x, zero elsewhere; M is (K, K) scratch space."""
    K = len(T)
    n = 0
    members = np.empty(K, np.int64)
    for k in range(K):
        x[k] = 0.0
        if z[k]:
            members[n] = k
            n += 1
    for i in range(n):
        for j in range(i + 1):
            M[i, j] = -T[members[i], members[j]]
    cholesky(M, n)
    for i in range(n):
        total = T[members[i], K]
        for j in range(i + 1):
            total += M[i, j] * normals[j]
        x[members[i]] = total


@kernel
def probability(log_odds: float) -> float:
    """Turn log odds into a probability; thousands of nats either way are 0 or 1, no warning."""
    if log_odds > 0.0:
        return float(1.0 / (1.0 + np.exp(-log_odds)))
    odds = np.exp(log_odds)
    return float(odds / (1.0 + odds))
