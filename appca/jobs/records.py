"""What is known of jobs: their folders, and ends that a full disk did not let be written."""

import contextlib
import os
import threading
import time
import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Any

from appca.jobs.folder import ENDED, Curve, JobFolder, JobState, JobStatus
from appca.storage import atomic, lock
from appca.storage.identity import is_id
from appca.words.errors import InputError
from appca.words.refusal import refusing

GONE = "The app was closed before this job was over; start it again."
UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # a folder somebody has tampered with
FOLDERS_KEPT = 200
FOLDER_DAYS = 7
_CURVES_KEPT = 32


class JobRecords:
    """Reads and closes the books on jobs, also those of an earlier server.

    Parameters
    ----------
    folder : Path
        Of the folders of jobs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.presence = Presence(folder)
        self._lock = threading.RLock()
        self._curves: OrderedDict[str, Curve] = OrderedDict()
        self._unwritten: dict[str, JobState] = {}  # ends of jobs that a full disk refused

    def create(self, kind: str, spec: dict[str, Any], key: str) -> JobFolder:
        """Note a job to be done by this server.

        Raises
        ------
        InputError
            When the disk refuses, or what the job is told cannot be written.
        """
        task = {"kind": kind, "spec": spec, "key": key, "server": self.presence.token}
        remedy = "free some space, then start it again"
        try:
            with refusing(f"The job could not be noted in {self.folder}", remedy):
                return JobFolder.create(self.folder, task)
        except InputError:
            raise
        except ValueError as error:
            msg = f"What this job is told cannot be kept in its file: {error}."
            raise InputError(msg) from None

    def status(self, job_id: str) -> JobStatus | None:
        """Return how far a job is, also one of an earlier server; None if it is not known."""
        if not is_id(job_id):
            return None
        folder = JobFolder(self.folder / job_id)
        try:
            job, state = folder.job(), self._unwritten.get(job_id) or folder.read()
            kind, spec = job["kind"], job["spec"]
        except UNREADABLE:
            return None
        if state.state not in ENDED and not self.presence.alive(job.get("server", "")):
            state = state._replace(state="failed", message=GONE, seconds_left=None)
        until = state.ended or time.time()
        return JobStatus(
            id=job_id,
            kind=kind,
            state=state.state,
            stage="ending" if self._ending(folder, state) else state.stage,
            fraction=state.fraction,
            iteration=state.iteration,
            curve=self._curve(folder),
            seconds=round(until - state.started, 1) if state.started else 0.0,
            seconds_left=state.seconds_left,
            result=state.result or {},
            message=state.message,
            spec=spec,
        )

    def note(self, job_id: str, state: JobState) -> None:
        """Remember an end that could not be written."""
        self._unwritten[job_id] = state

    def end(self, folder: JobFolder, state: str, message: str) -> None:
        """Close the books on a job whose worker cannot do it."""
        try:
            folder.end(state, message)
        except (OSError, ValueError):
            self._unwritten[folder.id] = JobState(state, message=message, ended=time.time())

    def is_over(self, folder: JobFolder) -> bool:
        """Whether the worker has ended the job, though its answer may still be on the way."""
        return folder.id in self._unwritten or state_of(folder) in ENDED

    def clean(self, open_ids: set[str]) -> None:
        """Remove folders of jobs that were over long ago, and signs of servers that are gone."""
        self.presence.sweep()
        for log in self.folder.glob(".worker-*"):
            if not self.presence.alive(log.name.removeprefix(".worker-").rpartition("-")[0]):
                atomic.remove(log)
        folders = [path for path in self.folder.glob("[0-9a-f]*") if path.name not in open_ids]
        ages = sorted((_age(path), path) for path in folders)
        for place, (age, path) in enumerate(ages):
            if age > FOLDER_DAYS * 86_400 or place >= FOLDERS_KEPT:
                atomic.remove(path)
        atomic.sweep(self.folder)

    def _ending(self, folder: JobFolder, state: JobState) -> bool:
        return state.state == "running" and folder.requested("cancel")

    def _curve(self, folder: JobFolder) -> list[tuple[int, float]]:
        with self._lock:
            curve = self._curves.setdefault(folder.id, Curve(folder.curve_file))
            self._curves.move_to_end(folder.id)
            while len(self._curves) > _CURVES_KEPT:
                self._curves.popitem(last=False)
            return curve.read()


def state_of(folder: JobFolder) -> str:
    """Return the state in the folder; that of a folder that was tampered with is unknown."""
    try:
        return folder.read().state
    except UNREADABLE:
        return "unknown"


def _age(path: Path) -> float:
    for file in (path / "status.json", path):
        with contextlib.suppress(OSError):
            return time.time() - file.stat().st_mtime
    return 0.0


class Presence:
    """The sign of life of one server in a folder shared by several: a file that it holds locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = uuid.uuid4().hex[:12]
        self._file: int | None = None
        with contextlib.suppress(OSError):  # a home may be read-only, then it gets no jobs either
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(_path(folder, self.token), os.O_RDWR | os.O_CREAT)
            lock.take(self._file)

    def alive(self, token: str) -> bool:
        """Whether the server with this token is still there."""
        if token == self.token:
            return self._file is not None
        return lock.is_free(_path(self.folder, token)) is False

    def sweep(self) -> None:
        """Remove the files of servers that are gone."""
        for path in self.folder.glob(".server-*"):
            if not self.alive(path.name.removeprefix(".server-")):
                atomic.remove(path)

    def close(self) -> None:
        """Say that this server is gone."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            atomic.remove(_path(self.folder, self.token))


def _path(folder: Path, token: str) -> Path:
    return folder / f".server-{token}"
