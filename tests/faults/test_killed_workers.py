"""Real workers killed at seeded moments of a fit: whole runs or none, and the next job works."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.queue import ENDED, Jobs, JobStatus
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from tests.jobs.waiting import ended, runs, until, workers

KILLED = (
    "The worker process ended before the job finished "
    "(signal 9, possibly out of memory); start it again."
)


class Yard(NamedTuple):
    """A home with tiny data in it, and workers for it."""

    home: Path
    jobs: Jobs
    digest: str

    def fit(self, number: int) -> tuple[str, RunConfig]:
        parameters = {"n_components": 4, "n_active": 2, "random_state": number}
        config = RunConfig(self.digest, {"scale": "feature"}, "aPPCA", parameters)
        spec = {"config": config.to_dict(), "name": f"fit {number}"}
        return self.jobs.submit("fit", spec), config


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    digest = DatasetStore(tmp_path).put(load("wine"))
    jobs = Jobs(tmp_path, workers=1)
    yield Yard(tmp_path, jobs, digest)
    jobs.close()


def moment(jobs: Jobs, seconds: float) -> None:
    later = time.monotonic() + seconds
    until(lambda: time.monotonic() >= later, "a random moment")


def while_it_runs(yard: Yard, job: str, share: float, taken: float) -> None:
    """Wait for a share of the time that a fit takes."""
    moment(yard.jobs, share * taken)


def while_it_writes(yard: Yard, job: str, share: float, taken: float) -> None:
    """Wait until a draft of the run lies there, and for a share of the time to write it."""
    folder = yard.home / "runs"
    until(
        lambda: any(folder.glob(".*")) or yard.jobs.status(job).state in ENDED,
        "a draft, or the end of a fit whose draft was not seen",
    )
    moment(yard.jobs, share * taken / 20)


WAYS: tuple[Callable, ...] = (while_it_runs, while_it_writes)


def whole(yard: Yard, config: RunConfig) -> bool:
    run = RunStore(yard.home).get(config.id)
    return run is not None and run.fitted.scores.shape == (run.info.n_rows, 4)


def check(yard: Yard, status: JobStatus, config: RunConfig) -> None:
    """Compare what was said of a job with what lies on the disk."""
    assert status.state in {"done", "failed"}
    if status.state == "failed":
        assert status.message == KILLED
    else:
        assert status.result == {"run": config.id}
        assert whole(yard, config), "shown as done, so it is there"
    store = RunStore(yard.home)
    assert store.damaged() == {}
    assert {path.name for path in store.folder.glob("*")} == {run.id for run in store.list()}
    until(lambda: not [*store.folder.glob(".*")], "its drafts to go with the worker")


@pytest.mark.thorough  # test_writing kills a process at every step in every run
@pytest.mark.parametrize(
    "times",
    [2, pytest.param(100, marks=pytest.mark.slow)],
    ids=["each way once", "100 times"],
)
def test_a_worker_killed_at_any_moment_leaves_a_whole_run_or_none(yard, times, seed):
    job, config = yard.fit(0)
    runs(yard.jobs, job)
    began = time.monotonic()
    assert ended(yard.jobs, job).state == "done"
    taken = time.monotonic() - began
    rng = random.Random(seed)
    for number in range(1, times + 1):
        job, config = yard.fit(number)
        runs(yard.jobs, job)
        worker = workers(yard.jobs)[0].pid
        share = (number - 1 + rng.random()) / times
        WAYS[number % 2](yard, job, share, taken)
        os.kill(worker, signal.SIGKILL)
        # Not by /proc, where a process is a zombie while its further threads still end.
        until(lambda pid=worker: pid not in [one.pid for one in workers(yard.jobs)], "its end")
        status = ended(yard.jobs, job)
        check(yard, status, config)
    job, config = yard.fit(times)  # the last one killed, again
    assert ended(yard.jobs, job).state == "done"
    assert whole(yard, config)
