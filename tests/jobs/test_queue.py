"""The queue: order, keys, progress, Stop, Cancel, dead workers, full disks; processes below it."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from appca.jobs import queue
from appca.jobs.queue import Jobs
from appca.jobs.tasks import Context
from appca.jobs.worker import work
from appca.processes import Child, Ended, Pool, environment, start_compiler
from appca.runs.home import is_served
from appca.runs.run import RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.words import InputError
from tests.jobs.waiting import ended, is_alive, runs, until, workers
from tests.ui.conftest import address, healthy, start

__all__ = ["start"]  # the fixture
FAKE = (sys.executable, "-m", "tests.jobs.fake_worker")
Begin = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Jobs]:
    """Two workers, so that their imports are paid for once."""
    with closing(Jobs(tmp_path_factory.mktemp("home"), command=FAKE)) as jobs:
        yield jobs


@pytest.fixture
def jobs(server: Jobs, tmp_path: Path) -> Iterator[Jobs]:
    yield server
    for job in server.active():
        if job.state == "queued":
            server.cancel(job.id)
    (tmp_path / "all").touch()
    until(lambda: not any(server.keep(job.id) for job in server.active()), "fits to be kept")
    until(lambda: not server.active(), "the end of all jobs")


@pytest.fixture
def begin(jobs: Jobs, tmp_path: Path) -> Begin:
    """Return what submits a job that waits for a file of its name, or for the end of the test."""

    def submit(name: str, kind: str = "wait", passes: int = 0, **how: object) -> str:
        spec = {"gates": [str(tmp_path / one) for one in (name, "all")], "passes": passes}
        return jobs.submit(kind, spec, **how)

    return submit


def states(jobs: Jobs, ids: list[str]) -> list[str]:
    return [jobs.status(job).state for job in ids]


def test_two_workers_do_jobs_in_the_order_in_which_they_came_and_stay_warm(jobs, begin, tmp_path):
    ids = [begin(name) for name in "abcde"]
    runs(jobs, ids[0])
    runs(jobs, ids[1])
    assert states(jobs, ids) == ["running", "running", "queued", "queued", "queued"]
    assert [status.id for status in jobs.active()] == ids
    assert jobs.cancel(ids[4])
    (tmp_path / "b").touch()
    ended(jobs, ids[1])
    runs(jobs, ids[2])
    assert jobs.status(ids[3]).state == "queued"
    for name in "acde":
        (tmp_path / name).touch()
    first, second, third, *_ = [ended(jobs, job) for job in ids]
    assert states(jobs, ids) == ["done"] * 4 + ["cancelled"], "what is cancelled never runs"
    assert third.result == second.result, "the third job ran in the worker that was free"
    assert first.result != second.result, "two jobs at once need two processes"
    assert jobs.active() == []
    until(lambda: len(jobs._pool._idle) == 2, "both workers to be free")
    jobs._pool._idle[-1].kill()
    jobs._pool._idle[-1].process.wait()
    job = begin("a")
    assert job != ids[0], "what is over is not joined"
    assert ended(jobs, job).state == "done", "an idle worker that was killed costs no job"


def test_jobs_that_make_the_same_are_one_and_those_of_a_preview_can_be_left(jobs, begin):
    with ThreadPoolExecutor(8) as threads:
        (first,) = set(threads.map(lambda _: begin("a"), range(8)))
    asked = begin("asked", asked=False)
    assert asked != first
    assert begin("a", key="k") != first
    left = begin("left", asked=False)
    jobs.leave(left)
    assert jobs.status(left) is None, "it may begin again"
    assert begin("asked") == asked
    jobs.leave(asked)
    assert jobs.status(asked).state == "running", "a person has asked for it"


def test_progress_carries_the_curve_of_the_last_stage(jobs, begin, tmp_path):
    job = begin("a", "climb", 30)
    until(lambda: jobs.status(job).stage == "waiting for the gate", "the climb")
    status = jobs.status(job)
    assert status.curve == [(i, -100.0 / i) for i in range(1, 31)]
    assert status.fraction == 1.0, "a bar never runs backwards, though the gate reports a half"
    (tmp_path / "a").touch()
    assert ended(jobs, job).seconds_left is None


def test_a_cancelled_job_is_gone_at_once_whatever_it_does_and_another_begins(jobs, begin, tmp_path):
    pid_file = tmp_path / "pid"
    job = jobs.submit("deaf", {"pid_file": str(pid_file)})
    until(lambda: pid_file.exists() and pid_file.read_text(), "a deaf worker")
    assert jobs.cancel(job)
    assert jobs.status(job).state == "cancelled"
    until(lambda: not is_alive(int(pid_file.read_text())), "the worker to be gone", seconds=2)
    assert not jobs.cancel(job), "a job that is over cannot be cancelled"
    (tmp_path / "a").touch()
    assert ended(jobs, begin("a")).state == "done"


def test_a_job_that_is_to_begin_later_lets_others_pass_until_it_is_asked_for(jobs, begin):
    later, soon = begin("later", after=3600.0), begin("soon", after=0.05)
    runs(jobs, soon)
    assert begin("later", after=1800.0) == later
    assert jobs.status(later).state == "queued"
    assert begin("later") == later
    runs(jobs, later)


def test_only_a_running_fit_can_be_kept(jobs, begin):
    fit, other, waiting = begin("x", "fit"), begin("a"), begin("y", "fit")
    runs(jobs, fit)
    runs(jobs, other)
    assert not jobs.keep(other)
    assert not jobs.keep(waiting)
    assert jobs.keep(fit)
    assert ended(jobs, fit).result == {"kept": True}
    runs(jobs, waiting)
    assert jobs.status(waiting).state == "running", "the request was for the fit before"


def test_jobs_that_are_unknown_over_or_of_what_is_deleted(jobs, tmp_path, monkeypatch):
    for job in ("", "../../etc/passwd", "0" * 12, None):
        assert (jobs.status(job), jobs.cancel(job), jobs.keep(job)) == (None, False, False)
    never = {"gates": [str(tmp_path / "never")]}
    doomed = jobs.submit("wait", never | {"dataset": "a" * 64})
    other = jobs.submit("wait", never)
    runs(jobs, doomed)
    jobs.end(["a" * 64])
    assert jobs.status(doomed).state == "cancelled"
    assert [status.id for status in jobs.active()] == [other]
    jobs.end()
    assert jobs.active() == []
    monkeypatch.setattr(queue, "REMEMBERED", 2)
    ids = [jobs.submit("wait", never | {"of": name}, after=3600.0) for name in "abc"]
    for job in ids:
        jobs.cancel(job)
    assert [jobs.status(job) is not None for job in ids] == [False, True, True]


ENDS: list[tuple[str, dict, str]] = [  # kind, spec, sentence
    ("refuse", {"error": "value", "text": "K must\n be so."}, "K must be so."),
    ("refuse", {"error": "key", "text": "x"}, "failed unexpectedly (KeyError: 'x'); see {log}."),
    ("refuse", {"error": "memory", "text": ""}, "not enough memory; use fewer rows or fewer feat"),
    ("die", {}, "ended before the job finished (signal 9, possibly out of memory); start it a"),
    ("full", {"then": "finish"}, ""),
    ("full", {"then": "refuse"}, "K must be smaller."),
    ("full", {"then": "chatter"}, "The disk or the network refused (File too large); see {log}."),
]


def test_how_a_job_ended_is_told_in_a_sentence_and_closing_ends_workers(tmp_path):
    jobs = Jobs(tmp_path, workers=1, command=FAKE)
    try:
        for kind, spec, sentence in ENDS:
            status = ended(jobs, jobs.submit(kind, spec))
            assert status.state == ("failed" if sentence else "done"), status.message
            assert sentence.format(log=jobs.log) in status.message
            assert status.result == ({} if sentence else {"answer": 42})
            if kind == "full":  # the process has no disk any more
                until(lambda: jobs._pool._idle, "the worker to be free")
                jobs._pool._idle[0].kill()
                jobs._pool._idle[0].process.wait()
        text = jobs.log.read_text()
        assert all(words in text for words in ("last words", "refusing\n", "Traceback"))
        running = jobs.submit("deaf", {"pid_file": str(tmp_path / "pid")})
        queued = jobs.submit("wait", {"gates": []})
        until((tmp_path / "pid").exists, "a worker")
        pids = [worker.pid for worker in workers(jobs)]
    finally:
        jobs.close()
    assert not any(is_alive(pid) for pid in pids)
    for job in (running, queued):
        assert jobs.status(job).state == "failed"
        assert jobs.status(job).message.startswith("The app was closed")
    with pytest.raises(InputError, match="app was closed"):
        jobs.submit("wait", {})
    for command, sentence in [
        ((sys.executable, "-c", "raise SystemExit('no luck')"), "exit code 1"),
        ((str(tmp_path / "no-python"),), "could be started: No such file or directory."),
    ]:
        with closing(Jobs(tmp_path, command=command)) as jobs:
            assert sentence in ended(jobs, jobs.submit("wait", {})).message


def test_what_dead_workers_left_is_removed_by_the_next_server(jobs):
    config, home = RunConfig("d" * 64, {}, "PPCA", {}), jobs.home
    assert ended(jobs, jobs.submit("die_saving", {"config": config.to_dict()})).state == "failed"
    assert list((home / "runs").iterdir()) == [], "not even a draft is left"
    left = [home / "runs" / f".{letter * 32}" for letter in "ab"]
    for folder in left:
        folder.mkdir()
        (folder / "arrays.npz").write_bytes(b"half")
    with files.draft_folder(home / "runs") as own:
        Jobs(home, command=FAKE).close()
        assert own.exists(), "that of a living process is left alone"
    assert not any(folder.exists() for folder in left)
    assert RunStore(home).list() == []


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


def test_a_home_has_one_server_and_is_free_once_that_is_killed(tmp_path, monkeypatch):
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


FIT = {"dataset": "0" * 64, "preprocessing": {}, "model": "aPPCA", "parameters": defaults("aPPCA")}
WRITTEN: list[tuple[str, dict, str]] = [  # by a stranger: kind, spec, a part of the sentence
    ("cook", {}, "There is no job of the kind “cook”; choose fit, umap, download, study, proj"),
    ("fit", {}, "The job failed unexpectedly (KeyError: 'config'); see "),
    ("fit", {"config": FIT | {"dataset": "../../etc"}}, "no stored data set “../../etc”; choose"),
    ("fit", {"config": FIT}, "There is no stored data set “000000000000…”; choose one from"),
    ("fit", {"config": FIT | {"model": "Oracle"}}, "There is no model “Oracle”; choose one of a"),
    ("umap", {"dataset": 7}, "it has 7 for “dataset”, where a text belongs"),
    ("download", {"key": "../etc"}, "There is no built-in data set '../etc'; choose one of dig"),
    ("download", {"key": "mnist", "options": {"n": -4}}, "number from 2 to 70,000; got -4."),
    ("project", {"key": "../..", "run": "../.."}, "not there any more; open both again."),
    ("study", {"study": "table9", "options": {}}, "There is no experiment “table9”"),
]


def test_a_forged_job_ends_with_a_sentence_and_a_forged_address_is_forgotten(tmp_path, start):
    for kind, spec, sentence in WRITTEN:
        last = work(kind, spec, Context(tmp_path))
        assert (last["state"], sentence in last["message"]) == ("failed", True), last
        assert list(tmp_path.iterdir()) == [], "nothing was stored"
    assert "job" not in address(healthy(start(job=f"../../etc/passwd,{'a' * 60_000}")))


def echo() -> Child:
    command = (sys.executable, "-m", "tests.jobs.echo")
    return Child(command, environment(1), stderr=subprocess.DEVNULL)


@pytest.fixture
def child() -> Iterator[Child]:
    child = echo()
    yield child
    child.end()


def test_one_process_answers_one_request_after_the_other_tells_news_and_ends(child):
    heard: list[int] = []
    first = child.ask({"say": "a\nb ü", "news": 3}, heard.append)
    assert heard == [0, 1, 2]
    assert first == {"said": "a\nb ü", "process": child.pid, "nice": os.nice(0) + 3}
    assert child.ask({"say": 2})["said"] == 2
    assert child.is_alive
    with pytest.raises(Ended):
        child.ask({"exit": 5})
    assert child.process.wait() == 5
    assert not child.is_alive
    with pytest.raises(Ended):
        child.ask({"say": 1})


def test_a_process_that_is_killed_or_loses_its_input_ends_in_the_middle_of_its_work(child):
    with pytest.raises(Ended):
        child.ask({"hang": 1, "news": 1}, lambda _: child.kill())
    assert child.end() == -9
    other = echo()
    with pytest.raises(Ended):
        other.ask({"hang": 1, "news": 1}, lambda _: other.process.stdin.close())
    assert other.process.wait(60) == 0
    other.end()


def test_modules_compile_in_a_process_of_their_own():
    assert start_compiler(["appca.canvas.image_placement"]).wait(60) == 0
    assert start_compiler(["appca.no_such_module"]).wait(60) != 0


def test_a_pool_lends_so_many_keeps_fewer_replaces_the_dead_and_ends_all():
    pool, together, begun = Pool(echo, 2, 1), threading.Barrier(2), threading.Event()

    def ask(_: int) -> tuple[int, int]:
        with pool.lent() as child:
            together.wait(60)  # two at a time, or never
            return len(pool._lent), child.ask({"say": 1})["said"]

    def hang() -> None:
        with pool.lent() as child:
            child.ask({"hang": 1, "news": 1}, lambda _: begun.set())

    pool.warm()
    with ThreadPoolExecutor(4) as threads:
        lent, said = zip(*threads.map(ask, range(4)), strict=True)
        assert (max(lent), said, len(pool._idle)) == (2, (1,) * 4, 1)
        with pytest.raises(Ended), pool.lent() as child:
            child.ask({"exit": 1})
        assert pool._idle == [], "the dead are not kept"
        hanging = threads.submit(hang)
        assert begun.wait(60)
        pool.end()
        assert isinstance(hanging.exception(60), Ended)
    with pytest.raises(Ended), pool.lent():
        pass
    assert pool._idle == []
