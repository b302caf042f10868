"""Two windows at once: neither ends nor changes anything of the other's."""

import itertools
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs.queue import Jobs
from appca.jobs.turns.limits import Limits
from appca.ui.session import fitting, services
from tests.ui.conftest import address, go, healthy, sentences, slider

IDLE = (sys.executable, "-c", "import sys; sys.stdin.read()")  # a worker that never ends a job


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch) -> Iterator[Jobs]:
    """Jobs as on large data: every fit is one, and none comes to its end."""
    jobs = Jobs(tmp_path, command=IDLE, limits=Limits(waiting_per_visitor=6))
    monkeypatch.setattr(services, "jobs", lambda: jobs)
    people = itertools.count()
    monkeypatch.setattr(services, "_person", lambda: str(next(people)))
    monkeypatch.setattr(fitting, "LIVE_SECONDS", -1.0)
    yield jobs
    jobs.close()


def listed(app) -> set[str]:
    """Jobs in the status line."""
    keys = (button.key or "" for button in app.button)
    return {key.removeprefix("cancel-") for key in keys if key.startswith("cancel-")}


def ask(app, seed: int, asked: set[str] = frozenset()) -> set[str]:
    """Choose a seed and ask for its fit, which has begun by itself, where there was room for it."""
    app.number_input(key="set-random_state").set_value(seed).run()
    for begun in listed(app) - asked:
        app.button(key=f"cancel-{begun}").click().run()
    app.button(key="refine").click().run()
    return listed(app)


def going_on(jobs: Jobs, ids: set[str]) -> bool:
    found = [jobs._find(job) for job in ids]
    return all(job is not None and not job.cancelled for job in found)


@pytest.mark.thorough
def test_a_slider_does_not_end_the_fit_that_another_window_has_asked_for(start, jobs):
    ann = start("explore")
    (asked,) = ask(ann, 11)
    bob = start(**{key: address(ann)[key] for key in ("data", "k", "l")})
    bob.number_input(key="set-random_state").set_value(11).run()
    assert address(healthy(bob))["run"] == address(ann)["run"], "equal fits are one job"
    assert asked in listed(bob)
    slider(bob, "k").set_value(6).run()
    assert asked not in listed(bob), "the window has moved on"
    assert going_on(jobs, {asked})
    assert asked in listed(healthy(ann.run()))


@pytest.mark.thorough
def test_a_window_lists_and_cancels_its_own_jobs_alone(start, jobs):
    ann, bob = start(k="5"), start(k="7")
    assert len(listed(ann)) == len(listed(bob)) == 1
    assert not listed(ann) & listed(bob)
    (job,) = listed(bob)
    bob.button(key=f"cancel-{job}").click().run()
    assert listed(healthy(bob)) == set()
    assert going_on(jobs, listed(healthy(ann.run())))


@pytest.mark.thorough
def test_a_reload_takes_all_jobs_that_were_asked_for_along(start, jobs):
    ann = start("explore")
    ask(ann, 12, ask(ann, 11))
    asked = set(address(ann)["job"].split(","))
    assert len(asked) == 2
    jobs.is_open = lambda _: False
    again = start("explore", **address(ann))
    assert listed(healthy(again)) == asked
    for job in asked:
        again.button(key=f"cancel-{job}").click().run()
        assert not going_on(jobs, {job}), "the window before was this one"


@pytest.mark.thorough
def test_a_full_queue_is_one_sentence(start, jobs):
    jobs.limits = Limits(waiting_per_visitor=3)
    ann = start("explore")
    known: set[str] = set()
    for seed in range(11, 30):
        known = ask(ann, seed, known)
        if ann.error:
            break
    assert sentences(ann) == [
        "3 jobs of yours are waiting, the most allowed; cancel one, or wait until one has begun."
    ]
    bob = healthy(start(k="3"))
    assert len(listed(bob)) == 1, "another window has its own turn"


def test_a_preview_that_may_not_be_refined_says_so_only_when_asked(start, jobs):
    jobs.limits = Limits(waiting_per_visitor=0)
    ann = healthy(start())
    assert listed(ann) == set()
    ann.button(key="refine").click().run()
    assert ["of yours are waiting" in said for said in sentences(ann)] == [True]


def act(rng: random.Random, app) -> None:
    """Do something that a person may do."""
    kinds = ["slider", "slider", "page", "cancel"]
    kind = rng.choice(kinds)
    if kind == "slider" and app.slider:
        slider(app, rng.choice("kl")).set_value(rng.randint(1, 6))
    elif kind == "cancel" and listed(app):
        app.button(key=f"cancel-{rng.choice(sorted(listed(app)))}").click()
    else:
        page = rng.choice(["explore", "components/gallery", "data/open"])
        go(app, page)
        starts = [one for one in app.button if one.key in ("start_fit", "refine")]
        if starts:
            rng.choice(starts).click()
    app.run()


@pytest.mark.thorough
def test_two_windows_at_random_leave_each_other_alone(start, jobs, seed):
    rng = random.Random(seed)
    windows = [start(k="4"), start(k="5")]
    for _ in range(12):
        one, other = rng.sample(windows, 2)
        before, mine = address(other), listed(other)
        act(rng, healthy(one))
        assert going_on(jobs, mine)
        healthy(other.run())
        assert (address(other), listed(other)) == (before, mine)


def test_a_run_that_a_job_brings_about_sets_no_slider_that_shows_its_value_already(start, jobs):
    ann = healthy(start(k="5"))
    ann.run()
    sliders = [slider(ann, size) for size in "kl"]
    assert [(one.value, one.proto.set_value) for one in sliders] == [(5, False), (2, False)]
    slider(ann, "l").set_value(6).run()  # pushes K
    assert [slider(ann, size).value for size in "kl"] == [6, 6]
