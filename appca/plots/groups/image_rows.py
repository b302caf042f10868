"""A row of images, each on a strip of its class's colour."""

from collections.abc import Sequence

import numpy as np
from plotly.colors import hex_to_rgb

LEAST_SIDE = 56  # pixels; smaller images are enlarged by a whole number, so that pixels stay square
STRIP, GAP = 5, 4  # pixels below and between the images


def image_row(images: np.ndarray, colours: Sequence[str] | None = None) -> np.ndarray:
    """Lay images side by side on a transparent ground.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, h, w) or (n, h, w, 3)
        In order from the left; at least one.
    colours : sequence of str, optional
        "#rrggbb" of the strip below each image.

    Returns
    -------
    ndarray of uint8, shape (height, width, 4)
        Red, green, blue and opacity.
    """
    factor = max(1, -(-LEAST_SIDE // max(images.shape[1:3])))
    large = images.repeat(factor, axis=1).repeat(factor, axis=2)
    if large.ndim == 3:
        large = np.stack([large] * 3, axis=-1)
    n, h, w, _ = large.shape
    below = 0 if colours is None else STRIP
    row = np.zeros((h + below, n * (w + GAP) - GAP, 4), np.uint8)
    for i, image in enumerate(large):
        left = i * (w + GAP)
        row[:h, left : left + w, :3] = image
        if colours is not None:
            row[h:, left : left + w, :3] = hex_to_rgb(colours[i])
        row[:, left : left + w, 3] = 255
    return row
