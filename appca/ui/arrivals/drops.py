"""Files dropped anywhere on a window: a route that takes them, for the page of the same session.

A file comes as the body of a request of its own, and its name in a header: a name is told to the
readers and never used as a path. Files lie in a folder that nobody else may read until the page has
read them, or until the session is gone.
"""

import secrets
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from appca.storage import atomic, rights
from appca.storage.identity import is_id
from appca.words.numbers import size

PREFIX = "/drop"
NAME_HEADER = "x-appca-name"
MOST_FILES = 5000
LONGEST_NAME = 1000
_FOLDER = "drop-"
_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class DropLimits(NamedTuple):
    """Bytes that dropped files may take."""

    file: int
    window: int
    all: int


class DroppedFiles:
    """Files in a folder of their own, which goes with the object."""

    def __init__(self, scratch: Path) -> None:
        rights.make_folder(scratch)
        atomic.forget(scratch, _FOLDER)
        self._folder = rights.make_folder(scratch / f"{_FOLDER}{secrets.token_hex(8)}")
        self.remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.files: list[tuple[str, Path]] = []
        self.n_bytes = 0

    def became(self, digest: str) -> None:
        """Note of which data set these are the files, so that they go with it."""
        (self._folder / digest).touch(rights.FILE)

    def place(self, name: str) -> Path:
        """Return where the next file is to be written."""
        path = self._folder / str(len(self.files))
        self.files.append((name, path))
        return path


class Drops:
    """What was dropped on windows and not yet taken by their pages."""

    def __init__(
        self,
        session_of: Callable[[Request], str | None],
        is_alive: Callable[[str], bool],
        scratch: Callable[[], Path],
        limits: Callable[[], DropLimits],
    ) -> None:
        self._session_of, self._is_alive = session_of, is_alive
        self._scratch, self._limits = scratch, limits
        self._waiting: dict[str, dict[str, DroppedFiles]] = {}  # session -> drop -> files

    def routes(self, base: str = "") -> list[Route]:
        """Return the route, below the path that the server was told to live at."""
        return [Route(f"{base}{PREFIX}/{{drop}}", self._receive, methods=["POST"])]

    def take(self, session: str, drop: str) -> DroppedFiles | None:
        """Return the files of a drop, once, to the session that it was made in."""
        found = self._waiting.pop(session, {})
        wanted = found.pop(drop, None)
        for other in found.values():
            other.remove()
        return wanted

    async def _receive(self, request: Request) -> Response:
        session, drop = self._session_of(request), request.path_params["drop"]
        name = unquote(request.headers.get(NAME_HEADER, ""))
        if session is None:
            return Response(status_code=403, headers=_ALWAYS)
        if not is_id(drop) or not 0 < len(name) <= LONGEST_NAME:
            return Response(status_code=400, headers=_ALWAYS)
        self._forget_the_gone()
        arrival = self._waiting.setdefault(session, {}).get(drop)
        try:
            arrival = arrival or DroppedFiles(self._scratch())
            self._waiting[session][drop] = arrival
            refusal = await self._write(request, session, arrival, name)
        except ClientDisconnect:
            refusal = "its sending broke off"
        except OSError as error:
            refusal = f"the disk refused it ({error.strerror or error})"
        if refusal is None:
            return Response(status_code=204, headers=_ALWAYS)
        self._discard(session, drop)
        text = f"“{name}” was not kept, since {refusal}."
        return JSONResponse({"refused": text}, status_code=413, headers=_ALWAYS)

    async def _write(
        self, request: Request, session: str, arrival: DroppedFiles, name: str
    ) -> str | None:
        """Write a file beside those of its drop; return why not, if it is too much."""
        if len(arrival.files) >= MOST_FILES:
            return f"a drop may have {MOST_FILES:,} files; give one zip of them"
        limits, written = self._limits(), 0
        with open(arrival.place(name), "wb", opener=rights.opener) as file:
            async for chunk in request.stream():
                written += len(chunk)
                arrival.n_bytes += len(chunk)
                own, every = self._held(session), sum(map(self._held, list(self._waiting)))
                if written > limits.file:
                    return f"a file may have {size(limits.file)}; use a smaller one"
                if own > limits.window or every > limits.all:
                    return f"the files of a window may have {size(limits.window)}; use fewer"
                file.write(chunk)
        return None

    def _held(self, session: str) -> int:
        return sum(one.n_bytes for one in list(self._waiting.get(session, {}).values()))

    def _discard(self, session: str, drop: str) -> None:
        found = self._waiting.get(session, {}).pop(drop, None)
        if found is not None:
            found.remove()

    def _forget_the_gone(self) -> None:
        for session in [one for one in list(self._waiting) if not self._is_alive(one)]:
            for arrival in self._waiting.pop(session, {}).values():
                arrival.remove()
