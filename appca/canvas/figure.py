"""Subspaces and maps of a scene as a matplotlib figure.

Panels have the canvas's scales and images, and fill a grid line by line. The figure draws at most
`MOST_PANELS` panels, those with the most rows.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, NullLocator

from appca.canvas.from_model import map_of, rows_of, run_of, scene_of_rows
from appca.canvas.panels import jitter
from appca.canvas.scene import Scene
from appca.data.dataset import NumberedNames, follow_each_other
from appca.ordered import numbered
from appca.plots.components import component_figure
from appca.plots.still import THEMES, StillFigure, styled
from appca.plots.style import SHAPES, Colour, levels
from appca.runs.numbering import numbered_after
from appca.words import number, refuse_if, shortened

if TYPE_CHECKING:
    import plotly.graph_objects as go

MARGIN, SIDEBAR = 0.2, 1.7  # inches
GAP, HEAD, FOOT = 0.56, 0.28, 0.34  # around a panel, for its title, its ticks and axes' names
HOLLOW = "Hollow points: rows less than half certain of their panel"
WIDE, COLUMNS, LARGEST_SIDE, MOST_PANELS = 10.5, 6, 2.2, 30
STRIP, MAP_SIDE = (8.0, 0.9), 6.5
LETTERS_AN_INCH = 14.0
TILE, ROOM = 0.19, 1.5  # inches per image; minimum distance relative to the image size
LISTED_CLASSES, FEW = 40, 30  # most colours in a legend; selected rows that are all drawn
DENSE, WORD = (60, 180), (0.1, 0.03)  # size of points, on a map; of a name, relative to the map
NAME, LEGEND_LINE = 30, 0.22  # letters; inches
MARKERS = dict(zip(SHAPES, "oDsP^", strict=True))
LARGEST = 12_000  # number of points above which an SVG contains them as pixels


class _Drawing(NamedTuple):
    scene: Scene
    layout: str
    colours: np.ndarray  # (N, 4), per row
    shapes: np.ndarray | None  # (N,) markers, if classes have several
    theme: dict[str, str]
    selected: np.ndarray | None
    side: tuple[float, float]  # width and height of every panel in inches


def draw(
    scene: Scene,
    layout: str,
    colouring: str = "",
    *,
    selected: np.ndarray | None = None,
    dark: bool = False,
) -> StillFigure:
    """Draw a layout of a scene in one of its colourings; rows not `selected` (N,) are grey."""
    theme, header, shapes = THEMES[dark], scene.meta["layouts"][layout], None
    panels, kind = header["panels"], header["kind"]
    fullest = sorted(range(len(panels)), key=lambda p: -panels[p]["count"])[:MOST_PANELS]
    columns = min(COLUMNS, int(np.ceil(np.sqrt(1.5 * len(fullest)))) or 1)
    wide = high = min(LARGEST_SIDE, WIDE / columns - GAP)
    if kind in ("map", "strips"):
        columns, (wide, high) = 1, (MAP_SIDE, MAP_SIDE) if kind == "map" else STRIP
    colours = np.tile(to_rgba_array(theme["grey"], 0.75), (scene.meta["rows"], 1))
    coloured = scene.meta["colourings"][colouring] if colouring else {"kind": "", "names": ()}
    if colouring:
        table = to_rgba_array(coloured["table"], 0.75)
        codes = np.minimum(scene.buffers[f"codes.{colouring}"], len(table) - 1)
        colours = table[codes]
        if "shapes" in coloured:
            shapes = np.array([MARKERS[shape] for shape in coloured["shapes"]])[codes]
    if selected is not None:
        colours[~selected] = to_rgba_array(theme["grey"], 0.28)
    drawing = _Drawing(scene, layout, colours, shapes, theme, selected, (wide, high))
    with styled(dark=dark):
        width = 2 * MARGIN + columns * (wide + GAP) + SIDEBAR
        listed = HEAD + LEGEND_LINE * (min(len(coloured["names"]), LISTED_CLASSES) / 2 + 2)
        height = 2 * MARGIN + max(-(-len(fullest) // columns) * (high + HEAD + FOOT), listed, 2.0)
        figure = StillFigure(figsize=(width, height))
        if coloured["names"]:
            legend = _legend(figure, coloured, width - SIDEBAR)
            width += max(legend.get_window_extent().width / figure.dpi + MARGIN - SIDEBAR, 0)
            figure.set_size_inches(width, height)
        for place, p in enumerate(sorted(fullest)):
            line, column = divmod(place, columns)
            left = GAP + column * (wide + GAP)
            bottom = MARGIN + HEAD + high + line * (high + HEAD + FOOT)
            box = (left / width, 1 - bottom / height, wide / width, high / height)
            _panel(drawing, axes := figure.add_axes(box), panels[p])
            is_pictured = scene.sheets is not None and scene.sheets.names is None
            if kind == "map" and not is_pictured and 1 < len(coloured["names"]) <= LISTED_CLASSES:
                at = np.array(_coordinates(scene, layout, panels[p], np.arange(len(colours))))
                _name_classes(axes, at, codes, coloured, theme["panel"])
        if coloured["kind"] == "quantity":
            _scale(figure, coloured, theme)
        if kind != "map" and (scene.buffers["doubt"] < scene.meta["doubt_below"]).any():
            figure.text(GAP / width, 0.4 * MARGIN / height, HOLLOW, color=theme["soft"], size=8)
    return figure


def _name_classes(
    axes: Axes, at: np.ndarray, codes: np.ndarray, coloured: dict[str, Any], ground: str
) -> None:
    """Write the names of classes at the middle of their rows, unless a larger class is there."""
    names, table = coloured["names"], to_rgba_array(coloured["table"])
    sizes, middles = np.bincount(codes, minlength=len(names))[: len(names)], np.empty((0, 2))
    room = np.multiply(WORD, [np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    look: dict[str, Any] = {"weight": "bold", "size": 9, "ha": "center"}
    look["path_effects"] = [withStroke(linewidth=1.5, foreground=ground)]
    for code in np.argsort(-sizes, kind="stable")[: (sizes > 0).sum()]:
        middle = np.median(at[:, codes == code], axis=1)
        if not (np.abs(middles - middle) < room).all(axis=1).any():
            middles = np.vstack([middles, middle])
            axes.text(middle[0], middle[1], shortened(names[code], 26), color=table[code], **look)


def _panel(drawing: _Drawing, axes: Axes, panel: dict[str, Any]) -> None:
    (scene, layout, colours, shapes, theme, selected, side), meta = drawing, drawing.scene.meta
    for spine in axes.spines.values():
        spine.set(color=theme["line"], linewidth=0.6)
    rows = _rows_of(scene, layout, panel)
    x, y = _coordinates(scene, layout, panel, rows)
    (left, right), (low, high) = panel["range"]
    axes.set(xlim=(left, right), ylim=(low, high))
    header = meta["layouts"][layout]
    name, names = _texts(meta, header, panel, side[0])
    dense, larger = DENSE[header["kind"] == "map"], 1 if shapes is None else 2
    if header["kind"] != "map":
        axes.axhline(0, color=theme["line"], linewidth=0.6, zorder=0)
        axes.axvline(0, color=theme["line"], linewidth=0.6, zorder=0)
    axes.tick_params(labelsize=7, length=2, pad=2, color=theme["line"], labelcolor=theme["soft"])
    for axis, texts, length in zip((axes.xaxis, axes.yaxis), names, side, strict=False):
        most = int(length * LETTERS_AN_INCH)
        label = next((text for text in texts if len(text) <= most), shortened(texts[-1], most))
        label += " →" * bool(label)
        axis.set_label_text(label, size=8, color=theme["soft"], parse_math=False)
        axis.set_major_locator(MaxNLocator(max(3, round(length))) if label else NullLocator())
        axis.labelpad = 1
    doubtful = (scene.buffers["doubt"][rows] < meta["doubt_below"]) & (header["kind"] != "map")
    points = axes.scatter(
        x,
        y,
        s=larger * float(np.clip(dense / np.sqrt(len(rows) + 1), 1.2, dense / 12)),
        linewidths=np.where(doubtful, 0.4, 0).tolist(),
        zorder=1,
        facecolors=np.where(doubtful[:, None], 0.0, colours[rows]),
        edgecolors=colours[rows],
        rasterized=len(rows) > LARGEST or meta["rows"] > LARGEST,
    )
    if shapes is not None:
        styles = {marker: MarkerStyle(marker) for marker in MARKERS.values()}
        paths = {m: s.get_path().transformed(s.get_transform()) for m, s in styles.items()}
        points.set_paths([paths[marker] for marker in shapes[rows]])
    above: dict[str, Any] = {"pad": 3, "parse_math": False, "fontsize": 9}
    axes.set_title(name, loc="left", weight="bold", **above)
    count, sheets = f"{panel.get('total', panel['count']):,}", scene.sheets
    axes.set_title(count, loc="right", color=theme["soft"], **above)
    tile = TILE * (1 if side[0] < 3 else 1.6) * (2 if sheets and sheets.names is not None else 1)
    level = int(np.floor(4 * np.log2(header["spacing"] * min(side) / (ROOM * tile))))
    if sheets is None or not (levels := panel["levels"][: max(level + 1, 0)]):
        return
    first = scene.buffers[f"order.{layout}"][panel["start"] :][: levels[-1]]
    if selected is not None:
        rows = rows[selected[rows]]
        first = rows if len(rows) <= FEW else first[selected[first]]
    x, y = _coordinates(scene, layout, panel, first)
    inside = (x > left) & (x < right) & (y > low) & (y < high)
    rows, images = first[inside], sheets.images(first[inside])
    for row, at_x, at_y, image in zip(rows, x[inside], y[inside], images, strict=True):
        colour = colours[row, :3]
        if sheets.names is not None:
            above = {"ha": "center", "color": colour, "textcoords": "offset points", "fontsize": 5}
            axes.annotate(shortened(sheets.names[row], 32), (at_x, at_y), (0, 2.5), **above)
            continue
        shown = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
        if sheets.style == "ink":  # black becomes transparent
            shown = np.dstack([np.broadcast_to(colour, (*image.shape[:2], 3)), image / 255])
        picture = OffsetImage(shown, zoom=tile * 72 / max(image.shape[:2]), interpolation="nearest")
        frame = {"edgecolor": colour, "facecolor": theme["panel"], "linewidth": 0.5}
        axes.add_artist(AnnotationBbox(picture, (at_x, at_y), pad=0.05, bboxprops=frame, zorder=2))


def _texts(
    meta: dict[str, Any], header: dict[str, Any], panel: dict[str, Any], inches: float
) -> tuple[str, list[list[str]]]:
    """Return a panel's title, and texts for each axis, the longest first."""
    if header["kind"] == "map":
        is_ticked = header["title"] == "Two features"  # so that a name needs no range
        axes = [texts[is_ticked:] for texts in header.get("axes", ())]
        return header["title"], [*axes, [""], [""]]
    components, axes = [meta["components"][k] for k in panel["components"]], []
    texts = [str(component["number"]) for component in components]
    numbers = f"{{{','.join(texts)}}}"
    names = [c["name"] or text for c, text in zip(components, texts, strict=True)]
    named, most = " × ".join(names), inches * LETTERS_AN_INCH - 6  # leave space for the count
    titles = [f"{named} {numbers}", named] if names != texts else []
    for of in (meta["components"][k] for k in panel["axes"]):
        signed = ["−" * (weight < 0) + name for name, weight in of.get("columns", ())[:3]]
        heavy = [f"{of['number']}: {', '.join(signed[:n])}" for n in range(len(signed), 0, -1)]
        axes.append([f"{of['number']} {of['name']}".strip()] if of["name"] or not heavy else heavy)
    title = next((title for title in titles if len(title) < most), numbers)
    return title, [*axes, [""], [""]]


