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
    body: bytes


def asked(app: ASGIApp, path: str, method: str = "GET", **headers: str) -> Answer:
    """Return what an application answers."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    scope["query_string"] = query.encode()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as apart:  # a browser test before leaves its event loop here
        apart.submit(asyncio.run, app(scope, receive, send)).result()
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], Headers(raw=sent[0]["headers"]), body)
