from itertools import combinations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from appca import AdaptivePPCA
from appca.models.data_checks import refuse_constant
from appca.models.rows import Rows, about, centre_of
from tests.models.synthetic import matched_cosines, planted

SIZES = [(k, n_active) for k in range(1, 8) for n_active in range(1, k + 1)]


def fitted(X, k=4, n_active=2, **parameters):
    return AdaptivePPCA(k, n_active, **{"random_state": 0, **parameters}).fit(X)


def enumerate_model(model, X):
    """log p(y), p(S | y), the subsets, and posterior means given each, by dense normals."""
    W, tau2, noise = model.components_.T, model.latent_variance_, model.noise_variance_
    subsets = [list(S) for S in combinations(range(len(tau2)), model.n_active_)]
    log_joint, means = [], []
    for S in subsets:
        V = W[:, S] * tau2[S]
        C = V @ W[:, S].T + noise * np.eye(len(W))
        log_joint.append(multivariate_normal(model.mean_, C).logpdf(X))
        means.append(np.linalg.solve(C, (X - model.mean_).T).T @ V)
    log_joint = np.array(log_joint).T - np.log(len(subsets))
    log_p = logsumexp(log_joint, axis=1)
    return log_p, np.exp(log_joint - log_p[:, None]), subsets, means


@pytest.fixture
def data(seed):
    return planted(300, 10, 4, 2, seed=seed, noise=0.3, scales=[3.0, 2.0, 1.5, 1.0], offset=2.0)


@pytest.mark.parametrize("latent_variance", ["shared", "component"])
@pytest.mark.parametrize(("k", "n_active"), SIZES)
def test_likelihood_and_inclusion_equal_enumeration(k, n_active, latent_variance, seed):
    X = planted(60, 9, k, n_active, seed=seed, noise=0.4, offset=1.0).X
    model = fitted(X, k, n_active, latent_variance=latent_variance, max_iter=3)
    log_p, p, subsets, _ = enumerate_model(model, X)
    np.testing.assert_allclose(model.score_samples(X), log_p, atol=1e-8)
    member = np.array([[j in S for j in range(k)] for S in subsets])
    np.testing.assert_allclose(model.inclusion_probabilities(X), p @ member, atol=1e-8)


def test_the_last_log_likelihood_is_that_of_the_fitted_model(data):
    for parameters in ({}, {"mean": "zero"}, {"latent_variance": 1.0}, {"max_iter": 1}):
        model = fitted(data.X, **parameters)
        assert len(model.log_likelihoods_) == model.n_iter_
        total = model.score_samples(data.X).sum()
        assert model.log_likelihoods_[-1] == pytest.approx(total, rel=1e-9)


def test_hard_assignment_reports_the_likelihood_of_rows_with_their_subsets(data):
    model = fitted(data.X, inference="hard")
    joint = model.score_samples(data.X) + np.log(model.allocation_probability(data.X))
    assert model.log_likelihoods_[-1] == pytest.approx(joint.sum(), rel=1e-9)
    assert np.all(np.diff(model.log_likelihoods_) >= -1e-9 * abs(joint.sum()))


def test_components_come_sorted_by_explained_variance_and_positive(data):
    model = fitted(data.X)
    assert np.all(np.diff(model.explained_variance_) <= 0.0)
    largest = np.argmax(np.abs(model.components_), axis=1)
    assert np.all(model.components_[np.arange(4), largest] > 0.0)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-10)


RECOVERABLE = [
    *[(1000, 50, 10, 5), (1000, 50, 20, 10)],
    pytest.param(1000, 100, 50, 5, marks=pytest.mark.slow),  # 7 s
    pytest.param(5000, 100, 50, 25, marks=pytest.mark.slow),  # 15 s
]


@pytest.mark.parametrize(("n", "d", "k", "n_active"), RECOVERABLE)
def test_planted_directions_are_recovered(n, d, k, n_active, seed):
    data = planted(n, d, k, n_active, seed=seed)
    model = fitted(data.X, k, n_active)
    cosines = matched_cosines(model.components_, data.W)
    # With 100 rows to a direction, as at K = 50, L = 5, the best estimate itself is off by 0.1.
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.98
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.05)


