"""Image placement: the order in which the images of a panel's rows fit, level by level.

At level k, images are at least ``SPACING / 2^(k/4)`` of the panel apart, in the larger of the two
coordinates. Rows placed at earlier levels stay. Many points are placed by compiled code, few by
NumPy with the same result, so that the first picture need not wait for the compiler.
"""

import sys
from itertools import pairwise
from math import gcd

import numpy as np

SPACING = 0.5  # distance at level 0, as a share of the panel
STEPS = 44  # number of levels, four per octave; the last level allows 3,000 images in a line
DISTANCES = SPACING / 2 ** (np.arange(STEPS) / 4)
FITS = (1 / DISTANCES).astype(np.int64) + 1  # number of images in a line
# Each level tries only this multiple of the rows that could fit, by priority. Few others would fit,
# and finer levels try them.
TRIED = 32
LEAST_COMPILED = 10_000  # minimum number of points for compiled code; NumPy takes 0.12 s for them
GOLDEN = 0.618033988749895


def spread_order(n: int) -> np.ndarray:
    """Return all of n rows (n,) uint32 in golden-section steps, as the browser does.

    For every m, the first m rows are spread evenly over the file, whatever its order.
    """
    step = int(n * GOLDEN)
    while gcd(step, n) > 1:
        step += 1
    return np.asarray(np.arange(n) * step % max(n, 1), np.uint32)


def room_orders(
    x: np.ndarray, y: np.ndarray, start: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Order the points x, y (P,) of all panels, which begin at `start` (n_panels + 1,).

    Points are tried in their order. Coordinates are 0 to 1 inside the panel; points outside never
    get an image. A panel has at most `most` images. Returns indices within the panel (P,), placed
    points first, and the number placed at each level (n_panels, STEPS), or -1.
    """
    order = np.empty(len(x), np.int64)
    levels = np.full((len(start) - 1, STEPS), -1, np.int64)
    compiled = len(x) >= LEAST_COMPILED or room_compiled()
    for p, (first, last) in enumerate(pairwise(start.tolist())):
        a, b, panel_order = x[first:last], y[first:last], order[first:last]
        inside = (a >= 0) & (a <= 1) & (b >= 0) & (b <= 1)
        others, fitting = np.ones(len(a), bool), min(most, len(a))
        if compiled:
            from appca.canvas.scene_kernels import fill_levels

            size = 1 << (max(64, 4 * fitting) - 1).bit_length()
            cells = np.empty(size, np.int64), np.empty((size, 2)), np.empty(size, int)
            points, grid = (a, b, inside), (DISTANCES, FITS, TRIED)
            table = np.full(len(a), -1), *cells
            placed = fill_levels(points, grid, fitting, panel_order, levels[p], table)
        else:
            rows = _fill_levels(a, b, inside, fitting, levels[p])
            placed = len(rows)
            panel_order[:placed] = rows
        others[panel_order[:placed]] = False
        panel_order[placed:] = np.flatnonzero(others)
    return order, levels


def _fill_levels(
    x: np.ndarray, y: np.ndarray, inside: np.ndarray, most: int, levels: np.ndarray
) -> list[int]:
    x, y = (np.where(inside, a, 0.0).astype(float) for a in (x, y))  # values outside are never used
    waits, placed = np.flatnonzero(inside).tolist(), list[int]()
    for level, (d, fit) in enumerate(zip(DISTANCES.tolist(), FITS.tolist(), strict=True)):
        if not waits:
            break
        now = _level(x / d + 1, y / d + 1, fit, placed, waits)
        if len(now) > most:
            break
        levels[level] = len(now)
        taken = set(now[len(placed) :])
        waits, placed = [j for j in waits if j not in taken], now
    return placed


def _level(x: np.ndarray, y: np.ndarray, fit: int, placed: list[int], wait: list[int]) -> list[int]:
    side = fit + 3  # the border keeps neighbouring cells in the same row
    cells = (y.astype(np.int64) * side + x.astype(np.int64)).tolist()
    around = [row * side + column for row in (-1, 0, 1) for column in (-1, 0, 1)]
    u, v = x.tolist(), y.tolist()
    now, held = list(placed), {cells[j]: j for j in placed}
    for j in wait:
        if j >= TRIED * fit * fit:
            break
        cell, a, b = cells[j], u[j], v[j]
        if cell in held:
            continue
        for step in around:
            other = held.get(cell + step)
            if other is not None and abs(u[other] - a) < 1 and abs(v[other] - b) < 1:
                break
        else:
            held[cell] = j
            now.append(j)
    return now


def room_compiled() -> bool:
    """Whether this process has loaded the compiled code."""
    kernels = sys.modules.get("appca.canvas.scene_kernels")
    fill_levels = getattr(kernels, "fill_levels", None)  # another thread may be importing it
    return fill_levels is not None and bool(fill_levels.signatures)


def compile_ahead() -> None:
    """Compile the kernels for many points, once per machine."""
    many = np.zeros(LEAST_COMPILED, np.float32)
    room_orders(many, many, np.array([0, len(many)]), 1)
