"""Scores and densities of rows whose supports are given, of any sizes.

    log p(y | z) = log p(y | nothing) + f(z),  f(z) = -1/2 log|tau2 M| + 1/2 c_z' inv(M) c_z

with c_z = c * z and M = I / tau2 + A * zz', which couples the columns in use only; A = W'W / sigma2
and c = W'(y - mu) / sigma2.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from appca.models.supports import BLOCK_FLOATS, CollapsedModel
from appca.models.threads import single_threaded_blas

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def log_densities(c: Floats, Z: Mask, model: CollapsedModel) -> Floats:
    """f(z) of each row's support, (n,)."""
    f = np.empty(len(c))
    with single_threaded_blas():
        for part, M, c_z in _systems(c, Z, model):
            quadratic = np.einsum("nk,nk->n", c_z, np.linalg.solve(M, c_z[:, :, None])[:, :, 0])
            f[part] = 0.5 * (quadratic - np.linalg.slogdet(M / model.prior)[1])
    return f


def draw_scores_given(
    rng: np.random.Generator, c: Floats, Z: Mask, model: CollapsedModel
) -> Floats:
    """Draw x * z (n, K) given each row's support: with M = C C', inv(C')e has covariance inv(M)."""
    drawn = np.empty(c.shape)
    with single_threaded_blas():
        for part, M, c_z in _systems(c, Z, model):
            C = np.linalg.cholesky(M)
            white = np.linalg.solve(C, c_z[:, :, None])
            white += rng.standard_normal(white.shape)
            drawn[part] = np.linalg.solve(np.swapaxes(C, 1, 2), white)[:, :, 0]
    drawn[~Z] = 0.0
    return drawn


def _systems(c: Floats, Z: Mask, model: CollapsedModel) -> Iterator[tuple[slice, Floats, Floats]]:
    """M and c_z of some rows after others."""
    n, K = c.shape
    size = max(1, BLOCK_FLOATS // K**2)
    for start in range(0, n, size):
        part = slice(start, start + size)
        z = Z[part]
        M = model.A * (z[:, :, None] & z[:, None, :]) + model.prior * np.eye(K)
        yield part, M, c[part] * z
