"""Processes that are kept warm: lent for a request, taken back, replaced when they have died."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore
from typing import Generic, TypeVar

from appca.processes.child import Child, Ended

PATIENCE = 1.0  # seconds for a process to end by itself
C = TypeVar("C", bound=Child)


class Pool(Generic[C]):
    """Processes that several threads share, at most so many at once; who needs another one waits.

    `make` starts one and may raise OSError. `kept` of them, by default all, stay while nobody needs
    them.
    """

    def __init__(self, make: Callable[[], C], most: int, kept: int | None = None) -> None:
        self._make, self._kept = make, most if kept is None else kept
        self._places, self._lock = Semaphore(most), Lock()
        self._idle: list[C] = []
        self._lent: list[C] = []
        self._is_over = False

    def warm(self) -> None:
        """Start a process, unless one waits. May raise OSError."""
        with self._lock:
            if not self._idle and not self._is_over:
                self._idle.append(self._make())

    @contextmanager
    def lent(self) -> Iterator[C]:
        """Lend a process; one that is dead afterwards is not kept.

        Raises OSError where none can be started, Ended after `end`.
        """
        with self._places:
            child = self._next()
            try:
                yield child
            finally:
                self._take_back(child)

    def end(self) -> None:
        """End all processes, those that are lent at once."""
        with self._lock:
            self._is_over = True
            idle, self._idle = self._idle, []
            for child in self._lent:
                child.kill()
        for child in idle:
            child.end(PATIENCE)

    def _next(self) -> C:
        with self._lock:
            while self._idle and not self._idle[-1].is_alive:
                self._idle.pop().end()
            if self._is_over:
                raise Ended
            child = self._idle.pop() if self._idle else self._make()
            self._lent.append(child)
            return child

    def _take_back(self, child: C) -> None:
        with self._lock:
            self._lent.remove(child)
            if child.is_alive and len(self._idle) < self._kept and not self._is_over:
                self._idle.append(child)
                return
        child.end(PATIENCE)
