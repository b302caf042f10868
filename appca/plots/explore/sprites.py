"""Sprite sheets: many small images in one picture, in a fixed random order.

Sheet ``s`` holds the rows whose priority lies in ``s * per_sheet .. (s + 1) * per_sheet``. The
priority is one fixed random permutation of all rows, so the first sheet is a fair sample of the
data set and the browser needs no other for an overview. Row and image are tied by this one
permutation only, whatever is filtered, sorted or paged around it.
"""

import io
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image

from appca.data.dataset import Dataset

SHEET_SIDE = 2048  # pixels; every WebGL-era browser decodes this size
MOST_TILES = 1024
LARGEST_TILE = 128  # larger images are reduced; the hover card shows no more than this
SEED = 20  # of the priority; any fixed number will do, but it must not change between reruns


class Sprites(NamedTuple):
    """The thumbnails of a data set, made on demand."""

    key: str  # the data set's digest
    n_rows: int
    tile: tuple[int, int]  # height and width on the sheet, pixels
    columns: int  # tiles in a sheet's row
    per_sheet: int
    channels: int  # 1 or 3
    style: str  # "ink": grey strokes on black, drawn in the class colour; "photo": as it is
    priority: np.ndarray  # (N,) uint32, a permutation
    images: Callable[[np.ndarray], np.ndarray]

    @property
    def n_sheets(self) -> int:
        """Count the sheets that hold all rows."""
        return -(-self.n_rows // self.per_sheet)


def sprites_of(dataset: Dataset, style: str | None = None) -> Sprites:
    """Describe the thumbnails of a data set of images; draws none of them yet.

    Parameters
    ----------
    dataset : Dataset
    style : {"ink", "photo"}, optional
        Default: judged by `style_of` on at most 200 rows.

    Raises
    ------
    ValueError
        When the rows are not images or the style is unknown.
    """
    if dataset.image_shape is None:
        message = "Thumbnails need rows that are images; this data set has no image shape."
        raise ValueError(message)
    if style not in (None, "ink", "photo"):
        message = f"A thumbnail style is 'ink' or 'photo'; got {style!r}."
        raise ValueError(message)
    height, width = dataset.image_shape[:2]
    shrink = min(1.0, LARGEST_TILE / max(height, width))
    tile = (max(1, round(height * shrink)), max(1, round(width * shrink)))
    per_side = (max(1, SHEET_SIDE // tile[0]), max(1, SHEET_SIDE // tile[1]))
    columns = min(per_side[1], 32)
    rng = np.random.default_rng(SEED)
    priority = rng.permutation(dataset.n_rows).astype(np.uint32)
    if style is None:
        sample = np.sort(np.argsort(priority)[:200])
        style = style_of(dataset.images(sample))
    return Sprites(
        key=dataset.digest,
        n_rows=dataset.n_rows,
        tile=tile,
        columns=columns,
        per_sheet=min(MOST_TILES, columns * per_side[0]),
        channels=3 if len(dataset.image_shape) == 3 else 1,
        style=style,
        priority=priority,
        images=dataset.images,
    )


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


def sheet(sprites: Sprites, number: int) -> bytes:
    """Draw one sheet as a lossless PNG.

    Raises
    ------
    ValueError
        When there is no such sheet.
    """
    if not 0 <= number < sprites.n_sheets:
        message = f"Sheet {number} does not exist; there are {sprites.n_sheets}, counted from 0."
        raise ValueError(message)
    start = number * sprites.per_sheet
    rows = np.argsort(sprites.priority)[start : start + sprites.per_sheet]
    tiles = tiles_of(sprites, rows)
    height, width = sprites.tile
    lines = -(-len(rows) // sprites.columns)
    canvas = np.zeros((lines * height, sprites.columns * width, *tiles.shape[3:]), np.uint8)
    for place, tile in enumerate(tiles):
        line, column = divmod(place, sprites.columns)
        canvas[line * height : (line + 1) * height, column * width : (column + 1) * width] = tile
    buffer = io.BytesIO()
    Image.fromarray(canvas).save(buffer, "PNG", compress_level=2)
    return buffer.getvalue()


def tiles_of(sprites: Sprites, rows: np.ndarray) -> np.ndarray:
    """Give the rows' images at tile size, (n, h, w) or (n, h, w, 3) uint8."""
    return resized(sprites.images(np.asarray(rows)), sprites.tile)


def mean_image(sprites: Sprites, rows: np.ndarray, most: int = 500) -> np.ndarray | None:
    """Average the images of the rows at tile size; of a fixed sample above ``most`` rows."""
    rows = np.asarray(rows)
    if len(rows) == 0:
        return None
    sample = rows[np.argsort(sprites.priority[rows])[:most]]
    images = sprites.images(np.sort(sample))
    mean = np.rint(images.mean(axis=0, dtype=np.float64)).astype(np.uint8)
    return np.asarray(resized(mean[None], sprites.tile)[0])


def resized(images: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """Reduce (n, h, w[, 3]) uint8 images to the tile's size; unchanged when they have it."""
    if images.shape[1:3] == tile:
        return images
    size = (tile[1], tile[0])
    shrunk = [Image.fromarray(image).resize(size, Image.Resampling.BOX) for image in images]
    return np.stack([np.asarray(image) for image in shrunk])
