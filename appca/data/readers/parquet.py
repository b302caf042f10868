"""Parquet tables, with images in columns."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import (
    LIMITS,
    LONGEST_NAME,
    TOO_LARGE,
    File,
    Files,
    Reader,
    ReadLimits,
    check_matrix,
    plain_file,
)
from appca.data.readers.images import Entry, ImageOptions, dataset_of
from appca.data.readers.roles import FEW
from appca.data.readers.tables import ImageShape, TableOptions, build, check_columns
from appca.words import InputError, shortened

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


_NO_TIME = re.compile(r"( 00:00:00)?\.0+$")  # of a date written as a point in time
_MOST_PARTS = 1_000_000  # columns times row groups
_INDEX = "__index_level_0__"  # what pandas calls the row names it keeps


class ParquetOptions(NamedTuple):
    """How to read a Parquet table."""

    roles: dict[str, str] | None = None  # name to role (see `roles.ROLES`) where the guess is wrong
    missing: str = "refuse"  # or "model", "mean", "drop": what to do when feature cells are missing
    image_shape: ImageShape = None  # "auto" takes squares of grey for images
    size: tuple[int, int] | None = None  # (h, w) to bring images of a column to
    colour: str = "grey"  # or "keep", of images of a column


def read_many(files: Files, options: ParquetOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a Parquet table, or files that each hold some rows of one, as a CSV with the same cells.

    Dates, times and categories count as words; a column of lists that are all equally long becomes
    one column for each place in them; other nested columns are left out. A column of images as
    Hugging Face stores them, {bytes, path}, gives a data set of images.
    """
    name = shortened(files[0][0], LONGEST_NAME)
    table = _table_of(files, limits)
    pictured = column_of(table.schema)
    if pictured is not None and not options.roles:
        images = ImageOptions(options.size, options.colour)
        return read_pictures(name, table, pictured, images, limits, _cells)
    frame = _frame(name, table, limits)
    common = TableOptions(options.roles, options.missing, options.image_shape)
    dataset = build(name, frame, [True] * len(frame.columns), common, {}, limits)
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def frame_of(name: str, file: File, limits: ReadLimits) -> "pd.DataFrame":
    """Return the columns of a table."""
    return _frame(name, _table_of([(name, file)], limits), limits)


def other_columns(name: str) -> InputError:
    """Return the sentence for a file with other columns than those before it."""
    return InputError(f"“{name}” has other columns than the files before it; keep the same ones.")


def _table_of(files: Files, limits: ReadLimits) -> "pa.Table":
    import pyarrow as pa

    tables: list[pa.Table] = []
    for name, file in files:
        title = shortened(name, LONGEST_NAME)
        with plain_file(title, file, limits) as stream:
            tables.append(_table(title, stream, limits))
        if not tables[-1].schema.equals(tables[0].schema):
            raise other_columns(title)
        rows = sum(len(table) for table in tables)
        check_matrix(title, rows, max(1, tables[0].num_columns), 8, limits)
    return pa.concat_tables(tables).unify_dictionaries() if len(tables) > 1 else tables[0]


def _table(name: str, stream: BinaryIO, limits: ReadLimits) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(stream)
        words = [field.name for field in file.schema_arrow if _is_text(field.type)]
        _check_names(name, file.schema_arrow.names)
        nested = any(pa.types.is_nested(kind) for kind in file.schema_arrow.types)
        _check_size(name, file.metadata, limits, nested=nested)
        # Texts stay numbers of a dictionary: a few bytes may stand for millions of long ones.
        # No threads, to read ahead either: one left over from a broken file can abort at exit.
        stream.seek(0)
        return parquet.read_table(
            stream, read_dictionary=words, use_threads=False, pre_buffer=False
        )
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        msg = f"“{shortened(name)}” is not a Parquet file or is damaged; save it again."
        raise InputError(msg) from error


