"""Routes that are loaded with their first request."""

import pytest
from starlette.applications import Starlette

from appca.ui.arrivals import drops
from appca.ui.canvas import routes
from appca.ui.server import late_routes
from tests.ui.server.asked import asked

NAME = "0" * 32


def test_the_prefixes_are_those_of_what_is_loaded_late():
    assert {f"/{one}" for one in late_routes.PREFIXES} == {routes.PREFIX, drops.PREFIX}


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
    assert asked(Starlette(routes=late_routes.routes()), path, method).status == status
