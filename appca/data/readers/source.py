"""The bytes of a file a stranger may have made, and never more of them than the limits say."""

import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

from appca.data.errors import InputError


class Limits(NamedTuple):
    """What one file may ask of the machine."""

    n_bytes: int = 1 << 30  # of the file, of what it unpacks to, and of the matrix made from it
    members: int = 200_000  # files in a zip
    ratio: float = 200.0  # unpacked to packed bytes of a zip beyond 64 MB; photographs have 1 to 3
    pixels: int = 50_000_000  # of one image


LIMITS = Limits()
_CHUNK = 1 << 20


def file_bytes(name: str, file: Path | str | BinaryIO, limits: Limits = LIMITS) -> bytes:
    """Return the whole file; gzip packing, known by its first bytes, is taken off."""
    with file_stream(name, file, limits) as stream:
        data = stream.read()
    if not data:
        msg = f"“{name}” is empty; choose a file with data in it."
        raise InputError(msg)
    return _unpacked(name, data, limits.n_bytes) if data[:2] == b"\x1f\x8b" else data


def file_stream(name: str, file: Path | str | BinaryIO, limits: Limits = LIMITS) -> BinaryIO:
    """Open a path, or rewind a file object into an independent stream, after checking its size."""
    if isinstance(file, (str, Path)):
        try:
            stream = Path(file).open("rb")  # noqa: SIM115 (the caller closes it)
        except OSError as error:
            msg = f"“{name}” cannot be opened ({error.strerror}); check its place and its rights."
            raise InputError(msg) from error
    else:
        stream = _Kept(file)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if size > limits.n_bytes:
        stream.close()
        msg = (
            f"“{name}” has {size / 1e6:,.0f} MB, more than the {limits.n_bytes / 1e6:,.0f} MB one "
            "file may have; split it or take fewer rows."
        )
        raise InputError(msg)
    return stream


def check_matrix(name: str, n_rows: int, n_features: int, itemsize: int, limits: Limits) -> None:
    """Refuse a matrix that would not fit before it is made."""
    size = n_rows * n_features * itemsize
    if size > limits.n_bytes:
        msg = (
            f"“{name}” would become {n_rows:,} x {n_features:,} numbers in {size / 1e6:,.0f} MB, "
            f"more than {limits.n_bytes / 1e6:,.0f} MB; take fewer rows or smaller images."
        )
        raise InputError(msg)


class _Kept(io.RawIOBase):
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


def _unpacked(name: str, data: bytes, limit: int) -> bytes:
    out = io.BytesIO()
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            while chunk := stream.read(_CHUNK):
                out.write(chunk)
                if out.tell() > limit:
                    msg = (
                        f"“{name}” unpacks to more than {limit / 1e6:,.0f} MB; "
                        "split it or take fewer rows."
                    )
                    raise InputError(msg)
    except (EOFError, OSError, zlib.error) as error:
        msg = f"“{name}” breaks off or is damaged inside its gzip packing; pack or fetch it again."
        raise InputError(msg) from error
    if not out.tell():
        msg = f"“{name}” is empty inside its gzip packing; choose a file with data in it."
        raise InputError(msg)
    return out.getvalue()
