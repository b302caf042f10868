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

    When the disk refuses, the other stays. Only a process killed between two renamings leaves
    neither, because a system cannot exchange two folders in one step.

    Raises
    ------
    OSError
    """
    doomed = draft.with_name(f".{uuid.uuid4().hex}")
    try:
        target.rename(doomed)
    except FileNotFoundError:
        draft.replace(target)
        return
    try:
        draft.replace(target)
    except OSError:
        doomed.rename(target)
        raise
    remove(doomed)


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
