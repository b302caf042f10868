"""Health, logs and metrics of a server."""

import json
import os

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from appca.runs.home import home
from appca.storage import atomic
from appca.ui.server import token, watch
from tests.ui.server.asked import asked


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv(watch.LOG, "json")
    monkeypatch.setenv(watch.SWITCH, "1")
    monkeypatch.setenv("APPCA_TOKEN", "secret")
    page = Route("/{any:path}", lambda _: PlainTextResponse("a page"))
    return Starlette(
        routes=[*watch.routes(), page], middleware=[*watch.middleware(), *token.middleware()]
    )


def test_health_says_whether_the_home_can_be_written(server, monkeypatch):
    answer = asked(server, watch.HEALTH)
    assert (answer.status, json.loads(answer.body)) == (200, {"status": "ok", "writable": True})
    assert list(home().iterdir()) == [], "the look leaves nothing"

    def full(_path):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(atomic, "check_place", full)
    answer = asked(server, watch.HEALTH)
    assert answer.status == 503
    assert json.loads(answer.body) == {
        "status": "the home cannot be written: No space left on device",
        "writable": False,
    }


def test_every_request_has_an_id_which_its_line_has_too_and_no_secret(server, capsys):
    header = {token.HEADER: "secret"}
    answers = [
        asked(server, "/data?token=secret&k=3"),
        asked(server, "/x", **header, **{"x-request-id": "of-the-proxy"}),
        asked(server, "/x", **header, **{"x-request-id": "two words"}),
    ]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["request"] for line in lines] == [one.headers["x-request-id"] for one in answers]
    assert lines[1]["request"] == "of-the-proxy"
    assert "words" not in lines[2]["request"]
    assert [line["status"] for line in lines] == [303, 200, 200]
    assert lines[0]["path"] == "/data"
    assert "secret" not in json.dumps(lines)


def test_metrics_count_and_are_there_behind_their_switch_alone(server, monkeypatch):
    assert asked(server, watch.METRICS).status == 403, "the token guards them"

    def read():
        answer = asked(server, watch.METRICS, **{token.HEADER: "secret"})
        lines = answer.body.decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    read()
    before, after = read(), read()
    ok = 'appca_requests_total{status="2xx"}'
    assert after[ok] == before[ok] + 1
    assert after["appca_memory_bytes"] > 1e7
    assert after["appca_windows"] == 0
    monkeypatch.delenv(watch.SWITCH)
    assert [route.path for route in watch.routes()] == [watch.HEALTH]
