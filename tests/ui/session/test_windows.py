"""Two windows at once: both see the jobs of the server, and each its own settings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appca.jobs.queue import Jobs
from appca.ui import fits, services
from tests.ui.conftest import address, healthy, slider

IDLE = (sys.executable, "-c", "import sys; sys.stdin.read()")  # a worker that never ends a job


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch) -> Iterator[Jobs]:
    """Jobs as on large data: every fit is one, and none comes to its end."""
    jobs = Jobs(tmp_path, command=IDLE)
    monkeypatch.setattr(services, "jobs", lambda: jobs)
    monkeypatch.setattr(fits, "LIVE_SECONDS", -1.0)
    yield jobs
    jobs.close()


def listed(app) -> set[str]:
    """Jobs in the status line."""
    keys = (button.key or "" for button in app.button)
    return {key.removeprefix("cancel-") for key in keys if key.startswith("cancel-")}


def ask(app, seed: int) -> set[str]:
    """Choose a seed and ask for its fit, which has begun by itself."""
    app.number_input(key="set-random_state").set_value(seed).run()
    for begun in listed(app):
        app.button(key=f"cancel-{begun}").click().run()
    app.button(key="refine").click().run()
    return listed(app)


def test_a_job_that_one_window_cancels_is_gone_in_both_and_does_not_begin_again(start, jobs):
    ann, bob = start(k="5"), start(k="7")
    assert len(listed(ann.run())) == 2
    assert listed(ann) == listed(bob)
    for job in listed(bob):
        bob.button(key=f"cancel-{job}").click().run()
    assert listed(healthy(bob.run())) == set()
    assert listed(healthy(ann.run())) == set()
    assert address(ann)["k"] == "5"


@pytest.mark.thorough
def test_a_slider_ends_the_fit_of_its_preview_and_not_one_that_was_asked_for(start, jobs):
    ann = start("explore")
    (asked,) = ask(ann, 11)
    bob = start(**{key: address(ann)[key] for key in ("data", "k", "l")})
    bob.number_input(key="set-random_state").set_value(11).run()
    assert address(healthy(bob))["run"] == address(ann)["run"], "equal fits are one job"
    slider(bob, "k").set_value(6).run()
    (other,) = listed(healthy(bob)) - {asked}
    slider(bob, "k").set_value(7).run()
    assert other not in listed(healthy(bob)), "nobody looks at its preview any more"
    assert asked in listed(bob)


@pytest.mark.thorough
def test_a_job_goes_on_without_its_window_and_a_reload_finds_it(start, jobs):
    ann = start("explore")
    asked = ask(ann, 11)
    assert set(address(ann)["job"].split(",")) == asked
    again = start("explore", **address(ann))
    assert listed(healthy(again)) == asked
    assert address(again)["run"] == address(ann)["run"]


def test_a_run_that_a_job_brings_about_sets_no_slider_that_shows_its_value_already(start, jobs):
    ann = healthy(start(k="5"))
    ann.run()
    sliders = [slider(ann, size) for size in "kl"]
    assert [(one.value, one.proto.set_value) for one in sliders] == [(5, False), (2, False)]
    slider(ann, "l").set_value(6).run()  # pushes K
    assert [slider(ann, size).value for size in "kl"] == [6, 6]
