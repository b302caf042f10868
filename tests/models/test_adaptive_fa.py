"""Adaptive factor analysis as an estimator: recovery, limits, estimates, refusals."""

import gzip
import re

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import adaptive_fa, factor_em, fixed_size_supports
from tests.models.contract import refused
from tests.models.synthetic import drawn, matched_cosines, planted
from tests.references import em_adaptive_fa

ESTIMATORS = [
    AdaptiveFactorAnalysis(n_components=2, n_active=1),
    AdaptiveFactorAnalysis(n_components=2, n_active=1, allocation="best"),
    AdaptiveFactorAnalysis(n_components=2, n_active=1, inference="gibbs", burn_in=2, n_draws=3),
]


@pytest.mark.default_cases(18)
@parametrize_with_checks(ESTIMATORS[:1], expected_failed_checks=refused)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.thorough
@parametrize_with_checks(ESTIMATORS[1:], expected_failed_checks=refused)
def test_scikit_learn_contract_of_other_configurations(estimator, check):
    check(estimator)


def balanced(seed, K, L=None, N=1000, D=50):
    """Table 1's balanced design: W and X standard normal, noise sd 0.1, no mean."""
    rng = np.random.default_rng(seed)
    L = L or K // 2
    W = rng.standard_normal((D, K))
    Z = np.argsort(rng.random((N, K)), axis=1) < L
    X = rng.standard_normal((N, K))
    return (X * Z) @ W.T + 0.1 * rng.standard_normal((N, D)), W, Z


def as_fitted(W, mu, noise, n_active, **keywords):
    """Make a model of given parameters, columns as they come."""
    model = AdaptiveFactorAnalysis(W.shape[1], n_active, **keywords)
    model.components_, model.mean_, model.noise_variance_ = W.T.copy(), mu, noise
    model.latent_variance_, model.scale_ = np.ones(W.shape[1]), np.ones(W.shape[1])
    model.n_active_, model.n_features_in_ = n_active, len(W)
    return model


def squared_error(model, Y):
    return np.mean((Y - model.inverse_transform(model.transform(Y))) ** 2)


def recovery(model, Y, W, Z):
    """Least matched |cos| of the columns, share of Z that is right."""
    C = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    cosines = np.abs(C @ (W / np.linalg.norm(W, axis=0)))
    rows, columns = linear_sum_assignment(-cosines)
    right = np.mean(model.allocate(Y)[:, rows] == Z[:, columns])
    return cosines[rows, columns].min(), right


