"""Accuracy of a classifier against the number of dimensions, with error bars."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.data.numbers import percent
from appca.plots.frame import below, framed
from appca.plots.paper import Row

COLOURS = {
    "pca": "#94a4a2",
    "appca": "#3f90da",
    "within": "#832db6",
    "each": "#e76300",
    "half": "#bd1f01",
    "pattern": "#ffa90e",
}
SYMBOLS = {
    "pca": "circle",
    "appca": "square",
    "within": "diamond",
    "each": "triangle-up",
    "half": "x",
    "pattern": "star",
}
RAW = "#717581"
HEIGHT = 520  # pixels
APART = 1.015  # factor between two methods at the same place, so that error bars can be told apart
CROWDED = 1.15  # ratio of two sizes below which only the larger gets a tick
PANELS = (("K", "components in all, K"), ("L", "coordinates that are not zero, L"))


def curves(rows: Sequence[Row]) -> go.Figure:
    """Draw the mean accuracy over the folds, and its standard deviation as error bars.

    Parameters
    ----------
    rows : sequence of dict
        With method, title, K, L, accuracy and accuracy_sd; the method "raw" (without K) is drawn
        as a horizontal line, methods without a colour (the pattern alone, far below) not at all.
    """
    figure = make_subplots(
        rows=1,
        cols=len(PANELS),
        subplot_titles=["By components in all", "By active coordinates"],
        shared_yaxes=True,
        horizontal_spacing=0.04,
    )
    there = [row for row in rows if row["method"] in COLOURS]
    methods = list(dict.fromkeys(row["method"] for row in there))
    for column, (axis, title) in enumerate(PANELS, start=1):
        for place, method in enumerate(methods):
            own = sorted(
                (row for row in rows if row["method"] == method), key=lambda row: row[axis]
            )
            trace = _line(own, axis, APART ** (place - len(methods) / 2))
            trace.showlegend = column == 1
            figure.add_trace(trace, row=1, col=column)
        places = sorted({row[axis] for row in there})
        figure.update_xaxes(title=title, row=1, col=column, **_axis(places))
        for row in rows:
            if row["method"] == "raw":
                figure.add_trace(_level(row, places, show=column == 1), row=1, col=column)
    figure.update_yaxes(tickformat=".0%")
    figure.update_yaxes(title="rows told right, other rows learnt from", col=1)
    return framed(figure, HEIGHT, legend=below(-0.16))


def _line(own: Sequence[Row], axis: str, shift: float) -> go.Scatter:
    method = own[0]["method"]
    return go.Scatter(
        x=[row[axis] * shift for row in own],
        y=[row["accuracy"] for row in own],
        error_y={"array": [row["accuracy_sd"] for row in own], "thickness": 1.2, "width": 3},
        customdata=[(row["K"], row["L"], _accuracy(row)) for row in own],
        mode="lines+markers",
        name=own[0]["title"],
        legendgroup=method,
        line={"color": COLOURS[method], "width": 1.8},
        marker={"size": 7, "symbol": SYMBOLS[method]},
        hovertemplate="K = %{customdata[0]}, L = %{customdata[1]}: %{customdata[2]}"
        "<extra>%{fullData.name}</extra>",
    )


def _accuracy(row: Row) -> str:
    return f"{percent(row['accuracy'], 1)}, sd {percent(row['accuracy_sd'], 1)}"


def _level(row: Row, places: Sequence[int], *, show: bool) -> go.Scatter:
    return go.Scatter(
        x=[places[0] / 1.1, places[-1] * 1.1],
        y=[row["accuracy"]] * 2,
        mode="lines",
        name=row["title"],
        legendgroup="raw",
        showlegend=show,
        line={"color": RAW, "width": 1.8, "dash": "dash"},
        hovertemplate=f"{_accuracy(row)}<extra>{row['title']}</extra>",
    )


def _axis(places: Sequence[int]) -> dict[str, Any]:
    """Ticks at the sizes there are, as far apart as their ratios; crowded ones are left out."""
    shown: list[int] = []
    for place in reversed(places):
        if not shown or shown[-1] / place > CROWDED:
            shown.append(place)
    return {"type": "log", "tickvals": shown, "ticktext": [str(place) for place in shown]}
