"""Rows with missing entries, against the reference and against loops over rows."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import em
from appca.models import gaps as missing_supports
from appca.models.stiefel import polar
from tests.references import em_incomplete, low_rank


def planted(seed, n_rows=300, n_features=8, n_components=5, n_active=2, share=0.2):
    """Rows of the model, the same with missing entries, and their components."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(n_features, n_components)))[0]
    Z = np.argsort(rng.random((n_rows, n_components)), axis=1) < n_active
    X = 3.0 + (2.0 * rng.normal(size=Z.shape) * Z) @ W.T
    X += 0.3 * rng.normal(size=X.shape)
    return X, np.where(rng.random(X.shape) < share, np.nan, X), W


class Mixture:
    """What a fitted model says of a row, by the reference."""

    def __init__(self, model, row):
        self.row, self.W, self.mean = row, model.components_.T, model.mean_
        self.at = self.W, self.mean, model.latent_variance_, model.noise_variance_
        self.supports, log_p_S = em_incomplete.log_joint(row, *self.at, model.n_active_)
        posterior = em_incomplete.row_posterior(row, *self.at, model.n_active_)
        self.log_density, self.inclusion, self.h, _ = posterior
        self.chances = np.exp(log_p_S - self.log_density)

    def imputed(self):
        return np.where(np.isnan(self.row), self.mean + self.W @ self.h, self.row)

    def scores(self):
        S, scores = self.supports[self.chances.argmax()], np.zeros(self.W.shape[1])
        scores[S] = low_rank.scores(*em_incomplete.observed(self.row, S, *self.at))[0]
        return scores


@pytest.fixture(scope="module", params=["shared", "component"])
def fitted(request):
    """Return a fit to incomplete data and its rows, among them an empty and a complete one."""
    _, X, _ = planted(1)
    X[:5, :3] = np.nan  # rows of one pattern
    X[7] = np.nan
    model = AdaptivePPCA(5, 2, latent_variance=request.param, max_iter=15, random_state=0).fit(X)
    return model, np.concatenate([X[:25], planted(2)[0][:3]])


def test_answers_are_those_of_the_gaussians_of_what_was_observed(fitted):
    model, rows = fitted
    told, full = model.describe(rows), model.impute(rows)
    assert told.method == "exact"
    for n, row in enumerate(rows):
        oracle = Mixture(model, row)
        assert told.log_likelihood[n] == pytest.approx(oracle.log_density, abs=1e-8)
        np.testing.assert_allclose(told.inclusion[n], oracle.inclusion, atol=1e-8)
        np.testing.assert_allclose(full[n], oracle.imputed(), atol=1e-8)
        assert told.membership[n] == pytest.approx(oracle.chances.max(), abs=1e-8)
        if not np.isnan(row).all():
            np.testing.assert_allclose(told.scores[n], oracle.scores(), atol=1e-7)
            left = row - model.mean_ - told.scores[n] @ model.components_
            assert told.error[n] == pytest.approx(np.nanmean(left**2), abs=1e-8)


def test_every_query_says_what_describe_says(fitted):
    model, rows = fitted
    told = model.describe(rows)
    for name, value in {
        "transform": told.scores,
        "allocate": told.active,
        "inclusion_probabilities": told.inclusion,
        "allocation_probability": told.membership,
        "score_samples": told.log_likelihood,
    }.items():
        np.testing.assert_array_equal(getattr(model, name)(rows), value)
    white = clone(model).set_params(whiten=True).fit(rows)
    np.testing.assert_allclose(
        white.transform(rows) * white.scale_, white.describe(rows).scores, atol=1e-12
    )
    used = white.allocate(rows)
    power = np.square(white.transform(rows)).sum(axis=0) / used.sum(axis=0)
    np.testing.assert_allclose(power, 1.0)


