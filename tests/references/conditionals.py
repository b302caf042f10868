"""Parameters of the full conditionals given the scores X and Z, for all Gibbs samplers.

    Y = X W' + mu + E,  e_nd ~ N(0, sigma2),  x_nk ~ N(0, tau2_k) where z_nk = 1, else x_nk = 0

Priors and posteriors of variances are inverse gamma distributions, those of alpha gamma
distributions; each is a pair (shape, rate).

See docs/mathematics.md 1.4 (mean and variances), 3 and 4 (loadings), 2 and 4 (alpha).
"""

import numpy as np
from scipy import stats


def noise_variance(prior, R):
    """sigma2 given the residual R = Y - X W' - mu."""
    shape, rate = prior
    return shape + R.size / 2, rate + np.sum(R**2) / 2


def latent_variance(prior, X, Z, each):
    """tau2 given the active scores, one for all components or one for `each`."""
    shape, rate = prior
    axis = 0 if each else None
    return shape + np.sum(Z, axis=axis) / 2, rate + np.sum(Z * X**2, axis=axis) / 2


def loading_variance(prior, W):
    """sigma2_W given W, whose entries are N(0, sigma2_W)."""
    shape, rate = prior
    return shape + W.size / 2, rate + np.sum(W**2) / 2


def mean(R, sigma2, prior_variance):
    """Mean (D,) and variance of mu ~ N(0, prior_variance I) given R = Y - X W'."""
    variance = 1 / (len(R) / sigma2 + 1 / prior_variance)
    return variance * R.sum(axis=0) / sigma2, variance


def loadings(R, X, sigma2, sigma2_W):
    """Means (D, K) and common covariance (K, K) of the rows of W given R = Y - mu."""
    V = np.linalg.inv(X.T @ X / sigma2 + np.eye(X.shape[1]) / sigma2_W)
    return R.T @ X @ V / sigma2, V


def draw_inverse_gamma(rng, shape, rate):
    """1 / g with g ~ Gamma(shape, rate)."""
    return 1 / rng.gamma(shape, 1 / rate)


def draw_normal(rng, M, V):
    """Rows from N(m, V); with V = C C' and e standard normal, C e has covariance V."""
    return M + rng.standard_normal(M.shape) @ np.linalg.cholesky(V).T


def alpha_buffet(prior, Z):
    """Alpha given Z under the IBP without a bound on its columns."""
    shape, rate = prior
    return shape + Z.any(axis=0).sum(), rate + np.sum(1 / np.arange(1, len(Z) + 1))


def Q(alpha, N, K_max):
    """P(K+ <= K_max) under the IBP, where K+ is Poisson(alpha H_N)."""
    return stats.poisson.cdf(K_max, alpha * np.sum(1 / np.arange(1, N + 1)))


def draw_alpha_buffet(rng, prior, alpha, Z):
    """One Metropolis-Hastings step for alpha of the IBP conditioned on K+ <= K_max columns.

    P(Z) is that of the IBP divided by Q(alpha), so that `alpha_buffet` as proposal leaves Q only.
    """
    shape, rate = alpha_buffet(prior, Z)
    proposed = rng.gamma(shape, 1 / rate)
    return proposed if rng.random() < Q(alpha, *Z.shape) / Q(proposed, *Z.shape) else alpha


def alpha_finite(prior, pi):
    """Alpha given pi_k ~ Beta(alpha / K, 1)."""
    shape, rate = prior
    return shape + len(pi), rate - np.sum(np.log(pi)) / len(pi)


def draw_alpha_finite(rng, prior, alpha, Z):
    """Pi given Z and alpha, then alpha given pi; pi is forgotten."""
    (N, K), m = Z.shape, Z.sum(axis=0)
    shape, rate = alpha_finite(prior, rng.beta(m + alpha / K, N - m + 1))
    return rng.gamma(shape, 1 / rate)
