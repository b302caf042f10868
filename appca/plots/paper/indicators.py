"""Indicator matrices as black-and-white images: black where a row uses a factor."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

INK, PAPER = "#000000", "#ffffff"
FRAME = "#8a94a0"  # readable on white and on black
STRIP, LONE_STRIP = 92, 190  # pixels of a matrix among others, and of one alone
GAP, EDGES = 40, 76  # pixels between two of them, and above and below all
MOST_ROWS = 400  # more than there are pixels for


def indicators(matrices: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw matrices (N, K), one below the other, with rows across and factors down (Z').

    Of a long one the first `MOST_ROWS` rows are drawn.
    """
    n = len(matrices)
    height = EDGES + n * (STRIP if n > 1 else LONE_STRIP) + (n - 1) * GAP
    figure = make_subplots(
        rows=n,
        cols=1,
        subplot_titles=list(matrices),
        vertical_spacing=GAP / (height - EDGES) if n > 1 else 0.0,
    )
    for place, Z in enumerate(matrices.values(), start=1):
        shown = Z[:MOST_ROWS]
        image = go.Heatmap(
            z=np.asarray(shown, dtype=np.uint8).T,
            x=np.arange(1, shown.shape[0] + 1),
            y=np.arange(1, shown.shape[1] + 1),
            zmin=0,
            zmax=1,
            colorscale=[[0, PAPER], [1, INK]],
            showscale=False,
            hovertemplate="row %{x}, factor %{y}: %{z}<extra></extra>",
        )
        figure.add_trace(image, row=place, col=1)
        figure.update_xaxes(range=[0.5, len(shown) + 0.5], autorange=False, row=place, col=1)
        figure.update_yaxes(range=[Z.shape[1] + 0.5, 0.5], autorange=False, row=place, col=1)
    box = {"showline": True, "mirror": True, "linecolor": FRAME, "linewidth": 1}
    box |= {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": ""}
    figure.update_xaxes(**box)
    figure.update_yaxes(title="factor", title_font_size=12, **box)
    figure.update_xaxes(title="row", row=n, col=1)
    figure.update_annotations(x=0, xanchor="left", yshift=7, font_size=14)
    figure.update_layout(
        height=height, margin={"l": 30, "r": 10, "t": 40, "b": 34, "pad": 0}, showlegend=False
    )
    return figure
