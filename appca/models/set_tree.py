"""Sums over all supports of incomplete rows, as derivatives of the logarithm of one sum.

With Lam = I + A of `missing_supports`, take M = Lam, b = c and J = L in

    F(M, b) = log sum_R exp g(R),    g(R) = -1/2 log|M_RR| + s/2 b_R' inv(M_RR) b_R,    s = 1,

over all sets R of J members. Then E[u z] = dF/db and E[(u z)(u z)'] = -2 dF/dM. Where J = K - L is
less, R are the components that a support leaves out, M = inv(Lam), b = M c, s = -1, and

    log sum_S exp f(S) = F + 1/2 (log|M| + b'c),    E[u z] = b + M h,    h = dF/db,
    E[(u z)(u z)'] = M + b b' + b (M h)' + (M h) b' + 2 M (dF/dM) M.

Sets are the leaves of a tree. To enter a branch eliminates its component from M, bordered by b with
corner 0; the corner is then -b_R' inv(M_RR) b_R, the product of the pivots |M_RR|, and the last
member of a set needs its own entry and that of b alone. To leave a branch adds derivatives by what
was eliminated to those by what it was eliminated from (differentiation in reverse): some hundred
products a branch, where factors of each of 924 supports of six took as many thousand.
"""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

LANES = 64  # rows that go through together, fewer of large matrices
MOST_NUMBERS = 2**18


class IncompletePosterior(NamedTuple):
    """The posterior of n rows. Pairs are the entries k <= l of a symmetric K x K matrix."""

    log_sum: Floats  # (n,) log sum over S of exp f(S); of one support alone: its f(S)
    inclusion: Floats  # (n, K) p(z_k = 1 | y_O)
    H: Floats  # (n, K) E[u z]
    second: Floats  # (n, P) pairs of E[(u z)(u z)']
    members: Numbers  # (n, L) the MAP support
    probability: Floats  # (n,) its probability


@cache
def supports(n_components: int, n_active: int) -> Numbers:
    """List all supports (C, L), in the order of what is left out where that is less."""
    K, J = n_components, min(n_active, n_components - n_active)
    sets = list(itertools.combinations(range(K), J))
    if n_active > J:
        sets = [tuple(set(range(K)).difference(left_out)) for left_out in sets]
    return np.sort(np.array(sets, np.int64), axis=1)


def summed(pairs: Floats, c: Floats, n_active: int) -> IncompletePosterior:
    """Sum over all supports of rows c (n, K), with pairs of Lam (n, P), or (1, P) for all rows."""
    (n, K), J, sets = c.shape, min(n_active, c.shape[1] - n_active), supports(c.shape[1], n_active)
    sums = np.zeros(n), np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, pairs.shape[1]))
    best, probability = np.zeros(n, np.int64), np.ones(n)
    M, b, left_out = pairs, c, n_active > J
    if left_out:
        Lam = unfolded(pairs, K)
        inverse: Floats = np.asarray(np.linalg.inv(Lam), dtype=np.float64)
        M, b = inverse[:, *np.triu_indices(K)], np.matvec(inverse, c)
    if J:
        tree = SetTree(K, J, -1.0 if left_out else 1.0, len(sets))
        for start in range(0, n, tree.width):
            part = slice(start, min(start + tree.width, n))
            tree.take(M[part] if len(M) > 1 else M, b[part])
            best[part], probability[part] = tree.weigh(sums[0][part])
            tree.add(*(array[part] for array in sums[1:]))
    if left_out:
        half = 0.5 * (np.vecdot(b, c) - np.linalg.slogdet(Lam)[1])
        # from sums over sets of what is left out to those over supports
        _, used, h, second = sums
        i, j = np.triu_indices(K)
        change, both = np.matvec(inverse, h), inverse - inverse @ unfolded(second, K) @ inverse
        H = b + change
        pairs = both[:, i, j] + H[:, i] * H[:, j] - change[:, i] * change[:, j]
        sums = sums[0] + half, 1.0 - used, H, pairs
    return IncompletePosterior(*sums, sets[best], probability)


