"""Real jobs, in worker processes and here: what they tell of their progress, store and measure."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from appca.analysis.choose import GridConfig, StabilityConfig
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs import tasks
from appca.jobs.queue import Jobs
from appca.jobs.tasks import Context, QualityConfig, campaign, passes_left, split_of
from appca.models.loop import Progress
from appca.processes import environment
from appca.runs.fit import DESCRIBING, fit_run
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from appca.words import InputError
from tests.fitted_runs import differing
from tests.jobs.waiting import ended, is_alive, until, workers

ENDLESS = {"n_components": 12, "n_active": 6, "inference": "gibbs", "burn_in": 1_000_000}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def jobs(home: Path) -> Iterator[Jobs]:
    """One worker, so that its imports are paid for once."""
    with closing(Jobs(home, workers=1)) as jobs:
        yield jobs


def spec_of(config: RunConfig, name: str | None = None) -> dict:
    return {"config": config.to_dict(), "name": name}


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A context whose seconds pass when a test says so."""
    news: list[dict] = []
    context = Context(tmp_path, news.append, clock=Mock(return_value=1000.0))
    context.news = news
    return context


def points(context: Context) -> list[tuple[int, float]]:
    """Return the curve that was told, whatever the stages."""
    return [(i, value) for news in context.news for _, i, value in news["points"]]


def test_progress_is_told_at_most_ten_times_a_second_and_loses_no_pass(context):
    for i in range(1, 1001):
        context.clock.return_value += 0.001
        context.report("fit", i / 1000, iteration=i, log_likelihood=-1.0 * i)
    assert tasks.INTERVAL == 0.1
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
    report = tasks.FitProgress(context, tol=1e-3)
    fractions, left = [], []
    stages = [("screening 1 of 2: pca", 30, 30), ("refinement", 50, 200), ("fit", 60, 500)]
    for stage, passes, most in stages:
        for iteration, value in enumerate(climb(passes, 0.8), start=1):
            context.clock.return_value += 0.5
            report(Progress(iteration, most, value, stage))
            fractions.append(context.fraction)
            left.append(context.seconds_left)
    assert fractions == sorted(fractions)
    assert fractions[29] <= tasks._REFINED < fractions[-1] <= tasks._FITTED
    assert left[:80] == [None] * 80, "no guess before the fit proper"
    assert left[-1] == 0.5 * passes_left(climb(60, 0.8), 1e-3, 500)
    context = Context(context.home, clock=context.clock)
    report, shares = tasks.FitProgress(context, tol=1e-3, sampled=True), {}
    begins = [(f"chain {i} of 3: {stage}", 9) for i in (1, 2, 3) for stage in ("refinement", "fit")]
    for stage, passes in [*begins, ("burn-in", 20), ("draws", 20), (DESCRIBING, 4)]:
        for iteration in range(1, passes + 1):
            context.clock.return_value += 0.5
            report(Progress(iteration, passes, -1.0, stage))
            shares.setdefault(stage, []).append(context.fraction)
    whole = [share for stage in shares.values() for share in stage]
    assert whole == sorted(whole)
    assert shares["chain 3 of 3: fit"][-1] == pytest.approx(tasks._START)
    assert shares["burn-in"][0] > tasks._START
    assert whole[-1] == 1.0


def test_time_left_follows_the_pace_of_the_stage(context):
    report, told = tasks.Paced(context, by_stage=True).at, []
    for stage, fraction in [("a", 0.0), ("a", 0.01), ("a", 0.2), ("b", 0.3), ("b", 0.65)]:
        context.clock.return_value += 2.0
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


FAST = {"init": "pca", "max_iter": 30, "random_state": 0}


def keyed(config) -> dict:
    return config.to_dict() | {"key": config.id}


class Listening(Context):
    """A context that keeps every report, and can end the work at one of them."""

    def __init__(self, home, cancel_at=None):
        super().__init__(home)
        self.told: list[tuple[str, float, float | None]] = []
        self.cancel_at = cancel_at

    def report(self, stage, fraction, *, seconds_left=None, **rest):
        if not self.told or (stage, fraction) != self.told[-1][:2]:
            self.told.append((stage, fraction, seconds_left))
        if len(self.told) == self.cancel_at:
            raise KeyError
        super().report(stage, fraction, seconds_left=seconds_left, **rest)


def test_a_cancelled_job_keeps_what_is_done_and_the_next_one_goes_on(home, wine):
    sizes = {"components": (2, 3, 4), "actives": (1, 2)}
    config = GridConfig(wine.digest, {"scale": "feature"}, "aPPCA", FAST, **sizes)
    with pytest.raises(KeyError):
        campaign("grid", keyed(config), Listening(home, cancel_at=8))
    done = config.records(home)
    assert list(done) == config.steps()[:6]
    context = Listening(home)
    assert campaign("grid", keyed(config), context) == {"grid": config.id}
    stages, shares = zip(*[(stage, share) for stage, share, _ in context.told], strict=True)
    assert stages[:2] == ("reading the data", f"fit 7 of {len(config.steps())}")
    assert len(stages) == 1 + len(config.steps()) - 6
    assert list(shares[1:]) == sorted(shares[1:])
    assert 0.0 < shares[1] < shares[-1] < 1.0
    assert context.told[-1][2] >= 0.0  # seconds left
    every = config.records(home)
    assert list(every) == config.steps()
    assert all(every[step] == record for step, record in done.items())
    few, many = tasks.estimate(config, 300, 8), tasks.estimate(config, 6000, 8)
    assert len(few) == len(config.steps())
    assert sum(many) > sum(few) > 0
    assert tasks.estimate(config, 10**6, 8) == many  # no more rows than asked for


