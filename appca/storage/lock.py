"""Locks for one writer at a time in a folder, among threads and processes of a machine.

The folder itself is locked, so there is no lock file.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: writes are atomic, so the last one wins
    fcntl = None  # type: ignore[assignment]

_PATIENCE, _PAUSE = 10.0, 0.005  # seconds
_mine = threading.local()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder against other threads and processes that use this function.

    It is reentrant within a thread, and ends with the process. If the folder cannot be locked in
    ten seconds, the caller continues without a lock: writes are atomic, so the last one wins.
    """
    folders = _mine.__dict__.setdefault("folders", set())
    if folder in folders:
        yield
        return
    with opened(folder) as file:
        end = time.monotonic() + _PATIENCE
        while file is not None and take(file) is False and time.monotonic() < end:
            time.sleep(_PAUSE)
        folders.add(folder)
        try:
            yield
        finally:
            folders.discard(folder)


def take(file: int) -> bool | None:
    """Lock an open file or folder until it is closed.

    False if another process has locked it, None if it cannot be locked.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_free(path: Path) -> bool | None:
    """Whether a file or folder is not locked; None if unknown."""
    with opened(path) as file:
        return None if file is None else take(file)


@contextmanager
def opened(path: Path) -> Iterator[int | None]:
    """Open a file or folder to lock it; None if that is impossible."""
    file = None
    if fcntl is not None:
        with suppress(OSError, ValueError):
            file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        if file is not None:
            os.close(file)
