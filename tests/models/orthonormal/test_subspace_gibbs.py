"""Gibbs sampling with orthonormal columns: adaptive PPCA and the nonparametric PPCA."""

import importlib
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from appca.models import conditionals, gibbs, numerics, products, stiefel
from appca.models.conditionals import Gamma, InverseGamma
from appca.models.gibbs import SubspaceGibbsState, SubspacePrior
from appca.models.rows import Rows
from tests.geweke import DRAWS, broken, broken_kernels, geweke_z, is_caught, worst
from tests.models import gibbs_oracles as oracle
from tests.references import low_rank

N, D, K, L = 5, 4, 3, 2
PRIOR = SubspacePrior(InverseGamma(6.0, 3.0), InverseGamma(6.0, 8.0), False, 0.5)


def draw_fixed_size(rng, alpha, shape):
    """Draw rows with exactly L ones."""
    return np.argsort(rng.random(shape), axis=1) < L


def draw_finite(rng, alpha, shape):
    """Draw the Beta-Bernoulli prior, columns by their own weights."""
    return rng.random(shape) < rng.beta(alpha / shape[1], 1.0, shape[1])


def draw_buffet(rng, alpha, shape):
    return oracle.draw_buffet(rng, alpha, *shape, labelled=True)


def data_of(Y):
    """Rows as they are, about zero."""
    return products.data_of(Rows(Y, None, np.square(Y).sum(axis=1), Y.shape[1]))


class Case(SimpleNamespace):
    """A model for Geweke's test: draw_Z, a sweep and its prior; `shape` is (N, D, K)."""

    def __init__(self, draw_Z, sweep, prior=PRIOR, shape=(N, D, K)):
        super().__init__(draw_Z=draw_Z, step=sweep, prior=prior, shape=shape)

    def draw_prior(self, rng):
        prior, (n, d, k) = self.prior, self.shape
        alpha = 1.0 if prior.alpha is None else rng.gamma(prior.alpha.shape) / prior.alpha.rate
        Z = self.draw_Z(rng, alpha, (n, k))
        sigma2 = prior.noise.rate / rng.gamma(prior.noise.shape)
        tau2 = prior.latent.rate / rng.gamma(prior.latent.shape, size=k if prior.each else None)
        tau2 = np.broadcast_to(tau2, k).copy()
        W = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :k] * rng.choice([-1.0, 1.0], k)
        mu = np.sqrt(prior.mean_variance) * rng.normal(size=d)
        return SubspaceGibbsState(
            W, np.sqrt(tau2) * rng.normal(size=(n, k)) * Z, Z, mu, sigma2, tau2, alpha, L
        )

    def draw_data(self, rng, state):
        n, d, _ = self.shape
        return state.mu + state.X @ state.W.T + np.sqrt(state.sigma2) * rng.normal(size=(n, d))

    def sweep(self, rng, state, Y):
        data = data_of(Y)
        return self.step(rng, data, gibbs.look(data, state), self.prior).state

    def statistics(self, state, Y):
        W, X, Z, mu, sigma2, tau2, alpha = state[:7]
        m = Z.sum(axis=0)
        fit = X @ W.T
        return {
            "log noise": np.log(sigma2),
            "log latent": np.log(tau2).mean(),
            "latent contrast": np.log(tau2[0]) - np.log(tau2[-1]),
            "log alpha": np.log(alpha),
            "alpha": alpha,
            "active": Z.sum(),
            "used": (m > 0).sum(),
            "singletons": (m == 1).sum(),
            "full columns": (m == len(Z)).sum(),
            "column contrast": m[0] - m[-1],
            "shared": (Z[0] & Z[1]).sum(),
            "scores in excess": (np.square(X) / tau2).sum() - Z.sum(),
            "score contrast": np.tanh(np.square(X[:, 0]).sum() - np.square(X[:, -1]).sum()),
            "residual": np.square(Y - mu - fit).sum() / sigma2,
            "signal and data": np.tanh((Y * fit).sum() / 4),
            "first entry": W[0, 0] ** 2 - 1 / len(W),
            "unused directions": ((W[0] ** 2 - 1 / len(W)) * (m == 0)).sum(),
            "entries": W[0, 0] * W[1, 1],
            "corner": W[0, 0],
            "projector": (W[0] @ W[1]),
            "determinant": np.linalg.det(W[: W.shape[1]]),
            "mean": mu[0],
            "mean and data": np.tanh(mu @ Y.mean(axis=0)),
            "W and data": np.tanh(W[:, 0] @ Y[0] * X[0, 0]),
        }


