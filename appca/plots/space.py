"""Points in three dimensions, coloured by class."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from appca.plots.palette import class_colour
from appca.plots.panel import plain

HEIGHT = 460  # pixels


def space(X: np.ndarray, codes: np.ndarray, names: Sequence[str]) -> go.Figure:
    """
    Draw points that can be turned.

    Parameters
    ----------
    X : ndarray, shape (N, 3)
    codes : ndarray of int, shape (N,)
        Into the names.
    names : sequence of str
    """
    figure = go.Figure(
        [
            go.Scatter3d(
                x=X[codes == code, 0],
                y=X[codes == code, 1],
                z=X[codes == code, 2],
                mode="markers",
                marker={"size": 2.5, "color": class_colour(code)},
                name=plain(name),
            )
            for code, name in enumerate(names)
        ]
    )
    return figure.update_layout(
        height=HEIGHT,
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        scene={"aspectmode": "data", "camera": {"eye": {"x": 1.5, "y": 1.3, "z": 0.9}}},
        legend={"orientation": "h", "y": 0, "x": 0, "itemsizing": "constant"},
    )
