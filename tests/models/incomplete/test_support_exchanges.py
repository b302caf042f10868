"""Sums over a support and its exchanges, each support weighed by a dense solve of its own."""

import itertools
import math

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models import gaps
from tests.models.synthetic import planted


def problem(seed, n, K, shared=False):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((1 if shared else n, K, 2 * K))
    Lam = np.eye(K) + 0.5 * Y @ np.swapaxes(Y, 1, 2) / K
    i, j = np.triu_indices(K)
    return Lam, Lam[:, i, j], 3.0 * rng.standard_normal((n, K))


def log_weight(Lam, c, S):
    Lam, c = Lam[np.ix_(S, S)], c[list(S)]
    return -0.5 * np.linalg.slogdet(Lam)[1] + 0.5 * c @ np.linalg.solve(Lam, c)


def neighbours(S, K):
    yield S
    for i, j in itertools.product(range(len(S)), set(range(K)).difference(S)):
        yield tuple(sorted((*S[:i], *S[i + 1 :], j)))


def by_hand(Lam, c, supports):
    K, weights = len(c), np.array([log_weight(Lam, c, S) for S in supports])
    p = np.exp(weights - weights.max())
    total = weights.max() + math.log(p.sum())
    inclusion, H, second = np.zeros(K), np.zeros(K), np.zeros((K, K))
    for S, q in zip(supports, p / p.sum(), strict=True):
        on = list(S)
        C = np.linalg.inv(Lam[np.ix_(on, on)])
        v = C @ c[on]
        inclusion[on] += q
        H[on] += q * v
        second[np.ix_(on, on)] += q * (C + np.outer(v, v))
    return total, inclusion, H, second[np.triu_indices(K)]


@pytest.mark.parametrize(("K", "L"), [(7, 3), (6, 1), (6, 5), (9, 4)])
@pytest.mark.parametrize("shared", [False, True])
def test_sums_over_exchanges_equal_dense_solves_of_each(K, L, shared, seed):
    Lam, pairs, c = problem(seed, 12, K, shared)
    posterior = gaps.summed(pairs, c, L, None)
    for n in range(12):
        S = tuple(sorted(posterior.members[n]))
        supports = list(neighbours(S, K))
        assert len(set(supports)) == L * (K - L) + 1
        total, inclusion, H, second = by_hand(Lam[0 if shared else n], c[n], supports)
        best = max(supports, key=lambda T: log_weight(Lam[0 if shared else n], c[n], T))
        assert best == S  # no exchange is better
        assert posterior.log_sum[n] == pytest.approx(total, rel=1e-10)
        share = math.exp(log_weight(Lam[0 if shared else n], c[n], S) - total)
        assert posterior.probability[n] == pytest.approx(share)
        np.testing.assert_allclose(posterior.inclusion[n], inclusion, atol=1e-10)
        np.testing.assert_allclose(posterior.H[n], H, atol=1e-10)
        np.testing.assert_allclose(posterior.second[n], second, atol=1e-9)


def test_from_given_supports_the_sum_never_falls(seed):
    _, pairs, c = problem(seed, 200, 10)
    rng = np.random.default_rng(seed)
    start = np.argsort(rng.random((200, 10)), axis=1)[:, :4]
    Lam = gaps.unfolded(pairs, 10)
    before = gaps.exchanges(Lam, c, start).log_sum
    after = gaps.summed(pairs, c, 4, start)
    assert (after.log_sum >= before - 1e-12).all()
    assert (after.log_sum > before + 1e-3).any()


def test_parts_of_many_components_are_as_all_rows_at_once(seed, monkeypatch):
    _, pairs, c = problem(seed, 30, 8)
    whole = gaps.summed(pairs, c, 3, None)
    monkeypatch.setattr(gaps, "MOST_NUMBERS", 500)
    for part, of_all in zip(gaps.summed(pairs, c, 3, None), whole, strict=True):
        np.testing.assert_allclose(part, of_all, rtol=1e-12)


def test_the_likelihood_of_few_summed_supports_is_near_the_exact_one_and_below(seed, monkeypatch):
    data = planted(300, 24, 8, 3, seed=seed, noise=0.3)
    X = data.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    model = AdaptivePPCA(8, 3, random_state=0).fit(X)
    exact = model.score_samples(X)
    monkeypatch.setattr(gaps, "MOST_SETS", 1)
    told = model.describe(X)
    assert "exchanges" in told.method
    assert "lower bound" in told.method
    error = exact - told.log_likelihood
    assert (error >= -1e-9).all()
    assert error.mean() < 0.3
    again = AdaptivePPCA(8, 3, random_state=0).fit(X)
    assert "exchanges" in again.stop_reason_
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=0.05)
    curve = again.log_likelihoods_
    assert (np.diff(curve) > -1e-8 * abs(curve[-1])).all()
