"""Jobs of many steps: Choose K and L, and the comparison of projections."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from appca.analysis.choose import GridConfig, StabilityConfig
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context, QualityConfig, campaign, estimate, measured, methods, split_of
from appca.runs.run import RunConfig
from appca.words import InputError
from tests.models.synthetic import planted

FAST = {"init": "pca", "max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def dataset(home) -> Dataset:
    X = planted(120, 8, 4, 2, seed=5, noise=0.3).X
    dataset = Dataset("planted", X, np.arange(120).astype(str), {}, None, None, {})
    DatasetStore(home).put(dataset)
    return dataset


def spec_of(config) -> dict:
    return config.to_dict() | {"key": config.id}


def config_of(dataset: Dataset, **changes) -> GridConfig:
    given = {"parameters": FAST, "components": (2, 3, 4), "actives": (1, 2)} | changes
    return GridConfig(dataset=dataset.digest, preprocessing={}, model="aPPCA", **given)


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


def test_a_cancelled_job_keeps_what_is_done_and_the_next_one_goes_on(home, dataset):
    config = config_of(dataset)
    with pytest.raises(KeyError):
        campaign("grid", spec_of(config), Listening(home, cancel_at=8))
    done = config.records(home)
    assert list(done) == config.steps()[:6]
    context = Listening(home)
    assert campaign("grid", spec_of(config), context) == {"grid": config.id}
    stages, shares = zip(*[(stage, share) for stage, share, _ in context.told], strict=True)
    assert stages[:2] == ("reading the data", f"fit 7 of {len(config.steps())}")
    assert len(stages) == 1 + len(config.steps()) - 6
    assert list(shares[1:]) == sorted(shares[1:])
    assert 0.0 < shares[1] < shares[-1] < 1.0
    assert context.told[-1][2] >= 0.0  # seconds left
    every = config.records(home)
    assert list(every) == config.steps()
    assert all(every[step] == record for step, record in done.items())
    few, many = estimate(config, 300, 8), estimate(config, 6000, 8)
    assert len(few) == len(config.steps())
    assert sum(many) > sum(few) > 0
    assert estimate(config, 10**6, 8) == many  # no more rows than asked for


def test_the_job_that_fits_again_stores_each_fit(home, dataset):
    parameters = FAST | {"n_components": 4, "n_active": 2}
    config = StabilityConfig(dataset.digest, {}, "aPPCA", parameters, repeats=2)
    context = Listening(home)
    assert campaign("stability", spec_of(config), context) == {"stability": config.id}
    assert config.outcome(home).cosines.shape == (2, 4)
    assert [stage for stage, _, _ in context.told[1:]] == [f"fit {n} of 3" for n in (1, 2, 3)]


# the comparison of projections


def comparison(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> QualityConfig:
    parameters = parameters or {"n_components": 4, "n_active": 2}
    run = RunConfig(dataset.digest, suggest(dataset).to_dict(), model, parameters)
    return QualityConfig(run.to_dict(), run.k, run.n_active or 2)


@pytest.fixture(scope="module")
def wine() -> Dataset:
    return load("wine")


KEYS = ["own", "ppca_l", "ppca_k", "pca", "fa", "mixture", "plane", "umap"]


def test_a_fifth_is_held_out_and_never_seen_not_even_by_the_preprocessing(wine):
    split = split_of(wine, comparison(wine))
    assert (len(split.train), len(split.test)) == (142, 36)
    np.testing.assert_allclose(split.train.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(split.train.std(axis=0), 1, atol=1e-9)
    held = {wine.X[row].tobytes() for row in range(178)} - {
        row.tobytes() for row in split.dataset.X
    }
    assert len(held) == 36
    few = split_of(wine, replace(comparison(wine), rows=100))
    assert (len(few.train), len(few.test)) == (80, 20)
    again = split_of(wine, comparison(wine))
    np.testing.assert_array_equal(again.test, split.test)


def test_a_method_is_measured_or_left_out_with_a_word_and_an_end_keeps_what_is_done(wine, tmp_path):
    split, pca = split_of(wine, comparison(wine)), PCA(4)
    method = {one.key: one for one in methods(comparison(wine))}
    quiet = lambda _share: None  # noqa: E731
    line = measured(method["pca"], split, None, 15, 60.0, quiet)
    pca.fit(split.train)
    assert line["log_likelihood"] is None, "probabilistic PCA beside it has the same"
    back = pca.inverse_transform(pca.transform(split.test))
    assert line["mse"] == pytest.approx(np.square(back - split.test).mean())
    assert line["mae"] == pytest.approx(np.abs(back - split.test).mean())
    expected = trustworthiness(split.train, pca.transform(split.train), n_neighbors=15)
    assert line["trustworthiness"] == [pytest.approx(expected, abs=1e-9), 0.0]
    # The variances of the two are divided by N and by N - 1.
    other = measured(method["ppca_k"], split, None, 15, 60.0, quiet)
    assert other["log_likelihood"] == pytest.approx(pca.score(split.test), abs=0.02)

    def late(*_given: object) -> None:
        msg = "not finished within 3 s"
        raise ValueError(msg)

    line = measured(method["own"]._replace(fit=late), split, None, 15, 3.0, quiet)
    assert (line["note"], line["mse"]) == ("not finished within 3 s", None)
    too_many = {one.key: one for one in methods(comparison(wine, "isFA", max_components=20))}
    line = measured(too_many["pca"], split, None, 15, 3.0, quiet)
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
        return [method.key for method in methods(config)]

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
