"""CSV and TSV tables: dialect, columns and their roles."""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from appca.data.columns import KINDS
from appca.data.dataset import Dataset, are_bytes
from appca.data.files import LIMITS, File, Reader, ReadLimits, check_matrix, file_bytes
from appca.data.readers.intake import (
    FileReport,
    left_to_the_model,
    note_quality,
    row_ids,
    settle_missing,
)
from appca.data.readers.roles import (
    Column,
    are_dates,
    counts_matter,
    guess_roles,
    image_side,
    label_order,
    likely_labels,
    why_left_out,
)
from appca.words import InputError, counted, shortened

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
BLANK = " "  # any run of blanks
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 18, 100
_FEWEST_ROWS = 5  # of the sample, however wide the table is
_MOST_CELLS = 1000  # of a line that are looked at to guess how it is written
_PIECE = 1 << 22  # bytes whose separators are counted at a time
# digits stand in one place only, else a cell of a million of them is tried in a trillion ways
_NUMBER = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)", re.IGNORECASE
)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_GAP = {"", "na", "n/a", "null", "none", "nan", "?", "-", "."}
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # signs that no text table holds
_FEW_ZEROS, _MANY_ZEROS = 0.05, 0.3  # shares of the bytes in odd and even places, of UTF-16
WESTERN = ("cp1252", "latin-1")  # what Excel writes; Latin-1 has a sign for each byte


class Dialect(NamedTuple):
    """How to read a table."""

    separator: str
    decimal: str
    header: bool
    columns: tuple[str, ...]  # names, unique


class Text(NamedTuple):
    """A table as UTF-8 with line feeds."""

    content: bytes
    encoding: str  # of the file


def as_text(name: str, data: bytes, encoding: str | None) -> Text:
    """Return the table as text; its encoding is guessed where it is not given."""
    if data[:2] == b"PK":
        msg = f"“{name}” is a packed or spreadsheet file, not text; save it as CSV first."
        raise InputError(msg)
    encodings = [encoding] if encoding else _likely_encodings(data)
    for candidate in encodings[:-1]:
        with suppress(InputError):
            return Text(_checked(name, _utf8(name, data, candidate)), candidate)
    return Text(_checked(name, _utf8(name, data, encodings[-1])), encodings[-1])


def _checked(name: str, text: bytes) -> bytes:
    if b"\0" in text:
        msg = f"“{name}” holds zero bytes, so it is not a text table; save it as UTF-8 CSV."
        raise InputError(msg)
    if not text.strip():
        msg = f"“{name}” contains only blanks; choose a file with data in it."
        raise InputError(msg)
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _utf8(name: str, data: bytes, encoding: str) -> bytes:
    """Return text as UTF-8; what is UTF-8 is checked by the line, for one sign can take four bytes.

    A whole text held as one `str` takes four bytes a sign as soon as one of them is an emoji.
    """
    start = 0
    try:
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
            return data.decode(encoding).encode()
        data = data.removeprefix(codecs.BOM_UTF8)
        while start < len(data):
            end = data.rfind(b"\n", start, start + _PIECE) + 1
            end = end or data.find(b"\n", start) + 1 or len(data)
            data[start:end].decode()
            start = end
    except UnicodeDecodeError as error:
        place = start + error.start
        msg = (
            f"“{name}” is not {encoding} text (byte {data[place]:#04x} at position {place:,}); "
            "save it as UTF-8 or name its encoding, such as cp1252."
        )
        raise InputError(msg) from error
    except LookupError as error:
        msg = f"There is no encoding {encoding!r}; name one such as utf-8, cp1252 or utf-16."
        raise InputError(msg) from error
    return data


