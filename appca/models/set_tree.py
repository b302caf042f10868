"""Sums over all supports of L components, as derivatives of the logarithm of one sum.

Incomplete rows have a matrix each (`gaps`), those of adaptive factor analysis share one. With
Lam = I + A of `gaps`, or Lam = prior I + A of `slot_kernels`, take M = Lam, b = c and J = L in

    F(M, b) = log sum_R exp g(R),    g(R) = -1/2 log|M_RR| + s/2 b_R' inv(M_RR) b_R,    s = 1,

over all sets R of J members. Then E[u z] = dF/db and E[(u z)(u z)'] = -2 dF/dM. Where J = K - L is
less, R are the components that a support leaves out, M = inv(Lam), b = M c, s = -1, and

    log sum_S exp f(S) = F + 1/2 (log|M| + b'c),    E[u z] = b + M h,    h = dF/db,
    E[(u z)(u z)'] = M + b b' + b (M h)' + (M h) b' + 2 M (dF/dM) M.

Sets are leaves of a tree. To enter a branch eliminates its component from M, bordered by b with
corner 0: the corner becomes -b_R' inv(M_RR) b_R, the product of the pivots |M_RR|. To leave one
adds its derivatives to those of the branch above (differentiation in reverse).
"""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.numerics import zeros
from appca.models.threads import in_order

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Members = NDArray[np.int64]

LANES, MOST_NUMBERS = 64, 2**18  # rows that are processed together, and their numbers
LEAST_ROWS_A_THREAD, MOST_SHARES = 512, 16
STEEP = 1e4  # condition of Lam from which sums over left-out components lose digits


class CollapsedModel(NamedTuple):
    """The parameters of log p(y | S), the scores x integrated out."""

    A: Floats  # (K, K) W'W / sigma2
    prior: float  # 1 / tau2, the prior precision of a score


class SetSums(NamedTuple):
    """The posterior over the supports of n rows. Pairs are the entries k <= l of a matrix."""

    log_sum: Floats  # (n,) log sum over S of exp f(S); of one support alone: its f(S)
    value: Floats  # (n,) f of the most probable support
    best: Any  # which that is: members (n, L), or (n, K) bool where sizes differ
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    H: Floats  # (n, K) E[u z]
    second: Floats  # (n, P) pairs of E[(u z)(u z)'], or its weighted sum (K, K) over rows
    drawn: Any = None  # one drawn from the posterior, as `best`


@cache
def supports(n_components: int, n_active: int) -> Members:
    """List all supports (C, L), in the order of the left-out components if these are fewer."""
    K, J = n_components, min(n_active, n_components - n_active)
    sets = list(itertools.combinations(range(K), J))
    if n_active > J:
        sets = [tuple(set(range(K)).difference(left_out)) for left_out in sets]
    return np.sort(np.array(sets, np.int64), axis=1)


def unfolded(pairs: Floats, K: int) -> Floats:
    """Return the symmetric matrices (n, K, K) of pairs (n, P)."""
    i, j = np.triu_indices(K)
    whole = np.empty((len(pairs), K, K))
    whole[:, i, j] = whole[:, j, i] = pairs
    return whole


class SetProblem(NamedTuple):
    """F(M, b) of n rows, and how sums over supports follow from it."""

    M: Floats  # (n, P) pairs, or (1, P) of all rows; (K, K) where these share Lam
    b: Floats  # (n, K)
    n_members: int  # J
    offset: Floats  # (n,) or (1,), log sum exp f less F
    sign: float  # s
    inverse: Floats | None  # (n or 1, K, K), or (K, K), inv(Lam) where R are those left out


def problem(pairs: Floats, c: Floats, n_active: int) -> SetProblem:
    """State the sum over supports of rows c (n, K), with pairs of Lam (n, P), or (1, P) for all."""
    K = c.shape[1]
    if n_active <= K - n_active:
        return SetProblem(pairs, c, n_active, np.zeros(1), 1.0, None)
    Lam = unfolded(pairs, K)
    inverse: Floats = np.asarray(np.linalg.inv(Lam), dtype=np.float64)
    b = np.matvec(inverse, c)
    offset = 0.5 * (np.vecdot(b, c) - np.linalg.slogdet(Lam)[1])
    return SetProblem(inverse[:, *np.triu_indices(K)], b, K - n_active, offset, -1.0, inverse)


