"""Elementary symmetric polynomials: exact sums over subsets of K components.

Subsets of exactly L of K components under weights exp(a): sums, inclusion, draws, top L.

The logits of one row span thousands of nats on real images, so no fixed scale suits exp(a). Call
the L largest of a row its top. Any L-subset is the top with j members swapped out and j others
swapped in, hence with c the L-th largest logit and j up to J = min(L, K - L)

    e_L(exp a) = exp(sum of top) * sum_j e_j(exp(c - a_top)) e_j(exp(a_rest - c))

where every weight is at most 1 and every term is positive: nothing overflows or cancels. The two
halves are summed by `subset_columns` (NumPy, small K) or `polynomial_kernels` (numba, larger K).

Subsets of any size under weights exp(a), where each size has a probability.

p(z) = rho_l / C(K, l) with l the size of z, so that

    p(y) / p(y | no component) = sum_l rho_l e_l(exp a) / C(K, l)

A component with a > 0 counts 1 where it is in and exp(-a) where it is not, any other exp(a) where
it is in and 1 where it is not. The subset of all a > 0 then counts 1 and no subset counts more, so
nothing overflows. A size of probability zero would let the sum underflow: callers keep
probabilities above a small number.

The E step of rows for many components: O(K) a row whatever L is.

The size of a random subset is Poisson-binomial. With logits a and any exponential tilt t let
p_k = 1 / (1 + exp(-a_k - t)) and B_k ~ Bernoulli(p_k) be independent. Then

    e_L(exp a) = exp(-t L) prod_k (1 + exp(a_k + t)) P(B_1 + ... + B_K = L),                  (1)

and the Poisson-binomial probability is the discrete Fourier transform of its characteristic
function (Hong 2013) at M points,

    P(sum = L) = 1/M sum_m prod_k (1 - p_k + p_k exp(i theta_m)) exp(-i L theta_m),           (2)
    theta_m = 2 pi m / M,

but for the probabilities of L + M, L - M and so on, which M points count as well (aliasing). At the
tilt that makes the mean about L (the saddle point) the sum over m neither overflows nor cancels,
the probabilities M away from the mean fall below rounding for M of some standard deviations, and so
does the product for theta beyond some inverse standard deviations. What is left are 10 to 30 points
a row, where the tables of `polynomial_kernels` take min(L, K - L). Measured at K = 500, L = 200: 17
microseconds a row, where those take 80 and the two matrix products of 989 features 13. Inclusion is
the same sum without the factor k,

    r_k = p_k / P 1/M sum_m prod_{j != k} (...) exp(-i (L - 1) theta_m).                      (3)

Errors are some roundings of 1, of r as of log e_L: a probability of 1e-20 has no right digits,
which no sum over rows notices. Where digits of small ones matter, there is `polynomials.inclusion`.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln

from appca.models import numerics, subset_columns
from appca.models.numerics import Array, log_binomial
from appca.models.settings import LARGEST_FOR_COLUMNS
from appca.models.threads import cores

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# 2 MB of tables per block of columns stay in a core's second-level cache.
TABLE_FLOATS = 2**18

# A swap of weight w changes e_L by less than K L w of itself. Below 1e-50 it is left out: products
# of such weights would be denormal numbers, which are right but slow.
LEAST_LOG_WEIGHT = -115.0

# Tables hold numbers up to C(K, L); float64 ends at exp(709).
LARGEST_LOG_COUNT = 650.0

# Small enough to share among cores, large enough that calling a block costs nothing.
ROWS_PER_BLOCK = 512


class Swaps(NamedTuple):
    """One block of rows, seen from the top: what it weighs to swap each member out or in.

    Columns come as the K - L others, then the top, each half with the likeliest swaps first.
    """

    order: NDArray[np.intp]  # (B, K) columns of the logits
    keep: Floats  # (B, K) weight of leaving a column as it is
    swap: Floats  # (B, K) weight of swapping it
    base: Floats  # (B,) log weight of what the halves leave out


def log_elementary(logits: ArrayLike, n_active: int) -> Floats:
    """Log (N,) of the elementary symmetric polynomial e_L(exp a) of each row of logits (N, K)."""
    a = _checked(logits, n_active)
    if _only_one_subset(a, n_active):
        return _sum_of_all(a, n_active)
    log_e = np.empty(len(a))

    def work(rows: slice) -> None:
        s = _swaps(a[rows], n_active)
        log_e[rows] = s.base + _halves(a.shape[1]).log_total(s.keep, s.swap, n_active)

    _for_each_block(work, a.shape, n_active)
    return log_e


def inclusion(logits: ArrayLike, n_active: int) -> tuple[Floats, Floats]:
    """Log normaliser log e_L(exp a) (N,) and inclusion probabilities (N, K) of each row's L-subset.

    r_k = exp(a_k) e_{L-1}(exp a without k) / e_L(exp a); each row sums to L. Logits (N, K) may be
    of any size. Raises ValueError when they are not a matrix or L is not in 0..K.
    """
    a = _checked(logits, n_active)
    if _only_one_subset(a, n_active):
        return _sum_of_all(a, n_active), np.full(a.shape, float(n_active > 0))
    log_e, r = np.empty(len(a)), np.empty(a.shape)

    def work(rows: slice) -> None:
        s = _swaps(a[rows], n_active)
        log_total, swapped = _halves(a.shape[1]).swapped(s.keep, s.swap, n_active)
        n_rest = a.shape[1] - n_active
        # Every member of the top has r >= 1 / (K - L + 1), so the difference costs no precision.
        np.subtract(1.0, swapped[:, n_rest:], out=swapped[:, n_rest:])
        np.put_along_axis(r[rows], s.order, swapped, axis=1)
        log_e[rows] = s.base + log_total

    _for_each_block(work, a.shape, n_active)
    return log_e, r


def draw(rng: np.random.Generator, logits: ArrayLike, n_active: int) -> Mask:
    """Draw each row's whole L-subset (N, K) from ``p(S)`` proportional to ``exp(sum of a over S)``.

    How many members of the top are swapped comes first, then which, by walking back through the
    tables of each half; the draw is exact and takes K + 1 uniform numbers a row.
    """
    a = _checked(logits, n_active)
    if _only_one_subset(a, n_active):
        return np.full(a.shape, n_active > 0)
    uniforms = rng.random((len(a), a.shape[1] + 1))
    active = np.empty(a.shape, dtype=bool)

    def work(rows: slice) -> None:
        s = _swaps(a[rows], n_active)
        member = _halves(a.shape[1]).walk(s.keep, s.swap, n_active, uniforms[rows])
        n_rest = a.shape[1] - n_active
        np.logical_not(member[:, n_rest:], out=member[:, n_rest:])
        np.put_along_axis(active[rows], s.order, member, axis=1)

    _for_each_block(work, a.shape, n_active)
    return active


def top(logits: ArrayLike, n_active: int) -> Mask:
    """Most probable support (N, K) of each row: its L largest logits, ties to the lower column."""
    a = _checked(logits, n_active)
    if _only_one_subset(a, n_active):
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


def _checked(logits: ArrayLike, n_active: int) -> NDArray[Any]:
    """Return the logits as a floating-point matrix, or say what is wrong with them."""
    a = np.asarray(logits)
    if a.ndim != 2:
        msg = f"logits must be a matrix, rows by components; got {a.ndim} dimension(s)."
        raise ValueError(msg)
    if not 0 <= n_active <= a.shape[1]:
        msg = f"n_active must be between 0 and {a.shape[1]}, the number of columns; got {n_active}."
        raise ValueError(msg)
    return a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)


def _only_one_subset(a: NDArray[Any], n_active: int) -> bool:
    return n_active in (0, a.shape[1])


def _sum_of_all(a: NDArray[Any], n_active: int) -> Floats:
    """Log weight of the only subset when L is 0 or K."""
    return a.sum(axis=1, dtype=np.float64) if n_active else np.zeros(len(a))


def _halves(n_columns: int) -> ModuleType:
    """Return the module that sums the halves; numba is imported on first need."""
    # Measured on one core, NumPy over columns against compiled rows: 28 and 53 ms for 60,000 rows
    # at K = 10, L = 3; 13 and 13 ms for 10,000 at K = 20, L = 10; 26 and 19 ms at K = 30, L = 15.
    if n_columns <= LARGEST_FOR_COLUMNS:
        return subset_columns
    from appca.models import polynomial_kernels

    return polynomial_kernels


def _swaps(block: NDArray[Any], n_active: int) -> Swaps:
    """Split each row of the block at its L-th largest logit and weigh the swaps."""
    n_rest = block.shape[1] - n_active
    order = np.argsort(block, axis=1)
    order[:, :n_rest] = order[:, n_rest - 1 :: -1]
    a = np.take_along_axis(block, order, axis=1).astype(np.float64, copy=False)
    base = a[:, n_rest:].sum(axis=1)
    a -= a[:, n_rest, None].copy()
    if log_binomial(block.shape[1], n_active) > LARGEST_LOG_COUNT:
        # Weights are rescaled to probabilities, for tables that float64 could not hold. The split
        # point c may be any number, as each swap out meets a swap in: at c = -lam the two halves
        # swap equally many on average, so the sum over equal counts is of order 1 / sqrt(K).
        x = a + tilt(a, n_active)[:, None]
        x[:, n_rest:] *= -1.0
        return Swaps(order, expit(-x), expit(x), base + np.logaddexp(0.0, x).sum(axis=1))
    np.negative(np.abs(a, out=a), out=a)
    a[a < LEAST_LOG_WEIGHT] = -np.inf
    return Swaps(order, np.ones(a.shape), np.exp(a, out=a), base)


def tilt(logits: Floats, n_active: int) -> Floats:
    """Solve ``sum_k sigmoid(a_k + lam) = L``, 0 < L < K, for each row of logits (N, K).

    A subset with weights exp(a) is K independent Bernoulli variables of log odds a_k + lam given
    that their sum is L, whatever lam (N,); at E sum = L tables of any size hold probabilities. By
    Newton steps kept inside a bracket, until the sum is within 1e-10 L of L or its two ends meet.
    """
    share = math.log(n_active / (logits.shape[1] - n_active))
    lower, upper = share - logits.max(axis=1), share - logits.min(axis=1)
    n_rest = logits.shape[1] - n_active
    gap = np.partition(logits, (n_rest - 1, n_rest), axis=1)[:, n_rest - 1 : n_rest + 1]
    lam: Floats = np.clip(-gap.mean(axis=1), lower, upper)
    rows = np.arange(len(logits))
    for _ in range(100):  # bisection alone ends for any float64 in fewer
        r = expit(logits[rows] + lam[rows, None])
        excess, slope = r.sum(axis=1) - n_active, (r * (1.0 - r)).sum(axis=1)
        off = np.abs(excess) > 1e-10 * n_active
        rows, excess, slope = rows[off], excess[off], slope[off]
        if not len(rows):
            break
        at = lam[rows]
        upper[rows] = np.where(excess > 0, at, upper[rows])
        lower[rows] = np.where(excess < 0, at, lower[rows])
        newton = at - excess / np.maximum(slope, np.finfo(float).tiny)
        inside = (newton > lower[rows]) & (newton < upper[rows])
        lam[rows] = np.where(inside, newton, (lower[rows] + upper[rows]) / 2)
    return lam


def _for_each_block(work: Callable[[slice], None], shape: tuple[int, ...], n_active: int) -> None:
    """Run ``work`` on blocks of rows: in cache for the columns, on all cores for compiled rows."""
    n_rows, n_columns = shape
    if n_columns <= LARGEST_FOR_COLUMNS:
        floats = (n_columns + 2) * (min(n_active, n_columns - n_active) + 1)
        for rows in _blocks(n_rows, TABLE_FLOATS // floats):
            work(rows)
        return
    blocks = _blocks(n_rows, ROWS_PER_BLOCK)
    _halves(n_columns)  # import in this thread, once
    with ThreadPoolExecutor(max(1, min(len(blocks), cores()))) as pool:
        for _ in pool.map(work, blocks):
            pass  # results are written in place; the loop raises what a block raised


def _blocks(n_rows: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def log_counts(n_components: int) -> Floats:
    """Return the logs (K + 1,) of the numbers C(K, l) of subsets of each size."""
    sizes = np.arange(n_components + 1)
    counts: Floats = gammaln(n_components + 1) - gammaln(sizes + 1) - gammaln(sizes[::-1] + 1)
    return counts


def sized_inclusion(logits: Floats, probabilities: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum over the supports of each row, given logits (N, K) and `probabilities` (K + 1,) above 0.

    Returns log sum_l rho_l e_l(exp a) / C(K, l) (N,), posterior inclusion probabilities (N, K), and
    posterior probabilities of the sizes (N, K + 1).
    """
    n, K = logits.shape
    log_sum, r, sizes = np.empty(n), np.empty((n, K)), np.empty((n, K + 1))
    weights = np.exp(np.log(probabilities) - log_counts(K))
    for part in _parts(n, K):
        log_sum[part], r[part], sizes[part] = _inclusion(logits[part], weights)
    return log_sum, r, sizes


