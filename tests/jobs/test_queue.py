import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs import records
from appca.jobs.folder import JobFolder, JobState
from appca.jobs.queue import Jobs
from appca.runs.configuration import RunConfig
from appca.words.errors import InputError
from tests.jobs.waiting import ended, is_alive, runs, until, workers

FAKE = (sys.executable, "-m", "tests.jobs.fake_worker")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path, command=FAKE)
    yield jobs
    jobs.close()


def gated(path: Path, name: str) -> dict:
    return {"gate": str(path / name)}


def test_two_workers_share_three_jobs_and_stay_warm_for_the_next(jobs, tmp_path):
    ids = [jobs.submit("wait", gated(tmp_path, name)) for name in "abc"]
    runs(jobs, ids[0])
    runs(jobs, ids[1])
    assert jobs.status(ids[2]).state == "queued"
    assert [status.id for status in jobs.active()] == ids
    (tmp_path / "b").touch()
    second = ended(jobs, ids[1])
    runs(jobs, ids[2])
    (tmp_path / "a").touch()
    (tmp_path / "c").touch()
    first, third = ended(jobs, ids[0]), ended(jobs, ids[2])
    assert [s.state for s in (first, second, third)] == ["done"] * 3
    assert third.result == second.result, "the third job ran in the worker that was free"
    assert first.result != second.result, "two jobs at once need two processes"
    until(lambda: jobs.active() == [], "an empty list")


def test_the_same_job_submitted_twice_is_one_job_until_it_is_over(jobs, tmp_path):
    first = jobs.submit("wait", gated(tmp_path, "a"))
    assert jobs.submit("wait", gated(tmp_path, "a")) == first
    assert jobs.submit("wait", gated(tmp_path, "other"), key="k") != first
    (tmp_path / "a").touch()
    ended(jobs, first)
    assert jobs.submit("wait", gated(tmp_path, "a")) != first, "what is over is not joined"


def test_many_threads_submitting_one_job_get_one_id(jobs, tmp_path):
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda: ids.append(jobs.submit("wait", gated(tmp_path, "a"))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_progress_carries_the_curve_of_the_last_stage(jobs, tmp_path):
    job = jobs.submit("climb", {"passes": 30, **gated(tmp_path, "a")})
    until(lambda: jobs.status(job).stage == "waiting for the gate", "the climb")
    status = jobs.status(job)
    assert status.curve == [(i, -100.0 / i) for i in range(1, 31)]
    assert status.fraction == 1.0, "a bar never runs backwards, though the gate reports a half"
    (tmp_path / "a").touch()
    assert ended(jobs, job).seconds_left is None


def test_another_server_reads_how_a_job_ended_from_its_folder(jobs, tmp_path):
    job = jobs.submit("climb", {"passes": 5, **gated(tmp_path, "a")})
    until(lambda: jobs.status(job).stage == "waiting for the gate", "the climb")
    other = Jobs(tmp_path, command=FAKE)
    try:
        assert other.active() == []
        (tmp_path / "a").touch()
        ended(jobs, job)
        assert other.status(job)._replace(seconds=0) == jobs.status(job)._replace(seconds=0)
    finally:
        other.close()


def test_a_cancelled_job_ends_softly_and_leaves_its_worker_warm(jobs, tmp_path):
    first = jobs.submit("wait", gated(tmp_path, "never"))
    runs(jobs, first)
    (pid,) = [worker.pid for worker in workers(jobs)]
    assert jobs.cancel(first)
    assert ended(jobs, first).message == "Cancelled; nothing was stored."
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gated(tmp_path, "a"))).result == {"worker": pid}
    assert not jobs.cancel(first), "a job that is over cannot be cancelled"


def test_a_worker_deaf_to_the_request_is_gone_within_two_seconds(jobs, tmp_path):
    pid_file = tmp_path / "pid"
    job = jobs.submit("deaf", {"pid_file": str(pid_file)})
    until(lambda: pid_file.exists() and pid_file.read_text(), "a deaf worker")
    pid = int(pid_file.read_text())
    asked = time.monotonic()
    jobs.cancel(job)
    assert jobs.status(job).stage == "ending"
    until(lambda: not is_alive(pid), "the worker to be gone")
    taken = time.monotonic() - asked
    assert taken < 2.0
    assert ended(jobs, job).state == "cancelled"
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gated(tmp_path, "a"))).state == "done"


