"""Uploaded files: limits, archives, facts, and the type of a reader."""

import gzip
import hashlib
import io
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Generic, NamedTuple, TypeVar, cast

import numpy as np

from appca.data.dataset import Dataset, categories
from appca.storage.packed import most_unpacked
from appca.words import InputError, counted, refusing, shortened

File = Path | str | BinaryIO
Files = Sequence[tuple[str, File]]  # names, which are never used as paths, and contents


class ReadLimits(NamedTuple):
    """What one file may ask of the machine."""

    n_bytes: int = 1 << 30  # of the file, of what it unpacks to, and of the matrix made from it
    members: int = 200_000  # files in a zip
    pixels: int = 50_000_000  # of one image
    columns: int = 1 << 17  # of a table, each with a name of its own
    features: int = 4_000_000  # of arrays and images, whose columns are only numbered
    scratch: Path | str | None = None  # folder of temporary files; None takes the system's
    least_rows: int = 2  # 1 for rows that a model fitted already only describes: they need not vary
    head_rows: int = 0  # of a table: first rows whose cells the report is to hold, as they are
    sent: int | None = None  # bytes of all files together, once they are known: see `within`

    def within(self, sent: int) -> "ReadLimits":
        """Return the limits of files of `sent` bytes: what is small must not unpack to much."""
        return self._replace(n_bytes=min(self.n_bytes, most_unpacked(sent)), sent=sent)

    @property
    def most(self) -> str:
        """Say how many bytes are allowed, and why they are few: "67 MB, the most for 3 kB ..."."""
        size = f"{self.n_bytes / 1e6:,.0f} MB"
        if self.sent is None or self.n_bytes != most_unpacked(self.sent):
            return size
        sent = f"{self.sent / 1e6:,.1f} MB" if self.sent > 1e6 else f"{self.sent / 1e3:,.1f} kB"
        return f"{size}, the most for {sent} of files"


LIMITS = ReadLimits()
ONE_IS_ENOUGH = ReadLimits(least_rows=1)
TOO_LARGE = "too_large"  # in the report of a refusal: fewer rows of the file could be read
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_ROW_BYTES = 64  # of a row's id, and of what is noted to find repeated rows


def file_bytes(name: str, file: File, limits: ReadLimits = LIMITS) -> bytes:
    """Return the whole file; gzip packing, known by its first bytes, is taken off."""
    with file_stream(name, file, limits) as stream:
        data = stream.read()
    if not data:
        msg = f"“{name}” is empty; choose a file with data in it."
        raise InputError(msg)
    if data[:2] != _GZIP:
        return data
    return b"".join(_unpacked(name, io.BytesIO(data), limits))


def plain_file(name: str, file: File, limits: ReadLimits = LIMITS) -> BinaryIO:
    """Return the file as one on the disk, unpacked, so that its content can be mapped into memory.

    A path that is not packed is opened where it is. Anything else is copied in chunks into a
    temporary file in ``limits.scratch`` that ends with the last view of it, even if the process is
    killed.
    """
    stream = file_stream(name, file, limits)
    start = stream.read(2)
    stream.seek(0)
    if not start:
        stream.close()
        msg = f"“{name}” is empty; choose a file with data in it."
        raise InputError(msg)
    if isinstance(file, (str, Path)) and start != _GZIP:
        return stream
    with stream:
        packed = start == _GZIP
        chunks = _unpacked(name, stream, limits) if packed else chunks_of(stream)
        return temporary_file(name, chunks, limits)


def temporary_file(name: str, chunks: Iterator[bytes], limits: ReadLimits) -> BinaryIO:
    """Return a nameless file in ``limits.scratch`` that holds the chunks, at its start."""
    remedy = "free some space on the disk of temporary files"
    with refusing(f"“{name}” could not be copied for reading", remedy):
        if limits.scratch is not None:
            Path(limits.scratch).mkdir(parents=True, exist_ok=True)
        kept = tempfile.TemporaryFile(dir=limits.scratch)  # noqa: SIM115 (the caller closes it)
        try:
            for chunk in chunks:
                kept.write(chunk)
            kept.seek(0)  # also writes what is still in the buffer
        except BaseException:
            kept.close()
            raise
    return kept


