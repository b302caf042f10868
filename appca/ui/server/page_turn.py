"""Pages take turns: few are computed at once, and precomputed fits wait for all of them.

Python runs one thread at a time, and a thread that comes back from NumPy waits behind all others,
again and again: of twenty pages at once, each took several times what they take in turn.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

PLACES = 2  # while one is in NumPy, another runs
LONGEST_SECONDS = 3.0  # that a page keeps its place: what computes for long holds up no other
QUIET_SECONDS = 1.0  # in which the browser draws a page
_change = threading.Condition()
_waiting: deque[object] = deque()  # pages, in the order in which they came
_running: dict[object, float] = {}  # pages, and when each began
_between = False  # whether pages wait for a step of the warm-up
_last = 0.0  # when a page had been computed, on the monotonic clock


@contextmanager
def turn() -> Iterator[None]:
    """Wait for a place, behind those who came before."""
    global _last  # noqa: PLW0603 - of the process, as the places are
    page = object()
    with _change:
        _waiting.append(page)
        try:
            while _waiting[0] is not page or (wait := _seconds_to_a_place()) > 0.0:
                _change.wait(None if _waiting[0] is not page else wait)
        finally:
            _waiting.remove(page)
            _change.notify_all()
        _running[page] = time.monotonic()
    try:
        yield
    finally:
        with _change:
            del _running[page]
            _last = time.monotonic()
            _change.notify_all()


def _seconds_to_a_place() -> float:
    """Return 0 where a page may begin, else after how many seconds it may at the latest."""
    if _between:
        return threading.TIMEOUT_MAX
    kept = sorted(began + LONGEST_SECONDS - time.monotonic() for began in _running.values())
    return 0.0 if len(kept) < PLACES else max(kept[-PLACES], 0.0)


def wait_for_the_first(seconds: float) -> None:
    """Wait until a page has been computed, at most so long."""
    with _change:
        _change.wait_for(lambda: _last > 0.0, seconds)


def wait_for_quiet(seconds: float) -> None:
    """Wait until no page is computed, nor was so many seconds before."""
    while not _is_quiet(seconds):
        time.sleep(0.05)


def _is_quiet(seconds: float) -> bool:
    return not (_running or _waiting) and time.monotonic() >= _last + seconds


@contextmanager
def between(quiet: float = QUIET_SECONDS) -> Iterator[None]:
    """Wait until it was quiet for a while, and let pages wait: for short steps."""
    global _between  # noqa: PLW0603 - of the process
    while not _begin_between(quiet):
        time.sleep(0.05)
    try:
        yield
    finally:
        with _change:
            _between = False
            _change.notify_all()


def _begin_between(quiet: float) -> bool:
    global _between  # noqa: PLW0603 - of the process
    with _change:
        begins = not _between and _is_quiet(quiet)
        _between = _between or begins
    return begins