def check_balanced(seed, K):
    Y, W, Z = balanced(seed, K)
    model = AdaptiveFactorAnalysis(K, K // 2, random_state=seed).fit(Y)
    floor = squared_error(as_fitted(W, np.zeros(50), 0.01, K // 2), Y)
    assert squared_error(model, Y) < 1.2 * floor
    cosine, right = recovery(model, Y, W, Z)
    assert cosine > 0.99
    assert right > 0.95
    return Y, W, Z, floor


@pytest.mark.parametrize("K", [10, 20])
def test_the_balanced_design_is_recovered_to_the_noise_floor(K, seed):
    Y, W, Z, floor = check_balanced(seed, K)
    paper = AdaptiveFactorAnalysis(
        K, K // 2, init="pca", allocation="best", annealing=0, max_iter=30, random_state=seed
    ).fit(Y)
    assert squared_error(paper, Y) > 2.0 * floor  # the start of algorithm 1 stays above it
    assert recovery(paper, Y, W, Z)[0] < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("K", [10, 20])
def test_the_balanced_design_is_recovered_from_any_of_ten_seeds(K):
    for seed in range(10):
        check_balanced(seed, K)


def test_all_factors_active_is_probabilistic_pca(seed):
    Y = planted(300, 8, 3, 3, seed=seed, noise=0.4, scales=[3.0, 2.0, 1.0], offset=1.0).X
    ppca = PPCA(n_components=3).fit(Y)
    model = AdaptiveFactorAnalysis(3, 3, random_state=seed).fit(Y)
    np.testing.assert_allclose(model.score_samples(Y), ppca.score_samples(Y), rtol=1e-7)
    np.testing.assert_allclose(model.mean_, ppca.mean_, atol=1e-7)
    span = matched_cosines(
        model.components_ / np.linalg.norm(model.components_, axis=1)[:, None], ppca.components_.T
    )
    np.testing.assert_allclose(span, 1.0, atol=1e-6)
    np.testing.assert_allclose(
        np.square(model.components_).sum(axis=1), ppca.latent_variance_, rtol=1e-5
    )


def test_with_orthonormal_loadings_every_answer_is_that_of_adaptive_ppca(seed):
    Y = planted(200, 12, 5, 2, seed=seed, noise=0.3, offset=2.0).X
    ppca = AdaptivePPCA(5, 2, random_state=seed).fit(Y)
    tau = np.sqrt(ppca.latent_variance_)
    model = as_fitted(ppca.components_.T * tau, ppca.mean_, ppca.noise_variance_, 2)
    for name in ("score_samples", "inclusion_probabilities", "allocation_probability"):
        np.testing.assert_allclose(
            getattr(model, name)(Y), getattr(ppca, name)(Y), rtol=1e-7, atol=1e-9, err_msg=name
        )
    np.testing.assert_array_equal(model.allocate(Y), ppca.allocate(Y))
    np.testing.assert_allclose(model.transform(Y) * tau, ppca.transform(Y), rtol=1e-7, atol=1e-9)


@pytest.mark.thorough
def test_on_orthonormal_data_both_models_find_the_same(seed):
    truth = planted(1500, 12, 5, 2, seed=seed, noise=0.1)
    ppca = AdaptivePPCA(5, 2, random_state=seed).fit(truth.X)
    model = AdaptiveFactorAnalysis(5, 2, random_state=seed).fit(truth.X)
    C = model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]
    assert matched_cosines(C, ppca.components_.T).min() > 0.998
    np.testing.assert_allclose(C @ C.T, np.eye(5), atol=0.05)
    assert model.score(truth.X) >= ppca.score(truth.X)  # it has more freedom
    assert model.score(truth.X) == pytest.approx(ppca.score(truth.X), abs=0.1)


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_the_unit_of_the_data_changes_only_the_unit_of_the_answer(allocation, seed):
    Y = balanced(seed, 6, 2, N=300, D=12)[0] + 3.0
    model = AdaptiveFactorAnalysis(6, 2, allocation=allocation, random_state=seed)
    one, other = clone(model).fit(Y), clone(model).fit(1000.0 * Y)
    size = np.abs(one.components_).max()
    np.testing.assert_allclose(other.components_ / 1000.0, one.components_, atol=0.01 * size)
    np.testing.assert_allclose(other.mean_ / 1000.0, one.mean_, atol=0.01)
    assert np.mean(one.allocate(Y) == other.allocate(1000.0 * Y)) > 0.99
    assert one.score(Y) - other.score(1000.0 * Y) == pytest.approx(12 * np.log(1000.0), abs=0.02)


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_the_mean_is_learned_and_worth_it(allocation, seed):
    Y = balanced(seed, 6, 1, N=300, D=12)[0] + 5.0
    keywords = {"allocation": allocation, "random_state": seed}
    learned = AdaptiveFactorAnalysis(6, 1, **keywords).fit(Y)
    sample = AdaptiveFactorAnalysis(6, 1, mean="sample", **keywords).fit(Y)
    np.testing.assert_allclose(sample.mean_, Y.mean(axis=0))
    assert np.linalg.norm(learned.mean_ - 5.0) < 0.5 * np.linalg.norm(sample.mean_ - 5.0)
    assert learned.score(Y) > sample.score(Y)
    zero = AdaptiveFactorAnalysis(6, 1, mean="zero", **keywords).fit(Y)
    np.testing.assert_array_equal(zero.mean_, 0.0)


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_fewer_rows_than_features_are_fitted_in_their_own_space(allocation, seed, monkeypatch):
    Y, W, _ = balanced(seed, 4, 2, N=60, D=90)
    near = W.T + 0.1 * np.random.default_rng(seed).standard_normal(W.T.shape)
    model = AdaptiveFactorAnalysis(4, 2, init=near, allocation=allocation, random_state=seed)
    thin = clone(model).fit(Y)
    monkeypatch.setattr(factor_em, "THIN_LIMIT", 0)
    full = clone(model).fit(Y)
    assert thin.log_likelihoods_[-1] == pytest.approx(full.log_likelihoods_[-1], rel=1e-3)
    C = [m.components_ / np.linalg.norm(m.components_, axis=1)[:, None] for m in (thin, full)]
    assert matched_cosines(C[0], C[1].T).min() > 0.9999


def test_more_factors_than_dimensions_are_found(seed):
    Y, W, _ = balanced(seed, 8, 1, N=1500, D=5)
    model = AdaptiveFactorAnalysis(8, 1, n_init=4, random_state=seed).fit(Y)
    C = model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]
    assert np.sum(matched_cosines(C, W / np.linalg.norm(W, axis=0)) > 0.99) >= 7


def test_single_precision_gives_single_precision_and_the_same_answer(seed):
    Y = balanced(seed, 6, 3, N=400, D=20)[0]
    model = AdaptiveFactorAnalysis(6, 3, random_state=seed)
    one, other = clone(model).fit(Y), clone(model).fit(Y.astype(np.float32))
    assert other.components_.dtype == other.mean_.dtype == np.float32
    assert other.transform(Y.astype(np.float32)).dtype == np.float32
    C = [m.components_ / np.linalg.norm(m.components_, axis=1)[:, None] for m in (one, other)]
    assert matched_cosines(C[0], C[1].T).min() > 0.9999


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_the_likelihood_never_falls_and_ends_where_it_says(allocation, seed):
    Y = balanced(seed, 6, 2, N=300, D=12)[0]
    model = AdaptiveFactorAnalysis(
        6, 2, allocation=allocation, least_change=0.0, random_state=seed
    ).fit(Y)
    values = model.log_likelihoods_
    assert len(values) == model.n_iter_
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[:-1]))
    if allocation == "exact":
        assert model.score_samples(Y).sum() == pytest.approx(values[-1], rel=1e-7)
    else:
        at = model.components_.T, model.mean_, model.noise_variance_
        members = np.nonzero(model.allocate(Y))[1].reshape(300, 2)
        joint = em_adaptive_fa.log_joint(Y, *at, 2)[em_adaptive_fa.certain(members, 6) == 1]
        # sets are searched for anew, so a row may have found a better one
        gain = np.sum(joint) - values[-1]
        assert -1e-3 * abs(values[-1]) < gain < 20.0