def test_the_job_that_fits_again_stores_each_fit(home, wine):
    parameters = FAST | {"n_components": 4, "n_active": 2}
    config = StabilityConfig(wine.digest, {}, "aPPCA", parameters, repeats=2)
    context = Listening(home)
    assert campaign("stability", keyed(config), context) == {"stability": config.id}
    assert config.outcome(home).cosines.shape == (2, 4)
    assert [stage for stage, _, _ in context.told[1:]] == [f"fit {n} of 3" for n in (1, 2, 3)]


# the comparison of projections


def comparison(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> QualityConfig:
    parameters = parameters or {"n_components": 4, "n_active": 2}
    run = RunConfig(dataset.digest, suggest(dataset).to_dict(), model, parameters)
    return QualityConfig(run.to_dict(), run.k, run.n_active or 2)


KEYS = ["own", "ppca_l", "ppca_k", "pca", "fa", "mixture", "plane", "umap"]


def test_a_fifth_is_held_out_and_never_seen_not_even_by_the_preprocessing(wine):
    split = split_of(wine, comparison(wine))
    assert (len(split.train), len(split.test)) == (142, 36)
    np.testing.assert_allclose(split.train.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(split.train.std(axis=0), 1, atol=1e-9)
    assert len({row.tobytes() for row in wine.X} - {row.tobytes() for row in split.dataset.X}) == 36
    few = split_of(wine, replace(comparison(wine), rows=100))
    assert (len(few.train), len(few.test)) == (80, 20)
    again = split_of(wine, comparison(wine))
    np.testing.assert_array_equal(again.test, split.test)


def test_a_method_is_measured_or_left_out_with_a_word_and_an_end_keeps_what_is_done(wine, tmp_path):
    split, pca = split_of(wine, comparison(wine)), PCA(4)
    method = {one.key: one for one in tasks.methods(comparison(wine))}
    quiet = lambda _share: None  # noqa: E731
    line = tasks.measured(method["pca"], split, None, 15, 60.0, quiet)
    pca.fit(split.train)
    assert line["log_likelihood"] is None, "probabilistic PCA beside it has the same"
    back = pca.inverse_transform(pca.transform(split.test))
    assert line["mse"] == pytest.approx(np.square(back - split.test).mean())
    assert line["mae"] == pytest.approx(np.abs(back - split.test).mean())
    expected = trustworthiness(split.train, pca.transform(split.train), n_neighbors=15)
    assert line["trustworthiness"] == [pytest.approx(expected, abs=1e-9), 0.0]
    # The variances of the two are divided by N and by N - 1.
    other = tasks.measured(method["ppca_k"], split, None, 15, 60.0, quiet)
    assert other["log_likelihood"] == pytest.approx(pca.score(split.test), abs=0.02)

    late = Mock(side_effect=ValueError("not finished within 3 s"))
    line = tasks.measured(method["own"]._replace(fit=late), split, None, 15, 3.0, quiet)
    assert (line["note"], line["mse"]) == ("not finished within 3 s", None)
    too_many = {one.key: one for one in tasks.methods(comparison(wine, "isFA", max_components=20))}
    line = tasks.measured(too_many["pca"], split, None, 15, 3.0, quiet)
    assert "20" in line["note"]
    assert line["mse"] is None

    def stop(place: int, _share: float) -> None:
        if place == 2:
            raise KeyError

    config = comparison(wine)
    assert config.steps()[0] == ("ppca_l",), "a quick method first"
    with pytest.raises(KeyError):
        config.complete(wine, tmp_path, stop)
    assert len(config.lines(tmp_path)) == 2


def test_methods_and_settings_of_a_comparison(wine):
    def keys(config: QualityConfig) -> list[str]:
        return [method.key for method in tasks.methods(config)]

    config = comparison(wine)
    assert keys(config) == KEYS
    assert keys(comparison(wine, n_components=3, n_active=3)) == [KEYS[0], *KEYS[2:]]
    assert keys(comparison(wine, "PPCA", n_components=3)) == [KEYS[0], *KEYS[3:]]
    assert QualityConfig.from_dict(json.loads(json.dumps(config.to_dict()))).id == config.id
    changes = [{"rows": 100}, {"n_neighbors": 5}, {"seconds": 10.0}, {"random_state": 1}]
    others = [replace(config, **change) for change in [*changes, {"n_active": 3}]]
    assert len({config.id, *(other.id for other in others)}) == 6
    few = Dataset("few", np.eye(12), np.arange(12).astype(str), {}, None, None, {})
    with pytest.raises(InputError, match=r"at least 20 rows.*has 12"):
        split_of(few, comparison(few))
