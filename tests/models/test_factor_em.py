"""EM of adaptive factor analysis: a step is that of the page, right at its fixed points."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose as close

from appca.models import factor_em
from appca.models.factor_em import FactorSettings, FactorState
from appca.models.rows import about, centre_of
from tests.models.synthetic import drawn
from tests.references import em_adaptive_fa


def settings(n_active, *, loading_variance=math.inf, learn_mean=True):
    return FactorSettings(n_active, loading_variance, learn_mean, 1e-12)


def start(seed, Y, K):
    rng = np.random.default_rng(seed)
    return FactorState(rng.standard_normal((Y.shape[1], K)), np.zeros(K), float(np.var(Y)))


def mean_of(state, rows):
    return rows.origin - state.W @ state.shift


@pytest.mark.parametrize("loading_variance", [math.inf, 0.7])
def test_em_with_one_set_a_row_never_lowers_the_joint_density(seed, loading_variance):
    for s in range(seed, seed + 5):
        Y, *_ = drawn(s, 60, 6, 5, 2)
        rows = about(Y, centre_of(Y))
        given = settings(2, loading_variance=loading_variance)
        rng = np.random.default_rng(s)
        state, members, worth = start(s, Y, 5), np.full((60, 2), -1), None
        values = []
        for _ in range(15):
            sums, members, worth = factor_em.expect_sets(rng, state, rows, given, (members, worth))
            values.append(sums.log_likelihood)
            state = factor_em.maximise(sums, state, rows, given)
        assert np.all(np.diff(values) >= -1e-10 * np.abs(values[:-1]))
        assert values[-1] > values[0] + 1.0


@pytest.mark.parametrize("loading_variance", [math.inf, 0.7])
def test_a_fixed_point_is_a_maximum_of_the_dense_likelihood(seed, loading_variance):
    Y, *_ = drawn(seed, 80, 4, 3, 2, noise=0.5)
    rows = about(Y, centre_of(Y))
    given = settings(2, loading_variance=loading_variance)
    state = start(seed, Y, 3)
    for _ in range(1500):
        state = factor_em.maximise(factor_em.expect_all(state, rows, given), state, rows, given)

    def dense(W, mu, noise):
        total = em_adaptive_fa.log_likelihoods(Y, W, mu, noise, 2).sum()
        return total - 0.5 * np.square(W).sum() / loading_variance

    mu = mean_of(state, rows)
    top = dense(state.W, mu, state.noise)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        step = 1e-3 * rng.standard_normal(state.W.shape)
        slope = (
            dense(state.W + step, mu, state.noise) - dense(state.W - step, mu, state.noise)
        ) / 2
        assert abs(slope) < 2e-3
        assert dense(state.W + 10 * step, mu, state.noise) < top + 1e-3
    shift = 1e-3 * rng.standard_normal(4)
    assert (
        abs(dense(state.W, mu + shift, state.noise) - dense(state.W, mu - shift, state.noise))
        < 4e-3
    )
    ratio = dense(state.W, mu, state.noise * 1.001) - dense(state.W, mu, state.noise / 1.001)
    assert abs(ratio) < 4e-3


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("loading_variance", [math.inf, 0.7])
def test_a_weighted_step_is_the_step_on_repeated_rows(whole, loading_variance, seed):
    rng = np.random.default_rng(seed)
    Y, *_ = drawn(seed, 60, 6, 5, 2)
    w, members = rng.integers(1, 5, 60), np.argsort(rng.random((60, 5)), axis=1)[:, :2]
    again = np.repeat(np.arange(60), w)
    given, state = settings(2, loading_variance=loading_variance), start(seed, Y, 5)
    ends = []
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
    Y, *_ = drawn(seed, 60, 6, 5, 2)
    searched = []
    search = factor_em.supports.search

    def watched(rows, betas, model, **how):
        searched.append(len(rows.c))
        return search(rows, betas, model, **how)

    monkeypatch.setattr(factor_em.supports, "search", watched)
    worth = np.arange(60.0)
    members = np.tile([0, 1], (60, 1))
    for w, number in [(None, 3), (np.r_[0.5, 0.5, 0.5, np.full(57, 1.0)], 5)]:
        rows = about(Y, centre_of(Y), w)
        rng = np.random.default_rng(0)
        factor_em.expect_sets(rng, start(seed, Y, 5), rows, settings(2), (members, worth))
        assert searched[-2:] == [number, 60]


def test_parameter_expansion_reaches_the_scale_in_one_step(seed):
    """With one factor, always on and almost no noise, x ~ N(0, 1) fixes |w| at once."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(5)
    Y = np.outer(rng.standard_normal(400), w) + 1e-3 * rng.standard_normal((400, 5))
    rows = about(Y, centre_of(Y))
    state = FactorState(100.0 * w[:, None], np.zeros(1), 1e-6)
    sums = factor_em.expect_all(state, rows, settings(1))
    after = factor_em.maximise(sums, state, rows, settings(1))
    spread = np.sqrt(np.mean((Y - Y.mean(axis=0)) ** 2) * 5)
    assert np.linalg.norm(after.W) == pytest.approx(spread, rel=1e-3)


