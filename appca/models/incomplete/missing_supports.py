"""The posterior over supports of incomplete rows, where W_O'W_O is not the identity.

W_O are the rows of W at the observed entries of a row, whose missing ones differ from row to row.
With x = sqrt(tau2) u and

    A = sqrt(tau2) W_O'W_O sqrt(tau2) / sigma2,    c = sqrt(tau2) W_O'(y - mu)_O / sigma2,

the collapsed posterior of adaptive factor analysis (`slot_kernels`) holds with prior precision 1,

    log p(S | y_O) = const + f(S),    f(S) = -1/2 log|Lam_S| + 1/2 c_S' inv(Lam_S) c_S,
    Lam_S = I + A_SS,    v_S = E[u | S, y_O] = inv(Lam_S) c_S,
    E[u u' | S, y_O] = inv(Lam_S) + v_S v_S'.

Up to `MOST_SETS` supports all are summed, many rows at once. Beyond, each row is given wholly to
the best support that single replacements find (classification EM), and whatever is built on that
says so.
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

Floats = NDArray[np.float64]
Members = NDArray[np.int64]

MOST_SETS = 1000
BLOCK_FLOATS = 2**17  # 1 MB: the matrices of a block of rows stay in the cache
MODE = np.array([math.inf])
SEED = 0  # the kernels want seeds; a search for modes draws the order of the slots only


class IncompleteProjections(NamedTuple):
    """All that supports depend on. Pairs are the entries k <= l of a symmetric K x K matrix."""

    A: Floats  # (n, P) pairs; (1, P) where the same entries are missing in all rows
    c: Floats  # (n, K)


class IncompletePosterior(NamedTuple):
    """The posterior of each row; u = x / sqrt(tau2)."""

    log_sum: Floats  # (n,) log sum over S of exp f(S); of one support alone: its f(S)
    inclusion: Floats  # (n, K) p(z_k = 1 | y_O)
    H: Floats  # (n, K) E[u z]
    second: Floats  # (n, P) pairs of E[(u z)(u z)']
    members: Members  # (n, L) the MAP support
    probability: Floats  # (n,) its probability
    scores: Floats  # (n, K) E[u z] given that support


class SupportLayout(NamedTuple):
    """Where the entries of all C supports lie; U = L(L+1)/2."""

    sets: Members  # (C, L), ascending
    entries: Members  # (L, L, C) pairs of A that make A_SS
    slots: scipy.sparse.csr_array  # (K, L C) sums slots over the supports that hold a factor
    pairs: scipy.sparse.csr_array  # (P, U C) sums upper entries over the supports that hold a pair
    holds: scipy.sparse.csr_array  # (K, C)


def is_exact(n_components: int, n_active: int) -> bool:
    """Whether all supports are summed."""
    return math.comb(n_components, n_active) <= MOST_SETS


@cache
def layout(K: int, L: int) -> SupportLayout:
    """List all L-subsets of K and where their entries belong."""
    sets = np.array(list(itertools.combinations(range(K), L)), dtype=np.int64)
    C, number = len(sets), np.zeros((K, K), dtype=np.int64)
    upper = np.triu_indices(K)
    number[upper] = np.arange(len(upper[0]))
    number = np.maximum(number, number.T)
    entries = number[sets.T[:, None, :], sets.T[None, :, :]]
    of_pairs = entries[np.triu_indices(L)]
    each = np.tile(np.arange(C), L)
    return SupportLayout(
        sets,
        entries,
        _sums(sets.T.ravel(), np.arange(L * C), (K, L * C)),
        _sums(of_pairs.ravel(), np.arange(of_pairs.size), (len(upper[0]), of_pairs.size)),
        _sums(sets.T.ravel(), each, (K, C)),
    )


def _sums(rows: Array, columns: Array, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def posterior(projections: IncompleteProjections, n_active: int) -> IncompletePosterior:
    """Sum over all supports of every row."""
    n, K = projections.c.shape
    at = layout(K, n_active)
    size = max(1, BLOCK_FLOATS // at.entries.size)
    same_pattern = len(projections.A) < n
    common = _inverse(projections.A.T[at.entries]) if same_pattern else None
    parts = []
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        inverse = common or _inverse(np.ascontiguousarray(projections.A[part].T)[at.entries])
        parts.append(_block(projections.c[part], inverse, at))
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


def _block(c: Floats, inverse: tuple[Floats, Floats], at: SupportLayout) -> tuple[Array, ...]:
    """Sum over the supports of rows c (n, K), with inv(Lam_S) (L, L, C, n) and log|Lam_S|."""
    V, log_det = inverse
    n, K = c.shape
    C, L = at.sets.shape
    i, j = np.triu_indices(L)
    c_S = np.ascontiguousarray(c.T)[at.sets.T]  # (L, C, n)
    v = (V * c_S[None]).sum(axis=1)  # inv(Lam_S) c_S
    f = 0.5 * ((v * c_S).sum(axis=0) - log_det)  # (C, n)
    log_sum = logsumexp(f, axis=0)
    p = np.exp(f - log_sum)  # p(S | y_O)
    mean = p * v
    second = mean[i] * v[j] + p * V[i, j]
    best, rows = f.argmax(axis=0), np.arange(n)
    members = at.sets[best]
    scores = np.zeros((n, K))
    scores[rows[:, None], members] = v[:, best, rows].T
    return (
        log_sum,
        (at.holds @ p).T,
        (at.slots @ mean.reshape(L * C, n)).T,
        (at.pairs @ second.reshape(len(i) * C, n)).T,
        members,
        p[best, rows],
        scores,
    )


def map_support(
    projections: IncompleteProjections, n_active: int, members: Members | None
) -> IncompletePosterior:
    """Search for the MAP support of every row from `members` (n, L), or greedily; never lowers f.

    The posterior given the support found, which has all probability.
    """
    n, K = projections.c.shape
    upper = np.triu_indices(K)
    start = np.full((n, n_active), -1, dtype=np.int64) if members is None else members
    found, H = np.empty((n, n_active), dtype=np.int64), np.empty((n, K))
    second, value = np.empty((n, len(upper[0]))), np.empty(n)
    seed = np.full(1, SEED, dtype=np.uint64)
    for row in range(n):
        A = np.zeros((K, K))
        A[upper] = projections.A[min(row, len(projections.A) - 1)]
        A = A + np.triu(A, 1).T
        one = RowSupports(projections.c[row : row + 1], start[row : row + 1], seed)
        chosen, moments = row_blocks.search(
            one, MODE, CollapsedModel(A, 1.0), keep=members is not None
        )
        found[row] = np.sort(chosen[0])
        H[row], second[row], value[row] = moments.H[0], moments.second[upper], moments.value[0]
    active = np.zeros((n, K))
    np.put_along_axis(active, found, 1.0, axis=1)
    return IncompletePosterior(value, active, H, second, found, np.ones(n), H)
