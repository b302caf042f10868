"""Thumbnails of rows that are images, and a fair sample of rows."""

import numpy as np
from PIL import Image

from appca.data.dataset import Dataset

SHEET_SIDE = 2048  # pixels; every WebGL-era browser decodes this size
LARGEST_TILE = 128  # larger images are reduced; the hover card shows no more than this
JUDGED = 200  # images by which strokes are told from photographs
SEED = 20  # of the sample; any fixed number will do, but it must not change between reruns


def sample(n_rows: int, most: int) -> np.ndarray:
    """Return at most so many row numbers drawn at random, ascending; the same ones each time."""
    return np.sort(np.random.default_rng(SEED).permutation(n_rows)[:most])


def is_ink(dataset: Dataset) -> bool:
    """Whether rows are images of strokes, bright on black as stored."""
    if dataset.image_shape is None:
        return False
    return style_of(dataset.images(sample(dataset.n_rows, JUDGED))) == "ink"


def tile_of(image_shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the height and width of a thumbnail."""
    height, width = image_shape[:2]
    shrink = min(1.0, LARGEST_TILE / max(height, width))
    return max(1, round(height * shrink)), max(1, round(width * shrink))


def style_of(images: np.ndarray) -> str:
    """Tell handwriting-like images, "ink", from photographs: uint8 (n, h, w) or (n, h, w, 3).

    Measured shares (dark pixels; bright among the lit; dark corners): MNIST 0.84, 0.58, 1.00;
    scikit-learn's 8x8 digits 0.55, 0.43, 0.99; COIL-20 0.48, 0.18, 1.00.
    """
    if images.ndim == 4:
        return "photo"
    lit = images[images >= 32]
    corners = images[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    on_black = np.mean(images < 32) >= 0.5 and np.mean(corners < 32) >= 0.9
    return "ink" if lit.size and on_black and np.mean(lit > 200) >= 0.3 else "photo"


def tiles_of(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Give the images of rows at tile size, (n, h, w) or (n, h, w, 3) uint8."""
    return resized(dataset.images(rows), tile_of(dataset.image_shape or ()))


def resized(images: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """Reduce (n, h, w[, 3]) uint8 images to the tile's size; unchanged when they have it."""
    if images.shape[1:3] == tile:
        return images
    size = (tile[1], tile[0])
    shrunk = [Image.fromarray(image).resize(size, Image.Resampling.BOX) for image in images]
    return np.stack([np.asarray(image) for image in shrunk])
