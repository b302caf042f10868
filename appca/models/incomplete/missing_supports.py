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
LEAST = 1e-18  # probability of a support in all lanes below which it adds nothing
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
    A, c = projections
    n, K = c.shape
    sets, pairs = layout(K, n_active)
    members, probability = np.empty((n, n_active), np.int64), np.empty(n)
    sums = np.empty(n), np.empty((n, K)), np.empty((n, K)), np.empty((n, A.shape[1]))
    lanes = _Lanes(sets, pairs, A.shape[1])
    for start in range(0, n, lanes.width):
        part = slice(start, min(start + lanes.width, n))
        lanes.take(A[part] if len(A) > 1 else A, c[part])
        best, probability[part] = lanes.weigh(sums[0][part])
        members[part] = sets[best]
        lanes.add(*(array[part] for array in sums[1:]))
    rows = np.minimum(np.arange(n), len(A) - 1)[:, None, None]
    Lam = np.eye(n_active) + A[rows, pairs[members[:, :, None], members[:, None, :]]]
    v = np.linalg.solve(Lam, np.take_along_axis(c, members, axis=1)[:, :, None])[:, :, 0]
    scores = np.zeros((n, K))
    np.put_along_axis(scores, members, v, axis=1)
    return IncompletePosterior(*sums, members, probability, scores)


class _Lanes:
    """Some rows side by side, and room for what `support_sum_kernels` make of them."""

    def __init__(self, sets: Members, pairs: Members, n_pairs: int) -> None:
        from appca.models.incomplete.support_sum_kernels import LANES

        (C, L), K = sets.shape, len(pairs)
        self.width, self._sets = LANES, sets
        self._data = np.zeros((n_pairs, LANES)), np.zeros((K, LANES)), pairs
        flat = np.empty((L, LANES)), np.empty((L, LANES))
        last = np.zeros((L + 1, LANES)), np.empty((L, LANES)), np.empty(LANES)
        self._factors = np.empty((L, L, LANES)), *flat, *last
        self._f, self._n = np.empty((C, LANES)), 0
        self._sums = np.zeros((K, LANES)), np.zeros((K, LANES)), np.zeros((n_pairs, LANES))

    def take(self, A: Floats, c: Floats) -> None:
        """Go on to rows c (n, K), n at most `width`, and their A (n, P) or (1, P)."""
        self._n = len(c)
        for lanes, rows in zip(self._data, (A, c), strict=False):
            lanes[:, : self._n] = rows.T

    def weigh(self, log_sum: Floats) -> tuple[Members, Floats]:
        """Fill log_sum (n,); return the number of the best support and its probability (n,)."""
        from appca.models.incomplete.support_sum_kernels import visit

        visit(self._data, self._sets, self._factors, self._f, self._sums, False)
        best, lanes = self._f.argmax(axis=0), np.arange(self.width)
        top = self._f[best, lanes]
        np.exp(np.subtract(self._f, top, out=self._f), out=self._f)
        total = self._f.sum(axis=0)
        self._f /= total
        log_sum[:] = (top + np.log(total))[: self._n]
        return best[: self._n], self._f[best, lanes][: self._n]

    def add(self, *out: Floats) -> None:
        """Write the moments of the rows, see `IncompletePosterior`: inclusion, H and second."""
        from appca.models.incomplete.support_sum_kernels import visit

        for array in self._sums:
            array[:] = 0.0
        some = ~(self._f[:, : self._n].max(axis=1) < LEAST)
        visit(self._data, self._sets[some], self._factors, self._f[some], self._sums, True)
        for rows, lanes in zip(out, self._sums, strict=True):
            rows[:] = lanes[:, : self._n].T


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
