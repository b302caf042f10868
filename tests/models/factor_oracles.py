"""Adaptive factor analysis written out from its definition, with dense covariances and all sets.

Nothing of `appca` is imported here.
"""

import itertools

import numpy as np
from scipy import stats
from scipy.special import logsumexp


def log_row(y, W, S, mu, sigma2, tau2=1.0):
    """log p(y | S) with x integrated out: y ~ N(mu, sigma2 I + tau2 W_S W_S')."""
    active = W[:, list(S)]
    covariance = sigma2 * np.eye(len(y)) + tau2 * active @ active.T
    return stats.multivariate_normal.logpdf(y, mu, covariance)


def all_sets(n_factors, n_active):
    return list(itertools.combinations(range(n_factors), n_active))


def log_table(Y, W, n_active, mu, sigma2):
    """log p(y_n | S) for every row and set, (N, C)."""
    sets = all_sets(W.shape[1], n_active)
    return np.array([[log_row(y, W, S, mu, sigma2) for S in sets] for y in Y])


def log_likelihoods(Y, W, n_active, mu, sigma2):
    """log p(y_n), sets uniform, (N,)."""
    table = log_table(Y, W, n_active, mu, sigma2)
    return logsumexp(table, axis=1) - np.log(table.shape[1])


def set_probabilities(Y, W, n_active, mu, sigma2):
    """p(S | y_n), (N, C)."""
    table = log_table(Y, W, n_active, mu, sigma2)
    return np.exp(table - logsumexp(table, axis=1, keepdims=True))


def inclusion(Y, W, n_active, mu, sigma2):
    """p(z_nk = 1 | y_n), (N, K)."""
    member = np.array(
        [np.isin(np.arange(W.shape[1]), S) for S in all_sets(W.shape[1], n_active)], dtype=float
    )
    return set_probabilities(Y, W, n_active, mu, sigma2) @ member


def scores(y, W, S, mu, sigma2):
    """Mean and covariance of x_S given y, by conditioning the joint normal of (x_S, y)."""
    active = W[:, list(S)]
    marginal = sigma2 * np.eye(len(y)) + active @ active.T
    gain = np.linalg.solve(marginal, active).T
    return gain @ (y - mu), np.eye(len(S)) - gain @ active


def moments(Y, W, sets, mu, sigma2):
    """E[x z] (N, K) and sum over rows of E[(x z)(x z)'] (K, K), one set a row."""
    K = W.shape[1]
    H, second = np.zeros((len(Y), K)), np.zeros((K, K))
    for n, (y, S) in enumerate(zip(Y, sets, strict=True)):
        m, C = scores(y, W, S, mu, sigma2)
        H[n, list(S)] = m
        second[np.ix_(S, S)] += C + np.outer(m, m)
    return H, second


def drawn(seed, N, D, K, L, noise=0.3, size=1.0):
    """Rows drawn from the model: Y, W, Z, mu."""
    rng = np.random.default_rng(seed)
    W = size * rng.standard_normal((D, K))
    Z = np.argsort(rng.random((N, K)), axis=1) < L
    mu = rng.standard_normal(D)
    X = rng.standard_normal((N, K)) * Z
    return mu + X @ W.T + noise * rng.standard_normal((N, D)), W, Z, mu
