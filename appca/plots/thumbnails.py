"""Images of some of the points of a standing figure: as many as lie apart, each in its colour."""

from collections.abc import Sequence

import numpy as np

from appca.plots.components import data_uri
from appca.plots.palette import Levels
from appca.plots.panel import Panel, ranges
from appca.plots.points import cube_codes, cube_table
from appca.plots.sprites import Sprites, tiles_of
from appca.plots.study_panels import spaced

CELLS = 11  # thumbnails along a side of a panel at most
FILL = 0.86  # of a cell's side
LEAST_SIDE = 16  # pixels of an image in the file, so that a frame of one pixel is thin


def thumbnails(
    panels: Sequence[Panel], sprites: Sprites, levels: Levels | None, cells: int = CELLS
) -> list[dict]:
    """
    Return layout images for the panels of `appca.plots.atlas.figure`.

    Parameters
    ----------
    panels : sequence of Panel
    sprites : Sprites
        Of all rows of the data set.
    levels : Levels, optional
        Colours of the frames, where a panel has none of its own.
    cells : int
        Each panel is cut into so many by so many cells, of which each shows one image at most.
    """
    return [
        image
        for number, panel in enumerate(panels, start=1)
        for image in _of_panel(panel, "" if number == 1 else str(number), sprites, levels, cells)
    ]


def _of_panel(
    panel: Panel, tail: str, sprites: Sprites, levels: Levels | None, cells: int
) -> list[dict]:
    if not len(panel.rows):
        return []
    chosen = spaced(np.asarray(panel.x, float), np.asarray(panel.y, float), cells)
    rows = np.asarray(panel.rows)[chosen]
    colours = _colours(panel, chosen, rows, levels)
    wide, tall = (FILL * (span[1] - span[0]) / cells for span in ranges(panel))
    return [
        {
            "source": data_uri(_framed(tile, colour)),
            "xref": f"x{tail}",
            "yref": f"y{tail}",
            "x": float(panel.x[place]),
            "y": float(panel.y[place]),
            "sizex": wide,
            "sizey": tall,
            "xanchor": "center",
            "yanchor": "middle",
            "sizing": "contain",
            "layer": "above",
        }
        for place, tile, colour in zip(chosen, tiles_of(sprites, rows), colours, strict=True)
    ]


def _colours(
    panel: Panel, chosen: np.ndarray, rows: np.ndarray, levels: Levels | None
) -> list[str]:
    if panel.rgb is not None:
        table = cube_table()
        return [table[code] for code in cube_codes(panel.rgb[chosen])]
    if levels is None:
        return ["#808080"] * len(rows)
    return [levels.table[code] for code in levels.codes[rows]]


def _framed(tile: np.ndarray, colour: str) -> np.ndarray:
    """Put a rim of one pixel around an image (h, w) or (h, w, 3), enlarged where it is tiny."""
    factor = max(1, -(-LEAST_SIDE // max(tile.shape[:2])))
    large = tile.repeat(factor, axis=0).repeat(factor, axis=1)
    large = np.stack([large] * 3, axis=-1) if large.ndim == 2 else large
    framed = np.empty((large.shape[0] + 2, large.shape[1] + 2, 3), np.uint8)
    framed[:] = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    framed[1:-1, 1:-1] = large
    return framed
