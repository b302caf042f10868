"""An exact EM step of adaptive factor analysis, and a step of classification EM.

    y_n = W (x_n * z_n) + mu + e_n,  W any D x K matrix with w_dk ~ N(0, sigma2_W) or no prior
    x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I_D),  z_n uniform over the C(K, L) supports of size L

The latent variance is one, because the columns of W carry the scale of factors. `em_incomplete`
uses another variance, N(0, tau2).

See docs/mathematics.md 3.
"""

from itertools import combinations

import numpy as np
from scipy.special import logsumexp

from tests.references import low_rank


def supports_of(K, L):
    """All supports (C, L), in lexicographic order."""
    return np.array(list(combinations(range(K), L)))


def log_joint(Y, W, mu, sigma2, L, tau2=1.0):
    """Log p(y_n, S) (N, C), x integrated out."""
    supports, tau2 = supports_of(W.shape[1], L), tau2 * np.ones(W.shape[1])
    log_p = [low_rank.log_density(Y, W[:, S], mu, sigma2, tau2[S]) for S in supports]
    return np.array(log_p).T - np.log(len(supports))


def log_likelihoods(*at):
    """Log p(y_n) (N,)."""
    return logsumexp(log_joint(*at), axis=1)


def support_probabilities(*at):
    """p(S | y_n) (N, C)."""
    return np.exp(log_joint(*at) - log_likelihoods(*at)[:, None])


def certain(members, K):
    """Probabilities (N, C) of supports that are known: members (N, L), in any order."""
    return 1.0 * (np.sort(members, axis=1)[:, None] == supports_of(K, members.shape[1])).all(axis=2)


def moments(Y, W, mu, sigma2, L, p, tau2=1.0):
    """Inclusion r (N, K), h_n = E[x_n * z_n] (N, K), M = sum_n E[(x_n * z_n)(x_n * z_n)'].

    The support of row n has probabilities p (N, C): `support_probabilities` for EM, `certain` for
    classification EM.
    """
    N, K = len(Y), W.shape[1]
    r, h, M, tau2 = np.zeros((N, K)), np.zeros((N, K)), np.zeros((K, K)), tau2 * np.ones(K)
    for S, p_S in zip(supports_of(K, L), p.T, strict=True):
        m, V = low_rank.scores(Y, W[:, S], mu, sigma2, tau2[S])
        r[:, S] += p_S[:, None]
        h[:, S] += p_S[:, None] * m
        M[np.ix_(S, S)] += p_S.sum() * V + (p_S[:, None] * m).T @ m
    return r, h, M


def m_step(Y, h, M, sigma2, L, mu=None, sigma2_W=np.inf):
    """W, mu, sigma2; `mu` is learned unless it is given, `sigma2` is the present one.

    Without a prior on W the latent variance is learned and W takes it over: parameter expansion.
    """
    N, D = Y.shape
    K = h.shape[1]
    ybar, hbar = (Y.mean(axis=0), h.mean(axis=0)) if mu is None else (mu, np.zeros(K))
    B, centred = (Y - ybar).T @ (h - hbar), M - N * np.outer(hbar, hbar)
    W = B @ np.linalg.inv(centred + sigma2 / sigma2_W * np.eye(K))
    mu = ybar - W @ hbar
    squares = np.sum((Y - ybar) ** 2) - 2 * np.trace(W.T @ B) + np.trace(W.T @ W @ centred)
    tau2 = np.trace(M) / (N * L) if np.isinf(sigma2_W) else 1.0
    return W * np.sqrt(tau2), mu, squares / (N * D)
