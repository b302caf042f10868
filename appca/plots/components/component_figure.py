"""All components of a run in one standing figure, and their images as one picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from appca.plots.components.components import component_image, diverging, montage, ranked_loadings

if TYPE_CHECKING:
    from appca.plots.still import StillFigure

COLUMNS = 6  # images on a line
SIDE, BAR_COLUMNS, BARS = (1.5, 1.95), 3, 10  # inches; most features of a component
BAR_SIZE = (3.6, 2.6)
LEAST_SIDE = 112  # pixels of an image in the picture; smaller ones are enlarged by a whole number


def component_figure(
    patterns: np.ndarray,
    titles: Sequence[str],
    image_shape: tuple[int, ...] | None = None,
    feature_names: tuple[str, ...] | None = None,
    *,
    times: np.ndarray | None = None,
    dark: bool = False,
) -> "StillFigure":
    """Draw every component: as an image, as a course over time, or as its strongest features.

    `patterns` (K, D) are in units of the data, or of the scaled features; a line break in a title
    parts two lines. `image_shape` is that of the rows where they are images, blue below zero and
    red above; `times` (D,) are the seconds of the features of a recording.
    """
    from appca.plots.still import StillFigure, styled

    pictured = image_shape is not None
    columns = min(COLUMNS if pictured else BAR_COLUMNS, len(patterns))
    lines = -(-len(patterns) // columns)
    wide, high = SIDE if pictured else BAR_SIZE
    with styled(dark=dark):
        figure = StillFigure(figsize=(columns * wide, lines * high), layout="constrained")
        every = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes in every[len(patterns) :]:
            axes.set_axis_off()
        for axes, pattern, title in zip(every, patterns, titles, strict=False):
            axes.set_title(title, loc="left", fontsize=9, parse_math=False)
            if image_shape is not None:
                axes.imshow(component_image(pattern, image_shape, dark=dark))
                axes.set_axis_off()
                continue
            if times is not None:
                axes.plot(times, pattern, linewidth=0.8)
                axes.axhline(0, color="gray", linewidth=0.5)
                axes.set_xlabel("seconds", fontsize=8)
                continue
            loadings = ranked_loadings(pattern, feature_names, BARS)[::-1]
            values = np.array([loading.value for loading in loadings])
            limit = float(np.abs(pattern).max())
            places = range(len(loadings))
            axes.barh(places, values, color=diverging(values, limit, dark=dark) / 255)
            axes.set_yticks(places, [loading.name[:32] for loading in loadings], parse_math=False)
            axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def component_sheet(patterns: np.ndarray, image_shape: tuple[int, ...]) -> np.ndarray:
    """Return the images of components (K, D) line by line in one picture, uint8 (h, w, 3)."""
    images = np.stack([component_image(pattern, image_shape) for pattern in patterns])
    factor = max(1, -(-LEAST_SIDE // max(images.shape[1:3])))
    columns = min(len(images), max(COLUMNS, int(np.ceil(np.sqrt(len(images))))))
    return montage(images.repeat(factor, axis=1).repeat(factor, axis=2), columns, gap=8)
