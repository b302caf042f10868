"""Every conditional against the joint density: exact ratios, no draws (Grosse and Duvenaud)."""

import numpy as np
import pytest
from scipy import stats

from appca.models import conditionals
from appca.models.conditionals import Gamma, InverseGamma
from tests.models import gibbs_oracles as oracle

N, D, K = 6, 4, 3
NOISE, WEAK = InverseGamma(2.0, 1.5), InverseGamma(3.0, 0.7)


@pytest.fixture
def world(seed):
    rng = np.random.default_rng(seed)
    W, Z = rng.normal(size=(D, K)), rng.random((N, K)) < 0.6
    Z[0] = True
    X, mu = rng.normal(size=(N, K)) * Z, rng.normal(size=D)
    return rng, mu + X @ W.T + rng.normal(size=(N, D)), W, X, Z, mu


def test_noise_variance_has_the_ratios_of_the_joint(world):
    _, Y, W, X, Z, mu = world
    given = conditionals.noise_variance(NOISE, Y.size, np.square(Y - mu - X @ W.T).sum())

    def joint(s):
        return oracle.log_data(Y, W, X, Z, mu, s) + oracle.log_inverse_gamma(s, *NOISE)

    left = oracle.log_inverse_gamma(0.7, *given) - oracle.log_inverse_gamma(1.9, *given)
    assert left == pytest.approx(joint(0.7) - joint(1.9), abs=1e-10)


@pytest.mark.parametrize("each", [False, True])
def test_latent_variance_has_the_ratios_of_the_joint(world, each):
    rng, _, _, X, Z, _ = world
    given = conditionals.latent_variance(WEAK, X, Z, each)
    first, second = rng.uniform(0.5, 2, (2, K)) if each else (0.6, 1.7)

    def joint(t):
        return oracle.log_scores(X, Z, t) + oracle.log_inverse_gamma(t, *WEAK)

    left = oracle.log_inverse_gamma(first, *given) - oracle.log_inverse_gamma(second, *given)
    assert left == pytest.approx(joint(first) - joint(second), abs=1e-10)


def test_loading_variance_has_the_ratios_of_the_joint(world):
    W = world[2]
    given = conditionals.loading_variance(WEAK, W)

    def joint(v):
        return stats.norm.logpdf(W, 0, np.sqrt(v)).sum() + oracle.log_inverse_gamma(v, *WEAK)

    left = oracle.log_inverse_gamma(0.6, *given) - oracle.log_inverse_gamma(1.7, *given)
    assert left == pytest.approx(joint(0.6) - joint(1.7), abs=1e-10)


@pytest.mark.parametrize("prior_variance", [0.8, np.inf])
def test_mean_has_the_ratios_of_the_joint(world, prior_variance):
    rng, Y, W, X, Z, _ = world
    given = conditionals.mean((Y - X @ W.T).sum(axis=0), len(Y), 0.9, prior_variance)
    first, second = rng.normal(size=(2, D))

    def joint(mu):
        prior = -np.square(mu).sum() / (2 * prior_variance)
        return oracle.log_data(Y, W, X, Z, mu, 0.9) + prior

    def conditional(mu):
        return stats.norm.logpdf(mu, given.mean, np.sqrt(given.variance)).sum()

    left = conditional(first) - conditional(second)
    assert left == pytest.approx(joint(first) - joint(second), abs=1e-10)


def test_loadings_have_the_ratios_of_the_joint(world):
    rng, Y, _, X, Z, mu = world
    given = conditionals.loadings((Y - mu).T @ X, X.T @ X, 0.9, 1.4)
    first, second = rng.normal(size=(2, D, K))

    def joint(W):
        return oracle.log_data(Y, W, X, Z, mu, 0.9) + stats.norm.logpdf(W, 0, np.sqrt(1.4)).sum()

    def conditional(W):
        E = W - given.mean
        return -0.5 * np.einsum("dk,kj,dj", E, given.precision, E)

    left = conditional(first) - conditional(second)
    assert left == pytest.approx(joint(first) - joint(second), abs=1e-10)


def test_scales_have_the_ratios_of_the_joint_along_the_orbit(world):
    _, _, W, X, Z, _ = world
    p, a, b = conditionals.scales(W, X, Z, 1.4, 0.8)

    def joint(k, u):
        c = np.exp(u / 2)
        log_w = stats.norm.logpdf(c * W[:, k], 0, np.sqrt(1.4)).sum()
        log_x = stats.norm.logpdf(X[Z[:, k], k] / c, 0, np.sqrt(0.8)).sum()
        return log_w + log_x + (D - Z[:, k].sum()) * u / 2

    for k in range(K):
        left = p[k] * (0.7 + 1.1) - (a[k] * (np.exp(0.7) - np.exp(-1.1))) / 2
        left -= b[k] * (np.exp(-0.7) - np.exp(1.1)) / 2
        assert left == pytest.approx(joint(k, 0.7) - joint(k, -1.1), abs=1e-10)


