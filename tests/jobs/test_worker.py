"""Real jobs in real worker processes, and what they tell of their progress."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs import tasks
from appca.jobs.queue import Jobs
from appca.jobs.tasks import INTERVAL, Context, FitProgress, Paced, passes_left
from appca.models.loop import Progress
from appca.processes import environment
from appca.runs.fit import DESCRIBING, fit_run
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from tests.fitted_runs import differing
from tests.jobs.waiting import ended, is_alive, until, workers

ENDLESS = {"n_components": 12, "n_active": 6, "inference": "gibbs", "burn_in": 1_000_000}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def jobs(home: Path) -> Iterator[Jobs]:
    """One worker, so that its imports are paid for once."""
    jobs = Jobs(home, workers=1)
    yield jobs
    jobs.close()


def spec_of(config: RunConfig, name: str | None = None) -> dict:
    return {"config": config.to_dict(), "name": name}


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def context(tmp_path: Path) -> Context:
    news: list[dict] = []
    context = Context(tmp_path, news.append, clock=Clock())
    context.news = news
    return context


def points(context: Context) -> list[tuple[int, float]]:
    """Return the curve that was told, whatever the stages."""
    return [(i, value) for news in context.news for _, i, value in news["points"]]


def test_progress_is_told_at_most_ten_times_a_second_and_loses_no_pass(context):
    for iteration in range(1, 1001):
        context.clock.now += 0.001
        context.report(
            "fit", iteration / 1000, iteration=iteration, log_likelihood=-1.0 * iteration
        )
    assert INTERVAL == 0.1
    assert 9 <= len(context.news) <= 11
    context.tell()
    assert points(context) == [(i, -1.0 * i) for i in range(1, 1001)]


@pytest.fixture(scope="module")
def wine(home: Path) -> Dataset:
    dataset = load("wine")
    DatasetStore(home).put(dataset)
    return dataset


def config_of(dataset: Dataset, **parameters: object) -> RunConfig:
    return RunConfig(dataset.digest, {"scale": "feature"}, "aPPCA", parameters)


def test_a_worker_fits_the_same_bits_as_this_process_and_stores_them(jobs, home, wine):
    config = config_of(wine, n_components=6, n_active=3, random_state=5)
    status = ended(jobs, jobs.submit("fit", spec_of(config, "six")))
    assert (status.state, status.result) == ("done", {"run": config.id}), status.message
    run, here = RunStore(home).get(config.id), fit_run(wine, config)
    assert run.name == "six"
    assert run.info.n_iter == here.info.n_iter == status.iteration
    assert differing(here.fitted, run.fitted) == []
    assert status.fraction == 1.0
    seen = [value for _, value in status.curve]
    assert seen == here.fitted.log_likelihoods[-len(seen) :].tolist()
    assert len(seen) > 3
    changed = (run.path / "arrays.npz").stat().st_mtime_ns
    assert ended(jobs, jobs.submit("fit", spec_of(config))).result == {"run": config.id}
    assert (run.path / "arrays.npz").stat().st_mtime_ns == changed, "a run is fitted once"
    opened = ended(jobs, jobs.submit("download", {"key": "planes"}))
    assert DatasetStore(home).get(opened.result["dataset"]).n_rows == 900
    wrong = config.to_dict() | {"parameters": {"n_components": 3, "n_active": 5}}
    status = ended(jobs, jobs.submit("fit", {"config": wrong, "name": None}))
    assert status.state == "failed"
    assert "n_active must be at most" in status.message


def test_an_endless_fit_is_cancelled_at_once_and_leaves_nothing(jobs, home, wine):
    config, store = config_of(wine, **ENDLESS), RunStore(home)
    job = jobs.submit("fit", spec_of(config))
    until(lambda: "burn-in" in jobs.status(job).stage and jobs.status(job).iteration > 3, "passes")
    (worker,) = workers(jobs)
    assert jobs.cancel(job)
    until(lambda: not is_alive(worker.pid), "the worker to be gone", seconds=2)
    listed = {run.id for run in store.list()}
    until(lambda: {path.name for path in store.folder.iterdir()} == listed, "no drafts")
    assert store.get(config.id) is None


def climb(last: int, rate: float) -> list[float]:
    return [-100.0 * rate**i for i in range(last)]


def test_the_passes_left_are_guessed_from_falling_gains():
    rate, tol = 0.8, 1e-3
    values = climb(400, rate)
    true_end = next(i for i in range(10, 400) if values[i] - values[i - 10] <= tol)
    for seen in (21, 30, 40):
        guess = passes_left(values[:seen], tol, max_iter=500)
        assert abs(seen - 1 + guess - true_end) <= 10
    assert passes_left(values[:20], tol, 500) is None, "too early to tell"
    assert passes_left(values[:350], tol, 500) == 0, "gains are below tol"
    assert passes_left(values[:30], tol, max_iter=40) == 10, "never beyond max_iter"
    assert passes_left(values[:30], 0.0, max_iter=500) == 470, "no end but max_iter"
    assert passes_left([float(i) for i in range(50)], tol, max_iter=500) == 450


def test_the_bar_of_a_fit_only_grows_through_its_stages(context):
    report = FitProgress(context, tol=1e-3)
    fractions, left = [], []
    stages = [("screening 1 of 2: pca", 30, 30), ("refinement", 50, 200), ("fit", 60, 500)]
    for stage, passes, most in stages:
        for iteration, value in enumerate(climb(passes, 0.8), start=1):
            context.clock.now += 0.5
            report(Progress(iteration, most, value, stage))
            fractions.append(context.fraction)
            left.append(context.seconds_left)
    assert fractions == sorted(fractions)
    assert fractions[29] <= tasks._REFINED < fractions[-1] <= tasks._FITTED
    assert left[:80] == [None] * 80, "no guess before the fit proper"
    assert left[-1] == 0.5 * passes_left(climb(60, 0.8), 1e-3, 500)
    context = Context(context.home, clock=context.clock)
    report, shares = FitProgress(context, tol=1e-3, sampled=True), {}
    begins = [(f"chain {i} of 3: {stage}", 9) for i in (1, 2, 3) for stage in ("refinement", "fit")]
    for stage, passes in [*begins, ("burn-in", 20), ("draws", 20), (DESCRIBING, 4)]:
        for iteration in range(1, passes + 1):
            context.clock.now += 0.5
            report(Progress(iteration, passes, -1.0, stage))
            shares.setdefault(stage, []).append(context.fraction)
    whole = [share for stage in shares.values() for share in stage]
    assert whole == sorted(whole)
    assert shares["chain 3 of 3: fit"][-1] == pytest.approx(tasks._START)
    assert shares["burn-in"][0] > tasks._START
    assert whole[-1] == 1.0


def test_time_left_follows_the_pace_of_the_stage(context):
    report, told = Paced(context, by_stage=True).at, []
    for stage, fraction in [("a", 0.0), ("a", 0.01), ("a", 0.2), ("b", 0.3), ("b", 0.65)]:
        context.clock.now += 2.0
        report(stage, fraction)
        told.append(context.seconds_left)
    assert told == [None, None, 16.0, None, 2.0]


def test_what_was_asked_to_stop_before_its_first_pass_is_kept_and_marked(context):
    table = load("wine").take(np.arange(60))
    table = replace(table, missing=np.random.default_rng(0).random(table.X.shape) < 0.1)
    DatasetStore(context.home).put(table)
    config = RunConfig(table.digest, {"scale": "feature"}, "PPCA", {"n_components": 2})
    stages, report = [], context.report
    context.report = lambda stage, *at, **more: (stages.append(stage), report(stage, *at, **more))
    context.stops = lambda: True
    run = RunStore(context.home).get(tasks.fit(spec_of(config), context)["run"])
    assert run.config == replace(config, stopped_at=1)
    assert run.info.stop_reason == "stopped by the callback"
    assert run.name.endswith("stopped at step 1")
    assert run.fitted.scores.shape == (60, run.config.k)
    assert [stage for stage in stages if stage.endswith("fit")] == ["fit"]
    context.tell()
    assert len(points(context)) == 1


def test_a_study_is_stored_whole(context, monkeypatch):
    monkeypatch.setattr(tasks, "PROCESSES", 1)
    options = STUDIES["z-priors"].options("quick", n_rows=30)
    result = tasks.study({"study": "z-priors", "options": options, "key": "x"}, context)
    assert result == {"study": STUDIES["z-priors"].id(options)}
    kept = StudyStore(context.home).get(result["study"])
    assert kept.options == options
    assert {row["design"] for row in kept.outcome.tables["designs"]} >= {"sparse", "single"}
    assert context.stage == "storing"


def test_a_worker_finds_the_package_from_any_folder(tmp_path, monkeypatch):
    """As under `streamlit run app.py` in a checkout that is not installed."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    script = "import appca.jobs.worker, os; assert int(os.environ['OMP_NUM_THREADS']) >= 1"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment(1), check=True)
