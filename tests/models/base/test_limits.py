"""Limits: where aPPCA must become another model, or follow the data."""

import numpy as np
import pytest
from scipy.io import loadmat
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from tests.models.synthetic import planted, principal_cosines


@pytest.fixture
def X(seed):
    return planted(300, 12, 6, 3, seed=seed, scales=np.linspace(1, 3, 6), offset=1.0).X


def fitted(X, k=6, n_active=3, **parameters):
    return AdaptivePPCA(k, n_active, random_state=0, **{"tol": 1e-8, **parameters}).fit(X)


@pytest.mark.parametrize("shape", [(100, 8), (10, 40)], ids=["more rows", "more features"])
def test_all_components_active_with_their_own_variance_is_ppca(shape, seed):
    X = np.random.default_rng(seed).standard_normal(shape) * np.linspace(1, 3, shape[1])
    ours, closed = fitted(X, 4, 4, latent_variance="component"), PPCA(4).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    np.testing.assert_allclose(
        ours.latent_variance_ + ours.noise_variance_, values[::-1][:4], rtol=1e-8
    )
    np.testing.assert_allclose(
        np.abs(np.sum(ours.components_.T * vectors[:, ::-1][:, :4], axis=0)), 1.0, atol=1e-8
    )
    assert ours.score(X) == pytest.approx(closed.score(X), rel=1e-10)
    np.testing.assert_allclose(ours.components_, closed.components_, atol=1e-10)
    assert ours.stop_reason_ == "closed form, because n_active equals n_components"


def test_all_components_active_with_one_variance_spans_the_principal_subspace(X):
    ours, closed = fitted(X, 4, 4), PPCA(4).fit(X)
    np.testing.assert_allclose(
        principal_cosines(ours.components_, closed.components_.T), 1.0, atol=1e-10
    )
    mean_variance = np.mean(closed.latent_variance_)
    np.testing.assert_allclose(ours.latent_variance_, mean_variance, rtol=1e-8)


@pytest.mark.parametrize("latent_variance", ["shared", "component"])
def test_em_leaves_the_closed_form_where_it_is(X, latent_variance):
    from appca.models import stiefel
    from appca.models.em import EMSettings, SubspaceState, step
    from appca.models.rows import about, centre_of

    model = fitted(X, 4, 4, latent_variance=latent_variance)
    rows = about(X, centre_of(X))
    settings = EMSettings(4, 4, latent_variance, True, False, stiefel.polar, 1e-12)
    start = SubspaceState(
        model.components_.T, np.zeros(4), model.latent_variance_, model.noise_variance_
    )
    value, after = step(start, rows, settings)
    assert step(after, rows, settings)[0] == pytest.approx(value, rel=1e-12)
    assert after.noise == pytest.approx(start.noise, rel=1e-8)
    np.testing.assert_allclose(after.latent, start.latent, rtol=1e-8)


def test_a_fixed_variance_with_all_components_active_still_spans_the_principal_subspace(X):
    ours = fitted(X, 4, 4, latent_variance=1.0, max_iter=2000)
    cosines = principal_cosines(ours.components_, PPCA(4).fit(X).components_.T)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-4)


def test_all_components_of_all_features_leave_the_noise_at_its_floor(X):
    model = fitted(X, 12, 12)
    assert model.noise_variance_ == pytest.approx(1e-8 * X.var(axis=0).mean(), rel=1e-6)


def test_with_all_components_active_the_learned_mean_is_the_sample_mean(X):
    np.testing.assert_allclose(fitted(X, 4, 4).mean_, X.mean(axis=0), rtol=1e-12)
    free = fitted(X, 4, 4, latent_variance=1.0)  # by EM, not in closed form
    np.testing.assert_allclose(free.mean_, X.mean(axis=0), rtol=1e-6)


def test_a_learned_mean_reaches_a_higher_likelihood_than_the_sample_mean(seed):
    rng = np.random.default_rng(seed)
    data = planted(800, 10, 4, 1, seed=seed, scales=2.0)
    X = data.X + 3.0 * data.Z @ data.W.T * (rng.random((800, 1)) < 0.7)  # skewed scores
    learned, sample = fitted(X, 4, 1), fitted(X, 4, 1, mean="sample")
    assert learned.score(X) > sample.score(X) + 0.01
    np.testing.assert_allclose(sample.mean_, X.mean(axis=0), rtol=1e-12)


def test_without_noise_hard_assignment_and_em_find_the_planted_model(seed):
    data = planted(500, 12, 4, 2, seed=seed, noise=1e-4)
    for inference in ("hard", "em"):
        model = fitted(data.X, 4, 2, inference=inference)
        np.testing.assert_allclose(
            np.max(np.abs(model.components_ @ data.W), axis=1), 1.0, atol=1e-4
        )
        order = np.argmax(np.abs(model.components_ @ data.W), axis=1)
        assert np.mean(model.allocate(data.X) == data.Z[:, order]) > 0.99


