"""Queries after sampling against brute force: every draw, every support, dense Gaussians."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

from appca import (
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
)
from appca.models import draws as query_draws
from appca.models.draws import choose, number_band
from tests.models.synthetic import matched_cosines, planted
from tests.references import low_rank

D, K, L = 6, 3, 1
FIXED = {"n_components": K, "n_active": L, "inference": "gibbs"}
MODELS = {
    AdaptivePPCA: FIXED,
    AdaptiveFactorAnalysis: FIXED,
    NonparametricPPCA: {"max_components": K + 1},
    FiniteSparseFA: {"max_components": K + 1},
    InfiniteSparseFA: {"max_components": K + 1},
}
SHORT = {"n_chains": 2, "burn_in": 30, "n_draws": 8, "random_state": 0}


@pytest.fixture(scope="module", params=MODELS, ids=lambda kind: kind.__name__)
def sampled(request):
    Y = planted(80, D, K, L, seed=3, noise=0.5, offset=1.0, scales=3.0).X
    return request.param(**MODELS[request.param], **SHORT).fit(Y), Y[:3]


def raw_draws(model):
    """Parameters of the draws that queries use, from all draws as they were kept."""
    kept = model.posterior_
    for chain, i in zip(model.query_draws_.chain, model.query_draws_.draw, strict=True):
        at = {
            name: values[chain, i]
            for name, values in kept.items()
            if values.ndim > 2 or i >= 0
            if name not in ("Z_mean", "X_mean")
        }
        W, weights = at["components"], at.get("weights")
        used = np.arange(len(W)) if weights is None else np.flatnonzero(weights > 0)
        tau2 = at.get("latent_variance", np.ones(len(W)))
        yield (
            W[used], at["mean"], at["noise_variance"], tau2[used],
            None if weights is None else weights[used],
        )  # fmt: skip


def brute(model, y):
    """log p(y), p(z | y) and E[x z | y] of each draw, over all supports."""
    for W, mu, noise, tau2, weights in raw_draws(model):
        k = len(W)
        sizes = [L] if weights is None else range(k + 1)
        sets = [np.array(s, int) for n in sizes for s in itertools.combinations(range(k), n)]
        Z = np.array([np.isin(np.arange(k), s) for s in sets])
        prior = np.full(len(sets), -np.log(len(sets)))
        if weights is not None:
            prior = np.where(Z, np.log(weights), np.log1p(-weights)).sum(axis=1)
        log_p = prior + [low_rank.log_density(y, W[s].T, mu, noise, tau2[s]) for s in sets]
        share = np.exp(log_p - logsumexp(log_p))
        H = np.zeros((len(sets), k))
        for s, row in zip(sets, H, strict=True):
            A = W[s] @ W[s].T / noise + np.diag(1 / tau2[s])
            row[s] = np.linalg.solve(A, W[s] @ (y - mu) / noise)
        yield W, logsumexp(log_p), share @ Z, share @ H


def placed(W, reference):
    """Place and sign of every component of W among those of the reference, by all assignments."""
    units = [V / np.linalg.norm(V, axis=1, keepdims=True) for V in (W, reference)]
    cosine = units[0] @ units[1].T
    few, many = sorted(cosine.shape)
    if len(W) <= len(reference):
        options = itertools.permutations(range(many), few)
        pairs = max(options, key=lambda p: sum(abs(cosine[i, j]) for i, j in enumerate(p)))
        found = list(enumerate(pairs))
    else:
        options = itertools.permutations(range(many), few)
        pairs = max(options, key=lambda p: sum(abs(cosine[i, j]) for j, i in enumerate(p)))
        found = [(i, j) for j, i in enumerate(pairs)]
    return [(i, j, np.sign(cosine[i, j])) for i, j in found]


def test_answers_are_averages_over_draws_and_supports(sampled):
    model, Y = sampled
    n = len(model.components_)
    for y in Y:
        found = list(brute(model, y))
        predictive = logsumexp([f[1] for f in found]) - np.log(len(found))
        assert model.score_samples(y[None])[0] == pytest.approx(predictive, abs=1e-8)
        inclusion, scores = np.zeros(n), np.zeros(n)
        for W, _, r, H in found:
            for i, j, sign in placed(W, model.components_):
                inclusion[j] += r[i] / len(found)
                scores[j] += sign * H[i] / len(found)
        np.testing.assert_allclose(model.inclusion_probabilities(y[None])[0], inclusion, atol=1e-8)
        np.testing.assert_allclose(model.transform(y[None])[0], scores, atol=1e-7)
    told = model.describe(Y)
    np.testing.assert_allclose(told.log_likelihood, model.score_samples(Y))
    np.testing.assert_allclose(told.inclusion, model.inclusion_probabilities(Y))
    assert told.method.endswith(f"; average over {len(model.query_draws_.chain)} draws")
    assert not told.standard_error.any()


def test_the_map_is_that_of_the_published_draw(sampled):
    model, Y = sampled
    alone = model.published()
    np.testing.assert_array_equal(model.transform(Y, support="map"), alone.transform(Y))
    np.testing.assert_array_equal(model.allocate(Y, support="map"), alone.transform(Y) != 0)
    told = model.describe(Y)
    np.testing.assert_allclose(told.scores, alone.transform(Y))
    back = model.inverse_transform(told.scores, support="map")
    np.testing.assert_allclose(told.error, np.square(Y - back).mean(axis=1))
    np.testing.assert_allclose(told.membership, alone.allocation_probability(Y))
    assert not np.allclose(model.score_samples(Y), alone.score_samples(Y))


def test_scores_and_their_inverse_are_of_the_same_average(sampled):
    model, Y = sampled
    W = np.zeros(model.components_.shape)
    mu = np.zeros(D)
    draws = list(raw_draws(model))
    for V, mean, *_ in draws:
        mu += mean / len(draws)
        for i, j, sign in placed(V, model.components_):
            W[j] += sign * V[i] / len(draws)
    H = model.transform(Y)
    np.testing.assert_allclose(model.inverse_transform(H), H @ W + mu, atol=1e-9)


def test_the_chosen_support_is_the_likeliest_components_and_has_its_share(sampled):
    model, Y = sampled
    r, active = model.inclusion_probabilities(Y), model.allocate(Y)
    if isinstance(model, AdaptivePPCA | AdaptiveFactorAnalysis):
        np.testing.assert_array_equal(active, r >= np.sort(r, axis=1)[:, [-L]])
    else:
        np.testing.assert_array_equal(active, r > 0.5)
    share = model.allocation_probability(Y)
    assert (share <= r.min(axis=1, where=active, initial=1.0) + 1e-9).all()
    if L == 1 and isinstance(model, AdaptivePPCA | AdaptiveFactorAnalysis):
        np.testing.assert_allclose(share, r[active], atol=1e-9)


def test_answers_survive_a_file(sampled):
    model, Y = sampled
    again = type(model)(**MODELS[type(model)]).restore(model.fitted_arrays())
    for ask in ("score_samples", "transform", "allocate", "inclusion_probabilities"):
        np.testing.assert_array_equal(getattr(again, ask)(Y), getattr(model, ask)(Y), ask)
    np.testing.assert_array_equal(again.component_bands(), model.component_bands())
    assert not hasattr(again, "posterior_")


def test_bands_hold_the_middle_of_the_draws(sampled):
    model, Y = sampled
    low, high = model.component_bands(0.8)
    assert (low <= high).all()
    wide = model.component_bands(0.98)
    assert (wide[0] <= low).all()
    assert (wide[1] >= high).all()
    low, high = model.score_bands(Y, 0.9)
    inside = (low <= 0) & (high >= 0)
    # a component that is surely in use has a band on one side of zero
    sure = model.inclusion_probabilities(Y) > 0.999
    assert not inside[sure & (np.abs(model.transform(Y)) > 2)].any()
    never = model.inclusion_probabilities(Y) < 1e-4
    np.testing.assert_array_equal(low[never], 0.0)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1; got 90"):
        model.component_bands(90)


@pytest.mark.parametrize("kind", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_a_fit_by_em_answers_as_before(kind):
    Y = planted(80, D, K, L, seed=3).X
    model = kind(K, L, random_state=0).fit(Y)
    np.testing.assert_array_equal(model.transform(Y), model.transform(Y, support="map"))
    np.testing.assert_array_equal(model.allocate(Y), model.transform(Y) != 0)
    # over all supports the error is the smallest there is on average
    everything = model.transform(Y, support="all")
    r = model.inclusion_probabilities(Y)
    assert np.abs(everything[r < 1e-3]).max() < 0.01
    with pytest.raises(ValueError, match="support must be 'auto', 'all' or 'map'; got 'best'"):
        model.transform(Y, support="best")
    with pytest.raises(NotFittedError):
        model.component_bands()


def test_a_dask_array_gets_the_same_averages():
    da = pytest.importorskip("dask.array")
    Y = planted(60, D, K, L, seed=3).X
    model = AdaptivePPCA(**FIXED, **SHORT).fit(Y)
    parts = da.from_array(Y, chunks=(25, D))
    for support in ("auto", "map"):
        expected = model.transform(Y, support)
        np.testing.assert_allclose(model.transform(parts, support).compute(), expected, atol=1e-12)
    np.testing.assert_allclose(model.score_samples(parts).compute(), model.score_samples(Y))
    np.testing.assert_array_equal(model.allocate(parts).compute(), model.allocate(Y))


def test_draws_that_queries_use_are_bounded(monkeypatch):
    Y = planted(60, D, K, L, seed=3).X
    model = AdaptivePPCA(**FIXED, **(SHORT | {"n_draws": 80})).fit(Y)
    assert len(model.query_draws_.chain) == query_draws.MOST_DRAWS == 100
    monkeypatch.setattr(query_draws, "MOST_BYTES", 7 * K * D * 8)
    few = choose(model.posterior_, model.components_, 100)
    assert few.components.shape == (7, K, D)
    assert len(set(zip(few.chain, few.draw, strict=True))) == 7


def test_a_chain_on_a_lower_peak_counts_for_nothing():
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(D, K)))[0].T
    posterior = {
        "components": np.tile(W, (3, 20, 1, 1)),
        "mean": np.zeros((3, 20, D)),
        "noise_variance": np.ones((3, 20)),
        "latent_variance": np.ones((3, 20, K)),
        "log_posterior": rng.normal(size=(3, 20)) - np.array([[0.0], [25.0], [0.5]]),
    }
    assert set(choose(posterior, W, 30).chain) == {0, 2}


def coverage(seed):
    """Share of entries of components and scores that their 90 % bands hold, of a planted set."""
    given = planted(150, 8, 4, 2, seed=seed, noise=0.4, scales=2.0)
    model = AdaptivePPCA(
        4, 2, inference="gibbs", n_chains=2, burn_in=150, n_draws=250, random_state=seed
    ).fit(given.X)
    assert matched_cosines(model.components_, given.W).min() > 0.9
    truth = {j: (i, sign) for i, j, sign in placed(given.W.T, model.components_)}
    order = [truth[j][0] for j in range(4)]
    sign = np.array([truth[j][1] for j in range(4)])
    low, high = model.component_bands()
    W = given.W.T[order] * sign[:, None]
    held = [((low <= W) & (high >= W)).ravel()]
    low, high = model.score_bands(given.X)
    S = given.S[:, order] * sign
    held.append(((low <= S) & (high >= S)).ravel())
    return [part.mean() for part in (*held, np.concatenate(held))]


@pytest.mark.slow
def test_bands_cover_what_was_planted():
    parts, scores, both = np.mean([coverage(seed) for seed in range(20)], axis=0)
    assert 0.80 <= parts <= 0.97
    assert 0.80 <= scores <= 0.97
    assert 0.80 <= both <= 0.97


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
    np.testing.assert_array_equal(few.draw[[0, -1]], model.query_draws_.draw[[0, -1]])
    assert few.components.shape[0] == len(few.weights) == 8
    assert int(model.score_samples(Y[:2]).shape[0]) == 2
    again = FiniteSparseFA(14).restore(model.fitted_arrays())
    np.testing.assert_array_equal(again.component_bands(), model.component_bands())
    np.testing.assert_array_equal(again.score_samples(Y[:3]), model.score_samples(Y[:3]))


def test_components_that_a_few_rows_use_do_not_count_as_in_use():
    rng = np.random.default_rng(0)
    W = 3 * np.linalg.qr(rng.normal(size=(8, 3)))[0]
    Z = rng.random((300, 3)) < 0.5
    Y = (rng.normal(size=Z.shape) * Z) @ W.T + 0.3 * rng.normal(size=(300, 8))
    Y[::100] += 6 * rng.normal(size=(3, 8))  # three odd rows
    model = InfiniteSparseFA(10, n_chains=2, burn_in=100, n_draws=100, random_state=0).fit(Y)
    draws = model.posterior_
    counts = model.chain_levels_.counts
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
