"""Scenes of the canvas for its browser tests and for looking at it, until they come from a fit.

``python -m tests.browser.canvas_scenes FOLDER NAME`` writes NAME (mnist2, mnist3, made100k, ...).
"""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

TABLE = "#468cff #c87d1e #cd1914 #6e966e #5a55e1 #8c6446 #f00f91 #057d87 #696e69 #a578b4".split()
CELL, COLUMNS = 32, 64
LEVELS = 36


def room_order(x: np.ndarray, y: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, list[int]]:
    """Greedy order of room for images in the unit square; how many by each step of 2^(1/4)."""
    priority = random.permutation(len(x))
    order: list[int] = []
    counts: list[int] = []
    left = priority[:6000]
    for level in range(LEVELS):
        apart = 0.5 / 2 ** (level / 4)
        taken: dict[tuple[int, int], list[int]] = {}
        for i in order:
            taken.setdefault((int(x[i] / apart), int(y[i] / apart)), []).append(i)
        waiting = []
        for i in left:
            a, b = int(x[i] / apart), int(y[i] / apart)
            near = (j for p in (a - 1, a, a + 1) for q in (b - 1, b, b + 1) for j in taken.get((p, q), ()))
            if any(abs(x[j] - x[i]) < apart and abs(y[j] - y[i]) < apart for j in near):
                waiting.append(i)
            else:
                order.append(int(i))
                taken.setdefault((a, b), []).append(int(i))
        left = np.array(waiting, dtype=int)
        counts.append(len(order))
        if not len(left):
            break
    rest = np.concatenate([left, priority[6000:]])
    return np.concatenate([np.array(order, dtype=int), rest]).astype(int), counts


