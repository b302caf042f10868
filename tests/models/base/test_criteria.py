"""Panel numbers, covariances and information criteria, by definition and beside scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from tests.models.synthetic import planted


@pytest.fixture
def X(seed):
    return planted(400, 9, 5, 2, seed=seed, noise=0.3, offset=2.0).X


def test_panels_are_numbered_as_combinations_are_listed(X):
    model = AdaptivePPCA(5, 2, random_state=0).fit(X)
    listed = list(combinations(range(5), 2))
    numbers = model.predict(X)
    found = [tuple(np.flatnonzero(row)) for row in model.allocate(X)]
    assert [listed[n] for n in numbers] == found
    assert numbers.dtype == np.int64
    assert len(np.unique(numbers)) > 5


def test_too_many_panels_have_no_numbers():
    Y = np.random.default_rng(0).standard_normal((90, 80))
    model = AdaptivePPCA(80, 40, init="pca", max_iter=1).fit(Y)
    with pytest.raises(ValueError, match="use allocate"):
        model.predict(Y)


def test_the_covariance_is_that_of_many_draws(X):
    model = AdaptivePPCA(5, 2, random_state=0).fit(X)
    drawn, supports = model.sample(200_000, random_state=1, return_supports=True)
    np.testing.assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=0.05)
    assert supports.dtype == bool
    assert (supports.sum(axis=1) == 2).all()
    total = np.trace(np.cov(X.T))
    assert np.trace(model.get_covariance()) == pytest.approx(total, rel=0.02)
    assert model.explained_variance_ratio_.sum() < 1.0


def test_samples_have_the_dtype_of_the_fit(X):
    assert AdaptivePPCA(3, 2).fit(X.astype(np.float32)).sample(2).dtype == np.float32


def test_ppca_has_the_numbers_of_a_normal_distribution_with_its_covariance(X):
    model = PPCA(3).fit(X)
    one = GaussianMixture(1, reg_covar=0.0).fit(X)
    C = model.get_covariance()
    one.precisions_cholesky_ = np.linalg.cholesky(np.linalg.inv(C))[None]
    total = one.score_samples(X).sum()
    n = 9 * 3 - 3 + 1 + 9  # D K - K (K - 1) / 2 and sigma2 and the mean
    assert model.n_parameters_ == n
    assert model.bic(X) == pytest.approx(n * np.log(400) - 2 * total)
    assert model.aic(X) == pytest.approx(2 * n - 2 * total)
    assert model.explained_variance_ratio_.argmax() == 0
    np.testing.assert_array_less(
        model.explained_variance_ratio_, PCA().fit(X).explained_variance_ratio_[:3]
    )


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ({}, 9 * 5 - 15 + 9 + 2),
        ({"latent_variance": "component"}, 9 * 5 - 15 + 9 + 6),
        ({"latent_variance": 1.0, "mean": "zero"}, 9 * 5 - 15 + 1),
        ({"n_active": 5}, 5 * 4 + 9 + 2),
    ],
)
def test_parameters_are_counted(given, n, X):
    model = AdaptivePPCA(
        **({"n_components": 5, "n_active": 2, "init": "pca", "max_iter": 2} | given)
    )
    assert model.fit(X).n_parameters_ == n


def test_the_global_seed_holds_where_no_random_state_is_given(X):
    def drawn(seed):
        np.random.seed(seed)  # noqa: NPY002
        model = AdaptivePPCA(4, 2, init="random", max_iter=3)
        return model.fit(X).sample(3)

    np.testing.assert_array_equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4))


@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_a_warm_start_goes_on_from_the_components_there_are(k, X):
    model = AdaptivePPCA(4, 2, random_state=0).fit(X)
    before, value = model.components_.copy(), model.score(X)
    seen = []
    model.set_params(n_components=k, warm_start=True, callback=seen.append).fit(X)
    assert {p.stage for p in seen} == {"fit"}
    assert model.components_.shape == (k, 9)
    if k >= 4:
        assert model.score(X) >= value - 0.02
    if k == 4:
        cosines = np.abs(model.components_ @ before.T).max(axis=1)
        np.testing.assert_allclose(cosines, 1.0, atol=1e-3)


def test_the_covariance_of_free_loadings_is_that_of_draws_too(X):
    model = AdaptiveFactorAnalysis(4, 2, random_state=0, max_iter=20).fit(X)
    drawn = model.sample(200_000, random_state=1)
    np.testing.assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=0.05)
    assert model.n_parameters_ == 9 * 4 + 9 + 1
    assert model.aic(X) < model.bic(X)
