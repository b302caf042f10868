"""Gibbs for adaptive factor analysis: every conditional, and the whole sweep."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from appca.models import factor_gibbs
from appca.models.conditionals import InverseGamma
from appca.models.factor_gibbs import FactorGibbsState, FactorPrior
from appca.models.numerics import background
from appca.models.products import data_of
from appca.models.row_sums import look
from appca.models.rows import about
from appca.models.supports import CollapsedModel
from tests.geweke import DRAWS, broken, geweke_z, is_caught, worst
from tests.references import em_adaptive_fa

N, D, K, L = 4, 3, 4, 2
PRIOR = FactorPrior(InverseGamma(6.0, 3.0), InverseGamma(6.0, 5.0), 0.5)
MODULE = "appca.models.factor_gibbs"


def draw_prior(rng):
    sigma2 = PRIOR.noise.rate / rng.gamma(PRIOR.noise.shape)
    sigma2_W = PRIOR.loading.rate / rng.gamma(PRIOR.loading.shape)
    members = np.argsort(rng.random((N, K)), axis=1)[:, :L]
    X = np.zeros((N, K))
    np.put_along_axis(X, members, rng.standard_normal((N, L)), axis=1)
    W = np.sqrt(sigma2_W) * rng.standard_normal((D, K))
    mu = np.sqrt(PRIOR.mean_variance) * rng.standard_normal(D)
    return FactorGibbsState(W, X, members, mu, sigma2, sigma2_W)


def draw_data(rng, state):
    signal = state.mu + state.X @ state.W.T
    return signal + np.sqrt(state.sigma2) * rng.standard_normal((N, D))


def looked_at(Y, state):
    data = data_of(about(Y, None))
    return data, look(data, state)


def statistics(state, Y):
    """Numbers that see the parameters, their couplings, and the data they were drawn from."""
    W, X, members, mu, sigma2, sigma2_W = state
    Z = factor_gibbs.indicators(members, K)
    used = Z.sum(axis=0)
    S = W @ W.T
    lengths = np.square(W).sum(axis=0)
    active = np.take_along_axis(X, members, axis=1)
    own = np.square(active)
    c = (Y - mu) @ W / sigma2
    given = factor_gibbs.scores(c, members, CollapsedModel(W.T @ W / sigma2, 1.0))
    away = active - given.mean
    return {
        "log noise": np.log(sigma2),
        "log loading variance": np.log(sigma2_W),
        "squares of W": np.log1p(np.square(W).sum()),
        "squares of X": np.square(X).sum(),
        "residual": np.square(Y - mu - X @ W.T).sum() / sigma2,
        "signal and data": np.tanh((Y * (X @ W.T)).sum()),
        "first and last factor": used[0] - used[-1],
        "first two factors": (Z[:, 0] & Z[:, 1]).sum() - (Z[:, -1] & Z[:, -2]).sum(),
        "fullest factor": used.max(),
        "shared": (Z[0] & Z[1]).sum(),
        "longest and shortest used": used[lengths.argmax()] - used[lengths.argmin()],
        "scores of the longest": np.square(X[:, lengths.argmax()]).sum(),
        "first and last slot": (own[:, 0] - own[:, -1]).sum(),
        "standardised scores": np.einsum("nl,nlm,nm->", away, given.precision, away),
        "WW diagonal": np.tanh(S[0, 0]) - np.tanh(S[-1, -1]),
        "WW corner": np.tanh(S[0, 1]),
        "WW product": np.tanh(S[0, 1] * S[1, 2]),
        "X product": np.tanh((X[:, 0] * X[:, 1] * (W[:, 0] @ W[:, 1])).sum()),
        "mean": mu[0],
        "mean and data": np.tanh(mu @ Y.mean(axis=0)),
    }


def model_of(module):
    return SimpleNamespace(
        draw_prior=draw_prior,
        draw_data=draw_data,
        sweep=lambda rng, state, Y: module.sweep(rng, *looked_at(Y, state), PRIOR).state,
        statistics=statistics,
    )


@DRAWS
def test_the_sweep_passes_geweke(n_draws, seed):
    z = geweke_z(model_of(factor_gibbs), np.random.default_rng(seed), n_draws)
    value, name = worst(z)
    assert value < 5, name


SWEEP_CONTROLS = {
    "residual_of_the_old_W": ("(data, cross, W, mu)", "(data, cross, state.W, mu)"),
    "scores_at_their_means": (
        "draw_scores(rng, scores(c[part], members[part], model))",
        "scores(c[part], members[part], model).mean",
    ),
    "scores_not_redrawn_after_the_sets": (
        "X = drawn_scores(rng, c, members, model)",
        "X = np.where(state.X, state.X, 1e-3) * indicators(members, c.shape[1])",
    ),
    "signal_over_twice_the_noise": (
        "CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)",
        "CollapsedModel(state.W.T @ state.W / (2 * state.sigma2), PRIOR)",
    ),
    "latent_variance_of_two": ("state.W / state.sigma2, PRIOR)", "state.W / state.sigma2, 0.5)"),
    "loading_variance_doubled": (
        "mu, state.sigma2, state.sigma2_W)\n    )",
        "mu, state.sigma2, 2 * state.sigma2_W)\n    )",
    ),
    "noise_over_rows": ("prior.noise, data.size,", "prior.noise, data.size - n,"),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", SWEEP_CONTROLS)
def test_geweke_sees_sweeps_broken_on_purpose(name, tmp_path):
    module = broken(MODULE, *SWEEP_CONTROLS[name], tmp_path, f"sweep_{name}")
    assert is_caught(model_of(module), np.random.default_rng(0))


def test_scores_are_drawn_from_the_joint_normal(seed):
    rng = np.random.default_rng(seed)
    state = draw_prior(rng)
    Y = draw_data(rng, state)
    c, model = factor_gibbs.projected(looked_at(Y, state)[1])
    given = factor_gibbs.scores(c, state.members, model)
    for n, S in enumerate(state.members):
        x, other = rng.standard_normal((2, L))

        def joint(x, n=n, S=S):
            fit = state.mu + state.W[:, S] @ x
            noise = stats.norm.logpdf(Y[n], fit, np.sqrt(state.sigma2)).sum()
            return noise + stats.norm.logpdf(x).sum()

        def conditional(x, n=n):
            away = x - given.mean[n]
            return -0.5 * away @ given.precision[n] @ away

        assert conditional(x) - conditional(other) == pytest.approx(
            joint(x) - joint(other), abs=1e-10
        )


def covariance_error(module, seed):
    """Largest gap between the covariance of draws and of their parameters, as correlations."""
    rng = np.random.default_rng(seed)
    state = draw_prior(rng)
    c, model = factor_gibbs.projected(looked_at(draw_data(rng, state), state)[1])
    n = 20_000
    given = factor_gibbs.scores(
        np.repeat(c[:1], n, axis=0), np.repeat(state.members[:1], n, axis=0), model
    )
    draws = module.draw_scores(rng, given)
    covariance = np.linalg.inv(given.precision[0])
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs(draws.mean(axis=0) - given.mean[0]).max() < 5 * np.sqrt(scale.max() / n)
    return np.abs(np.cov(draws.T) - covariance).max() / scale.max()


def test_score_draws_have_the_covariance_of_their_parameters(seed):
    assert covariance_error(factor_gibbs, seed) < 0.06


def test_the_covariance_test_sees_a_factor_that_is_not_transposed(tmp_path):
    right, wrong = "np.linalg.solve(np.swapaxes(C, 1, 2), e)", "np.linalg.solve(C, e)"
    module = broken(MODULE, right, wrong, tmp_path, "not_transposed")
    assert max(covariance_error(module, seed) for seed in range(3)) > 0.15


def test_measures_are_the_dense_densities(seed):
    rng = np.random.default_rng(seed)
    state = draw_prior(rng)
    Y = draw_data(rng, state)
    data, seen = looked_at(Y, state)
    found = factor_gibbs.measure(data, PRIOR, seen)
    exact = em_adaptive_fa.log_likelihoods(Y, state.W, state.mu, state.sigma2, L).sum()
    assert found.log_likelihood == pytest.approx(exact)
    prior = stats.norm.logpdf(state.W, 0, np.sqrt(state.sigma2_W)).sum()
    prior += stats.invgamma.logpdf(state.sigma2, 6.0, scale=3.0)
    prior += stats.invgamma.logpdf(state.sigma2_W, 6.0, scale=5.0)
    assert found.log_posterior - found.log_likelihood == pytest.approx(prior)
    squares = np.square(Y - state.mu).sum(axis=1)
    given = background(squares, state.sigma2, D) + factor_gibbs.support_log_densities(seen)
    dense = em_adaptive_fa.log_joint(Y, state.W, state.mu, state.sigma2, L)
    own = dense[em_adaptive_fa.certain(state.members, K) == 1] + np.log(6)
    np.testing.assert_allclose(given, own, rtol=1e-9)


def test_a_record_holds_the_complete_data_density(seed):
    rng = np.random.default_rng(seed)
    state = draw_prior(rng)
    Y = draw_data(rng, state)
    data, seen = looked_at(Y, state)
    kept = factor_gibbs.record(data, seen)
    joint = stats.norm.logpdf(Y, state.mu + state.X @ state.W.T, np.sqrt(state.sigma2)).sum()
    joint += stats.norm.logpdf(np.take_along_axis(state.X, state.members, axis=1)).sum()
    assert kept["log_joint"] == pytest.approx(joint - N * np.log(6))
    assert kept["components"].shape == (K, D)
    np.testing.assert_array_equal(factor_gibbs.average(seen)["Z_mean"].sum(axis=1), L)
