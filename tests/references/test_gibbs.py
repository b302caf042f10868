"""The Gibbs pages of this folder and the sweeps of the package.

Every page passes the joint distribution test, a page broken on purpose does not; the package's
conditionals are those of the pages, and so are its posterior expectations.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from appca.models import conditionals as fast
from appca.models import (
    factor_gibbs,
    gibbs,
    gibbs_kernels,
    numerics,
    polynomials,
    stiefel,
    support_kernels,
)
from appca.models.supports import CollapsedModel
from tests.geweke import agreement_z, broken, geweke_z, is_caught, named, worst
from tests.models import test_variant_gibbs
from tests.models.factors import test_factor_gibbs, test_sparse_gibbs
from tests.models.orthonormal import test_subspace_gibbs
from tests.references import (
    conditionals,
    em_orthonormal,
    gibbs_adaptive_fa,
    gibbs_adaptive_ppca,
    gibbs_nonparametric_ppca,
    gibbs_sparse_fa,
    gibbs_variants,
    low_rank,
    matrix_von_mises_fisher,
)

SUBSPACES = test_subspace_gibbs.CASES
# CROWDED there wants so many columns that alpha moves once in hundreds of sweeps
LESS_CROWDED = test_sparse_gibbs.CROWDED._replace(alpha=fast.Gamma(12.0, 6.0))

# name: the package's model, the page's sweep, and the prior of both
PAIRS = {
    "adaptive PPCA": (SUBSPACES["block"], gibbs_adaptive_ppca.sweep, SUBSPACES["block"].prior),
    "row scales and sizes": (
        test_variant_gibbs.CASES["both"],
        gibbs_variants.sweep,
        test_variant_gibbs.CASES["both"].prior,
    ),
    "nonparametric PPCA": (
        SUBSPACES["ibp"],
        gibbs_nonparametric_ppca.sweep_buffet,
        SUBSPACES["ibp"].prior,
    ),
    "beta-Bernoulli PPCA": (
        SUBSPACES["beta-bernoulli"],
        gibbs_nonparametric_ppca.sweep_finite,
        SUBSPACES["beta-bernoulli"].prior,
    ),
    "adaptive FA": (
        test_factor_gibbs.model_of(factor_gibbs),
        gibbs_adaptive_fa.sweep,
        test_factor_gibbs.PRIOR,
    ),
    "finite sparse FA": (
        test_sparse_gibbs.model_of(factor_gibbs, "sweep_finite", infinite=False),
        gibbs_sparse_fa.sweep_finite,
        test_sparse_gibbs.PRIOR,
    ),
    "infinite sparse FA": (
        test_sparse_gibbs.model_of(
            factor_gibbs, "sweep_infinite", infinite=True, prior=LESS_CROWDED
        ),
        gibbs_sparse_fa.sweep_infinite,
        LESS_CROWDED,
    ),
}


def with_sweep(model, sweep, prior):
    """Exchange the sweep of a model of Geweke's test for that of a page."""
    return SimpleNamespace(
        draw_prior=model.draw_prior,
        draw_data=model.draw_data,
        statistics=model.statistics,
        sweep=lambda rng, state, Y: sweep(rng, Y, state, prior),
    )


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", PAIRS)
def test_the_reference_passes_geweke(name, seed):
    z = geweke_z(with_sweep(*PAIRS[name]), np.random.default_rng(seed), 800)
    assert worst(z)[0] < 5, worst(z)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", PAIRS)
def test_posterior_expectations_are_those_of_the_reference(name, seed):
    pair = PAIRS[name]
    z = agreement_z(pair[0], with_sweep(*pair), np.random.default_rng(seed), 600)
    assert worst(z)[0] < 6, worst(z)  # errors from 25 batches: heavier tails than a normal z


BROKEN = {
    "noise of rows that are not scaled": (
        "row scales and sizes",
        "(left - mu) / root",
        "left - mu",
    ),
    "A with 1/(2 sigma2)": ("adaptive PPCA", "@ X / sigma2", "@ X / (2 * sigma2)"),
    "singletons deleted": ("nonparametric PPCA", "(alpha / N) ** len(T)", "0.0 ** len(T)"),
    "Beta-Bernoulli odds with N + 1 - m": (
        "beta-Bernoulli PPCA",
        "/ K) / (N - m)",
        "/ K) / (N + 1 - m)",
    ),
    "scores at their means": (
        "adaptive FA",
        "conditionals.draw_normal(rng, *low_rank.scores(y, W[:, S], mu, sigma2))",
        "low_rank.scores(y, W[:, S], mu, sigma2)[0]",
    ),
    "odds with N + 1 - m": ("finite sparse FA", "/ (N - m_k)", "/ (N + 1 - m_k)"),
    "shared columns with N + 1 - m": ("infinite sparse FA", "/ (N - m[k])", "/ (N + 1 - m[k])"),
}


