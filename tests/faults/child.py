"""A forked child in which something goes wrong, and what became of it."""

import errno
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_STRUCK = 16  # added to the exit code
_STEPS = ("os.mkdir", "os.rename", "os.truncate")


class Fate(NamedTuple):
    """How a child ended."""

    sentence: str | None  # of the ValueError it met; None when it finished
    killed: bool
    struck: bool = False  # whether the trouble of `at_step` came


def fate_of(work: Callable[[], object], trouble: Callable[[], object]) -> Fate:
    """Do the work in a child after `trouble` has been prepared there."""
    inlet, outlet = os.pipe()
    with warnings.catch_warnings():
        # of the threads of JAX, if an earlier test has loaded it: the child does not use them
        warnings.filterwarnings("ignore", message=".*fork")
        child = os.fork()
    if child == 0:
        os.close(inlet)
        os._exit(_live(work, trouble, outlet) | (_STRUCK if struck else 0))
    os.close(outlet)
    with os.fdopen(inlet, encoding="utf-8") as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    if killed:
        return Fate(None, True, True)
    code = os.WEXITSTATUS(status)
    assert code & ~_STRUCK in {0, 1}, text
    return Fate(text if code & 1 else None, False, bool(code & _STRUCK))


def _live(work: Callable[[], object], trouble: Callable[[], object], outlet: int) -> int:
    from tests.faults.writers import Refused

    try:
        trouble()
        work()
    except (ValueError, Refused) as error:
        os.write(outlet, str(error).encode())
        return 1
    except BaseException as error:
        os.write(outlet, f"{type(error).__name__}: {error}".encode())
        return 3
    return 0


struck: list[int] = []


def at_step(number: int, home: Path, act: Callable[[], object]) -> Callable[[], None]:
    """Return a trouble: `act` before the given change of the disk below a folder, from 1 on.

    Changes are files opened for writing, folders made and things renamed.
    """
    seen = 0

    def hook(event: str, arguments: tuple) -> None:
        nonlocal seen
        if _changes(event, arguments, home):
            seen += 1
            if seen == number:
                struck.append(seen)
                act()

    return lambda: sys.addaudithook(hook)


def _changes(event: str, arguments: tuple, home: Path) -> bool:
    if event not in _STEPS and event != "open":
        return False
    if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return False
    return str(arguments[0]).startswith(str(home))


def die() -> None:
    """End as a process does that runs out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    """Do what a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def small_files(n_bytes: int) -> Callable[[], None]:
    """Return a trouble: no file can grow beyond so many bytes."""

    def limit() -> None:
        sys.dont_write_bytecode = True  # Python 3.13.0 keeps a file of bytecode that it cut short
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))

    return limit
