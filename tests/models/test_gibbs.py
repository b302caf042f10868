"""Tests of the Gibbs sampler, for orthonormal and for any W.

These are Geweke's test for every prior of Z, also with deliberately wrong sweeps; density ratios of
draws; and the posterior expectations of the reference implementations in `tests/references`.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from scipy import stats

from appca.models import conditionals, em, gibbs, stiefel, supports
from appca.models.conditionals import Gamma, InverseGamma
from appca.models.gibbs import FINITE, FIXED, INFINITE, GibbsState, Prior
from appca.models.products import data_of
from appca.models.rows import about, centre_of
from appca.models.set_tree import CollapsedModel
from tests.geweke import DRAWS, agreement_z, broken, geweke_z, is_caught, worst
from tests.models import gibbs_oracles as oracle
from tests.references import (
    em_adaptive_fa,
    em_adaptive_ppca,
    gibbs_adaptive_fa,
    gibbs_adaptive_ppca,
    gibbs_nonparametric_ppca,
    gibbs_sparse_fa,
    low_rank,
)
from tests.references.gibbs_adaptive_ppca import State, parameters

L = 2
ONE, GRID = np.ones(1), np.array([0.4, 1.0, 2.5])


def draw_finite(rng, alpha, shape):
    """Draw the Beta-Bernoulli prior, columns by their own weights."""
    return rng.random(shape) < rng.beta(alpha / shape[1], 1.0, shape[1])


def gamma_inverse(rng, prior, size=None):
    return prior.rate / rng.gamma(prior.shape, size=size)


def of_features(Z, alpha):
    m = Z.sum(axis=0)
    return {
        "log alpha": np.log(alpha) if alpha else 0.0,
        "alpha": alpha,
        "active": Z.sum(),
        "used": (m > 0).sum(),
        "singletons": (m == 1).sum(),
        "full columns": (m == len(Z)).sum(),
        "fullest column": m.max(),
        "first row active": Z[0].sum(),
        "last row active": Z[-1].sum(),
        "shared": (Z[0] & Z[1]).sum(),
    }


VARIANCES = Prior(InverseGamma(6.0, 3.0), 0.5, latent=InverseGamma(6.0, 8.0))


class Subspaces(SimpleNamespace):
    """A model of orthonormal columns for Geweke's test; its state is that of the page.

    `draw_Z` names the prior of Z; with a `grid` rows have scales, and with `sizes` any size.
    """

    N = 5

    def __init__(self, draw_Z, prior=VARIANCES, shape=(4, 3), grid=ONE, sizes=False):
        super().__init__(draw_Z=draw_Z, prior=prior, shape=shape, grid=grid, sizes=sizes)

    def draw_prior(self, rng):
        prior, (D, K), N = self.prior, self.shape, self.N
        alpha = 1.0 if prior.alpha is None else rng.gamma(prior.alpha.shape) / prior.alpha.rate
        omega = rng.dirichlet(np.ones(len(self.grid)))
        rho = rng.dirichlet(np.ones(K + 1)) if self.sizes else np.eye(K + 1)[L]
        u = rng.choice(self.grid, N, p=omega)
        if self.draw_Z == "ibp":
            Z = oracle.draw_buffet(rng, alpha, N, K, labelled=True)
        elif self.draw_Z == "beta-bernoulli":
            Z = draw_finite(rng, alpha, (N, K))
        else:
            sizes = rng.choice(K + 1, (N, 1), p=rho)
            Z = np.argsort(np.argsort(rng.random((N, K)), axis=1), axis=1) < sizes
        tau2 = gamma_inverse(rng, prior.latent, K if prior.each else None) * np.ones(K)
        W = np.linalg.qr(rng.normal(size=(D, D)))[0][:, :K] * rng.choice([-1.0, 1.0], K)
        X = np.sqrt(tau2 * u[:, None]) * rng.normal(size=(N, K)) * Z
        mu = np.sqrt(prior.mean_variance) * rng.normal(size=D)
        sigma2 = gamma_inverse(rng, prior.noise)
        return State(W, X, Z, mu, sigma2, tau2, u, self.grid, omega, rho, alpha)

    def draw_data(self, rng, state):
        noise = np.sqrt(state.sigma2 * state.u)[:, None] * rng.normal(size=(self.N, len(state.mu)))
        return state.mu + state.X @ state.W.T + noise

    def seen(self, state, Y):
        """Rows and state as the package has them, scores over the scales of their rows."""
        extended = self.sizes or len(self.grid) > 1
        data = data_of(about(Y, None), self.grid if extended else None)
        X, how = state.X / np.sqrt(state.u)[:, None], {"sizes": state.rho if self.sizes else L}
        how |= {"u": state.u, "weights": state.omega} if extended else {}
        at = GibbsState(state.W, X, *state[2:6], alpha=state.alpha, **how)
        return data, gibbs.look(data, at)

    def drawn(self, rng, data, seen, prior=None, **how):
        return gibbs.sweep(rng, data, seen, prior or self.prior, gibbs.PRIORS[self.draw_Z], **how)

    def sweep(self, rng, state, Y):
        new = self.drawn(rng, *self.seen(state, Y)).state
        u = state.u if new.u is None else new.u
        X, rho = new.X * np.sqrt(u)[:, None], new.sizes if self.sizes else state.rho
        return State(new.W, X, *new[2:6], u, self.grid, new.weights, rho, new.alpha)

    def statistics(self, state, Y):
        W, X, Z, mu, sigma2, tau2, u, _, omega, rho, alpha = state
        m, size, fit, log_u = Z.sum(axis=0), Z.sum(axis=1), X @ W.T, np.log(u)
        squares = np.square(Y - mu - fit).sum(axis=1) / u
        common = of_features(Z, alpha) | {
            "log noise": np.log(sigma2),
            "log latent": np.log(tau2).mean(),
            "latent contrast": np.log(tau2[0]) - np.log(tau2[-1]),
            "column contrast": m[0] - m[-1],
            "scores in excess": (np.square(X) / (tau2 * u[:, None])).sum() - Z.sum(),
            "score contrast": np.tanh(np.square(X[:, 0]).sum() - np.square(X[:, -1]).sum()),
            "residual": squares.sum() / sigma2,
            "signal and data": np.tanh((Y * fit).sum() / 4),
            "first entry": W[0, 0] ** 2 - 1 / len(W),
            "unused directions": ((W[0] ** 2 - 1 / len(W)) * (m == 0)).sum(),
            "entries": W[0, 0] * W[1, 1],
            "corner": W[0, 0],
            "projector": W[0] @ W[1],
            "determinant": np.linalg.det(W[: W.shape[1]]),
            "mean": mu[0],
            "mean and data": np.tanh(mu @ Y.mean(axis=0)),
            "W and data": np.tanh(W[:, 0] @ Y[0] * X[0, 0]),
        }
        if not self.sizes and len(self.grid) == 1:
            return common
        return common | {
            "log scale": log_u.mean(),
            "largest scale": (u == self.grid[-1]).mean(),
            "scale and share": log_u.mean() * omega[-1],
            "shares": omega[0] * omega[-1],
            "scale and data": np.tanh(log_u[0] * np.square(Y[0]).sum() / 9),
            "none": (size == 0).mean(),
            "size and share": size.mean() * rho[-1],
            "size and scale": (size * log_u).mean(),
            "share of none": rho[0] * rho[1],
            "residual by scale": (squares * log_u).sum() / sigma2,
            "mean and scale": np.tanh(mu @ (Y / u[:, None]).mean(axis=0)),
        }


SPARSE = Prior(InverseGamma(6.0, 1.5), 0.5, loading=InverseGamma(6.0, 5.0), alpha=Gamma(3.0, 2.0))


class Factors(SimpleNamespace):
    """A model of any W for Geweke's test; its state is that of the page."""

    N = 4

    def __init__(self, draw_Z, prior, shape=(2, 3)):
        super().__init__(draw_Z=draw_Z, prior=prior, shape=shape)

    def draw_prior(self, rng):
        prior, (D, K), N = self.prior, self.shape, self.N
        alpha = 0.0 if prior.alpha is None else rng.gamma(prior.alpha.shape) / prior.alpha.rate
        if self.draw_Z == FIXED:
            Z = rng.random((N, K)).argsort(axis=1) < L
        elif self.draw_Z == INFINITE:
            Z = oracle.draw_buffet(rng, alpha, N, K)
        else:
            Z = draw_finite(rng, alpha, (N, K))
        sigma2, sigma2_W = (gamma_inverse(rng, given) for given in (prior.noise, prior.loading))
        W = np.sqrt(sigma2_W) * rng.normal(size=(D, K))
        W = W * Z.any(axis=0) if self.draw_Z == INFINITE else W
        mu, X = np.sqrt(prior.mean_variance) * rng.normal(size=D), rng.normal(size=(N, K)) * Z
        return gibbs_sparse_fa.State(W, X, Z, mu, sigma2, sigma2_W, alpha)

    def draw_data(self, rng, state):
        noise = np.sqrt(state.sigma2) * rng.normal(size=(self.N, len(state.mu)))
        return state.mu + state.X @ state.W.T + noise

    def seen(self, state, Y):
        data, more = data_of(about(Y, None)), state[5:]
        at = GibbsState(*state[:5], np.ones(self.shape[1]), *more, sizes=L)
        return data, gibbs.look(data, at)

    def sweep(self, rng, state, Y):
        new = gibbs.sweep(rng, *self.seen(state, Y), self.prior, gibbs.PRIORS[self.draw_Z]).state
        return gibbs_sparse_fa.State(*new[:5], new.sigma2_W, new.alpha)

    def statistics(self, state, Y):
        W, X, Z, mu, sigma2, sigma2_W, alpha = state
        S, fit = W @ W.T, X @ W.T
        common = of_features(Z, alpha) | {
            "log noise": np.log(sigma2),
            "log loading variance": np.log(sigma2_W),
            "squares of W": np.log1p(np.square(W).sum()),
            "squares of X": np.square(X).sum(),
            "residual": np.square(Y - mu - fit).sum() / sigma2,
            "signal and data": np.tanh((Y * fit).sum()),
            "WW diagonal": np.tanh(S[0, 0]) - np.tanh(S[-1, -1]),
            "WW corner": np.tanh(S[0, 1]),
            "scores in excess": np.square(X).sum() - Z.sum(),
            "mean": mu[0],
            "mean and data": np.tanh(mu @ Y.mean(axis=0)),
            "row norms": np.tanh(np.square(fit).sum()),
        }
        if self.draw_Z == INFINITE:  # its columns have no names, so it has no contrasts
            return common
        G = W.T @ W
        common["column contrast"] = np.tanh(G[0, 0]) - np.tanh(G[-1, -1])
        common["column product"] = np.tanh(G[0, 1] * G[1, 2])
        if self.draw_Z == FINITE:
            return common
        used, lengths = Z.sum(axis=0), G.diagonal()
        model = CollapsedModel(G / sigma2, 1.0)
        away = X - supports.scores_given((Y - mu) @ W / sigma2, Z, model)[0]
        return common | {
            "first and last factor": used[0] - used[-1],
            "first two factors": (Z[:, 0] & Z[:, 1]).sum() - (Z[:, -1] & Z[:, -2]).sum(),
            "longest and shortest used": used[lengths.argmax()] - used[lengths.argmin()],
            "scores of the longest": np.square(X[:, lengths.argmax()]).sum(),
            "standardised scores": np.einsum("nk,kl,nl->", away, model.A + np.eye(len(G)), away),
            "X product": np.tanh((X[:, 0] * X[:, 1] * G[0, 1]).sum()),
        }


