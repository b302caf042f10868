"""An exact EM step of adaptive PPCA if entries of Y are missing (NaN) at random.

    y_n = W (x_n * z_n) + mu + e_n,  W'W = I_K, of which the entries O_n are observed
    x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I_D),  z_n uniform over the C(K, L) supports of size L

The columns of W are not orthonormal over observed features, so components compete for a row. The E
step takes expectations of missing entries jointly with x and z.

See docs/mathematics.md 1.8.
"""

import numpy as np

from tests.references import em_adaptive_fa


def row_posterior(y, W, mu, tau2, sigma2, L):
    """Of one row: log p(y_O), r = p(z | y_O) (K,), h = E[x * z] (K,), M = E[(x * z)(x * z)']."""
    seen = ~np.isnan(y)
    at = y[None, seen], W[seen], mu[seen], sigma2, L
    p = em_adaptive_fa.support_probabilities(*at, tau2)
    r, h, M = em_adaptive_fa.moments(*at, p, tau2)
    return em_adaptive_fa.log_likelihoods(*at, tau2)[0], r[0], h[0], M


def step(Y, W, mu, tau2, sigma2, L, *, learn_mean=True, latent="shared"):
    """Log-likelihood of what was observed, and W, mu, tau2, sigma2 one EM step later.

    With e = y - mu and s = x * z, whose posterior given y_O is that of `row_posterior`.
    """
    (N, D), K = Y.shape, W.shape[1]
    log_p, used, s, M = 0.0, np.zeros(K), np.zeros(K), np.zeros((K, K))
    e, es, ee = np.zeros(D), np.zeros((D, K)), 0.0  # sums of E[e], E[e s'], E[e'e]
    for y in Y:
        mis = np.isnan(y)
        log_p_n, r_n, h_n, M_n = row_posterior(y, W, mu, tau2, sigma2, L)
        e += np.where(mis, W @ h_n, y - mu)
        es += np.where(mis[:, None], W @ M_n, np.outer(y - mu, h_n))
        ee += np.sum((y - mu)[~mis] ** 2) + np.trace(W[mis] @ M_n @ W[mis].T) + mis.sum() * sigma2
        log_p, used, s, M = log_p + log_p_n, used + r_n, s + h_n, M + M_n
    ebar, sbar = (e / N, s / N) if learn_mean else (np.zeros(D), np.zeros(K))
    U, _, Vt = np.linalg.svd(es - N * np.outer(ebar, sbar), full_matrices=False)
    W = U @ Vt
    c = ebar - W @ sbar  # the mean moves by c
    residual = ee - 2 * c @ e + N * c @ c - 2 * np.trace(W.T @ es) + 2 * c @ W @ s + np.trace(M)
    if isinstance(latent, str):
        each, shared = np.diag(M) / used, np.full(K, np.trace(M) / used.sum())
        tau2 = each if latent == "component" else shared
    return log_p, (W, mu + c, tau2, residual / (N * D))