def _rows_of(scene: Scene, layout: str, panel: dict[str, Any]) -> np.ndarray:
    if panel["listed"] == panel["count"]:
        order: np.ndarray = scene.buffers[f"order.{layout}"]
        return order[panel["start"] : panel["start"] + panel["listed"]]
    if scene.meta["layouts"][layout]["kind"] == "map":
        return np.arange(scene.meta["rows"])
    slots, components = scene.buffers["components"], panel["components"]
    inside = np.all([(slots == k).any(axis=1) for k in components], axis=0)
    if len(components) < 2:
        used = (slots < len(scene.meta["components"])).sum(axis=1)
        inside &= used == len(components)
    return np.flatnonzero(inside)


def _coordinates(
    scene: Scene, layout: str, panel: dict[str, Any], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    buffers = scene.buffers
    if f"map.{layout}" in buffers:
        at = buffers[f"map.{layout}"][rows] / 65_535
        low, high = np.array(panel["range"]).T
        x, y = (low + at * (high - low)).T
        return x, y
    along = []
    for component in panel["axes"]:
        slot = np.argmax(buffers["components"][rows] == component, axis=1)
        along.append(np.asarray(buffers["scores"][rows, slot] * scene.meta["score_unit"]))
    along += [jitter(rows, axis) for axis in range(len(along), 2)]
    return along[0], along[1]


def _legend(figure: Figure, header: dict[str, Any], left: float) -> Legend:
    names, top = header["names"], figure.get_figheight() - MARGIN - HEAD
    lines = int((top - MARGIN) / LEGEND_LINE) - 1
    shapes, handles = header.get("shapes", SHAPES[:1] * len(names)), []
    for name, hue, shape in list(zip(names, header["table"], shapes, strict=False))[: 2 * lines]:
        look: dict[str, Any] = {"marker": MARKERS[shape], "color": hue, "markersize": 5}
        handles.append(Line2D([], [], linestyle="", label=shortened(name, NAME), **look))
    if left_out := len(names) - len(handles):
        handles.append(Line2D([], [], linestyle="", label=f"and {left_out:,} more"))
    look = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "handletextpad": 0.2}
    look |= {"title": shortened(header["title"], NAME), "title_fontproperties": {"weight": "bold"}}
    look |= {"loc": "upper left", "bbox_to_anchor": (left, top), "alignment": "left"}
    look |= {"bbox_transform": figure.dpi_scale_trans, "ncols": 1 if len(names) <= lines else 2}
    legend = figure.legend(handles=handles, **look)
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)
    return legend


