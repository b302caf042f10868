"""A figure at the size of a card: its marks alone, with as many points as can be distinguished."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.plots.frame import CLEAR

HEIGHT, WIDTH = 160, 290  # pixels
MOST_POINTS = 1500
POINT = 3.5  # pixels
EVERY_POINT = ("x", "y", "text", "customdata")


def thumbnail(figure: go.Figure) -> go.Figure:
    """Return a small copy without titles, ticks and legend; scatters become plain vectors."""
    every = [trace.to_plotly_json() for trace in figure.data]
    total = sum(len(trace["x"]) for trace in every if _is_scatter(trace))
    step = max(1, -(-total // MOST_POINTS))
    traces = [_fewer(trace, step) if _is_scatter(trace) else trace for trace in every]
    layout = figure.layout.to_plotly_json()
    layout.pop("annotations", None)
    small = go.Figure(traces, layout)
    small.update_traces(hoverinfo="skip", hovertemplate=None)
    small.update_traces(showscale=False, selector={"type": "heatmap"})
    bare = {"title": None, "showticklabels": False, "ticks": "", "showgrid": False}
    small.update_xaxes(**bare).update_yaxes(**bare)
    if layout.get("images") and layout.get("width"):
        # a sheet of images: its top, without stretching them
        top = layout["yaxis"]["range"][1]
        small.update_yaxes(range=[top - layout["width"] * HEIGHT / WIDTH, top])
    return small.update_layout(
        height=HEIGHT,
        width=None,
        autosize=True,
        showlegend=False,
        dragmode=False,
        title=None,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor=CLEAR,
    )


def _is_scatter(trace: dict[str, Any]) -> bool:
    return trace["type"] in {"scatter", "scattergl"}


def _fewer(trace: dict[str, Any], step: int) -> dict[str, Any]:
    """Thin the points of a scatter; lines, which have few, stay whole."""
    marker = dict(trace.get("marker", {}))
    if np.ndim(marker.get("size", 0)):  # it says something
        return {**trace, "marker": marker | {"size": 0.35 * np.asarray(marker["size"])}}
    if "lines" in trace.get("mode", ""):
        return {**trace, "type": "scatter", "marker": marker | {"size": POINT}}
    n = len(trace["x"])
    kept = {
        name: np.asarray(trace[name])[::step] for name in EVERY_POINT if np.ndim(trace.get(name, 0))
    }
    for name in ("color", "symbol"):
        if np.ndim(marker.get(name, 0)) and len(marker[name]) == n:
            marker[name] = np.asarray(marker[name])[::step]
    return {**trace, **kept, "type": "scatter", "marker": marker | {"size": POINT}}