LONG = ("noise of rows that are not scaled",)  # the sweep itself is broken in every run


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("fault", named(BROKEN, thorough=LONG))
def test_a_broken_reference_fails_geweke(fault, seed, tmp_path):
    name, old, new = BROKEN[fault]
    model, sweep, prior = PAIRS[name]
    page = broken(sweep.__module__, old, new, tmp_path, "broken_page")
    wrong = with_sweep(model, getattr(page, sweep.__name__), prior)
    assert is_caught(wrong, np.random.default_rng(seed), (500, 2000, 8000))


N, D, K, L = 6, 5, 4, 2
ALPHA = 1.3


@pytest.fixture
def world(seed):
    """Rows, and a state with something in every conditional."""
    rng = np.random.default_rng(seed)
    Z = np.argsort(rng.random((N, K)), axis=1) < L
    state = SimpleNamespace(
        W=np.linalg.qr(rng.standard_normal((D, K)))[0],
        X=rng.standard_normal((N, K)) * Z,
        Z=Z,
        mu=rng.standard_normal(D),
        sigma2=0.6,
        tau2=rng.uniform(0.5, 2.0, K),
        alpha=ALPHA,
    )
    return rng, state.mu + 2.0 * rng.standard_normal((N, D)), state


def assert_close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_variances_mean_and_loadings_are_those_of_the_reference(world):
    _, Y, s = world
    prior, R = fast.InverseGamma(2.0, 1.5), Y - s.mu - s.X @ s.W.T
    squares = np.square(R).sum()
    assert_close(fast.noise_variance(prior, R.size, squares), conditionals.noise_variance(prior, R))
    assert_close(fast.loading_variance(prior, s.W), conditionals.loading_variance(prior, s.W))
    for each in (False, True):
        given = prior, s.X, s.Z, each
        assert_close(fast.latent_variance(*given), conditionals.latent_variance(*given))
    for variance in (0.5, np.inf):
        left = Y - s.X @ s.W.T
        found = fast.mean(left.sum(axis=0), N, s.sigma2, variance)
        assert_close(found, conditionals.mean(left, s.sigma2, variance))
    R = Y - s.mu
    found = fast.loadings(R.T @ s.X, s.X.T @ s.X, s.sigma2, 1.4)
    M, V = conditionals.loadings(R, s.X, s.sigma2, 1.4)
    assert_close((found.mean, np.linalg.inv(found.precision)), (M, V))


def test_alpha_is_that_of_the_reference(world):
    rng, _, s = world
    prior, pi = fast.Gamma(2.0, 1.3), rng.uniform(0.1, 0.9, K)
    Z = s.Z & [True, True, True, False]
    assert_close(
        fast.alpha_infinite(prior, Z.any(axis=0).sum(), N), conditionals.alpha_buffet(prior, Z)
    )
    assert_close(fast.alpha_finite(prior, np.log(pi)), conditionals.alpha_finite(prior, pi))
    ratio = conditionals.Q(1.3, N, K) / conditionals.Q(4.0, N, K)
    assert fast.alpha_acceptance(1.3, 4.0, N, K) == pytest.approx(ratio, rel=1e-10)


def test_supports_and_scores_of_orthonormal_columns_are_those_of_the_reference(world):
    _, Y, s = world
    a = numerics.logits((Y - s.mu) @ s.W, s.sigma2, s.tau2)
    supports, log_p_S = em_orthonormal.log_joint(Y, s.W, s.mu, s.tau2, s.sigma2, L)
    log_p = np.logaddexp.reduce(log_p_S, axis=1)
    found = a @ supports.T - polynomials.log_elementary(a, L)[:, None]
    np.testing.assert_allclose(np.exp(found), np.exp(log_p_S - log_p[:, None]), atol=1e-10)
    shrink, v = numerics.posterior(s.sigma2, s.tau2)
    m = (Y - s.mu) @ s.W * shrink
    assert_close((m, v), em_orthonormal.scores(Y, s.W, s.mu, s.tau2, s.sigma2))


def test_the_density_of_orthonormal_w_is_that_of_the_reference(world):
    _, Y, s = world
    F = gibbs_adaptive_ppca.concentration(Y, s.X, s.mu, s.sigma2)
    cross = gibbs.SubspaceCrossProducts(Y.T @ s.X, s.X.sum(axis=0))
    np.testing.assert_allclose(gibbs.concentration(cross, s.mu, s.sigma2), F, atol=1e-10)
    for k in range(K):
        N_k = matrix_von_mises_fisher.complement(np.delete(s.W, k, axis=1))
        found = stiefel._without(np.delete(s.W, k, axis=1), F[:, k])
        np.testing.assert_allclose(found, N_k @ (N_k.T @ F[:, k]), atol=1e-10)
    i, j = np.triu_indices(K, 1)
    rotations, reflections = stiefel.pair_parameters(F, s.W, i, j)
    for place, pair in enumerate(zip(i, j, strict=True)):
        found = rotations[:, place], reflections[:, place]
        wanted = matrix_von_mises_fisher.pair_branches(F[:, pair], s.W[:, pair])
        assert_close(found, wanted)