def test_scores_are_exact_while_sets_are_few_and_estimated_beyond(seed, monkeypatch):
    Y, W, _, mu = drawn(seed, 40, 8, 6, 3)
    model = as_fitted(W, mu, 0.09, 3)
    exact = model.estimate_score_samples(Y)
    assert exact.method == "exact, by enumeration of 20 sets"
    np.testing.assert_array_equal(exact.error, 0.0)
    np.testing.assert_allclose(
        exact.log_likelihood, em_adaptive_fa.log_likelihoods(Y, W, mu, 0.09, 3), rtol=1e-8
    )
    monkeypatch.setattr(fixed_size_supports, "MOST_SETS", 10)
    estimate = model.estimate_score_samples(Y)
    assert estimate.method.startswith("annealed importance sampling")
    off = estimate.log_likelihood - exact.log_likelihood
    assert np.mean(np.abs(off) < 3 * estimate.error + 0.05) > 0.85
    np.testing.assert_array_equal(model.score_samples(Y), estimate.log_likelihood)
    np.testing.assert_array_equal(model.score_samples(Y[::-1])[::-1], estimate.log_likelihood)
    probability = model.allocation_probability(Y)
    assert np.all((probability > 0) & (probability <= 1))


def test_whitened_scores_have_unit_root_mean_square_where_active(seed):
    Y = balanced(seed, 6, 2, N=300, D=12)[0]
    model = AdaptiveFactorAnalysis(6, 2, whiten=True, random_state=seed).fit(Y)
    S, Z = model.transform(Y), model.allocate(Y)
    np.testing.assert_allclose(np.sqrt((S**2).sum(axis=0) / Z.sum(axis=0)), 1.0, rtol=1e-6)
    plain = clone(model).set_params(whiten=False).fit(Y)
    np.testing.assert_allclose(
        model.inverse_transform(S),
        plain.inverse_transform(plain.transform(Y)),
        rtol=1e-8,
        atol=1e-9,
    )


