"""Points in three dimensions, coloured by class."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from appca.plots.frame import plain
from appca.plots.palette import class_colour

HEIGHT = 520  # pixels
DISTANCE = 2.0  # of the eye, in sizes of the box
OBLIQUE = np.array([0.45, 0.6, 0.66])  # along the components: no plane of two of them is edge-on


def space(
    X: np.ndarray, codes: np.ndarray, names: Sequence[str], components: np.ndarray
) -> go.Figure:
    """Draw points (N, 3) that can be turned, coloured by their classes: `codes` (N,) into names.

    The planes of every two of the `components`, orthonormal rows (3, 3), are drawn, and looked at
    from between them.
    """
    eye = OBLIQUE @ components
    eye *= DISTANCE * (1 if eye[2] > 0 else -1) / np.linalg.norm(eye)
    figure = go.Figure(
        [
            go.Scatter3d(
                x=X[codes == code, 0],
                y=X[codes == code, 1],
                z=X[codes == code, 2],
                mode="markers",
                marker={"size": 2.5, "color": class_colour(code, len(names))},
                name=plain(name),
            )
            for code, name in enumerate(names)
        ]
    )
    figure.add_traces(_planes(X, components))
    return figure.update_layout(
        height=HEIGHT,
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        scene={"aspectmode": "data", "camera": {"eye": dict(zip("xyz", eye, strict=True))}},
        legend={"orientation": "h", "y": 0, "x": 0, "itemsizing": "constant"},
    )


def _planes(X: np.ndarray, components: np.ndarray) -> list[go.Mesh3d]:
    """Draw the rectangle of every two components that holds nearly all points."""
    centre = X.mean(axis=0)
    reach = np.quantile(np.abs((X - centre) @ components.T), 0.98, axis=0)
    sides = [reach[k] * components[k] for k in range(3)]
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    return [
        go.Mesh3d(
            **dict(zip("xyz", (centre + corners @ np.array([u, v])).T, strict=True)),
            i=[0, 0],
            j=[1, 2],
            k=[2, 3],
            color="#8a94a3",
            opacity=0.18,
            hoverinfo="skip",
            showlegend=False,
        )
        for u, v in ((sides[0], sides[1]), (sides[0], sides[2]), (sides[1], sides[2]))
    ]