def guess(
    name: str, text: bytes, separator: str | None, header: bool | None, decimal: str | None = None
) -> Dialect:
    """Guess what the caller left open."""
    if decimal not in (None, ".", ","):
        msg = f"The decimal sign must be a point or a comma; got {decimal!r}."
        raise InputError(msg)
    lines = _sample(text)
    if separator is None:
        separator = _guess_separator(lines)
    elif separator not in (*SEPARATORS, BLANK) and len(separator) != 1:
        msg = f"The separator must be one character; got {separator!r}."
        raise InputError(msg)
    rows = records(lines, separator)
    some = _narrow(rows)
    if decimal is None:
        decimal = "." if separator == "," else _guess_decimal(some[1:] or some)
    if header is None:
        header = _looks_like_header(some, decimal)
    if header and len(rows) < 2:
        msg = f"“{name}” holds a header line and no rows; add rows, or say that it has no header."
        raise InputError(msg)
    cells = [cell.strip() for cell in rows[0]]
    columns = [cell if header and cell else f"column {j + 1}" for j, cell in enumerate(cells)]
    _check_unique(name, columns)
    return Dialect(separator, decimal, header, tuple(columns))


def records(lines: list[str], separator: str) -> list[list[str]]:
    """Cells of the lines that are not blank."""
    if separator == BLANK:
        return [line.split() for line in lines if line.strip()]
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        return [row for row in reader if row]
    except csv.Error as error:
        msg = f"The table cannot be split into cells ({error}); check its quotation marks."
        raise InputError(msg) from error


def check_rectangle(name: str, text: bytes, dialect: Dialect) -> None:
    """Refuse a table whose lines differ in their number of cells."""
    width = len(dialect.columns)
    plain = b'"' not in text and dialect.separator.isascii() and dialect.separator != BLANK
    counts = _plain_counts(text, dialect.separator) if plain else _counts(text, dialect.separator)
    for line, cells in counts:
        if cells != width:
            msg = (
                f"Line {line} of “{name}” has {counted(cells, 'cell')}, the first has {width}; "
                "give every line the same number, or choose another separator."
            )
            raise InputError(msg)


def _plain_counts(text: bytes, separator: str) -> Iterator[tuple[int, int]]:
    """Yield line number and cells of the first line of each width; no quotation marks allowed."""
    start, line = 0, 1
    while start < len(text):
        end = text.rfind(b"\n", start, start + _PIECE) + 1
        if not end:  # a line longer than a piece
            end = text.find(b"\n", start) + 1 or len(text)
        piece = np.frombuffer(text, np.uint8, end - start, start)
        ends = np.flatnonzero(piece == ord("\n"))
        starts = np.concatenate([[0], ends + 1])
        starts = starts[starts < len(piece)]
        cells = np.add.reduceat(piece == ord(separator), starts, dtype=np.int64) + 1
        filled = np.flatnonzero(piece[starts] != ord("\n"))
        _, first = np.unique(cells[filled], return_index=True)
        for index in np.sort(first):
            yield line + int(filled[index]), int(cells[filled[index]])
        start, line = end, line + len(ends)


def _counts(text: bytes, separator: str) -> Iterator[tuple[int, int]]:
    lines = io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="\n")
    if separator == BLANK:
        yield from ((i + 1, len(line.split())) for i, line in enumerate(lines) if line.strip())
        return
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        yield from ((reader.line_num, len(row)) for row in reader if row)
    except csv.Error as error:
        msg = f"Line {reader.line_num} cannot be split ({error}); check its quotation marks."
        raise InputError(msg) from error