EACH = VARIANCES._replace(each=True)
INFINITE_PRIOR = SPARSE._replace(noise=InverseGamma(6.0, 3.0), alpha=Gamma(12.0, 3.0))
CASES = {
    "block": Subspaces("block"),
    "swap": Subspaces("swap"),
    "component": Subspaces("block", EACH),
    "square": Subspaces("block", shape=(3, 3)),
    # so many columns wanted that the cut at K matters
    "ibp": Subspaces("ibp", VARIANCES._replace(alpha=Gamma(12.0, 4.0))),
    "beta-bernoulli": Subspaces("beta-bernoulli", VARIANCES._replace(alpha=Gamma(6.0, 3.0))),
    "row scales": Subspaces("block", grid=GRID),
    "sizes": Subspaces("block", sizes=True),
    "scales and sizes": Subspaces("block", EACH, grid=GRID, sizes=True),
    FIXED: Factors(FIXED, SPARSE._replace(noise=InverseGamma(6.0, 3.0), alpha=None), (3, 4)),
    FINITE: Factors(FINITE, SPARSE),
    INFINITE: Factors(INFINITE, INFINITE_PRIOR),
}


def in_every_run(names, some):
    """Give the names as parameters, those beside `some` for the thorough run."""
    return [pytest.param(n, marks=[pytest.mark.thorough] * (n not in some)) for n in names]


