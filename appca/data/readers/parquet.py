"""Parquet tables, with images in columns."""

import base64
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import unquote

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import (
    LIMITS,
    LONGEST_NAME,
    File,
    Files,
    Reader,
    ReadLimits,
    check_matrix,
    plain_file,
)
from appca.data.readers.images import ImageOptions, dataset_of
from appca.data.readers.intake import (
    EXACT,
    FileReport,
    ImageShape,
    Table,
    as_list,
    build,
    check_columns,
    convert,
    names_beside,
    row_ids,
    unique,
)
from appca.words import InputError, shortened

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ABOUT = 1 << 22  # bytes of what Hugging Face says of the columns
_NO_TIME = r"( 00:00:00)?\.0+$", ""  # of a date written as a point in time
_MOST_NESTED = 3  # structs in structs
_MOSTLY = 0.9  # share of lists of one length from which the others are gaps
_INDEX = "__index_level_0__"  # what pandas calls the row names it keeps
_NUMBER, _TEXT, _NESTED = "integer floating", "string large_string binary", "nested"
_LIST = "list large_list fixed_size_list"
_NO_PART = "__HIVE_DEFAULT_PARTITION__"


class ParquetOptions(NamedTuple):
    """How to read a Parquet table."""

    roles: dict[str, str] | None = (
        None  # name to role (see `intake.ROLES`) where the guess is wrong
    )
    missing: str = "refuse"  # or "model", "mean", "drop": what to do when feature cells are missing
    image_shape: ImageShape = None  # "auto" takes squares of grey for images
    size: tuple[int, int] | None = None  # (h, w) to bring images of a column to
    colour: str = "grey"  # or "keep", of images of a column
    na_values: Any = ()  # further cells that are gaps, such as -999
    transpose: bool = False  # columns are samples


