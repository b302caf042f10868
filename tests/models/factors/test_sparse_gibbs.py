"""Finite and infinite sparse factor analysis: every conditional, and the whole sweep."""

from types import SimpleNamespace

import numpy as np
import pytest

import appca.models
from appca.models import factor_gibbs, gibbs_kernels  # noqa: F401  (lest the first use undo a patch)
from appca.models.conditionals import Gamma, InverseGamma
from appca.models.factor_gibbs import SparsePrior, SparseState
from appca.models.products import data_of
from appca.models.row_sums import look
from appca.models.rows import about
from tests.geweke import DRAWS, broken, broken_kernels, geweke_z, is_caught, named, worst
from tests.models.gibbs_oracles import draw_buffet

N, D, K = 4, 2, 3
PRIOR = SparsePrior(InverseGamma(6.0, 1.5), InverseGamma(6.0, 5.0), Gamma(3.0, 2.0), 0.5)
# so many columns wanted that the cut at K matters
CROWDED = PRIOR._replace(noise=InverseGamma(6.0, 3.0), alpha=Gamma(12.0, 3.0))


def draw_finite_Z(rng, alpha):
    """Draw Z (N, K) of the finite model, columns by their own weights."""
    return rng.random((N, K)) < rng.beta(alpha / K, 1.0, K)


def model_of(module, sweep, infinite, prior=None):
    """Bundle prior, data, sweep and statistics for Geweke's test."""
    prior = prior or (CROWDED if infinite else PRIOR)

    def draw_prior(rng):
        alpha = rng.gamma(prior.alpha.shape) / prior.alpha.rate
        Z = draw_buffet(rng, alpha, N, K) if infinite else draw_finite_Z(rng, alpha)
        sigma2 = prior.noise.rate / rng.gamma(prior.noise.shape)
        sigma2_W = prior.loading.rate / rng.gamma(prior.loading.shape)
        W = np.sqrt(sigma2_W) * rng.normal(size=(D, K))
        if infinite:
            W = W * Z.any(axis=0)
        mu = np.sqrt(prior.mean_variance) * rng.normal(size=D)
        return SparseState(W, rng.normal(size=(N, K)) * Z, Z, mu, sigma2, sigma2_W, alpha)

    def step(rng, data, state):
        return getattr(module, sweep)(rng, data, look(data, state), prior).state

    def draw_data(rng, state):
        return state.mu + state.X @ state.W.T + np.sqrt(state.sigma2) * rng.normal(size=(N, D))

    return SimpleNamespace(
        draw_prior=draw_prior,
        draw_data=draw_data,
        sweep=lambda rng, state, Y: step(rng, data_of(about(Y, None)), state),
        # the slots of the infinite model have no names, so only the finite one has contrasts
        statistics=statistics if infinite else with_contrasts,
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
        "log alpha": np.log(alpha),
        "alpha": alpha,
        "active": Z.sum(),
        "used": (counts > 0).sum(),
        "singletons": (counts == 1).sum(),
        "full columns": (counts == N).sum(),
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


def with_contrasts(state, Y):
    """Add numbers that symmetry between the columns makes zero."""
    S = state.W.T @ state.W
    contrasts = {
        "column contrast": np.tanh(S[0, 0]) - np.tanh(S[-1, -1]),
        "column product": np.tanh(S[0, 1] * S[1, 2]),
    }
    return statistics(state, Y) | contrasts


@DRAWS
def test_the_finite_sweep_passes_geweke(n_draws, seed):
    z = geweke_z(
        model_of(factor_gibbs, "sweep_finite", infinite=False), np.random.default_rng(seed), n_draws
    )
    assert worst(z)[0] < 5, worst(z)


@DRAWS
def test_the_infinite_sweep_passes_geweke(n_draws, seed):
    z = geweke_z(
        model_of(factor_gibbs, "sweep_infinite", infinite=True),
        np.random.default_rng(seed),
        n_draws,
    )
    assert worst(z)[0] < 5, worst(z)


# name: (module, piece of its source, what stands there instead)
KERNELS, SWEEP, STEPS = "gibbs_kernels", "factor_gibbs", "conditionals"
BROKEN_FINITE = {
    "odds with N - 1 - m": (KERNELS, "np.log(n_rows - m)", "np.log(n_rows - 1 - m)"),
    "gain without the determinant": (
        KERNELS,
        "finite_log_odds(m, N, pseudo) + increment(T, k, Z[n, k], v.tau2)",
        "finite_log_odds(m, N, pseudo) + increment(T, k, Z[n, k], v.tau2)"
        " + 0.5 * np.log(v.tau2 * (-1.0 / T[k, k] if Z[n, k] else T[k, k]))",
    ),
    "x not redrawn after z": (
        SWEEP,
        "return SparseState(state.W, X, Z, *state[3:])",
        "return SparseState(state.W, np.where(state.Z, state.X, 1e-3) * Z, Z, *state[3:])",
    ),
    "scales without the volume": (STEPS, "(len(W) - Z.sum(axis=0)) / 2", "0.0 * Z.sum(axis=0)"),
    "noise from a stale residual": (
        SWEEP,
        "residual_squares(data, cross, W, mu)",
        "residual_squares(data, cross, state.W, mu)",
    ),
    "noise rate without the half": (
        STEPS,
        "prior.rate + squares / 2)\n\n\ndef latent",
        "prior.rate + squares)\n\n\ndef latent",
    ),
    "loadings by the untransposed factor": (
        STEPS,
        "np.linalg.solve(L.T, rng",
        "np.linalg.solve(L, rng",
    ),
    "alpha given the used columns only": (
        STEPS,
        "n_components = len(log_pi)",
        "n_components = len(log_pi) - 1",
    ),
}
BROKEN_INFINITE = {
    "x not redrawn after z": (
        SWEEP,
        "return SparseState(Wt.T * Z.any(axis=0), X, Z, *state[3:])",
        "return SparseState(\n"
        "        Wt.T * Z.any(axis=0), np.where(state.X, state.X, 1e-3) * Z, Z, *state[3:]\n    )",
    ),
    "alpha without Q": (
        STEPS,
        "rng.random() < alpha_acceptance(alpha, new, n_rows, max_components)",
        "True",
    ),
    "odds with N - 1 - m": (KERNELS, "np.log(n_rows - m)", "np.log(n_rows - 1 - m)"),
}


def with_broken(monkeypatch, folder, name, old, new):
    """Give the module of the sweeps, with a broken copy of itself or of what it calls."""
    make = broken_kernels if name == KERNELS else broken
    copy = make(f"appca.models.{name}", old, new, folder, f"broken_{name}")
    if name != SWEEP:
        monkeypatch.setattr(appca.models if name == KERNELS else factor_gibbs, name, copy)
    return copy if name == SWEEP else factor_gibbs


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", named(BROKEN_FINITE, ["scales without the volume"]))
def test_a_broken_finite_sweep_fails_geweke(name, seed, monkeypatch, tmp_path):
    module = with_broken(monkeypatch, tmp_path, *BROKEN_FINITE[name])
    model = model_of(module, "sweep_finite", infinite=False)
    assert is_caught(model, np.random.default_rng(seed))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", BROKEN_INFINITE)
def test_a_broken_infinite_sweep_fails_geweke(name, seed, monkeypatch, tmp_path):
    module = with_broken(monkeypatch, tmp_path, *BROKEN_INFINITE[name])
    model = model_of(module, "sweep_infinite", infinite=True)
    assert is_caught(model, np.random.default_rng(seed))
