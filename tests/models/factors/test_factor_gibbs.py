"""Gibbs sampling for models with free W: every conditional, and the whole sweep of each prior."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import appca.models
from appca.models import (
    factor_gibbs,
    gibbs_kernels,  # noqa: F401  (lest the first use undo a patch)
    supports,
)
from appca.models.conditionals import Gamma, InverseGamma
from appca.models.factor_gibbs import FINITE, FIXED, INFINITE, FactorGibbsState, FactorPrior, look
from appca.models.numerics import background
from appca.models.products import data_of
from appca.models.rows import about, centre_of
from appca.models.supports import CollapsedModel
from tests.geweke import DRAWS, broken, broken_kernels, geweke_z, is_caught, named, worst
from tests.models.gibbs_oracles import draw_buffet
from tests.references import em_adaptive_fa

N, L = 4, 2
SIZES = {FIXED: (3, 4), FINITE: (2, 3), INFINITE: (2, 3)}  # D, K
SPARSE = FactorPrior(InverseGamma(6.0, 1.5), InverseGamma(6.0, 5.0), 0.5, Gamma(3.0, 2.0))
PRIORS = {
    FIXED: FactorPrior(InverseGamma(6.0, 3.0), InverseGamma(6.0, 5.0), 0.5),
    FINITE: SPARSE,
    # so many columns wanted that the cut at K matters
    INFINITE: SPARSE._replace(noise=InverseGamma(6.0, 3.0), alpha=Gamma(12.0, 3.0)),
}


def draw_Z(rng, kind, alpha):
    """Draw Z (N, K) from its prior."""
    K = SIZES[kind][1]
    if kind == FIXED:
        return rng.random((N, K)).argsort(axis=1) < L
    if kind == INFINITE:
        return draw_buffet(rng, alpha, N, K)
    return rng.random((N, K)) < rng.beta(alpha / K, 1.0, K)  # columns by their own weights


def draw_prior(rng, kind, prior=None):
    prior, (D, K) = prior or PRIORS[kind], SIZES[kind]
    alpha = 0.0 if prior.alpha is None else rng.gamma(prior.alpha.shape) / prior.alpha.rate
    Z = draw_Z(rng, kind, alpha)
    sigma2 = prior.noise.rate / rng.gamma(prior.noise.shape)
    sigma2_W = prior.loading.rate / rng.gamma(prior.loading.shape)
    W = np.sqrt(sigma2_W) * rng.normal(size=(D, K))
    W = W * Z.any(axis=0) if kind == INFINITE else W
    mu = np.sqrt(prior.mean_variance) * rng.normal(size=D)
    return FactorGibbsState(W, rng.normal(size=(N, K)) * Z, Z, mu, sigma2, sigma2_W, alpha)


def draw_data(rng, state):
    noise = np.sqrt(state.sigma2) * rng.normal(size=(N, len(state.mu)))
    return state.mu + state.X @ state.W.T + noise


def looked_at(Y, state):
    data = data_of(about(Y, None))
    return data, look(data, state)


def model_of(kind, module=factor_gibbs, prior=None):
    """Bundle prior, data, sweep and statistics for Geweke's test."""

    def sweep(rng, state, Y):
        return module.sweep(rng, *looked_at(Y, state), prior or PRIORS[kind], kind).state

    def seen(state, Y):
        # the columns of the infinite model have no names, so it has no contrasts
        named_columns = {} if kind == INFINITE else contrasts(state, Y)
        return statistics(state, Y) | named_columns | (of_slots(state, Y) if kind == FIXED else {})

    return SimpleNamespace(
        draw_prior=lambda rng: draw_prior(rng, kind, prior),
        draw_data=draw_data,
        sweep=sweep,
        statistics=seen,
    )


