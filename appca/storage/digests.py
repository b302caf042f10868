"""Digests of what is stored: whatever was changed after it was written is noticed when it is read.

They detect corruption, not tampering: all who can write into a home can write them. A file's digest
is the list of those of its blocks, so that several threads work on it and none holds much of it.

- The description of a folder (a data set, a run, a study, a job that is over) lists its files.
- A JSON text ends with the digest of what stands before it, see `sealed`.
- A line of a journal begins with its checksum, see `line_of`.
- A single NPZ file has the digest of what stands before it as its zip comment, see `seal`.
"""

import hashlib
import os
import re
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

SEAL = "seal"  # key of a JSON text's own digest
# SHA-256 of 60,000 x 784 uint8 takes 0.03 to 0.08 s, of 1,000,000 x 50 float32 0.15 to 0.2 s, on
# two cores with instructions for it, idle and busy (`python -m benchmarks.stored`). BLAKE2 is not
# faster there; CRC-32 takes a third, and lets one of 4 billion changes pass.
_BLOCK = 1 << 22  # bytes
_DIGITS = 32  # of a block's digest in a description
_KNOWN = 4096  # files
_TAIL = re.compile(rb',\n "seal": "([0-9a-f]{64})"\n\}\n')
_TAIL_BYTES = len(b',\n "seal": ""\n}\n') + 64
_COMMENT = re.compile(rb"appca sha256 ([0-9a-f]{64})")
_COMMENT_BYTES = len(b"appca sha256 ") + 64

_Stamp = tuple[int, int, int, tuple[str, ...]]
_checked: OrderedDict[str, _Stamp] = OrderedDict()  # what this process has found to be sound


class Damaged(ValueError):
    """A file is not as it was written."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file.name} has been changed since it was stored")
        self.file = file


def blocks_of(file: Path, n_bytes: int | None = None) -> tuple[str, ...]:
    """Return the digests of a file's blocks, or of those of its first bytes. May raise OSError."""
    total = file.stat().st_size if n_bytes is None else n_bytes
    starts = range(0, max(total, 1), _BLOCK)

    def digest(start: int) -> str:
        block = _part(file, start, min(_BLOCK, total - start))
        return hashlib.sha256(block).hexdigest()[:_DIGITS]

    if len(starts) == 1:  # most files: no threads for them
        return (digest(0),)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(starts))) as pool:
        return tuple(pool.map(digest, starts))


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the digests of files, for the description of their folder. May raise OSError."""
    return {name: list(blocks_of(folder / name)) for name in names}


def check_file(file: Path, blocks: Sequence[str], *, anew: bool = False) -> None:
    """Raise `Damaged` for a file whose blocks have other digests.

    A file that this process has found to be sound, and that has not been written to since, is not
    read again unless it is to be looked at `anew`.

    May raise Damaged or OSError.
    """
    stamp = _stamp(file, blocks)
    if not anew and _checked.get(str(file)) == stamp:
        return
    if blocks_of(file) != tuple(blocks):
        raise Damaged(file)
    _checked[str(file)] = stamp
    while len(_checked) > _KNOWN:
        _checked.popitem(last=False)


def _stamp(file: Path, blocks: Sequence[str]) -> _Stamp:
    facts = file.stat()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, tuple(blocks)


def check_files(
    folder: Path,
    files: Mapping[str, Sequence[str]] | None,
    needed: Iterable[str],
    *,
    anew: bool = False,
) -> None:
    """Check the files that a folder needs by the digests in its description, see `check_file`.

    None is said of what was stored before there were digests.

    Raises ValueError when the description lists other files, or as `check_file` does.
    """
    if files is None:
        return
    if not isinstance(files, dict) or set(files) != set(needed):
        msg = "its description lists other files"
        raise ValueError(msg)
    for name, blocks in files.items():
        check_file(folder / name, blocks, anew=anew)


def sealed(text: str) -> bytes:
    """Return a JSON object, as `json.dumps` with an indent of 1 writes it, with its digest."""
    body = text.removesuffix("\n}").encode()
    return body + f',\n "seal": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def is_sealed(file: Path, content: bytes) -> bool:
    """Whether a JSON file ends with a digest; raises `Damaged` when that is of another text."""
    seal = _TAIL.fullmatch(content[-_TAIL_BYTES:])
    if seal is None:
        return False
    if hashlib.sha256(content[:-_TAIL_BYTES]).hexdigest().encode() != seal[1]:
        raise Damaged(file)
    return True


def seal(stream: BinaryIO) -> None:
    """Add its digest to a zip file without a comment that was just written and is still open."""
    stream.seek(-2, os.SEEK_END)  # the last field says how long the comment is
    stream.write(_COMMENT_BYTES.to_bytes(2, "little"))
    stream.flush()
    stream.write(b"appca sha256 " + _whole(blocks_of(Path(stream.name))))


def is_sealed_zip(file: Path) -> bool:
    """Whether a zip file has a digest; raises `Damaged` when that is of another content."""
    end = max(0, file.stat().st_size - _COMMENT_BYTES)
    seal = _COMMENT.fullmatch(_part(file, end, _COMMENT_BYTES))
    if seal is None:
        return False
    if _whole(blocks_of(file, end)) != seal[1]:
        raise Damaged(file)
    return True


def line_of(text: str) -> bytes:
    """Return a line to be appended to a file of lines, with its checksum."""
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def lines_in(content: bytes) -> tuple[list[str], int]:
    """Return the whole lines of a file that `line_of` made, and how many others there are."""
    lines, n_damaged = [], 0
    for line in content.splitlines(keepends=True):  # of bytes: at line ends alone
        text = line[9:].rstrip(b"\r\n").decode(errors="replace")
        if line_of(text) == line.rstrip(b"\r\n") + b"\n":  # "\r\n": format 1 on Windows
            lines.append(text)
        else:
            n_damaged += 1
    return lines, n_damaged


def _whole(blocks: Iterable[str]) -> bytes:
    return hashlib.sha256(" ".join(blocks).encode()).hexdigest().encode()


def _part(file: Path, start: int, n_bytes: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(start)
        return stream.read(n_bytes)
