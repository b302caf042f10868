"""Files dropped anywhere on a window: a route that takes them, for the page of the same session.

A file comes as the body of a request of its own, and its name in a header: a name is told to the
readers and never used as a path. It is admitted by the length that it announces, before any of it
is received. Files lie in a folder that nobody else may read, which a living process has locked,
until the page needs them no more or the session is gone; both are looked for by a timer.
"""

import secrets
import shutil
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from appca.storage import atomic, lock
from appca.storage.identity import is_id
from appca.words.numbers import size

PREFIX = "/drop"
NAME_HEADER = "x-appca-name"
MOST_FILES = 5000
LONGEST_NAME = 1000
LOOK_SECONDS = 30.0  # between two looks for windows that are gone
LOOKS = 6  # that miss a window before it is: Streamlit lets one without network return for 2 min
STALE_SECONDS = 60.0  # after which a folder that nobody has locked belongs to nobody
_FOLDER = "drop-"
_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class DroppedFiles:
    """Files in a folder of their own, which goes with the object."""

    def __init__(self, scratch: Path) -> None:
        self._folder = scratch / f"{_FOLDER}{secrets.token_hex(8)}"
        self._folder.mkdir(parents=True)
        self._lock = ExitStack()
        file = self._lock.enter_context(lock.opened(self._folder))
        if file is not None:
            lock.take(file)
        self._end = weakref.finalize(self, _remove_apart, self._folder, self._lock)
        self.files: list[tuple[str, Path]] = []

    @property
    def is_there(self) -> bool:
        """Whether the files have not been removed."""
        return self._end.alive

    def remove(self) -> None:
        """Remove the files now."""
        if self._end.detach() is not None:
            _remove(self._folder, self._lock)

    def became(self, digest: str) -> None:
        """Note of which data set these are the files, so that they go with it."""
        (self._folder / digest).touch()

    def place(self, name: str) -> Path:
        """Return where the next file is to be written."""
        path = self._folder / str(len(self.files))
        self.files.append((name, path))
        return path


class Drops:
    """What was dropped on windows, until their pages have taken it and need it no more."""

    def __init__(
        self,
        session_of: Callable[[Request], str | None],
        is_alive: Callable[[str], bool],
        scratch: Callable[[], Path],
        largest: Callable[[], int],
    ) -> None:
        self._session_of, self._is_alive = session_of, is_alive
        self._scratch, self._largest = scratch, largest
        self._waiting: dict[str, dict[str, DroppedFiles]] = {}  # session -> drop -> files
        self._missed: Counter[str] = Counter()  # session -> looks in a row
        self._change = threading.RLock()
        self._timer: threading.Timer | None = None

    def routes(self, base: str = "") -> list[Route]:
        """Return the route, below the path that the server was told to live at."""
        return [Route(f"{base}{PREFIX}/{{drop}}", self._receive, methods=["POST"])]

    def take(self, session: str, drop: str) -> DroppedFiles | None:
        """Return the files of a drop, once, to the session that it was made in."""
        with self._change:
            drops = self._waiting.pop(session, {})
            wanted = drops.pop(drop, None)
        for other in drops.values():
            other.remove()
        return wanted

    def tidy(self) -> None:
        """Remove what windows and servers have left that are gone; not for the event loop."""
        with self._change:
            for session in list(self._waiting):
                self._missed[session] += 1
                if self._is_alive(session):
                    del self._missed[session]
            gone = [window for window in self._missed if self._missed[window] >= LOOKS]
            left = [drop for window in gone for drop in self._waiting.pop(window, {}).values()]
            for session in gone:
                del self._missed[session]
        for drop in left:
            drop.remove()
        _sweep(self._scratch())

    async def _receive(self, request: Request) -> Response:
        session, drop = self._session_of(request), request.path_params["drop"]
        name = unquote(request.headers.get(NAME_HEADER, ""))
        if session is None:
            return Response(status_code=403, headers=_ALWAYS)
        if not is_id(drop) or not 0 < len(name) <= LONGEST_NAME:
            return Response(status_code=400, headers=_ALWAYS)
        length = announced(request.headers)
        if length is None:
            return _refused(name, "its length was not announced; send a Content-Length", 411)
        try:
            refusal = self._admit(session, drop, length)
            refusal = refusal or await self._write(request, session, drop, name, length)
        except ClientDisconnect:
            refusal = "its sending broke off"
        except OSError as error:
            refusal = f"the disk refused it ({error.strerror or error})"
        if refusal is None:
            return Response(status_code=204, headers=_ALWAYS)
        await run_in_threadpool(self._discard, session, drop)
        return _refused(name, refusal, 413)

    def _admit(self, session: str, drop: str, length: int) -> str | None:
        """Make a place for a file; return why not, if it is too large or one too many."""
        if length > (most := self._largest()):
            return f"a file may have {size(most)}; use a smaller one"
        with self._change:
            arrival = self._waiting.get(session, {}).get(drop)
            if arrival is not None and len(arrival.files) >= MOST_FILES:
                return f"a drop may have {MOST_FILES:,} files; give one zip of them"
            arrival = arrival or DroppedFiles(self._scratch())
            self._waiting.setdefault(session, {})[drop] = arrival
            self._look_later()
        return None

    async def _write(
        self, request: Request, session: str, drop: str, name: str, length: int
    ) -> str | None:
        """Write a file beside those of its drop; return why not, if that has gone meanwhile."""
        arrival = self._waiting.get(session, {}).get(drop)
        if arrival is None:
            return "another of these files was not"
        written = 0
        with arrival.place(name).open("wb") as file:
            async for chunk in request.stream():
                written += len(chunk)
                if written > length:
                    return "it is longer than was announced; drop it again"
                await run_in_threadpool(file.write, chunk)
        return None

    def _discard(self, session: str, drop: str) -> None:
        with self._change:
            arrival = self._waiting.get(session, {}).pop(drop, None)
        if arrival is not None:
            arrival.remove()

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(LOOK_SECONDS, self._look)
            self._timer.daemon = True
            self._timer.start()

    def _look(self) -> None:
        self._timer = None
        with suppress(OSError):
            self.tidy()
        with self._change:
            if self._waiting:
                self._look_later()


def announced(headers: Headers) -> int | None:
    """Return the length of a request's body; None where it says none."""
    length = headers.get("content-length", "")
    is_plain = length.isascii() and length.isdecimal() and len(length) < 20
    return int(length) if is_plain and "transfer-encoding" not in headers else None


def _refused(name: str, why: str, status: int) -> JSONResponse:
    text = f"“{name}” was not kept, since {why}."
    return JSONResponse({"refused": text}, status_code=status, headers=_ALWAYS)


def _remove(folder: Path, locked: ExitStack) -> None:
    with locked:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_apart(folder: Path, locked: ExitStack) -> None:
    """Remove a folder that nobody refers to any more, which may be noticed by the event loop."""
    with suppress(RuntimeError):  # as the process ends: the next one does it
        threading.Thread(target=_remove, args=(folder, locked)).start()


def _sweep(scratch: Path) -> None:
    """Remove what servers have left that were killed: nobody holds the lock of their folders."""
    for folder in scratch.glob(f"{_FOLDER}*"):
        with suppress(OSError):
            is_old = time.time() - folder.stat().st_mtime > STALE_SECONDS
            if is_old and lock.is_free(folder):
                atomic.remove(folder)
