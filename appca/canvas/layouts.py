"""Layouts of the same rows: subspaces, pairs of components, strips, maps."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from appca.canvas import panels
from appca.canvas.image_placement import SPACING, room_orders
from appca.canvas.panels import JITTER, Axes, Groups, Usage

PANELS_AT_FIRST = 60  # maximum number of subspaces shown at first; with more, pairs are shown
WIDE = 255  # number of components above which the largest pairs form a grid, not a triangle
MOST_IMAGES = 12_000  # maximum number of precomputed images per panel
LISTED = 100_000  # maximum number of rows in a layout's list


class Layout(NamedTuple):
    """A layout of the rows: its header, and the rows listed by panel."""

    header: dict[str, Any]
    order: np.ndarray  # (listed,) uint32, panel by panel


def layouts_of(usage: Usage, ranges: np.ndarray) -> dict[str, Layout]:
    """Return a run's layouts other than maps; `ranges` (K, 2) are ranges of components."""
    if usage.most_used < 2:
        return {"subspaces": _grid(usage, "strips")}
    if usage.n_components == 2:  # one large panel
        return {"subspaces": _grid(usage, "grid")}
    if usage.most_used == 2:
        return {"subspaces": _pairs(panels.pairs(usage), usage, ranges, "Subspaces")}
    if usage.n_components > WIDE:
        fullest = _pairs(panels.fullest_pairs(usage), usage, ranges, "Pairs", "grid")
        return {"subspaces": _grid(usage, "grid"), "pairs": fullest}
    with ThreadPoolExecutor(1) as beside:  # both take 0.3 s for 60,000 rows and K = 20
        pairs = beside.submit(lambda: _pairs(panels.pairs(usage), usage, ranges, "Pairs"))
        return {"subspaces": _grid(usage, "grid"), "pairs": pairs.result()}


def first_of(layouts: dict[str, Layout], varies: bool) -> str:
    """Return the first layout: subspaces, or pairs if rows differ in number of components."""
    subspaces = layouts["subspaces"].header
    in_use = len(subspaces["panels"]) + subspaces.get("other", {}).get("subspaces", 0)
    wanted = varies or in_use > PANELS_AT_FIRST
    return "pairs" if wanted and "pairs" in layouts else "subspaces"


def map_layout(
    usage: Usage, title: str, coordinates: np.ndarray, has_one_unit: bool
) -> tuple[Layout, np.ndarray]:
    """Return a layout of one panel for coordinates (N, q), and positions (N, 2) uint16."""
    values = np.zeros((len(coordinates), 2), np.float32)
    values[:, : coordinates.shape[1]] = coordinates[:, :2]
    low, high = values.min(axis=0), values.max(axis=0)
    size = np.full(2, (high - low).max()) if has_one_unit else high - low
    middle, half = (low + high) / 2, np.where(size > 0, size / 2 * (1 + panels.MARGIN), 1.0)
    limits = np.stack([middle - half, middle + half], axis=1)
    positions, whole = (values - limits[:, 0]) / (2 * half), panels.whole(usage)
    x, y = positions[whole.rows].T
    on_axes = Axes(np.zeros((1, 2), np.int64), np.array([[[0.0, 1.0]] * 2]), x, y)
    layout = _layout("map", title, whole, on_axes, usage)
    panel = layout.header["panels"][0]
    panel |= {"axes": [0, 1], "range": _ranges(limits)}
    header = layout.header | {"limits": _ranges(limits)}
    steps = np.clip(np.rint(positions * 65_535), 0, 65_535).astype(np.uint16)
    return Layout(header, layout.order), steps


def _pairs(
    pairs: Groups, usage: Usage, ranges: np.ndarray, title: str, kind: str = "triangle"
) -> Layout:
    on_axes = panels.placed(pairs, usage, panels.by_pair(pairs), ranges)
    return _layout(kind, title, pairs, on_axes, usage)


def _grid(usage: Usage, kind: str) -> Layout:
    subspaces = panels.subspaces(usage)
    on_axes = panels.placed(subspaces, usage, panels.by_variance(subspaces, usage))
    layout = _layout(kind, "Subspaces", subspaces, on_axes, usage)
    sizes = 0.8 + 0.2 * (subspaces.counts / subspaces.counts.max(initial=1)) ** 0.4
    for panel, size in zip(layout.header["panels"], sizes, strict=True):
        panel["size"] = round(float(size), 3)
    if subspaces.gathered:
        start = int(subspaces.start[-1])
        other = {"subspaces": subspaces.gathered, "start": start}
        layout.header["other"] = other | {"count": len(subspaces.rows) - start}
    return layout


def _layout(kind: str, title: str, panels: Groups, on_axes: Axes, usage: Usage) -> Layout:
    rows, levels = panels.rows, np.full((len(panels.counts), 1), -1)
    if usage.pictured:
        rows, levels = _by_room(panels, on_axes, max(LISTED, len(usage.priority)))
    listed = panels.counts
    if kind not in ("grid", "strips"):
        listed, panel = np.maximum(levels.max(axis=1), 0), panels.panel_of_point
        within = np.arange(len(panel)) - panels.start[panel]
        rows = rows[: len(panel)][within < listed[panel]]
    start = np.cumsum(listed) - listed
    header: dict[str, Any] = {"kind": kind, "title": title, "spacing": SPACING}
    header["panels"] = [
        {
            "components": list(components),
            "axes": [int(k) for k in on_axes.shown[p] if k != JITTER],
            "start": int(start[p]),
            "listed": int(listed[p]),
            "count": int(panels.counts[p]),
            "levels": [level for level in levels[p].tolist() if level >= 0],
            "range": _ranges(on_axes.ranges[p]),
        }
        for p, components in enumerate(panels.components)
    ]
    if kind == "triangle":  # pair (a, b) is in row a, column b; a grid is filled in panel order
        for entry in header["panels"]:
            used = entry["components"] or [usage.n_components, 0]
            entry["cell"] = [used[-1], used[0]]
    if panels.n_rows < len(usage.priority):
        for entry, total in zip(header["panels"], panels.totals, strict=True):
            entry["total"] = int(total)
        points, of = int(panels.counts.sum()), int(panels.totals.sum())
        header["drawn"] = {"rows": panels.n_rows, "points": points, "of": of}
    return Layout(header, rows.astype(np.uint32))


def _by_room(panels: Groups, on_axes: Axes, together: int) -> tuple[np.ndarray, np.ndarray]:
    least, most = 0, MOST_IMAGES
    while least < most:
        middle = (least + most + 1) // 2
        fits = int(np.minimum(panels.counts, middle).sum()) <= together
        least, most = (middle, most) if fits else (least, middle - 1)
    panel = panels.panel_of_point
    low, high = on_axes.ranges[:, :, 0], on_axes.ranges[:, :, 1]
    width = (high - low)[panel]
    x = ((on_axes.x - low[panel, 0]) / width[:, 0]).astype(np.float32)
    y = ((on_axes.y - low[panel, 1]) / width[:, 1]).astype(np.float32)
    inside, levels = room_orders(x, y, panels.start, max(least, 1))
    rows = panels.rows.copy()
    rows[: len(panel)] = panels.rows[: len(panel)][inside + panels.start[panel]]
    return rows, levels


def _ranges(pair: np.ndarray) -> list[list[float]]:
    return [[float(f"{end:.6g}") for end in ends] for ends in pair]
