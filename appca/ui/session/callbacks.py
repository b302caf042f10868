"""Callbacks of widgets: each comes to its end, and what data or disk refuse is one sentence.

Streamlit calls them before it draws a page, so outside the frame that catches such errors. It ends
a run where that next looks into the state of the session, once the browser has asked for the page
again, and never calls a callback again that was ended so: a number just typed would be lost.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import ParamSpec

import streamlit as st

from appca.ui.server import inside
from appca.ui.session import state
from appca.ui.session.state import KEYS
from appca.words.errors import TOO_MUCH

TOLD = (ValueError, OSError, MemoryError)  # what a page says in a sentence; all else is our mistake

_Given = ParamSpec("_Given")


def guarded(act: Callable[_Given, object]) -> Callable[_Given, None]:
    """Return the callback that is not interrupted, and says an error on the page it leads to."""

    @wraps(act)
    def guard(*args: _Given.args, **named: _Given.kwargs) -> None:
        with _uninterrupted():
            try:
                act(*args, **named)
            except TOLD as error:
                state.notify("error", sentence(error))

    return guard


def wait() -> None:
    """Wait for callbacks of an earlier run, which has ended but for them."""
    with _turn():
        pass


def sentence(error: Exception) -> str:
    """Return an error as one sentence for a person; not yet protected from Markdown."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return (
            f"The disk refused ({where}{error.strerror or error}); free some space, check the "
            "rights, or name another folder in APPCA_HOME."
        )
    if isinstance(error, MemoryError):
        return TOO_MUCH
    return str(error) or type(error).__name__


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let no newer request of the browser end this run, and later runs of the session wait."""
    with inside.uninterrupted() as asked, _turn() if asked else nullcontext():
        yield


def _turn() -> AbstractContextManager[bool]:
    """Return the lock that one callback of a session holds at a time."""
    lock: AbstractContextManager[bool] = st.session_state.setdefault(KEYS.turn, threading.RLock())
    return lock
