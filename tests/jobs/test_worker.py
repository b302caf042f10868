"""Tests of jobs: progress, results, and the queue with dead workers and full disks."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from appca.jobs import queue, tasks
from appca.jobs.queue import Jobs, JobStatus, _Job
from appca.jobs.tasks import Context, QualityConfig, campaign, passes_left, split_of
from appca.jobs.worker import work
from appca.models.loop import Progress
from appca.processes import Child, Ended, Pool, environment, start_compiler
from appca.runs.fit import DESCRIBING, fit_run
from appca.runs.home import is_served
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import MODELS, RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.storage.identity import digest_of
from appca.studies.catalogue import STUDIES
from appca.studies.store import StudyStore
from appca.ui.open import Deletion, erase, planned
from appca.words import InputError
from tests.fitted_runs import differing
from tests.homes import contents, copied
from tests.jobs.waiting import ended, is_alive, runs, until, workers
from tests.ui.conftest import address, healthy, start

__all__ = ["start"]  # the fixture
ENDLESS = {"n_components": 3, "n_active": 1, "inference": "gibbs", "burn_in": 1_000_000_000}


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
    until(lambda: not is_alive(worker.pid), "the worker to be gone")
    listed = {run.id for run in store.list()}
    until(lambda: {path.name for path in home.glob("runs/*")} == listed, "no drafts")
    assert store.get(config.id) is None


def climb(last: int, rate: float) -> list[float]:
    return [-100.0 * rate**i for i in range(last)]


def test_the_passes_left_are_guessed_from_falling_gains():
    rate, tol = 0.8, 1e-3
    values = climb(400, rate)
    true_end = next(i for i in range(10, 400) if values[i] - values[i - 10] <= tol)
    for seen in (21, 30, 40):
        assert abs(seen - 1 + passes_left(values[:seen], tol, max_iter=500) - true_end) <= 10
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
    assert len({*fractions[100:]}) > 30, "it moves with the guess"
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


RISING = [0.1] * 30 + [1 + 0.02 * i for i in range(60)]  # seconds of the fits of a grid
PIECES = {  # what a table expects of each piece of a work, and how long it took, in seconds
    "five times as long": ([0.1] * 60, [0.5] * 60),
    "an eighth": ([4.0] * 60, [0.5] * 60),
    "a slower machine, cheap fits first": (RISING, [2.5 * seconds for seconds in RISING]),
    "large fits cost less": (RISING, [0.05] * 30 + [1.2 + 0.004 * i for i in range(60)]),
    "a slow start": ([0.7, 3.8, 2, 4.8, *[2] * 9], [1.6, 3.7, 2.5, 4.1, *[2] * 9]),
    "no table": (None, [0.5] * 60),
}


@pytest.mark.parametrize("pieces", PIECES)
def test_the_time_left_is_right_within_a_factor_of_two_after_three_seconds(context, pieces):
    expected, took = PIECES[pieces]
    total, expected = expected and sum(expected), expected or took
    report, clock = tasks.Paced(context, total).at, context.clock
    begun, end, done = clock.return_value, clock.return_value + sum(took), 0.0
    for piece, seconds in zip(expected, took, strict=True):
        report("a stage", done / sum(expected))
        if clock.return_value - begun >= 3.0:
            assert 0.5 < context.seconds_left / (end - clock.return_value) < 2.0, context.fraction
        clock.return_value, done = clock.return_value + seconds, done + piece
    status, heard = JobStatus("0", "grid", {}, "key", seconds_left=5.0), queue.time.monotonic() - 2
    assert _Job(status, 0.0, heard=heard).now.seconds_left == pytest.approx(3.0, abs=0.5)


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
    assert len(stages) == 2 + len(config.steps()) - 6
    assert list(shares[1:]) == sorted(shares[1:])
    assert 0.0 < shares[1] < shares[-1] < 1.0
    assert context.told[-1][2] >= 0.0  # seconds left
    every = config.records(home)
    assert list(every) == config.steps()
    assert all(every[step] == record for step, record in done.items())
    sets = (Dataset("", np.ones((n, 8)), np.arange(n).astype(str)) for n in (300, 6000, 9000))
    few, many, most = (tasks.estimate(config, dataset) for dataset in sets)
    assert sum(many) > sum(few) > 0
    assert (len(few), most) == (len(config.steps()), many)  # no more rows than asked for


def test_the_job_that_fits_again_stores_each_fit(home, wine):
    parameters = FAST | {"n_components": 4, "n_active": 2}
    config = StabilityConfig(wine.digest, {}, "aPPCA", parameters, repeats=2)
    context = Listening(home)
    assert campaign("stability", keyed(config), context) == {"stability": config.id}
    assert config.outcome(home).cosines.shape == (2, 4)
    assert [stage for stage, _, _ in context.told[1:]] == [f"fit {n} of 2" for n in (1, 2)]


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
    np.testing.assert_array_equal(split_of(wine, comparison(wine)).test, split.test)


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


@pytest.fixture
def stocked(tmp_path: Path) -> Path:
    """Return a home that holds one of everything."""
    return copied(tmp_path / "home")


def hits(home: Path, dataset: Dataset) -> list[Path]:
    """Return the files, hidden ones too, that hold the data's digest, its ids or its rows."""
    ids = ["\0".join(map(str, dataset.ids[:6])).encode(), np.array(dataset.ids[:6]).tobytes()]
    rows = [row.tobytes() for row in dataset.X[[3, dataset.n_rows // 2]] if row.any()]
    wanted, files = [dataset.digest.encode(), *ids, *rows], filter(Path.is_file, home.rglob("*"))
    return [file for file in files if any(one in file.read_bytes() for one in wanted)]


def all_runs(home: Path, digest: str) -> list[str]:
    return [run.id for run in RunStore(home).list() if run.config.dataset == digest]


def most_fitted(home: Path) -> str:
    """Return the digest of the data set with most kept runs."""
    kept = Counter(run.config.dataset for run in RunStore(home).list() if run.kept)
    return kept.most_common(1)[0][0]


def test_names_of_components_go_with_the_data_and_those_of_other_data_stay(stocked):
    """The registries are named after data and model together, so a search by digest misses them."""
    digest, store = most_fitted(stocked), RunStore(stocked)
    for run in store.list():
        if run.config.model in ("aPPCA", "PPCA", "aFA"):
            ComponentNumbers(stocked).rename(run, 0, "slope")
    registries = stocked / "numbers"
    mine = {digest_of({"dataset": digest, "model": model}) for model in MODELS}
    before = {path.name for path in registries.iterdir()}
    assert before & mine
    assert before - mine
    left = (data := DatasetStore(stocked)).put(data.get(digest).without(np.arange(3), ""))
    erase(stocked, planned(stocked, all_runs(stocked, digest)))
    assert {path.name for path in registries.iterdir()} == before, "rows left out keep the names"
    erase(stocked, Deletion(frozenset(), frozenset([left]), ()))
    assert {path.name for path in registries.iterdir()} == before - mine


def test_no_byte_of_deleted_data_is_left_and_all_other_data_stay(stocked):
    store, before = DatasetStore(stocked), {*stocked.rglob("*")}
    erase(stocked, Deletion(frozenset(), frozenset(), ()))
    assert {*stocked.rglob("*")} == before, "a deletion of nothing"
    every = [store.get(one.digest) for one in store.list()]
    whole = copied(stocked.with_name("whole"))
    drop = whole / "uploads" / "drop-1" / "0"
    drop.parent.mkdir(parents=True)
    drop.write_bytes(b"a,b\n1,2\n")
    erase(whole)
    assert not any(hits(whole, dataset) for dataset in every)
    assert not drop.exists()
    damaged = all_runs(stocked, most_fitted(stocked))[0]
    (RunStore(stocked).folder / damaged / "arrays.npz").write_bytes(b"broken")
    for one in store.list():
        dataset, before = store.get(one.digest), contents(stocked)
        others = {other.digest for other in store.list()} - {one.digest}
        assert len(hits(stocked, dataset)) > 2
        wanted = planned(stocked, [run for run in all_runs(stocked, one.digest) if run != damaged])
        assert (wanted.data, wanted.shared) == ({one.digest}, ())
        erase(stocked, wanted)
        assert hits(stocked, dataset) == []
        after = contents(stocked)
        assert {key: before["data sets"][key] for key in others} == after["data sets"]
        gone = wanted.runs | {damaged}
        assert {run for run in before["runs"] if run not in gone} == set(after["runs"]) - {damaged}
    assert RunStore(stocked).list() == []
    assert RunStore(stocked).damaged() == {}
    assert {path.parent.name for path in stocked.rglob("registry.npz")} == set()


FAKE = (sys.executable, "-m", "tests.jobs.fake_worker")
Begin = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Jobs]:
    """Two workers, so that their imports are paid for once."""
    with closing(Jobs(tmp_path_factory.mktemp("home"), command=FAKE)) as pair:
        yield pair


@pytest.fixture
def pair(server: Jobs, tmp_path: Path) -> Iterator[Jobs]:
    yield server
    for job in server.active():
        if job.state == "queued":
            server.cancel(job.id)
    (tmp_path / "all").touch()
    until(lambda: not any(server.keep(job.id) for job in server.active()), "fits to be kept")
    until(lambda: not server.active(), "the end of all jobs")


@pytest.fixture
def begin(pair: Jobs, tmp_path: Path) -> Begin:
    """Return what submits a job that waits for a file of its name, or for the end of the test."""

    def submit(name: str, kind: str = "wait", passes: int = 0, **how: object) -> str:
        spec = {"gates": [str(tmp_path / one) for one in (name, "all")], "passes": passes}
        return pair.submit(kind, spec, **how)

    return submit


def states(pair: Jobs, ids: list[str]) -> list[str]:
    return [pair.status(job).state for job in ids]


def test_two_workers_do_jobs_in_the_order_in_which_they_came_and_stay_warm(pair, begin, tmp_path):
    ids = [begin(name) for name in "abcde"]
    runs(pair, ids[0])
    runs(pair, ids[1])
    assert states(pair, ids) == ["running", "running", "queued", "queued", "queued"]
    assert [status.id for status in pair.active()] == ids
    assert pair.cancel(ids[4])
    (tmp_path / "b").touch()
    ended(pair, ids[1])
    runs(pair, ids[2])
    assert pair.status(ids[3]).state == "queued"
    for name in "acde":
        (tmp_path / name).touch()
    first, second, third, *_ = [ended(pair, job) for job in ids]
    assert states(pair, ids) == ["done"] * 4 + ["cancelled"], "what is cancelled never runs"
    assert third.result == second.result, "the third job ran in the worker that was free"
    assert first.result != second.result, "two jobs at once need two processes"
    assert pair.active() == []
    until(lambda: len(pair._pool._idle) == 2, "both workers to be free")
    pair._pool._idle[-1].kill()
    pair._pool._idle[-1].process.wait()
    job = begin("a")
    assert job != ids[0], "what is over is not joined"
    assert ended(pair, job).state == "done", "an idle worker that was killed costs no job"


def test_jobs_that_make_the_same_are_one_and_those_of_a_preview_can_be_left(pair, begin):
    with ThreadPoolExecutor(8) as threads:
        (first,) = set(threads.map(lambda _: begin("a"), range(8)))
    asked = begin("asked", asked=False)
    assert asked != first
    assert begin("a", key="k") != first
    left = begin("left", asked=False)
    pair.leave(left)
    assert pair.status(left) is None, "it may begin again"
    assert begin("asked") == asked
    pair.leave(asked)
    assert pair.status(asked).state == "running", "a person has asked for it"


def test_progress_carries_the_curve_of_the_last_stage(pair, begin, tmp_path):
    job = begin("a", "climb", 30)
    until(lambda: pair.status(job).stage == "waiting for the gate", "the climb")
    status = pair.status(job)
    assert status.curve == [(i, -100.0 / i) for i in range(1, 31)]
    assert status.fraction == 1.0, "a bar never runs backwards, though the gate reports a half"
    (tmp_path / "a").touch()
    assert ended(pair, job).seconds_left is None


def test_a_cancelled_job_is_gone_at_once_whatever_it_does_and_another_begins(pair, begin, tmp_path):
    pid_file = tmp_path / "pid"
    job = pair.submit("deaf", {"pid_file": str(pid_file)})
    until(lambda: pid_file.exists() and pid_file.read_text(), "a deaf worker")
    assert pair.cancel(job)
    assert pair.status(job).state == "cancelled"
    until(lambda: not is_alive(int(pid_file.read_text())), "the worker to be gone")
    assert not pair.cancel(job), "a job that is over cannot be cancelled"
    (tmp_path / "a").touch()
    assert ended(pair, begin("a")).state == "done"


def test_a_job_that_is_to_begin_later_lets_others_pass_until_it_is_asked_for(pair, begin):
    later, soon = begin("later", after=3600.0), begin("soon", after=0.05)
    runs(pair, soon)
    assert begin("later", after=1800.0) == later
    assert pair.status(later).state == "queued"
    assert begin("later") == later
    runs(pair, later)


def test_only_a_running_fit_can_be_kept(pair, begin):
    fit, other, waiting = begin("x", "fit"), begin("a"), begin("y", "fit")
    runs(pair, fit)
    runs(pair, other)
    assert not pair.keep(other)
    assert not pair.keep(waiting)
    assert pair.keep(fit)
    assert ended(pair, fit).result == {"kept": True}
    runs(pair, waiting)
    assert pair.status(waiting).state == "running", "the request was for the fit before"


def test_jobs_that_are_unknown_over_or_of_what_is_deleted(pair, tmp_path, monkeypatch):
    for job in ("", "../../etc/passwd", "0" * 12, None):
        assert (pair.status(job), pair.cancel(job), pair.keep(job)) == (None, False, False)
    never = {"gates": [str(tmp_path / "never")]}
    doomed, other = pair.submit("wait", never | {"dataset": "a" * 64}), pair.submit("wait", never)
    runs(pair, doomed)
    pair.end(["a" * 64])
    assert pair.status(doomed).state == "cancelled"
    assert [status.id for status in pair.active()] == [other]
    pair.end()
    assert pair.active() == []
    monkeypatch.setattr(queue, "REMEMBERED", 2)
    ids = [pair.submit("wait", never | {"of": name}, after=3600.0) for name in "abc"]
    for job in ids:
        pair.cancel(job)
    assert [pair.status(job) is not None for job in ids] == [False, True, True]


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
    pair = Jobs(tmp_path, workers=1, command=FAKE)
    try:
        for kind, spec, sentence in ENDS:
            status = ended(pair, pair.submit(kind, spec))
            assert status.state == ("failed" if sentence else "done"), status.message
            assert sentence.format(log=pair.log) in status.message
            assert status.result == ({} if sentence else {"answer": 42})
            if kind == "full":  # the process has no disk any more
                until(lambda: pair._pool._idle, "the worker to be free")
                pair._pool._idle[0].kill()
                pair._pool._idle[0].process.wait()
        text = pair.log.read_text()
        assert all(words in text for words in ("last words", "refusing\n", "Traceback"))
        running = pair.submit("deaf", {"pid_file": str(tmp_path / "pid")})
        queued = pair.submit("wait", {"gates": []})
        until((tmp_path / "pid").exists, "a worker")
        pids = [worker.pid for worker in workers(pair)]
    finally:
        pair.close()
    assert not any(is_alive(pid) for pid in pids)
    for job in (running, queued):
        assert pair.status(job).state == "failed"
        assert pair.status(job).message.startswith("The app was closed")
    with pytest.raises(InputError, match="app was closed"):
        pair.submit("wait", {})
    for command, sentence in [
        ((sys.executable, "-c", "raise SystemExit('no luck')"), "exit code 1"),
        ((str(tmp_path / "no-python"),), "could be started: No such file or directory."),
    ]:
        with closing(Jobs(tmp_path, command=command)) as pair:
            assert sentence in ended(pair, pair.submit("wait", {})).message


def test_what_dead_workers_left_is_removed_by_the_next_server(pair):
    config, home = RunConfig("d" * 64, {}, "PPCA", {}), pair.home
    assert ended(pair, pair.submit("die_saving", {"config": config.to_dict()})).state == "failed"
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
    remedy = "use it, close it, or set APPCA_HOME to another folder."
    assert is_served() == is_served(hold=True) == f"Another appca serves {tmp_path}; {remedy}"
    server.kill()
    server.wait()
    until(lambda: not is_alive(int(pid_file.read_text())), "the worker to follow its server")
    assert is_served() is None


FIT = {"dataset": "0" * 64, "preprocessing": {}, "model": "aPPCA", "parameters": defaults("aPPCA")}
WRITTEN: list[tuple[str, dict, str]] = [  # by a stranger: kind, spec, a part of the sentence
    ("cook", {}, "There is no kind of job “cook”; choose fit, umap, download, study, proj"),
    ("fit", {}, "The job failed unexpectedly (KeyError: 'config'); see "),
    ("fit", {"config": FIT | {"dataset": "../../etc"}}, "no stored data set “../../etc”; choose"),
    ("fit", {"config": FIT}, "There is no stored data set “00000000…0000”; choose one from"),
    ("fit", {"config": FIT | {"model": "Oracle"}}, "There is no model “Oracle”; choose one of a"),
    ("umap", {"dataset": 7}, "it has 7 for “dataset”, where a text belongs"),
    ("download", {"key": "../etc"}, "There is no built-in data set '../etc'; choose one of dig"),
    ("download", {"key": "mnist", "options": {"n": -4}}, "number from 2 to 70,000; got -4."),
    ("project", {"key": "../..", "run": "../.."}, "no longer exist; open both again."),
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
    assert first == {"said": "a\nb ü", "process": child.pid, "nice": min(os.nice(0) + 3, 19)}
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
