"""Jobs of the server: a queue, at most two warm worker processes, and what became of each job."""

import atexit
import contextlib
import json
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from appca.jobs.folder import ENDED, Curve, JobFolder, JobState, JobStatus, default_key
from appca.jobs.process import COMMAND, WorkerProcess
from appca.runs.store import RunStore
from appca.storage import atomic
from appca.storage.errors import InputError
from appca.storage.identity import is_id
from appca.storage.presence import Presence
from appca.storage.refusal import refused

HARD_KILL_SECONDS = 1.3  # a worker that has not obeyed by then is killed: gone within 2 s
FOLDERS_KEPT = 200
FOLDER_DAYS = 7
_CURVES_KEPT = 32
_UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # a folder somebody has tampered with
_GONE = "The app was closed before this job was over; start it again."
_CANCELLED = "Cancelled; nothing was stored."


class _Job:
    """A job of this server that is not over."""

    def __init__(self, folder: JobFolder, key: str) -> None:
        self.folder, self.key = folder, key
        self.cancelled = False
        self.attempts = 0
        self.begins = 0.0  # not before this time of the monotonic clock


class _Worker(WorkerProcess):
    """A worker, the job it has, and the thread that listens to it."""

    job: _Job | None = None
    listener: threading.Thread


class Jobs:
    """Runs jobs in at most `workers` processes; safe to use from several threads.

    A worker is started when there is work for it and stays warm. Everything about a job is in its
    folder ``<home>/jobs/<id>/``, so any session, and a later server, can ask for it by id.

    Parameters
    ----------
    home : Path
        Folder of the stores.
    workers : int
        Most processes at once.
    command : sequence of str
        Starts a worker; the home is appended.
    """

    def __init__(self, home: Path, workers: int = 2, command: Sequence[str] = COMMAND) -> None:
        self.home, self.limit, self.command = Path(home), workers, tuple(command)
        self.folder = self.home / "jobs"
        self._presence = Presence(self.folder)
        self._lock = threading.RLock()
        self._queue: deque[_Job] = deque()
        self._workers: list[_Worker] = []
        self._started = 0
        self._curves: OrderedDict[str, Curve] = OrderedDict()
        self._unwritten: dict[str, JobState] = {}  # ends of jobs that a full disk refused
        self._refused: OrderedDict[str, JobStatus] = OrderedDict()  # those it did not let begin
        self._closed = False
        self._clean()
        RunStore(self.home).sweep()  # what workers left that were killed together with their server
        atexit.register(self.close)

    def submit(
        self, kind: str, spec: dict[str, Any], key: str | None = None, after: float = 0.0
    ) -> str:
        """Queue a job and return its id; a waiting or running job with the same key is joined.

        A job that a full disk does not let be noted has failed at once, and its status says why.

        Parameters
        ----------
        kind : str
            A key of `appca.jobs.worker.KINDS`.
        spec : dict
            JSON-able; what the handler of the kind wants.
        key : str, optional
            By default made of kind and spec.
        after : float
            Seconds that it waits first, when it should stay out of the way of something shorter.

        Raises
        ------
        InputError
            When the app is being closed.
        """
        key = key or default_key(kind, spec)
        with self._lock:
            if self._closed:
                raise InputError(_GONE)
            for job in self._open():
                if job.key == key and not job.cancelled and not self._is_over(job):
                    self._hold(job, min(after, job.begins - time.monotonic()))
                    return job.folder.id
            self._clean()
            task = {"kind": kind, "spec": spec, "key": key, "server": self._presence.token}
            try:
                job = _Job(JobFolder.create(self.folder, task), key)
            except OSError as error:
                return self._refuse(kind, spec, error)
            self._queue.append(job)
            self._hold(job, after)
        return job.folder.id

    def status(self, job_id: str) -> JobStatus | None:
        """Return how far a job is, also one of an earlier server; None if it is not known."""
        if not is_id(job_id):
            return None
        if job_id in self._refused:
            return self._refused[job_id]
        folder = JobFolder(self.folder / job_id)
        try:
            job, state = folder.job(), self._unwritten.get(job_id) or folder.read()
            kind, spec = job["kind"], job["spec"]
        except _UNREADABLE:
            return None
        if state.state not in ENDED and not self._presence.alive(job.get("server", "")):
            state = state._replace(state="failed", message=_GONE, seconds_left=None)
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

    def active(self) -> list[JobStatus]:
        """Jobs of this server that run or wait, running ones first."""
        with self._lock:
            ids = [job.folder.id for job in self._open()]
        found = (self.status(job_id) for job_id in ids)
        return [status for status in found if status and status.state not in ENDED]

    def log(self, job_id: str, size: int = 4000) -> str:
        """End of what a job printed."""
        known = self.status(job_id) is not None
        return JobFolder(self.folder / job_id).log_tail(size) if known else ""

    def cancel(self, job_id: str) -> bool:
        """End a job: at once if it waits, else by request, and by force 1.3 seconds later.

        Returns whether there was anything to end.
        """
        with self._lock:
            job = self._find(job_id)
            if job is None:
                return False
            job.cancelled = True
            if job in self._queue:
                self._queue.remove(job)
                self._end(job, "cancelled", "Cancelled before it began.")
                return True
            with contextlib.suppress(OSError):  # on a full disk by force alone
                job.folder.request("cancel")
            timer = threading.Timer(HARD_KILL_SECONDS, self._kill, (job,))
            timer.daemon = True
            timer.start()
        return True

    def keep(self, job_id: str) -> bool:
        """Ask a running fit to stop and store what it has; whether there was one to ask."""
        with self._lock:
            job = self._find(job_id)
            if job is None or job in self._queue:
                return False
            try:
                if job.folder.job()["kind"] != "fit":
                    return False
                job.folder.request("keep")
            except _UNREADABLE:
                return False
        return True

    def warm(self) -> None:
        """Start one worker ahead of the first job, so that this job need not wait for imports."""
        with self._lock:
            if not self._workers and not self._closed:
                self._start()

    def close(self) -> None:
        """End all workers; jobs that are not over have failed."""
        with self._lock:
            self._closed = True
            workers, self._workers = self._workers, []
            jobs = [*self._queue, *(worker.job for worker in workers if worker.job)]
            self._queue.clear()
            for worker in workers:
                worker.kill()
        for worker in workers:
            worker.listener.join()
        for job in jobs:
            self._end(job, "failed", _GONE)
        self._presence.close()
        atexit.unregister(self.close)

    def _open(self) -> list[_Job]:
        running = [worker.job for worker in self._workers if worker.job is not None]
        return [*running, *self._queue]

    def _find(self, job_id: str) -> _Job | None:
        return next((job for job in self._open() if job.folder.id == job_id), None)

    def _hold(self, job: _Job, seconds: float) -> None:
        """Hand out a waiting job so many seconds from now, at once where none are left."""
        if seconds <= 0.0:
            job.begins = 0.0
            self._dispatch()
            return
        job.begins = time.monotonic() + seconds
        timer = threading.Timer(seconds, self._hold, (job, 0.0))
        timer.daemon = True
        timer.start()

    def _dispatch(self) -> None:
        """Hand waiting jobs to idle workers, starting workers up to the limit."""
        with self._lock:
            while not self._closed and (job := self._next()) is not None:
                worker = next((worker for worker in self._workers if worker.job is None), None)
                if worker is None and len(self._workers) >= self.limit:
                    return
                self._queue.remove(job)
                self._hand(job, worker)

    def _next(self) -> _Job | None:
        """Return the first waiting job whose time has come."""
        now = time.monotonic()
        return next((job for job in self._queue if job.begins <= now), None)

    def _hand(self, job: _Job, worker: _Worker | None) -> None:
        """Give a job to an idle worker, or to a new one."""
        try:
            if worker is None:
                job.folder.write(JobState("queued", stage="starting a worker"))
                worker = self._start()
        except OSError as error:
            reason = error.strerror or str(error)
            self._end(job, "failed", f"No worker process could be started: {reason}.")
            return
        job.attempts += 1
        worker.job = job
        worker.send(str(job.folder.path))

    def _start(self) -> _Worker:
        self._started += 1
        log = self.folder / f".worker-{self._presence.token}-{self._started}.log"
        worker = _Worker((*self.command, str(self.home)), log)
        worker.listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        worker.listener.start()
        self._workers.append(worker)
        return worker

    def _listen(self, worker: _Worker) -> None:
        """Free a worker at each answer; bury it when its output ends."""
        for answer in worker.answers():
            job, _, unwritten = answer.partition(" ")
            with self._lock:
                if worker.job is not None and worker.job.folder.id == job:
                    if unwritten:
                        self._unwritten[job] = JobState(**json.loads(unwritten))
                    worker.job = None
                self._dispatch()
        with contextlib.suppress(OSError):
            RunStore(self.home).sweep()
        with self._lock:
            if worker in self._workers:  # else `close` has ended it
                self._workers.remove(worker)
                self._account(worker)
            worker.bury()
            self._dispatch()

    def _account(self, worker: _Worker) -> None:
        """Say what became of the job of a dead worker."""
        job = worker.job
        state = "done" if job is None else _state_of(job.folder)
        if job is None or state in ENDED:
            return  # without work, or between finishing it and saying so
        if job.cancelled:
            self._end(job, "cancelled", _CANCELLED)
        elif state == "queued" and job.attempts == 1:
            self._queue.appendleft(job)  # it died before it began: another worker may have it
        else:
            with contextlib.suppress(OSError), job.folder.log_file.open("ab") as log:
                log.write(worker.log.read_bytes())
            self._end(job, "failed", worker.cause_of_death())

    def _kill(self, job: _Job) -> None:
        with self._lock:
            for worker in self._workers:
                if worker.job is job:
                    worker.kill()

    def _end(self, job: _Job, state: str, message: str) -> None:
        try:
            job.folder.end(state, message)
        except (OSError, ValueError):
            self._unwritten[job.folder.id] = JobState(state, message=message, ended=time.time())

    def _refuse(self, kind: str, spec: dict[str, Any], error: OSError) -> str:
        """Remember a job that could not be noted."""
        told = f"The job could not be noted in {self.folder}"
        msg = str(refused(told, error, "free some space, then start it again"))
        job = uuid.uuid4().hex[:12]
        self._refused[job] = JobStatus(
            id=job,
            kind=kind,
            state="failed",
            stage="",
            fraction=0.0,
            iteration=None,
            curve=[],
            seconds=0.0,
            seconds_left=None,
            result={},
            message=msg,
            spec=spec,
        )
        while len(self._refused) > _CURVES_KEPT:
            self._refused.popitem(last=False)
        return job

    def _ending(self, folder: JobFolder, state: JobState) -> bool:
        return state.state == "running" and folder.requested("cancel")

    def _curve(self, folder: JobFolder) -> list[tuple[int, float]]:
        with self._lock:
            curve = self._curves.setdefault(folder.id, Curve(folder.curve_file))
            self._curves.move_to_end(folder.id)
            while len(self._curves) > _CURVES_KEPT:
                self._curves.popitem(last=False)
            return curve.read()

    def _clean(self) -> None:
        """Remove folders of jobs that were over long ago, and signs of servers that are gone."""
        self._presence.sweep()
        for log in self.folder.glob(".worker-*"):
            if not self._presence.alive(log.name.removeprefix(".worker-").rpartition("-")[0]):
                log.unlink(missing_ok=True)
        open_ids = {job.folder.id for job in self._open()}
        folders = [path for path in self.folder.glob("[0-9a-f]*") if path.name not in open_ids]
        ages = sorted((_age(path), path) for path in folders)
        for place, (age, path) in enumerate(ages):
            if age > FOLDER_DAYS * 86_400 or place >= FOLDERS_KEPT:
                atomic.remove(path)
        atomic.sweep(self.folder)

    def _is_over(self, job: _Job) -> bool:
        """Whether the worker has ended the job, though its answer may still be on the way."""
        return job.folder.id in self._unwritten or _state_of(job.folder) in ENDED


def _state_of(folder: JobFolder) -> str:
    """Return the state in the folder; that of a folder that was tampered with is unknown."""
    try:
        return folder.read().state
    except _UNREADABLE:
        return "unknown"


def _age(path: Path) -> float:
    for file in (path / "status.json", path):
        with contextlib.suppress(OSError):
            return time.time() - file.stat().st_mtime
    return 0.0