def test_a_prior_on_the_loadings_shrinks_them(seed):
    Y = balanced(seed, 6, 2, N=100, D=12)[0]
    sizes = [
        np.square(
            AdaptiveFactorAnalysis(6, 2, loading_variance=v, random_state=seed).fit(Y).components_
        ).sum()
        for v in (1e-3, 0.1, None)
    ]
    assert sizes[0] < sizes[1] < sizes[2]


WEIGHTED = [
    {},
    {"allocation": "best"},
    {"init": "dictionary"},
    {"mean": "zero"},
    {"loading_variance": 0.5},
    {"n_components": 14, "n_active": 1},
]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("settings", WEIGHTED)
def test_a_weight_is_a_repetition_whatever_the_order_of_rows(settings, seed):
    rng = np.random.default_rng(seed)
    Y, w = balanced(seed, 6, 2, N=150, D=12)[0], rng.integers(0, 4, 150)
    again = Y[rng.permutation(np.repeat(np.arange(150), w))]
    keywords = {"n_components": 6, "n_active": 2, "random_state": 0} | settings
    one = AdaptiveFactorAnalysis(**keywords).fit(Y, sample_weight=w)
    other = AdaptiveFactorAnalysis(**keywords).fit(again)
    assert one.log_likelihoods_[-1] == pytest.approx(other.log_likelihoods_[-1], rel=1e-9)
    for name in ("components_", "mean_", "explained_variance_", "scale_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-8, err_msg=name
        )
    assert one.score(Y, sample_weight=w) == pytest.approx(other.score(again), rel=1e-9)


@pytest.mark.parametrize("settings", [{}, {"mean": "zero"}, {"init": "pca"}])
def test_repeated_rows_that_are_not_gathered_give_the_fit_of_weights(settings, seed, monkeypatch):
    monkeypatch.setattr(adaptive_fa, "distinct", lambda X, weights: (X, weights))
    rng = np.random.default_rng(seed)
    Y, w = balanced(seed, 6, 2, N=150, D=12)[0], rng.integers(0, 4, 150)
    again = Y[rng.permutation(np.repeat(np.arange(150), w))]
    model = AdaptiveFactorAnalysis(6, 2, random_state=0, tol=1e-9, **settings)
    one, other = clone(model).fit(Y, sample_weight=w), clone(model).fit(again)
    assert one.log_likelihoods_[-1] == pytest.approx(other.log_likelihoods_[-1], abs=1e-5)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-4)
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-4)


@pytest.mark.thorough
def test_many_weighted_rows_are_settled_on_a_sample(seed):
    Y, W, Z = balanced(seed, 5, 2, N=8000, D=12)
    w = np.where(np.arange(8000) % 2, 1.0, 2.5)
    model = AdaptiveFactorAnalysis(5, 2, random_state=0).fit(Y + 3.0, sample_weight=w)
    assert recovery(model, Y + 3.0, W, Z)[0] > 0.99
    assert model.log_likelihoods_[-1] == pytest.approx(w @ model.score_samples(Y + 3.0), rel=1e-7)


def test_chains_refuse_weights(seed):
    Y = balanced(seed, 4, 2, N=50, D=8)[0]
    with pytest.raises(ValueError, match="sample_weight cannot be used with inference='gibbs'"):
        AdaptiveFactorAnalysis(4, 2, inference="gibbs").fit(Y, sample_weight=np.ones(50))


