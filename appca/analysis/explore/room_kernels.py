"""Who has room, compiled; see `room`."""

from typing import Any

import numpy as np

from appca.analysis.explore.room import SPACING, STEPS, TRIED
from appca.models.algebra.compiled import kernel


@kernel
def _find(keys: Any, key: Any) -> Any:
    """Return the place of a cell in a table of 2^m places, or the empty one where it would be.

    Cells of a row of the grid lie side by side in it; a grid that fits into the table has no two
    cells in one place.
    """
    mask = len(keys) - 1
    at = key & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel
def _has_room(keys: Any, held: Any, u: Any, v: Any, side: Any) -> bool:
    """Whether nobody is within one cell of (u, v), in cells; each cell holds one at most."""
    a, b = np.int64(u), np.int64(v)
    if keys[_find(keys, b * side + a)] >= 0:
        return False
    for row in range(b - 1, b + 2):
        for column in range(a - 1, a + 2):
            at = _find(keys, row * side + column)
            if keys[at] >= 0 and abs(held[at, 0] - u) < 1 and abs(held[at, 1] - v) < 1:
                return False
    return True


@kernel
def _hold(keys: Any, held: Any, u: Any, v: Any, side: Any) -> None:
    """Let a point keep its surroundings free."""
    key = np.int64(v) * side + np.int64(u)
    at = _find(keys, key)
    keys[at] = key
    held[at, 0], held[at, 1] = u, v


@kernel
def _fill_level(x: Any, y: Any, d: float, most: int, order: Any, placed: Any, waits: Any) -> Any:
    """Give room to those who still wait, at distance d; return how many have it, -1 if too many.

    At most `TRIED` times as many as could have room are tried, by priority: there is little to
    be found among the others, who are tried at finer levels.
    """
    side = np.int64(1.0 / d) + 4  # (u, v) begin at 1, so that a neighbour's number is not negative
    fit = (np.int64(1.0 / d) + 1) ** 2
    tried: Any = min(np.int64(len(x)), TRIED * fit)
    size = 64
    while size < min(side * side, 4 * min(most, tried)):
        size *= 2
    keys, held = np.empty(size, np.int64), np.empty((size, 2))
    for q in range(size):
        keys[q] = -1
    for q in range(placed):
        _hold(keys, held, x[order[q]] / d + 1, y[order[q]] / d + 1, side)
    for j in range(tried):
        if not waits[j]:
            continue
        u, v = x[j] / d + 1, y[j] / d + 1
        if _has_room(keys, held, u, v, side):
            if placed == most:
                return -1
            _hold(keys, held, u, v, side)
            order[placed], waits[j] = j, False
            placed += 1
    return placed


@kernel
def room_order(x: Any, y: Any, waits: Any, most: int, order: Any, levels: Any) -> Any:
    """Begin the order of one panel with those that have room; return how many they are.

    A level that would list more than `most` is left out.
    """
    inside, d = 0, SPACING
    for j in range(len(waits)):
        inside += waits[j]
    placed = np.int64(0)  # a literal would have `_fill_level` compiled twice
    for level in range(STEPS):
        if placed == inside:
            break
        now = _fill_level(x, y, d, most, order, placed, waits)
        if now < 0:
            break
        levels[level] = placed = now
        d /= 2.0**0.25
    return placed
