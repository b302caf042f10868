"""How many jobs may wait, and how much memory they may take."""

import sys

import pytest

from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.jobs.queue import Jobs
from appca.jobs.turns import limits
from appca.jobs.turns.limits import Limits
from appca.jobs.turns.needs import Needs, needs_of
from appca.runs.configuration import RunConfig, defaults
from appca.words.errors import InputError
from tests.jobs.test_queue import FAKE, gated
from tests.jobs.waiting import ended, runs

IDLE = (sys.executable, "-c", "import sys; sys.stdin.read()")


def test_300_jobs_are_not_accepted(tmp_path):
    jobs = Jobs(tmp_path, command=IDLE, limits=Limits(waiting=7, waiting_per_visitor=4))
    try:
        for i in range(6):  # two of them run
            jobs.submit("wait", {"i": i}, owner="ann")
        with pytest.raises(InputError) as own:
            jobs.submit("wait", {"i": 6}, owner="ann")
        assert str(own.value) == (
            "4 jobs of yours are waiting, the most allowed; cancel one, or wait until one has "
            "begun."
        )
        for i in range(3):
            jobs.submit("wait", {"i": 10 + i}, owner="bob")
        with pytest.raises(InputError) as all_:
            jobs.submit("wait", {"i": 20}, owner="cy")
        assert str(all_.value) == (
            "7 jobs of all visitors are waiting, the most allowed; start this one again when some "
            "have finished."
        )
        assert jobs.submit("wait", {"i": 5}, owner="cy"), "what waits already may be joined"
        assert len(jobs.active()) == 9, "what was accepted goes on"
    finally:
        jobs.close()


def test_one_person_does_not_fill_the_queue_from_six_windows(tmp_path):
    jobs = Jobs(tmp_path, command=IDLE, limits=Limits(waiting=10, waiting_per_visitor=4))
    try:
        for i in range(6):  # two of them run
            jobs.submit("wait", {"i": i}, owner=f"window-{i} ann")
        with pytest.raises(InputError, match=r"^4 jobs of yours are waiting, the most allowed;"):
            jobs.submit("wait", {"i": 6}, owner="window-6 ann")
        jobs.submit("wait", {"i": 7}, owner="window-7 bob")
    finally:
        jobs.close()


def test_the_work_of_closed_windows_holds_no_place_in_the_queue(tmp_path):
    closed: set[str] = set()
    jobs = Jobs(
        tmp_path,
        command=IDLE,
        is_open=lambda owner: owner not in closed,
        limits=Limits(waiting=4, waiting_per_visitor=4),
    )
    try:
        ids = [jobs.submit("wait", {"i": i}, owner=f"window-{i} ann") for i in range(6)]
        with pytest.raises(InputError, match="4 jobs of all visitors are waiting"):
            jobs.submit("wait", {"i": 6}, owner="window-6 bob")
        closed.update(f"window-{i} ann" for i in range(3, 6))
        kept = jobs.submit("wait", {"i": 6}, owner="window-6 ann")
        assert jobs.status(ids[5]).state == "cancelled", "the newest of a closed window"
        states = {jobs.status(job).state for job in [*ids[:5], kept]}
        assert states == {"queued"}, "all else waits on, also for windows that were closed"
    finally:
        jobs.close()


def test_the_queue_remembers_whose_turn_it_was(tmp_path):
    jobs = Jobs(tmp_path, workers=1, command=FAKE)
    try:
        first, second = (
            jobs.submit("wait", gated(tmp_path, name), owner="window ann")
            for name in ("a", "never")
        )
        runs(jobs, first)
        other = jobs.submit("wait", gated(tmp_path, "b"), owner="window bob")
        (tmp_path / "a").touch()
        runs(jobs, other)
        assert jobs.status(second).state == "queued", "older, but of the one served last"
    finally:
        jobs.close()


