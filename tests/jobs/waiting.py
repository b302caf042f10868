"""Wait for a condition in another process by polling, with a deadline."""

import time
from collections.abc import Callable
from pathlib import Path

from appca.jobs.queue import ENDED, Jobs, JobStatus
from appca.processes import Child


def until(question: Callable[[], object], what: str, seconds: float = 90.0) -> object:
    """Ask again until the answer is true; the deadline is for what never happens."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"
        time.sleep(0.005)
    return answer


def ended(jobs: Jobs, job_id: str) -> JobStatus:
    """Status of a job once it is over."""
    until(lambda: jobs.status(job_id).state in ENDED, f"the end of {jobs.status(job_id)}")
    return jobs.status(job_id)


def runs(jobs: Jobs, job_id: str) -> object:
    """Wait until a worker has told of a job."""
    return until(lambda: jobs.status(job_id).fraction > 0, f"{job_id} to run")


def workers(jobs: Jobs) -> list[Child]:
    """Worker processes that are alive, those at work first."""
    return [one for one in (*jobs._pool._lent, *jobs._pool._idle) if one.is_alive]


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"
