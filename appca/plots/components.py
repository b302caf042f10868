"""Figures of components: images, loadings, slices, associations, sharing."""

import base64
import io
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from appca.data.brain import MEAN_SIGNAL, upright, voxels_of
from appca.data.dataset import Dataset
from appca.ordered import GREY, lines_of_rows
from appca.plots.style import CLEAR, category_axis, chart, plain
from appca.words import counted, percent, shortened

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from appca.plots.still import StillFigure

RISES, FALLS, CLASSES = (200, 60, 40), (47, 111, 179), (115, 51, 168)
MOST_NAMES = 8
LINE, ABOVE = 24, 56  # pixels: height of a line, and of the heading
RING, MOST_LETTERS = 13, 26


def association_map(tests: "pd.DataFrame", components: Sequence[str]) -> "go.Figure":
    """Draw one line per column of the table, in the order of the tests, and K components across.

    `tests` are rows of `appca.association`; cells without a test are blank. The opacity of a
    colour shows the effect; squares are paler than rings, so that rings are visible.
    """
    columns, K = list(dict.fromkeys(tests["column"])), len(components)
    x = tests["component"].to_numpy()
    y = tests["column"].map({column: place for place, column in enumerate(columns)}).to_numpy()
    use = (tests["part"] == "use").to_numpy()
    colours, texts = [], []
    for test, square in zip(tests.to_dict("records"), use, strict=True):
        rgb = {"rises": RISES, "falls": FALLS}.get(test["direction"], CLASSES)
        strength = 0.06 + 0.5 * test["effect"] if square else 0.35 + 0.65 * test["effect"]
        colours.append("rgba({}, {}, {}, {:.2f})".format(*rgb, strength))
        name = shortened(components[test["component"] - 1])
        what = f"{shortened(test['column'])}, {'use of' if square else 'score on'} {name}"
        effect = f"{test['direction']}, effect {test['effect']:.2f}, {test['n']:,} rows"
        texts.append(plain(f"{what}: {effect}"))
    coloured, hover, n = np.array(colours), np.array(texts), int(use.sum())
    cells, in_cells = np.full((len(columns), K), np.nan), np.full((len(columns), K), "", object)
    cells[y[use], x[use] - 1], in_cells[y[use], x[use] - 1] = np.arange(n), hover[use]
    shades = [*coloured[use]] or [CLEAR]
    scale = [*zip(np.linspace(0, 1, len(shades)), shades, strict=True), (1, shades[-1])]
    squares: dict[str, Any] = {"type": "heatmap", "z": cells, "x": np.arange(1, K + 1)}
    squares |= {"y": np.arange(len(columns)), "text": in_cells, "colorscale": scale[: max(n, 2)]}
    squares |= {"zmin": 0, "zmax": max(n - 1, 1), "showscale": False, "hoverongaps": False}
    squares |= {"name": "use", "xgap": 2, "ygap": 2}
    marker = {"symbol": "circle-open", "size": RING, "color": coloured[~use], "opacity": 1}
    rings = {"type": "scatter", "x": x[~use], "y": y[~use], "mode": "markers", "text": hover[~use]}
    rings |= {"name": "score", "marker": marker | {"line": {"width": 3}}}
    heads = [plain(shortened(name, MOST_LETTERS).removeprefix("component ")) for name in components]
    if K > MOST_NAMES:  # only numbers fit
        heads = [str(number) for number in range(1, K + 1)]
    across = {"tickvals": list(range(1, K + 1)), "ticktext": heads, "title": "component"}
    across |= {"side": "top", "range": [0.5, K + 0.5], "showgrid": False, "zeroline": False}
    height, down = LINE * len(columns) + ABOVE, category_axis(columns, MOST_LETTERS)
    look = {"plot_bgcolor": CLEAR, "showlegend": False, "bottom": 10}
    figure = chart([squares, rings], height, across, down, top=ABOVE, **look)
    return figure.update_traces(hovertemplate="%{text}<extra></extra>")


COURSE = (64, 96)  # height and width in pixels of an ordered component
SPARK = (24, 32)  # height and width in pixels of a row's sparkline
SCALED_BY, UNLIKE = 500, 5.0  # maximum number of rows that set the scale; its times a row's
NEGATIVE, ZERO, POSITIVE = LIGHT = (47, 111, 179), (250, 250, 250), (200, 60, 40)
DARK = (106, 169, 233), (22, 29, 39), (242, 133, 123)  # a zero is as dark as a panel's background


