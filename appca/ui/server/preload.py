"""Code of the widgets of a first page, named with the frame: a browser loads it meanwhile."""

import re
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from appca.ui.server.base import base

WIDGETS = ("BidiComponent", "Html", "Slider", "NumberInput", "ButtonGroup", "Button", "TextInput")
SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"
_IMPORTED = re.compile(r"""(?:from|import)\s*["']\./([\w.-]+\.js)["']""")


def middleware() -> list[Middleware]:
    """Return what names the code to the browser."""
    return [Middleware(Preload, names=needed())]


def needed() -> list[str]:
    """Return the files that the widgets are made of, with all that they import."""
    asked = [file.name for name in WIDGETS for file in SCRIPTS.glob(f"{name}.*.js")]
    found: dict[str, None] = {}
    while asked:
        name = asked.pop()
        if name not in found:
            found[name] = None
            asked += _IMPORTED.findall((SCRIPTS / name).read_text(encoding="utf-8"))
    return list(found)


class Preload:
    """Adds links to modules to each page that is sent."""

    def __init__(self, app: ASGIApp, names: list[str]) -> None:
        self.app = app
        at = f"{base()}/static/js"
        self.links = ", ".join(f"<{at}/{name}>; rel=modulepreload" for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with the links where the answer is a page."""

        async def passed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("link", self.links)
            await send(message)

        await self.app(scope, receive, passed if scope["type"] == "http" else send)
