"""Adaptive PPCA and PPCA as estimators: recovery, limits, criteria, what is said of odd rows."""

from itertools import combinations

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.stats import multivariate_normal, ortho_group
from sklearn.exceptions import ConvergenceWarning

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models.rows import Rows
from tests.models.synthetic import matched_cosines, planted, principal_cosines


def fitted(X, k=4, n_active=2, **parameters):
    return AdaptivePPCA(k, n_active, **{"random_state": 0, "init": "quartimax", **parameters}).fit(
        X
    )


@pytest.fixture
def data(seed):
    return planted(300, 10, 4, 2, seed=seed, noise=0.3, scales=[3.0, 2.0, 1.5, 1.0], offset=2.0)


@pytest.mark.parametrize(
    ("n", "d", "k", "n_active"),
    [
        *[(1000, 50, 10, 5), (1000, 50, 20, 10)],
        pytest.param(1000, 100, 50, 5, marks=pytest.mark.slow),  # 7 s
        pytest.param(5000, 100, 50, 25, marks=pytest.mark.slow),  # 15 s
    ],
)
def test_planted_directions_are_recovered(n, d, k, n_active, seed):
    data = planted(n, d, k, n_active, seed=seed)
    model = fitted(data.X, k, n_active, init="auto")
    cosines = matched_cosines(model.components_, data.W)
    # With 100 rows to a direction, as at K = 50, L = 5, the best estimate itself is off by 0.1.
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.98
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.05)


def test_a_hundred_components_with_fifty_active_stay_finite_and_monotone(seed):
    data = planted(400, 120, 100, 50, seed=seed, scales=10.0)
    model = fitted(data.X, 100, 50, max_iter=20, init="pca")
    assert np.all(np.isfinite(model.score_samples(data.X)))
    r = model.inclusion_probabilities(data.X)
    close(r.sum(axis=1), 50.0, rtol=1e-10)
    values = model.log_likelihoods_
    assert np.all(np.diff(values) >= -1e-10 * np.abs(values[1:]))


def test_a_given_start_skips_the_race_and_is_made_orthonormal(data):
    seen = []
    skewed = data.W.T + 0.1
    model = fitted(data.X, init=skewed, callback=seen.append)
    assert {p.stage for p in seen} == {"fit"}
    assert [p.iteration for p in seen] == list(range(1, model.n_iter_ + 1))
    assert [p.log_likelihood for p in seen] == list(model.log_likelihoods_)
    assert all(p.max_iter == 500 for p in seen)


@pytest.mark.filterwarnings("ignore:The noise variance reached its floor")
def test_stop_reasons_are_words(data):
    assert fitted(data.X).stop_reason_.startswith("converged: improvement below tol over the last")
    assert fitted(data.X, max_iter=2).stop_reason_ == "reached max_iter=2 before it converged"
    clean = planted(100, 6, 2, 1, seed=0, noise=0.0).X
    assert fitted(clean, 2, 1).stop_reason_ == (
        "the noise variance reached its floor, 1e-8 of the mean feature variance"
    )


