"""One Gibbs sweep of sparse factor analysis, finite (fsFA) and infinite (isFA).

    y_n = W (x_n * z_n) + mu + e_n,  w_dk ~ N(0, sigma2_W),  x_nk ~ N(0, 1),  e ~ N(0, sigma2 I)
    finite: z_nk ~ Bernoulli(pi_k), pi_k ~ Beta(alpha / K, 1), pi integrated out
    infinite: Z ~ IBP(alpha) conditioned on at most K_max used columns
    mu ~ N(0, prior.mean_variance I),  1/sigma2 ~ Gamma(prior.noise)
    1/sigma2_W ~ Gamma(prior.loading),  alpha ~ Gamma(prior.alpha)

z is redrawn with all x of its row integrated out. m_k counts the other rows that use column k. In
the infinite model, a column that no row uses does not exist and is stored as zeros.

See docs/mathematics.md 4.
"""

from typing import NamedTuple

import numpy as np

from tests.references import conditionals, low_rank


class State(NamedTuple):
    """What a sweep reads and writes."""

    W: np.ndarray  # (D, K)
    X: np.ndarray  # (N, K), zero where inactive
    Z: np.ndarray  # (N, K), True where active
    mu: np.ndarray  # (D,)
    sigma2: float
    sigma2_W: float
    alpha: float


def log_density(y, W, z, state):
    """Log p(y | z, W), x integrated out."""
    return low_rank.log_density(y, W[:, z], state.mu, state.sigma2)


def probability(odds, y, W, z, k, state):
    """p(z_k = 1 | y, other z) of one row, given its prior odds."""
    on, off = z.copy(), z.copy()
    on[k], off[k] = True, False
    log_ratio = log_density(y, W, on, state) - log_density(y, W, off, state)
    return 1 / (1 + np.exp(-np.log(odds) - log_ratio))


def draw_scores(rng, y, W, z, state):
    """x of one row given z."""
    x, given = np.zeros(len(z)), low_rank.scores(y, W[:, z], state.mu, state.sigma2)
    x[z] = conditionals.draw_normal(rng, *given)
    return x


def redraw_given(rng, Y, X, Z, used, state, prior):
    """W, mu, sigma2 and sigma2_W given Z and X; only the columns `used` exist."""
    W, sigma2 = np.zeros(state.W.shape), state.sigma2
    loadings = conditionals.loadings(Y - state.mu, X[:, used], sigma2, state.sigma2_W)
    W[:, used] = conditionals.draw_normal(rng, *loadings)
    centre, variance = conditionals.mean(Y - X @ W.T, sigma2, prior.mean_variance)
    mu = rng.normal(centre, np.sqrt(variance))
    noise = conditionals.noise_variance(prior.noise, Y - X @ W.T - mu)
    sigma2 = conditionals.draw_inverse_gamma(rng, *noise)
    loading = conditionals.loading_variance(prior.loading, W[:, used])
    sigma2_W = conditionals.draw_inverse_gamma(rng, *loading)
    return State(W, X, Z, mu, sigma2, sigma2_W, state.alpha)


def sweep_finite(rng, Y, state, prior):
    """Redraw Z and X row by row, then W, mu, sigma2, sigma2_W and alpha."""
    W, Z, X, (N, K) = state.W, state.Z.copy(), np.zeros(state.X.shape), state.Z.shape
    for n in range(N):
        for k in range(K):
            m_k = Z[:, k].sum() - Z[n, k]
            odds = (m_k + state.alpha / K) / (N - m_k)
            Z[n, k] = rng.random() < probability(odds, Y[n], W, Z[n], k, state)
        X[n] = draw_scores(rng, Y[n], W, Z[n], state)
    moved = redraw_given(rng, Y, X, Z, np.ones(K, bool), state, prior)
    return moved._replace(alpha=conditionals.draw_alpha_finite(rng, prior.alpha, state.alpha, Z))


def replace_singletons(rng, y, W, z, m, state, *, kappa):
    """Offer kappa new columns in place of the row's singletons.

    New ones are drawn from their prior, hence the ratio of likelihoods alone; where there is no
    room for them in K_max columns the offer is refused. W (D, K_max) and z are changed in place.
    """
    shared, own, free = z & (m > 0), z & (m == 0), np.flatnonzero(m == 0)
    if kappa > len(free):
        return
    V, new = W.copy(), shared.copy()
    V[:, own] = 0
    V[:, free[:kappa]] = rng.normal(0, np.sqrt(state.sigma2_W), (len(y), kappa))
    new[free[:kappa]] = True
    log_ratio = log_density(y, V, new, state) - log_density(y, W, z, state)
    if np.log(rng.random()) < log_ratio:
        W[:], z[:] = V, new


def sweep_infinite(rng, Y, state, prior):
    """Redraw Z and X row by row, new columns on the way, then the rest."""
    W, Z, X, N = state.W.copy(), state.Z.copy(), np.zeros(state.X.shape), len(Y)
    for n in range(N):
        m = Z.sum(axis=0) - Z[n]
        for k in rng.permutation(np.flatnonzero(m > 0)):  # never the row's own singletons
            odds = m[k] / (N - m[k])
            Z[n, k] = rng.random() < probability(odds, Y[n], W, Z[n], k, state)
        kappa = rng.poisson(state.alpha / N)
        replace_singletons(rng, Y[n], W, Z[n], m, state, kappa=kappa)
        X[n] = draw_scores(rng, Y[n], W, Z[n], state)
    moved = redraw_given(rng, Y, X, Z, Z.any(axis=0), state, prior)
    alpha = conditionals.draw_alpha_buffet(rng, prior.alpha, state.alpha, Z)
    return moved._replace(alpha=alpha)
