"""Learning batch by batch against learning from all rows, and its log-likelihood by another way."""

import numpy as np
import pytest

from appca import AdaptivePPCA
from tests.models.synthetic import matched_cosines, planted


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


def test_the_same_batch_again_and_again_is_em_on_it(seed):
    X = planted(400, 8, 4, 2, seed=seed, noise=0.3).X
    best = AdaptivePPCA(4, 2, random_state=0, tol=1e-10).fit(X)
    model = AdaptivePPCA(4, 2, random_state=0, max_iter=2)
    with pytest.warns(UserWarning, match="max_iter"):
        model.partial_fit(X)
    for _ in range(300):
        model.partial_fit(X)
    assert model.score(X) == pytest.approx(best.score(X), abs=1e-3)


def test_the_curve_has_the_likelihood_of_each_batch_before_it_was_learned_from(seed):
    X = planted(900, 6, 3, 2, seed=seed, noise=0.5, offset=2.0).X
    model = AdaptivePPCA(3, 2, random_state=0).fit(X[:300])
    for batch in batches(X[300:], 150):
        w = np.arange(len(batch)) % 3 + 0.5
        expected = w @ model.score_samples(batch)
        model.partial_fit(batch, sample_weight=w)
        assert model.log_likelihoods_[-1] == pytest.approx(expected, rel=1e-9)


def test_another_fit_begins_anew_and_what_cannot_be_learned_from_is_refused(seed):
    X = planted(300, 6, 3, 2, seed=seed, noise=0.5).X
    model = AdaptivePPCA(3, 2, random_state=0).partial_fit(X).partial_fit(2 * X)
    again = model.fit(X).components_
    np.testing.assert_array_equal(again, AdaptivePPCA(3, 2, random_state=0).fit(X).components_)
    with pytest.raises(ValueError, match="finite"):
        model.partial_fit(np.full((2, 6), np.nan))
    with pytest.raises(AttributeError, match="partial_fit"):
        AdaptivePPCA(3, 2, inference="gibbs").partial_fit(X)
