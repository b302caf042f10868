"""The posterior over supports of incomplete rows, where W_O'W_O is not the identity.

W_O are the rows of W at the observed entries of a row, whose missing ones differ from row to row.
With x = sqrt(tau2) u and

    A = sqrt(tau2) W_O'W_O sqrt(tau2) / sigma2,    c = sqrt(tau2) W_O'(y - mu)_O / sigma2,

the collapsed posterior of adaptive factor analysis (`slot_kernels`) holds with prior precision 1,

    log p(S | y_O) = const + f(S),    f(S) = -1/2 log|Lam_S| + 1/2 c_S' inv(Lam_S) c_S,
    Lam_S = I + A_SS,    v_S = E[u | S, y_O] = inv(Lam_S) c_S,
    E[u u' | S, y_O] = inv(Lam_S) + v_S v_S'.

Up to `MOST_SETS` supports all are summed (`support_sum_kernels`). Beyond, each row is given wholly
to the best support that single replacements find (classification EM), and whatever is built on that
says so.
"""

import itertools
import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.supports import row_blocks
from appca.models.supports.row_supports import CollapsedModel, RowSupports

Floats = NDArray[np.float64]
Members = NDArray[np.int64]

MOST_SETS = 1000
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


def is_exact(n_components: int, n_active: int) -> bool:
    """Whether all supports are summed."""
    return math.comb(n_components, n_active) <= MOST_SETS


@cache
def layout(K: int, L: int) -> tuple[Members, Members]:
    """List all L-subsets of K in rising order (C, L), and number the pairs of K (K, K)."""
    sets, number = np.array(list(itertools.combinations(range(K), L))), np.zeros((K, K), np.int64)
    number[np.triu_indices(K)] = np.arange(K * (K + 1) // 2)
    return sets, np.maximum(number, number.T)


def posterior(projections: IncompleteProjections, n_active: int) -> IncompletePosterior:
    """Sum over all supports of every row."""
    from appca.models.incomplete import support_sum_kernels

    A, c = (np.ascontiguousarray(part) for part in projections)
    n, K = c.shape
    sets, pairs = layout(K, n_active)
    members, probability = np.empty((n, n_active), np.int64), np.empty(n)
    sums = np.empty(n), np.empty((n, K)), np.empty((n, K)), np.empty((n, A.shape[1]))
    support_sum_kernels.posterior(A, c, sets, pairs, (*sums, members, probability))
    rows = np.minimum(np.arange(n), len(A) - 1)[:, None, None]
    Lam = np.eye(n_active) + A[rows, pairs[members[:, :, None], members[:, None, :]]]
    v = np.linalg.solve(Lam, np.take_along_axis(c, members, axis=1)[:, :, None])[:, :, 0]
    scores = np.zeros((n, K))
    np.put_along_axis(scores, members, v, axis=1)
    return IncompletePosterior(*sums, members, probability, scores)


def compile_ahead() -> None:
    """Compile the sum over supports, once a machine, so that no fit waits for it."""
    posterior(IncompleteProjections(np.zeros((1, 3)), np.zeros((1, 2))), 1)


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
