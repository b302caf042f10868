"""What figures have in common: the room around them and the place of the legend."""

from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from appca.words.wording import shortened

CLEAR = "rgba(0,0,0,0)"  # the page shows through


def framed(
    figure: go.Figure, height: float, top: int = 34, bottom: int = 10, **layout: Any
) -> go.Figure:
    """Give a figure its height and margins in pixels, and whatever else its layout needs."""
    margin = {"l": 10, "r": 10, "t": top, "b": bottom}
    return figure.update_layout(height=height, margin=margin, **layout)


def above(y: float = 1.02) -> dict[str, Any]:
    """Put the legend in a line above the plot."""
    return {"orientation": "h", "y": y, "yanchor": "bottom", "x": 0}


def below(y: float) -> dict[str, Any]:
    """Put the legend in a line below the plot."""
    return {"orientation": "h", "y": y, "x": 0}


def lines(names: Sequence[str], letters: int) -> dict[str, Any]:
    """Return an axis with a line for each name of so many letters, the first at the top."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [plain(shortened(name, letters)) for name in names],
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
    }


def plain(text: str) -> str:
    """Disarm the small markup that Plotly reads in texts."""
    return escape(text, quote=False)