WITH_ALPHA = PRIOR._replace(alpha=Gamma(6.0, 3.0))
# so many columns wanted that the cut at K matters
CROWDED = PRIOR._replace(alpha=Gamma(12.0, 4.0))


def swept(name, rng, data, seen, prior):
    # as it is now, also where a test has replaced it
    directions = {"update_directions": stiefel.draw} if prior.alpha is None else {}
    return gibbs.sweep(rng, data, seen, prior, gibbs.PRIORS[name], **directions)


CASES = {
    "block": Case(draw_fixed_size, partial(swept, "block")),
    "swap": Case(draw_fixed_size, partial(swept, "swap")),
    "component": Case(draw_fixed_size, partial(swept, "block"), PRIOR._replace(each=True)),
    "square": Case(draw_fixed_size, partial(swept, "block"), shape=(N, 3, 3)),
    "ibp": Case(draw_buffet, partial(swept, "ibp"), CROWDED),
    "beta-bernoulli": Case(draw_finite, partial(swept, "beta-bernoulli"), WITH_ALPHA),
}


MAIN = ("block", "component", "ibp")


@pytest.mark.default_cases(1)
@DRAWS
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name not in MAIN)) for name in CASES],
)
def test_the_sweep_passes_geweke(name, n_draws, seed):
    z = geweke_z(CASES[name], np.random.default_rng(seed), n_draws)
    assert worst(z)[0] < 5, worst(z)


def with_half_the_concentration(monkeypatch, _folder):
    right = gibbs.concentration
    monkeypatch.setattr(gibbs, "concentration", lambda *given: right(*given) / 2)


def with_tau2_over_every_entry(monkeypatch, _folder):
    def wrong(prior, X, Z, each):
        return conditionals.InverseGamma(
            prior.shape + Z.size / 2, prior.rate + np.square(X).sum() / 2
        )

    monkeypatch.setattr(conditionals, "latent_variance", wrong)


def with_columns_alone(monkeypatch, _folder):
    monkeypatch.setattr(stiefel, "draw", stiefel.draw_columns)


def with_alpha_without_Q(monkeypatch, _folder):
    monkeypatch.setattr(conditionals, "alpha_acceptance", lambda *_given: 1.0)


def with_a_fixed_completion(monkeypatch, _folder):
    """Draw the used columns among themselves, and complete them by a fixed rule."""
    right = stiefel.draw

    def wrong(rng, F, W):
        used = np.flatnonzero(F.any(axis=0))
        if not len(used):
            return W
        drawn = np.zeros_like(W)
        drawn[:, used] = right(rng, F[:, used], W[:, used])
        basis = np.linalg.qr(np.hstack([drawn[:, used], np.eye(len(W))]))[0]
        drawn[:, np.setdiff1d(np.arange(W.shape[1]), used)] = basis[:, len(used) : W.shape[1]]
        return drawn

    sweep = partial(gibbs.sweep, update_directions=wrong)
    monkeypatch.setattr(gibbs, "sweep", sweep)


def with_source(module, old, new):
    """Replace a piece of the source of a module of the sweep."""

    def apply(monkeypatch, folder):
        real = importlib.import_module(f"appca.models.{module}")
        make = broken_kernels if module.endswith("_kernels") else broken
        copy = make(real.__name__, old, new, folder, f"broken_{module}")
        monkeypatch.setitem(sys.modules, real.__name__, copy)
        for name in ("sweep", "draw_swaps", "PRIORS"):
            if hasattr(copy, name):
                monkeypatch.setattr(real, name, getattr(copy, name))

    return apply


