"""Fits of K and L one step away, made while nothing else wants the processor.

One thread for the whole server makes them, one after the other, at low priority. It begins when
nobody has asked for anything for a while, makes way for jobs and for pages, and never makes a fit
for a window that is closed. The last ones are held, in memory only.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import streamlit as st
from streamlit import runtime

from appca.runs.run import FitResult
from appca.ui.server import inside, warm_up
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
        self._change = threading.Lock()
        self._todo: list[FitAhead] = []
        self._made: OrderedDict[str, FitResult] = OrderedDict()
        self._thread: threading.Thread | None = None

    def result_of(self, run_id: str) -> FitResult | None:
        """Return a fit that was made."""
        return self._made.get(run_id)

    def keep(self, run_id: str, result: FitResult) -> None:
        """Hold a fit; the oldest goes where there are too many."""
        with self._change:
            self._made[run_id] = result
            while len(self._made) > MOST_HELD:
                self._made.popitem(last=False)

    def begin(self, wanted: Sequence[FitAhead]) -> None:
        """Make these next, instead of what was to be made."""
        with self._change:
            self._todo = [fit for fit in wanted if fit.id not in self._made]
            if self._todo and self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="ahead")
                self._thread.start()

    def _work(self) -> None:
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
        while (todo := self._next()) is not None:
            if self._is_free(todo.window):
                with suppress(ValueError, ArithmeticError, MemoryError):  # the fit proper says why
                    result = todo.fit(callback=lambda _: warm_up.wait_for_quiet(0.0))
                    self.keep(todo.id, result)

    def _next(self) -> FitAhead | None:
        """Wait until it is quiet, and take the next; None ends the thread."""
        warm_up.wait_for_quiet(self._quiet)
        with self._change:
            if self._todo:
                return self._todo.pop(0)
            self._thread = None
            return None


def begin(wanted: Sequence[tuple[str, Callable[..., FitResult]]]) -> None:
    """Make these fits for this window when nothing else is to be done."""
    if runtime.exists():
        window = inside.session()
        fits().begin([FitAhead(run_id, window, fit) for run_id, fit in wanted])


@st.cache_resource(show_spinner=False)
def fits() -> FitsAhead:
    """Return the fits of this server."""
    jobs = services.jobs()
    return FitsAhead(lambda window: inside.is_connected(window) and not jobs.active())
