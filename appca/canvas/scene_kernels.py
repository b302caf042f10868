"""Compiled placement of images."""

from typing import Any

import numpy as np

from appca.models.numeric_kernels import bare_kernel


@bare_kernel
def fill_levels(  # noqa: C901, PLR0912 - one function compiles in half the time
    points: Any, grid: Any, most: int, order: Any, levels: Any, table: Any
) -> int:
    """Begin the order of one panel, level by level; return how many have room at the last one.

    Parameters
    ----------
    points : coordinates x and y, and who is inside of the panel; those who have room no more are.
    grid : by level, the distance that images keep and how many fit side by side; and how many times
        as many rows as could have room are tried.
    most : images; a level with more is left out, and those behind it.
    table : room for who stands in the way of each row (P,), -1 at first; for the cells that are
        held (2^m,), where in them (2^m, 2), and who holds them (2^m,), 4 `most` at least. Cells of
        a row of the grid lie side by side; a grid that fits in has no two cells in one place.
        (u, v) begin at 1, so that a neighbour's number is not negative.
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
            if q >= 0 and others[j] >= 0:  # who was too near at an earlier level may still be
                a, b = x[others[j]] / d + 1, y[others[j]] / d + 1
                if abs(a - u) < 1 and abs(b - v) < 1:
                    continue
            first = (np.int64(v) - 1) * side + np.int64(u) - 1
            place: Any = 0
            free = True
            for step in range(9 if q >= 0 else 1):  # the cell itself, then those around it
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
