"""Two fits side by side: how parallel their components are."""

import numpy as np
import plotly.graph_objects as go

from appca.plots.frame import CLEAR, framed

CELL, FRAME = 30, 90  # pixels
MOST_TEXT = 12  # components up to which a cell carries its number


def cosines(values: np.ndarray, first: list[int], second: list[int]) -> go.Figure:
    """Draw the absolute cosines between the components of two runs.

    Parameters
    ----------
    values : ndarray of shape (K, K')
        Cosines between all components.
    first, second : list of int
        The order in which components are shown, counted from 0: counterparts at the same place
        make the diagonal dark.
    """
    shown = np.abs(np.asarray(values, dtype=np.float64))[np.ix_(first, second)]
    written = max(shown.shape) <= MOST_TEXT
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=[str(k + 1) for k in second],
            y=[str(k + 1) for k in first],
            zmin=0.0,
            zmax=1.0,
            colorscale="Blues",
            xgap=1,
            ygap=1,
            texttemplate="%{z:.2f}" if written else None,
            textfont={"size": 11},
            hovertemplate="this run %{y}, other run %{x}: |cos| %{z:.3f}<extra></extra>",
            colorbar={"title": {"text": "|cos|"}, "thickness": 10},
        )
    )
    height = max(220, FRAME + CELL * len(first))
    framed(figure, height, 8, 8, plot_bgcolor=CLEAR, dragmode=False)
    axis = {"type": "category", "showgrid": False, "zeroline": False, "automargin": True}
    figure.update_xaxes(title="component of the other run", **axis)
    figure.update_yaxes(title="of this run", autorange="reversed", **axis)
    return figure