def _likely_encodings(data: bytes) -> list[str]:
    """Return the encodings to try: by the mark at the start, by zero bytes, then by the signs."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return ["utf-16"]
    if data[:3] == codecs.BOM_UTF8:
        return ["utf-8-sig"]
    sample = np.frombuffer(data, np.uint8, min(len(data), _SAMPLE_BYTES) // 2 * 2)
    even, odd = ((sample[first::2] == 0).mean() if len(sample) else 0.0 for first in (0, 1))
    if len(data) % 2 == 0 and min(even, odd) < _FEW_ZEROS and max(even, odd) > _MANY_ZEROS:
        return ["utf-16-le" if odd > even else "utf-16-be"]
    binary = _BINARY.search(data[:_SAMPLE_BYTES])
    return ["utf-8"] if binary else ["utf-8", *WESTERN]


def _sample(text: bytes) -> list[str]:
    """Return the first lines: a few however long they are, many where they are short."""
    lines = (line for line in io.BytesIO(text) if line.strip())
    whole_lines: list[str] = []
    size = 0
    for line in itertools.islice(lines, _SAMPLE_ROWS):
        size += len(line)
        if size > _SAMPLE_BYTES and len(whole_lines) >= _FEWEST_ROWS:
            break
        whole_lines.append(line.decode().removesuffix("\n") + "\n")
    return whole_lines


def _narrow(rows: list[list[str]]) -> list[list[str]]:
    return [row[:_MOST_CELLS] for row in rows]


def _guess_separator(lines: list[str]) -> str:
    """Return the separator that gives equal lines of more than one cell, most of them numbers."""
    best, merit = SEPARATORS[0], (False, 0.0, 1)
    for separator in (*SEPARATORS, BLANK):
        try:
            rows = records(lines, separator)
        except InputError:  # such as a line that would be one cell, longer than any may be
            continue
        width = len(rows[0]) if rows else 0
        even = sum(len(row) == width for row in rows) >= 0.9 * len(rows)
        rows = _narrow(rows)
        cells = [cell for row in rows[1:] or rows for cell in row]
        decimal = "." if separator == "," else _guess_decimal(rows[1:] or rows)
        numbers = sum(_is_number(cell, decimal) for cell in cells) / max(1, len(cells))
        score = (even, numbers, width)
        if width > 1 and score > merit and not (separator == BLANK and merit[0]):
            best, merit = separator, score
    return best


def _guess_decimal(rows: list[list[str]]) -> str:
    cells = [cell.strip() for row in rows for cell in row]
    commas = sum(bool(_COMMA_NUMBER.fullmatch(cell)) for cell in cells)
    points = sum(bool(_NUMBER.fullmatch(cell)) and "." in cell for cell in cells)
    return "," if commas > points else "."


def _looks_like_header(rows: list[list[str]], decimal: str) -> bool:
    """Tell a header by words above numbers; a table of words alone has one, too."""
    body = rows[1:]
    votes = 0
    numeric_columns = 0
    for j, cell in enumerate(rows[0]):
        below = [row[j] for row in body if j < len(row) and row[j].strip().lower() not in _GAP]
        if below and all(_is_number(value, decimal) for value in below):
            numeric_columns += 1
            gap = cell.strip().lower() in _GAP
            votes += 0 if gap else (-1 if _is_number(cell, decimal) else 1)
    if numeric_columns:
        return votes > 0
    return not any(_is_number(cell, decimal) for cell in rows[0])


def _is_number(cell: str, decimal: str) -> bool:
    cell = cell.strip()
    if decimal == ",":
        cell = cell.replace(",", ".")
    return bool(_NUMBER.fullmatch(cell))


def _check_unique(name: str, columns: list[str]) -> None:
    seen = set()
    for column in columns:
        if column in seen:
            msg = (
                f"Column names must differ; “{shortened(column)}” appears twice in “{name}”, so "
                "rename one of them, or say that the file has no header."
            )
            raise InputError(msg)
        seen.add(column)


ImageShape = tuple[int, ...] | Literal["auto"] | None  # auto: squares of grey are images
_LONGEST_LABEL = 500  # characters; a column with longer texts is a label only if chosen as one
_BLOCK_VALUES, _MOST_AT_ONCE = 1 << 20, 1000  # values and columns that are looked at together
_EXACT_DIGITS = 15  # that pandas 2 reads exactly
_MOST_SHOWN = 300  # columns whose first cells a report holds
_LONGEST_SHOWN = 40  # characters of such a cell
_MOSTLY = 0.5  # share of numbers from which words in a column are taken for mistakes


class TableOptions(NamedTuple):
    """What the readers of tables have in common; see `CsvOptions`."""

    roles: dict[str, str] | None
    missing: str
    image_shape: ImageShape


def build(
    name: str,
    frame: "pd.DataFrame",
    named: list[bool],
    options: TableOptions,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Give the columns of a frame, whose names differ, roles and make a data set of them.

    `named` says whether the column's name is in the file. The report receives rows, columns, the
    kinds of columns that are no numbers, roles, features that may be labels (see `likely_labels`)
    and what the intake notes.
    """
    report.update(rows=len(frame), columns=len(frame.columns))
    check_columns(name, len(frame.columns), limits)
    _check_rows(name, frame, report, limits)
    columns = describe(frame, named)
    report["kinds"] = {each.name: KINDS[each.kind] for each in columns if each.kind != "number"}
    if limits.head_rows:
        report["head"] = _head(frame.iloc[: limits.head_rows, :_MOST_SHOWN])
    report["roles"] = roles = _roles(columns, len(frame), options.roles or {}, report)
    report["left_out"] = {
        each.name: why_left_out(each, len(frame))
        for each in columns
        if roles[each.name] == "ignored"
    }
    features = _with(roles, "feature")
    _check_features(name, features, roles, report)
    check_matrix(name, len(frame), len(features), 8, limits)
    check_texts(frame, roles, limits)
    report["likely_labels"] = likely_labels(
        columns, roles, lambda column: frame[column].to_numpy(np.float64)
    )
    matrix = _matrix(frame, features, report)
    X, rows = settle_missing(matrix, features, options.missing, report, limits.least_rows)
    note_quality(X, features, report, limits.least_rows)
    report["constant"] += [name for name, why in report["left_out"].items() if why == "one value"]
    report["n_constant"] = len(report["constant"])
    shape = _image_shape(options.image_shape, features, any(named), X)
    report["image_shape"] = shape
    provenance: dict[str, Any] = {"source": "file", "files": [name], "report": report}
    if shape is not None:
        provenance["image_range"] = image_range(X)
        X = X.astype(np.uint8) if are_bytes(X) else X
    return Dataset(
        name=Path(name).name.split(".")[0] or name,
        X=X,
        ids=ids_of(frame, roles)[rows],
        labels={column: values[rows] for column, values in labels_of(frame, roles).items()},
        image_shape=shape,
        feature_names=None if shape is not None and not any(named) else tuple(features),
        provenance=provenance,
        missing=left_to_the_model(matrix, options.missing),
        least_rows=limits.least_rows,
    )


