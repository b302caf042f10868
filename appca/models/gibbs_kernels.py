"""Compiled Gibbs scans over the rows of Z, and search and sampling of a row's set, given W.

In queries, a set z has log weight sum_k z_k o_k + f(z), with prior log odds o_k and f(z) =
log p(y | z) - log p(y | nothing), and all rows use the same uniform numbers.

For a row y and a support S, with A = I/tau2 + W'W/sigma2 and beta = W'y/sigma2, the sweep operator
applied to the tableau [A | beta] on the members of S leaves

    in S:      -inv(A_SS) and the posterior mean q = inv(A_SS) beta_S of x_S,
    outside:   s_k = A_kk - A_kS inv(A_SS) A_Sk and r_k = beta_k - A_kS q,

so that a column, with all x integrated out, adds 1/2 r_k^2 / s_k - 1/2 log(tau2 s_k) to log
p(y | S). Adding or removing a column takes one sweep, O(K^2), for supports of any size.
"""

from math import lgamma
from typing import Any

import numpy as np

from appca.models.numeric_kernels import kernel, reassociated


@kernel
def pivot(T: Any, k: int, inside: bool) -> None:
    """Sweep the tableau T (K, K + 1) on column k: add it, or remove it if it is `inside`."""
    d, sign, K = T[k, k], -1.0 if inside else 1.0, len(T)
    for i in range(K):
        if i != k and T[i, k] != 0.0:
            factor = T[i, k] / d
            for j in range(K + 1):
                T[i, j] -= factor * T[k, j]
            T[i, k] = sign * factor
    for j in range(K + 1):
        T[k, j] *= sign / d
    T[k, k] = -1.0 / d


@kernel
def increment(T: Any, k: int, inside: bool, tau2: float) -> float:
    """Return log p(y | S with k) - log p(y | S without k); k may be `inside` or not."""
    s, r = T[k, k], T[k, len(T)]
    if inside:  # convert to the tableau without k
        s, r = -1.0 / s, -r / s
    return float(0.5 * (r * r / s - np.log(tau2 * s)))


@kernel
def fill(T: Any, A: Any, beta: Any, z: Any, tau2: float) -> float:
    """Set up the tableau of a row with columns z; return log p(y | z) - log p(y | nothing)."""
    K, total = len(A), 0.0
    for i in range(K):
        for j in range(K):
            T[i, j] = A[i, j]
        T[i, K] = beta[i]
    for k in range(K):
        if z[k]:
            total += increment(T, k, False, tau2)
            pivot(T, k, False)
    return total


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
    members, K = np.flatnonzero(z), len(T)
    n = len(members)
    for i in range(n):
        for j in range(i + 1):
            M[i, j] = -T[members[i], members[j]]
    cholesky(M, n)
    x[:] = 0.0
    for i in range(n):
        x[members[i]] = T[members[i], K]
        for j in range(i + 1):
            x[members[i]] += M[i, j] * normals[j]


@kernel
def probability(log_odds: float) -> float:
    """Convert log odds to a probability; thousands of nats give 0 or 1 without a warning."""
    if log_odds > 0.0:
        return float(1.0 / (1.0 + np.exp(-log_odds)))
    odds = np.exp(log_odds)
    return float(odds / (1.0 + odds))


@kernel
def visit(  # noqa: PLR0913, PLR0917 - arrays of one row
    T: Any, z: Any, base: Any, odds: Any, beta: float, u: Any, tau2: float, order: Any
) -> float:
    """Redraw columns in an order, under exp((1 - beta) base'z + beta (odds'z + f(z))).

    Returns the change of f. Columns with log odds of -inf do not change.
    """
    change = 0.0
    for k in order:
        if odds[k] == -np.inf:
            continue
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
def search(rows: Any, betas: Any, U: Any, Z: Any, value: Any) -> None:
    """Return a good set Z (n, K) for each row and its log weight (n,); U is (restarts, steps, K).

    rows: A (K, K) = I/tau2 + W'W/sigma2, c (n, K) = W'(y - mu)/sigma2, prior log odds (K,), tau2.
    """
    A, c, odds, tau2 = rows
    n, K = c.shape
    T, z, flat, order = np.empty((K, K + 1)), np.empty(K, np.bool_), np.zeros(K), np.arange(K)
    for i in range(n):
        value[i] = -np.inf
        for r in range(len(U)):
            z[:] = False
            f = fill(T, A, c[i], z, tau2)
            for t in range(len(betas)):
                change = visit(T, z, flat, odds, betas[t], U[r, t % U.shape[1]], tau2, order)
                f += change
                if betas[t] == np.inf and change == 0.0:
                    break
            weight = f + (odds * z).sum()
            if weight > value[i]:
                value[i], Z[i] = weight, z


