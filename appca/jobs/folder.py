"""The folder of one job: what was asked for and how it ended, readable by any session.

job.json     what is to be done; written once, by the page
status.json  whether and how it ended, then with the digest of the log
log.txt      what the worker and its libraries printed; the end of it when the job is over
cancel, keep empty files: requests of the page
"""

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from appca.storage import atomic
from appca.storage.digests import digests_of
from appca.storage.files import as_json, read_json, write_json
from appca.storage.formats import FILES
from appca.storage.identity import ID_DIGITS
from appca.storage.schema import Facts, Finite, Text, fitted

LOG, LOG_BYTES = "log.txt", 65_536  # of which are kept
ENDED = ("done", "failed", "cancelled")


class JobStatus(NamedTuple):
    """A job as a page shows it."""

    id: str
    kind: str
    state: str  # "queued", "running", "done", "failed", "cancelled"
    spec: dict[str, Any]
    stage: str = ""  # what is being done, in words
    fraction: float = 0.0  # 0 to 1
    iteration: int | None = None
    curve: Sequence[tuple[int, float]] = ()  # (iteration, nats) of the present stage
    seconds: float = 0.0  # since it began to run
    seconds_left: float | None = None
    result: Mapping[str, Any] = {}  # of a finished job: {"run": id} and the like
    message: str = ""  # one sentence when it failed, was cancelled or has something to say

    @classmethod
    def of(
        cls, job_id: str, kind: str, spec: dict[str, Any], state: "JobState", **more: Any
    ) -> "JobStatus":
        """Say how far a job is."""
        until = state.ended or time.time()
        facts = state._asdict() | {"result": state.result or {}} | more
        seconds = round(until - state.started, 1) if state.started else 0.0
        shown = {name: facts[name] for name in cls._fields if name in facts}
        return cls(id=job_id, kind=kind, spec=spec, seconds=seconds, **shown)


class JobState(NamedTuple):
    """How far a job is: what a worker tells, and content of status.json."""

    state: Text
    stage: Text = ""
    fraction: Finite = 0.0
    iteration: int | None = None
    seconds_left: Finite | None = None
    result: dict[str, Any] | None = None
    message: str = ""
    started: Finite | None = None  # seconds since 1970
    ended: Finite | None = None


WAITING = JobState("queued", stage="waiting for a free worker")


class _Asked(Struct):
    """Content of job.json, as far as anybody relies on it."""

    kind: Text
    spec: Facts
    key: Text = ""


class JobFolder:
    """Reads and writes the files of one job."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.id = self.path.name

    @classmethod
    def create(cls, jobs: Path, job: dict[str, Any]) -> "JobFolder":
        """Make a folder that exists only once it is complete."""
        folder = cls(jobs / uuid.uuid4().hex[:ID_DIGITS])
        facts = json.loads(json.dumps({**job, "created": time.time()}, allow_nan=False))

        def fill(draft: Path) -> None:
            write_json(draft / "job.json", facts, "The job")
            cls(draft).write(WAITING)

        atomic.put_folder(folder.path, fill, Path.exists)
        return folder

    def job(self) -> dict[str, Any]:
        """Return kind, spec, key and time of creation."""
        facts = read_json(self.path / "job.json", "The job")
        fitted(_Asked, facts)
        return facts

    def read(self) -> JobState:
        """Return the present state."""
        facts = read_json(self.path / "status.json", "The job")
        state: JobState = fitted(JobState, facts)
        return state

    def write(self, state: JobState) -> None:
        """Replace the state in one step; the last one with the digest of the log."""
        facts = state._asdict()
        if state.state in ENDED:
            logs = [LOG] if self.log_file.exists() else []
            if logs and self.log_file.stat().st_size > LOG_BYTES:
                self.log_file.write_bytes(self.log_file.read_bytes()[-LOG_BYTES:])
            facts[FILES] = digests_of(self.path, logs)
        atomic.write(self.path / "status.json", as_json(facts), durable=False)

    def request(self, what: str) -> None:
        """Leave a request ("cancel" or "keep") for the worker."""
        (self.path / what).touch()

    def requested(self, what: str) -> bool:
        """Whether there is such a request."""
        return os.path.exists(self.path / what)  # noqa: PTH110 (asked ten times a second)

    @property
    def log_file(self) -> Path:
        """File of everything that was printed."""
        return self.path / LOG
