"""Tests of adaptive factor analysis: recovery, limits, estimates, chains, single EM steps."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import adaptive_fa, climb, factor_em, supports
from appca.models.factor_em import FactorSettings, FactorState
from appca.models.rows import about, centre_of
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
    return cosines[rows, columns].min(), np.mean(model.allocate(Y)[:, rows] == Z[:, columns])


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
    assert list(dict.fromkeys(p.stage for p in stages)) == ["refinement on 2,500 rows", "fit"]
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


def settings(n_active, *, loading_variance=math.inf, learn_mean=True):
    return FactorSettings(n_active, loading_variance, learn_mean, 1e-12)


def problem(seed, n=60, d=6, k=5, n_active=2, noise=0.3):
    """A generator, rows, and a state off the truth."""
    Y, *_ = drawn(seed, n, d, k, n_active, noise=noise)
    rng = np.random.default_rng(seed)
    state = FactorState(rng.standard_normal((d, k)), np.zeros(k), float(np.var(Y)))
    return rng, about(Y, centre_of(Y)), state


def mean_of(state, rows):
    return rows.origin - state.W @ state.shift


@pytest.mark.parametrize("loading_variance", [math.inf, 0.7])
def test_em_with_one_set_a_row_never_lowers_the_joint_density(seed, loading_variance):
    for s in range(seed, seed + 5):
        rng, rows, state = problem(s)
        given = settings(2, loading_variance=loading_variance)
        members, worth, values = np.full((60, 2), -1), None, []
        for _ in range(15):
            sums, members, worth = factor_em.expect_sets(rng, state, rows, given, (members, worth))
            values.append(sums.log_likelihood)
            state = factor_em.maximise(sums, state, rows, given)
        assert np.all(np.diff(values) >= -1e-10 * np.abs(values[:-1]))
        assert values[-1] > values[0] + 1.0


@pytest.mark.parametrize("loading_variance", [math.inf, 0.7])
def test_a_fixed_point_is_a_maximum_of_the_dense_likelihood(seed, loading_variance):
    rng, rows, state = problem(seed, 80, 4, 3, noise=0.5)
    given = settings(2, loading_variance=loading_variance)
    for _ in range(1500):
        state = factor_em.maximise(factor_em.expect_all(state, rows, given), state, rows, given)

    def dense(W, mu, noise):
        total = em_adaptive_fa.log_likelihoods(rows.X, W, mu, noise, 2).sum()
        return total - 0.5 * np.square(W).sum() / loading_variance

    def slope(step=0.0, shift=0.0, ratio=1.0):
        ahead = dense(state.W + step, mu + shift, state.noise * ratio)
        return ahead - dense(state.W - step, mu - shift, state.noise / ratio)

    mu = mean_of(state, rows)
    top = dense(state.W, mu, state.noise)
    for _ in range(12):
        step = 1e-3 * rng.standard_normal(state.W.shape)
        assert abs(slope(step)) < 4e-3
        assert dense(state.W + 10 * step, mu, state.noise) < top + 1e-3
    assert abs(slope(shift=1e-3 * rng.standard_normal(4))) < 4e-3
    assert abs(slope(ratio=1.001)) < 4e-3


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("loading_variance", [math.inf, 0.7])
def test_a_weighted_step_is_the_step_on_repeated_rows(whole, loading_variance, seed):
    rng, rows, state = problem(seed)
    Y = rows.X
    w, members = rng.integers(1, 5, 60), np.argsort(rng.random((60, 5)), axis=1)[:, :2]
    again = np.repeat(np.arange(60), w)
    given, ends = settings(2, loading_variance=loading_variance), []
    for rows, own in [
        (about(Y, centre_of(Y, w), w.astype(float)), members),
        (about(Y[again], centre_of(Y[again])), members[again]),
    ]:
        if whole:
            sums = factor_em.expect_all(state, rows, given)
        else:  # without a sweep: the supports stay
            sums = factor_em.expect_sets(rng, state, rows, given, (own, None), np.empty(0))[0]
        after = factor_em.maximise(sums, state, rows, given)
        ends.append((*sums, after.W, mean_of(after, rows), np.asarray(after.noise)))
    for one, other in zip(*ends, strict=True):
        close(one, other, rtol=1e-8, atol=1e-9)


def test_the_worst_rows_that_search_anew_are_a_share_of_the_weight(seed, monkeypatch):
    (_, given, state), searched = problem(seed), []
    search = factor_em.supports.search

    def watched(rows, betas, model, **how):
        searched.append(len(rows.c))
        return search(rows, betas, model, **how)

    monkeypatch.setattr(factor_em.supports, "search", watched)
    worth, members = np.arange(60.0), np.tile([0, 1], (60, 1))
    for w, number in [(None, 3), (np.r_[0.5, 0.5, 0.5, np.full(57, 1.0)], 5)]:
        rows, rng = about(given.X, centre_of(given.X), w), np.random.default_rng(0)
        factor_em.expect_sets(rng, state, rows, settings(2), (members, worth))
        assert searched[-2:] == [number, 60]


def test_parameter_expansion_reaches_the_scale_in_one_step(seed):
    """With one factor, always on and almost no noise, x ~ N(0, 1) fixes |w| at once."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(5)
    Y = np.outer(rng.standard_normal(400), w) + 1e-3 * rng.standard_normal((400, 5))
    rows, state = about(Y, centre_of(Y)), FactorState(100.0 * w[:, None], np.zeros(1), 1e-6)
    sums = factor_em.expect_all(state, rows, settings(1))
    after = factor_em.maximise(sums, state, rows, settings(1))
    spread = np.sqrt(np.mean((Y - Y.mean(axis=0)) ** 2) * 5)
    assert np.linalg.norm(after.W) == pytest.approx(spread, rel=1e-3)


