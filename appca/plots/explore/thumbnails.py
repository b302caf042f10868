"""Images of some of the points of a standing figure: as many as lie apart, each in its colour."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.colors import hex_to_rgb

from appca.plots.components.components import data_uri
from appca.plots.explore.panel import Panel, ranges
from appca.plots.explore.points import cube_codes, cube_table
from appca.plots.explore.sprites import Sprites, tiles_of
from appca.plots.palette import Levels

CELLS = 11  # thumbnails along a side of a panel at most
LEAST_SIDE = 16  # pixels of an image in the file, so that a frame of one pixel is thin


def thumbnails(
    panels: Sequence[Panel], sprites: Sprites, levels: Levels | None, cells: int = CELLS
) -> list[dict[str, Any]]:
    """Return layout images for the panels of `appca.plots.explore.atlas.figure`.

    Parameters
    ----------
    panels : sequence of Panel
    sprites : Sprites
        Of all rows of the data set.
    levels : Levels, optional
        Colours of the frames, where a panel has none of its own.
    cells : int
        So many images would fit along each side of a panel; no two overlap.
    """
    return [
        image
        for number, panel in enumerate(panels, start=1)
        for image in _of_panel(panel, "" if number == 1 else str(number), sprites, levels, cells)
    ]


def _of_panel(
    panel: Panel, tail: str, sprites: Sprites, levels: Levels | None, cells: int
) -> list[dict[str, Any]]:
    if not len(panel.rows):
        return []
    wide, tall = ((span[1] - span[0]) / cells for span in ranges(panel))
    x, y = np.asarray(panel.x, float) / wide, np.asarray(panel.y, float) / tall
    chosen = apart(x, y, np.argsort(sprites.priority[panel.rows]))
    rows = np.asarray(panel.rows)[chosen]
    colours = _colours(panel, chosen, rows, levels)
    draw = _inked if sprites.style == "ink" else _framed
    return [
        {
            "source": data_uri(draw(_enlarged(tile), colour)),
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


def apart(x: np.ndarray, y: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Choose points no two of whose unit squares overlap, in the given order.

    Parameters
    ----------
    x, y : ndarray, shape (m,)
        In sides of a square.
    order : ndarray of int, shape (m,)
        Who comes first, stays.

    Returns
    -------
    ndarray of int
        Positions, in that order.
    """
    free, chosen = np.isfinite(x) & np.isfinite(y), []
    for place in order.tolist():
        if free[place]:
            chosen.append(place)
            free &= (np.abs(x - x[place]) >= 1) | (np.abs(y - y[place]) >= 1)
    return np.array(chosen, dtype=int)


def _colours(
    panel: Panel, chosen: np.ndarray, rows: np.ndarray, levels: Levels | None
) -> list[str]:
    if panel.rgb is not None:
        table = cube_table()
        return [table[code] for code in cube_codes(panel.rgb[chosen])]
    if levels is None:
        return ["#808080"] * len(rows)
    return [levels.table[code] for code in levels.codes[rows]]


def _enlarged(tile: np.ndarray) -> np.ndarray:
    factor = max(1, -(-LEAST_SIDE // max(tile.shape[:2])))
    return tile.repeat(factor, axis=0).repeat(factor, axis=1)


def _framed(tile: np.ndarray, colour: str) -> np.ndarray:
    """Put a rim of one pixel around an image (h, w) or (h, w, 3)."""
    framed = np.empty((tile.shape[0] + 2, tile.shape[1] + 2, 3), np.uint8)
    framed[:] = hex_to_rgb(colour)
    framed[1:-1, 1:-1] = tile if tile.ndim == 3 else tile[..., None]
    return framed


def _inked(tile: np.ndarray, colour: str) -> np.ndarray:
    """Draw bright strokes (h, w) in a colour, the dark ground see-through."""
    ink = np.empty((*tile.shape, 4), np.uint8)
    ink[..., :3], ink[..., 3] = hex_to_rgb(colour), tile
    return ink
