"""Compiled sums over subsets of components.

Sums over the two halves of `polynomials`, compiled, one row after the other.

The same tables as in `subset_columns`, with a weight for keeping a column as well, so that K above
1000 may use probabilities. Importing this module imports numba: do so only when K needs it. Kernels
are serial and get their scratch space from NumPy: small arrays allocated inside a parallel body
corrupted the heap (numba 0.68). They release the GIL, so blocks of rows can share the cores.

Loops over rows, components and points of `polynomials`, compiled.

Rows lie side by side, so that all inner loops run over neighbours in memory.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from appca.models.numeric_kernels import bare_kernel

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Function = TypeVar("Function", bound=Callable[..., object])


def log_total(keep: Floats, swap: Floats, n_active: int) -> Floats:
    """Log of the sum over equal swap counts of both halves, (B,); arguments as in `swapped`."""
    log_sum = np.empty(len(swap))
    _log_total_rows(keep, swap, n_active, _tables(swap.shape[1], n_active), log_sum)
    return log_sum


def swapped(keep: Floats, swap: Floats, n_active: int) -> tuple[Floats, Floats]:
    """Log total (B,) and the probability (B, K) that each column is swapped.

    `keep` and `swap` (B, K) are weights of leaving and of swapping each column, the top L last.
    """
    log_sum, probability = np.empty(len(swap)), np.empty(swap.shape)
    _swapped_rows(keep, swap, n_active, _tables(swap.shape[1], n_active), log_sum, probability)
    return log_sum, probability


def walk(keep: Floats, swap: Floats, n_active: int, uniforms: Floats) -> Mask:
    """Draw which columns are swapped from uniforms (B, K + 1), the first for their count."""
    chosen = np.zeros(swap.shape, dtype=np.bool_)
    _walk_rows(keep, swap, n_active, uniforms, _tables(swap.shape[1], n_active), chosen)
    return chosen


def _tables(n_columns: int, n_active: int) -> Floats:
    """Scratch space: K + 2 table rows of both halves and one row that looks ahead, all zero.

    An entry beyond what the number of columns can reach is never written and stays zero.
    """
    return np.zeros((n_columns + 3, min(n_active, n_columns - n_active) + 2))


def _compiled(function: Function) -> Function:
    """Compile on first call and keep the machine code on disk."""
    # Sums may be reordered for SIMD; not "nnan": a NaN in the logits must come out as a NaN.
    options = {"nogil": True, "cache": True, "fastmath": {"reassoc", "contract"}}
    return cast("Function", numba.njit(**options)(function))


@_compiled
def _most_swaps(keep: Floats, swap: Floats, n_rest: int) -> int:
    """Return the swap count J beyond which all terms together are below 1e-25 of the sum.

    With the odds u, v of both halves in falling order, the smallest of j factors comes at place j
    or later, so term j is at most ``sum_{i >= j} u_i sum_{i >= j} v_i <= K^2 u_j v_j`` times the
    one before. One more count is kept for the columns that are hardly ever swapped. On logits that
    span thousands this leaves a few of the L counts.
    """
    n_columns = len(swap)
    bound = 1.0
    for j in range(min(n_rest, n_columns - n_rest)):
        weights = swap[j] * swap[n_rest + j]
        stay = keep[j] * keep[n_rest + j]
        if n_columns**2 * weights < stay:
            bound *= n_columns**2 * weights / stay
        if bound < 1e-25:
            return j + 1
    return min(n_rest, n_columns - n_rest)


@_compiled
def _forward(keep: Floats, swap: Floats, n_swaps: int, table: Floats) -> None:
    """Fill table[i + 1, j] = keep_i table[i, j] + swap_i table[i, j - 1] for j <= min(i + 1, J)."""
    table[0, 0] = 1.0
    for i in range(len(swap)):
        q, p = keep[i], swap[i]
        table[i + 1, 0] = q * table[i, 0]
        for j in range(1, min(i + 1, n_swaps) + 1):
            table[i + 1, j] = q * table[i, j] + p * table[i, j - 1]


@_compiled
def _backward(
    keep: Floats,
    swap: Floats,
    n_swaps: int,
    table: Floats,
    other: Floats,
    after: Floats,
    out: Floats,
) -> float:
    """Write each column's swap probability, given the other half's sums; return the total."""
    after[: n_swaps + 1] = other[: n_swaps + 1]
    after[n_swaps + 1] = 0.0
    for i in range(len(swap) - 1, -1, -1):
        q, p = keep[i], swap[i]
        total = 0.0
        for j in range(min(i + 1, n_swaps)):
            total += table[i, j] * after[j + 1]
        out[i] = p * total
        for j in range(min(i, n_swaps) + 1):
            after[j] = q * after[j] + p * after[j + 1]
    for i in range(len(swap)):
        out[i] /= after[0]
    return float(after[0])


@_compiled
def _log_total_rows(
    keep: Floats, swap: Floats, n_active: int, tables: Floats, log_sum: Floats
) -> None:
    n_rest = swap.shape[1] - n_active
    rest, members = tables[: n_rest + 1], tables[n_rest + 1 : -1]
    for row in range(len(swap)):
        n_swaps = _most_swaps(keep[row], swap[row], n_rest)
        _forward(keep[row, :n_rest], swap[row, :n_rest], n_swaps, rest)
        _forward(keep[row, n_rest:], swap[row, n_rest:], n_swaps, members)
        total = 0.0
        for j in range(n_swaps + 1):
            total += rest[n_rest, j] * members[n_active, j]
        log_sum[row] = np.log(total)


@_compiled
def _swapped_rows(
    keep: Floats, swap: Floats, n_active: int, tables: Floats, log_sum: Floats, probability: Floats
) -> None:
    n_rest = swap.shape[1] - n_active
    rest, members, after = tables[: n_rest + 1], tables[n_rest + 1 : -1], tables[-1]
    for row in range(len(swap)):
        q, p, out = keep[row], swap[row], probability[row]
        n_swaps = _most_swaps(q, p, n_rest)
        _forward(q[:n_rest], p[:n_rest], n_swaps, rest)
        _forward(q[n_rest:], p[n_rest:], n_swaps, members)
        total = _backward(
            q[:n_rest], p[:n_rest], n_swaps, rest, members[n_active], after, out[:n_rest]
        )
        _backward(q[n_rest:], p[n_rest:], n_swaps, members, rest[n_rest], after, out[n_rest:])
        log_sum[row] = np.log(total)


@_compiled
def _walk_half(
    keep: Floats, swap: Floats, table: Floats, count: int, u: Floats, chosen: Mask
) -> None:
    """Choose ``count`` columns of one half; column i with swap_i F[i, j - 1] / F[i + 1, j]."""
    for i in range(len(swap) - 1, -1, -1):
        if count == 0:
            return
        without = keep[i] * table[i, count]
        with_it = swap[i] * table[i, count - 1]
        if u[i] * (without + with_it) < with_it:
            chosen[i] = True
            count -= 1


@_compiled
def _walk_rows(
    keep: Floats, swap: Floats, n_active: int, uniforms: Floats, tables: Floats, chosen: Mask
) -> None:
    n_rest = swap.shape[1] - n_active
    rest, members, weights = tables[: n_rest + 1], tables[n_rest + 1 : -1], tables[-1]
    for row in range(len(swap)):
        q, p, u = keep[row], swap[row], uniforms[row, 1:]
        n_swaps = _most_swaps(q, p, n_rest)
        _forward(q[:n_rest], p[:n_rest], n_swaps, rest)
        _forward(q[n_rest:], p[n_rest:], n_swaps, members)
        total = 0.0
        for j in range(n_swaps + 1):
            weights[j] = rest[n_rest, j] * members[n_active, j]
            total += weights[j]
        target, count = uniforms[row, 0] * total, 0
        cumulated = weights[0]
        while count < n_swaps and cumulated <= target:
            count += 1
            cumulated += weights[count]
        _walk_half(q[:n_rest], p[:n_rest], rest, count, u[:n_rest], chosen[row, :n_rest])
        _walk_half(q[n_rest:], p[n_rest:], members, count, u[n_rest:], chosen[row, n_rest:])


@bare_kernel
def tilted(up: Any, down: Any, factor: Any, p: Any, mean: Any, variance: Any) -> None:
    """Write the probabilities p (K, w) of all B_k, and the mean and variance (w,) of their sum.

    up and down (K, w) are the odds of w rows as two numbers of at most 1, `factor` (w,) is exp(-t).
    """
    K, w = up.shape
    for i in range(w):
        mean[i] = 0.0
        variance[i] = 0.0
    for k in range(K):
        for i in range(w):
            likely = up[k, i] / (up[k, i] + down[k, i] * factor[i])
            p[k, i] = likely
            mean[i] += likely
            variance[i] += likely * (1.0 - likely)


@bare_kernel
def characteristic(p: Any, less: Any, sine: Any, re: Any, im: Any) -> None:
    """Multiply re + i im (M, w) by prod_k (1 + p_k (less + i sine)), less = cos theta - 1.

    Two of an even number of p go through together.
    """
    (K, w), M = p.shape, len(less)
    for m in range(M):
        for k in range(0, K, 2):
            for i in range(w):
                c, s = less[m, i], sine[m, i]
                a, b = 1.0 + p[k, i] * c, p[k, i] * s
                u, v = 1.0 + p[k + 1, i] * c, p[k + 1, i] * s
                x, y = a * u - b * v, a * v + b * u
                u, v = re[m, i], im[m, i]
                re[m, i] = u * x - v * y
                im[m, i] = u * y + v * x


@bare_kernel
def inclusion(p: Any, less: Any, sine: Any, re: Any, im: Any, x: Any, r: Any) -> None:
    """Write the inclusion probabilities (3) into r (K, w), from the summands over P, and 1 / P.

    Divisions are what takes the time: two of an even number of points share one. x (2, w) has the
    summand of theta = 0, and is room.
    """
    (K, w), M = r.shape, len(less)
    for k in range(K):
        for i in range(w):
            x[1, i] = x[0, i]
        for m in range(0, M, 2):
            for i in range(w):
                a = p[k, i]
                u, v = 1.0 + a * less[m, i], a * sine[m, i]
                weight, size = re[m, i] * u + im[m, i] * v, u * u + v * v
                u, v = 1.0 + a * less[m + 1, i], a * sine[m + 1, i]
                other, length = re[m + 1, i] * u + im[m + 1, i] * v, u * u + v * v
                x[1, i] += (weight * length + other * size) / (size * length)
        for i in range(w):
            probability = p[k, i] * x[1, i]
            r[k, i] = 0.0 if probability < 0.0 else (1.0 if probability > 1.0 else probability)
