"""Panels of a scene: their components, axes, points and colours."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.analysis.groups import COLOURS, MAP, MEASURES, column_of
from appca.canvas.image_placement import spread_order
from appca.data.dataset import Dataset
from appca.plots.style import Colour, label_colour
from appca.row_types import RowTypes
from appca.words import capital

SOME, MANY = 0.05, 0.2  # rank errors, as shares of the largest possible error
_FALSE, _MISSING = ("", "some false", "many false"), ("", "some missing", "many missing")
TRUST_NAMES = tuple(
    ", ".join(filter(None, (false, missing))) or "neighbours kept"
    for false in _FALSE
    for missing in _MISSING
)
TRUST_COLOURS = (  # two dimensions: false neighbours are pink, missing neighbours teal
    *("#b9b9b9", "#8fcfcf", "#3fb3b3"),
    *("#d79ccb", "#989fce", "#4a8fb0"),
    *("#b8529f", "#80559c", "#323f8c"),
)


def trust_colour(trust: np.ndarray, of: str = capital(MAP)) -> Colour:
    """Colour rows by false and missing neighbours (N, 2 or more), see `trust`; NaN: no class."""
    false, missing = (np.searchsorted((SOME, MANY), trust[:, part], "right") for part in (0, 1))
    codes = np.where(np.isnan(trust[:, 0]), -1, 3 * false + missing)
    return Colour("category", of, codes, TRUST_NAMES, TRUST_COLOURS)


def colour_choices(dataset: Dataset) -> dict[str, str]:
    """Return the titles of every scene's colourings, by key."""
    labels = {f"label:{name}": name for name in dataset.labels}
    return labels | {key: capital(key) for key in MEASURES}


def colour_of(dataset: Dataset, fitted: FittedRun, choice: str, trust: object = None) -> Colour:
    """Return a colouring by a label, a key of `COLOURS`, or "feature:" and a number."""
    kind, _, name = choice.partition(":")
    if kind == "label":
        return label_colour(dataset, name)
    if choice in COLOURS:
        title, values = capital(choice), COLOURS[choice].of(dataset, fitted, trust)
        if isinstance(values, RowTypes):
            return Colour("category", title, values.codes, values.names)
        if np.ndim(values) > 1:
            return trust_colour(values, title)
    else:
        title, values, _ = column_of(dataset, fitted, choice)
    return Colour("number", title, np.asarray(values, dtype=np.float64))


FULL = 32_767
_ROOM_ABOVE = 4.0  # factor of the 99.9th percentile above which scores are clipped as outliers


class Usage(NamedTuple):
    """Use of components by the rows of a run, for the canvas."""

    slots: np.ndarray  # (N, L) uint8 or uint16: ascending components of a row, padded
    scores: np.ndarray  # (N, L) int16 in units of `unit`; 0 for padding
    unit: float
    values: np.ndarray  # (N, L) float32 scores of the model; 0 for padding
    n_components: int
    priority: np.ndarray  # (N,) uint32: rows in the order of placement
    pictured: bool  # whether rows are images, which need space

    @property
    def most_used(self) -> int:
        """Maximum number of components per row."""
        return int(self.slots.shape[1])

    @property
    def taken(self) -> np.ndarray:
        """Mask (N, L) of slots without padding."""
        return np.asarray(self.slots != np.iinfo(self.slots.dtype).max)

    @property
    def used(self) -> np.ndarray:
        """Number of components that each row (N,) uses."""
        return np.asarray(self.taken.sum(axis=1))

    @property
    def varies(self) -> bool:
        """Whether rows differ in number of components."""
        return bool(np.ptp(self.used))


def usage_of(fitted: FittedRun, *, pictured: bool) -> Usage:
    """List the components of each row; `pictured` says whether the rows are images."""
    rows, components = np.nonzero(fitted.active)
    scores, (N, K) = fitted.scores[rows, components], fitted.active.shape
    listed, values = row_by_row(rows, components, scores, N)
    slots = listed.astype(np.uint8 if K < 256 else np.uint16)  # -1 becomes the largest number
    return usage_of_slots(slots, values, K, pictured=pictured)


