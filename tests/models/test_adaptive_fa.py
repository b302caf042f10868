"""Adaptive factor analysis as an estimator: recovery, limits, estimates, starts of chains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import adaptive_fa, climb, supports
from tests.models.synthetic import drawn, matched_cosines, planted
from tests.references import em_adaptive_fa


def balanced(seed, K, L=None, N=1000, D=50):
    """Table 1's balanced design: W and X standard normal, noise sd 0.1, no mean."""
    Y, W, Z, mu = drawn(seed, N, D, K, L or K // 2, noise=0.1)
    return Y - mu, W, Z


def as_fitted(W, mu, noise, n_active, **keywords):
    """Make a model of given parameters, columns as they come."""
    model = AdaptiveFactorAnalysis(W.shape[1], n_active, **keywords)
    model.components_, model.mean_, model.noise_variance_ = W.T.copy(), mu, noise
    model.latent_variance_, model.scale_ = np.ones(W.shape[1]), np.ones(W.shape[1])
    model.n_active_, model.n_features_in_ = n_active, len(W)
    return model


def unit(model):
    """Rows of the loadings at length one."""
    return model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)


def squared_error(model, Y):
    return np.mean((Y - model.inverse_transform(model.transform(Y))) ** 2)


def recovery(model, Y, W, Z):
    """Least matched |cos| of the columns, share of Z that is right."""
    cosines = np.abs(unit(model) @ (W / np.linalg.norm(W, axis=0)))
    rows, columns = linear_sum_assignment(-cosines)
    right = np.mean(model.allocate(Y)[:, rows] == Z[:, columns])
    return cosines[rows, columns].min(), right


