"""Errors of methods on hidden cells."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import number
from appca.plots.curves import LINE
from appca.plots.frame import framed

BAR = 36  # pixels


def hidden_errors(errors: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw a bar for each method, the best on top, with its spread over the repeats."""
    means = [float(one.mean()) for one in errors.values()]
    spread = [float(one.std(ddof=1)) if len(one) > 1 else 0.0 for one in errors.values()]
    figure = go.Figure(
        go.Bar(
            x=means,
            y=list(errors),
            orientation="h",
            error_x={"array": spread, "thickness": 1.2, "width": 3},
            marker_color=LINE,
            text=[number(mean) for mean in means],
            insidetextanchor="start",
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    framed(figure, 60 + BAR * len(errors), 8, 8, dragmode=False)
    figure.update_xaxes(title="error on hidden cells", rangemode="tozero")
    return figure.update_yaxes(autorange="reversed", automargin=True)