def statistics(state, Y):
    """Numbers that see the parameters, their couplings, and the data they were drawn from."""
    W, X, Z, mu, sigma2, sigma2_W, alpha = state
    counts = Z.sum(axis=0)
    R = Y - mu - X @ W.T
    S = W @ W.T
    return {
        "log noise": np.log(sigma2),
        "log loading variance": np.log(sigma2_W),
        "log alpha": np.log(alpha) if alpha else 0.0,
        "alpha": alpha,
        "active": Z.sum(),
        "used": (counts > 0).sum(),
        "singletons": (counts == 1).sum(),
        "full columns": (counts == N).sum(),
        "fullest column": counts.max(),
        "first row active": Z[0].sum(),
        "last row active": Z[-1].sum(),
        "shared": (Z[0] & Z[1]).sum(),
        "squares of W": np.log1p(np.square(W).sum()),
        "squares of X": np.square(X).sum(),
        "residual": np.square(R).sum() / sigma2,
        "signal and data": np.tanh((Y * (X @ W.T)).sum()),
        "WW diagonal": np.tanh(S[0, 0]) - np.tanh(S[-1, -1]),
        "WW corner": np.tanh(S[0, 1]),
        "scores in excess": np.square(X).sum() - Z.sum(),
        "mean": mu[0],
        "mean and data": np.tanh(mu @ Y.mean(axis=0)),
        "row norms": np.tanh(np.square(X @ W.T).sum()),
    }


def contrasts(state, _Y):
    """Numbers that symmetry between the columns makes zero."""
    S = state.W.T @ state.W
    return {
        "column contrast": np.tanh(S[0, 0]) - np.tanh(S[-1, -1]),
        "column product": np.tanh(S[0, 1] * S[1, 2]),
    }


def of_slots(state, Y):
    """Numbers about supports of fixed size and the scores in their slots."""
    W, X, Z, mu, sigma2, *_ = state
    used, lengths = Z.sum(axis=0), np.square(W).sum(axis=0)
    c = (Y - mu) @ W / sigma2
    (given,) = supports.scores_given(c, Z, CollapsedModel(W.T @ W / sigma2, 1.0))
    away = np.take_along_axis(X, given.members, axis=1) - given.mean
    return {
        "first and last factor": used[0] - used[-1],
        "first two factors": (Z[:, 0] & Z[:, 1]).sum() - (Z[:, -1] & Z[:, -2]).sum(),
        "longest and shortest used": used[lengths.argmax()] - used[lengths.argmin()],
        "scores of the longest": np.square(X[:, lengths.argmax()]).sum(),
        "standardised scores": np.einsum("nl,nlm,nm->", away, given.precision, away),
        "X product": np.tanh((X[:, 0] * X[:, 1] * (W[:, 0] @ W[:, 1])).sum()),
    }


@DRAWS
@pytest.mark.parametrize("kind", SIZES)
def test_the_sweep_passes_geweke(kind, n_draws, seed):
    value, name = worst(geweke_z(model_of(kind), np.random.default_rng(seed), n_draws))
    assert value < 5, name


