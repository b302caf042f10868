"""The folder of one job: what the page and the worker tell each other, readable by any session.

job.json     what is to be done; written once, by the page
status.json  how far it is; replaced whole, by the worker while it runs, else by the page
curve.csv    stage number, iteration, log-likelihood; only ever appended to
log.txt      what the worker and its libraries printed; the end of it when the job is over
sealed.json  digests of curve and log; written last
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
from appca.storage.identity import ID_DIGITS, digest_of
from appca.storage.schema import Facts, Finite, Text, fitted

LOG_BYTES = 65_536  # of the log are kept
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


class JobState(NamedTuple):
    """Content of status.json."""

    state: Text
    stage: Text = ""
    fraction: Finite = 0.0
    iteration: int | None = None
    seconds_left: Finite | None = None
    result: dict[str, Any] | None = None
    message: str = ""
    started: Finite | None = None  # seconds since 1970
    ended: Finite | None = None
    process: int | None = None  # of the worker


class _Asked(Struct):
    """Content of job.json, as far as anybody relies on it."""

    kind: Text
    spec: Facts
    key: Text = ""
    server: Text = ""


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
            cls(draft).write(JobState("queued", stage="waiting for a free worker"))

        atomic.put_folder(folder.path, fill, Path.exists)
        return folder

    def job(self) -> dict[str, Any]:
        """Return kind, spec, key, server and time of creation."""
        facts = read_json(self.path / "job.json", "The job", "job")
        fitted(_Asked, facts)
        return facts

    def read(self) -> JobState:
        """Return the present state."""
        facts = read_json(self.path / "status.json", "The job")
        found: JobState = fitted(JobState, facts)
        return found

    def write(self, state: JobState) -> None:
        """Replace the present state in one step."""
        atomic.write(self.path / "status.json", as_json(state._asdict()), durable=False)

    def end(self, state: str, message: str) -> None:
        """Close the books on a job whose worker cannot do it."""
        try:
            last = self.read()
        except (OSError, ValueError, TypeError):  # damaged; how it ended is known all the same
            last = JobState(state)
        self.write(
            last._replace(state=state, message=message, seconds_left=None, ended=time.time())
        )
        self.seal()

    def seal(self) -> None:
        """Note the digests of what is not written to any more."""
        files = [file.name for file in (self.curve_file, self.log_file) if file.exists()]
        sums = {FILES: digests_of(self.path, files)}
        atomic.write(self.path / "sealed.json", as_json(sums), durable=False)

    def request(self, what: str) -> None:
        """Leave a request ("cancel" or "keep") for the worker."""
        (self.path / what).touch()

    def requested(self, what: str) -> bool:
        """Whether there is such a request."""
        return os.path.exists(self.path / what)  # noqa: PTH110 (asked ten times a second)

    @property
    def curve_file(self) -> Path:
        """File of the log-likelihood curve."""
        return self.path / "curve.csv"

    @property
    def log_file(self) -> Path:
        """File of everything that was printed."""
        return self.path / "log.txt"

    def log_tail(self) -> str:
        """End of the log."""
        try:
            with self.log_file.open("rb") as file:
                file.seek(max(0, self.log_file.stat().st_size - LOG_BYTES))
                return file.read().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def shorten_log(self) -> None:
        """Keep the end of a long log only."""
        if self.log_file.exists() and self.log_file.stat().st_size > LOG_BYTES:
            self.log_file.write_text(self.log_tail(), encoding="utf-8")


def default_key(kind: str, spec: dict[str, Any]) -> str:
    """Jobs of the same kind that are told the same are one job."""
    return digest_of({"kind": kind, "spec": spec})


class Curve:
    """Reads what was appended to a curve file since the last look."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.offset = 0
        self.stage = -1
        self.points: list[tuple[int, float]] = []

    def read(self) -> list[tuple[int, float]]:
        """Return all points of the present stage."""
        try:
            grown = self.file.stat().st_size > self.offset
        except FileNotFoundError:
            return []
        if grown:
            with self.file.open("rb") as file:
                file.seek(self.offset)
                fresh = file.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]  # a line may be half written
            self.offset += len(whole)
            for line in whole.decode().splitlines():
                self._add(*line.split(","))
        return list(self.points)

    def _add(self, stage: str, iteration: str, value: str) -> None:
        if int(stage) != self.stage:
            self.stage, self.points = int(stage), []
        self.points.append((int(iteration), float(value)))
