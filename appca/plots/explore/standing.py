"""Figures that stand alone, drawn by matplotlib from the same scene as the canvas.

Panels have the places, scales and images that the canvas gives them; a figure shows at most
`MOST_PANELS` subspaces of a grid, the fullest.
"""

import io
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from PIL import Image

from appca.data.numbers import number
from appca.plots.explore.scene.axes import jitter
from appca.plots.explore.scene.scene import Scene

THEMES = {  # tokens of the canvas's theme.js
    False: {"ground": "#f4f6f9", "panel": "#ffffff", "line": "#d5dce5", "text": "#1c2733"}
    | {"soft": "#576474", "grey": "#8f9bab", "below": "#bcd5ef", "above": "#f3c6bd"},
    True: {"ground": "#0c1016", "panel": "#161d27", "line": "#313d4b", "text": "#e6ebf1"}
    | {"soft": "#a3afbd", "grey": "#667486", "below": "#26486f", "above": "#6b332c"},
}
FONTS = ("Source Sans 3", "Source Sans Pro", "Arial", "Liberation Sans", "DejaVu Sans")
DPI = 160
KINDS = ("png", "svg", "pdf")
MARGIN, GAP, HEAD, SIDEBAR = 0.2, 0.1, 0.24, 1.7  # inches; HEAD above a panel for its name
WIDE, COLUMNS, MOST_PANELS = 10.5, 6, 30
STRIP = (8.0, 0.9)
LINE = 0.2  # of a column's name beside its weight
MAP_SIDE = 6.5
TILE, ROOM = 0.19, 1.5  # inches of an image on a panel; its distance to others in its own sides
LARGEST = 12_000  # points beyond which they are pixels in an SVG, too


class StillFigure(Figure):
    """A figure that notebooks show without pyplot."""

    def _repr_png_(self) -> bytes:
        return file_of(self, "png")


class Place(NamedTuple):
    """A rectangle in inches from the upper left corner."""

    x: float
    y: float
    w: float
    h: float

    def on(self, figure: Figure) -> tuple[float, float, float, float]:
        """Return it as matplotlib has it."""
        wide, high = figure.get_size_inches()
        return self.x / wide, 1 - (self.y + self.h) / high, self.w / wide, self.h / high


class _Drawing(NamedTuple):
    scene: Scene
    colours: np.ndarray  # (N, 4) of each row
    theme: dict[str, str]
    selected: np.ndarray | None

    def scores(self, rows: np.ndarray, component: int) -> np.ndarray:
        """Return the scores of rows on a component."""
        buffers = self.scene.buffers
        place = np.argmax(buffers["components"][rows] == component, axis=1)
        scores: np.ndarray = buffers["scores"][rows, place] * self.scene.meta["score_unit"]
        return scores


def file_of(figure: Figure, kind: str) -> bytes:
    """Return a figure as one of `KINDS`."""
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "appca"}):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def styled(*, dark: bool = False) -> AbstractContextManager[None]:
    """Draw in the app's type and colours."""
    known, theme = set(font_manager.get_font_names()), THEMES[dark]
    colours = dict.fromkeys(("text.color", "xtick.color", "ytick.color"), theme["text"])
    lines = {"axes.edgecolor": theme["line"], "axes.facecolor": theme["panel"]}
    family = [font for font in FONTS if font in known]
    plain: dict[Any, Any] = {
        "font.family": family,
        "font.size": 9,
        "axes.labelcolor": theme["soft"],
    }
    return rc_context(plain | colours | lines | {"figure.facecolor": theme["ground"]})


def draw(
    scene: Scene,
    layout: str,
    colouring: str = "",
    *,
    selected: np.ndarray | None = None,
    dark: bool = False,
) -> StillFigure:
    """Draw a layout of a scene.

    Parameters
    ----------
    scene : Scene
    layout : str
        A key of its layouts.
    colouring : str
        A key of its colourings; rows are grey without.
    selected : ndarray of bool, shape (N,), optional
        Rows that keep their colour while all others turn grey.
    dark : bool
    """
    theme = THEMES[dark]
    with styled(dark=dark):
        drawing = _Drawing(scene, _colours(scene, colouring, selected, theme), theme, selected)
        header = scene.meta["layouts"][layout]
        places, size, legend = _places(header, len(scene.meta["components"]))
        figure = StillFigure(figsize=size)
        for panel, place in places:
            _panel(drawing, figure, layout, panel, place)
        if header["kind"] == "triangle":
            _diagonal(drawing, figure, header["panels"], places[0][1].w, dark=dark)
        _legend(drawing, figure, colouring, legend)
    return figure


