"""One Gibbs sweep of adaptive factor analysis.

    y_n = W (x_n * z_n) + mu + e_n,  w_dk ~ N(0, sigma2_W)
    x_nk ~ N(0, 1),  e_n ~ N(0, sigma2 I_D),  z_n uniform over the C(K, L) supports of size L
    mu ~ N(0, prior.mean_variance I),  1/sigma2 ~ Gamma(prior.noise)
    1/sigma2_W ~ Gamma(prior.loading)

A support fills L slots, which are visited in a new random order: an order that depends on the
support, such as that of sorted members, does not leave the posterior invariant.

See docs/mathematics.md 3 and, for the order, 1.4.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from tests.references import conditionals, low_rank


class State(NamedTuple):
    """What a sweep reads and writes."""

    W: np.ndarray  # (D, K)
    X: np.ndarray  # (N, K), zero where inactive
    Z: np.ndarray  # (N, K), L True in each row
    mu: np.ndarray  # (D,)
    sigma2: float
    sigma2_W: float


def slot(y, S, number, W, mu, sigma2):
    """Candidates for a slot given the factors in the others, and log p(y | S), x integrated out."""
    rest = np.delete(S, number)
    candidates = np.setdiff1d(np.arange(W.shape[1]), rest)
    log_p = [low_rank.log_density(y, W[:, [*rest, k]], mu, sigma2) for k in candidates]
    return candidates, np.array(log_p)


def sweep(rng, Y, state, prior):
    """Redraw Z and X row by row, then W, mu, sigma2 and sigma2_W."""
    W, _, Z, mu, sigma2, sigma2_W, *_ = state
    Z, X = Z.copy(), np.zeros((len(Y), W.shape[1]))
    for y, z, x in zip(Y, Z, X, strict=True):  # z and x are views
        S = np.flatnonzero(z)
        for number in rng.permutation(len(S)):
            candidates, log_p = slot(y, S, number, W, mu, sigma2)
            S[number] = rng.choice(candidates, p=softmax(log_p))
        z[:] = np.isin(np.arange(len(z)), S)
        x[S] = conditionals.draw_normal(rng, *low_rank.scores(y, W[:, S], mu, sigma2))
    loadings = conditionals.loadings(Y - mu, X, sigma2, sigma2_W)
    W = conditionals.draw_normal(rng, *loadings)
    centre, variance = conditionals.mean(Y - X @ W.T, sigma2, prior.mean_variance)
    mu = rng.normal(centre, np.sqrt(variance))
    noise = conditionals.noise_variance(prior.noise, Y - X @ W.T - mu)
    sigma2 = conditionals.draw_inverse_gamma(rng, *noise)
    loading = conditionals.loading_variance(prior.loading, W)
    sigma2_W = conditionals.draw_inverse_gamma(rng, *loading)
    return state._replace(W=W, X=X, Z=Z, mu=mu, sigma2=sigma2, sigma2_W=sigma2_W)
