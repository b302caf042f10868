"""The posterior over supports of incomplete rows, where W_O'W_O is not the identity.

W_O are the rows of W at the observed entries of a row, whose missing ones differ from row to row.
With x = sqrt(tau2) u and

    A = sqrt(tau2) W_O'W_O sqrt(tau2) / sigma2,    c = sqrt(tau2) W_O'(y - mu)_O / sigma2,

the collapsed posterior of adaptive factor analysis (`slot_kernels`) holds with prior precision 1,

    log p(S | y_O) = const + f(S),    f(S) = -1/2 log|Lam_S| + 1/2 c_S' inv(Lam_S) c_S,
    Lam_S = I + A_SS,    v_S = E[u | S, y_O] = inv(Lam_S) c_S,
    E[u u' | S, y_O] = inv(Lam_S) + v_S v_S'.

Up to `MOST_SETS` supports all are summed (`support_sums`). Beyond, each row is given wholly
to the best support that single replacements find (classification EM), and whatever is built on that
says so.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.incomplete import support_sums
from appca.models.incomplete.support_sums import IncompletePosterior
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


def is_exact(n_components: int, n_active: int) -> bool:
    """Whether all supports are summed."""
    return math.comb(n_components, n_active) <= MOST_SETS


def posterior(projections: IncompleteProjections, n_active: int) -> IncompletePosterior:
    """Sum over all supports of every row."""
    A, c = projections
    i, j = np.triu_indices(c.shape[1])
    return support_sums.summed(A + (i == j), c, n_active)


def scores(projections: IncompleteProjections, members: Members) -> Floats:
    """Return E[u z] (n, K) given the members (n, L) of each row's support."""
    A, c = projections
    (n, K), L = c.shape, members.shape[1]
    rows = np.minimum(np.arange(n), len(A) - 1)[:, None, None]
    Lam = np.eye(L) + support_sums.unfolded(A, K)[rows, members[:, :, None], members[:, None, :]]
    v = np.linalg.solve(Lam, np.take_along_axis(c, members, axis=1)[:, :, None])[:, :, 0]
    found = np.zeros((n, K))
    np.put_along_axis(found, members, v, axis=1)
    return found


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
    return IncompletePosterior(value, active, H, second, found, np.ones(n))
