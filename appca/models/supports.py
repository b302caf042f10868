"""Rows and their supports where W is not orthogonal: types, and formulas given a support.

    log p(y | z) = log p(y | nothing) + f(z),  f(z) = -1/2 log|tau2 M| + 1/2 c_z' inv(M) c_z

with c_z = c * z, M = I / tau2 + A * zz', A = W'W / sigma2 and c = W'(y - mu) / sigma2.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from appca.models.threads import single_threaded_blas

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Members = NDArray[np.int64]
Seeds = NDArray[np.uint64]

BLOCK_FLOATS = 2**18  # 2 MB


class CollapsedModel(NamedTuple):
    """The parameters of log p(y | S), the scores x integrated out."""

    A: Floats  # (K, K) W'W / sigma2
    prior: float  # 1 / tau2, the prior precision of a score


class RowSupports(NamedTuple):
    """Projections of rows, each with its support."""

    c: Floats  # (n, K) W'(y - mu) / sigma2
    members: Members  # (n, L), the factor in each slot; negative: none yet
    seeds: Seeds  # (n,) of each row's random stream


class SupportMoments(NamedTuple):
    """The posterior of the scores x * z given one support a row."""

    H: Floats  # (n, K) posterior means, zero outside the support
    second: Floats  # (K, K) weighted sum over rows of E[(x z)(x z)']
    value: Floats  # (n,) f(S)


class AnnealingSchedule(NamedTuple):
    """The inverse temperatures of one annealed importance path (Neal 2001)."""

    betas: Floats  # rising, the last one 1
    after: int  # sweeps at beta = 1 that follow


class AnnealedPaths(NamedTuple):
    """Annealed importance sampling of each row's sum over supports."""

    log_weights: Floats  # (n, n_paths), the mean of whose exponentials is sum_S exp f(S)
    inclusion: Floats  # (n, n_paths, K) estimates of p(z_k = 1), sum L
    families: Members  # (n, n_paths), the first path that each descends from


class SupportEstimate(NamedTuple):
    """The posterior over supports, summed over all of them or by importance sampling."""

    log_sum: Floats  # (n,) log sum over S of p(S) p(y | S), up to terms without S
    error: Floats  # (n,) its standard error in nats; 0 where exact
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    method: str


def indicators(members: Members, n_components: int) -> Mask:
    """Give Z (n, K) of the members (n, L)."""
    Z = np.zeros((len(members), n_components), dtype=bool)
    np.put_along_axis(Z, members, True, axis=1)
    return Z


class ScoreNormal(NamedTuple):
    """p(x_n | z_n, y_n) of some rows, a normal distribution of the active scores of each."""

    part: slice  # which rows
    members: Members  # (n, L), the active ones; of rows with fewer others follow, with c = 0
    c: Floats  # (n, L) c_S
    mean: Floats  # (n, L) inv(Lam_S) c_S
    precision: Floats  # (n, L, L) Lam_S = I / tau2 + A_SS


def scores_given(c: Floats, Z: Mask, model: CollapsedModel) -> Iterator[ScoreNormal]:
    """Yield the scores of rows c (n, K) given supports Z (n, K), in blocks."""
    n, sizes = len(c), Z.sum(axis=1)
    L = int(sizes.max(initial=1))
    alike, size = bool((sizes == L).all()), max(1, BLOCK_FLOATS // L**2)
    for start in range(0, n, size):
        part = slice(start, start + size)
        if alike:
            members = np.nonzero(Z[part])[1].reshape(-1, L)
        else:
            members = np.argsort(~Z[part], axis=1, kind="stable")[:, :L]
        precision = model.A[members[:, :, None], members[:, None, :]]
        c_S = np.take_along_axis(c[part], members, axis=1)
        if not alike:
            z = np.take_along_axis(Z[part], members, axis=1)
            precision *= z[:, :, None] & z[:, None, :]
            c_S *= z
        precision += model.prior * np.eye(L)
        mean = np.asarray(np.linalg.solve(precision, c_S[:, :, None])[:, :, 0], np.float64)
        yield ScoreNormal(part, members, c_S, mean, precision)


def log_densities(c: Floats, Z: Mask, model: CollapsedModel) -> Floats:
    """f(z) of each row's support, (n,)."""
    f = np.empty(len(c))
    with single_threaded_blas():
        for normal in scores_given(c, Z, model):
            log_det = np.linalg.slogdet(normal.precision / model.prior)[1]
            f[normal.part] = 0.5 * (np.vecdot(normal.c, normal.mean) - log_det)
    return f


def draw_scores(rng: Generator, normal: ScoreNormal) -> Floats:
    """Draw scores (n, L): with precision C C', inv(C') e has covariance inv(C C')."""
    C = np.linalg.cholesky(normal.precision)
    e = rng.standard_normal(normal.mean.shape)[:, :, None]
    return np.asarray(normal.mean + np.linalg.solve(np.swapaxes(C, 1, 2), e)[:, :, 0])


def draw_scores_given(rng: Generator, c: Floats, Z: Mask, model: CollapsedModel) -> Floats:
    """Draw x * z (n, K) given each row's support."""
    drawn = np.zeros(c.shape)
    with single_threaded_blas():
        for normal in scores_given(c, Z, model):
            np.put_along_axis(drawn[normal.part], normal.members, draw_scores(rng, normal), axis=1)
    drawn[~Z] = 0.0
    return drawn
