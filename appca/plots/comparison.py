"""Methods side by side: one dot for each design, one panel for each number of factors."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.plots.palette import CATEGORICAL

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "star")
LINE_HEIGHT, FRAME_HEIGHT = 30, 120  # pixels


def dots(rows: Sequence[dict], measure: str, title: str, *, log: bool = False) -> go.Figure:
    """
    Draw a measure of all methods, with its spread over data sets as a line through the dot.

    Parameters
    ----------
    rows : sequence of dict
        With design, K, title, the measure and its spread ``<measure>_sd``; methods without a value
        are left out.
    measure, title : str
        Column, and the name of the axis.
    log : bool
        Whether the axis is logarithmic.
    """
    there = [row for row in rows if row[measure] is not None]
    sizes = sorted({row["K"] for row in there})
    methods = list(dict.fromkeys(row["title"] for row in there))
    figure = make_subplots(
        rows=1,
        cols=max(len(sizes), 1),
        subplot_titles=[f"K = {size}" for size in sizes],
        shared_yaxes=True,
        horizontal_spacing=0.04,
    )
    for place, design in enumerate(dict.fromkeys(row["design"] for row in there)):
        for column, size in enumerate(sizes, start=1):
            chosen = [row for row in there if (row["design"], row["K"]) == (design, size)]
            if chosen:
                trace = _trace(chosen, measure, design, place)
                trace.showlegend = column == 1
                figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(title=title, type="log" if log else "linear")
    if log:
        figure.update_xaxes(dtick="D2", minor={"showgrid": False}, exponentformat="none")
    figure.update_yaxes(categoryorder="array", categoryarray=methods[::-1], automargin=True)
    figure.update_layout(
        height=FRAME_HEIGHT + LINE_HEIGHT * len(methods),
        margin={"l": 10, "r": 10, "t": 34, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "yref": "container"},
    )
    return figure


def _trace(rows: Sequence[dict], measure: str, design: str, place: int) -> go.Scatter:
    return go.Scatter(
        x=[row[measure] for row in rows],
        y=[row["title"] for row in rows],
        error_x={
            "array": [row[f"{measure}_sd"] or 0.0 for row in rows],
            "thickness": 1,
            "width": 0,
        },
        mode="markers",
        name=design,
        legendgroup=design,
        marker={
            "size": 9,
            "color": CATEGORICAL[place],
            "symbol": SYMBOLS[place % len(SYMBOLS)],
        },
        hovertemplate="%{y}: %{x:.4g}<extra>" + design + "</extra>",
    )