def draw_sized(
    rng: np.random.Generator, logits: Floats, probabilities: Floats
) -> NDArray[np.bool_]:
    """Draw a subset (N, K) bool of each row: its size first, then its members from the last on."""
    n, K = logits.shape
    uniforms, chosen = rng.random((n, K + 1)), np.zeros((n, K), dtype=bool)
    weights = np.exp(np.log(probabilities) - log_counts(K))
    for part in _parts(n, K):
        table, into, _ = _tables(logits[part])
        rows = np.arange(table.shape[2])
        sizes = np.cumsum(table[K] * weights[:, None], axis=0)
        left = (sizes > uniforms[part, K] * sizes[-1]).argmax(axis=0)
        for k in range(K - 1, -1, -1):
            with_k = into[k] * table[k, left - 1, rows]  # of none left it is not read
            member = (left > 0) & (uniforms[part, k] * table[k + 1, left, rows] < with_k)
            chosen[part, k] = member
            left = left - member
    return chosen


def _inclusion(logits: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    table, into, out = _tables(logits)
    base = np.maximum(logits, 0.0).sum(axis=1)
    K, n = into.shape
    sizes = table[K] * weights[:, None]
    total = sizes.sum(axis=0)
    after, r = np.repeat(weights[:, None], n, axis=1), np.empty((K, n))
    for k in range(K - 1, -1, -1):  # after[j]: of all completions, with j among the first k + 1
        np.einsum("jn,jn->n", table[k, : k + 1], after[1 : k + 2], out=r[k])
        after = out[k] * after[: k + 1] + into[k] * after[1 : k + 2]
    r *= into
    return base + np.log(total), (r / total).T, (sizes / total).T


def _tables(logits: Floats) -> tuple[Floats, Floats, Floats]:
    """Give sums (K + 1, K + 1, n) over j of the first k components, and their weights (K, n)."""
    a = np.ascontiguousarray(logits.T, dtype=np.float64)  # rows last: operations run over them
    K, n = a.shape
    into, out = np.minimum(a, 0.0), np.minimum(-a, 0.0)
    for w in (into, out):
        w[w < LEAST_LOG_WEIGHT] = -np.inf
        np.exp(w, out=w)
    table = np.zeros((K + 1, K + 1, n))
    table[0, 0] = 1.0
    for k in range(K):
        np.multiply(table[k, : k + 2], out[k], out=table[k + 1, : k + 2])
        table[k + 1, 1 : k + 2] += into[k] * table[k, : k + 1]
    return table, into, out


def _parts(n: int, K: int) -> list[slice]:
    step = max(64, TABLE_FLOATS // (K + 2) ** 2)
    return [slice(start, start + step) for start in range(0, n, step)]


def best(logits: Floats, probabilities: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Most probable subset (N, K) bool of each row over all sizes, and its log weight (N,)."""
    n, K = logits.shape
    order = np.argsort(-logits, axis=1, kind="stable")
    gains = np.zeros((n, K + 1))
    np.cumsum(np.take_along_axis(logits, order, axis=1), axis=1, out=gains[:, 1:])
    gains += np.log(probabilities) - log_counts(K)
    size = gains.argmax(axis=1)
    chosen = np.zeros((n, K), dtype=bool)
    np.put_along_axis(chosen, order, np.arange(K) < size[:, None], axis=1)
    return chosen, gains[np.arange(n), size]


def log_weight(logits: Floats, chosen: NDArray[np.bool_], probabilities: Floats) -> Floats:
    """Log weight (N,) of a subset (N, K) bool of each row."""
    gain = (np.log(probabilities) - log_counts(logits.shape[1]))[chosen.sum(axis=1)]
    weight: Floats = logits.sum(axis=1, where=chosen) + gain
    return weight


FARTHEST = 115.0  # nats from the L-th largest logit at which inclusion is certain
MOST_STEPS = 60
ROUNDING = 37.0  # exp(-37) is below the rounding of 1
AT_ONCE = 512  # components whose larger probabilities, of at least a half, may be multiplied
LANES, MOST_NUMBERS = 64, 2**15  # rows go through in lanes, as many as have so many logits


def by_points(a: Array, n_active: int) -> tuple[Array, Array]:
    """Return log e_L (n,) and inclusion (n, K) for logits a (n, K), 0 < L < K."""
    (n, K), most = a.shape, max(1, MOST_NUMBERS // (LANES * a.shape[1]))
    width = LANES * min(most, -(-n // LANES))
    log_e, r = np.empty(n), np.empty((n, K))
    room = Room(K, width)
    for start in range(0, n, width):
        part = slice(start, start + width)
        log_e[part], r[part] = room.include(a[part], n_active)
    return log_e, r


class Room:
    """Memory for rows side by side."""

    def __init__(self, n_components: int, width: int) -> None:
        K, even = n_components, n_components + n_components % 2
        self._away, self._up, self._down, self._r = numerics.zeros((4, K, width))
        self._p = numerics.zeros((even, width))

    def include(self, rows: Array, n_active: int) -> tuple[Array, Array]:
        """Return log e_L and inclusion of some rows, at most as many as there is room for."""
        from appca.models.polynomial_kernels import characteristic, inclusion

        (n, K), away, p = rows.shape, self._away, self._p
        centre = np.partition(rows, K - n_active, axis=1)[:, K - n_active]
        away[:, n:] = 0.0
        np.subtract(rows.T, centre, out=away[:, :n])
        tilt, variance = self._tilted_to(n_active)
        size, turn, phase = points(variance, K, n_active)
        cosine, sine = np.cos(turn), np.sin(turn)
        re, im = np.where(turn > 0.0, 2.0, 0.0) * (np.cos(phase), -np.sin(phase))
        characteristic(p, cosine - 1.0, sine, re, im)
        total = 1.0 + re.sum(axis=0)
        x, y = (re * cosine - im * sine) / total, (re * sine + im * cosine) / total
        inclusion(p, cosine - 1.0, sine, x, y, np.array([1.0 / total, total]), self._r)
        log_e = self._log_product(tilt, n_active) + np.log(total / size)
        return log_e[:n] + n_active * centre, self._r[:, :n].T

    def _tilted_to(self, n_active: int) -> tuple[Array, Array]:
        """Solve sum p = L for the tilt, roughly; return it and sum p (1 - p), and leave p."""
        from appca.models.polynomial_kernels import tilted

        np.exp(np.clip(self._away, -FARTHEST, 0.0, out=self._up), out=self._up)
        np.exp(np.clip(-self._away, -FARTHEST, 0.0, out=self._down), out=self._down)
        tilt, mean, variance = np.zeros((3, self._up.shape[1]))
        low, high = tilt - FARTHEST, tilt + FARTHEST
        for _ in range(MOST_STEPS):
            tilted(self._up, self._down, np.exp(-tilt), self._p, mean, variance)
            excess = mean - n_active
            off = np.abs(excess) > 0.05 + 0.1 * np.sqrt(variance)
            if not off.any():
                break
            low = np.where(off & (excess < 0.0), tilt, low)
            high = np.where(off & (excess > 0.0), tilt, high)
            to = tilt - np.clip(excess / np.maximum(variance, 1e-3), -3.0, 3.0)
            to = np.where((low < to) & (to < high), to, 0.5 * (low + high))
            tilt = np.where(off, to, tilt)
        return tilt, variance

    def _log_product(self, tilt: Array, n_active: int) -> Array:
        """Return sum_k log(1 + exp(a_k + t)) - L t for logits about the L-th largest one."""
        K = len(self._up)
        larger = np.maximum(self._p[:K], 1.0 - self._p[:K], out=self._up)
        product = np.multiply.reduceat(larger, range(0, K, AT_ONCE), axis=0)
        likely = self._away > -tilt
        above = np.multiply(self._away, likely, out=self._down).sum(axis=0)
        above += (np.count_nonzero(likely, axis=0) - n_active) * tilt
        difference: Array = above - np.log(product).sum(axis=0)
        return difference


def points(variance: Array, n_components: int, n_active: int) -> tuple[Array, Array, Array]:
    """Choose the number M of points (w,) of each row, and the angles (m, w) its product needs.

    Bernstein's inequality bounds the probabilities that M points alias with that of L, and
    exp(-V (1 - cos theta)) the product. Beyond K + 1 points there is no aliasing. M is odd, so no
    point comes to -1, where a factor may vanish. Only positive angles, an even number of them: the
    others are conjugate, and of rows that need fewer some are 0. Also L theta but for whole turns.
    """
    V = np.nan_to_num(variance)
    reach = ROUNDING / 3.0 + np.sqrt((ROUNDING / 3.0) ** 2 + 2.0 * ROUNDING * V)
    half = (np.minimum(reach.astype(int) + 2, max(n_active, n_components - n_active) + 1) + 1) // 2
    size = 2 * half + 1
    widest = np.arccos(np.maximum(1.0 - ROUNDING / np.maximum(V, 1.0), -1.0))
    count = np.minimum(half, (widest * size / (2.0 * np.pi)).astype(int))
    most = count.max()
    m = np.arange(1, most + most % 2 + 1)[:, None]
    m = np.where(m <= count, m, 0)
    angle = 2.0 * np.pi / size
    return size, m * angle, (n_active * m) % size * angle
