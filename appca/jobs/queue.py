"""Job queue of the server: first in, first out, with two persistent worker processes."""

import atexit
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from appca.processes import Child, Ended, Pool, environment
from appca.runs.home import threads
from appca.storage.files import sweep
from appca.storage.identity import ID_DIGITS, digest_of
from appca.words import refuse_if

COMMAND = (sys.executable, "-m", "appca.jobs.worker")
FOLDER, LOG = "jobs", "log.txt"  # below the home; the log has the output of workers
WORKERS = 2
REMEMBERED = 200  # number of finished jobs kept
ENDED = ("done", "failed", "cancelled")
GONE = "The app was closed before this job finished; start it again."


class JobStatus(NamedTuple):
    """A job as a page shows it."""

    id: str
    kind: str
    spec: dict[str, Any]
    key: str  # identifies the result: an equal unfinished job is joined
    asked: bool = True  # requested by a user, not for a preview
    state: str = "queued"  # "queued", "running", "done", "failed", "cancelled"
    stage: str = "waiting for a free worker"  # current stage, in words
    fraction: float = 0.0  # 0 to 1
    iteration: int | None = None
    curve: Sequence[tuple[int, float]] = ()  # (iteration, nats) in the current stage
    seconds_left: float | None = None
    result: Mapping[str, Any] = {}  # {"run": id} or similar
    message: str = ""  # reason for a failure, in one sentence


@dataclass(eq=False)
class _Job:
    """An unfinished job."""

    status: JobStatus
    begins: float  # earliest start, in monotonic time
    thread: threading.Thread | None = None  # waits for the job to end; None before it starts
    worker: Child | None = None  # process that runs it
    points_of: int = -1  # index of the stage of `curve`
    heard: float = 0.0  # monotonic time of the last message

    @property
    def now(self) -> JobStatus:
        """Return the status, counting down the remaining seconds since the last message."""
        left, passed = self.status.seconds_left, time.monotonic() - self.heard
        return self.status._replace(seconds_left=left and max(left - passed, 0.0))

    def hear(self, news: dict[str, Any]) -> None:
        """Update the status from a worker's message; see `appca.jobs.tasks.Context`."""
        curve, self.heard = list(self.status.curve), time.monotonic()
        for stage, iteration, value in news.pop("points"):
            if stage != self.points_of:
                self.points_of, curve = stage, []
            curve.append((iteration, value))
        self.status = self.status._replace(curve=curve, **news)


