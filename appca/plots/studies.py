"""Figures of the paper's experiments, and their thumbnails."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb
from plotly.subplots import make_subplots

from appca.analysis.brain import BrainMaps
from appca.data.brain import upright
from appca.plots.components import data_uri, montage, painted, strong
from appca.plots.style import CATEGORICAL, CLEAR, above, below, class_colour, framed, plain, to_hex

Row = Mapping[str, Any]  # of a study's table: texts and numbers by the name of the column

SIDE, LONE_SIDE = 360, 560  # pixels: of a panel, and of one alone
LEGEND, GAP = 70, 100  # pixels: below all panels, and between two
MOST_SVG = 4000  # points drawn as vectors; more go to WebGL
SYMBOLS = ("circle", "diamond", "square", "cross", "triangle-up", "star")
CELLS, LONE_CELLS = 11, 18  # thumbnails along a side of a panel at most, and of one alone
GREY = 128  # of the ground of a sheet
FRAME = 1  # pixels of a thumbnail's border in its class's colour
DISTANCE = 2.0  # of the eye, in sizes of the box
OBLIQUE = np.array([0.45, 0.6, 0.66])  # along the components: no plane of two of them is edge-on
INK, PAPER = "#000000", "#ffffff"
BOX = "#8a94a0"  # readable on white and on black
STRIP, LONE_STRIP = 92, 190  # pixels of a matrix among others, and of one alone
SPACE, EDGES = 40, 76  # pixels between two of them, and above and below all
MOST_INDICATORS = 400  # rows; more than there are pixels for
LINE_HEIGHT, FRAME_HEIGHT = 36, 130  # pixels
POPULARITY_COLOURS = ("#3f90da", "#92dadd", "#ffa90e", "#832db6", "#94a4a2")
TRUTH = "#d7191c"
MEASURES = {"error": "squared error", "likelihood": "log-likelihood, nats per row"}
ACCURACY_COLOURS = {
    "pca": "#94a4a2",
    "appca": "#3f90da",
    "within": "#832db6",
    "each": "#e76300",
    "half": "#bd1f01",
    "pattern": "#ffa90e",
}
RAW = {"color": "#717581", "width": 1.8, "dash": "dash"}
APART = 1.015  # factor between two methods at the same place, so that error bars can be told apart
CROWDED = 1.4  # ratio of two sizes below which only the larger gets a tick
PANELS = {"K": "components, K", "L": "non-zero scores, L"}
SLICES = 8  # side by side
BRAIN_COLOURS = {"appca": "#3f90da", "ppca_l": "#ffa90e", "ppca_k": "#832db6"}
STIMULUS = "#717581"
TITLE_T = "Linear model, t above the family-wise threshold"
_ROW, _GAP, BRAIN_HEIGHT = 132, 30, 330  # pixels
CARD_HEIGHT, CARD_WIDTH = 160, 290  # pixels
MOST_POINTS = 1500  # of a thumbnail
POINT = 3.5  # pixels
EVERY_POINT = ("x", "y", "text", "customdata")


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
    symbols = np.zeros(len(panel.x), int) if panel.symbols is None else panel.symbols % len(SYMBOLS)
    shapes = np.array(SYMBOLS)[symbols]
    if panel.rgb is not None:
        marker = {"size": size, "color": [to_hex(colour) for colour in panel.rgb]}
        marker["symbol"] = SYMBOLS[0] if panel.symbols is None else shapes.tolist()
        text = [plain(str(names[code])) for code in panel.codes]
        trace = kind(x=panel.x, y=panel.y, mode="markers", marker=marker, text=text)
        return [trace.update(hovertemplate="%{text}<extra></extra>", showlegend=False)]
    traces = []
    for code in np.unique(panel.codes):
        rows = np.flatnonzero(panel.codes == code)
        marker = {"size": size, "color": class_colour(int(code), len(names)), "opacity": 0.75}
        marker["symbol"] = SYMBOLS[0] if panel.symbols is None else shapes[rows].tolist()
        trace = kind(x=panel.x[rows], y=panel.y[rows], mode="markers", marker=marker)
        name = plain(str(names[code]))
        trace.update(name=name, legendgroup=name, showlegend=int(code) not in listed)
        trace.update(legendrank=int(code), hovertemplate=f"{name}<extra></extra>")
        traces.append(trace)
        listed.add(int(code))
    return traces


def _thumbnails(
    panel: Scatter, images: np.ndarray, cells: int, n_classes: int
) -> list[dict[str, Any]]:
    """Images of the points nearest to the middles of the cells of a grid."""
    x, y = np.asarray(panel.x, float), np.asarray(panel.y, float)
    wide, tall = np.ptp(x) / cells or 1.0, np.ptp(y) / cells or 1.0
    look = {"sizex": 0.86 * wide, "sizey": 0.86 * tall, "sizing": "contain"}
    look |= {"xanchor": "center", "yanchor": "middle"}
    return [
        look
        | {"source": data_uri(_framed(images[row], class_colour(panel.codes[row], n_classes)))}
        | {"x": float(x[row]), "y": float(y[row])}
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
    h, w = image.shape
    drawn = np.empty((h + 2 * FRAME, w + 2 * FRAME, 3), image.dtype)
    drawn[:] = hex_to_rgb(colour)
    drawn[FRAME:-FRAME, FRAME:-FRAME] = image[..., None]
    return drawn


def sheets(named: Mapping[str, np.ndarray], columns: int, zoom: float = 1.0) -> go.Figure:
    """Draw sheets of images (n, h, w), uint8, one below the other, each under its name.

    `columns` images are on a line, places without one stay grey; `zoom` is the number of screen
    pixels for one of an image.
    """
    drawn = {
        name: np.pad(montage(images, columns, gap=2, ground=GREY), 1, constant_values=GREY)
        for name, images in named.items()
    }
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
        place = {"x": 0, "y": top - head, "sizex": zoom * canvas.shape[1], "sizey": tall}
        look = {"xref": "x", "yref": "y", "sizing": "stretch", "layer": "above"}
        figure.add_layout_image(source=data_uri(canvas), **place, **look)
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
            quartiles = {"q1": [first], "median": [middle], "q3": [third]}
            ends = {"lowerfence": [low], "upperfence": [high], "mean": [float(np.mean(values))]}
            look = {"marker_color": class_colour(place), "showlegend": False}
            box = go.Box(x=[plain(group)], **quartiles, **ends, **look)
            figure.add_trace(box, row=1, col=column)
    return framed(figure, 340)


def mixed_bars(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Draw how many groups mix how many objects; rows have `objects`."""
    counts = np.bincount([row["objects"] for row in rows])
    at = np.flatnonzero(counts)
    figure = go.Figure(go.Bar(x=at, y=counts[at], marker_color=class_colour(0)))
    figure.update_xaxes(title="objects in a group", dtick=1)
    figure.update_yaxes(title="groups")
    return framed(figure, 340)


