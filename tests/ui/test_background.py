"""Work in the background: fits and downloads as jobs, and two windows that both see them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.queue import ENDED, Jobs, JobStatus
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.ui import fits, services
from tests.ui.conftest import address, go, healthy, html, sentences, slider


class ScriptedJobs:
    """Stands for the worker processes: a test says what has become of a job."""

    def __init__(self):
        self.jobs: dict[str, JobStatus] = {}
        self.keys: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.pauses: list[float] = []
        self.kept: list[str] = []

    def submit(self, kind, spec, key=None, after=0.0, *, asked=True):
        self.pauses.append(after)
        for job, known in self.keys.items():
            if known == key and self.jobs[job].state not in ENDED:
                return job
        job = f"{len(self.jobs):012x}"
        self.keys[job] = key
        curve = [(1, -300.0), (2, -200.0)] if kind == "fit" else []
        self.jobs[job] = JobStatus(
            job, kind, spec, key, asked, "running", "fit", 0.4, 2, curve, 8.0
        )
        return job

    def end(self, job, state, message="", **result):
        self.jobs[job] = self.jobs[job]._replace(state=state, message=message, result=result)

    def finish_fit(self, job, **changes):
        config = RunConfig.from_dict(self.jobs[job].spec["config"] | changes)
        result = fit_run(services.dataset(config.dataset), config)
        self.end(job, "done", run=RunStore(home()).save(config, result).id)

    def status(self, job):
        return self.jobs.get(job)

    def active(self):
        return [job for job in self.jobs.values() if job.state not in ENDED]

    def cancel(self, job):
        self.cancelled.append(job)
        self.end(job, "cancelled")
        return True

    def leave(self, job):
        self.cancelled.append(job)
        del self.jobs[job], self.keys[job]

    def keep(self, job):
        self.kept.append(job)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


@pytest.fixture
def long_fits(monkeypatch, jobs) -> ScriptedJobs:
    """Every fit counts as too long for the page, as on large data."""
    monkeypatch.setattr(fits, "LIVE_SECONDS", -1.0)
    return jobs


def badges(app) -> list[str]:
    return [text.value for text in app.markdown if "first look" in text.value]


def test_a_long_fit_shows_a_marked_preview_until_the_worker_has_finished(start, long_fits):
    app = start()
    assert len(badges(healthy(app))) == 1
    assert html(app).count('class="ca-piece"') == 4
    (job,) = long_fits.jobs
    assert long_fits.keys[job] == address(app)["run"]
    assert address(app)["job"] == job
    assert RunStore(home()).list() == []  # a preview is never kept
    long_fits.finish_fit(job)
    app.run()
    assert badges(healthy(app)) == []
    assert "job" not in address(app)


def test_moving_the_slider_on_gives_up_the_refinement_before(start, long_fits):
    app = start()
    (first,) = long_fits.jobs
    slider(app, "k").set_value(5).run()
    assert long_fits.cancelled == [first]
    assert min(long_fits.pauses) > 0, "the browser draws the preview first"
    assert [job.state for job in long_fits.jobs.values()] == ["running"]
    assert len(badges(healthy(app))) == 1


def test_a_failed_refinement_says_why_once_and_is_not_tried_again(start, long_fits):
    app = start()
    (job,) = long_fits.jobs
    long_fits.end(job, "failed", "The worker process was killed; start the fit again.")
    app.run()
    assert sentences(app) == ["The worker process was killed; start the fit again."]
    app.run()
    assert sentences(app) == []
    assert len(long_fits.jobs) == 1
    app.button(key="refine").click().run()
    assert len(long_fits.jobs) == 2
    assert long_fits.pauses[-1] == 0.0, "what was asked for begins at once"


def test_stop_in_the_status_line_ends_the_job_and_keeps_the_preview(start, long_fits):
    app = start()
    (job,) = long_fits.jobs
    app.button(key=f"cancel-{job}").click().run()
    assert long_fits.cancelled == [job]
    assert len(badges(healthy(app))) == 1
    assert len(long_fits.jobs) == 1


def test_a_reload_during_a_fit_brings_its_settings_back(start, long_fits):
    app = start("explore")
    app.number_input(key="set-random_state").set_value(11).run()
    wanted = address(app)
    again = start("explore", **wanted)
    assert healthy(again).number_input(key="set-random_state").value == 11
    assert address(again)["run"] == wanted["run"]
    long_fits.finish_fit(wanted["job"])
    again.run()
    assert "Converged after" in html(healthy(again))


@pytest.mark.thorough
def test_a_fit_of_other_settings_is_announced_not_forced_on_the_person(start, long_fits):
    app = start("explore")
    app.button(key=f"cancel-{next(iter(long_fits.jobs))}").click().run()
    app.button(key="refine").click().run()
    job = list(long_fits.jobs)[-1]
    app.number_input(key="set-random_state").set_value(12).run()
    elsewhere = address(app)["run"]
    long_fits.finish_fit(job)
    app.run()
    assert address(healthy(app))["run"] == elsewhere
    assert any("ready" in box.value for box in app.info)


def test_a_download_runs_as_a_job_and_opens_when_it_is_there(start, jobs):
    app = start("data/open")
    app.number_input(key="source-mnist-n").set_value(500).run()
    app.button(key="source-mnist-open").click().run()
    (job,) = jobs.jobs
    assert jobs.jobs[job].spec == {"key": "mnist", "options": {"n": 500}}
    assert go(app, "data/open").button(key="source-mnist-open").disabled
    jobs.end(job, "done", dataset=DatasetStore(home()).put(load("wine")))
    app.run()
    assert address(healthy(app))["data"] == load("wine").digest


def test_coil_20_is_opened_in_the_parts_that_were_chosen(start, jobs):
    app = start("data/open")
    app.number_input(key="source-coil20-per_class").set_value(12).run()
    app.pills(key="source-coil20-classes").set_value(["4", "17"]).run()
    healthy(app).button(key="source-coil20-open").click().run()
    (job,) = jobs.jobs.values()
    assert job.spec == {"key": "coil20", "options": {"per_class": 12, "classes": ["4", "17"]}}


@pytest.mark.thorough
def test_a_download_that_ends_while_one_looks_elsewhere_is_announced_not_opened(start, jobs):
    app = start("data/open")
    app.button(key="source-mnist-open").click().run()
    (job,) = jobs.jobs
    go(app, "explore")
    slider(app, "k").set_value(3).run()
    looked_at = address(healthy(app))
    jobs.end(job, "done", dataset=DatasetStore(home()).put(load("wine")))
    app = healthy(app.run())
    assert address(app)["run"] == looked_at["run"]
    assert ["wine" in box.value.lower() and "Data" in box.value for box in app.info] == [True]
    app = go(app, "data/open")
    assert not app.button(key="source-mnist-open").disabled
    app.button(key="source-mnist-open").click().run()
    second = address(app)["job"]
    again = start("data/open", **address(app))  # a reload on the way still waits for it
    jobs.end(second, "done", dataset=DatasetStore(home()).put(load("wine")))
    assert address(healthy(again.run()))["data"] == load("wine").digest


def test_a_download_without_network_says_what_to_do(start, jobs):
    app = start("data/open")
    app.button(key="source-coil20-open").click().run()
    (job,) = jobs.jobs
    jobs.end(job, "failed", "coil-20-proc.zip could not be fetched; put it into ~/data.")
    app.run()
    assert sentences(app) == ["coil-20-proc.zip could not be fetched; put it into ~/data."]


def test_a_map_is_laid_out_by_a_job_and_then_shown_with_all_rows(start, jobs):
    app = start("explore")
    app.segmented_control(key="view-2").set_value("umap").run()
    app.button(key="umap_run").click().run()
    (job,) = jobs.jobs
    assert any("Cancel" in button.label for button in app.button)
    config = EmbeddingConfig.from_dict(jobs.jobs[job].spec)
    rows = np.random.default_rng(0).normal(size=(1797, 2)).astype(np.float32)
    EmbeddingStore(home()).save(config, Embedding(rows))
    jobs.end(job, "done", embedding=config.id)
    app.run()
    assert "umap_run" not in [button.key for button in healthy(app).button]
    app.number_input(key="umap_min_dist").set_value(0.5).run()
    app.run()
    assert app.button(key="umap_run")  # another map, not laid out yet


def test_what_waits_says_behind_what_and_what_runs_how_long_it_will_take(start, jobs):
    app = start("explore")
    app.segmented_control(key="view-2").set_value("umap").run()
    app.button(key="umap_run").click().run()
    (job,) = jobs.jobs

    def said() -> list[str]:
        return [bar.proto.text for bar in app.run().get("progress")]

    assert said() == ["fit · iteration 2 · about 8 s left"]
    jobs.jobs[job] = jobs.jobs[job]._replace(state="queued")
    assert said() == ["Waiting"]
    jobs.submit("models", {}, "other")
    assert said() == ["Waits for: comparing models"]


IDLE = (sys.executable, "-c", "import sys; sys.stdin.read()")  # a worker that never ends a job


@pytest.fixture
def jobs_windows(tmp_path: Path, monkeypatch) -> Iterator[Jobs]:
    """Jobs as on large data: every fit is one, and none comes to its end."""
    jobs_windows = Jobs(tmp_path, command=IDLE)
    monkeypatch.setattr(services, "jobs", lambda: jobs_windows)
    monkeypatch.setattr(fits, "LIVE_SECONDS", -1.0)
    yield jobs_windows
    jobs_windows.close()


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


def test_a_job_that_one_window_cancels_is_gone_in_both_and_does_not_begin_again(
    start, jobs_windows
):
    ann, bob = start(k="5"), start(k="7")
    assert len(listed(ann.run())) == 2
    assert listed(ann) == listed(bob)
    for job in listed(bob):
        bob.button(key=f"cancel-{job}").click().run()
    assert listed(healthy(bob.run())) == set()
    assert listed(healthy(ann.run())) == set()
    assert address(ann)["k"] == "5"


@pytest.mark.thorough
def test_a_slider_ends_the_fit_of_its_preview_and_not_one_that_was_asked_for(start, jobs_windows):
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


def test_a_run_that_a_job_brings_about_sets_no_slider_that_shows_its_value_already(
    start, jobs_windows
):
    ann = healthy(start(k="5"))
    ann.run()
    sliders = [slider(ann, size) for size in "kl"]
    assert [(one.value, one.proto.set_value) for one in sliders] == [(5, False), (2, False)]
    slider(ann, "l").set_value(6).run()  # pushes K
    assert [slider(ann, size).value for size in "kl"] == [6, 6]
