"""Data drawn from the model, and measures of how well a fit recovers its directions."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment


class Planted(NamedTuple):
    """Rows drawn from y = W (x * z) + e with x standard normal."""

    X: np.ndarray  # (N, D)
    W: np.ndarray  # (D, K)
    Z: np.ndarray  # (N, K) bool
    S: np.ndarray  # (N, K) scores x * z


def planted(n, d, k, n_active, *, seed, noise=0.1, scales=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((d, k)))[0]
    Z, X = np.argsort(rng.random((n, k)), axis=1) < n_active, rng.standard_normal((n, k)) * scales
    Y = (X * Z) @ W.T + noise * rng.standard_normal((n, d)) + offset
    return Planted(Y, W, Z, X * Z)


def drawn(seed, N, D, K, L, noise=0.3, size=1.0):
    """Rows of adaptive factor analysis, W any D x K matrix: Y, W, Z, mu."""
    rng = np.random.default_rng(seed)
    W, Z = size * rng.standard_normal((D, K)), np.argsort(rng.random((N, K)), axis=1) < L
    mu, X = rng.standard_normal(D), rng.standard_normal((N, K)) * Z
    return mu + X @ W.T + noise * rng.standard_normal((N, D)), W, Z, mu


def matched_cosines(components, W):
    """|cos| between fitted rows (K, D) and true columns (D, K), best one-to-one matching."""
    cosines = np.abs(components @ W)
    return cosines[linear_sum_assignment(-cosines)]


def principal_cosines(components, W):
    """Cosines of the angles between the spans of rows (K, D) and columns (D, K)."""
    return np.linalg.svd(components @ W, compute_uv=False)