def shared_problem(
    model: CollapsedModel, n_active: int
) -> tuple[float, Callable[[Floats], SetProblem]]:
    """Return s, and the problem of rows c (n, K) that share Lam, f(S) with |Lam_S / prior|."""
    K, L, of_supports = len(model.A), n_active, True
    Lam, offset = model.A + model.prior * np.eye(K), 0.5 * L * math.log(model.prior)
    if L > K - L:
        values = np.linalg.eigvalsh(Lam)
        of_supports = L < K and values[-1] > STEEP * values[0]
    if of_supports:
        return 1.0, lambda c: SetProblem(Lam, c, L, np.full(1, offset), 1.0, None)
    offset -= 0.5 * float(np.log(values).sum())
    M: Floats = np.asarray(np.linalg.inv(Lam), np.float64)

    def left_out(c: Floats) -> SetProblem:
        b = times(c, M)
        return SetProblem(M, b, K - L, offset + 0.5 * np.vecdot(b, c), -1.0, M)

    return -1.0, left_out


def times(c: Floats, M: Floats) -> Floats:
    """Multiply rows c (n, K) by M (K, K), each with the same bits among any other rows."""
    from appca.models.product_kernels import multiply

    b = np.empty(c.shape)
    multiply(np.ascontiguousarray(c), M, b)
    return b


def summed(pairs: Floats, c: Floats, n_active: int) -> SetSums:
    """Sum over all supports of rows c (n, K), with pairs of Lam (n, P), or (1, P) for all rows."""
    (n, K), system = c.shape, problem(pairs, c, n_active)
    top, total, best = np.zeros(n), np.ones(n), np.zeros(n, np.int64)
    used, h, second = np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, len(pairs.T)))
    tree = SetTree(system)
    for part in tree.parts():
        top[part], best[part], total[part] = tree.weigh()
        used[part], h[part], second[part] = tree.differentiate()
    i, j = np.triu_indices(K)
    second *= np.where(i == j, -2.0, -1.0)  # two entries of M are one pair
    if system.inverse is not None:  # the sums are over sets of left-out components
        M = system.inverse
        change, both = np.matvec(M, h), M - M @ unfolded(second, K) @ M
        used, h = 1.0 - used, system.b + change
        second = both[:, i, j] + h[:, i] * h[:, j] - change[:, i] * change[:, j]
    value = top + system.offset
    return SetSums(value + np.log(total), value, supports(K, n_active)[best], used, h, second)


def sums(
    c: Floats,
    model: CollapsedModel,
    n_active: int | None = None,
    *,
    odds: Any = None,
    weights: Floats | None = None,
    uniforms: Floats | None = None,
    moments: bool = True,
) -> SetSums:
    """Sum over all supports of L components of rows c (n, K) that share Lam.

    With log odds (K,) of components, sums are over all 2^K sets, f(S) plus the odds of members. Row
    n counts weights[n] times in `second`. By numbers in [0, 1) (n,) a support of each is drawn.
    Without `moments` inclusion, H and `second` are zero.
    """
    (n, K), counts = c.shape, np.ones(len(c)) if weights is None else weights
    sets: Any
    if n_active is None:
        costs, sets = -2.0 * odds - math.log(model.prior), all_sets(K)
        rest = {"n_members": K, "offset": np.zeros(1), "sign": 1.0, "inverse": None}
        state: Any = partial(SetProblem, model.A + model.prior * np.eye(K), **rest)
    else:
        costs, sets, (sign, state) = None, supports(K, n_active), shared_problem(model, n_active)
        if sign > 0.0 and n_active > K - n_active:  # in the order of the members
            sets = sets[::-1]
    which, value, total = np.zeros((2, n), np.int64), np.zeros(n), np.ones(n)
    used, H, second = np.zeros((n, K)), np.zeros((n, K)), np.zeros((K, K))

    def share(rows: slice) -> Floats:
        system, w = state(c[rows]), counts[rows]
        (best, drawn), f, parts = which[:, rows], value[rows], total[rows]
        tree, r, h = SharedSetTree(system, costs), used[rows], H[rows]
        for part in tree.parts():
            f[part], best[part], parts[part] = tree.weigh()
            if uniforms is not None:
                drawn[part] = tree.drawn(uniforms[rows][part])
            if moments:
                r[part], h[part] = tree.differentiate(w[part])
        f += system.offset
        slopes: Floats = tree.slopes[0] if system.n_members else np.zeros((K, K))
        if system.inverse is None or not moments:
            return -slopes - slopes.T
        M, change = system.inverse, times(h, system.inverse)
        r[:], h[:] = 1.0 - r, system.b + change
        both = w.sum() * M + M @ (slopes + slopes.T) @ M
        return np.asarray(both + (h.T * w) @ h - (change.T * w) @ change)

    shares = _shares(n)
    alone = len(shares) == 1 and n_active is None  # there is no BLAS to hold to one thread
    for part in map(share, shares) if alone else in_order(share, shares):
        second += part
    best, drawn = sets[which]
    return SetSums(value + np.log(total), value, best, used, H, second, drawn)


