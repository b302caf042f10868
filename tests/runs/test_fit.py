from dataclasses import replace

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.runs import fit as fit_module
from appca.runs import home
from appca.runs.fit import DESCRIBING, estimate_seconds, fit_run, prepared, project
from appca.runs.run import MODELS as SPECS
from appca.runs.run import RunConfig, estimator_class
from tests.fitted_runs import differing


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(600))


def config_of(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> RunConfig:
    return RunConfig(dataset.digest, {"divide": 16.0, "pca": 20}, model, parameters)


def explicit(dataset: Dataset, config: RunConfig) -> dict[str, np.ndarray]:
    """The same by the estimator's public methods, one at a time."""
    fitted = Preprocessing.from_dict(config.preprocessing).fit(dataset.X)
    model = estimator_class(config.model)(**config.parameters).fit(fitted.transform(dataset.X))
    Y = prepared(config, fitted, dataset.X)
    scores = model.transform(Y, support="map")
    alone = model.published() if hasattr(model, "published") else model
    return {
        "components": model.components_,
        "mean": model.mean_,
        "scores": scores,
        "active": model.allocate(Y, support="map"),
        "inclusion": model.inclusion_probabilities(Y),
        "membership": alone.allocation_probability(Y),
        "error": ((Y - alone.inverse_transform(scores)) ** 2).mean(axis=1),
        "log_likelihood_rows": model.score_samples(Y),
    }


SHORT = {"n_chains": 2, "burn_in": 6, "n_draws": 8}
FREE = {"max_components": 4, **SHORT}
MODELS = [
    ("aPPCA", {"n_components": 5, "n_active": 2}),
    ("aPPCA", {"n_components": 5, "n_active": 2, "inference": "gibbs", **SHORT}),
    ("PPCA", {"n_components": 3}),
    ("aFA", {"n_components": 5, "n_active": 2}),
    ("aFA", {"n_components": 17, "n_active": 8, "n_paths": 4}),
    ("aFA", {"n_components": 5, "n_active": 2, "inference": "gibbs", **SHORT}),
    ("NPPCA", FREE),
    pytest.param("isFA", FREE, marks=pytest.mark.thorough),
    pytest.param("fsFA", FREE, marks=pytest.mark.thorough),
]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("model", "parameters"), MODELS)
def test_arrays_are_what_the_estimators_own_methods_say(digits, model, parameters):
    config = config_of(digits, model, **parameters)
    result = fit_run(digits, config)
    for name, expected in explicit(digits, config).items():
        got = getattr(result.fitted, name)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5, err_msg=name)
    assert result.fitted.active.dtype == bool
    for name in ("scores", "inclusion", "membership", "error"):
        assert getattr(result.fitted, name).dtype == np.float32
    assert result.info.log_likelihood == result.fitted.log_likelihood_rows.sum()
    assert result.info.n_rows == 600
    assert result.info.n_features == 20
    assert result.info.stopped_at is None
    errors = result.fitted.log_likelihood_errors
    error = 0.0 if errors is None else np.sqrt(np.square(errors.astype(float)).sum())
    assert result.info.likelihood_error == pytest.approx(error)
    assert ("importance sampling" in result.info.likelihood) == (error > 0)
    assert {"numpy", "scipy", "scikit-learn", "appca", "python"} == set(result.info.versions)


@pytest.mark.parametrize("passes", [3, 45, 85])
def test_a_fit_stopped_by_hand_is_repeated_by_its_config(digits, passes):
    config = config_of(digits, n_components=6, n_active=3, tol=1e-9)
    seen = []

    def stop(progress):
        seen.append(progress.stage)
        if len(seen) == passes:
            raise StopIteration

    by_hand = fit_run(digits, config, stop)
    assert by_hand.info.stopped_at == passes == len(seen)
    assert by_hand.info.stop_reason == "stopped by the callback"
    again = fit_run(digits, replace(config, stopped_at=passes))
    assert again.info.stopped_at == passes
    assert differing(by_hand.fitted, again.fitted) == []
    whole = fit_run(digits, config)
    assert whole.info.log_likelihood > by_hand.info.log_likelihood


CHAINS = {"n_components": 4, "n_active": 2, "inference": "gibbs", **SHORT}


@pytest.mark.parametrize("passes", [2, 5])
@pytest.mark.parametrize("model", ["aFA", "aPPCA"])
def test_chains_stopped_while_they_begin_are_repeated_by_their_config(digits, model, passes):
    starts = {"max_iter": 3} if model == "aFA" else {"init": "random"}
    config = config_of(digits, model, **CHAINS, **starts, chain_starts="init")
    seen = []

    def stop(progress):
        seen.append(progress.stage)
        if len(seen) >= passes and progress.stage != DESCRIBING:  # as one that was asked once
            raise StopIteration

    by_hand = fit_run(digits, config, stop)
    heard = [stage for stage in seen if stage != DESCRIBING]
    assert all(stage.startswith("chain ") for stage in heard)
    assert by_hand.info.stopped_at == passes == len(heard)
    assert by_hand.info.stop_reason == "stopped by the callback"
    assert by_hand.info.n_iter == 1
    again = fit_run(digits, replace(config, stopped_at=passes))
    assert again.info.stopped_at == passes
    assert differing(by_hand.fitted, again.fitted) == []


