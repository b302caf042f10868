"""Tests of the clusterwise methods, and of the methods and measures of the benchmarks."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from appca import PPCA
from appca.rivals import KSubspaces, MixtureOfFactorAnalysers
from benchmarks.rivals import naming


@parametrize_with_checks(
    [
        MixtureOfFactorAnalysers(n_pieces=2, n_components=1, random_state=0, max_iter=500),
        KSubspaces(n_pieces=2, n_components=1, random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def pieces(seed, n=240):
    """Draw rows of three planes in six dimensions."""
    rng = np.random.default_rng(seed)
    W, k = rng.standard_normal((3, 6, 2)) * 2, rng.integers(3, size=n)
    X = np.einsum("nl,ndl->nd", rng.standard_normal((n, 2)), W[k])
    return X + 3 * np.eye(3, 6)[k] * 3 + 0.1 * rng.standard_normal((n, 6)), k


def test_one_piece_is_probabilistic_pca_or_factor_analysis(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 8))
    X += rng.uniform(0.5, 1.5, 8) * rng.standard_normal(X.shape)
    how, whole = {"n_init": 1, "tol": 1e-10, "max_iter": 5000}, PPCA(2).fit(X)
    for loadings in ("own", "common"):
        one = MixtureOfFactorAnalysers(1, 2, loadings=loadings, **how).fit(X)
        assert one.score(X) == pytest.approx(whole.score(X), abs=1e-5)
        assert one.n_parameters_ == whole.n_parameters_
        np.testing.assert_allclose(one.noise_variance_, whole.noise_variance_, rtol=1e-3)
    one = MixtureOfFactorAnalysers(1, 2, noise="diagonal", **how).fit(X)
    other = FactorAnalysis(2, tol=1e-6, max_iter=5000, svd_method="lapack").fit(X)
    assert one.score(X) == pytest.approx(other.score(X), abs=1e-3)


@pytest.mark.parametrize("loadings", ["own", "common"])
@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_the_likelihood_is_that_of_dense_normal_densities_and_never_falls(noise, loadings, seed):
    X, _ = pieces(seed)
    model = MixtureOfFactorAnalysers(3, 2, noise=noise, loadings=loadings, random_state=seed).fit(X)
    dense = sum(
        share * multivariate_normal(mean, A.T @ A + np.diag(model.noise_variance_)).pdf(X)
        for share, mean, A in zip(model.weights_, model.means_, model.loadings_, strict=True)
    )
    np.testing.assert_allclose(model.score_samples(X), np.log(dense), rtol=1e-6)
    assert (np.diff(model.log_likelihoods_) >= -1e-8).all()


@pytest.mark.parametrize("kind", [MixtureOfFactorAnalysers, KSubspaces])
def test_planted_planes_are_found(kind, seed):
    X, truth = pieces(seed)
    model = kind(3, 2, n_init=10, random_state=0).fit(X)
    found = model.predict(X)
    assert sum(np.bincount(truth[found == k]).max() for k in np.unique(found)) / len(X) > 0.97
    assert np.square(X - model.reconstruct(X)).mean() < 0.05
    assert not model.transform(X).reshape(len(X), 3, 2)[np.arange(3) != found[:, None]].any()


def test_common_loadings_are_one_space_that_holds_every_piece(seed):
    rng = np.random.default_rng(seed)
    A, k = np.linalg.qr(rng.standard_normal((8, 3)))[0], rng.integers(2, size=500)
    scale = np.array([[4.0, 1.0, 0.3], [0.3, 1.0, 4.0]])[k]
    U = scale * rng.standard_normal((500, 3)) + np.array([[3.0, 0, 0], [0, 0, 3.0]])[k]
    X = U @ A.T + 0.1 * rng.standard_normal((500, 8)) + 5.0
    model = MixtureOfFactorAnalysers(2, 3, loadings="common", random_state=0).fit(X)
    assert np.linalg.svd(model.components_ @ A)[1].min() > 0.999
    assert np.linalg.matrix_rank(model.loadings_.reshape(-1, 8), tol=1e-6) == 3
    back = model.transform(X) @ model.components_ + model.centre_
    np.testing.assert_allclose(back, model.reconstruct(X), atol=1e-8)
    assert np.square(X - back).mean() < 0.01


@pytest.mark.parametrize("kind", [MixtureOfFactorAnalysers, KSubspaces])
def test_a_weight_is_a_repetition_and_order_does_not_matter(kind, seed):
    X, _ = pieces(seed, 90)
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 4, len(X))
    some = rng.permutation(np.repeat(np.arange(len(X)), w))
    one = kind(3, 2, random_state=0).fit(X, sample_weight=w)
    other = kind(3, 2, random_state=0).fit(X[some])
    assert one.score(X) == pytest.approx(other.score(X), rel=1e-6)
    pieces_of = lambda model: model.means_[np.argsort(model.means_[:, 0])]  # noqa: E731
    np.testing.assert_allclose(pieces_of(one), pieces_of(other), atol=1e-5)


def test_k_subspaces_reaches_the_best_of_all_partitions():
    rng = np.random.default_rng(3)
    X = np.kron(np.eye(2), rng.standard_normal((5, 1))) + 0.05 * rng.standard_normal((10, 2))

    def error(rows):
        return np.linalg.svd(rows - rows.mean(axis=0))[1][1] ** 2 if len(rows) > 2 else 0.0

    masks = np.array(list(product([False, True], repeat=10)))
    best = min(error(X[mask]) + error(X[~mask]) for mask in masks) / 10
    model = KSubspaces(2, 1, n_init=60, random_state=0).fit(X)
    assert model.error_ == pytest.approx(best, rel=1e-6)


def test_naming_is_the_best_area_under_the_curve_of_each_axis():
    """Compare with areas for one class and axis at a time, with ties from unused axes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 200)
    scores = rng.normal(size=(200, 5)) * (rng.random((200, 5)) < 0.6)
    scores[:, 1] += labels == 2
    seen = (scores, scores != 0)
    best = [
        max(abs(2 * roc_auc_score(labels == c, by[:, k]) - 1) for c in range(4) for by in seen)
        for k in range(5)
    ]
    assert naming(scores, labels) == pytest.approx(np.mean(best))
    assert naming(np.eye(4)[labels], labels) == pytest.approx(1.0)
