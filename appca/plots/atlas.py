"""The atlas: every subspace as its own small scatter, all of them in one figure.

One figure, because a browser grants a page about sixteen WebGL contexts and every figure takes two.
The figure stands alone (notebooks, export); the explorer sends the same traces and axes to the
browser and draws titles and sign cells as parts of the page.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from appca.plots import palette

MOST_PANELS = 12  # of one figure; more are paged by the caller
MARKERS = (0, 2, 1, 5, 3, 17, 4, 6, 13, 14)  # Plotly's numbers of ten symbols that look different
RING_EXTRA = 2  # pixels: a ring needs room to be seen as one
RING_WIDTH = 1.3
CUBE = 8  # own colours are rounded to 8 x 8 x 8 levels: one number a point instead of a text
PANEL_FILL = "rgba(127,140,160,0.08)"
FADED = {"marker": {"opacity": 0.14, "color": "#9aa3ad"}}  # grey context around a selection
PADDING = 0.07  # of the data's span, so that thumbnails at the rim are whole
CELL_PADDING = 0.17  # above and below, where the corners name the sign cells
EXPORT_PANEL = (320, 300)  # pixels of one panel in the standing figure
GUTTER = (52, 62, 14, 34)  # left, bottom, right, top


class Cell(NamedTuple):
    """A sign cell: the rows of a panel whose coordinates share their signs."""

    label: str  # "+1 −3"
    count: int
    rows: np.ndarray  # (count,) data set rows
    corner: tuple[int, int]  # signs of x and y: (1, -1) is the lower right corner
    image: np.ndarray | None = None  # (h, w) or (h, w, 3) uint8, the mean of the cell


class Panel(NamedTuple):
    """One small scatter with the rows it holds and nothing of the others."""

    title: str
    subtitle: str
    rows: np.ndarray  # (m,) int32, which data set row each point is
    x: np.ndarray  # (m,) float32
    y: np.ndarray  # (m,) float32
    x_title: str = ""
    y_title: str = ""
    symbol: np.ndarray | None = None  # (m,) uint8, counts into MARKERS, round and round
    hollow: np.ndarray | None = None  # (m,) bool, drawn as an outline: doubtful membership
    rgb: np.ndarray | None = None  # (m, 3) uint8, colours of its own
    cells: Sequence[Cell] = ()
    origin: bool = True  # False: coordinates without a meaning of zero, as UMAP's


def figure(
    panels: Sequence[Panel],
    colour: palette.Colour | None = None,
    *,
    n_rows: int | None = None,
    columns: int = 3,
    point_size: float = 3,
    selection: np.ndarray | None = None,
) -> go.Figure:
    """Draw all panels in one figure.

    Parameters
    ----------
    panels : sequence of Panel
        At most 12; page longer lists.
    colour : Colour, optional
        Of all rows of the data set; a panel's own colours come first.
    n_rows : int, optional
        Rows of the data set; default as many as the colouring has, or the largest row and one.
    columns : int
    point_size : float
        Diameter in pixels.
    selection : ndarray of shape (n_rows,), bool, optional
        Rows kept in colour while all others turn grey.

    Raises
    ------
    ValueError
        When there are too many panels, or arrays of a panel differ in length.
    """
    check(panels)
    if n_rows is None:
        n_rows = len(colour.values) if colour is not None else _largest_row(panels) + 1
    levels = palette.levels(colour, n_rows)
    rects, size = grid(len(panels), columns)
    drawing = go.Figure(
        data=[go.Scattergl(trace) for trace in traces(panels, levels, point_size, selection)],
        layout={**axes(panels, rects), **_frame(size), "annotations": _names(panels, rects, size)},
    )
    if colour is not None:
        drawing.add_traces(_legend(colour, levels))
        drawing.update_layout(legend={"itemsizing": "constant", "title": {"text": colour.name}})
    return drawing


def check(panels: Sequence[Panel]) -> None:
    """Refuse what would be drawn wrongly: too many panels, arrays that differ in length."""
    if len(panels) > MOST_PANELS:
        message = (
            f"{len(panels)} panels were given; one figure holds at most {MOST_PANELS}, "
            "so page through them."
        )
        raise ValueError(message)
    for panel in panels:
        lengths = {
            name: len(getattr(panel, name))
            for name in ("rows", "x", "y", "symbol", "hollow", "rgb")
            if getattr(panel, name) is not None
        }
        if len(set(lengths.values())) > 1:
            message = (
                f"The panel {panel.title!r} has arrays of different lengths ({lengths}); "
                "give one entry a point."
            )
            raise ValueError(message)


def traces(
    panels: Sequence[Panel],
    levels: palette.Levels | None,
    point_size: float = 3,
    selection: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Describe one scatter a panel; without levels only panels with own colours have colours."""
    return [
        _trace(panel, number, levels, point_size, selection)
        for number, panel in enumerate(panels, start=1)
    ]


