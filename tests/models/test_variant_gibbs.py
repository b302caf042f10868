"""Gibbs sampling of row scales and learned sizes: the sweep, what it keeps, and fits."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2, norm

from appca import AdaptivePPCA, load_model
from appca.models import conditionals, gibbs, numerics, polynomials, stiefel
from appca.models.conditionals import InverseGamma
from appca.models.gibbs import SubspaceGibbsState, SubspacePrior
from appca.models.products import data_of, row_squares
from appca.models.rows import Rows
from tests.geweke import DRAWS, geweke_z, is_caught, named, worst
from tests.models import gibbs_oracles as oracle
from tests.references import em_variants
from tests.references.gibbs_variants import State, parameters

N, D, K, L = 5, 4, 3, 2
GRID = np.array([0.4, 1.0, 2.5])
PRIOR = SubspacePrior(InverseGamma(6.0, 3.0), InverseGamma(6.0, 8.0), False, 0.5)


def swept(rng, data, seen, prior, directions=stiefel.draw):
    return gibbs.sweep(rng, data, seen, prior, gibbs.PRIORS["block"], directions)


class Case:
    """A model for Geweke's test, its state that of the page in `tests/references`."""

    def __init__(self, grid, *, learn_sizes, prior=PRIOR):
        self.grid, self.learn_sizes, self.prior = grid, learn_sizes, prior

    def draw_prior(self, rng):
        prior, J = self.prior, len(self.grid)
        omega = rng.dirichlet(np.ones(J))
        rho = rng.dirichlet(np.ones(K + 1)) if self.learn_sizes else np.eye(K + 1)[L]
        u = rng.choice(self.grid, N, p=omega)
        sizes = rng.choice(K + 1, (N, 1), p=rho)
        Z = np.argsort(np.argsort(rng.random((N, K)), axis=1), axis=1) < sizes
        sigma2 = prior.noise.rate / rng.gamma(prior.noise.shape)
        tau2 = prior.latent.rate / rng.gamma(prior.latent.shape, size=K if prior.each else None)
        tau2 = np.broadcast_to(tau2, K).copy()
        W = np.linalg.qr(rng.normal(size=(D, D)))[0][:, :K] * rng.choice([-1.0, 1.0], K)
        X = np.sqrt(tau2 * u[:, None]) * rng.normal(size=(N, K)) * Z
        mu = np.sqrt(prior.mean_variance) * rng.normal(size=D)
        return State(W, X, Z, mu, sigma2, tau2, u, self.grid, omega, rho)

    def draw_data(self, rng, state):
        noise = np.sqrt(state.sigma2 * state.u)[:, None] * rng.normal(size=(N, D))
        return state.mu + state.X @ state.W.T + noise

    def seen(self, state, Y):
        """Rows and state as the package has them."""
        rows = Rows(Y, None, np.empty(0), Y.shape[1])
        data = data_of(rows)._replace(each=row_squares(rows), grid=self.grid)
        X = state.X / np.sqrt(state.u)[:, None]
        sizes = state.rho if self.learn_sizes else L
        parameters = state.W, X, state.Z, state.mu, state.sigma2, state.tau2, 1.0
        return data, gibbs.look(data, SubspaceGibbsState(*parameters, sizes, state.u, state.omega))

    def sweep(self, rng, state, Y):
        data, seen = self.seen(state, Y)
        W, X, Z, mu, sigma2, tau2, _, sizes, u, omega = swept(rng, data, seen, self.prior).state
        rho = sizes if self.learn_sizes else state.rho
        X = X * np.sqrt(u)[:, None]
        return State(W, X, Z, mu, sigma2, tau2, u, self.grid, omega, rho)

    def statistics(self, state, Y):
        W, X, Z, mu, sigma2, tau2, u, _, omega, rho = state
        fit, size = X @ W.T, Z.sum(axis=1)
        scaled = np.square(X) / (tau2 * u[:, None])
        squares = np.square(Y - mu - fit).sum(axis=1) / u
        return {
            "log noise": np.log(sigma2),
            "log latent": np.log(tau2).mean(),
            "latent contrast": np.log(tau2[0]) - np.log(tau2[-1]),
            "log scale": np.log(u).mean(),
            "largest scale": (u == self.grid[-1]).mean(),
            "scale and share": np.log(u).mean() * omega[-1],
            "shares": omega[0] * omega[-1],
            "scale and data": np.tanh(np.log(u[0]) * np.square(Y[0]).sum() / 9),
            "sizes": size.mean(),
            "none": (size == 0).mean(),
            "size and share": size.mean() * rho[-1],
            "size and scale": (size * np.log(u)).mean(),
            "share of none": rho[0] * rho[1],
            "scores in excess": scaled.sum() - Z.sum(),
            "residual": squares.sum() / sigma2,
            "residual by scale": (squares * np.log(u)).sum() / sigma2,
            "signal and data": np.tanh((Y * fit).sum() / 4),
            "shared": (Z[0] & Z[1]).sum(),
            "entries": W[0, 0] * W[1, 1],
            "projector": W[0] @ W[1],
            "mean": mu[0],
            "mean and data": np.tanh(mu @ Y.mean(axis=0)),
            "mean and scale": np.tanh(mu @ (Y / u[:, None]).mean(axis=0)),
        }


