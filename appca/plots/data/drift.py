"""Old rows against new ones: one line a column, a bar for its level and a ring for its spread."""

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from appca.plots.components.association import FALLS, LINE, MOST_LETTERS, RING, RISES
from appca.plots.frame import CLEAR, framed, lines, plain
from appca.words.numbers import number

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES, LEAST = 25, 0.005  # columns, and the effect that a column must have
BELOW, PALE = 60, 0.4


def drift_chart(tests: "pd.DataFrame") -> go.Figure:
    """Draw what `appca.drift` returns, or some rows of it, those with the largest effects."""
    strongest = tests.assign(size=tests["effect"].abs()).groupby("column")["size"].max()
    ordered = strongest[strongest > LEAST].sort_values(ascending=False, kind="stable")
    columns = ordered.index[:MOST_LINES].tolist()
    traces = []
    for part in ("level", "spread"):
        of = tests[(tests["part"] == part) & tests["column"].isin(columns)]
        shade = np.where(of["q"] < 0.05, 1.0, PALE)
        colours = [
            f"rgba{(*(RISES if effect > 0 else FALLS), float(alpha))}"
            for effect, alpha in zip(of["effect"], shade, strict=True)
        ]
        told = [
            plain(
                f"{test['column']}, {part}: {test['direction']}, effect {test['effect']:+.2f}, "
                f"q {test['q']:.2g}, old {number(test['old'])}, new {number(test['new'])}"
            )
            for test in of.to_dict("records")
        ]
        across = {"x": of["effect"], "y": [columns.index(name) for name in of["column"]]}
        look = {"name": part, "text": told, "hovertemplate": "%{text}<extra></extra>"}
        if part == "level":
            bar = {"orientation": "h", "marker_color": colours, "textposition": "none"}
            traces.append(go.Bar(**across, **look, **bar))
        else:
            marker = {"symbol": "circle-open", "size": RING, "color": colours, "line": {"width": 3}}
            traces.append(go.Scatter(**across, **look, mode="markers", marker=marker))
    effects = {"title": "lower in new rows ← effect → higher", "range": [-1.05, 1.05]}
    layout: dict[str, Any] = {"xaxis": effects, "yaxis": lines(columns, MOST_LETTERS)}
    layout |= {"showlegend": False, "bargap": 0.3, "plot_bgcolor": CLEAR}
    return framed(go.Figure(traces), LINE * len(columns) + BELOW, top=8, **layout)