@DRAWS
@pytest.mark.parametrize("name", in_every_run(CASES, ("component", FIXED, FINITE, INFINITE)))
def test_the_sweep_passes_geweke(name, n_draws, seed):
    z = geweke_z(CASES[name], np.random.default_rng(seed), n_draws)
    assert worst(z)[0] < 5, worst(z)


STALE = "np.where(state.X, state.X, 1e-3) * Z"
# name: (case, module, piece of its source, what replaces it), or a function and what is made of it
BROKEN = {  # the first in every run: each in another conditional; the ratios below see others
    "x not redrawn after z": (
        *("block", gibbs, "X = draw_scores(rng, P, Z, state.sigma2, state.tau2)", f"X = {STALE}"),
    ),
    "alpha without Q": (
        *("ibp", conditionals, "alpha_acceptance", lambda _right: lambda *_given: 1.0),
    ),
    "scores at their means": (
        *(FIXED, gibbs, "supports.scores_given(c, Z, model, rng)[0]"),
        "supports.SupportsOfRows(c, model, 0).means(Z)",
    ),
    "x not redrawn after z, infinite": (
        *(INFINITE, gibbs, "(not births)), X=X, Z=Z)", f"(not births)), X={STALE}, Z=Z)"),
    ),
    "sums over rows that are not scaled": (
        *("row scales", gibbs, "weighted_sums"),
        lambda right: lambda data, X, u, **how: right(data, X, np.ones_like(u), **how),
    ),
    "scores not scaled": (
        *("scales and sizes", conditionals, "latent_variance"),
        lambda right: lambda prior, X, *others: right(prior, X * 1.2, *others),
    ),
    "another prior of shares": (
        *("sizes", conditionals, "shares", lambda _right: lambda counts: 3.0 + counts),
    ),
    "loading variance doubled": (
        *(FIXED, gibbs, "pairs, state.sigma2, sigma2_W"),
        "pairs, state.sigma2, 2 * sigma2_W",
    ),
    "noise over rows": (
        *(FIXED, gibbs, "prior.noise, data.size,", "prior.noise, data.size - len(Z),"),
    ),
    "noise from a stale residual": (
        *(FINITE, gibbs, "squares(scaled, cross, W, mu)", "squares(scaled, cross, state.W, mu)"),
    ),
}