CASES = {
    "row scales": Case(GRID, learn_sizes=False),
    "sizes": Case(np.ones(1), learn_sizes=True),
    "both": Case(GRID, learn_sizes=True, prior=PRIOR._replace(each=True)),
}


@pytest.mark.thorough
@DRAWS
@pytest.mark.parametrize("name", CASES)
def test_the_sweep_passes_geweke(name, n_draws, seed):
    z = geweke_z(CASES[name], np.random.default_rng(seed), n_draws)
    assert worst(z)[0] < 5, worst(z)


def with_scales_from_the_prior(monkeypatch):
    right = gibbs.weigh

    def wrong(P, squares, model):
        row = right(P, squares, model)
        return row._replace(scales=np.tile(model.weights, (len(P), 1)))

    monkeypatch.setattr(gibbs, "weigh", wrong)


def with_supports_at_one_scale(monkeypatch):
    """Logits of rows that were not divided by their scales."""
    right = numerics.logits
    monkeypatch.setattr(numerics, "logits", lambda P, *variances: right(0.7 * P, *variances))


def with_supports_as_probable_as_their_size(monkeypatch):
    """The shares of sizes, not divided by the number of supports of a size."""
    monkeypatch.setattr(polynomials, "log_counts", lambda K: np.zeros(K + 1), raising=True)


def with_sums_over_rows_that_are_not_scaled(monkeypatch):
    right = gibbs.weighted_sums
    monkeypatch.setattr(gibbs, "weighted_sums", lambda data, X, u: right(data, X, np.ones_like(u)))


def with_scores_of_other_units(monkeypatch):
    """The factor variance from scores that were not divided by the scale of their row."""
    right = gibbs.draw_latent
    monkeypatch.setattr(
        gibbs, "draw_latent", lambda rng, prior, X, Z, tau2: right(rng, prior, X * 1.2, Z, tau2)
    )


def with_shares_without_their_prior(monkeypatch):
    monkeypatch.setattr(conditionals, "shares", lambda counts: 3.0 + counts)


BROKEN = {
    "scales from the prior": ("row scales", with_scales_from_the_prior),
    "supports of rows that are not scaled": ("both", with_supports_at_one_scale),
    "supports as probable as their size": ("sizes", with_supports_as_probable_as_their_size),
    "sums over rows that are not scaled": ("row scales", with_sums_over_rows_that_are_not_scaled),
    "scores not scaled": ("both", with_scores_of_other_units),
    "another prior of shares": ("sizes", with_shares_without_their_prior),
}


