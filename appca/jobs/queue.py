"""Jobs of the server: a fair queue, a few warm worker processes, and what became of each job."""

import atexit
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from appca.jobs.folder import JobState, JobStatus
from appca.jobs.process import COMMAND, WorkerProcess
from appca.jobs.records import GONE, JobRecords
from appca.jobs.turns.job import Job
from appca.jobs.turns.limits import Limits, too_large
from appca.jobs.turns.needs import SHORT_SECONDS, Needs, needs_of
from appca.jobs.turns.order import BESIDE, OVERDUE, following
from appca.processes.child import Ended
from appca.processes.pool import Pool
from appca.runs.store import RunStore
from appca.storage.identity import digest_of
from appca.words.errors import InputError

HARD_KILL_SECONDS = 1.3  # a worker that has not obeyed by then is killed: gone within 2 s
_PAUSE = 0.02  # seconds between two looks whether a job is over
LOOK_SECONDS = 3.0  # between two looks for windows that are gone
_CANCELLED = "Cancelled; nothing was stored."
_SHARED = (
    "Another window waits for this fit, too, and for all of it; cancel it here, or let it go on."
)


class Jobs:
    """Runs jobs in a few processes; safe to use from several threads.

    A worker is started when there is work for it and stays warm. Everything about a job is in its
    folder ``<home>/jobs/<id>/``, so any session, and a later server, can ask for it by id.

    A job belongs to the windows that wait for it, its owners, and ends when the last of them
    cancels it. Where a window is closed, what it had asked for goes on for its address, and what
    was begun for a preview ends.

    At most `workers` processes work at once; one more takes short jobs only, while all of them are
    busy. `command` starts a worker; the home is appended. `is_open` says whether the window of an
    owner is open. `limits` are by default those of the environment.
    """

    def __init__(
        self,
        home: Path,
        workers: int = 2,
        command: Sequence[str] = COMMAND,
        is_open: Callable[[str], bool] = lambda _: True,
        limits: Limits | None = None,
    ) -> None:
        self.home, self.limit, self.command = Path(home), workers, tuple(command)
        self.is_open, self.limits = is_open, limits or Limits.from_environment()
        self.folder = self.home / "jobs"
        self.records = JobRecords(self.folder)
        self._lock = threading.RLock()
        self._queue: deque[Job] = deque()
        self._running: dict[Job, threading.Thread] = {}
        start = partial(WorkerProcess, (*self.command, str(self.home)))
        self._pool = Pool(start, workers + BESIDE + OVERDUE)
        self._served: dict[str, int] = {}  # person -> which of all begun jobs was the last of his
        self._looking = False
        self._closed = False
        self.records.clean(set())
        RunStore(self.home).sweep()  # what workers left that were killed together with their server
        atexit.register(self.close)

    def submit(
        self,
        kind: str,
        spec: dict[str, Any],
        key: str | None = None,
        after: float = 0.0,
        *,
        owner: str = "",
        asked: bool = True,
    ) -> str:
        """Queue a job and return its id; a waiting or running job with the same key is joined.

        `kind` is a key of `appca.jobs.worker.KINDS`, `spec` what its handler wants, JSON-able. The
        `key` is by default made of both. The job waits `after` seconds first, when it should stay
        out of the way of something shorter. `owner` is the window that waits for it; if no person
        has `asked` for it, it ends with its window.

        Raises InputError when the app is being closed, when too many jobs wait, when there is too
        little memory for this one, or when a full disk does not let it be noted.
        """
        key = key or digest_of({"kind": kind, "spec": spec})
        needs = needs_of(kind, spec, self.home)
        with self._lock:
            if self._closed:
                raise InputError(GONE)
            same = (job for job in self._open() if job.key == key and not job.cancelled)
            job = next(same, None)
            if job is None:
                self._admit(owner, needs)
                self.records.clean({item.folder.id for item in self._open()})
                job = Job(self.records.create(kind, spec, key), key, needs, kind, spec)
                self._queue.append(job)
                begins = after
            else:
                begins = min(after, job.begins - time.monotonic())
            job.claim(owner, asked)
            if not asked:
                self._look_later()
            self._hold(job, begins)
        return job.folder.id

    def _admit(self, owner: str, needs: Needs) -> None:
        """Make a place in the queue; jobs whose windows are all closed hold none."""
        here = [job for job in self._queue if job.is_awaited(self.is_open)]
        self.limits.check(owner, needs, here)
        if len(self._queue) >= self.limits.waiting:
            self._stop(next(job for job in reversed(self._queue) if job not in here))

    def inherit(self, job_id: str, owner: str) -> bool:
        """Wait for a job that the address of a window names, in place of one that is gone.

        Returns whether the window that is gone had asked for it.
        """
        with self._lock:
            job = self._find(job_id)
            return job is not None and not job.cancelled and job.inherit(owner, self.is_open)

    def status(self, job_id: str) -> JobStatus | None:
        """Return how far a job is, also one of an earlier server; None if it is not known."""
        with self._lock:
            job = self._find(job_id)
            return self.records.status(job_id) if job is None else job.status()

    def active(self, owner: str | None = None) -> list[JobStatus]:
        """Jobs of a window, by default of all, that run or wait, running ones first."""
        with self._lock:
            return [job.status() for job in self._open() if owner is None or owner in job.claims]

    def cancel(self, job_id: str, owner: str = "") -> bool:
        """Let a window no longer wait for a job, which ends if no other does.

        It ends at once if it waits, else by request, and by force 1.3 seconds later. Returns
        whether the window waited for it.
        """
        with self._lock:
            job = self._find(job_id)
            if job is None or job.claims.pop(owner, None) is None:
                return False
            if not job.claims:
                self._stop(job)
        return True

    def keep(self, job_id: str, owner: str = "") -> bool:
        """Ask a running fit to stop and store what it has; whether there was one to ask.

        Raises InputError when another window waits for all of it.
        """
        with self._lock:
            job = self._find(job_id)
            if job is None or job in self._queue or owner not in job.claims or job.kind != "fit":
                return False
            if len(job.claims) > 1:
                raise InputError(_SHARED)
            with contextlib.suppress(OSError):
                job.folder.request("keep")
        return True

    def end(self, about: Collection[str] = ("",)) -> None:
        """End the jobs that mention any of these texts, for all who wait, and wait for it."""
        with self._lock:
            texts = {job: json.dumps([job.key, job.spec]) for job in self._open()}
            doomed = [job for job, text in texts.items() if any(term in text for term in about)]
            for job in doomed:
                job.claims.clear()
                self._stop(job)
        while any(job in self._open() for job in doomed):
            time.sleep(_PAUSE)

    def close(self) -> None:
        """End all workers; jobs that are not over have failed."""
        with self._lock:
            self._closed = True
            waiting, threads = list(self._queue), list(self._running.values())
            self._queue.clear()
        self._pool.end()
        for thread in threads:
            thread.join()
        for job in waiting:
            self.records.end(job.folder, _last(job, "failed", GONE))
        atexit.unregister(self.close)

    def _open(self) -> list[Job]:
        return [*self._running, *self._queue]

    def _find(self, job_id: str) -> Job | None:
        return next((job for job in self._open() if job.folder.id == job_id), None)

    def _stop(self, job: Job) -> None:
        """End a job that nobody waits for."""
        job.cancelled = True
        if job in self._queue:
            self._queue.remove(job)
            self.records.end(job.folder, _last(job, "cancelled", "Cancelled before it began."))
            return
        with contextlib.suppress(OSError):  # on a full disk by force alone
            job.folder.request("cancel")
        _later(HARD_KILL_SECONDS, self._kill, job)

    def _look_later(self) -> None:
        """Look for windows that are gone as long as there are jobs begun for previews."""
        if not self._looking:
            self._looking = True
            _later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        with self._lock:
            self._looking = False
            for job in self._open():
                if not job.cancelled and job.desert(self.is_open):
                    self._stop(job)
            if not all(asked for job in self._open() for asked in job.claims.values()):
                self._look_later()

    def _hold(self, job: Job, seconds: float) -> None:
        """Hand out a waiting job so many seconds from now, at once where none are left."""
        if seconds <= 0.0:
            job.begins = 0.0
            self._dispatch()
            return
        job.begins = time.monotonic() + seconds
        _later(seconds, self._hold, job, 0.0)

    def _dispatch(self) -> None:
        """Hand waiting jobs to idle workers, starting workers up to the limit."""
        with self._lock:
            while not self._closed and (job := self._next()) is not None:
                self._queue.remove(job)
                turn = 1 + max(self._served.values(), default=0)
                self._served |= dict.fromkeys(job.people, turn)
                self._hand(job)
            people = {name for job in self._open() for name in job.people}
            self._served = {name: turn for name, turn in self._served.items() if name in people}

    def _next(self) -> Job | None:
        """Return the job to begin now; one that fits into no memory at all has failed."""
        now = time.monotonic()
        running = list(self._running)
        while waiting := [job for job in self._queue if job.begins <= now]:
            job = following(waiting, running, self._served, self.limit, self._fits, self.is_open)
            if job is not None or running or not self.limit:
                return job
            job = min(waiting, key=lambda candidate: candidate.needs.memory)
            self._queue.remove(job)
            message = too_large(job.needs.memory, self.limits.free() or 0)
            self.records.end(job.folder, _last(job, "failed", message))
        return None

    def _fits(self, job: Job) -> bool:
        return self.limits.fits(job.needs, list(self._running))

    def _hand(self, job: Job) -> None:
        """Let a worker do a job."""
        job.attempts, job.began = job.attempts + 1, time.monotonic()
        job.state = job.state._replace(stage="starting a worker")
        if job.needs.is_short:
            _later(SHORT_SECONDS, self._dispatch)  # others need not wait for it if it is long
        thread = threading.Thread(target=self._run, args=(job,), daemon=True)
        self._running[job] = thread
        thread.start()

    def _run(self, job: Job) -> None:
        """Wait for the end of a job, in a thread of its own."""
        try:
            with self._pool.lent() as worker:
                last = self._done_by(worker, job)
        except Ended:  # the pool has
            last = _last(job, "failed", GONE)
        except OSError as error:
            message = f"No worker process could be started: {error.strerror or error}."
            last = _last(job, "failed", message)
        with self._lock:
            del self._running[job]
            if last is None:
                self._queue.appendleft(job)
            else:
                self.records.end(job.folder, last)
            self._dispatch()

    def _done_by(self, worker: WorkerProcess, job: Job) -> JobState | None:
        """Return how a job ended; None if the worker died before it began: another may have it."""
        job.worker = worker
        try:
            return JobState(**worker.ask(str(job.folder.path), job.hear))
        except Ended:
            with contextlib.suppress(OSError):
                RunStore(self.home).sweep()
            if self._closed:
                return _last(job, "failed", GONE)
            if job.cancelled:
                return _last(job, "cancelled", _CANCELLED)
            if job.state.state == "queued" and job.attempts == 1:
                return None
            with contextlib.suppress(OSError), job.folder.log_file.open("ab") as log:
                log.write(worker.last_words())
            return _last(job, "failed", worker.cause_of_death())
        finally:
            with self._lock:
                job.worker = None

    def _kill(self, job: Job) -> None:
        with self._lock:
            if job.worker is not None:
                job.worker.kill()


def _last(job: Job, state: str, message: str) -> JobState:
    """Return the end of a job that no worker has ended."""
    now = time.time()
    return job.state._replace(state=state, message=message, ended=now, seconds_left=None)


def _later(seconds: float, act: Callable[..., object], *arguments: object) -> None:
    """Do something in so many seconds, unless the server has ended."""
    timer = threading.Timer(seconds, act, arguments)
    timer.daemon = True
    timer.start()
