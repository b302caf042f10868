"""Locks that the system releases when their owner ends, in whichever container that was.

A process is not known by its number: containers that share a volume have numbers of their own, and
see each other's files but not each other's processes. An open file or folder can be locked by
`flock`, which all processes under one kernel see. Of processes under another kernel, on a volume
that several machines have mounted, a lock that is held is believed; one that is free proves
nothing, because some volumes do not pass locks on.
"""

import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from appca.storage.identity import sha256

try:
    import fcntl
except ImportError:  # Windows: no owner is known to be alive or gone, so age alone decides
    fcntl = None  # type: ignore[assignment]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_FILE = ".lock"  # beside the entries, on volumes where a folder cannot be locked
_PATIENCE, _PAUSE = 10.0, 0.005  # seconds
_mine = threading.local()


@cache
def machine() -> str:
    """Return eight hex digits, the same for all processes under one kernel since it started."""
    try:
        name = _BOOT.read_text(encoding="ascii")
    except OSError:
        name = platform.node()
    return sha256(name, 8)


def take(file: int | None) -> bool | None:
    """Lock an open file or folder until it is closed.

    Returns
    -------
    bool or None
        Whether it is locked now, or somebody else has the lock; None where the system or the volume
        has no such locks, or nothing is open.
    """
    if fcntl is None or file is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int | None]:
    """Open a file or folder to lock it; None where that cannot be."""
    file = None
    if fcntl is not None:  # else an open file would only stand in the way of its renaming
        with suppress(OSError):
            file = os.open(path, flags, 0o600)
    try:
        yield file
    finally:
        if file is not None:
            os.close(file)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let no other thread, process or container change what lies in a folder meanwhile.

    Of those who also ask for it; one thread may ask again inside. Where nothing can be locked,
    nobody waits, and nobody waits longer than ten seconds, as for one that was suspended: files are
    replaced whole all the same, and the last change stays.
    """
    taken = _mine.__dict__.setdefault("folders", set())
    if folder in taken:
        yield
        return
    with ExitStack() as stack:
        stack.callback(taken.discard, folder)
        taken.add(folder)
        file = stack.enter_context(opened(folder))
        if file is not None and _waited(file) is None:
            _waited(stack.enter_context(opened(folder / _FILE, os.O_RDWR | os.O_CREAT)))
        yield


def _waited(file: int | None) -> bool | None:
    """Take a lock, waiting for those who have it; None where it cannot be locked."""
    end = time.monotonic() + _PATIENCE
    while (taken := take(file)) is False and time.monotonic() < end:
        time.sleep(_PAUSE)
    return taken
