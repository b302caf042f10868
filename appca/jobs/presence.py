"""Which servers are alive: each holds a lock on a file that ends with its process."""

import os
import uuid
from pathlib import Path
from typing import IO

from appca.storage import atomic

try:
    import fcntl
except ImportError:  # Windows: every other server counts as gone
    fcntl = None  # type: ignore[assignment]


class Presence:
    """The sign of life of one server in a folder shared by several."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO | None = _path(folder, self.token).open("w", encoding="utf-8")
        _locked(self._file)

    def alive(self, token: str) -> bool:
        """Whether the server with this token is still there."""
        path = _path(self.folder, token)
        if token == self.token:
            return self._file is not None
        if fcntl is None:
            return False
        try:
            with path.open("r+", encoding="utf-8") as file:
                return not _locked(file)
        except OSError:  # not there, or another server has just removed it
            return False

    def sweep(self) -> None:
        """Remove the files of servers that are gone."""
        for path in self.folder.glob(".server-*"):
            if not self.alive(path.name.removeprefix(".server-")):
                atomic.remove(path)

    def close(self) -> None:
        """Say that this server is gone."""
        if self._file is not None:
            self._file.close()
            self._file = None
            _path(self.folder, self.token).unlink(missing_ok=True)


def _path(folder: Path, token: str) -> Path:
    return folder / f".server-{token}"


def _locked(file: IO) -> bool:
    """Whether the lock was free; the system releases it when the file or the process is closed."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