def space(
    X: np.ndarray, codes: np.ndarray, names: Sequence[str], components: np.ndarray
) -> go.Figure:
    """Draw points (N, 3) that can be turned, coloured by their classes: `codes` (N,) into names.

    The planes of every two of the `components`, orthonormal rows (3, 3), are drawn, and looked at
    from between them.
    """
    eye = OBLIQUE @ components
    eye *= DISTANCE * (1 if eye[2] > 0 else -1) / np.linalg.norm(eye)
    figure = go.Figure(
        [
            go.Scatter3d(
                x=X[codes == code, 0],
                y=X[codes == code, 1],
                z=X[codes == code, 2],
                mode="markers",
                marker={"size": 2.5, "color": class_colour(code, len(names))},
                name=plain(name),
            )
            for code, name in enumerate(names)
        ]
    )
    centre = X.mean(axis=0)
    reach = np.quantile(np.abs((X - centre) @ components.T), 0.98, axis=0)
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    look = {"color": "#8a94a3", "opacity": 0.18, "hoverinfo": "skip", "showlegend": False}
    for pair in ([0, 1], [0, 2], [1, 2]):  # the rectangle that holds nearly all points
        places = (centre + corners @ (reach[pair, None] * components[pair])).T
        triangles = {"i": [0, 0], "j": [1, 2], "k": [2, 3]}
        figure.add_mesh3d(**dict(zip("xyz", places, strict=True)), **triangles, **look)
    scene = {"aspectmode": "data", "camera": {"eye": dict(zip("xyz", eye, strict=True))}}
    legend = below(0) | {"itemsizing": "constant"}
    framed(figure, 520, 10, 0, scene=scene, legend=legend)
    return figure.update_layout(margin={"l": 0, "r": 0})


