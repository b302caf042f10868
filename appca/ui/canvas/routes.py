"""Routes by which a browser fetches scenes: to live sessions of this server's own pages only.

Streamlit checks Host and Origin of its websocket alone, so these routes check them themselves. A
name says nothing without a key, which the page gets through its websocket and sends in a header:
so an address that was seen, or a page of another site, opens nothing, and a browser finds what it
has kept after a reload, when the key is another.
"""

import hashlib
import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from appca.canvas.bundle import closed_bundle
from appca.canvas.parcels import JSON, RAW, Parcels

PREFIX = "/canvas"
HOST = Path(__file__).with_name("host.js")
SCRIPT = f"{hashlib.sha256(closed_bundle(HOST).encode()).hexdigest()[:16]}.js"
LOADER = HOST.with_name("loader.js").read_text(encoding="utf-8").replace("NAME", SCRIPT)
KEY_HEADER = "x-appca-key"
MOST_ROWS = 4096  # that can be asked for at a time
MOST_QUESTIONS = 32  # scenes that may be asked about, beside those that windows show
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_NAME = re.compile(r"[0-9a-f]{32}")
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Encoding": "identity",  # compressing 19 MB takes longer than sending them
}
_FOR_GOOD = {"Cache-Control": "private, max-age=31536000, immutable"}
_NOT_KEPT = {"Cache-Control": "no-store"}


class RowQuestions(NamedTuple):
    """What can be asked of the rows of a data set, where there are too many to send them all.

    Answers are arrays or JSON-able: "texts" of the hover card, "scores" (n, K) on all components.
    """

    n_rows: int
    answers: Mapping[str, Callable[[np.ndarray], Any]]  # row numbers (n,) -> what is asked of them

    def answer(self, what: str, rows: np.ndarray) -> tuple[str | bytes, str]:
        """Return what is asked of rows, and its type."""
        said = self.answers[what](rows)
        if isinstance(said, np.ndarray):
            return said.astype("<f4").tobytes(), RAW
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")), JSON


class Delivery:
    """What the routes serve, and to whom."""

    def __init__(
        self,
        parcels: Parcels,
        is_alive: Callable[[str], bool],
        hosts: Callable[[], Iterable[str]] = lambda: (),
    ) -> None:
        self.parcels, self.is_alive = parcels, is_alive
        self._questions: OrderedDict[str, RowQuestions] = OrderedDict()
        self._shown: dict[tuple[str, str], str] = {}  # (session, canvas) -> the name of its scene
        self._lock = threading.Lock()
        self._hosts = hosts

    def ask(self, what: str, questions: RowQuestions, canvas: tuple[str, str] | None = None) -> str:
        """Let rows be asked for; return the name under which.

        The scene that a `canvas` (session and key) shows stays until it shows another or its
        window is closed. Of all others the newest `MOST_QUESTIONS` are kept.
        """
        name = self.parcels.name(f"rows {what}".encode())
        with self._lock:
            self._questions[name] = questions
            self._questions.move_to_end(name)
            if canvas is not None:
                self._shown[canvas] = name
            for other in list(self._shown):
                if other != canvas and not self.is_alive(other[0]):
                    del self._shown[other]
            shown = set(self._shown.values())
            spare = [place for place in self._questions if place not in shown]
            for old in spare[:-MOST_QUESTIONS]:
                del self._questions[old]
        return name

    def key_of(self, session: str) -> str:
        """Return the key of a session for its own page: the session's id, signed."""
        return f"{session}.{self.parcels.name(session.encode(), b'session')}"

    def routes(self, base: str = "") -> list[Route]:
        """Return the routes, below the path that the server was told to live at."""
        at = f"{base}{PREFIX}/{{name}}"
        return [Route(at, self._parcel), Route(f"{at}/{{what}}", self._answer, methods=["POST"])]

    async def _parcel(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == SCRIPT:  # which tells nothing of anybody's data
            headers = _ALWAYS | _FOR_GOOD
            return Response(closed_bundle(HOST), headers=headers, media_type="text/javascript")
        if self.session_of(request) is None:
            return _refusal(403)
        parcel = await run_in_threadpool(self.parcels.get, name) if _NAME.fullmatch(name) else None
        if parcel is None:
            return _refusal(404)
        return Response(parcel.content, headers=_ALWAYS | _FOR_GOOD, media_type=parcel.kind)

    async def _answer(self, request: Request) -> Response:
        if self.session_of(request) is None:
            return _refusal(403)
        asked = self._questions.get(request.path_params["name"])
        what = request.path_params["what"]
        if asked is None or what not in asked.answers:
            return _refusal(404)
        rows = _rows(await _body(request, 4 * MOST_ROWS), asked.n_rows)
        if rows is None:
            return _refusal(400)
        content, kind = await run_in_threadpool(asked.answer, what, rows)
        return Response(content, headers=_ALWAYS | _NOT_KEPT, media_type=kind)

    def session_of(self, request: Request) -> str | None:
        """Return whose page asks; None unless it is of this server and its session is there."""
        headers = request.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        hosts = LOOPBACK.union(self._hosts())
        if "*" not in hosts and _hostname(host) not in hosts:
            return None
        ours = (None, f"http://{host}".lower(), f"https://{host}".lower())
        if (origin and origin.lower()) not in ours:
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return None
        key = headers.get(KEY_HEADER, "")
        session = key.rpartition(".")[0]
        signed = secrets.compare_digest(key.encode(), self.key_of(session).encode())
        return session if signed and self.is_alive(session) else None


def _hostname(host: str) -> str | None:
    """Return the name in a Host header without its port; None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises where it is no number
    except ValueError:
        return None
    plain = parts.netloc == host and "@" not in host and not (parts.path or parts.query)
    return parts.hostname.rstrip(".") if plain and parts.hostname else None


async def _body(request: Request, most: int) -> bytes | None:
    """Read at most so many bytes; None where there are more."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


def _rows(body: bytes | None, n_rows: int) -> np.ndarray | None:
    """Read row numbers (uint32, little-endian); None where they are none of this data set."""
    if not body or len(body) % 4:
        return None
    rows = np.frombuffer(body, "<u4").astype(np.int64)
    return rows if int(rows.max()) < n_rows else None


def _refusal(status: int) -> Response:
    return Response(status_code=status, headers=_ALWAYS | _NOT_KEPT)