def test_another_exception_from_the_callback_ends_the_fit(digits):
    def fail(_progress):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fit_run(digits, config_of(digits), fail)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("model", "parameters"), MODELS)
def test_projecting_the_training_rows_gives_the_runs_own_description(digits, model, parameters):
    config = config_of(digits, model, **parameters)
    result = fit_run(digits, config)
    rows = np.array([5, 17, 300])
    found = project(config, result.fitted, digits.X[rows])
    np.testing.assert_array_equal(found.active, result.fitted.active[rows])
    np.testing.assert_allclose(found.scores, result.fitted.scores[rows], atol=1e-5)
    np.testing.assert_allclose(
        found.log_likelihood_rows, result.fitted.log_likelihood_rows[rows], rtol=1e-5
    )
    if SPECS[model].can.compiled:
        for some in ([300], rows[::-1], np.arange(290, 310)):
            found = project(config, result.fitted, digits.X[some]).row_arrays()
            for name, values in result.fitted.take(np.array(some)).row_arrays().items():
                np.testing.assert_array_equal(found[name], values, err_msg=name)
    with pytest.raises(ValueError, match="must have the 64 features"):
        project(config, result.fitted, digits.X[:, :63])


def test_arrays_that_lack_what_the_model_needs_are_refused_by_name(digits):
    config = config_of(digits, "isFA", **FREE)
    fitted = replace(fit_run(digits, config).fitted, weights=None)
    with pytest.raises(ValueError, match=r"InfiniteSparseFA .* weights is missing: fit the model"):
        project(config, fitted, digits.X)


def test_a_sampled_run_keeps_its_draws_and_others_have_none(digits, monkeypatch):
    config = config_of(digits, "isFA", **FREE)
    posterior = fit_run(digits, config).fitted.posterior
    assert posterior["components"].shape == (2, 8, 4, 20)
    assert posterior["components"].dtype == np.float32
    assert posterior["log_joint"].shape == posterior["noise_variance"].shape == (2, 8)
    assert posterior["Z_mean"].shape == (2, 600, 4)
    assert fit_run(digits, config_of(digits)).fitted.posterior == {}
    monkeypatch.setattr(fit_module, "MOST_DRAWN_BYTES", 2 * 4 * 4 * 20 * 4)
    thinned = fit_run(digits, config).fitted.posterior
    np.testing.assert_array_equal(thinned["components"], posterior["components"][:, ::2])
    assert thinned["noise_variance"].shape == (2, 8)


def test_describing_is_watched_where_it_takes_long_and_cannot_be_cut_short(digits):
    seen = []

    def watch(progress):
        if progress.stage == "describing the rows":
            seen.append((progress.iteration, progress.max_iter))
            raise StopIteration

    config = config_of(digits, "aFA", n_components=3, n_active=1)
    result = fit_run(digits, config, watch)
    assert seen == [(1, 2), (2, 2)]
    assert result.info.stopped_at is None
    assert len(result.fitted.scores) == 600


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("aPPCA", {"n": 2000}),
        ("aPPCA", {"d": 5000}),
        ("aPPCA", {"n_components": 12}),
        ("aPPCA", {"n_init": 5}),
        ("aPPCA", {"inference": "gibbs"}),
        ("aFA", {"n_components": 12}),
        ("aFA", {"n_components": 20, "n_active": 10, "n_paths": 64}),
        *((model, {"n_draws": 2000}) for model in ("NPPCA", "isFA", "fsFA")),
        *((model, {"max_components": 40}) for model in ("NPPCA", "isFA", "fsFA")),
    ],
)
def test_the_estimate_grows_with_the_work(digits, model, more):
    def seconds(model, n=1000, d=100, **parameters) -> float:
        return estimate_seconds(n, d, config_of(digits, model, **parameters))

    assert seconds(model, **more) > 1.2 * seconds(model)
    assert seconds("aPPCA", max_iter=5) < seconds("aPPCA")
    closed = seconds("aPPCA", n_components=4, n_active=4)
    assert seconds("PPCA") < closed + 1e-9 < seconds("aPPCA")
    assert seconds("aPPCA", 1797, 64) < 1.0 < seconds("aPPCA", 70_000, 784), "digits live"


def test_blas_gets_the_threads_the_workers_get(digits, monkeypatch):
    from threadpoolctl import threadpool_info

    seen = []

    def look(_progress):
        if not seen:  # a look at all libraries takes longer than a pass
            pools = threadpool_info()
            seen.append({pool["num_threads"] for pool in pools if pool["user_api"] == "blas"})

    monkeypatch.setattr(home, "threads", lambda: 1)
    fit_run(digits, config_of(digits), look)
    assert seen[0] == {1}
