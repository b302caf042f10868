"""Compiled placement of images."""

from typing import Any

import numpy as np

from appca.models.numeric_kernels import bare_kernel


@bare_kernel
def fill_levels(  # noqa: C901, PLR0912 - one function compiles in half the time
    points: Any, grid: Any, most: int, order: Any, levels: Any, table: Any
) -> int:
    """Order a panel's points (x, y, inside), level by level; return the number at the last.

    `grid` has distances, numbers in a line and tries, by level. `table` has the blocking point of
    each row (P,), initially -1, and hashed cells (2^m,), with positions (2^m, 2) and points (2^m,),
    at least 4 `most`. Cells of a line are adjacent, and (u, v) begin at 1.
    """
    (x, y, waits), (distances, fits, times), (others, keys, held, holders) = points, grid, table
    placed = inside = 0
    for j in range(len(waits)):
        inside += waits[j]
    for level in range(len(levels)):
        if placed == inside:
            break
        d, side, before = distances[level], fits[level] + 3, placed
        tried = min(len(x), times * fits[level] ** 2)
        size = 64
        while size < side * side and size < 4 * min(most, tried):
            size *= 2
        for j in range(size):
            keys[j] = -1
        for q in range(-before, tried):
            j = order[q + before] if q < 0 else q
            if q >= 0 and not waits[j]:
                continue
            u, v = x[j] / d + 1, y[j] / d + 1
            if q >= 0 and others[j] >= 0:  # an earlier blocking point may still block
                a, b = x[others[j]] / d + 1, y[others[j]] / d + 1
                if abs(a - u) < 1 and abs(b - v) < 1:
                    continue
            first = (np.int64(v) - 1) * side + np.int64(u) - 1
            place: Any = 0
            free = True
            for step in range(9 if q >= 0 else 1):  # the cell itself, then its neighbours
                c = (step + 4) % 9
                key = first + c // 3 * side + c % 3
                at = key & (size - 1)
                while keys[at] >= 0 and keys[at] != key:
                    at = (at + 1) & (size - 1)
                if step == 0:
                    place = at
                if keys[at] >= 0 and abs(held[at, 0] - u) < 1 and abs(held[at, 1] - v) < 1:
                    free, others[j] = False, holders[at]
                    break
            if not free:
                continue
            if q >= 0:
                if placed == most:
                    return before
                order[placed], waits[j] = j, False
                placed += 1
            keys[place], holders[place] = first + side + 1, j
            held[place, 0], held[place, 1] = u, v
        levels[level] = placed
    return placed
