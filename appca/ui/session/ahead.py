"""Fits of K and L one step away, made while nothing else wants the processor.

One thread for the whole server makes them, one after the other, at low priority. It begins when
nobody has asked for anything for a while, makes way for jobs, waits while a page is drawn, and
never makes a fit for a window that is closed. They are held in memory only.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import streamlit as st
from streamlit import runtime

from appca.runs.run import FitResult
from appca.ui.session import services

QUIET_SECONDS = 1.5  # since the last page was drawn
MOST_HELD = 12
LOW_PRIORITY = 15


class FitAhead(NamedTuple):
    """A fit to make, and for whom."""

    id: str
    window: str
    fit: Callable[..., FitResult]  # takes a `callback`, called often


class FitsAhead:
    """What was made, and what is to be made next."""

    def __init__(self, is_free: Callable[[str], bool], quiet: float = QUIET_SECONDS) -> None:
        self._is_free, self._quiet = is_free, quiet
        self._change = threading.Condition()
        self._todo: list[FitAhead] = []
        self._made: OrderedDict[str, tuple[str, FitResult]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._drawn = 0  # pages

    def result_of(self, run_id: str) -> FitResult | None:
        """Return a fit that was made."""
        with self._change:
            made = self._made.get(run_id)
        return None if made is None else made[1]

    def keep(self, run_id: str, window: str, result: FitResult) -> None:
        """Hold a fit; the oldest goes where there are too many."""
        with self._change:
            self._made[run_id] = (window, result)
            while len(self._made) > MOST_HELD:
                self._made.popitem(last=False)

    def drop(self, is_open: Callable[[str], bool]) -> None:
        """Forget the fits of windows that are closed."""
        with self._change:
            for run_id in [key for key, (window, _) in self._made.items() if not is_open(window)]:
                del self._made[run_id]

    def begin(self, wanted: Sequence[FitAhead]) -> None:
        """Make these next, instead of what was to be made."""
        with self._change:
            self._todo = [fit for fit in wanted if fit.id not in self._made]
            self._change.notify()
            if self._todo and self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="ahead")
                self._thread.start()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let what is being made wait while a page is drawn."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._change:
            self._drawn += more
            self._change.notify_all()

    def _wait(self, *_: object) -> None:
        with self._change:
            self._change.wait_for(lambda: not self._drawn)

    def _work(self) -> None:
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
        while (todo := self._next()) is not None:
            if self._is_free(todo.window):
                with suppress(ValueError, ArithmeticError, MemoryError):  # the fit proper says why
                    self.keep(todo.id, todo.window, todo.fit(callback=self._wait))

    def _next(self) -> FitAhead | None:
        """Wait until it is quiet, and take the next; None ends the thread."""
        with self._change:
            while self._change.wait(self._quiet) or self._drawn:
                pass
            if self._todo:
                return self._todo.pop(0)
            self._thread = None
            return None


def result_of(run_id: str) -> FitResult | None:
    """Return a precomputed fit."""
    return _fits().result_of(run_id)


def keep(run_id: str, result: FitResult | None) -> None:
    """Hold a fit for this window."""
    if result is not None:
        _fits().keep(run_id, services.window(), result)


def begin(wanted: Sequence[tuple[str, Callable[..., FitResult]]]) -> None:
    """Make these fits for this window when nothing else is to be done."""
    if runtime.exists():
        _fits().drop(services.is_open)
        window = services.window()
        _fits().begin([FitAhead(run_id, window, fit) for run_id, fit in wanted])


@contextmanager
def waiting() -> Iterator[None]:
    """Let what is being made wait while a page is drawn: both want the processor."""
    with _fits().waiting():
        yield


@st.cache_resource(show_spinner=False)
def _fits() -> FitsAhead:
    jobs = services.jobs()
    return FitsAhead(lambda window: services.is_open(window) and not jobs.active())
