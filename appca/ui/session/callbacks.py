"""Callbacks of widgets: what the data or the disk refuse is a sentence here, too.

Streamlit calls them before it draws a page, so outside the frame that catches such errors.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from appca.storage.errors import TOO_MUCH
from appca.ui.session import state

TOLD = (ValueError, OSError, MemoryError)  # what a page says in a sentence; all else is our mistake

_Given = ParamSpec("_Given")


def guarded(act: Callable[_Given, object]) -> Callable[_Given, None]:
    """Return the callback that says an error of the data or the disk on the page it leads to."""

    @wraps(act)
    def guard(*args: _Given.args, **given: _Given.kwargs) -> None:
        try:
            act(*args, **given)
        except TOLD as error:
            state.notify("error", sentence(error))

    return guard


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