@pytest.mark.parametrize("name", in_every_run(BROKEN, list(BROKEN)[:4]))
def test_a_broken_sweep_fails_geweke(name, monkeypatch, tmp_path):
    case, module, old, new = BROKEN[name]
    if callable(new):
        monkeypatch.setattr(module, old, new(getattr(module, old)))
    else:
        wrong = broken(module.__name__, old, new, tmp_path, "broken_sweep")
        monkeypatch.setattr(module, "sweep", wrong.sweep)
        monkeypatch.setattr(module, "PRIORS", wrong.PRIORS)
    assert is_caught(CASES[case], np.random.default_rng(0))


# the priors above want so many columns that alpha moves once in hundreds of sweeps
LESS_CROWDED = Factors(INFINITE, INFINITE_PRIOR._replace(alpha=Gamma(12.0, 6.0)))
LESS_CROWDED_IBP = Subspaces("ibp", VARIANCES._replace(alpha=Gamma(6.0, 4.0)))
PAGES = {  # the first in every run
    FINITE: (CASES[FINITE], gibbs_sparse_fa.sweep_finite),
    INFINITE: (LESS_CROWDED, gibbs_sparse_fa.sweep_infinite),
    FIXED: (CASES[FIXED], gibbs_adaptive_fa.sweep),
    "component": (CASES["component"], gibbs_adaptive_ppca.sweep),
    "scales and sizes": (CASES["scales and sizes"], gibbs_adaptive_ppca.sweep),
    "ibp": (LESS_CROWDED_IBP, gibbs_nonparametric_ppca.sweep_buffet),
    "beta-bernoulli": (CASES["beta-bernoulli"], gibbs_nonparametric_ppca.sweep_finite),
}


