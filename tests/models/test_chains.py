"""Tests of chains of all models: starts, stored draws, priors, bands and levels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from sklearn.exceptions import NotFittedError

from appca import (
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
)
from appca.models import draws as query_draws
from appca.models import supports
from appca.models.chains import levels
from appca.models.draws import choose, number_band
from appca.models.set_tree import CollapsedModel
from appca.models.supports import MOST_COLUMNS, SupportsOfRows
from tests.models.synthetic import planted

SHORT = {"n_chains": 2, "burn_in": 10, "n_draws": 20, "random_state": 0}


def rows_like(n_rows=200, n_features=8):
    return planted(n_rows, n_features, 4, 2, seed=0, noise=0.5, scales=2.0, offset=3.0).X


def gibbs(**parameters):
    return AdaptivePPCA(4, 2, inference="gibbs", **(SHORT | parameters))


@pytest.mark.parametrize("z_update", ["block", "swap"])
def test_both_ways_to_draw_subsets_agree(z_update):
    Y = rows_like(n_rows=400)
    model = gibbs(z_update=z_update, n_draws=150, chain_starts="init").fit(Y)
    probability = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(Y).inclusion_probabilities(Y)
    drawn = model.posterior_["Z_mean"].mean(axis=0)
    # columns of the chains are in the order of their start; compare sorted rows
    assert np.abs(np.sort(drawn, axis=1) - np.sort(probability, axis=1)).mean() < 0.05


@pytest.mark.thorough
def test_map_within_gibbs_is_too_sure():
    Y, together = rows_like(n_rows=400), {"chain_starts": "init"}
    sampled = gibbs(n_draws=200, **together).fit(Y).posterior_["log_likelihood"]
    for w_update in ("polar", "pymanopt"):
        n_draws = 200 if w_update == "polar" else 10
        paper = gibbs(n_draws=n_draws, w_update=w_update, **together).fit(Y)
        # W at its maximum keeps the likelihood nats above where the posterior has its mass
        assert paper.posterior_["log_likelihood"].mean() > sampled.mean() + 5


def test_latent_variances_are_drawn_as_asked():
    Y = rows_like()
    for given in ("shared", "component", 4.0):
        draws = gibbs(latent_variance=given).fit(Y).posterior_["latent_variance"]
        assert (draws == draws[..., :1]).all() == (given != "component")
        assert (np.ptp(draws[..., 0]) == 0) == (given == 4.0)


def test_as_many_components_as_features_are_sampled_too():
    draws = gibbs(n_draws=60).fit(rows_like(n_features=4)).posterior_["components"][0]
    turned = np.abs(np.einsum("skd,kd->sk", draws, draws[0]))
    assert turned.min() < 0.9999  # columns alone would only flip signs


def test_chains_start_where_they_are_asked_to():
    Y = rows_like()

    def overlap(**parameters):
        draws = gibbs(burn_in=0, n_draws=1, **parameters).fit(Y).posterior_["components"]
        return np.abs(np.einsum("kd,kd->k", draws[0, 0], draws[1, 0])).min()

    assert overlap(chain_starts="init") > 0.95
    assert overlap(chain_starts="init", init="random") < 0.95
    assert overlap() < 0.95


@pytest.mark.parametrize("model", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_a_fit_by_em_forgets_the_draws_of_the_fit_before(model):
    X = np.random.default_rng(0).normal(size=(60, 5))
    estimator = model(3, 1, inference="gibbs", **SHORT).fit(X)
    assert len(estimator.posterior_["noise_variance"]) == 2
    estimator.set_params(inference="em").fit(X)
    assert not hasattr(estimator, "posterior_")
    with pytest.raises(NotFittedError):
        estimator.to_arviz()


FREE = [NonparametricPPCA, FiniteSparseFA, InfiniteSparseFA]


def planted_free(n_rows=150):
    """Rows with three features of their own, used by some rows each."""
    rng = np.random.default_rng(0)
    W, Z = np.linalg.qr(rng.normal(size=(6, 3)))[0] * 3, rng.random((n_rows, 3)) < [0.7, 0.5, 0.3]
    return 2.0 + rng.normal(size=Z.shape) * Z @ W.T + 0.3 * rng.normal(size=(n_rows, 6)), W


@pytest.mark.parametrize("kind", FREE)
def test_planted_directions_are_found_thinning_skips_and_a_stop_keeps_what_there_is(kind):
    Y, W = planted_free()
    long = kind(5, n_chains=2, burn_in=60, n_draws=60, random_state=1).fit(Y)
    V = long.components_ / np.linalg.norm(long.components_, axis=1, keepdims=True)
    assert (np.abs(V @ (W / 3)).max(axis=0) > 0.97).all()
    every = kind(4, **SHORT, alpha=0.7).fit(Y).posterior_
    assert (every["alpha"] == 0.7).all()
    third = kind(4, **(SHORT | {"n_draws": 6, "thin": 3}), alpha=0.7).fit(Y).posterior_
    equal(third["noise_variance"], every["noise_variance"][:, 2:18:3])

    def stop(progress):
        if progress.iteration == 17:
            raise StopIteration

    stopped = kind(4, **SHORT, alpha=0.7, callback=stop).fit(Y)
    equal(stopped.posterior_["noise_variance"], every["noise_variance"][:, :7])
    assert stopped.n_iter_ == len(stopped.log_likelihoods_) == 17


@pytest.mark.parametrize("model", FREE[1:])
def test_more_factors_than_can_be_enumerated_get_estimates_with_errors(model):
    rng, K = np.random.default_rng(0), MOST_COLUMNS + 4
    W, Z = rng.normal(size=(20, K)), rng.random((120, K)) < 0.4
    Y = (rng.normal(size=Z.shape) * Z) @ W.T + 0.3 * rng.normal(size=(120, 20))
    fit = model(K + 2, n_chains=1, burn_in=30, n_draws=10, n_paths=24, random_state=0).fit(Y)
    assert fit.n_components_ > MOST_COLUMNS
    averaged = fit.estimate_score_samples(Y[:3])
    assert averaged.method == "annealed importance sampling, 6 paths a row; average over 8 draws"
    assert (averaged.error > 0).all()
    fit = fit.published()
    estimate = fit.estimate_score_samples(Y[:20])
    assert estimate.method == "annealed importance sampling, 24 paths a row"
    assert (estimate.error > 0).all()
    # no set can be likelier than all of them together
    assert (fit.allocation_probability(Y[:20]) <= 1).all()
    assert np.isfinite(estimate.log_likelihood).all()


def test_the_error_of_an_average_over_draws_is_honest(monkeypatch):
    rng = np.random.default_rng(0)
    W, Z = rng.normal(size=(20, 14)), rng.random((300, 14)) < 0.4
    Y = (rng.normal(size=Z.shape) * Z) @ W.T + 0.3 * rng.normal(size=(300, 20))
    fit = FiniteSparseFA(14, n_chains=1, burn_in=60, n_draws=60, random_state=0).fit(Y[:100])
    exact = fit.estimate_score_samples(Y[100:])
    assert exact.method == "exact, by enumeration of 16384 sets; average over 12 draws"
    monkeypatch.setattr(supports, "MOST_COLUMNS", 12)
    estimate = fit.estimate_score_samples(Y[100:])
    z = (estimate.log_likelihood - exact.log_likelihood) / estimate.error
    # 3.2 and 12 where all draws take the same random numbers
    assert 0.3 < np.sqrt(np.mean(z**2)) < 1.5
    assert np.abs(z).max() < 5


def test_orthonormal_columns_decide_independently(seed):
    rng = np.random.default_rng(seed)
    noise, tau2 = 0.4, 1.7
    W = np.linalg.qr(rng.normal(size=(6, 4)))[0]
    Y, weights = rng.normal(size=(5, 6)) * 2, rng.uniform(0.1, 0.9, 4)
    q = SupportsOfRows(Y @ W / noise, CollapsedModel(np.eye(4) / noise, 1 / tau2), weights)
    own = q._replace(orthonormal=True)
    by_column, by_set = own._replace(n_paths=0).summed(), q._replace(n_paths=4).summed()
    close(by_column.log_likelihood, by_set.log_likelihood, atol=1e-9)
    close(by_column.inclusion, by_set.inclusion, atol=1e-9)
    equal(own.best()[0], q.best()[0])
    close(own.best()[1], q.best()[1], atol=1e-9)
    Z = rng.random((5, 4)) < 0.5
    close(own.means(Z), q.means(Z), atol=1e-9)


D, K, L = 6, 3, 1


def test_a_dask_array_gets_the_same_averages():
    da, Y = pytest.importorskip("dask.array"), planted(60, D, K, L, seed=3).X
    model = AdaptivePPCA(K, L, inference="gibbs", **SHORT).fit(Y)
    parts = da.from_array(Y, chunks=(25, D))
    for support in ("auto", "map"):
        close(model.transform(parts, support).compute(), model.transform(Y, support), atol=1e-12)
    close(model.score_samples(parts).compute(), model.score_samples(Y))
    equal(model.allocate(parts).compute(), model.allocate(Y))


def test_draws_that_queries_use_are_bounded_and_of_the_highest_peak(monkeypatch):
    rng = np.random.default_rng(0)
    posterior = {
        "components": np.tile(np.linalg.qr(rng.normal(size=(D, K)))[0].T, (3, 80, 1, 1)),
        "mean": np.zeros((3, 80, D)),
        "noise_variance": np.ones((3, 80)),
        "latent_variance": np.ones((3, 80, K)),
        "log_posterior": rng.normal(size=(3, 80)) - np.array([[0.0], [25.0], [0.5]]),
    }
    W = posterior["components"][0, 0]
    chosen = choose(posterior, W, query_draws.MOST_DRAWS)
    assert set(chosen.chain) == {0, 2}
    assert len(chosen.chain) == query_draws.MOST_DRAWS == 100
    monkeypatch.setattr(query_draws, "MOST_BYTES", 7 * K * D * 8)
    few = choose(posterior, W, 100)
    assert few.components.shape == (7, K, D)
    assert len(set(zip(few.chain, few.draw, strict=True))) == 7


@pytest.mark.parametrize("n_draws", [25, 100])
def test_a_band_of_components_holds_another_draw_as_often_as_it_says(n_draws, seed):
    draws = np.random.default_rng(seed).standard_exponential((n_draws + 1, 1, 20_000))
    kept = query_draws.QueryDraws(
        *np.zeros((2, n_draws), int),
        *(draws[1:], np.zeros((n_draws, 1)), np.ones(n_draws), np.ones((n_draws, 1)), None),
    )
    low, high = query_draws.component_bands(kept, draws[0], 0.9)
    inside = ((low <= draws[0]) & (draws[0] <= high)).mean()
    assert inside == pytest.approx(0.9, abs=0.01)  # NumPy's usual quantiles: 0.83 and 0.88


def test_bands_of_components_take_more_draws_than_sums_over_many_supports():
    Y = planted(60, D, K, L, seed=3).X
    model = FiniteSparseFA(14, n_chains=1, burn_in=2, n_draws=60, random_state=0).fit(Y)
    assert len(model.query_draws_.chain) == 60
    few = model.query_draws_.thinned(8)
    equal(few.draw[[0, -1]], model.query_draws_.draw[[0, -1]])
    assert few.components.shape[0] == len(few.weights) == 8
    assert int(model.score_samples(Y[:2]).shape[0]) == 2
    again = FiniteSparseFA(14).restore(model.fitted_arrays())
    equal(again.component_bands(), model.component_bands())
    equal(again.score_samples(Y[:3]), model.score_samples(Y[:3]))


def test_components_that_a_few_rows_use_do_not_count_as_in_use():
    rng = np.random.default_rng(0)
    W, Z = 3 * np.linalg.qr(rng.normal(size=(8, 3)))[0], rng.random((300, 3)) < 0.5
    Y = (rng.normal(size=Z.shape) * Z) @ W.T + 0.3 * rng.normal(size=(300, 8))
    Y[::100] += 6 * rng.normal(size=(3, 8))  # three odd rows
    model = InfiniteSparseFA(10, n_chains=2, burn_in=100, n_draws=100, random_state=0).fit(Y)
    draws, counts = model.posterior_, model.chain_levels_.counts
    wanted = (draws["occupancy"][counts] >= 15).sum(axis=2)
    assert model.n_components_in_use_ == np.bincount(wanted.ravel()).argmax() == 3
    assert model.n_components_band(share=0.05)[1] < model.n_components_band()[1]
    assert model.n_components_band() == number_band(draws["n_components"][counts], 0.9)


def test_the_band_of_the_number_of_components():
    numbers = np.repeat([3, 4, 5, 9], [4, 60, 32, 4])
    assert number_band(numbers, 0.9) == (4, 5)
    assert number_band(numbers, 0.95) == (3, 9)
    with pytest.raises(ValueError, match=r"level must be a number between 0 and 1; got 1\.0\."):
        number_band(numbers, 1.0)


def autoregressive(rng, n_chains, n_draws, memory, sd=14.0):
    """Stationary chains (chain, draw) that remember `memory` of the draw before."""
    chains = np.empty((n_chains, n_draws))
    chains[:, 0] = rng.normal(size=n_chains)
    for i in range(1, n_draws):
        fresh = np.sqrt(1 - memory**2) * rng.normal(size=n_chains)
        chains[:, i] = memory * chains[:, i - 1] + fresh
    return sd * chains


@pytest.mark.parametrize("memory", [0.0, 0.8])
@pytest.mark.parametrize("n_draws", [20, 500])
def test_chains_of_one_level_count_and_their_monte_carlo_error_says_so(memory, n_draws, seed):
    rng = np.random.default_rng(seed)
    counted = [levels(autoregressive(rng, 4, n_draws, memory)).counts.all() for _ in range(200)]
    assert np.mean(counted) > (0.9 if memory and n_draws < 100 else 0.97)


def test_a_peak_thirty_nats_lower_does_not_count_however_wide_the_draws_are(seed):
    density = autoregressive(np.random.default_rng(seed), 6, 500, 0.5)
    density[3:] -= [[31.0], [31.5], [113.0]]
    told = levels(density)
    assert density[0].std() > 11  # three of them are more than the gap
    equal(told.counts, [True] * 3 + [False] * 3)
    assert told.why.startswith("Averages use 3 of 6 chains: chains 4, 5, 6 had mean log-post")
    assert levels(density[:3]).why.startswith("Averages use all 3 chains: ")


def test_gaps_of_three_nats_decide_also_of_single_draws():
    density = np.tile([0.0, 0.1], (2, 50)) - np.array([[0.0], [2.9]])
    assert levels(density).counts.all()
    assert not levels(density - np.array([[0.0], [0.2]])).counts.all()
    equal(levels(np.array([[0.0], [-2.0], [-40.0]])).counts, [1, 1, 0])


SURE, ONE = 1e9, {"n_active": 1, "inference": "gibbs", "max_iter": 3}
PRIORS = {AdaptivePPCA: ONE, AdaptiveFactorAnalysis: ONE, **{model: {} for model in FREE}}
VARIANCES = {"noise": "noise_variance", "latent": "latent_variance", "loading": "loading_variance"}


def cases():
    for model, given in PRIORS.items():
        priors = [prior for prior in VARIANCES if f"{prior}_shape" in model().get_params()]
        assert priors[0] == "noise"
        assert len(priors) == 2
        yield from ((model, given, prior) for prior in priors)


@pytest.mark.filterwarnings("ignore:max_components")
@pytest.mark.parametrize(("model", "given", "prior"), list(cases()))
@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_a_sharp_prior_of_a_variance_decides(model, given, prior, unit):
    """InvGamma(a, b v) with a mean of b v / (a - 1) and a coefficient of variation of a^-1/2."""
    Y = unit * planted_free(40)[0]
    v = np.square(Y - Y.mean(axis=0)).mean()
    priors = {f"{prior}_shape": SURE, f"{prior}_scale": 0.3 * SURE}
    fit = model(3, **given, **priors, **SHORT).fit(Y)
    close(fit.posterior_[VARIANCES[prior]], 0.3 * v, rtol=1e-3)


@pytest.mark.parametrize("model", FREE)
def test_a_sharp_prior_of_the_concentration_decides_and_a_bound_that_is_reached_is_said(model):
    with pytest.warns(UserWarning, match=r"^max_components=1 is reached in every draw, so"):
        fit = model(1, alpha_shape=0.7 * SURE, alpha_rate=SURE, **SHORT).fit(planted_free(40)[0])
    close(fit.posterior_["alpha"][:, 1:], 0.7, rtol=1e-3)
