"""Tables of text and of spreadsheets: how they are written, and their columns."""

import codecs
import csv
import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.files import LIMITS, File, Reader, ReadLimits, check_matrix, file_bytes
from appca.data.readers import intake
from appca.data.readers.intake import FileReport, as_list, bare
from appca.data.readers.roles import ImageShape, Table, build, check_columns, unique
from appca.words import InputError, counted, shortened, unknown

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
BLANK = " "  # any run of blanks
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 18, 300
_FEWEST_ROWS = 5  # of the sample, however wide the table is
_MOST_CELLS = 1000  # of a line that are looked at to guess how it is written
_PIECE = 1 << 20  # bytes whose separators are counted at a time
_MOST_ODD = 10_000  # lines of another width
_TOP, _HEADER_LINES = 40, 3  # lines in which a header is looked for, and most lines of it
_MANY = 10  # real numbers that rise and may be names
_MOSTLY = 0.9  # share of numbers in a column of numbers, and of lines of one width
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # signs that no text table holds
_FEW_ZEROS, _MANY_ZEROS = 0.05, 0.3  # shares of the bytes in odd and even places, of UTF-16
_SEP_LINE = re.compile(rb'"?sep=(.)"?[ \t]*\n', re.IGNORECASE)
_STRAY = re.compile("[\udc80-\udcff]")  # a byte that is not UTF-8
_WORD = re.compile(rb"[^\s\d,;|\"]*[\x80-\xff][^\s\d,;|\"]*")
_ODD_SIGN = re.compile("(?<=[A-Za-z])[\udc80-\udc91\udc93-\udc9f](?=[A-Za-z])")
_SOME_ODD = 0.3  # share of such signs, which are letters on old machines alone
_FOREIGN = [
    *("cp1251", "koi8-r", "cp1253", "cp1255", "cp1256"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
_OLD = ["mac_roman", "cp437", "cp850"]
_DETECTED_BYTES, _MOST_CHAOS = 1 << 22, 0.5  # of a text whose encoding is detected
_RULE = re.compile(r"[-=_+*:|~.#]*[-=_]{2}[-=_+*:|~.#]*")  # a cell of a line that is drawn
_TOTAL = re.compile(
    r"(grand |sub)?totals?|sums?|summen?|gesamt|insgesamt|total général|totale|suma|mean|average"
    r"|mittelwert|durchschnitt|moyenne|media|median|min|max|sd|std\.?( ?dev\.?)?",
    re.IGNORECASE,
)
_MOST_TOTALS = 3  # rows at the end


class CsvOptions(NamedTuple):
    """How to read a text table; what is None is guessed."""

    separator: str | None = None  # one character; a blank stands for any run of blanks
    decimal: str | None = None  # "." or ","
    header: bool | int | None = None  # whether there is one, or the number of its line from 1 on
    encoding: str | None = None
    roles: dict[str, str] | None = None  # name to role (see `roles.ROLES`) where the guess is wrong
    missing: str = "refuse"  # or "model", "mean", "drop": what to do when feature cells are missing
    image_shape: ImageShape = "auto"  # "auto" takes squares of grey for images
    na_values: Any = ()  # further cells that are gaps, such as -999
    transpose: bool = False  # columns are samples


class SheetOptions(NamedTuple):
    """How to read a spreadsheet; fields as of `CsvOptions`."""

    sheet: str | None = None  # its name; None takes the one with most numbers
    header: bool | int | None = None
    roles: dict[str, str] | None = None
    missing: str = "refuse"
    image_shape: ImageShape = "auto"
    na_values: Any = ()
    transpose: bool = False


class Dialect(NamedTuple):
    """How the cells of a text are written."""

    separator: str
    decimal: str
    width: int  # cells of a line


class Record(NamedTuple):
    """A row of cells, and where it is written."""

    line: int  # of the file, from 1 on; of several, the last
    start: int  # bytes
    stop: int
    cells: list[str]

    @property
    def n_filled(self) -> int:
        """How many cells are not empty."""
        return sum(map(bool, map(bare, self.cells)))


class TableLayout(NamedTuple):
    """Where the rows begin, and what the columns are called."""

    first: int  # place of the first row of data among the records
    names: list[str]  # "" where a column has none
    header_line: int | None = None
    titles: int = 0  # lines above that are not used
    in_doubt: bool = False  # the header may be data, or the first row a header


def read(name: str, file: File, options: CsvOptions, limits: ReadLimits = LIMITS) -> Dataset:
    """Read a text table: float64, or uint8 for images.

    Ids are those of the id column, else ``row-1`` and so on, so that they name the file's rows also
    after some were dropped.
    """
    return build(name, table_of(name, file, options, limits), options, limits)


def read_sheet(
    name: str, file: File, options: SheetOptions, limits: ReadLimits = LIMITS
) -> Dataset:
    """Read a sheet of an Excel or OpenDocument file as the same cells in a text table."""
    return build(name, sheet_of(name, file, options, limits), options, limits)


def table_of(name: str, file: File, options: CsvOptions, limits: ReadLimits) -> Table:
    """Return the columns of a text table, and how it is written."""
    report: FileReport = {}
    text = as_text(name, file_bytes(name, file, limits), options.encoding, report)
    if options.decimal not in (None, ".", ","):
        msg = f"The decimal sign must be a point or a comma; got {options.decimal!r}."
        raise InputError(msg)
    separator, begin = options.separator, len(text) - len(text.lstrip(b"\n"))
    if separator is not None and len(separator) != 1:
        msg = f"The separator must be one character; got {separator!r}."
        raise InputError(msg)
    said = _SEP_LINE.match(text, begin)
    if said:
        separator, begin = separator or said[1].decode("latin-1"), said.end()
    comments, begin = (
        _comments(text, begin) if options.header in (None, True, False) else ([], begin)
    )
    separator = separator or _guess_separator(text, begin)
    first_line = text.count(b"\n", 0, begin)
    some = _sample(text, separator, begin, first_line)
    if not some:
        msg = f"“{name}” contains only blanks or comments; choose a file with data in it."
        raise InputError(msg)
    width = _width(some)
    headed = _commented_header(comments, separator, width, first_line)
    layout = lay_out(name, [*headed, *some], options.header, width)
    body = [*headed, *some][layout.first :]
    decimal, in_doubt = intake.decimal_of(
        [cell for row in body for cell in row.cells[:_MOST_CELLS]]
    )
    in_doubt = in_doubt and options.decimal is None
    decimal = options.decimal or ("." if in_doubt else decimal)
    report |= {"separator": separator, "decimal": decimal}
    start = body[0].start if body else len(text)
    lines = Counter({"comment": len(comments) - len(headed), "title": layout.titles})
    check_columns(name, width, limits)
    check_matrix(name, text.count(b"\n", start), width, 8, limits)
    scan = _scan(name, text, separator, width, start)
    lines.update(scan.left_out)
    none = as_list(options.na_values)
    frame = _parsed(name, scan, Dialect(separator, decimal, width), body)
    if in_doubt:
        report["doubt"] = {"option": "decimal", "now": decimal, "other": ","}
    table = _table(name, frame, layout, none, lines, report)
    if in_doubt and report.get("decimals"):  # later cells tell
        return table_of(name, file, options._replace(decimal=","), limits)
    return table


def table_beside(name: str, file: File, n_rows: int, limits: ReadLimits) -> Table:
    """Return the columns of a table that names `n_rows` rows: so many tell if it has a header."""
    tables = [table_of(name, file, CsvOptions(), limits)]
    if len(tables[0].frame) != n_rows:
        other = not tables[0].report["header"]
        tables.append(table_of(name, file, CsvOptions(header=other), limits))
    return next((table for table in reversed(tables) if len(table.frame) == n_rows), tables[0])


def as_text(name: str, data: bytes, encoding: str | None, report: FileReport) -> bytes:
    """Return a table as UTF-8 with line feeds; the report receives its encoding, and repairs."""
    if data[:2] == b"PK":
        msg = (
            f"“{name}” is a packed or spreadsheet file, not text; give it the ending .xlsx or .zip."
        )
        raise InputError(msg)
    report["encoding"] = code = encoding or _encoding_of(data)
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        if codecs.lookup(code).name not in ("utf-8", "utf-8-sig"):
            text = data.decode(code).encode()
        elif (stray := _first_stray(text)) is not None:
            if encoding or _BINARY.search(data[:_SAMPLE_BYTES]):
                raise stray
            text = _repaired(text, report)
    except UnicodeDecodeError as error:
        msg = (
            f"“{name}” is not {code} text (byte {error.object[error.start]:#04x}); save it as "
            "UTF-8 or name its encoding, such as cp1252."
        )
        raise InputError(msg) from error
    except LookupError as error:
        msg = f"There is no encoding {code!r}; name one such as utf-8, cp1252 or utf-16."
        raise InputError(msg) from error
    if b"\0" in text:
        msg = f"“{name}” holds zero bytes, so it is not a text table; save it as UTF-8 CSV."
        raise InputError(msg)
    if not text or text.isspace():
        msg = f"“{name}” contains only blanks; choose a file with data in it."
        raise InputError(msg)
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _first_stray(text: bytes) -> UnicodeDecodeError | None:
    """Return why text is not UTF-8, if so; by the piece, for one emoji makes a `str` four times."""
    start = len(text) if text.isascii() else 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + 4 * _PIECE) + 1 or text.find(b"\n", start) + 1
        try:
            text[start : end or len(text)].decode()
        except UnicodeDecodeError as error:
            return error
        start = end or len(text)
    return None


def _repaired(text: bytes, report: FileReport) -> bytes:
    """Return text of which bytes that are no UTF-8 are read as Western European, and named."""
    lines = text.decode(errors="surrogateescape").split("\n")
    spoilt = [i for i, line in enumerate(lines) if _STRAY.search(line)]
    report["repaired"] = [i + 1 for i in spoilt[:20]]
    for i in spoilt:
        lines[i] = _STRAY.sub(_as_western, lines[i])
    return "\n".join(lines).encode()


def _as_western(stray: re.Match[str]) -> str:
    return bytes([ord(stray[0]) - 0xDC00]).decode("cp1252", "replace")


def _encoding_of(data: bytes) -> str:
    """Return the encoding: by a mark, zero bytes, UTF-8, or by what the bytes are as letters."""
    marks = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", codecs.BOM_UTF8[:2]: "utf-8-sig"}
    if data[:2] in marks:
        return marks[data[:2]]
    sample = np.frombuffer(data, np.uint8, min(len(data), _SAMPLE_BYTES) // 2 * 2)
    even, odd = ((sample[first::2] == 0).mean() if len(sample) else 0.0 for first in (0, 1))
    if len(data) % 2 == 0 and min(even, odd) < _FEW_ZEROS and max(even, odd) > _MANY_ZEROS:
        return "utf-16-le" if odd > even else "utf-16-be"
    is_utf8 = _BINARY.search(data[:_SAMPLE_BYTES]) or _first_stray(data) is None
    return "utf-8" if is_utf8 else _detected(data)


def _detected(data: bytes) -> str:
    """Return the encoding of text that is not UTF-8 by what its bytes are as letters."""
    words = list(dict.fromkeys(_WORD.findall(data[:_DETECTED_BYTES])))
    signs = b" ".join(words).decode(errors="surrogateescape")
    n_strays = len(_STRAY.findall(signs))
    if 2 * n_strays <= len(re.findall(r"[^\x00-\x7f]", signs)):
        return "utf-8"
    runs = sum(map(len, re.findall("[\udc80-\udcff]{3,}", signs)))
    likely = _FOREIGN if 2 * runs > n_strays else []
    if len(_ODD_SIGN.findall(signs)) > _SOME_ODD * n_strays:
        likely = likely or _OLD
    if likely:
        from charset_normalizer import from_bytes

        matches = from_bytes(b" ".join(words), cp_isolation=likely, threshold=_MOST_CHAOS)
        if matches:
            return str(max(matches, key=lambda match: (match.coherence, -match.chaos)).encoding)
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _comments(text: bytes, begin: int) -> tuple[list[bytes], int]:
    """Return the comment lines at the start, and where the lines after them begin."""
    comments: list[bytes] = []
    start = begin
    while start < len(text):
        end = text.find(b"\n", start) + 1 or len(text)
        line = text[start:end].strip()
        if line and line[:1] not in b"#%":
            return comments, start
        comments += [line] if line else []
        start = end
    return [], begin


def _commented_header(
    comments: list[bytes], separator: str, width: int, lines_above: int
) -> list[Record]:
    """Return the last comment as a record, if it names the columns: "# a b c"."""
    if not comments:
        return []
    last = comments[-1].lstrip(b"#% \t").decode() + "\n"
    cells = next((row.cells for row in records(last.encode(), separator)), [])
    names = [bare(cell) for cell in cells]
    distinct = len(set(names)) == len(names) == width > 1
    are_words = all(names) and not any(intake.number_in(name, ".") for name in names)
    return [Record(lines_above, 0, 0, cells)] if distinct and are_words else []


def records(text: bytes, separator: str, start: int = 0, line: int = 0) -> Iterator[Record]:
    """Yield the rows of cells that are not blank, from byte `start` on, which is below `line`."""
    place = start

    def lines() -> Iterator[str]:
        nonlocal place
        stream = io.BytesIO(text)
        stream.seek(start)
        for raw in stream:
            place += len(raw)
            decoded = raw.decode()
            yield decoded.strip().replace("\t", " ") + "\n" if separator == BLANK else decoded

    reader = csv.reader(lines(), delimiter=separator, skipinitialspace=True)
    before = start
    try:
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield Record(line + reader.line_num, before, place, cells)
            before = place
    except csv.Error as error:
        msg = f"Line {line + reader.line_num} cannot be split ({error}); check its quotation marks."
        raise InputError(msg) from error


def _sample(text: bytes, separator: str, start: int, line: int) -> list[Record]:
    """Return the first records: a few however long they are, many where they are short."""
    some: list[Record] = []
    for record in itertools.islice(records(text, separator, start, line), _SAMPLE_ROWS):
        if record.stop - start > _SAMPLE_BYTES and len(some) >= _FEWEST_ROWS:
            break
        some.append(record)
    return some


def _width(some: Sequence[Record]) -> int:
    """Return the number of cells that most rows have."""
    widths = Counter(len(row.cells) for row in some)
    return max(widths, key=lambda width: (widths[width], width), default=1)


def _guess_separator(text: bytes, start: int) -> str:
    """Return the separator that gives equal lines of more than one cell, most of them numbers."""
    best, merit = SEPARATORS[0], (False, 0.0, 1)
    for separator in (*SEPARATORS, BLANK):
        try:
            some = _sample(text, separator, start, 0)
        except InputError:  # such as a line that would be one cell, longer than any may be
            continue
        width = _width(some)
        even = sum(len(row.cells) in (width, width - 1) for row in some) >= _MOSTLY * len(some) - 3
        cells = [cell for row in some[1:] or some for cell in row.cells[:_MOST_CELLS] if bare(cell)]
        numbers = sum(not math.isnan(intake.real(cell)) for cell in cells)
        score = (even, numbers / max(1, len(cells)), width)
        beaten = score[:2] > merit[:2] if separator == BLANK and merit[0] else score > merit
        if width > 1 and beaten:
            best, merit = separator, score
    return best


class Grid(NamedTuple):
    """Cells of some rows, without the blanks at their ends."""

    texts: np.ndarray  # (n, width)
    values: np.ndarray  # as numbers; NaN where there is none
    gaps: np.ndarray

    @classmethod
    def of(cls, some: Sequence[Record], width: int) -> "Grid":
        """Make a grid of rows that have no more than `width` cells."""
        rows = [[bare(cell) for cell in row.cells[:width]] for row in some]
        texts = np.array([row + [""] * (width - len(row)) for row in rows], object)
        texts = texts.reshape(-1, width)
        values = [[intake.real(cell) for cell in row] for row in texts.tolist()]
        gaps = [[cell.lower() in intake.GAPS or _is_drawn(cell) for cell in row] for row in texts]
        shape = texts.shape
        return cls(
            texts, np.array(values, float).reshape(shape), np.array(gaps, bool).reshape(shape)
        )

    def numeric(self, first: int, share: float = _MOSTLY) -> np.ndarray:
        """Tell which columns hold numbers from a row on."""
        n_cells = (~self.gaps[first:]).sum(axis=0)
        n_numbers = (~np.isnan(self.values[first:])).sum(axis=0)
        return np.asarray((n_numbers >= share * n_cells) & (n_numbers > 0))


def lay_out(
    name: str, some: Sequence[Record], header: bool | int | None, width: int
) -> TableLayout:
    """Find the header and the first row of data among the first records."""
    numbered = header is not None and not isinstance(header, bool)
    if numbered:
        top = next((i for i, row in enumerate(some) if row.line == header), -1)
        if top < 0:
            msg = f"Line {header} of “{name}” cannot be the header; name a line at its start."
            raise InputError(msg)
    else:
        top = _titles(some, width)
    grid = Grid.of(some[top:], min(width, _MOST_CELLS))
    shorter = len(some[top].cells) == width - 1 and bool(grid.texts[1:, -1].any())
    if shorter:  # R's header, which has no name for the rows'
        padded = Record(some[top].line, 0, 0, ["", *some[top].cells])
        grid = Grid.of([padded, *some[top + 1 :]], grid.texts.shape[1])
    with np.errstate(invalid="ignore"):  # of infinite numbers
        has_header, in_doubt = _header(grid) if header is None else (header is not False, False)
    if not has_header:
        return TableLayout(top, [""] * width, None, top, in_doubt)
    if len(some) < top + 2:
        msg = f"“{name}” holds a header line and no rows; add rows, or say that it has no header."
        raise InputError(msg)
    n_lines = 1 if numbered else _header_lines(grid)
    parts = [_titled(row.cells, width, shorter) for row in some[top : top + n_lines]]
    n_titles = top
    above = some[top - 1] if top and n_lines == 1 else None
    if above is not None and above.n_filled > 1 and len(set(parts[0])) < len(parts[0]):
        parts, n_titles = [_titled(above.cells, width, shorter), *parts], top - 1
    for part in parts[:-1]:  # as merged cells: a name holds for those without one to its right
        part[:] = itertools.accumulate(part, _last_name)
    names = [" ".join(dict.fromkeys(filter(None, titles))) for titles in zip(*parts, strict=True)]
    return TableLayout(top + n_lines, names, some[top + n_lines - 1].line, n_titles, in_doubt)


def _last_name(before: str, title: str) -> str:
    return title or before


def _titled(cells: list[str], width: int, shorter: bool) -> list[str]:
    """Return the names in a line for all columns."""
    names = [""] * shorter + [bare(" ".join(cell.split())) for cell in cells]
    return (names + [""] * width)[:width]


def _titles(some: Sequence[Record], width: int) -> int:
    """Return how many lines stand above the table: titles, notes, lines of empty cells."""
    grid = Grid.of(some[:_TOP], min(width, _MOST_CELLS))
    words = np.isnan(grid.values) & ~grid.gaps
    short = [len(row.cells) < width or 2 * row.n_filled <= width for row in some[:_TOP]]
    for place in range(1, len(grid.texts)):
        is_header = width > 1 and words[place, 1:].all() and not short[place]
        if is_header and all(short[:place]) and grid.numeric(place + 1, 0.5).any():
            return place
    least = 2 if width > 2 else 1
    usual = [
        width == 1 or (len(row.cells) >= max(2, width - 1) and row.n_filled >= least)
        for row in some[:_TOP]
    ]
    return usual.index(True) if any(usual) else 0


def _header(grid: Grid) -> tuple[bool, bool]:
    """Whether the first row names the columns, by words or rising numbers; and whether in doubt."""
    is_number = ~np.isnan(grid.values[0])
    words = ~is_number & ~grid.gaps[0]
    numeric = grid.numeric(1)
    above = grid.values[0][numeric & is_number]
    first = grid.values[1:, 0]
    is_index = not (numeric[0] and ((first % 1).any() or len(set(first)) < len(first)))
    unnamed = not grid.texts[0, 0] and is_index  # above an index, or names of the rows
    if not len(above):
        named = unnamed or (words & numeric).any() if numeric.any() else not is_number.any()
        return bool(named) and (len(grid.texts) > 1 or len(numeric) > 1), False
    n_words = int((words & numeric).sum())
    if not _rises(above) or (above % 1).any():
        steady = len(above) >= _MANY and _rises(above)
        return n_words > len(above) or steady, steady
    body = grid.values[1:][:, numeric & is_number]
    alike = len(above) > 3 and bool(np.mean([_rises(row) for row in body]) > 0.5)
    low, high = np.nanmin(body, axis=0), np.nanmax(body, axis=0)
    reach = 3 * (high - low)
    outside = (above > high + reach) | (above < low - reach) | (np.nan_to_num(body) % 1).any(axis=0)
    far = bool(np.mean(outside) > 0.5)
    counted_up = len(above) > 3 and bool((above == np.arange(len(above))).all())
    worded = n_words > 0 or unnamed
    for j in np.flatnonzero(words & ~numeric):
        worded = worded or grid.texts[0, j] not in grid.texts[1:, j].tolist()
    clear = (far or counted_up) and (worded or len(above) > 2)
    is_header = clear or (worded and not alike)
    if not is_header:
        return False, far or worded
    return True, not clear or (alike and not worded)


def _rises(values: np.ndarray) -> bool:
    """Whether numbers rise or fall from each to the next."""
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _header_lines(grid: Grid) -> int:
    """Return how many lines of names, or units, stand above the numbers."""
    n_lines = 1
    while n_lines < min(_HEADER_LINES, len(grid.texts) - 2):
        numeric = grid.numeric(n_lines + 1)
        cells, gaps = grid.values[n_lines, numeric], grid.gaps[n_lines, numeric]
        n_words = int((np.isnan(cells) & ~gaps).sum())
        if not np.isnan(cells).all() or 2 * n_words <= numeric.sum():
            break
        n_lines += 1
    return n_lines


def _is_drawn(cell: str) -> bool:
    return _RULE.fullmatch(cell) is not None


def _is_rule(cells: Iterable[str]) -> bool:
    """Whether cells are only drawn: ---- or ====."""
    filled = [cell for cell in map(bare, cells) if cell]
    return bool(filled) and all(map(_is_drawn, filled))


class Scan(NamedTuple):
    """The lines of data."""

    text: bytes
    start: int
    has_zeros: bool  # some cells are digits that begin with 0
    left_out: dict[str, int]  # lines that are no data, by their kind


def _scan(name: str, text: bytes, separator: str, width: int, start: int) -> Scan:
    """Count the cells of all lines; leave out those that are no data, refuse others."""
    line = text.count(b"\n", 0, start)
    quoted = text.find(b'"', start) >= 0 or not separator.isascii() or separator == BLANK
    if quoted:
        odd = [row for row in records(text, separator, start, line) if len(row.cells) != width]
        has_zeros = (
            re.search(rb"(?:^|[\n\" ]|%b)0\d" % re.escape(separator.encode()), text) is not None
        )
    else:
        odd, has_zeros = _odd_lines(text, separator, width, start, line)
    left_out: Counter[str] = Counter()
    pieces, before = [], start
    closing = _closing(text, odd, width)
    for row in odd:
        kind = _no_data(text, row) or ("closing" if row.start >= closing else "")
        if not kind and (len(row.cells) < width or any(map(bare, row.cells[width:]))):
            msg = (
                f"Line {row.line} of “{name}” has {counted(len(row.cells), 'cell')}, the first has "
                f"{width}; give every line the same number, or choose another separator."
            )
            raise InputError(msg)
        pieces.append(text[before : row.start])
        before = row.stop
        if kind:
            left_out[kind] += 1
        else:  # separators at its end
            csv.writer(line_of := io.StringIO(), delimiter=separator).writerow(row.cells[:width])
            pieces.append(line_of.getvalue().encode())
    if not pieces:
        return Scan(text, start, has_zeros, {})
    return Scan(b"".join([*pieces, text[before:]]), 0, has_zeros, left_out)


def _no_data(text: bytes, row: Record) -> str:
    """Return the kind of a line of another width that holds no data."""
    if not row.n_filled:
        return "empty"
    if text[row.start : row.start + 1] in (b"#", b"%"):
        return "comment"
    return "drawn" if _is_rule(row.cells) else ""


def _closing(text: bytes, odd: list[Record], width: int) -> int:
    """Return where the notes below a table begin: lines of few cells, of words, up to its end."""
    end = len(text)
    for row in reversed(odd):
        is_note = 2 * row.n_filled <= width and not intake.number_in(row.cells[0], ".")
        if text[row.stop : end].strip() or not (is_note or _no_data(text, row)):
            break
        end = row.start
    return end


def _odd_lines(
    text: bytes, separator: str, width: int, start: int, line: int
) -> tuple[list[Record], bool]:
    """Return lines of another width, and whether digits begin with 0, without quotation marks."""
    odd: list[Record] = []
    has_zeros = False
    while start < len(text):
        end = text.rfind(b"\n", start, start + _PIECE) + 1
        end = end or text.find(b"\n", start) + 1 or len(text)  # a line longer than a piece
        piece = np.frombuffer(text, np.uint8, end - start, start)
        is_end, is_mark = piece == ord("\n"), piece == ord(separator)
        ends = np.flatnonzero(is_end)
        starts = np.concatenate([[0], ends + 1])
        starts = starts[starts < len(piece)]
        marks = np.add.reduceat(is_mark.view(np.uint8), starts, dtype=np.int32)
        zeros = piece[:-1] == ord("0")
        zeros[1:] &= (is_mark | is_end)[:-2]
        has_zeros = has_zeros or bool((zeros & (piece[1:] - np.uint8(ord("0")) < 10)).any())
        for i in np.flatnonzero((marks != width - 1) & (piece[starts] != ord("\n"))).tolist():
            begin = start + int(starts[i])
            stop = text.find(b"\n", begin) + 1 or len(text)
            cells = text[begin:stop].decode().rstrip("\n").split(separator)
            odd.append(Record(line + i + 1, begin, stop, cells))
            if len(odd) > _MOST_ODD:
                return odd, True
        start, line = end, line + len(ends)
    return odd, has_zeros


def _parsed(name: str, scan: Scan, dialect: Dialect, body: Sequence[Record]) -> "pd.DataFrame":
    """Let pandas read the cells: columns of plain numbers as such, others as texts."""
    width, mark = dialect.width, dialect.decimal
    rows = [row.cells for row in body if len(row.cells) == width]
    texts = [
        j for j in range(width) if not all(intake.is_plain(row[j].strip(), mark) for row in rows)
    ]
    frame = _read_csv(name, scan, dialect, texts)
    again = []
    for j in sorted({*range(width)} - {*texts}):
        kind = frame[j].dtype.kind
        codes = scan.has_zeros and kind in "iu"
        if codes or kind not in "iuf" or frame[j].abs().max() >= intake.EXACT:
            again.append(j)
    if again:
        frame[again] = _read_csv(name, scan, dialect, None)[again]
    return frame


def _read_csv(name: str, scan: Scan, dialect: Dialect, texts: list[int] | None) -> "pd.DataFrame":
    """Read the lines of data; columns that are `texts`, all if None, as they are written."""
    import pandas as pd

    # pandas 2 rounds the last bit otherwise; pandas 3 deprecates the argument
    is_old = int(pd.__version__.partition(".")[0]) < 3
    more: dict[str, Any] = {"float_precision": "round_trip"} if is_old else {}
    if texts is None:
        more["dtype"] = object
    else:
        gaps = [*intake.PLAIN_GAPS]
        more["dtype"] = dict.fromkeys(texts, object)
        is_text = set(texts)
        numbers = {j: gaps for j in range(dialect.width) if j not in is_text}
        more["na_values"] = numbers if texts else gaps
    stream = io.BytesIO(scan.text)
    stream.seek(scan.start)
    try:
        frame: pd.DataFrame = pd.read_csv(
            stream,
            sep=r"\s+" if dialect.separator == BLANK else dialect.separator,
            decimal=dialect.decimal,
            header=None,
            names=range(dialect.width),
            index_col=False,
            skipinitialspace=True,
            keep_default_na=False,
            low_memory=False,
            **more,
        )
        return frame
    except (ValueError, OverflowError) as error:
        reason = shortened(str(error).removeprefix("Error tokenizing data. C error: "), 120)
        msg = f"“{name}” cannot be read as a table ({reason}); check its lines and quotation marks."
        raise InputError(msg) from error


def _table(
    name: str,
    frame: "pd.DataFrame",
    layout: TableLayout,
    none: list[str],
    lines: Counter[str],
    report: FileReport,
) -> Table:
    """Leave out rows that are no data, and read the columns of texts as numbers or words."""
    is_text = [kind.kind not in "iuf" for kind in frame.dtypes]
    keep, left_out = _rows_of_data(frame, is_text, layout.names)
    lines.update(left_out)
    if not keep.all():
        frame = frame[keep].reset_index(drop=True)
    has_header = layout.header_line is not None
    report |= {"header": has_header, "header_line": layout.header_line}
    report["lines"] = {kind: n for kind, n in lines.items() if n > 0}
    if layout.in_doubt:
        report["doubt"] = {"option": "header", "now": has_header, "other": not has_header}
    titles = [title or f"column {j + 1}" for j, title in enumerate(layout.names)]
    names = unique(titles)
    report["renamed"] = [new for new, old in zip(names, titles, strict=True) if new != old]
    notes: dict[str, str] = {}
    for j in np.flatnonzero(is_text).tolist():
        frame[j], why = intake.convert(frame[j], names[j], report, none)
        notes |= {names[j]: why} if why else {}
    frame.columns = names
    return Table(frame, [bool(title) for title in layout.names], report, notes)


def _rows_of_data(
    frame: "pd.DataFrame", is_text: list[bool], header: list[str]
) -> tuple[np.ndarray, dict[str, int]]:
    """Tell rows of data from those of empty cells, headers again, drawn lines and totals."""
    n = len(frame)
    empty, drawn, some_rule = np.ones(n, bool), np.ones(n, bool), np.zeros(n, bool)
    repeated = np.full(n, all(is_text) and any(header))
    for j, is_words in enumerate(is_text):
        rows = np.flatnonzero(empty | repeated | drawn)
        if not len(rows):
            break
        if not is_words:
            gaps = frame[j].isna().to_numpy()
            empty, drawn = empty & gaps, drawn & gaps
            continue
        cells = [bare(cell) for cell in frame[j].to_numpy()[rows].tolist()]
        blank = np.array([not cell for cell in cells], bool)
        rules = np.array([bool(_RULE.fullmatch(cell)) for cell in cells], bool)
        empty[rows] &= blank
        repeated[rows] &= [cell == header[j] for cell in cells]
        drawn[rows] &= rules | blank
        some_rule[rows] |= rules
    drawn, repeated = drawn & some_rule, repeated & ~empty
    totals = np.zeros(n, bool)
    for row in range(n - 1, max(-1, n - 1 - _MOST_TOTALS), -1):
        cells = [bare(frame[j].iloc[row]) for j, is_words in enumerate(is_text) if is_words]
        first = next(filter(None, cells), "")
        totals[row] = bool(_TOTAL.fullmatch(first.strip(": ")))
        if not (totals[row] or empty[row] or drawn[row]):
            break
    kinds = {"empty": empty & ~drawn, "repeated header": repeated, "drawn": drawn, "total": totals}
    keep = ~(empty | repeated | drawn | totals)
    return keep, {kind: int(rows.sum()) for kind, rows in kinds.items()}


def sheet_of(name: str, file: File, options: SheetOptions, limits: ReadLimits) -> Table:
    """Return the columns of a sheet, and which others there are."""
    import pandas as pd
    from python_calamine import CalamineError, CalamineWorkbook

    data = file_bytes(name, file, limits)
    damaged = f"“{name}” is damaged, locked by a password or no spreadsheet; save it again as XLSX."
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    except (CalamineError, OSError, ValueError) as error:
        raise InputError(damaged) from error
    sheets: dict[str, list[Record]] = {}
    unread: dict[str, str] = {}
    for title in book.sheet_names:
        try:
            sheets[title] = _cells(book, title, limits)
        except (CalamineError, ValueError) as error:
            unread[title] = f"a sheet that cannot be read: {error}"
    if unread and not sheets:
        raise InputError(damaged)
    numbers = {
        title: sum(bool(intake.number_in(cell, ".")) for row in rows for cell in row.cells)
        for title, rows in sheets.items()
    }
    chosen = options.sheet
    if chosen is None:
        chosen = max(numbers, key=lambda title: numbers[title], default="")
    if chosen not in sheets:
        refusal = unknown("sheet", chosen, list(sheets), f" in “{name}”")
        raise refusal
    some = sheets[chosen]
    if not some:
        msg = f"The sheet “{shortened(chosen)}” of “{name}” is empty; choose another."
        raise InputError(msg)
    report: FileReport = {"sheet": chosen, "sheets": list(sheets), "decimal": "."}
    report["unused"] = unread
    width = max(len(row.cells) for row in some)
    check_columns(name, width, limits)
    check_matrix(name, len(some), width, 8, limits)
    layout = lay_out(name, some[:_SAMPLE_ROWS], options.header, width)
    cells = [row.cells + [""] * (width - len(row.cells)) for row in some[layout.first :]]
    frame = pd.DataFrame(cells, columns=range(width), dtype=object)
    lines = Counter({"title": layout.titles})
    return _table(name, frame, layout, as_list(options.na_values), lines, report)


def _cells(book: Any, title: str, limits: ReadLimits) -> list[Record]:
    """Return the rows of a sheet as texts; a merged cell is in each of its places."""
    sheet = book.get_sheet_by_name(title)
    check_matrix(title, sheet.total_height, max(1, sheet.total_width), 8, limits)
    rows = [[_text(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        for row in rows[top : min(bottom, top + _HEADER_LINES) + 1]:
            row[left : right + 1] = [rows[top][left]] * len(row[left : right + 1])
    return [Record(i + 1, i, i + 1, row) for i, row in enumerate(rows) if any(row)]


def _text(cell: object) -> str:
    """Return a cell of a spreadsheet as a text table would have it."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    return str(cell).removesuffix(" 00:00:00")


READER = Reader(CsvOptions, read)
SHEET_READER = Reader(SheetOptions, read_sheet)