def test_a_factor_that_no_row_uses_keeps_its_column(seed):
    _, rows, state = problem(seed, 30, k=4)
    sums, off = factor_em.expect_all(state, rows, settings(2)), np.arange(4) != 1
    parts = sums.used * off, sums.second * np.outer(off, off), sums.A * off, sums.s * off
    sums = sums._replace(**dict(zip(("used", "second", "A", "s"), parts, strict=True)))
    after = factor_em.maximise(sums, state, rows, settings(2))
    cosine = after.W[:, 1] @ state.W[:, 1]
    cosine /= np.linalg.norm(after.W[:, 1]) * np.linalg.norm(state.W[:, 1])
    assert cosine == pytest.approx(1.0)
    assert np.all(np.isfinite(after.W))


def compare(sums, rows, state, given, moments):
    """Hold one step against the page."""
    new, mu = factor_em.maximise(sums, state, rows, given), mean_of(state, rows)
    known = None if given.learn_mean else mu
    W, mu, sigma2 = em_adaptive_fa.m_step(
        *(rows.X, *moments[1:], state.noise, given.n_active, known, given.loading_variance)
    )
    close(new.W, W, atol=1e-10, rtol=1e-10)
    close(mean_of(new, rows), mu, atol=1e-10)
    assert new.noise == pytest.approx(sigma2, rel=1e-10)


@pytest.mark.parametrize("learn_mean", [True, False])
@pytest.mark.parametrize("variance", [math.inf, 0.7])
@pytest.mark.parametrize(("D", "K", "L"), [(6, 5, 2), (3, 4, 4), (5, 7, 1), (4, 9, 4)])
def test_a_step_of_factor_analysis_is_that_of_the_reference(D, K, L, variance, learn_mean, seed):
    rng, rows, state = problem(seed, 60, D, K, L)
    state = state._replace(shift=rng.standard_normal(K) * learn_mean)
    given = settings(L, loading_variance=variance, learn_mean=learn_mean)
    sums = factor_em.expect_all(state, rows, given)
    at = rows.X, state.W, mean_of(state, rows), state.noise, L
    log_p = em_adaptive_fa.log_likelihoods(*at).sum()
    if np.isfinite(variance):
        log_p -= 0.5 * np.sum(np.log(2 * np.pi * variance) + state.W**2 / variance)
    assert sums.log_likelihood == pytest.approx(log_p, rel=1e-10)
    moments = em_adaptive_fa.moments(*at, em_adaptive_fa.support_probabilities(*at))
    close(sums.used, moments[0].sum(axis=0), rtol=1e-10, atol=1e-12)
    compare(sums, rows, state, given, moments)


@pytest.mark.parametrize("variance", [math.inf, 0.7])
def test_a_step_of_classification_em_is_that_of_the_reference(variance, seed):
    rng, rows, state = problem(seed)
    state = state._replace(shift=rng.standard_normal(5))
    given, none = settings(2, loading_variance=variance), (np.full((60, 2), -1), None)
    sums, members, worth = factor_em.expect_sets(rng, state, rows, given, none)
    at = rows.X, state.W, mean_of(state, rows), state.noise, 2
    p = em_adaptive_fa.certain(members, 5)
    log_p = em_adaptive_fa.log_joint(*at)[p == 1]
    close(worth - np.log(10), log_p, rtol=1e-10)
    assert np.isinf(variance) == (sums.log_likelihood == pytest.approx(log_p.sum(), rel=1e-10))
    compare(sums, rows, state, given, em_adaptive_fa.moments(*at, p))
