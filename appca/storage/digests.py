"""Checksums of stored files, which `appca check` compares; opening a file hashes nothing.

- The description of a folder (a data set, run, study or ended job) lists its files' SHA-256.
- A JSON file holds the SHA-256 of its other facts, see `files.as_json`.
- A single NPZ file has the SHA-256 of its other bytes as its zip comment, see `seal`.
- A line of a journal begins with its CRC-32, see `line_of`.

They detect corruption, not tampering: whoever writes into a home can write checksums.
"""

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from appca.storage.identity import sha256, sha256_of_file

_COMMENT, _HEX = b"appca sha256 ", 64


class Damaged(ValueError):
    """A file is not as it was written."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file.name} has been changed since it was stored")
        self.file = file


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests of files, for the description of their folder. May raise OSError."""
    return {name: sha256_of_file(folder / name) for name in names}


def check_file(file: Path, digest: str) -> None:
    """Raise Damaged for a file with another digest, or OSError."""
    if sha256_of_file(file) != digest:
        raise Damaged(file)


def seal(stream: BinaryIO) -> None:
    """Add its digest to a zip file without a comment that was just written and is still open."""
    stream.seek(-2, os.SEEK_END)  # the last field is the length of the comment
    stream.write((len(_COMMENT) + _HEX).to_bytes(2, "little") + _COMMENT)
    stream.flush()
    stream.write(sha256_of_file(Path(stream.name)).encode())


def check_sealed(file: Path) -> None:
    """Raise Damaged for a zip file that differs from the digest that `seal` added."""
    content = file.read_bytes()
    if not content or content[-_HEX:].decode(errors="replace") != sha256(content[:-_HEX]):
        raise Damaged(file)


def line_of(text: str) -> bytes:
    """Return a line to be appended to a file of lines, with its checksum."""
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def lines_in(content: bytes) -> tuple[list[str], int]:
    """Return the sound lines of a file that `line_of` made, and the number of damaged lines."""
    lines, n_damaged = [], 0
    for line in content.splitlines(keepends=True):
        text = line[9:-1].decode(errors="replace")
        if line_of(text) == line:
            lines.append(text)
        else:
            n_damaged += 1
    return lines, n_damaged