@kernel
def importance(rows: Any, base: Any, betas: Any, U: Any, log_weights: Any, chances: Any) -> None:
    """Walk paths from Bernoulli sets with log odds base (n, K) to the posterior (Neal 2001).

    Rows as in `search`; betas rise from 0 to 1; U (paths, steps, K). log_weights (n, paths) average
    to the sum over sets of exp(odds'z + f(z)); chances (n, paths, K) are inclusion probabilities at
    the ends.
    """
    A, c, odds, tau2 = rows
    n, K = c.shape
    T, z, order = np.empty((K, K + 1)), np.empty(K, np.bool_), np.arange(K)
    for i in range(n):
        log_norm = np.logaddexp(0.0, base[i]).sum()
        for p in range(U.shape[0]):
            for k in range(K):
                z[k] = U[p, 0, k] < probability(base[i, k])
            f = fill(T, A, c[i], z, tau2)
            log_weights[i, p] = log_norm
            for t in range(1, len(betas)):
                log_weights[i, p] += (betas[t] - betas[t - 1]) * (f + ((odds - base[i]) * z).sum())
                f += visit(T, z, base[i], odds, betas[t], U[p, t], tau2, order)
            for k in range(K):
                chances[i, p, k] = probability(odds[k] + increment(T, k, z[k], tau2))


@kernel
def scores(A: Any, c: Any, Z: Any, tau2: float, H: Any) -> None:
    """Write the posterior means of x * z given each row's set to H (n, K)."""
    n, K = Z.shape
    T = np.empty((K, K + 1))
    for i in range(n):
        fill(T, A, c[i], Z[i], tau2)
        for k in range(K):
            H[i, k] = T[k, K] if Z[i, k] else 0.0


@kernel
def draw_size(last: Any, u: int, log_rate: float, uniform: float) -> int:
    """Draw |T| with P(t) proportional to (alpha/N)^t (u - t)! e_t(exp a)."""
    logs = np.empty(u + 1)
    for t in range(u + 1):
        logs[t] = t * log_rate + lgamma(u - t + 1.0) + last[t]
    return pick(logs, uniform)


@kernel
def scan_columns(Z: Any, logits: Any, pseudo: float, log_rate: float, U: Any) -> None:
    """Redraw Z (N, K) in place; prior odds are (m + pseudo) / (N - m) if m other rows use a column.

    pseudo is alpha / K under the finite prior, and 0 under the buffet conditioned on at most K
    columns. Under the buffet, the columns that only this row uses (m = 0) are drawn exactly: first
    their number, by the last of U (N, K + 1), then the columns, backwards through the table;
    log_rate is log(alpha / N).
    """
    (N, K), counts = Z.shape, np.zeros(Z.shape[1], np.int64)
    for n in range(N):
        counts += Z[n]
    free, a, table = np.empty(K, np.int64), np.empty(K), np.empty((K + 1, K + 1))
    for n in range(N):
        u = 0
        for k in range(K):
            m = counts[k] - Z[n, k]
            if m + pseudo > 0.0:
                Z[n, k] = U[n, k] < probability(np.log(m + pseudo) - np.log(N - m) + logits[n, k])
            else:
                free[u], a[u] = k, logits[n, k]
                u += 1
                Z[n, k] = False
            counts[k] = m + Z[n, k]
        if u == 0:
            continue
        table[0, 0], table[: u + 1, 1:] = 0.0, -np.inf  # log e_t(exp a_1 .. exp a_i)
        for i in range(1, u + 1):
            table[i, 0] = 0.0
            for t in range(1, i + 1):
                table[i, t] = np.logaddexp(table[i - 1, t], a[i - 1] + table[i - 1, t - 1])
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
    """Redraw one active column of each row at a time, in an order (N, L) independent of Z."""
    a = np.empty(Z.shape[1])
    for n in range(len(Z)):
        members = np.flatnonzero(Z[n])
        for i in order[n]:
            Z[n, members[i]] = False
            for k in range(len(a)):
                a[k] = -np.inf if Z[n, k] else logits[n, k]
            members[i] = pick(a, U[n, i])
            Z[n, members[i]] = True


@kernel
def pick(weights: Any, uniform: float) -> int:
    """Choose an index of positive weight from log weights, which are overwritten."""
    top, total, last = weights[0], 0.0, 0
    for k in range(len(weights)):
        top = max(top, weights[k])
    for k in range(len(weights)):
        weights[k] = np.exp(weights[k] - top)
        total += weights[k]
    left = uniform * total
    for k in range(len(weights)):
        if weights[k] > 0.0:
            last = k
            left -= weights[k]
            if left < 0.0:
                break
    return last


@kernel
def precision(G: Any, v: Any) -> Any:
    """Return A = I/tau2 + W'W/sigma2 from G = W'W and v, the variances of noise and scores."""
    return G / v[0] + np.eye(len(G)) / v[1]


