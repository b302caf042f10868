"""Thumbnails of rows that are images, and which of them come first in a sample."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image

from appca.data.dataset import Dataset

SHEET_SIDE = 2048  # pixels; every WebGL-era browser decodes this size
LARGEST_TILE = 128  # larger images are reduced; the hover card shows no more than this
JUDGED = 200  # images by which strokes are told from photographs
SEED = 20  # of the priority; any fixed number will do, but it must not change between reruns


class Sprites(NamedTuple):
    """The thumbnails of a data set, made on demand."""

    tile: tuple[int, int]  # height and width, pixels
    style: str  # "ink": grey strokes on black, drawn in the class colour; "photo": as it is
    priority: np.ndarray  # (N,) a permutation of the rows: the lowest are a fair sample
    images: Callable[[np.ndarray], np.ndarray]


def sprites_of(dataset: Dataset) -> Sprites | None:
    """Describe the thumbnails of a data set; None where its rows are not images."""
    if dataset.image_shape is None:
        return None
    priority = np.random.default_rng(SEED).permutation(dataset.n_rows)
    style = style_of(dataset.images(np.sort(np.argsort(priority)[:JUDGED])))
    return Sprites(tile_of(dataset.image_shape), style, priority, dataset.images)


def tile_of(image_shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the height and width of a thumbnail."""
    height, width = image_shape[:2]
    shrink = min(1.0, LARGEST_TILE / max(height, width))
    return max(1, round(height * shrink)), max(1, round(width * shrink))


def style_of(images: np.ndarray) -> str:
    """Tell handwriting-like images from photographs.

    Measured shares (dark pixels; bright among the lit; dark corners): MNIST 0.84, 0.58, 1.00;
    scikit-learn's 8x8 digits 0.55, 0.43, 0.99; COIL-20 0.48, 0.18, 1.00.

    Parameters
    ----------
    images : ndarray of shape (n, h, w) or (n, h, w, 3), uint8
    """
    if images.ndim == 4:
        return "photo"
    lit = images[images >= 32]
    corners = images[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    on_black = np.mean(images < 32) >= 0.5 and np.mean(corners < 32) >= 0.9
    return "ink" if lit.size and on_black and np.mean(lit > 200) >= 0.3 else "photo"


def tiles_of(sprites: Sprites, rows: np.ndarray) -> np.ndarray:
    """Give the rows' images at tile size, (n, h, w) or (n, h, w, 3) uint8."""
    return resized(sprites.images(np.asarray(rows)), sprites.tile)


def resized(images: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """Reduce (n, h, w[, 3]) uint8 images to the tile's size; unchanged when they have it."""
    if images.shape[1:3] == tile:
        return images
    size = (tile[1], tile[0])
    shrunk = [Image.fromarray(image).resize(size, Image.Resampling.BOX) for image in images]
    return np.stack([np.asarray(image) for image in shrunk])
