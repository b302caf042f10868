"""Files of Streamlit's uploaders, admitted by the length they announce before they are received.

Streamlit keeps them in memory until they are taken out or their window is gone, each up to its own
limit, as many as come. ``APPCA_UPLOADS`` bounds those of all windows together, as ``2GB``, by
default a quarter of the memory; one window may hold half of that.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

import streamlit as st
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from appca.ui.server import inside
from appca.ui.server.base import base

UPLOAD = "/_stcore/upload_file/"
AROUND = 1 << 20  # bytes of a request beside its file, at most
MOST_BYTES = 4 * 10**9  # by default, on a machine of any size
_refused: defaultdict[str, list[str]] = defaultdict(list)  # session -> sentences to show


class UploadLimits(NamedTuple):
    """Bytes that uploaded files may take."""

    file: int
    window: int
    all: int


def middleware() -> list[Middleware]:
    """Return what admits the files."""
    return [Middleware(Admission)]


def announced(headers: Headers) -> int | None:
    """Return the length of a request's body; None where it says none."""
    length = headers.get("content-length", "")
    is_plain = length.isascii() and length.isdecimal() and len(length) < 20
    return int(length) if is_plain and "transfer-encoding" not in headers else None


def most_bytes() -> int:
    """Return what the files of all windows may take together."""
    from appca.jobs.turns.limits import size, total_memory

    default = min(MOST_BYTES, (total_memory() or 4 * MOST_BYTES) // 4)
    return size("APPCA_UPLOADS", None) or default


def limits() -> UploadLimits:
    """Return what uploaded files may take: a file as Streamlit is told, a window half of all."""
    most = most_bytes()
    return UploadLimits(int(st.get_option("server.maxUploadSize")) << 20, most // 2, most)


def refusals() -> list[str]:
    """Return why files of this session were not kept, once."""
    return _refused.pop(inside.session(), [])


class Admission:
    """Lets files pass for which there is room."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._coming: Counter[str] = Counter()  # session -> bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse in a sentence."""
        before, _, rest = scope.get("path", "").partition(UPLOAD)
        if scope["type"] != "http" or scope["method"] != "PUT" or not rest or before != base():
            await self.app(scope, receive, send)
            return
        session, length = rest.partition("/")[0], announced(Headers(scope=scope))
        if length is None:
            text = "The file was not kept, since its length was not announced; send Content-Length."
            await PlainTextResponse(text, 411)(scope, receive, send)
            return
        refusal = self._refusal(session, length)
        if refusal is not None:
            if inside.is_connected(session):
                _refused[session] = [refusal]
            await PlainTextResponse(refusal, 413)(scope, receive, send)
            return
        self._coming[session] += length
        try:
            await self.app(scope, receive, send)
        finally:
            self._coming[session] -= length
            self._coming += Counter()  # forgets those of which nothing comes

    def _refusal(self, session: str, length: int) -> str | None:
        most = limits()
        held = Counter(inside.uploaded()) + self._coming
        if length > most.file + AROUND:
            what, room, remedy = "", most.file, ""
        elif held[session] + length > most.window + AROUND:
            what, room, remedy = "in the uploaders of this window", most.window, "take some out, or"
        elif held.total() + length > most.all:
            what, room, remedy = "in the uploaders of all windows", most.all, "try again later, or"
        else:
            return None
        return " ".join(
            f"A file of {_mb(length)} was not kept, since files {what} may take {_mb(room)}; "
            f"{remedy} use a smaller one.".split()
        )


def _mb(n: int) -> str:
    return f"{n / 1e6:,.0f} MB"
