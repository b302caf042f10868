"""Which servers are alive: each holds the lock of a file, and touches it now and then."""

import os
import threading
import uuid
from contextlib import suppress
from pathlib import Path

from appca.storage import atomic, lock, rights

HEARTBEAT = 20.0  # seconds from touch to touch
SILENCE = 120.0  # seconds after which a server that cannot be asked by its lock counts as gone


class Presence:
    """The sign of life of one server in a folder shared by several.

    Those under this kernel are known by their locks, at once and for certain, also in another
    container. Others, on a volume that several machines have mounted, are alive while their lock is
    seen to be held, or their file is as fresh as one's own, whatever the clocks say.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = f"{lock.machine()}-{uuid.uuid4().hex[:12]}"
        rights.make_folder(folder)
        self._path = _path(folder, self.token)
        self._file: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT, rights.FILE)
        lock.take(self._file)
        self._closed = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def alive(self, token: str) -> bool:
        """Whether the server with this token is still there."""
        if token == self.token:
            return self._file is not None
        path = _path(self.folder, token)
        try:
            with lock.opened(path) as file:
                free = lock.take(file)
            if free is False or (free and token.startswith(f"{lock.machine()}-")):
                return not free
            return self._path.stat().st_mtime - path.stat().st_mtime < SILENCE
        except (OSError, ValueError):  # not there, removed just now, or no token at all
            return False

    def sweep(self) -> None:
        """Remove the files of servers that are gone."""
        for path in self.folder.glob(".server-*"):
            if not self.alive(path.name.removeprefix(".server-")):
                atomic.remove(path)

    def close(self) -> None:
        """Say that this server is gone."""
        if self._file is not None:
            self._closed.set()
            os.close(self._file)
            self._file = None
            self._path.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._closed.wait(HEARTBEAT):
            with suppress(OSError):
                os.utime(self._path)


def _path(folder: Path, token: str) -> Path:
    return folder / f".server-{token}"
