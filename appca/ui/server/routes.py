"""What the server answers beside its pages, and the home that it holds."""

import sys
from contextlib import suppress
from functools import cache

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from appca.runs.home import home, is_served
from appca.storage import atomic

HEALTH = "/healthz"
LATE = ("canvas", "drop")  # loaded with the first request: pages come sooner
MOST_FILES = 1 << 16  # open at once


def base() -> str:
    """Return the path below which all addresses of the server are, as it was told."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


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
    from appca.ui.arrivals import dropping
    from appca.ui.canvas import serving

    return Router([*serving.delivery().routes(base()), *dropping.drops().routes(base())])


async def _health(_request: Request) -> JSONResponse:
    """Say whether the home can be written."""
    try:
        await run_in_threadpool(atomic.check_place, home() / "health")
    except OSError as error:
        why = f"the home cannot be written: {error.strerror or error}"
        return JSONResponse({"status": why, "writable": False}, status_code=503)
    return JSONResponse({"status": "ok", "writable": True})
