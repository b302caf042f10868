"""How a text table is written: its encoding, separator, decimal sign and header, all guessed."""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from appca.words.errors import InputError
from appca.words.wording import counted, shortened

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