def with_page(case, sweep):
    """Exchange the sweep of a case for that of a page."""
    page = type(case)(**vars(case))
    page.sweep = lambda rng, state, Y: sweep(rng, Y, state, case.prior)
    return page


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_passes_geweke_and_has_the_posterior_expectations_of_the_sweep(name, seed):
    page = with_page(*PAGES[name])
    z = geweke_z(page, np.random.default_rng(seed), 800)
    assert worst(z)[0] < 5, worst(z)
    z = agreement_z(PAGES[name][0], page, np.random.default_rng(seed), 600)
    assert worst(z)[0] < 6, worst(z)  # errors from 25 batches: heavier tails than a normal z


def begun(name, seed):
    rng, case = np.random.default_rng(seed), CASES[name]
    state = case.draw_prior(rng)
    return rng, case, state, case.draw_data(rng, state)


@pytest.fixture(params=["component", "row scales", "sizes", "scales and sizes"])
def world(request, seed):
    return begun(request.param, seed)


def test_directions_and_scores_have_the_ratios_of_the_joint(seed):
    rng, _, (W, X, Z, mu, sigma2, tau2, *_), Y = begun("component", seed)
    cross = gibbs.CrossProducts(Y.T @ X, X.sum(axis=0), np.square(X).sum())
    F, V = gibbs.concentration(cross, mu, sigma2), stiefel.random(rng, *W.shape)
    joint = [oracle.log_data(Y, one, X, Z, mu, sigma2) for one in (W, V)]
    assert (F * W).sum() - (F * V).sum() == pytest.approx(joint[0] - joint[1], abs=1e-9)
    shrink, variance = em.posterior(sigma2, tau2)
    both = X, rng.normal(size=X.shape) * Z
    given = [(-np.square(x - (Y - mu) @ W * shrink) / (2 * variance)).sum(where=Z) for x in both]
    joint = [oracle.log_data(Y, W, x, Z, mu, sigma2) + oracle.log_scores(x, Z, tau2) for x in both]
    assert given[0] - given[1] == pytest.approx(joint[0] - joint[1], abs=1e-9)
    squares = gibbs.residual_squares(data_of(about(Y, None)), cross, W, mu)
    assert squares == pytest.approx(np.square(Y - mu - X @ W.T).sum(), abs=1e-10)


def test_indicators_have_the_ratios_of_the_dense_joint(seed):
    _, _, (W, _, Z, mu, sigma2, tau2, *_), Y = begun("component", seed)
    a = em.logits((Y - mu) @ W, sigma2, tau2)
    for n, k in np.ndindex(Z.shape):
        both = Z[n] | (np.arange(len(tau2)) == k), Z[n] & (np.arange(len(tau2)) != k)
        joint = [low_rank.log_density(Y[n], W[:, z], mu, sigma2, tau2[z]) for z in both]
        assert a[n, k] == pytest.approx(joint[0] - joint[1], abs=1e-9)


