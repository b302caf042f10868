"""Subsets of exactly L of K components under weights exp(a): sums, inclusion, draws, top L.

The logits of one row span thousands of nats on real images, so no fixed scale suits exp(a). Call
the L largest of a row its top. Any L-subset is the top with j members swapped out and j others
swapped in, hence with c the L-th largest logit and j up to J = min(L, K - L)

    e_L(exp a) = exp(sum of top) * sum_j e_j(exp(c - a_top)) e_j(exp(a_rest - c))

where every weight is at most 1 and every term is positive: nothing overflows or cancels. The two
halves are summed by `subset_columns` (NumPy, small K) or `subset_rows` (numba, larger K).
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from appca.models.algebra.gaussian import log_binomial
from appca.models.algebra.threads import cores
from appca.models.polynomials import subset_columns

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Measured on one core, NumPy over columns against compiled rows: 28 and 53 ms for 60,000 rows at
# K = 10, L = 3; 13 and 13 ms for 10,000 at K = 20, L = 10; 26 and 19 ms at K = 30, L = 15. While
# columns are no slower, nobody should wait the 4 s that compiling takes the first time.
LARGEST_FOR_COLUMNS = 20

# 2 MB of tables per block of columns stay in a core's second-level cache.
COLUMN_TABLE_FLOATS = 2**18

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
    if n_columns <= LARGEST_FOR_COLUMNS:
        return subset_columns
    from appca.models.polynomials import subset_rows

    return subset_rows


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
        for rows in _blocks(n_rows, COLUMN_TABLE_FLOATS // floats):
            work(rows)
        return
    blocks = _blocks(n_rows, ROWS_PER_BLOCK)
    _halves(n_columns)  # import in this thread, once
    with ThreadPoolExecutor(max(1, min(len(blocks), cores()))) as pool:
        for _ in pool.map(work, blocks):
            pass  # results are written in place; the loop raises what a block raised


def _blocks(n_rows: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n_rows, size)]
