"""Indicator matrices as black-and-white images: black where a row uses a factor."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

INK, PAPER = "#000000", "#ffffff"
FRAME = "#8a94a0"  # readable on white and on black
HEIGHT = 330  # pixels
MOST_ROWS = 400  # more than there are pixels for


def indicators(matrices: Mapping[str, np.ndarray]) -> go.Figure:
    """
    Draw matrices side by side, rows from top to bottom and factors from left to right.

    Parameters
    ----------
    matrices : mapping of name to ndarray of bool, shape (N, K)
        Of a long one the first `MOST_ROWS` rows are drawn.
    """
    figure = make_subplots(
        rows=1,
        cols=len(matrices),
        subplot_titles=[name.capitalize() for name in matrices],
        horizontal_spacing=0.12 / max(len(matrices), 2),
    )
    for column, Z in enumerate(matrices.values(), start=1):
        figure.add_trace(_image(Z[:MOST_ROWS]), row=1, col=column)
    box = {"showline": True, "mirror": True, "linecolor": FRAME, "linewidth": 1}
    figure.update_xaxes(showticklabels=False, showgrid=False, title="factor", **box)
    figure.update_yaxes(
        showticklabels=False, showgrid=False, zeroline=False, autorange="reversed", **box
    )
    figure.update_yaxes(title="row", row=1, col=1)
    figure.update_layout(
        height=HEIGHT, margin={"l": 30, "r": 10, "t": 34, "b": 34}, showlegend=False
    )
    return figure


def _image(Z: np.ndarray) -> go.Heatmap:
    return go.Heatmap(
        z=np.asarray(Z, dtype=np.uint8),
        x=np.arange(1, Z.shape[1] + 1),
        y=np.arange(1, Z.shape[0] + 1),
        zmin=0,
        zmax=1,
        colorscale=[[0, PAPER], [1, INK]],
        showscale=False,
        hovertemplate="row %{y}, factor %{x}: %{z}<extra></extra>",
    )