def axes(panels: Sequence[Panel], rects: Sequence[tuple[float, float, float, float]]) -> dict:
    """Lay out one pair of axes a panel, drawn through zero, at the given (x0, x1, y0, y1)."""
    layout: dict[str, Any] = {}
    for number, (panel, (x0, x1, y0, y1)) in enumerate(zip(panels, rects, strict=True), start=1):
        x_range, y_range = ranges(panel)
        tail = "" if number == 1 else str(number)
        layout[f"xaxis{tail}"] = {
            **_axis(panel.x_title, x_range, panel.origin),
            "domain": [x0, x1],
            "anchor": f"y{tail}",
        }
        layout[f"yaxis{tail}"] = {
            **_axis(panel.y_title, y_range, panel.origin),
            "domain": [y0, y1],
            "anchor": f"x{tail}",
        }
    return layout


def ranges(panel: Panel) -> tuple[list[float], list[float]]:
    """Choose the ranges of both axes: all points, a rim, and zero where signs matter."""
    with_zero = bool(len(panel.cells))
    return (
        _range(panel.x, with_zero, PADDING),
        _range(panel.y, with_zero, CELL_PADDING if with_zero else PADDING),
    )


def grid(
    count: int, columns: int, panel: tuple[int, int] = EXPORT_PANEL
) -> tuple[list[tuple[float, float, float, float]], tuple[int, int]]:
    """Place ``count`` panels in ``columns``: domains (x0, x1, y0, y1) and the size in pixels."""
    columns = max(1, min(columns, count))
    lines = max(1, -(-count // columns))
    left, bottom, right, top = GUTTER
    cell = (panel[0] + left + right, panel[1] + bottom + top)
    size = (columns * cell[0], lines * cell[1])
    places = []
    for number in range(count):
        line, column = divmod(number, columns)
        x0 = (column * cell[0] + left) / size[0]
        y1 = 1 - (line * cell[1] + top) / size[1]
        places.append((x0, x0 + panel[0] / size[0], y1 - panel[1] / size[1], y1))
    return places, size


def cube_table() -> tuple[str, ...]:
    """List the 512 colours that own colours are rounded to."""
    step = 255 / (CUBE - 1)
    return tuple(palette.to_hex(np.array(parts) * step) for parts in np.ndindex(CUBE, CUBE, CUBE))


def cube_codes(rgb: np.ndarray) -> np.ndarray:
    """Round (m, 3) uint8 colours to codes of `cube_table`, (m,) uint16."""
    parts = np.rint(np.asarray(rgb, np.float32) * ((CUBE - 1) / 255)).astype(np.uint16)
    return parts[:, 0] * CUBE**2 + parts[:, 1] * CUBE + parts[:, 2]


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
        "name": _plain(panel.title),
        "hoverinfo": "none",
        "showlegend": False,
        "xaxis": f"x{tail}",
        "yaxis": f"y{tail}",
        "marker": _marker(panel, rows, levels, point_size),
        "unselected": FADED,
    }
    if selection is not None:
        trace["selectedpoints"] = np.flatnonzero(selection[rows]).astype(np.int32)
    return trace


def _marker(
    panel: Panel, rows: np.ndarray, levels: palette.Levels | None, point_size: float
) -> dict:
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
        return np.array(MARKERS, np.uint8)[np.asarray(panel.symbol) % len(MARKERS)]
    if panel.rgb is not None or levels is None or len(set(levels.shapes)) == 1:
        return None
    plotly_number = dict(zip(palette.SHAPES, palette.SHAPE_NUMBERS, strict=True))
    return np.array([plotly_number[s] for s in levels.shapes], np.uint8)[levels.codes[rows]]


def opacity(count: int) -> float:
    """Let few points stand out and many show their density."""
    return float(np.clip(0.9 - 0.15 * np.log10(max(count, 1) / 100), 0.35, 0.9))


def _range(values: np.ndarray, with_zero: bool, padding: float) -> list[float]:
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite)]
    low, high = (finite.min(), finite.max()) if len(finite) else (-1.0, 1.0)
    if with_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    rim = padding * (high - low) or max(abs(high), 1.0) * 0.1
    return [float(low - rim), float(high + rim)]


