"""Readers of text tables, spreadsheets and ARFF: format detection and columns."""

import codecs
import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca import frames
from appca.data import files as uploads
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Files, Reader, ReadLimits
from appca.data.readers import intake, parquet
from appca.data.readers.intake import FileReport, Table, TableOptions, bare, build, number_in
from appca.words import InputError, counted, refuse_if, refuse_unknown, shortened

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
BLANK = " "  # any run of blanks
_SAMPLE_BYTES, _SAMPLE_ROWS, _FEWEST_ROWS = 1 << 18, 300, 5  # minimum for very wide rows
_MOST_CELLS = 1000  # number of a line's cells used to detect its format
_TOP, _HEADER_LINES = 40, 3  # lines searched for a header; maximum height of a header
_MOSTLY = 0.9  # minimum shares: of numbers, and of lines of equal width
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # bytes that no text table contains
_SEP_LINE = re.compile(rb'"?sep=(.)"?[ \t]*\n', re.IGNORECASE)
_COMMENTS = re.compile(rb"(?:[ \t]*(?:[#%][^\n]*)?\n)*")  # comment lines at the start
_STRAY = re.compile("[\udc80-\udcff]")  # an undecodable byte
_NO_WORD = re.compile(rb"[\s\d,;|\"]+")
_ODD_SIGN = re.compile("(?<=[A-Za-z])[\udc80-\udc91\udc93-\udc9f](?=[A-Za-z])")
_SOME_ODD = 0.3  # share of such letters above which a legacy encoding is tried
_OLD = ["mac_roman", "cp437", "cp850"]
_FOREIGN = ["cp1251", "koi8-r", "cp1253", "cp1255", "cp1256"]
_FOREIGN += ["cp932", "euc_jp", "gb18030", "big5", "cp949"]
_DETECTED_BYTES, _MOST_CHAOS = 1 << 22, 0.5  # limits of size and disorder for the detector
_RULE = re.compile(r"[-=_+*:|~.#]*[-=_]{2}[-=_+*:|~.#]*|([*#~.+])\1{2,}")
_TOTAL = re.compile(
    r"(grand |sub)?totals?|sums?|summen?|gesamt|insgesamt|total général|totale|suma|mean|average"
    r"|mittelwert|durchschnitt|moyenne|media|median|min|max|sd|std\.?( ?dev\.?)?",
    re.IGNORECASE,
)
_NOTE = re.compile(r"[*†‡(].*|.*:.*|.{40,}", re.DOTALL)  # a note is the only cell of a final row
_MOST_TOTALS = 6  # maximum number of final rows that can be totals
_SECOND = "second-table"  # kind of the lines of a second table
_ATTRIBUTE = re.compile(r"""(?im)^\s*@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+?)\s*$""")


class CsvOptions(NamedTuple):
    """Options for a text table; None means that an option is detected."""

    separator: str | None = None  # one character; a blank means any run of blanks
    decimal: str | None = None  # "." or ","
    header: bool | int | None = None  # whether there is one, or its line number (from 1)
    encoding: str | None = None
    roles: dict[str, str] | None = None  # name to role, see `intake.ROLES`
    missing: str = "refuse"  # or "model", "mean", "drop"
    image_shape: intake.ImageShape = "auto"  # "auto": square greyscale rows are images
    na_values: Any = ()  # additional strings for missing values, such as -999
    transpose: bool = False  # whether columns are samples
    lines: str = "auto"  # or "all", which keeps lines that look like totals or notes


class SheetOptions(NamedTuple):
    """Options of a spreadsheet, as in `CsvOptions`."""

    sheet: str | None = None  # None: the sheet with most numbers
    header: bool | int | None = None
    roles: dict[str, str] | None = None
    missing: str = "refuse"
    image_shape: intake.ImageShape = "auto"
    na_values: Any = ()
    transpose: bool = False
    lines: str = "auto"


class Record(NamedTuple):
    """A row of cells and its position in the file."""

    line: int  # line number of its last line, from 1
    start: int  # offset in bytes
    stop: int
    cells: list[str]

    @property
    def n_filled(self) -> int:
        """Number of nonempty cells."""
        return sum(map(bool, map(bare, self.cells)))