def _places(
    header: dict[str, Any], K: int
) -> tuple[list[tuple[dict[str, Any], Place]], tuple[float, float], Place]:
    """Return the panels with their places, the size of the figure and the place of the legend."""
    panels, kind = header["panels"], header["kind"]
    if kind == "map":
        place = Place(MARGIN, MARGIN + HEAD, MAP_SIDE, MAP_SIDE)
        cells = [(panels[0], place)]
    elif kind == "triangle":
        side = min(2.2, max(0.8, WIDE / K - GAP))
        step = side + GAP
        cells = [
            (
                one,
                Place(
                    MARGIN + one["cell"][0] * step,
                    MARGIN + one["cell"][1] * (step + 0.08) + HEAD,
                    side,
                    side - HEAD + 0.08,
                ),
            )
            for one in panels
        ]
        size = (2 * MARGIN + K * step, 2 * MARGIN + K * (step + 0.08))
        return cells, size, Place(MARGIN, size[1] * 0.6, size[0] * 0.4, size[1] * 0.36)
    else:
        wide, high = STRIP if kind == "strips" else (WIDE / COLUMNS - GAP,) * 2
        columns = 1 if kind == "strips" else COLUMNS
        cells = [
            (
                one,
                Place(
                    MARGIN + i % columns * (wide + GAP),
                    MARGIN + HEAD + i // columns * (high + HEAD + GAP),
                    wide,
                    high,
                ),
            )
            for i, one in enumerate(panels[:MOST_PANELS])
        ]
    right = max(place.x + place.w for _, place in cells)
    bottom = max(place.y + place.h for _, place in cells)
    legend = Place(right + MARGIN, MARGIN + HEAD, SIDEBAR, max(bottom - MARGIN, 2.2))
    return cells, (right + MARGIN + SIDEBAR, max(bottom, 2.2) + MARGIN), legend


def _panel(
    drawing: _Drawing, figure: Figure, layout: str, panel: dict[str, Any], place: Place
) -> None:
    theme, meta = drawing.theme, drawing.scene.meta
    axes = figure.add_axes(place.on(figure), facecolor=theme["panel"])
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(color=theme["line"], linewidth=0.6)
    rows = _rows_of(drawing.scene, layout, panel)
    x, y = _coordinates(drawing, layout, panel, rows)
    (left, right), (low, high) = panel["range"]
    axes.set(xlim=(left, right), ylim=(low, high))
    if layout_is_map := meta["layouts"][layout]["kind"] == "map":
        name = meta["layouts"][layout]["title"]
    else:
        axes.axhline(0, color=theme["line"], linewidth=0.6, zorder=0)
        axes.axvline(0, color=theme["line"], linewidth=0.6, zorder=0)
        numbers = [meta["components"][k]["number"] for k in panel["components"]]
        name = f"{{{','.join(map(str, numbers))}}}"
    doubtful = (
        drawing.scene.buffers.get("doubt", np.full(meta["rows"], 255))[rows] < meta["doubt_below"]
    )
    size = float(np.clip(60 / np.sqrt(len(rows) + 1), 1.2, 5))
    colours = drawing.colours[rows]
    axes.scatter(
        x,
        y,
        s=size,
        linewidths=np.where(doubtful, 0.4, 0).tolist(),
        zorder=1,
        facecolors=np.where(doubtful[:, None], 0.0, colours),
        edgecolors=colours,
        rasterized=len(rows) > LARGEST or meta["rows"] > LARGEST,
    )
    _images(drawing, axes, layout, panel, place)
    above: dict[str, Any] = {
        "transform": axes.transAxes,
        "va": "bottom",
        "parse_math": False,
        "fontsize": 9 if place.w > 1.2 else 7,
    }
    axes.text(0.01, 1.02, name, weight="bold", ha="left", **above)
    if place.w > 0.9 or layout_is_map:
        axes.text(
            0.99,
            1.02,
            f"{panel.get('total', panel['count']):,}",
            ha="right",
            color=theme["soft"],
            **above,
        )


