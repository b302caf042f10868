"""Parquet tables, with images in columns."""

import base64
import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import unquote

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
from appca.data.readers.intake import EXACT, FileReport, as_list, convert
from appca.data.readers.roles import (
    FEW,
    ImageShape,
    Table,
    build,
    check_columns,
    unique,
)
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
_MOST_NESTED = 3  # structs in structs
_MOSTLY = 0.9  # share of lists of one length from which the others are gaps
_INDEX = "__index_level_0__"  # what pandas calls the row names it keeps
_NUMBER, _TEXT, _NESTED = "integer floating", "string large_string binary", "nested"
_LIST = "list large_list fixed_size_list"
_NO_PART = "__HIVE_DEFAULT_PARTITION__"


class ParquetOptions(NamedTuple):
    """How to read a Parquet table."""

    roles: dict[str, str] | None = None  # name to role (see `roles.ROLES`) where the guess is wrong
    missing: str = "refuse"  # or "model", "mean", "drop": what to do when feature cells are missing
    image_shape: ImageShape = None  # "auto" takes squares of grey for images
    size: tuple[int, int] | None = None  # (h, w) to bring images of a column to
    colour: str = "grey"  # or "keep", of images of a column
    na_values: Any = ()  # further cells that are gaps, such as -999
    transpose: bool = False  # columns are samples


class Parts(NamedTuple):
    """The rows of all files, and which columns are texts that may be numbers."""

    table: "pa.Table"
    texts: set[str]


def read_many(files: Files, options: ParquetOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a Parquet table, or files that each hold some rows of one, as a CSV with the same cells.

    Categories are words, and times are dates. Columns of lists, of one length and shape in most
    rows, become one column for each place; folders called key=value become a column of words; other
    nested columns are left out. A column of images as Hugging Face stores them, {bytes, path},
    gives a data set of images.
    """
    name = shortened(files[0][0], LONGEST_NAME)
    parts = _parts(files, limits)
    pictured = column_of(parts.table.schema)
    if pictured is not None and not options.roles:
        images = ImageOptions(options.size, options.colour)
        return read_pictures(name, parts.table, pictured, images, limits, _cells)
    none = as_list(options.na_values)
    dataset = build(name, _table(name, parts, none, limits), options, limits)
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def table_beside(name: str, file: File, n_rows: int, limits: ReadLimits) -> Table:
    """Return the columns of a table that names rows."""
    del n_rows  # text tables alone may have a header or none
    return _table(name, _parts([(name, file)], limits), (), limits)


def other_columns(name: str) -> InputError:
    """Return the sentence for a file with other columns than those before it."""
    return InputError(f"“{name}” has other columns than the files before it; keep the same ones.")


def _parts(files: Files, limits: ReadLimits) -> Parts:
    """Put the rows of files one below the other; of their types the wider one holds."""
    import pyarrow as pa

    tables: list[pa.Table] = []
    texts: set[str] = set()
    for name, file in files:
        title = shortened(name, LONGEST_NAME)
        with plain_file(title, file, limits) as stream:
            table, words = _read(title, stream, limits)
        texts.update(words)
        for key, value in (part.split("=", 1) for part in name.split("/")[:-1] if "=" in part):
            if key not in table.column_names:
                text = pa.scalar(None if value == _NO_PART else unquote(value), pa.string())
                column = pa.repeat(text, len(table)).dictionary_encode()
                table = table.append_column(key, column)
        first = tables[0] if tables else table
        if sorted(table.column_names) != sorted(first.column_names):
            raise other_columns(title)
        tables.append(
            table
            if len(set(first.column_names)) < len(first.column_names)
            else table.select(first.column_names)
        )
        rows = sum(map(len, tables))
        check_matrix(title, rows, max(1, first.num_columns), 8, limits)
    if len(tables) == 1:
        return Parts(tables[0], texts)
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as error:
        msg = f"The files hold other kinds of values in the same column ({shortened(error, 100)})."
        raise InputError(msg) from error
    return Parts(whole.unify_dictionaries(), texts)


def _read(name: str, stream: BinaryIO, limits: ReadLimits) -> "tuple[pa.Table, list[str]]":
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(stream)
        words = [field.name for field in file.schema_arrow if _is(field.type, _TEXT)]
        categories = _categories(file.schema_arrow.names, file.metadata.metadata or {})
        nested = any(_is(kind, _NESTED) for kind in file.schema_arrow.types)
        _check_size(name, file.metadata, limits, nested=nested)
        # Texts stay numbers of a dictionary: a few bytes may stand for millions of long ones.
        # No threads, to read ahead either: one left over from a broken file can abort at exit.
        stream.seek(0)
        file = parquet.ParquetFile(stream, read_dictionary=words, pre_buffer=False)
        table = file.read(use_threads=False)
        for j in categories:
            texts = table.column(j).cast(pa.string())
            table = table.set_column(j, table.field(j).name, texts.dictionary_encode())
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        msg = f"“{shortened(name)}” is not a Parquet file or is damaged; save it again."
        raise InputError(msg) from error
    return table, words


def _categories(names: list[str], metadata: dict[bytes, bytes]) -> list[int]:
    """Return the places of numbers that were written as categories; Parquet itself forgets it."""
    import pyarrow as pa

    if b"ARROW:schema" not in metadata:
        return []
    with suppress(pa.ArrowException, ValueError):
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(metadata[b"ARROW:schema"])))
        if schema.names == names:
            dictionaries = [pa.types.is_dictionary(kind) for kind in schema.types]
            return [
                j
                for j, is_category in enumerate(dictionaries)
                if is_category and _is(schema.types[j].value_type, _NUMBER)
            ]
    return []


def _table(name: str, parts: Parts, none: Sequence[str], limits: ReadLimits) -> Table:
    """Return the columns as numbers or texts, by their declared types."""
    import pandas as pd
    import pyarrow as pa

    table = parts.table.replace_schema_metadata(None)  # else pandas makes an index of some columns
    for _ in range(_MOST_NESTED):
        if any(map(pa.types.is_struct, table.schema.types)):
            table = table.flatten()
    old = ["index" if key == _INDEX else key for key in table.column_names]
    titles = unique(old)
    report: FileReport = {
        "renamed": [new for new, was in zip(titles, old, strict=True) if new != was]
    }
    kinds: dict[str, str] = {}
    plain = [
        _is(kind, _NUMBER) and not _is_exact(table.column(j))
        for j, kind in enumerate(table.schema.types)
    ]
    frames: list[pd.DataFrame] = []
    start = 0
    try:
        for is_plain, group in groupby(plain):  # numbers at once: there may be very many columns
            stop = start + len(list(group))
            part = table.select(range(start, stop)).rename_columns(titles[start:stop])
            if is_plain:
                frames.append(part.to_pandas())
            for j in range(start, start if is_plain else stop):
                title, column = titles[j], table.column(j)
                block = _places(name, title, column, report, limits)
                if block is None:
                    values, kind = _cells(column), _kind(column.type)
                    if table.column_names[j] in parts.texts:
                        values, why = convert(values, title, report, none)
                        kinds |= {title: why} if why else {}
                    elif kind:
                        kinds[title] = kind
                    block = pd.DataFrame({title: values}, copy=False)
                frames.append(block)
            check_columns(name, sum(len(frame.columns) for frame in frames), limits)
            start = stop
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        reason = shortened(str(error), 100)
        msg = f"“{shortened(name)}” holds what cannot be read ({reason}); write it again."
        raise InputError(msg) from error
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, axis=1)
    frame.columns = unique(list(frame.columns))
    return Table(frame, [True] * len(frame.columns), report, kinds)


def _is_exact(values: "pa.ChunkedArray") -> bool:
    """Whether whole numbers with gaps would lose digits as reals."""
    from pyarrow import compute

    if not (values.null_count and _is(values.type, "integer")):
        return False
    ends = compute.min_max(values).as_py()
    return bool(max(abs(end or 0) for end in ends.values()) >= EXACT)


def _kind(kind: "pa.DataType") -> str:
    """Return the kind of a column by its declared type; "" leaves it to the cells."""
    import pyarrow as pa

    if pa.types.is_temporal(kind):
        return "date"
    return "list" if _is(kind, _NESTED) else ""


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


def _is(kind: "pa.DataType", names: str) -> bool:
    """Whether a type is one of some, each named as in `pyarrow.types.is_NAME`."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return names == _NESTED
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names.split())


