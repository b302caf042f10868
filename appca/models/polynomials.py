"""Elementary symmetric polynomials: exact sums over subsets of K components, and draws.

Subsets of exactly L components under weights exp(a), or of any size l with probability rho_l:

    p(y) / p(y | no component) = e_L(exp a) / C(K, L)    or    sum_l rho_l e_l(exp a) / C(K, l)

For few components, a small L, or any size, sums come from a table relative to the L-th largest
logit c (0 for any size). A component above c has the factor 1 if it is in the subset, else
exp(c - a); others have exp(a - c) and 1 (docs/mathematics.md, 1.1e). No size has probability zero.

Otherwise, sums come from a discrete Fourier transform of M points, in O(K) per row (1.1f, 1.1g).
With B_k ~ Bernoulli(p_k), p_k = 1 / (1 + exp(-a_k - t)), and a tilt t with sum_k p_k near L,

    e_L(exp a) = exp(-t L) prod_k (1 + exp(a_k + t)) P(B_1 + ... + B_K = L),
    r_k = p_k / P 1/M sum_m prod_{j != k} (1 - p_j + p_j exp(i theta_m)) exp(-i (L - 1) theta_m).

Errors are a few roundings of 1. Subsets are drawn by rejection, as B given that its sum is L.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from appca.models.numerics import Array, Floats, Mask, zeros
from appca.models.settings import LARGEST_FOR_COLUMNS

TABLE_FLOATS, LEAST_ROWS = 2**18, 64  # maximum size of a block's tables (cache), minimum rows
MOST_ENTRIES = 256  # maximum size of a row's table; the transform is faster beyond it
LEAST_WEIGHT = 1e-50  # products of smaller weights would be denormal, which is slow


def inclusion(logits: ArrayLike, n_active: int, wanted: bool = True) -> tuple[Floats, Floats]:
    """Return log e_L(exp a), (N,), and inclusion probabilities (N, K) for logits a (N, K).

    r_k = exp(a_k) e_{L-1}(exp a without k) / e_L(exp a), if `wanted`; each row sums to L.
    """
    a, L = _floats(logits), n_active
    n, K = a.shape
    if L in (0, K):
        return a.sum(axis=1, dtype=np.float64) * (L > 0), np.full(a.shape, float(L > 0))
    if K > LARGEST_FOR_COLUMNS and K * (L + 1) > MOST_ENTRIES:
        return by_points(a, L, wanted)
    log_e, r, weights = np.empty(n), np.empty(a.shape if wanted else 0), np.eye(L + 1)[L]
    for part in _parts(n, K, L):
        table = SubsetTable(a[part], L, kept=wanted)
        if wanted:
            log_e[part], r[part], _ = table.inclusion(weights)
        else:
            log_e[part] = table.base + np.log(table.sums[-1, -1])
    return log_e, r


def draw(rng: Generator, logits: ArrayLike, sizes: int | Floats) -> Mask:
    """Draw a subset per row, (N, K): of L components, or with probabilities of sizes (K + 1,)."""
    L = sizes if isinstance(sizes, int) else None if np.ndim(sizes) else int(np.asarray(sizes))
    a = _floats(logits)
    n, K = a.shape
    if L in (0, K):
        return np.full(a.shape, L != 0)
    if L is not None and K > LARGEST_FOR_COLUMNS:
        return _rejected(rng, a, L)
    uniforms, active = rng.random((n, K if L else K + 1)), np.empty(a.shape, dtype=bool)
    weights = None if L else np.exp(np.log(sizes) - log_counts(K))
    for part in _parts(n, K, L or K):
        table, u = SubsetTable(a[part], L), uniforms[part]
        if weights is None:
            size = np.full(len(u), L)
        else:
            reached = np.cumsum(table.sums[K] * weights[:, None], axis=0)
            size = (reached > u[:, K] * reached[-1]).argmax(axis=0)
        active[part] = table.walk(size, u)
    return active


def top(logits: ArrayLike, n_active: int) -> Mask:
    """Most probable support (N, K) of each row: its L largest logits, ties to the lower column."""
    a = _floats(logits)
    if n_active in (0, a.shape[1]):
        return np.full(a.shape, n_active > 0)
    n_rest = a.shape[1] - n_active
    threshold = np.partition(a, n_rest, axis=1)[:, n_rest, None]
    active = a >= threshold
    if np.count_nonzero(active) > len(a) * n_active:
        tied = np.flatnonzero(active.sum(axis=1) > n_active)
        above, equal = a[tied] > threshold[tied], a[tied] == threshold[tied]
        vacant = n_active - above.sum(axis=1, keepdims=True)
        active[tied] = above | (equal & (equal.cumsum(axis=1) <= vacant))
    return active


def _floats(logits: ArrayLike) -> NDArray[Any]:
    a = np.asarray(logits)
    return a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)


def _parts(n: int, K: int, n_active: int) -> list[slice]:
    step = max(LEAST_ROWS, TABLE_FLOATS // ((K + 2) * (n_active + 1)))
    return [slice(start, start + step) for start in range(0, n, step)]


class SubsetTable:
    """Sums over subsets of at most J components of some rows, relative to a level."""

    def __init__(self, logits: Array, n_active: int | None = None, *, kept: bool = True) -> None:
        """Fill the table (K + 1, J + 1, n) of logits (n, K), relative to the L-th largest."""
        a = np.array(logits.T, dtype=np.float64, order="C")  # loops run over rows
        (K, n), J = a.shape, len(a) if n_active is None else n_active
        self.base = np.zeros(n)
        if n_active is not None:
            level = np.partition(a, K - J, axis=0)[K - J]
            a -= level
            self.base += J * level
        above = a > 0.0
        self.base += a.sum(axis=0, where=above)
        w = np.exp(np.negative(np.abs(a, out=a), out=a), out=a)
        w *= w > LEAST_WEIGHT
        self.into, self.out = np.where(above, 1.0, w), np.where(above, w, 1.0)
        self.sums = sums = np.zeros((K + 1 if kept else 1, J + 1, n))
        sums[0, 0] = 1.0
        more = np.empty((J, n))
        for k in range(K):
            most, to = min(k + 1, J), k + 1 if kept else 0
            before = sums[k if kept else 0]
            np.multiply(self.into[k], before[:most], out=more[:most])
            np.multiply(before[: most + 1], self.out[k], out=sums[to, : most + 1])
            sums[to, 1 : most + 1] += more[:most]

    def inclusion(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log sums (n,), inclusion (n, K) and sizes (n, J + 1), given weights of sizes."""
        sums, (K, n) = self.sums, self.into.shape
        sizes = sums[K] * weights[:, None]
        total, J = sizes.sum(axis=0), len(weights) - 1
        after, r = np.repeat(weights[:, None], n, axis=1), np.empty((K, n))
        for k in range(K - 1, -1, -1):  # after[j]: completions if j of the first k + 1 are in
            most = min(k + 1, J)
            np.einsum("jn,jn->n", sums[k, :most], after[1 : most + 1], out=r[k])
            more = self.into[k] * after[1 : most + 1]
            after = self.out[k] * after[: most + (most == J)]
            after[:most] += more
        r *= self.into
        r = np.minimum(np.divide(r, total, out=r), 1.0, out=r)
        return self.base + np.log(total), r.T, (sizes / total).T

    def walk(self, size: NDArray[np.intp], uniforms: Floats) -> Mask:
        """Draw subsets (n, K) of given sizes (n,), from the last component to the first."""
        K, n = self.into.shape
        chosen, left, rows = np.zeros((n, K), dtype=bool), size, np.arange(n)
        for k in range(K - 1, -1, -1):
            with_k = self.into[k] * self.sums[k, left - 1, rows]  # unused if `left` is 0
            member = (left > 0) & (uniforms[:, k] * self.sums[k + 1, left, rows] < with_k)
            chosen[:, k] = member
            left = left - member
        return chosen


