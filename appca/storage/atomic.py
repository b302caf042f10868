"""Files and folders that come and go in one step, so that a killed process leaves nothing half."""

import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_DRAFT = re.compile(r"\.(\d+-)?[0-9a-f]{32}(-.+)?")
ASIDE = ".before"  # no point in front: `sweep` must never take it for a draft
_STALE_SECONDS = 86_400  # a draft older than a day belongs to no living process


def write(path: Path, content: bytes | str) -> None:
    """
    Put a file in its place whole; text becomes UTF-8.

    When the disk refuses, the file that was there is as it was and nothing stands beside it.

    Raises
    ------
    OSError
    """
    with growing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def growing(path: Path) -> Iterator[BinaryIO]:
    """
    Give a file to write to part by part; it takes its place once it is whole, see `write`.

    Raises
    ------
    OSError
    """
    sweep(path.parent)
    draft = path.with_name(f".{uuid.uuid4().hex}")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def replace_folder(draft: Path, target: Path) -> None:
    """
    Put a finished folder in the place of another, which is gone then.

    A system cannot exchange two folders in one step, so the other stands in `aside` between two
    renamings; who reads looks there when nothing is in its place. So at every moment the old one or
    the new one is found, also by those who come after a killed process; the next replacement puts
    in order what that left. When the disk refuses, the other stays.

    Raises
    ------
    OSError
    """
    before = aside(target)
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


def aside(target: Path) -> Path:
    """Return where a folder stands while another takes its place."""
    return target.with_name(f"{target.name}{ASIDE}")


def remove(path: Path) -> None:
    """Remove what is there, a folder, a file or a link; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def sweep(folder: Path) -> None:
    """
    Remove the drafts in a folder that nobody has touched for a day.

    A draft is named by a point and 32 hex digits, perhaps with a process's number before them or a
    file's name behind them; what else lies there is somebody's own.
    """
    for draft in folder.glob(".*"):
        if _DRAFT.fullmatch(draft.name) is None:
            continue
        with suppress(OSError):  # its owner has just moved it into place
            if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                remove(draft)
