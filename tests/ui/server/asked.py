"""An application asked as a server asks it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp


class Answer(NamedTuple):
    """What comes back."""

    status: int
    headers: Headers


def asked(app: ASGIApp, path: str, method: str = "GET", **headers: str) -> Answer:
    """Return what an application answers."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": raw}
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # a browser test before leaves its event loop here
        apart.submit(asyncio.run, app(scope, receive, send)).result()
    return Answer(sent[0]["status"], Headers(raw=sent[0]["headers"]))