def test_a_sample_of_equal_rows_does_not_end_a_fit(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = np.zeros((30_000, 8))
    X[:5] = rng.standard_normal((5, 8))
    monkeypatch.setattr(Rows, "take", lambda rows, which: rows.X[-len(which) :])
    model = fitted(X, 3, 1, init="auto")
    assert np.isfinite(model.score(X))
    close(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)


@pytest.mark.filterwarnings("ignore:X varies in", "ignore:The noise variance")
@pytest.mark.parametrize("shape", [(60, 8), (30, 80)], ids=["more rows", "more features"])
def test_more_components_than_the_data_have_directions_are_completed(shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    model = fitted(X, 5, 2, max_iter=50)
    close(model.components_ @ model.components_.T, np.eye(5), atol=1e-8)
    assert np.all(np.isfinite(model.score_samples(X)))


@pytest.fixture
def X(seed):
    return planted(300, 12, 6, 3, seed=seed, scales=np.linspace(1, 3, 6), offset=1.0).X


@pytest.mark.parametrize("shape", [(100, 8), (10, 40)], ids=["more rows", "more features"])
def test_all_components_active_with_their_own_variance_is_ppca(shape, seed):
    X = np.random.default_rng(seed).standard_normal(shape) * np.linspace(1, 3, shape[1])
    ours, closed = fitted(X, 4, 4, latent_variance="component"), PPCA(4).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    close(ours.latent_variance_ + ours.noise_variance_, values[::-1][:4], rtol=1e-8)
    close(np.abs(np.sum(ours.components_.T * vectors[:, ::-1][:, :4], axis=0)), 1.0, atol=1e-8)
    assert ours.score(X) == pytest.approx(closed.score(X), rel=1e-10)
    close(ours.components_, closed.components_, atol=1e-10)
    assert ours.stop_reason_ == "closed form"
    shared = fitted(X, 4, 4)
    close(principal_cosines(shared.components_, closed.components_.T), 1.0, atol=1e-10)
    close(shared.latent_variance_, np.mean(closed.latent_variance_), rtol=1e-8)


def test_a_learned_mean_reaches_a_higher_likelihood_than_the_sample_mean(seed):
    rng = np.random.default_rng(seed)
    data = planted(800, 10, 4, 1, seed=seed, scales=2.0)
    X = data.X + 3.0 * data.Z @ data.W.T * (rng.random((800, 1)) < 0.7)  # skewed scores
    learned, sample = fitted(X, 4, 1), fitted(X, 4, 1, mean="sample")
    assert learned.score(X) > sample.score(X) + 0.01
    close(sample.mean_, X.mean(axis=0), rtol=1e-12)


def test_without_noise_hard_assignment_and_em_find_the_planted_model(seed):
    data = planted(500, 12, 4, 2, seed=seed, noise=1e-4)
    for inference in ("hard", "em"):
        model = fitted(data.X, tol=1e-8, inference=inference)
        close(np.max(np.abs(model.components_ @ data.W), axis=1), 1.0, atol=1e-4)
        order = np.argmax(np.abs(model.components_ @ data.W), axis=1)
        assert np.mean(model.allocate(data.X) == data.Z[:, order]) > 0.99


def test_a_rotation_of_the_data_rotates_the_components(X, seed):
    Q = ortho_group.rvs(12, random_state=seed)
    one, two = fitted(X, 6, 3, tol=1e-8), fitted(X @ Q, 6, 3, tol=1e-8)
    overlap = np.abs(two.components_ @ (one.components_ @ Q).T)
    close(overlap, np.eye(6), atol=1e-5)
    close(two.score_samples(X @ Q), one.score_samples(X), atol=1e-6)


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
def test_more_features_than_rows_give_the_fit_in_full_coordinates(mean, seed, monkeypatch):
    from appca.models import climb

    X = planted(40, 60, 4, 2, seed=seed, scales=3.0).X
    start = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4]
    thin = fitted(X, tol=1e-8, init=start, mean=mean)
    monkeypatch.setattr(climb, "THIN_LIMIT", 0)
    full = fitted(X, tol=1e-8, init=start, mean=mean)
    close(thin.log_likelihoods_, full.log_likelihoods_, rtol=1e-9)
    close(thin.components_, full.components_, atol=1e-7)
    close(thin.mean_, full.mean_, atol=1e-7)
    assert thin.noise_variance_ == pytest.approx(full.noise_variance_, rel=1e-8)


def test_more_features_than_rows_never_need_a_matrix_of_features_by_features():
    d = 200_000  # D x D would take 320 GB
    X = planted(20, d, 3, 1, seed=0, scales=100.0).X
    model = AdaptivePPCA(3, 1, random_state=0, max_iter=30).fit(X)
    assert model.components_.shape == (3, d)


@pytest.mark.filterwarnings("ignore:The noise variance reached its floor")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_vary_in_fewer_directions_than_components_are_said(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 8))[rng.integers(3, size=60)].astype(dtype)  # two directions
    for model in (AdaptivePPCA(4, 1, random_state=0), PPCA(4)):
        with pytest.warns(UserWarning, match="X varies in 2 of the n_components=4 directions only"):
            model.fit(X)
    X[:, 0] *= 1e-3  # small is not nothing
    AdaptivePPCA(2, 1, random_state=0).fit(X + rng.normal(size=X.shape).astype(dtype) * 0.01)


