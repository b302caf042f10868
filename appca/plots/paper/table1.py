"""Methods side by side: one dot for each design, one panel for each number of factors."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.plots.frame import framed
from appca.plots.palette import CATEGORICAL
from appca.plots.paper import Row

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "star")
LINE_HEIGHT, FRAME_HEIGHT = 36, 130  # pixels
STEP = 0.15  # of a line between the dots of two designs


def dots(rows: Sequence[Row], measure: str, title: str, *, log: bool = False) -> go.Figure:
    """Draw a measure of all methods, with its spread over data sets as a line through the dot.

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
    designs = list(dict.fromkeys(row["design"] for row in there))
    lines = {name: place for place, name in enumerate(dict.fromkeys(r["title"] for r in there))}
    figure = make_subplots(
        rows=1,
        cols=max(len(sizes), 1),
        subplot_titles=[f"K = {size}" for size in sizes],
        shared_yaxes=True,
        horizontal_spacing=0.04,
    )
    for place, design in enumerate(designs):
        offset = (place - (len(designs) - 1) / 2) * STEP
        for column, size in enumerate(sizes, start=1):
            chosen = [row for row in there if (row["design"], row["K"]) == (design, size)]
            if chosen:
                heights = [lines[row["title"]] + offset for row in chosen]
                trace = _trace(chosen, heights, measure, place)
                trace.showlegend = column == 1
                figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(title=title, type="log" if log else None, dtick="D2" if log else None)
    figure.update_yaxes(
        tickvals=list(lines.values()),
        ticktext=list(lines),
        range=[len(lines) - 0.5, -0.5],  # the first method on top
        showgrid=False,
        zeroline=False,
    )
    figure.update_annotations(font_size=14)
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.09, "yanchor": "bottom"}
    return framed(figure, FRAME_HEIGHT + LINE_HEIGHT * len(lines), 66, legend=legend)


def _trace(rows: Sequence[Row], heights: Sequence[float], measure: str, place: int) -> go.Scatter:
    design = rows[0]["design"]
    spreads = [row[f"{measure}_sd"] or 0.0 for row in rows]
    return go.Scatter(
        x=[row[measure] for row in rows],
        y=heights,
        customdata=[(row["title"], spread) for row, spread in zip(rows, spreads, strict=True)],
        error_x={"array": spreads, "thickness": 1, "width": 0},
        mode="markers",
        name=design,
        legendgroup=design,
        marker={
            "size": 8,
            "color": CATEGORICAL[place % len(CATEGORICAL)],
            "symbol": SYMBOLS[place % len(SYMBOLS)],
        },
        hovertemplate="%{customdata[0]}: %{x:.4g}, sd %{customdata[1]:.2g}"
        f"<extra>{design}</extra>",
    )
