"""Previews: adaptive PPCA in the leading coordinates of a sample, other models as they are."""

from functools import partial

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.runs.fit import fit_run, on_ground, prepare, preview, project
from appca.runs.run import RunConfig, estimator_class


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(600))


def config_of(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> RunConfig:
    return RunConfig(dataset.digest, {"divide": 16.0}, model, parameters)


def wide(digits: Dataset) -> Dataset:
    """The digits with noise beside them: more features than a preview has coordinates."""
    rng = np.random.default_rng(11)
    noise = rng.normal(8, 0.5, (digits.n_rows, 90)).astype(np.float32)
    return Dataset("wide", np.hstack([digits.X.astype(np.float32), noise]), digits.ids)


def test_a_preview_fits_a_fixed_sample_and_describes_all_rows(digits):
    config = config_of(digits, n_components=6, n_active=3)
    first, second = preview(digits, config, rows=200, passes=5), preview(digits, config, rows=200)
    assert first.info.preview
    assert first.info.n_iter <= 5
    assert first.fitted.scores.shape == (600, 6)
    assert first.info.n_rows == 600
    assert second.info.n_iter > 5
    whole = fit_run(digits, config)
    assert not whole.info.preview
    assert whole.info.log_likelihood > second.info.log_likelihood
    again = preview(digits, config, rows=200, passes=5)
    assert again.fitted.scores.tobytes() == first.fitted.scores.tobytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 5, "n_active": 2},
        {"n_components": 5, "n_active": 2, "inference": "hard", "latent_variance": "component"},
        {"n_components": 4, "n_active": 4},
        {"n_components": 4, "n_active": 2, "mean": "sample", "init": "pca"},
    ],
)
def test_a_preview_in_coordinates_says_what_its_model_says_in_features(digits, parameters):
    data = wide(digits)
    config = config_of(data, **parameters)
    found = preview(data, config, rows=300)
    fitted = found.fitted
    W = fitted.components.astype(np.float64)
    assert W.shape == (config.k, data.n_features)
    np.testing.assert_allclose(W @ W.T, np.eye(config.k), atol=1e-5)
    assert (W[range(config.k), np.abs(W).argmax(axis=1)] > 0).all()
    assert (np.diff(fitted.explained_variance) <= 0).all()
    # The same model, asked with all features at hand.
    model = estimator_class("aPPCA")(**config.parameters).restore(fitted.estimator_arrays())
    Y = fitted.preprocessing.transform(data.X)
    np.testing.assert_allclose(fitted.scores, model.transform(Y), atol=2e-4)
    np.testing.assert_array_equal(fitted.active, model.allocate(Y))
    np.testing.assert_allclose(fitted.membership, model.allocation_probability(Y), atol=1e-3)
    np.testing.assert_allclose(fitted.log_likelihood_rows, model.score_samples(Y), rtol=1e-4)
    rest = Y - model.inverse_transform(model.transform(Y))
    np.testing.assert_allclose(fitted.error, np.square(rest).mean(axis=1), rtol=1e-3)
    assert project(config, fitted, data.X[:3]).scores.shape == (3, config.k)


@pytest.mark.thorough
def test_the_shared_ground_gives_the_same_preview_for_every_k(digits):
    data = wide(digits)
    ground = prepare(data, config_of(data), rows=300)
    assert ground.coordinates.shape == (600, 64)
    assert len(ground.sample) == 300
    lengths = np.square(data.X / 16 - ground.origin).sum(axis=1)
    inside = np.square(ground.coordinates, dtype=np.float64).sum(axis=1)
    np.testing.assert_allclose(inside + ground.outside, lengths, rtol=1e-4)
    narrow = prepare(digits, config_of(digits), rows=300)
    assert narrow.coordinates.shape == (600, 64)
    for k, own, shared_by in ((3, data, ground), (6, data, ground), (3, digits, narrow)):
        config = config_of(own, n_components=k, n_active=2)
        alone = preview(own, config, rows=300)
        shared = preview(own, config, ground=shared_by)
        for name in ("components", "scores", "log_likelihood_rows"):
            one, other = getattr(alone.fitted, name), getattr(shared.fitted, name)
            assert one.tobytes() == other.tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["aPPCA", "aFA"])
def test_what_watches_a_preview_ends_it_wherever_it_is(digits, model):
    data = wide(digits)
    config = config_of(data, model, n_components=3, n_active=2)
    told: list[int] = []

    def watch(last: float = np.inf) -> None:
        told.append(0)
        if len(told) >= last:
            raise StopAsyncIteration

    whole = preview(data, config, rows=300, watch=watch)
    times = len(told)
    assert times >= whole.info.n_iter
    for last in (1, times // 2, times):
        told.clear()
        with pytest.raises(StopAsyncIteration):
            preview(data, config, rows=300, watch=partial(watch, last))


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("PPCA", {"n_components": 3}),
        ("aPPCA", {"n_components": 3, "n_active": 2, "mean": "zero"}),
        ("aFA", {"n_components": 3, "n_active": 2}),
    ],
)
def test_other_models_are_previewed_in_features(digits, model, parameters):
    config = config_of(digits, model, **parameters)
    assert not on_ground(digits, config)
    found = preview(digits, config, rows=200)
    assert found.fitted.scores.shape == (600, 3)


def test_rows_that_are_all_equal_are_refused_in_a_sentence():
    data = Dataset("flat", np.ones((20, 5)), np.arange(20).astype(str))
    with pytest.raises(ValueError, match="X must vary"):
        preview(data, config_of(data, n_components=2, n_active=1))
