"""Tests of the server: routes, access control, and Streamlit internals in use."""

import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from appca.ui import streamlit_internals, warm_up


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
        process.communicate(timeout=120)
