"""The canvas as a matplotlib figure.

Panels have the places, scales and images that the canvas gives them; a figure shows at most
`MOST_PANELS` subspaces of a grid, the fullest.
"""

import io
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from PIL import Image

from appca.canvas.from_model import map_of, rows_of, run_of, scene_of_rows
from appca.canvas.panels import jitter
from appca.canvas.scene import Scene
from appca.plots.components import component_figure
from appca.plots.still import THEMES, StillFigure, styled
from appca.runs.numbering import numbered_after
from appca.words import InputError, number, shortened

MARGIN, GAP, HEAD, SIDEBAR = 0.2, 0.1, 0.28, 1.7  # inches; HEAD above a panel for its name
WIDE, COLUMNS, MOST_PANELS = 10.5, 6, 30
STRIP = (8.0, 0.9)
MAP_SIDE = 6.5
LETTERS_AN_INCH = 14.0  # of a title
TILE, ROOM = 0.19, 1.5  # inches of an image on a panel; its distance to others in its own sides
PICTURE = 0.72  # of a cell, for a component
LARGEST = 12_000  # points beyond which they are pixels in an SVG, too


class _Drawing(NamedTuple):
    scene: Scene
    colours: np.ndarray  # (N, 4) of each row
    theme: dict[str, str]
    selected: np.ndarray | None
    side: tuple[float, float]  # inches: width and height of all panels

    def scores(self, rows: np.ndarray, component: int) -> np.ndarray:
        """Return the scores of rows on a component."""
        buffers = self.scene.buffers
        place = np.argmax(buffers["components"][rows] == component, axis=1)
        return np.asarray(buffers["scores"][rows, place] * self.scene.meta["score_unit"])


def draw(
    scene: Scene,
    layout: str,
    colouring: str = "",
    *,
    selected: np.ndarray | None = None,
    dark: bool = False,
) -> StillFigure:
    """Draw a layout of a scene, in one of its colourings; rows are grey without.

    Rows that are not `selected` (N,) turn grey.
    """
    theme = THEMES[dark]
    with styled(dark=dark):
        header = scene.meta["layouts"][layout]
        K, triangle = len(scene.meta["components"]), header["kind"] == "triangle"
        cells, side = _cells(header, K)
        colours = _colours(scene, colouring, selected, theme)
        drawing = _Drawing(scene, colours, theme, selected, side)
        figure, grid = _grid(cells, side, K if triangle else 0)
        for panel, (column, line) in zip(header["panels"], cells, strict=False):
            _panel(drawing, figure.add_subplot(grid[line, column]), layout, panel)
        if triangle:
            for k in {*range(K)} - {x for x, y in cells if x == y}:
                _component(drawing, figure.add_subplot(grid[k, k]), k, dark=dark)
        if colouring:
            _legend(drawing, figure, colouring, within=triangle)
    return figure