def _rows_of(scene: Scene, layout: str, panel: dict[str, Any]) -> np.ndarray:
    """Return all rows of a panel; a triangle and a map list only those whose images have room."""
    header = scene.meta["layouts"][layout]
    start, listed = panel["start"], panel["listed"]
    if listed == panel["count"]:
        rows: np.ndarray = scene.buffers[f"order.{layout}"][start : start + listed]
        return rows
    if header["kind"] == "map":
        return np.arange(scene.meta["rows"])
    slots, none = scene.buffers["components"], len(scene.meta["components"])
    used = (slots < none).sum(axis=1)
    inside = np.all([(slots == k).any(axis=1) for k in panel["components"]], axis=0)
    if len(panel["components"]) < 2:
        inside &= used == len(panel["components"])
    return np.flatnonzero(inside)


def _coordinates(
    drawing: _Drawing, layout: str, panel: dict[str, Any], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if f"map.{layout}" in drawing.scene.buffers:
        at = drawing.scene.buffers[f"map.{layout}"][rows] / 65_535
        low, high = np.array(panel["range"]).T
        x, y = (low + at * (high - low)).T
        return x, y
    along = [drawing.scores(rows, k) for k in panel["axes"]]
    along += [jitter(rows, axis) for axis in range(len(along), 2)]
    return along[0], along[1]


def _images(
    drawing: _Drawing, axes: Axes, layout: str, panel: dict[str, Any], place: Place
) -> None:
    """Draw the images that have room beside one another, in the colours of their rows."""
    sheets, header = drawing.scene.sheets, drawing.scene.meta["layouts"][layout]
    if sheets is None or not panel["levels"]:
        return
    tile = TILE if place.w < 3 else 1.6 * TILE
    level = int(np.floor(4 * np.log2(header["spacing"] * min(place.w, place.h) / (ROOM * tile))))
    if level < 0:
        return
    count = panel["levels"][min(level, len(panel["levels"]) - 1)]
    rows = drawing.scene.buffers[f"order.{layout}"][panel["start"] :][:count]
    if drawing.selected is not None:
        rows = rows[drawing.selected[rows]]
    x, y = _coordinates(drawing, layout, panel, rows)
    (left, right), (low, high) = panel["range"]
    inside = (x > left) & (x < right) & (y > low) & (y < high)
    for row, at_x, at_y, image in zip(
        rows[inside], x[inside], y[inside], sheets.images(rows[inside]), strict=True
    ):
        ink = sheets.style == "ink"
        shown = _inked(image, drawing.colours[row]) if ink else _in_colour(image)
        zoom = tile * 72 / max(image.shape[:2])
        box = OffsetImage(shown, zoom=zoom, interpolation="nearest")
        frame = {
            "edgecolor": drawing.colours[row, :3],
            "facecolor": drawing.theme["panel"],
            "linewidth": 0.5,
        }
        axes.add_artist(AnnotationBbox(box, (at_x, at_y), pad=0.05, bboxprops=frame, zorder=2))


def _in_colour(image: np.ndarray) -> np.ndarray:
    return image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)


