"""The posterior over supports of incomplete rows, where W_O'W_O is not the identity.

W_O are the rows of W at the observed entries of a row, whose missing ones differ from row to row.
With x = sqrt(tau2) u and

    A = sqrt(tau2) W_O'W_O sqrt(tau2) / sigma2,    c = sqrt(tau2) W_O'(y - mu)_O / sigma2,

the collapsed posterior of adaptive factor analysis (`slot_kernels`) holds with prior precision 1,

    log p(S | y_O) = const + f(S),    f(S) = -1/2 log|Lam_S| + 1/2 c_S' inv(Lam_S) c_S,
    Lam_S = I + A_SS,    v_S = E[u | S, y_O] = inv(Lam_S) c_S,
    E[u u' | S, y_O] = inv(Lam_S) + v_S v_S'.

Up to `MOST_SETS` supports all are summed (`support_sums`). Beyond, a row has its best support and
all its exchanges (`support_exchanges`), a lower bound, and whatever is built on that says so.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.incomplete import support_exchanges, support_sums
from appca.models.incomplete.support_sums import IncompletePosterior

Floats = NDArray[np.float64]
Members = NDArray[np.int64]

MOST_SETS = 5000


class IncompleteProjections(NamedTuple):
    """All that supports depend on. Pairs are the entries k <= l of a symmetric K x K matrix."""

    A: Floats  # (n, P) pairs; (1, P) where the same entries are missing in all rows
    c: Floats  # (n, K)


def is_exact(n_components: int, n_active: int) -> bool:
    """Whether all supports are summed."""
    return math.comb(n_components, n_active) <= MOST_SETS


def posterior(
    projections: IncompleteProjections, n_active: int, members: Members | None = None
) -> IncompletePosterior:
    """Sum over all supports of every row, or over those around its best, sought from `members`."""
    A, c = projections
    i, j = np.triu_indices(c.shape[1])
    if is_exact(c.shape[1], n_active):
        return support_sums.summed(A + (i == j), c, n_active)
    return support_exchanges.summed(A + (i == j), c, n_active, members)


def scores(projections: IncompleteProjections, members: Members) -> Floats:
    """Return E[u z] (n, K) given the members (n, L) of each row's support."""
    A, c = projections
    (n, K), L = c.shape, members.shape[1]
    rows = np.minimum(np.arange(n), len(A) - 1)[:, None, None]
    Lam = np.eye(L) + support_sums.unfolded(A, K)[rows, members[:, :, None], members[:, None, :]]
    v = np.linalg.solve(Lam, np.take_along_axis(c, members, axis=1)[:, :, None])[:, :, 0]
    means = np.zeros((n, K))
    np.put_along_axis(means, members, v, axis=1)
    return means


def compile_ahead() -> None:
    """Compile the sum over supports, once a machine, so that no fit waits for it."""
    posterior(IncompleteProjections(np.zeros((1, 3)), np.zeros((1, 2))), 1)