def unfolded(pairs: Floats, K: int) -> Floats:
    """Return the symmetric matrices (n, K, K) of pairs (n, P)."""
    i, j = np.triu_indices(K)
    whole = np.empty((len(pairs), K, K))
    whole[:, i, j] = whole[:, j, i] = pairs
    return whole


@cache
def steps(n_components: int, n_members: int) -> tuple[Numbers, Numbers]:
    """List the steps (n, 4) of `set_kernels.walk` that weigh all sets, and that add up."""
    from appca.models.set_kernels import ADD, ENTER, LEAVE, WEIGH

    K, J, instructions, leaf = n_components, n_members, [], 0

    def below(depth: int, first: int) -> None:
        nonlocal leaf
        if depth == J - 1:
            instructions.append((WEIGH, depth, first - 1, leaf))
            leaf += K - first
            return
        for k in range(first, K - (J - depth - 1)):
            instructions.append((ENTER, depth + 1, k, leaf))
            below(depth + 1, k + 1)
            instructions.append((LEAVE, depth + 1, k, leaf))

    below(0, 0)
    adding = np.array(instructions)
    weighing = adding[adding[:, 0] != LEAVE]
    adding[adding[:, 0] == WEIGH, 0] = ADD
    return weighing, adding


class SetTree:
    """Some rows side by side, and memory for their sums over sets of J >= 1 members."""

    def __init__(self, n_components: int, n_members: int, sign: float, n_sets: int) -> None:
        K, J, Q = n_components, n_members, n_components + 1
        self.width = w = min(LANES, max(8, MOST_NUMBERS // (J * Q * Q)))
        self._steps, self._how = steps(K, J), (J, sign)
        i, j = np.triu_indices(K)
        self._pairs, self._edge = i * Q + j, np.arange(K) * Q + K
        self._double = np.where(i == j, -2.0, -1.0)[:, None]  # two entries of M are one pair
        self._M, self._N = np.zeros((2, J * Q * Q, w))
        self._M[np.arange(K) * (Q + 1)] = 1.0
        self._out, self._used = np.empty((2, n_sets, w)), np.empty((K, w))
        self._room, self._n = np.ones((J + Q + 2, w)), 0

    def take(self, M: Floats, b: Floats) -> None:
        """Go on to rows b (n, K), n at most `width`, and the pairs of their M (n, P) or (1, P)."""
        self._n = len(b)
        self._M[self._pairs, : self._n] = M.T
        self._M[self._edge, : self._n] = b.T

    def weigh(self, F: Floats) -> tuple[Numbers, Floats]:
        """Fill F (n,); return the number of the best set and its probability (n,)."""
        from appca.models.set_kernels import walk

        walk(self._steps[0], self._how, self._M, self._N, self._out, self._used, self._room)
        g, det = self._out
        g *= self._how[1]
        g += np.log(det, out=det)
        g *= -0.5
        best = g.argmax(axis=0)
        top = g[best, np.arange(self.width)]
        np.exp(np.subtract(g, top, out=g), out=g)
        total = g.sum(axis=0)
        g /= total
        F[:] = (top + np.log(total))[: self._n]
        return best[: self._n], (1.0 / total)[: self._n]

    def add(self, used: Floats, h: Floats, second: Floats) -> None:
        """Write probabilities of members (n, K), dF/db (n, K) and pairs of -2 dF/dM (n, P)."""
        from appca.models.set_kernels import walk

        self._N[: (len(self._used) + 1) ** 2] = self._used[:] = 0.0
        walk(self._steps[1], self._how, self._M, self._N, self._out, self._used, self._room)
        used[:], h[:] = self._used[:, : self._n].T, self._N[self._edge, : self._n].T
        second[:] = (self._N[self._pairs, : self._n] * self._double).T