BROKEN = {
    "slots in sorted order": (
        "swap",
        with_source(
            "gibbs",
            "order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)",
            "order = np.tile(np.arange(shape[1]), (shape[0], 1))",
        ),
    ),
    "A with 1/(2 sigma2)": ("block", with_half_the_concentration),
    "x not redrawn after z": (
        "block",
        with_source(
            "gibbs",
            "X = draw_scores(rng, P, Z, state.sigma2, state.tau2)",
            "X = np.where(state.Z, state.X, 0.0) * Z",
        ),
    ),
    "tau2 over N K": ("block", with_tau2_over_every_entry),
    "D = K with columns alone": ("square", with_columns_alone),
    "alpha without Q": ("ibp", with_alpha_without_Q),
    "a fixed completion of W": ("ibp", with_a_fixed_completion),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_sweep_fails_geweke(name, seed, monkeypatch, tmp_path):
    case, break_it = BROKEN[name]
    break_it(monkeypatch, tmp_path)
    assert is_caught(CASES[case], np.random.default_rng(seed))


@pytest.fixture
def world(seed):
    rng = np.random.default_rng(seed)
    case = CASES["component"]
    state = case.draw_prior(rng)
    return rng, case.draw_data(rng, state), state


def test_directions_have_the_ratios_of_the_joint(world):
    rng, Y, state = world
    W, X, Z, mu, sigma2, *_ = state
    cross = gibbs.SubspaceCrossProducts(Y.T @ X, X.sum(axis=0))
    F = gibbs.concentration(cross, mu, sigma2)
    other = stiefel.random(rng, *W.shape)
    left = (F * W).sum() - (F * other).sum()
    joint = [oracle.log_data(Y, V, X, Z, mu, sigma2) for V in (W, other)]
    assert left == pytest.approx(joint[0] - joint[1], abs=1e-9)


def test_indicators_have_the_ratios_of_the_dense_joint(world):
    _, Y, (W, _, Z, mu, sigma2, tau2, *_) = world
    a = numerics.logits((Y - mu) @ W, sigma2, tau2)
    for n, k in np.ndindex(Z.shape):
        on, off = Z[n].copy(), Z[n].copy()
        on[k], off[k] = True, False
        joint = [low_rank.log_density(Y[n], W[:, z], mu, sigma2, tau2[z]) for z in (on, off)]
        assert a[n, k] == pytest.approx(joint[0] - joint[1], abs=1e-9)


def test_scores_have_the_ratios_of_the_joint(world):
    rng, Y, (W, X, Z, mu, sigma2, tau2, *_) = world
    shrink, variance = numerics.posterior(sigma2, tau2)
    m = (Y - mu) @ W * shrink
    other = rng.normal(size=X.shape) * Z

    def conditional(x):
        return (-np.square(x - m) / (2 * variance)).sum(where=Z)

    def joint(x):
        return oracle.log_data(Y, W, x, Z, mu, sigma2) + oracle.log_scores(x, Z, tau2)

    assert conditional(X) - conditional(other) == pytest.approx(joint(X) - joint(other), abs=1e-9)


def test_residual_squares_are_those_of_the_residual(world):
    _, Y, (W, X, _, mu, *_) = world
    cross = gibbs.SubspaceCrossProducts(Y.T @ X, X.sum(axis=0))
    got = gibbs.residual_squares(data_of(Y), cross, W, X, mu)
    assert got == pytest.approx(np.square(Y - mu - X @ W.T).sum(), abs=1e-10)


def test_complete_density_is_that_of_the_definition(world):
    _, Y, state = world
    W, X, Z, mu, sigma2, tau2, *_ = state
    wanted = oracle.log_data(Y, W, X, Z, mu, sigma2) + oracle.log_scores(X, Z, tau2)
    density = gibbs.complete_density(gibbs.look(data_of(Y), state))
    assert density == pytest.approx(wanted, abs=1e-9)


def test_the_exact_likelihood_sums_over_all_subsets(world):
    _, Y, state = world
    W, _, _, mu, sigma2, tau2, *_ = state
    data = data_of(Y)
    measured = gibbs.measure(
        data, PRIOR._replace(each=True), gibbs.PRIORS["block"], gibbs.look(data, state)
    )
    total = 0.0
    for y in Y:
        rows = [
            low_rank.log_density(y, W[:, Z[0]], mu, sigma2, tau2[Z[0]])
            for Z in oracle.every_fixed_size_matrix(1, K, L)
        ]
        total += np.logaddexp.reduce(rows) - np.log(len(rows))
    assert measured.log_likelihood == pytest.approx(total, abs=1e-9)
    priors = oracle.log_inverse_gamma(sigma2, *PRIOR.noise)
    priors += oracle.log_inverse_gamma(tau2, *PRIOR.latent)
    assert measured.log_posterior == pytest.approx(total + priors, abs=1e-9)
