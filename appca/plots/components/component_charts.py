"""Charts of what a component does: the scores of its users, and its strongest features."""

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import signed
from appca.plots.components.components import NEGATIVE, POSITIVE, Loading
from appca.plots.explore.panel import plain
from appca.plots.palette import CATEGORICAL

HEIGHT = 170  # of a histogram
LINE_HEIGHT = 21  # of a feature's bar
BINS = 40
BLUE, RED = (f"rgb{colour}" for colour in (NEGATIVE, POSITIVE))
SELECTED = CATEGORICAL[1]


def score_histogram(scores: np.ndarray, selected: np.ndarray | None = None) -> go.Figure:
    """How many users of a component have which score: blue below zero, red above, as its image.

    Parameters
    ----------
    scores : ndarray, shape (m,)
        Of the rows that use it.
    selected : ndarray of bool, shape (m,), optional
        Drawn in front, in another colour.
    """
    edges = _edges(scores)
    middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
    counts = np.histogram(scores, edges)[0]
    colours = [BLUE if at < 0 else RED for at in middle]
    figure = go.Figure(_bars(middle, counts, width, colours, "rows"))
    if selected is not None and selected.any():
        chosen = np.histogram(scores[selected], edges)[0]
        figure.add_trace(_bars(middle, chosen, width, SELECTED, "selected rows"))
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 4, "r": 8, "t": 6, "b": 4},
        barmode="overlay",
        bargap=0,
        showlegend=False,
        xaxis={"title": "score", "zeroline": True, "showgrid": False},
        yaxis={"title": "rows", "nticks": 4, "rangemode": "tozero"},
    )
    return figure


def loading_bars(loadings: list[Loading]) -> go.Figure:
    """Weights of features in a component as bars, the strongest on top."""
    names = [item.name for item in loadings]
    values = [item.value for item in loadings]
    figure = go.Figure(
        go.Bar(
            x=values,
            y=list(range(len(loadings))),
            orientation="h",
            marker={"color": [RED if value > 0 else BLUE for value in values]},
            customdata=[[plain(item.name), signed(item.value)] for item in loadings],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
        )
    )
    limit = 1.05 * max(map(abs, values), default=1.0) or 1.0
    figure.update_layout(
        height=46 + LINE_HEIGHT * len(loadings),
        margin={"l": 4, "r": 8, "t": 6, "b": 4},
        bargap=0.25,
        showlegend=False,
        xaxis={"title": "weight", "range": [-limit, limit], "nticks": 6, "tickangle": 0},
        yaxis={
            "tickvals": list(range(len(loadings))),
            "ticktext": [plain(_short(name)) for name in names],
            "autorange": "reversed",
            "showgrid": False,
            "automargin": True,
        },
    )
    return figure


def _edges(scores: np.ndarray) -> np.ndarray:
    """Bins of one width with an edge at zero, so that no bar has two signs."""
    low, high = min(float(scores.min(initial=0.0)), 0.0), max(float(scores.max(initial=0.0)), 0.0)
    width = (high - low) / BINS or 1.0
    first, last = np.floor(low / width), np.ceil(high / width)
    return width * np.arange(first - 1, last + 2)


def _bars(
    middle: np.ndarray, counts: np.ndarray, width: np.ndarray, colour: object, what: str
) -> go.Bar:
    return go.Bar(
        x=middle,
        y=counts,
        width=width,
        marker={"color": colour, "line": {"width": 0}},
        hovertemplate=f"score %{{x:.3g}}: %{{y:,}} {what}<extra></extra>",
    )


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
