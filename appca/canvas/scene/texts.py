"""What the hover card says of rows: sent with the scene, or row by row where there are too many."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

MOST_ROWS = 100_000  # that are sent with their texts
MOST_NAMES = 1_000  # classes whose names are sent once; more are texts


class RowText(NamedTuple):
    """One line of the hover card."""

    title: str
    values: np.ndarray  # (N,) numbers, texts, or codes into names
    names: tuple[str, ...] = ()


def hover_buffers(
    ids: np.ndarray, lines: Sequence[RowText]
) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """Return what says how to read the texts of all rows, and their buffers.

    Nothing where they have to be asked for. Ids that only count the rows are left out.
    """
    if len(ids) > MOST_ROWS:
        return None, {}
    buffers, header = {}, []
    for number, line in enumerate(lines):
        name = f"hover.{number}"
        kind, buffers[name] = _buffer(line)
        entry: dict[str, Any] = {"title": line.title, "kind": kind, "buffer": name}
        header.append(entry | ({"names": list(line.names)} if kind == "category" else {}))
    counting = np.array_equal(ids, np.arange(len(ids)).astype(str))
    if not counting:
        buffers["hover.ids"] = _text_buffer(ids)
    return {"ids": None if counting else "hover.ids", "lines": header}, buffers


def texts_of(ids: np.ndarray, lines: Sequence[RowText], rows: np.ndarray) -> dict[str, Any]:
    """Return what the hover card says of some rows, line by line, as JSON has it."""
    return {
        "ids": ids[rows].tolist(),
        "lines": [{"title": line.title, "values": _plain(line, rows)} for line in lines],
    }


def _plain(line: RowText, rows: np.ndarray) -> list[Any]:
    values = line.values[rows].tolist()
    if line.names:
        return [line.names[code] if code >= 0 else None for code in values]
    return [
        None if isinstance(value, float) and not np.isfinite(value) else value for value in values
    ]


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
