"""Jobs on a full disk: told once, and the queue goes on."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs.queue import Jobs
from appca.runs.store import RunStore
from appca.storage import files
from tests.jobs.waiting import ended, until

FULL = (sys.executable, "-m", "tests.faults.full_worker")
FAKE = (sys.executable, "-m", "tests.jobs.fake_worker")
DISK = "The disk or the network refused (File too large); see {log}."


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, command=FULL)
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
    assert (status.state, status.message) == (state, message.format(log=full.log))
    assert status.result == ({"answer": 42} if kind == "finish" else {})
    until(lambda: len(full._pool._idle) == 1, "the worker, which lives, to be free")
    assert full.submit(kind, {}) != job, "what is over is not joined"


def test_the_next_server_removes_what_workers_left_that_died_with_the_last(tmp_path):
    left = [tmp_path / kind / f".{letter * 32}" for kind in ("runs",) for letter in "ab"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "arrays.npz").write_bytes(b"half")
    with files.draft_folder(tmp_path / "runs") as own:
        Jobs(tmp_path, command=FAKE).close()
        assert own.exists(), "that of a living process is left alone"
    assert not any(folder.exists() for folder in left)
    assert RunStore(tmp_path).list() == []
