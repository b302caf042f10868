"""aPPCA with noise per feature, row scales and learned sizes: fits, queries, robustness."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.stats import kurtosis
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning

from appca import AdaptivePPCA, load_model
from appca.models import climb
from tests.models.synthetic import planted
from tests.references import em_variants
from tests.references.em_variants import Parameters

K, L, D = 4, 2, 7
SETTINGS = [
    {"noise": noise, "row_scale": row_scale, "n_active": n_active}
    for noise, row_scale, n_active in product(
        ["shared", "feature"], ["none", "learned"], [L, "learned"]
    )
]
ALONE, ALL = SETTINGS[4], SETTINGS[-1]  # noise per feature; with row scales and learned sizes


def in_every_run(*settings):
    """Give the settings as parameters, those that are not named marked for CI."""
    return [
        pytest.param(one, marks=[] if one in settings else [pytest.mark.thorough], id=str(one))
        for one in SETTINGS
    ]


EXTENDED = in_every_run(ALONE, ALL)[1:]


def rows_of(seed=0, n=160, d=D, k=K):
    rng = np.random.default_rng(seed)
    X = planted(n, d, k, L, seed=seed, noise=0.4, scales=np.linspace(1, 3, k), offset=2.0).X
    return X * np.linspace(0.5, 2.0, d) * rng.choice([0.7, 1.6], (n, 1))


def fitted(X, *, k=K, **settings):
    return AdaptivePPCA(k, random_state=0, **settings).fit(X)


def parameters(model):
    """A fit as the reference has it, where scores are in noise units."""
    k, d = model.components_.shape
    psi = np.broadcast_to(model.noise_variance_, d)
    root = 1.0 if np.ndim(model.noise_variance_) else np.sqrt(model.noise_variance_)
    return Parameters(
        root * model.components_.T,
        model.mean_,
        model.latent_variance_ / root**2,
        psi,
        getattr(model, "row_scale_values_", np.ones(1)),
        getattr(model, "row_scale_probabilities_", np.ones(1)),
        getattr(model, "size_probabilities_", np.eye(k + 1)[model.n_active_]),
    )


@pytest.fixture(
    scope="module", params=in_every_run(SETTINGS[0], ALONE, SETTINGS[2], SETTINGS[1], ALL)
)
def fit(request):
    X = rows_of()
    return fitted(X[:120], latent_variance="component", **request.param), X[100:]


def test_components_are_orthonormal_in_noise_units(fit):
    model, _ = fit
    W = model.components_.T
    scale = model.noise_variance_ if np.ndim(model.noise_variance_) else np.ones(D)
    np.testing.assert_allclose(W.T / scale @ W, np.eye(K), atol=1e-10)
    V = W / np.sqrt(scale)[:, None] if np.ndim(model.noise_variance_) else W
    assert (V[np.abs(V).argmax(axis=0), range(K)] > 0).all()


def test_queries_equal_enumeration_over_supports_and_scales(fit):
    model, X = fit
    at = parameters(model)
    log_p, supports, p = em_variants.e_step(X, at)
    r = np.einsum("ncj,ck->nk", p, supports)
    m, _ = em_variants.scores(X, at)
    root = 1.0 if np.ndim(model.noise_variance_) else np.sqrt(model.noise_variance_)
    np.testing.assert_allclose(model.score_samples(X), log_p, atol=1e-9)
    np.testing.assert_allclose(model.inclusion_probabilities(X), r, atol=1e-10)
    np.testing.assert_allclose(model.transform(X, "all"), root * r * m, atol=1e-10)
    np.testing.assert_allclose(model.row_scales(X), p.sum(axis=1) @ at.u, atol=1e-10)
    best = supports[p.max(axis=2).argmax(axis=1)]  # of the likeliest pair of support and scale
    np.testing.assert_array_equal(model.allocate(X), best)
    np.testing.assert_allclose(model.transform(X), np.where(best, root * m, 0.0), atol=1e-10)
    share = p.sum(axis=2)[range(len(X)), p.max(axis=2).argmax(axis=1)]
    np.testing.assert_allclose(model.allocation_probability(X), share, atol=1e-10)
    if hasattr(model, "size_probabilities_"):
        sizes = p.sum(axis=2) @ np.eye(K + 1)[supports.sum(axis=1)]
        np.testing.assert_allclose(model.size_probabilities(X), sizes, atol=1e-10)


def test_a_description_says_what_the_queries_say(fit):
    model, X = fit
    told = model.describe(X)
    np.testing.assert_allclose(told.scores, model.transform(X), atol=1e-12)
    np.testing.assert_array_equal(told.active, model.allocate(X))
    np.testing.assert_allclose(told.inclusion, model.inclusion_probabilities(X), atol=1e-12)
    np.testing.assert_allclose(told.membership, model.allocation_probability(X), atol=1e-12)
    np.testing.assert_allclose(told.log_likelihood, model.score_samples(X), atol=1e-9)
    left = X - model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(told.error, np.square(left).mean(axis=1), atol=1e-12)


def test_attributes_are_moments_of_the_training_rows(fit):
    model, _ = fit
    X, at = rows_of()[:120], parameters(model)
    _, supports, p = em_variants.e_step(X, at)
    m, v = em_variants.scores(X, at)
    scale = 1.0 if np.ndim(model.noise_variance_) else model.noise_variance_
    r = np.einsum("ncj,ck->nk", p, supports)
    with_u = np.einsum("ncj,ck,j->nk", p, supports, at.u)
    second = scale * (r * m**2 + with_u * v).mean(axis=0)
    assert (np.diff(second) <= 0).all()
    lengths = np.square(model.components_).sum(axis=1)
    np.testing.assert_allclose(model.explained_variance_, second * lengths, rtol=1e-8)
    scores = model.transform(X)
    used = model.allocate(X).sum(axis=0)
    rms = np.sqrt(np.square(scores).sum(axis=0) / np.maximum(used, 1))
    np.testing.assert_allclose(model.scale_[used > 0], rms[used > 0], rtol=1e-8)
    assert model.log_likelihoods_[-1] == pytest.approx(model.score_samples(X).sum(), rel=1e-9)
    assert (np.diff(model.log_likelihoods_) >= -1e-7).all()


def test_samples_have_the_covariance_and_the_sizes_of_the_model(fit):
    model, _ = fit
    X, Z = model.sample(200_000, 0, return_supports=True)
    C = model.get_covariance()
    np.testing.assert_allclose(np.cov(X.T), C, atol=0.03 * np.abs(C).max())
    sizes = np.bincount(Z.sum(axis=1), minlength=K + 1) / len(Z)
    np.testing.assert_allclose(sizes, parameters(model).rho, atol=0.01)
    total = np.trace(C)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, model.explained_variance_ / total, rtol=1e-9
    )


def test_a_fit_comes_back_from_a_file(fit, tmp_path):
    model, X = fit
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    for question in ("score_samples", "transform", "allocate", "row_scales"):
        np.testing.assert_array_equal(getattr(again, question)(X), getattr(model, question)(X))
    np.testing.assert_array_equal(again.sample(20, 1), model.sample(20, 1))
    assert again.n_parameters_ == model.n_parameters_


@pytest.mark.default_cases(3)
def test_numbers_of_parameters_are_ranks_of_the_jacobian(fit):
    """Of moments of the likelihood at many rows, by any parameters around the fit."""
    model, _ = fit
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
        weights = at.omega * np.exp(omega)
        sizes = at.rho * np.exp(rho)
        return em_variants.e_step(
            Y,
            at._replace(
                W=np.sqrt(noise)[:, None] * (U @ Vt),
                mu=at.mu + mu,
                tau2=at.tau2 * np.exp(tau2),
                psi=noise,
                omega=weights / weights.sum(),
                rho=sizes / sizes.sum(),
            ),
        )[0]

    step = 1e-4
    J = [
        (log_p(theta + step * e) - log_p(theta - step * e)) / (2 * step) for e in np.eye(len(theta))
    ]
    values = np.linalg.svd(np.array(J), compute_uv=False)
    assert (values > 1e-6 * values[0]).sum() == model.n_parameters_


@pytest.mark.parametrize("k", [1, 2, 3])
def test_all_components_and_own_noise_are_factor_analysis(k):
    rng = np.random.default_rng(k)
    loadings = rng.standard_normal((8, k)) * [1.0, 2.0, 0.5][:k]
    noise = rng.uniform(0.8, 1.5, 8)
    X = rng.standard_normal((600, k)) @ loadings.T + noise * rng.standard_normal((600, 8))
    settings = {"n_active": k, "noise": "feature", "latent_variance": "component"}
    model = fitted(X, k=k, tol=1e-9, max_iter=5000, **settings)
    wanted = FactorAnalysis(k, tol=1e-6, max_iter=20_000, svd_method="lapack").fit(X)
    assert model.score(X) == pytest.approx(wanted.score(X), abs=1e-6)
    np.testing.assert_allclose(model.noise_variance_, wanted.noise_variance_, rtol=1e-2)
    np.testing.assert_allclose(model.get_covariance(), wanted.get_covariance(), atol=1e-2)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", EXTENDED)
def test_extensions_reach_a_higher_likelihood_on_rows_they_were_made_for(settings):
    X = rows_of(3, n=400)
    assert fitted(X, **settings).score(X) > fitted(X, n_active=L).score(X) + 0.02


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("row_scale", "n_active"),
    [
        ("none", L),
        pytest.param("none", "learned", marks=pytest.mark.thorough),
        pytest.param("learned", L, marks=pytest.mark.thorough),
        ("learned", "learned"),
    ],
)
def test_own_noise_does_not_depend_on_the_units_of_features(row_scale, n_active):
    X = rows_of()
    units = 10.0 ** np.linspace(-3, 3, D)
    settings = {"noise": "feature", "row_scale": row_scale, "n_active": n_active}
    model, other = fitted(X, **settings), fitted(X * units, **settings)
    np.testing.assert_array_equal(other.allocate(X * units), model.allocate(X))
    np.testing.assert_allclose(
        other.score_samples(X * units), model.score_samples(X) - np.log(units).sum(), atol=1e-6
    )
    np.testing.assert_allclose(other.components_ / units, model.components_, atol=1e-6)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("unit", [1e-8, pytest.param(1e8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", in_every_run(ALL)[1:])
def test_extended_fits_do_not_depend_on_one_unit_for_all(settings, unit):
    X = rows_of()
    model, other = fitted(X, **settings), fitted(X * unit, **settings)
    shifted = model.score(X) - D * np.log(unit)
    assert other.score(X * unit) == pytest.approx(shifted, abs=1e-6)
    np.testing.assert_array_equal(other.allocate(X * unit), model.allocate(X))


def awkward(name):
    rng = np.random.default_rng(5)
    X = rows_of(5, n=120)
    extra = {
        "constant": np.full(120, 3.7),
        "in one row": np.where(np.arange(120) == 7, 1.0, 0.0),
        "nearly constant": np.where(np.isin(np.arange(120), [7, 50, 83]), 1.0, 0.0),
        "tiny": 1e6 + 1e-3 * rng.standard_normal(120),
        "binary": rng.integers(0, 2, 120).astype(float),
        "duplicated": X[:, 2],
        "rescaled duplicate": -1e4 * X[:, 2] + 5,
    }
    return np.column_stack([X, extra[name]])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "name",
    [
        "constant",
        "in one row",
        "nearly constant",
        "tiny",
        "binary",
        "duplicated",
        "rescaled duplicate",
    ],
)
@pytest.mark.parametrize("settings", [ALL, ALONE], ids=str)
def test_awkward_features_are_survived(settings, name):
    X = awkward(name)
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
        np.testing.assert_allclose(
            model.score_samples(X), without.score_samples(X[:, :-1]), atol=1e-8
        )
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
    np.testing.assert_allclose(other.noise_variance_ / units**2, model.noise_variance_, rtol=1e-5)
    share = model.noise_variance_ / np.maximum(X.var(axis=0), 1e-300)
    floor = np.maximum(4.0 * (kurtosis(X[:, D + 2 :], fisher=True)) / N, 0.01)
    assert (share[D : D + 2] == 0.0).all()
    assert (share[D + 2 :] >= floor * (1.0 - 1e-9)).all()
    assert floor[0] > 1.9
    np.testing.assert_allclose(share[D + 2 : D + 4], floor[:2])  # variance is less than the floor


@pytest.mark.parametrize("settings", EXTENDED)
def test_fewer_rows_than_features_are_fitted(settings):
    X = rows_of(2, n=20, d=40)
    model = fitted(X, **settings)
    assert np.isfinite(model.score(X))
    assert (np.diff(model.log_likelihoods_) >= -1e-6).all()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", EXTENDED)
def test_single_precision_gives_what_double_gives(settings):
    X = rows_of(1, n=300)
    double, single = fitted(X, **settings), fitted(X.astype(np.float32), **settings)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.score(X.astype(np.float32)) == pytest.approx(double.score(X), abs=2e-3)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", [ALL, ALONE], ids=str)
def test_blocks_give_what_memory_gives(settings):
    X = rows_of(6, n=900)
    settings = settings | {"tol": 1e-6, "max_iter": 2000}  # else they stop apart on flat shares
    inside = fitted(X, **settings)
    blocks = AdaptivePPCA(K, random_state=0, **settings).fit_blocks([X[:300], X[300:]])
    assert blocks.score(X) == pytest.approx(inside.score(X), abs=2e-3)
    np.testing.assert_array_less(0.99, (blocks.allocate(X) == inside.allocate(X)).mean())


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


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [ALL, ALONE], ids=str)
def test_dask_gives_what_memory_gives(settings):
    array = pytest.importorskip("dask.array")
    X = rows_of(6, n=900)
    chunks = array.from_array(X, chunks=(250, D))
    inside, outside = fitted(X, **settings), fitted(chunks, **settings)
    assert outside.score(X) == pytest.approx(inside.score(X), abs=2e-3)
    for question in ("score_samples", "row_scales", "transform", "allocate"):
        asked = getattr(outside, question)
        np.testing.assert_allclose(asked(chunks).compute(), asked(X), rtol=1e-12, atol=1e-10)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", EXTENDED)
def test_a_warm_start_goes_on_from_the_fit_before(settings):
    X = rows_of(7, n=300)
    model = fitted(X, tol=1e-7, max_iter=2000, **settings).set_params(warm_start=True)
    before, likelihood = model.n_iter_, model.score(X)
    model.fit(X)
    assert model.n_iter_ < 0.5 * before + 12
    assert model.score(X) >= likelihood - 1e-9
    model.set_params(n_components=K + 1).fit(X)
    assert model.components_.shape == (K + 1, D)
    model.set_params(noise="shared", row_scale="none", n_active=L).fit(X)
    assert np.ndim(model.noise_variance_) == 0
    assert not hasattr(model, "size_probabilities_")
    assert not hasattr(model, "row_scale_probabilities_")
    assert (model.row_scales(X) == 1.0).all()


@pytest.mark.thorough
def test_a_warm_start_goes_on_from_a_fit_with_other_scales():
    """Stored fits have the six scales of their time."""
    X = rows_of(7, n=300)
    model = fitted(X, row_scale="learned").set_params(warm_start=True, tol=1e-7, max_iter=2000)
    likelihood = model.fit(X).score(X)
    model.row_scale_values_ = np.geomspace(0.3, 3.5, 6)
    model.row_scale_probabilities_ = np.array([0.1, 0.2, 0.4, 0.1, 0.1, 0.1])
    model.fit(X)
    assert model.row_scale_values_.shape == model.row_scale_probabilities_.shape == (10,)
    assert model.score(X) == pytest.approx(likelihood, abs=1e-3)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("mean", ["sample", "zero"])
@pytest.mark.parametrize("settings", EXTENDED)
def test_a_fixed_mean_stays_where_it_is(settings, mean):
    X = rows_of()
    model = fitted(X, mean=mean, **settings)
    wanted = X.mean(axis=0) if mean == "sample" else np.zeros(D)
    np.testing.assert_allclose(model.mean_, wanted, atol=1e-12)
    assert (np.diff(model.log_likelihoods_) >= -1e-7).all()


def test_the_order_of_components_does_not_follow_units():
    X = rows_of()
    model = fitted(X, noise="feature", n_active=L)
    last = np.abs(model.components_[-1]).argmax()
    units = np.where(np.arange(D) == last, 1e4, 1.0)
    scaled = fitted(X * units, noise="feature", n_active=L)
    np.testing.assert_allclose(scaled.components_ / units, model.components_, atol=1e-6)
    assert (np.diff(scaled.explained_variance_) > 0).any()  # of data units: another order


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": "feature", "inference": "gibbs"}, "inference must be 'em' with noise='feature'"),
        (
            {"row_scale": "learned", "inference": "hard"},
            "inference must be 'em' or 'gibbs' with row_scale",
        ),
        ({"n_active": "learned", "inference": "hard"}, "'em' or 'gibbs' with n_active='learned'"),
        ({"noise": "feature", "latent_variance": 1.0}, "latent_variance must be 'shared' or"),
        ({"noise": "each"}, "noise must be 'shared' or 'feature'; got 'each'"),
        ({"row_scale": True}, "row_scale must be 'none' or 'learned'; got True"),
        ({"n_active": "all"}, "n_active must be 'learned' or a whole number of at least 1"),
    ],
)
def test_what_extensions_cannot_do_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        fitted(rows_of(), **settings)


@pytest.mark.parametrize("settings", EXTENDED)
def test_missing_entries_and_batches_are_refused(settings):
    X = rows_of()
    model = fitted(X, **settings)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"missing entries .* need noise='shared'"):
        fitted(X, **settings)
    with pytest.raises(ValueError, match=r"missing entries .* need noise='shared'"):
        model.transform(X)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=f"partial_fit needs .* got '{model.noise}', .*: set"):
        model.partial_fit(X)
    assert clone(model).get_params() == model.get_params()


def test_panels_are_not_numbered_where_rows_use_any_number():
    X = rows_of()
    with pytest.raises(ValueError, match="n_active is 'learned'"):
        fitted(X, n_active="learned").predict(X)
    assert fitted(X, noise="feature", n_active=L).predict(X).max() < 6


def test_more_components_than_varying_features_are_refused():
    X = np.column_stack([rows_of(d=4), np.ones((160, 3))])
    with pytest.raises(
        ValueError, match="n_components must be at most 4, because 4 of the 7 features of X vary in"
    ):
        fitted(X, k=5, noise="feature", n_active=2)


def test_a_row_that_holds_all_variance_is_refused_by_name():
    X = rows_of(d=4)
    X[0] *= 1e6
    with pytest.raises(ValueError, match=r"at most 0, .* leave out rows far from all others"):
        fitted(X, k=2, noise="feature", n_active=1)


def test_a_callback_stops_an_extended_fit():
    heard = []

    def stop(progress):
        heard.append(progress.stage)
        if progress.stage == "fit" and progress.iteration == 3:
            raise StopIteration

    model = AdaptivePPCA(K, L, noise="feature", row_scale="learned", callback=stop)
    model.fit(rows_of())
    assert model.stop_reason_ == "stopped by the callback"
    assert model.n_iter_ == 3


def test_too_few_iterations_are_warned_of():
    model = AdaptivePPCA(K, L, noise="feature", max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model.fit(rows_of())