def test_scales_and_supports_are_drawn_as_often_as_enumeration_says(world):
    """Of all pairs of a scale and a support, at parameters that do not move."""
    rng, case, state, Y = world
    _, sets, p = em_adaptive_ppca.e_step(Y, parameters(state))
    many, K = 3000, len(state.tau2)
    nothing = {"X": np.zeros((many * len(Y), K)), "Z": np.zeros((many * len(Y), K), bool)}
    data, seen = case.seen(
        state._replace(u=np.ones(many * len(Y)), **nothing), np.repeat(Y, many, 0)
    )
    kept = Prior(VARIANCES.noise, 0.0)
    drawn = case.drawn(rng, data, seen, kept, update_directions=lambda _rng, _F, W: W).state
    support = np.argmax((drawn.Z[:, None] == sets).all(axis=2), axis=1)
    scale = 0 if drawn.u is None else np.searchsorted(case.grid, drawn.u)
    pairs = (support * len(case.grid) + scale).reshape(len(Y), many)
    for drawn_pairs, p_n in zip(pairs, p.reshape(len(Y), -1), strict=True):
        counts, often = np.bincount(drawn_pairs, minlength=p_n.size), many * p_n >= 5
        wanted = many * np.append(p_n[often], p_n[~often].sum())
        counted = np.append(counts[often], counts[~often].sum())
        statistic = np.sum((counted - wanted) ** 2 / np.maximum(wanted, 1.0))
        assert stats.chi2.sf(statistic, len(wanted) - 1) > 1e-5


def test_the_likelihood_of_a_draw_sums_over_all_that_a_row_may_be(world):
    _, case, state, Y = world
    prior, (data, seen) = case.prior, case.seen(state, Y)
    measured = gibbs.measure(data, prior, gibbs.PRIORS["block"], seen)
    wanted = em_adaptive_ppca.e_step(Y, parameters(state))[0].sum()
    assert measured.log_likelihood == pytest.approx(wanted, abs=1e-9)
    wanted += oracle.log_inverse_gamma(state.sigma2, *prior.noise)
    wanted += oracle.log_inverse_gamma(state.tau2[: None if prior.each else 1], *prior.latent)
    assert measured.log_posterior == pytest.approx(wanted, abs=1e-9)


def test_the_complete_density_is_that_of_the_definition(world):
    rng, case, state, Y = world
    data, seen = case.seen(state, Y)
    drawn = case.drawn(rng, data, seen)
    W, X, Z, mu, sigma2, tau2, _, _, sizes, u, omega = drawn.state
    u = np.ones(len(Y)) if u is None else u
    root = np.sqrt(u)[:, None]
    wanted = stats.norm.logpdf(Y, mu + X * root @ W.T, np.sqrt(sigma2) * root).sum()
    wanted += stats.norm.logpdf(X * root, 0.0, np.sqrt(tau2) * root).sum(where=Z)
    wanted += np.log(omega[np.searchsorted(case.grid, u)]).sum()
    rho = sizes if case.sizes else state.rho
    wanted += np.log((rho / [1, 3, 3, 1])[Z.sum(axis=1)]).sum()
    if case.sizes:  # scores are in units of the root mean square of the data
        wanted += 0.5 * Z.sum() * np.log(data.squares / data.size)
    joint = gibbs.record(data, case.prior, gibbs.PRIORS["block"], drawn)["log_joint"]
    assert joint == pytest.approx(wanted, abs=1e-9)


def test_scores_are_drawn_from_the_joint_normal(seed):
    rng, case, state, Y = begun(FIXED, seed)
    c, model = gibbs.projected(case.seen(state, Y)[1])
    means, _ = supports.scores_given(c, state.Z, model)
    for n, S in enumerate(supports.members_of(state.Z)):
        x = rng.standard_normal((2, L))
        fit = state.mu + x @ state.W[:, S].T
        joint = stats.norm.logpdf(Y[n], fit, np.sqrt(state.sigma2)).sum(axis=1)
        joint += stats.norm.logpdf(x).sum(axis=1)
        away, precision = x - means[n, S], model.A[np.ix_(S, S)] + model.prior * np.eye(L)
        own = -0.5 * np.einsum("il,lm,im->i", away, precision, away)
        assert own[0] - own[1] == pytest.approx(joint[0] - joint[1], abs=1e-10)


