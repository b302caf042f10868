"""Tests of the estimators adaptive PPCA and PPCA, and of all extensions."""

import warnings
from itertools import combinations

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.stats import kurtosis, multivariate_normal, ortho_group
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import climb
from appca.models.rows import Rows
from tests.models.fits import published_draw, rows_of
from tests.models.synthetic import matched_cosines, planted, principal_cosines
from tests.references import em_adaptive_ppca
from tests.references.em_adaptive_ppca import Parameters


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
    close(model.inclusion_probabilities(data.X).sum(axis=1), 50.0, rtol=1e-10)
    values = model.log_likelihoods_
    assert np.all(np.diff(values) >= -1e-10 * np.abs(values[1:]))


def test_a_given_start_skips_the_race_and_is_made_orthonormal(data):
    seen, skewed = [], data.W.T + 0.1
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
    rng, X = np.random.default_rng(seed), np.zeros((30_000, 8))
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
    rng, data = np.random.default_rng(seed), planted(800, 10, 4, 1, seed=seed, scales=2.0)
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
    close(np.abs(two.components_ @ (one.components_ @ Q).T), np.eye(6), atol=1e-5)
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
    model = AdaptivePPCA(3, 1, init="pca", random_state=0, max_iter=30).fit(X)
    assert model.components_.shape == (3, d)


@pytest.mark.filterwarnings("ignore:The noise variance reached its floor")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_vary_in_fewer_directions_than_components_are_said(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 8))[rng.integers(3, size=60)].astype(dtype)  # two directions
    for model in (AdaptivePPCA(4, 1, init="pca", random_state=0), PPCA(4)):
        with pytest.warns(UserWarning, match="X varies in only 2 of the n_components=4 directions"):
            model.fit(X)
    X[:, 0] *= 1e-3  # small is not nothing
    AdaptivePPCA(2, 1, random_state=0).fit(X + rng.normal(size=X.shape).astype(dtype) * 0.01)


@pytest.mark.filterwarnings("ignore:X varies in")
@pytest.mark.parametrize("model", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_the_floor_of_the_noise_and_an_end_before_convergence_are_said(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    with pytest.warns(ConvergenceWarning, match="The noise variance reached its floor, 1e-8 of"):
        model(3, 2, init="pca", random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning, match="EM ended at max_iter=2 before it converged"):
        model(3, 1, max_iter=2, init="pca", random_state=0).fit(rng.normal(size=(60, 8)))


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
        others = [(np.linalg.qr(W + scale * rng.standard_normal(W.shape))[0], latent, noise)]
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
    model = AdaptivePPCA(5, 2, init="pca", random_state=0).fit(X)
    listed, numbers = list(combinations(range(5), 2)), model.predict(X)
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
        return AdaptivePPCA(4, 2, init="random", max_iter=3).fit(X).sample(3)

    equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4))


def test_rows_with_names_warn_of_nothing_when_a_fit_goes_on(seed):
    table = pandas.DataFrame(planted(150, 6, 3, 1, seed=seed, noise=0.5).X, columns=list("abcdef"))
    for model in (PPCA(2), AdaptivePPCA(2, 1, init="pca", random_state=0, warm_start=True)):
        model.fit(table).fit(table)
        assert model.bic(table) > model.aic(table)


def test_the_rows_of_few_iterations_are_gone_on_with_thin_rows_included(seed):
    for n, d in ((60, 100), (400, 8)):
        X = planted(n, d, 4, 2, seed=seed, noise=0.4, offset=2.0).X
        model = AdaptivePPCA(4, 2, init="pca", random_state=0, max_iter=3)
        with pytest.warns(UserWarning, match="max_iter"):
            model.fit(X)
        last = model.log_likelihoods_[-1]
        for _ in range(3):
            model.set_params(warm_start=True, max_iter=400).fit(X)
            assert model.log_likelihoods_[0] >= last - 1e-7 * abs(last)
            last = model.log_likelihoods_[-1]


K, L, D = 4, 2, 7
SETTINGS = [
    {"noise": noise, "row_scale": row_scale, "n_active": n_active}
    for noise in ("shared", "feature")
    for row_scale in ("none", "learned")
    for n_active in (L, "learned")
]
ALONE, ALL = SETTINGS[4], SETTINGS[-1]  # noise per feature; with row scales and learned sizes
EXTENDED = [  # those that are not named are thorough
    pytest.param(one, marks=[] if one in (ALONE, ALL) else [pytest.mark.thorough], id=str(one))
    for one in SETTINGS[1:]
]


def made(X, *, k=K, **settings):
    return AdaptivePPCA(k, **{"random_state": 0, "init": "quartimax", **settings}).fit(X)


