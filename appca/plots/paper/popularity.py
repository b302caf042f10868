"""Popularity of factors, sorted: the truth in red, estimates beside it."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.data.numbers import percent
from appca.plots.frame import below, framed
from appca.plots.paper import Row

TRUTH = "#d7191c"
COLOURS = ("#3f90da", "#92dadd", "#ffa90e", "#832db6", "#94a4a2")
SYMBOLS = ("square", "diamond", "triangle-up", "x", "star")
HEIGHT = 420  # pixels


def popularity(rows: Sequence[Row]) -> go.Figure:
    """Draw sorted curves, one panel a design: share of the rows against the factor's number.

    Parameters
    ----------
    rows : sequence of dict
        With design, method, title, rank (from 1, most popular first) and share; the method
        "truth" is drawn in red.
    """
    designs = list(dict.fromkeys(row["design"] for row in rows))
    figure = make_subplots(
        rows=1,
        cols=len(designs),
        subplot_titles=[f"{design.capitalize()} data" for design in designs],
        horizontal_spacing=0.09,
    )
    others = [name for name in dict.fromkeys(row["method"] for row in rows) if name != "truth"]
    shown: set[str] = set()
    for column, design in enumerate(designs, start=1):
        for name in [*others, "truth"]:  # the truth on top
            curve = [row for row in rows if (row["design"], row["method"]) == (design, name)]
            if curve:
                trace = _line(curve, None if name == "truth" else others.index(name))
                trace.showlegend = name not in shown
                shown.add(name)
                figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(title="share of the rows", range=[-0.03, 1.03], tickformat=".0%")
    figure.update_yaxes(
        title="factor, most popular first", autorange="reversed", rangemode="tozero"
    )
    return framed(figure, HEIGHT, legend=below(-0.2))


def _line(curve: Sequence[Row], place: int | None) -> go.Scatter:
    truth, number = place is None, place or 0
    return go.Scatter(
        x=[row["share"] for row in curve],
        y=[row["rank"] for row in curve],
        mode="lines+markers",
        name=curve[0]["title"],
        legendgroup=curve[0]["method"],
        line={
            "color": TRUTH if truth else COLOURS[number % len(COLOURS)],
            "width": 3 if truth else 1.8,
        },
        marker={"size": 7 if truth else 6, "symbol": "circle" if truth else SYMBOLS[number % 5]},
        customdata=[percent(row["share"], 1) for row in curve],
        hovertemplate="%{y}. factor: %{customdata} of the rows<extra>%{fullData.name}</extra>",
    )
