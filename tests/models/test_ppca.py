import numpy as np
import pytest
from scipy.stats import multivariate_normal

from appca import PPCA

SHAPES = {"more rows": (80, 6), "more features": (12, 30)}


def correlated(shape, seed):
    rng = np.random.default_rng(seed)
    n, d = shape
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.standard_normal(d)


def dense_normal(model):
    W = model.components_.T
    C = W * model.latent_variance_ @ W.T + model.noise_variance_ * np.eye(len(W))
    return multivariate_normal(model.mean_, C)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("q", [1, 3, 5])
def test_the_log_likelihood_is_that_of_a_dense_normal(shape, q, seed):
    X = correlated(shape, seed)
    model = PPCA(q).fit(X)
    np.testing.assert_allclose(model.score_samples(X), dense_normal(model).logpdf(X), rtol=1e-8)
    assert model.score(X) == pytest.approx(dense_normal(model).logpdf(X).mean(), rel=1e-8)
    assert model.log_likelihoods_ == pytest.approx([model.score_samples(X).sum()])


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_no_nearby_parameters_have_a_higher_likelihood(shape, seed):
    X = correlated(shape, seed)
    model = PPCA(3).fit(X)
    best = model.score(X)
    rng = np.random.default_rng(seed)
    for scale in (1e-3, 1e-2, 1e-1):
        W = model.components_.T + scale * rng.standard_normal(model.components_.T.shape)
        W = np.linalg.qr(W)[0]
        for latent, noise, loadings in (
            (model.latent_variance_, model.noise_variance_, W),
            (model.latent_variance_ * (1 + scale), model.noise_variance_, model.components_.T),
            (model.latent_variance_ * (1 - scale), model.noise_variance_, model.components_.T),
            (model.latent_variance_, model.noise_variance_ * (1 + scale), model.components_.T),
            (model.latent_variance_, model.noise_variance_ * (1 - scale), model.components_.T),
        ):
            C = loadings * latent @ loadings.T + noise * np.eye(X.shape[1])
            assert multivariate_normal(model.mean_, C).logpdf(X).mean() < best


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_noise_averages_all_discarded_eigenvalues(shape, seed):
    X = correlated(shape, seed)
    model = PPCA(3).fit(X)
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert model.noise_variance_ == pytest.approx(values[3:].mean())
    np.testing.assert_allclose(
        model.latent_variance_ + model.noise_variance_, values[:3], rtol=1e-10
    )


def test_fewer_rows_than_features_recover_the_true_noise(seed):
    X = np.random.default_rng(seed).standard_normal((60, 400))
    assert 0.85 < PPCA(3).fit(X).noise_variance_ < 0.98  # scikit-learn's PCA says 6.5


def test_transform_is_the_posterior_mean_and_inverse_leads_back(seed):
    X = correlated((80, 6), seed)
    model = PPCA(3).fit(X)
    W = model.components_.T * np.sqrt(model.latent_variance_)
    M = W.T @ W + model.noise_variance_ * np.eye(3)
    x = np.linalg.solve(M, W.T @ (X - model.mean_).T).T  # Tipping & Bishop, latent variance 1
    np.testing.assert_allclose(model.transform(X), x * np.sqrt(model.latent_variance_), rtol=1e-8)
    scores = np.random.default_rng(seed).standard_normal((5, 3))
    data = model.inverse_transform(scores)
    np.testing.assert_allclose((data - model.mean_) @ model.components_.T, scores, atol=1e-12)


def with_gaps(seed):
    X = correlated((150, 6), seed)
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.2, np.nan, X)


def test_around_gaps_the_callback_hears_every_iteration(seed):
    X, heard = with_gaps(seed), []
    model = PPCA(2, callback=heard.append).fit(X)
    assert [p.iteration for p in heard] == list(range(1, model.n_iter_ + 1))
    assert [p.log_likelihood for p in heard] == list(model.log_likelihoods_)
    assert {(p.stage, p.max_iter) for p in heard} == {("fit", 500)}
    # by another route: rows' own densities, each in its observed entries
    C = model.components_.T * model.latent_variance_ @ model.components_
    C += model.noise_variance_ * np.eye(6)
    total = 0.0
    for row in X:
        seen = ~np.isnan(row)
        if seen.any():
            at = model.mean_[seen], C[np.ix_(seen, seen)]
            total += multivariate_normal(*at).logpdf(row[seen])
    assert heard[-1].log_likelihood == pytest.approx(total, rel=1e-8)
    unheard = PPCA(2).fit(X)
    np.testing.assert_array_equal(unheard.components_, model.components_)


@pytest.mark.parametrize("after", [1, 4])
def test_around_gaps_a_stop_keeps_what_there_is(after, seed):
    X, heard = with_gaps(seed), []

    def stop(progress):
        heard.append(progress.log_likelihood)
        if len(heard) == after:
            raise StopIteration

    model = PPCA(2, callback=stop).fit(X)
    assert model.stop_reason_ == "stopped by the callback"
    assert model.n_iter_ == len(heard) == after
    assert model.score_samples(X).sum() == pytest.approx(heard[-1], rel=1e-8)
    full = model.impute(X)
    np.testing.assert_array_equal(full[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(full).all()


def test_the_closed_form_has_no_iterations_to_hear_of(seed):
    heard = []
    model = PPCA(2, callback=heard.append).fit(correlated((80, 6), seed))
    assert heard == []
    assert model.stop_reason_ == "closed form"


def test_a_callback_that_is_none_is_refused():
    with pytest.raises(ValueError, match="callback must be None or a function of one argument"):
        PPCA(2, callback=3).fit(np.eye(6))


def test_every_component_is_active_in_every_row(seed):
    X = correlated((80, 6), seed)
    model = PPCA(3).fit(X)
    assert model.allocate(X).all()
    np.testing.assert_allclose(model.inclusion_probabilities(X), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.allocation_probability(X), 1.0, rtol=1e-12)


def test_all_directions_kept_leave_the_noise_at_its_floor(seed):
    X = correlated((80, 6), seed)
    model = PPCA(6).fit(X)
    assert model.noise_variance_ == pytest.approx(1e-8 * X.var(axis=0).mean(), rel=1e-6)


def test_whitened_scores_have_unit_mean_square(seed):
    X = correlated((80, 6), seed)
    scores = PPCA(3, whiten=True).fit_transform(X)
    np.testing.assert_allclose(np.mean(scores**2, axis=0), 1.0, rtol=1e-8)


def test_float32_data_give_the_float64_answer_in_float32(seed):
    X = correlated((80, 6), seed)
    small, large = PPCA(3).fit(X.astype(np.float32)), PPCA(3).fit(X)
    assert small.components_.dtype == small.transform(X.astype(np.float32)).dtype == np.float32
    assert small.score(X.astype(np.float32)) == pytest.approx(large.score(X), abs=1e-3)
