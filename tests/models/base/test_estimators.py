"""The contract that every estimator keeps."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA, NonparametricPPCA
from tests.models.synthetic import planted

ESTIMATORS = [AdaptivePPCA(n_components=2, n_active=1, random_state=0), PPCA(n_components=2)]
BOTH = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)

SHAPES = {
    "transform": (150, 2),
    "allocate": (150, 2),
    "inclusion_probabilities": (150, 2),
    "allocation_probability": (150,),
    "score_samples": (150,),
}
ATTRIBUTES = {
    "components_": (2, 6),
    "mean_": (6,),
    "noise_variance_": (),
    "latent_variance_": (2,),
    "explained_variance_": (2,),
    "scale_": (2,),
    "n_active_": (),
}


@pytest.fixture
def X(seed):
    return planted(150, 6, 3, 1, seed=seed, noise=0.5).X


@pytest.mark.default_cases(36)
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@BOTH
def test_methods_and_attributes_have_the_same_names_and_shapes(estimator, X):
    model = clone(estimator).fit(X)
    for name, shape in SHAPES.items():
        assert getattr(model, name)(X).shape == shape, name
    for name, shape in ATTRIBUTES.items():
        assert np.shape(getattr(model, name)) == shape, name
    assert len(model.log_likelihoods_) == model.n_iter_
    assert isinstance(model.stop_reason_, str)
    assert model.sample(3).shape == (3, 6)
    assert model.inverse_transform(model.transform(X)).shape == X.shape
    assert model.allocate(X).dtype == bool
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


@BOTH
def test_inclusion_probabilities_sum_to_the_number_active(estimator, X):
    model = clone(estimator).fit(X)
    np.testing.assert_allclose(
        model.inclusion_probabilities(X).sum(axis=1), model.n_active_, rtol=1e-10
    )
    assert np.all(model.allocate(X).sum(axis=1) == model.n_active_)


@BOTH
def test_columns_are_named_after_the_class(estimator, X):
    model = clone(estimator).set_output(transform="pandas").fit(X)
    name = type(estimator).__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{name}0", f"{name}1"]
    assert list(model.transform(X).columns) == [f"{name}0", f"{name}1"]


@BOTH
def test_it_works_in_a_pipeline_under_a_grid_search(estimator, X):
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    name = type(estimator).__name__.lower()
    search = GridSearchCV(pipeline, {f"{name}__n_components": [1, 2]}, cv=2).fit(X)
    assert search.best_params_[f"{name}__n_components"] in (1, 2)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


@BOTH
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_cells_that_are_infinite_are_refused_in_one_sentence(estimator, bad, X):
    model = clone(estimator).fit(X)
    X[[3, 5], 2] = bad
    sentence = (
        "X must be finite or NaN for a missing entry, but 2 of its 150 rows hold inf: "
        "correct those cells or leave out those rows."
    )
    for method in (model.fit, model.transform, model.score_samples):
        with pytest.raises(ValueError, match="finite") as refusal:
            method(X)
        assert str(refusal.value) == sentence


@BOTH
@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_the_unit_of_the_data_may_be_extreme(estimator, unit, X):
    plain, extreme = clone(estimator).fit(X), clone(estimator).fit(unit * X)
    np.testing.assert_allclose(extreme.components_, plain.components_, atol=1e-6)
    assert extreme.score(unit * X) == pytest.approx(plain.score(X) - 6 * np.log(unit), rel=1e-6)


@BOTH
def test_one_feature_is_refused_in_one_sentence(estimator, X):
    with pytest.raises(ValueError, match=r"n_components must be at most 1, because X has 150 rows"):
        clone(estimator).fit(X[:, :1])


@BOTH
def test_any_kind_of_random_state_is_taken(estimator, X):
    for state in (None, 3, np.random.default_rng(3), np.random.RandomState(3)):
        assert clone(estimator).set_params(random_state=state).fit(X).sample(2).shape == (2, 6)


def test_importing_the_package_imports_no_model():
    code = "import sys, appca; assert not {'sklearn', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_models_need_neither_numba_nor_pymanopt_for_a_small_fit():
    code = (
        "import sys, numpy as np; from appca import AdaptivePPCA;"
        "AdaptivePPCA(4, 2, max_iter=5).fit(np.random.default_rng(0).standard_normal((50, 6)));"
        "assert not {'numba', 'pymanopt', 'streamlit', 'plotly'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_public_name_lists_those_there_are():
    import appca

    with pytest.raises(AttributeError, match="no attribute 'Nothing'; it has PPCA, Adaptive"):
        appca.Nothing  # noqa: B018


@pytest.mark.parametrize(
    "settings", [{}, {"inference": "hard"}, {"latent_variance": "component"}, {"mean": "zero"}]
)
def test_a_weight_is_a_repetition_whatever_the_order_of_rows(settings, seed):
    rng = np.random.default_rng(seed)
    X, w = planted(120, 8, 4, 2, seed=seed, noise=0.3).X, rng.integers(0, 4, 120)
    again = X[rng.permutation(np.repeat(np.arange(120), w))]
    one = AdaptivePPCA(4, 2, random_state=0, **settings).fit(X, sample_weight=w)
    other = AdaptivePPCA(4, 2, random_state=0, **settings).fit(again)
    assert one.log_likelihoods_[-1] == pytest.approx(other.log_likelihoods_[-1], abs=1e-6)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-6)
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-6)


def test_weights_that_are_no_whole_numbers_scale_the_likelihood_and_nothing_else(X):
    w = np.linspace(0.5, 2.0, len(X))
    one = AdaptivePPCA(3, 2, random_state=0, tol=1e-8).fit(X, sample_weight=w)
    twice = AdaptivePPCA(3, 2, random_state=0, tol=1e-8).fit(X, sample_weight=2 * w)
    np.testing.assert_allclose(one.components_, twice.components_, atol=1e-6)
    assert one.log_likelihoods_[-1] == pytest.approx(w @ one.score_samples(X))
    assert twice.log_likelihoods_[-1] == pytest.approx(2 * one.log_likelihoods_[-1])


def test_a_sample_of_weighted_rows_starts_a_fit_of_many(seed):
    data = planted(6000, 12, 4, 2, seed=seed, noise=0.2)
    w = np.where(np.arange(6000) % 2, 1.0, 2.5)
    model = AdaptivePPCA(4, 2, random_state=0).fit(data.X, sample_weight=w)
    assert np.abs(model.components_ @ data.W).max(axis=1).min() > 0.99


@pytest.mark.parametrize(
    ("settings", "rows"),
    [({"inference": "gibbs"}, np.eye(6)), ({}, np.where(np.eye(6) > 0, np.nan, 1.0))],
)
def test_weights_are_refused_where_they_would_be_ignored(settings, rows):
    with pytest.raises(ValueError, match="sample_weight cannot be used"):
        AdaptivePPCA(2, 1, **settings).fit(rows, sample_weight=np.arange(6))


def test_rows_with_names_warn_of_nothing_when_a_fit_goes_on(X):
    table = pandas.DataFrame(X, columns=list("abcdef"))
    for model in (PPCA(2), AdaptivePPCA(2, 1, random_state=0, warm_start=True)):
        model.fit(table)
        if isinstance(model, AdaptivePPCA):
            model.set_params(n_components=3).fit(table)
        assert model.bic(table) > model.aic(table)


@pytest.mark.parametrize("verbose", [0, 1, 10])
def test_verbose_is_also_a_whole_number(verbose, capsys):
    X = np.random.default_rng(0).normal(size=(60, 5))
    X[::7, 2] = np.nan
    for model in (AdaptivePPCA(2, 1, verbose=verbose), PPCA(2, verbose=verbose)):
        model.fit(X)
        assert bool(capsys.readouterr().out) == bool(verbose)
    with pytest.raises(ValueError, match=r"verbose must be True or False or a whole number .* -1"):
        PPCA(2, verbose=-1).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        AdaptivePPCA(2, 1, random_state=0),
        AdaptiveFactorAnalysis(2, 1, random_state=0),
        NonparametricPPCA(2, n_chains=1, burn_in=2, n_draws=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_verbose_prints_what_a_callback_hears(model, X, capsys):
    heard = []
    model.set_params(verbose=True, callback=heard.append).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(heard) > 0
    assert lines[-1].startswith(f"{heard[-1].stage}, {heard[-1].iteration} of at most")
    assert float(lines[-1].split()[-4]) == pytest.approx(heard[-1].log_likelihood / 150, rel=1e-4)