def test_a_factor_that_no_row_uses_keeps_its_column(seed):
    Y, *_ = drawn(seed, 30, 6, 4, 2)
    rows = about(Y, centre_of(Y))
    state = start(seed, Y, 4)
    none = np.full((30, 2), -1), None
    sums = factor_em.expect_sets(np.random.default_rng(0), state, rows, settings(2), none)[0]
    used, second, B, s = (a.copy() for a in (sums.used, sums.second, sums.B, sums.s))
    used[1] = s[1] = 0.0
    second[1], second[:, 1], B[:, 1] = 0.0, 0.0, 0.0
    sums = sums._replace(used=used, second=second, B=B, s=s)
    after = factor_em.maximise(sums, state, rows, settings(2))
    cosine = after.W[:, 1] @ state.W[:, 1]
    cosine /= np.linalg.norm(after.W[:, 1]) * np.linalg.norm(state.W[:, 1])
    assert cosine == pytest.approx(1.0)
    assert np.all(np.isfinite(after.W))


def factor_problem(seed, N, D, K, L, learn_mean):
    rng = np.random.default_rng(seed)
    Y = 2.0 + rng.standard_normal((N, K)) @ rng.standard_normal((K, D))
    rows, W = about(Y, centre_of(Y)), rng.standard_normal((D, K))
    shift = rng.standard_normal(K) if learn_mean else np.zeros(K)
    return rng, Y, rows, factor_em.FactorState(W, shift, 0.7), rows.origin - W @ shift


def compare_factors(new, rows, wanted):
    W, mu, sigma2 = wanted
    close(new.W, W, atol=1e-10, rtol=1e-10)
    close(rows.origin - new.W @ new.shift, mu, atol=1e-10)
    assert new.noise == pytest.approx(sigma2, rel=1e-10)


@pytest.mark.parametrize("learn_mean", [True, False])
@pytest.mark.parametrize("sigma2_W", [math.inf, 0.7])
@pytest.mark.parametrize(("D", "K", "L"), [(6, 5, 2), (3, 4, 4), (5, 7, 1), (4, 9, 4)])
def test_a_step_of_factor_analysis_is_that_of_the_reference(D, K, L, sigma2_W, learn_mean, seed):
    _, Y, rows, state, mu = factor_problem(seed, 60, D, K, L, learn_mean)
    settings = factor_em.FactorSettings(L, sigma2_W, learn_mean, 1e-12)
    sums = factor_em.expect_all(state, rows, settings)
    at = state.W, mu, state.noise, L
    log_p = em_adaptive_fa.log_likelihoods(Y, *at).sum()
    if np.isfinite(sigma2_W):
        log_p -= 0.5 * np.sum(np.log(2 * np.pi * sigma2_W) + state.W**2 / sigma2_W)
    assert sums.log_likelihood == pytest.approx(log_p, rel=1e-10)
    r, h, M = em_adaptive_fa.moments(Y, *at, em_adaptive_fa.support_probabilities(Y, *at))
    close(sums.used, r.sum(axis=0), rtol=1e-10, atol=1e-12)
    given = h, M, state.noise, L, None if learn_mean else mu, sigma2_W
    new = factor_em.maximise(sums, state, rows, settings)
    compare_factors(new, rows, em_adaptive_fa.m_step(Y, *given))


@pytest.mark.parametrize("sigma2_W", [math.inf, 0.7])
def test_a_step_of_classification_em_is_that_of_the_reference(sigma2_W, seed):
    rng, Y, rows, state, mu = factor_problem(seed, 60, 6, 5, 2, learn_mean=True)
    settings = factor_em.FactorSettings(2, sigma2_W, learn_mean=True, floor=1e-12)
    none = np.full((60, 2), -1), None
    sums, members, worth = factor_em.expect_sets(rng, state, rows, settings, none)
    at = state.W, mu, state.noise, 2
    p = em_adaptive_fa.certain(members, 5)
    log_p = em_adaptive_fa.log_joint(Y, *at)[p == 1]
    close(worth - np.log(10), log_p, rtol=1e-10)
    assert np.isinf(sigma2_W) == (sums.log_likelihood == pytest.approx(log_p.sum(), rel=1e-10))
    _, h, M = em_adaptive_fa.moments(Y, *at, p)
    new = factor_em.maximise(sums, state, rows, settings)
    given = h, M, state.noise, 2, None, sigma2_W
    compare_factors(new, rows, em_adaptive_fa.m_step(Y, *given))
