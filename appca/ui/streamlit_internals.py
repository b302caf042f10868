"""All uses of Streamlit's internals, written for 1.67; `pyproject.toml` admits no later minor.

`tests/ui/server/test_inside.py` has a test for each, which fails once it is needless or gone.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit import delta_generator, runtime
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

LOOK = "on_scriptrunner_yield"  # signal of a session that asks whether to end the run
SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"


def prepare() -> None:
    """Keep the first run of a process like all others.

    Until the first `st.navigation`, Streamlit finds pages by itself if there is a folder ``pages``,
    and says of a deep link “Page not found”. With its first element it looks for a console, which
    opens the files of all modules: half a second while they are being loaded.
    """
    PagesManager.uses_pages_directory = False
    delta_generator._use_warning_has_been_displayed = True


@contextmanager
def uninterrupted() -> Iterator[bool]:
    """Let no newer request end this run; False without a session, and within another such block."""
    context = get_script_run_ctx()
    requests = None if context is None else context.script_requests
    if requests is None or LOOK in vars(requests):
        yield False
        return
    setattr(requests, LOOK, lambda: None)
    try:
        yield True
    finally:
        delattr(requests, LOOK)


def bind(path: str) -> None:
    """Let the server listen at a Unix socket, which Streamlit refuses, in place of its port."""
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
    """Return the id of the session of this page; empty outside of one."""
    context = get_script_run_ctx()
    return "" if context is None else context.session_id


def went() -> bool:
    """Whether the browser went back or forward to this page."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def is_connected(session: str) -> bool:
    """Whether a browser has the session open."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def scripts(*widgets: str) -> list[str]:
    """Return the names of the script files of widgets, which change with each version."""
    return [file.name for name in widgets for file in SCRIPTS.glob(f"{name}.*.js")]


def base() -> str:
    """Return the base path of the server."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""
