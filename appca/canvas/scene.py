"""The scene of a run: the rows, colours, pictures and texts for the canvas."""

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components import own_name, patterns, principal_scores
from appca.analysis.fitted import FittedModel, FittedRun
from appca.analysis.groups import MEASURES, column_of
from appca.canvas.layouts import first_of, layouts_of, map_layout
from appca.canvas.panels import Usage, colour_choices, colour_of, of_components, usage_of
from appca.canvas.sheets import (
    FAST,
    SHEET_SIDE,
    Sheets,
    cell_of,
    is_named,
    on_sheet,
    resized,
    sheets_of,
    tile_of,
)
from appca.data.brain import has_places
from appca.data.dataset import Dataset
from appca.plots import style
from appca.plots.components import COURSE, picture_of, picture_shape, png, ranked_loadings
from appca.plots.style import Colour
from appca.words import capital, number, percent


class ComponentSheet(NamedTuple):
    """The pictures of all components on one sheet."""

    header: dict[str, Any]
    png: bytes


def component_pictures(fitted: FittedRun, dataset: Dataset) -> ComponentSheet | None:
    """Draw the components for the light and the dark theme; None for tables."""
    if picture_shape(dataset) is None or not len(fitted.components):
        return None
    light, dark = (picture_list(fitted, dataset, dark=on) for on in (False, True))
    return sheet_of(np.stack(light + dark), light[0].shape)


def picture_list(fitted: FittedRun, dataset: Dataset, *, dark: bool) -> list[np.ndarray]:
    """Return the components (K) as images, lines or brain maps; an empty list for tables."""
    directions = patterns(fitted, picture_shape(dataset))
    drawn = [picture_of(direction, dataset, dark=dark) for direction in directions]
    pictures = [picture for picture in drawn if picture is not None]
    if not has_places(dataset):
        return pictures
    from appca.plots.components import slices_of

    maps = slices_of(dataset, fitted.scores, COURSE, dark=dark)
    return [np.concatenate(pair) for pair in zip(pictures, maps, strict=True)]