def test_a_short_fit_does_not_wait_behind_six_long_jobs(tmp_path, monkeypatch):
    config = RunConfig("d" * 64, {}, "PPCA", {}).to_dict()
    monkeypatch.setattr(
        "appca.jobs.queue.needs_of",
        lambda _, spec, home: Needs(1.0 if "config" in spec else None),
    )
    jobs = Jobs(tmp_path, command=FAKE)
    try:
        for i in range(6):
            jobs.submit("wait", gated(tmp_path, f"never {i}"), owner="ann")
        job = jobs.submit("fit", {"config": config}, owner="bob")
        runs(jobs, job)
        assert jobs.keep(job, "bob")
        assert ended(jobs, job).state == "done"
    finally:
        jobs.close()


def test_a_job_waits_for_memory_and_one_too_large_is_refused(tmp_path, monkeypatch):
    needed = {"a": 600, "b": 600, "c": 2000}
    monkeypatch.setattr(
        "appca.jobs.queue.needs_of",
        lambda _, spec, home: Needs(None, needed[spec["gate"][-1]] * 10**6),
    )
    jobs = Jobs(tmp_path, command=FAKE, limits=Limits(memory=10**9))
    try:
        first, second = (jobs.submit("wait", gated(tmp_path, name)) for name in "ab")
        runs(jobs, first)
        assert jobs.status(second).state == "queued", "both are too much for the memory"
        (tmp_path / "a").touch()
        runs(jobs, second)
        with pytest.raises(InputError) as refused:
            jobs.submit("wait", gated(tmp_path, "c"))
        assert str(refused.value) == (
            "This needs about 2.0 GB of memory, and jobs may use 1.0 GB; take fewer rows or fewer "
            "features."
        )
    finally:
        jobs.close()


def test_a_job_for_which_no_memory_will_come_free_fails_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("appca.jobs.queue.needs_of", lambda *_: Needs(1.0, 10**9))
    monkeypatch.setattr(limits, "available_memory", lambda: 5 * 10**8)
    jobs = Jobs(tmp_path, command=FAKE)
    try:
        status = ended(jobs, jobs.submit("wait", gated(tmp_path, "a")))
        assert status.state == "failed"
        assert status.message.startswith("This needs about 1.0 GB of memory, and jobs may use 0.5")
    finally:
        jobs.close()


def test_what_a_fit_takes_is_known_before_it_begins(tmp_path):
    digits = load("digits")
    DatasetStore(tmp_path).put(digits)
    config = RunConfig(digits.digest, {}, "aPPCA", defaults("aPPCA"))
    few = needs_of("fit", {"config": config.to_dict()}, tmp_path)
    assert few.is_short
    assert few.memory > 3 * digits.X.size * 4
    many = {**config.to_dict(), "parameters": config.parameters | {"inference": "gibbs"}}
    assert not needs_of("fit", {"config": many}, tmp_path).is_short
    for spec in ({}, {"config": None}, {"config": {"dataset": "../x"}}, {"dataset": "0" * 64}):
        assert needs_of("fit", spec, tmp_path) == Needs(), "the worker says what is wrong"


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("8GB", 8 * 10**9), ("1.5 GB", 1.5 * 10**9), ("500MB", 5 * 10**8)]
    + [(text, None) for text in ("", "8", "-8GB", "0GB", "8TB", "9" * 30 + "GB")],
)
def test_memory_is_read_from_the_environment(monkeypatch, text, bytes_):
    monkeypatch.setenv("APPCA_MEMORY", text)
    monkeypatch.setenv("APPCA_JOBS", "3")
    monkeypatch.setenv("APPCA_JOBS_PER_VISITOR", "none")
    assert Limits.from_environment() == (3, limits.WAITING_PER_VISITOR, bytes_)


def test_memory_is_what_the_machine_or_its_container_has(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "_GROUP", tmp_path)
    whole, free = limits.total_memory(), limits.available_memory()
    if whole is not None:  # as on Linux
        assert 0 < free <= whole
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert (limits.total_memory(), limits.available_memory()) == (1_000_000, 600_000)
    (tmp_path / "memory.max").write_text("max\n")
    assert (limits.total_memory(), limits.available_memory()) == (whole, pytest.approx(free, rel=1))