def log_binomial(n: int, k: int) -> float:
    """Return the log of the number of k-subsets of n items."""
    return math.log(math.comb(n, k))


def log_counts(n_components: int) -> Floats:
    """Return the logs (K + 1,) of the numbers C(K, l) of subsets by size."""
    sizes = np.arange(n_components + 1)
    return np.asarray(gammaln(n_components + 1) - gammaln(sizes + 1) - gammaln(sizes[::-1] + 1))


def over_supports(
    logits: Floats, sizes: int | Floats, wanted: bool = True
) -> tuple[Floats, Floats, Floats | None]:
    """Return log means (N,) over supports, inclusion (N, K), and learned sizes (N, K + 1)."""
    n, K = logits.shape
    if isinstance(sizes, int):
        log_e, r = inclusion(logits, sizes, wanted)
        return log_e - log_binomial(K, sizes), r, None
    log_sum, r, p = np.empty(n), np.empty((n, K)), np.empty((n, K + 1))
    weights = np.exp(np.log(sizes) - log_counts(K))
    for part in _parts(n, K, K):
        log_sum[part], r[part], p[part] = SubsetTable(logits[part]).inclusion(weights)
    return log_sum, r, p


def best(logits: Floats, sizes: int | Floats) -> tuple[Mask, Floats]:
    """Most probable subset (N, K) bool of each row, and its log weight (N,), as `log_weight`."""
    n, K = logits.shape
    if isinstance(sizes, int):
        chosen = top(logits, sizes)
        return chosen, log_weight(logits, chosen, sizes)
    order, gains = np.argsort(-logits, axis=1, kind="stable"), np.zeros((n, K + 1))
    np.cumsum(np.take_along_axis(logits, order, axis=1), axis=1, out=gains[:, 1:])
    gains += np.log(sizes) - log_counts(K)
    size, chosen = gains.argmax(axis=1), np.zeros((n, K), dtype=bool)
    np.put_along_axis(chosen, order, np.arange(K) < size[:, None], axis=1)
    return chosen, gains[np.arange(n), size]