def test_a_row_without_any_value_gets_the_prior(fitted):
    model, _ = fitted
    told = model.describe(np.full((1, 8), np.nan))
    assert told.log_likelihood[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(told.inclusion, 2 / 5)
    np.testing.assert_allclose(told.scores, 0.0)
    np.testing.assert_allclose(model.impute(np.full((1, 8), np.nan)), model.mean_[None])


def test_rows_without_gaps_are_answered_as_if_there_were_no_others(fitted):
    model, rows = fitted
    whole = rows[-3:]
    np.testing.assert_array_equal(model.impute(whole), whole)
    mixed = model.describe(rows)
    last = mixed._fields.index("method")
    for alone, together in zip(model.describe(whole)[:last], mixed[:last], strict=True):
        np.testing.assert_allclose(together[-3:], alone, atol=1e-10)


def settings_of(K, L, **changes):
    usual = em.EMSettings(K, L, "shared", True, False, polar, 1e-8)
    return usual._replace(**changes)


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_observed_likelihood_never_falls(seed, mean, accelerate):
    _, X, _ = planted(seed, n_rows=120, share=0.4)
    model = AdaptivePPCA(5, 2, mean=mean, accelerate=accelerate, tol=0.0, max_iter=25)
    model.set_params(random_state=seed).fit(X)
    assert np.diff(model.log_likelihoods_).min() > -1e-7
    assert model.score_samples(X).sum() == pytest.approx(model.log_likelihoods_[-1], rel=1e-6)
    if mean != "learned":
        fixed = np.nanmean(X, axis=0) if mean == "sample" else np.zeros(8)
        np.testing.assert_allclose(model.mean_, fixed, atol=1e-12)


def test_the_fit_ends_where_the_observed_likelihood_is_stationary(seed):
    _, X, _ = planted(seed, n_rows=80, n_features=5, n_components=3, n_active=1)
    X = X[~np.isnan(X).all(axis=1)]
    model = AdaptivePPCA(3, 1, latent_variance="component", tol=0.0, max_iter=1500)
    model.set_params(random_state=0).fit(X)
    rng = np.random.default_rng(seed)
    W, mean = model.components_.T, model.mean_
    logs = np.log(np.append(model.latent_variance_, model.noise_variance_))
    G = rng.normal(size=W.shape)
    along = G - W @ (W.T @ G + G.T @ W) / 2.0  # tangent to the orthonormal matrices

    def value(t, dW=0.0, d_mean=0.0, d_logs=0.0):
        variances = np.exp(logs + t * d_logs)
        moved = polar(W + t * dW)
        at = moved, mean + t * d_mean, variances[:-1], variances[-1]
        return sum(logsumexp(em_incomplete.log_joint(row, *at, 1)[1]) for row in X)

    h = 1e-4
    for change in (
        {"dW": along},
        {"d_mean": rng.normal(size=5)},
        {"d_logs": np.array([0.0, 0.0, 0.0, 1.0])},
        {"d_logs": np.array([1.0, -1.0, 0.5, 0.0])},
    ):
        slope = (value(h, **change) - value(-h, **change)) / (2 * h)
        bend = (value(h, **change) - 2 * value(0.0) + value(-h, **change)) / h**2
        assert bend < -1.0, change  # the slope would be seen
        assert abs(slope / bend) < 2e-3, change


def textbook_ppca(X, q, passes):
    """EM of PPCA with missing data, a row at a time: W free, x ~ N(0, I)."""
    rng = np.random.default_rng(0)
    D = X.shape[1]
    W, mean, noise = rng.normal(size=(D, q)), np.nanmean(X, axis=0), 1.0
    for _ in range(passes):
        first, second, rows = [], [], []
        for row in X:
            o = ~np.isnan(row)
            inverse = np.linalg.inv(W[o].T @ W[o] / noise + np.eye(q))
            x = inverse @ W[o].T @ (row - mean)[o] / noise
            first.append(np.append(x, 1.0))
            full = np.zeros((q + 1, q + 1))
            full[:q, :q] = inverse
            second.append(full + np.outer(first[-1], first[-1]))
            rows.append(o)
        seen = np.array(rows)
        both, squares = np.empty((D, q + 1)), 0.0
        for d in range(D):
            n = np.flatnonzero(seen[:, d])
            M = sum(second[i] for i in n)
            b = sum(X[i, d] * first[i] for i in n)
            both[d] = np.linalg.solve(M, b)
            squares += sum(X[i, d] ** 2 for i in n) - 2 * both[d] @ b + both[d] @ M @ both[d]
        W, mean, noise = both[:, :q], both[:, q], squares / seen.sum()
    return W @ W.T + noise * np.eye(D), mean, noise


def test_ppca_reaches_what_textbook_em_reaches():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(70, 2)) @ (rng.normal(size=(2, 6)) * [[4.0], [2.0]])
    X += rng.normal(size=X.shape) + 2.0
    X[rng.random(X.shape) < 0.25] = np.nan
    C, mean, noise = textbook_ppca(X, 2, 250)
    again = AdaptivePPCA(2, 2, latent_variance="component", tol=1e-9, max_iter=2000)
    for model in (PPCA(2).fit(X), again.fit(X)):
        W = model.components_.T
        np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-10)
        covariance = (W * model.latent_variance_) @ W.T + model.noise_variance_ * np.eye(6)
        np.testing.assert_allclose(covariance, C, atol=0.05)
        np.testing.assert_allclose(model.mean_, mean, atol=0.05)
        assert model.noise_variance_ == pytest.approx(noise, rel=5e-3)
        seen = [~np.isnan(row) for row in X]
        wanted = sum(
            multivariate_normal(mean[o], C[np.ix_(o, o)]).logpdf(row[o])
            for row, o in zip(X, seen, strict=True)
            if o.any()
        )
        assert model.score_samples(X).sum() == pytest.approx(wanted, abs=2e-2)
        assert model.log_likelihoods_[-1] == pytest.approx(wanted, abs=2e-2)