def checksum(files: Files, limits: ReadLimits = LIMITS) -> str:
    """SHA-256 of a file's bytes; of several, that of their checksums and names, in order."""
    digests = []
    for name, file in files:
        sha = hashlib.sha256()
        with file_stream(name, file, limits) as stream:
            for chunk in chunks_of(stream):
                sha.update(chunk)
        digests.append(sha.hexdigest())
    if len(digests) == 1:
        return digests[0]
    lines = [f"{digest}  {name}\n" for digest, (name, _) in zip(digests, files, strict=True)]
    return hashlib.sha256("".join(lines).encode(errors="surrogatepass")).hexdigest()


def chunks_of(stream: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """Yield what is left of a stream, a megabyte at a time."""
    while chunk := stream.read(_CHUNK):
        yield chunk


def file_stream(name: str, file: File, limits: ReadLimits = LIMITS) -> BinaryIO:
    """Open a path, or rewind a file object into an independent stream, after checking its size."""
    stream: BinaryIO
    if isinstance(file, (str, Path)):
        with refusing(f"“{name}” could not be opened", "check its place and its rights"):
            stream = Path(file).open("rb")  # noqa: SIM115 (the caller closes it)
    else:
        stream = cast("BinaryIO", _Borrowed(file))  # which is no protocol, but a class to inherit
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if size > limits.n_bytes:
        stream.close()
        msg = (
            f"“{name}” has {size / 1e6:,.0f} MB, more than the {limits.n_bytes / 1e6:,.0f} MB one "
            "file may have; split it or take fewer rows."
        )
        raise InputError(msg, {TOO_LARGE: True})
    return stream


def check_matrix(
    name: str,
    n_rows: int,
    n_features: int,
    itemsize: int,
    limits: ReadLimits,
    remedy: str = "take fewer rows or smaller images",
) -> None:
    """Refuse a matrix that would not fit before it is made."""
    if n_features > limits.features:
        msg = (
            f"“{name}” has {n_features:,} values in each row, more than {limits.features:,}; take "
            "fewer columns or smaller images."
        )
        raise InputError(msg)
    size = n_rows * (n_features * itemsize + _ROW_BYTES)
    if size > limits.n_bytes:
        msg = (
            f"“{name}” would become {n_rows:,} x {n_features:,} numbers in {size / 1e6:,.0f} MB, "
            f"more than {limits.most}; {remedy}."
        )
        raise InputError(msg, {TOO_LARGE: True})


def total_bytes(files: Files) -> int:
    """Return how many bytes files have together."""
    total = 0
    for _, file in files:
        if isinstance(file, (str, Path)):
            paths = Path(file).rglob("*") if Path(file).is_dir() else [Path(file)]
            total += sum(path.stat().st_size for path in paths if path.is_file())
        else:
            total += file.seek(0, io.SEEK_END)
            file.seek(0)
    return total


class _Borrowed(io.RawIOBase):
    """A view of somebody else's file object; closing the view leaves the object open."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size)


def _unpacked(name: str, packed: BinaryIO, limits: ReadLimits) -> Iterator[bytes]:
    """Yield the unpacked bytes; stop with a refusal before they are more than the limit."""
    size = 0
    try:
        with gzip.open(packed) as stream:
            for chunk in chunks_of(stream):
                size += len(chunk)
                if size > limits.n_bytes:
                    msg = (
                        f"“{name}” unpacks to more than {limits.most}; give it unpacked, split it "
                        "or take fewer rows."
                    )
                    raise InputError(msg)
                yield chunk
    except (EOFError, OSError, zlib.error) as error:
        msg = f"“{name}” breaks off or is damaged inside its gzip packing; pack or fetch it again."
        raise InputError(msg) from error
    if not size:
        msg = f"“{name}” is empty inside its gzip packing; choose a file with data in it."
        raise InputError(msg)


_PACKED = (".zip", ".gz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".tgz", ".zst")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others unpack whole or not at all


def members(
    name: str, stream: BinaryIO, limits: ReadLimits, may_be_inside: tuple[str, ...] = ()
) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    """Open a zip and list its files (no folders, nothing hidden) after checking what it claims.

    `may_be_inside` are endings of packed files.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except Exception as error:  # as below
        msg = f"“{name}” is not a zip file or is damaged; compress or download it again."
        raise InputError(msg) from error
    items = [item for item in archive.infolist() if not item.filename.endswith("/")]
    _check_size(name, items, limits)
    for item in items:
        inner = shortened(item.filename)
        if item.flag_bits & 1:
            msg = f"“{inner}” in “{name}” is encrypted; pack the images without a password."
            raise InputError(msg)
        if item.compress_type not in _METHODS:
            msg = f"“{inner}” in “{name}” is compressed by a rare method; compress it with Deflate."
            raise InputError(msg)
        if item.filename.lower().endswith(tuple({*_PACKED} - {*may_be_inside})):
            msg = f"“{name}” holds another archive, “{inner}”; unpack it and pack the images alone."
            raise InputError(msg)
    return archive, [item for item in items if not is_hidden(item.filename)]


def content(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    """Bytes of one file; no more than its entry claimed, which was checked."""
    return b"".join(unpacked(name, archive, item))


def unpacked(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the bytes of one file in chunks: read as a whole, all is unpacked before it is cut."""
    try:
        with archive.open(item) as stream:
            yield from chunks_of(stream)
    except Exception as error:  # the module fails in as many ways as there are fields to be wrong
        msg = f"“{shortened(item.filename)}” in “{name}” is damaged; pack it again."
        raise InputError(msg) from error


def parts(filename: str) -> tuple[str, ...]:
    """Folders and name of an entry, for people: nothing in it can lead anywhere."""
    path = PurePosixPath(filename.replace("\\", "/"))
    return tuple(part for part in path.parts if part not in ("/", "..", "."))


def _check_size(name: str, items: list[zipfile.ZipInfo], limits: ReadLimits) -> None:
    if len(items) > limits.members:
        msg = f"“{name}” holds {len(items):,} files, more than {limits.members:,}; pack fewer."
        raise InputError(msg)
    unpacked = sum(item.file_size for item in items)
    if unpacked > limits.n_bytes:
        msg = (
            f"“{name}” unpacks to {unpacked / 1e6:,.0f} MB, more than {limits.most}; give what is "
            "in it unpacked, or fewer or smaller files."
        )
        raise InputError(msg)


def is_hidden(filename: str) -> bool:
    """Whether a file has no name, or is one that systems keep for themselves."""
    named = parts(filename)
    return not named or any(part.startswith((".", "__MACOSX")) for part in named)


MOST_NAMES = 5
_DONE = {
    "modelled": "filled from the model",
    "filled": "filled with their column's mean",
    "dropped": "rows left out",
}
_ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"} | {
    "cp1252": "Western European",
    "cp1251": "Cyrillic",
}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_ROLES = {"id": "Row names", "label": "Labels", "ignored": "Left out"}
_LINES = {"drawn": "drawn line", "closing": "closing note", "repeated header": "repeated header"}
_COUNTS = ("Found", "Constant features", "Repeated rows")  # that a note leaves out


def note(report: dict[str, Any], about: str, words: str) -> None:
    """Note in a reader's report how a file was read, for people."""
    report.setdefault("notes", {})[about] = words


def facts(report: Mapping[str, Any], dataset: Dataset | None = None) -> dict[str, str]:
    """Return how files were read: until they were refused, or as the data set they became.

    From a reader's report; of each line, what it is about and what there is to say. The page and
    the commands `data` and `fit` show the same.
    """
    lines = {"Read as": _written(report), "Files": f"{report.get('files') or ''}"}
    if report.get("rows"):
        lines["Found"] = f"{counted(report['rows'], 'row')} × {report.get('columns', 0):,}"
    if marked := report.get("marked"):
        of = f"{report.get('columns', 0):,} of {marked['of']:,}"
        lines["Variables"] = f"{of} variables, those marked by “{marked['column']}”"
    if report.get("image_shape"):
        lines["Images of"] = " × ".join(map(str, report["image_shape"])) + " pixels"
    lines |= _roles(report) | _left_out(report) | report.get("notes", {})
    if dataset is not None:
        lines |= labels(dataset)
    lines |= _missing(report)
    if report.get("constant"):
        constant = report["constant"]
        n_constant = report.get("n_constant", len(constant))
        names = " pixels" if report.get("image_shape") else f": {few(constant, n_constant)}"
        lines["Constant features"] = f"{n_constant:,}{names}"
    likely = [f"{name} ({n} values)" for name, n in report.get("likely_labels", {}).items()]
    lines["Features that may be labels"] = few(likely)
    lines["Repeated rows"] = f"{report.get('duplicates') or ''}"
    if doubt := report.get("doubt"):
        lines["In doubt"] = _doubt(doubt)
    return {about: text for about, text in lines.items() if text}


def in_one_line(report: Mapping[str, Any], dataset: Dataset) -> str:
    """Say how files were read, for a person who may want it otherwise: the `facts` in a row."""
    sides = counted(dataset.n_rows, "row"), counted(dataset.n_features, "feature")
    lines = {"Read as": " × ".join(sides)} | facts(report)
    if lines.get("Missing") == "none":
        del lines["Missing"]
    if "Labels" not in lines and dataset.labels:
        lines["Labels"] = few(list(dataset.labels))
    parts = [f"{about}: {text}" for about, text in lines.items() if about not in _COUNTS]
    return " · ".join(parts).replace(":", "", 1) + "."


def _written(report: Mapping[str, Any]) -> str:
    """Say how a table is written."""
    parts = []
    if sheet := report.get("sheet"):
        others = [name for name in report["sheets"] if name != sheet]
        parts = [f"sheet “{sheet}”", f"not read: {few(others)}" if others else ""]
    elif separator := report.get("separator"):
        encoding = report.get("encoding", "utf-8")
        title = _ENCODINGS.get(encoding, encoding.upper())
        code = f" ({encoding})" if title in ("Western European", "Cyrillic") else ""
        parts = [f"{title} text{code}", _SEPARATORS.get(separator, f"cells between “{separator}”")]
    else:
        return ""
    line = report.get("header_line")
    parts += [
        "decimal comma" if report.get("decimal") == "," else "",
        "" if report.get("header", True) else "no header",
        f"header in line {line}" if line and line > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def _roles(report: Mapping[str, Any]) -> dict[str, str]:
    roles, left_out = report.get("roles", {}), report.get("left_out", {})
    why = {name: f"{name} ({reason})" for name, reason in left_out.items() if reason}
    named = {
        _ROLES[role]: few([why.get(n, n) for n in roles if roles[n] == role]) for role in _ROLES
    }
    if report.get("repeated_ids"):
        named["Row names"] += f", of which {report['repeated_ids']:,} are numbered as they repeat"
    return named


def _left_out(report: Mapping[str, Any]) -> dict[str, str]:
    """Say what of the files is not used, or not as it is written."""
    lines = [counted(n, _LINES.get(k, f"{k} line")) for k, n in report.get("lines", {}).items()]
    odd = [f"{name}: {in_words(cells)}" for name, cells in report.get("not_numbers", {}).items()]
    short = [f"{name}: {counted(n, 'list')}" for name, n in report.get("short_lists", {}).items()]
    units = [f"{name} in {unit}" for name, unit in report.get("units", {}).items()]
    far = [
        f"{name}: {value:g} ({counted(n, 'cell')})"
        for name, values in report.get("far", {}).items()
        for value, n in values
    ]
    unused = [f"{name} ({why})" for name, why in report.get("unused", {}).items()]
    skipped = report.get("skipped") or []
    spoilt = [str(line) for line in report.get("repaired", ())]
    return {
        "Lines not used": ", ".join(lines),
        "Repaired bytes": f"in line {few(spoilt)}" if spoilt else "",
        "Renamed columns": few(report.get("renamed", [])),
        "Not numbers": few(odd),
        "Lists of another length": few(short),
        "Units": few(units),
        "Other decimal sign": few(list(report.get("decimals", {}))),
        "May stand for gaps": f"{few(far)}; na_values makes them gaps" if far else "",
        "Arrays not used": few(unused),
        "Files left out": f"{len(skipped):,}: {few(skipped)}" if skipped else "",
    }


def _doubt(doubt: Mapping[str, Any]) -> str:
    """Say which of two readings was taken, and how to take the other."""
    option, now, other = doubt["option"], doubt["now"], doubt["other"]
    if option == "decimal":
        return f"1.234 is read as 1{now}234; decimal={other} reads it otherwise"
    taken = "the names of the columns" if now else "data"
    return f"the first line is read as {taken}; header={str(other).lower()} reads it otherwise"


def in_words(cells: Mapping[str, int]) -> str:
    """Name cells, such as those of a column that are no numbers: "3 cells: n/a (2), <0.01"."""
    named = [f"{shortened(cell, 20)}{f' ({n:,})' if n > 1 else ''}" for cell, n in cells.items()]
    return f"{counted(sum(cells.values()), 'cell')}: {few(named)}"


def labels(dataset: Dataset) -> dict[str, str]:
    """Say of each label column which classes it holds."""
    lines = {}
    for name, column in list(dataset.labels.items())[:MOST_NAMES]:
        classes, codes = categories(column)
        counts = np.bincount(codes, minlength=len(classes))
        first = zip(classes[:MOST_NAMES], counts[:MOST_NAMES], strict=True)
        some = few([f"{text} ({count:,})" for text, count in first], len(classes))
        lines[f"Label “{name}”"] = f"{counted(len(classes), 'value')}: {some}"
    return lines


def _missing(report: Mapping[str, Any]) -> dict[str, str]:
    if "missing" not in report:
        return {}
    cells = report["missing"]
    if not cells:
        return {"Missing": "none"}
    columns = few([f"{name} ({count:,})" for name, count in cells.items()])
    total = report.get("n_missing", sum(cells.values()))
    done = next((f", {words}" for key, words in _DONE.items() if report.get(key)), "")
    return {"Missing": f"{counted(total, 'cell')}{done}: {columns}"}


def few(names: list[str], n: int | None = None) -> str:
    """Name the first of `n`; by default of those given."""
    more = (len(names) if n is None else n) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")


ENDINGS = (  # of images
    *(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff"),
    *(".webp", ".pgm", ".ppm", ".pnm"),
)
LONGEST_NAME = 80  # characters that a sentence, and the data set, keep of a file's name
OptionsT = TypeVar("OptionsT", bound=tuple[Any, ...])


class Reader(NamedTuple, Generic[OptionsT]):
    """How files of one format become a data set."""

    options: type[OptionsT]  # a NamedTuple whose fields all have defaults
    read: Callable[[str, File, OptionsT, ReadLimits], Dataset] | None  # None: see the next
    # several files that make one data set, or a single one; None where only `read` can be used
    read_many: Callable[[Files, OptionsT, ReadLimits], Dataset] | None = None
