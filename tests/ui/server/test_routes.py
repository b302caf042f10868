"""Routes of the server, the guard of its address, and what is loaded when."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.applications import Starlette

from appca.storage import access_control
from appca.ui import arrivals, canvas, server, warm_up
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

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # a browser test before leaves its event loop here
        apart.submit(asyncio.run, app(scope, receive, send)).result()
    return sent


def headers(sent: list[dict]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_the_routes_are_those_of_what_is_loaded_late_and_answer_no_stranger():
    assert {f"/{one}" for one in server.LATE} == {canvas.PREFIX, arrivals.PREFIX}
    app = Starlette(routes=server.routes())
    for method, path, status in (
        ("GET", f"/canvas/{NAME}", 403),  # without a key
        ("POST", "/drop/0123456789ab", 403),
        ("DELETE", f"/canvas/{NAME}", 405),
        ("GET", "/canvas/a/b/c", 404),
    ):
        assert asked(app, path, method)[0]["status"] == status


def test_health_says_whether_the_home_can_be_written(monkeypatch):
    app = Starlette(routes=server.routes())
    assert asked(app, "/healthz")[1]["body"] == b'{"status":"ok","writable":true}'

    def refuse(_: object) -> None:
        raise OSError(30, "Read-only file system")

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
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert KEY not in cookie
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