# name: (kind, module, piece of its source, what stands there instead)
KERNELS, SWEEP, STEPS = "gibbs_kernels", "factor_gibbs", "conditionals"
BROKEN = {
    "scores at their means": (
        FIXED,
        SWEEP,
        "supports.draw_scores_given(rng, c, Z, model)",
        "fixed_size_supports.means(c, members, model)",
    ),
    "scores not redrawn after the sets": (
        FIXED,
        SWEEP,
        "X=supports.draw_scores_given(rng, c, Z, model)",
        "X=np.where(state.X, state.X, 1e-3) * Z",
    ),
    "signal over twice the noise": (
        FIXED,
        SWEEP,
        "CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)",
        "CollapsedModel(state.W.T @ state.W / (2 * state.sigma2), PRIOR)",
    ),
    "latent variance of two": (
        FIXED,
        SWEEP,
        "state.W / state.sigma2, PRIOR)",
        "state.W / state.sigma2, 0.5)",
    ),
    "loading variance doubled": (
        FIXED,
        SWEEP,
        "existing.second, state.sigma2, sigma2_W",
        "existing.second, state.sigma2, 2 * sigma2_W",
    ),
    "noise over rows": (FIXED, SWEEP, "prior.noise, data.size,", "prior.noise, data.size - n,"),
    "odds with N - 1 - m, finite": (
        FINITE,
        KERNELS,
        "np.log(n_rows - m)",
        "np.log(n_rows - 1 - m)",
    ),
    "gain without the determinant, finite": (
        FINITE,
        KERNELS,
        "finite_log_odds(m, N, pseudo) + increment(T, k, Z[n, k], v.tau2)",
        "finite_log_odds(m, N, pseudo) + increment(T, k, Z[n, k], v.tau2)"
        " + 0.5 * np.log(v.tau2 * (-1.0 / T[k, k] if Z[n, k] else T[k, k]))",
    ),
    "x not redrawn after z, finite": (
        FINITE,
        SWEEP,
        "return state._replace(X=X, Z=Z)",
        "return state._replace(X=np.where(state.Z, state.X, 1e-3) * Z, Z=Z)",
    ),
    "scales without the volume, finite": (
        FINITE,
        STEPS,
        "(len(W) - Z.sum(axis=0)) / 2",
        "0.0 * Z.sum(axis=0)",
    ),
    "noise from a stale residual, finite": (
        FINITE,
        SWEEP,
        "residual_squares(data, cross, W, mu)",
        "residual_squares(data, cross, state.W, mu)",
    ),
    "noise rate without the half, finite": (
        FINITE,
        STEPS,
        "prior.rate + squares / 2)\n\n\ndef latent",
        "prior.rate + squares)\n\n\ndef latent",
    ),
    "loadings by the untransposed factor, finite": (
        FINITE,
        STEPS,
        "np.linalg.solve(L.T, rng",
        "np.linalg.solve(L, rng",
    ),
    "alpha given the used columns only, finite": (
        FINITE,
        STEPS,
        "K = len(log_pi)",
        "K = len(log_pi) - 1",
    ),
    "x not redrawn after z, infinite": (
        INFINITE,
        SWEEP,
        "return state._replace(W=Wt.T * Z.any(axis=0), X=X, Z=Z)",
        "X = np.where(state.X, state.X, 1e-3) * Z\n"
        "    return state._replace(W=Wt.T * Z.any(axis=0), X=X, Z=Z)",
    ),
    "alpha without Q, infinite": (
        INFINITE,
        STEPS,
        "rng.random() < alpha_acceptance(alpha, new, n_rows, max_components)",
        "True",
    ),
    "odds with N - 1 - m, infinite": (
        INFINITE,
        KERNELS,
        "np.log(n_rows - m)",
        "np.log(n_rows - 1 - m)",
    ),
}


def with_broken(monkeypatch, folder, name, old, new):
    """Give the module of the sweeps, with a broken copy of itself or of what it calls."""
    make = broken_kernels if name == KERNELS else broken
    copy = make(f"appca.models.{name}", old, new, folder, f"broken_{name}")
    if name != SWEEP:
        monkeypatch.setattr(appca.models if name == KERNELS else factor_gibbs, name, copy)
    return copy if name == SWEEP else factor_gibbs


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("name", named(BROKEN, ["scales without the volume, finite"]))
def test_a_broken_sweep_fails_geweke(name, monkeypatch, tmp_path):
    kind, *how = BROKEN[name]
    module = with_broken(monkeypatch, tmp_path, *how)
    assert is_caught(model_of(kind, module), np.random.default_rng(0))


def test_scores_are_drawn_from_the_joint_normal(seed):
    rng = np.random.default_rng(seed)
    state = draw_prior(rng, FIXED)
    Y = draw_data(rng, state)
    c, model = factor_gibbs.projected(looked_at(Y, state)[1])
    (given,) = supports.scores_given(c, state.Z, model)
    for n, S in enumerate(factor_gibbs.members_of(state.Z)):
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
    state = draw_prior(rng, FIXED)
    c, model = factor_gibbs.projected(looked_at(draw_data(rng, state), state)[1])
    n = 20_000
    (given,) = supports.scores_given(c, state.Z, model)
    row = np.abs(given.precision[:, 0, 1]).argmax()
    many = np.tile(c[row], (n, 1)), np.tile(state.Z[row], (n, 1))
    (given,) = supports.scores_given(*many, model)
    draws = module.draw_scores(rng, given)
    covariance = np.linalg.inv(given.precision[0])
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs(draws.mean(axis=0) - given.mean[0]).max() < 5 * np.sqrt(scale.max() / n)
    return np.abs(np.cov(draws.T) - covariance).max() / scale.max()


