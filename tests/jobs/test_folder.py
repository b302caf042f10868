"""What is left of a job when it is over: sealed, so that damage to it is seen."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs.queue import Jobs
from appca.runs.check import findings
from tests.jobs.waiting import ended, until


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, command=(sys.executable, "-m", "tests.jobs.fake_worker"))
    yield jobs
    jobs.close()


def test_curve_and_log_are_sealed_however_a_job_ends(jobs, tmp_path):
    (tmp_path / "gate").touch()
    done = jobs.submit("climb", {"passes": 3, "gate": str(tmp_path / "gate")})
    dead = jobs.submit("die", {})
    assert [ended(jobs, job).state for job in (done, dead)] == ["done", "failed"]
    folders = [tmp_path / "jobs" / job for job in (done, dead)]
    until(lambda: all((folder / "sealed.json").exists() for folder in folders), "the seals")
    assert list(findings(tmp_path)) == []
    changed = [folders[0] / "curve.csv", folders[0] / "status.json", folders[1] / "log.txt"]
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