def parameters(model):
    """A fit as the reference has it, where scores are in noise units."""
    draw, k = published_draw(model), len(model.components_)
    root = 1.0 if np.ndim(model.noise_variance_) else np.sqrt(model.noise_variance_)
    sizes = getattr(model, "size_probabilities_", np.eye(k + 1)[model.n_active_])
    tau2 = draw.tau2 / root**2
    return Parameters(root * draw.W.T, draw.mu, tau2, draw.psi, draw.grid, draw.omega, sizes)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_numbers_of_parameters_are_ranks_of_the_jacobian(settings):
    """Of moments of the likelihood at many rows, by any parameters around the fit."""
    model = made(rows_of()[:120], latent_variance="component", init="pca", **settings)
    rng = np.random.default_rng(0)
    at, Y = parameters(model), rows_of(1, n=400)
    at = at._replace(omega=rng.dirichlet(np.ones(len(at.omega)), 1)[0])
    if hasattr(model, "size_probabilities_"):
        at = at._replace(rho=rng.dirichlet(5 * np.ones(K + 1)))
    shared = np.ndim(model.noise_variance_) == 0
    theta = np.zeros(D * K + D + K + D + len(at.omega) + K + 1)
    ends = np.cumsum([D * K, D, K, D, len(at.omega), K + 1])[:-1]

    def log_p(theta):
        V, mu, tau2, psi, omega, rho = np.split(theta, ends)
        moved = at.W / np.sqrt(at.psi)[:, None] + V.reshape(D, K)
        U, _, Vt = np.linalg.svd(moved, full_matrices=False)
        noise = at.psi * np.exp(psi.mean() if shared else psi)
        weights, sizes = at.omega * np.exp(omega), at.rho * np.exp(rho)
        moved = at._replace(W=np.sqrt(noise)[:, None] * (U @ Vt), mu=at.mu + mu, psi=noise)
        moved = moved._replace(tau2=at.tau2 * np.exp(tau2), omega=weights / weights.sum())
        return em_adaptive_ppca.e_step(Y, moved._replace(rho=sizes / sizes.sum()))[0]

    step = 1e-4
    J = [log_p(theta + step * e) - log_p(theta - step * e) for e in np.eye(len(theta))]
    values = np.linalg.svd(np.array(J), compute_uv=False)
    assert (values > 1e-6 * values[0]).sum() == model.n_parameters_


@pytest.mark.parametrize("k", [1, 3])
def test_all_components_and_own_noise_are_factor_analysis(k):
    rng = np.random.default_rng(k)
    loadings, noise = rng.standard_normal((8, k)) * [1.0, 2.0, 0.5][:k], rng.uniform(0.8, 1.5, 8)
    X = rng.standard_normal((600, k)) @ loadings.T + noise * rng.standard_normal((600, 8))
    settings = {"n_active": k, "noise": "feature", "latent_variance": "component"}
    model = made(X, k=k, tol=1e-9, max_iter=5000, **settings)
    wanted = FactorAnalysis(k, tol=1e-6, max_iter=20_000, svd_method="lapack").fit(X)
    assert model.score(X) == pytest.approx(wanted.score(X), abs=1e-6)
    close(model.noise_variance_, wanted.noise_variance_, rtol=1e-2)
    close(model.get_covariance(), wanted.get_covariance(), atol=1e-2)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", EXTENDED)
def test_extensions_reach_a_higher_likelihood_on_rows_they_were_made_for(settings):
    X = rows_of(3, n=400)
    assert made(X, **settings).score(X) > made(X, n_active=L).score(X) + 0.02


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", [ALONE, ALL], ids=str)
def test_own_noise_does_not_depend_on_the_units_of_features(settings):
    X, units = rows_of(), 10.0 ** np.linspace(-3, 3, D)
    model, other = made(X, **settings), made(X * units, **settings)
    equal(other.allocate(X * units), model.allocate(X))
    close(other.score_samples(X * units), model.score_samples(X) - np.log(units).sum(), atol=1e-6)
    close(other.components_ / units, model.components_, atol=1e-6)


IN_120 = np.arange(120)
AWKWARD = {
    "constant": lambda _x: np.full(120, 3.7),
    "in one row": lambda _x: np.where(IN_120 == 7, 1.0, 0.0),
    "nearly constant": lambda _x: np.where(np.isin(IN_120, [7, 50, 83]), 1.0, 0.0),
    "tiny": lambda _x: 1e6 + 1e-3 * np.random.default_rng(5).standard_normal(120),
    "binary": lambda _x: IN_120 % 5 % 2,
    "rescaled duplicate": lambda x: -1e4 * x + 5,
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("settings", [ALL, ALONE], ids=str)
def test_awkward_features_are_survived(settings, name):
    X = rows_of(5, n=120)
    X = np.column_stack([X, AWKWARD[name](X[:, 2])])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = made(X, **settings)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.components_).all()
    noise = np.broadcast_to(model.noise_variance_, X.shape[1])
    seen = noise > 0  # squares in units of the noise cancel, up to their last bits
    squares = (np.square(X - X.mean(axis=0))[:, seen] / noise[seen]).sum()
    assert (np.diff(model.log_likelihoods_) >= -max(1e-9, 4 * np.finfo(float).eps * squares)).all()
    by_feature = settings["noise"] == "feature"
    left_out = by_feature and name in {"constant", "in one row"}
    assert any("omits them" in str(w.message) for w in said) == (left_out)
    if by_feature:
        assert (model.noise_variance_ == 0).sum() == left_out
        share = model.noise_variance_ / np.maximum(X.var(axis=0), 1e-300)
        assert (share[model.noise_variance_ > 0] > 0.0099).all()
    if left_out:
        without = made(X[:, :-1], **settings)
        close(model.score_samples(X), without.score_samples(X[:, :-1]), atol=1e-8)
        assert (model.inverse_transform(model.transform(X))[:, -1] == model.mean_[-1]).all()
        assert (model.sample(5, 0)[:, -1] == model.mean_[-1]).all()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("jump", [1.0, 3.0])
