"""What methods reach, as bars: near rows that pictures keep, and errors on hidden cells."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.plots.curves import LINE
from appca.plots.frame import framed
from appca.plots.palette import MISSING
from appca.words.numbers import number, percent

BAR = 46  # pixels
PALE = "rgba(128, 140, 155, 0.16)"


def neighbours_kept(shares: Mapping[str, float]) -> go.Figure:
    """Draw the share of near rows that each picture keeps near; the first is one's own."""
    values = list(shares.values())
    colours = [LINE, *[MISSING] * (len(values) - 1)]
    texts = [percent(value) for value in values]
    figure = _bars([*shares], values, "nearest rows kept", text=texts, marker_color=colours)
    return figure.update_xaxes(tickformat=".0%", range=[0, 1])


def unmeasured(names: Iterable[str], title: str) -> go.Figure:
    """Draw a pale bar for each method, where there will be its number."""
    methods = list(names)
    figure = _bars(methods, [1.0] * len(methods), title, marker_color=PALE)
    figure.update_traces(hoverinfo="skip", hovertemplate=None)
    return figure.update_xaxes(range=[0, 1], showticklabels=False, showgrid=False)


def hidden_errors(errors: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw the mean error of each method, the best on top, with its spread over the repeats."""
    means = [float(error.mean()) for error in errors.values()]
    spread = [float(error.std(ddof=1)) if len(error) > 1 else 0.0 for error in errors.values()]
    look: dict[str, Any] = {"text": [number(mean) for mean in means], "insidetextanchor": "start"}
    look["error_x"] = {"array": spread, "thickness": 1.2, "width": 3}
    figure = _bars([*errors], means, "error on hidden cells", **look, marker_color=LINE)
    return figure.update_xaxes(rangemode="tozero")


def _bars(names: Sequence[str], values: Sequence[float], title: str, **look: Any) -> go.Figure:
    bars = go.Bar(
        x=values, y=names, orientation="h", hovertemplate="%{y}: %{text}<extra></extra>", **look
    )
    figure = framed(go.Figure(bars), 60 + BAR * len(names), 8, 8, dragmode=False)
    figure.update_xaxes(title=title)
    return figure.update_yaxes(autorange="reversed", automargin=True)
