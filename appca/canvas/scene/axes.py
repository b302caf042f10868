"""Which two components a panel shows, where its points stand, and how far its axes reach."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from appca.canvas.scene.groups import Groups
from appca.canvas.scene.usage import Usage

JITTER = -1  # instead of a component: rows are spread along an axis that shows nothing
SPREAD, REACH = 0.8, 1.0  # of rows along such an axis, and of the axis
TAIL, BEYOND, MARGIN = 0.005, 1.6, 0.06  # a range is that of the central 99%, this much wider
FEW = 20  # rows, all of which are shown: none of them is far from the others by chance
_X, _Y = 0x85EBCA77, 0x9E3779B1  # odd numbers without pattern


class Axes(NamedTuple):
    """Panels with their points on two axes."""

    shown: np.ndarray  # (n_panels, 2) components on x and y, or JITTER
    ranges: np.ndarray  # (n_panels, 2, 2) from and to, of x and of y
    x: np.ndarray  # (points,) float32
    y: np.ndarray  # (points,)


def by_pair(groups: Groups) -> np.ndarray:
    """Return the axes of panels of at most two components: the one with the larger number is x."""
    shown = np.full((len(groups.components), 2), JITTER)
    for p, pair in enumerate(groups.components):
        shown[p, : len(pair)] = pair[::-1]
    return shown


def by_variance(groups: Groups, usage: Usage) -> np.ndarray:
    """Return the axes of panels of any size: what varies most in a panel is x, then y."""
    n, panel = len(groups.components), groups.panel_of_point
    rows = groups.rows[: len(panel)]
    power = np.zeros((n, max(2, usage.most_used)))
    for slot in range(usage.most_used):
        values = usage.scores[rows, slot].astype(np.float64)
        power[:, slot] = np.bincount(panel, values * values, minlength=n)
    shown = np.full((n, 2), JITTER)
    for p, support in enumerate(groups.components):
        best = np.argsort(-power[p, : len(support)], kind="stable")[:2]
        shown[p, : len(best)] = [support[slot] for slot in best]
    return shown


def placed(
    groups: Groups, usage: Usage, shown: np.ndarray, component_ranges: np.ndarray | None = None
) -> Axes:
    """Put the points of all panels on their axes; ranges are the panel's own unless given."""
    panel = groups.panel_of_point
    rows = groups.rows[: len(panel)]
    along = [_along(usage, rows, shown[panel, axis], axis) for axis in (0, 1)]
    if component_ranges is None:
        ranges = np.stack([tails(values, groups.start) for values in along], axis=1)
    else:
        ranges = component_ranges[shown]
    ranges[shown == JITTER] = (-REACH, REACH)
    return Axes(shown, ranges, along[0], along[1])


def of_components(usage: Usage) -> np.ndarray:
    """Return the range (K, 2) of each component over the rows that use it."""
    components = usage.slots[usage.taken]
    counts = np.bincount(components, minlength=usage.n_components)
    start = np.concatenate([[0], np.cumsum(counts)])
    return tails(usage.values[usage.taken][np.argsort(components, kind="stable")], start)


def tails(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return robust ranges (n, 2) of the parts of values; zero and a margin are inside."""
    ends = np.zeros((4, len(start) - 1), values.dtype)
    for p, (first, last) in enumerate(pairwise(start.tolist())):
        if last > first:
            at = 0 if last - first < FEW else math.ceil(TAIL * (last - first - 1))
            places = [0, at, last - first - 1 - at, last - first - 1]
            ends[:, p] = np.partition(values[first:last], places)[places]
    least, low, high, most = ends
    low = np.minimum(np.maximum(least, BEYOND * low), 0.0)
    high = np.maximum(np.minimum(most, BEYOND * high), 0.0)
    width = np.where(high > low, high - low, 2.0)
    return np.asarray(np.stack([low - MARGIN * width, high + MARGIN * width], axis=1))


def jitter(rows: np.ndarray, axis: int) -> np.ndarray:
    """Spread rows along an axis without a component, as the browser does."""
    mixed = rows.astype(np.uint32) * np.uint32((_X, _Y)[axis])
    return np.asarray((mixed / 2.0**31 - 1) * SPREAD, np.float32)


def _along(usage: Usage, rows: np.ndarray, component: np.ndarray, axis: int) -> np.ndarray:
    values = np.zeros(len(rows), np.float32)
    for slot in range(usage.most_used):
        here = usage.slots[rows, slot] == component
        values[here] = usage.values[rows[here], slot]
    shows = component != JITTER
    values[~shows] = jitter(rows[~shows], axis)
    return values
