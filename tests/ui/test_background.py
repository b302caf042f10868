"""Tests of background jobs: fits and downloads, seen from two windows."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.queue import Jobs
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.ui import fits, services
from tests.ui.conftest import Bar, ScriptedJobs, address, go, healthy, html, keys, sentences, slider


@pytest.fixture
def long_fits(monkeypatch, jobs) -> ScriptedJobs:
    """Every fit counts as too long for the page, as on large data."""
    monkeypatch.setattr(fits, "LIVE_SECONDS", -1.0)
    return jobs


def badges(app) -> int:
    return sum("first look" in text.value for text in app.markdown)


def test_a_long_fit_shows_a_marked_preview_until_the_worker_has_finished(start, long_fits):
    app = start(data=load("wine"))
    assert badges(healthy(app)) == 1
    assert html(app).count('class="ca-piece"') == 4
    (job,) = long_fits.jobs
    assert long_fits.keys[job] == address(app)["run"]
    assert address(app)["job"] == job
    assert RunStore(home()).list() == []  # a preview is never kept
    slider(app, "k").set_value(5).run()
    assert long_fits.cancelled == [job], "the slider gives up the refinement before"
    assert min(long_fits.pauses) > 0, "the browser draws the preview first"
    (running,) = long_fits.active()
    assert badges(healthy(app)) == 1
    long_fits.finish_fit(running.id)
    assert badges(healthy(app.run())) == 0
    assert "job" not in address(app)


def test_a_failed_refinement_says_why_once_and_a_stopped_one_keeps_the_preview(start, long_fits):
    app, said = start(data=load("wine")), "The worker process was killed; start the fit again."
    (job,) = long_fits.jobs
    long_fits.end(job, "failed", said)
    assert [sentences(app.run()) for _ in range(2)] == [[said], []]
    assert len(long_fits.jobs) == 1, "it is not tried again"
    app.button(key="refine").click().run()
    assert long_fits.pauses[-1] == 0.0, "what was asked for begins at once"
    again = list(long_fits.jobs)[1]
    app.button(key=f"cancel-{again}").click().run()
    assert long_fits.cancelled == [again]
    assert badges(healthy(app)) == 1
    assert len(long_fits.jobs) == 2


def test_a_job_that_the_server_does_not_know_is_said_to_be_lost(start, jobs):
    app = start(job="a" * 12)
    assert "The app was restarted" in healthy(app).info[0].value
    assert "job" not in address(app)
    assert not jobs.jobs


def test_a_reload_brings_the_settings_back_and_other_settings_are_not_left(start, long_fits):
    app = start("explore", data=load("wine"))
    app.number_input(key="set-random_state").set_value(11).run()
    wanted = address(app)
    again = start("explore", **wanted)
    assert healthy(again).number_input(key="set-random_state").value == 11
    assert address(again)["run"] == wanted["run"]
    long_fits.finish_fit(wanted["job"])
    assert "Converged after" in html(healthy(again.run()))
    slider(again, "k").set_value(5).run()
    again.button(key=f"cancel-{list(long_fits.jobs)[-1]}").click().run()
    again.button(key="refine").click().run()
    asked = list(long_fits.jobs)[-1]
    again.number_input(key="set-random_state").set_value(12).run()
    elsewhere = address(again)["run"]
    long_fits.finish_fit(asked)
    assert address(healthy(again.run()))["run"] == elsewhere
    assert any("ready" in box.value for box in again.info), "it is announced"


def test_downloads_run_as_jobs_of_what_was_chosen_and_open_when_they_are_there(start, jobs):
    app = start("data/open")
    app.pills(key="source-mnist-classes").set_value(["1", "3"])
    app.number_input(key="source-mnist-n").set_value(500)
    app.number_input(key="source-coil20-per_class").set_value(12)
    app.pills(key="source-coil20-classes").set_value(["4", "17"]).run()
    app = healthy(go(go(app, "data/this"), "data/open"))  # the choices are there again
    for key, options in (
        ("mnist", {"n": 500, "classes": ["1", "3"]}),
        ("coil20", {"per_class": 12, "classes": ["4", "17"]}),
    ):
        go(app, "data/open").button(key=f"source-{key}-open").click().run()
        assert list(jobs.jobs.values())[-1].spec == {"key": key, "options": options}
    assert go(app, "data/open").button(key="source-coil20-open").disabled
    said = "coil-20-proc.zip could not be fetched; put it into ~/data."
    jobs.end(list(jobs.jobs)[-1], "failed", said)
    assert sentences(app.run()) == [said]
    app.button(key="source-coil20-open").click().run()
    jobs.end(list(jobs.jobs)[-1], "done", dataset=DatasetStore(home()).put(load("wine")))
    assert address(healthy(app.run()))["data"] == load("wine").digest

    # one that ends while a person looks elsewhere is announced, not opened
    looked_at = address(healthy(slider(go(app, "explore"), "k").set_value(3).run()))["run"]
    jobs.end(next(iter(jobs.jobs)), "done", dataset=DatasetStore(home()).put(load("planes")))
    assert address(healthy(app.run()))["run"] == looked_at
    assert [load("planes").name in box.value.replace("\\", "") for box in app.info] == [True]


def test_a_map_is_laid_out_by_a_job_that_says_how_long_it_takes_and_is_then_shown(start, jobs):
    app = start("explore")
    assert list(Bar(app).views.values()) == ["Subspaces", "PCA", "Map"]
    Bar(app).send("view", "umap")
    assert app.button(key="umap_run").label.startswith("Lay out the map, about ")
    app.button(key="umap_run").click().run()
    (job,) = jobs.jobs
    assert "umap_cancel" in keys(app)

    def said() -> list[str]:
        return [bar.proto.text for bar in app.run().get("progress")]

    assert said() == ["fit · iteration 2 · about 8 s left"]
    jobs.jobs[job] = jobs.jobs[job]._replace(state="queued")
    assert said() == ["Waiting"]
    jobs.submit("models", {}, "other")
    assert said() == ["Waits for: comparing models"]
    config = EmbeddingConfig.from_dict(jobs.jobs[job].spec)
    rows = np.random.default_rng(0).normal(size=(1797, 2)).astype(np.float32)
    EmbeddingStore(home()).save(config, Embedding(rows))
    jobs.end(job, "done", embedding=config.id)
    assert "umap_run" not in keys(healthy(app.run()))
    app.number_input(key="umap_min_dist").set_value(0.5).run()
    assert "umap_run" in keys(app.run()), "another map, not laid out yet"


IDLE = (sys.executable, "-c", "import sys; sys.stdin.read()")  # a worker that never ends a job


@pytest.fixture
def endless(tmp_path: Path, monkeypatch) -> Iterator[Jobs]:
    monkeypatch.setattr(fits, "LIVE_SECONDS", -1.0)
    with closing(Jobs(tmp_path, command=IDLE)) as queue:
        monkeypatch.setattr(services, "jobs", lambda: queue)
        yield queue


def listed(app) -> set[str]:
    return {key.removeprefix("cancel-") for key in keys(app) if key.startswith("cancel-")}


@pytest.mark.usefixtures("endless")
def test_a_job_that_one_window_cancels_is_gone_in_both_and_one_that_was_asked_for_stays(start):
    ann, bob = start("explore", data=load("wine"), k="5"), start(data=load("wine"), k="7")
    assert len(listed(ann.run())) == 2
    assert listed(ann) == listed(bob)
    for job in listed(bob):
        bob.button(key=f"cancel-{job}").click().run()
    assert listed(healthy(bob.run())) == set()
    assert listed(healthy(ann.run())) == set(), "it does not begin again"
    assert address(ann)["k"] == "5"
    assert [slider(ann, size).value for size in "kl"] == [5, 2]
    ann.button(key="refine").click().run()
    (asked,) = listed(ann)
    assert address(healthy(slider(bob, "k").set_value(5).run()))["run"] == address(ann)["run"]
    assert listed(bob) == {asked}, "equal fits are one job"
    (other,) = listed(healthy(slider(bob, "k").set_value(6).run())) - {asked}
    slider(bob, "k").set_value(8).run()
    assert other not in listed(healthy(bob)), "nobody looks at its preview any more"
    assert asked in listed(bob)
