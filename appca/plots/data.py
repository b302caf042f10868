"""Figures of data sets, drift, and the progress of a fit."""

from typing import TYPE_CHECKING, Any

import numpy as np

from appca.analysis.components import fullest
from appca.analysis.fitted import FittedRun
from appca.plots.components import FALLS, LINE, MOST_LETTERS, RING, RISES
from appca.plots.style import CATEGORICAL, CLEAR, category_axis, chart, plain
from appca.words import fixed, number

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_LINES, LEAST = 25, 0.005  # maximum number of columns, and minimum effect of a column


def drift_chart(tests: "pd.DataFrame") -> "go.Figure":
    """Draw the result of `appca.drift`, or its rows with the largest effects."""
    strongest = tests.assign(size=tests["effect"].abs()).groupby("column")["size"].max()
    ordered = strongest[strongest > LEAST].sort_values(ascending=False, kind="stable")
    columns = ordered.index[:MOST_LINES].tolist()
    bar: dict[str, Any] = {"type": "bar", "name": "level", "orientation": "h"}
    ring: dict[str, Any] = {"type": "scatter", "name": "spread", "mode": "markers"}
    for look in (bar, ring):
        of = tests[(tests["part"] == look["name"]) & tests["column"].isin(columns)]
        colours, texts = [], []
        for test in of.to_dict("records"):
            rgb = RISES if test["effect"] > 0 else FALLS
            colours.append(f"rgba{(*rgb, 1.0 if test['q'] < 0.05 else 0.4)}")
            what = f"{test['column']}, {look['name']}: {test['direction']}"
            means = f"old {number(test['old'])}, new {number(test['new'])}"
            texts.append(plain(f"{what}, effect {test['effect']:+.2f}, q {test['q']:.2g}, {means}"))
        look |= {"x": of["effect"], "y": [columns.index(name) for name in of["column"]]}
        look |= {"text": texts, "hovertemplate": "%{text}<extra></extra>"}
        look["marker"] = {"color": colours}
    bar["textposition"] = "none"
    ring["marker"] |= {"symbol": "circle-open", "size": RING, "line": {"width": 3}}
    across = {"title": "lower in new rows ← effect → higher", "range": [-1.05, 1.05]}
    height, down = LINE * len(columns) + 60, category_axis(columns, MOST_LETTERS)
    layout = {"showlegend": False, "bargap": 0.3, "plot_bgcolor": CLEAR}
    return chart([bar, ring], height, across, down, bottom=10, **layout)


WIDTH, HEIGHT, GAP = 720, 400, 10  # pixels
COLUMNS, LINES = 3, 2
MOST_ROWS = 900  # maximum number of rows in a panel
LIGHT = (0xF4, 0xF6, 0xF9), (0xFF, 0xFF, 0xFF)  # background of the picture and of panels
DARK = (0x0C, 0x10, 0x16), (0x16, 0x1D, 0x27)
EDGE = 0.5  # percent of the rows outside each edge
DOT = np.argwhere(np.hypot(*np.mgrid[-2.5:3, -2.5:3]) < 3.0)  # pixels in a six-by-six square


def thumbnail(fitted: FittedRun, codes: np.ndarray | None, dark: bool = False) -> np.ndarray:
    """Draw the subspaces with the most rows, or pairs of components if there are many subspaces.

    `codes` (N,) are the classes of the rows, in the same colours on light and dark backgrounds.
    Returns uint8 (HEIGHT, WIDTH, 3).
    """
    ground, ground_of_panels = DARK if dark else LIGHT
    picture = np.full((HEIGHT, WIDTH, 3), ground, np.uint8)
    table = np.array([tuple(bytes.fromhex(colour[1:])) for colour in CATEGORICAL], np.uint8)
    groups = fullest(fitted.active, COLUMNS * LINES)
    columns, lines = min(COLUMNS, len(groups)) or 1, -(-len(groups) // COLUMNS) or 1
    width, height = (WIDTH - GAP) // columns - GAP, (HEIGHT - GAP) // lines - GAP
    for place, group in enumerate(groups):
        line, column = divmod(place, columns)
        top, left = GAP + line * (height + GAP), GAP + column * (width + GAP)
        panel = picture[top : top + height, left : left + width]
        panel[:] = ground_of_panels
        rows = group.rows[np.random.default_rng(0).permutation(len(group.rows))[:MOST_ROWS]]
        scores = fitted.scores[rows][:, list(group.components)].astype(np.float64)
        widest = np.argsort(-scores.var(axis=0), kind="stable")[:2]
        positions = np.column_stack([scores[:, widest], np.zeros((len(rows), 2 - len(widest)))])
        low, high = np.percentile(positions, [EDGE, 100 - EDGE], axis=0)
        spread = np.where(high > low, high - low, 1.0)
        places = np.where(high > low, (positions - low) / spread, 0.5)
        x = np.clip((0.06 + 0.88 * places[:, 0]) * width, 0, width - 6).astype(int)
        y = np.clip((0.94 - 0.88 * places[:, 1]) * height, 0, height - 6).astype(int)
        for down, right in DOT:
            panel[y + down, x + right] = table[0 if codes is None else codes[rows] % len(table)]
    return picture


def in_the_dark(picture: np.ndarray) -> np.ndarray:
    """Invert the lightness of a picture (h, w) or (h, w, 3) and keep its hues."""
    wide = np.atleast_3d(picture).astype(int)
    inverted = wide + 255 - wide.max(axis=2, keepdims=True) - wide.min(axis=2, keepdims=True)
    return np.asarray(inverted, np.uint8).reshape(picture.shape)


CURVE = "#3f90da"
LEAST_SPAN = 0.01  # nats per row on the axis: smaller spans are rounding


def likelihood(
    iterations: np.ndarray, values: np.ndarray, n_rows: int, sampled: bool = False
) -> "go.Figure":
    """Draw the log-likelihood per row against the iteration, or a sampler's sweep.

    `values` (n,) are total nats of `n_rows` rows. The first iterations climb so far that they would
    hide the others, so the axis shows only the last nine tenths of the iterations in full.
    """
    step = "sweep" if sampled else "iteration"
    per_row = np.asarray(values, dtype=np.float64) / n_rows
    finite, limits = per_row[np.isfinite(per_row)], None
    if len(finite):
        low = np.quantile(finite, 0.1) if len(finite) >= 10 else finite.min()
        low = low if finite.max() - low > LEAST_SPAN else finite.min()
        margin = max(0.08 * (finite.max() - low), LEAST_SPAN / 2)
        limits = [float(low - margin), float(finite.max() + margin)]
    line: dict[str, Any] = {"type": "scatter", "line": {"color": CURVE, "width": 2}}
    line |= {"x": np.asarray(iterations, np.float32), "y": per_row, "marker": {"size": 4}}
    line |= {"mode": "lines+markers" if len(per_row) < 40 else "lines"}
    line |= {"customdata": [*map(fixed, per_row)]}
    line["hovertemplate"] = step + " %{x}: %{customdata} nats per row<extra></extra>"
    down = {"title": "log-likelihood per row", "nticks": 5, "range": limits}
    return chart([line], 230, {"title": step, "showgrid": False}, down, showlegend=False)