class Jobs:
    """Runs jobs in `workers` processes; thread-safe.

    A worker starts when it is first needed and is then reused. Jobs belong to the server: any
    window may follow, stop and cancel them. A worker's command line is `command` and the home.
    """

    def __init__(
        self, home: Path, workers: int = WORKERS, command: Sequence[str] = COMMAND
    ) -> None:
        self.home, self.log = Path(home), Path(home) / FOLDER / LOG
        self._command, self._workers = (*command, str(home)), workers
        self._lock = threading.RLock()
        self._open: list[_Job] = []  # oldest first
        self._over: dict[str, JobStatus] = {}
        self._busy = 0  # number of busy workers
        self._closed = False
        self._pool = Pool(self._start_worker, workers)
        with suppress(OSError):
            self.log.unlink(missing_ok=True)
        self._sweep()
        atexit.register(self.close)

    def submit(
        self,
        kind: str,
        spec: dict[str, Any],
        key: str | None = None,
        after: float = 0.0,
        *,
        asked: bool = True,
    ) -> str:
        """Queue a job and return its id; join an unfinished job that has the same key.

        `kind` is a key of `appca.jobs.worker.KINDS`, `spec` is JSON, and by default `key` is made
        from both. The job waits at least `after` seconds. `leave` can end it unless it was `asked`
        for by a user. Raises InputError while the app is closing.
        """
        key = key or digest_of({"kind": kind, "spec": spec})
        begins = time.monotonic() + after
        with self._lock:
            refuse_if(self._closed, GONE)
            job = next((job for job in self._open if job.status.key == key), None)
            if job is None:
                job = _Job(JobStatus(uuid.uuid4().hex[:ID_DIGITS], kind, spec, key, asked), begins)
                self._open.append(job)
            job.begins = min(job.begins, begins)
            job.status = job.status._replace(asked=asked or job.status.asked)
        if after > 0.0:
            timer = threading.Timer(after, self._dispatch)
            timer.daemon = True
            timer.start()
        self._dispatch()
        return job.status.id

    def status(self, job_id: str) -> JobStatus | None:
        """Return the status of a job; None if the job is unknown to this server."""
        with self._lock:
            job = self._find(job_id)
            return self._over.get(job_id) if job is None else job.now

    def active(self) -> list[JobStatus]:
        """Return running jobs, followed by waiting jobs."""
        with self._lock:
            return sorted((job.now for job in self._open), key=lambda job: job.state == "queued")

    def cancel(self, job_id: str) -> bool:
        """End a job at once; return whether it existed."""
        with self._lock:
            if (job := self._find(job_id)) is not None:
                self._finish(job, state="cancelled")
        return job is not None

    def leave(self, job_id: str) -> None:
        """End and forget the job of a preview, unless a user has asked for it since."""
        with self._lock:
            job = self._find(job_id)
            if job is not None and not job.status.asked:
                self._finish(job, state="cancelled")
                del self._over[job_id]

    def keep(self, job_id: str) -> bool:
        """Ask a running fit to stop and store its current state; return whether it was running."""
        with self._lock:
            job = self._find(job_id)
            if job is None or job.worker is None or job.status.kind != "fit":
                return False
            job.worker.stop()
        return True

    def end(self, about: Collection[str] = ("",)) -> None:
        """Cancel the jobs that mention any of these texts, and wait until they have ended."""
        with self._lock:
            texts = {job: json.dumps([job.status.key, job.status.spec]) for job in self._open}
            doomed = [job for job, text in texts.items() if any(term in text for term in about)]
            for job in doomed:
                self._finish(job, state="cancelled")
        for job in doomed:
            if job.thread is not None:
                job.thread.join()

    def close(self) -> None:
        """End all workers; unfinished jobs fail."""
        with self._lock:
            self._closed = True
            left = list(self._open)
            for job in left:
                self._finish(job, state="failed", message=GONE)
        self._pool.end()
        for job in left:
            if job.thread is not None:
                job.thread.join()
        atexit.unregister(self.close)

    def _find(self, job_id: str) -> _Job | None:
        return next((job for job in self._open if job.status.id == job_id), None)

    def _dispatch(self) -> None:
        with self._lock:
            now = time.monotonic()
            waiting = [job for job in self._open if job.thread is None and job.begins <= now]
            for job in waiting[: self._workers - self._busy]:
                self._busy += 1
                job.status = job.status._replace(state="running", stage="starting")
                job.thread = threading.Thread(target=self._run, args=(job,), daemon=True)
                job.thread.start()

    def _run(self, job: _Job) -> None:
        last = self._done(job)
        with self._lock:
            self._busy -= 1
            self._finish(job, **last)
        self._dispatch()

    def _done(self, job: _Job) -> dict[str, Any]:
        try:
            with self._pool.lent() as worker:
                with self._lock:
                    if job not in self._open:
                        return {}
                    job.worker = worker
                try:
                    request = {"kind": job.status.kind, "spec": job.status.spec}
                    return dict(worker.ask(request, job.hear))
                except Ended:
                    self._sweep()
                    return {"state": "failed", "message": _cause_of_death(worker)}
                finally:
                    with self._lock:
                        job.worker = None
        except Ended:  # the pool has ended
            return {"state": "failed", "message": GONE}
        except OSError as error:
            message = f"No worker process could be started: {error.strerror or error}."
            return {"state": "failed", "message": message}

    def _finish(self, job: _Job, **last: Any) -> None:
        if job not in self._open:
            return
        self._open.remove(job)
        fraction = 1.0 if last["state"] == "done" else job.status.fraction
        ended = job.status._replace(fraction=fraction, seconds_left=None)
        self._over[job.status.id] = ended._replace(**last)
        while len(self._over) > REMEMBERED:
            del self._over[next(iter(self._over))]
        if job.worker is not None:
            job.worker.process.kill()  # the job's thread waits for its end

    def _start_worker(self) -> Child:
        """Start a worker; its output goes to the log if there is disk space."""
        with ExitStack() as opened:
            printed: Any = subprocess.DEVNULL
            with suppress(OSError):
                self.log.parent.mkdir(parents=True, exist_ok=True)
                printed = opened.enter_context(self.log.open("ab"))
            # Only the server reacts to Ctrl-C. A new session would change the CPU scheduling.
            return Child(self._command, environment(threads()), stderr=printed, process_group=0)

    def _sweep(self) -> None:
        with suppress(OSError):
            sweep(self.home / "runs")


def _cause_of_death(worker: Child) -> str:
    code = worker.process.wait()
    cause = f"signal {-code}" if code < 0 else f"exit code {code}"
    hint = ", possibly out of memory" if code == -9 else ""
    return f"The worker process ended before the job finished ({cause}{hint}); start it again."
