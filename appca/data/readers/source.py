"""The bytes of untrusted files, and never more of them than the limits allow."""

import gzip
import hashlib
import io
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from appca.storage.packed import most_unpacked
from appca.words.errors import InputError
from appca.words.refusal import refusing

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
