"""One Gibbs sweep of adaptive PPCA.

    y_n = W (x_n * z_n) + mu + e_n,  W uniform over orthonormal D x K matrices
    x_nk ~ N(0, tau2_k),  e_n ~ N(0, sigma2 I_D),  z_n uniform over the C(K, L) supports of size L
    mu ~ N(0, prior.mean_variance I),  1/sigma2 ~ Gamma(prior.noise),  1/tau2 ~ Gamma(prior.latent)

z_n is drawn with x_n integrated out, so that X must follow Z at once.

See docs/mathematics.md 1.1 (supports), 1.3 (W) and 1.4 (the sweep).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from tests.references import conditionals, em_orthonormal, matrix_von_mises_fisher


class State(NamedTuple):
    """What a sweep reads and writes."""

    W: np.ndarray  # (D, K), orthonormal columns
    X: np.ndarray  # (N, K), zero where inactive
    Z: np.ndarray  # (N, K), True where active
    mu: np.ndarray  # (D,)
    sigma2: float
    tau2: np.ndarray  # (K,), all equal unless prior.each


def sweep(rng, Y, state, prior):
    """Redraw Z, X, W, mu, sigma2, tau2."""
    Z = draw_supports(rng, Y, state)
    return redraw_given(rng, Y, Z, state, prior)


def draw_supports(rng, Y, state):
    """Draw every z_n as a whole from p(S | y_n)."""
    at = state.W, state.mu, state.tau2, state.sigma2
    supports, log_p_S = em_orthonormal.log_joint(Y, *at, state.Z[0].sum())
    p = np.exp(log_p_S - logsumexp(log_p_S, axis=1, keepdims=True))
    return np.array([supports[rng.choice(len(supports), p=p_n)] for p_n in p])


def concentration(Y, X, mu, sigma2):
    """F (D, K) of the density exp(tr(F'W)) of W."""
    return (Y - mu).T @ X / sigma2


def redraw_given(rng, Y, Z, state, prior):
    """X, W, mu, sigma2 and tau2 given Z, whatever the prior of Z."""
    m, v = em_orthonormal.scores(Y, state.W, state.mu, state.tau2, state.sigma2)
    X = Z * rng.normal(m, np.sqrt(v))
    F = concentration(Y, X, state.mu, state.sigma2)
    W = matrix_von_mises_fisher.draw(rng, F, state.W)
    centre, variance = conditionals.mean(Y - X @ W.T, state.sigma2, prior.mean_variance)
    mu = rng.normal(centre, np.sqrt(variance))
    noise = conditionals.noise_variance(prior.noise, Y - X @ W.T - mu)
    sigma2 = conditionals.draw_inverse_gamma(rng, *noise)
    latent = conditionals.latent_variance(prior.latent, X, Z, prior.each)
    tau2 = conditionals.draw_inverse_gamma(rng, *latent) * np.ones(len(state.tau2))
    return state._replace(W=W, X=X, Z=Z, mu=mu, sigma2=sigma2, tau2=tau2)