def row_by_row(
    rows: np.ndarray, components: np.ndarray, scores: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Arrange entries (n,), ordered by row, and their values in slots (N, L) padded with -1."""
    counts = np.bincount(rows, minlength=n_rows)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = np.full((n_rows, counts.max(initial=0)), -1)
    values = np.zeros(slots.shape, np.float32)
    slots[rows, places], values[rows, places] = components, scores
    return slots, values


def usage_of_slots(
    slots: np.ndarray, values: np.ndarray, n_components: int, *, pictured: bool
) -> Usage:
    """Return the usage of components listed per row, as in `Usage`."""
    unit = _unit(values[slots != np.iinfo(slots.dtype).max])
    scores = np.clip(np.rint(values / unit), -FULL, FULL).astype(np.int16)
    return Usage(slots, scores, unit, values, n_components, spread_order(len(slots)), pictured)


def _unit(values: np.ndarray) -> float:
    """Return the int16 step; choose it so that a single outlier does not coarsen other scores."""
    sizes = np.abs(values)
    most = float(sizes.max(initial=0.0))
    if not most > 0:
        return 1.0
    some = sizes[:: len(sizes) // 100_000 + 1]
    usual = _ROOM_ABOVE * float(np.quantile(some, 0.999, method="lower"))
    return (min(most, usual) or most) / FULL


MOST_POINTS = 2_000_000
MOST_PANELS = 240  # maximum number of subspaces with their own panel; the others share a panel
MOST_PAIRS = 1_225  # maximum number of pairs: all pairs of 50 components

Components = tuple[int, ...]


class Groups(NamedTuple):
    """Panels of a layout and their rows."""

    components: list[Components]  # per panel
    rows: np.ndarray  # (points,) panel by panel, by priority within a panel
    start: np.ndarray  # (n_panels + 1,) start of each panel; points after the last share a panel
    totals: np.ndarray  # (n_panels,) rows per panel, including those not drawn
    gathered: int = 0  # number of subspaces in the shared panel
    n_rows: int = 0  # length of the priority list

    @property
    def counts(self) -> np.ndarray:
        """Number of drawn rows per panel."""
        return np.diff(self.start)

    @property
    def panel_of_point(self) -> np.ndarray:
        """Panel of each point, without points in the shared panel."""
        return np.repeat(np.arange(len(self.components)), self.counts)


def subspaces(usage: Usage) -> Groups:
    """Return a group for each support, largest first, or by numbers if of over two components."""
    member = _keys(usage)
    counts = np.bincount(member)
    first = np.empty(len(counts), np.int64)
    first[member[::-1]] = np.arange(len(member))[::-1]
    taken = usage.taken[first]
    sets = [tuple(usage.slots[row, taken[g]].tolist()) for g, row in enumerate(first.tolist())]
    order = sorted(range(len(sets)), key=lambda g: (-counts[g], sets[g]))
    if usage.most_used > 2:
        order[:MOST_PANELS] = sorted(order[:MOST_PANELS], key=sets.__getitem__)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    rows = usage.priority[stable_order(rank[member[usage.priority]], len(order))]
    kept = order[:MOST_PANELS]
    start, gathered = np.concatenate([[0], np.cumsum(counts[kept])]), len(order) - len(kept)
    return Groups([sets[g] for g in kept], rows, start, counts[kept], gathered, len(rows))


def pairs(usage: Usage) -> Groups:
    """Return a group for each pair of components that rows use together.

    Rows that use one component or none form extra groups, so that no row is missing. If there are
    more than `MOST_POINTS` points, only the first rows by priority, a random sample, are used.
    """
    n, K, used = len(usage.slots), usage.n_components, usage.used
    each = np.where(used < 2, 1, used * (used - 1) // 2)
    points, looked_at = int(each.sum()), usage.priority
    if points > MOST_POINTS:
        running = np.cumsum(each[usage.priority])
        looked_at = looked_at[: max(1, int(np.searchsorted(running, MOST_POINTS)))]
    codes, rows = _pair_codes(usage, looked_at)
    counts = np.bincount(codes, minlength=K * K + 1)
    totals = counts
    if len(looked_at) < n:
        parts = _pair_parts(usage, usage.priority)
        totals = sum((np.bincount(part, minlength=K * K + 1) for part, _ in parts), 0 * counts)
    kept = np.flatnonzero(counts)
    if len(kept) > MOST_PAIRS:
        kept = np.sort(kept[np.argsort(-counts[kept], kind="stable")[:MOST_PAIRS]])
        inside = np.isin(codes, kept)
        codes, rows = codes[inside], rows[inside]
    start = np.concatenate([[0], np.cumsum(counts[kept])])
    names, rows = [_pair_of(int(code), K) for code in kept], rows[stable_order(codes, K * K + 1)]
    return Groups(names, rows, start, totals[kept], 0, len(looked_at))


def fullest_pairs(usage: Usage) -> Groups:
    """Return the largest pairs of very many components, as estimated from a sample of rows.

    Their panels contain all of their rows, up to `MOST_POINTS`.
    """
    K, each = usage.n_components, max(1, usage.most_used * (usage.most_used - 1) // 2)
    sample = usage.priority[: max(1, MOST_POINTS // each)]
    codes, counts = np.unique(_pair_codes(usage, sample)[0].astype(np.int64), return_counts=True)
    together = (codes // K < K) & (codes // K != codes % K)
    codes, counts = codes[together], counts[together]
    kept = codes[np.argsort(-counts, kind="stable")[:MOST_PANELS]].tolist()
    names = [_pair_of(code, K) for code in kept]
    users = _users(usage, {k for pair in names for k in pair})
    rank = np.empty(len(usage.priority), np.int64)
    rank[usage.priority] = np.arange(len(rank))
    rows = ((np.intersect1d(users[a], users[b], assume_unique=True), (a, b)) for a, b in names)
    by_size = sorted(rows, key=lambda panel: (-len(panel[0]), panel[1]))
    ranks, names = [np.sort(rank[panel]) for panel, _ in by_size], [pair for _, pair in by_size]
    totals, most = np.array([len(panel) for panel in ranks], np.int64), len(rank)
    if totals.sum() > MOST_POINTS:
        most = int(np.partition(np.concatenate(ranks), MOST_POINTS)[MOST_POINTS])
    ranks = [ranking[ranking < most] for ranking in ranks]
    start = np.concatenate([[0], np.cumsum([len(ranking) for ranking in ranks])]).astype(np.int64)
    drawn = usage.priority[np.concatenate([np.empty(0, np.int64), *ranks])]
    return Groups(names, drawn, start, totals, 0, most)


def _users(usage: Usage, components: set[int]) -> dict[int, np.ndarray]:
    rows, used = np.nonzero(usage.taken)[0], usage.slots[usage.taken]
    order = np.argsort(used, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(used, minlength=usage.n_components))])
    return {k: rows[order[ends[k] : ends[k + 1]]] for k in components}


def whole(usage: Usage) -> Groups:
    """Return a group of all rows, or of as many as may be drawn."""
    rows, n = usage.priority[:MOST_POINTS], len(usage.priority)
    return Groups([()], rows, np.array([0, len(rows)]), np.array([n]), 0, len(rows))


def _pair_codes(usage: Usage, looked_at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes, place = map(np.concatenate, zip(*_pair_parts(usage, looked_at), strict=True))
    by_priority = np.argsort(place, kind="stable")
    return codes[by_priority], looked_at[place[by_priority]]


def _pair_parts(usage: Usage, looked_at: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield codes a * K + b (a = b: one component, K K: none), and indices of their rows."""
    K, L = usage.n_components, usage.most_used
    slots, used = usage.slots[looked_at].astype(np.int64), usage.used[looked_at]
    none = np.flatnonzero(used == 0)
    yield np.full(len(none), K * K), none
    parts = [(np.flatnonzero(used == 1), 0, 0)] if L else []
    parts += [(np.flatnonzero(used > b), a, b) for b in range(L) for a in range(b)]
    for where, a, b in parts:
        yield slots[where, a] * K + slots[where, b], where


def _pair_of(code: int, K: int) -> Components:
    if code == K * K:
        return ()
    a, b = divmod(code, K)
    return (a,) if a == b else (a, b)


def _keys(usage: Usage) -> np.ndarray:
    keys, n_keys, base = np.zeros(len(usage.slots), np.int64), 1, usage.n_components + 1
    for slot in usage.slots.T:
        if n_keys * base > 2**62:
            keys = np.unique(keys, return_inverse=True)[1]
            n_keys = int(keys.max()) + 1
        keys, n_keys = keys * base + np.minimum(slot, base - 1), n_keys * base
    small = keys.astype(np.min_scalar_type(n_keys))  # numpy sorts small types faster
    return np.unique(small, return_inverse=True)[1]


def stable_order(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Return indices of a stable sort, which is fast for small types."""
    return np.argsort(codes.astype(np.min_scalar_type(max(n_codes, 1))), kind="stable")


JITTER = -1  # in place of a component: spread rows along an axis without one
SPREAD, REACH = 0.8, 1.0  # extents of the rows and of the axis
TAIL, BEYOND, MARGIN = 0.005, 1.6, 0.06  # ranges extend beyond the central 99%
FEW = 20  # maximum number of rows for a range that includes all of them
_X, _Y = 0x85EBCA77, 0x9E3779B1  # odd multipliers of a hash


class Axes(NamedTuple):
    """Panels with two axes, and the positions of their points."""

    shown: np.ndarray  # (n_panels, 2) components on x and y, or JITTER
    ranges: np.ndarray  # (n_panels, 2, 2) limits of x and y
    x: np.ndarray  # (points,) float32
    y: np.ndarray  # (points,)


def by_pair(groups: Groups) -> np.ndarray:
    """Return the axes of panels with at most two components; x has the larger number."""
    shown = np.full((len(groups.components), 2), JITTER)
    for p, pair in enumerate(groups.components):
        shown[p, : len(pair)] = pair[::-1]
    return shown


def by_variance(groups: Groups, usage: Usage) -> np.ndarray:
    """Return the axes of panels: x is the component with the largest variance, y the next."""
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
    """Place the points of all panels on their axes; by default, panels have their own ranges."""
    panel = groups.panel_of_point
    along = [_along(usage, groups.rows[: len(panel)], shown[panel, axis], axis) for axis in (0, 1)]
    if component_ranges is None:
        ranges = np.stack([tails(values, groups.start) for values in along], axis=1)
    else:
        ranges = component_ranges[shown]
    ranges[shown == JITTER] = (-REACH, REACH)
    return Axes(shown, ranges, along[0], along[1])


def of_components(usage: Usage) -> np.ndarray:
    """Return the range (K, 2) of each component over the rows that use it."""
    components = usage.slots[usage.taken]
    start = np.concatenate([[0], np.cumsum(np.bincount(components, minlength=usage.n_components))])
    return tails(usage.values[usage.taken][np.argsort(components, kind="stable")], start)


def tails(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return robust ranges (n, 2) of parts of the values, including zero and a margin."""
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