def test_a_warm_start_goes_on_from_the_factors_there_are(seed):
    Y = balanced(seed, 6, 2, N=400, D=12)[0] + 2.0
    model = AdaptiveFactorAnalysis(5, 2, init="ica", random_state=seed).fit(Y)
    first, last, iterations = *model.log_likelihoods_[[0, -1]], model.n_iter_
    again = model.set_params(warm_start=True).fit(Y)
    # The mean alone begins anew, at that of the rows.
    assert again.log_likelihoods_[0] > 0.5 * (first + last)
    assert again.log_likelihoods_[-1] > last - 1.0
    assert again.n_iter_ < iterations
    more = model.set_params(n_components=6).fit(Y)
    cold = AdaptiveFactorAnalysis(6, 2, random_state=seed).fit(Y)
    assert more.log_likelihoods_[-1] > cold.log_likelihoods_[-1] - 5.0
    fewer = model.set_params(n_components=4).fit(Y)
    assert fewer.components_.shape == (4, 12)


@pytest.mark.thorough
def test_gibbs_agrees_with_em_and_keeps_what_it_saw(seed):
    Y, W, Z = balanced(seed, 5, 2, N=200, D=12)
    keywords = {"burn_in": 30, "n_draws": 60, "random_state": seed, "chain_starts": "init"}
    model = AdaptiveFactorAnalysis(5, 2, inference="gibbs", **keywords).fit(Y)
    em = AdaptiveFactorAnalysis(5, 2, random_state=seed).fit(Y)
    posterior = model.posterior_
    assert posterior["components"].shape == (2, 60, 5, 12)
    assert posterior["noise_variance"].shape == (2, 60)
    assert posterior["Z_mean"].shape == (2, 200, 5)
    assert model.n_iter_ == 90 == len(model.log_likelihoods_)
    assert model.stop_reason_ == "made all 90 sweeps of every chain"
    assert posterior["noise_variance"].mean() == pytest.approx(em.noise_variance_, rel=0.1)
    assert recovery(model, Y, W, Z)[0] > 0.99
    again = clone(model).fit(Y)
    np.testing.assert_array_equal(again.components_, model.components_)
    assert set(model.to_arviz().posterior.data_vars) >= {"components", "noise_variance"}


def test_the_best_of_several_starts_is_kept(seed):
    Y = balanced(seed, 6, 2, N=200, D=12)[0]
    stages = []
    model = AdaptiveFactorAnalysis(
        6,
        2,
        init="random",
        n_init=3,
        max_iter=20,
        random_state=seed,
        callback=lambda state: stages.append(state.stage),
    ).fit(Y)
    assert list(dict.fromkeys(stages)) == [f"start {i} of 3: random" for i in (1, 2, 3)]
    ends = [
        AdaptiveFactorAnalysis(6, 2, init=init, max_iter=20, random_state=seed)
        .fit(Y)
        .log_likelihoods_[-1]
        for init in ("random",)
    ]
    assert model.log_likelihoods_[-1] >= max(ends) - 1e-6


@pytest.mark.parametrize("allocation", ["exact", "best"])
@pytest.mark.parametrize("after", [1, 4])
def test_stopping_keeps_what_there_is(allocation, after, seed):
    Y = balanced(seed, 6, 2, N=200, D=12)[0]
    calls = []

    def stop(state):
        calls.append(state)
        if len(calls) == after:
            raise StopIteration

    model = AdaptiveFactorAnalysis(
        6, 2, allocation=allocation, callback=stop, random_state=seed
    ).fit(Y)
    assert len(calls) == after
    assert model.stop_reason_ == "stopped by the callback"
    assert model.transform(Y).shape == (200, 6)


def test_other_exceptions_leave_the_estimator_unfitted(seed):
    def fail(_state):
        msg = "no"
        raise KeyError(msg)

    model = AdaptiveFactorAnalysis(3, 1, callback=fail)
    with pytest.raises(KeyError):
        model.fit(balanced(seed, 3, 1, N=50, D=6)[0])
    assert not hasattr(model, "components_")