class Loading(NamedTuple):
    """Weight of one feature in a component."""

    name: str
    value: float
    share: float  # |value| relative to the largest of the component, 0 .. 1
    place: int  # index of the feature


def diverging(values: np.ndarray, limit: float | None = None, *, dark: bool = False) -> np.ndarray:
    """Return values as colours, uint8 (..., 3): blue if negative, neutral at zero, red if positive.

    `limit` is the magnitude of full colour, by default the largest; `dark` is for a dark page.
    """
    values = np.asarray(values, dtype=np.float64)
    limit = float(np.abs(values).max(initial=0)) if limit is None else limit
    strength = np.clip(values / limit, -1, 1)[..., None] if limit > 0 else values[..., None] * 0
    low, zero, high = (np.array(end, np.float64) for end in (DARK if dark else LIGHT))
    end = np.where(strength < 0, low, high)
    colours: np.ndarray = np.round(zero + (end - zero) * np.abs(strength))
    return colours.astype(np.uint8)


def component_image(
    weights: np.ndarray, shape: tuple[int, ...], limit: float | None = None, *, dark: bool = False
) -> np.ndarray:
    """Return a component (D,) as an image (h, w, 3): `diverging`, or colours around mid-grey."""
    pixels = np.asarray(weights).reshape(shape)
    if pixels.ndim == 2:
        return diverging(pixels, limit, dark=dark)
    most = limit or float(np.abs(pixels).max()) or 1.0
    return np.rint(127.5 * (1 + np.clip(pixels / most, -1, 1))).astype(np.uint8)


