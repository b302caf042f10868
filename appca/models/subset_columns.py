"""Sums over the two halves of `subsets` in NumPy, one column at a time for a block of rows.

A half is a set of columns with swap weights w; F[i, j] = e_j(w_1 .. w_i) is its table. Rows lie
last in memory, so each operation runs over a block of them, and a small problem waits for no
compiler. Weights of keeping a column are 1 for every K that comes here (``keep`` is not read).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def log_total(keep: Floats, swap: Floats, n_active: int) -> Floats:
    """Log (B,) of ``sum_j e_j(rest) e_j(top)``; weights (B, K) with the top L columns last."""
    del keep
    rest, members, n_swaps = _halves(swap, n_active)
    total: Floats = (_table(rest, n_swaps)[-1] * _table(members, n_swaps)[-1]).sum(axis=0)
    return np.log(total)


def swapped(keep: Floats, swap: Floats, n_active: int) -> tuple[Floats, Floats]:
    """Log total (B,) and the probability (B, K) that each column is swapped."""
    del keep
    rest, members, n_swaps = _halves(swap, n_active)
    table_rest, table_top = _table(rest, n_swaps), _table(members, n_swaps)
    probability = np.empty((swap.shape[1], len(swap)))
    total = _backward(rest, table_rest, table_top[-1], probability[: len(rest)])
    _backward(members, table_top, table_rest[-1], probability[len(rest) :])
    probability /= total
    return np.log(total), probability.T


def walk(keep: Floats, swap: Floats, n_active: int, uniforms: Floats) -> Mask:
    """Draw which columns are swapped from uniforms (B, K + 1), the first for their count."""
    del keep
    rest, members, n_swaps = _halves(swap, n_active)
    table_rest, table_top = _table(rest, n_swaps), _table(members, n_swaps)
    cumulated = (table_rest[-1] * table_top[-1]).cumsum(axis=0)
    target = uniforms[:, 0] * cumulated[-1]
    count = (cumulated[:-1] <= target).sum(axis=0)
    u, n_rest = uniforms[:, 1:].T, len(rest)
    halves = [
        _walk_half(rest, table_rest, count, u[:n_rest]),
        _walk_half(members, table_top, count, u[n_rest:]),
    ]
    return np.concatenate(halves).T


def _halves(swap: Floats, n_active: int) -> tuple[Floats, Floats, int]:
    """Return the weights of the rest (K - L, B) and of the top (L, B), and the most swaps."""
    columns = np.ascontiguousarray(swap.T)
    n_rest = len(columns) - n_active
    return columns[:n_rest], columns[n_rest:], min(n_active, n_rest)


def _table(weights: Floats, n_swaps: int) -> Floats:
    """Forward table F (n + 1, J + 1, B): F[i + 1, j] = F[i, j] + w_i F[i, j - 1]."""
    table = np.empty((len(weights) + 1, n_swaps + 1, weights.shape[1]))
    table[0, 1:] = 0.0
    table[:, 0] = 1.0
    for i, w in enumerate(weights):
        np.multiply(table[i, :-1], w, out=table[i + 1, 1:])
        table[i + 1, 1:] += table[i, 1:]
    return table


def _backward(weights: Floats, table: Floats, other: Floats, out: Floats) -> Floats:
    """Write ``w_i sum_j F[i, j] G_i[j + 1]`` into out (n, B) and return the total (B,)."""
    after, product = other.copy(), np.empty_like(other[1:])
    for i in range(len(weights) - 1, -1, -1):
        np.multiply(table[i, :-1], after[1:], out=product)
        np.multiply(product.sum(axis=0), weights[i], out=out[i])
        np.multiply(after[1:], weights[i], out=product)
        after[:-1] += product
    total: Floats = after[0]
    return total


def _walk_half(weights: Floats, table: Floats, count: NDArray[np.intp], u: Floats) -> Mask:
    """Draw ``count`` (B,) columns of one half, column i with ``w_i F[i, j - 1] / F[i + 1, j]``."""
    left, rows = count.copy(), np.arange(len(count))
    chosen = np.empty(weights.shape, dtype=bool)
    for i in range(len(weights) - 1, -1, -1):
        without = table[i, left, rows]
        with_it = np.where(left > 0, weights[i] * table[i, left - 1, rows], 0.0)
        chosen[i] = u[i] * (without + with_it) < with_it
        left -= chosen[i]
    return chosen
