"""An exact EM step of adaptive PPCA with all extensions, and a step of classification EM.

    y_n = W (x_n * z_n) + mu + e_n,  W' Psi^-1 W = I_K,  Psi = diag(psi)
    x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n Psi),  p(u_n = u_j) = omega_j
    p(z_n) = rho_l / C(K, l) with l = |z_n|

tau2 is relative to the noise. In the paper's model psi_d = sigma2, all rows have the scale u = (1)
and exactly L components, rho_L = 1. Densities use dense covariances; only the M step uses that W is
orthonormal in noise units.

See docs/mathematics.md 1.1 (marginal likelihood), 1.2 (EM), 1.5 (hard) and 1.12 (extensions).
"""

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


class Parameters(NamedTuple):
    W: np.ndarray  # (D, K)
    mu: np.ndarray  # (D,)
    tau2: np.ndarray  # (K,)
    psi: np.ndarray  # (D,)
    u: np.ndarray  # (J,), fixed
    omega: np.ndarray  # (J,)
    rho: np.ndarray  # (K + 1,)


def of_paper(W, mu, tau2, sigma2, L):
    """Parameters of the paper's model; tau2 and W are in the unit of the data."""
    (D, K), one = W.shape, np.ones(1)
    psi = np.full(D, sigma2)
    return Parameters(np.sqrt(sigma2) * W, mu, tau2 / sigma2, psi, one, one, np.eye(K + 1)[L])


def log_joint(Y, at):
    """Supports (C, K) of positive probability, and log p(y_n, S, u_j) (N, C, J)."""
    K = len(at.tau2)
    sets = [S for size in np.flatnonzero(at.rho) for S in combinations(range(K), size)]
    supports = np.array([np.isin(np.arange(K), S) for S in sets])
    joint = np.empty((len(Y), len(supports), len(at.u)))
    for c, z in enumerate(supports):
        cov = (at.W[:, z] * at.tau2[z]) @ at.W[:, z].T + np.diag(at.psi)
        prior = np.log(at.rho[z.sum()]) - np.log(comb(K, z.sum()))
        for j, u in enumerate(at.u):
            density = multivariate_normal(at.mu, u * cov).logpdf(Y)
            joint[:, c, j] = density + prior + np.log(at.omega[j])
    return supports, joint


def e_step(Y, at, *, hard=False):
    """Log-likelihoods (N,), supports, and p(S, u_j | y_n) (N, C, J).

    Classification EM (`hard`) gives the likeliest pair of every row probability one; the
    log-likelihood is then that of the row and this pair.
    """
    supports, joint = log_joint(Y, at)
    if hard:
        best = joint.max(axis=(1, 2))
        return best, supports, 1.0 * (joint == best[:, None, None])
    log_p = logsumexp(joint, axis=(1, 2))
    return log_p, supports, np.exp(joint - log_p[:, None, None])


def scores(Y, at):
    """Means (N, K) of x_nk given that it is active, and variances (K,) at u = 1."""
    shrink = at.tau2 / (1 + at.tau2)
    return shrink * ((Y - at.mu) / at.psi @ at.W), shrink


def m_step(Y, at, supports, p, *, by_feature=False, latent="shared", learn_mean=True, rounds=1):
    """Parameters that maximise the expected complete-data log-likelihood.

    `latent` is "shared", "component", or any number to keep tau2. With noise per feature V and
    s = psi^(-1/2) are maximised in turns, `rounds` times.
    """
    (N, D), K = Y.shape, len(at.tau2)
    m, v = scores(Y, at)
    by_scale = np.einsum("ncj,ck->njk", p, supports)  # p(z_k = 1, u_j | y)
    r = by_scale.sum(axis=1)
    inverse = np.einsum("ncj,j->n", p, 1 / at.u)  # E[1 / u]
    S = np.einsum("njk,j->nk", by_scale, 1 / at.u) * m  # E[s / u]
    Q = np.einsum("njk,j->nk", by_scale, 1 / at.u) * m**2 + r * v  # E[s^2 / u]
    b, sbar = at.mu, np.zeros(K)
    if learn_mean:
        b, sbar = inverse @ Y / inverse.sum(), S.sum(axis=0) / inverse.sum()
    A, power = (Y - b).T @ S, inverse @ (Y - b) ** 2
    s = at.psi**-0.5
    for _ in range(rounds):
        U, _, Vt = np.linalg.svd(s[:, None] * A, full_matrices=False)
        V = U @ Vt
        if by_feature:
            c = np.sum(V * A, axis=1)
            s = (c + np.sqrt(c**2 + 4 * N * power)) / (2 * power)
    tau2 = at.tau2
    if isinstance(latent, str):
        tau2 = Q.sum(axis=0) / r.sum(axis=0) if latent == "component" else Q.sum() / r.sum()
    tau2, mu = tau2 * np.ones(K), b - V @ sbar / s
    if not by_feature:  # in the unit of the data now: sigma2, and tau2 relative to it
        sigma2_old = at.psi[0]
        S, Q = S * np.sqrt(sigma2_old), Q * sigma2_old
        residual = inverse @ np.sum((Y - mu) ** 2, axis=1) - 2 * np.sum(V * ((Y - mu).T @ S))
        sigma2 = (residual + Q.sum()) / (N * D)
        s, tau2 = np.full(D, sigma2**-0.5), tau2 * sigma2_old / sigma2
    omega, sizes = p.sum(axis=(0, 1)) / N, supports.sum(axis=1)
    rho = np.array([p[:, sizes == size].sum() for size in range(K + 1)]) / N
    return at._replace(W=V / s[:, None], mu=mu, tau2=tau2, psi=s**-2, omega=omega, rho=rho)
