"""Rows with missing entries, against the page and against loops over rows and supports."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from appca import PPCA, AdaptivePPCA
from appca.models import em, gaps, stiefel
from appca.models.gaps import split_incomplete
from appca.models.stiefel import polar
from tests.models.synthetic import planted
from tests.references import em_incomplete


def planted_gaps(seed, n_rows=300, n_features=8, n_components=5, n_active=2, share=0.2):
    """Rows of the model, the same with missing entries, and their components."""
    shape, how = (n_rows, n_features, n_components, n_active), {"noise": 0.3, "scales": 2.0}
    data = planted(*shape, seed=seed, offset=3.0, **how)
    hidden = np.random.default_rng([seed, 1]).random(data.X.shape) < share
    return data.X, np.where(hidden, np.nan, data.X), data.W


def test_the_fit_ends_where_the_observed_likelihood_is_stationary(seed):
    _, X, _ = planted_gaps(seed, n_rows=80, n_features=5, n_components=3, n_active=1)
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
        return sum(em_incomplete.row_posterior(row, *at, 1)[0] for row in X)

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
        close(W.T @ W, np.eye(2), atol=1e-10)
        covariance = (W * model.latent_variance_) @ W.T + model.noise_variance_ * np.eye(6)
        close(covariance, C, atol=0.05)
        close(model.mean_, mean, atol=0.05)
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
    X, incomplete, W = planted_gaps(seed, n_rows=1000, n_features=20)
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
    _, X, _ = planted_gaps(6, n_rows=100)
    model = AdaptivePPCA(3, 3).fit(X)
    assert np.ptp(model.latent_variance_) == 0.0
    fixed = AdaptivePPCA(3, 3, latent_variance=2.0).fit(X)
    equal(fixed.latent_variance_, 2.0)
    assert fixed.score(X) <= model.score(X) <= PPCA(3).fit(X).score(X) + 1e-6


def log_weight(Lam, c, S):
    Lam, c = Lam[np.ix_(S, S)], c[list(S)]
    return -0.5 * np.linalg.slogdet(Lam)[1] + 0.5 * c @ np.linalg.solve(Lam, c)


def by_hand(Lam, c, supports):
    """Log sum, inclusion, E[s], E[s s'], best support and its f, by dense solves of each."""
    K, weights = len(c), np.array([log_weight(Lam, c, S) for S in supports])
    total = logsumexp(weights)
    inclusion, H, second = np.zeros(K), np.zeros(K), np.zeros((K, K))
    for S, q in zip(supports, np.exp(weights - total), strict=True):
        on = list(S)
        C = np.linalg.inv(Lam[np.ix_(on, on)])
        v = C @ c[on]
        inclusion[on] += q
        H[on] += q * v
        second[np.ix_(on, on)] += q * (C + np.outer(v, v))
    best = supports[weights.argmax()], weights.max()
    return total, inclusion, H, second[np.triu_indices(K)], best


def compare(found, Lam, c, supports_of):
    """Hold sums against loops over the supports that `supports_of` gives for each row."""
    for n in range(len(c)):
        own = Lam[0 if len(Lam) == 1 else n]
        total, *sums, (best, value) = by_hand(own, c[n], supports_of(found.best[n]))
        assert sorted(found.best[n]) == list(best)
        assert found.log_sum[n] == pytest.approx(total, rel=1e-10)
        assert found.value[n] == pytest.approx(value)
        for name, wanted in zip(("inclusion", "H", "second"), sums, strict=True):
            close(getattr(found, name)[n], wanted, rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("L", [1, 2, 3, 4, 5, 6])
def test_sums_over_supports_are_those_of_a_loop_over_them(L, same):
    n, K = 67, 6  # more rows than go through together
    rng = np.random.default_rng(14)
    B = rng.normal(size=(n, K, 6)) * 10.0 ** rng.uniform(-1, 2, size=(n, 1, 1))
    Lam, c = np.eye(K) + B @ np.swapaxes(B, 1, 2), 4.0 * rng.normal(size=(n, K))
    Lam = Lam[:1] if same else Lam
    pairs = Lam[:, *np.triu_indices(K)]
    found, sets = gaps.sum_supports(pairs, c, L), list(itertools.combinations(range(K), L))
    compare(found, Lam, c, lambda _members: sets)
    scores = gaps.support_scores(pairs, c, found.best)
    for row, members in enumerate(found.best):
        wanted = by_hand(Lam[0 if same else row], c[row], [tuple(members)])[2]
        close(scores[row], wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("latent", ["shared", "component", 1.5])
def test_a_step_around_missing_entries_is_that_of_the_reference(latent, mean, seed):
    rng, scales, sigma2 = np.random.default_rng(seed), np.linspace(1, 2, 4), 0.4
    Y = planted(150, 6, 4, 2, seed=seed, noise=0.6, scales=scales, offset=2.0).X
    W = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    mu = 2.0 + 0.1 * rng.standard_normal(6)
    tau2 = rng.uniform(0.5, 3.0, 4) if latent == "component" else np.full(4, 1.5)
    missing = rng.random(Y.shape) < 0.25
    missing[:70] = [False, True, True, False, False, False]  # these are looked at together
    missing[75] = True  # nothing of this one was observed
    Y[missing] = np.nan
    rows = split_incomplete(Y, np.full(6, 1.9))
    assert {block.same_pattern for block in rows.blocks} == {True, False}
    assert len(rows.complete)
    settings = em.EMSettings(4, 2, latent, mean == "learned", False, stiefel.polar, 1e-12)
    begun = em.SubspaceState(W, np.zeros(4), tau2, sigma2, mu - 1.9)
    value, new = gaps.IncompleteMap(rows, settings)(begun)
    wanted, at = em_incomplete.step(
        Y, W, mu, tau2, sigma2, 2, learn_mean=mean == "learned", latent=latent
    )
    assert value == pytest.approx(wanted, rel=1e-10)
    close(new.W, at[0], atol=1e-10)
    close(1.9 + new.offset, at[1], atol=1e-10)
    close(new.latent, at[2], rtol=1e-10)
    assert new.noise == pytest.approx(at[3], rel=1e-10)


def problem(seed, n, K, shared=False):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((1 if shared else n, K, 2 * K))
    Lam = np.eye(K) + 0.5 * Y @ np.swapaxes(Y, 1, 2) / K
    return Lam, Lam[:, *np.triu_indices(K)], 3.0 * rng.standard_normal((n, K))


def neighbours(S, K):
    yield tuple(sorted(S))
    for k, j in itertools.product(S, set(range(K)).difference(S)):
        yield tuple(sorted({*S, j} - {k}))


@pytest.mark.parametrize(("K", "L"), [(7, 3), (6, 1), (6, 5), (9, 4)])
@pytest.mark.parametrize("shared", [False, True])
def test_sums_over_exchanges_equal_dense_solves_of_each(K, L, shared, seed):
    """Of which none is better than the support itself."""
    Lam, pairs, c = problem(seed, 12, K, shared)
    found = gaps.summed(pairs, c, L, None)
    compare(found, Lam, c, lambda members: list(neighbours(members, K)))
    assert len(set(neighbours(found.best[0], K))) == L * (K - L) + 1


def test_from_given_supports_the_sum_never_falls(seed):
    _, pairs, c = problem(seed, 200, 10)
    rng = np.random.default_rng(seed)
    start = np.argsort(rng.random((200, 10)), axis=1)[:, :4]
    Lam = gaps.unfolded(pairs, 10)
    before = gaps.exchanges(Lam, c, start).log_sum
    after = gaps.summed(pairs, c, 4, start)
    assert (after.log_sum >= before - 1e-12).all()
    assert (after.log_sum > before + 1e-3).any()


def test_the_likelihood_of_few_summed_supports_is_near_the_exact_one_and_below(seed, monkeypatch):
    _, X, _ = planted_gaps(seed, n_features=24, n_components=8, n_active=3, share=0.1)
    model = AdaptivePPCA(8, 3, init="pca", random_state=0).fit(X)
    exact = model.describe(X)
    monkeypatch.setattr(gaps, "MOST_SETS", 1)
    told = model.describe(X)
    assert "exchanges" in told.method
    assert "lower bound" in told.method
    error, sure = exact.log_likelihood - told.log_likelihood, exact.membership > 0.9
    assert (error >= -1e-9).all()
    assert error.mean() < 0.3
    assert error.max() > 0.1
    equal(told.active[sure], exact.active[sure])
    close(told.scores[sure], exact.scores[sure], atol=1e-6)
    again = AdaptivePPCA(8, 3, init="pca", random_state=0).fit(X)
    assert "exchanges of one component" in again.stop_reason_
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=0.05)
    curve = again.log_likelihoods_
    assert (np.diff(curve) > -1e-8 * abs(curve[-1])).all()
    assert curve[-1] <= model.log_likelihoods_[-1]