def check_columns(name: str, n_columns: int, limits: ReadLimits) -> None:
    """Refuse a table of more columns than are read."""
    if n_columns > limits.columns:
        msg = (
            f"“{name}” has {n_columns:,} columns, more than the {limits.columns:,} of a table; "
            "take fewer, turn it so that these are rows, or save the numbers as NPY."
        )
        raise InputError(msg)


def _head(frame: "pd.DataFrame") -> dict[str, list[str | None]]:
    """Return first cells as texts, None where they are missing."""
    cells: dict[str, list[str | None]] = {}
    for name in frame.columns:
        texts = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in frame[name].tolist()]
        cells[str(name)] = [
            None if gap else shortened(text, _LONGEST_SHOWN)
            for text, gap in zip(texts, frame[name].isna(), strict=True)
        ]
    return cells


def _roles(
    columns: list[Column], n: int, chosen: dict[str, str], report: FileReport
) -> dict[str, str]:
    try:
        return guess_roles(columns, n, chosen)
    except InputError as error:
        odd = [each.name for each in columns if each.kind == "mixed" and each.name not in chosen]
        error.report = report | ({"unclear": odd} if odd else {})
        raise


def describe(frame: "pd.DataFrame", named: list[bool]) -> list[Column]:
    """Say of every column what the guess of its role needs to know."""
    names = [str(label) for label in frame.columns]
    plain = np.array([kind.kind in "iuf" for kind in frame.dtypes], bool)
    described: dict[int, Column] = {}
    step = _at_once(frame)
    numbers = np.flatnonzero(plain)
    for start in range(0, len(numbers), step):
        part = numbers[start : start + step]
        block = frame.iloc[:, part].to_numpy()  # numbers of one kind stay what they are
        described |= zip(part.tolist(), _numbers(block, part, names, named), strict=True)
    for j in np.flatnonzero(~plain).tolist():
        described[j] = _words(frame.iloc[:, j], names[j], named[j])
    return [described[j] for j in range(len(names))]


