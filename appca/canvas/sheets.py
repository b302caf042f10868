"""Image sheets: many small images in one picture, in square cells whose sides are powers of two.

Tile t is the image of the row at index t of the priority. The priority is the same for all runs of
a data set, so browsers can cache the sheets. The first sheet is enough for a distant view.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from appca.data.dataset import Dataset
from appca.plots.components import SPARK, png, row_lines
from appca.words import shortened

SHEET_SIDE = 2048  # in pixels; all browsers with WebGL2 support this size
LARGEST_TILE = 128  # larger images are reduced, also on the hover card
INK = "digits", "mnist"  # built-in sources of handwriting, stored as light on black
NAME, LETTERS, MOST_NAMED = (22, 128), 12, 2000  # pixels and letters of a row's name; rows
_COUNTER = re.compile(r"\D*\d+")
SEED = 20  # fixed seed, so that samples are reproducible


def sample(n_rows: int, most: int) -> np.ndarray:
    """Return a fixed random sample of at most `most` row indices, ascending."""
    return np.sort(np.random.default_rng(SEED).permutation(n_rows)[:most])


def is_ink(dataset: Dataset) -> bool:
    """Whether images are dark strokes on a light page; all others are drawn as in their file."""
    return dataset.provenance.get("source") in INK


def is_named(dataset: Dataset) -> bool:
    """Whether most ids are names, not numbers after a common prefix, of few enough rows."""
    counted = sum(bool(_COUNTER.fullmatch(name)) for name in dataset.ids[: MOST_NAMED + 1])
    return dataset.n_rows <= MOST_NAMED and 2 * counted < dataset.n_rows


def names_of(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Draw the ids of rows with a halo, (n, h, w) uint8."""
    from matplotlib import get_data_path

    font = ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", 15)
    height, width = NAME
    look: Any = {"font": font, "anchor": "mm", "stroke_width": 3, "stroke_fill": 90}
    drawn = [Image.new("L", (width, height)) for _ in rows]
    for image, name in zip(drawn, dataset.ids[rows], strict=True):
        ImageDraw.Draw(image).text((width / 2, height / 2), shortened(name, LETTERS), 255, **look)
    return np.stack([np.asarray(image) for image in drawn])


def tile_of(image_shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the height and width of a thumbnail."""
    height, width = image_shape[:2]
    shrink = min(1.0, LARGEST_TILE / max(height, width))
    return max(1, round(height * shrink)), max(1, round(width * shrink))


def tiles_of(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return the images of rows at tile size, (n, h, w) or (n, h, w, 3) uint8."""
    return resized(dataset.images(rows), tile_of(dataset.image_shape or ()))


def resized(images: np.ndarray, tile: tuple[int, int]) -> np.ndarray:
    """Reduce (n, h, w[, 3]) uint8 images to the tile size, unless they have it already."""
    if images.shape[1:3] == tile:
        return images
    size = (tile[1], tile[0])
    shrunk = [Image.fromarray(image).resize(size, Image.Resampling.BOX) for image in images]
    return np.stack([np.asarray(image) for image in shrunk])


GREY_SHEET, COLOUR_SHEET = 4096, 1024  # maximum number of tiles per sheet
FAST = 2  # compression level


class Sheets(NamedTuple):
    """The thumbnails of a data set; each sheet is drawn when it is needed."""

    tile: tuple[int, int, int]  # height, width, channels
    cell: int  # side of a cell in pixels
    columns: int
    per_sheet: int
    style: str  # "ink": strokes on black, drawn in the class colour; "name": text; or "photo"
    rows: np.ndarray  # (N,) row of each tile
    images: Callable[[np.ndarray], np.ndarray]
    names: np.ndarray | None = None  # (N,) if tiles are names

    @property
    def n_sheets(self) -> int:
        """Count the sheets."""
        return -(-len(self.rows) // self.per_sheet)

    @property
    def header(self) -> dict[str, Any]:
        """Describe the layout of the sheets."""
        facts = {"tile": list(self.tile), "cell": self.cell, "columns": self.columns}
        return facts | {"per_sheet": self.per_sheet, "count": self.n_sheets, "style": self.style}

    def png(self, number: int) -> bytes:
        """Draw one sheet."""
        first = number * self.per_sheet
        tiles = resized(self.images(self.rows[first : first + self.per_sheet]), self.tile[:2])
        return png(on_sheet(tiles, self.cell, self.columns), compress_level=FAST)


def sheets_of(dataset: Dataset, priority: np.ndarray) -> Sheets | None:
    """Describe the sheets of a data set; None if its rows are no images and have no names."""
    style = "photo" if dataset.image_shape else "ink" if dataset.is_ordered else "name"
    if style == "name" and not is_named(dataset):
        return None
    lines, names = (SPARK, partial(row_lines, dataset)), (NAME, partial(names_of, dataset))
    photos: Any = dataset.image_shape, dataset.images
    shape, images = {"photo": photos, "ink": lines, "name": names}[style]
    style = "ink" if is_ink(dataset) else style
    tile, channels = tile_of(shape), 3 if len(shape) == 3 else 1
    cell = cell_of(max(tile))
    columns = SHEET_SIDE // cell
    per_sheet = min(columns * columns, GREY_SHEET if channels == 1 else COLOUR_SHEET)
    columns = min(columns, 1 << math.ceil(math.log2(math.sqrt(per_sheet))))
    ids = dataset.ids if style == "name" else None
    return Sheets((*tile, channels), cell, columns, per_sheet, style, priority, images, ids)


def cell_of(side: int) -> int:
    """Return the side of a cell, a power of two with space for a seam between reduced copies."""
    return 1 << max(3, math.ceil(math.log2(side + 2 if side < LARGEST_TILE else side)))


def on_sheet(tiles: np.ndarray, cell: int, columns: int) -> np.ndarray:
    """Centre tiles (n, h, w) or (n, h, w, 3) in square cells, line by line."""
    n, height, width = tiles.shape[:3]
    lines = -(-n // columns)
    columns = min(columns, n) if lines == 1 else columns
    sheet = np.zeros((lines, cell, columns, cell, *tiles.shape[3:]), np.uint8)
    top, left = (cell - height) // 2, (cell - width) // 2
    place = np.arange(n)
    line, column = place // columns, place % columns
    sheet[line, top : top + height, column, left : left + width] = tiles
    return sheet.reshape(lines * cell, columns * cell, *tiles.shape[3:])
