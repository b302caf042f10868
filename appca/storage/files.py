"""Atomic writes of files, JSON and NPZ with a format number, and caches."""

import errno
import json
import os
import re
import shutil
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from appca.storage import lock
from appca.storage.identity import sha256, sha256_of_file
from appca.storage.packed import as_object
from appca.words import InputError

_DRAFT = re.compile(r"\.[0-9a-f]{32}(?:-.+)?")
ASIDE = ".before"  # no leading dot, so that `sweep` ignores it
_STALE_SECONDS = 86_400  # older drafts are abandoned
_TRIES = 10


def write(path: Path, content: bytes | str, *, durable: bool = True) -> None:
    """Write a file atomically; text becomes UTF-8. May raise OSError.

    If writing fails, the old file is unchanged and no draft remains. A `durable` file survives a
    power failure once this function has returned.
    """
    with growing(path, durable=durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_place(path: Path) -> None:
    """Raise OSError if `write` could not create a file there."""
    path.exists()
    with _claimed(path.parent, partial(Path.touch, exist_ok=False)):
        pass


@contextmanager
def growing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a file to write in parts, and move it to its path when complete; see `write`."""
    sweep(path.parent)
    with _claimed(path.parent, partial(Path.touch, exist_ok=False)) as draft:
        with solid(draft, durable=durable) as file:
            yield file
        draft.replace(path)


@contextmanager
def solid(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file inside a draft, and flush it to disk at the end."""
    with path.open("w+b") as file:
        yield file
        file.flush()
        if durable:
            os.fsync(file.fileno())


def draft_folder(parent: Path) -> AbstractContextManager[Path]:
    """Yield a locked draft folder, and remove it at the end unless it was moved.

    May raise OSError.
    """
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    return _claimed(parent, Path.mkdir)


def put_folder(
    target: Path, fill: Callable[[Path], object], is_sound: Callable[[Path], bool]
) -> None:
    """Build a draft folder and move it to its path; an undamaged existing folder is kept.

    `fill` writes the files into the draft. `is_sound` checks an existing folder, which is removed
    if the check fails. May raise OSError.
    """
    with draft_folder(target.parent) as draft:
        fill(draft)
        with lock.held(target.parent):
            if is_sound(target):
                return
            discard(target)
            draft.replace(target)


def replace_folder(draft: Path, target: Path) -> None:
    """Replace a folder by a finished folder.

    Between two renames, the old folder is at `aside`, where readers look if the path is empty. The
    next replacement cleans up. If writing fails, the old folder is kept; may raise OSError.
    """
    before = aside(target)
    with lock.held(target.parent):
        if before.exists() and not target.exists():  # the process was killed between the renames
            before.rename(target)
        remove(before)  # the process was killed during the removal
        try:
            target.rename(before)
        except FileNotFoundError:
            draft.replace(target)
            return
        try:
            draft.replace(target)
        except OSError:
            before.rename(target)
            raise
        remove(before)


def aside(target: Path) -> Path:
    """Return the path of a folder while it is being replaced."""
    return target.with_name(f"{target.name}{ASIDE}")


def discard(path: Path) -> None:
    """Remove a folder, if it exists, in one step, so that no reader sees part of it.

    May raise OSError.
    """
    doomed = _new_name(path.parent)
    with suppress(FileNotFoundError):
        path.rename(doomed)
        remove(doomed)


def remove(path: Path) -> None:
    """Remove a folder, a file or a link, if possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def forget(folder: Path, prefix: str) -> None:
    """Remove folders with this prefix that killed servers left more than a day ago."""
    for left in folder.glob(f"{prefix}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                remove(left)


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder whose owners have ended.

    If files cannot be locked, drafts older than a day are removed. A draft's name is a dot and 32
    hex digits, perhaps followed by a file name; other files are kept.
    """
    for draft in folder.glob(".*"):
        if not _DRAFT.fullmatch(draft.name):
            continue
        # Hold the lock until the draft is removed; otherwise its creator could lock it.
        with suppress(OSError), lock.opened(draft) as file:
            free = None if file is None else lock.take(file)
            if free or (free is None and time.time() - draft.lstat().st_mtime > _STALE_SECONDS):
                remove(draft)


def _new_name(folder: Path) -> Path:
    return folder / f".{uuid.uuid4().hex}"


@contextmanager
def _claimed(folder: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """Make and lock a draft, and remove it at the end unless it was moved."""
    for _ in range(_TRIES):
        draft = _new_name(folder)
        try:
            make(draft)
            # Until the draft is locked, `sweep` may mistake it for an abandoned one.
            with lock.opened(draft) as file:
                if (file is None or lock.take(file) is not False) and draft.exists():
                    yield draft
                    return
        finally:
            remove(draft)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


FORMAT, KEY = 3, "format"
FILES = "files"  # key of the file digests in a folder's `meta.json`, see `digests_of`
Content = TypeVar("Content")


class OtherFormat(InputError):
    """A file has the format of another version."""


def numbered(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with the format number."""
    return {KEY: FORMAT, **facts}


def refuse_other_format(what: str, number: object, expected: int | None = None) -> None:
    """Raise OtherFormat if the format number differs, ValueError if it is invalid.

    `what` names the file in the message, “Fit 1a2b3c4d5e6f”; `expected` is FORMAT by default.
    """
    expected = FORMAT if expected is None else expected
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        msg = "its format number is not valid"
        raise ValueError(msg)
    if number != expected:
        age, remedy = "a newer", "update appca"
        if number < expected:
            age, remedy = "an older", "make it again with this version"
        msg = f"{what} was written by {age} version of appca (format {number}; this version reads "
        msg += f"format {expected}); {remedy}."
        raise OtherFormat(msg)


def without_number(what: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without the format number; raises like `refuse_other_format`."""
    refuse_other_format(what, facts.get(KEY))
    return {name: value for name, value in facts.items() if name != KEY}


def or_none(read: Callable[[], Content]) -> Content | None:
    """Return the content, or None if it cannot be read.

    Raises OtherFormat, because files of other versions are not damaged.
    """
    try:
        return read()
    except OtherFormat:
        raise
    except Exception:  # parsers raise any exception
        return None


_COMMENT, _HEX = b"appca sha256 ", 64


class Damaged(ValueError):
    """A file has changed since it was written."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file.name} has changed since it was stored")
        self.file = file


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests of files, for the metadata of their folder. May raise OSError."""
    return {name: sha256_of_file(folder / name) for name in names}


def check_file(file: Path, digest: str) -> None:
    """Raise Damaged if a file's digest differs; may raise OSError."""
    if sha256_of_file(file) != digest:
        raise Damaged(file)


def seal(stream: BinaryIO) -> None:
    """Append a digest to an open zip file that was just written and has no comment."""
    stream.seek(-2, os.SEEK_END)  # the length of the comment is the last field
    stream.write((len(_COMMENT) + _HEX).to_bytes(2, "little") + _COMMENT)
    stream.flush()
    stream.write(sha256_of_file(Path(stream.name)).encode())


def check_sealed(file: Path) -> None:
    """Raise Damaged for a zip file that does not match the digest added by `seal`."""
    content = file.read_bytes()
    if not content or content[-_HEX:].decode(errors="replace") != sha256(content[:-_HEX]):
        raise Damaged(file)


def line_of(text: str) -> bytes:
    """Return a line with its checksum, to append to a file."""
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def lines_in(content: bytes) -> tuple[list[str], int]:
    """Return the undamaged lines written by `line_of`, and the number of damaged lines."""
    lines, n_damaged = [], 0
    for line in content.splitlines(keepends=True):
        text = line[9:-1].decode(errors="replace")
        if line_of(text) == line:
            lines.append(text)
        else:
            n_damaged += 1
    return lines, n_damaged


DIGEST = "sha256"
MOST_REMEMBERED = 1 << 14  # maximum number of cached folders
SETTLED_SECONDS = 2.0  # changes within this time may have equal modification times
Result = TypeVar("Result")


def unless_changed(*names: str) -> Callable[[Callable[[Path], Result]], Callable[[Path], Result]]:
    """Cache a function of a folder until one of the named files in it changes."""

    def decorate(read: Callable[[Path], Result]) -> Callable[[Path], Result]:
        @lru_cache(MOST_REMEMBERED)
        def remembered(folder: Path, _states: tuple[object, ...]) -> Result:
            return read(folder)

        @wraps(read)
        def ask(folder: Path) -> Result:
            facts = [(folder / name).stat() for name in names]
            if time.time() < max(fact.st_ctime for fact in facts) + SETTLED_SECONDS:
                return read(folder)
            return remembered(
                folder, tuple((file.st_ino, file.st_ctime_ns, file.st_size) for file in facts)
            )

        return ask

    return decorate


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return the content of a JSON file for `read_json`."""
    return _with_digest(numbered(facts))


def _with_digest(record: Mapping[str, Any]) -> bytes:
    def text(value: object) -> str:
        return json.dumps(value, indent=1, ensure_ascii=False)

    return f"{text({**record, DIGEST: sha256(text(record))})}\n".encode()


def read_json(file: Path, what: str) -> dict[str, Any]:
    """Return the content of a JSON file.

    Raises OSError, ValueError, RecursionError, or OtherFormat for a file of another version.
    """
    content = file.read_bytes()
    record = as_object(content.decode())
    has_digest = record.pop(DIGEST, None) is not None
    if has_digest and _with_digest(record) != content:  # the format number may be damaged
        raise Damaged(file)
    facts = without_number(what, record)
    if not has_digest:
        raise Damaged(file)
    return facts


def write_json(file: Path, facts: Mapping[str, Any], what: str) -> None:
    """Write a JSON file atomically.

    Raises OtherFormat if the existing file is from another version, or OSError.
    """
    keep_other_format(file, what)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, as_json(facts))


def read_arrays(file: Path) -> dict[str, np.ndarray]:
    """Return all arrays of an NPZ file. A damaged file may raise any exception of its parsers."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_numbered(file: Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays of a `write_numbered` file; raises like `read_arrays`, or OtherFormat."""
    arrays = read_arrays(file)
    refuse_other_format(what, int(arrays.pop(KEY)))
    return arrays


def write_numbered(file: Path, arrays: Mapping[str, np.ndarray], what: str) -> None:
    """Write an NPZ file with its digest atomically; raises like `write_json`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    keep_other_format(file, what)
    with growing(file) as stream:
        write_arrays(stream, numbered(arrays))
        seal(stream)


def write_arrays(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an NPZ file."""
    np.savez(stream, **arrays)  # type: ignore[arg-type]


def keep_other_format(file: Path, what: str) -> None:
    """Raise OtherFormat if a file is from another version, because it must not be replaced."""
    try:
        if file.suffix == ".npz":
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                refuse_other_format(what, int(archive[KEY]))
        else:
            read_json(file, what)
    except OtherFormat:
        raise
    except Exception:  # missing or damaged
        return


_OF = "of"


def read_cached(file: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of an NPZ file and mark it as used; None if it cannot be read."""
    try:
        arrays = read_numbered(file, file.name)
        arrays.pop(_OF, None)
    except Exception:  # parsers raise any exception
        return None
    with suppress(OSError):
        os.utime(file)
    return arrays


def write_cached(file: Path, of: str = "", **arrays: np.ndarray) -> None:
    """Write an NPZ file atomically, without pickle.

    It is deleted together with its sources `of`: digests of data sets or ids of runs. Raises
    OtherFormat if the existing file is from a later version, or OSError.
    """
    write_numbered(file, {**arrays, _OF: np.array(of)}, file.name)


def made_of(file: Path) -> str:
    """Return the sources of a file; an empty text if there are none."""
    with suppress(Exception), np.load(file, allow_pickle=False) as archive:
        return " ".join(str(archive[name]) for name in (_OF, "facts") if name in archive)
    return ""


def prune(folder: Path, pattern: str, most_bytes: int, keep: Path | None = None) -> list[Path]:
    """Delete the least recently used files until the others fit; return them, oldest first.

    `keep` is the file just written, which is kept even above the limit. Files that are missing or
    cannot be deleted are skipped.
    """
    files = []
    for file in folder.glob(pattern):
        with suppress(OSError):
            facts = file.stat()
            files.append((facts.st_mtime_ns, facts.st_size, file))
    total, gone = sum(size for _, size, _ in files), []
    for _, size, file in sorted(files):
        if total <= most_bytes:
            break
        if file == keep:
            continue
        with suppress(OSError):
            file.unlink()
            gone.append(file)
            total -= size
    return gone


SHARED = "APPCA_SHARED"


def homes() -> tuple[Path, ...]:
    """Return the folders in the environment variable, separated as in PATH."""
    names = filter(None, os.environ.get(SHARED, "").split(os.pathsep))
    return tuple(Path(name).expanduser().absolute() for name in names)


def place(kind: str, name: str) -> Path | None:
    """Return the folder of a data set or run in the first of these homes that contains it."""
    places = (home / kind / name for home in homes())
    return next((folder for folder in places if folder.is_dir()), None)