def covariance_error(module, seed):
    """Largest gap between the covariance of draws and of their parameters, as correlations."""
    (rng, case, state, Y), n = begun(FIXED, seed), 20_000
    c, model = gibbs.projected(case.seen(state, Y)[1])
    row, S = max(enumerate(supports.members_of(state.Z)), key=lambda of: abs(model.A[*of[1]]))
    at = np.zeros((n, c.shape[1])), np.tile(state.Z[row], (n, 1)), model
    draws = module.scores_given(*at, rng)[0][:, S]
    covariance = np.linalg.inv(model.A[np.ix_(S, S)] + model.prior * np.eye(L))
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs(draws.mean(axis=0)).max() < 5 * np.sqrt(scale.max() / n)
    return np.abs(np.cov(draws.T) - covariance).max() / scale.max()


def test_score_draws_have_the_covariance_of_their_parameters(seed, tmp_path):
    assert covariance_error(supports, seed) < 0.06
    right, wrong = "np.linalg.solve(np.swapaxes(C, 1, 2), half)", "np.linalg.solve(C, half)"
    module = broken("appca.models.supports", right, wrong, tmp_path, "not_transposed")
    assert max(covariance_error(module, one) for one in range(3)) > 0.15


def test_measures_and_records_of_factors_are_the_dense_densities(seed):
    _, case, state, Y = begun(FIXED, seed)
    data, seen = case.seen(state, Y)
    found = gibbs.measure(data, case.prior, gibbs.PRIORS[FIXED], seen)
    at = state.W, state.mu, state.sigma2, L
    assert found.log_likelihood == pytest.approx(em_adaptive_fa.log_likelihoods(Y, *at).sum())
    prior = stats.norm.logpdf(state.W, 0, np.sqrt(state.sigma2_W)).sum()
    prior += stats.invgamma.logpdf(state.sigma2, 6.0, scale=3.0)
    prior += stats.invgamma.logpdf(state.sigma2_W, 6.0, scale=5.0)
    assert found.log_posterior - found.log_likelihood == pytest.approx(prior)
    squares = np.square(Y - state.mu).sum(axis=1)
    c, model = gibbs.projected(seen)
    given = em.background(squares, state.sigma2, 3) + supports.scores_given(c, state.Z, model)[1]
    own = em_adaptive_fa.certain(supports.members_of(state.Z), 4) == 1
    close(given, em_adaptive_fa.log_joint(Y, *at)[own] + np.log(6), rtol=1e-9)
    kept = gibbs.record(data, case.prior, gibbs.PRIORS[FIXED], seen)
    joint = stats.norm.logpdf(Y, state.mu + state.X @ state.W.T, np.sqrt(state.sigma2)).sum()
    joint += stats.norm.logpdf(state.X[state.Z]).sum()
    assert kept["log_joint"] == pytest.approx(joint - case.N * np.log(6))
    assert kept["components"].shape == (4, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_projections_and_residual_are_those_of_the_centred_rows(dtype, seed):
    rng, (n, D, K) = np.random.default_rng(seed), (700, 9, 3)
    X = (100.0 + rng.standard_normal((n, D))).astype(dtype)
    origin, W, Z = centre_of(X), rng.standard_normal((D, K)), rng.random((n, K)) < 0.5
    scores, mu = rng.standard_normal((n, K)) * Z, 0.3 * rng.standard_normal(D)
    state = GibbsState(W, scores, Z, mu, 0.7, np.ones(K))
    found = gibbs.look(data_of(about(X, origin)), state)
    Y = X.astype(np.float64) - origin.astype(np.float64) - mu
    close(found.P, Y @ W, rtol=1e-12, atol=1e-11)
    assert found.squares == pytest.approx(np.square(Y - scores @ W.T).sum(), rel=1e-12)
    data = data_of(about(scores @ W.T, None))
    cross = gibbs.weighted_sums(data, scores, None, pairs=True)[1]
    nothing = gibbs.residual_squares(data, cross, W, 0.0 * mu)
    assert 0.0 <= nothing < 1e-12 * data.squares
