"""Which rows stand in which panel: by subspace, or by the pairs of components that they use."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from appca.canvas.scene.usage import Usage

MOST_POINTS = 2_000_000
MOST_PANELS = 240  # subspaces as panels of their own; the rest is gathered
MOST_PAIRS = 1_225  # all of 50 components

Components = tuple[int, ...]


class Groups(NamedTuple):
    """Panels of a layout and their rows."""

    components: list[Components]  # of each panel
    rows: np.ndarray  # (points,) panel by panel, inside a panel by priority
    start: np.ndarray  # (n_panels + 1,) where each begins; what lies behind the last is gathered
    totals: np.ndarray  # (n_panels,) rows of each, also those that are not drawn
    gathered: int = 0  # panels behind the last one
    n_rows: int = 0  # of the priority, that were looked at

    @property
    def counts(self) -> np.ndarray:
        """Rows of each panel that are drawn."""
        return np.diff(self.start)

    @property
    def panel_of_point(self) -> np.ndarray:
        """Panel of each point in a panel of its own."""
        return np.repeat(np.arange(len(self.components)), self.counts)


def subspaces(usage: Usage) -> Groups:
    """Return a group for each set of components in use, the fullest first."""
    member = _keys(usage)
    counts = np.bincount(member)
    first = np.empty(len(counts), np.int64)
    first[member[::-1]] = np.arange(len(member))[::-1]
    taken = usage.taken[first]
    sets = [tuple(usage.slots[row, taken[g]].tolist()) for g, row in enumerate(first.tolist())]
    order = sorted(range(len(sets)), key=lambda g: (-counts[g], sets[g]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    by_priority = rank[member[usage.priority]]
    rows = usage.priority[stable_order(by_priority, len(order))]
    kept = order[:MOST_PANELS]
    start = np.concatenate([[0], np.cumsum(counts[kept])])
    gathered = len(order) - len(kept)
    return Groups([sets[g] for g in kept], rows, start, counts[kept], gathered, len(rows))


def pairs(usage: Usage) -> Groups:
    """Return a group for each pair of components that rows use together.

    Rows that use a single component, or none, have groups of their own, so that no row is left out.
    Beyond `MOST_POINTS` only the first rows of the priority are looked at: a fair sample.
    """
    n, K, used = len(usage.slots), usage.n_components, usage.used
    each = np.where(used < 2, 1, used * (used - 1) // 2)
    points = int(each.sum())
    looked_at = usage.priority
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
    names = [_pair_of(int(code), K) for code in kept]
    rows = rows[stable_order(codes, K * K + 1)]
    return Groups(names, rows, start, totals[kept], 0, len(looked_at))


def fullest_pairs(usage: Usage) -> Groups:
    """Return the fullest pairs of very many components, found on a sample of the rows.

    Rows and totals of the panels are those of all rows, up to `MOST_POINTS`.
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
    """Return the rows that use each of some components, ascending."""
    rows = np.nonzero(usage.taken)[0]
    used = usage.slots[usage.taken]
    order = np.argsort(used, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(used, minlength=usage.n_components))])
    return {k: rows[order[ends[k] : ends[k + 1]]] for k in components}


def whole(usage: Usage) -> Groups:
    """Return one group of all rows, or of as many as may be drawn."""
    rows = usage.priority[:MOST_POINTS]
    n = len(usage.priority)
    return Groups([()], rows, np.array([0, len(rows)]), np.array([n]), 0, len(rows))


def _pair_codes(usage: Usage, looked_at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the code and the row of each point, by priority; see `_pair_parts`."""
    codes, place = map(np.concatenate, zip(*_pair_parts(usage, looked_at), strict=True))
    by_priority = np.argsort(place, kind="stable")
    return codes[by_priority], looked_at[place[by_priority]]


def _pair_parts(usage: Usage, looked_at: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield codes a * K + b of points (a a: one component, K K: none), and places of their rows."""
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
    """Give rows (N,) that use the same set of components the same number, from 0."""
    keys, n_keys, base = np.zeros(len(usage.slots), np.int64), 1, usage.n_components + 1
    for slot in usage.slots.T:
        if n_keys * base > 2**62:
            keys = np.unique(keys, return_inverse=True)[1]
            n_keys = int(keys.max()) + 1
        keys, n_keys = keys * base + np.minimum(slot, base - 1), n_keys * base
    small = keys.astype(np.min_scalar_type(n_keys))  # numpy sorts small types faster
    return np.unique(small, return_inverse=True)[1]


def stable_order(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Sort so that equal ones keep their order; numpy does it in one pass a byte of small types."""
    small = np.min_scalar_type(max(n_codes, 1))
    return np.argsort(codes.astype(small), kind="stable")
