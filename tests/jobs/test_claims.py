"""Jobs belong to the windows that wait for them: nobody ends what is another's."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appca.jobs import queue
from appca.jobs.queue import Jobs
from appca.words.errors import InputError
from tests.jobs.test_queue import FAKE, gated
from tests.jobs.waiting import ended, runs, until


@pytest.fixture
def closed() -> set[str]:
    """Windows that are closed; a test adds to them."""
    return set()


@pytest.fixture
def jobs(tmp_path: Path, closed: set[str], monkeypatch) -> Iterator[Jobs]:
    monkeypatch.setattr(queue, "LOOK_SECONDS", 0.02)
    jobs = Jobs(tmp_path, command=FAKE, is_open=lambda owner: owner not in closed)
    yield jobs
    jobs.close()


@pytest.fixture
def fit(jobs, tmp_path) -> Callable[..., str]:
    """Return a function that submits the same fit for a window."""
    return lambda owner, asked=True: jobs.submit(
        "wait", gated(tmp_path, "never"), key="fit", owner=owner, asked=asked
    )


def test_a_job_ends_when_the_last_window_that_waits_for_it_cancels(jobs, fit):
    job = fit("ann")
    assert fit("bob") == job
    runs(jobs, job)
    assert jobs.cancel(job, "ann")
    assert not jobs.cancel(job, "ann"), "she has left already"
    assert jobs.status(job).stage != "ending"
    assert jobs.cancel(job, "bob")
    assert ended(jobs, job).state == "cancelled"


def test_a_window_sees_and_cancels_only_what_it_waits_for(jobs, fit, tmp_path):
    ann = fit("ann")
    bob = jobs.submit("wait", gated(tmp_path, "bob"), owner="bob")
    assert [job.id for job in jobs.active("ann")] == [ann]
    assert [job.id for job in jobs.active("bob")] == [bob]
    assert not jobs.cancel(ann, "bob")
    assert not jobs.keep(ann, "bob")
    assert {job.state for job in jobs.active()} <= {"queued", "running"}


def test_a_refinement_that_moves_on_leaves_what_another_has_asked_for(jobs, fit):
    job = fit("ann")
    fit("bob", asked=False)
    jobs.cancel(job, "bob")
    assert [one.id for one in jobs.active("ann")] == [job]


def test_a_closed_window_ends_its_refinement_and_not_what_it_has_asked_for(
    jobs, fit, closed, tmp_path
):
    refinement = jobs.submit("wait", gated(tmp_path, "r"), owner="ann", asked=False)
    shared = jobs.submit("wait", gated(tmp_path, "s"), owner="ann", asked=False)
    jobs.submit("wait", gated(tmp_path, "s"), owner="bob", asked=False)
    asked = fit("ann")
    closed.add("ann")
    assert ended(jobs, refinement).state == "cancelled"
    until(lambda: len(jobs.active("ann")) == 1, "two looks")
    assert {job.id for job in jobs.active()} == {shared, asked}


def test_a_window_that_is_back_at_the_second_look_keeps_its_refinement(jobs, fit, closed):
    job = fit("ann", asked=False)
    (waiting,) = jobs._open()
    assert not waiting.desert(lambda _: False)
    assert not waiting.desert(lambda _: True)
    assert not waiting.desert(lambda _: False), "gone again, for the first time"
    assert [one.id for one in jobs.active("ann")] == [job]


def test_a_reloaded_window_takes_its_jobs_over_and_may_end_them(jobs, fit, closed):
    job = fit("ann")
    closed.add("ann")
    assert jobs.inherit(job, "ann, reloaded"), "the window before had asked for it"
    assert jobs.active("ann") == []
    assert jobs.cancel(job, "ann, reloaded")
    assert ended(jobs, job).state == "cancelled"


def test_who_follows_a_link_to_a_job_of_an_open_window_cannot_end_it(jobs, fit):
    job = fit("ann")
    assert not jobs.inherit(job, "bob")
    assert [one.id for one in jobs.active("bob")] == [job]
    jobs.cancel(job, "bob")
    assert [one.id for one in jobs.active("ann")] == [job]


def test_a_shared_fit_is_not_stopped_early(jobs):
    job = jobs.submit("fit", {"config": {}}, owner="ann")
    jobs.submit("fit", {"config": {}}, owner="bob")
    runs(jobs, job)
    with pytest.raises(InputError, match="Another window waits for this fit, too"):
        jobs.keep(job, "bob")
    jobs.cancel(job, "ann")
    assert jobs.keep(job, "bob")
    assert ended(jobs, job).result == {"kept": True}


def test_a_job_without_a_window_belongs_to_the_script_that_began_it(tmp_path):
    jobs = Jobs(tmp_path, command=(sys.executable, "-c", ""))
    try:
        job = jobs.submit("wait", {}, after=3600.0)
        assert not jobs.cancel(job, "a window")
        assert jobs.cancel(job)
    finally:
        jobs.close()
