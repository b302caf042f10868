"""Joint densities of the sampled models, computed from their definitions with SciPy.

Tests compare density ratios with them, so this module imports nothing from `appca`.
"""

import itertools

import numpy as np
from scipy import stats
from scipy.special import gammaln


def log_data(Y, W, X, Z, mu, sigma2):
    """log p(Y | W, X, Z, mu, sigma2)."""
    return stats.norm.logpdf(Y, mu + (X * Z) @ W.T, np.sqrt(sigma2)).sum()


def log_scores(X, Z, tau2):
    """log p(X | Z, tau2), active entries only."""
    return stats.norm.logpdf(X[Z], 0.0, np.broadcast_to(np.sqrt(tau2), X.shape)[Z]).sum()


def log_inverse_gamma(x, shape, rate):
    """Log density of the inverse gamma distribution."""
    return np.sum(stats.invgamma.logpdf(x, shape, scale=rate))


def log_gamma(x, shape, rate):
    """Log density of the gamma distribution with a rate."""
    return stats.gamma.logpdf(x, shape, scale=1 / rate)


def log_finite(Z, alpha):
    """log P(Z | alpha) of the finite model, pi_k integrated out by the beta integral."""
    N, K = Z.shape
    m, a = Z.sum(axis=0), alpha / K
    return float(np.sum(np.log(a) + gammaln(m + a) + gammaln(N - m + 1) - gammaln(N + a + 1)))


def log_truncated_buffet(Z, alpha):
    """log P(Z | alpha) of labelled columns in the buffet conditioned on K+ <= K."""
    N, K = Z.shape
    m = Z.sum(axis=0)
    m, H = m[m > 0], sum(1 / n for n in range(1, N + 1))
    value = len(m) * np.log(alpha) - alpha * H
    value += gammaln(K - len(m) + 1) - gammaln(K + 1)
    value += np.sum(gammaln(m) + gammaln(N - m + 1) - gammaln(N + 1))
    return float(value - stats.poisson.logcdf(K, alpha * H))


def draw_buffet(rng, alpha, n_rows, n_columns, *, labelled=False):
    """Draw the Indian buffet conditioned on at most n_columns dishes.

    The number of dishes is a truncated Poisson(alpha H). Customer n is the first to take a dish
    with probability proportional to 1/n; later customers take it with its popularity. `labelled`
    puts dishes in random columns, otherwise they come first.
    """
    first = 1 / np.arange(1, n_rows + 1)
    ratios = alpha * first.sum() / np.arange(1, n_columns + 1)
    sizes = np.cumprod(np.concatenate([[1.0], ratios]))  # Poisson weights relative to the first
    n_dishes = rng.choice(n_columns + 1, p=sizes / sizes.sum())
    Z = np.zeros((n_rows, n_columns), dtype=bool)
    places = rng.permutation(n_columns) if labelled else np.arange(n_columns)
    for place in places[:n_dishes]:
        opened = rng.choice(n_rows, p=first / first.sum())
        Z[opened, place] = True
        for n in range(opened + 1, n_rows):
            Z[n, place] = rng.random() < Z[:, place].sum() / (n + 1)
    return Z


def every_binary_matrix(n_rows, n_columns):
    """Return all 2^(N K) indicator matrices."""
    for bits in itertools.product((False, True), repeat=n_rows * n_columns):
        yield np.array(bits).reshape(n_rows, n_columns)


def pooled_p_value(counts, expected):
    """Return the p-value of a chi-square test; rare cells are pooled."""
    order = np.argsort(expected)
    cells = np.minimum(np.cumsum(expected[order]) // 20, 10_000).astype(int)
    pooled, observed = (np.bincount(cells, x[order]) for x in (expected, counts))
    kept = pooled > 0
    return stats.chi2.sf(np.sum((observed - pooled)[kept] ** 2 / pooled[kept]), kept.sum() - 1)


def stationary_p_value(rng, states, log_weights, kernel, n_draws):
    """Return a chi-square p-value for the hypothesis that `kernel` preserves the distribution.

    Starts are independent draws from exp(log_weights) over the enumerated states; kernel(rng, Z)
    returns the next state.
    """
    weights = np.exp(log_weights - np.max(log_weights))
    weights /= weights.sum()
    index, counts = {Z.tobytes(): i for i, Z in enumerate(states)}, np.zeros(len(states))
    for start in rng.choice(len(states), n_draws, p=weights):
        counts[index[kernel(rng, states[start].copy()).tobytes()]] += 1
    return pooled_p_value(counts, n_draws * weights)