def _numbers(
    block: np.ndarray, places: np.ndarray, names: list[str], named: list[bool]
) -> Iterator[Column]:
    """Describe columns of numbers (n, d) together, for there may be very many."""
    real = block.dtype.kind == "f"
    gaps = np.isnan(block).sum(axis=0) if real else np.zeros(block.shape[1], int)
    filled = np.where(np.isnan(block), 0, block) if gaps.any() else block
    whole = np.ones(block.shape[1], bool)
    if real:
        whole = np.isfinite(filled).all(axis=0) & (filled == np.floor(filled)).all(axis=0)
    low, high = filled.min(axis=0), filled.max(axis=0)
    grows = (gaps == 0) & whole & (filled[:2][0] < filled[:2][-1])
    grows[grows] = (np.diff(filled[:, grows], axis=0) > 0).all(axis=0)
    for i, j in enumerate(places.tolist()):
        if gaps[i] == len(block):
            yield Column(names[j], named[j], "empty", 0, whole=False, complete=False, grows=False)
            continue
        distinct = 0
        if counts_matter(names[j]):
            values = block[:, i]
            distinct = len(np.unique(values[~np.isnan(values)] if gaps[i] else values))
        yield Column(
            *(names[j], named[j], "number", distinct, bool(whole[i]), not gaps[i], bool(grows[i])),
            low=float(low[i]),
            high=float(high[i]),
        )


def _words(values: "pd.Series[Any]", name: str, named: bool) -> Column:
    """Describe a column that is not stored as numbers; it may hold some all the same."""
    import pandas as pd

    present = values.dropna()
    complete = len(present) == len(values)
    base = Column(name, named, "empty", 0, whole=False, complete=complete, grows=False)
    if not len(present) or isinstance(present.iloc[0], (list, dict, np.ndarray)):
        return base._replace(kind="list") if len(present) else base
    once, codes = _distinct(present)  # a text that many rows share is parsed once
    base = base._replace(distinct=len(once))
    if max((len(value) for value in once if isinstance(value, str)), default=0) > _LONGEST_LABEL:
        return base._replace(kind="long")
    flags = all(isinstance(value, (bool, np.bool_)) for value in once)
    plain = pd.Series([str(value) for value in once] if flags else once, dtype=object)
    floats = _as_numbers(plain).to_numpy(np.float64)[codes]
    odd = np.isnan(floats)
    if odd.all() and are_dates([str(value) for value in once]):
        return base._replace(kind="date")
    if odd.any():
        mixed = odd.sum() < _MOSTLY * len(present)
        kind, n_odd = ("mixed", int(odd.sum())) if mixed else ("text", 0)
        example = str(present.iloc[int(odd.argmax())])
        return base._replace(kind=kind, example=example, n_odd=n_odd)
    whole = bool(np.isfinite(floats).all() and (floats == np.floor(floats)).all())
    grows = complete and whole and len(floats) > 1 and bool((np.diff(floats) > 0).all())
    low, high = float(floats.min()), float(floats.max())
    return base._replace(kind="number", whole=whole, grows=grows, low=low, high=high)


def _distinct(values: "pd.Series[Any]") -> tuple[list[Any], np.ndarray]:
    """Return the different values and their places in the rows, by hashes Python keeps."""
    places: dict[tuple[type, Any], int] = {}
    codes = [places.setdefault((type(value), value), len(places)) for value in values.tolist()]
    return [value for _, value in places], np.array(codes)