@pytest.mark.filterwarnings("ignore:X varies in")
@pytest.mark.parametrize("model", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_the_floor_of_the_noise_and_an_end_before_convergence_are_said(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    with pytest.warns(ConvergenceWarning, match="The noise variance reached its floor, 1e-8 of"):
        model(3, 2, random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning, match="EM ended at max_iter=2 before it converged"):
        model(3, 1, max_iter=2, random_state=0).fit(rng.normal(size=(60, 8)))


@pytest.mark.parametrize("shape", [(80, 6), (12, 30)], ids=["more rows", "more features"])
def test_no_nearby_parameters_have_a_higher_likelihood(shape, seed):
    rng, (n, d) = np.random.default_rng(seed), shape
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.standard_normal(d)
    model = PPCA(3).fit(X)
    W, latent, noise = model.components_.T, model.latent_variance_, model.noise_variance_
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert noise == pytest.approx(values[3:].mean())  # of all that were left out
    close(latent + noise, values[:3], rtol=1e-10)
    for scale in (1e-3, 1e-2, 1e-1):
        turned = np.linalg.qr(W + scale * rng.standard_normal(W.shape))[0]
        others = [(turned, latent, noise)]
        others += [(W, latent * (1 + sign * scale), noise) for sign in (-1, 1)]
        others += [(W, latent, noise * (1 + sign * scale)) for sign in (-1, 1)]
        for V, t, v in others:
            C = V * t @ V.T + v * np.eye(d)
            assert multivariate_normal(model.mean_, C).logpdf(X).mean() < model.score(X)


def test_fewer_rows_than_features_recover_the_true_noise(seed):
    X = np.random.default_rng(seed).standard_normal((60, 400))
    assert 0.85 < PPCA(3).fit(X).noise_variance_ < 0.98  # scikit-learn's PCA says 6.5


def test_panels_are_numbered_as_combinations_are_listed(seed):
    X = planted(400, 9, 5, 2, seed=seed, noise=0.3, offset=2.0).X
    model = AdaptivePPCA(5, 2, random_state=0).fit(X)
    listed = list(combinations(range(5), 2))
    numbers = model.predict(X)
    found = [tuple(np.flatnonzero(row)) for row in model.allocate(X)]
    assert [listed[n] for n in numbers] == found
    assert numbers.dtype == np.int64
    assert len(np.unique(numbers)) > 5


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ({}, 9 * 5 - 15 + 9 + 2),
        ({"latent_variance": "component"}, 9 * 5 - 15 + 9 + 6),
        ({"latent_variance": 1.0, "mean": "zero"}, 9 * 5 - 15 + 1),
        ({"n_active": 5}, 5 * 4 + 9 + 2),
    ],
)
def test_parameters_are_counted(given, n, seed):
    X = planted(400, 9, 5, 2, seed=seed, noise=0.3, offset=2.0).X
    model = AdaptivePPCA(
        **({"n_components": 5, "n_active": 2, "init": "pca", "max_iter": 2} | given)
    )
    assert model.fit(X).n_parameters_ == n


def test_the_global_seed_holds_where_no_random_state_is_given():
    X = planted(400, 9, 5, 2, seed=3, noise=0.3, offset=2.0).X

    def drawn(seed):
        np.random.seed(seed)  # noqa: NPY002
        model = AdaptivePPCA(4, 2, init="random", max_iter=3)
        return model.fit(X).sample(3)

    equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4))


def test_rows_with_names_warn_of_nothing_when_a_fit_goes_on(seed):
    X = planted(150, 6, 3, 1, seed=seed, noise=0.5).X
    table = pandas.DataFrame(X, columns=list("abcdef"))
    for model in (PPCA(2), AdaptivePPCA(2, 1, random_state=0, warm_start=True)):
        model.fit(table)
        if isinstance(model, AdaptivePPCA):
            model.fit(table)
        assert model.bic(table) > model.aic(table)


def test_the_rows_of_few_iterations_are_gone_on_with_thin_rows_included(seed):
    for n, d in ((60, 100), (400, 8)):
        X = planted(n, d, 4, 2, seed=seed, noise=0.4, offset=2.0).X
        model = AdaptivePPCA(4, 2, random_state=0, max_iter=3)
        with pytest.warns(UserWarning, match="max_iter"):
            model.fit(X)
        last = model.log_likelihoods_[-1]
        for _ in range(3):
            model.set_params(warm_start=True, max_iter=400).fit(X)
            assert model.log_likelihoods_[0] >= last - 1e-7 * abs(last)
            last = model.log_likelihoods_[-1]
