"""Figures of the studies: small scatters with thumbnails, sheets of images, boxes by group."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb
from plotly.subplots import make_subplots

from appca.plots.components.components import data_uri, montage
from appca.plots.frame import CLEAR, below, framed, plain
from appca.plots.palette import class_colour, to_hex

SIDE, LONE_SIDE = 360, 560  # pixels: of a panel, and of one alone
LEGEND, GAP = 70, 100  # pixels: below all panels, and between two
MOST_SVG = 4000  # points drawn as vectors; more go to WebGL
SYMBOLS = ("circle", "diamond", "square", "cross", "triangle-up", "star")
CELLS, LONE_CELLS = 11, 18  # thumbnails along a side of a panel at most, and of one alone
GREY = 128  # of the ground of a sheet
FRAME = 1  # pixels of a thumbnail's border in its class's colour


class Scatter(NamedTuple):
    """One small scatter."""

    title: str
    x: np.ndarray  # (m,)
    y: np.ndarray  # (m,)
    codes: np.ndarray  # (m,) into the names of the classes
    x_title: str = ""
    y_title: str = ""
    symbols: np.ndarray | None = None  # (m,) whole numbers into SYMBOLS
    rgb: np.ndarray | None = None  # (m, 3) uint8, instead of the classes' colours
    images: np.ndarray | None = None  # (m, h, w) uint8, of which some are drawn


def scatters(
    panels: Sequence[Scatter], names: Sequence[str], columns: int = 3, size: float = 5
) -> go.Figure:
    """Draw panels side by side, classes in one legend, as many thumbnails as have room.

    `size` is the diameter of a point in pixels.
    """
    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    side = SIDE if len(panels) > 1 else LONE_SIDE
    cells = CELLS if len(panels) > 1 else LONE_CELLS
    height = lines * side + (lines - 1) * GAP + LEGEND
    figure = make_subplots(
        rows=lines,
        cols=columns,
        subplot_titles=[plain(panel.title) for panel in panels],
        horizontal_spacing=0.12 if columns == 2 else 0.07,
        vertical_spacing=GAP / height if lines > 1 else 0.0,
    )
    kind = go.Scatter if sum(len(panel.x) for panel in panels) <= MOST_SVG else go.Scattergl
    listed: set[int] = set()
    pictures: list[dict[str, Any]] = []  # put in at once: one by one takes seconds
    for place, panel in enumerate(panels):
        at = {"row": place // columns + 1, "col": place % columns + 1}
        for trace in _traces(panel, names, kind, size, listed):
            figure.add_trace(trace, **at)
        figure.update_xaxes(title=plain(panel.x_title), zeroline=False, **at)
        figure.update_yaxes(title=plain(panel.y_title), zeroline=False, **at)
        if panel.images is not None:
            axis = str(place + 1) if place else ""
            thumbnails = _thumbnails(panel, panel.images, cells, len(names))
            pictures += [each | {"xref": f"x{axis}", "yref": f"y{axis}"} for each in thumbnails]
    legend = below(-60 / height) | {"itemsizing": "constant"}
    return framed(figure, height, legend=legend, images=pictures)


def _traces(
    panel: Scatter, names: Sequence[str], kind: type, size: float, listed: set[int]
) -> list[go.Scatter | go.Scattergl]:
    if panel.rgb is not None:
        marker = {"size": size, "color": [to_hex(colour) for colour in panel.rgb]}
        marker["symbol"] = _symbols(panel, np.arange(len(panel.x)))
        text = [plain(str(names[code])) for code in panel.codes]
        trace = kind(x=panel.x, y=panel.y, mode="markers", marker=marker, text=text)
        return [trace.update(hovertemplate="%{text}<extra></extra>", showlegend=False)]
    traces = []
    for code in np.unique(panel.codes):
        rows = np.flatnonzero(panel.codes == code)
        marker = {"size": size, "color": class_colour(int(code), len(names)), "opacity": 0.75}
        marker["symbol"] = _symbols(panel, rows)
        trace = kind(x=panel.x[rows], y=panel.y[rows], mode="markers", marker=marker)
        name = plain(str(names[code]))
        trace.update(name=name, legendgroup=name, showlegend=int(code) not in listed)
        trace.update(legendrank=int(code), hovertemplate=f"{name}<extra></extra>")
        traces.append(trace)
        listed.add(int(code))
    return traces


def _symbols(panel: Scatter, rows: np.ndarray) -> "list[str] | str":
    if panel.symbols is None:
        return SYMBOLS[0]
    return [SYMBOLS[int(number) % len(SYMBOLS)] for number in panel.symbols[rows]]


def _thumbnails(
    panel: Scatter, images: np.ndarray, cells: int, n_classes: int
) -> list[dict[str, Any]]:
    """Images of the points nearest to the middles of the cells of a grid."""
    x, y = np.asarray(panel.x, float), np.asarray(panel.y, float)
    wide, tall = np.ptp(x) / cells or 1.0, np.ptp(y) / cells or 1.0
    return [
        {
            "source": data_uri(
                _framed(images[row], class_colour(int(panel.codes[row]), n_classes))
            ),
            "x": float(x[row]),
            "y": float(y[row]),
            "sizex": 0.86 * wide,
            "sizey": 0.86 * tall,
            "xanchor": "center",
            "yanchor": "middle",
            "sizing": "contain",
        }
        for row in spaced(x, y, cells)
    ]


def spaced(x: np.ndarray, y: np.ndarray, cells: int = CELLS) -> np.ndarray:
    """Row numbers of points that lie apart: at most one per cell of a grid, nearest its middle."""
    places = [(v - v.min()) / (np.ptp(v) or 1.0) * cells for v in (x, y)]
    cell = [np.minimum(place.astype(int), cells - 1) for place in places]
    away = sum((place - inside - 0.5) ** 2 for place, inside in zip(places, cell, strict=True))
    order = np.lexsort((away, cell[0] * cells + cell[1]))
    _, first = np.unique((cell[0] * cells + cell[1])[order], return_index=True)
    return np.sort(order[first])


def _framed(image: np.ndarray, colour: str) -> np.ndarray:
    grey = np.pad(image, FRAME)
    drawn = np.stack([grey] * 3, axis=-1)
    rim = np.ones(grey.shape, bool)
    rim[FRAME:-FRAME, FRAME:-FRAME] = False
    drawn[rim] = hex_to_rgb(colour)
    return drawn


def sheet(images: np.ndarray, columns: int) -> np.ndarray:
    """Lay images (n, h, w) out line by line; places without one stay grey."""
    return np.pad(montage(images, columns, gap=2, ground=GREY), 1, constant_values=GREY)


def sheets(named: Mapping[str, np.ndarray], columns: int, zoom: float = 1.0) -> go.Figure:
    """Draw sheets of images (n, h, w), uint8, one below the other, each under its name.

    `columns` images stand on a line; `zoom` is the number of screen pixels for one of an image.
    """
    drawn = {name: sheet(images, columns) for name, images in named.items()}
    heights = [zoom * canvas.shape[0] for canvas in drawn.values()]
    head = 34
    height = sum(heights) + head * len(drawn) + 10
    figure = go.Figure()
    top = height
    width = zoom * max(canvas.shape[1] for canvas in drawn.values())
    for (name, canvas), tall in zip(drawn.items(), heights, strict=True):
        figure.add_annotation(
            x=0, y=top - head / 2, text=plain(name), showarrow=False, xanchor="left", font_size=14
        )
        figure.add_layout_image(
            source=data_uri(canvas),
            x=0,
            y=top - head,
            sizex=zoom * canvas.shape[1],
            sizey=tall,
            xref="x",
            yref="y",
            sizing="stretch",
            layer="above",
        )
        top -= head + tall
    figure.update_xaxes(range=[0, width], visible=False)
    figure.update_yaxes(range=[0, height], visible=False)
    return figure.update_layout(
        width=int(width + 20),
        height=int(height + 20),
        margin=dict.fromkeys("lrtb", 10),
        plot_bgcolor=CLEAR,
    )


def boxes(measures: Mapping[str, Mapping[str, np.ndarray]]) -> go.Figure:
    """Draw values (m,) of measures by group: one panel per measure, one box per group."""
    figure = make_subplots(rows=1, cols=len(measures), subplot_titles=[*map(plain, measures)])
    for column, groups in enumerate(measures.values(), start=1):
        for place, (group, values) in enumerate(groups.items()):
            low, first, middle, third, high = np.percentile(values, (5, 25, 50, 75, 95))
            figure.add_trace(
                go.Box(
                    x=[plain(group)],
                    lowerfence=[low],
                    q1=[first],
                    median=[middle],
                    q3=[third],
                    upperfence=[high],
                    mean=[float(np.mean(values))],
                    marker_color=class_colour(place),
                    showlegend=False,
                ),
                row=1,
                col=column,
            )
    return framed(figure, 340)


def mixed(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Draw how many groups mix how many objects; rows have `objects`."""
    counts = np.bincount([row["objects"] for row in rows])
    at = np.flatnonzero(counts)
    figure = go.Figure(go.Bar(x=at, y=counts[at], marker_color=class_colour(0)))
    figure.update_xaxes(title="objects in a group", dtick=1)
    figure.update_yaxes(title="groups")
    return framed(figure, 340)
