"""Who has room: rows of a panel in the order in which their images fit, level by level.

At level k an image keeps every other one at a distance of ``SPACING / 2^(k/4)`` of the panel, in
the larger of the two coordinates. Rows are tried in the order in which they are given, those of
earlier levels stay: so images that a person sees stay where they are when more come.
"""

from typing import Any

import numpy as np

from appca.models.algebra.compiled import kernel

SPACING = 0.5  # of the panel, at level 0
STEPS = 44  # quarter octaves: the last level lets 3,000 images stand side by side


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
def _slot(a: int, b: int, mask: int) -> int:
    """First place to look for a cell in a table of mask + 1 places."""
    mixed = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(
        0xC2B2AE3D27D4EB4F
    )
    return np.int64(mixed >> np.uint64(32)) & mask


@kernel
def _holder(table: Any, cells: Any, a: int, b: int) -> int:
    """Return the place in the table where cell (a, b) is, or the empty one where it would be."""
    mask = len(table) - 1
    at = _slot(a, b, mask)
    while table[at] >= 0 and (cells[at, 0] != a or cells[at, 1] != b):
        at = (at + 1) & mask
    return at


@kernel
def _put(table: Any, cells: Any, a: int, b: int, point: int) -> None:
    at = _holder(table, cells, a, b)
    table[at] = point
    cells[at, 0] = a
    cells[at, 1] = b


@kernel
def _has_room(table: Any, cells: Any, x: Any, y: Any, j: int, d: float) -> bool:
    """Whether no one in the table is nearer than d; two in one cell of side d always are."""
    a, b = np.int64(x[j] / d), np.int64(y[j] / d)
    if table[_holder(table, cells, a, b)] >= 0:
        return False
    for bb in range(b - 1, b + 2):
        for aa in range(a - 1, a + 2):
            other = table[_holder(table, cells, aa, bb)]
            if other >= 0 and abs(x[other] - x[j]) < d and abs(y[other] - y[j]) < d:
                return False
    return True


@kernel
def _room_order(x: Any, y: Any, most: int, order: Any, levels: Any) -> int:
    """Order the points (n,) of one panel; return how many levels there are.

    A level that would make it more than `most` is left out, as are all behind it.
    """
    n = len(x)
    waiting = np.empty(n, np.int64)
    left = 0
    for j in range(n):
        if 0.0 <= x[j] <= 1.0 and 0.0 <= y[j] <= 1.0:
            waiting[left] = j
            left += 1
    inside, placed, level, d = left, 0, 0, SPACING
    while level < STEPS and placed < inside:
        # as many cells as can be taken at this level, at half load
        cells_at_most = (np.int64(1.0 / d) + 1) ** 2
        need = min(cells_at_most, min(np.int64(most), inside)) + 1
        size = 16
        while size < 2 * need:
            size *= 2
        table = np.full(size, -1, np.int64)
        cells = np.empty((size, 2), np.int32)
        for q in range(placed):
            j = order[q]
            _put(table, cells, np.int64(x[j] / d), np.int64(y[j] / d), j)
        kept, now = 0, placed
        for q in range(left):
            j = waiting[q]
            if not _has_room(table, cells, x, y, j, d):
                waiting[kept] = j
                kept += 1
            elif now == most:
                return level
            else:
                _put(table, cells, np.int64(x[j] / d), np.int64(y[j] / d), j)
                order[now] = j
                now += 1
        left, placed = kept, now
        levels[level] = placed
        level += 1
        d /= 2.0**0.25
    return level


@kernel
def room_orders(x: Any, y: Any, start: Any, most: Any) -> Any:
    """Order the points of all panels.

    Parameters
    ----------
    x, y : ndarray of float32, shape (P,)
        Panel by panel, in the order in which they are tried; 0 to 1 inside of the panel. Points
        outside never get an image.
    start : ndarray of int64, shape (n_panels + 1,)
        Where each panel begins.
    most : ndarray of int64, shape (n_panels,)
        Images of each panel.

    Returns
    -------
    order : ndarray of int64, shape (P,)
        Places within the panel: first those with room, then all others as they came.
    levels : ndarray of int64, shape (n_panels, STEPS)
        How many have room at each level; -1 behind the last level.
    """
    order = np.empty(len(x), np.int64)
    levels = np.full((len(most), STEPS), -1, np.int64)
    for p in range(len(most)):
        first, last = start[p], start[p + 1]
        own = order[first:last]
        n_levels = _room_order(x[first:last], y[first:last], most[p], own, levels[p])
        listed = levels[p, n_levels - 1] if n_levels else 0
        levels[p, n_levels:] = -1
        taken = np.zeros(last - first, np.bool_)
        for q in range(listed):
            taken[own[q]] = True
        q = listed
        for j in range(last - first):
            if not taken[j]:
                own[q] = j
                q += 1
    return order, levels


@kernel
def tail_ranges(values: Any, start: Any, share: float) -> Any:
    """Return least, `share` quantile, 1 - `share` quantile and largest of each part of values.

    `start` (n + 1,) says where the parts of the values (P,) begin; the result is (n, 4).
    """
    found = np.zeros((len(start) - 1, 4))
    for p in range(len(found)):
        own = np.sort(values[start[p] : start[p + 1]])
        n = len(own)
        if n:
            at = np.int64(share * (n - 1))
            found[p, 0], found[p, 1] = own[0], own[at]
            found[p, 2], found[p, 3] = own[n - 1 - at], own[n - 1]
    return found
