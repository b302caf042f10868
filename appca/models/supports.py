"""What the modules about supports in adaptive factor analysis hand each other."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Members = NDArray[np.int64]
Seeds = NDArray[np.uint64]

BLOCK_FLOATS = 2**18  # 2 MB: the largest array of a block of rows stays in the cache


class CollapsedModel(NamedTuple):
    """What log p(y | S), the scores x integrated out, takes from W and the variances."""

    A: Floats  # (K, K) W'W / sigma2
    prior: float  # 1 / tau2, the prior precision of a score


class RowSupports(NamedTuple):
    """Rows as W sees them, each with its support."""

    c: Floats  # (n, K) W'(y - mu) / sigma2
    members: Members  # (n, L), the factor in each slot; negative: none yet
    seeds: Seeds  # (n,) of each row's random stream


class SupportMoments(NamedTuple):
    """The posterior of the scores x * z given one support a row."""

    H: Floats  # (n, K) posterior means, zero outside the support
    second: Floats  # (K, K) weighted sum over rows of E[(x z)(x z)']
    value: Floats  # (n,) f(S): log p(y | S) but for what does not depend on S


class AnnealingSchedule(NamedTuple):
    """The inverse temperatures of one annealed importance path (Neal 2001).

    The first is taken at once, the others are reached in one sweep each, visit by visit.
    """

    betas: Floats  # rising, the last one 1
    after: int  # sweeps at beta = 1 that follow


class AnnealedPaths(NamedTuple):
    """Annealed importance sampling of each row's sum over supports."""

    log_weights: Floats  # (n, n_paths), the mean of whose exponentials is sum_S exp f(S)
    inclusion: Floats  # (n, n_paths, K) estimates of p(z_k = 1) at the end of a path, sum L
    families: Members  # (n, n_paths), the beginning that a path descends from


class SupportEstimate(NamedTuple):
    """The posterior over supports, summed over all of them or by importance sampling."""

    log_sum: Floats  # (n,) log sum over S of p(S) p(y | S), up to terms without S
    error: Floats  # (n,) its standard error in nats; 0 where exact
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    method: str
