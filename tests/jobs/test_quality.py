"""The comparison of projections as a job: fair rows, stored results, cancelling and going on."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs import tasks as module
from appca.jobs.queue import Jobs
from appca.jobs.tasks import QualityConfig, measured, methods, split_of
from appca.runs.run import RunConfig
from appca.words import InputError
from tests.jobs.waiting import until

KEYS = ["own", "ppca_l", "ppca_k", "pca", "fa", "mixture", "plane", "umap"]


@pytest.fixture(scope="module")
def wine() -> Dataset:
    return load("wine")


def config_of(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> QualityConfig:
    parameters = parameters or {"n_components": 4, "n_active": 2}
    run = RunConfig(dataset.digest, suggest(dataset).to_dict(), model, parameters)
    return QualityConfig(run.to_dict(), run.k, run.n_active or 2)


@pytest.fixture
def without_umap(monkeypatch) -> None:
    """Leave out what compiles for a quarter of a minute."""
    every = module.methods
    monkeypatch.setattr(module, "methods", lambda config: every(config)[:-1])


def silent(_share: float) -> None:
    """Report to nobody."""


def test_a_fifth_is_held_out_and_never_seen_not_even_by_the_preprocessing(wine):
    split = split_of(wine, config_of(wine))
    assert (len(split.train), len(split.test)) == (142, 36)
    np.testing.assert_allclose(split.train.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(split.train.std(axis=0), 1, atol=1e-9)
    held = {wine.X[row].tobytes() for row in range(178)} - {
        row.tobytes() for row in split.dataset.X
    }
    assert len(held) == 36
    few = split_of(wine, replace(config_of(wine), rows=100))
    assert (len(few.train), len(few.test)) == (80, 20)
    again = split_of(wine, config_of(wine))
    np.testing.assert_array_equal(again.test, split.test)


@pytest.mark.thorough
def test_every_method_is_measured_on_the_same_rows_and_goes_on_where_it_was_ended(
    wine, without_umap, tmp_path
):
    config = config_of(wine)
    split = split_of(wine, config)

    def stop(place: int, _share: float) -> None:
        if place == 4:
            raise KeyError

    with pytest.raises(KeyError):
        config.complete(wine, tmp_path, stop)
    first = config.lines(tmp_path)
    assert sorted(line["key"] for line in first) == sorted(KEYS[:4])
    assert config.steps()[0] == ("ppca_l",), "a quick method first"
    config.complete(wine, tmp_path)
    every = config.lines(tmp_path)
    assert [line["key"] for line in every] == KEYS[:-1]
    assert all(line in every for line in first), "what is measured is not measured again"
    assert {line["n_neighbors"] for line in every} == {15}
    lines = {line["key"]: line for line in every}
    pca = PCA(4).fit(split.train)
    assert lines["pca"]["log_likelihood"] is None, "probabilistic PCA beside it has the same"
    back = pca.inverse_transform(pca.transform(split.test))
    assert lines["pca"]["mse"] == pytest.approx(np.square(back - split.test).mean())
    assert lines["pca"]["mae"] == pytest.approx(np.abs(back - split.test).mean())
    expected = trustworthiness(split.train, pca.transform(split.train), n_neighbors=15)
    assert lines["pca"]["trustworthiness"] == [pytest.approx(expected, abs=1e-9), 0.0]
    # The variances of the two are divided by N and by N - 1.
    assert lines["ppca_k"]["log_likelihood"] == pytest.approx(pca.score(split.test), abs=0.02)
    sizes = {key: (line["size"], line["used"]) for key, line in lines.items()}
    assert sizes["own"] == (4, 2)
    assert sizes["ppca_l"] == sizes["plane"] == (2, 2)
    for key in ("ppca_k", "pca", "fa"):
        assert sizes[key] == (4, 4)
    for line in lines.values():
        assert 0.5 < line["trustworthiness"][0] <= 1
        assert 0.5 < line["accuracy"][0] <= 1
        assert line["seconds"] >= 0


def test_a_method_out_of_time_or_impossible_is_left_out_with_a_word(wine):
    split = split_of(wine, config_of(wine))

    def late(*_given: object) -> None:
        msg = "not finished within 3 s"
        raise ValueError(msg)

    method = methods(config_of(wine))[0]._replace(fit=late)
    line = measured(method, split, None, 15, 3.0, silent)
    assert (line["note"], line["mse"]) == ("not finished within 3 s", None)
    too_many = methods(config_of(wine, "isFA", max_components=20))
    pca = next(method for method in too_many if method.key == "pca")
    line = measured(pca, split, None, 15, 3.0, silent)
    assert "20" in line["note"]
    assert line["mse"] is None


def test_methods_that_would_be_the_same_stand_there_once(wine):
    def keys(config: QualityConfig) -> list[str]:
        return [method.key for method in methods(config)]

    assert keys(config_of(wine)) == KEYS
    assert keys(config_of(wine, n_components=3, n_active=3)) == [KEYS[0], *KEYS[2:]]
    assert keys(config_of(wine, "PPCA", n_components=3)) == [KEYS[0], *KEYS[3:]]


def test_too_few_rows_are_refused():
    X, ids = np.eye(12), np.arange(12).astype(str)
    few = Dataset("few", X, ids, {}, None, None, {})
    with pytest.raises(InputError, match=r"at least 20 rows.*has 12"):
        split_of(few, config_of(few))


def test_settings_make_the_id(wine):
    config = config_of(wine)
    assert QualityConfig.from_dict(json.loads(json.dumps(config.to_dict()))).id == config.id
    others = [
        config_of(wine, n_components=5, n_active=2),
        replace(config, rows=100),
        replace(config, n_neighbors=5),
        replace(config, seconds=10.0),
        replace(config, random_state=1),
        replace(config, n_active=3),
    ]
    assert len({config.id, *(other.id for other in others)}) == 7


@pytest.mark.thorough
def test_the_job_measures_methods_in_a_worker_can_be_cancelled_and_goes_on(tmp_path, wine):
    DatasetStore(tmp_path).put(wine)
    config = config_of(wine)
    spec = {"key": config.id, **config.to_dict()}
    jobs = Jobs(tmp_path, workers=1)
    try:
        first = jobs.submit("quality", spec, key=config.id)
        until(lambda: config.lines(tmp_path), "the first method", seconds=120)
        jobs.cancel(first)
        part = config.lines(tmp_path)
        jobs.submit("quality", spec, key=config.id)
        until(lambda: len(config.lines(tmp_path)) > 5, "the methods", seconds=120)
    finally:
        jobs.close()
    assert all(line in config.lines(tmp_path) for line in part)
    assert "umap" not in sys.modules, "umap-learn stays in the worker"
