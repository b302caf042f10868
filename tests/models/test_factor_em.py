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
    worth = np.arange(60.0)
    members = np.tile([0, 1], (60, 1))
    for w, number in [(None, 3), (np.r_[0.5, 0.5, 0.5, np.full(57, 1.0)], 5)]:
        rows, rng = about(given.X, centre_of(given.X), w), np.random.default_rng(0)
        factor_em.expect_sets(rng, state, rows, settings(2), (members, worth))
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
    _, rows, state = problem(seed, 30, k=4)
    sums = factor_em.expect_all(state, rows, settings(2))
    off = np.arange(4) != 1
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