def test_the_order_of_rows_does_not_matter(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    one, two = fitted(X), fitted(X[order])
    np.testing.assert_allclose(two.components_, one.components_, atol=1e-6)
    np.testing.assert_allclose(two.score_samples(X), one.score_samples(X), atol=1e-6)


def test_a_rotation_of_the_data_rotates_the_components(X, seed):
    Q = ortho_group.rvs(12, random_state=seed)
    one, two = fitted(X), fitted(X @ Q)
    overlap = np.abs(two.components_ @ (one.components_ @ Q).T)
    np.testing.assert_allclose(overlap, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(two.score_samples(X @ Q), one.score_samples(X), atol=1e-6)


def test_a_shift_of_the_data_shifts_the_mean_alone(X):
    one, two = fitted(X), fitted(X + 100.0)
    np.testing.assert_allclose(two.mean_, one.mean_ + 100.0, rtol=1e-6)
    np.testing.assert_allclose(two.components_, one.components_, atol=1e-6)
    assert two.noise_variance_ == pytest.approx(one.noise_variance_, rel=1e-6)


def test_a_scale_of_the_data_scales_the_variances_alone(X):
    one, two = fitted(X), fitted(1000.0 * X)
    np.testing.assert_allclose(two.components_, one.components_, atol=1e-6)
    np.testing.assert_array_equal(two.allocate(1000.0 * X), one.allocate(X))
    np.testing.assert_allclose(two.latent_variance_, 1e6 * one.latent_variance_, rtol=1e-6)
    assert two.score(1000.0 * X) == pytest.approx(one.score(X) - 12 * np.log(1000.0), rel=1e-6)


def test_a_fixed_latent_variance_does_depend_on_the_unit(X):
    one, two = fitted(X, latent_variance=1.0), fitted(1000.0 * X, latent_variance=1.0)
    assert one.score(X) - 12 * np.log(1000.0) > two.score(1000.0 * X) + 1.0


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
def test_more_features_than_rows_give_the_fit_in_full_coordinates(mean, seed, monkeypatch):
    from appca.models import climb

    X = planted(40, 60, 4, 2, seed=seed, scales=3.0).X
    start = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4]
    thin = fitted(X, 4, 2, init=start, mean=mean)
    monkeypatch.setattr(climb, "THIN_LIMIT", 0)
    full = fitted(X, 4, 2, init=start, mean=mean)
    np.testing.assert_allclose(thin.log_likelihoods_, full.log_likelihoods_, rtol=1e-9)
    np.testing.assert_allclose(thin.components_, full.components_, atol=1e-7)
    np.testing.assert_allclose(thin.mean_, full.mean_, atol=1e-7)
    assert thin.noise_variance_ == pytest.approx(full.noise_variance_, rel=1e-8)


def test_more_features_than_rows_never_need_a_matrix_of_features_by_features():
    d = 200_000  # D x D would take 320 GB
    X = planted(20, d, 3, 1, seed=0, scales=100.0).X
    model = AdaptivePPCA(3, 1, random_state=0, max_iter=30).fit(X)
    assert model.components_.shape == (3, d)


@pytest.mark.real_data
def test_on_real_images_all_components_active_equals_closed_form_ppca(data_folder):
    X = loadmat(data_folder / "coil20" / "COIL20.mat")["X"]
    assert X.shape == (1440, 1024)
    closed = PPCA(12).fit(X)
    ours = AdaptivePPCA(12, 12, latent_variance="component", random_state=0).fit(X)
    assert ours.score(X) == pytest.approx(closed.score(X), rel=1e-10)
    sign, logdet = np.linalg.slogdet(dense := _covariance(closed))
    assert sign > 0
    centred = X - X.mean(axis=0)
    distance = np.einsum("nd,dn->n", centred, np.linalg.solve(dense, centred.T))
    reference = -0.5 * (1024 * np.log(2 * np.pi) + logdet + distance)
    np.testing.assert_allclose(ours.score_samples(X), reference, rtol=1e-8)


def _covariance(model):
    W = model.components_.T
    return W * model.latent_variance_ @ W.T + model.noise_variance_ * np.eye(len(W))


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
def test_the_floor_of_the_noise_is_said(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    with pytest.warns(ConvergenceWarning, match="The noise variance reached its floor, 1e-8 of"):
        model(3, 2, random_state=0).fit(X)


@pytest.mark.parametrize("model", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_an_end_before_convergence_is_said(model):
    X = np.random.default_rng(0).normal(size=(60, 8))
    with pytest.warns(ConvergenceWarning, match="EM ended at max_iter=2 before it converged"):
        model(3, 1, max_iter=2, random_state=0).fit(X)