def test_a_fit_ends_no_lower_than_one_started_at_the_truth(seed):
    data = planted(1000, 50, 10, 5, seed=seed)
    truth = fitted(data.X, 10, 5, init=data.W.T)
    assert fitted(data.X, 10, 5).score(data.X) > truth.score(data.X) - 1e-3


def test_a_hundred_components_with_fifty_active_stay_finite_and_monotone(seed):
    data = planted(400, 120, 100, 50, seed=seed, scales=10.0)
    model = fitted(data.X, 100, 50, max_iter=20, init="pca")
    assert np.all(np.isfinite(model.score_samples(data.X)))
    r = model.inclusion_probabilities(data.X)
    np.testing.assert_allclose(r.sum(axis=1), 50.0, rtol=1e-10)
    values = model.log_likelihoods_
    assert np.all(np.diff(values) >= -1e-10 * np.abs(values[1:]))


@pytest.mark.thorough
def test_pymanopt_and_polar_agree_from_the_same_basin(data):
    start = data.W.T
    polar = fitted(data.X, init=start)
    pymanopt = fitted(data.X, init=start, w_update="pymanopt")
    assert pymanopt.score(data.X) == pytest.approx(polar.score(data.X), abs=1e-4)
    np.testing.assert_allclose(pymanopt.components_, polar.components_, atol=1e-3)


def test_restarts_race_as_random_rotations_and_are_named(data):
    seen = []
    fitted(data.X, n_init=3, callback=seen.append)
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert stages[0] == "screening 1 of 36: quartimax"
    assert stages[35] == "screening 36 of 36: random rotation"
    assert stages[-1] == "fit"


def test_a_given_start_skips_the_race_and_is_made_orthonormal(data):
    seen = []
    skewed = data.W.T + 0.1
    model = fitted(data.X, init=skewed, callback=seen.append)
    assert {p.stage for p in seen} == {"fit"}
    assert [p.iteration for p in seen] == list(range(1, model.n_iter_ + 1))
    assert [p.log_likelihood for p in seen] == list(model.log_likelihoods_)
    assert all(p.max_iter == 500 for p in seen)


def test_sample_is_settled_by_the_seed(data):
    model = fitted(data.X)
    np.testing.assert_array_equal(model.sample(5), model.sample(5))
    assert not np.array_equal(model.sample(5), model.sample(5, random_state=1))


def test_whitened_scores_have_unit_mean_square_where_active(data):
    model = fitted(data.X, whiten=True)
    scores, active = model.transform(data.X), model.allocate(data.X)
    mean_square = np.sum(scores**2, axis=0) / active.sum(axis=0)
    np.testing.assert_allclose(mean_square, 1.0, rtol=1e-8)
    plain = fitted(data.X)
    np.testing.assert_allclose(
        model.inverse_transform(scores),
        plain.inverse_transform(plain.transform(data.X)),
        atol=1e-10,
    )


def test_reconstruction_of_planted_rows_is_as_good_as_the_noise(seed):
    data = planted(500, 30, 6, 3, seed=seed)
    model = fitted(data.X, 6, 3)
    error = data.X - model.inverse_transform(model.transform(data.X))
    assert np.mean(error**2) < 0.1**2


