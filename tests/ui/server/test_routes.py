"""Routes of the server, and what is loaded when."""

import threading

import pytest
from starlette.applications import Starlette

from appca.ui import arrivals, canvas, server, warm_up
from tests.ui.server.asked import asked

NAME = "0" * 32


def test_the_prefixes_are_those_of_what_is_loaded_late():
    assert {f"/{one}" for one in server.LATE} == {canvas.PREFIX, arrivals.PREFIX}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"/canvas/{NAME}", 403),  # without a key
        ("POST", f"/canvas/{NAME}/texts", 403),
        ("POST", "/drop/0123456789ab", 403),
        ("DELETE", f"/canvas/{NAME}", 405),
        ("GET", "/canvas/a/b/c", 404),
    ],
)
def test_the_routes_answer_as_they_would_by_themselves(method, path, status, tmp_path, monkeypatch):
    monkeypatch.setenv("APPCA_HOME", str(tmp_path))
    assert asked(Starlette(routes=server.routes()), path, method).status == status


def test_health_says_whether_the_home_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("APPCA_HOME", str(tmp_path))
    app = Starlette(routes=server.routes())
    assert asked(app, "/healthz").body == b'{"status":"ok","writable":true}'

    def refuse(_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(server.files, "check_place", refuse)
    answer = asked(app, "/healthz")
    assert answer.status == 503
    assert b"the home cannot be written: Read-only file system" in answer.body


@pytest.fixture
def warming(monkeypatch):
    monkeypatch.delenv(warm_up.OPENS, raising=False)
    monkeypatch.setattr(warm_up, "page_was_asked", threading.Event())
    made = warm_up.WarmUp()
    yield made
    made.stop()
    made.join(20)
    assert not made.is_alive()


def test_nothing_is_loaded_before_a_page_is_asked_for(warming, monkeypatch):
    loading = threading.Event()
    monkeypatch.setattr(warm_up, "_load_first", loading.set)
    monkeypatch.setattr(warm_up, "PATIENCE", 0.0)
    monkeypatch.setattr(warm_up, "_steps", lambda: iter(()))
    monkeypatch.setattr("appca.processes.start_compiler", lambda _: Over())
    warming.start()
    assert not loading.wait(0.2)
    warm_up.page_was_asked.set()
    assert loading.wait(20)


class Over:
    """A compiler that has ended."""

    def poll(self):
        """Say so."""
        return 1

    wait = poll

    def kill(self):
        """Do nothing."""


def test_the_warm_up_waits_while_pages_are_computed():
    quiet = threading.Event()
    with warm_up.drawing(), warm_up.drawing():
        waiting = threading.Thread(target=lambda: (warm_up.wait_for_quiet(0.0), quiet.set()))
        waiting.start()
        assert not quiet.wait(0.2)
    assert quiet.wait(20)
    waiting.join()