def test_a_waiting_job_is_cancelled_at_once_and_never_runs(jobs, tmp_path):
    ids = [jobs.submit("wait", gated(tmp_path, name)) for name in "abc"]
    jobs.cancel(ids[2])
    assert jobs.status(ids[2]).message == "Cancelled before it began."
    for name in "abc":
        (tmp_path / name).touch()
    ended(jobs, ids[0])
    ended(jobs, ids[1])
    assert jobs.status(ids[2]).state == "cancelled"


def test_a_job_that_is_to_begin_later_lets_others_pass_and_is_cancelled_without_a_worker(
    jobs, tmp_path
):
    later = jobs.submit("wait", gated(tmp_path, "later"), after=3600.0)
    ids = [jobs.submit("wait", gated(tmp_path, name)) for name in "ab"]
    for job in ids:
        runs(jobs, job)
        (tmp_path / "ab"[ids.index(job)]).touch()
        ended(jobs, job)
    assert jobs.status(later).state == "queued"
    assert jobs.cancel(later)
    assert jobs.status(later).state == "cancelled"


def test_a_job_begins_when_its_time_has_come_or_when_it_is_asked_for_at_once(jobs, tmp_path):
    soon = jobs.submit("wait", gated(tmp_path, "soon"), after=0.05)
    runs(jobs, soon)
    later = jobs.submit("wait", gated(tmp_path, "later"), after=3600.0)
    assert jobs.submit("wait", gated(tmp_path, "later"), after=1800.0) == later
    assert jobs.status(later).state == "queued"
    assert jobs.submit("wait", gated(tmp_path, "later")) == later
    runs(jobs, later)


def test_only_a_running_fit_can_be_kept(jobs, tmp_path):
    fit = jobs.submit("fit", {"config": {}})
    other = jobs.submit("wait", gated(tmp_path, "a"))
    waiting = jobs.submit("fit", {"config": {}, "second": 1})
    runs(jobs, fit)
    assert not jobs.keep(other)
    assert not jobs.keep(waiting)
    assert jobs.keep(fit)
    assert ended(jobs, fit).result == {"kept": True}


def test_a_killed_worker_gives_one_sentence_and_keeps_the_log(jobs, tmp_path):
    job = jobs.submit("die", {})
    status = ended(jobs, job)
    assert status.state == "failed"
    assert status.message == (
        "The worker process ended before the job finished "
        "(signal 9, possibly out of memory); start it again."
    )
    assert "last words" in (jobs.folder / job / "log.txt").read_text()
    (tmp_path / "a").touch()
    assert ended(jobs, jobs.submit("wait", gated(tmp_path, "a"))).state == "done"


@pytest.mark.parametrize(
    ("error", "text", "sentence"),
    [
        ("value", "K must be\n smaller.", "K must be smaller."),
        ("key", "x", "The job failed unexpectedly (KeyError: 'x'); see {log}."),
        (
            "memory",
            "",
            "There is not enough memory; use fewer rows or fewer features.",
        ),
    ],
)
def test_an_error_becomes_one_sentence_and_its_trace_goes_to_the_log(jobs, error, text, sentence):
    job = jobs.submit("refuse", {"error": error, "text": text})
    status = ended(jobs, job)
    assert (status.state, status.message) == (
        "failed",
        sentence.format(log=jobs.folder / job / "log.txt"),
    )
    assert "refusing" in (jobs.folder / job / "log.txt").read_text()
    assert "Traceback" in (jobs.folder / job / "log.txt").read_text()


def test_a_worker_killed_while_it_writes_a_run_leaves_a_clean_store(jobs, tmp_path):
    config = RunConfig("d" * 64, {}, "PPCA", {})
    status = ended(jobs, jobs.submit("die_saving", {"config": config.to_dict()}))
    assert status.state == "failed"
    assert list((tmp_path / "runs").iterdir()) == [], "not even a draft is left"


def test_an_unknown_kind_is_named(jobs):
    assert "no job of the kind “cook”" in ended(jobs, jobs.submit("cook", {})).message


