"""Pages take turns: few are computed at once.

Python runs one thread at a time, and a thread that comes back from NumPy waits behind all others,
again and again: of twenty pages at once, each took several times what they take in turn.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PLACES = 2  # while one is in NumPy, another runs
LONGEST_SECONDS = 3.0  # so that pages that compute for long do not hold up the others
_places = threading.BoundedSemaphore(PLACES)


@contextmanager
def turn() -> Iterator[None]:
    """Wait for a place, but not for long."""
    placed = _places.acquire(timeout=LONGEST_SECONDS)
    try:
        yield
    finally:
        if placed:
            _places.release()
