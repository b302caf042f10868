"""Every L-subset of K factors at once: the exact collapsed posterior of adaptive factor analysis.

What depends on a set S alone, Lam_S = prior I + A_SS, is the same for all rows, so that with few
sets the sums over them are matrix products. Notation as in `slot_kernels`:

    f(S) = -1/2 log|tau2 Lam_S| + 1/2 c_S' inv(Lam_S) c_S
"""

import itertools
import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from appca.models.blocks import Model
from appca.models.threads import in_order

__all__ = ["Posterior", "Table", "best", "n_sets", "posterior", "scores", "table"]

Floats = NDArray[np.float64]

BLOCK_FLOATS = 2**18  # 2 MB: the largest array of a block of rows stays in the cache


class Table(NamedTuple):
    """All sets and what they have in common for all rows."""

    sets: NDArray[np.intp]  # (C, L), ascending
    root: Floats  # (C, L, L) with root root' = inv(Lam)
    half_log_det: Floats  # (C,) 1/2 log|tau2 Lam|


class Posterior(NamedTuple):
    """What the exact posterior over sets says about some rows."""

    log_sum: Floats  # (n,) log sum over S of exp f(S)
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    H: Floats  # (n, K) E[x z]
    second: Floats  # (K, K) sum over rows of E[(x z)(x z)']


def n_sets(n_factors: int, n_active: int) -> int:
    """Count the L-subsets of K factors."""
    return math.comb(n_factors, n_active)


def table(model: Model, n_active: int) -> Table:
    """Invert Lam of every set."""
    K = len(model.A)
    sets = np.array(list(itertools.combinations(range(K), n_active)), dtype=np.intp)
    Lam = model.A[sets[:, :, None], sets[:, None, :]] + model.prior * np.eye(n_active)
    factor = np.linalg.cholesky(Lam)
    root = np.swapaxes(np.linalg.inv(factor), 1, 2)
    diagonal = np.diagonal(factor, axis1=1, axis2=2)
    half_log_det = np.log(diagonal / math.sqrt(model.prior)).sum(axis=1)
    return Table(sets, np.ascontiguousarray(root), half_log_det)


def scores(t: Table, c: Floats) -> Floats:
    """f(S) of every set and row, (C, n), from c (n, K)."""
    return _scores(t, _whitened(t, c))


def best(t: Table, c: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Members (N, L) of each row's most probable set, and its f(S)."""
    members, value = np.empty((len(c), t.sets.shape[1]), np.int64), np.empty(len(c))

    def one(part: slice) -> None:
        f = scores(t, c[part])
        members[part], value[part] = t.sets[f.argmax(axis=0)], f.max(axis=0)

    deque(in_order(one, _parts(t, len(c))), maxlen=0)
    return members, value


def posterior(t: Table, c: Floats) -> Posterior:
    """Posterior sums of rows c (N, K) over all sets."""
    n, K = c.shape
    out = Posterior(np.empty(n), np.empty((n, K)), np.empty((n, K)), np.zeros((K, K)))
    places = [t.sets == k for k in range(K)]
    pairs = t.sets[:, :, None], t.sets[:, None, :]
    inverse = t.root @ np.swapaxes(t.root, 1, 2)

    def one(part: slice) -> Floats:
        white = _whitened(t, c[part])
        f = _scores(t, white)
        out.log_sum[part] = logsumexp(f, axis=0)
        R = np.exp(f - out.log_sum[part])
        m = t.root @ white  # posterior mean of x_S, (C, L, n)
        weighted = R[:, None, :] * m
        for k, place in enumerate(places):
            out.H[part, k] = weighted[place].sum(axis=0)
            out.inclusion[part, k] = R[place.any(axis=1)].sum(axis=0)
        second = np.zeros((K, K))
        each = weighted @ np.swapaxes(m, 1, 2) + R.sum(axis=1)[:, None, None] * inverse
        np.add.at(second, pairs, each)
        return second

    for second in in_order(one, _parts(t, n)):
        np.add(out.second, second, out=out.second)
    return out


def _whitened(t: Table, c: Floats) -> Floats:
    """Give root' c_S of every set and row, (C, L, n)."""
    white: Floats = np.swapaxes(t.root, 1, 2) @ c.T[t.sets]
    return white


def _scores(t: Table, white: Floats) -> Floats:
    f: Floats = 0.5 * np.einsum("sln,sln->sn", white, white) - t.half_log_det[:, None]
    return f


def _parts(t: Table, n: int) -> list[slice]:
    size = max(1, BLOCK_FLOATS // t.sets.size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