@pytest.mark.parametrize("K", [10, 20])
def test_the_balanced_design_is_recovered_to_the_noise_floor(K, seed):
    Y, W, Z = balanced(seed, K)
    model = AdaptiveFactorAnalysis(K, K // 2, random_state=seed).fit(Y)
    floor = squared_error(as_fitted(W, np.zeros(50), 0.01, K // 2), Y)
    assert squared_error(model, Y) < 1.2 * floor
    cosine, right = recovery(model, Y, W, Z)
    assert cosine > 0.99
    assert right > 0.95
    paper = AdaptiveFactorAnalysis(
        K, K // 2, init="pca", allocation="best", annealing=0, max_iter=30, random_state=seed
    ).fit(Y)
    assert squared_error(paper, Y) > 2.0 * floor  # the start of algorithm 1 stays above it
    assert recovery(paper, Y, W, Z)[0] < 0.9


def test_all_factors_active_is_probabilistic_pca(seed):
    Y = planted(300, 8, 3, 3, seed=seed, noise=0.4, scales=[3.0, 2.0, 1.0], offset=1.0).X
    ppca = PPCA(n_components=3).fit(Y)
    model = AdaptiveFactorAnalysis(3, 3, random_state=seed).fit(Y)
    close(model.score_samples(Y), ppca.score_samples(Y), rtol=1e-7)
    close(model.mean_, ppca.mean_, atol=1e-7)
    close(matched_cosines(unit(model), ppca.components_.T), 1.0, atol=1e-6)
    close(np.square(model.components_).sum(axis=1), ppca.latent_variance_, rtol=1e-5)


def test_with_orthonormal_loadings_every_answer_is_that_of_adaptive_ppca(seed):
    Y = planted(200, 12, 5, 2, seed=seed, noise=0.3, offset=2.0).X
    ppca = AdaptivePPCA(5, 2, random_state=seed).fit(Y)
    tau = np.sqrt(ppca.latent_variance_)
    model = as_fitted(ppca.components_.T * tau, ppca.mean_, ppca.noise_variance_, 2)
    for name in ("score_samples", "inclusion_probabilities", "allocation_probability"):
        close(getattr(model, name)(Y), getattr(ppca, name)(Y), rtol=1e-7, atol=1e-9, err_msg=name)
    equal(model.allocate(Y), ppca.allocate(Y))
    close(model.transform(Y) * tau, ppca.transform(Y), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_a_learned_mean_is_worth_it(allocation, seed):
    Y = balanced(seed, 6, 1, N=300, D=12)[0] + 5.0
    learned, sample = (
        AdaptiveFactorAnalysis(
            6, 1, init="ica", mean=m, allocation=allocation, random_state=seed
        ).fit(Y)
        for m in ("learned", "sample")
    )
    assert np.linalg.norm(learned.mean_ - 5.0) < 0.5 * np.linalg.norm(sample.mean_ - 5.0)
    assert learned.score(Y) > sample.score(Y)


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_fewer_rows_than_features_are_fitted_in_their_own_space(allocation, seed, monkeypatch):
    Y, W, _ = balanced(seed, 4, 2, N=60, D=90)
    near = W.T + 0.1 * np.random.default_rng(seed).standard_normal(W.T.shape)
    model = AdaptiveFactorAnalysis(4, 2, init=near, allocation=allocation, random_state=seed)
    thin = clone(model).fit(Y)
    monkeypatch.setattr(climb, "THIN_LIMIT", 0)
    full = clone(model).fit(Y)
    assert thin.log_likelihoods_[-1] == pytest.approx(full.log_likelihoods_[-1], rel=1e-3)
    assert matched_cosines(unit(thin), unit(full).T).min() > 0.9999


def test_more_factors_than_dimensions_are_found(seed):
    Y, W, _ = balanced(seed, 8, 1, N=1500, D=5)
    model = AdaptiveFactorAnalysis(8, 1, n_init=4, random_state=seed).fit(Y)
    assert np.sum(matched_cosines(unit(model), W / np.linalg.norm(W, axis=0)) > 0.99) >= 7


def test_scores_are_exact_while_sets_are_few_and_estimated_beyond(seed, monkeypatch):
    Y, W, _, mu = drawn(seed, 40, 8, 6, 3)
    model = as_fitted(W, mu, 0.09, 3)
    exact = model.estimate_score_samples(Y)
    assert exact.method == "exact, by enumeration of 20 sets"
    equal(exact.error, 0.0)
    close(exact.log_likelihood, em_adaptive_fa.log_likelihoods(Y, W, mu, 0.09, 3), rtol=1e-8)
    monkeypatch.setattr(supports, "MOST_SETS", 10)
    estimate = model.estimate_score_samples(Y)
    assert estimate.method.startswith("annealed importance sampling")
    off = estimate.log_likelihood - exact.log_likelihood
    assert np.mean(np.abs(off) < 3 * estimate.error + 0.05) > 0.85
    equal(model.score_samples(Y), estimate.log_likelihood)
    equal(model.score_samples(Y[::-1])[::-1], estimate.log_likelihood)
    probability = model.allocation_probability(Y)
    assert np.all((probability > 0) & (probability <= 1))


def test_a_prior_on_the_loadings_shrinks_them(seed):
    Y = balanced(seed, 6, 2, N=100, D=12)[0]
    given = (
        {"init": "ica", "loading_variance": v, "random_state": seed} for v in (1e-3, 0.1, None)
    )
    small, less, free = (AdaptiveFactorAnalysis(6, 2, **one).fit(Y).components_ for one in given)
    assert np.square(small).sum() < np.square(less).sum() < np.square(free).sum()


@pytest.mark.parametrize("settings", [{"init": "ica"}, {"init": "pca", "mean": "zero"}])
def test_repeated_rows_that_are_not_gathered_give_the_fit_of_weights(settings, seed, monkeypatch):
    monkeypatch.setattr(adaptive_fa, "distinct", lambda X, weights: (X, weights))
    rng = np.random.default_rng(seed)
    Y, w = balanced(seed, 6, 2, N=150, D=12)[0], rng.integers(0, 4, 150)
    again = Y[rng.permutation(np.repeat(np.arange(150), w))]
    model = AdaptiveFactorAnalysis(6, 2, random_state=0, tol=1e-9, **settings)
    one, other = clone(model).fit(Y, sample_weight=w), clone(model).fit(again)
    assert one.log_likelihoods_[-1] == pytest.approx(other.log_likelihoods_[-1], abs=1e-5)
    close(one.components_, other.components_, atol=1e-4)
    close(one.scale_, other.scale_, rtol=1e-4)


def test_the_best_of_several_starts_is_kept(seed):
    Y, stages = balanced(seed, 6, 2, N=200, D=12)[0], []
    given = {"init": "random", "max_iter": 20, "random_state": seed}
    one = AdaptiveFactorAnalysis(6, 2, **given).fit(Y)
    best = AdaptiveFactorAnalysis(6, 2, n_init=3, callback=stages.append, **given).fit(Y)
    names = list(dict.fromkeys(p.stage for p in stages))
    assert names == [f"start {i} of 3: random" for i in (1, 2, 3)]
    assert best.log_likelihoods_[-1] >= one.log_likelihoods_[-1] - 1e-6


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
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", len(Y))
    plain = AdaptiveFactorAnalysis(5, 2, init="ica", random_state=0).fit(Y + 3.0)
    assert sampled.log_likelihoods_[-1] == pytest.approx(plain.log_likelihoods_[-1], abs=8.0)
    assert matched_cosines(unit(sampled), unit(plain).T).min() > 1 - 1e-5


@pytest.mark.parametrize("allocation", ["exact", "best"])
def test_the_callback_hears_the_start_of_every_chain(allocation, seed):
    Y, heard = balanced(seed, 5, 2, N=150, D=12)[0], []
    given = {"n_chains": 3, "burn_in": 4, "n_draws": 5, "max_iter": 20, "chain_starts": "init"}
    given |= {"init": "ica", "allocation": allocation, "random_state": seed}
    model = AdaptiveFactorAnalysis(5, 2, inference="gibbs", **given)
    watched, alone = clone(model).set_params(callback=heard.append).fit(Y), clone(model).fit(Y)
    for name, draws in alone.posterior_.items():
        equal(watched.posterior_[name], draws, err_msg=name)
    before = ["fit, annealing", "fit"] if allocation == "best" else ["fit"]
    names = [f"chain {i} of 3: {stage}" for i in (1, 2, 3) for stage in before]
    assert list(dict.fromkeys(p.stage for p in heard)) == [*names, "burn-in", "draws"]
    for name in names:  # a stage is one climb: a curve of it never turns back
        passes = [p.iteration for p in heard if p.stage == name]
        assert passes == list(range(1, len(passes) + 1))
    assert [p.stage for p in heard[-9:]] == ["burn-in"] * 4 + ["draws"] * 5
    equal([p.log_likelihood for p in heard[-9:]], watched.log_likelihoods_)
