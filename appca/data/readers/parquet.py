"""Reader of Parquet tables in one or several files, by the declared types."""

import base64
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

import numpy as np

from appca.data import files as uploads
from appca.data.dataset import Dataset
from appca.data.files import Files, Reader, ReadLimits
from appca.data.readers import intake
from appca.data.readers.intake import FileReport, Table, TableOptions
from appca.frames import unique
from appca.words import InputError, refuse_if, shortened

if TYPE_CHECKING:
    import pyarrow as pa

_MOSTLY = 0.9  # minimum share of lists with the same length
_NO_TIME = r"( 00:00:00)?\.0+$", ""  # removes the time of dates stored with time
_MOST_NESTED = 3  # maximum depth of nested structs
_INDEX = "__index_level_0__"  # pandas' name of the index
_NUMBER, _TEXT, _NESTED = "integer floating", "string large_string binary", "nested"
_LIST = "list large_list fixed_size_list"
_NO_PART = "__HIVE_DEFAULT_PARTITION__"


def read_parquet(files: Files, options: TableOptions, limits: ReadLimits) -> Dataset:
    """Read a table like a CSV file with the same cells; lists of equal length become columns."""
    name = shortened(files[0][0], uploads.LONGEST_NAME)
    table, texts = parts_of(files, limits)
    return intake.build(name, columns_of(name, table, texts, options, limits), options, limits)


def parts_of(files: Files, limits: ReadLimits) -> "tuple[pa.Table, set[str]]":
    """Concatenate the rows of files; also return the text columns that may be numbers."""
    import pyarrow as pa

    tables, texts = list[pa.Table](), set[str]()
    for name, file in files:
        title = shortened(name, uploads.LONGEST_NAME)
        with uploads.plain_file(title, file, limits) as stream:
            table = _read(title, stream, texts, limits)
        for key, value in (part.split("=", 1) for part in name.split("/")[:-1] if "=" in part):
            if key not in table.column_names:
                text = pa.scalar(None if value == _NO_PART else unquote(value), pa.string())
                table = table.append_column(key, pa.repeat(text, len(table)).dictionary_encode())
        names = tables[0].column_names if tables else table.column_names
        msg = f"“{title}” has other columns than the files before it; all need the same columns."
        refuse_if(sorted(table.column_names) != sorted(names), msg)
        tables.append(table if len(set(names)) < len(names) else table.select(names))
        uploads.check_matrix(title, sum(map(len, tables)), max(1, len(names)), 8, limits)
    if len(tables) == 1:
        return tables[0], texts
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as error:
        msg = f"The files have different types in the same column ({shortened(error, 100)})."
        raise InputError(msg) from error
    return whole.unify_dictionaries(), texts


