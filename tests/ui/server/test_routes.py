"""What the server answers beside its pages."""

import pytest
from starlette.applications import Starlette

from appca.ui import arrivals, canvas, server
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
