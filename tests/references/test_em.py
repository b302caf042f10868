"""EM of the package, one step at a time, against the pages of this folder."""

import math

import numpy as np
import pytest

from appca.models import em, factor_em, gaps, stiefel
from appca.models.rows import about, centre_of, split_incomplete
from tests.models.synthetic import planted
from tests.references import em_adaptive_fa, em_incomplete, em_orthonormal

MEANS, LATENTS = ["learned", "sample", "zero"], ["shared", "component", 1.5]


def problem(seed, N, D, K, L):
    """Rows of the model, and parameters off the truth: W, mu, tau2, sigma2."""
    rng = np.random.default_rng(seed)
    Y = planted(N, D, K, L, seed=seed, noise=0.6, scales=np.linspace(1, 2, K), offset=2.0).X
    W = np.linalg.qr(rng.standard_normal((D, K)))[0]
    return Y, (W, 2.0 + 0.1 * rng.standard_normal(D), rng.uniform(0.5, 3.0, K), 0.4)


def stepped(Y, at, L, latent="shared", mean="learned", hard=False):
    """One step of the reference: log-likelihood and new parameters."""
    log_p, *moments = em_orthonormal.e_step(Y, *at, L, hard)
    tau2 = latent if isinstance(latent, str) else at[2]
    return log_p, em_orthonormal.m_step(Y, *moments, None if mean == "learned" else at[1], tau2)


def compare(Y, at, settings, mean="learned"):
    """Hold one step of `em` from `at` against the reference."""
    W, mu, tau2, sigma2 = at
    origin = {"learned": centre_of(Y), "sample": centre_of(Y), "zero": None}[mean]
    rows, where = about(Y, origin), np.zeros(Y.shape[1]) if origin is None else origin
    # the mean of the fast path is origin - W shift: start from the nearest mean of that form
    shift = W.T @ (where - mu) if mean == "learned" else np.zeros(W.shape[1])
    at = W, where - W @ shift, tau2, sigma2
    value, new = em.step(em.SubspaceState(W, shift, tau2, sigma2), rows, settings)
    args = settings.n_active, settings.latent, mean, settings.hard
    wanted, (W, mu, tau2, sigma2) = stepped(Y, at, *args)
    assert value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(new.W, W, atol=1e-10)
    np.testing.assert_allclose(where - new.W @ new.shift, mu, atol=1e-10)
    np.testing.assert_allclose(new.latent, tau2, rtol=1e-10)
    assert new.noise == pytest.approx(sigma2, rel=1e-10)


def settings_of(K, L, latent="shared", mean="learned", **changes):
    usual = em.EMSettings(K, L, latent, mean == "learned", False, stiefel.polar, 1e-12)
    return usual._replace(**changes)


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("latent", LATENTS)
def test_a_step_is_that_of_the_reference(latent, mean, hard, seed):
    Y, (W, mu, tau2, sigma2) = problem(seed, 60, 6, 5, 2)
    tau2 = tau2 if latent == "component" else np.full(5, 1.5)
    compare(Y, (W, mu, tau2, sigma2), settings_of(5, 2, latent, mean, hard=hard), mean)


# Columns in NumPy up to K = 20, compiled rows beyond; the compiled E step by its own products and
# by those of a BLAS; points on a circle (the Poisson-binomial sum) at many swaps, here from two on.
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize(
    ("shape", "compiled", "many"),
    [
        ((4, 4, 1), False, 15),
        ((7, 4, 4), False, 15),
        ((12, 10, 8), False, 15),
        ((30, 24, 2), False, 15),
        ((260, 10, 3), True, 15),
        ((12, 8, 6), True, 15),
        ((30, 24, 22), True, 15),
        ((12, 7, 3), True, 2),
        ((30, 24, 2), True, 2),
    ],
)
def test_a_step_is_that_of_the_reference_by_every_way_to_sum(
    shape, compiled, many, hard, seed, monkeypatch
):
    D, K, L = shape
    monkeypatch.setattr(em, "MANY_SWAPS", many)
    Y, at = problem(seed, 300, D, K, L)
    compare(Y, at, settings_of(K, L, "component", compiled=compiled, hard=hard))


