"""One writer at a time in a folder, among the threads and processes of a machine.

A folder is locked itself, so no lock file is among the stored files.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: files are replaced whole, so the last change stays
    fcntl = None  # type: ignore[assignment]

_PATIENCE, _PAUSE = 10.0, 0.005  # seconds
_mine = threading.local()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other threads and processes that ask for the same folder out of it.

    A thread may ask again while it holds the lock. The system releases the lock of a process that
    ends. Nobody waits for a folder that cannot be locked, nor longer than ten seconds: files are
    replaced whole, so the last change stays.
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

    False where a living process has locked it, None if nothing can be locked.
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
    """Whether no living process holds the lock of a file or folder; None if that is unknown."""
    with opened(path) as file:
        return None if file is None else take(file)


@contextmanager
def opened(path: Path) -> Iterator[int | None]:
    """Open a file or folder to lock it; None if that cannot be."""
    file = None
    if fcntl is not None:
        with suppress(OSError, ValueError):
            file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        if file is not None:
            os.close(file)