def test_a_fifth_missing_the_planted_components_are_found(seed):
    X, incomplete, W = planted(seed, n_rows=1000, n_features=20)
    model = AdaptivePPCA(5, 2, random_state=seed).fit(incomplete)
    assert np.abs(model.components_ @ W).max(axis=0).min() > 0.99
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.05)
    hidden = np.isnan(incomplete)
    rivals = {
        "mean": np.where(hidden, np.nanmean(incomplete, axis=0), X),
        "PPCA with L": PPCA(2).fit(incomplete).impute(incomplete),
        "PPCA with K": PPCA(5).fit(incomplete).impute(incomplete),
    }
    mine = np.square(model.impute(incomplete) - X)[hidden].mean()
    for name, other in rivals.items():
        assert mine < np.square(other - X)[hidden].mean(), name


def test_at_l_equal_k_one_variance_is_shared():
    _, X, _ = planted(6, n_rows=100)
    model = AdaptivePPCA(3, 3).fit(X)
    assert np.ptp(model.latent_variance_) == 0.0
    fixed = AdaptivePPCA(3, 3, latent_variance=2.0).fit(X)
    np.testing.assert_array_equal(fixed.latent_variance_, 2.0)
    assert fixed.score(X) <= model.score(X) <= PPCA(3).fit(X).score(X) + 1e-6


def test_beyond_the_supports_that_are_summed_the_best_is_taken_and_that_is_said(monkeypatch):
    _, X, _ = planted(8, n_rows=40)
    exact = AdaptivePPCA(5, 2, random_state=0).fit(X)
    told = exact.describe(X)
    monkeypatch.setattr(missing_supports, "MOST_SETS", 9)
    bound = exact.describe(X)
    gaps = np.isnan(X).any(axis=1)
    assert "lower bound" in bound.method
    short = told.log_likelihood[gaps] - bound.log_likelihood[gaps]
    assert short.min() > -1e-9
    assert short.max() > 0.1
    sure = told.membership > 0.9
    np.testing.assert_array_equal(bound.active[sure], told.active[sure])
    np.testing.assert_allclose(bound.scores[sure], told.scores[sure], atol=1e-6)
    again = AdaptivePPCA(5, 2, random_state=0, tol=0.0, max_iter=15).fit(X)
    assert "exchanges of one component" in again.stop_reason_
    assert np.diff(again.log_likelihoods_).min() > -1e-7
    assert again.log_likelihoods_[-1] <= exact.log_likelihoods_[-1]