def test_score_draws_have_the_covariance_of_their_parameters(seed):
    assert covariance_error(supports, seed) < 0.06


def test_the_covariance_test_sees_a_factor_that_is_not_transposed(tmp_path):
    right, wrong = "np.linalg.solve(np.swapaxes(C, 1, 2), e)", "np.linalg.solve(C, e)"
    module = broken("appca.models.supports", right, wrong, tmp_path, "not_transposed")
    assert max(covariance_error(module, seed) for seed in range(3)) > 0.15


def test_measures_are_the_dense_densities(seed):
    rng = np.random.default_rng(seed)
    state = draw_prior(rng, FIXED)
    Y = draw_data(rng, state)
    data, seen = looked_at(Y, state)
    found = factor_gibbs.measure(data, PRIORS[FIXED], FIXED, seen)
    exact = em_adaptive_fa.log_likelihoods(Y, state.W, state.mu, state.sigma2, L).sum()
    assert found.log_likelihood == pytest.approx(exact)
    prior = stats.norm.logpdf(state.W, 0, np.sqrt(state.sigma2_W)).sum()
    prior += stats.invgamma.logpdf(state.sigma2, 6.0, scale=3.0)
    prior += stats.invgamma.logpdf(state.sigma2_W, 6.0, scale=5.0)
    assert found.log_posterior - found.log_likelihood == pytest.approx(prior)
    squares = np.square(Y - state.mu).sum(axis=1)
    c, model = factor_gibbs.projected(seen)
    given = background(squares, state.sigma2, 3) + supports.log_densities(c, state.Z, model)
    dense = em_adaptive_fa.log_joint(Y, state.W, state.mu, state.sigma2, L)
    own = dense[em_adaptive_fa.certain(factor_gibbs.members_of(state.Z), 4) == 1] + np.log(6)
    np.testing.assert_allclose(given, own, rtol=1e-9)


def test_a_record_holds_the_complete_data_density(seed):
    rng = np.random.default_rng(seed)
    state = draw_prior(rng, FIXED)
    Y = draw_data(rng, state)
    data, seen = looked_at(Y, state)
    kept = factor_gibbs.record(data, PRIORS[FIXED], FIXED, seen)
    joint = stats.norm.logpdf(Y, state.mu + state.X @ state.W.T, np.sqrt(state.sigma2)).sum()
    joint += stats.norm.logpdf(state.X[state.Z]).sum()
    assert kept["log_joint"] == pytest.approx(joint - N * np.log(6))
    assert kept["components"].shape == (4, 3)


# Sums over rows --------------------------------------------------------------------------------


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def seen(request, seed):
    """A state of a chain, what it is to rows far from zero, and the rows about their origin."""
    rng = np.random.default_rng(seed)
    n, D, K = 700, 9, 3
    X = (100.0 + rng.standard_normal((n, D))).astype(request.param)
    origin = centre_of(X)
    W, Z, mu = rng.standard_normal((D, K)), rng.random((n, K)) < 0.5, rng.standard_normal(D)
    state = FactorGibbsState(W, rng.standard_normal((n, K)) * Z, Z, 0.3 * mu, 0.7, 1.0)
    data = data_of(about(X, origin))
    Y = X.astype(np.float64) - origin.astype(np.float64)
    return data, factor_gibbs.look(data, state), Y


def test_projections_and_residual_are_those_of_the_centred_rows(seen):
    _, found, Y = seen
    state = found.state
    np.testing.assert_allclose(found.P, (Y - state.mu) @ state.W, rtol=1e-12, atol=1e-11)
    residual = Y - state.mu - state.X @ state.W.T
    assert found.squares == pytest.approx(np.square(residual).sum(), rel=1e-12)


def test_a_residual_of_nothing_is_not_negative():
    rng = np.random.default_rng(0)
    S, W = rng.standard_normal((50, 2)), rng.standard_normal((4, 2))
    data = data_of(about(S @ W.T, None))
    squares = factor_gibbs.residual_squares(data, factor_gibbs.crossed(data, S), W, np.zeros(4))
    assert 0.0 <= squares < 1e-12 * data.squares
