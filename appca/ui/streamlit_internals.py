"""All uses of Streamlit's internals, for version 1.67; `pyproject.toml` limits the version.

`tests/ui/server/test_inside.py` tests each one, and fails if it is needless or missing.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit import delta_generator, runtime
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

LOOK = "on_scriptrunner_yield"  # signal at which a session decides whether to end the run
SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"


def prepare() -> None:
    """Make a process's first run like later ones: deep links work, no console is searched for."""
    PagesManager.uses_pages_directory = False
    delta_generator._use_warning_has_been_displayed = True


@contextmanager
def uninterrupted() -> Iterator[bool]:
    """Prevent newer requests from ending this run; False without a session, or if nested."""
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
    """Make the server listen at a Unix socket, which Streamlit does not support."""
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
    """Return the id of this page's session; empty outside a session."""
    context = get_script_run_ctx()
    return "" if context is None else context.session_id


def went() -> bool:
    """Whether the browser's back or forward button led to this page."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def is_connected(session: str) -> bool:
    """Whether a browser has the session open."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def scripts(*widgets: str) -> list[str]:
    """Return the names of widgets' script files, which change with each version."""
    return [file.name for name in widgets for file in SCRIPTS.glob(f"{name}.*.js")]


def base() -> str:
    """Return the base path of the server."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""