def read_many(files: Files, options: ParquetOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a Parquet table, or files that each hold some rows of one, as a CSV with the same cells.

    Categories are words, and times are dates. Columns of lists, of one length and shape in most
    rows, become one column for each place; folders called key=value become a column of words; other
    nested columns are left out. A column of images as Hugging Face stores them, {bytes, path},
    gives a data set of images.
    """
    name = shortened(files[0][0], LONGEST_NAME)
    table, texts = _parts(files, limits)
    for key, kind in zip(table.column_names, table.schema.types, strict=True):
        inner = {field.name: field.type for field in kind} if _is(kind, "struct") else {}
        if "bytes" in inner and _is(inner["bytes"], "binary large_binary") and not options.roles:
            return _pictures(name, table, key, options, limits)
    columns = _table(name, table, texts, as_list(options.na_values), limits)
    dataset = build(name, columns, options, limits)
    dataset.provenance["files"] = [name for name, _ in files]
    return dataset


def table_beside(name: str, file: File, n_rows: int, limits: ReadLimits) -> Table:
    """Return the columns of a table that names rows."""
    del n_rows  # text tables alone may have a header or none
    return _table(name, *_parts([(name, file)], limits), (), limits)


def _pictures(
    name: str, table: "pa.Table", column: str, options: ParquetOptions, limits: ReadLimits
) -> Dataset:
    """Decode the images of a column; other columns name the rows, or are labels.

    Raises InputError when an image is missing or cannot be decoded, or they differ in size.
    """
    import pyarrow as pa
    from pyarrow import compute

    data = pa.concat_arrays([chunk.field("bytes") for chunk in table[column].chunks])

    def content(row: int) -> bytes:
        image: bytes | None = data[row].as_py()
        if image is None:
            msg = (
                f"Row {row + 1} of “{shortened(column)}” has no image bytes; write the table with "
                "the images in it, or leave the row out."
            )
            raise InputError(msg)
        return image

    entries = [(f"{row:09d}.png", partial(content, row)) for row in range(len(data))]
    how = ImageOptions(options.size, options.colour, classes="none", broken="refuse")
    dataset = dataset_of(name, entries, how, limits)
    about = (table.schema.metadata or {}).get(b"huggingface", b"")
    rest = table.drop_columns([column])
    features: dict[str, Any] = {}
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        features = dict(json.loads(about[:_MOST_ABOUT])["info"]["features"])
    for key, said in features.items():
        with suppress(ValueError, KeyError, TypeError, pa.ArrowException):  # other than classes
            codes = compute.if_else(compute.less(rest[key], 0), None, rest[key])  # -1: unknown
            names = compute.take(pa.array(said["names"], pa.string()), codes)
            rest = rest.set_column(rest.column_names.index(key), key, names.dictionary_encode())
    beside = _table(name, rest, set(), (), limits)
    ids, labels = names_beside(beside, limits, all_words=False)
    dataset.provenance["report"] |= {"unused": beside.report["unused"], "array": column}
    ids = row_ids(np.arange(len(data))) if ids is None else ids
    return replace(dataset, ids=ids, labels=labels)


def other_columns(name: str) -> InputError:
    """Return the sentence for a file with other columns than those before it."""
    return InputError(f"“{name}” has other columns than the files before it; keep the same ones.")


def _parts(files: Files, limits: ReadLimits) -> "tuple[pa.Table, set[str]]":
    """Put the rows of files one below the other; of their types the wider one holds.

    Returns also which columns are texts that may be numbers.
    """
    import pyarrow as pa

    tables: list[pa.Table] = []
    texts: set[str] = set()
    for name, file in files:
        title = shortened(name, LONGEST_NAME)
        with plain_file(title, file, limits) as stream:
            table = _read(title, stream, texts, limits)
        for key, value in (part.split("=", 1) for part in name.split("/")[:-1] if "=" in part):
            if key not in table.column_names:
                text = pa.scalar(None if value == _NO_PART else unquote(value), pa.string())
                table = table.append_column(key, pa.repeat(text, len(table)).dictionary_encode())
        names = tables[0].column_names if tables else table.column_names
        if sorted(table.column_names) != sorted(names):
            raise other_columns(title)
        tables.append(table if len(set(names)) < len(names) else table.select(names))
        check_matrix(title, sum(map(len, tables)), max(1, len(names)), 8, limits)
    if len(tables) == 1:
        return tables[0], texts
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as error:
        msg = f"The files hold other kinds of values in the same column ({shortened(error, 100)})."
        raise InputError(msg) from error
    return whole.unify_dictionaries(), texts


def _read(name: str, stream: BinaryIO, texts: set[str], limits: ReadLimits) -> "pa.Table":
    """Read a file; `texts` receives the columns of texts that may be numbers."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(stream)
        words = [field.name for field in file.schema_arrow if _is(field.type, _TEXT)]
        _check_size(name, file, limits)
        # Texts stay numbers of a dictionary: a few bytes may stand for millions of long ones.
        # No threads, to read ahead either: one left over from a broken file can abort at exit.
        stream.seek(0)
        file = parquet.ParquetFile(stream, read_dictionary=words, pre_buffer=False)
        table = file.read(use_threads=False)
        about = (file.metadata.metadata or {}).get(b"ARROW:schema", b"")
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        msg = f"“{shortened(name)}” is not a Parquet file or is damaged; save it again."
        raise InputError(msg) from error
    texts.update(words)
    with suppress(pa.ArrowException, ValueError):
        written = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(about)))
        for j, kind in enumerate(written.types if written.names == table.column_names else ()):
            # numbers that were written as categories, which Parquet itself forgets
            if _is(kind, "dictionary") and _is(table.schema.types[j], _NUMBER):
                column = table.column(j).cast(pa.string()).dictionary_encode()
                table = table.set_column(j, table.field(j).name, column)
    return table


def _check_size(name: str, file: Any, limits: ReadLimits) -> None:
    """Refuse what unpacks to too much; few rows of lists may hold very many values."""
    metadata, kinds = file.metadata, file.schema_arrow.types
    check_columns(name, metadata.num_columns, limits)
    check_matrix(name, metadata.num_rows, max(1, metadata.num_columns), 8, limits)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if any(_is(kind, _NESTED) for kind in kinds):  # PyArrow can abort here, so else it is left out
        chunks = (group.column(j) for group in groups for j in range(group.num_columns))
        unpacked = max(unpacked, 8 * sum(column.num_values for column in chunks))
    if unpacked > limits.n_bytes:
        msg = (
            f"“{name}” unpacks to {unpacked / 1e6:,.0f} MB, more than {limits.most}; keep fewer "
            "rows or columns."
        )
        raise InputError(msg)