def _read(name: str, stream: BinaryIO, texts: set[str], limits: ReadLimits) -> "pa.Table":
    """Read a file; `texts` receives the names of text columns that may be numbers."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(stream)
        words = [field.name for field in file.schema_arrow if _is(field.type, _TEXT)]
        _check_size(name, file, limits)
        # Strings stay dictionary-encoded: a few bytes may expand to millions of long ones. No
        # threads: after a damaged file, a remaining reader thread can abort the process at exit.
        stream.seek(0)
        file = parquet.ParquetFile(stream, read_dictionary=words, pre_buffer=False)
        table = file.read(use_threads=False)
        about = (file.metadata.metadata or {}).get(b"ARROW:schema", b"")
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"“{shortened(name)}” is not a Parquet file or is damaged; save it again."
        raise InputError(msg) from error
    texts.update(words)
    with suppress(pa.ArrowException, ValueError):
        written = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(about)))
        for j, kind in enumerate(written.types if written.names == table.column_names else ()):
            # numbers written as categories, a type that Parquet does not preserve
            if _is(kind, "dictionary") and _is(table.schema.types[j], _NUMBER):
                column = table.column(j).cast(pa.string()).dictionary_encode()
                table = table.set_column(j, table.field(j).name, column)
    return table


def _check_size(name: str, file: Any, limits: ReadLimits) -> None:
    """Check the unpacked size; a few rows of lists may contain very many values."""
    metadata, kinds = file.metadata, file.schema_arrow.types
    intake.check_columns(name, metadata.num_columns, limits)
    uploads.check_matrix(name, metadata.num_rows, max(1, metadata.num_columns), 8, limits)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if any(_is(kind, _NESTED) for kind in kinds):  # PyArrow can abort here on nested columns
        chunks = (group.column(j) for group in groups for j in range(group.num_columns))
        unpacked = max(unpacked, 8 * sum(column.num_values for column in chunks))
    msg = f"“{name}” unpacks to {unpacked / 1e6:,.0f} MB, more than {limits.most}; save fewer rows "
    msg += "or columns."
    refuse_if(unpacked > limits.n_bytes, msg)


def columns_of(
    name: str, table: "pa.Table", texts: set[str], options: TableOptions, limits: ReadLimits
) -> Table:
    """Return the columns as numbers or text, by their declared types."""
    import pandas as pd
    import pyarrow as pa

    for key, kind in zip(table.column_names, table.schema.types, strict=True):
        msg = f"The column “{shortened(key)}” of “{name}” contains images; save each as a file, in "
        msg += "a folder for each class, and open the folder."
        refuse_if(_is(kind, "struct") and "bytes" in [field.name for field in kind], msg)
    for _ in range(_MOST_NESTED):
        if any(map(pa.types.is_struct, table.schema.types)):
            table = table.flatten()
    old = ["index" if key == _INDEX else key for key in table.column_names]
    titles = unique(old)
    renamed = [new for new, was in zip(titles, old, strict=True) if new != was]
    report: FileReport = {"renamed": renamed}
    said, parts = dict[str, str](), list[tuple[str, pa.ChunkedArray]]()
    try:
        for key, title, column in zip(table.column_names, titles, table.columns, strict=True):
            places = _places(name, title, column, report, limits)
            plain, kind = _plain(column) if places is None else (column, "")
            if kind or key not in texts:
                said[title] = kind
            parts += [(title, plain)] if places is None else places
            intake.check_columns(name, len(parts), limits)
        names = unique([title for title, _ in parts])
        frame = pa.table([column for _, column in parts], names).to_pandas()
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        msg = f"“{shortened(name)}” cannot be read ({shortened(error, 100)}); write it again."
        raise InputError(msg) from error
    none = intake.as_list(options.na_values)
    for key in frame.columns[frame.dtypes == "category"]:
        if key not in said:
            frame[key], said[key] = intake.convert(frame[key], key, report, none)
            continue
        words = np.array([*map(intake.decoded, frame[key].cat.categories), None], object)
        frame[key] = pd.Series(words[frame[key].cat.codes], dtype=object)
    return Table(frame, [True] * len(names), report, said)


def _is(kind: "pa.DataType", names: str) -> bool:
    """Whether a type is one of `names`, as in `pyarrow.types.is_NAME`."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return names == _NESTED
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names.split())


def _plain(column: "pa.ChunkedArray") -> "tuple[pa.ChunkedArray, str]":
    """Return a column as numbers or dictionary-encoded strings, and its kind if declared."""
    import pyarrow as pa
    from pyarrow import compute

    kind, said = column.type, ""
    ends = {"min": 0, "max": 0}  # limits of exact integers with missing cells
    if column.null_count and _is(kind, "integer"):
        ends = compute.min_max(column).as_py()
    if max(abs(end or 0) for end in ends.values()) >= intake.EXACT:
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
    """Return lists of numbers as columns title[0], ..., with NaN for odd lengths; else None."""
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
        intake.check_columns(name, math.prod(shape), limits)
        uploads.check_matrix(name, len(column), math.prod(shape), 8, limits)
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


READER = Reader(TableOptions, None, read_parquet)
