"""What is left of a job when it is over: sealed, so that damage to it is seen."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs.queue import Jobs
from appca.runs.check import findings
from tests.jobs.waiting import ended, runs, until


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, command=(sys.executable, "-m", "tests.jobs.fake_worker"))
    yield jobs
    jobs.close()


def test_end_and_log_are_sealed_however_a_job_ends(jobs, tmp_path):
    refused = {"error": "value", "text": "No."}
    ids = [jobs.submit("die", {}), jobs.submit("refuse", refused), jobs.submit("fit", {})]
    runs(jobs, ids[2])
    assert jobs.keep(ids[2])
    assert [ended(jobs, job).state for job in ids] == ["failed", "failed", "done"]
    assert list(findings(tmp_path)) == []
    names = ["log.txt", "log.txt", "status.json"]
    changed = [tmp_path / "jobs" / job / name for job, name in zip(ids, names, strict=True)]
    for file in changed:
        content = bytearray(file.read_bytes())
        content[3] ^= 1
        file.write_bytes(content)
    assert sorted(one.file for one in findings(tmp_path)) == sorted(changed)


def test_a_job_that_waits_is_no_damage(jobs, tmp_path):
    job = jobs.submit("wait", {"gate": str(tmp_path / "gate")})
    until(lambda: jobs.status(job).state == "running", "the job to run")
    assert list(findings(tmp_path)) == []
    (tmp_path / "gate").touch()
    assert ended(jobs, job).state == "done"
