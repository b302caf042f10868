"""Who has room, compiled; see `room`."""

from typing import Any

import numpy as np

from appca.models.algebra.compiled import bare_kernel


@bare_kernel
def fill_level(  # noqa: C901 - loops in one function compile in half the time
    points: Any, d: float, side: int, most: int, order: Any, placed: int, table: Any
) -> int:
    """Give room to those who still wait, at distance d; return how many have it, -1 if too many.

    Parameters
    ----------
    points : coordinates x and y and who waits, of those who are tried.
    side : of the grid of cells; (u, v) begin at 1, so that a neighbour's number is not negative.
    order : whose first `placed` have room already; those found follow.
    table : numbers of the cells that are held (2^m,), else -1, and where in them (2^m, 2). Cells of
        a row of the grid lie side by side; a grid that fits in has no two cells in one place.
    """
    (x, y, waits), (keys, held) = points, table
    mask, before = len(keys) - 1, placed
    for q in range(-before, len(waits)):
        j = order[q + before] if q < 0 else q
        if q >= 0 and not waits[j]:
            continue
        u, v = x[j] / d + 1, y[j] / d + 1
        first = (np.int64(v) - 1) * side + np.int64(u) - 1
        own: Any = 0
        free = True
        for step in range(9 if q >= 0 else 1):  # the cell itself, then those around it
            c = (step + 4) % 9
            key = first + c // 3 * side + c % 3
            at = key & mask
            while keys[at] >= 0 and keys[at] != key:
                at = (at + 1) & mask
            if step == 0:
                own = at
            if keys[at] >= 0 and abs(held[at, 0] - u) < 1 and abs(held[at, 1] - v) < 1:
                free = False
                break
        if not free:
            continue
        if q >= 0:
            if placed == most:
                return -1
            order[placed], waits[j] = j, False
            placed += 1
        keys[own] = first + side + 1
        held[own, 0], held[own, 1] = u, v
    return placed
