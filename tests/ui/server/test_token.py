"""The guard of an address with a token, asked as a server asks it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from appca.ui.server import token
from appca.ui.server.token import Guard

KEY = "a-token"


async def inside(scope: dict, _receive: object, send: Any) -> None:
    await send({"type": "passed"})


def asked(path: str = "/", query: str = "", cookie: str = "", kind: str = "http") -> list[dict]:
    """Return what the guard sends in answer to a request."""
    sent: list[dict] = []
    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"cookie", cookie.encode())] if cookie else [],
        "server": ("127.0.0.1", 8501),
        "method": "GET",
    }

    async def send(message: dict) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # a browser test before leaves its event loop here
        apart.submit(asyncio.run, Guard(inside, KEY)(scope, None, send)).result()
    return sent


def headers(sent: list[dict]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_a_token_is_exchanged_for_a_cookie_that_opens_all():
    sent = asked(query=f"data=abc&token={KEY}&k=3")
    assert sent[0]["status"] == 303
    assert headers(sent)["location"] == "/?data=abc&k=3"
    cookie = headers(sent)["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    name = cookie.partition(";")[0]
    for kind in ("http", "websocket"):
        assert asked("/_stcore/stream", cookie=name, kind=kind) == [{"type": "passed"}]


@pytest.mark.parametrize(
    ("query", "cookie"),
    [("", ""), ("token=", ""), ("token=a-toke", ""), (f"TOKEN={KEY}", ""), ("", "appca-8501=x"),
     ("", f"appca-8502={KEY}"), ("", f"other={KEY}"), ("token=%FF", "")],
)  # fmt: skip
def test_nobody_else_is_let_in(query, cookie):
    assert asked(query=query, cookie=cookie)[0]["status"] == 403
    refused = asked("/_stcore/stream", query, cookie, "websocket")
    assert refused[0]["type"] == "websocket.close"


def test_a_path_cannot_lead_to_another_host():
    assert headers(asked("//evil.example", f"token={KEY}"))["location"] == "/evil.example"


def test_the_server_s_health_and_its_lifespan_pass(monkeypatch):
    assert asked("/_stcore/health") == [{"type": "passed"}]
    assert asked("", kind="lifespan") == [{"type": "passed"}]
    monkeypatch.delenv(token.VARIABLE, raising=False)
    assert token.middleware() == []
