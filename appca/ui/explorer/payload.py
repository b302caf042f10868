"""What is sent to the browser: parcels of raw arrays, each with a digest as its name.

Geometry, hover texts, sprite order and sprite sheets travel as parcels of their own, so a new
colouring or selection sends none of them again. A parcel is a small JSON header and raw buffers.
"""

import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from appca.plots import palette
from appca.plots.explore import atlas, sprites
from appca.plots.explore.panel import Panel, check
from appca.plots.explore.points import traces

NO_CELL = 255


class Parcel(NamedTuple):
    """Bytes that the browser keeps under a name."""

    name: str
    data: bytes


class HoverColumn(NamedTuple):
    """One line of the hover card."""

    name: str
    values: np.ndarray  # (N,) numbers, or codes into names
    names: tuple[str, ...] | None = None


class HoverData(NamedTuple):
    """What the hover card says of every row beside its image."""

    ids: np.ndarray  # (N,) str
    columns: Sequence[HoverColumn] = ()


class ExplorerView(NamedTuple):
    """How the panels are shown; cheap to change."""

    key: str  # the zoom is remembered under it
    revision: str  # the zoom is kept as long as this stays the same
    thumbnail_px: int
    point_size: float
    columns: int
    height: int | None  # of one panel, pixels


class Buffers:
    """Raw arrays to be sent, each distinct one once."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []
        self._places: dict[bytes, int] = {}

    def add(self, array: np.ndarray) -> dict[str, int]:
        """Keep an array and give the reference that stands for it in the header."""
        array = np.ascontiguousarray(array)
        digest = hashlib.blake2b(array.tobytes() + array.dtype.str.encode(), digest_size=16)
        place = self._places.setdefault(digest.digest(), len(self.parts))
        if place == len(self.parts):
            self.parts.append(array)
        return {"part": place}

    def pull(self, spec: Any) -> Any:
        """Copy a nested specification with every array in it replaced by its reference."""
        if isinstance(spec, np.ndarray):
            return self.add(spec)
        if isinstance(spec, dict):
            return {key: self.pull(value) for key, value in spec.items()}
        if isinstance(spec, list | tuple):
            return [self.pull(value) for value in spec]
        return spec


def frame(header: dict[str, Any], parts: Sequence[np.ndarray]) -> bytes:
    """Pack a JSON header and raw little-endian arrays.

    Layout: uint32 length of the header, the header (its "parts" list each array's type and length),
    then the arrays, each padded to eight bytes.
    """
    table = [[part.dtype.str.lstrip("<|"), int(part.size)] for part in parts]
    text = json.dumps({**header, "parts": table}, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 4) % 8)
    body = [struct.pack("<I", len(text)), text]
    for part in parts:
        raw = part.astype(part.dtype.newbyteorder("<"), copy=False).tobytes()
        body += [raw, b"\0" * (-len(raw) % 8)]
    return b"".join(body)


def geometry(panels: Sequence[Panel]) -> Parcel:
    """Pack where every point is, and all that does not depend on the colouring."""
    check(panels)
    buffers = Buffers()
    rects, _ = atlas.grid(len(panels), 3)  # the browser places the panels by its own width
    header = {
        "traces": buffers.pull(traces(panels, None)),
        "axes": atlas.axes(panels, rects),
        "panels": [_panel_header(panel, buffers) for panel in panels],
        "fill": atlas.PANEL_FILL,
    }
    return _named("geometry", header, buffers.parts)


def hover_parcel(hover: HoverData) -> Parcel:
    """Pack the lines of the hover card but the ids, see `ids_parcel`."""
    buffers = Buffers()
    header = {
        "columns": [
            {
                "name": column.name,
                "names": None if column.names is None else list(column.names),
                "values": buffers.add(_hover_values(column)),
            }
            for column in hover.columns
        ],
    }
    return _named("hover", header, buffers.parts)


def ids_parcel(ids: np.ndarray) -> Parcel | None:
    """Pack the names of the rows, which no fit changes; None where they only count the rows."""
    last = len(ids) - 1
    ends = len(ids) > 0 and ids[0] == "0" and ids[last] == str(last)
    if ends and np.array_equal(ids, np.arange(len(ids)).astype(str)):
        return None
    text = json.dumps(ids.tolist(), ensure_ascii=False).encode()
    return _named("ids", {}, [np.frombuffer(text, np.uint8)])


def order_parcel(pictures: sprites.Sprites) -> Parcel:
    """Pack the priority of the rows and how a sheet is divided."""
    header = {
        "set": pictures.key,
        "tile": list(pictures.tile),
        "columns": pictures.columns,
        "perSheet": pictures.per_sheet,
        "sheets": pictures.n_sheets,
        "style": pictures.style,
    }
    return _named("order", header, [pictures.priority])


def sheet_parcel(pictures: sprites.Sprites, number: int, png: bytes) -> Parcel:
    """Pack one sprite sheet."""
    name = f"sheet:{pictures.key}:{number}"
    return Parcel(name, frame({"name": name}, [np.frombuffer(png, np.uint8)]))


def message(
    parcels: dict[str, str | None],
    n_rows: int,
    colour: palette.Colour | None,
    view: ExplorerView,
    selection: np.ndarray | None,
    seen: tuple[str, int] | None,
) -> bytes:
    """Pack what may change at every rerun: colours, selection and how things are shown.

    `parcels` names those of "geometry", "hover", "ids" and "order" (None: there is none); `seen`
    stamps the last selection received from the browser, which keeps a newer one of its own.
    """
    levels = palette.levels(colour, n_rows)
    parts = [levels.codes]
    if selection is not None:
        parts.append(np.packbits(np.asarray(selection, bool), bitorder="little"))
    header = {
        "rows": n_rows,
        "parcels": parcels,
        "colour": {
            "kind": colour.kind if colour is not None else "none",
            "name": colour.name if colour is not None else "",
            "names": list(colour.names) if colour is not None else [],
            "table": list(levels.table),
            "shapes": list(levels.shapes) if len(set(levels.shapes)) > 1 else None,
            "limits": levels.limits,
            "clipped": levels.clipped,
        },
        "view": view._asdict(),
        "seen": seen,
        "selected": selection is not None,
    }
    return frame(header, parts)


def _panel_header(panel: Panel, buffers: Buffers) -> dict[str, Any]:
    return {
        "title": panel.title,
        "subtitle": panel.subtitle,
        "own": panel.rgb is not None,
        "cells": [
            {
                "label": cell.label,
                "count": int(cell.n_rows),
                "corner": [int(sign) for sign in cell.corner],
                "image": None if cell.image is None else buffers.add(cell.image.ravel()),
                "shape": None if cell.image is None else list(cell.image.shape),
            }
            for cell in panel.cells
        ],
        "names": [name._asdict() for name in panel.names],
        "symbols": panel.symbol is not None,
        "cellOf": buffers.add(_cell_of(panel)) if panel.cells else None,
        "hollow": None if panel.hollow is None else buffers.add(panel.hollow.astype(np.uint8)),
    }


def _cell_of(panel: Panel) -> np.ndarray:
    """Give each point the number of its cell, (m,) uint8; NO_CELL where it is in none."""
    last = max(int(rows.max(initial=-1)) for rows in (panel.rows, *(c.rows for c in panel.cells)))
    cell_of_row = np.full(last + 1, NO_CELL, np.uint8)
    for number, cell in enumerate(panel.cells):
        cell_of_row[cell.rows] = number
    cell_of: np.ndarray = cell_of_row[panel.rows]
    return cell_of


def _hover_values(column: HoverColumn) -> np.ndarray:
    values = np.asarray(column.values)
    if column.names is None:
        return values.astype(np.float32)
    return values.astype(np.int8 if len(column.names) < 128 else np.int32)


def _named(kind: str, header: dict[str, Any], parts: list[np.ndarray]) -> Parcel:
    """Name a parcel by its content."""
    digest = hashlib.blake2b(json.dumps(header).encode(), digest_size=8)
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    name = f"{kind}:{digest.hexdigest()}"
    return Parcel(name, frame({"name": name, **header}, parts))
