"""Which sets of factors the rows of a design can use, when the truth is known: the oracle.

The oracle knows W, the noise and the law of Z; all that is left to it is which factors a row uses
and by how much. No estimate can be expected to beat its held-out likelihood.
"""

from typing import NamedTuple

import numpy as np

from appca.analysis.check.rivals import log_density
from appca.data.sources.designs import Synthetic


class Oracle(NamedTuple):
    """What somebody who knows W, the noise and the law of Z says about some rows."""

    Z: np.ndarray  # (n, K) bool, most probable set of each row
    log_likelihood: np.ndarray  # (n,) nats
    error: np.ndarray  # (n,) standard error; 0 where exact
    method: str


class Law(NamedTuple):
    """The law of Z as the oracle knows it."""

    design: str
    n_active: int
    popularity: np.ndarray  # (K,) share of rows that use a factor, over all rows there are
    patterns: np.ndarray  # (m, K) bool, the different rows of Z
    frequency: np.ndarray  # (m,) shares of them


def law_of(design: str, Z: np.ndarray, n_active: int) -> Law:
    """Read the law of Z off a large draw of it."""
    patterns, count = np.unique(Z, axis=0, return_counts=True)
    return Law(design, n_active, Z.mean(axis=0), patterns, count / len(Z))


def posterior_mean(Y: np.ndarray, W: np.ndarray, Z: np.ndarray, noise_sd: float) -> np.ndarray:
    """E[x * z | y, W, Z], (n, K): inv(I + W_S'W_S / sigma2) W_S'y / sigma2 on a row's set S."""
    gram, projected = W.T @ W, Y @ W
    H = np.zeros(Z.shape)
    for pattern in np.unique(Z, axis=0):
        rows = np.flatnonzero((pattern == Z).all(axis=1))
        S = np.flatnonzero(pattern)
        inner = gram[np.ix_(S, S)] + noise_sd**2 * np.eye(len(S))
        H[np.ix_(rows, S)] = np.linalg.solve(inner, projected[np.ix_(rows, S)].T).T
    return H


def oracle(Y: np.ndarray, truth: Synthetic, law: Law) -> Oracle:
    """Ask the oracle about rows Y (n, D)."""
    if law.design == "balanced":
        return _of_one_size(Y, truth, law)
    if law.design in {"subspace", "single"}:
        return _of_few(Y, truth, law)
    return _of_independent(Y, truth, law)


def _of_one_size(Y: np.ndarray, truth: Synthetic, law: Law) -> Oracle:
    """Any L of K factors, all sets alike."""
    from appca.models.algebra import gaussian
    from appca.models.supports import fixed_size_supports, row_blocks, row_supports

    K, L, noise = truth.W.shape[1], law.n_active, truth.noise_sd**2
    c, G = Y @ truth.W / noise, truth.W.T @ truth.W / noise
    model, seeds = row_supports.CollapsedModel(G, 1.0), row_blocks.row_seeds(Y)
    members = fixed_size_supports.best(c, model, L, seeds)[0]
    sums = fixed_size_supports.summed(c, model, L, seeds, 16)
    Z = np.zeros((len(Y), K), dtype=bool)
    np.put_along_axis(Z, members, values=True, axis=1)
    base = _nothing(Y, noise) - gaussian.log_binomial(K, L)
    return Oracle(Z, base + sums.log_sum, sums.error, sums.method)


def _of_independent(Y: np.ndarray, truth: Synthetic, law: Law) -> Oracle:
    """Every factor for itself, with its popularity."""
    from appca.models.supports import free_supports

    noise = truth.noise_sd**2
    weights = np.clip(law.popularity, 1e-6, 1 - 1e-6)
    G = truth.W.T @ truth.W / noise
    question = free_supports.Question(Y @ truth.W / noise, G, 1.0, weights)
    sums = free_supports.summed(question, 16)
    Z = free_supports.best(question).Z
    return Oracle(Z, _nothing(Y, noise) + sums.log_sum, sums.error, sums.method)


def _of_few(Y: np.ndarray, truth: Synthetic, law: Law) -> Oracle:
    """One of a handful of sets: a mixture of normal densities."""
    from scipy.special import logsumexp

    mean, noise = np.zeros(Y.shape[1]), np.full(Y.shape[1], truth.noise_sd**2)
    joint = np.stack(
        [
            log_density(Y, mean, truth.W[:, pattern].T, noise) + np.log(share)
            for pattern, share in zip(law.patterns, law.frequency, strict=True)
        ]
    )
    method = f"exact, over {len(law.patterns)} sets"
    best = law.patterns[joint.argmax(axis=0)]
    return Oracle(best, logsumexp(joint, axis=0), np.zeros(len(Y)), method)


def _nothing(Y: np.ndarray, noise: float) -> np.ndarray:
    """Log density (n,) of rows that no factor explains."""
    from appca.models.algebra import gaussian

    return gaussian.background(np.square(Y).sum(axis=1), noise, Y.shape[1])
