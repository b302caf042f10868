"""A scene: what the canvas draws of a run, as a header, raw buffers and image sheets."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components.components import own_name, score_spread
from appca.analysis.fitted import FittedRun
from appca.canvas.scene import pictures
from appca.canvas.scene.axes import of_components
from appca.canvas.scene.layouts import first_of, layouts_of, map_layout
from appca.canvas.scene.sheets import Sheets, sheets_of
from appca.canvas.scene.texts import RowText, hover_buffers
from appca.canvas.scene.usage import Usage, usage_of
from appca.data.dataset import Dataset
from appca.plots import palette

FORMAT = 1
DOUBT_BELOW = 128  # of 255: a row whose support is less probable than 1/2 is drawn hollow


class Map(NamedTuple):
    """Coordinates of all rows in a plane."""

    title: str
    coordinates: np.ndarray  # (N, 2) or more, which are left out, or (N, 1)
    near: np.ndarray | None = None  # (N, m) rows nearest to each row in the data


OfARow = tuple[Mapping[str, palette.Colour], Mapping[str, Map], Sequence[RowText]]
Marks = dict[str, np.ndarray]
OfRun = tuple[list[dict[str, Any]], int | None, pictures.ComponentSheet | None, Marks]


class Scene(NamedTuple):
    """What the canvas is mounted with."""

    meta: dict[str, Any]
    buffers: dict[str, np.ndarray]  # contiguous and little-endian, as browsers read them
    sheets: Sheets | None
    component_sheet: bytes | None  # PNG
    lines: Sequence[RowText] = ()  # of the hover card


def scene_of(
    fitted: FittedRun,
    dataset: Dataset,
    colourings: Mapping[str, palette.Colour] | None = None,
    maps: Mapping[str, Map] | None = None,
    outside: np.ndarray | None = None,
    lines: Sequence[RowText] = (),
) -> Scene:
    """Lay a run and the rows of its data set out for the canvas.

    The first of the `colourings` is shown first. `maps` are by name of the layout: "pca", "umap".
    Rows `outside` (N,) are marked: new ones among those of the fit. `lines` are of the hover card.
    """
    usage = usage_of(fitted, pictured=dataset.image_shape is not None or dataset.is_ordered)
    columns = pictures.strongest_columns(fitted, dataset)
    spread = score_spread(fitted)
    entries = [
        {"number": k + 1, "name": own_name(fitted, k), "columns": strongest}
        | ({} if spread is None else {"spread": float(spread[k])})
        for k, strongest in enumerate(columns)
    ]
    doubt = np.clip(np.rint(fitted.membership * 255), 0, 255).astype(np.uint8)
    sheet = pictures.component_pictures(fitted, dataset)
    marks = {"doubt": doubt}
    if outside is not None and outside.any():
        marks["outside"] = outside.astype(np.uint8)
    of_a_row = (colourings or {}, maps or {}, lines)
    return scene_of_usage(usage, dataset, of_a_row, (entries, fitted.n_active, sheet, marks))


def scene_of_usage(
    usage: Usage,
    dataset: Dataset,
    of_a_row: OfARow,
    of_run: OfRun,
) -> Scene:
    """Lay out what rows use; the data set has their ids and images.

    `of_a_row` has colourings, maps and lines as `scene_of` takes them. `of_run` has entries of the
    components for the header, how many a row uses, or None where rows differ, pictures of the
    components, and marks (N,) uint8 of the rows: "doubt", the certainty of their supports, and
    "outside".
    """
    with ThreadPoolExecutor(1) as beside:  # each half takes a second where there are a million rows
        rows = beside.submit(_of_rows, dataset, usage, of_a_row)
        made = _of_run(usage, of_run)
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
    """Return what is known of the components, and the panels in which the rows stand."""
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
    """Return what is known of the rows by themselves: maps, colours, texts and images."""
    colourings, maps, lines = of_a_row
    headers: dict[str, Any] = {}
    buffers: dict[str, np.ndarray] = {}
    for name, drawn_map in maps.items():
        layout, buffers[f"map.{name}"] = map_layout(usage, drawn_map.title, drawn_map.coordinates)
        headers[name], buffers[f"order.{name}"] = layout.header, layout.order
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
        "words": {"row": noun, "rows": f"{noun}s"},
    }
    return Scene(meta, buffers | texts, sheets, None)


def _colouring(colour: palette.Colour) -> tuple[dict[str, Any], np.ndarray]:
    """Return a colouring for the header and its codes (N,); the last code is for missing values."""
    levels = palette.levels(colour)
    header: dict[str, Any] = {
        "kind": "category" if colour.kind == "category" else "quantity",
        "title": colour.name,
        "names": list(colour.names),
        "table": list(levels.table),
        "limits": levels.limits,
    }
    if len(set(levels.shapes)) > 1:
        header["shapes"] = list(levels.shapes)
    if colour.colours:
        header["steps"] = True
    return header, levels.codes