@pytest.mark.parametrize(("p", "a", "b"), [(2.0, 3.0, 1.0), (-40.0, 0.5, 90.0), (0.0, 1e-3, 1e-3)])
def test_scale_moves_keep_their_density(seed, p, a, b):
    rng = np.random.default_rng(seed)
    grid = np.linspace(-20, 20, 40_001)
    log_density = p * grid - (a * np.exp(grid) + b * np.exp(-grid)) / 2
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    cdf /= cdf[-1]
    start = np.interp(rng.random(4000), cdf, grid)
    # the orbit seen from a point c: w is c times as long, x is 1 / c times as long
    full = np.full(4000, p)
    given = conditionals.LogScale(full, a * np.exp(start), b * np.exp(-start))
    moved = start + conditionals.draw_log_scales(rng, given)
    assert stats.kstest(moved, lambda u: np.interp(u, grid, cdf)).pvalue > 1e-5
    assert (moved != start).mean() > 0.1


def test_alpha_of_the_finite_model_has_the_ratios_of_the_joint(world):
    rng, Z = world[0], world[4]
    prior, pi = Gamma(2.0, 1.3), rng.uniform(0.05, 0.95, K)
    given = conditionals.alpha_finite(prior, np.log(pi))

    def joint(a):
        return stats.beta.logpdf(pi, a / K, 1).sum() + oracle.log_gamma(a, *prior)

    left = oracle.log_gamma(0.7, *given) - oracle.log_gamma(2.1, *given)
    assert left == pytest.approx(joint(0.7) - joint(2.1), abs=1e-10)
    weights = conditionals.log_weights(Z.sum(axis=0), N, 1.1, K)
    other = rng.uniform(0.05, 0.95, K)

    def joint_weights(pi):
        bits = np.where(Z, np.log(pi), np.log1p(-pi)).sum()
        return bits + stats.beta.logpdf(pi, 1.1 / K, 1).sum()

    def conditional(pi):
        return stats.beta.logpdf(pi, weights.a, weights.b).sum()

    left = conditional(pi) - conditional(other)
    assert left == pytest.approx(joint_weights(pi) - joint_weights(other), abs=1e-10)


def test_alpha_of_the_truncated_buffet_is_in_detailed_balance(world):
    Z = world[4]
    prior, old, new = Gamma(2.0, 1.3), 3.0, 5.0
    proposal = conditionals.alpha_infinite(prior, int(Z.any(axis=0).sum()), N)
    log_accept = np.log(conditionals.alpha_acceptance(old, new, N, K))

    def joint(a):
        return oracle.log_truncated_buffet(Z, a) + oracle.log_gamma(a, *prior)

    left = log_accept + oracle.log_gamma(new, *proposal) - oracle.log_gamma(old, *proposal)
    assert left == pytest.approx(joint(new) - joint(old), abs=1e-10)
    # at this alpha the truncation matters, so leaving Q out would show
    assert abs(log_accept) > 0.5


def test_rows_are_drawn_with_the_inverse_of_the_precision(seed):
    rng = np.random.default_rng(seed)
    precision = np.array([[2.0, 0.9, -0.6], [0.9, 1.0, 0.1], [-0.6, 0.1, 1.5]])
    mean = np.tile([1.0, -2.0, 0.5], (40_000, 1))
    rows = conditionals.draw_rows(rng, conditionals.RowNormal(mean, precision))
    wanted = np.linalg.inv(precision)
    # standard error of a covariance entry: sqrt((c_ij^2 + c_ii c_jj) / n)
    error = np.sqrt((wanted**2 + np.outer(wanted.diagonal(), wanted.diagonal())) / len(rows))
    assert (np.abs(np.cov(rows.T) - wanted) < 5 * error).all()
    # the factor of the wrong side has another covariance: the check would see it
    L = np.linalg.cholesky(precision)
    swapped = np.linalg.inv(L.T @ L)
    assert (np.abs(swapped - wanted) > 10 * error).any()
    assert rows.mean(axis=0) == pytest.approx(mean[0], abs=5 * np.sqrt(wanted.max() / len(rows)))


@pytest.mark.parametrize(("a", "b"), [(2.5, 1.5), (0.3, 4.0), (1e-4, 1.0)])
def test_log_beta_draws_follow_the_beta_distribution(seed, a, b):
    rng = np.random.default_rng(seed)
    given = conditionals.LogBeta(np.full(4000, a), np.full(4000, b))
    draws = conditionals.draw_log_beta(rng, given)
    assert np.isfinite(draws).all()
    # the distribution function of log pi, also where pi itself underflows: I_x(a, 1) = x^a
    cdf = (lambda u: np.exp(a * u)) if b == 1.0 else (lambda u: stats.beta.cdf(np.exp(u), a, b))
    assert stats.kstest(draws, cdf).pvalue > 1e-5


def test_inverse_gamma_draws_follow_their_density(seed):
    rng = np.random.default_rng(seed)
    given = InverseGamma(np.full(4000, 3.0), np.full(4000, 2.0))
    draws = conditionals.draw_inverse_gamma(rng, given)
    assert stats.kstest(draws, stats.invgamma(3.0, scale=2.0).cdf).pvalue > 1e-5


def test_prior_densities_agree_with_scipy():
    assert conditionals.log_density(NOISE, 0.8) == pytest.approx(
        oracle.log_inverse_gamma(0.8, *NOISE), abs=1e-12
    )
    assert conditionals.log_gamma_density(Gamma(2.0, 1.3), 0.8) == pytest.approx(
        oracle.log_gamma(0.8, 2.0, 1.3), abs=1e-12
    )
