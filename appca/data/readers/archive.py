"""Untrusted zips: checked before they are unpacked, and never unpacked onto the disk."""

import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from appca.data.readers.source import ReadLimits, chunks_of
from appca.words.errors import InputError
from appca.words.wording import shortened

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