def _frame(name: str, table: "pa.Table", limits: ReadLimits) -> "pd.DataFrame":
    import pandas as pd
    import pyarrow as pa

    table = table.replace_schema_metadata(None)  # else pandas makes an index of some columns
    titles = ["index" if key == _INDEX else key for key in table.column_names]
    plain = [_is_number(kind) for kind in table.schema.types]
    frames: list[pd.DataFrame] = []
    n_columns, start = 0, 0
    try:
        for is_plain, group in groupby(plain):  # numbers at once: there may be very many columns
            stop = start + len(list(group))
            part = table.select(range(start, stop))
            if is_plain:
                frames.append(part.rename_columns(titles[start:stop]).to_pandas())
            else:
                frames += map(partial(_columns, limits=limits), titles[start:stop], part.columns)
            n_columns = sum(len(kind.columns) for kind in frames)
            check_columns(name, n_columns, limits)
            start = stop
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        reason = shortened(str(error), 100)
        msg = f"“{shortened(name)}” holds what cannot be read ({reason}); write it again."
        raise InputError(msg) from error
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, axis=1)
    _check_names(name, list(frame.columns))
    return frame


def _check_names(name: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        msg = f"Column names must differ; some appear twice in “{name}”, so rename them."
        raise InputError(msg)


def _check_size(name: str, metadata: Any, limits: ReadLimits, *, nested: bool) -> None:
    check_columns(name, metadata.num_columns, limits)
    check_matrix(name, metadata.num_rows, max(1, metadata.num_columns), 8, limits)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    if len(groups) * metadata.num_columns > _MOST_PARTS:
        msg = f"“{name}” is cut into {len(groups):,} row groups; write it with fewer."
        raise InputError(msg)
    unpacked = sum(row_group.total_byte_size for row_group in groups)
    if nested:  # few rows may hold very many values; PyArrow can abort here, so else it is left out
        chunks = (row_group.column(j) for row_group in groups for j in range(row_group.num_columns))
        unpacked = max(unpacked, 8 * sum(column.num_values for column in chunks))
    if unpacked > limits.n_bytes:
        msg = (
            f"“{name}” unpacks to {unpacked / 1e6:,.0f} MB, more than {limits.most}; keep fewer "
            "rows or columns."
        )
        raise InputError(msg, {TOO_LARGE: True})


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind))


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _columns(name: str, values: "pa.ChunkedArray", limits: ReadLimits) -> "pd.DataFrame":
    """Return a column by its name, or a list's places as columns name[0], name[1], ..."""
    import pandas as pd

    if len(values) and (block := _places(name, values, limits)) is not None:
        return pd.DataFrame(block, columns=[f"{name}[{j}]" for j in range(block.shape[1])])
    return pd.DataFrame({name: _cells(values)}, copy=False)


def _cells(values: "pa.ChunkedArray") -> "pd.Series":
    import pandas as pd
    import pyarrow as pa

    types, kind = pa.types, values.type
    if types.is_nested(kind):
        return pd.Series([[]] * len(values), dtype=object)
    if types.is_dictionary(kind):
        return _texts(values)
    if types.is_temporal(kind):
        texts = values.cast(pa.string()).to_pylist()
        short = [text if text is None else _NO_TIME.sub("", text) for text in texts]
        return pd.Series(short, dtype=object)
    if types.is_boolean(kind):
        return pd.Series(values.to_pylist(), dtype=object)
    plain = values.cast(pa.float64()) if types.is_decimal(kind) else values
    series: pd.Series = plain.to_pandas()
    return series


def _texts(values: "pa.ChunkedArray") -> "pd.Series":
    """Texts as objects that share their memory; bytes that are no UTF-8 are shown as such."""
    import pandas as pd

    series = values.to_pandas()
    categories = [
        text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        for text in series.cat.categories
    ]
    return pd.Series(
        [categories[code] if code >= 0 else None for code in series.cat.codes], dtype=object
    )


def _places(name: str, values: "pa.ChunkedArray", limits: ReadLimits) -> np.ndarray | None:
    """Return lists of numbers that are all equally long as a matrix; None of anything else."""
    import pyarrow as pa
    from pyarrow import compute

    types, kind = pa.types, values.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return None
    lengths = compute.min_max(compute.list_value_length(values)).as_py()
    width = lengths["max"] or 0
    flat = compute.list_flatten(values)
    if values.null_count or width == 0 or width != lengths["min"] or not _is_number(flat.type):
        return None
    check_columns(name, width, limits)
    check_matrix(name, len(values), width, 8, limits)
    return np.asarray(flat.to_numpy().reshape(len(values), width))


READER = Reader(ParquetOptions, None, read_many)
