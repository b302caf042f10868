"""The atlas: every subspace as its own small scatter, all of them in one figure.

One figure, because a browser grants a page about sixteen WebGL contexts and every figure takes two.
The figure stands alone (notebooks, export); the explorer sends the same traces and axes to the
browser and draws titles and sign cells as parts of the page.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.data import numbers
from appca.plots import palette
from appca.plots.explore.panel import Name, Panel, check, plain, ranges
from appca.plots.explore.points import traces

Rect = tuple[float, float, float, float]  # x0, x1, y0, y1 in shares of the figure
PANEL_FILL = "rgba(127,140,160,0.08)"
EXPORT_PANEL = (320, 300)  # pixels of one panel in the standing figure
GUTTER = (52, 62, 14, 34)  # left, bottom, right, top


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
        drawing.update_layout(
            legend={"itemsizing": "constant", "title": {"text": plain(colour.name)}}
        )
    return drawing


def axes(panels: Sequence[Panel], rects: Sequence[Rect]) -> dict[str, Any]:
    """Lay out one pair of axes per panel, drawn through zero, at the given (x0, x1, y0, y1)."""
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


def grid(
    count: int, columns: int, panel: tuple[int, int] = EXPORT_PANEL
) -> tuple[list[Rect], tuple[int, int]]:
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


def _axis(title: str, span: list[float], origin: bool) -> dict[str, Any]:
    return {
        "type": "linear",  # else Plotly looks through the points for dates and words
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


def _frame(size: tuple[int, int]) -> dict[str, Any]:
    return {
        "width": size[0] + 110,
        "height": size[1],
        "margin": {"l": 0, "r": 110, "t": 0, "b": 0, "pad": 0, "autoexpand": False},
        "paper_bgcolor": "white",
        "plot_bgcolor": PANEL_FILL,
        "hovermode": False,
        "dragmode": "pan",
    }


def _names(
    panels: Sequence[Panel], rects: Sequence[Rect], size: tuple[int, int]
) -> list[dict[str, Any]]:
    """Write titles above and sign cells into the corners of the standing figure."""
    notes = []
    for number, (panel, (x0, x1, y0, y1)) in enumerate(zip(panels, rects, strict=True), start=1):
        notes += [_on_panel(name, number) for name in panel.names]
        text = f"<b>{plain(panel.title)}</b>  <span style='opacity:.6'>{plain(panel.subtitle)}"
        notes.append(_note(text + "</span>", x0, y1 + 8 / size[1], ("left", "bottom"), 13))
        for cell in panel.cells:
            sx, sy = cell.corner
            x, y = (x1 if sx > 0 else x0), (y1 if sy > 0 else y0)
            anchor = ("right" if sx > 0 else "left", "top" if sy > 0 else "bottom")
            notes.append(_note(f"{plain(cell.label)} · {cell.n_rows:,}", x, y, anchor, 11))
    return notes


def _on_panel(name: Name, number: int) -> dict[str, Any]:
    tail = "" if number == 1 else str(number)
    note = _note(f"<b>{plain(name.text)}</b>", name.x, name.y, ("center", "middle"), 12)
    return note | {"xref": f"x{tail}", "yref": f"y{tail}"}


def _note(text: str, x: float, y: float, anchor: tuple[str, str], size: int) -> dict[str, Any]:
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


def _legend(colour: palette.Colour, levels: palette.Levels) -> list[go.Scattergl]:
    """Add empty traces that carry the legend, or the colour bar of a number."""
    if colour.kind == "number":
        return [_colour_bar(colour, levels)]
    return [
        go.Scattergl(
            x=[None],
            y=[None],
            mode="markers",
            name=plain(name),
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
            "title": {"text": plain(colour.name)},
            "tickvals": ticks.tolist(),
            "ticktext": [numbers.number(low + (high - low) * tick / last) for tick in ticks],
            "thickness": 12,
        },
    }
    return go.Scattergl(x=[None], y=[None], mode="markers", showlegend=False, marker=marker)


def _largest_row(panels: Sequence[Panel]) -> int:
    return max((int(np.max(panel.rows)) for panel in panels if len(panel.rows)), default=0)