def _shares(n: int) -> list[slice]:
    size = max(LEAST_ROWS_A_THREAD, -(-n // MOST_SHARES))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


@cache
def all_sets(n_components: int) -> Mask:
    """List the sets (2^K, K) of all sizes, the empty one last, as `steps` comes to them."""
    codes: list[int] = []

    def below(code: int, first: int) -> None:
        codes.extend(code | 1 << k for k in range(first, n_components))
        for k in range(first, n_components - 1):
            below(code | 1 << k, k + 1)

    below(0, 0)
    return np.asarray(np.array([*codes, 0])[:, None] >> np.arange(n_components) & 1, bool)


@cache
def steps(n_components: int, n_members: int, all_sizes: bool) -> tuple[Members, Members]:
    """List the steps (n, 4) of `set_kernels.walk` that weigh all sets, and that add up."""
    from appca.models.set_kernels import ADD, ENTER, LEAVE, WEIGH

    K, J, instructions, leaf = n_components, n_members, [], 0

    def below(depth: int, first: int) -> None:
        nonlocal leaf
        if all_sizes or depth == J - 1:
            instructions.append((WEIGH, depth, first - 1, leaf))
            leaf += K - first
        if depth == J - 1:
            return
        for k in range(first, K - (1 if all_sizes else J - depth - 1)):
            instructions.append((ENTER, depth + 1, k, leaf))
            below(depth + 1, k + 1)
            instructions.append((LEAVE, depth + 1, k, leaf))

    below(0, 0)
    adding = np.array(instructions)
    weighing = adding[adding[:, 0] != LEAVE]
    adding[adding[:, 0] == WEIGH, 0] = ADD
    return weighing, adding


class SetTree:
    """Some rows side by side, each with its M, and memory for their sums over sets of J members."""

    def __init__(self, system: SetProblem) -> None:
        K, J = system.b.shape[1], system.n_members
        Q, n_sets = K + 1, math.comb(K, J)
        self._system, self._how = system, (J, system.sign)
        self._width = w = min(LANES, max(8, MOST_NUMBERS // max(1, J * Q * Q)))
        i, j = np.triu_indices(K)
        self._pairs, self._edge = i * Q + j, np.arange(K) * Q + K
        self._M, self._N = np.zeros((2, J * Q * Q, w))
        self._out, self._used = np.empty((2, n_sets, w)), np.empty((K, w))
        self._room, self._n = np.ones((J + Q + 2, w)), 0
        if J:
            self._M[np.arange(K) * (Q + 1)] = 1.0

    def parts(self) -> Iterator[slice]:
        """Take some rows after others; none where the only set is the empty one."""
        n, J = len(self._system.b), self._system.n_members
        for start in range(0, n if J else 0, self._width):
            part = slice(start, min(start + self._width, n))
            self._n = part.stop - start
            M = self._system.M
            self._M[self._pairs, : self._n] = (M[part] if len(M) > 1 else M).T
            self._M[self._edge, : self._n] = self._system.b[part].T
            yield part

    def _walk(self, number: int) -> None:
        from appca.models.set_kernels import walk

        instructions = steps(len(self._used), self._how[0], False)[number]
        walk(instructions, self._how, self._M, self._N, self._out, self._used, self._room)

    def weigh(self) -> tuple[Floats, Members, Floats]:
        """Return the largest g (n,), the number of its set, and the sum of exp(g - largest)."""
        self._walk(0)
        g, det = self._out
        g *= self._how[1]
        g += np.log(det, out=det)
        g *= -0.5
        best = g.argmax(axis=0)
        top = g[best, np.arange(self._width)]
        np.exp(np.subtract(g, top, out=g), out=g)
        total = g.sum(axis=0)
        g /= total
        return top[: self._n], best[: self._n], total[: self._n]

    def differentiate(self) -> tuple[Floats, Floats, Floats]:
        """Probabilities of members (n, K), dF/db (n, K), pairs of dF/dM (n, P), after `weigh`."""
        self._N[: (len(self._used) + 1) ** 2] = self._used[:] = 0.0
        self._walk(1)
        n = self._n
        return self._used[:, :n].T, self._N[self._edge, :n].T, self._N[self._pairs, :n].T


class SharedSetTree:
    """Some rows that share M; with `costs` (K,) of members the sums are over all sizes up to J."""

    def __init__(self, system: SetProblem, costs: Floats | None = None) -> None:
        K, J, w = system.b.shape[1], system.n_members, LANES
        self._all_sizes, self._costs = costs is not None, np.zeros(K) if costs is None else costs
        n_sets = 2**K if self._all_sizes else math.comb(K, J)
        self._system, self._how, self._n = system, (J, system.sign), 0
        self._S, self.slopes = np.zeros((2, J, K, K))
        self._b, self._N = zeros((2, J, K + 1, w))
        self._g, self._used, self._lanes = (zeros((m, w)) for m in (n_sets, K, 3))
        self._sums, self._best, self._logs = np.zeros((3, w)), np.zeros(w, np.int64), np.zeros(J)
        if J:
            self._S[0] = system.M

    def parts(self) -> Iterator[slice]:
        """Take some rows after others; none where the only set is the empty one."""
        n, J = len(self._system.b), self._system.n_members
        for start in range(0, n if J else 0, LANES):
            part = slice(start, min(start + LANES, n))
            self._n = part.stop - start
            self._b[0, :-1, : self._n] = self._system.b[part].T
            yield part

    def _walk(self, number: int) -> None:
        from appca.models.set_kernels import walk_shared

        walk_shared(
            *(steps(len(self._used), self._how[0], self._all_sizes)[number], self._how),
            *(self._S, self.slopes, self._b, self._N, self._g, self._used),
            *(self._lanes, self._logs, self._costs),
        )

    def weigh(self) -> tuple[Floats, Members, Floats]:
        """Return the largest g (n,), the number of its set, and the sum of exp(g - largest)."""
        from appca.models.set_kernels import normalise

        self._walk(0)
        if self._all_sizes:
            self._g[-1] = 0.0
        top, total, power = self._sums
        normalise(self._g, top, self._best, total, power, power.view(np.int64))
        return top[: self._n], self._best[: self._n], total[: self._n]

    def drawn(self, uniforms: Floats) -> Members:
        """Return the numbers of sets drawn by numbers in [0, 1) (n,), after `weigh`."""
        passed = np.cumsum(self._g[:, : self._n], axis=0)
        return np.asarray((passed > uniforms * passed[-1]).argmax(axis=0))

    def differentiate(self, weights: Floats) -> tuple[Floats, Floats]:
        """Probabilities of members (n, K) and dF/db (n, K); adds weighted dF/dM to `slopes[0]`."""
        self._N[0] = self._used[:] = self._lanes[0] = 0.0
        self._lanes[0, : self._n] = weights
        self._walk(1)
        return self._used[:, : self._n].T, self._N[0, :-1, : self._n].T
