"""One exact EM step of adaptive PPCA, and one of classification EM.

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I_K
    x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I_D),  z_n uniform over the C(K, L) supports of size L

Orthonormal columns do not compete for a row: a support explains y_n by the sum of what its
components explain. Both steps are exact, so the log-likelihood never falls.

See docs/mathematics.md 1.1 (marginal likelihood), 1.2 (EM), 1.5 (latent variance).
"""

from itertools import combinations

import numpy as np
from scipy.special import logsumexp


def log_joint(Y, W, mu, tau2, sigma2, L):
    """Supports (C, K) and log p(y_n, S) (N, C), x integrated out."""
    D, K = W.shape
    supports = np.array([np.isin(np.arange(K), S) for S in combinations(range(K), L)])
    P = (Y - mu) @ W
    a = tau2 * P**2 / (2 * sigma2 * (sigma2 + tau2)) - 0.5 * np.log(1 + tau2 / sigma2)
    background = -D / 2 * np.log(2 * np.pi * sigma2) - np.sum((Y - mu) ** 2, axis=1) / (2 * sigma2)
    return supports, background[:, None] + a @ supports.T - np.log(len(supports))


def scores(Y, W, mu, tau2, sigma2):
    """Means (N, K) and variances (K,) of x_nk given y_n and z_nk = 1."""
    m = tau2 / (tau2 + sigma2) * ((Y - mu) @ W)
    v = tau2 * sigma2 / (tau2 + sigma2)
    return m, v


def e_step(Y, W, mu, tau2, sigma2, L, hard=False):
    """Log-likelihood; p(z_nk = 1 | y_n), E[z_nk x_nk], E[z_nk x_nk^2], each (N, K).

    Classification EM (`hard`) gives the MAP support of every row probability one; the
    log-likelihood is then that of Y and these supports.
    """
    supports, log_p_S = log_joint(Y, W, mu, tau2, sigma2, L)
    if hard:
        best = log_p_S.argmax(axis=1)
        log_p = log_p_S.max(axis=1)
        r = supports[best].astype(float)
    else:
        log_p = logsumexp(log_p_S, axis=1)
        r = np.exp(log_p_S - log_p[:, None]) @ supports
    m, v = scores(Y, W, mu, tau2, sigma2)
    return log_p.sum(), r, r * m, r * (m**2 + v)


def m_step(Y, r, s, second, mu=None, tau2="shared"):
    """W, mu, tau2, sigma2 that maximise the expected complete-data log-likelihood.

    `mu` is learned unless it is given; `tau2` is "shared", "component", or given.
    """
    N, D = Y.shape
    ybar, sbar = (Y.mean(axis=0), s.mean(axis=0)) if mu is None else (mu, np.zeros(s.shape[1]))
    U, _, Vt = np.linalg.svd((Y - ybar).T @ (s - sbar), full_matrices=False)
    W = U @ Vt
    mu = ybar - W @ sbar
    A = (Y - mu).T @ s
    sigma2 = (np.sum((Y - mu) ** 2) - 2 * np.trace(W.T @ A) + second.sum()) / (N * D)
    if isinstance(tau2, str):
        each = second.sum(axis=0) / r.sum(axis=0)
        shared = np.full(len(each), second.sum() / r.sum())
        tau2 = each if tau2 == "component" else shared
    return W, mu, tau2, sigma2
