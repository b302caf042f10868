"""The server: its routes, the lock on its home, and access control.

``appca`` opens a link whose token is exchanged for a cookie. A proxy with a login sends the token
in a header. Websockets also need the cookie, because jupyter-server-proxy 4.6 forwards them
without a login. Without a token, as with ``streamlit run app.py``, everybody has access.
"""

import os
import sys
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from appca.runs.home import home, is_served
from appca.storage import access_control, files
from appca.ui import warm_up
from appca.ui.addresses import Place, place
from appca.ui.streamlit_internals import base

HEALTH = "/healthz"
LATE = ("canvas", "drop")


def routes() -> list[Route]:
    """Return the routes for `st.App`."""
    late = [Route(f"{base()}/{prefix}/{{rest:path}}", _Late()) for prefix in LATE]
    return [*late, Route(base() + HEALTH, _health)]


class _Late:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _loaded()(scope, receive, send)


async def _health(_request: Request) -> JSONResponse:
    try:
        await run_in_threadpool(files.check_place, home() / "health")
    except OSError as error:
        why = f"the home cannot be written: {error.strerror or error}"
        return JSONResponse({"status": why, "writable": False}, status_code=503)
    return JSONResponse({"status": "ok", "writable": True})


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system allows, up to 65,536."""
    with suppress(ImportError, ValueError, OSError):  # not available on every system
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


@cache
def _loaded() -> Router:
    from appca.ui import arrivals, canvas

    return Router([*canvas.delivery().routes(base()), *arrivals.drops().routes(base())])


HEADER = "x-appca-token"
ORIGINS, FRAMES = "APPCA_ORIGINS", "APPCA_FRAME_ANCESTORS"
OPEN = ("/_stcore/health", HEALTH)
DAYS = 30
_SAFE = ("GET", "HEAD", "OPTIONS")
_REFUSAL = "This address needs a token: open the whole link that `appca` printed, with ?token= at "
_REFUSAL += "its end.\n"


def check_and_hold() -> None:
    """Exit if strangers could connect, or another server uses the home; otherwise lock it."""
    guarded = bool(os.environ.get(access_control.TOKEN) or os.environ.get(access_control.PROXY))
    hosts = st.get_option("server.allowedHosts") or ()
    sentence = access_control.refusal(st.get_option("server.address"), hosts, guarded=guarded)
    if sentence := sentence or is_served(hold=True):
        sys.exit(sentence)


def middleware() -> list[Middleware]:
    """Return the access guard, configured by the environment."""
    told = st.get_option("server.corsAllowedOrigins") or ()
    named = (*access_control.listed(os.environ.get(ORIGINS, "")), *told)
    origins = set(filter(None, map(place, named)))
    frames = access_control.listed(os.environ.get(FRAMES, ""))
    token = os.environ.get(access_control.TOKEN, "")
    return [Middleware(Guard, token=token, origins=origins, frames=frames)]


class Guard:
    """Admits requests from pages of this server, with its token if it has one."""

    def __init__(
        self, app: ASGIApp, token: str, origins: Container[Place] = (), frames: Sequence[str] = ()
    ) -> None:
        self.app, self.token, self.origins = app, token, origins
        self._cookie = access_control.cookie(token)
        self._open = [base() + path for path in OPEN]
        self._policy = " ".join(["frame-ancestors 'self'", *frames])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, exchange its token, or refuse it."""
        kind, new_cookie = scope["type"], ""
        if kind == "lifespan":
            await self.app(scope, receive, send)
            return
        # Python before 3.11.10 and 3.12.5 needs 7 s to parse 64 kB of backslashes in a cookie.
        scope["headers"] = [
            (name, value.replace(b"\\", b"") if name == b"cookie" else value)
            for name, value in scope["headers"]
        ]
        headers = Headers(scope=scope)
        if kind == "http" and "text/html" in headers.get("accept", ""):
            warm_up.page_was_asked.set()
        kept = cookie_parser(headers.get("cookie", "")).get(_name(scope), "")
        is_known = access_control.same(kept, self._cookie)
        # A proxy sends the token in a header; a browser exchanges it for the cookie.
        is_forwarded = bool(self.token) and access_control.same(headers.get(HEADER, ""), self.token)
        if kind == "http" and is_forwarded and not is_known:
            new_cookie = self._cookie_for(scope)
        answer = self._answer(scope, headers, is_known or (kind == "http" and is_forwarded))

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = MutableHeaders(scope=message)
                more.append("content-security-policy", self._policy)
                if new_cookie:
                    more.append("set-cookie", new_cookie)
            await send(message)

        await (answer or self.app)(scope, receive, marked if kind == "http" else send)

    def _answer(self, scope: Scope, headers: Headers, is_known: bool) -> ASGIApp | None:
        """Return a refusal, or the exchange of a token; None if the request may pass."""
        socket = scope["type"] == "websocket"
        if socket or scope["method"] not in _SAFE:
            host, origins = headers.get("host", ""), headers.getlist("origin")
            if not all(self._is_own(origin, host) for origin in origins):
                text = "Another site sent this request; APPCA_ORIGINS lists the permitted sites.\n"
                return WebSocketClose(1008) if socket else PlainTextResponse(text, 403)
            # origins are checked here; Streamlit allows fewer
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"origin"]
        if not self.token or scope["path"] in self._open or is_known:
            return None
        if socket:
            return WebSocketClose(1008, "token")
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        is_right = any(access_control.same(token, self.token) for token in tokens)
        if scope["method"] != "GET" or not is_right:
            return PlainTextResponse(_REFUSAL, status_code=403)
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        path = "/" + scope["path"].lstrip("/\\")  # two slashes would name another host
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
        answer.headers.append("set-cookie", self._cookie_for(scope))
        return answer

    def _is_own(self, origin: str, host: str) -> bool:
        came = place(origin)
        return came is not None and (came in self.origins or came == place(f"{came[0]}://{host}"))

    def _cookie_for(self, scope: Scope) -> str:
        made = Response()
        schemes = scope.get("scheme"), Headers(scope=scope).get("x-forwarded-proto")
        look: Any = {"max_age": DAYS * 86400, "path": base() or "/", "httponly": True}
        look |= {"secure": "https" in schemes, "samesite": "lax"}
        made.set_cookie(_name(scope), self._cookie, **look)
        return made.headers["set-cookie"]


def _name(scope: Scope) -> str:
    """Return the cookie's name, with the port because browsers share cookies between ports."""
    return f"appca-{(scope.get('server') or ('', 0))[1] or 0}"