def test_the_posterior_of_orthonormal_columns_is_that_of_any_columns(seed):
    """Sums of logits against dense covariances: x = sqrt(tau2) u with u of variance one."""
    Y, (W, mu, tau2, sigma2) = problem(seed, 40, 7, 5, 3)
    log_p, r, s, second = em_orthonormal.e_step(Y, W, mu, tau2, sigma2, 3)
    at = W * np.sqrt(tau2), mu, sigma2, 3
    dense = em_adaptive_fa.log_likelihoods(Y, *at)
    p = em_adaptive_fa.support_probabilities(Y, *at)
    r_u, h_u, M_u = em_adaptive_fa.moments(Y, *at, p)
    assert log_p == pytest.approx(dense.sum(), rel=1e-12)
    np.testing.assert_allclose(r, r_u, atol=1e-10)
    np.testing.assert_allclose(s, h_u * np.sqrt(tau2), atol=1e-10)
    np.testing.assert_allclose(second.sum(axis=0), np.diag(M_u) * tau2, rtol=1e-10)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("latent", LATENTS)
def test_a_step_around_missing_entries_is_that_of_the_reference(latent, mean, seed):
    Y, (W, mu, tau2, sigma2) = problem(seed, 150, 6, 4, 2)
    rng = np.random.default_rng(seed)
    missing = rng.random(Y.shape) < 0.25
    missing[:70] = [False, True, True, False, False, False]  # these are looked at together
    missing[75] = True  # nothing of this one was observed
    Y[missing] = np.nan
    tau2 = tau2 if latent == "component" else np.full(4, 1.5)
    rows = split_incomplete(Y, np.full(6, 1.9))
    assert {block.same_pattern for block in rows.blocks} == {True, False}
    assert len(rows.complete)
    settings = settings_of(4, 2, latent, mean)
    begun = em.SubspaceState(W, np.zeros(4), tau2, sigma2, mu - 1.9)
    value, new = gaps.step(gaps.IncompleteState(begun), rows, settings)
    new = new.parameters
    wanted, at = em_incomplete.step(
        Y, W, mu, tau2, sigma2, 2, learn_mean=mean == "learned", latent=latent
    )
    assert value == pytest.approx(wanted, rel=1e-10)
    np.testing.assert_allclose(new.W, at[0], atol=1e-10)
    np.testing.assert_allclose(1.9 + new.offset, at[1], atol=1e-10)
    np.testing.assert_allclose(new.latent, at[2], rtol=1e-10)
    assert new.noise == pytest.approx(at[3], rel=1e-10)


def factor_problem(seed, N, D, K, L, learn_mean):
    rng = np.random.default_rng(seed)
    Y = 2.0 + rng.standard_normal((N, K)) @ rng.standard_normal((K, D))
    rows, W = about(Y, centre_of(Y)), rng.standard_normal((D, K))
    shift = rng.standard_normal(K) if learn_mean else np.zeros(K)
    return rng, Y, rows, factor_em.FactorState(W, shift, 0.7), rows.origin - W @ shift


def compare_factors(new, rows, wanted):
    W, mu, sigma2 = wanted
    np.testing.assert_allclose(new.W, W, atol=1e-10, rtol=1e-10)
    np.testing.assert_allclose(rows.origin - new.W @ new.shift, mu, atol=1e-10)
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
    np.testing.assert_allclose(sums.used, r.sum(axis=0), rtol=1e-10, atol=1e-12)
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
    np.testing.assert_allclose(worth - np.log(10), log_p, rtol=1e-10)
    assert np.isinf(sigma2_W) == (sums.log_likelihood == pytest.approx(log_p.sum(), rel=1e-10))
    _, h, M = em_adaptive_fa.moments(Y, *at, p)
    new = factor_em.maximise(sums, state, rows, settings)
    given = h, M, state.noise, 2, None, sigma2_W
    compare_factors(new, rows, em_adaptive_fa.m_step(Y, *given))
