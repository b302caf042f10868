"""Uploaded files: limits, archives, reports, and the type of a reader."""

import gzip
import hashlib
import io
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Generic, NamedTuple, TypeVar, cast

import numpy as np

from appca.data.dataset import Dataset, categories
from appca.words import InputError, counted, refuse_if, refusing, shortened

File = Path | str | BinaryIO
Files = Sequence[tuple[str, File]]  # names, which are never used as paths, and contents


try:
    MACHINE_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # bytes
except (AttributeError, ValueError, OSError):  # absent on some systems
    MACHINE_MEMORY = 4 << 30


class ReadLimits(NamedTuple):
    """Resource limits for reading one file."""

    # limit for the file, its unpacked content, and the matrix
    n_bytes: int = min(1 << 30, MACHINE_MEMORY // 4)
    members: int = 200_000  # files in a zip
    pixels: int = 50_000_000  # per image
    columns: int = 1 << 17  # named columns of a table
    features: int = 4_000_000  # unnamed features of arrays and images
    scratch: Path | str | None = None  # folder for temporary files; None: the system's
    least_rows: int = 2  # 1 for rows that are only scored by a model
    head_rows: int = 0  # number of unparsed first rows to report

    @property
    def most(self) -> str:
        """Format the byte limit for a sentence."""
        return f"{self.n_bytes / 1e6:,.0f} MB"


LIMITS, ONE_IS_ENOUGH = ReadLimits(), ReadLimits(least_rows=1)
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_ROW_BYTES = 64  # memory per row for ids and hashes


def file_bytes(name: str, file: File, limits: ReadLimits = LIMITS) -> bytes:
    """Return the whole file, unpacked if it is gzipped."""
    with file_stream(name, file, limits) as stream:
        return b"".join(_unpacked(name, stream, limits))


def plain_file(name: str, file: File, limits: ReadLimits = LIMITS) -> BinaryIO:
    """Return the file on disk, unpacked if gzipped, so that it can be memory-mapped."""
    stream = file_stream(name, file, limits)
    start = stream.read(2)
    stream.seek(0)
    if isinstance(file, (str, Path)) and start and start != _GZIP:
        return stream
    with stream:
        return temporary_file(name, _unpacked(name, stream, limits), limits)


@contextmanager
def explained(sentence: str, kinds: Any = Exception) -> Iterator[None]:
    """Raise InputError with this sentence instead of exceptions of these kinds."""
    try:
        yield
    except kinds as error:
        raise InputError(sentence) from error


def temporary_file(name: str, chunks: Iterator[bytes], limits: ReadLimits) -> BinaryIO:
    """Write chunks to a scratch file that is deleted even if the process is killed."""
    remedy = "free some space on the disk of temporary files"
    with refusing(f"“{name}” could not be copied for reading", remedy), ExitStack() as ends:
        if limits.scratch is not None:
            Path(limits.scratch).mkdir(parents=True, exist_ok=True)
        kept = ends.enter_context(tempfile.TemporaryFile(dir=limits.scratch))
        kept.writelines(chunks)
        kept.seek(0)  # also flushes the buffer
        ends.pop_all()  # the caller closes it
    return kept


def checksum(files: Files, limits: ReadLimits = LIMITS) -> str:
    """SHA-256 of a file, or of the checksums and names of several files, in order."""
    lines = []
    for name, file in files:
        sha = hashlib.sha256()
        with file_stream(name, file, limits) as stream:
            for chunk in chunks_of(stream):
                sha.update(chunk)
        lines.append(f"{sha.hexdigest()}  {name}\n")
    together = hashlib.sha256("".join(lines).encode(errors="surrogatepass"))
    return (sha if len(files) == 1 else together).hexdigest()


def chunks_of(stream: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    """Yield the rest of a stream in chunks of a megabyte."""
    while chunk := stream.read(_CHUNK):
        yield chunk


def file_stream(name: str, file: File, limits: ReadLimits = LIMITS) -> BinaryIO:
    """Open a path, or a file object from its start, as an independent stream; check its size."""
    stream: BinaryIO
    if isinstance(file, (str, Path)):
        with refusing(f"“{name}” could not be opened", "check its path and permissions"):
            stream = Path(file).open("rb")  # noqa: SIM115 (the caller closes it)
    else:
        stream = cast("BinaryIO", _Borrowed(file))  # IO is a class, not a protocol
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if size > limits.n_bytes:
        stream.close()
        msg = f"“{name}” has {size / 1e6:,.0f} MB, more than the limit of {limits.most}; "
        raise InputError(msg + "split it or take fewer rows.")
    return stream


def check_matrix(
    name: str,
    n_rows: int,
    n_features: int,
    itemsize: int,
    limits: ReadLimits,
    remedy: str = "take fewer rows or smaller images",
) -> None:
    """Raise InputError for a matrix that is too large, before it is allocated."""
    msg = f"“{name}” has {n_features:,} values in each row, more than {limits.features:,}; take "
    msg += "fewer columns or smaller images."
    refuse_if(n_features > limits.features, msg)
    size = n_rows * (n_features * itemsize + _ROW_BYTES)
    refuse_if(
        size > limits.n_bytes,
        f"“{name}” would become {n_rows:,} x {n_features:,} numbers in {size / 1e6:,.0f} MB, more "
        f"than {limits.most}; {remedy}.",
    )


def total_bytes(root: Path) -> int:
    """Return the size in bytes of a file or folder."""
    return sum(path.stat().st_size for path in (root, *root.rglob("*")) if path.is_file())


class _Borrowed(io.RawIOBase):
    """A view of a file object that leaves it open when closed."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.seek, self.tell, self.read = file.seek, file.tell, file.read  # type: ignore[method-assign]

    def readable(self) -> bool:
        return True

    seekable = readable


def _unpacked(name: str, stream: BinaryIO, limits: ReadLimits) -> Iterator[bytes]:
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    size, inside = 0, " inside the gzip archive" if packed else ""
    damaged = f"“{name}” is truncated or damaged{inside}; compress or download it again."
    with explained(damaged, (EOFError, gzip.BadGzipFile, zlib.error)):
        for chunk in chunks_of(gzip.GzipFile(fileobj=stream) if packed else stream):
            size += len(chunk)
            refuse_if(
                size > limits.n_bytes,
                f"“{name}” unpacks to more than {limits.most}; split it or take fewer rows.",
            )
            yield chunk
    refuse_if(not size, f"“{name}” is empty{inside}; choose a file with data in it.")


_PACKED = {".zip", ".gz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".tgz", ".zst"}


def members(
    name: str, stream: BinaryIO, limits: ReadLimits, may_be_inside: tuple[str, ...] = ()
) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    """Open a zip, check its declared sizes, and list its files except hidden ones."""
    with explained(f"“{name}” is not a zip file or is damaged; compress or download it again."):
        archive = zipfile.ZipFile(stream)
    items = [item for item in archive.infolist() if not item.filename.endswith("/")]
    size = sum(item.file_size for item in items)
    refuse_if(
        len(items) > limits.members,
        f"“{name}” contains {len(items):,} files, more than {limits.members:,}; pack fewer.",
    )
    msg = f"“{name}” unpacks to {size / 1e6:,.0f} MB, more than {limits.most}; unzip it first, or "
    msg += "give fewer or smaller files."
    refuse_if(size > limits.n_bytes, msg)
    packed = tuple(_PACKED - {*may_be_inside})
    for item in items:
        inner = f"“{shortened(item.filename)}” in “{name}” is"
        is_rare = item.compress_type not in (0, zipfile.ZIP_DEFLATED)  # only these are common
        is_packed = item.filename.lower().endswith(packed)
        refuse_if(item.flag_bits & 1, f"{inner} encrypted; pack the images without a password.")
        refuse_if(is_rare, f"{inner} compressed by a rare method; compress it with Deflate.")
        refuse_if(is_packed, f"{inner} another archive; unpack it and pack the images alone.")
    return archive, [item for item in items if not is_hidden(item.filename)]


def content(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    """Return the content of a file in a zip."""
    return b"".join(unpacked(name, archive, item))


def unpacked(name: str, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of a file in chunks, up to its declared size, which is checked."""
    damaged = f"“{shortened(item.filename)}” in “{name}” is damaged; pack it again."
    with explained(damaged), archive.open(item) as stream:
        yield from chunks_of(stream)


def parts(filename: str) -> tuple[str, ...]:
    """Folders and name of a zip entry, safe to show."""
    path = PurePosixPath(filename.replace("\\", "/"))
    return tuple(part for part in path.parts if part not in ("/", "..", "."))


def is_hidden(filename: str) -> bool:
    """Whether a file is unnamed, a system file or in such a folder; images may begin with a dot."""
    *above, last = parts(filename) or [""]
    is_system = last.startswith("._") or not last.lstrip(".").lower().endswith(ENDINGS)
    hidden = any(part.startswith((".", "__MACOSX")) for part in above)
    return hidden or not last or (last.startswith(".") and is_system)


MOST_NAMES = 5
_DONE = {"modelled": "filled from the model", "filled": "filled with their column's mean"}
_DONE |= {"dropped": "rows left out"}
_ENCODINGS = {"CP1252": "Western European text (cp1252)", "CP1251": "Cyrillic text (cp1251)"}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
_ROLES = {"id": "Row names", "label": "Labels", "ignored": "Left out"}
_LINES = {"drawn": "drawn line", "closing": "closing note", "repeated header": "repeated header"}
_COUNTS = ("Found", "Constant features", "Repeated rows")  # omitted from notes
# format of report entries and lists of names
_ENTRIES: tuple[tuple[str, str, Callable[[str, Any], str]], ...] = (
    ("Renamed columns", "renamed", lambda name, _: name),
    ("Not numbers", "not_numbers", lambda name, cells: f"{name}: {_cells(cells)}"),
    ("Lists of another length", "short_lists", lambda name, n: f"{name}: {counted(n, 'list')}"),
    ("Units", "units", lambda name, unit: f"{name} in {unit}"),
    ("Other decimal sign", "decimals", lambda name, _: name),
    ("Suspicious values", "far", lambda at, far: f"{at}: {_cells({f'{x:g}': n for x, n in far})}"),
    ("Features that may be labels", "likely_labels", lambda name, n: f"{name} ({n} values)"),
    ("Repaired bytes", "repaired", lambda line, _: f"in line {line}"),
    ("Arrays not used", "unused", lambda name, why: f"{name} ({why})"),
)


def note(report: dict[str, Any], about: str, words: str) -> None:
    """Add a note on how a file was read to a reader's report."""
    report.setdefault("notes", {})[about] = words


def facts(report: Mapping[str, Any], dataset: Dataset | None = None) -> dict[str, str]:
    """Convert a reader's report to facts, by title."""
    of: Any = report.get
    marked, sides = of("marked"), of("image_shape") or ()
    columns, names_of = f"{of('columns', 0):,}", f"those marked by “{(marked or {}).get('column')}”"
    lines: dict[str, Any] = {
        "Read as": _written(report),
        "Files": f"{of('files') or ''}",
        "Found": of("rows") and f"{counted(of('rows'), 'row')} × {columns}",
        "Variables": marked and f"{columns} of {marked['of']:,} variables, {names_of}",
        "Images of": sides and f"{' × '.join(map(str, sides))} pixels",
    }
    why, kinds = of("left_out", {}), of("lines", {}).items()
    for role, about in _ROLES.items():
        names = [name for name, has in of("roles", {}).items() if has == role]
        lines[about] = few([f"{n} ({why[n]})" if why.get(n) else n for n in names])
    if of("repeated_ids"):
        lines["Row names"] += f"; {of('repeated_ids'):,} duplicates were numbered"
    lines["Lines not used"] = ", ".join(counted(n, _LINES.get(k, f"{k} line")) for k, n in kinds)
    for about, key, written in _ENTRIES:
        entries = of(key) or {}
        entries = entries if isinstance(entries, Mapping) else dict.fromkeys(entries)
        lines[about] = few([written(*entry) for entry in entries.items()])
    lines["Suspicious values"] += "; na_values makes them missing" * bool(of("far"))
    skipped = of("skipped")
    lines["Files left out"] = skipped and f"{len(skipped):,}: {few(skipped)}"
    lines |= of("notes", {})
    labels = dataset.labels if dataset else {}
    for name in list(labels)[:MOST_NAMES]:
        classes, codes = categories(labels[name])
        pairs = zip(classes, np.bincount(codes, minlength=len(classes)).tolist(), strict=True)
        some = few([f"{text} ({count:,})" for text, count in pairs])
        lines[f"Label “{name}”"] = f"{counted(len(classes), 'value')}: {some}"
    if missing := of("missing"):
        cells = counted(of("n_missing", sum(missing.values())), "cell")
        done = next((f", {words}" for key, words in _DONE.items() if of(key)), "")
        by_column = few([f"{name} ({count:,})" for name, count in missing.items()])
        lines["Missing"] = f"{cells}{done}: {by_column}"
    else:
        lines["Missing"] = "none" if "missing" in report else ""
    if constant := of("constant"):
        n_constant = of("n_constant", len(constant))
        which = " pixels" if sides else f": {few(constant, n_constant)}"
        lines["Constant features"] = f"{n_constant:,}{which}"
    lines["Repeated rows"] = f"{of('duplicates') or ''}"
    if doubt := of("doubt"):
        lines["In doubt"] = f"1.234 is read as 1{doubt['now']}234"
        if doubt["option"] != "decimal":
            taken = "the names of the columns" if doubt["now"] else "data"
            lines["In doubt"] = f"the first line is read as {taken}"
    return {about: text for about, text in lines.items() if text}


def in_one_line(report: Mapping[str, Any], dataset: Dataset) -> str:
    """Join the `facts` into one text about how files were read."""
    sides = counted(dataset.n_rows, "row"), counted(dataset.n_features, "feature")
    lines = {"Read as": " × ".join(sides)} | facts(report)
    lines.setdefault("Labels", few(list(dataset.labels)))
    said = [f"{about}: {text}" for about, text in lines.items() if text and about not in _COUNTS]
    said = [text for text in said if text != "Missing: none"]
    return " · ".join(said).replace(":", "", 1) + "."


def _written(report: Mapping[str, Any]) -> str:
    if sheet := report.get("sheet"):
        others = [name for name in report["sheets"] if name != sheet]
        parts = [f"sheet “{sheet}”", f"not read: {few(others)}" * bool(others)]
    elif separator := report.get("separator"):
        encoding = re.sub("-(SIG|LE|BE)$", "", report.get("encoding", "utf-8").upper())
        title = _ENCODINGS.get(encoding, f"{encoding} text")
        parts = [title, _SEPARATORS.get(separator, f"cells between “{separator}”")]
    else:
        return ""
    line = report.get("header_line") or 1
    parts += ["decimal comma"] * (report.get("decimal") == ",")
    parts += ["no header"] * (not report.get("header", True))
    parts += [f"header in line {line}"] * (line > 1)
    return ", ".join(filter(None, parts))


def _cells(cells: Mapping[str, int]) -> str:
    named = [f"{shortened(cell, 20)}{f' ({n:,})' if n > 1 else ''}" for cell, n in cells.items()]
    return f"{counted(sum(cells.values()), 'cell')}: {few(named)}"


def few(names: list[str], n: int | None = None) -> str:
    """List the first few of `n` names, by default of all given."""
    more = (len(names) if n is None else n) - MOST_NAMES
    return ", ".join(map(str, names[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")


ENDINGS = (  # image endings
    *(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff"),
    *(".webp", ".pgm", ".ppm", ".pnm"),
)
LONGEST_NAME = 80  # of file names in messages and data sets
OptionsT = TypeVar("OptionsT", bound=tuple[Any, ...])


class Reader(NamedTuple, Generic[OptionsT]):
    """A reader of files in one format."""

    options: type[OptionsT]
    read: Callable[[str, File, OptionsT, ReadLimits], Dataset] | None  # None: use `read_many`
    # reads one or more files as one data set; None: use `read`
    read_many: Callable[[Files, OptionsT, ReadLimits], Dataset] | None = None
