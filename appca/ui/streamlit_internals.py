"""All that is used of Streamlit's inside: what is set there, and what is looked up.

It was written for Streamlit 1.67, and `pyproject.toml` admits no later minor version untested.
`tests/ui/server/test_inside.py` has a test for each use, which fails when a version makes it
needless or takes it away.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit import delta_generator, runtime
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

LOOK = "on_scriptrunner_yield"  # of a session's requests: asks whether the run shall end
SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"


def prepare() -> None:
    """Keep the first run of a process like all others.

    Streamlit runs its old page discovery until the first `st.navigation`, because a folder named
    ``pages`` exists; it does not know our pages, and says of a deep link “Page not found”. And with
    its first element it finds out whether it runs in a console, which opens the files of all
    modules: half a second while they are still being loaded.
    """
    PagesManager.uses_pages_directory = False
    delta_generator._use_warning_has_been_displayed = True


@contextmanager
def uninterrupted() -> Iterator[bool]:
    """Let no newer request of the browser end this run; tell whether one could have.

    Not in a test without a session, nor within another such callback.
    """
    context = get_script_run_ctx()
    requests = None if context is None else context.script_requests
    if requests is None or LOOK in vars(requests):
        yield False
        return
    never: Callable[[], None] = lambda: None  # noqa: E731
    setattr(requests, LOOK, never)
    try:
        yield True
    finally:
        delattr(requests, LOOK)


def bind(path: str) -> None:
    """Let the server listen at a Unix socket, which Streamlit refuses to, in place of its port."""
    from streamlit.web.server.starlette import starlette_server

    def bound(*_: object) -> tuple[socket.socket, str]:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
        Path(path).chmod(0o600)
        listening.listen(128)
        listening.setblocking(False)
        return listening, path

    starlette_server._bind_server_socket = bound  # type: ignore[assignment]


def session() -> str:
    """Return the id of the session that a page is drawn for; empty outside of one."""
    context = get_script_run_ctx()
    return "" if context is None else context.session_id


def went() -> bool:
    """Whether the page is drawn because the browser went back or forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def is_connected(session: str) -> bool:
    """Whether a browser has the session open now."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def scripts(*widgets: str) -> list[str]:
    """Return the names of the files with the code of widgets, which change with each version."""
    return [file.name for name in widgets for file in SCRIPTS.glob(f"{name}.*.js")]


def base() -> str:
    """Return the path below which all addresses of the server are, as it was told."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""