def _scale(figure: Figure, header: dict[str, Any], theme: dict[str, str]) -> None:
    wide, high = figure.get_size_inches()
    left, top = wide - SIDEBAR, high - MARGIN - HEAD
    axes = figure.add_axes((left / wide, (top - 0.35) / high, 1.4 / wide, 0.12 / high))
    ramp = ScalarMappable(Normalize(*header["limits"]), ListedColormap(header["table"][:-1]))
    bar = figure.colorbar(ramp, cax=axes, orientation="horizontal")
    clipped, ends = header.get("clipped", (False, False)), map(number, header["limits"])
    names = [mark * cut + end for mark, cut, end in zip(("≤ ", "≥ "), clipped, ends, strict=True)]
    bar.set_ticks(header["limits"], labels=names)
    first, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")  # keeps both labels inside the bar
    last.set_horizontalalignment("right")
    axes.set_title(header["title"], loc="left", fontsize=9, weight="bold", color=theme["soft"])


def panels_without_webgl(scene: Scene, layout: str, colouring: str) -> "go.Figure":
    """Draw the panels with the most rows by Plotly, with a random sample of rows as vectors.

    `colouring` is a key of the scene, or "component:" and a number; otherwise one colour is used.
    """
    from appca.plots.studies import MOST_SVG, Scatter, scatters

    meta, header = scene.meta, scene.meta["layouts"][layout]
    fullest = sorted(header["panels"], key=lambda panel: -panel["count"])[:MOST_PANELS]
    drawn = [panel for panel in header["panels"] if panel in fullest]
    every = [_rows_of(scene, layout, panel) for panel in drawn]
    share = min(1.0, (MOST_SVG - len(every)) / max(1, sum(map(len, every))))
    codes, (names, table) = np.zeros(meta["rows"], int), ([meta["words"]["rows"]], [])
    kind, _, number = colouring.partition(":")
    if colouring in meta["colourings"]:
        colours = meta["colourings"][colouring]
        codes, table = scene.buffers[f"codes.{colouring}"], colours["table"]
        names = colours["names"] or [""] * (len(table) - 1)
        names = [*names, "missing"] if codes.max() == len(names) else names
    elif kind == "component":
        slots, scores = scene.buffers["components"], scene.buffers["scores"]
        used = np.where(slots == int(number) - 1, scores * meta["score_unit"], 0.0).sum(axis=1)
        ramp = levels(Colour("number", colouring, used))
        codes, table, names = ramp.codes, list(ramp.table), [""] * len(ramp.table)
    rgb = np.array([list(bytes.fromhex(colour[1:])) for colour in table], np.uint8)
    made = []
    for panel, all_rows in zip(drawn, every, strict=True):
        rows = all_rows[: math.ceil(share * len(all_rows))]
        x, y = _coordinates(scene, layout, panel, rows)
        title, axes = _texts(meta, header, panel, WIDE)
        colours = rgb[codes[rows]] if len(table) > LISTED_CLASSES else None
        made.append(Scatter(title, x, y, codes[rows], axes[0][-1], axes[1][-1], rgb=colours))
    figure = scatters(made, names)
    return figure.update_layout(legend_y=1 + 40 / figure.layout.height, margin_t=100)


