"""A name for each browser, by which the queue of jobs knows that several windows are one person's.

It grants nothing: a made-up name counts as another person, within the bounds for all.
"""

import re
import uuid

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from appca.ui.server.base import base

COOKIE = "appca_visitor"
_NAME = re.compile(r"[0-9a-f]{32}")
_KEEPS = "Max-Age=31536000; HttpOnly; SameSite=Lax"


def named(cookie: str) -> str:
    """Return the name in a cookie; empty where it was not made here."""
    return cookie if _NAME.fullmatch(cookie) else ""


def cookie_for(headers: Headers) -> str:
    """Return the cookie with a new name for a browser that asks for a page without one."""
    is_page = "text/html" in headers.get("accept", "")
    if not is_page or named(cookie_parser(headers.get("cookie", "")).get(COOKIE, "")):
        return ""
    return f"{COOKIE}={uuid.uuid4().hex}; Path={base() or '/'}; {_KEEPS}"
