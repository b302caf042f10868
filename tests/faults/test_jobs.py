"""Jobs on a full disk and in tampered folders: told once, and the queue goes on."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs.folder import JobFolder
from appca.jobs.queue import Jobs
from appca.runs.store import RunStore
from appca.storage import atomic
from tests.jobs.waiting import ended, runs, until, workers

FULL = (sys.executable, "-m", "tests.faults.full_worker")
FAKE = (sys.executable, "-m", "tests.jobs.fake_worker")
DISK = "The disk or the network refused (File too large); see {log}."


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, command=FULL)
    yield jobs
    jobs.close()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, workers=1, command=FAKE)
    yield jobs
    jobs.close()


@pytest.mark.parametrize(
    ("kind", "state", "message"),
    [
        ("finish", "done", ""),
        ("refuse", "failed", "K must be smaller."),
        ("report", "done", ""),
        ("chatter", "failed", DISK),
    ],
)
def test_how_a_job_ended_is_told_though_the_disk_does_not_let_it_be_written(
    full, kind, state, message
):
    job = full.submit(kind, {})
    status = ended(full, job)
    said = message.format(log=full.folder / job / "log.txt")
    assert (status.state, status.message) == (state, said)
    assert status.result == ({"answer": 42} if kind == "finish" else {})
    assert len(full._pool._idle) == 1, "the worker lives, and is free"
    assert [path.name for path in (full.folder / job).glob(".*")] == []
    assert full.submit(kind, {}) != job, "what is over is not joined"


def gate(folder: Path, name: str) -> dict:
    return {"gate": str(folder / name)}


TAMPERED = {
    "job.json is gone": lambda path: (path / "job.json").unlink(),
    "job.json is a list": lambda path: (path / "job.json").write_text("[1, 2]"),
    "job.json lacks its kind": lambda path: (path / "job.json").write_text("{}"),
    "status.json is cut": lambda path: (path / "status.json").write_text('{"sta'),
    "status.json is of another shape": lambda path: (path / "status.json").write_text('{"x": 1}'),
    "status.json is a number": lambda path: (path / "status.json").write_text("7"),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("how", TAMPERED)
def test_a_tampered_folder_of_a_running_job_does_not_stop_the_queue(jobs, tmp_path, how):
    job = jobs.submit("wait", gate(tmp_path, "never"))
    runs(jobs, job)
    pid = workers(jobs)[0].pid
    TAMPERED[how](jobs.folder / job)
    jobs.status(job)
    jobs.active()
    jobs.cancel(job)
    os.kill(pid, 9)
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gate(tmp_path, "a"))).state == "done"
    assert jobs.active() == []


def test_a_job_whose_folder_vanished_is_over_and_the_same_can_be_asked_again(jobs, tmp_path):
    job = jobs.submit("wait", gate(tmp_path, "a"))
    runs(jobs, job)
    pid = workers(jobs)[0].pid
    for path in (jobs.folder / job).iterdir():
        path.unlink(missing_ok=True)
    os.kill(pid, 9)
    until(lambda: jobs._find(job) is None, "the end of a job that is nowhere")
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gate(tmp_path, "a"))).state == "done"


def test_the_next_server_removes_what_workers_left_that_died_with_the_last(tmp_path):
    left = [tmp_path / kind / f".{letter * 32}" for kind in ("runs", "jobs") for letter in "ab"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "arrays.npz").write_bytes(b"half")
    with atomic.draft_folder(tmp_path / "runs") as own:
        Jobs(tmp_path, command=FAKE).close()
        assert own.exists(), "that of a living process is left alone"
    assert not any(folder.exists() for folder in left)
    assert RunStore(tmp_path).list() == []


def test_a_job_that_nobody_holds_is_over_and_its_folder_stays_as_it_was(tmp_path):
    told = {"kind": "fit", "spec": {}, "server": "no\nsuch"}  # as earlier versions wrote
    folder = JobFolder.create(tmp_path / "jobs", told)
    jobs = Jobs(tmp_path, command=FAKE)
    try:
        assert jobs.status(folder.id).state == "failed"
        assert json.loads((folder.path / "status.json").read_text())["state"] == "queued"
    finally:
        jobs.close()
