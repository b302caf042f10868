"""The server: its routes, the lock on its home, and who may connect.

``appca`` opens a link whose token is exchanged for a cookie, from which it cannot be made. A proxy
that asks for a login sends the token in a header. Websockets need the cookie all the same:
jupyter-server-proxy 4.6 forwards them without a login where it serves appca alone. Without the
variable, as under plain ``streamlit run app.py``, everybody who reaches the server is let in.
"""

import os
import sys
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import cache
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

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
from appca.ui.streamlit_internals import base

HEALTH = "/healthz"
LATE = ("canvas", "drop")  # loaded with the first request: pages come sooner
MOST_FILES = 1 << 16  # open at once


def routes() -> list[Route]:
    """Return the routes for `st.App`."""
    late = [Route(f"{base()}/{prefix}/{{rest:path}}", _Late()) for prefix in LATE]
    return [*late, Route(base() + HEALTH, _health)]


def hold_home() -> None:
    """End the process where another server has the home; it is free again once this one ends."""
    if sentence := is_served(hold=True):
        sys.exit(sentence)


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system lets this process."""
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


class _Late:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _loaded()(scope, receive, send)


@cache
def _loaded() -> Router:
    from appca.ui import arrivals, canvas

    return Router([*canvas.delivery().routes(base()), *arrivals.drops().routes(base())])


async def _health(_request: Request) -> JSONResponse:
    """Say whether the home can be written."""
    try:
        await run_in_threadpool(files.check_place, home() / "health")
    except OSError as error:
        why = f"the home cannot be written: {error.strerror or error}"
        return JSONResponse({"status": why, "writable": False}, status_code=503)
    return JSONResponse({"status": "ok", "writable": True})


HEADER = "x-appca-token"
ORIGINS, FRAMES = "APPCA_ORIGINS", "APPCA_FRAME_ANCESTORS"
OPEN = ("/_stcore/health", HEALTH)  # say only that the server is there, and can store
DAYS = 30
Place: TypeAlias = tuple[str, str, int]
_PORTS = {"http": 80, "https": 443}
_SAFE = ("GET", "HEAD", "OPTIONS")
_REFUSAL = (
    "This address needs a token: open the whole link that `appca` printed, with ?token= at its "
    "end.\n"
)


def check_address() -> None:
    """End the process where strangers could come in by the address it is to listen at."""
    guarded = bool(os.environ.get(access_control.TOKEN) or os.environ.get(access_control.PROXY))
    hosts = st.get_option("server.allowedHosts") or ()
    sentence = access_control.refusal(st.get_option("server.address"), hosts, guarded=guarded)
    if sentence:
        sys.exit(sentence)


def middleware() -> list[Middleware]:
    """Return the guard, as the variables want it."""
    told = st.get_option("server.corsAllowedOrigins") or ()
    named = (*access_control.listed(os.environ.get(ORIGINS, "")), *told)
    origins = set(filter(None, map(place, named)))
    frames = access_control.listed(os.environ.get(FRAMES, ""))
    token = os.environ.get(access_control.TOKEN, "")
    return [Middleware(Guard, token=token, origins=origins, frames=frames)]


def place(origin: str) -> Place | None:
    """Return scheme, host and port of an origin; None where it is none of the web."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    plain = origin.lower() == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc
    return (parts.scheme, parts.hostname, port) if plain and parts.hostname else None


def _quick(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return a header without backslashes in cookies, which no cookie of this server has.

    Python before 3.11.10 and 3.12.5 needs the square of their number to read them: 7 s for 64 kB.
    """
    return (name, value.replace(b"\\", b"")) if name == b"cookie" else (name, value)


class Guard:
    """Lets requests pass that come from pages of this server, and carry its token if it has one."""

    def __init__(
        self, app: ASGIApp, token: str, origins: Container[Place] = (), frames: Sequence[str] = ()
    ) -> None:
        self.app, self.token, self.origins = app, token, origins
        self._cookie = access_control.cookie(token)
        self._open = [base() + path for path in OPEN]
        self._policy = " ".join(["frame-ancestors 'self'", *frames])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, exchange, or refuse."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.append("content-security-policy", self._policy)
                if cookie:
                    headers.append("set-cookie", cookie)
            await send(message)

        kind = scope["type"]
        if kind in ("http", "websocket"):
            scope["headers"] = [_quick(*pair) for pair in scope["headers"]]
        if kind == "http" and "text/html" in Headers(scope=scope).get("accept", ""):
            warm_up.page_was_asked.set()
        cookie = self._new_cookie(scope) if kind == "http" else ""
        answer = None if kind == "lifespan" else self._answer(scope)
        await (answer or self.app)(scope, receive, marked if kind == "http" else send)

    def _answer(self, scope: Scope) -> ASGIApp | None:
        """Return what answers in place of the server; None where the request may pass."""
        socket = scope["type"] == "websocket"
        headers = Headers(scope=scope)
        if socket or scope["method"] not in _SAFE:
            host, origins = headers.get("host", ""), headers.getlist("origin")
            if not all(self._is_own(origin, host) for origin in origins):
                text = "A page of another site asks; APPCA_ORIGINS names those that may.\n"
                return WebSocketClose(1008) if socket else PlainTextResponse(text, 403)
            # Streamlit and the routes would compare it again, with less that they are told
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"origin"]
        if not self.token or scope["path"] in self._open or self._has_cookie(scope, headers):
            return None
        if not socket and self._is_forwarded(headers):
            return None
        return WebSocketClose(1008, "token") if socket else self._exchanged(scope, headers)

    def _is_own(self, origin: str, host: str) -> bool:
        came = place(origin)
        return came is not None and (came in self.origins or came == place(f"{came[0]}://{host}"))

    def _name(self, scope: Scope) -> str:
        """Name the cookie: cookies are of a host, whatever the port."""
        return f"appca-{(scope.get('server') or ('', 0))[1] or 0}"

    def _is_forwarded(self, headers: Headers) -> bool:
        """Whether the request comes from a proxy that has the token."""
        return bool(self.token) and access_control.same(headers.get(HEADER, ""), self.token)

    def _new_cookie(self, scope: Scope) -> str:
        """Return the cookie that a browser lacks whose proxy has the token."""
        headers = Headers(scope=scope)
        lacks = self._is_forwarded(headers) and not self._has_cookie(scope, headers)
        return self._cookie_for(scope) if lacks else ""

    def _has_cookie(self, scope: Scope, headers: Headers) -> bool:
        kept = cookie_parser(headers.get("cookie", "")).get(self._name(scope), "")
        return access_control.same(kept, self._cookie)

    def _exchanged(self, scope: Scope, headers: Headers) -> RedirectResponse | PlainTextResponse:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if scope["method"] != "GET" or not any(
            access_control.same(token, self.token) for token in tokens
        ):
            return PlainTextResponse(_REFUSAL, status_code=403)
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        # A path of two slashes would name another host.
        path = "/" + scope["path"].lstrip("/\\")
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
        answer.headers.append("set-cookie", self._cookie_for(scope))
        return answer

    def _cookie_for(self, scope: Scope) -> str:
        made = Response()
        made.set_cookie(
            self._name(scope),
            self._cookie,
            max_age=DAYS * 86400,
            path=base() or "/",
            secure="https" in (scope.get("scheme"), Headers(scope=scope).get("x-forwarded-proto")),
            httponly=True,
            samesite="lax",
        )
        return made.headers["set-cookie"]