REFUSALS = {
    "n_components must be at most 9, one less than the rows of X": {
        "n_components": 10,
        "n_active": 2,
    },
    "n_active must be at most n_components=2; got 3: lower n_active": {
        "n_components": 2,
        "n_active": 3,
    },
    "n_init must be 1 when init is an array; got 2": {
        "n_components": 2,
        "init": np.eye(2, 4),
        "n_init": 2,
    },
    "init must have shape (2, 4), n_components by features; got (3, 4)": {
        "n_components": 2,
        "init": np.eye(3, 4),
    },
    "init must be 'auto', 'ica', 'pca', 'dictionary' or 'random' or an array of n_components by "
    "features; got 'svd'": {"init": "svd"},
    "allocation must be 'auto', 'exact' or 'best'; got 'soft'": {"allocation": "soft"},
    "loading_variance must be None or a number above 0; got 0": {"loading_variance": 0},
    "n_paths must be a whole number of at least 2; got 1": {"n_paths": 1},
}


@pytest.mark.parametrize("words", REFUSALS)
def test_refusals_say_what_was_given_and_what_to_do(words):
    Y = np.random.default_rng(0).standard_normal((10, 4))
    with pytest.raises(ValueError, match=re.escape(words)):
        AdaptiveFactorAnalysis(**REFUSALS[words]).fit(Y)


def test_exact_sums_over_too_many_sets_are_refused():
    Y = np.random.default_rng(0).standard_normal((40, 30))
    with pytest.raises(ValueError, match=r"allocation must be 'auto' or 'best' above 12870 sets"):
        AdaptiveFactorAnalysis(20, 10, allocation="exact").fit(Y)


@pytest.fixture(scope="module")
def odd_digits(data_folder):
    """2,500 odd digits, 500 each, in 350 principal coordinates."""
    folder = data_folder / "mnist"
    images = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    y = np.frombuffer(labels, np.uint8)
    rows = np.concatenate([np.flatnonzero(y == digit)[:500] for digit in (1, 3, 5, 7, 9)])
    X = np.frombuffer(images, np.uint8).reshape(-1, 784)[rows] / 255.0
    X -= X.mean(axis=0)
    V = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :350]
    return X @ V, y[rows]


def sharing(Z, y):
    """Mean number of factors that distinct rows of two classes share, over the largest."""
    classes = np.unique(y)
    grid = np.empty((len(classes),) * 2)
    for i, a in enumerate(classes):
        for j, b in enumerate(classes):
            both = Z[y == a].astype(float) @ Z[y == b].T
            n = len(both)
            grid[i, j] = (both.sum() - np.trace(both)) / (n * (n - 1)) if a == b else both.mean()
    return grid / grid.max()


@pytest.mark.slow
@pytest.mark.real_data
def test_digits_share_most_factors_with_their_own_kind(odd_digits, seed):
    Y, y = odd_digits
    model = AdaptiveFactorAnalysis(100, 50, random_state=seed).fit(Y)
    grid = sharing(model.allocate(Y), y)
    others = grid - np.diag(np.full(5, np.inf))
    assert np.all(np.diag(grid) > others.max(axis=1))
    assert np.unravel_index(others.argmax(), others.shape) in {(3, 4), (4, 3)}  # 7 and 9
    flat = AdaptiveFactorAnalysis(100, 50, init="pca", random_state=seed).fit(Y)
    assert np.ptp(sharing(flat.allocate(Y), y)) < 0.5 * np.ptp(grid)


def test_many_rows_are_settled_on_a_sample_and_end_where_all_of_them_lead(seed, monkeypatch):
    Y, *_ = balanced(seed, 5, 2, N=8000, D=12)
    stages = []
    watched = AdaptiveFactorAnalysis(5, 2, init="ica", random_state=0, callback=stages.append)
    sampled = watched.fit(Y + 3.0)
    names = list(dict.fromkeys(p.stage for p in stages))
    assert names == ["refinement on 2,500 rows", "fit"]
    levels = [p.log_likelihood for p in stages[:: len(stages) - 1]]
    assert levels[1] == sampled.log_likelihoods_[-1]
    assert levels[0] < levels[1]
    monkeypatch.setattr(factor_em, "MIN_SAMPLE_ROWS", len(Y))
    plain = AdaptiveFactorAnalysis(5, 2, init="ica", random_state=0).fit(Y + 3.0)
    assert sampled.log_likelihoods_[-1] == pytest.approx(plain.log_likelihoods_[-1], abs=8.0)
    ends = sampled.components_, plain.components_
    a, b = (C / np.linalg.norm(C, axis=1, keepdims=True) for C in ends)
    assert matched_cosines(a, b.T).min() > 1 - 1e-5