def _inked(image: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Return strokes on black as strokes of a colour on nothing, (h, w, 4)."""
    inked = np.empty((*image.shape[:2], 4))
    inked[..., :3] = colour[:3]
    inked[..., 3] = image / 255
    return inked


def _diagonal(
    drawing: _Drawing, figure: Figure, panels: list[dict[str, Any]], side: float, *, dark: bool
) -> None:
    """Draw the components' pictures and names where a triangle has no panels."""
    meta, sheet = drawing.scene.meta, None
    header, png = meta["component_pictures"], drawing.scene.component_sheet
    if header is not None and png is not None:
        sheet = np.asarray(Image.open(io.BytesIO(png)))
    taken = {tuple(one["cell"]) for one in panels}
    step = side + GAP
    for k, component in enumerate(meta["components"]):
        if (k, k) in taken:
            continue
        picture = side * 0.62
        x = MARGIN + k * step + (side - picture) / 2
        y = MARGIN + k * (step + 0.08) + HEAD
        if component["columns"] and side > 1.2:
            _weights(figure, component, Place(x - 0.1 * side, y, side * 0.82, side), drawing.theme)
            continue
        if sheet is not None:
            axes = figure.add_axes(Place(x, y, picture, picture).on(figure))
            axes.imshow(_cell(sheet, header, k + (len(meta["components"]) if dark else 0)))
            axes.set_axis_off()
        wide, high = figure.get_size_inches()
        below = y + (picture + 0.05 if sheet is not None else side / 3)
        words = component["name"] or str(component["number"])
        figure.text(
            (x + picture / 2) / wide,
            1 - below / high,
            words,
            ha="center",
            va="top",
            weight="bold",
        )


def _weights(
    figure: Figure, component: dict[str, Any], place: Place, theme: dict[str, str]
) -> None:
    """Name the columns that weigh most in a component, over bars as long as their weights."""
    axes = figure.add_axes(place._replace(h=LINE * (1 + len(component["columns"]))).on(figure))
    axes.set(xlim=(0, 1), ylim=(len(component["columns"]) + 0.5, -0.5))
    axes.set_axis_off()
    plain: dict[str, Any] = {"va": "center", "parse_math": False, "clip_on": True}
    axes.text(0, 0, f"{component['number']} {component['name']}", weight="bold", **plain)
    for i, (name, weight) in enumerate(component["columns"], start=1):
        axes.barh(i, abs(weight), height=0.8, color=theme["below" if weight < 0 else "above"])
        axes.text(0.03, i, name, fontsize=7, **plain)


def _cell(sheet: np.ndarray, header: dict[str, Any], place: int) -> np.ndarray:
    cell, (h, w, _) = header["cell"], header["tile"]
    line, column = divmod(place, header["columns"])
    top, left = line * cell + (cell - h) // 2, column * cell + (cell - w) // 2
    return sheet[top : top + h, left : left + w]


def _colours(
    scene: Scene, colouring: str, selected: np.ndarray | None, theme: dict[str, str]
) -> np.ndarray:
    """Return red, green, blue and opacity (N, 4) of each row."""
    from matplotlib.colors import to_rgba_array

    n_rows = scene.meta["rows"]
    colours = np.tile(to_rgba_array(theme["grey"], 0.75), (n_rows, 1))
    if colouring:
        table = to_rgba_array(scene.meta["colourings"][colouring]["table"], 0.75)
        colours = table[np.minimum(scene.buffers[f"codes.{colouring}"], len(table) - 1)]
    if selected is not None:
        colours[~selected] = to_rgba_array(theme["grey"], 0.28)
    return colours


def _legend(drawing: _Drawing, figure: Figure, colouring: str, place: Place) -> None:
    if not colouring:
        return
    header, theme = drawing.scene.meta["colourings"][colouring], drawing.theme
    axes = figure.add_axes(place.on(figure))
    axes.set_axis_off()
    axes.set(xlim=(0, place.w), ylim=(place.h, 0))
    axes.text(
        0, 0.1, header["title"], parse_math=False, weight="bold", color=theme["soft"], va="center"
    )
    if header["kind"] == "category":
        lines = max(1, int((place.h - 0.3) / 0.22))
        for i, name in enumerate(header["names"][: 2 * lines]):
            x, y = i // lines * place.w / 2, 0.4 + i % lines * 0.22
            axes.plot(x + 0.06, y, "o", markersize=5, color=header["table"][i])
            axes.text(x + 0.2, y, name[:24], va="center", parse_math=False)
        return
    ramp = np.linspace(0, len(header["table"]) - 2, 128).astype(int)
    from matplotlib.colors import to_rgb

    strip = np.array([[to_rgb(header["table"][code]) for code in ramp]])
    axes.imshow(strip, extent=(0, min(1.4, place.w), 0.42, 0.3), aspect="auto")
    axes.set(xlim=(0, place.w), ylim=(place.h, 0))
    for x, end, side in zip(
        (0, min(1.4, place.w)), header["limits"], ("left", "right"), strict=True
    ):
        axes.text(x, 0.55, number(end), ha=side, va="center", color=theme["soft"])
