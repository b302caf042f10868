"""The server: its routes, the guard of its address, and what is used of Streamlit's inside."""

import asyncio
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from starlette.applications import Starlette
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from appca.storage import access_control
from appca.ui import arrivals, canvas, server, streamlit_internals, warm_up
from appca.ui.server import Guard

NAME = "0" * 32
KEY = "a-secret"
COOKIE = f"appca-8501={access_control.cookie(KEY)}"


async def inside(scope: dict, _receive: object, send: Any) -> None:
    await send({"type": "passed"})


def asked(
    app: Any, path: str = "/", method: str = "GET", kind: str = "http", **headers: str
) -> list[dict]:
    """Return what an application sends in answer to a request."""
    sent: list[dict] = []
    path, _, query = path.partition("?")
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": raw}
    scope |= {"server": ("127.0.0.1", 8501), "method": method}

    receive = AsyncMock(return_value={"type": "http.request", "body": b"", "more_body": False})
    send = AsyncMock(side_effect=sent.append)
    with ThreadPoolExecutor(1) as apart:  # a browser test before leaves its event loop here
        apart.submit(asyncio.run, app(scope, receive, send)).result()
    return sent


def headers(sent: list[dict]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_the_routes_answer_no_stranger_and_health_says_whether_the_home_can_be_written(monkeypatch):
    assert {f"/{one}" for one in server.LATE} == {canvas.PREFIX, arrivals.PREFIX}
    app = Starlette(routes=server.routes())
    for method, path, status in (
        ("GET", f"/canvas/{NAME}", 403),  # without a key
        ("POST", "/drop/0123456789ab", 403),
        ("DELETE", f"/canvas/{NAME}", 405),
        ("GET", "/canvas/a/b/c", 404),
    ):
        assert asked(app, path, method)[0]["status"] == status
    assert asked(app, "/healthz")[1]["body"] == b'{"status":"ok","writable":true}'
    refuse = Mock(side_effect=OSError(30, "Read-only file system"))
    monkeypatch.setattr(server.files, "check_place", refuse)
    start, body = asked(app, "/healthz")[:2]
    assert start["status"] == 503
    assert b"the home cannot be written: Read-only file system" in body["body"]


def test_a_link_is_exchanged_for_a_cookie_that_opens_all():
    guard = Guard(inside, KEY)
    link = f"/?data=abc&token={KEY}&k=3"
    assert asked(guard, link, "HEAD")[0]["status"] == 403
    sent = asked(guard, link)
    assert sent[0]["status"] == 303
    assert headers(sent)["location"] == "/?data=abc&k=3"
    cookie = headers(sent)["set-cookie"]
    assert all(words in cookie for words in ("HttpOnly", "SameSite=lax"))
    assert not any(words in cookie for words in ("Secure", KEY))
    name = cookie.partition(";")[0]
    for kind in ("http", "websocket"):
        assert asked(guard, "/_stcore/stream", kind=kind, cookie=name) == [{"type": "passed"}]
    assert asked(guard, link)[0]["status"] == 303
    assert asked(guard, f"/?token={name.partition('=')[2]}")[0]["status"] == 403
    tls = asked(guard, link, **{"x-forwarded-proto": "https"})
    assert "Secure" in headers(tls)["set-cookie"]
    away = asked(guard, f"//evil.example?token={KEY}")
    assert headers(away)["location"] == "/evil.example", "a path leads to no other host"
    for path, kind in (("/_stcore/health", "http"), ("", "lifespan")):
        assert asked(guard, path, kind=kind) == [{"type": "passed"}]
    assert asked(Guard(inside, "")) == [{"type": "passed"}]


@pytest.mark.parametrize(
    ("query", "cookie"),
    [("", ""), ("token=", ""), ("token=a-secre", ""), ("token=.", ""), (f"TOKEN={KEY}", ""),
     ("", "appca-8501=x"),
     ("", COOKIE.replace("8501", "8502")), ("", f"appca-8501={KEY}"), ("token=%FF", "")],
)  # fmt: skip
def test_nobody_else_is_let_in(query, cookie):
    guard = Guard(inside, KEY)
    assert asked(guard, f"/?{query}", cookie=cookie)[0]["status"] == 403
    refused = asked(guard, f"/_stcore/stream?{query}", kind="websocket", cookie=cookie)
    assert refused[0]["type"] == "websocket.close"


def test_a_proxy_with_the_token_passes_pages_on_but_no_websocket_without_the_cookie():
    """jupyter-server-proxy adds the header to websockets that nobody has logged in for, too."""

    async def page(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    guard, header = Guard(page, KEY), {"x-appca-token": KEY}
    sent = asked(guard, **header)
    assert sent[0]["status"] == 200
    assert headers(sent)["set-cookie"].partition(";")[0] == COOKIE
    assert "set-cookie" not in headers(asked(guard, cookie=COOKIE, **header))
    assert asked(guard, **{"x-appca-token": "other"})[0]["status"] == 403
    assert asked(Guard(page, ""), **{"x-appca-token": ""})[0]["status"] == 200
    refused = asked(guard, "/_stcore/stream", kind="websocket", **header)
    assert refused[0]["type"] == "websocket.close"
    passed = asked(Guard(inside, KEY), kind="websocket", cookie=COOKIE, **header)
    assert passed == [{"type": "passed"}]


def test_the_warm_up_waits_while_pages_are_computed():
    quiet = threading.Event()
    with warm_up.drawing(), warm_up.drawing():
        waiting = threading.Thread(target=lambda: (warm_up.wait_for_quiet(0.0), quiet.set()))
        waiting.start()
        assert not quiet.wait(0.2)
    assert quiet.wait(20)
    waiting.join()


# Streamlit's inside: each test says what to delete when it fails

ROOT = Path(__file__).parents[3]


def said(program: str) -> str:
    """Return what a new process says, in which nothing of Streamlit has been set."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_version_is_one_that_these_tests_were_written_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (bound,) = [one for one in project["optional-dependencies"]["app"] if "streamlit" in one]
    least, below = bound.removeprefix("streamlit>=").split(",<")
    here = tuple(map(int, version("streamlit").split(".")[:2]))
    assert tuple(map(int, least.split("."))) <= here < tuple(map(int, below.split(".")))


def test_streamlit_still_does_at_its_first_run_what_is_prepared():
    """Where one is false at first, delete its line of `streamlit_internals.prepare`."""
    look = (
        "from streamlit.runtime.pages_manager import PagesManager as M; "
        f"M({str(ROOT / 'app.py')!r}); print(M.uses_pages_directory, end=' '); "
        "import streamlit as st; from streamlit import delta_generator as d, env_util; "
        "print(not d._use_warning_has_been_displayed, end=' '); "
        "env_util.is_repl = lambda: print('asks', end=' '); st.empty(); "
    )
    assert said(look).split() == ["True", "True", "asks"]
    prepared = f"from appca.ui import streamlit_internals as s; s.prepare(); {look}"
    assert said(prepared).split() == ["False", "False"]


def page_whose_callback_is_interrupted(guards: bool) -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from appca.ui.state import guarded

    def take() -> None:
        get_script_run_ctx().script_requests.request_rerun(RerunData())  # as a quick hand's next
        st.session_state["taken"] = st.session_state["size"]

    st.number_input("Size", key="size", on_change=guarded(take) if guards else take)


def test_streamlit_ends_callbacks_when_the_page_is_asked_for_again_unless_they_are_guarded():
    """Where it does not, delete `streamlit_internals.uninterrupted` and `state._uninterrupted`."""
    assert callable(getattr(ScriptRequests, streamlit_internals.LOOK))
    for guards in (False, True):
        app = AppTest.from_function(page_whose_callback_is_interrupted, args=(guards,)).run()
        app.number_input(key="size").set_value(5.0).run()
        assert not app.exception
        assert ("taken" in app.session_state) == guards
    assert app.session_state["taken"] == 5.0


def test_what_is_looked_up_is_there(monkeypatch):
    there = {*ScriptRunContext.__dataclass_fields__, *dir(ScriptRunContext)}
    assert {"session_id", "script_requests", "is_history_navigation"} <= there
    assert callable(runtime.Runtime.is_active_session)
    assert MemoryUploadedFileManager("/").file_storage == {}
    assert streamlit_internals.session() == ""
    assert not streamlit_internals.went()
    assert not streamlit_internals.is_connected("nobody")
    for widget in ("Selectbox", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter"):
        (name,) = streamlit_internals.scripts(widget)
        assert (streamlit_internals.SCRIPTS / name).is_file()


def test_no_other_file_reaches_into_streamlit():
    """What is public is `streamlit`, its `components`, and the types of files and tests."""
    reaching = r"scriptrunner|pages_manager|memory_uploaded|delta_generator import|_mgr"
    files = (ROOT / "appca").rglob("*.py")
    found = {path.name for path in files if re.search(reaching, path.read_text())}
    assert found <= {"streamlit_internals.py"}


def test_streamlit_still_refuses_unix_sockets():
    """Where it does not, delete `bind` and name the socket by --server.address."""
    program = (
        "from streamlit import config; config.set_option('server.address', 'unix:///tmp/a')\n"
        "from streamlit.web.server.starlette.starlette_server import UvicornRunner\n"
        "try:\n    UvicornRunner('app:app').run()\n"
        "except RuntimeError as error:\n    print(error)"
    )
    assert "Unix sockets are not supported" in said(program)


def test_the_app_answers_at_a_socket_that_is_its_owner_s(tmp_path):
    path = tmp_path / "socket"
    command = [sys.executable, "-m", "appca.ui.at_socket", str(path)]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, cwd=tmp_path)
    try:
        while not path.exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(path))
            asking.sendall(b"GET /_stcore/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert asking.recv(100).startswith(b"HTTP/1.1 200")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        process.terminate()
        process.communicate(timeout=20)
