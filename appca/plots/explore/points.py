"""How the points of a panel look: colours, symbols, rings for doubtful rows, density."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from appca.plots import palette
from appca.plots.explore.panel import Panel, plain

MARKERS = (0, 2, 1, 5, 3, 17, 4, 6, 13, 14)  # Plotly's numbers of ten symbols that look different
RING_EXTRA = 2  # pixels: a ring needs room to be seen as one
RING_WIDTH = 1.3
CUBE = 8  # own colours are rounded to 8 x 8 x 8 levels: one number per point instead of a text
CONTEXT = "#9aa3ad"  # of points that are not selected: grey around the selection


def traces(
    panels: Sequence[Panel],
    levels: palette.Levels | None,
    point_size: float = 3,
    selection: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Describe one scatter per panel; without levels only panels with own colours have colours."""
    return [
        _trace(panel, number, levels, point_size, selection)
        for number, panel in enumerate(panels, start=1)
    ]


def cube_table() -> tuple[str, ...]:
    """List the 512 colours that own colours are rounded to."""
    step = 255 / (CUBE - 1)
    return tuple(palette.to_hex(np.array(parts) * step) for parts in np.ndindex(CUBE, CUBE, CUBE))


def cube_codes(rgb: np.ndarray) -> np.ndarray:
    """Round (m, 3) uint8 colours to codes of `cube_table`, (m,) uint16."""
    parts = np.rint(np.asarray(rgb, np.float32) * ((CUBE - 1) / 255)).astype(np.uint16)
    return np.asarray(parts[:, 0] * CUBE**2 + parts[:, 1] * CUBE + parts[:, 2])


def _trace(
    panel: Panel,
    number: int,
    levels: palette.Levels | None,
    point_size: float,
    selection: np.ndarray | None,
) -> dict[str, Any]:
    tail = "" if number == 1 else str(number)
    rows = np.ascontiguousarray(panel.rows, np.int32)
    trace = {
        "type": "scattergl",
        "x": np.ascontiguousarray(panel.x, np.float32),
        "y": np.ascontiguousarray(panel.y, np.float32),
        "customdata": rows,  # the data set's row of each point, whatever is filtered or paged
        "mode": "markers",
        "name": plain(panel.title),
        "hoverinfo": "none",
        "showlegend": False,
        "xaxis": f"x{tail}",
        "yaxis": f"y{tail}",
        "marker": _marker(panel, rows, levels, point_size),
        "unselected": {"marker": {"opacity": faded_opacity(len(rows)), "color": CONTEXT}},
    }
    if selection is not None:
        trace["selectedpoints"] = np.flatnonzero(selection[rows]).astype(np.int32)
    return trace


def _marker(
    panel: Panel, rows: np.ndarray, levels: palette.Levels | None, point_size: float
) -> dict[str, Any]:
    marker: dict[str, Any] = {
        "size": point_size,
        "opacity": opacity(len(rows)),
        "showscale": False,
        "line": {"width": 0},
    }
    symbols = _symbols(panel, rows, levels)
    if symbols is not None:
        marker["symbol"] = symbols
    if panel.rgb is not None:
        codes, table = cube_codes(panel.rgb), cube_table()
    elif levels is not None:
        codes, table = levels.codes[rows], levels.table
    else:
        return marker
    marker.update(_coloured(codes, table))
    if levels is not None and panel.hollow is not None and np.any(panel.hollow):
        marker.update(_hollowed(panel.hollow, codes, table, point_size))
    return marker


def _coloured(codes: np.ndarray, table: Sequence[str]) -> dict[str, Any]:
    last = max(1, len(table) - 1)
    scale = [[level / last, hexcode] for level, hexcode in enumerate(table)]
    return {"color": codes, "colorscale": scale, "cmin": 0, "cmax": last}


def _hollowed(
    hollow: np.ndarray, codes: np.ndarray, table: Sequence[str], point_size: float
) -> dict[str, Any]:
    """Draw some points as rings: white inside, their own colour as the line.

    Plotly's open symbols are filled discs as soon as symbols vary by point (7.1).
    """
    filled = np.where(hollow, len(table), codes).astype(np.uint16)
    line = {"width": np.where(hollow, RING_WIDTH, 0).astype(np.float32), **_coloured(codes, table)}
    size = np.where(hollow, point_size + RING_EXTRA, point_size).astype(np.float32)
    return {**_coloured(filled, [*table, "#ffffff"]), "line": line, "size": size}


def _symbols(panel: Panel, rows: np.ndarray, levels: palette.Levels | None) -> np.ndarray | None:
    """Give Plotly's symbol numbers, of the panel or else of the classes; None: all discs."""
    if panel.symbol is not None:
        return np.array(MARKERS, np.uint8).take(np.asarray(panel.symbol) % len(MARKERS))
    if panel.rgb is not None or levels is None or len(set(levels.shapes)) == 1:
        return None
    plotly_number = dict(zip(palette.SHAPES, palette.SHAPE_NUMBERS, strict=True))
    own = np.array([plotly_number[shape] for shape in levels.shapes], np.uint8)
    return own.take(np.asarray(levels.codes[rows]))


def opacity(count: int) -> float:
    """Let few points stand out and many show their density."""
    return float(np.clip(0.9 - 0.2 * np.log10(max(count, 1) / 100), 0.3, 0.9))


def faded_opacity(count: int) -> float:
    """Keep the grey context light, however many points lie on each other."""
    return float(np.clip(0.15 * np.sqrt(2000 / max(count, 1)), 0.025, 0.25))