def indicators(matrices: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw matrices (N, K), one below the other, with rows across and factors down (Z').

    Of a long one the first `MOST_INDICATORS` rows are drawn.
    """
    n = len(matrices)
    height = EDGES + n * (STRIP if n > 1 else LONE_STRIP) + (n - 1) * SPACE
    figure = make_subplots(
        rows=n,
        cols=1,
        subplot_titles=list(matrices),
        vertical_spacing=SPACE / (height - EDGES) if n > 1 else 0.0,
    )
    for place, Z in enumerate(matrices.values(), start=1):
        shown = Z[:MOST_INDICATORS]
        image = go.Heatmap(
            z=np.asarray(shown, dtype=np.uint8).T,
            x=np.arange(1, shown.shape[0] + 1),
            y=np.arange(1, shown.shape[1] + 1),
            zmin=0,
            zmax=1,
            colorscale=[[0, PAPER], [1, INK]],
            showscale=False,
            hovertemplate="row %{x}, factor %{y}: %{z}<extra></extra>",
        )
        figure.add_trace(image, row=place, col=1)
        figure.update_xaxes(range=[0.5, len(shown) + 0.5], autorange=False, row=place, col=1)
        figure.update_yaxes(range=[Z.shape[1] + 0.5, 0.5], autorange=False, row=place, col=1)
    box = {"showline": True, "mirror": True, "linecolor": BOX, "linewidth": 1}
    box |= {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": ""}
    figure.update_xaxes(**box)
    figure.update_yaxes(title="factor", title_font_size=12, **box)
    figure.update_xaxes(title="row", row=n, col=1)
    figure.update_annotations(x=0, xanchor="left", yshift=7, font_size=14)
    figure.update_layout(
        height=height, margin={"l": 30, "r": 10, "t": 40, "b": 34, "pad": 0}, showlegend=False
    )
    return figure


def dots(rows: Sequence[Row], measure: str, title: str, *, log: bool = False) -> go.Figure:
    """Draw a measure of all methods, with its spread over data sets as a line through the dot.

    `rows` are dicts with design, K, title, the measure and its spread ``<measure>_sd``; methods
    without a value are left out. `title` is the name of the axis, which may be logarithmic.
    """
    import pandas as pd
    import plotly.express as px

    columns = ["design", "K", "title", measure, f"{measure}_sd"]
    table = pd.DataFrame(rows, columns=columns).dropna(subset=[measure])
    figure = px.scatter(
        table.fillna({f"{measure}_sd": 0.0}).astype({measure: float, f"{measure}_sd": float}),
        *(measure, "title"),
        error_x=f"{measure}_sd",
        color="design",
        symbol="design",
        facet_col="K",
        facet_col_spacing=0.04,
        category_orders={"K": sorted(table["K"].unique()), "title": list(table["title"].unique())},
        color_discrete_sequence=CATEGORICAL,
        log_x=log,
    )
    figure.for_each_annotation(lambda note: note.update(text=note.text.replace("=", " = ")))
    hover = "%{y}: %{x:.4g}, sd %{error_x.array:.2g}<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, marker_size=8, error_x={"thickness": 1, "width": 0})
    figure.update_xaxes(title=title, matches=None, dtick="D2" if log else None)
    figure.update_yaxes(title=None, showgrid=False, zeroline=False)
    height = FRAME_HEIGHT + LINE_HEIGHT * table["title"].nunique()
    return framed(figure, height, 66, scattermode="group", legend=above(1.09) | {"title": None})


def popularity(rows: Sequence[Row]) -> go.Figure:
    """Draw sorted curves, one panel a design: share of the rows against the factor's number.

    `rows` are dicts with design, method, title, rank (from 1, most popular first) and share; the
    method "truth" is drawn in red.
    """
    import pandas as pd
    import plotly.express as px

    table = pd.DataFrame(rows)
    table = table.sort_values("method", key=lambda names: names == "truth", kind="stable")  # on top
    *others, truth = table["title"].unique()
    figure = px.line(
        table,
        *("share", "rank"),
        color="title",
        symbol="title",
        facet_col="design",
        facet_col_spacing=0.09,
        color_discrete_map=dict(zip(others, POPULARITY_COLOURS, strict=False)) | {truth: TRUTH},
        markers=True,
        render_mode="svg",
    )
    figure.for_each_annotation(lambda note: note.update(text=f"{note.text[7:].capitalize()} data"))
    hover = "%{y}. factor: %{x:.1%} of the rows<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, line_width=1.8)
    figure.update_traces(line_width=3, selector={"name": truth})
    figure.update_xaxes(title="share of the rows", range=[-0.03, 1.03], tickformat=".0%")
    figure.update_yaxes(autorange="reversed", rangemode="tozero")
    figure.update_yaxes(title="factor, most popular first", col=1)
    return framed(figure, 420, legend=below(-0.2) | {"title": None})


def speed_courses(rows: Sequence[Row]) -> go.Figure:
    """Draw what a fit has reached after each time; models are columns, measures are rows.

    `rows` are dicts with model, way, title, data_set, ``passes``, seconds, error and likelihood.
    """
    import pandas as pd
    import plotly.express as px

    table = pd.DataFrame(rows)
    methods = [name for name in table.columns if name not in MEASURES]
    figure = px.line(
        table.melt(methods, list(MEASURES), "measure"),
        *("seconds", "value"),
        color="title",
        line_group="data_set",
        facet_row="measure",
        facet_row_spacing=0.05,
        facet_col="model",
        facet_col_spacing=0.1,
        color_discrete_sequence=CATEGORICAL,
        custom_data=["passes"],
        log_x=True,
        markers=True,
        render_mode="svg",
    )
    figure.layout.annotations = figure.layout.annotations[: table["model"].nunique()]
    figure.for_each_annotation(lambda note: note.update(text=note.text.removeprefix("model=")))
    hover = "%{x:.3g} s, %{customdata[0]} iterations: %{y:.5g}<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, line_width=1.6, marker_size=5)
    figure.update_xaxes(dtick=1, exponentformat="power", title=None)
    figure.update_xaxes(title="processor seconds", row=1)
    figure.update_yaxes(title=None, matches=None, showticklabels=True)
    figure.update_yaxes(title=MEASURES["likelihood"], row=1, col=1)  # counted from below
    figure.update_yaxes(type="log", row=2).update_yaxes(title=MEASURES["error"], row=2, col=1)
    return framed(figure, 640, legend=below(-0.12) | {"title": None})


def accuracy_curves(rows: Sequence[Row]) -> go.Figure:
    """Draw the mean accuracy over the folds, and its standard deviation as error bars.

    `rows` are dicts with method, title, K, L, accuracy and accuracy_sd; the method "raw" (without
    K) is a horizontal line, and methods without a colour (the pattern alone, far below) are left
    out.
    """
    import pandas as pd
    import plotly.express as px

    there = pd.DataFrame([row for row in rows if row["method"] in ACCURACY_COLOURS])
    titles = {row["method"]: row["title"] for row in rows if row["method"] in ACCURACY_COLOURS}
    table = pd.concat([there.assign(panel=axis, place=there[axis]) for axis in PANELS])
    shift = {method: APART ** (i - len(titles) / 2) for i, method in enumerate(titles)}
    figure = px.line(
        table.assign(x=table["place"] * table["method"].map(shift)).sort_values("x"),
        *("x", "accuracy"),
        error_y="accuracy_sd",
        color="title",
        symbol="title",
        facet_col="panel",
        facet_col_spacing=0.04,
        color_discrete_map={title: ACCURACY_COLOURS[method] for method, title in titles.items()},
        category_orders={"title": [*titles.values()], "panel": [*PANELS]},
        custom_data=["K", "L", "accuracy_sd"],
        markers=True,
        render_mode="svg",
        log_x=True,
    )
    figure.layout.annotations = ()
    hover = "K = %{customdata[0]}, L = %{customdata[1]}: %{y:.1%}, sd %{customdata[2]:.1%}"
    figure.update_traces(hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>")
    figure.update_traces(line_width=1.8, marker_size=7, error_y={"thickness": 1.2, "width": 3})
    for column, (axis, title) in enumerate(PANELS.items(), start=1):
        shown: list[int] = []  # from the largest; crowded ones are left out
        for place in sorted(set(there[axis]), reverse=True):
            if not shown or shown[-1] / place > CROWDED:
                shown.append(int(place))
        figure.update_xaxes(title=title, tickvals=shown, ticktext=shown, matches=None, col=column)
    figure.update_xaxes(tickangle=0)
    for row in rows:
        if row["method"] == "raw":
            figure.add_hline(row["accuracy"], line=RAW, annotation_text=row["title"], col=1)
            figure.add_hline(row["accuracy"], line=RAW, col=2)
    figure.update_yaxes(tickformat=".0%").update_yaxes(title=None)
    figure.update_yaxes(title="accuracy on held-out rows", col=1)
    return framed(figure, 520, legend=below(-0.16) | {"title": None})


def brain_maps(brain: BrainMaps, titles: Mapping[str, str]) -> go.Figure:
    """Draw maps of all models, by their titles, and the reference as rows of horizontal slices."""
    shown = {titles[key]: brain.models[key].values for key in brain.different(titles)}
    if brain.stimulus is not None:
        t = brain.stimulus.t
        shown[TITLE_T] = np.where(t > brain.stimulus.threshold, t, 0.0)
    figure = make_subplots(
        rows=len(shown), cols=1, subplot_titles=list(shown), vertical_spacing=0.16 / len(shown)
    )
    for place, values in enumerate(shown.values(), start=1):
        picture = _mosaic(brain, values)
        figure.add_trace(go.Image(source=data_uri(picture), hoverinfo="skip"), row=place, col=1)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_annotations(font_size=13)
    framed(figure, len(shown) * (_ROW + _GAP) + 20, 26, 0, plot_bgcolor=CLEAR)
    return figure.update_layout(margin={"l": 0, "r": 0})


def _mosaic(brain: BrainMaps, values: np.ndarray) -> np.ndarray:
    """Slices from low to high, front up, the brain's left on the left."""

    def volume(values: np.ndarray) -> np.ndarray:
        filled = np.zeros(brain.mask.shape, dtype=np.float64)
        filled[brain.mask] = values
        return upright(filled, brain.affine)

    inside = upright(brain.mask, brain.affine)
    box = tuple(slice(max(int(at.min()) - 1, 0), int(at.max()) + 2) for at in np.nonzero(inside))
    rgb = painted(volume(brain.signal), volume(values), inside, strong(values))[box]
    heights = np.unique(np.linspace(0, rgb.shape[2] - 1, SLICES + 2).round().astype(int)[1:-1])
    return np.concatenate([rgb[:, ::-1, z].transpose(1, 0, 2) for z in heights], axis=1)


def brain_courses(brain: BrainMaps, titles: Mapping[str, str]) -> go.Figure:
    """Draw the stimulus and the components that follow it best over time."""
    figure = go.Figure()

    def add(course: np.ndarray, **look: Any) -> None:
        scaled = np.round(course / (course.std() or 1.0), 3)
        figure.add_scatter(x=brain.times, y=scaled, mode="lines", **look)

    if brain.stimulus is not None:
        look = {"name": "Stimulus, as blood answers it", "line": {"color": STIMULUS, "width": 1}}
        area = {"fill": "tozeroy", "fillcolor": "rgba(113,117,129,0.25)"}
        add(brain.stimulus.course, **look, **area)
    for key in brain.different(titles):
        line = {"color": BRAIN_COLOURS[key], "width": 2}
        line |= {"dash": "dot" if key == "ppca_k" else "solid"}
        add(brain.models[key].course, name=titles[key], line=line)
    figure.update_xaxes(title="seconds")
    figure.update_yaxes(title="standard deviations")
    return framed(figure, BRAIN_HEIGHT, 40, legend=above())


def brain_errors(brain: BrainMaps, titles: Mapping[str, str]) -> go.Figure:
    """Draw how many voxels have which error."""
    figure = go.Figure()
    edges = brain.edges
    hover = "%{y:,} voxels at %{x:.2f}<extra>%{fullData.name}</extra>"
    for key, title in titles.items():
        counts = {"x": (edges[:-1] + edges[1:]) / 2, "y": brain.models[key].errors}
        line = {"color": BRAIN_COLOURS[key], "shape": "hvh", "width": 2}
        figure.add_scatter(**counts, mode="lines", line=line, name=title, hovertemplate=hover)
    figure.update_xaxes(title="root mean square error of a voxel", rangemode="tozero")
    figure.update_yaxes(title="voxels", rangemode="tozero")
    return framed(figure, BRAIN_HEIGHT, 40, legend=above())


def thumbnail(figure: go.Figure) -> go.Figure:
    """Return a small copy without titles, ticks and legend; scatters become plain vectors."""
    every = [trace.to_plotly_json() for trace in figure.data]
    kinds = {"scatter", "scattergl"}
    total = sum(len(trace["x"]) for trace in every if trace["type"] in kinds)
    step = max(1, -(-total // MOST_POINTS))
    traces = [_fewer(trace, step) if trace["type"] in kinds else trace for trace in every]
    layout = figure.layout.to_plotly_json()
    layout.pop("annotations", None)
    small = go.Figure(traces, layout)
    small.update_traces(hoverinfo="skip", hovertemplate=None)
    small.update_traces(showscale=False, selector={"type": "heatmap"})
    bare = {"title": None, "showticklabels": False, "ticks": "", "showgrid": False}
    small.update_xaxes(**bare).update_yaxes(**bare)
    if layout.get("images") and layout.get("width"):
        # a sheet of images: its top, without stretching them
        top = layout["yaxis"]["range"][1]
        small.update_yaxes(range=[top - layout["width"] * CARD_HEIGHT / CARD_WIDTH, top])
    return small.update_layout(
        height=CARD_HEIGHT,
        width=None,
        autosize=True,
        showlegend=False,
        dragmode=False,
        title=None,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor=CLEAR,
    )


def _fewer(trace: dict[str, Any], step: int) -> dict[str, Any]:
    """Thin the points of a scatter; lines, which have few, stay whole."""
    marker = dict(trace.get("marker", {}))
    if np.ndim(marker.get("size", 0)):  # it says something
        return {**trace, "marker": marker | {"size": 0.35 * np.asarray(marker["size"])}}
    if "lines" in trace.get("mode", ""):
        return {**trace, "type": "scatter", "marker": marker | {"size": POINT}}
    n = len(trace["x"])
    kept = {
        name: np.asarray(trace[name])[::step] for name in EVERY_POINT if np.ndim(trace.get(name, 0))
    }
    for name in ("color", "symbol"):
        if np.ndim(marker.get(name, 0)) and len(marker[name]) == n:
            marker[name] = np.asarray(marker[name])[::step]
    return {**trace, **kept, "type": "scatter", "marker": marker | {"size": POINT}}