def _as_numbers(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return floats, NaN where there is none; pandas itself fails on whole numbers above 1e308."""
    import pandas as pd

    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except OverflowError:
        numbers = pd.to_numeric(values.astype(str), errors="coerce")
    if int(pd.__version__.partition(".")[0]) < 3:  # whose last bit is another for long texts
        for place in np.flatnonzero(numbers.notna()).tolist():
            text = values.iloc[place]
            if isinstance(text, str) and len(text) > _EXACT_DIGITS:
                numbers.iloc[place] = float(text)
    return numbers


def _check_rows(name: str, frame: "pd.DataFrame", report: FileReport, limits: ReadLimits) -> None:
    if len(frame) < limits.least_rows:
        needed = "1 is" if limits.least_rows == 1 else f"{limits.least_rows} are"
        rows = counted(len(frame), "row")
        msg = f"“{name}” has {rows} of data; at least {needed} needed, add rows."
        raise InputError(msg, report)


def _with(roles: dict[str, str], role: str) -> list[str]:
    return [column for column, role_of in roles.items() if role_of == role]


def _check_features(
    name: str, features: list[str], roles: dict[str, str], report: FileReport
) -> None:
    if len(features) < 2:
        msg = (
            f"“{name}” has {counted(len(features), 'feature column')} of {len(roles)}; at least 2 "
            "are needed, so check the separator or change the columns' roles."
        )
        raise InputError(msg, report)


def _matrix(frame: "pd.DataFrame", features: list[str], report: FileReport) -> np.ndarray:
    import pandas as pd

    places = frame.columns.get_indexer(pd.Index(features, dtype=object))
    X = np.empty((len(frame), len(places)))
    plain = np.array([kind.kind in "iuf" for kind in frame.dtypes.iloc[places]], bool)
    step, numeric = _at_once(frame), np.flatnonzero(plain)
    for start in range(0, len(numeric), step):  # pandas copies each column of a selection apart
        part = numeric[start : start + step]
        X[:, part] = frame.iloc[:, places[part]].to_numpy(np.float64)
    for j in np.flatnonzero(~plain):
        column = features[j]
        numbers = _as_numbers(frame[column].astype("object"))
        odd = frame[column][numbers.isna() & frame[column].notna()]
        if len(odd):
            msg = (
                f"Column “{shortened(column)}” cannot be a feature: it holds words, such as "
                f"“{shortened(odd.iloc[0])}” in row {odd.index[0] + 1}; make it a label or ignored."
            )
            raise InputError(msg, report)
        X[:, j] = numbers.to_numpy(np.float64)
    return X


def _at_once(frame: "pd.DataFrame") -> int:
    """Return how many columns are looked at together."""
    return min(_MOST_AT_ONCE, max(1, _BLOCK_VALUES // max(1, len(frame))))


def _image_shape(
    chosen: ImageShape, features: list[str], named: bool, X: np.ndarray
) -> tuple[int, ...] | None:
    if chosen != "auto":
        return None if chosen is None else tuple(chosen)
    side = image_side(features, named, X)
    return None if side is None else (side, side)


def image_range(X: np.ndarray) -> list[float]:
    """Black and white of images: the usual scale they fit into, else their own extremes."""
    low, high = float(X.min()), float(X.max())
    for white in (1.0, 16.0, 255.0):
        if low >= 0 and high <= white:
            return [0.0, white]
    return [low, high]


def check_texts(frame: "pd.DataFrame", roles: dict[str, str], limits: ReadLimits) -> None:
    """Refuse labels and ids whose longest texts, times the rows, would fill the memory."""
    total = 0
    for column in [*_with(roles, "label"), *_with(roles, "id")]:
        if frame[column].dtype.kind in "iufb":
            continue
        longest = max((len(str(text)) for text in _distinct(frame[column])[0]), default=0)
        total += 4 * longest * len(frame)
        if total > limits.n_bytes // 2:
            msg = (
                f"Column “{shortened(column)}” holds texts of up to {longest:,} characters, too "
                "long for a label or an id; make it ignored."
            )
            raise InputError(msg)


def _label(values: "pd.Series[Any]") -> np.ndarray:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return values.to_numpy()
    return values.astype("object").where(values.notna(), "").astype(str).to_numpy(dtype=str)


def labels_of(frame: "pd.DataFrame", roles: dict[str, str]) -> dict[str, np.ndarray]:
    """Return the columns that are labels, the class first."""
    distinct = {column: int(frame[column].nunique()) for column in _with(roles, "label")}
    return {
        column: _label(frame[column])
        for column in label_order(list(distinct), distinct, len(frame))
    }


def ids_of(frame: "pd.DataFrame", roles: dict[str, str]) -> np.ndarray:
    """Return the names of the rows, by the column that is the id or by their number."""
    column = _with(roles, "id")
    if not column:
        return row_ids(np.arange(len(frame)))
    return _label(frame[column[0]]).astype(str)


_GAPS = ["?", "-", "."]  # beside those pandas knows


class CsvOptions(NamedTuple):
    """How to read a text table; what is None is guessed."""

    separator: str | None = None  # one character; a blank stands for any run of blanks
    decimal: str | None = None  # "." or ","
    header: bool | None = None  # whether the first line holds the columns' names
    encoding: str | None = None
    roles: dict[str, str] | None = None  # name to role (see `roles.ROLES`) where the guess is wrong
    missing: str = "refuse"  # or "model", "mean", "drop": what to do when feature cells are missing
    image_shape: ImageShape = "auto"  # "auto" takes squares of grey for images


def read(name: str, file: File, options: CsvOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a text table: float64, or uint8 for images.

    Ids are those of the id column, else ``row-1`` and so on, so that they name the file's rows also
    after some were dropped.
    """
    frame, named, report = frame_of(name, file, options, limits)
    common = TableOptions(options.roles, options.missing, options.image_shape)
    return build(name, frame, named, common, report, limits)


def frame_of(
    name: str, file: File, options: CsvOptions, limits: ReadLimits
) -> "tuple[pd.DataFrame, list[bool], dict[str, Any]]":
    """Return the cells, whether each column's name is in the file, and how the text is written."""
    text, encoding = as_text(name, file_bytes(name, file, limits), options.encoding)
    dialect = guess(name, text, options.separator, options.header, options.decimal)
    check_columns(name, len(dialect.columns), limits)
    check_matrix(name, text.count(b"\n"), len(dialect.columns), 8, limits)
    check_rectangle(name, text, dialect)
    frame = _parse(name, text, dialect)
    named = [
        dialect.header and column != f"column {j + 1}" for j, column in enumerate(dialect.columns)
    ]
    report = {
        "encoding": encoding,
        "separator": dialect.separator,
        "decimal": dialect.decimal,
        "header": dialect.header,
    }
    return frame, named, report


def _parse(name: str, text: bytes, dialect: Dialect) -> "pd.DataFrame":
    import pandas as pd

    # pandas 2 rounds the last bit otherwise; pandas 3 deprecates the argument
    is_old = int(pd.__version__.partition(".")[0]) < 3
    exact: dict[str, Any] = {"float_precision": "round_trip"} if is_old else {}
    try:
        frame: pd.DataFrame = pd.read_csv(
            io.BytesIO(text),
            sep=r"\s+" if dialect.separator == BLANK else dialect.separator,
            decimal=dialect.decimal,
            header=None,
            names=list(dialect.columns),
            # up to the header's end; blank lines may stand before it
            skiprows=len(text) - len(text.lstrip(b"\n")) + 1 if dialect.header else 0,
            index_col=False,
            skipinitialspace=True,
            na_values=_GAPS,
            low_memory=False,
            **exact,
        )
        return frame
    except (ValueError, OverflowError) as error:
        reason = shortened(str(error).removeprefix("Error tokenizing data. C error: "), 120)
        msg = f"“{name}” cannot be read as a table ({reason}); check its lines and quotation marks."
        raise InputError(msg) from error


READER = Reader(CsvOptions, read)