@kernel
def singletons_increment(T: Any, z: Any, Wt: Any, V: Any, y: Any, v: Any) -> float:
    """Return log p(y | S with columns V) - log p(y | S), V (kappa, D), y centred.

    -1/2 log|tau2 s| + 1/2 r' inv(s) r with s (kappa, kappa) the Schur complement of V given S.
    """
    kappa, K, total, (sigma2, tau2) = len(V), len(T), 0.0, v
    c = V @ Wt.T * (z / sigma2)
    s = precision(V @ V.T, v) + c @ np.ascontiguousarray(T[:, :K]) @ c.T
    r = V @ y / sigma2 - c @ np.ascontiguousarray(T[:, K])
    cholesky(s, kappa)
    for i in range(kappa):
        for j in range(i):
            r[i] -= s[i, j] * r[j]
        r[i] /= s[i, i]
        total += 0.5 * r[i] * r[i] - 0.5 * np.log(tau2) - np.log(s[i, i])
    return total


@reassociated
def product(y: Any, mean: Any, w: Any) -> float:
    """Return (y - mean)'w."""
    total = 0.0
    for d in range(len(w)):
        total += (y[d] - mean[d]) * w[d]
    return total


@kernel
def place(Wt: Any, G: Any, rows: Any, k: int, w: Any) -> None:
    """Write the column w (D,) to slot k of Wt (K, D), G = W'W and P = (Y - mean) W."""
    Y, mean, P = rows
    for d in range(len(w)):
        Wt[k, d] = w[d]
    for n in range(len(Y)):
        P[n, k] = product(Y[n], mean, w)
    for j in range(len(Wt)):
        G[j, k] = G[k, j] = Wt[j] @ w


@kernel
def replace_singletons(T: Any, z: Any, others: Any, V: Any, y: Any, v: Any, Wt: Any) -> Any:
    """Remove a row's singletons; return the log acceptance ratio of V, and the singletons (K,)."""
    singletons, before = (others == 0) & z, 0.0
    for k in range(len(z)):
        if singletons[k]:
            before += increment(T, k, True, v[1])
            pivot(T, k, True)
            z[k] = False
    if (others > 0).sum() + len(V) > len(z):
        return -np.inf, singletons
    return singletons_increment(T, z, Wt, V, y, v) - before, singletons


@kernel
def scan(  # noqa: PLR0913, PLR0917 - a state, its prior and random numbers
    Z: Any, X: Any, Wt: Any, rows: Any, v: Any, pseudo: float, proposal: Any, random: Any
) -> None:
    """Redraw Z and X (N, K) under any W and, under the buffet of at most K columns, Wt (K, D).

    Prior odds are those of `scan_columns`. Where pseudo = 0, proposals from the prior replace all
    singletons of a row: the ratio is that of likelihoods (Knowles and Ghahramani 2011).

    rows: Y (N, D) of any precision, not centred to save memory, their mean (D,), and (Y - mean) W
    (N, K), which is updated. proposal: the number of singletons for each row (N,), and all their
    columns (sum, D). random: uniform numbers (N, K + 1), normal numbers (N, K), and an order of
    the columns for each row (N, K).
    """
    (N, K), (Y, mean, P), (sigma2, tau2), (kappa, columns) = Z.shape, rows, v, proposal
    uniforms, normals, order = random
    G = Wt @ Wt.T
    A, T, M, flat = precision(G, v), np.empty((K, K + 1)), np.empty((K, K)), np.zeros(K)
    counts, first = np.zeros(K, np.int64), 0
    for n in range(N):
        counts += Z[n]
    for n in range(N):
        z, others = Z[n], counts - Z[n]
        fill(T, A, P[n] / sigma2, z, tau2)
        odds = np.log(others + pseudo) - np.log(N - others)
        visit(T, z, flat, odds, 1.0, uniforms[n], tau2, order[n])
        V = columns[first : first + kappa[n]]
        first += kappa[n]
        if len(V) > 0 or (z & (odds == -np.inf)).any():
            log_ratio, singletons = replace_singletons(T, z, others, V, Y[n] - mean, v, Wt)
            if np.log(uniforms[n, K]) < log_ratio:
                places = np.flatnonzero(others == 0)[: len(V)]
                for i in range(len(V)):
                    place(Wt, G, rows, places[i], V[i])
                    z[places[i]] = True
                A = precision(G, v)
            else:
                z |= singletons
            fill(T, A, P[n] / sigma2, z, tau2)
        counts = others + z
        draw_scores(T, z, normals[n], X[n], M)


@kernel
def support_increments(Z: Any, G: Any, P: Any, v: Any) -> Any:
    """Return log p(y | S) - log p(y | no column) for every row, a sum of increments."""
    N, K = Z.shape
    A, B, T, total = precision(G, v), P / v[0], np.empty((K, K + 1)), np.empty(N)
    for n in range(N):
        total[n] = fill(T, A, B[n], Z[n], v[1])
    return total
