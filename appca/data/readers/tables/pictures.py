"""Images inside Parquet tables, as Hugging Face stores them: {bytes, path} in each row."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.images.images import Entry, ImageOptions, dataset_of
from appca.data.readers.source import ReadLimits
from appca.data.readers.tables.roles import FEW
from appca.words.errors import InputError
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_MOST_CLASSES, _LONGEST = 1000, 500  # texts of a label, and characters of each
_MOST_ABOUT = 1 << 22  # bytes of what Hugging Face says of the columns
Cells = Callable[["pa.ChunkedArray"], "pd.Series[Any]"]


def column_of(schema: "pa.Schema") -> str | None:
    """Return the first column that holds images; None where there is none."""
    import pyarrow as pa

    for field in schema:
        if pa.types.is_struct(field.type):
            place = field.type.get_field_index("bytes")
            kind = field.type.field(place).type if place >= 0 else None
            if kind is not None and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
                return str(field.name)
    return None


def read_pictures(
    name: str,
    table: "pa.Table",
    column: str,
    options: ImageOptions,
    limits: ReadLimits,
    cells: Cells,
) -> Dataset:
    """Decode the images of a column; other columns with few values become labels.

    Raises InputError when an image is missing or cannot be decoded, or they differ in size.
    """
    import pyarrow as pa

    data = pa.concat_arrays([chunk.field("bytes") for chunk in table[column].chunks])
    entries = [
        Entry(f"{row:09d}.png", partial(_bytes, data, row, column)) for row in range(len(data))
    ]
    dataset = dataset_of(name, entries, options._replace(classes="none", broken="refuse"), limits)
    ids, labels, left_out = None, {}, {}
    classes = _class_names(table.schema)
    for key in table.column_names:
        if key == column:
            continue
        values = _values(cells(table[key]), classes.get(key))
        distinct = len(np.unique(values)) if values is not None else 0
        if values is None:
            left_out[key] = "neither numbers nor words"
        elif values.dtype.kind == "U" and distinct == len(values) > 1 and ids is None:
            ids = values
        elif distinct <= (_MOST_CLASSES if values.dtype.kind == "U" else FEW):
            labels[key] = values
        else:
            left_out[key] = "many values"
    dataset.provenance["report"] |= {"unused": left_out, "array": column}
    ids = np.array([f"row-{row + 1}" for row in range(len(data))]) if ids is None else ids
    return replace(dataset, ids=ids, labels=labels)


def _bytes(data: "pa.Array", row: int, column: str) -> bytes:
    content: bytes | None = data[row].as_py()
    if content is None:
        msg = (
            f"Row {row + 1} of “{shortened(column)}” has no image bytes; write the table with the "
            "images in it, or leave the row out."
        )
        raise InputError(msg)
    return content


def _class_names(schema: "pa.Schema") -> dict[str, list[str]]:
    """Return the names of classes by column, where Hugging Face wrote them into the file."""
    about = (schema.metadata or {}).get(b"huggingface", b"")
    names: dict[str, list[str]] = {}
    with suppress(ValueError, AttributeError, TypeError, RecursionError):
        features = json.loads(about[:_MOST_ABOUT])["info"]["features"] if about else {}
        for key, said in features.items():
            listed = said.get("names") if isinstance(said, dict) else None
            if (
                isinstance(listed, list)
                and listed
                and all(isinstance(name, str) for name in listed)
            ):
                names[key] = listed
    return names


def _values(series: "pd.Series[Any]", classes: list[str] | None) -> np.ndarray | None:
    """Return a column as numbers or texts; None of lists and other things."""
    kind = series.dtype.kind
    if kind in "ui" and classes and series.min() >= -1 and series.max() < len(classes):
        names: np.ndarray = np.array([*classes, ""])
        return np.asarray(names[series.to_numpy()])  # -1: not known
    if kind in "uif":
        return np.asarray(series.to_numpy())
    plain = series.where(series.notna(), "")
    if any(isinstance(value, (list, dict, np.ndarray)) for value in plain):
        return None
    texts = [str(value) for value in plain]
    return np.array(texts) if max(map(len, texts), default=0) <= _LONGEST else None
