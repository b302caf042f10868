"""One window of the app without a browser: Streamlit's messages over its websocket.

It behaves as the browser's part does: keeps large messages and says so, repeats what a page asks it
to repeat, and sends the states of the widgets it has moved. For tests and benchmarks with more
windows than a machine could draw.
"""

import asyncio
import contextlib
import json
import re
import uuid
from typing import Any
from urllib.parse import parse_qsl, urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

from appca.ui.server.visitor import COOKIE

__all__ = ["Window"]

SECONDS = 180.0  # for what never happens
_UNKEYED = "None"  # ends the ids of widgets without a key
_NUMBER = re.compile(r"-\d+$")  # at the end of the key of a widget that takes another's place


class Window:
    """A window that is open at a page; use it as an asynchronous context manager.

    Parameters
    ----------
    server : str
        As ``http://127.0.0.1:8501``.
    page : str
        Path of a page, empty for the first one.
    visitor : str
        Name of the browser, 32 hexadecimal digits; by default one of its own.
    **address : str
        Query parameters.

    Attributes
    ----------
    address : dict of str
        The query parameters now.
    widgets : dict of str
        Ids of the widgets on the page by their keys, and by what stands before the number that a
        key may end with: the slider of K is ``k-0`` or a later one, and ``k``.
    texts : list of str
        What the page says in boxes and paragraphs since its last run began.
    faults : list of str
        Exceptions that the page showed, ever.
    picture : dict
        Names of what the canvas of Explore shows, empty until a run of the page has drawn it.
    """

    def __init__(self, server: str, page: str = "", visitor: str = "", **address: str) -> None:
        self.server, self.page, self.address = server, page, address
        self.visitor = visitor or uuid.uuid4().hex
        self.session = ""
        self.widgets: dict[str, str] = {}
        self.texts: list[str] = []
        self.faults: list[str] = []
        self.picture: dict[str, Any] = {}
        self.received_bytes = 0
        self._left = ""  # what the canvas showed before the last move
        self.runs = 0  # whole runs of the page that have ended
        self._drawn: dict[str, str] = {}  # widgets of the run that goes on
        self._states: dict[str, WidgetState] = {}
        self._kept: dict[str, ForwardMsg] = {}
        self._page_hash = ""
        self._repeating: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None
        self._socket: ClientConnection | None = None
        self._ended = False

    async def __aenter__(self) -> "Window":
        """Open the page, and wait until it has been drawn."""
        url = self.server.replace("http", "ws", 1) + "/_stcore/stream"
        cookie = {"Cookie": f"{COOKIE}={self.visitor}"}
        self._socket = await connect(
            url, subprotocols=["streamlit"], max_size=None, additional_headers=cookie
        )
        self._reader = asyncio.create_task(self._read())
        await self.send()
        await self.until(lambda: self.runs > 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the window."""
        self._stop_repeating()
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    async def until(self, what: Any, seconds: float = SECONDS) -> None:
        """Wait for what is asked at every message."""
        assert self._reader is not None, "open the window first"
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: what() or self._ended), seconds)
        if not what():
            await self._reader
            message = "The server has closed the window."
            raise ConnectionError(message)

    async def move(self, key: str, value: float) -> None:
        """Move a slider."""
        self._left = self.picture.get("questions", "")
        id = self.widgets[key]
        self._states[id] = _slider(id, value)
        await self.send()

    async def press(self, key: str) -> None:
        """Press a button."""
        await self.send(WidgetState(id=self.widgets[key], trigger_value=True))

    async def write(self, key: str, text: str) -> None:
        """Write into the first field whose key begins so, more than a browser would let anybody."""
        id = next(id for name, id in self.widgets.items() if name.startswith(key))
        self._states[id] = WidgetState(id=id, string_value=text)
        await self.send()

    async def run_of(self, **wanted: str) -> None:
        """Wait until the address has these parameters and a new picture has been drawn."""
        await self.until(lambda: wanted.items() <= self.address.items() and self._is_drawn())

    def _is_drawn(self) -> bool:
        return bool(self.picture) and self.picture["questions"] != self._left

    async def send(self, *pressed: WidgetState, fragment: str = "") -> None:
        """Ask for a run of the page, or of a part of it."""
        message = BackMsg()
        run = message.rerun_script
        run.query_string = urlencode(self.address)
        run.page_script_hash = self._page_hash
        run.page_name = self.page if not self._page_hash else ""
        run.fragment_id = fragment
        run.is_auto_rerun = bool(fragment)
        run.cached_message_hashes.extend(self._kept)
        run.widget_states.widgets.extend([*self._states.values(), *pressed])
        assert self._socket is not None, "open the window first"
        await self._socket.send(message.SerializeToString())

    async def _read(self) -> None:
        assert self._socket is not None, "open the window first"
        try:
            await self._receive(self._socket)
        finally:
            self._ended = True
            async with self._changed:
                self._changed.notify_all()

    async def _receive(self, socket: ClientConnection) -> None:
        async for data in socket:
            self.received_bytes += len(data)
            message = ForwardMsg()
            message.ParseFromString(data)
            if message.WhichOneof("type") == "ref_hash":
                kept = self._kept[message.ref_hash]
                kept.metadata.CopyFrom(message.metadata)
                message = kept
            elif message.metadata.cacheable:
                self._kept[message.hash] = message
            async with self._changed:
                self._take(message)
                self._changed.notify_all()

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        whole = not message.metadata.run.fragment_ids
        if kind == "new_session":
            self._begin(message.new_session, whole)
        elif kind == "script_finished" and whole:
            self.runs += 1
            self.widgets = dict(self._drawn)  # until then, what was there can still be used
        elif kind == "page_info_changed":
            self.address = dict(parse_qsl(message.page_info_changed.query_string))
        elif kind == "navigation":
            self._page_hash = message.navigation.page_script_hash
        elif kind in ("auto_rerun", "stop_auto_rerun"):
            self._set_repeating(message)
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._draw(message.delta.new_element)

    def _begin(self, run: Any, whole: bool) -> None:
        self.session = run.initialize.session_id
        self._page_hash = run.page_script_hash
        if whole:
            self._stop_repeating()
            self._drawn.clear()
            self.picture = {}
            self.texts.clear()

    def _set_repeating(self, message: ForwardMsg) -> None:
        one = message.auto_rerun
        if one.fragment_id:
            task = asyncio.create_task(self._repeat(one.fragment_id, one.interval))
            self._repeating[one.fragment_id] = task
        for fragment in message.stop_auto_rerun.fragment_ids:
            if fragment in self._repeating:
                self._repeating.pop(fragment).cancel()

    def _draw(self, element: Any) -> None:
        kind = element.WhichOneof("type")
        found = getattr(element, kind)
        if kind == "exception":
            self.faults.append(f"{found.type}: {found.message}")
        elif kind in ("alert", "markdown"):
            self.texts.append(found.body)
        elif kind == "bidi_component" and found.id.endswith("-canvas"):
            self.picture = json.loads(found.json or found.mixed.json)["scene"]
        id = getattr(found, "id", "")
        key = id.split("-", 2)[-1] if id.startswith("$$") else ""
        if key and key != _UNKEYED:
            for name in (key, _NUMBER.sub("", key)):
                self._drawn[name] = self.widgets[name] = id
            if kind == "slider" and found.set_value:
                self._states[id] = _slider(id, *found.value)

    async def _repeat(self, fragment: str, seconds: float) -> None:
        with contextlib.suppress(Exception):  # the window is being closed
            while True:
                await asyncio.sleep(seconds)
                await self.send(fragment=fragment)

    def _stop_repeating(self) -> None:
        for task in self._repeating.values():
            task.cancel()
        self._repeating.clear()


def _slider(id: str, *values: float) -> WidgetState:
    state = WidgetState(id=id)
    state.double_array_value.data.extend(values)
    return state
