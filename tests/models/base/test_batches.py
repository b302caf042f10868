"""Learning batch by batch against learning from all rows, and its log-likelihood by another way."""

import numpy as np
import pytest

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from tests.models.synthetic import drawn, matched_cosines, planted

BOTH = pytest.mark.parametrize("kind", [AdaptivePPCA, AdaptiveFactorAnalysis])


def batches(X, size):
    return [X[start : start + size] for start in range(0, len(X), size)]


@pytest.mark.parametrize("settings", [{}, {"mean": "zero"}, {"inference": "hard"}])
def test_batches_lead_to_the_fit_of_all_rows(settings, seed):
    offset = 0.0 if settings.get("mean") == "zero" else 3.0
    data = planted(6_000, 12, 4, 2, seed=seed, noise=0.3, offset=offset)
    whole = AdaptivePPCA(4, 2, random_state=0, **settings).fit(data.X)
    model = AdaptivePPCA(4, 2, random_state=0, **settings)
    for batch in batches(data.X, 300):
        model.partial_fit(batch)
    assert matched_cosines(model.components_, data.W).min() > 0.998
    assert model.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.03)
    np.testing.assert_allclose(model.mean_, whole.mean_, atol=0.05)
    assert model.score(data.X) > whole.score(data.X) - 0.02


@pytest.mark.parametrize("settings", [{}, {"mean": "zero"}, {"allocation": "best"}])
def test_batches_lead_factors_to_the_fit_of_all_rows(settings, seed):
    Y, W, _, mu = drawn(seed, 6_500, 12, 5, 2)
    X = Y - mu if settings.get("mean") == "zero" else Y
    whole = AdaptiveFactorAnalysis(5, 2, random_state=0, **settings).fit(X[:6_000])
    model = AdaptiveFactorAnalysis(5, 2, random_state=0, **settings)
    for batch in batches(X[:6_000], 500):
        model.partial_fit(batch)
    C = model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]
    assert matched_cosines(C, W / np.linalg.norm(W, axis=0)).min() > 0.99
    assert model.score(X[6_000:]) > whole.score(X[6_000:]) - 0.05
    np.testing.assert_allclose(np.sort(model.scale_), np.sort(whole.scale_), rtol=0.2)


@BOTH
def test_the_same_batch_again_and_again_is_em_on_it(kind, seed):
    X = planted(400, 8, 4, 2, seed=seed, noise=0.3).X
    best = kind(4, 2, random_state=0, tol=1e-10).fit(X)
    model = kind(4, 2, random_state=0, max_iter=2)
    with pytest.warns(UserWarning, match="max_iter"):
        model.partial_fit(X)
    for _ in range(300):
        model.partial_fit(X)
    assert model.score(X) == pytest.approx(best.score(X), abs=1e-3)


@BOTH
def test_the_curve_has_the_likelihood_of_each_batch_before_it_was_learned_from(kind, seed):
    X = planted(900, 6, 3, 2, seed=seed, noise=0.5, offset=2.0).X
    model = kind(3, 2, random_state=0).fit(X[:300])
    for batch in batches(X[300:], 150):
        w = np.arange(len(batch)) % 3 + 0.5
        expected = w @ model.score_samples(batch)
        model.partial_fit(batch, sample_weight=w)
        assert model.log_likelihoods_[-1] == pytest.approx(expected, rel=1e-9)


@BOTH
def test_another_fit_begins_anew_and_what_cannot_be_learned_from_is_refused(kind, seed):
    X = planted(300, 6, 3, 2, seed=seed, noise=0.5).X
    model = kind(3, 2, random_state=0).partial_fit(X).partial_fit(2 * X)
    again = model.fit(X).components_
    np.testing.assert_array_equal(again, kind(3, 2, random_state=0).fit(X).components_)
    with pytest.raises(ValueError, match="finite"):
        model.partial_fit(np.full((2, 6), np.nan))
    with pytest.raises(AttributeError, match="partial_fit"):
        kind(3, 2, inference="gibbs").partial_fit(X)
