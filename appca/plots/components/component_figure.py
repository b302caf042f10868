"""All components of a run in one standing figure, and their images as one picture."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.plots.components.component_charts import loading_bars
from appca.plots.components.components import component_image, data_uri, montage, ranked_loadings
from appca.plots.explore.panel import plain

COLUMNS = 6  # images on a line
SIDE, HEAD, GAP = 150, 44, 14  # pixels of an image, of the words above it, and between two
BAR_COLUMNS, BARS, BAR_WIDTH, BAR_HEIGHT = 3, 10, 360, 280
LEAST_SIDE = 112  # pixels of an image in the picture; smaller ones are enlarged by a whole number


def component_figure(
    patterns: np.ndarray,
    titles: Sequence[str],
    image_shape: tuple[int, ...] | None = None,
    feature_names: tuple[str, ...] | None = None,
) -> go.Figure:
    """Draw every component: as an image, blue below zero, red above, or as its strongest features.

    Parameters
    ----------
    patterns : ndarray, shape (K, D)
        In units of the data, or of the scaled features.
    titles : sequence of str
        Above each; a line break parts two lines.
    image_shape : tuple, optional
        Of the rows where they are images.
    feature_names : tuple of str, optional
    """
    if image_shape is None:
        return _bars(patterns, titles, feature_names)
    columns = min(COLUMNS, len(patterns))
    lines = -(-len(patterns) // columns)
    width, height = columns * (SIDE + GAP) + GAP, lines * (SIDE + HEAD + GAP) + GAP
    figure = go.Figure(layout={"width": width, "height": height, "plot_bgcolor": "white"})
    for k, pattern in enumerate(patterns):
        x = GAP + k % columns * (SIDE + GAP)
        y = height - GAP - k // columns * (SIDE + HEAD + GAP)
        source = data_uri(_enlarged(component_image(pattern, image_shape)))
        at = {"xref": "x", "yref": "y", "sizex": SIDE, "sizey": SIDE, "sizing": "contain"}
        figure.add_layout_image(source=source, x=x, y=y - HEAD, layer="above", **at)
        text = {"text": _lines(titles[k]), "x": x, "y": y, "xanchor": "left", "yanchor": "top"}
        figure.add_annotation(**text, showarrow=False, align="left", font={"size": 12})
    figure.update_xaxes(range=[0, width], visible=False, fixedrange=True)
    figure.update_yaxes(range=[0, height], visible=False, fixedrange=True)
    return figure.update_layout(margin=dict.fromkeys("lrtb", 0))


def component_sheet(patterns: np.ndarray, image_shape: tuple[int, ...]) -> np.ndarray:
    """Return the images of components (K, D) line by line in one picture, uint8 (h, w, 3)."""
    images = [_enlarged(component_image(pattern, image_shape)) for pattern in patterns]
    columns = min(len(images), max(COLUMNS, int(np.ceil(np.sqrt(len(images))))))
    return montage(np.stack(images), columns, gap=8)


def _enlarged(image: np.ndarray) -> np.ndarray:
    factor = max(1, -(-LEAST_SIDE // max(image.shape[:2])))
    return image.repeat(factor, axis=0).repeat(factor, axis=1)


def _bars(patterns: np.ndarray, titles: Sequence[str], names: tuple[str, ...] | None) -> go.Figure:
    columns = min(BAR_COLUMNS, len(patterns))
    lines = -(-len(patterns) // columns)
    height = lines * BAR_HEIGHT
    figure = make_subplots(
        rows=lines,
        cols=columns,
        subplot_titles=[_lines(title) for title in titles],
        horizontal_spacing=0.5 / columns if columns > 1 else 0.0,
        vertical_spacing=90 / height if lines > 1 else 0.0,
    )
    for k, pattern in enumerate(patterns):
        at = {"row": k // columns + 1, "col": k % columns + 1}
        drawn = loading_bars(ranked_loadings(pattern, names, BARS))
        figure.add_trace(drawn.data[0], **at)
        axes = drawn.layout.to_plotly_json()
        figure.update_xaxes({**axes["xaxis"], "title": None}, **at)
        figure.update_yaxes(axes["yaxis"], **at)
    return figure.update_layout(
        width=max(480, columns * BAR_WIDTH),
        height=height + 40,
        showlegend=False,
        margin={"l": 150, "r": 20, "t": 60, "b": 30},
    )


def _lines(title: str) -> str:
    return plain(title).replace("\n", "<br>")