def _table(
    name: str, table: "pa.Table", texts: set[str], none: Sequence[str], limits: ReadLimits
) -> Table:
    """Return the columns as numbers or texts, by their declared types.

    Texts are objects that share their memory; bytes that are no UTF-8 are shown as such.
    """
    import pandas as pd
    import pyarrow as pa

    for _ in range(_MOST_NESTED):
        if any(map(pa.types.is_struct, table.schema.types)):
            table = table.flatten()
    old = ["index" if key == _INDEX else key for key in table.column_names]
    titles = unique(old)
    renamed = [new for new, was in zip(titles, old, strict=True) if new != was]
    report: FileReport = {"renamed": renamed}
    said: dict[str, str] = {}
    parts: list[tuple[str, pa.ChunkedArray]] = []
    try:
        for key, title, column in zip(table.column_names, titles, table.columns, strict=True):
            places = _places(name, title, column, report, limits)
            plain, kind = _plain(column) if places is None else (column, "")
            if kind or key not in texts:
                said[title] = kind
            parts += [(title, plain)] if places is None else places
            check_columns(name, len(parts), limits)
        names = unique([title for title, _ in parts])
        frame = pa.table([column for _, column in parts], names).to_pandas()
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        reason = shortened(str(error), 100)
        msg = f"“{shortened(name)}” holds what cannot be read ({reason}); write it again."
        raise InputError(msg) from error
    for key in frame.columns[frame.dtypes == "category"]:
        words = [
            text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            for text in frame[key].cat.categories
        ]
        cells = pd.Series(np.array([*words, None], object)[frame[key].cat.codes], dtype=object)
        frame[key], why = convert(cells, key, report, none) if key not in said else (cells, "")
        said[key] = why or said.get(key, "")
    return Table(frame, [True] * len(names), report, said)


def _is(kind: "pa.DataType", names: str) -> bool:
    """Whether a type is one of some, each named as in `pyarrow.types.is_NAME`."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return names == _NESTED
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names.split())


def _plain(column: "pa.ChunkedArray") -> "tuple[pa.ChunkedArray, str]":
    """Return a column as numbers or as texts, each written once, and its kind if declared."""
    import pyarrow as pa
    from pyarrow import compute

    kind, said = column.type, ""
    ends = {"min": 0, "max": 0}
    if column.null_count and _is(kind, "integer"):
        ends = compute.min_max(column).as_py()
    if max(abs(end or 0) for end in ends.values()) >= EXACT:  # with gaps these would be reals
        column = column.cast(pa.string())
    elif _is(kind, _NESTED):
        column, said = pa.nulls(len(column)), "list"
    elif _is(kind, "temporal"):
        column, said = compute.replace_substring_regex(column.cast(pa.string()), *_NO_TIME), "date"
    elif _is(kind, "boolean"):
        column = compute.if_else(column, "True", "False")
    elif _is(kind, "decimal"):
        column = column.cast(pa.float64())
    elif _is(kind, "fixed_size_binary"):
        column = column.cast(pa.binary())
    return column.dictionary_encode() if _is(column.type, _TEXT) else column, said


def _places(
    name: str, title: str, column: "pa.ChunkedArray", report: FileReport, limits: ReadLimits
) -> "list[tuple[str, pa.Array]] | None":
    """Return lists of numbers as columns title[0], title[1], ...; None of anything else.

    They may hold lists themselves. Rows whose list is missing or of another length than most are
    gaps; the report receives how many there are.
    """
    import pyarrow as pa
    from pyarrow import compute

    shape: list[int] = []
    rows, values = np.ones(len(column), bool), column
    while _is(values.type, _LIST) or isinstance(values.type, pa.BaseExtensionType):
        if isinstance(values.type, pa.BaseExtensionType):
            values = pa.chunked_array([chunk.storage for chunk in values.chunks])
            continue
        lengths = compute.fill_null(compute.list_value_length(values), -1).to_numpy()
        counts = np.bincount(lengths[lengths > 0], minlength=1)
        fits = lengths == counts.argmax()
        if not counts.any() or fits.sum() < _MOSTLY * len(lengths) or (shape and not fits.all()):
            return None
        rows = fits if not shape else rows
        shape.append(int(counts.argmax()))
        check_columns(name, math.prod(shape), limits)
        check_matrix(name, len(column), math.prod(shape), 8, limits)
        values = compute.list_flatten(values if fits.all() else values.filter(pa.array(fits)))
    if not shape or not _is(values.type, _NUMBER):
        return None
    block = values.to_numpy().reshape(-1, math.prod(shape))
    if not rows.all():
        report.setdefault("short_lists", {})[title] = int((~rows).sum())
        filled, block = block, np.full((len(column), math.prod(shape)), np.nan)
        block[rows] = filled
    names = ["".join(f"[{i}]" for i in place) for place in np.ndindex(*shape)]
    return [(title + name, pa.array(block[:, j])) for j, name in enumerate(names)]


READER = Reader(ParquetOptions, None, read_many)