def test_the_same_seed_gives_the_same_bits(data):
    one, two = (fitted(data.X, n_init=3, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.log_likelihoods_, two.log_likelihoods_)


def test_float32_is_fitted_in_float32_with_the_float64_answer(data):
    X = data.X.astype(np.float32)
    small, large = fitted(X), fitted(data.X)
    assert small.components_.dtype == small.mean_.dtype == np.float32
    assert small.transform(X).dtype == small.inverse_transform(small.transform(X)).dtype
    assert small.transform(X).dtype == np.float32
    assert small.score(X) == pytest.approx(large.score(data.X), abs=1e-3)
    np.testing.assert_allclose(small.components_, large.components_, atol=1e-3)


def test_data_and_parameters_stay_as_they_were(data):
    start = data.W.T.copy()
    X, kept = data.X.copy(), start.copy()
    X.flags.writeable = start.flags.writeable = False
    model = AdaptivePPCA(4, 2, init=start, random_state=3)
    before = {name: id(value) for name, value in model.get_params().items()}
    model.fit(X)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(start, kept)
    assert {name: id(value) for name, value in model.get_params().items()} == before


@pytest.mark.parametrize("stage", ["screening 1", "screening 2", "fit"])
def test_stop_iteration_keeps_what_there_is(stage, data):
    def callback(progress):
        if progress.stage.startswith(stage):
            raise StopIteration

    model = fitted(data.X, callback=callback)
    assert model.stop_reason_ == "stopped by the callback"
    assert model.n_iter_ == len(model.log_likelihoods_) == 1
    total = model.score_samples(data.X).sum()
    assert model.log_likelihoods_[-1] == pytest.approx(total, rel=1e-9)


@pytest.mark.filterwarnings("ignore:The noise variance reached its floor")
def test_stop_reasons_are_words(data):
    assert fitted(data.X).stop_reason_.startswith("converged: improvement below tol over the last")
    assert fitted(data.X, max_iter=2).stop_reason_ == "reached max_iter=2 before it converged"
    clean = planted(100, 6, 2, 1, seed=0, noise=0.0).X
    assert fitted(clean, 2, 1).stop_reason_ == (
        "the noise variance reached its floor, 1e-8 of the mean feature variance"
    )


REFUSALS = {
    "too many components": (
        {"n_components": 11},
        "n_components must be at most 10, because X has 300 rows and 10 feature(s); got 11: "
        "ask for fewer components.",
    ),
    "more active than there are": (
        {"n_active": 5},
        "n_active must be at most n_components=4; got 5: lower n_active or raise n_components.",
    ),
    "init of another shape": (
        {"init": np.eye(3)},
        "init must have shape (4, 10), n_components by features; got (3, 3): "
        "pass one row per component.",
    ),
    "restarts of an array": (
        {"init": np.eye(4, 10), "n_init": 2},
        "n_init must be 1 when init is an array; got 2: name a start to add random ones.",
    ),
    "no active component": (
        {"n_active": 0},
        "n_active must be 'learned' or a whole number of at least 1; got 0.",
    ),
    "a fraction of a component": (
        {"n_components": 2.5},
        "n_components must be a whole number of at least 1; got 2.5.",
    ),
    "an unknown inference": (
        {"inference": "vb"},
        "inference must be 'em', 'gibbs' or 'hard'; got 'vb'.",
    ),
    "an unknown update": (
        {"w_update": "qr"},
        "w_update must be 'auto', 'polar', 'pymanopt' or 'sample'; got 'qr'.",
    ),
    "draws without a sampler": (
        {"w_update": "sample"},
        "w_update must not be 'sample' with inference='em', which maximises: "
        "leave w_update at 'auto', or set inference='gibbs'.",
    ),
    "an unknown start": (
        {"init": "best"},
        "init must be 'auto', 'quartimax', 'annealed', 'ica', 'pca' or 'random' or an array "
        "of n_components by features; got 'best'.",
    ),
    "a variance of zero": (
        {"latent_variance": 0.0},
        "latent_variance must be 'shared' or 'component' or a number above 0; got 0.0.",
    ),
    "a tolerance below zero": ({"tol": -1.0}, "tol must be a number of at least 0; got -1.0."),
    "a seed below zero": (
        {"random_state": -1},
        "random_state must be None, a whole number of at least 0, a Generator or a RandomState; "
        "got -1.",
    ),
    "a callback that is none": (
        {"callback": 3},
        "callback must be None or a function of one argument; got 3.",
    ),
    "a switch that is none": ({"whiten": "yes"}, "whiten must be True or False; got 'yes'."),
}


@pytest.mark.parametrize(("parameters", "sentence"), REFUSALS.values(), ids=REFUSALS)
def test_parameters_are_refused_in_one_sentence(parameters, sentence, data):
    with pytest.raises(ValueError, match="must") as refusal:
        AdaptivePPCA().set_params(**parameters).fit(data.X)
    assert str(refusal.value) == sentence


def test_constant_data_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="X must vary, but all its 9 rows are equal"):
        fitted(np.ones((9, 5)), 2, 1)