EDGE = 1e-10  # uniform numbers this near a probability, on either side of it, tell it to 1e-10


def below(chance, outcome):
    """Uniform number just short of a chance if the event is to happen, else just beyond it."""
    return chance - EDGE if outcome else chance + EDGE


def test_odds_of_shared_columns_are_those_of_the_reference(world):
    rng, Y, s = world
    a = gibbs_nonparametric_ppca.logits(Y, s)
    for wanted in np.ndindex(*[2] * K):
        m = s.Z[1:].sum(axis=0)
        p = gibbs_nonparametric_ppca.probability((m + ALPHA / K) / (N - m), a[0])
        Z, U = s.Z.copy(), rng.random((N, K))
        U[0] = [below(*both) for both in zip(p, wanted, strict=True)]
        gibbs_kernels.scan_beta_bernoulli(Z, a, ALPHA / K, U)
        np.testing.assert_array_equal(Z[0], np.array(wanted, bool))


def test_supports_of_own_columns_are_those_of_the_reference(world):
    """One shared column and three of the row's own: every outcome, at the edge of its chance."""
    rng, Y, s = world
    s.Z[1:] = [True, False, False, False]
    s.Z[-1] = False
    a = gibbs_nonparametric_ppca.logits(Y, s)
    m, own = N - 2, np.arange(1, K)
    shared = gibbs_nonparametric_ppca.probability(m / (N - m), a[0, 0])
    members, P = gibbs_nonparametric_ppca.own_supports(a[0, own], ALPHA, N)
    T = np.array([np.isin(np.arange(K - 1), one) for one in members])
    for wanted, t in zip(T, T.sum(axis=1), strict=True):
        for first in (True, False):
            U = rng.random((N, K + 1))
            U[0, 0] = below(shared, first)
            size_below, size_up_to = (P[r].sum() for r in (T.sum(axis=1) < t, T.sum(axis=1) <= t))
            so_far = T.sum(axis=1) == t
            for i in range(K - 2, -1, -1):  # members are drawn from the last to the first
                chance = P[so_far & T[:, i]].sum() / P[so_far].sum()
                U[0, own[i]] = below(chance, wanted[i])
                so_far &= T[:, i] == wanted[i]
            for size in (size_below + EDGE, size_up_to - EDGE):
                U[0, K] = size
                Z = s.Z.copy()
                gibbs_kernels.scan_truncated(Z, a, np.log(ALPHA / N), U)
                np.testing.assert_array_equal(Z[0], [first, *wanted])


def test_slots_and_scores_of_free_columns_are_those_of_the_reference(world):
    rng, Y, s = world
    W = rng.standard_normal((D, K))
    c, model = (Y - s.mu) @ W / s.sigma2, CollapsedModel(W.T @ W / s.sigma2, 1.0)
    members = np.array([np.flatnonzero(z) for z in s.Z])
    found = factor_gibbs.scores(c, members, model)
    for n, S in enumerate(members):
        for number in range(L):
            candidates, log_p = gibbs_adaptive_fa.slot(Y[n], S, number, W, s.mu, s.sigma2)
            factors, gains = factor_gibbs.slot(c[n], S, number, model)
            order = np.argsort(factors)
            np.testing.assert_array_equal(factors[order], candidates)
            np.testing.assert_allclose(np.ptp(gains[order] - log_p), 0.0, atol=1e-10)
        wanted = low_rank.scores(Y[n], W[:, S], s.mu, s.sigma2)
        assert_close((found.mean[n], np.linalg.inv(found.precision[n])), wanted)


def test_odds_of_sparse_columns_are_those_of_the_reference(world):
    rng, Y, s = world
    W, prior = rng.standard_normal((D, K)), SimpleNamespace(tau2=1.7)
    v = gibbs_kernels.Variances(s.sigma2, prior.tau2)
    A, T = gibbs_kernels.precision(W.T @ W, v), np.empty((K, K + 1))
    for y, z in zip(Y, s.Z, strict=True):
        support_kernels.fill(T, A, (y - s.mu) @ W / s.sigma2, z)
        for k in range(K):
            m = s.Z[:, k].sum() - z[k]
            odds = gibbs_kernels.finite_log_odds(m, N, ALPHA / K)
            found = support_kernels.probability(
                odds + support_kernels.increment(T, k, z[k], prior.tau2)
            )
            given = (m + ALPHA / K) / (N - m), y, W, z, k, s, prior
            wanted = gibbs_sparse_fa.probability(*given)
            assert found == pytest.approx(wanted, abs=1e-10)