def _cells(values: "pa.ChunkedArray") -> "pd.Series":
    import pandas as pd
    import pyarrow as pa

    types, kind = pa.types, values.type
    if _is(kind, _NESTED) or types.is_null(kind):
        return pd.Series([None if types.is_null(kind) else []] * len(values), dtype=object)
    if types.is_fixed_size_binary(kind):
        return _texts(values.cast(pa.binary()).dictionary_encode())
    if types.is_dictionary(kind):
        return _texts(values)
    if types.is_temporal(kind):
        texts = values.cast(pa.string()).to_pylist()
        short = [text if text is None else _NO_TIME.sub("", text) for text in texts]
        return pd.Series(short, dtype=object)
    if types.is_boolean(kind) or _is_exact(values):
        exact = values.cast(pa.string()) if types.is_integer(kind) else values
        return pd.Series(exact.to_pylist(), dtype=object)
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


def _places(
    name: str, title: str, column: "pa.ChunkedArray", report: FileReport, limits: ReadLimits
) -> "pd.DataFrame | None":
    """Return lists of numbers as columns title[0], title[1], ...; None of anything else.

    They may hold lists themselves. Rows whose list is missing or of another length than most are
    gaps; the report receives how many there are.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    shape: list[int] = []
    rows = np.ones(len(column), bool)
    values = column
    while _is(values.type, _LIST) or isinstance(values.type, pa.BaseExtensionType):
        if isinstance(values.type, pa.BaseExtensionType):
            values = pa.chunked_array([chunk.storage for chunk in values.chunks])
            continue
        lengths = compute.fill_null(compute.list_value_length(values), -1).to_numpy()
        counts = np.bincount(lengths[lengths > 0], minlength=1)
        width = int(counts.argmax())
        fits = lengths == width
        if not counts.any() or fits.sum() < _MOSTLY * len(lengths) or (shape and not fits.all()):
            return None
        rows = fits if not shape else rows
        shape.append(width)
        check_columns(name, math.prod(shape), limits)
        check_matrix(name, len(column), math.prod(shape), 8, limits)
        values = compute.list_flatten(values if fits.all() else values.filter(pa.array(fits)))
    if not shape or not _is(values.type, _NUMBER):
        return None
    block = np.full((len(column), math.prod(shape)), np.nan)
    block[rows] = values.to_numpy().reshape(-1, math.prod(shape))
    if not rows.all():
        report.setdefault("short_lists", {})[title] = int((~rows).sum())
    whole = values.to_numpy().reshape(block.shape) if rows.all() else block
    names = ["".join(f"[{i}]" for i in place) for place in np.ndindex(*shape)]
    return pd.DataFrame(whole, columns=[title + name for name in names])


READER = Reader(ParquetOptions, None, read_many)