def span(values: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(values, [0.5, 99.5]) if len(values) else (0.0, 1.0)
    low, high = min(0.0, 1.1 * low, ), max(0.0, 1.1 * high)
    pad = 0.05 * max(high - low, 1e-6)
    return float(low - pad), float(high + pad)


def write_scene(
    folder: Path, name: str, uses: np.ndarray, scores: np.ndarray, labels: np.ndarray, plane: np.ndarray,
    images: np.ndarray | None = None, pictures: np.ndarray | None = None, sure: np.ndarray | None = None,
) -> None:
    """Write meta and buffers; `uses` (N, L) component of each score in `scores` (N, L)."""
    random = np.random.default_rng(0)
    rows, active = uses.shape
    n_components = int(uses.max()) + 1
    unit = float(np.abs(scores).max() / 32000)
    out = folder / name
    out.mkdir(parents=True, exist_ok=True)
    layouts: dict[str, Any] = {}
    buffers: dict[str, np.ndarray] = {
        "components": uses.astype(np.uint8), "scores": np.round(scores / unit).astype("<i2"),
        "codes.class": labels.astype(np.uint8), "doubt": np.round(255 * (np.ones(rows) if sure is None else sure)).astype(np.uint8),
        "outside": (random.random(rows) < 0.002).astype(np.uint8),
    }
    dense = np.full((rows, n_components), np.nan, np.float32)
    np.put_along_axis(dense, uses, scores.astype(np.float32), 1)
    ranges = [span(dense[~np.isnan(dense[:, k]), k]) for k in range(n_components)]

    def panels_of(sets: list[tuple[int, ...]], members: list[np.ndarray]) -> tuple[list[dict], np.ndarray]:
        panels, orders, start = [], [], 0
        for members_of, held in zip(members, sets, strict=True):
            a, b = held[0], held[1]
            axes = [1, 0] if len(held) == 2 else [0, 1]
            cx, cy = held[axes[0]], held[axes[1]]
            x, y = dense[members_of, cx], dense[members_of, cy]
            (x0, x1), (y0, y1) = ranges[cx], ranges[cy]
            order, levels = room_order(np.clip((x - x0) / (x1 - x0), 0, 1), np.clip((y - y0) / (y1 - y0), 0, 1), random)
            panels.append({"components": [int(a), int(b), *map(int, held[2:])], "axes": axes, "start": start, "count": len(order),
                           "levels": levels, "range": [x0, x1, y0, y1], "own": [*span(x), *span(y)]})
            orders.append(members_of[order])
            start += len(order)
        return panels, np.concatenate(orders).astype("<u4")

    pairs = list(itertools.combinations(range(n_components), 2))
    members = [np.flatnonzero(~np.isnan(dense[:, a]) & ~np.isnan(dense[:, b])) for a, b in pairs]
    keep = [i for i, one in enumerate(members) if len(one)]
    panels, buffers["order.pairs"] = panels_of([pairs[i] for i in keep], [members[i] for i in keep])
    layouts["pairs"] = {"kind": "triangle", "title": "Subspaces" if active == 2 else "Pairs", "panels": panels}
    if active > 2:
        sets, inverse = np.unique(uses, axis=0, return_inverse=True)
        groups = [np.flatnonzero(inverse.ravel() == i) for i in range(len(sets))]
        panels, buffers["order.subspaces"] = panels_of([tuple(map(int, s)) for s in sets], groups)
        across = int(np.ceil(np.sqrt(1.5 * len(sets))))
        for i, panel in enumerate(panels):
            panel["cell"] = [i % across, i // across]
        layouts = {"subspaces": {"kind": "grid", "title": "Subspaces", "panels": panels}, **layouts}
    low, high = plane.min(0), plane.max(0)
    half = (high - low).max() / 2 * 1.03
    unit_plane = ((plane - (low + high) / 2) / half + 1) / 2
    buffers["map.pca"] = np.round(unit_plane * 65535).astype("<u2")
    order, levels = room_order(unit_plane[:, 0], unit_plane[:, 1], random)
    buffers["order.pca"] = order.astype("<u4")
    layouts["pca"] = {"kind": "map", "title": "PCA", "panels": [{"components": [], "axes": [0, 1], "start": 0, "count": rows, "levels": levels}]}
    counts = np.bincount(uses.ravel(), minlength=n_components)
    meta = {
        "format": 1, "rows": rows, "n_active": active, "score_unit": unit, "layouts": layouts, "words": {"row": "digit"}, "doubtful": 0.6,
        "components": [{"number": k + 1, "tile": k, "used": int(counts[k]), "variance": float(np.nanvar(dense[:, k]))} for k in range(n_components)],
        "colourings": {"class": {"kind": "category", "title": "Digit", "names": [str(i) for i in range(10)], "table": TABLE}},
    }
    if images is not None:
        firsts = np.full(rows, LEVELS)
        for panel in layouts["pairs"]["panels"]:
            row = buffers["order.pairs"][panel["start"] : panel["start"] + panel["count"]]
            level = np.searchsorted(panel["levels"], np.arange(len(row)), side="right")
            np.minimum.at(firsts, row, np.minimum(level, LEVELS))
        tile = np.empty(rows, "<u4")
        tile[np.argsort(firsts, kind="stable")] = np.arange(rows) % len(images)
        buffers["tile"] = tile
        by_tile = np.empty(len(images), int)
        by_tile[tile[: len(images)] if rows == len(images) else np.arange(len(images))] = np.arange(len(images))
        per = COLUMNS * COLUMNS
        sheets = -(-len(images) // per)
        height, width = images.shape[1:3]
        for s in range(sheets):
            part = images[by_tile[s * per : (s + 1) * per]]
            big = np.zeros((COLUMNS, CELL, COLUMNS, CELL), np.uint8)
            i = np.arange(len(part))
            top, left = (CELL - height) // 2, (CELL - width) // 2
            big[i // COLUMNS, top : top + height, i % COLUMNS, left : left + width] = part
            Image.fromarray(big.reshape(COLUMNS * CELL, COLUMNS * CELL)).save(out / f"tile-{s}.png")
        meta["sheets"] = {"tile": [height, width, 1], "cell": CELL, "columns": COLUMNS, "per_sheet": per, "count": sheets, "style": "ink"}
    if pictures is not None:
        side = 128
        sheet = Image.new("RGB", (side * len(pictures), side))
        for k, picture in enumerate(pictures):
            share = picture / np.abs(picture).max()
            ends = np.where(share[..., None] > 0, [200, 60, 40], [47, 111, 179])
            colours = 250 + (ends - 250) * np.abs(share)[..., None]
            sheet.paste(Image.fromarray(colours.astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC), (k * side, 0))
        sheet.save(out / "components.png")
        meta["component_pictures"] = {"cell": side, "columns": len(pictures)}
    for key, values in buffers.items():
        (out / f"{key}.bin").write_bytes(np.ascontiguousarray(values).tobytes())
    meta_file = {"meta": meta, "buffers": sorted(buffers)}
    (out / "scene.json").write_text(json.dumps(meta_file, separators=(",", ":")))


def made_scene(folder: Path, rows: int, n_components: int = 10, active: int = 3, images: np.ndarray | None = None) -> None:
    """Clusters in random subspaces."""
    random = np.random.default_rng(1)
    sets = np.array(list(itertools.combinations(range(n_components), active)))
    which = random.choice(len(sets), rows, p=random.dirichlet(np.full(len(sets), 0.8)))
    labels = (random.random(rows) * 3 + which).astype(int) % 10
    means = random.normal(0, 4, (len(sets), 10, active))
    scores = means[which, labels] + random.normal(0, 1.5, (rows, active))
    plane = random.normal(0, 6, (10, 2))[labels] + random.normal(0, 1.2, (rows, 2)) + means[which, labels][:, :2] * 0.4
    name = f"made{rows // 1000}k" if rows >= 1000 else "small"
    write_scene(folder, name, sets[which], scores, labels, plane, images, None, random.beta(5, 1, rows))


def mnist_scene(folder: Path, active: int, rows: int = 10_000, n_components: int = 10, name: str = "") -> None:
    from appca import AdaptivePPCA
    from tests.browser.explorer_demo import mnist

    images, labels = mnist(rows)
    data = images.reshape(rows, -1).astype(np.float32) / 255
    model = AdaptivePPCA(n_components=n_components, n_active=active, random_state=0).fit(data)
    scores = np.asarray(model.transform(data))
    uses = np.nonzero(np.asarray(model.allocate(data)))[1].reshape(rows, active)
    sure = np.sort(np.asarray(model.inclusion_probabilities(data)), axis=1)[:, -active:].min(1)
    centred = data - data.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    pictures = np.asarray(model.components_).reshape(n_components, 28, 28) if np.asarray(model.components_).shape[0] == n_components else None
    write_scene(folder, name or f"mnist{active}", uses, np.take_along_axis(scores, uses, 1), labels.astype(int), centred @ axes[:, [-1, -2]], images, pictures, sure)


if __name__ == "__main__":
    target, wanted = Path(sys.argv[1]), sys.argv[2]
    if wanted.startswith("mnist"):
        mnist_scene(target, int(wanted[5]), n_components=int(wanted[7:] or 10), name=wanted)
    elif wanted == "small":
        made_scene(target, 800, 5, 2, np.random.default_rng(0).integers(0, 255, (800, 28, 28)).astype(np.uint8))
    else:
        from tests.browser.explorer_demo import mnist

        made_scene(target, int(wanted[4:-1]) * 1000, images=mnist(10_000)[0])