def test_single_precision_stays_and_agrees():
    _, X, _ = planted(9, n_rows=400)
    double = AdaptivePPCA(5, 2, random_state=0).fit(X)
    single = AdaptivePPCA(5, 2, random_state=0).fit(X.astype(np.float32))
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.impute(X.astype(np.float32)).dtype == np.float32
    assert single.score(X.astype(np.float32)) == pytest.approx(double.score(X), abs=1e-2)


@pytest.mark.parametrize("stage", ["initial imputation by PPCA", "screening 2", "fit"])
def test_a_callback_may_stop_in_every_stage(stage):
    _, X, _ = planted(10)
    seen = []

    def stop(progress):
        seen.append(progress.stage)
        if progress.stage.startswith(stage):
            raise StopIteration

    model = AdaptivePPCA(5, 2, random_state=0, callback=stop).fit(X)
    assert seen[-1].startswith(stage)
    assert model.stop_reason_ == "stopped by the callback"
    assert model.n_iter_ == 1
    assert np.isfinite(model.score(X))


def test_names_and_pipelines_are_kept():
    _, X, _ = planted(11)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)])
    pipe = make_pipeline(StandardScaler(), AdaptivePPCA(3, 1, random_state=0))
    out = pipe.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == [f"adaptiveppca{k}" for k in range(3)]
    assert len(out) == len(X)


def test_what_a_fit_cannot_take_is_refused_in_a_sentence():
    _, X, _ = planted(12)
    empty = X.copy()
    empty[:, 2] = np.nan
    infinite = X.copy()
    infinite[3, 3] = np.inf
    for model, data, words in (
        (AdaptivePPCA(2, 1), empty, "1 of 8 are missing in all"),
        (PPCA(2), infinite, "1 of its 300 rows hold inf"),
        (AdaptivePPCA(2, 1, inference="gibbs"), X, "need inference='em'; got 'gibbs'"),
        (AdaptivePPCA(2, 1, inference="hard"), X, "need inference='em'; got 'hard'"),
        (AdaptivePPCA(2, 1), np.where(np.isnan(X), X, 1.0), "must vary"),
        (AdaptiveFactorAnalysis(2, 1), X, "hold NaN or inf"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(data)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("L", [1, 2, 3, 4, 5, 6])
def test_sums_over_supports_are_those_of_a_loop_over_them(L, same):
    n, K = 67, 6  # more rows than go through together
    rng = np.random.default_rng(14)
    B = rng.normal(size=(n, K, 6)) * 10.0 ** rng.uniform(-1, 2, size=(n, 1, 1))
    A, c, upper = B @ np.swapaxes(B, 1, 2), 4.0 * rng.normal(size=(n, K)), np.triu_indices(K)
    A = A[:1] if same else A
    seen = missing_supports.IncompleteProjections((np.eye(K) + A)[:, *upper], c)
    found = missing_supports.support_posterior(seen, L)
    scores = missing_supports.support_scores(seen, found.members)
    sets = [list(S) for S in itertools.combinations(range(K), L)]
    for row in range(n):
        f, moments = [], []
        for S in sets:
            V = np.linalg.inv(np.eye(L) + A[0 if same else row][np.ix_(S, S)])
            v, h, second = V @ c[row, S], np.zeros(K), np.zeros((K, K))
            h[S], second[np.ix_(S, S)] = v, V + np.outer(v, v)
            f.append(0.5 * (c[row, S] @ v + np.linalg.slogdet(V)[1]))
            moments.append((np.isin(range(K), S), h, second))
        p = np.exp(f - logsumexp(f))
        inclusion, h, second = (np.tensordot(p, part, 1) for part in zip(*moments, strict=True))
        close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-10)
        close(found.log_sum[row], logsumexp(f))
        close(found.inclusion[row], inclusion)
        close(found.H[row], h)
        close(found.second[row], second[upper])
        close(found.probability[row], p.max())
        close(scores[row], moments[p.argmax()][1])
        assert list(found.members[row]) == sets[p.argmax()]