def test_a_new_row_in_which_a_nearly_constant_feature_jumps_costs_little(jump):
    """With a floor of 1% of its variance alone it costs hundreds to thousands of nats."""
    X, rng = rows_of(9, n=900), np.random.default_rng(9)
    X = np.hstack([X, np.where(rng.random((900, 20)) < 4 / 900, rng.uniform(0.5, 2, 20), 0.0)])
    with warnings.catch_warnings(action="ignore"):  # of features in one row
        model = made(X[:600], noise="feature", n_active=L, row_scale="learned")
    psi, sizes = model.noise_variance_, np.abs(X[:600] - X[:600].mean(axis=0)).max(axis=0)
    rare = np.flatnonzero((psi > 0.0) & (np.arange(D + 20) >= D))
    rows = np.repeat(X[600:601] * (np.arange(D + 20) < D), len(rare), axis=0)
    before = model.score_samples(rows)
    rows[range(len(rare)), rare] += jump * sizes[rare]
    assert len(rare) > 5
    assert (before - model.score_samples(rows) < 100.0 * jump**2).all()


def test_the_floor_is_that_of_the_definition(seed):
    """For a feature in m rows of N, by its kurtosis; a feature in one row is left out."""
    rng = np.random.default_rng(seed)
    X, N = rows_of(seed, n=400), 400
    rare = np.zeros((N, 8))
    for j, m in enumerate([0, 1, 2, 3, 4, 8, 40, 200]):
        rare[rng.permutation(N)[:m], j] = 1e-3 * 10.0**j
    X = np.hstack([X, rare + 0.3 * rng.standard_normal(8)])
    units = 10.0 ** rng.uniform(-8, 8, D + 8)
    with pytest.warns(UserWarning, match="2 of the 15 features of X are constant, or hardly vary"):
        model = made(X, noise="feature", n_active=L)
    with warnings.catch_warnings(action="ignore"):
        other = made(X * units, noise="feature", n_active=L)
    close(other.noise_variance_ / units**2, model.noise_variance_, rtol=1e-5)
    share = model.noise_variance_ / np.maximum(X.var(axis=0), 1e-300)
    floor = np.maximum(4.0 * (kurtosis(X[:, D + 2 :], fisher=True)) / N, 0.01)
    assert (share[D : D + 2] == 0.0).all()
    assert (share[D + 2 :] >= floor * (1.0 - 1e-9)).all()
    assert floor[0] > 1.9
    close(share[D + 2 : D + 4], floor[:2])  # variance is less than the floor


@pytest.mark.parametrize("settings", EXTENDED)
def test_fewer_rows_than_features_are_fitted(settings):
    X = rows_of(2, n=20, d=40)
    model = made(X, **settings)
    assert np.isfinite(model.score(X))
    assert (np.diff(model.log_likelihoods_) >= -1e-6).all()


@pytest.mark.thorough
@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("settings", [ALL, ALONE], ids=str)
def test_samples_lead_to_the_fit_of_all_rows(settings, in_blocks, monkeypatch):
    """Also where a feature varies in rows alone that no sample has."""
    rare = np.zeros(1200)
    rare[[3, 400, 700]] = 1.0, 1.5, -2.0  # two alone are left out
    X = np.column_stack([rows_of(8, n=1200), rare])
    monkeypatch.setattr(climb, "FEW_SUMS", 0)  # a fit of few rows tries more starts
    whole = made(X, **settings).score(X)
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 100)
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 20)
    stages = set()
    model = AdaptivePPCA(
        K, random_state=0, callback=lambda at: stages.add(at.stage), tol=1e-5, **settings
    )
    model.fit_blocks([X[:500], X[500:]]) if in_blocks else model.fit(X)
    assert {"refinement on 100 rows", "refinement on 300 rows", "fit"} <= stages
    assert model.score(X) > whole - 0.5  # samples may lead to another maximum
    assert model.log_likelihoods_[-1] == pytest.approx(model.score(X) * 1200, rel=1e-9)
    assert (np.diff(model.log_likelihoods_) >= -1e-6).all()


def test_a_warm_start_without_extensions_forgets_what_they_learned():
    X = rows_of(7)
    model = made(X, init="pca", **ALL).set_params(warm_start=True)
    model.set_params(noise="shared", row_scale="none", n_active=L).fit(X)
    assert np.ndim(model.noise_variance_) == 0
    assert not hasattr(model, "size_probabilities_")
    assert not hasattr(model, "row_scale_probabilities_")
    assert (model.row_scales(X) == 1.0).all()