def sheet_of(drawn: np.ndarray, shape: tuple[int, ...]) -> ComponentSheet | None:
    """Arrange pictures (2K, h, w, 3), light then dark, on a sheet; None if they do not fit."""
    tile = tile_of(shape)
    cell = cell_of(max(tile))
    if len(drawn) > (SHEET_SIDE // cell) ** 2:
        return None
    both = resized(drawn, tile)
    seams = [((cell - side) // 2, -(-(cell - side) // 2)) for side in tile]
    cells = np.pad(both, [(0, 0), *seams, (0, 0)], mode="edge")  # avoids dark rims when enlarged
    columns = SHEET_SIDE // cell
    header = {"tile": [*tile, 3], "cell": cell, "columns": min(columns, len(both))}
    header |= {"per_sheet": len(both), "count": 1}
    return ComponentSheet(header, png(on_sheet(cells, cell, columns), compress_level=FAST))


def heaviest(W: np.ndarray, names: tuple[str, ...] | None) -> list[list[tuple[str, float]]]:
    """Return the features with the largest weights, from -1 to 1, of each component (K, D)."""
    return [
        [
            (loading.name, round(math.copysign(loading.share, loading.value), 3))
            for loading in ranked_loadings(weights, names)
        ]
        for weights in W
    ]


MOST_ROWS = 100_000  # maximum number of rows whose texts are sent
MOST_NAMES = 1_000


class RowText(NamedTuple):
    """One line of the hover card."""

    title: str
    values: np.ndarray  # (N,) numbers, texts, or codes into names
    names: tuple[str, ...] = ()


def hover_buffers(
    ids: np.ndarray, lines: Sequence[RowText]
) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """Return header and buffers of hover texts, without ids that are row numbers, or nothing."""
    if len(ids) > MOST_ROWS:
        return None, {}
    buffers, header = {}, []
    for i, line in enumerate(lines):
        name = f"hover.{i}"
        kind, buffers[name] = _buffer(line)
        entry: dict[str, Any] = {"title": line.title, "kind": kind, "buffer": name}
        header.append(entry | ({"names": list(line.names)} if kind == "category" else {}))
    counting = np.array_equal(ids, np.arange(len(ids)).astype(str))
    if not counting:
        buffers["hover.ids"] = _text_buffer(ids)
    return {"ids": None if counting else "hover.ids", "lines": header}, buffers


def texts_of(ids: np.ndarray, lines: Sequence[RowText], rows: np.ndarray) -> dict[str, Any]:
    """Return the hover texts of the given rows, per line, JSON-able."""
    listed = []
    for line in lines:
        values = line.values[rows].tolist()
        if line.names:
            values = [line.names[code] if code >= 0 else None for code in values]
        plain = [None if isinstance(v, float) and not np.isfinite(v) else v for v in values]
        listed.append({"title": line.title, "values": plain})
    return {"ids": ids[rows].tolist(), "lines": listed}


def _buffer(line: RowText) -> tuple[str, np.ndarray]:
    if line.names and len(line.names) <= MOST_NAMES:
        count = len(line.names)
        dtype = np.uint8 if count < 256 else np.uint16
        return "category", np.where(line.values < 0, count, line.values).astype(dtype)
    if line.names:
        return "text", _text_buffer(np.array([*line.names, ""])[line.values])
    if line.values.dtype.kind in "OU":
        return "text", _text_buffer(line.values)
    return "number", line.values.astype(np.float32)


def _text_buffer(texts: np.ndarray) -> np.ndarray:
    return np.frombuffer(json.dumps(texts.tolist(), ensure_ascii=False).encode(), np.uint8)


FORMAT = 1
DOUBT_BELOW = 128  # of 255: rows whose support is less probable than 1/2 are drawn hollow


class Map(NamedTuple):
    """Coordinates of all rows in a plane."""

    title: str
    coordinates: np.ndarray  # (N, 1) or (N, 2); more columns are ignored
    near: np.ndarray | None = None  # (N, m) rows nearest to each row in the data
    axes: Sequence[Sequence[str]] = ()  # names of x and y, the longest first
    has_one_unit: bool = True  # whether distances along x and y can be compared


OfARow = tuple[Mapping[str, style.Colour], Mapping[str, Map], Sequence[RowText]]
Marks = dict[str, np.ndarray]
OfRun = tuple[list[dict[str, Any]], int | None, ComponentSheet | None, Marks]


class Scene(NamedTuple):
    """Header and buffers for the canvas."""

    meta: dict[str, Any]
    buffers: dict[str, np.ndarray]  # contiguous and little-endian, as browsers expect
    sheets: Sheets | None
    component_sheet: bytes | None  # PNG
    lines: Sequence[RowText] = ()  # lines of the hover card


def scene_of_usage(usage: Usage, dataset: Dataset, of_a_row: OfARow, of_run: OfRun) -> Scene:
    """Build the scene of a `Usage`; the data set contains the ids and images of its rows.

    `of_a_row`: colourings (the first is shown first), maps by layout name, lines of the hover card.
    `of_run`: header entries of the components, L (None if rows differ), pictures of the components,
    and marks (N,) uint8: "doubt" (255 x membership) and "outside".
    """
    with ThreadPoolExecutor(1) as beside:  # both take a second for a million rows
        rows, made = beside.submit(_of_rows, dataset, usage, of_a_row), _of_run(usage, of_run)
    of_rows = rows.result()
    layouts = made.meta["layouts"] | of_rows.meta["layouts"]
    buffers = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in (made.buffers | of_rows.buffers).items()
    }
    kinds = {name: [array.dtype.str[1:], array.size] for name, array in buffers.items()}
    meta = of_rows.meta | made.meta | {"layouts": layouts, "buffers": kinds}
    return Scene(meta, buffers, of_rows.sheets, made.component_sheet, of_a_row[2])


def _of_run(usage: Usage, of_run: OfRun) -> Scene:
    entries, n_active, drawn, marks = of_run
    layouts = layouts_of(usage, of_components(usage))
    buffers = {f"order.{name}": layout.order for name, layout in layouts.items()}
    buffers |= {"components": usage.slots, "scores": usage.scores} | marks
    meta = {
        "components": entries,
        "n_active": n_active,
        "first": first_of(layouts, usage.varies),
        "layouts": {name: layout.header for name, layout in layouts.items()},
        "component_pictures": None if drawn is None else drawn.header,
    }
    return Scene(meta, buffers, None, None if drawn is None else drawn.png)


def _of_rows(dataset: Dataset, usage: Usage, of_a_row: OfARow) -> Scene:
    colourings, maps, lines = of_a_row
    headers: dict[str, Any] = {}
    buffers: dict[str, np.ndarray] = {}
    for name, drawn_map in maps.items():
        of = drawn_map.title, drawn_map.coordinates, drawn_map.has_one_unit
        layout, buffers[f"map.{name}"] = map_layout(usage, *of)
        headers[name] = layout.header | ({"axes": drawn_map.axes} if drawn_map.axes else {})
        buffers[f"order.{name}"] = layout.order
        if drawn_map.near is not None:
            buffers["near"] = drawn_map.near.astype(np.uint32).ravel()
    colours = {}
    for name, colour in colourings.items():
        colours[name], buffers[f"codes.{name}"] = _colouring(colour)
    hover, texts = hover_buffers(dataset.ids, lines)
    sheets = sheets_of(dataset, usage.priority)
    noun = "row" if dataset.image_shape is None else "image"
    meta = {
        "format": FORMAT,
        "rows": dataset.n_rows,
        "score_unit": usage.unit,
        "most_used": usage.most_used,
        "doubt_below": DOUBT_BELOW,
        "layouts": headers,
        "colourings": colours,
        "hover": hover,
        "sheets": None if sheets is None else sheets.header,
        "words": {"row": noun, "rows": f"{noun}s", "first": int(dataset.ids[0] != "0")},
    }
    return Scene(meta, buffers | texts, sheets, None)


def _colouring(colour: style.Colour) -> tuple[dict[str, Any], np.ndarray]:
    levels = style.levels(colour)
    header: dict[str, Any] = {
        "kind": "category" if colour.kind == "category" else "quantity",
        "title": colour.name,
        "names": list(colour.names),
        "table": list(levels.table),
        "limits": levels.limits,
    }
    if len(set(levels.shapes)) > 1:
        header["shapes"] = list(levels.shapes)
    if any(levels.clipped):
        header["clipped"] = list(levels.clipped)
    if colour.colours:
        header["steps"] = True
    return header, levels.codes


def _score_spread(model: FittedModel) -> np.ndarray | None:
    """Return the posterior standard deviation (K,) of a score if it is that of all rows."""
    W, noise = model.components.astype(np.float64), np.unique(model.noise_variance)
    scaled = model.row_scale_values is not None
    if scaled or len(noise) != 1 or not np.allclose(W @ W.T, np.eye(len(W)), atol=1e-4):
        return None
    tau2 = np.maximum(model.latent_variance, np.finfo(float).tiny)
    return np.asarray(np.sqrt(tau2 * noise / (tau2 + noise)))


def scene_shown(
    dataset: Dataset,
    fitted: FittedRun,
    maps: Mapping[str, Map] | None = None,
    *,
    outside: np.ndarray | None = None,
    colourings: Mapping[str, Colour] | None = None,
) -> Scene:
    """Lay out a run as pages show it, with components as `numbering.numbered` returns them.

    Keys of `maps` are "pca", "features" and "umap". Rows where `outside` (N,) is true are marked as
    beyond the fit's limits. `colourings` are added to `colour_choices`.
    """
    choices = {key: colour_of(dataset, fitted, key) for key in colour_choices(dataset)}
    choices |= colourings or {}
    lines = label_lines(dataset)
    lines += [RowText(capital(key), column_of(dataset, fitted, key).values) for key in MEASURES]
    pictured, spread = picture_shape(dataset) is not None, _score_spread(fitted)
    columns: list[list[tuple[str, float]]] = [[] for _ in fitted.components]
    if not pictured:
        columns = heaviest(patterns(fitted, None), dataset.feature_names)
    entries: list[dict[str, Any]] = [
        {"number": k + 1, "name": own_name(fitted, k), "columns": strongest}
        | ({} if spread is None else {"spread": float(spread[k])})
        for k, strongest in enumerate(columns)
    ]
    marks = {"doubt": np.clip(np.rint(fitted.membership * 255), 0, 255).astype(np.uint8)}
    if outside is not None and outside.any():
        marks["outside"] = outside.astype(np.uint8)
    of_run = entries, fitted.n_active, component_pictures(fitted, dataset), marks
    usage = usage_of(fitted, pictured=pictured or is_named(dataset))
    return scene_of_usage(usage, dataset, (choices, maps or {}, lines), of_run)


def principal_map(Y: Any, names: tuple[str, ...] | None = None) -> Map:
    """Map rows Y, or the blocks that Y() yields, by PCA; the axes name their largest weights."""
    scores, shares, W = principal_scores(Y)
    listed = [[f"PC {k + 1} ({percent(share, 1)})"] for k, share in enumerate(shares[:2])]
    heavy = heaviest(W, names) if names is not None and len(names) == W.shape[1] else ()
    for axis, weights in zip(listed, heavy, strict=False):
        strongest = ["−" * (weight < 0) + name for name, weight in weights]
        axis[:0] = [f"{axis[0]}: {', '.join(strongest[:n])}" for n in (3, 2, 1)]
    return Map("PCA", scores, axes=listed)


def axes_map(dataset: Dataset, fitted: FittedRun, features: list[int]) -> Map:
    """Map rows by two features, prepared as in the fit; the model fills missing values."""
    X, prepare = fitted.completed(dataset.X, dataset.missing), fitted.preprocessing.prepare
    values, way, axes = X[:, features], "", list[list[str]]()
    if prepare is not None and not prepare.is_by_row:
        if prepare.learned.shape[-1:] == X.shape[1:]:  # numbers for each feature
            prepare = prepare._replace(learned=prepare.learned[..., features])
        values = prepare.apply(values.astype(np.float64))
        way = f" as {prepare.title}"
    for j in features:
        ends = " to ".join(number(end) for end in (X[:, j].min(), X[:, j].max()))
        axes.append([f"{(name := dataset.column_names[j])}, {ends}{way}", f"{name}{way}", name])
    return Map("Two features", values, axes=axes, has_one_unit=False)


def label_lines(dataset: Dataset) -> list[RowText]:
    """Return the lines of the hover card that do not need a fit."""
    classes = {name: dataset.classes(name) for name in dataset.labels}
    return [RowText(name, codes, tuple(names)) for name, (names, codes) in classes.items()]


def projected(dataset: Dataset, fitted: FittedRun, rows: np.ndarray) -> np.ndarray:
    """Project rows on all components, (n, K), including unused ones."""
    centred = fitted.preprocessing.transform(dataset.X[rows]) - fitted.mean
    return np.asarray(centred @ fitted.components.T)
