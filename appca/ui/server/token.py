"""Who may connect: a key in the address, and other sites, by HTTP or by websocket.

``appca`` opens an address with a token, which is exchanged for a cookie at the first visit. Without
the variable, as under plain ``streamlit run app.py``, everybody who reaches the server is let in.
"""

import hmac
import os
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import net_util

VARIABLE = "APPCA_TOKEN"
OPEN = ("/_stcore/health",)  # says only that the server is there
DAYS = 30
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_REFUSAL = (
    "This address needs its token: open the whole address that `appca` printed, "
    "with ?token= at its end.\n"
)


def ask_nobody() -> None:
    """Tell Streamlit this machine's address, before it asks others for it.

    When a page of another site knocks, Streamlit 1.67 compares its name with the address that a
    machine on the Internet sees of this one, and every visitor waits until that has answered. Here
    such a name counts only as one of `server.corsAllowedOrigins`.
    """
    if st.get_option("server.address") in LOOPBACK:
        net_util._internal_ip = "127.0.0.1"
    net_util._external_ip = net_util.get_internal_ip()  # sends nothing: it looks at a route


def middleware() -> list[Middleware]:
    """Return the guard, where the variable asks for one."""
    token = os.environ.get(VARIABLE, "")
    return [Middleware(Guard, token=token)] if token else []


class Guard:
    """Lets requests pass that carry the token, or the cookie for which it was exchanged."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, exchange, or refuse."""
        if scope["type"] == "lifespan" or scope["path"] in OPEN or self._has_cookie(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008, "token")(scope, receive, send)
        else:
            await self._exchanged(scope)(scope, receive, send)

    def _name(self, scope: Scope) -> str:
        """Name the cookie: cookies are of a host, whatever the port."""
        return f"appca-{(scope.get('server') or ('', 0))[1]}"

    def _has_cookie(self, scope: Scope) -> bool:
        try:
            cookies = SimpleCookie(Headers(scope=scope).get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self._name(scope))
        return found is not None and self._is_token(found.value)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _exchanged(self, scope: Scope) -> RedirectResponse | PlainTextResponse:
        given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in given):
            return PlainTextResponse(_REFUSAL, status_code=403)
        rest = urlencode([pair for pair in given if pair[0] != "token"])
        # A path of two slashes would name another host.
        path = "/" + scope["path"].lstrip("/\\")
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
        answer.set_cookie(
            self._name(scope),
            self.token,
            max_age=DAYS * 86400,
            httponly=True,
            samesite="lax",
        )
        return answer
