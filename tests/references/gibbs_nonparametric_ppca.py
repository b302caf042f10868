"""One Gibbs sweep of nonparametric PPCA: adaptive PPCA with any number of components per row.

    y_n = W (x_n * z_n) + mu + e_n,  W uniform over orthonormal D x K_max matrices
    Z ~ IBP(alpha) conditioned on K+ <= K_max used columns, put at random positions of W; or
    z_nk ~ Bernoulli(pi_k), pi_k ~ Beta(alpha / K_max, 1)
    x, e, mu and the variances as in `gibbs_adaptive_ppca`,  alpha ~ Gamma(prior.alpha)

m_k counts the other rows that use column k. Unused columns of W are also redrawn.

See docs/mathematics.md 2.
"""

from itertools import combinations
from math import factorial

import numpy as np

from tests.references import conditionals
from tests.references.gibbs_adaptive_ppca import redraw_given


def logits(Y, state):
    """Log odds a_nk (N, K) of z_nk = 1 but for its prior, x integrated out."""
    W, sigma2, tau2 = state.W, state.sigma2, state.tau2
    P = (Y - state.mu) @ W
    return tau2 * P**2 / (2 * sigma2 * (sigma2 + tau2)) - 0.5 * np.log(1 + tau2 / sigma2)


def probability(odds, a):
    """p(z = 1) from prior odds and logit."""
    return odds * np.exp(a) / (1 + odds * np.exp(a))


def own_supports(a, alpha, N):
    """Subsets T of the u columns that no other row uses, and their probabilities.

    P(T) is proportional to (alpha / N)^t (u - t)! prod_T exp(a_k) with t = |T|.
    """
    u = len(a)
    subsets = [list(T) for t in range(u + 1) for T in combinations(range(u), t)]
    weights = [(alpha / N) ** len(T) * factorial(u - len(T)) * np.exp(a[T].sum()) for T in subsets]
    return subsets, np.array(weights) / np.sum(weights)


def sweep_buffet(rng, Y, state, prior):
    """Redraw Z row by row, then X, W, mu, sigma2, tau2, then alpha, under the IBP."""
    a, Z, N = logits(Y, state), state.Z.copy(), len(Y)
    for n in range(N):
        m = Z.sum(axis=0) - Z[n]
        for k in np.flatnonzero(m > 0):
            Z[n, k] = rng.random() < probability(m[k] / (N - m[k]), a[n, k])
        U = np.flatnonzero(m == 0)  # unused columns and the row's own singletons
        subsets, p = own_supports(a[n, U], state.alpha, N)
        Z[n, U] = False
        Z[n, U[subsets[rng.choice(len(subsets), p=p)]]] = True
    state = redraw_given(rng, Y, Z, state, prior)
    alpha = conditionals.draw_alpha_buffet(rng, prior.alpha, state.alpha, Z)
    return state._replace(alpha=alpha)


def sweep_finite(rng, Y, state, prior):
    """Do the same under the beta-Bernoulli prior."""
    a, Z, (N, K) = logits(Y, state), state.Z.copy(), state.Z.shape
    for n in range(N):
        m = Z.sum(axis=0) - Z[n]
        p = probability((m + state.alpha / K) / (N - m), a[n])
        Z[n] = rng.random(K) < p
    state = redraw_given(rng, Y, Z, state, prior)
    alpha = conditionals.draw_alpha_finite(rng, prior.alpha, state.alpha, Z)
    return state._replace(alpha=alpha)
