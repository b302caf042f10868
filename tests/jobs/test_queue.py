"""Jobs in processes that wait instead of computing."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs import queue
from appca.jobs.queue import Jobs
from appca.runs.home import is_served
from appca.runs.run import RunConfig
from appca.words import InputError
from tests.jobs.waiting import ended, is_alive, runs, until, workers

FAKE = (sys.executable, "-m", "tests.jobs.fake_worker")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, command=FAKE)
    yield jobs
    jobs.close()


def gated(path: Path, name: str) -> dict:
    return {"gate": str(path / name)}


def states(jobs: Jobs, ids: list[str]) -> list[str]:
    return [jobs.status(job).state for job in ids]


def test_two_workers_do_jobs_in_the_order_in_which_they_came_and_stay_warm(jobs, tmp_path):
    ids = [jobs.submit("wait", gated(tmp_path, name)) for name in "abcd"]
    runs(jobs, ids[0])
    runs(jobs, ids[1])
    assert states(jobs, ids) == ["running", "running", "queued", "queued"]
    assert [status.id for status in jobs.active()] == ids
    (tmp_path / "b").touch()
    second = ended(jobs, ids[1])
    runs(jobs, ids[2])
    assert jobs.status(ids[3]).state == "queued"
    for name in "acd":
        (tmp_path / name).touch()
    first, third, last = (ended(jobs, ids[place]) for place in (0, 2, 3))
    assert [s.state for s in (first, second, third, last)] == ["done"] * 4
    assert third.result == second.result, "the third job ran in the worker that was free"
    assert first.result != second.result, "two jobs at once need two processes"
    assert jobs.active() == []


def test_jobs_that_make_the_same_are_one_until_it_is_over(jobs, tmp_path):
    ids: list[str] = []
    submit = lambda: ids.append(jobs.submit("wait", gated(tmp_path, "a")))  # noqa: E731
    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1
    assert jobs.submit("wait", gated(tmp_path, "a"), key="k") != ids[0]
    (tmp_path / "a").touch()
    ended(jobs, ids[0])
    assert jobs.submit("wait", gated(tmp_path, "a")) != ids[0], "what is over is not joined"


def test_progress_carries_the_curve_of_the_last_stage(jobs, tmp_path):
    job = jobs.submit("climb", {"passes": 30, **gated(tmp_path, "a")})
    until(lambda: jobs.status(job).stage == "waiting for the gate", "the climb")
    status = jobs.status(job)
    assert status.curve == [(i, -100.0 / i) for i in range(1, 31)]
    assert status.fraction == 1.0, "a bar never runs backwards, though the gate reports a half"
    (tmp_path / "a").touch()
    assert ended(jobs, job).seconds_left is None


def test_a_cancelled_job_is_gone_at_once_whatever_it_does_and_another_begins(jobs, tmp_path):
    pid_file = tmp_path / "pid"
    job = jobs.submit("deaf", {"pid_file": str(pid_file)})
    until(lambda: pid_file.exists() and pid_file.read_text(), "a deaf worker")
    assert jobs.cancel(job)
    assert jobs.status(job).state == "cancelled"
    until(lambda: not is_alive(int(pid_file.read_text())), "the worker to be gone", seconds=2)
    assert not jobs.cancel(job), "a job that is over cannot be cancelled"
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gated(tmp_path, "a"))).state == "done"


def test_a_waiting_job_is_cancelled_and_never_runs(jobs, tmp_path):
    ids = [jobs.submit("wait", gated(tmp_path, name)) for name in "abc"]
    assert jobs.cancel(ids[2])
    for name in "abc":
        (tmp_path / name).touch()
    ended(jobs, ids[0])
    ended(jobs, ids[1])
    assert states(jobs, ids) == ["done", "done", "cancelled"]


def test_a_job_that_is_to_begin_later_lets_others_pass_until_it_is_asked_for(jobs, tmp_path):
    later = jobs.submit("wait", gated(tmp_path, "later"), after=3600.0)
    soon = jobs.submit("wait", gated(tmp_path, "soon"), after=0.05)
    runs(jobs, soon)
    assert jobs.status(later).state == "queued"
    assert jobs.submit("wait", gated(tmp_path, "later"), after=1800.0) == later
    assert jobs.status(later).state == "queued"
    assert jobs.submit("wait", gated(tmp_path, "later")) == later
    runs(jobs, later)


def test_the_job_of_a_preview_can_be_left_unless_a_person_has_asked_for_it(jobs, tmp_path):
    left = jobs.submit("wait", gated(tmp_path, "left"), asked=False)
    jobs.leave(left)
    assert jobs.status(left) is None, "it may begin again"
    asked = jobs.submit("wait", gated(tmp_path, "asked"), asked=False)
    assert jobs.submit("wait", gated(tmp_path, "asked")) == asked
    jobs.leave(asked)
    assert jobs.status(asked).state == "running"


def test_only_a_running_fit_can_be_kept(jobs, tmp_path):
    fit = jobs.submit("fit", {"config": {}})
    other = jobs.submit("wait", gated(tmp_path, "a"))
    waiting = jobs.submit("fit", {"config": {}, "second": 1})
    runs(jobs, fit)
    runs(jobs, other)
    assert not jobs.keep(other)
    assert not jobs.keep(waiting)
    assert jobs.keep(fit)
    assert ended(jobs, fit).result == {"kept": True}
    runs(jobs, waiting)
    assert jobs.status(waiting).state == "running", "the request was for the fit before"


def test_a_killed_worker_gives_one_sentence_and_the_log_has_its_last_words(jobs, tmp_path):
    status = ended(jobs, jobs.submit("die", {}))
    assert status.state == "failed"
    assert status.message == (
        "The worker process ended before the job finished "
        "(signal 9, possibly out of memory); start it again."
    )
    assert "last words" in jobs.log.read_text()
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gated(tmp_path, "a"))).state == "done"


@pytest.mark.parametrize(
    ("error", "text", "sentence"),
    [
        ("value", "K must be\n smaller.", "K must be smaller."),
        ("key", "x", "The job failed unexpectedly (KeyError: 'x'); see {log}."),
        ("memory", "", "There is not enough memory; use fewer rows or fewer features."),
    ],
)
def test_an_error_becomes_one_sentence_and_its_trace_goes_to_the_log(jobs, error, text, sentence):
    status = ended(jobs, jobs.submit("refuse", {"error": error, "text": text}))
    assert (status.state, status.message) == ("failed", sentence.format(log=jobs.log))
    assert "refusing" in jobs.log.read_text()
    assert "Traceback" in jobs.log.read_text()


def test_a_worker_killed_while_it_writes_a_run_leaves_a_clean_store(jobs, tmp_path):
    config = RunConfig("d" * 64, {}, "PPCA", {})
    status = ended(jobs, jobs.submit("die_saving", {"config": config.to_dict()}))
    assert status.state == "failed"
    assert list((tmp_path / "runs").iterdir()) == [], "not even a draft is left"


def test_a_worker_that_cannot_start_fails_its_job_in_one_sentence(tmp_path):
    for command, sentence in [
        ((sys.executable, "-c", "raise SystemExit('no luck')"), "exit code 1"),
        ((str(tmp_path / "no-python"),), "could be started: No such file or directory."),
    ]:
        jobs = Jobs(tmp_path, command=command)
        try:
            assert sentence in ended(jobs, jobs.submit("wait", {})).message
        finally:
            jobs.close()


def test_closing_ends_workers_and_says_so_of_their_jobs(tmp_path):
    jobs = Jobs(tmp_path, workers=1, command=FAKE)
    running = jobs.submit("deaf", {"pid_file": str(tmp_path / "pid")})
    queued = jobs.submit("wait", gated(tmp_path, "a"))
    until((tmp_path / "pid").exists, "a worker")
    pids = [worker.pid for worker in workers(jobs)]
    jobs.close()
    assert not any(is_alive(pid) for pid in pids)
    for job in (running, queued):
        assert jobs.status(job).state == "failed"
        assert jobs.status(job).message.startswith("The app was closed")
    with pytest.raises(InputError, match="app was closed"):
        jobs.submit("wait", {})


SERVER = """
import sys, time
from pathlib import Path
from appca.jobs.queue import Jobs
from appca.runs.home import is_served
assert is_served(hold=True) is None
jobs = Jobs(Path(sys.argv[1]), command=(sys.executable, "-m", "tests.jobs.fake_worker"))
jobs.submit("deaf", {"pid_file": sys.argv[1] + "/pid"})
time.sleep(600)
"""


def test_a_home_has_one_server_and_is_free_with_its_workers_once_that_is_killed(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("APPCA_HOME", str(tmp_path))
    assert is_served() is None
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)])
    pid_file = tmp_path / "pid"
    until(lambda: pid_file.exists() and pid_file.read_text(), "its worker")
    assert (
        is_served()
        == is_served(hold=True)
        == (
            f"Another appca serves {tmp_path}; use that one, close it, or name another folder in "
            "APPCA_HOME."
        )
    )
    server.kill()
    server.wait()
    until(lambda: not is_alive(int(pid_file.read_text())), "the worker to follow its server")
    assert is_served() is None


def test_an_idle_worker_that_was_killed_costs_no_job(jobs, tmp_path):
    (tmp_path / "a").touch()
    first = ended(jobs, jobs.submit("wait", gated(tmp_path, "a")))
    until(lambda: jobs._pool._idle, "its worker to be free")
    os.kill(first.result["worker"], 9)
    time.sleep(0.05)
    second = ended(jobs, jobs.submit("wait", gated(tmp_path, "a")))
    assert second.state == "done"
    assert second.result != first.result


@pytest.mark.parametrize("job_id", ["", "../../etc/passwd", "0" * 12, None])
def test_an_unknown_job_has_no_status(jobs, job_id):
    assert jobs.status(job_id) is None
    assert not jobs.cancel(job_id)
    assert not jobs.keep(job_id)


def test_so_many_jobs_that_are_over_are_remembered(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(queue, "REMEMBERED", 2)
    ids = [jobs.submit("wait", gated(tmp_path, name), after=3600.0) for name in "abc"]
    for job in ids:
        jobs.cancel(job)
    assert [jobs.status(job) is not None for job in ids] == [False, True, True]


def test_all_jobs_about_something_end_before_it_is_deleted(jobs, tmp_path):
    spec = gated(tmp_path, "never") | {"dataset": "a" * 64}
    doomed = [jobs.submit("wait", spec | {"of": one}) for one in ("one", "two")]
    other = jobs.submit("wait", gated(tmp_path, "later"))
    runs(jobs, doomed[0])
    runs(jobs, doomed[1])
    jobs.end(["a" * 64])
    assert states(jobs, doomed) == ["cancelled"] * 2
    assert [status.id for status in jobs.active()] == [other]
    jobs.end()
    assert jobs.active() == []