TRIED_ELSEWHERE = (  # in every run, by agreement with the page in `tests/references`
    "sums over rows that are not scaled",
    "scores not scaled",
    "another prior of shares",
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", named(BROKEN, thorough=TRIED_ELSEWHERE))
def test_a_broken_sweep_fails_geweke(name, seed, monkeypatch):
    case, break_it = BROKEN[name]
    break_it(monkeypatch)
    assert is_caught(CASES[case], np.random.default_rng(seed))


@pytest.fixture(params=CASES)
def world(request, seed):
    rng, case = np.random.default_rng(seed), CASES[request.param]
    state = case.draw_prior(rng)
    return rng, case, state, case.draw_data(rng, state)


def test_scales_and_supports_are_drawn_as_often_as_enumeration_says(world):
    """Of all pairs of a scale and a support, at parameters that do not move."""
    rng, case, state, Y = world
    _, supports, p = em_variants.e_step(Y, parameters(state))
    many = 3000
    Y = np.repeat(Y, many, axis=0)
    data, seen = case.seen(
        state._replace(X=np.zeros((len(Y), K)), Z=np.zeros((len(Y), K), bool), u=np.ones(len(Y))), Y
    )
    kept = SubspacePrior(PRIOR.noise, None, False, 0.0)
    drawn = swept(rng, data, seen, kept, lambda _rng, _F, W: W).state
    support = np.argmax((drawn.Z[:, None] == supports).all(axis=2), axis=1)
    scale = np.searchsorted(case.grid, drawn.u)
    pair = (support * len(case.grid) + scale).reshape(N, many)
    for drawn_pairs, p_n in zip(pair, p.reshape(N, -1), strict=True):
        counts, often = np.bincount(drawn_pairs, minlength=p_n.size), many * p_n >= 5
        wanted = many * np.append(p_n[often], p_n[~often].sum())
        counted = np.append(counts[often], counts[~often].sum())
        statistic = np.sum((counted - wanted) ** 2 / np.maximum(wanted, 1.0))
        assert chi2.sf(statistic, len(wanted) - 1) > 1e-5


def test_the_likelihood_of_a_draw_sums_over_all_that_a_row_may_be(world):
    _, case, state, Y = world
    data, seen = case.seen(state, Y)
    prior = case.prior
    measured = gibbs.measure(data, prior, gibbs.PRIORS["block"], seen)
    wanted = em_variants.e_step(Y, parameters(state))[0].sum()
    assert measured.log_likelihood == pytest.approx(wanted, abs=1e-9)
    priors = oracle.log_inverse_gamma(state.sigma2, *prior.noise)
    priors += oracle.log_inverse_gamma(
        state.tau2 if prior.each else state.tau2[:1], *prior.latent
    ).sum()
    assert measured.log_posterior == pytest.approx(wanted + priors, abs=1e-9)


def test_the_complete_density_is_that_of_the_definition(world):
    rng, case, state, Y = world
    data, seen = case.seen(state, Y)
    drawn = swept(rng, data, seen, case.prior)
    W, X, Z, mu, sigma2, tau2, _, sizes, u, omega = drawn.state
    root = np.sqrt(u)[:, None]
    X = X * root
    wanted = norm.logpdf(Y, mu + X @ W.T, np.sqrt(sigma2) * root).sum()
    wanted += norm.logpdf(X, 0.0, np.sqrt(tau2) * root).sum(where=Z)
    wanted += np.log(omega[np.searchsorted(case.grid, u)]).sum()
    rho = sizes if case.learn_sizes else np.eye(K + 1)[L]
    wanted += np.log((rho / [1, 3, 3, 1])[Z.sum(axis=1)]).sum()
    joint = gibbs.record(data, gibbs.PRIORS["block"], drawn)["log_joint"]
    assert joint == pytest.approx(wanted, abs=1e-9)


VARIANTS = [
    {"row_scale": "learned", "n_active": 2},
    {"n_active": "learned"},
    {"row_scale": "learned", "n_active": "learned"},
]
TRUE_SIZES = np.array([0.1, 0.5, 0.4, 0.0, 0.0])


def planted(settings, n=400, d=12, k=4, seed=0, shares=None):
    """Rows of the model, their scales and how many components each uses."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(d, k)))[0]
    sizes = rng.choice(k + 1, (n, 1), p=TRUE_SIZES) if settings["n_active"] == "learned" else 2
    Z = np.argsort(np.argsort(rng.random((n, k)), axis=1), axis=1) < sizes
    u = rng.choice([0.3, 3.5], n, p=shares) if "row_scale" in settings else np.ones(n)
    X = 4.0 * rng.normal(size=(n, k)) * Z
    return 2.0 + np.sqrt(u)[:, None] * (X @ W.T + 0.5 * rng.normal(size=(n, d))), u, Z.sum(axis=1)


def sampled(X, settings, **more):
    how = {"inference": "gibbs", "burn_in": 50, "n_draws": 100, "random_state": 0}
    return AdaptivePPCA(4, **settings, **how | more).fit(X)


@pytest.fixture(scope="module", params=VARIANTS, ids=str)
def fit(request):
    X, *drawn = planted(request.param)
    em = AdaptivePPCA(4, **request.param, random_state=0).fit(X)
    return sampled(X, request.param), em, X, *drawn


@pytest.mark.thorough
def test_chains_agree_with_em_on_planted_rows(fit):
    model, em, X, u, used = fit
    assert model.published().score(X) > em.score(X) - 0.1
    assert model.score(X) == pytest.approx(em.score(X), abs=0.1)
    np.testing.assert_allclose(np.abs(model.components_ @ em.components_.T), np.eye(4), atol=0.05)
    assert (model.allocate(X) == em.allocate(X)).mean() > 0.98
    if hasattr(em, "size_probabilities_"):
        mean = model.posterior_["size_probabilities"].mean(axis=(0, 1))
        np.testing.assert_allclose(mean, np.bincount(used, minlength=5) / len(X), atol=0.07)
        np.testing.assert_allclose(mean, em.size_probabilities_, atol=0.05)
    if hasattr(em, "row_scale_probabilities_"):
        shares = model.posterior_["row_scale_probabilities"].mean(axis=(0, 1))
        assert shares[[0, 1]].sum() == pytest.approx((u < 1).mean(), abs=0.1)
        assert np.corrcoef(np.log(model.row_scales(X)), np.log(u))[0, 1] > 0.8


@pytest.mark.thorough
def test_em_moves_along_the_scales_as_far_as_chains_do():
    """Most rows are large: the paper's variances are too large for the others by eleven times."""
    X, u, _ = planted(VARIANTS[0], n=900, shares=[0.1, 0.9])
    em = AdaptivePPCA(4, **VARIANTS[0], random_state=0).fit(X)
    chain = sampled(X, VARIANTS[0]).published()
    assert em.score(X) > chain.score(X) - 1e-3
    ratio = em.row_scales(X[u > 1]).mean() / em.row_scales(X[u < 1]).mean()
    assert ratio == pytest.approx(3.5 / 0.3, rel=0.15)


@pytest.mark.default_cases(1)
def test_queries_are_averages_over_draws(fit):
    """Of what enumeration says at each draw."""
    model, _, X, *_ = fit
    X, draws = X[:10], model.query_draws_
    S, grid = len(draws.chain), getattr(model, "row_scale_values_", np.ones(1))
    density, inclusion, scale, sizes = np.full(10, -np.inf), 0.0, 0.0, 0.0
    scores = 0.0
    for s in range(S):
        sigma2 = draws.noise_variance[s]
        learned = [draws.row_scale_probabilities, draws.size_probabilities]
        omega, rho = (
            fixed if each is None else each[s]
            for each, fixed in zip(learned, (np.ones(1), np.eye(5)[2]), strict=True)
        )
        at = em_variants.Parameters(
            np.sqrt(sigma2) * draws.components[s].T,
            draws.mean[s],
            draws.latent_variance[s] / sigma2,
            np.full(X.shape[1], sigma2),
            grid,
            omega,
            rho,
        )
        log_p, supports, p = em_variants.e_step(X, at)
        density = np.logaddexp(density, log_p)
        r = np.einsum("ncj,ck->nk", p, supports)
        inclusion, scale = inclusion + r / S, scale + p.sum(axis=1) @ grid / S
        scores = scores + np.sqrt(sigma2) * r * em_variants.scores(X, at)[0] / S
        sizes = sizes + p.sum(axis=2) @ np.eye(5)[supports.sum(axis=1)] / S
    np.testing.assert_allclose(model.score_samples(X), density - np.log(S), atol=1e-9)
    np.testing.assert_allclose(model.inclusion_probabilities(X), inclusion, atol=1e-10)
    np.testing.assert_allclose(model.row_scales(X), scale, atol=1e-10)
    np.testing.assert_allclose(model.transform(X), scores, atol=1e-9)
    if hasattr(model, "size_probabilities_"):
        np.testing.assert_allclose(model.size_probabilities(X), sizes, atol=1e-10)
        np.testing.assert_array_equal(model.allocate(X), inclusion > 0.5)


@pytest.mark.default_cases(1)
def test_the_published_draw_is_the_densest(fit):
    model, _, X, *_ = fit
    draws = model.posterior_
    good = model.chain_levels_.counts
    at = draws["log_posterior"][good].argmax()
    for name, published in {
        "noise_variance": model.noise_variance_,
        "log_likelihood": model.published().score_samples(X).sum(),
        "row_scale_probabilities": getattr(model, "row_scale_probabilities_", None),
        "size_probabilities": getattr(model, "size_probabilities_", None),
    }.items():
        if published is not None:
            drawn = draws[name][good]
            drawn = drawn.reshape(-1, *drawn.shape[2:])[at]
            np.testing.assert_allclose(published, drawn, rtol=1e-9)
    second = np.square(model.components_).sum(axis=1) * model.explained_variance_
    assert (np.diff(second) <= 0).all()


def test_bands_of_scores_hold_the_expected_score(fit):
    model, _, X, *_ = fit
    low, high = model.score_bands(X[:40], level=0.99)
    scores = model.transform(X[:40])
    assert ((low - 0.5 <= scores) & (scores <= high + 0.5)).mean() > 0.98
    assert model.component_bands().shape == (2, 4, 12)
    assert ((model.allocation_probability(X) >= 0) & (model.allocation_probability(X) <= 1)).all()


@pytest.mark.thorough
def test_a_sampled_fit_comes_back_from_a_file_and_in_another_order(fit, tmp_path):
    model, _, X, *_ = fit
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    asked = ["score_samples", "transform", "allocate", "row_scales", "inclusion_probabilities"]
    asked += ["size_probabilities"] if hasattr(model, "size_probabilities_") else []
    for question in asked:
        np.testing.assert_array_equal(getattr(again, question)(X), getattr(model, question)(X))
    again.reorder([2, 0, 3, 1])
    np.testing.assert_allclose(again.score_samples(X), model.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(again.row_scales(X), model.row_scales(X), atol=1e-10)
    assert again.n_parameters_ == model.n_parameters_


def test_arviz_has_the_shares(fit):
    pytest.importorskip("arviz")
    model, *_ = fit
    drawn = model.to_arviz().posterior
    for name in ("size_probabilities", "row_scale_probabilities"):
        assert (name in drawn) == hasattr(model, f"{name}_")


@pytest.mark.thorough
@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_single_precision_a_zero_mean_and_a_fixed_variance_are_sampled(settings):
    X, *_ = planted(settings, n=120)
    single = sampled(X.astype(np.float32), settings, n_draws=20)
    assert single.components_.dtype == single.query_draws_.components.dtype == np.float32
    double = sampled(X, settings, n_draws=20)
    assert single.score(X.astype(np.float32)) == pytest.approx(double.score(X), abs=0.2)
    zero = sampled(X, settings, n_draws=20, mean="zero", latent_variance=4.0)
    assert not zero.mean_.any()
    assert (zero.latent_variance_ == 4.0).all()


def test_a_warm_start_and_a_stop_give_complete_fits():
    X, *_ = planted(VARIANTS[2], n=120)
    model = sampled(X, VARIANTS[2], n_draws=5)
    again = model.set_params(warm_start=True, n_draws=5).fit(X)
    assert np.isfinite(again.score(X))

    def stop(_progress):
        raise StopIteration

    model = sampled(X, VARIANTS[2], callback=stop)
    assert model.stop_reason_ == "stopped by the callback"
    assert model.posterior_["size_probabilities"].shape == (2, 1, 5)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": "feature", "row_scale": "learned"}, "inference must be 'em' with noise="),
        ({"row_scale": "learned", "z_update": "swap"}, "z_update must be 'block' with row_scale="),
        ({"n_active": "learned", "z_update": "swap"}, "z_update must be 'block' with n_active="),
    ],
)
def test_what_cannot_be_sampled_is_refused(settings, words):
    X, *_ = planted(VARIANTS[2], n=60)
    with pytest.raises(ValueError, match=words):
        sampled(X, settings)


def test_subsets_of_any_size_are_drawn_as_often_as_enumeration_says(seed):
    rng = np.random.default_rng(seed)
    a, rho = 2.0 * rng.standard_normal((4, 4)), rng.dirichlet(np.ones(5))
    every = np.array(list(itertools.product([False, True], repeat=4)))
    weights = a @ every.T + np.log(rho / [1, 4, 6, 4, 1])[every.sum(axis=1)]
    p = np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
    many = 20_000
    drawn = polynomials.draw(rng, np.repeat(a, many, axis=0), rho)
    number = (drawn @ [8, 4, 2, 1]).reshape(4, many)
    for row, wanted in zip(number, p, strict=True):
        counts = np.bincount(row, minlength=16)
        expected = np.maximum(many * wanted, 1.0)
        assert chi2.sf(np.sum((counts - many * wanted) ** 2 / expected), 15) > 1e-5
    for extreme in (1e4, -1e4):
        sure = polynomials.draw(rng, np.full((3, 4), extreme), np.full(5, 0.2))
        assert (sure == (extreme > 0)).all()
