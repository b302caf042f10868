"""A name for each browser, by which the queue of jobs knows that several windows are one person's.

It grants nothing: whoever makes up a name is taken for another person, within the bounds for all.
"""

import re
import uuid

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "appca_visitor"
_NAME = re.compile(r"[0-9a-f]{32}")
_KEEPS = "; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax"


def middleware() -> list[Middleware]:
    """Return what names the browsers."""
    return [Middleware(Visitors)]


def named(cookie: str) -> str:
    """Return the name in a cookie; empty where it was not made here."""
    return cookie if _NAME.fullmatch(cookie) else ""


class Visitors:
    """Sends a name with the page to a browser that has none."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with a name where a page is asked for without one."""

        async def passed(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{COOKIE}={uuid.uuid4().hex}{_KEEPS}"
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        await self.app(scope, receive, passed if _is_new(scope) else send)


def _is_new(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    request = HTTPConnection(scope)
    is_page = "text/html" in request.headers.get("accept", "")
    return is_page and not named(request.cookies.get(COOKIE, ""))
