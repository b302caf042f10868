"""What an administrator asks a server: whether it works, what it answers, how much it takes.

``/healthz`` says whether the home can be written. ``APPCA_LOG=json`` writes a line for each
request, ``APPCA_METRICS=1`` opens ``/metrics`` in the text format of Prometheus.
"""

import json
import os
import re
import sys
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from appca.runs.home import home
from appca.storage import atomic
from appca.ui.server.base import base

HEALTH, METRICS = "/healthz", "/metrics"
LOG, SWITCH = "APPCA_LOG", "APPCA_METRICS"
page_was_asked = threading.Event()  # by a browser, for the first time
_ID = re.compile(r"[\w.-]{1,64}")
_answers: Counter[str] = Counter()  # class of status -> requests
_taken: Counter[str] = Counter()  # "microseconds" of all requests, and open "windows"


def routes() -> list[Route]:
    """Return the routes for `st.App`."""
    measured = [Route(base() + METRICS, _metrics)] if os.environ.get(SWITCH) == "1" else []
    return [Route(base() + HEALTH, _health), *measured]


def middleware() -> list[Middleware]:
    """Return what gives each request an id, counts it, and writes it down where that is wanted."""
    return [Middleware(RequestNotes, log=os.environ.get(LOG) == "json")]


def n_windows() -> int:
    """Return how many windows are open."""
    return _taken["windows"]


class RequestNotes:
    """Notes requests; their addresses without what follows a question mark, which may be secret."""

    def __init__(self, app: ASGIApp, *, log: bool) -> None:
        self.app, self.log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and note how it went."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers, began, status = Headers(scope=scope), time.perf_counter(), 500
        is_window = scope["type"] == "websocket"
        if "text/html" in headers.get("accept", ""):
            page_was_asked.set()
        sent = headers.get("x-request-id", "")
        request = sent if _ID.fullmatch(sent) else uuid.uuid4().hex

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).append("x-request-id", request)
            elif message["type"] == "websocket.accept":
                status = 101
            elif message["type"] == "websocket.close" and status != 101:
                status = 403
            await send(message)

        _taken["windows"] += is_window
        try:
            await self.app(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - began
            _taken["windows"] -= is_window
            _taken["microseconds"] += 0 if is_window else int(1e6 * seconds)
            _answers[f"{status // 100}xx"] += 1
            if self.log:
                _write(request, scope.get("method", "WEBSOCKET"), scope["path"], status, seconds)


def _write(request: str, method: str, path: str, status: int, seconds: float) -> None:
    line = {"time": round(time.time(), 3), "request": request, "method": method, "path": path}
    line |= {"status": status, "seconds": round(seconds, 4)}
    sys.stderr.write(json.dumps(line) + "\n")


async def _health(_request: Request) -> JSONResponse:
    try:
        await run_in_threadpool(atomic.check_place, home() / "health")
    except OSError as error:
        why = f"the home cannot be written: {error.strerror or error}"
        return JSONResponse({"status": why, "writable": False}, status_code=503)
    return JSONResponse({"status": "ok", "writable": True})


async def _metrics(_request: Request) -> PlainTextResponse:
    lines = [f'appca_requests_total{{status="{of}"}} {n}' for of, n in sorted(_answers.items())]
    seconds = _taken["microseconds"] / 1e6
    values: dict[str, float] = {"appca_request_seconds_total": seconds}
    values["appca_windows"] = n_windows()
    services = sys.modules.get("appca.ui.session.services")
    jobs = [job.state for made in services._made for job in made.jobs.active()] if services else []
    values |= {f"appca_jobs_{state}": jobs.count(state) for state in ("running", "queued")}
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    values |= {"appca_memory_bytes": _memory(), "appca_open_files": files}
    lines += [f"{name} {value}" for name, value in values.items()]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _memory() -> int:
    """Return the bytes that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
