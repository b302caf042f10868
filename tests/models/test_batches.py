"""Learning batch by batch against learning from all rows, and its log-likelihood by another way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import partial_fit
from tests.models.synthetic import drawn, matched_cosines, planted
from tests.references import em_adaptive_ppca

BOTH = pytest.mark.parametrize("kind", [AdaptivePPCA, AdaptiveFactorAnalysis])


def batches(X, size):
    return [X[start : start + size] for start in range(0, len(X), size)]


@pytest.mark.parametrize("settings", [{}, {"mean": "zero"}, {"inference": "hard"}])
def test_batches_lead_to_the_fit_of_all_rows(settings, seed):
    offset = 0.0 if settings.get("mean") == "zero" else 3.0
    data = planted(3_000, 12, 4, 2, seed=seed, noise=0.3, offset=offset)
    whole = AdaptivePPCA(4, 2, random_state=0, **settings).fit(data.X)
    model = AdaptivePPCA(4, 2, random_state=0, **settings)
    for batch in batches(data.X, 300):
        model.partial_fit(batch)
    assert matched_cosines(model.components_, data.W).min() > 0.998
    assert model.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.03)
    close(model.mean_, whole.mean_, atol=0.05)
    assert model.score(data.X) > whole.score(data.X) - 0.02


@pytest.mark.default_cases(1)
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
    close(np.sort(model.scale_), np.sort(whole.scale_), rtol=0.2)


@pytest.mark.default_cases(1)
@BOTH
def test_the_same_batch_again_and_again_is_em_on_it(kind, seed):
    X = planted(400, 8, 4, 2, seed=seed, noise=0.3).X
    best = kind(4, 2, random_state=0, init="pca", tol=1e-10).fit(X)
    model = kind(4, 2, random_state=0, init="pca", max_iter=2)
    with pytest.warns(UserWarning, match="max_iter"):
        model.partial_fit(X)
    for _ in range(300):
        model.partial_fit(X)
    assert model.score(X) == pytest.approx(best.score(X), abs=1e-3)


@BOTH
def test_the_curve_has_the_likelihood_of_each_batch_before_it_was_learned_from(kind, seed):
    X = planted(900, 6, 3, 2, seed=seed, noise=0.5, offset=2.0).X
    model = kind(3, 2, random_state=0, init="pca").fit(X[:300])
    for batch in batches(X[300:], 150):
        w = np.arange(len(batch)) % 3 + 0.5
        expected = w @ model.score_samples(batch)
        model.partial_fit(batch, sample_weight=w)
        assert model.log_likelihoods_[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.default_cases(1)
@BOTH
def test_another_fit_begins_anew_and_what_cannot_be_learned_from_is_refused(kind, seed):
    X = planted(300, 6, 3, 2, seed=seed, noise=0.5).X
    model = kind(3, 2, random_state=0, init="pca").partial_fit(X).partial_fit(2 * X)
    again = model.fit(X).components_
    equal(again, kind(3, 2, random_state=0, init="pca").fit(X).components_)
    with pytest.raises(ValueError, match="finite"):
        model.partial_fit(np.full((2, 6), np.nan))
    sampled = kind(3, 2, inference="gibbs")
    assert not hasattr(sampled, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit uses EM, but inference is 'gibb"):
        sampled.partial_fit(X)


@BOTH
def test_one_row_more_hardly_moves_a_fit_of_many(kind, seed):
    data = planted(2_001, 10, 4, 2, seed=seed, noise=0.3, offset=5.0)
    X = data.X + 7.0  # far from zero
    model = kind(4, 2, random_state=0, init="pca").fit(X[:-1])
    before, value = model.components_.copy(), model.score(X)
    model.partial_fit(X[-1:])
    assert model.score(X) == pytest.approx(value, abs=0.01)
    close(model.components_, before, atol=0.02 * np.abs(before).max())
    outlier = X[-1:] + 30.0 * before[:1]
    model.partial_fit(outlier)
    assert model.score(X) > value - 0.2


def test_a_batch_after_a_fit_counts_for_as_many_rows_as_it_has(seed):
    X = planted(320, 7, 4, 2, seed=seed, noise=0.4, offset=1.0).X
    old, new = X[:300], X[300:]
    model = AdaptivePPCA(4, 2, random_state=0, init="pca", tol=1e-13, max_iter=5000).fit(old)
    mean, noise = X.mean(axis=0), model.noise_variance_
    W, unit = model.components_.T, np.sqrt(noise)
    at = em_adaptive_ppca.of_paper(W, model.mean_, model.latent_variance_, noise, 2)
    _, supports, p = em_adaptive_ppca.e_step(X, at)  # old rows as the end of the fit has them
    r, (m, v) = p[:, :, 0] @ supports, em_adaptive_ppca.scores(X, at)
    h, second = unit * r * m, noise * (r * (m**2 + v)).mean(axis=0)
    A, s = (X - mean).T @ h / 320, h.mean(axis=0)
    U, _, Vt = np.linalg.svd(A, full_matrices=False)
    W = U @ Vt
    power = np.square(X - mean).sum() / len(X)
    noise = (power - 2.0 * np.sum(W * A) - s @ s + second.sum()) / X.shape[1]
    model.partial_fit(new)
    close(model.components_, W.T, atol=1e-5)
    close(model.mean_, mean - W @ s, atol=1e-5)
    assert model.noise_variance_ == pytest.approx(noise, rel=1e-5)
    close(model.latent_variance_, second.sum() / 2, rtol=1e-5)


@pytest.mark.default_cases(1)
@BOTH
@pytest.mark.parametrize("size", [40, 160])
def test_a_stream_sorted_by_class_loses_little_however_it_is_cut(kind, size, seed):
    # Three classes in planes of their own: the first batches show but one of them.
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    parts = [3.0 * rng.standard_normal((320, 2)) @ W[:, [0, k]].T for k in (1, 2, 3)]
    X = np.concatenate(parts) + 0.3 * rng.standard_normal((960, 9))
    best = kind(4, 2, random_state=0, init="pca").fit(X).score(X)
    model = kind(4, 2, random_state=0, init="pca")
    for batch in batches(X, size):
        model.partial_fit(batch)
    assert model.score(X) > best - 0.3


@BOTH
def test_a_restored_model_stays_where_it_is_but_for_what_a_batch_says(kind, seed):
    X = planted(3_000, 8, 4, 2, seed=seed, noise=0.3, offset=2.0).X
    arrays = kind(4, 2, random_state=0, init="pca").fit(X).fitted_arrays()
    arrays["components"] = -arrays["components"][::-1]
    for name in ("latent_variance", "explained_variance", "scale"):
        arrays[name] = arrays[name][::-1]
    model = kind(4, 2, random_state=0, init="pca").restore(arrays)
    model.n_iter_, model.log_likelihoods_, value = 0, np.empty(0), model.score(X)
    for batch in batches(X[:300], 100):
        model.partial_fit(batch)
    # Neither order nor signs are those a fit would give.
    cosines = np.einsum("kd,kd->k", model.components_, arrays["components"])
    assert (cosines > 0.99 * np.square(arrays["components"]).sum(axis=1)).all()
    assert model.score(X) > value - 0.01


def test_a_batch_that_fails_changes_nothing(seed, monkeypatch):
    X = planted(150, 6, 3, 1, seed=seed, noise=0.5).X
    model = AdaptivePPCA(3, 1, random_state=0, init="pca").fit(X)
    before = model.__dict__.copy()
    monkeypatch.setattr(partial_fit, "publish", None)
    with pytest.raises(TypeError):
        model.partial_fit(X)
    assert model.__dict__ == before