def read(name: str, file: File, options: Any, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a text table or a sheet."""
    make: Any = sheet_of if isinstance(options, SheetOptions) else table_of
    return build(name, make(name, file, options, limits), options, limits)


def read_joined(files: Files, options: CsvOptions, limits: ReadLimits) -> Dataset:
    """Read two tables of the same rows, one of them with a few columns, such as classes."""
    tables = ((table_of(*named, options, limits), *named) for named in files)
    (_, other, file), *more, (table, name, _) = sorted(tables, key=lambda t: len(t[0].named))
    few = table_beside("csv", other, file, len(table.frame), limits).frame
    frame, labels, how = frames.with_classes(table.frame, few)
    titles = [f"“{shortened(title)}”" for title in (other, name)]
    msg = " cannot be combined into one data set; give one of them, or two with the same rows, of "
    msg = f"{' and '.join(titles)}{msg}which one has at most {frames.FEW} columns, such as classes."
    refuse_if(more or not how, msg)
    uploads.note(table.report, "Joined", f"{' to '.join(titles)}, {how}")
    options = options._replace(roles=dict.fromkeys(labels, "label") | (options.roles or {}))
    named = [*table.named, *[True] * (len(frame.columns) - len(table.named))]
    table = table._replace(frame=frame, named=named)
    return build(shortened(name, uploads.LONGEST_NAME), table, options, limits)


def table_beside(kind: str, name: str, file: File, n_rows: int, limits: ReadLimits) -> Table:
    """Return the columns of a table with `n_rows` rows; this number shows if it has a header."""
    if kind == "parquet":
        parts = parquet.parts_of([(name, file)], limits)
        return parquet.columns_of(name, *parts, TableOptions(), limits)
    table = table_of(name, file, CsvOptions(), limits)
    if len(table.frame) != n_rows:
        again = table_of(name, file, CsvOptions(header=not table.report["header"]), limits)
        table = again if len(again.frame) == n_rows else table
    return table


def table_of(name: str, file: File, options: CsvOptions, limits: ReadLimits) -> Table:
    """Return the columns of a text table, and a report on its format."""
    report: FileReport = {}
    text = as_text(name, uploads.file_bytes(name, file, limits), options.encoding, report)
    separator, decimal = options.separator, options.decimal
    odd = f"The decimal sign must be a point or a comma; got {decimal!r}."
    refuse_if(decimal not in (None, ".", ","), odd)
    odd = f"The separator must be one character; got {separator!r}."
    refuse_if(separator is not None and len(separator) != 1, odd)
    begin = len(text) - len(text.lstrip(b"\n"))
    if said := _SEP_LINE.match(text[begin : begin + 20]):
        separator, begin = separator or said[1].decode("latin-1"), begin + said.end()
    comments: list[bytes] = []
    above = _COMMENTS.match(text[begin : begin + _SAMPLE_BYTES])  # a slice, which the match stores
    if above and options.header in (None, True, False):  # otherwise line numbers would shift
        comments = [line for line in map(bytes.strip, above[0].split(b"\n")) if line]
        begin += above.end()
    separator, line = separator or _guess_separator(text, begin), text.count(b"\n", 0, begin)
    some, width = _sample(text, separator, begin, line)
    odd = f"“{name}” contains only blanks or comments; choose a file with data in it."
    refuse_if(not some, odd)
    for row in records(b"".join(comments[-1:]).lstrip(b"#% \t"), separator):
        words = {bare(cell) for cell in row.cells if not number_in(cell, ".")} - {""}
        if len(words) == len(row.cells) == width > 1:  # "# a b c" is the header
            some = [Record(line, 0, 0, row.cells), *some]
            del comments[-1]
    report["lines"] = lines = Counter(comment=len(comments))
    first, titles = lay_out(name, some, options.header, width, report)
    cells = [cell for row in some[first:] for cell in row.cells[:_MOST_CELLS]]
    guess, in_doubt = intake.decimal_of(cells)
    in_doubt, decimal = in_doubt and decimal is None, decimal or guess
    report |= {"separator": separator, "decimal": decimal, "same_decimal": bool(options.decimal)}
    if in_doubt:
        report.setdefault("doubt", {"option": "decimal", "now": decimal, "other": ","})
    start = some[first].start
    intake.check_columns(name, width, limits)
    uploads.check_matrix(name, text.count(b"\n", start), width, 8, limits)
    end = _second_table(text, separator, width, some[: first + 1])
    lines[_SECOND], text = text.count(b"\n", end), text[:end]
    some = [row for row in some[first:] if row.start < end and len(row.cells) == width]
    rows = [[cell.strip() for cell in row.cells] for row in some]
    if limits.head_rows:  # needed even if the table is refused later
        names = [title or f"column {j + 1}" for j, title in enumerate(titles[:_MOST_CELLS])]
        columns = zip(*rows[: limits.head_rows], strict=True)
        report["head"] = dict(zip(names, map(list, columns), strict=False))
    text = _even(name, text, report, width, start)
    texts = [j for j in range(width) if not all(intake.is_plain(row[j], decimal) for row in rows)]
    frame = _parsed(name, text, report, width, texts)
    gaps = {row[j] for j in {*range(width)} - {*texts} for row in rows}
    table = _table(frame, titles, options, report, gaps)
    if in_doubt and report.get("decimals"):  # later cells decide
        return table_of(name, file, options._replace(decimal=","), limits)
    return table


def as_text(name: str, data: bytes, encoding: str | None, report: FileReport) -> bytes:
    """Return a table as UTF-8 with line feeds; its encoding and repairs are reported."""
    report["encoding"] = code = encoding or _encoding_of(data)
    text, cause, msg = data.removeprefix(codecs.BOM_UTF8), None, ""
    try:
        if codecs.lookup(code).name not in ("utf-8", "utf-8-sig"):
            text = data.decode(code).encode()
        elif not text.isascii():
            text.decode()
    except UnicodeDecodeError as error:
        cause, byte = error, error.object[error.start]
        msg = f"“{name}” is not {code} text (byte {byte:#04x}); name its encoding, such as cp1252."
        if code.startswith("utf-8") and not encoding and not _BINARY.search(data[:_SAMPLE_BYTES]):
            msg, letters = "", text.decode(errors="surrogateescape")
            some = itertools.islice(_STRAY.finditer(letters), 20)
            report["repaired"] = sorted({letters.count("\n", 0, at.start()) + 1 for at in some})
            text = _STRAY.sub(
                lambda sign: bytes([ord(sign[0]) - 0xDC00]).decode("cp1252", "replace"), letters
            ).encode()
    except LookupError:
        msg = f"There is no encoding {code!r}; name one such as utf-8, cp1252 or utf-16."
    if data[:2] == b"PK":
        msg = f"“{name}” is a zip file or a spreadsheet, not text; name it .xlsx or .zip."
    elif b"\0" in text and not msg:
        msg = f"“{name}” contains zero bytes, so it is not a text table; save it as UTF-8 CSV."
    elif not text or text.isspace():
        msg = f"“{name}” contains only blanks; choose a file with data in it."
    if msg:
        raise InputError(msg) from cause
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _encoding_of(data: bytes) -> str:
    """Detect the encoding from a byte order mark, zero bytes, valid UTF-8, or letters."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    sample = np.frombuffer(data, np.uint8, min(len(data), _SAMPLE_BYTES) // 2 * 2).reshape(-1, 2)
    even, odd = (sample == 0).sum(axis=0) / max(1, len(sample))
    if len(data) % 2 == 0 and min(even, odd) < 0.05 and max(even, odd) > 0.3:
        return "utf-16-le" if odd > even else "utf-16-be"
    cells = () if data.isascii() else dict.fromkeys(_NO_WORD.split(data[:_DETECTED_BYTES]))
    words = [word for word in cells if not word.isascii()]
    signs = b" ".join(words).decode(errors="surrogateescape")
    n_strays, n_signs = len(_STRAY.findall(signs)), len(re.findall(r"[^\x00-\x7f]", signs))
    if _BINARY.search(data[:_SAMPLE_BYTES]) or 2 * n_strays <= n_signs:
        return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    is_foreign = 2 * sum(map(len, re.findall("[\udc80-\udcff]{3,}", signs))) > n_strays
    if is_foreign or len(_ODD_SIGN.findall(signs)) > _SOME_ODD * n_strays:
        from charset_normalizer import from_bytes

        likely = _FOREIGN if is_foreign else _OLD
        if matches := from_bytes(b" ".join(words), cp_isolation=likely, threshold=_MOST_CHAOS):
            return str(max(matches, key=lambda match: (match.coherence, -match.chaos)).encoding)
    return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", data) else "cp1252"


def records(text: bytes, separator: str, start: int = 0, line: int = 0) -> Iterator[Record]:
    """Yield nonblank rows from byte `start`; `line` is the number of the line before."""
    stream = io.BytesIO(text)
    before = stream.seek(start)
    lines = (raw.decode() for raw in stream)
    if separator == BLANK:
        lines = (raw.strip().replace("\t", " ") + "\n" for raw in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for cells in reader:
            place = stream.tell()
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield Record(line + reader.line_num, before, place, cells)
            before = place
    except csv.Error as error:
        msg = f"Line {line + reader.line_num} cannot be split ({error}); check its quotation marks."
        raise InputError(msg) from error


def _sample(text: bytes, separator: str, start: int, line: int) -> tuple[list[Record], int]:
    """Return the first records and their most common width."""
    some: list[Record] = []
    for record in itertools.islice(records(text, separator, start, line), _SAMPLE_ROWS):
        if record.stop - start > _SAMPLE_BYTES and len(some) >= _FEWEST_ROWS:
            break
        some.append(record)
    widths = Counter(len(row.cells) for row in some)
    return some, max(widths, key=lambda width: (widths[width], width), default=1)


def _guess_separator(text: bytes, start: int) -> str:
    """Return the separator that gives lines of equal width with most numbers."""
    best, merit = SEPARATORS[0], (False, 0.0, 1)
    for separator in (*SEPARATORS, BLANK):
        try:
            some, width = _sample(text, separator, start, 0)
        except InputError:  # such as an overlong cell
            continue
        even = sum(len(row.cells) in (width, width - 1) for row in some) >= _MOSTLY * len(some) - 3
        cells = [cell for row in some[1:] or some for cell in row.cells[:_MOST_CELLS] if bare(cell)]
        numbers = np.count_nonzero(~np.isnan([intake.real(cell) for cell in cells]))
        score = (even, numbers / max(1, len(cells)), width)
        beaten = score > merit
        if separator == BLANK and merit[0]:  # in a tab-separated table, blanks belong to cells
            beaten = best != "\t" and score[:2] > merit[:2]
        if width > 1 and beaten:
            best, merit = separator, score
    return best


class Grid(NamedTuple):
    """Cells of some rows, without surrounding blanks."""

    texts: np.ndarray  # (n, width)
    values: np.ndarray
    gaps: np.ndarray

    @classmethod
    def of(cls, some: Sequence[Record], width: int) -> "Grid":
        """Make a grid from the first `width` cells of rows."""
        rows = [[*map(bare, row.cells[:width]), *[""] * (width - len(row.cells))] for row in some]
        texts = np.array(rows, object).reshape(-1, width)
        values = np.array([intake.real(cell) for cell in texts.flat], float)
        gaps = [cell.lower() in intake.GAPS or bool(_RULE.fullmatch(cell)) for cell in texts.flat]
        return cls(texts, values.reshape(texts.shape), np.array(gaps, bool).reshape(texts.shape))

    def numeric(self, first: int, share: float = _MOSTLY) -> np.ndarray:
        """Return which columns are numeric from a row on."""
        n_cells = (~self.gaps[first:]).sum(axis=0)
        n_numbers = (~np.isnan(self.values[first:])).sum(axis=0)
        return np.asarray((n_numbers >= share * n_cells) & (n_numbers > 0))


def lay_out(
    name: str, some: Sequence[Record], header: bool | int | None, width: int, report: FileReport
) -> tuple[int, list[str]]:
    """Return the index of the first data row, and the column names."""
    is_free = header is None or isinstance(header, bool)
    places = [i for i, row in enumerate(some) if row.line == header]
    sentence = f"Line {header} of “{name}” cannot be the header; choose a line near the start."
    refuse_if(not is_free and not places, sentence)
    top = _titles(some, width) if is_free else places[0]
    grid = Grid.of(some[top:], min(width, _MOST_CELLS))
    # R writes no name above the column of row names
    shorter = len(some[top].cells) == width - 1 and bool(grid.texts[1:, -1].any())
    if shorter:
        padded = some[top]._replace(cells=["", *some[top].cells])
        grid = Grid.of([padded, *some[top + 1 :]], grid.texts.shape[1])
    with np.errstate(invalid="ignore"):  # infinite numbers warn
        has_header, in_doubt = _header(grid) if header is None else (header is not False, False)
    if in_doubt:
        report["doubt"] = {"option": "header", "now": has_header, "other": not has_header}
    report |= {"header": has_header, "header_line": None}
    report["lines"]["title"] = top
    if not has_header:
        return top, [""] * width
    sentence = f"“{name}” has only a header line; add rows, or turn the header off."
    refuse_if(len(some) < top + 2, sentence)
    stop = top + 1
    while is_free and stop - top < min(_HEADER_LINES, len(grid.texts) - 2):
        numeric = grid.numeric(stop - top + 1)  # skips names and a line of units
        is_word = np.isnan(grid.values[stop - top, numeric])
        n_words = (is_word & ~grid.gaps[stop - top, numeric]).sum()
        if not is_word.all() or 2 * n_words <= numeric.sum():
            break
        stop += 1
    parts = []
    for row in some[max(0, top - 1) : stop]:
        titles = [""] * shorter + [bare(" ".join(cell.split())) for cell in row.cells]
        parts.append((titles + [""] * width)[:width])
    is_double = 0 < top == stop - 1 and len({*parts[1]}) < width and some[top - 1].n_filled > 1
    if top and not is_double:
        del parts[0]
    for part in parts[:-1]:  # merged cells: a name also applies to empty cells on its right
        for j in range(1, width):
            part[j] = part[j] or part[j - 1]
    report["lines"]["title"], report["header_line"] = top - is_double, some[stop - 1].line
    once = [dict.fromkeys(filter(None, names)) for names in zip(*parts, strict=True)]
    return stop, [*map(" ".join, once)]


def _titles(some: Sequence[Record], width: int) -> int:
    """Return the number of lines above the table: titles, notes, or empty cells."""
    grid = Grid.of(some[:_TOP], min(width, _MOST_CELLS))
    words, usual = np.isnan(grid.values) & ~grid.gaps, len(grid.texts)
    for place, row in enumerate(some[:_TOP]):
        n, n_filled = len(row.cells), row.n_filled
        is_short = n < width or 2 * n_filled <= width
        is_header = place > 0 and width > 1 and words[place, 1:].all() and not is_short
        is_header = is_header and np.isnan(grid.values[place, 0])
        if is_header and grid.numeric(place + 1, 0.5).any():
            return place
        if width == 1 or (n >= max(2, width - 1) and n_filled >= (2 if width > 2 else 1)):
            usual = min(usual, place)
        if not is_short:
            break
    return usual if usual < len(grid.texts) else 0


def _header(grid: Grid) -> tuple[bool, bool]:
    """Return whether the first row is a header (words or rising numbers), and if in doubt."""
    is_number = ~np.isnan(grid.values[0])
    words, numeric = ~is_number & ~grid.gaps[0], grid.numeric(1)
    n_words = int((words & numeric).sum())
    first = grid.values[1:, 0]
    is_index = not (numeric[0] and ((first % 1).any() or len(set(first)) < len(first)))
    unnamed = not grid.texts[0, 0] and is_index  # above an index or row names
    numbers = grid.values[:, numeric & is_number]
    above, body = numbers[0], numbers[1:]
    if not len(above):
        named = unnamed or n_words > 0 if numeric.any() else not is_number.any()
        return named and (len(grid.texts) > 1 or len(numeric) > 1), False
    apart = [column[0] not in column[1:].tolist() for column in grid.texts[:, words & ~numeric].T]
    worded, steps = n_words > 0 or unnamed or any(apart), np.diff(numbers, axis=1)
    rises = np.all(steps > 0, axis=1) | np.all(steps < 0, axis=1)
    if not rises[0] or (above % 1).any():
        steady = len(above) >= 10 and bool(rises[0])
        return n_words > len(above) or steady, steady and not worded
    alike = len(above) > 3 and rises[1:].mean() > 0.5
    low, high = np.nanmin(body, axis=0), np.nanmax(body, axis=0)
    reach = 3 * (high - low)
    outside = (above > high + reach) | (above < low - reach) | (np.nan_to_num(body) % 1).any(axis=0)
    far = bool(outside.mean() > 0.5)
    counted_up = len(above) > 3 and bool((above == np.arange(len(above))).all())
    if ((far or counted_up) and (worded or len(above) > 2)) or (worded and not alike):
        return True, bool(alike and not worded)
    return False, far or worded


def _heads_table(rows: Sequence[Record], above: Sequence[Record]) -> bool:
    """Whether rows begin another table: an optional title, a header of words, then data."""
    lines = [[*map(bare, row.cells)] for row in rows if row.n_filled]
    titles, *data = lines[1:] if len(lines) > 2 and sum(map(bool, lines[0])) == 1 else lines or [[]]
    if not data or titles in [[*map(bare, row.cells)] for row in above]:
        return False
    under = [cell for title, cell in zip(titles, data[0], strict=False) if title]
    are_words = all(np.isnan(intake.real(title)) and not _RULE.fullmatch(title) for title in titles)
    return are_words and len(under) > 1 and not np.isnan([*map(intake.real, under)]).all()


def _second_table(text: bytes, separator: str, width: int, some: Sequence[Record]) -> int:
    """Return the byte offset of a second table below an empty line, or of the end."""
    for empty in (b"\n\n", b"\n" + separator.encode() * (width - 1) + b"\n"):
        place = some[-1].start
        for _ in range(_TOP):
            if (place := text.find(empty, place + 1)) < 0:
                break
            is_head = _heads_table([*itertools.islice(records(text, separator, place), 4)], some)
            if is_head and text.count(b'"', some[-1].start, place) % 2 == 0:
                return place + 1
    return len(text)


def _even(name: str, text: bytes, report: FileReport, width: int, start: int) -> bytes:
    """Return lines of `width` cells from byte `start`; drop and count other lines without data."""
    separator = report["separator"]
    line, mark = text.count(b"\n", 0, start), separator.encode()
    if text.find(b'"', start) >= 0 or len(mark) > 1 or separator == BLANK:
        odd = [row for row in records(text, separator, start, line) if len(row.cells) != width]
    else:
        odd = list(_odd_lines(text, mark, width, start, line))
    kinds = ["comment" if text[row.start] in b"#%" else _no_data(row.cells) for row in odd]
    end = len(text)
    for i in range(len(odd) - 1, -1, -1):  # notes at the end: short lines of words
        is_note = 2 * odd[i].n_filled <= width and not number_in(odd[i].cells[0], ".")
        if text[odd[i].stop : end].strip() or not (is_note or kinds[i]):
            break
        kinds[i], end = kinds[i] or "closing", odd[i].start
    report["lines"] += Counter(filter(None, kinds))
    pieces, before = [], start
    for row, kind in zip(odd, kinds, strict=True):
        remedy = "put tabs between cells" if separator == BLANK else "choose another separator"
        refuse_if(
            not kind and (len(row.cells) < width or any(map(bare, row.cells[width:]))),
            f"Line {row.line} of “{name}” has {counted(len(row.cells), 'cell')}, but the first has "
            f"{width}; give every line the same number, or {remedy}.",
            report,
        )
        pieces.append(text[before : row.start])
        before = row.stop
        if not kind:  # only trailing separators
            csv.writer(line_of := io.StringIO(), delimiter=separator).writerow(row.cells[:width])
            pieces.append(line_of.getvalue().encode())
    return b"".join([*pieces, text[before:]])


def _odd_lines(text: bytes, mark: bytes, width: int, start: int, line: int) -> Iterator[Record]:
    stream = io.BytesIO(text)
    stream.seek(start)
    for number, raw in enumerate(stream, line + 1):
        stop = start + len(raw)
        if raw != b"\n" and raw.count(mark) != width - 1:
            yield Record(number, start, stop, raw.decode().rstrip("\n").split(mark.decode()))
        start = stop


def _no_data(cells: Sequence[str]) -> str:
    """Return the kind of a line of empty cells or dashes, else an empty text."""
    filled = [cell for cell in map(bare, cells) if cell]
    return "empty" if not filled else "drawn" if all(map(_RULE.fullmatch, filled)) else ""


def _parsed(
    name: str, text: bytes, report: FileReport, width: int, texts: Sequence[int]
) -> "pd.DataFrame":
    """Parse with pandas; `texts` and non-numeric columns stay text."""
    import pandas as pd

    separator = report["separator"]
    kinds: dict[str, Any] = {
        "dtype": dict.fromkeys(texts, object),
        "na_values": {j: [*intake.PLAIN_GAPS] for j in {*range(width)} - {*texts}},
        "sep": r"\s+" if separator == BLANK else separator,
    }
    kinds |= {"decimal": report["decimal"], "header": None, "names": range(width)}
    kinds |= {"index_col": False, "skipinitialspace": True, "keep_default_na": False}
    if int(pd.__version__.partition(".")[0]) < 3:  # its default parser rounds the last bit
        kinds["float_precision"] = "round_trip"
    try:
        frame: pd.DataFrame = pd.read_csv(io.BytesIO(text), low_memory=False, **kinds)
    except (ValueError, OverflowError) as error:
        why = shortened(str(error).removeprefix("Error tokenizing data. C error: "), 120)
        msg = f"“{name}” cannot be read as a table ({why}); check its lines and quotation marks."
        raise InputError(msg) from error
    code = rb'[%b\n" ]0[0-9]' % re.escape(separator[-1:].encode())
    has_codes = any(kind.kind in "iu" for kind in frame.dtypes) and re.search(code, text)
    late = []
    for j in sorted({*range(width)} - {*texts}):
        values = frame[j].to_numpy()
        is_plain = values.dtype.kind in ("f" if has_codes else "iuf")
        ends = [np.fmin.reduce(values), np.fmax.reduce(values)] if is_plain else [np.inf]
        if max(map(abs, ends)) >= intake.EXACT:
            late.append(j)
    return _parsed(name, text, report, width, [*texts, *late]) if late else frame


def _table(
    frame: "pd.DataFrame", header: list[str], options: Any, report: FileReport, gaps: Any = ()
) -> Table:
    """Drop rows without data and convert text; words in `gaps`, such as NA, are missing."""
    none, lines = intake.as_list(options.na_values), report["lines"]
    is_text = np.array([kind.kind not in "iuf" for kind in frame.dtypes])
    keeps_all = getattr(options, "lines", "auto") == "all"
    left_out = {} if keeps_all else _rows_without(frame, is_text, header)
    lines.update(left_out.values())
    if left_out:
        frame = frame.drop(index=[*left_out]).reset_index(drop=True)
    titles = [title or f"column {j + 1}" for j, title in enumerate(header)]
    names = frames.unique(titles)
    report["renamed"] = [new for new, old in zip(names, titles, strict=True) if new != old]
    said, filled = dict[str, str](), list[str]()
    texts = {j: frame[j] for j in np.flatnonzero(is_text).tolist()}
    for j, column in texts.items():
        frame[j], said[names[j]] = intake.convert(column, names[j], report, none)
    numbers = {j for j in texts if frame[j].dtype.kind in "iuf"}
    words = {*gaps}.union(*report.get("not_numbers", {}).values())
    for word in sorted(word for word in words if word and word.lower() in intake.GAPS):
        for j in [j for j in texts if j not in numbers]:
            at = (frame[j] == word).to_numpy()
            parsed = word in gaps and frame.loc[at, ~is_text].isna().any(axis=None)
            if parsed or any((texts[k][at] == word).any() for k in numbers if at.any()):
                frame.loc[at, j] = None
                filled.append(f"{names[j]} ({at.sum():,})")
    if filled:
        uploads.note(report, "Gaps among words", uploads.few(filled))
    frame, beside = _without_others(frame, header, lines)
    said |= {names[j]: "other" for j in beside}
    report["lines"] = {kind: n for kind, n in lines.items() if n > 0}
    frame.columns = names
    return Table(frame, [bool(title) for title in header], report, said)


def _without_others(
    frame: "pd.DataFrame", header: list[str], lines: Counter[str]
) -> "tuple[pd.DataFrame, list[int]]":
    """Return the rows of the largest table, and the columns of tables beside it."""
    gaps = [j for j, title in enumerate(header) if not title and frame[j].isna().all()]
    spans = itertools.pairwise([-1, *gaps, len(header)]) if gaps else ()
    parts = [[*range(a + 1, b)] for a, b in spans if b > a + 1]
    ends = [np.flatnonzero(frame[part].notna().any(axis=1)).max(initial=-1) + 1 for part in parts]
    sizes = [end * len(part) for end, part in zip(ends, parts, strict=True)]
    end = ends[int(np.argmax(sizes))] if parts else len(frame)
    others = [part for last, part in zip(ends, parts, strict=True) if abs(last - end) > 1]
    if others:
        lines[_SECOND] += len(frame) - end
    return frame[:end] if others else frame, [j for part in others for j in part]


def _rows_without(frame: "pd.DataFrame", is_text: np.ndarray, header: list[str]) -> dict[int, str]:
    """Return the kinds of rows without data: empty, rules, repeated headers, final totals."""
    rows = np.arange(len(frame))
    for j in np.flatnonzero(~is_text).tolist():
        if not len(rows):
            break
        rows = rows[np.isnan(frame[j].to_numpy()[rows])]
    columns = {j: frame[j].to_numpy() for j in np.flatnonzero(is_text).tolist()}
    for j, column in columns.items():
        cells = map(bare, column[rows].tolist())
        may_be = [not cell or cell == header[j] or bool(_RULE.fullmatch(cell)) for cell in cells]
        rows = rows[np.array(may_be, bool)]

    head = header if is_text.all() and any(header) else None
    last = range(len(frame) - 1, max(-1, len(frame) - 1 - _MOST_TOTALS), -1)
    texts = {i: [bare(cells[i]) for cells in columns.values()] for i in {*rows.tolist(), *last}}
    kinds = {i: _no_data(texts[i]) or "repeated header" * (texts[i] == head) for i in rows.tolist()}
    for row in last:
        first, *others = [*filter(None, texts[row]), ""]
        is_alone = not any(others) and frame.iloc[row, ~is_text].isna().all() and len(header) > 2
        if _TOTAL.fullmatch(first.strip(": ")):
            kinds[row] = "total"
        elif is_alone and _NOTE.fullmatch(first):
            kinds[row] = "closing"
        elif not kinds.get(row):
            break
    return {row: kind for row, kind in kinds.items() if kind}


def sheet_of(name: str, file: File, options: SheetOptions, limits: ReadLimits) -> Table:
    """Return the columns of a sheet; other sheets are reported."""
    import pandas as pd
    from python_calamine import CalamineError, CalamineWorkbook

    data = io.BytesIO(uploads.file_bytes(name, file, limits))
    sheets, unread = dict[str, list[Record]](), dict[str, str]()
    with suppress(CalamineError, OSError, ValueError):
        book = CalamineWorkbook.from_filelike(data)
        for title in book.sheet_names:
            try:
                sheets[title] = _cells(book, title, limits)
            except (CalamineError, ValueError) as error:
                unread[title] = f"a sheet that cannot be read: {error}"
    msg = f"“{name}” is damaged, locked by a password, or not a spreadsheet; save it again as XLSX."
    refuse_if(not sheets, msg)
    votes = [t for t in sheets for row in sheets[t] for cell in row.cells if number_in(cell, ".")]
    chosen = max(sheets, key=Counter(votes).__getitem__) if options.sheet is None else options.sheet
    refuse_unknown("sheet", chosen, sheets, f" in “{name}”")
    some = sheets[chosen]
    refuse_if(not some, f"The sheet “{shortened(chosen)}” of “{name}” is empty; choose another.")
    report: FileReport = {"sheet": chosen, "sheets": [*sheets], "decimal": ".", "unused": unread}
    width = max(len(row.cells) for row in some)
    intake.check_columns(name, width, limits)
    uploads.check_matrix(name, len(some), width, 8, limits)
    report["lines"] = lines = Counter[str]()
    first, titles = lay_out(name, some[:_SAMPLE_ROWS], options.header, width, report)
    body = some[first:]
    for i in range(1, len(body)):
        if body[i].line > body[i - 1].line + 1 and _heads_table(body[i : i + 3], some[:first]):
            lines[_SECOND], body = len(body) - i, body[:i]
            break
    cells = [row.cells + [""] * (width - len(row.cells)) for row in body]
    return _table(pd.DataFrame(cells, columns=range(width), dtype=object), titles, options, report)


def read_arff(name: str, file: File, options: TableOptions, limits: ReadLimits) -> Dataset:
    """Read an ARFF file: attributes become columns, nominal ones labels; ? is missing."""
    import pandas as pd

    text = uploads.file_bytes(name, file, limits).decode("utf-8-sig", "replace")
    head, _, body = re.sub(r"(?im)^\s*@data.*$", "\0", text, count=1).partition("\0")
    kinds = {key.strip("'\""): kind for key, kind in _ATTRIBUTE.findall(head)}
    quote = '"' if body.count('"') > body.count("'") else "'"
    is_sparse = body.lstrip()[:1] == "{"
    lines = [line.strip() for line in body.splitlines() if line.strip() and line.lstrip()[0] != "%"]
    cells: list[list[str]] = []
    with suppress(csv.Error):
        inner = [line.strip("{}") if is_sparse else line for line in lines]
        cells += csv.reader(inner, quotechar=quote, escapechar="\\", skipinitialspace=True)
    if is_sparse:  # sparse rows such as "0 1.5, 3 a" omit zeros and the first class
        first = [kind[1:].split(",")[0] if kind[0] == "{" else "0" for kind in kinds.values()]
        parts = [[cell.replace("\t", " ").partition(" ")[::2] for cell in row] for row in cells]
        pairs = [*map(dict, parts)]
        cells = [[row.get(str(j), s).strip("}'\" ") for j, s in enumerate(first)] for row in pairs]
    msg = f"“{name}” is not an ARFF file or is damaged; save it again, or as CSV."
    refuse_if(not kinds or {len(row) for row in cells} != {len(kinds)}, msg)
    frame = pd.DataFrame(cells, columns=range(len(kinds)), dtype=object)
    nominal = {key: "label" for key, kind in kinds.items() if kind.startswith("{")}
    roles = nominal | (options.roles or {})
    options = options._replace(na_values=["?", *intake.as_list(options.na_values)], roles=roles)
    table = _table(frame, [*kinds], options, {"decimal": ".", "lines": Counter()})
    return build(name, table, options, limits)


def read_json(name: str, file: File, options: TableOptions, limits: ReadLimits) -> Dataset:
    """Read JSON records, in a list or one on each line: keys become columns; null is missing."""
    import pandas as pd

    few = limits._replace(n_bytes=limits.n_bytes // 8)  # parsed records take more memory
    text = uploads.file_bytes(name, file, few).decode("utf-8-sig", "replace").strip()
    records: Any = None
    with suppress(ValueError, RecursionError):
        records = json.loads(text if text[:1] == "[" else f"[{','.join(text.splitlines())}]")
    msg = f"“{name}” contains no list of records, such as [{{}}]; save it as CSV."
    refuse_if(not records or any(type(record) is not dict for record in records), msg)
    keys = list(dict.fromkeys(itertools.chain.from_iterable(records)))
    uploads.check_matrix(name, len(records), len(keys), 8, limits)
    cells = [["" if (v := r.get(key)) is None else str(v) for key in keys] for r in records]
    frame = pd.DataFrame(cells, columns=range(len(keys)), dtype=object)
    table = _table(frame, keys, options, {"decimal": ".", "lines": Counter()})
    return build(name, table, options, limits)


def _cells(book: Any, title: str, limits: ReadLimits) -> list[Record]:
    sheet = book.get_sheet_by_name(title)
    uploads.check_matrix(title, sheet.total_height, max(1, sheet.total_width), 8, limits)
    rows = [[_text(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        for row in rows[top : min(bottom, top + _HEADER_LINES) + 1]:
            row[left : right + 1] = [rows[top][left]] * len(row[left : right + 1])
    return [Record(i + 1, i, i + 1, row) for i, row in enumerate(rows) if any(row)]


def _text(cell: object) -> str:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    return str(cell).removesuffix(" 00:00:00")


READER, ARFF_READER = Reader(CsvOptions, read, read_joined), Reader(TableOptions, read_arff)
JSON_READER, SHEET_READER = Reader(TableOptions, read_json), Reader(SheetOptions, read)