def _axis(title: str, span: list[float], origin: bool) -> dict:
    return {
        "range": span,
        "title": {"text": title, "standoff": 4, "font": {"size": 12}},
        "showgrid": False,
        "zeroline": origin,
        "zerolinewidth": 1,
        "tickfont": {"size": 11},
        "showticklabels": origin,
        "nticks": 6,
        "ticks": "",
        "automargin": False,
    }


def _frame(size: tuple[int, int]) -> dict:
    return {
        "width": size[0] + 110,
        "height": size[1],
        "margin": {"l": 0, "r": 110, "t": 0, "b": 0, "pad": 0, "autoexpand": False},
        "paper_bgcolor": "white",
        "plot_bgcolor": PANEL_FILL,
        "hovermode": False,
        "dragmode": "pan",
    }


def _names(panels: Sequence[Panel], rects: Sequence, size: tuple[int, int]) -> list[dict]:
    """Write titles above and sign cells into the corners of the standing figure."""
    notes = []
    for panel, (x0, x1, y0, y1) in zip(panels, rects, strict=True):
        text = f"<b>{_plain(panel.title)}</b>  <span style='opacity:.6'>{_plain(panel.subtitle)}"
        notes.append(_note(text + "</span>", x0, y1 + 8 / size[1], ("left", "bottom"), 13))
        for cell in panel.cells:
            sx, sy = cell.corner
            x, y = (x1 if sx > 0 else x0), (y1 if sy > 0 else y0)
            anchor = ("right" if sx > 0 else "left", "top" if sy > 0 else "bottom")
            notes.append(_note(f"{_plain(cell.label)} · {cell.count:,}", x, y, anchor, 11))
    return notes


def _note(text: str, x: float, y: float, anchor: tuple[str, str], size: int) -> dict:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": anchor[0],
        "yanchor": anchor[1],
        "showarrow": False,
        "font": {"size": size},
    }


def _plain(text: str) -> str:
    """Disarm the small markup that Plotly reads in annotations."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _legend(colour: palette.Colour, levels: palette.Levels) -> list[go.Scattergl]:
    """Add empty traces that carry the legend, or the colour bar of a number."""
    if colour.kind == "number":
        return [_colour_bar(colour, levels)]
    return [
        go.Scattergl(
            x=[None],
            y=[None],
            mode="markers",
            name=_plain(name),
            marker={"color": hexcode, "size": 8, "symbol": shape},
        )
        for name, hexcode, shape in zip(colour.names, levels.table, levels.shapes, strict=False)
    ]


def _colour_bar(colour: palette.Colour, levels: palette.Levels) -> go.Scattergl:
    last = len(levels.table) - 2  # the last level is for missing values
    low, high = levels.limits or (0.0, 1.0)
    ticks = np.linspace(0, last, 5)
    marker = {
        "color": [0],
        "cmin": 0,
        "cmax": last,
        "colorscale": [[code / last, levels.table[code]] for code in range(last + 1)],
        "showscale": True,
        "colorbar": {
            "title": {"text": _plain(colour.name)},
            "tickvals": ticks.tolist(),
            "ticktext": [f"{low + (high - low) * tick / last:.3g}" for tick in ticks],
            "thickness": 12,
        },
    }
    return go.Scattergl(x=[None], y=[None], mode="markers", showlegend=False, marker=marker)


def _largest_row(panels: Sequence[Panel]) -> int:
    return max((int(np.max(panel.rows)) for panel in panels if len(panel.rows)), default=0)
