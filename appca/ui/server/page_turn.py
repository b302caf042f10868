"""Pages take turns: few are computed at once, and what is made ahead waits for all of them.

Python runs one thread at a time, and a thread that comes back from NumPy waits behind all others,
again and again: of twenty pages at once, each took several times what they take in turn.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PLACES = 2  # while one is in NumPy, another runs
LONGEST_SECONDS = 3.0  # so that pages that compute for long do not hold up the others
QUIET_SECONDS = 1.0  # in which the browser draws a page
_places = threading.BoundedSemaphore(PLACES)
_drawn = threading.Event()  # set when a page has been computed
_last = 0.0  # when that was


@contextmanager
def turn() -> Iterator[None]:
    """Wait for a place, but not for long."""
    global _last  # noqa: PLW0603 - of the process, as the places are
    placed = _places.acquire(timeout=LONGEST_SECONDS)
    try:
        yield
    finally:
        _last = time.monotonic()
        _drawn.set()
        if placed:
            _places.release()


def wait_for_the_first(seconds: float) -> None:
    """Wait until a page has been computed, at most so long."""
    _drawn.wait(seconds)


@contextmanager
def between(quiet: float = QUIET_SECONDS) -> Iterator[None]:
    """Wait until it was quiet for a while, and let pages wait: for short steps."""
    while time.monotonic() < _last + quiet or not _take_all():
        time.sleep(0.05)
    try:
        yield
    finally:
        for _ in range(PLACES):
            _places.release()


def _take_all() -> bool:
    taken = [_places.acquire(blocking=False) for _ in range(PLACES)]
    if not all(taken):
        for _ in filter(None, taken):
            _places.release()
    return all(taken)