def log_weight(logits: Floats, chosen: Mask, sizes: int | Floats) -> Floats:
    """Return the log weight (N,) of each row's subset (N, K) bool, including its prior."""
    K, weight = logits.shape[1], np.where(chosen, logits, 0.0).sum(axis=1)
    if isinstance(sizes, int):
        return np.asarray(weight - log_binomial(K, sizes))
    return np.asarray(weight + (np.log(sizes) - log_counts(K))[chosen.sum(axis=1)])


FARTHEST = 115.0  # nats from the L-th largest logit at which inclusion is certain
MOST_STEPS = 60
ROUNDING = 37.0  # exp(-37) is below the rounding of 1
AT_ONCE = 512  # number of factors >= 1/2 whose product does not underflow
LANES, MOST_NUMBERS = 64, 2**15  # rows side by side, and maximum number of logits


def by_points(a: Array, n_active: int, wanted: bool = True) -> tuple[Array, Array]:
    """Return log e_L (n,) and inclusion (n, K), if wanted, for logits a (n, K), 0 < L < K."""
    from appca.models.set_kernels import characteristic, inclusion

    log_e, r, (K, L) = np.empty(len(a)), np.empty(a.shape if wanted else 0), (a.shape[1], n_active)
    for part, centre, p, tilt, variance, (away, up, down) in _tilted(a, L):
        n, (size, turn, phase) = len(centre), points(variance, K, L)
        cosine, sine = np.cos(turn), np.sin(turn)
        re, im = np.where(turn > 0.0, 2.0, 0.0) * (np.cos(phase), -np.sin(phase))
        characteristic(p, cosine - 1.0, sine, re, im)
        total = 1.0 + re.sum(axis=0)
        # sum_k log(1 + exp(a_k + t)) - L t of logits about the L-th largest one
        larger = np.maximum(p[:K], 1.0 - p[:K], out=up)
        product = np.multiply.reduceat(larger, range(0, K, AT_ONCE), axis=0)
        likely = away > -tilt
        above = np.multiply(away, likely, out=down).sum(axis=0)
        above += (np.count_nonzero(likely, axis=0) - L) * tilt - np.log(product).sum(axis=0)
        log_e[part] = (above + np.log(total / size))[:n] + L * centre
        if wanted:
            x, y = (re * cosine - im * sine) / total, (re * sine + im * cosine) / total
            inclusion(p, cosine - 1.0, sine, x, y, np.array([1.0 / total, total]), up)
            r[part] = up[:, :n].T
    return log_e, r


