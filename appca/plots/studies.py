"""Figures of the paper's experiments, and their thumbnails."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb
from plotly.subplots import make_subplots

from appca.data.brain import upright
from appca.plots.components import data_uri, montage, painted, strong, volume_of
from appca.plots.style import CATEGORICAL, CLEAR, chart, class_colour, framed, legend_above, plain

if TYPE_CHECKING:
    import pandas as pd

Arrays = Mapping[str, np.ndarray]  # study arrays by name
Row = Mapping[str, Any]  # column name to value

MOST_SVG = 4000  # more points are drawn by WebGL, not as vectors
SYMBOLS = ("circle", "diamond", "square", "cross", "triangle-up", "star")
CELLS, LONE_CELLS = 11, 18  # images per side of a panel, and of a single panel
OBLIQUE = np.array([0.45, 0.6, 0.66])  # view direction: no plane is edge-on
MOST_INDICATORS = 400  # number of rows; a screen has few more pixels
POPULARITY_COLOURS = ("#3f90da", "#92dadd", "#ffa90e", "#832db6", "#94a4a2")
TRUTH = "#d7191c"
MEASURES = {"error": "squared error", "likelihood": "log-likelihood, nats per row"}
ACCURACY_COLOURS = {"pca": "#94a4a2", "appca": "#3f90da", "within": "#832db6"}
ACCURACY_COLOURS |= {"each": "#e76300", "half": "#bd1f01", "pattern": "#ffa90e"}
APART = 1.015  # factor that separates the error bars of two methods with the same x
CROWDED = 1.4  # minimum ratio of two sizes at which both get a tick
BRAIN_COLOURS = {"appca": "#3f90da", "ppca_l": "#ffa90e", "ppca_k": "#832db6"}
TITLE_T = "Linear model, t above the family-wise threshold"
BRAIN_HEIGHT = 330  # pixels
CARD_HEIGHT, CARD_WIDTH = 160, 290  # pixels
MOST_POINTS, POINT = 1500, 3.5  # for thumbnails: maximum number of points, and their size in pixels


class Scatter(NamedTuple):
    """A small scatter plot."""

    title: str
    x: np.ndarray  # (m,)
    y: np.ndarray  # (m,)
    codes: np.ndarray  # (m,) indices of class names
    x_title: str = ""
    y_title: str = ""
    symbols: np.ndarray | None = None  # (m,) indices of SYMBOLS
    rgb: np.ndarray | None = None  # (m, 3) uint8, replaces the classes' colours
    images: np.ndarray | None = None  # (m, h, w) uint8; some are drawn


def scatters(
    panels: Sequence[Scatter], names: Sequence[str], columns: int = 3, size: float = 5
) -> go.Figure:
    """Draw panels side by side, with images where there is space; points are `size` pixels."""
    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    side, cells = (360, CELLS) if len(panels) > 1 else (560, LONE_CELLS)
    gap = 100  # pixels between lines of panels
    height = lines * side + (lines - 1) * gap + 70
    figure = _panels(
        *([plain(panel.title) for panel in panels], columns, gap / height if lines > 1 else 0.0),
        horizontal_spacing=0.12 if columns == 2 else 0.07,
    )
    kind = go.Scatter if sum(len(panel.x) for panel in panels) <= MOST_SVG else go.Scattergl
    listed: set[int] = set()
    pictures: list[dict[str, Any]] = []
    for place, panel in enumerate(panels):
        at = {"row": place // columns + 1, "col": place % columns + 1}
        for trace in _traces(panel, names, size, listed):
            figure.add_trace(kind(mode="markers", **trace), **at)
        figure.update_xaxes(title=plain(panel.x_title), zeroline=False, **at)
        figure.update_yaxes(title=plain(panel.y_title), zeroline=False, **at)
        if panel.images is not None:
            axis = str(place + 1) if place else ""
            pictures += _images(panel, panel.images, cells, len(names), axis)
    legend = legend_above(-60 / height, itemsizing="constant")
    return framed(figure, height, legend=legend, images=pictures)


def _traces(
    panel: Scatter, names: Sequence[str], size: float, listed: set[int]
) -> Iterator[dict[str, Any]]:
    shapes = None if panel.symbols is None else np.array(SYMBOLS)[panel.symbols % len(SYMBOLS)]
    for code in [None] if panel.rgb is not None else np.unique(panel.codes).tolist():
        rows = np.flatnonzero((panel.codes == code) | (code is None))
        symbol = SYMBOLS[0] if shapes is None else shapes[rows].tolist()
        marker: dict[str, Any] = {"size": size, "symbol": symbol}
        if code is None:
            marker["color"] = [f"#{bytes(rgb).hex()}" for rgb in np.asarray(panel.rgb)]
            look = {"text": [plain(str(names[code])) for code in panel.codes], "showlegend": False}
            look |= {"hovertemplate": "%{text}<extra></extra>"}
        else:
            name = plain(str(names[code]))
            marker |= {"color": class_colour(code, len(names)), "opacity": 0.75}
            look = {"name": name, "legendgroup": name, "legendrank": code}
            look |= {"hovertemplate": f"{name}<extra></extra>", "showlegend": code not in listed}
            listed.add(code)
        yield look | {"x": panel.x[rows], "y": panel.y[rows], "marker": marker}


def _images(
    panel: Scatter, images: np.ndarray, cells: int, n_classes: int, axis: str
) -> Iterator[dict[str, Any]]:
    x, y = np.asarray(panel.x, float), np.asarray(panel.y, float)
    wide, tall = np.ptp(x) / cells or 1.0, np.ptp(y) / cells or 1.0
    look = {"sizex": 0.86 * wide, "sizey": 0.86 * tall, "sizing": "contain"}
    look |= {"xanchor": "center", "yanchor": "middle", "xref": f"x{axis}", "yref": f"y{axis}"}
    for row in spaced(x, y, cells):
        height, width = images[row].shape
        picture = np.empty((height + 2, width + 2, 3), np.uint8)
        picture[:] = hex_to_rgb(class_colour(panel.codes[row], n_classes))
        picture[1:-1, 1:-1] = images[row][..., None]
        yield look | {"source": data_uri(picture), "x": float(x[row]), "y": float(y[row])}


def spaced(x: np.ndarray, y: np.ndarray, cells: int = CELLS) -> np.ndarray:
    """Return indices of separate points: the one nearest the centre of each grid cell."""
    places = np.stack([(v - v.min()) / (np.ptp(v) or 1.0) * cells for v in (x, y)])
    cell = np.minimum(places.astype(int), cells - 1)
    number = cell[0] * cells + cell[1]
    order = np.lexsort((np.square(places - cell - 0.5).sum(axis=0), number))
    return np.sort(order[np.unique(number[order], return_index=True)[1]])


def sheets(named: Mapping[str, np.ndarray], columns: int, zoom: float = 1.0) -> go.Figure:
    """Draw sheets of images (n, h, w), uint8, below one another, each under its name.

    A line has `columns` images, empty cells are grey; `zoom` is the number of screen pixels per
    image pixel.
    """
    grey, head = 128, 34  # head: pixels for the name above a sheet
    drawn = [
        np.pad(montage(images, columns, gap=2, ground=grey), 1, constant_values=grey)
        for images in named.values()
    ]
    width = zoom * max(sheet.shape[1] for sheet in drawn)
    top = height = sum(zoom * sheet.shape[0] + head for sheet in drawn) + 10
    figure = go.Figure()
    for name, sheet in zip(named, drawn, strict=True):
        look = {"showarrow": False, "xanchor": "left", "font_size": 14}
        figure.add_annotation(x=0, y=top - head / 2, text=plain(name), **look)
        tall, wide = (zoom * side for side in sheet.shape)
        place = {"x": 0, "y": top - head, "sizex": wide, "sizey": tall, "xref": "x", "yref": "y"}
        figure.add_layout_image(source=data_uri(sheet), sizing="stretch", layer="above", **place)
        top -= head + tall
    figure.update_xaxes(range=[0, width], visible=False)
    figure.update_yaxes(range=[0, height], visible=False)
    return framed(figure, int(height + 20), 10, width=int(width + 20), plot_bgcolor=CLEAR)


def boxes(measures: Mapping[str, Mapping[str, np.ndarray]]) -> go.Figure:
    """Draw values (m,) of measures by group: one panel per measure, one box per group."""
    figure = make_subplots(rows=1, cols=len(measures), subplot_titles=[*map(plain, measures)])
    ends = ("lowerfence", "q1", "median", "q3", "upperfence")
    for column, groups in enumerate(measures.values(), start=1):
        for place, (group, values) in enumerate(groups.items()):
            box = dict(
                zip(ends, np.percentile(values, (5, 25, 50, 75, 95))[:, None].tolist(), strict=True)
            )
            look = {"marker_color": class_colour(place), "showlegend": False}
            figure.add_box(
                x=[plain(group)], mean=[np.mean(values)], **box, **look, row=1, col=column
            )
    return framed(figure, 340)


def mixed_bars(rows: Sequence[Row]) -> go.Figure:
    """Draw how many groups mix 1, 2 or more objects; each row has its number of `objects`."""
    at, counts = np.unique([row["objects"] for row in rows], return_counts=True)
    across = {"title": "objects in a group", "dtick": 1}
    bars = go.Bar(x=at, y=counts, marker_color=class_colour(0))
    return chart(bars, 340, across, "groups", top=34, bottom=10)


def space(
    X: np.ndarray, codes: np.ndarray, names: Sequence[str], components: np.ndarray
) -> go.Figure:
    """Draw points (N, 3) that can be rotated, coloured by class: `codes` (N,) index `names`.

    Each pair of the `components`, orthonormal rows (3, 3), spans a plane, which is drawn; the view
    is from between the planes.
    """
    eye = OBLIQUE @ components
    eye *= 2.0 * (1 if eye[2] > 0 else -1) / np.linalg.norm(eye)  # in units of the box
    figure = go.Figure()
    for code, name in enumerate(names):
        marker = {"size": 2.5, "color": class_colour(code, len(names))}
        places = dict(zip("xyz", X[codes == code].T, strict=True))
        figure.add_scatter3d(**places, mode="markers", marker=marker, name=plain(name))
    centre = X.mean(axis=0)
    reach = np.quantile(np.abs((X - centre) @ components.T), 0.98, axis=0)
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    look = {"color": "#8a94a3", "opacity": 0.18, "hoverinfo": "skip", "showlegend": False}
    look |= {"i": [0, 0], "j": [1, 2], "k": [2, 3]}
    for pair in ([0, 1], [0, 2], [1, 2]):  # the rectangle contains nearly all points
        places = (centre + corners @ (reach[pair, None] * components[pair])).T
        figure.add_mesh3d(**dict(zip("xyz", places, strict=True)), **look)
    scene = {"aspectmode": "data", "camera": {"eye": dict(zip("xyz", eye, strict=True))}}
    legend = legend_above(0, itemsizing="constant")
    return framed(figure, 520, 10, 0, side=0, scene=scene, legend=legend)


def indicators(matrices: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw the first `MOST_INDICATORS` rows of matrices (N, K), with factors down (Z')."""
    n, edges = len(matrices), 76
    height = edges + n * (92 if n > 1 else 190) + (n - 1) * 40
    figure = _panels(list(matrices), 1, 40 / (height - edges) if n > 1 else 0.0)
    look = {"zmin": 0, "zmax": 1, "colorscale": [[0, "#ffffff"], [1, "#000000"]]}
    look |= {"showscale": False, "hovertemplate": "row %{x}, factor %{y}: %{z}<extra></extra>"}
    for place, Z in enumerate(matrices.values(), start=1):
        z = np.asarray(Z[:MOST_INDICATORS], dtype=np.uint8).T
        y, x = (np.arange(1, size + 1) for size in z.shape)
        figure.add_heatmap(z=z, x=x, y=y, **look, row=place, col=1)
        figure.update_xaxes(range=[0.5, len(x) + 0.5], row=place, autorange=False)
        figure.update_yaxes(range=[len(y) + 0.5, 0.5], row=place, autorange=False)
    box = {"showline": True, "mirror": True, "linecolor": "#8a94a0", "linewidth": 1}
    box |= {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": ""}
    figure.update_xaxes(**box).update_xaxes(title="row", row=n)
    figure.update_yaxes(title="factor", title_font_size=12, **box)
    figure.update_annotations(x=0, xanchor="left", yshift=7, font_size=14)
    framed(figure, height, 40, 34, showlegend=False)
    return figure.update_layout(margin={"l": 30, "pad": 0})


def dots(rows: Sequence[Row], measure: str, title: str, *, log: bool = False) -> go.Figure:
    """Draw a measure of all methods, with its spread over data sets as a line through each dot.

    `rows` are dicts with design, K, title, the measure and its spread ``<measure>_sd``; methods
    without a value are left out. `title` names the axis, which is logarithmic if `log`.
    """
    import pandas as pd
    import plotly.express as px

    spread = f"{measure}_sd"
    table = pd.DataFrame(rows, columns=["design", "K", "title", measure, spread])
    table = table.dropna(subset=[measure]).fillna({spread: 0.0}).astype({measure: float})
    orders = {"K": sorted(table["K"].unique()), "title": list(table["title"].unique())}
    look: dict[str, Any] = {"color": "design", "symbol": "design", "facet_col": "K"}
    look |= {"error_x": spread, "category_orders": orders, "facet_col_spacing": 0.04, "log_x": log}
    figure = px.scatter(table, measure, "title", color_discrete_sequence=CATEGORICAL, **look)
    figure.for_each_annotation(lambda note: note.update(text=note.text.replace("=", " = ")))
    hover = "%{y}: %{x:.4g}, sd %{error_x.array:.2g}<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, marker_size=8, error_x={"thickness": 1, "width": 0})
    figure.update_xaxes(title=title, matches=None, dtick="D2" if log else None)
    figure.update_yaxes(title=None, showgrid=False, zeroline=False)
    look = {"scattermode": "group", "legend": legend_above(1.09)}
    return framed(figure, 130 + 36 * table["title"].nunique(), 66, **look)


def _panels(titles: Sequence[str], columns: int, gap: float, **more: Any) -> go.Figure:
    size = -(-len(titles) // columns), columns
    return make_subplots(*size, subplot_titles=titles, vertical_spacing=gap, **more)


def _of_brain(traces: list[go.Scatter], x: Any, y: Any) -> go.Figure:
    return chart(traces, BRAIN_HEIGHT, x, y, top=40, bottom=10, legend=legend_above())


def _lines(table: "pd.DataFrame", x: str, y: str, hover: str, **look: Any) -> go.Figure:
    import plotly.express as px

    figure = px.line(table, x, y, markers=True, render_mode="svg", **look)
    return figure.update_traces(hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>")


def popularity(rows: Sequence[Row]) -> go.Figure:
    """Draw sorted curves, one panel per design: share of rows against the rank of the factor.

    `rows` are dicts with design, method, title, rank (1 is most popular) and share; the method
    "truth" is red.
    """
    import pandas as pd

    table = pd.DataFrame(rows)
    table = table.sort_values("method", key=lambda names: names == "truth", kind="stable")  # top
    *others, truth = table["title"].unique()
    colours = dict(zip(others, POPULARITY_COLOURS, strict=False)) | {truth: TRUTH}
    look = {"color": "title", "symbol": "title", "facet_col": "design", "facet_col_spacing": 0.09}
    hover = "%{y}. factor: %{x:.1%} of the rows"
    figure = _lines(table, "share", "rank", hover, color_discrete_map=colours, **look)
    figure.for_each_annotation(lambda note: note.update(text=f"{note.text[7:].capitalize()} data"))
    figure.update_traces(line_width=1.8).update_traces(line_width=3, selector={"name": truth})
    figure.update_xaxes(title="share of the rows", range=[-0.03, 1.03], tickformat=".0%")
    figure.update_yaxes(autorange="reversed", rangemode="tozero")
    figure.update_yaxes(title="factor, most popular first", col=1)
    return framed(figure, 420, legend=legend_above(-0.2))


def speed_courses(rows: Sequence[Row]) -> go.Figure:
    """Draw the progress of fits over time; models are columns, measures are rows.

    `rows` are dicts with model, way, title, data_set, ``passes``, seconds, error and likelihood.
    """
    import pandas as pd

    table = pd.DataFrame(rows)
    long = table.melt([*table.columns.drop([*MEASURES])], [*MEASURES], "measure")
    look = {"color": "title", "line_group": "data_set", "custom_data": ["passes"], "log_x": True}
    look |= {"facet_row": "measure", "facet_row_spacing": 0.05, "facet_col": "model"}
    look |= {"facet_col_spacing": 0.1, "color_discrete_sequence": CATEGORICAL}
    hover = "%{x:.3g} s, %{customdata[0]} iterations: %{y:.5g}"
    figure = _lines(long, "seconds", "value", hover, **look)
    figure.layout.annotations = figure.layout.annotations[: table["model"].nunique()]
    figure.for_each_annotation(lambda note: note.update(text=note.text.removeprefix("model=")))
    figure.update_traces(line_width=1.6, marker_size=5)
    figure.update_xaxes(dtick=1, exponentformat="power", title=None)
    figure.update_xaxes(title="processor seconds", row=1)
    figure.update_yaxes(title=None, matches=None, showticklabels=True)
    figure.update_yaxes(title=MEASURES["likelihood"], row=1, col=1)  # Plotly counts from the bottom
    figure.update_yaxes(type="log", row=2).update_yaxes(title=MEASURES["error"], row=2, col=1)
    return framed(figure, 640, legend=legend_above(-0.12))


def accuracy_curves(rows: Sequence[Row]) -> go.Figure:
    """Draw the mean accuracy over folds, with its standard deviation as error bars.

    `rows` have method, title, K, L, accuracy and accuracy_sd. The method "raw" (without K) is a
    horizontal line. Methods without a colour, such as the pattern alone, are left out.
    """
    import pandas as pd

    there = pd.DataFrame([row for row in rows if row["method"] in ACCURACY_COLOURS])
    titles = dict(zip(there["method"], there["title"], strict=True))
    axes = {"K": "components, K", "L": "non-zero scores, L"}
    table = pd.concat([there.assign(panel=axis, place=there[axis]) for axis in axes])
    shift = {method: APART ** (i - len(titles) / 2) for i, method in enumerate(titles)}
    table = table.assign(x=table["place"] * table["method"].map(shift)).sort_values("x")
    colours = {title: ACCURACY_COLOURS[method] for method, title in titles.items()}
    look = {"color": "title", "symbol": "title", "facet_col": "panel", "facet_col_spacing": 0.04}
    look |= {"color_discrete_map": colours, "error_y": "accuracy_sd", "log_x": True}
    look |= {"category_orders": {"title": [*titles.values()], "panel": [*axes]}}
    look |= {"custom_data": ["K", "L", "accuracy_sd"]}
    hover = "K = %{customdata[0]}, L = %{customdata[1]}: %{y:.1%}, sd %{customdata[2]:.1%}"
    figure = _lines(table, "x", "accuracy", hover, **look)
    figure.layout.annotations = ()
    figure.update_traces(line_width=1.8, marker_size=7, error_y={"thickness": 1.2, "width": 3})
    for column, (axis, title) in enumerate(axes.items(), start=1):
        shown: list[int] = []
        for place in sorted(set(there[axis]), reverse=True):
            if not shown or shown[-1] / place > CROWDED:
                shown.append(int(place))
        figure.update_xaxes(title=title, tickvals=shown, ticktext=shown, matches=None, col=column)
    figure.update_xaxes(tickangle=0)
    line = {"color": "#717581", "width": 1.8, "dash": "dash"}
    for row in rows:
        if row["method"] == "raw":
            figure.add_hline(row["accuracy"], line=line, annotation_text=row["title"], col=1)
            figure.add_hline(row["accuracy"], line=line, col=2)
    figure.update_yaxes(tickformat=".0%", title=None)
    figure.update_yaxes(title="accuracy on held-out rows", col=1)
    return framed(figure, 520, legend=legend_above(-0.16))


def brain_maps(brain: Arrays, titles: Mapping[str, str]) -> go.Figure:
    """Draw maps of all models, by title, and the reference as rows of horizontal slices.

    Slices are ordered from low to high, with the front at the top and the brain's left on the left.
    """
    shown = {title: brain[f"map_{key}"] for key, title in titles.items()}
    if "stimulus" in brain:
        shown[TITLE_T] = np.where(brain["map_t"] > brain["threshold"], brain["map_t"], 0.0)
    mask, affine = brain["mask"], brain["affine"]
    signal = brain.get("signal", np.ones(int(mask.sum()), np.float32))  # may be missing
    n, slices = len(shown), 8
    figure = _panels(list(shown), 1, 0.16 / n)
    inside = upright(mask, affine)
    box = tuple(slice(max(int(at.min()) - 1, 0), int(at.max()) + 2) for at in np.nonzero(inside))
    volume = partial(volume_of, places=mask, grid=mask.shape, affine=affine)
    for place, values in enumerate(shown.values(), start=1):
        rgb = painted(volume(signal), volume(values), inside, strong(values))[box]
        heights = np.linspace(0, rgb.shape[2] - 1, slices + 2).round().astype(int)[1:-1]
        cuts = [rgb[:, ::-1, height].transpose(1, 0, 2) for height in np.unique(heights)]
        picture = data_uri(np.concatenate(cuts, axis=1))
        figure.add_trace(go.Image(source=picture, hoverinfo="skip"), place, 1)
    figure.update_xaxes(visible=False).update_yaxes(visible=False)
    figure.update_annotations(font_size=13)
    return framed(figure, n * 162 + 20, 26, 0, side=0, plot_bgcolor=CLEAR)


def brain_courses(brain: Arrays, titles: Mapping[str, str]) -> go.Figure:
    """Draw the stimulus and the components that follow it best against time."""
    courses: list[tuple[np.ndarray, dict[str, Any]]] = []
    if "stimulus" in brain:
        area: dict[str, Any] = {"fill": "tozeroy", "fillcolor": "rgba(113,117,129,0.25)"}
        area |= {"name": "Expected blood response", "line": {"color": "#717581", "width": 1}}
        courses.append((brain["stimulus"], area))
    for key, title in titles.items():
        dash = "dot" if key == "ppca_k" else "solid"
        line = {"color": BRAIN_COLOURS[key], "width": 2, "dash": dash}
        courses.append((brain[f"course_{key}"], {"name": title, "line": line}))
    traces = [
        go.Scatter(x=brain["times"], y=np.round(y / (y.std() or 1.0), 3), mode="lines", **look)
        for y, look in courses
    ]
    return _of_brain(traces, "seconds", "standard deviations")


def brain_errors(brain: Arrays, titles: Mapping[str, str]) -> go.Figure:
    """Draw a histogram of the voxels' errors."""
    middles = (brain["edges"][:-1] + brain["edges"][1:]) / 2
    traces, hover = [], "%{y:,} voxels at %{x:.2f}<extra>%{fullData.name}</extra>"
    for key, title in titles.items():
        look = {"line": {"color": BRAIN_COLOURS[key], "shape": "hvh", "width": 2}, "name": title}
        look |= {"mode": "lines", "hovertemplate": hover}
        traces.append(go.Scatter(x=middles, y=brain[f"errors_{key}"], **look))
    across = {"title": "root mean square error of a voxel", "rangemode": "tozero"}
    return _of_brain(traces, across, {"title": "voxels", "rangemode": "tozero"})


def thumbnail(figure: go.Figure) -> go.Figure:
    """Return a small copy without titles, ticks and legend; scatters become vector graphics."""
    every = [trace.to_plotly_json() for trace in figure.data]
    points = [trace for trace in every if trace["type"] in {"scatter", "scattergl"}]
    step = max(1, -(-sum(len(trace["x"]) for trace in points) // MOST_POINTS))
    for trace in points:
        marker = trace["marker"] = dict(trace.get("marker", {}))
        if np.ndim(marker.get("size", 0)):  # sizes that encode a quantity
            marker["size"] = 0.35 * np.asarray(marker["size"])
            continue
        trace["type"], marker["size"] = "scatter", POINT
        if "lines" in trace.get("mode", ""):  # lines have few points
            continue
        for part in (trace, marker):
            for name, values in [*part.items()]:
                if np.ndim(values) and len(values) == len(trace["x"]):
                    part[name] = np.asarray(values)[::step]
    layout = figure.layout.to_plotly_json()
    layout.pop("annotations", None)
    small = go.Figure(every, layout).update_traces(hoverinfo="skip", hovertemplate=None)
    small.update_traces(showscale=False, selector={"type": "heatmap"})
    bare = {"title": None, "showticklabels": False, "ticks": "", "showgrid": False}
    small.update_xaxes(**bare).update_yaxes(**bare)
    if layout.get("images") and layout.get("width"):
        # the top of a sheet of images, without distortion
        top = layout["yaxis"]["range"][1]
        small.update_yaxes(range=[top - layout["width"] * CARD_HEIGHT / CARD_WIDTH, top])
    look = {"width": None, "autosize": True, "showlegend": False, "dragmode": False, "title": None}
    return framed(small, CARD_HEIGHT, 8, 8, side=8, paper_bgcolor=CLEAR, **look)