def test_a_worker_that_cannot_start_fails_its_job_and_does_not_loop(tmp_path):
    jobs = Jobs(tmp_path, command=(sys.executable, "-c", "raise SystemExit('no such luck')"))
    try:
        job = jobs.submit("wait", {})
        assert "exit code 1" in ended(jobs, job).message
        assert "no such luck" in (jobs.folder / job / "log.txt").read_text()
    finally:
        jobs.close()


def test_a_missing_interpreter_is_a_sentence(tmp_path):
    jobs = Jobs(tmp_path, command=(str(tmp_path / "no-python"),))
    try:
        status = ended(jobs, jobs.submit("wait", {}))
        assert status.message == "No worker process could be started: No such file or directory."
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
from tests.jobs.waiting import ended, is_alive, runs, until, workers
jobs = Jobs(Path(sys.argv[1]), command=(sys.executable, "-m", "tests.jobs.fake_worker"))
print(jobs.submit("deaf", {"pid_file": sys.argv[1] + "/pid"}), flush=True)
time.sleep(600)
"""


def test_workers_die_with_a_killed_server_and_the_next_server_knows(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    job = server.stdout.readline().strip()
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "its worker")
    worker = int((tmp_path / "pid").read_text())
    jobs = Jobs(tmp_path, command=FAKE)
    try:
        server.kill()
        server.wait()
        server.stdout.close()
        until(lambda: not is_alive(worker), "the worker to follow its server")
        assert jobs.status(job).state == "failed"
        assert jobs.status(job).message.startswith("The app was closed")
        jobs.records.clean(set())
        assert [path.name for path in jobs.folder.iterdir()] == [job]
    finally:
        jobs.close()


def test_an_idle_worker_that_was_killed_costs_no_job(jobs, tmp_path):
    (tmp_path / "a").touch()
    first = ended(jobs, jobs.submit("wait", gated(tmp_path, "a")))
    os.kill(first.result["worker"], 9)
    second = ended(jobs, jobs.submit("wait", gated(tmp_path, "a")))
    assert second.state == "done"
    assert second.result != first.result


def test_old_job_folders_are_removed_and_recent_ones_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDERS_KEPT", 3)
    folders = []
    for age in (9, 4, 3, 2, 1, 0):  # days
        folder = JobFolder.create(tmp_path / "jobs", {"kind": "wait", "spec": {}})
        folder.write(JobState("done"))
        moment = time.time() - age * 86_400
        os.utime(folder.path / "status.json", (moment, moment))
        folders.append(folder)
    Jobs(tmp_path, command=FAKE).close()
    assert [folder.path.exists() for folder in folders] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("job_id", ["", "../../etc/passwd", "0" * 12, "0" * 13, None])
def test_an_unknown_job_has_no_status(jobs, job_id):
    assert jobs.status(job_id) is None
    assert not jobs.cancel(job_id)
    assert not jobs.keep(job_id)


def test_a_full_disk_at_the_end_of_a_job_is_still_told(jobs, tmp_path, monkeypatch):
    job = jobs.submit("deaf", {"pid_file": str(tmp_path / "pid")})
    until((tmp_path / "pid").exists, "a worker")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(JobFolder, "write", full)
    jobs.cancel(job)
    assert ended(jobs, job).message == "Cancelled; nothing was stored."
    with pytest.raises(InputError, match=r"not be stored.*No space left on device; free some"):
        jobs.submit("wait", {"gate": "x"})


def test_the_job_file_holds_what_was_asked(jobs, tmp_path):
    job = jobs.submit("wait", gated(tmp_path, "a"), key="mine")
    told = json.loads((jobs.folder / job / "job.json").read_text())
    assert (told["kind"], told["spec"], told["key"]) == ("wait", gated(tmp_path, "a"), "mine")


def test_all_jobs_about_something_end_before_it_is_deleted_whoever_waits(jobs, tmp_path):
    spec = gated(tmp_path, "never") | {"dataset": "a" * 64}
    doomed = [jobs.submit("wait", spec | {"of": one}, owner=one) for one in ("one", "two")]
    other = jobs.submit("wait", gated(tmp_path, "later"))
    runs(jobs, doomed[0])
    runs(jobs, doomed[1])
    jobs.end(["a" * 64])
    assert [jobs.status(job).state for job in doomed] == ["cancelled"] * 2
    assert [status.id for status in jobs.active()] == [other]
    jobs.end()
    assert jobs.active() == []
