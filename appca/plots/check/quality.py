"""Neighbours that pictures keep."""

from collections.abc import Iterable, Mapping

import plotly.graph_objects as go

from appca.data.numbers import percent
from appca.plots.curves import LINE
from appca.plots.frame import framed
from appca.plots.palette import MISSING

BAR = 46  # pixels
PALE = "rgba(128, 140, 155, 0.16)"


def neighbours_kept(shares: Mapping[str, float]) -> go.Figure:
    """Draw the share of near rows that each picture keeps near; the first is one's own."""
    values = list(shares.values())
    figure = go.Figure(
        go.Bar(
            x=values,
            y=list(shares),
            orientation="h",
            marker_color=[LINE, *[MISSING] * (len(values) - 1)],
            text=[percent(value) for value in values],
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    framed(figure, 60 + BAR * len(values), 8, 8, dragmode=False)
    figure.update_xaxes(title="nearest rows kept", tickformat=".0%", range=[0, 1])
    return figure.update_yaxes(autorange="reversed", automargin=True)


def unmeasured(names: Iterable[str], title: str) -> go.Figure:
    """Draw a pale bar for each method, where there will be its number."""
    found = list(names)
    figure = go.Figure(go.Bar(x=[1.0] * len(found), y=found, orientation="h", marker_color=PALE))
    figure.update_traces(hoverinfo="skip")
    framed(figure, 60 + BAR * len(found), 8, 8, dragmode=False)
    figure.update_xaxes(title=title, range=[0, 1], showticklabels=False, showgrid=False)
    return figure.update_yaxes(autorange="reversed", automargin=True)
