"""The guard of an address with a token, asked as a server asks it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from appca.storage import access_control
from appca.ui.server import Guard

KEY = "a-secret"
COOKIE = f"appca-8501={access_control.cookie(KEY)}"


async def inside(scope: dict, _receive: object, send: Any) -> None:
    await send({"type": "passed"})


def asked(
    path: str = "/",
    query: str = "",
    cookie: str = "",
    kind: str = "http",
    guard: Guard | None = None,
    **more: str,
) -> list[dict]:
    """Return what the guard sends in answer to a request."""
    sent: list[dict] = []
    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode())
            for name, value in {"cookie": cookie, **more}.items()
            if value
        ],
        "server": ("127.0.0.1", 8501),
        "method": more.pop("method", "GET"),
    }

    async def send(message: dict) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # a browser test before leaves its event loop here
        apart.submit(asyncio.run, (guard or Guard(inside, KEY))(scope, None, send)).result()
    return sent


def headers(sent: list[dict]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_a_link_is_exchanged_for_a_cookie_that_opens_all():
    guard = Guard(inside, KEY)
    assert asked(query=f"token={KEY}", guard=guard, method="HEAD")[0]["status"] == 403
    sent = asked(query=f"data=abc&token={KEY}&k=3", guard=guard)
    assert sent[0]["status"] == 303
    assert headers(sent)["location"] == "/?data=abc&k=3"
    cookie = headers(sent)["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert KEY not in cookie
    name = cookie.partition(";")[0]
    for kind in ("http", "websocket"):
        assert asked("/_stcore/stream", cookie=name, kind=kind) == [{"type": "passed"}]
    assert asked(query=f"token={KEY}", guard=guard)[0]["status"] == 303
    assert asked(query=f"token={name.partition('=')[2]}", guard=guard)[0]["status"] == 403


def test_the_cookie_of_a_connection_with_tls_stays_there():
    more = {"x-forwarded-proto": "https"}
    assert "Secure" in headers(asked(query=f"token={KEY}", **more))["set-cookie"]


@pytest.mark.parametrize(
    ("query", "cookie"),
    [("", ""), ("token=", ""), ("token=a-secre", ""), ("token=.", ""), (f"TOKEN={KEY}", ""),
     ("", "appca-8501=x"),
     ("", COOKIE.replace("8501", "8502")), ("", f"appca-8501={KEY}"), ("token=%FF", "")],
)  # fmt: skip
def test_nobody_else_is_let_in(query, cookie):
    assert asked(query=query, cookie=cookie)[0]["status"] == 403
    refused = asked("/_stcore/stream", query, cookie, "websocket")
    assert refused[0]["type"] == "websocket.close"


def test_a_path_cannot_lead_to_another_host():
    assert headers(asked("//evil.example", f"token={KEY}"))["location"] == "/evil.example"


def test_the_server_s_health_and_its_lifespan_pass():
    assert asked("/_stcore/health") == [{"type": "passed"}]
    assert asked("", kind="lifespan") == [{"type": "passed"}]
    assert asked("/", guard=Guard(inside, "")) == [{"type": "passed"}]


def test_a_proxy_with_the_token_passes_pages_on_but_no_websocket_without_the_cookie():
    """jupyter-server-proxy adds the header to websockets that nobody has logged in for, too."""

    async def page(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    guard, header = Guard(page, KEY), {"x-appca-token": KEY}
    sent = asked(guard=guard, **header)
    assert sent[0]["status"] == 200
    assert headers(sent)["set-cookie"].partition(";")[0] == COOKIE
    assert "set-cookie" not in headers(asked(guard=guard, cookie=COOKIE, **header))
    assert asked(guard=guard, **{"x-appca-token": "other"})[0]["status"] == 403
    assert asked(guard=Guard(page, ""), **{"x-appca-token": ""})[0]["status"] == 200
    refused = asked("/_stcore/stream", kind="websocket", guard=guard, **header)
    assert refused[0]["type"] == "websocket.close"
    assert asked("/", cookie=COOKIE, kind="websocket", **header) == [{"type": "passed"}]
