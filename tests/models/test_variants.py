"""aPPCA with noise per feature, row scales and learned sizes: fits, robustness, chains."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.stats import kurtosis
from sklearn.decomposition import FactorAnalysis

from appca import AdaptivePPCA
from appca.models import climb
from tests.models.fits import published_draw, rows_of
from tests.references import em_adaptive_ppca
from tests.references.em_adaptive_ppca import Parameters

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


def fitted(X, *, k=K, **settings):
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
    model = fitted(rows_of()[:120], latent_variance="component", init="pca", **settings)
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
    loadings = rng.standard_normal((8, k)) * [1.0, 2.0, 0.5][:k]
    noise = rng.uniform(0.8, 1.5, 8)
    X = rng.standard_normal((600, k)) @ loadings.T + noise * rng.standard_normal((600, 8))
    settings = {"n_active": k, "noise": "feature", "latent_variance": "component"}
    model = fitted(X, k=k, tol=1e-9, max_iter=5000, **settings)
    wanted = FactorAnalysis(k, tol=1e-6, max_iter=20_000, svd_method="lapack").fit(X)
    assert model.score(X) == pytest.approx(wanted.score(X), abs=1e-6)
    close(model.noise_variance_, wanted.noise_variance_, rtol=1e-2)
    close(model.get_covariance(), wanted.get_covariance(), atol=1e-2)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", EXTENDED)
def test_extensions_reach_a_higher_likelihood_on_rows_they_were_made_for(settings):
    X = rows_of(3, n=400)
    assert fitted(X, **settings).score(X) > fitted(X, n_active=L).score(X) + 0.02


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", [ALONE, ALL], ids=str)
def test_own_noise_does_not_depend_on_the_units_of_features(settings):
    X = rows_of()
    units = 10.0 ** np.linspace(-3, 3, D)
    model, other = fitted(X, **settings), fitted(X * units, **settings)
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
        model = fitted(X, **settings)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.components_).all()
    noise = np.broadcast_to(model.noise_variance_, X.shape[1])
    seen = noise > 0  # squares in units of the noise cancel, up to their last bits
    squares = (np.square(X - X.mean(axis=0))[:, seen] / noise[seen]).sum()
    rounding = max(1e-9, 4 * np.finfo(float).eps * squares)
    assert (np.diff(model.log_likelihoods_) >= -rounding).all()
    by_feature = settings["noise"] == "feature"
    left_out = by_feature and name in {"constant", "in one row"}
    assert any("leaves them out" in str(w.message) for w in said) == (left_out)
    if by_feature:
        assert (model.noise_variance_ == 0).sum() == left_out
        share = model.noise_variance_ / np.maximum(X.var(axis=0), 1e-300)
        assert (share[model.noise_variance_ > 0] > 0.0099).all()
    if left_out:
        without = fitted(X[:, :-1], **settings)
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
        model = fitted(X[:600], noise="feature", n_active=L, row_scale="learned")
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
    with pytest.warns(
        UserWarning, match="2 of the 15 features of X are constant or vary in hardly"
    ):
        model = fitted(X, noise="feature", n_active=L)
    with warnings.catch_warnings(action="ignore"):
        other = fitted(X * units, noise="feature", n_active=L)
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
    model = fitted(X, **settings)
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
    whole = fitted(X, **settings).score(X)
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
    model = fitted(X, init="pca", **ALL).set_params(warm_start=True)
    model.set_params(noise="shared", row_scale="none", n_active=L).fit(X)
    assert np.ndim(model.noise_variance_) == 0
    assert not hasattr(model, "size_probabilities_")
    assert not hasattr(model, "row_scale_probabilities_")
    assert (model.row_scales(X) == 1.0).all()
