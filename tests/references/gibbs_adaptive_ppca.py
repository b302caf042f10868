"""One Gibbs sweep of adaptive PPCA, with row scales and learned sizes.

    y_n = W (x_n * z_n) + mu + e_n,  W uniform over orthonormal D x K matrices
    x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n sigma2 I_D),  u_n ~ omega over a grid
    p(z_n) = rho_l / C(K, l) with l = |z_n|,  omega and rho ~ Dirichlet(1, ..., 1)
    mu ~ N(0, prior.mean_variance I),  1/sigma2 ~ Gamma(prior.noise),  1/tau2 ~ Gamma(prior.latent)

(u_n, z_n) is drawn with x_n integrated out, so X must be drawn next. The paper's model has a grid
of one scale, and a fixed rho with a single nonzero entry.

See docs/mathematics.md 1.1 (supports), 1.3 (W), 1.4 (the sweep) and 1.12 (scales and sizes).
"""

from typing import NamedTuple

import numpy as np

from tests.references import conditionals, em_adaptive_ppca, matrix_von_mises_fisher


class State(NamedTuple):
    """What a sweep reads and writes."""

    W: np.ndarray  # (D, K), orthonormal columns
    X: np.ndarray  # (N, K), zero where inactive
    Z: np.ndarray  # (N, K), True where active
    mu: np.ndarray  # (D,)
    sigma2: float
    tau2: np.ndarray  # (K,), all equal unless prior.each
    u: np.ndarray  # (N,) scales of rows
    grid: np.ndarray  # (J,) which they may be; fixed
    omega: np.ndarray  # (J,) their probabilities
    rho: np.ndarray  # (K + 1,) probabilities of sizes
    alpha: float = 0.0  # of the priors of `gibbs_nonparametric_ppca`


def parameters(state):
    """The state as the page of EM has it, tau2 relative to the noise."""
    paper = em_adaptive_ppca.of_paper(state.W, state.mu, state.tau2, state.sigma2, 0)
    return paper._replace(u=state.grid, omega=state.omega, rho=state.rho)


def draw_supports_and_scales(rng, Y, state):
    """Draw (z_n, u_n) of every row together from p(S, u_j | y_n)."""
    _, supports, p = em_adaptive_ppca.e_step(Y, parameters(state))
    at = np.array([rng.choice(p_n.size, p=p_n.ravel() / p_n.sum()) for p_n in p])
    support, scale = np.unravel_index(at, p.shape[1:])
    return supports[support], state.grid[scale]


def sweep(rng, Y, state, prior):
    """Redraw Z and u, X, W, mu, sigma2, tau2, omega and rho."""
    Z, u = draw_supports_and_scales(rng, Y, state)
    state = redraw_given(rng, Y, Z, state._replace(u=u), prior)
    omega, rho = rng.dirichlet(1 + np.sum(u[:, None] == state.grid, axis=0)), state.rho
    if rho.max() < 1:
        rho = rng.dirichlet(1 + np.bincount(Z.sum(axis=1), minlength=len(rho)))
    return state._replace(omega=omega, rho=rho)


def redraw_given(rng, Y, Z, state, prior):
    """X, W, mu, sigma2 and tau2 given Z and u, whatever the prior of Z."""
    W, mu, sigma2, u, root = state.W, state.mu, state.sigma2, state.u, np.sqrt(state.u)[:, None]
    shrink = state.tau2 / (state.tau2 + sigma2)
    X = Z * rng.normal((Y - mu) @ W * shrink, root * np.sqrt(shrink * sigma2))
    W = matrix_von_mises_fisher.draw(rng, (Y - mu).T @ (X / root**2) / sigma2, W)
    variance, left = 1 / (np.sum(1 / u) / sigma2 + 1 / prior.mean_variance), Y - X @ W.T
    mu = rng.normal(variance * np.sum(left / root**2, axis=0) / sigma2, np.sqrt(variance))
    noise = conditionals.noise_variance(prior.noise, (left - mu) / root)
    sigma2 = conditionals.draw_inverse_gamma(rng, *noise)
    latent = conditionals.latent_variance(prior.latent, X / root, Z, prior.each)
    tau2 = conditionals.draw_inverse_gamma(rng, *latent) * np.ones(len(state.tau2))
    return state._replace(W=W, X=X, Z=Z, mu=mu, sigma2=sigma2, tau2=tau2)
