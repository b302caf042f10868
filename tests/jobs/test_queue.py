"""The queue: order, joining by key, progress, Stop, Cancel, dead workers, full disks, forgeries."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs import queue
from appca.jobs.queue import Jobs
from appca.jobs.tasks import Context
from appca.jobs.worker import work
from appca.runs.home import is_served
from appca.runs.run import RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.words import InputError
from tests.jobs.waiting import ended, is_alive, runs, until, workers
from tests.ui.conftest import address, healthy, start

__all__ = ["start"]  # the fixture
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
    ids = [jobs.submit("wait", gated(tmp_path, name)) for name in "abcde"]
    runs(jobs, ids[0])
    runs(jobs, ids[1])
    assert states(jobs, ids) == ["running", "running", "queued", "queued", "queued"]
    assert [status.id for status in jobs.active()] == ids
    assert jobs.cancel(ids[4])
    (tmp_path / "b").touch()
    second = ended(jobs, ids[1])
    runs(jobs, ids[2])
    assert jobs.status(ids[3]).state == "queued"
    for name in "acde":
        (tmp_path / name).touch()
    first, third, last = (ended(jobs, ids[place]) for place in (0, 2, 3))
    assert [s.state for s in (first, second, third, last)] == ["done"] * 4
    assert jobs.status(ids[4]).state == "cancelled", "what is cancelled never runs"
    assert third.result == second.result, "the third job ran in the worker that was free"
    assert first.result != second.result, "two jobs at once need two processes"
    assert jobs.active() == []
    until(lambda: len(jobs._pool._idle) == 2, "both workers to be free")
    for worker in jobs._pool._idle:
        os.kill(worker.pid, 9)
        worker.process.wait()
    job = jobs.submit("wait", gated(tmp_path, "a"))
    assert job != ids[0], "what is over is not joined"
    assert ended(jobs, job).state == "done", "an idle worker that was killed costs no job"


def test_jobs_that_make_the_same_are_one_until_it_is_over(jobs, tmp_path):
    ids: list[str] = []
    submit = lambda: ids.append(jobs.submit("wait", gated(tmp_path, "a")))  # noqa: E731
    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ids), len(set(ids))) == (8, 1)
    assert jobs.submit("wait", gated(tmp_path, "a"), key="k") != ids[0]


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


def test_a_job_that_is_to_begin_later_lets_others_pass_until_it_is_asked_for(jobs, tmp_path):
    later = jobs.submit("wait", gated(tmp_path, "later"), after=3600.0)
    soon = jobs.submit("wait", gated(tmp_path, "soon"), after=0.05)
    runs(jobs, soon)
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


@pytest.mark.parametrize(
    ("kind", "spec", "state", "sentence"),
    [
        (
            *("die", {}, "failed"),
            "The worker process ended before the job finished (signal 9, possibly out of memory); "
            "start it again.",
        ),
        ("refuse", {"error": "value", "text": "K must\n be so."}, "failed", "K must be so."),
        (
            *("refuse", {"error": "key", "text": "x"}, "failed"),
            "The job failed unexpectedly (KeyError: 'x'); see {log}.",
        ),
        (
            *("refuse", {"error": "memory", "text": ""}, "failed"),
            "There is not enough memory; use fewer rows or fewer features.",
        ),
        ("full", {"then": "finish"}, "done", ""),
        ("full", {"then": "refuse"}, "failed", "K must be smaller."),
        (
            *("full", {"then": "chatter"}, "failed"),
            "The disk or the network refused (File too large); see {log}.",
        ),
    ],
)
def test_how_a_job_ended_is_told_in_a_sentence_and_the_next_one_works(
    jobs, tmp_path, kind, spec, state, sentence
):
    status = ended(jobs, jobs.submit(kind, spec))
    assert (status.state, status.message) == (state, sentence.format(log=jobs.log))
    assert status.result == ({"answer": 42} if state == "done" else {})
    if kind != "full":
        text = jobs.log.read_text()
        assert "last words" in text if kind == "die" else "refusing\n" in text
        assert kind == "die" or "Traceback" in text
    (tmp_path / "a").touch()
    if kind != "full":  # the process has no disk any more
        assert ended(jobs, jobs.submit("wait", gated(tmp_path, "a"))).state == "done"


def test_what_dead_workers_left_is_removed_by_the_next_server(jobs, tmp_path):
    config = RunConfig("d" * 64, {}, "PPCA", {})
    status = ended(jobs, jobs.submit("die_saving", {"config": config.to_dict()}))
    assert status.state == "failed"
    assert list((tmp_path / "runs").iterdir()) == [], "not even a draft is left"
    left = [tmp_path / "runs" / f".{letter * 32}" for letter in "ab"]
    for folder in left:
        folder.mkdir()
        (folder / "arrays.npz").write_bytes(b"half")
    with files.draft_folder(tmp_path / "runs") as own:
        Jobs(tmp_path, command=FAKE).close()
        assert own.exists(), "that of a living process is left alone"
    assert not any(folder.exists() for folder in left)
    assert RunStore(tmp_path).list() == []


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
    remedy = "use that one, close it, or name another folder in APPCA_HOME."
    assert is_served() == is_served(hold=True) == f"Another appca serves {tmp_path}; {remedy}"
    server.kill()
    server.wait()
    until(lambda: not is_alive(int(pid_file.read_text())), "the worker to follow its server")
    assert is_served() is None


def test_jobs_that_are_unknown_over_or_of_what_is_deleted(jobs, tmp_path, monkeypatch):
    for job in ("", "../../etc/passwd", "0" * 12, None):
        assert (jobs.status(job), jobs.cancel(job), jobs.keep(job)) == (None, False, False)
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
    monkeypatch.setattr(queue, "REMEMBERED", 2)
    ids = [jobs.submit("wait", gated(tmp_path, name), after=3600.0) for name in "abc"]
    for job in ids:
        jobs.cancel(job)
    assert [jobs.status(job) is not None for job in ids] == [False, True, True]


FIT = {"dataset": "0" * 64, "preprocessing": {}, "model": "aPPCA", "parameters": defaults("aPPCA")}
WRITTEN: list[tuple[str, dict, str]] = [  # by a stranger: kind, spec, a part of the sentence
    (
        "cook",
        {},
        "There is no job of the kind “cook”; choose fit, umap, download, study, project, grid, "
        "stability, models, masked, quality.",
    ),
    ("fit", {}, "The job failed unexpectedly (KeyError: 'config'); see "),
    ("fit", {"config": FIT | {"dataset": "../../etc"}}, "no stored data set “../../etc”; choose"),
    ("fit", {"config": FIT}, "There is no stored data set “000000000000…”; choose one from"),
    ("fit", {"config": FIT | {"model": "Oracle"}}, "There is no model “Oracle”; choose one of a"),
    ("umap", {"dataset": 7}, "it has 7 for “dataset”, where a text belongs"),
    ("download", {"key": "../etc"}, "There is no built-in data set '../etc'; choose one of dig"),
    (
        "download",
        {"key": "mnist", "options": {"n": -4}},
        "The option n of MNIST must be a whole number from 2 to 70,000; got -4.",
    ),
    (
        "project",
        {"key": "../..", "run": "../.."},
        "The fit or the new rows are not there any more; open both again.",
    ),
    ("study", {"study": "table9", "options": {}}, "There is no experiment “table9”"),
    ("grid", {"dataset": 0}, "The job failed unexpectedly (KeyError: 'parameters'); see "),
]


def test_a_forged_job_ends_with_a_sentence_and_a_forged_address_is_forgotten(tmp_path, start):
    for kind, spec, sentence in WRITTEN:
        last = work(kind, spec, Context(tmp_path))
        assert (last["state"], sentence in last["message"]) == ("failed", True), last
        assert list(tmp_path.iterdir()) == [], "nothing was stored"
    for text in ("../../etc/passwd", ",", ",".join(["a" * 12] * 5000), "\0<b>", "0" * 12 + ",x"):
        assert "job" not in address(healthy(start(job=text)))
