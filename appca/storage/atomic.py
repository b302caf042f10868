"""Files and folders that come and go in one step, so that a killed process leaves nothing half.

What is being written is a draft beside its place, locked as long as its owner is alive: others
remove a draft once its lock is free.
"""

import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from appca.storage import lock

_DRAFT = re.compile(r"\.[0-9a-f]{32}(?:-.+)?")
ASIDE = ".before"  # no point in front: `sweep` must never take it for a draft
_STALE_SECONDS = 86_400  # a draft that is older belongs to no living process
_TRIES = 10


def write(path: Path, content: bytes | str, *, durable: bool = True) -> None:
    """Put a file in its place whole; text becomes UTF-8. May raise OSError.

    When the disk refuses, the file that was there is as it was and nothing stands beside it. Of a
    `durable` file it waits until that would outlast a failure of the power.
    """
    with growing(path, durable=durable) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_place(path: Path) -> None:
    """Raise OSError where `write` could not make the file that is to stand there."""
    path.exists()  # a name may be too long for a disk
    with _claimed(path.parent, partial(Path.touch, exist_ok=False)):
        pass


@contextmanager
def growing(
    path: Path, check: Callable[[Path], object] | None = None, *, durable: bool = True
) -> Iterator[BinaryIO]:
    """Give a file to write to part by part; it takes its place once it is whole, see `write`.

    `check` looks at the whole file before that; what it raises keeps it from its place.
    """
    sweep(path.parent)
    # Whoever checks it may go by the end of its name; who lists a folder must not.
    ending = "" if check is None else f"-{path.name}"
    with _claimed(path.parent, partial(Path.touch, exist_ok=False), ending) as draft:
        with solid(draft, durable=durable) as file:
            yield file
        if check is not None:
            check(draft)
        draft.replace(path)


@contextmanager
def solid(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file, and wait at the end until it lies on the disk; for those inside a draft."""
    with path.open("w+b") as file:
        yield file
        file.flush()
        if durable:
            os.fsync(file.fileno())


@contextmanager
def draft_folder(parent: Path) -> Iterator[Path]:
    """Give a folder to fill, which others leave alone; what is still there in the end is removed.

    May raise OSError.
    """
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    with _claimed(parent, Path.mkdir) as draft:
        yield draft


def put_folder(
    target: Path, fill: Callable[[Path], object], is_sound: Callable[[Path], bool]
) -> None:
    """Build a folder beside its place and move it there; a sound one that is there stays.

    `fill` writes the files into the draft, `is_sound` says whether what is in the place now is as
    good; what is not is removed. May raise OSError.
    """
    with draft_folder(target.parent) as draft:
        fill(draft)
        with lock.held(target.parent):
            if is_sound(target):
                return
            discard(target)
            draft.replace(target)


def replace_folder(draft: Path, target: Path) -> None:
    """Put a finished folder in the place of another, which is gone then.

    A system cannot exchange two folders in one step, so the other stands in `aside` between two
    renamings; who reads looks there when nothing is in its place. So at every moment the old one or
    the new one is found, also by those who come after a killed process; the next replacement puts
    in order what that left. When the disk refuses, the other stays.

    May raise OSError.
    """
    before = aside(target)
    with lock.held(target.parent):
        if before.exists() and not target.exists():  # killed between the renamings
            before.rename(target)
        remove(before)  # killed while it was removed
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


def take_place(draft: Path, path: Path) -> None:
    """Move a file that was written elsewhere into its place. May raise OSError."""
    draft.replace(path)


def aside(target: Path) -> Path:
    """Return where a folder stands while another takes its place."""
    return target.with_name(f"{target.name}{ASIDE}")


def discard(path: Path) -> None:
    """Remove a folder in one step, so that nobody meets half of it; one that is gone is no error.

    May raise OSError.
    """
    doomed = _new_name(path.parent)
    with suppress(FileNotFoundError):
        path.rename(doomed)
        remove(doomed)


def remove(path: Path) -> None:
    """Remove what is there, a folder, a file or a link; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def forget(folder: Path, prefix: str) -> None:
    """Remove folders named so that servers which were killed left a day ago."""
    for left in folder.glob(f"{prefix}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                remove(left)


def is_draft(path: Path) -> bool:
    """Whether a name is one of those that drafts have."""
    return _DRAFT.fullmatch(path.name) is not None


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder whose owners have ended.

    Where files cannot be locked, a draft that is older than a day is removed. The name of a draft
    is a point and 32 hex digits, perhaps followed by a file's name; any other file stays.
    """
    for draft in folder.glob(".*"):
        if not is_draft(draft):
            continue
        # Held until it is gone: else an owner that has just made it takes the lock in between.
        with suppress(OSError), lock.opened(draft) as file:
            free = None if file is None else lock.take(file)
            if free or (free is None and time.time() - draft.lstat().st_mtime > _STALE_SECONDS):
                remove(draft)


def _new_name(folder: Path, ending: str = "") -> Path:
    return folder / f".{uuid.uuid4().hex}{ending}"


@contextmanager
def _claimed(folder: Path, make: Callable[[Path], object], ending: str = "") -> Iterator[Path]:
    """Make a draft and hold its lock; what is still there in the end is removed."""
    for _ in range(_TRIES):
        draft = _new_name(folder, ending)
        try:
            make(draft)
            # Before the lock is taken, `sweep` may take the draft for one whose owner has ended.
            with lock.opened(draft) as file:
                if (file is None or lock.take(file) is not False) and draft.exists():
                    yield draft
                    return
        finally:
            remove(draft)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
