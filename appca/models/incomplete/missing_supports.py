"""The sets of incomplete rows: W_O'W_O is no identity there, and each row has its own.

With x = sqrt(tau2) u, A = sqrt(tau2) W_O'W_O sqrt(tau2) / sigma2 and
c = sqrt(tau2) W_O'(y - mu)_O / sigma2, aFA's collapsed posterior holds with Lam_S = I + A_SS:

    f(S) = -1/2 log|Lam_S| + 1/2 c_S' inv(Lam_S) c_S

Up to `MOST_SETS` sets all are summed, many rows at once. Beyond, each row is given wholly to the
best set that single changes find, and whatever is built on that says so.
"""

import itertools
import math
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import logsumexp

from appca.models.algebra.gaussian import Array
from appca.models.supports import row_blocks
from appca.models.supports.row_supports import CollapsedModel, RowSupports

__all__ = [
    "MOST_SETS",
    "IncompletePosterior",
    "IncompleteProjections",
    "best_found",
    "is_exact",
    "posterior",
]

Floats = NDArray[np.float64]
Members = NDArray[np.int64]

MOST_SETS = 1000
BLOCK_FLOATS = 2**17  # 1 MB: the matrices of a block of rows stay in the cache
BEST = np.array([math.inf])
SEED = 0  # the kernels want seeds; searching for the best set draws nothing


class IncompleteProjections(NamedTuple):
    """Incomplete rows as W sees them. Pairs are the entries k <= l of a symmetric K x K matrix."""

    A: Floats  # (n, P) pairs; (1, P) where all rows have the same gaps
    c: Floats  # (n, K)


class IncompletePosterior(NamedTuple):
    """What is known of the rows; u = x / sqrt(tau2)."""

    log_sum: Floats  # (n,) log sum over S of exp f(S); of the best set alone: its f(S)
    inclusion: Floats  # (n, K)
    H: Floats  # (n, K) E[u z]
    second: Floats  # (n, P) pairs of E[(u z)(u z)']
    members: Members  # (n, L) the most probable set
    share: Floats  # (n,) its probability
    scores: Floats  # (n, K) E[u z] given that set


class Layout(NamedTuple):
    """Where the entries of all sets lie; C sets, U = L(L+1)/2."""

    sets: Members  # (C, L), ascending
    entries: Members  # (L, L, C) pairs of A that make A_SS
    slots: scipy.sparse.csr_array  # (K, L C) sums slots over the sets that hold a factor
    pairs: scipy.sparse.csr_array  # (P, U C) sums upper entries over the sets that hold a pair
    holds: scipy.sparse.csr_array  # (K, C)


def is_exact(n_components: int, n_active: int) -> bool:
    """Whether all sets are summed."""
    return math.comb(n_components, n_active) <= MOST_SETS


@cache
def layout(K: int, L: int) -> Layout:
    """List all L-subsets of K and where their entries belong."""
    sets = np.array(list(itertools.combinations(range(K), L)), dtype=np.int64)
    C, number = len(sets), np.zeros((K, K), dtype=np.int64)
    upper = np.triu_indices(K)
    number[upper] = np.arange(len(upper[0]))
    number = np.maximum(number, number.T)
    entries = number[sets.T[:, None, :], sets.T[None, :, :]]
    of_pairs = entries[np.triu_indices(L)]
    each = np.tile(np.arange(C), L)
    return Layout(
        sets,
        entries,
        _sums(sets.T.ravel(), np.arange(L * C), (K, L * C)),
        _sums(of_pairs.ravel(), np.arange(of_pairs.size), (len(upper[0]), of_pairs.size)),
        _sums(sets.T.ravel(), each, (K, C)),
    )


def _sums(rows: Array, columns: Array, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def posterior(seen: IncompleteProjections, n_active: int) -> IncompletePosterior:
    """Sum over all sets of every row."""
    n, K = seen.c.shape
    at = layout(K, n_active)
    size = max(1, BLOCK_FLOATS // at.entries.size)
    alike = len(seen.A) < n
    shared = _inverse(seen.A.T[at.entries]) if alike else None
    parts = []
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        inverse = shared or _inverse(np.ascontiguousarray(seen.A[part].T)[at.entries])
        parts.append(_block(seen.c[part], inverse, at))
    return IncompletePosterior(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _inverse(V: Floats) -> tuple[Floats, Floats]:
    """Inverse and log determinant of I + V, matrices in the first two axes, by Gauss and Jordan.

    Positive definite with eigenvalues from 1 on, so no pivoting; one pass over the whole block a
    row of the matrices, which for many small matrices is several times faster than LAPACK on each.
    """
    L = len(V)
    V = np.array(V)
    log_det = np.zeros(V.shape[2:])
    V[np.arange(L), np.arange(L)] += 1.0
    for k in range(L):
        pivot, column = V[k, k].copy(), V[:, k].copy()
        log_det += np.log(pivot)
        column[k] = 0.0
        V[:, k] = 0.0
        V[k, k] = 1.0
        V[k] /= pivot
        V -= column[:, None] * V[k][None]
    return V, log_det


def _block(c: Floats, inverse: tuple[Floats, Floats], at: Layout) -> tuple[Array, ...]:
    V, log_det = inverse
    n, K = c.shape
    C, L = at.sets.shape
    c_S = np.ascontiguousarray(c.T)[at.sets.T]  # (L, C, n)
    m = (V * c_S[None]).sum(axis=1)
    f = 0.5 * ((m * c_S).sum(axis=0) - log_det)
    log_sum = logsumexp(f, axis=0)
    R = np.exp(f - log_sum)
    weighted = R * m
    i, j = np.triu_indices(L)
    second = weighted[i] * m[j] + R * V[i, j]
    chosen, rows = f.argmax(axis=0), np.arange(n)
    members = at.sets[chosen]
    scores = np.zeros((n, K))
    scores[rows[:, None], members] = m[:, chosen, rows].T
    return (
        log_sum,
        (at.holds @ R).T,
        (at.slots @ weighted.reshape(L * C, n)).T,
        (at.pairs @ second.reshape(len(i) * C, n)).T,
        members,
        R[chosen, rows],
        scores,
    )


def best_found(
    seen: IncompleteProjections, n_active: int, members: Members | None
) -> IncompletePosterior:
    """Climb to a set for every row from `members` (n, L), or greedily; never ends lower.

    The posterior of the rows and their sets: no other set has a share.
    """
    n, K = seen.c.shape
    upper = np.triu_indices(K)
    start = np.full((n, n_active), -1, dtype=np.int64) if members is None else members
    found, H = np.empty((n, n_active), dtype=np.int64), np.empty((n, K))
    second, value = np.empty((n, len(upper[0]))), np.empty(n)
    seed = np.full(1, SEED, dtype=np.uint64)
    for row in range(n):
        A = np.zeros((K, K))
        A[upper] = seen.A[min(row, len(seen.A) - 1)]
        A = A + np.triu(A, 1).T
        one = RowSupports(seen.c[row : row + 1], start[row : row + 1], seed)
        chosen, moments = row_blocks.search(
            one, BEST, CollapsedModel(A, 1.0), keep=members is not None
        )
        found[row] = np.sort(chosen[0])
        H[row], second[row], value[row] = moments.H[0], moments.second[upper], moments.value[0]
    active = np.zeros((n, K))
    np.put_along_axis(active, found, 1.0, axis=1)
    return IncompletePosterior(value, active, H, second, found, np.ones(n), H)
