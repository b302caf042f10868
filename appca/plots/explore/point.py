"""Charts of one row: probabilities of its supports, and its features beside the reconstruction."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import minus, percent
from appca.plots.components.component_charts import LINE_HEIGHT
from appca.plots.curves import LINE
from appca.plots.explore.panel import plain
from appca.plots.palette import CATEGORICAL, MISSING

REBUILT = CATEGORICAL[1]
MARGIN = {"l": 4, "r": 12, "t": 6, "b": 4}


def probabilities(names: list[str], values: np.ndarray, chosen: list[bool]) -> go.Figure:
    """Probabilities as bars with their numbers, the given order from the top.

    Parameters
    ----------
    names : list of str
        Of supports or components.
    values : ndarray, shape (m,)
    chosen : list of bool
        Which of them the row was given: drawn in the strong colour.
    """
    figure = go.Figure(
        go.Bar(
            x=values,
            y=list(range(len(names))),
            orientation="h",
            marker={"color": [LINE if strong else MISSING for strong in chosen]},
            text=[percent(value, 1) for value in values],
            textposition="outside",
            cliponaxis=False,
            customdata=[plain(name) for name in names],
            hovertemplate="%{customdata}: %{text}<extra></extra>",
        )
    )
    figure.update_layout(
        height=46 + LINE_HEIGHT * len(names),
        margin=MARGIN,
        bargap=0.3,
        xaxis={
            "title": "probability",
            "range": [0, 1.15],
            "tickvals": TICKS,
            "ticktext": [percent(tick) for tick in TICKS],
        },
        yaxis=_names(names),
    )
    return figure


TICKS = [0, 0.25, 0.5, 0.75, 1]


def dumbbells(names: list[str], original: np.ndarray, rebuilt: np.ndarray) -> go.Figure:
    """Draw a row's features beside their reconstruction; the line between them is the residual.

    Parameters
    ----------
    names : list of str
        Of the features, the first on top.
    original, rebuilt : ndarray, shape (m,)
        Distances from the average row in standard deviations of each feature.
    """
    places = np.arange(len(names))
    gaps_x = np.column_stack([original, rebuilt, np.full(len(names), np.nan)]).ravel()
    figure = go.Figure(
        [
            go.Scatter(
                x=gaps_x,
                y=np.repeat(places, 3),
                mode="lines",
                line={"color": MISSING, "width": 4},
                name="residual",
                hoverinfo="skip",
            ),
            _dots(original, places, names, "this row", LINE, "circle"),
            _dots(rebuilt, places, names, "reconstruction", REBUILT, "diamond"),
        ]
    )
    figure.update_layout(
        height=90 + LINE_HEIGHT * len(names),
        margin=MARGIN,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        xaxis={"title": "standard deviations from the average row", "zeroline": True},
        yaxis=_names(names),
    )
    return figure


def _dots(
    x: np.ndarray, y: np.ndarray, names: list[str], what: str, colour: str, symbol: str
) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        name=what,
        marker={"color": colour, "size": 9, "symbol": symbol},
        customdata=[
            [plain(name), minus(f"{value:+.2f}")] for name, value in zip(names, x, strict=True)
        ],
        hovertemplate=f"%{{customdata[0]}}, {what}: %{{customdata[1]}} sd<extra></extra>",
    )


def _names(names: list[str]) -> dict[str, Any]:
    short = [plain(name if len(name) <= 28 else name[:27] + "…") for name in names]
    return {
        "tickvals": list(range(len(names))),
        "ticktext": short,
        "range": [len(names) - 0.4, -0.6],
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
    }
