"""Compiled search and sampling of supports of any size.

Sets of any size for one row after the other, W given: search, and annealed importance sampling.

A set z has log weight sum_k z_k o_k + f(z), with the prior log odds o_k and f(z) =
log p(y | z) - log p(y | nothing) of `support_kernels`. All rows use the same uniform numbers, so
that what is said about a row does not depend on other rows.

The Gaussian algebra of one row's support when the columns of W are not orthogonal.

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

from typing import Any, NamedTuple

import numpy as np

from appca.models.numeric_kernels import kernel


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


class FreeSupportRows(NamedTuple):
    """What the rows are weighed with."""

    A: Any  # (K, K) I/tau2 + W'W/sigma2
    c: Any  # (n, K) W'(y - mu)/sigma2
    odds: Any  # (K,) prior log odds
    tau2: float


@kernel
def visit(T: Any, z: Any, base: Any, odds: Any, beta: float, u: Any, tau2: float) -> float:
    """Redraw every column at inverse temperature `beta`; gives the change of f.

    The distribution is proportional to exp((1 - beta) base'z + beta (odds'z + f(z))); beyond
    beta = 1 it is a search, with infinite beta for a local mode.
    """
    change = 0.0
    for k in range(len(z)):
        g = increment(T, k, z[k], tau2)
        if beta == np.inf:
            on = odds[k] + g > 0.0
        else:
            on = u[k] < probability((1.0 - beta) * base[k] + beta * (odds[k] + g))
        if on != z[k]:
            change += g if on else -g
            pivot(T, k, z[k])
            z[k] = on
    return change


@kernel
def search(s: FreeSupportRows, betas: Any, U: Any, Z: Any, value: Any) -> None:
    """Find a good set for each row: Z (n, K) and its log weight (n,); U (restarts, steps, K)."""
    n, K = s.c.shape
    T, z = np.empty((K, K + 1)), np.empty(K, np.bool_)
    flat = np.zeros(K)
    for i in range(n):
        value[i] = -np.inf
        for r in range(len(U)):
            z[:] = False
            fill(T, s.A, s.c[i], z)
            f = 0.0
            for t in range(len(betas)):
                f += visit(T, z, flat, s.odds, betas[t], U[r, t], s.tau2)
            for _ in range(100):
                change = visit(T, z, flat, s.odds, np.inf, U[r, 0], s.tau2)
                f += change
                if change == 0.0:
                    break
            weight = f + (s.odds * z).sum()
            if weight > value[i]:
                value[i] = weight
                Z[i] = z


@kernel
def importance(
    s: FreeSupportRows, base: Any, betas: Any, U: Any, log_weights: Any, chances: Any
) -> None:
    """Walk paths from Bernoulli sets with log odds base (n, K) to the posterior (Neal 2001).

    betas rises from 0 to 1; U (paths, steps, K) with as many steps as betas. log_weights (n, paths)
    average to the sum over all sets of exp(odds'z + f(z)); chances (n, paths, K) are the inclusion
    probabilities at the ends of the paths.
    """
    n, K = s.c.shape
    T, z = np.empty((K, K + 1)), np.empty(K, np.bool_)
    for i in range(n):
        log_norm = np.logaddexp(0.0, base[i]).sum()
        for p in range(U.shape[0]):
            for k in range(K):
                z[k] = U[p, 0, k] < probability(base[i, k])
            fill(T, s.A, s.c[i], np.zeros(K, np.bool_))
            f = 0.0
            for k in range(K):
                if z[k]:
                    f += increment(T, k, False, s.tau2)
                    pivot(T, k, False)
            log_weights[i, p] = log_norm
            for t in range(1, len(betas)):
                lead = f + ((s.odds - base[i]) * z).sum()
                log_weights[i, p] += (betas[t] - betas[t - 1]) * lead
                f += visit(T, z, base[i], s.odds, betas[t], U[p, t], s.tau2)
            for k in range(K):
                chances[i, p, k] = probability(s.odds[k] + increment(T, k, z[k], s.tau2))


@kernel
def scores(s: FreeSupportRows, Z: Any, H: Any) -> None:
    """Put the posterior means of x * z given each row's set into H (n, K)."""
    n, K = Z.shape
    T = np.empty((K, K + 1))
    for i in range(n):
        fill(T, s.A, s.c[i], Z[i])
        for k in range(K):
            H[i, k] = T[k, K] if Z[i, k] else 0.0