def course_image(component: np.ndarray, *, dark: bool = False) -> np.ndarray:
    """Return a component (D,) of ordered features as a line around zero, uint8 (h, w, 3)."""
    limit = float(np.abs(component).max(initial=0)) or 1.0
    ink = lines_of_rows(component[None], (-limit / 0.9, limit / 0.9), COURSE)[0]
    ink[COURSE[0] // 2] = np.maximum(ink[COURSE[0] // 2], 0.25)
    return diverging(-ink, 1.0, dark=dark)


def row_lines(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return rows of ordered features as sparklines, uint8 (n, h, w), bright on black."""
    some = dataset.X[:: max(1, dataset.n_rows // SCALED_BY)]
    low, high = (float(end) for end in np.percentile(some, [0.5, 99.5]))
    margin, values = 0.08 * (high - low), np.asarray(dataset.X[rows], np.float64)
    scale = low - margin, high + margin
    if high - low > UNLIKE * np.median(np.ptp(some, axis=1)):  # each row has a scale of its own
        lowest, highest = (end(values, axis=1)[:, None] for end in (np.min, np.max))
        values, scale = (values - lowest) / np.maximum(highest - lowest, 1e-300), (-0.08, 1.08)
    return np.round(255 * lines_of_rows(values, scale, SPARK)).astype(np.uint8)


def picture_shape(dataset: Dataset) -> tuple[int, ...] | None:
    """Return the shape in which rows are drawn: (h, w[, 3]) as images, (D,) as lines."""
    return dataset.image_shape or ((dataset.n_features,) if dataset.is_ordered else None)


def picture_of(component: np.ndarray, dataset: Dataset, *, dark: bool = False) -> np.ndarray | None:
    """Return a component (D,) as an image or a line, like its data; None for tables."""
    if dataset.image_shape is not None:
        return component_image(component, dataset.image_shape, dark=dark)
    return course_image(component, dark=dark) if dataset.is_ordered else None


def ranked_loadings(
    component: np.ndarray, names: tuple[str, ...] | None, n: int = 4
) -> list[Loading]:
    """Return the `n` features of the largest weights (D,), if unnamed called "feature 1", ..."""
    weights = np.asarray(component, np.float64)
    shares = np.abs(weights) / max(np.abs(weights).max(initial=0), np.finfo(float).tiny)
    order = np.argsort(-shares, kind="stable")[:n].tolist()
    called = [names[j] if names else f"feature {j + 1}" for j in order]
    return [*map(Loading, called, weights[order].tolist(), shares[order].tolist(), order)]


def montage(images: np.ndarray, columns: int, gap: int = 1, ground: int = 255) -> np.ndarray:
    """Arrange uint8 images (n, h, w[, c]) in a grid; gaps are `gap` pixels of grey `ground`."""
    n, h, w, *colour = images.shape
    lines = -(-n // columns)
    tiles = np.full((lines * columns, h + gap, w + gap, *colour), ground, np.uint8)
    tiles[:n, :h, :w] = images
    sheet = tiles.reshape(lines, columns, h + gap, w + gap, *colour).swapaxes(1, 2)
    return sheet.reshape(lines * (h + gap), -1, *colour)[: -gap or None, : -gap or None]


def enlarged(images: np.ndarray, side: int) -> np.ndarray:
    """Enlarge small images (n, h, w[, 3]) by an integer factor, so that pixels stay square."""
    factor = max(1, -(-side // max(images.shape[1:3])))
    return images.repeat(factor, axis=1).repeat(factor, axis=2)


def png(image: np.ndarray, compress_level: int = 6) -> bytes:
    """Encode a uint8 image (h, w) or (h, w, 3) as PNG; a low level is faster but larger."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=compress_level)
    return buffer.getvalue()


def data_uri(image: np.ndarray | bytes, kind: str = "png") -> str:
    """Return a picture, or its PNG, as a data URI, which needs no further request."""
    content = image if isinstance(image, bytes) else png(image)
    return f"data:image/{kind};base64," + base64.b64encode(content).decode()


COLUMNS, BARS = 6, 10
LEAST_SIDE = 112  # minimum side in pixels of an image in the figure


def component_figure(
    patterns: np.ndarray,
    titles: Sequence[str],
    image_shape: tuple[int, ...] | None = None,
    feature_names: tuple[str, ...] | None = None,
    *,
    axis: tuple[np.ndarray, str] | None = None,
    dark: bool = False,
) -> "StillFigure":
    """Draw every component: as an image, a curve, or its strongest features.

    `patterns` (K, D) are in units of the data, or of the scaled features; titles may have two
    lines. Images, for rows of `image_shape`, are blue below zero and red above; `axis` contains the
    places (D,) of ordered features and their unit, see `Dataset.axis`.
    """
    from appca.plots.still import StillFigure, styled

    per_line, wide, high = (COLUMNS, 1.5, 1.95) if image_shape is not None else (3, 3.6, 2.6)
    columns = min(per_line, len(patterns))
    lines = -(-len(patterns) // columns)
    with styled(dark=dark):
        figure = StillFigure(figsize=(columns * wide, lines * high), layout="constrained")
        every = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes in every[len(patterns) :]:
            axes.set_axis_off()
        for axes, pattern, title in zip(every, patterns, titles, strict=False):
            axes.set_title(title, loc="left", fontsize=9, parse_math=False)
            if image_shape is not None:
                axes.imshow(component_image(pattern, image_shape, dark=dark))
                axes.set_axis_off()
            elif axis is not None:
                axes.plot(axis[0], pattern, linewidth=0.8)
                axes.axhline(0, color="gray", linewidth=0.5)
                axes.set_xlabel(axis[1], fontsize=8, parse_math=False)
                axes.set_xlim(*axis[0][[0, -1]])  # from the first column to the last
                axes.spines[["top", "right"]].set_visible(False)
            else:
                loadings = ranked_loadings(pattern, feature_names, BARS)[::-1]
                values = np.array([each.value for each in loadings])
                colours = diverging(values, float(np.abs(pattern).max()), dark=dark) / 255
                axes.barh(range(len(values)), values, color=colours)
                names = [each.name[:32] for each in loadings]
                axes.set_yticks(range(len(values)), names, parse_math=False)
                axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def component_sheet(patterns: np.ndarray, image_shape: tuple[int, ...]) -> np.ndarray:
    """Return the images of components (K, D) as one grid, uint8 (h, w, 3)."""
    images = np.stack([component_image(pattern, image_shape) for pattern in patterns])
    columns = min(len(images), max(COLUMNS, int(np.ceil(np.sqrt(len(images))))))
    return montage(enlarged(images, LEAST_SIDE), columns, gap=8)


# One hue of increasing opacity is legible on black and on white.
FAINT, STRONG = "rgba(63, 144, 218, 0.22)", "rgba(63, 144, 218, 1)"
MOST_SHARING_LETTERS = 14


def circles(
    shared: np.ndarray, names: Sequence[str], counts: np.ndarray, expected: float
) -> "go.Figure":
    """Draw a circle for each pair of classes; its area shows how many components rows share.

    `shared` (C, C) contains mean numbers of shared components, blank for NaN; `counts` (C,) are the
    rows per class. Rings show `expected`, the number if classes did not matter. The colour scale
    ranges from the smallest to the largest number.
    """
    n, cell, beside, scale = len(names), 76, 32, 84  # pixels: cell, names, colour scale
    rows, columns = np.nonzero(np.isfinite(shared))
    values = shared[rows, columns]
    largest = max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    size = 0.9 * cell / np.sqrt(max(largest, expected))
    sized = [f"{plain(shortened(names[c]))} ({counted(int(counts[c]), 'row')})" for c in range(n)]
    texts = [
        f"{sized[a]} and {sized[b]}:<br>"
        f"{shared[a, b]:.2f} components shared, {percent(shared[a, b] / largest)} of the most"
        for a, b in zip(rows, columns, strict=True)
    ]
    bar = {"thickness": 10, "title": {"text": "shared"}, "nticks": 6}
    filled = {"color": values, "colorscale": [[0, FAINT], [1, STRONG]], "opacity": 1}
    filled |= {"size": size * np.sqrt(values), "line": {"width": 0}, "colorbar": bar}
    even = np.full(len(values), size * np.sqrt(expected))  # thumbnails can scale arrays only
    ring = {"symbol": "circle-open", "size": even, "color": GREY}
    place = {"type": "scatter", "x": columns, "y": rows, "mode": "markers"}
    dots = place | {"marker": filled, "text": texts, "hovertemplate": "%{text}<extra></extra>"}
    rings = place | {"marker": ring, "hoverinfo": "skip"}
    down, high = category_axis(names, MOST_SHARING_LETTERS), cell * n + beside
    margin = {"l": beside, "r": scale, "t": 0, "b": beside, "autoexpand": False}
    look = {"width": high + scale, "showlegend": False, "plot_bgcolor": CLEAR}
    figure = chart([dots, rings], high, down | {"range": [-0.5, n - 0.5]}, down, **look)
    return figure.update_layout(margin=margin)


def popularity_bars(shares: np.ndarray, components: Sequence[str], even: float) -> "go.Figure":
    """Draw the share (K,) of rows of each component, most popular first, and the mean, dashed."""
    order = np.argsort(-shares, kind="stable")
    texts = [[plain(shortened(components[k])), percent(shares[k], 1)] for k in order]
    hover = "%{customdata[0]}: used by %{customdata[1]} of the rows<extra></extra>"
    bars = {"type": "bar", "x": np.arange(1, len(shares) + 1), "y": shares[order]}
    bars |= {"customdata": texts, "marker": {"color": "#3f90da"}, "hovertemplate": hover}
    across = {"title": "component, most popular first", "showgrid": False} | _ticks(order + 1)
    down = {"title": "share of the rows", "tickformat": ".0%", "rangemode": "tozero"}
    figure = chart([bars], 280, across, down, bottom=10, bargap=0.15)
    return figure.add_hline(even, line={"color": GREY, "dash": "dash", "width": 1.5})


def popularity_map(
    shares: np.ndarray,
    names: Sequence[str],
    components: Sequence[str],
    of: tuple[str, str, str] = ("used by", "rows", ""),
) -> "go.Figure":
    """Draw the share (C, K) of each class's rows that use each component as a heat map.

    `of` contains the text before a number, the title of the colour scale, and the name of an extra
    last column.
    """
    places = np.arange(1, len(components) + 1)
    numbers = [*places[:-1], of[2] or places[-1]]
    texts = [
        [f"{percent(share, 1)} of class {plain(name)}" for share in line]
        for name, line in zip(names, shares, strict=True)
    ]
    cells: dict[str, Any] = {"type": "heatmap", "z": shares, "x": places, "zmin": 0, "zmax": 1}
    cells |= {"y": np.arange(len(names)), "xgap": int(len(numbers) <= 60), "ygap": 1}
    cells |= {"text": texts, "colorscale": [[0, "rgba(63, 144, 218, 0.04)"], [1, STRONG]]}
    about = [plain(shortened(name)) for name in components]
    cells["customdata"] = np.broadcast_to(about, shares.shape)
    cells["hovertemplate"] = f"%{{customdata}}: {of[0]} %{{text}}<extra></extra>"
    cells["colorbar"] = {"tickformat": ".0%", "thickness": 10, "title": {"text": of[1]}}
    height = max(110, np.clip(560 / len(names), 14, 34) * len(names))  # pixels
    down = category_axis(names, 2 * MOST_SHARING_LETTERS if of[2] else MOST_SHARING_LETTERS)
    across = {"title": "component", "showgrid": False} | _ticks(numbers)
    return chart([cells], int(height + 70), across, down, bottom=10, plot_bgcolor=CLEAR)


def _ticks(numbers: Iterable[Any]) -> dict[str, Any]:
    texts = [*map(str, numbers)]
    return {} if len(texts) > 30 else {"tickvals": [*range(1, len(texts) + 1)], "ticktext": texts}


# colours by strength from 0 to 1
WARM = ((150, 20, 20), (235, 90, 20), (255, 225, 90))
COLD = ((20, 50, 140), (40, 130, 220), (150, 225, 255))


def painted(signal: np.ndarray, values: np.ndarray, inside: np.ndarray, limit: float) -> np.ndarray:
    """Overlay values on a grey picture: warm if positive, cold if negative, transparent at zero.

    Pixels not `inside` the mask are transparent; `limit` is the magnitude of full colour. Returns
    uint8 (..., 4): red, green, blue and opacity.
    """
    top = float(np.quantile(signal[inside], 0.99)) if inside.any() else 1.0
    grey = np.clip(45 + 165 * signal / (top or 1.0), 0, 220)
    strength = np.clip(np.abs(values) / (limit or 1.0), 0, 1)
    channels = [np.where(inside, 255, 0)]
    for warm, cold in zip(zip(*WARM, strict=True), zip(*COLD, strict=True), strict=True):
        ends = (np.interp(strength, (0, 0.5, 1), stops) for stops in (warm, cold))
        colour = np.where(values > 0, *ends)
        channels.insert(-1, np.rint(grey + (colour - grey) * np.sqrt(strength)))
    return np.stack(channels, axis=-1).astype(np.uint8)


def volume_of(values: np.ndarray, places: Any, grid: Sequence[int], affine: Any) -> np.ndarray:
    """Return values of voxels at `places` of a grid as an upright volume, 0 elsewhere."""
    volume = np.zeros(grid, dtype=np.float64)
    volume[places] = values
    return upright(volume, affine)


def strong(values: np.ndarray) -> float:
    """Return the magnitude of full colour, robust to a few extreme values."""
    there = np.abs(values[values != 0])
    return float(np.quantile(there, 0.995)) if there.size else 1.0


def slices_of(
    dataset: Dataset, scores: np.ndarray, shape: tuple[int, int], *, dark: bool
) -> list[np.ndarray]:
    """Return the slice of each component with the largest scores (V, K), uint8 (h, w, 3)."""
    facts = dataset.provenance
    places, affine = tuple(voxels_of(dataset).T), np.array(facts["affine"], float).reshape(4, 4)
    signal = dataset.labels.get(MEAN_SIGNAL, np.ones(dataset.n_rows))
    volume = partial(volume_of, places=places, grid=facts["grid"], affine=affine)
    inside, grey = volume(np.ones(dataset.n_rows)) > 0, volume(signal)
    box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(inside.any(axis=2)))
    ground, size = (*(DARK if dark else LIGHT)[1], 255), shape[::-1]
    pictures = []
    for column in scores.T:
        values = volume(column)
        height = int(np.square(values).sum(axis=(0, 1)).argmax())
        cut = painted(grey[..., height], values[..., height], inside[..., height], strong(column))
        cut = np.ascontiguousarray(cut[box][:, ::-1].transpose(1, 0, 2))
        picture, nearest = Image.new("RGBA", size, ground), Image.Resampling.NEAREST
        picture.alpha_composite(ImageOps.pad(Image.fromarray(cut), size, nearest, (0, 0, 0, 0)))
        pictures.append(np.asarray(picture.convert("RGB")))
    return pictures