def _cells(header: dict[str, Any], K: int) -> tuple[list[tuple[int, int]], tuple[float, float]]:
    """Return column and line of each panel, and the width and height of all."""
    panels, kind = header["panels"], header["kind"]
    if kind == "map":
        return [(0, 0)], (MAP_SIDE, MAP_SIDE)
    if kind == "triangle":
        wide = min(2.2, max(0.8, WIDE / K - GAP))
        return [(panel["cell"][0], panel["cell"][1]) for panel in panels], (wide, wide)
    columns, wide = (1, STRIP[0]) if kind == "strips" else (COLUMNS, WIDE / COLUMNS - GAP)
    cells = [(i % columns, i // columns) for i in range(len(panels[:MOST_PANELS]))]
    return cells, STRIP if kind == "strips" else (wide, wide)


def _grid(
    cells: list[tuple[int, int]], side: tuple[float, float], components: int
) -> tuple[StillFigure, GridSpec]:
    """Return a figure, and the grid on it that holds panels of one size at some cells.

    A triangle, whose diagonal has so many components, has room of its own for the legend.
    """
    columns, lines = (max(components, 1 + max(at)) for at in zip(*cells, strict=True))
    beside = 0 if components else SIDEBAR
    wide = 2 * MARGIN + columns * (side[0] + GAP) - GAP + beside
    high = 2 * MARGIN + max(lines * (side[1] + HEAD), 2.0)
    figure = StillFigure(figsize=(wide, high))
    bottom = high - MARGIN - lines * (side[1] + HEAD)
    grid = figure.add_gridspec(
        *(lines, columns),
        left=MARGIN / wide,
        right=1 - (MARGIN + beside) / wide,
        bottom=bottom / high,
        top=1 - (MARGIN + HEAD) / high,
        wspace=GAP / side[0],
        hspace=HEAD / side[1],
    )
    return figure, grid


def _panel(drawing: _Drawing, axes: Axes, layout: str, panel: dict[str, Any]) -> None:
    theme, meta = drawing.theme, drawing.scene.meta
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
        name = _named(drawing, [meta["components"][k] for k in panel["components"]])
    doubtful = drawing.scene.buffers["doubt"][rows] < meta["doubt_below"]
    colours = drawing.colours[rows]
    axes.scatter(
        x,
        y,
        s=float(np.clip(60 / np.sqrt(len(rows) + 1), 1.2, 5)),
        linewidths=np.where(doubtful, 0.4, 0).tolist(),
        zorder=1,
        facecolors=np.where(doubtful[:, None], 0.0, colours),
        edgecolors=colours,
        rasterized=len(rows) > LARGEST or meta["rows"] > LARGEST,
    )
    _images(drawing, axes, layout, panel)
    above: dict[str, Any] = {"pad": 3, "parse_math": False}
    above["fontsize"] = 9 if drawing.side[0] > 1.2 else 7
    axes.set_title(name, loc="left", weight="bold", **above)
    if drawing.side[0] > 0.9 or layout_is_map:
        count = f"{panel.get('total', panel['count']):,}"
        axes.set_title(count, loc="right", color=theme["soft"], **above)


def _named(drawing: _Drawing, components: list[dict[str, Any]]) -> str:
    """Return the title of a panel: the names of its components, as far as they fit, and numbers."""
    numbers = f"{{{','.join(str(component['number']) for component in components)}}}"
    if not any(component["name"] for component in components):
        return numbers
    names = " × ".join(component["name"] or str(component["number"]) for component in components)
    letters = int(drawing.side[0] * LETTERS_AN_INCH) - len(numbers) - 6  # of the count
    return f"{shortened(names, max(letters, 2))} {numbers}"


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


def _images(drawing: _Drawing, axes: Axes, layout: str, panel: dict[str, Any]) -> None:
    """Draw the images that have room beside one another, in the colours of their rows."""
    sheets, header = drawing.scene.sheets, drawing.scene.meta["layouts"][layout]
    if sheets is None or not panel["levels"]:
        return
    tile = TILE if drawing.side[0] < 3 else 1.6 * TILE
    level = int(np.floor(4 * np.log2(header["spacing"] * min(drawing.side) / (ROOM * tile))))
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
        colour = drawing.colours[row, :3]
        shown = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
        if sheets.style == "ink":  # strokes on black become strokes of the colour on nothing
            shown = np.dstack([np.broadcast_to(colour, (*image.shape[:2], 3)), image / 255])
        zoom = tile * 72 / max(image.shape[:2])
        box = OffsetImage(shown, zoom=zoom, interpolation="nearest")
        frame = {"edgecolor": colour, "facecolor": drawing.theme["panel"], "linewidth": 0.5}
        axes.add_artist(AnnotationBbox(box, (at_x, at_y), pad=0.05, bboxprops=frame, zorder=2))


def _component(drawing: _Drawing, axes: Axes, k: int, *, dark: bool) -> None:
    """Draw the picture and the name of a component, or the columns that weigh most in it."""
    meta, png = drawing.scene.meta, drawing.scene.component_sheet
    component, header = meta["components"][k], meta["component_pictures"]
    axes.set_axis_off()
    if component["columns"] and drawing.side[0] > 1.2:
        _weights(axes, component, drawing.theme)
        return
    below = 0.5
    if header is not None and png is not None:
        sheet = np.asarray(Image.open(io.BytesIO(png)))
        place = k + (len(meta["components"]) if dark else 0)
        cell, (h, w, _) = header["cell"], header["tile"]
        line, column = divmod(place, header["columns"])
        top, left = line * cell + (cell - h) // 2, column * cell + (cell - w) // 2
        picture = sheet[top : top + h, left : left + w]
        around = (1 - PICTURE) / 2 / PICTURE * max(picture.shape[:2])
        axes.imshow(picture, interpolation="bilinear")
        axes.margins(0)
        axes.set_xlim(-0.5 - around, picture.shape[1] - 0.5 + around)
        axes.set_ylim(picture.shape[0] - 0.5 + around, -0.5 - around)
        below = (1 - PICTURE) / 2 - 0.03
    words = f"{component['number']} {component['name']}".rstrip()
    axes.text(0.5, below, words, ha="center", va="top", weight="bold", transform=axes.transAxes)


def _weights(axes: Axes, component: dict[str, Any], theme: dict[str, str]) -> None:
    """Name the columns that weigh most in a component, over bars as long as their weights."""
    axes.set(xlim=(0, 1), ylim=(6.5, -0.5))
    plain: dict[str, Any] = {"va": "center", "parse_math": False, "clip_on": True}
    axes.text(0, 0, f"{component['number']} {component['name']}", weight="bold", **plain)
    for i, (name, weight) in enumerate(component["columns"], start=1):
        axes.barh(i, abs(weight), height=0.8, color=theme["below" if weight < 0 else "above"])
        axes.text(0.03, i, name, fontsize=7, **plain)


def _colours(
    scene: Scene, colouring: str, selected: np.ndarray | None, theme: dict[str, str]
) -> np.ndarray:
    """Return red, green, blue and opacity (N, 4) of each row."""
    n_rows = scene.meta["rows"]
    colours = np.tile(to_rgba_array(theme["grey"], 0.75), (n_rows, 1))
    if colouring:
        table = to_rgba_array(scene.meta["colourings"][colouring]["table"], 0.75)
        colours = table[np.minimum(scene.buffers[f"codes.{colouring}"], len(table) - 1)]
    if selected is not None:
        colours[~selected] = to_rgba_array(theme["grey"], 0.28)
    return colours


def _legend(drawing: _Drawing, figure: Figure, colouring: str, *, within: bool) -> None:
    """Draw what the colours mean: at the right, or within the free half of a triangle."""
    header, theme = drawing.scene.meta["colourings"][colouring], drawing.theme
    wide, high = figure.get_size_inches()
    left = MARGIN if within else wide - SIDEBAR
    top = 0.4 * high if within else high - MARGIN - HEAD
    if header["kind"] == "category":
        names, most = header["names"], max(2, 2 * int((top - MARGIN) / 0.22) - 2)
        dot: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 5}
        classes = list(zip(names, header["table"], strict=False))[:most]
        legend = figure.legend(
            handles=[Line2D([], [], color=hue, label=name[:24], **dot) for name, hue in classes],
            title=header["title"],
            title_fontproperties={"weight": "bold"},
            loc="upper left",
            bbox_to_anchor=(left / wide, top / high),
            ncols=1 if len(names) <= most // 2 else 2,
            alignment="left",
            frameon=False,
            borderpad=0,
            handletextpad=0.2,
        )
        for text in (legend.get_title(), *legend.get_texts()):
            text.set_parse_math(False)
        return
    axes = figure.add_axes((left / wide, (top - 0.35) / high, 1.4 / wide, 0.12 / high))
    ramp = ScalarMappable(Normalize(*header["limits"]), ListedColormap(header["table"][:-1]))
    bar = figure.colorbar(ramp, cax=axes, orientation="horizontal")
    bar.set_ticks(header["limits"], labels=[number(end) for end in header["limits"]])
    first, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")  # both within the bar
    last.set_horizontalalignment("right")
    axes.set_title(header["title"], loc="left", fontsize=9, weight="bold", color=theme["soft"])


MAP = "Map"


def plot_subspaces(
    model: Any, X: Any, y: Any = None, images: Any = None, *, by: str = "", dark: bool = False
) -> StillFigure:
    """Plot every subspace, or pair of components, in a panel of its own.

    Parameters
    ----------
    model : fitted estimator of appca, or what `appca.load_model` gave
    X : array-like, shape (N, D)
    y : array-like of shape (N,), mapping or data frame, optional
        Values to colour points by; of several, named by key or column, the first is used.
    images : tuple or ndarray, optional
        The shape (h, w) or (h, w, 3) of rows that are images, or an image for each row.
    by : {"", "subspaces", "pairs"}
        By default subspaces while at most 60 are in use.
    dark : bool

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`; `savefig` writes PNG, SVG and PDF.

    Raises
    ------
    InputError
        When the parts do not fit together.
    """
    scene = _scene(model, X, y, images)
    layout = by or scene.meta["first"]
    there = [name for name in scene.meta["layouts"] if name != "pca"]
    if layout not in there:
        msg = f"by is one of {', '.join(map(repr, there))}; got {by!r}."
        raise InputError(msg)
    colouring = "" if y is None else next(iter(scene.meta["colourings"]))
    return draw(scene, layout, colouring, dark=dark)


def plot_map(
    model: Any,
    X: Any,
    y: Any = None,
    images: Any = None,
    *,
    coordinates: Any = None,
    dark: bool = False,
) -> StillFigure:
    """Plot all rows on one map, by default their first two principal components.

    Parameters
    ----------
    model, X, y, images, dark
        As for `plot_subspaces`.
    coordinates : array-like, shape (N, 2), optional
        Of another map, such as a UMAP of `model.transform(X)`.

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`.
    """
    maps = None if coordinates is None else {MAP: coordinates}
    scene = _scene(model, X, y, images, maps)
    colouring = "" if y is None else next(iter(scene.meta["colourings"]))
    return draw(scene, MAP if maps else "pca", colouring, dark=dark)


def plot_components(
    model: Any, image_shape: tuple[int, ...] | None = None, names: Any = None, *, dark: bool = False
) -> StillFigure:
    """Plot what each component looks like: as an image, or as its strongest features.

    Parameters
    ----------
    model : fitted estimator of appca, or what `appca.load_model` gave
    image_shape : tuple, optional
        (h, w) or (h, w, 3), of rows that are images.
    names : sequence of str, optional
        Of the D features.
    dark : bool

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`.
    """
    if not hasattr(model, "components_"):
        msg = f"Components are plotted of a fitted estimator; got {type(model).__name__}."
        raise InputError(msg)
    patterns = np.asarray(model.components_)
    titles = [f"Component {k + 1}" for k in range(len(patterns))]
    feature_names = None if names is None else tuple(map(str, names))
    return component_figure(patterns, titles, image_shape, feature_names, dark=dark)


def _scene(model: Any, X: Any, y: Any, images: Any, maps: dict[str, Any] | None = None) -> Scene:
    rows = rows_of(X, y, images)
    run = numbered_after(run_of(model, rows.dataset), None)
    coordinates = {key: map_of(key, xy, rows.dataset) for key, xy in (maps or {}).items()}
    return scene_of_rows(rows, run, coordinates)
