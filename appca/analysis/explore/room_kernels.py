"""Who has room, compiled; see `room`."""

from typing import Any

import numpy as np

from appca.analysis.explore.room import SPACING, STEPS, TRIED
from appca.models.algebra.compiled import kernel


@kernel
def shuffled(n: int, seed: int) -> Any:
    """Return the permutation (n,) uint32 that the browser computes as well: mulberry32."""
    place = np.empty(n, np.uint32)
    for i in range(n):
        place[i] = i
    s = np.uint32(seed)
    for i in range(n - 1, 0, -1):
        s = np.uint32(s + np.uint32(0x6D2B79F5))
        t = np.uint32((s ^ (s >> np.uint32(15))) * (s | np.uint32(1)))
        t = np.uint32(t + np.uint32((t ^ (t >> np.uint32(7))) * (t | np.uint32(61)))) ^ t
        t = np.uint32(t ^ (t >> np.uint32(14)))
        j = (np.uint64(t) * np.uint64(i + 1)) >> np.uint64(32)
        place[i], place[j] = place[j], place[i]
    return place


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
def _fill_level(x: Any, y: Any, d: float, most: int, order: Any, placed: int, waits: Any) -> Any:
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
    keys, held = np.full(size, -1, np.int64), np.empty((size, 2))
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
def _room_order(x: Any, y: Any, most: int, order: Any, levels: Any) -> None:
    """Order the points (n,) of one panel; a level that would list more than `most` is left out."""
    n, inside, placed, d = len(x), 0, 0, SPACING
    waits = np.empty(n, np.bool_)
    for j in range(n):
        waits[j] = 0.0 <= x[j] <= 1.0 and 0.0 <= y[j] <= 1.0
        inside += waits[j]
    for level in range(STEPS):
        if placed == inside:
            break
        now = _fill_level(x, y, d, min(most, n), order, placed, waits)
        if now < 0:
            break
        levels[level] = placed = now
        d /= 2.0**0.25
    listed = np.zeros(n, np.bool_)
    listed[order[:placed]] = True
    for j in range(n):
        if not listed[j]:
            order[placed] = j
            placed += 1


@kernel
def room_orders(x: Any, y: Any, start: Any, most: Any, order: Any, levels: Any) -> None:
    """Fill in the orders and the levels of all panels, see `room.room_orders`."""
    for p in range(len(most)):
        own = slice(start[p], start[p + 1])
        _room_order(x[own], y[own], most[p], order[own], levels[p])