@pytest.mark.parametrize("n", [3, 10, 1000, 9000])
def test_constant_data_are_refused_where_their_mean_is_rounded(n):
    with pytest.raises(ValueError, match=f"X must vary, but all its {n} rows are equal"):
        fitted(np.full((n, 5), 0.1), 2, 1)


def test_rows_that_hardly_differ_are_not_taken_for_equal():
    X = np.full((1000, 3), 0.1)
    X[500, 0] = np.nextafter(0.1, 1.0)
    refuse_constant(about(X, centre_of(X)))
    with pytest.raises(ValueError, match="X must vary"):
        refuse_constant(about(X[:500], centre_of(X[:500])))


@pytest.mark.parametrize(("factor", "size"), [(1e-25, "small"), (1e25, "large")])
def test_numbers_whose_squares_a_float32_cannot_hold_are_refused(factor, size, data):
    X = (data.X * factor).astype(np.float32)
    with pytest.raises(ValueError, match=f"its entries are too {size}: multiply it"):
        fitted(X)
    whole = fitted(X.astype(np.float64))
    assert whole.score(X.astype(np.float64)) > -np.inf


def test_a_sample_of_equal_rows_does_not_end_a_fit(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = np.zeros((30_000, 8))
    X[:5] = rng.standard_normal((5, 8))
    monkeypatch.setattr(Rows, "take", lambda rows, which: rows.X[-len(which) :])
    model = fitted(X, 3, 1)
    assert np.isfinite(model.score(X))
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)


def test_few_rows_bound_the_number_of_components():
    with pytest.raises(ValueError, match="at most 3, because X has 4 rows and 9 feature"):
        fitted(np.random.default_rng(0).standard_normal((4, 9)), 4, 1)


def test_scores_of_another_width_are_refused(data):
    with pytest.raises(ValueError, match="X must have 4 columns, one per component; got 3"):
        fitted(data.X).inverse_transform(np.zeros((2, 3)))


def test_rows_never_seen_are_placed_like_the_others(data, seed):
    model = fitted(data.X)
    rng = np.random.default_rng(seed)
    active = np.array([True, False, True, False])
    fresh = model.mean_ + 5.0 * (rng.choice([-1, 1], (20, 4)) * active) @ model.components_
    np.testing.assert_array_equal(model.allocate(fresh), np.tile(active, (20, 1)))


@pytest.mark.filterwarnings("ignore:X varies in", "ignore:The noise variance")
@pytest.mark.parametrize("shape", [(60, 8), (30, 80)], ids=["more rows", "more features"])
def test_more_components_than_the_data_have_directions_are_completed(shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    model = fitted(X, 5, 2, max_iter=50)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-8)
    assert np.all(np.isfinite(model.score_samples(X)))


def test_a_fixed_variance_is_fitted_also_when_nothing_is_left_over(seed):
    X = 2.0 * np.random.default_rng(seed).standard_normal((2000, 3))
    model = fitted(X, 3, 3, latent_variance=1.0, tol=1e-8)
    assert model.noise_variance_ == pytest.approx(np.mean(X.var(axis=0)) - 1.0, rel=0.02)


def test_queries_do_not_depend_on_how_rows_are_cut_into_blocks(data, monkeypatch):
    model = fitted(data.X, whiten=True)
    queries = [
        model.transform,
        model.allocate,
        model.inclusion_probabilities,
        model.allocation_probability,
        model.score_samples,
    ]
    whole = [query(data.X) for query in queries]
    monkeypatch.setattr("appca.models.rows.MIN_BLOCK_ROWS", 7)
    monkeypatch.setattr("appca.models.rows.MAX_BLOCK_ROWS", 7)
    for query, expected in zip(queries, whole, strict=True):
        np.testing.assert_allclose(query(data.X), expected, rtol=1e-10, atol=1e-12)