def _rejected(rng: Generator, a: Array, n_active: int) -> Mask:
    active = np.empty(a.shape, dtype=bool)
    for part, centre, p_of_part, *_ in _tilted(a, n_active):
        p = np.ascontiguousarray(p_of_part[: a.shape[1], : len(centre)].T)
        left = np.arange(len(p))
        while len(left):
            drawn = rng.random((len(left), a.shape[1])) < p[left]
            done = drawn.sum(axis=1) == n_active
            active[part.start + left[done]] = drawn[done]
            left = left[~done]
    return active


def _tilted(a: Array, n_active: int) -> Iterator[tuple[Any, ...]]:
    """Yield, per tile of rows, its slice, L-th logits, p, tilts, variances and scratch space."""
    from appca.models.set_kernels import tilted

    n, K = a.shape
    w = LANES * max(1, min(max(1, MOST_NUMBERS // (LANES * K)), -(-n // LANES)))
    away, up, down = zeros((3, K, w))
    p = zeros((K + K % 2, w))
    for start in range(0, n, w):
        rows = a[start : start + w]
        centre: Array = np.partition(rows, K - n_active, axis=1)[:, K - n_active]
        away[:, len(rows) :] = 0.0
        np.subtract(rows.T, centre, out=away[:, : len(rows)], dtype=np.float64)
        np.exp(np.clip(away, -FARTHEST, 0.0, out=up), out=up)
        np.exp(np.clip(-away, -FARTHEST, 0.0, out=down), out=down)
        tilt, mean, variance = np.zeros((3, w))
        low, high = tilt - FARTHEST, tilt + FARTHEST
        for _ in range(MOST_STEPS):
            tilted(up, down, np.exp(-tilt), p, mean, variance)
            excess = mean - n_active
            off = np.abs(excess) > 0.05 + 0.1 * np.sqrt(variance)
            if not off.any():
                break
            low = np.where(off & (excess < 0.0), tilt, low)
            high = np.where(off & (excess > 0.0), tilt, high)
            to = tilt - np.clip(excess / np.maximum(variance, 1e-3), -3.0, 3.0)
            to = np.where((low < to) & (to < high), to, 0.5 * (low + high))
            tilt = np.where(off, to, tilt)
        yield slice(start, start + len(rows)), centre, p, tilt, variance, (away, up, down)


def points(variance: Array, n_components: int, n_active: int) -> tuple[Array, Array, Array]:
    """Return the number M of points (w,) for each row, and their angles (m, w).

    Bernstein's inequality bounds the aliased probabilities, and exp(-V (1 - cos theta)) bounds the
    product. M is odd, so that no factor vanishes at -1; conjugate angles are omitted.
    """
    V = np.nan_to_num(variance)
    reach = ROUNDING / 3.0 + np.sqrt((ROUNDING / 3.0) ** 2 + 2.0 * ROUNDING * V)
    half = (np.minimum(reach.astype(int) + 2, max(n_active, n_components - n_active) + 1) + 1) // 2
    size = 2 * half + 1
    widest = np.arccos(np.maximum(1.0 - ROUNDING / np.maximum(V, 1.0), -1.0))
    count = np.minimum(half, (widest * size / (2.0 * np.pi)).astype(int))
    most = count.max()
    m = np.arange(1, most + most % 2 + 1)[:, None]
    m, angle = np.where(m <= count, m, 0), 2.0 * np.pi / size
    return size, m * angle, (n_active * m) % size * angle
