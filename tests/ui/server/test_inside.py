"""What is used of Streamlit's inside: each test says what to delete when it fails."""

import os
import socket
import stat
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from appca.ui import streamlit_internals

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
    assert {"session_id", "script_requests", "is_history_navigation"} <= {
        *ScriptRunContext.__dataclass_fields__,
        *dir(ScriptRunContext),
    }
    assert callable(runtime.Runtime.is_active_session)
    assert MemoryUploadedFileManager("/").file_storage == {}
    assert streamlit_internals.session() == ""
    assert not streamlit_internals.went()
    assert not streamlit_internals.is_connected("nobody")


@pytest.mark.parametrize(
    "widget", ["Selectbox", "PlotlyChart", "DataFrame", "StreamlitSyntaxHighlighter"]
)
def test_the_code_of_widgets_lies_where_it_is_looked_for(widget):
    (name,) = streamlit_internals.scripts(widget)
    assert (streamlit_internals.SCRIPTS / name).is_file()


def test_no_other_file_reaches_into_streamlit():
    """What is public is `streamlit`, its `components`, and the types of files and tests."""
    reaching = (
        "scriptrunner",
        "pages_manager",
        "memory_uploaded",
        "delta_generator import",
        "_mgr",
    )
    offenders = [
        path.name
        for path in (ROOT / "appca").rglob("*.py")
        if path.name != "streamlit_internals.py"
        and any(one in path.read_text() for one in reaching)
    ]
    assert offenders == []


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