def test_a_stop_while_settling_leaves_a_complete_fit(seed):
    Y, *_ = balanced(seed, 5, 2, N=8000, D=12)

    def stop(progress):
        assert progress.stage == "refinement on 2,500 rows"
        raise StopIteration

    model = AdaptiveFactorAnalysis(5, 2, init="ica", callback=stop, random_state=seed).fit(Y)
    assert model.stop_reason_ == "stopped by the callback"
    assert model.n_iter_ == 1
    assert np.isfinite(model.transform(Y)).all()


def chains_of_factors(**given):
    sizes = {"n_chains": 3, "burn_in": 4, "n_draws": 5, "max_iter": 20, "chain_starts": "init"}
    sizes["init"] = "ica"
    return AdaptiveFactorAnalysis(5, 2, inference="gibbs", **(sizes | given))


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_the_callback_hears_the_start_of_every_chain_and_changes_nothing(allocation, seed):
    Y = balanced(seed, 5, 2, N=150, D=12)[0]
    heard = []
    given = {"allocation": allocation, "random_state": seed}
    watched = chains_of_factors(callback=heard.append, **given).fit(Y)
    alone = chains_of_factors(**given).fit(Y)
    for name, draws in alone.posterior_.items():
        np.testing.assert_array_equal(watched.posterior_[name], draws, err_msg=name)
    before = ["fit, annealing", "fit"] if allocation == "best" else ["fit"]
    names = [f"chain {i} of 3: {stage}" for i in (1, 2, 3) for stage in before]
    assert list(dict.fromkeys(p.stage for p in heard)) == [*names, "burn-in", "draws"]
    for name in names:  # a stage is one climb: a curve of it never turns back
        passes = [p.iteration for p in heard if p.stage == name]
        assert passes == list(range(1, len(passes) + 1))
    assert [p.stage for p in heard[-9:]] == ["burn-in"] * 4 + ["draws"] * 5
    sweeps = [p.log_likelihood for p in heard[-9:]]
    np.testing.assert_array_equal(sweeps, watched.log_likelihoods_)


def test_a_single_chain_names_its_start_like_a_fit(seed):
    Y = balanced(seed, 5, 2, N=150, D=12)[0]
    heard = []
    chains_of_factors(n_chains=1, callback=heard.append, random_state=seed).fit(Y)
    assert list(dict.fromkeys(p.stage for p in heard)) == ["fit", "burn-in", "draws"]


@pytest.mark.parametrize("allocation", ["exact", "best"])
@pytest.mark.parametrize("chain", [1, 2])
def test_a_stop_while_chains_begin_leaves_draws_of_one_sweep(allocation, chain, seed):
    Y = balanced(seed, 5, 2, N=150, D=12)[0]
    heard = []

    def stop(progress):
        heard.append(progress)
        if progress.stage.startswith(f"chain {chain}"):
            raise StopIteration

    model = chains_of_factors(allocation=allocation, callback=stop, random_state=seed).fit(Y)
    assert [p.stage.startswith(f"chain {chain}") for p in heard] == [False] * (len(heard) - 1) + [
        True  # and nothing is heard after the stop
    ]
    assert model.stop_reason_ == "stopped by the callback"
    assert model.n_iter_ == len(model.log_likelihoods_) == 1
    assert model.posterior_["noise_variance"].shape == (3, 1)
    assert len(np.unique(model.posterior_["noise_variance"])) == 3  # drawn apart from one start
    np.testing.assert_array_equal(model.allocate(Y).sum(axis=1), 2)
    fresh = balanced(seed + 1, 5, 2, N=20, D=12)[0]
    assert np.isfinite(model.score_samples(fresh)).all()


def test_other_exceptions_while_chains_begin_leave_the_estimator_unfitted(seed):
    def fail(_progress):
        raise InterruptedError

    model = chains_of_factors(callback=fail, random_state=seed)
    with pytest.raises(InterruptedError):
        model.fit(balanced(seed, 5, 2, N=100, D=12)[0])
    assert not hasattr(model, "components_")