MAP = "Map"


def plot_subspaces(
    model: Any, X: Any, y: Any = None, images: Any = None, *, by: str = "", dark: bool = False
) -> StillFigure:
    """Plot the subspaces with the most rows, or pairs of components, one panel each.

    Parameters
    ----------
    model : fitted estimator of appca, or result of `appca.load_model`
    X : array-like, shape (N, D)
    y : array-like of shape (N,), mapping or data frame, optional
        Values that colour the points; if there are several columns, the first is used.
    images : tuple or ndarray, optional
        The shape (h, w) or (h, w, 3) of rows that are images, or an image for each row.
    by : {"", "subspaces", "pairs"}
        By default, subspaces if rows use at most 60, else pairs.
    dark : bool

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`; `savefig` writes PNG, SVG and PDF.

    Raises
    ------
    InputError
        If the parts are inconsistent.
    """
    return _drawn(model, X, y, images, by, {}, dark=dark)


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
        Coordinates of a different map, such as a UMAP of `model.transform(X)`.

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`.
    """
    maps = {} if coordinates is None else {MAP: coordinates}
    return _drawn(model, X, y, images, MAP if maps else "pca", maps, dark=dark)


def plot_components(
    model: Any, image_shape: tuple[int, ...] | None = None, names: Any = None, *, dark: bool = False
) -> StillFigure:
    """Plot each component: as an image, a curve of ordered features, or its strongest features.

    Parameters
    ----------
    model : fitted estimator of appca, or result of `appca.load_model`
    image_shape : tuple, optional
        (h, w) or (h, w, 3), if rows are images.
    names : sequence of str, optional
        Names of the D features. Increasing or decreasing numbers, such as “400 nm”, form an axis.
    dark : bool

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`.
    """
    msg = f"Only a fitted estimator has components to plot; got {type(model).__name__}."
    refuse_if(not hasattr(model, "components_"), msg)
    patterns = np.asarray(model.components_)
    titles = [f"Component {k + 1}" for k in range(len(patterns))]
    feature_names = None if names is None else tuple(map(str, names))
    axis = None
    if image_shape is None and follow_each_other(patterns, feature_names):
        axis = numbered(feature_names or NumberedNames("feature", patterns.shape[1]))
    return component_figure(patterns, titles, image_shape, feature_names, axis=axis, dark=dark)


def _drawn(
    model: Any, X: Any, y: Any, images: Any, layout: str, maps: dict[str, Any], *, dark: bool
) -> StillFigure:
    rows = rows_of(X, y, images)
    run = numbered_after(run_of(model, rows.dataset), None)
    coordinates = {key: map_of(key, xy, rows.dataset) for key, xy in maps.items()}
    scene = scene_of_rows(rows, run, coordinates)
    layout = layout or scene.meta["first"]
    there = ", ".join(repr(name) for name in scene.meta["layouts"] if name != "pca")
    refuse_if(layout not in scene.meta["layouts"], f"by is one of {there}; got {layout!r}.")
    return draw(scene, layout, "" if y is None else next(iter(scene.meta["colourings"])), dark=dark)
