"""Sums over all sets of factors, exact and estimated, against dense enumeration."""

import numpy as np
import pytest

from appca.models import fixed_size_supports, set_tree
from appca.models.supports import CollapsedModel
from tests.models.synthetic import drawn
from tests.references import em_adaptive_fa


def seen(Y, W, mu, sigma2):
    return (Y - mu) @ W / sigma2, CollapsedModel(W.T @ W / sigma2, 1.0)


def base(Y, mu, sigma2):
    """log N(y; mu, sigma2 I), what f(S) leaves out."""
    return -0.5 * (Y.shape[1] * np.log(2 * np.pi * sigma2) + np.square(Y - mu).sum(axis=1) / sigma2)


@pytest.mark.parametrize(
    ("K", "L", "D", "noise"),
    [
        *((4, 2, 6, 0.3), (5, 5, 5, 0.3), (6, 1, 3, 0.3), (7, 3, 4, 0.3), (7, 5, 9, 0.3)),
        (8, 5, 6, 1e-4),  # sums over what is left out would be off by nats
    ],
)
def test_sums_over_all_sets_are_exact(K, L, D, noise, seed):
    Y, W, _, mu = drawn(seed, 70, D, K, L, noise=noise)
    v, rng = noise**2, np.random.default_rng(seed)
    c, model = seen(Y, W, mu, v)
    sets = em_adaptive_fa.supports_of(K, L)
    f = em_adaptive_fa.log_joint(Y, W, mu, v, L) + np.log(len(sets)) - base(Y, mu, v)[:, None]
    p = em_adaptive_fa.support_probabilities(Y, W, mu, v, L)
    near = {"rtol": 1e-7, "atol": 1e-7 if noise < 0.1 else 1e-9}
    whole = set_tree.posterior(c, model, L)
    np.testing.assert_allclose(whole.log_sum, np.logaddexp.reduce(f, axis=1), rtol=1e-9)
    moments = em_adaptive_fa.moments(Y, W, mu, v, L, p)
    for sums, dense in zip(whole[1:], moments, strict=True):
        np.testing.assert_allclose(sums, dense, **near)
    counts = rng.integers(1, 4, 70)
    again = set_tree.posterior(np.repeat(c, counts, axis=0), model, L)
    weighted = set_tree.posterior(c, model, L, counts.astype(float))
    np.testing.assert_allclose(weighted.second, again.second, rtol=1e-9, atol=1e-9)
    best = set_tree.weighed(c, model, L)
    np.testing.assert_array_equal(best.members, sets[f.argmax(axis=1)])
    np.testing.assert_allclose(best.value, f.max(axis=1), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(best.log_sum, whole.log_sum, rtol=1e-12)
    many = set_tree.weighed(np.repeat(c[:1], 4000, axis=0), model, L, rng.random(4000)).drawn
    drawn_often = (many[:, None] == sets).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(drawn_often, p[0], atol=5 * 0.5 / np.sqrt(4000))


def test_blocks_of_rows_change_nothing(seed, monkeypatch):
    Y, W, _, mu = drawn(seed, 150, 6, 7, 4)
    c, model = seen(Y, W, mu, 0.09)
    for L in (3, 4):
        whole = set_tree.weighed(c, model, L)[:3] + set_tree.posterior(c, model, L)
        with monkeypatch.context() as patch:
            patch.setattr(set_tree, "LEAST_ROWS_A_THREAD", 7)
            parts = set_tree.weighed(c, model, L)[:3] + set_tree.posterior(c, model, L)
        for one, other in zip(whole[:-1], parts[:-1], strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(whole[-1], parts[-1], rtol=1e-10, atol=1e-12)  # a sum of rows


def test_posterior_means_are_those_of_the_joint_normal(seed):
    Y, W, _, mu = drawn(seed, 12, 6, 7, 3)
    c, model = seen(Y, W, mu, 0.09)
    rng = np.random.default_rng(seed)
    members = np.argsort(rng.random((12, 7)), axis=1)[:, :3]
    p = em_adaptive_fa.certain(members, 7)
    H = em_adaptive_fa.moments(Y, W, mu, 0.09, 3, p)[1]
    np.testing.assert_allclose(
        fixed_size_supports.means(c, members, model), H, rtol=1e-8, atol=1e-10
    )


def test_the_root_mean_square_is_over_members_only():
    H = np.array([[3.0, 0.0, 0.0], [4.0, 1.0, 0.0]])
    members = np.array([[0, 1], [0, 1]])
    found = fixed_size_supports.root_mean_square(H, members)
    np.testing.assert_allclose(found, [np.sqrt(12.5), np.sqrt(0.5), 1.0])


# One likely set a row; a thousand; dozens that no single change connects.
REGIMES = {"clear": (20, 0.1, 1.0, 0.35), "soft": (20, 1.0, 0.5, 0.1), "split": (8, 0.1, 1.0, 2.0)}


@pytest.fixture
def sampled(monkeypatch):
    """Let importance paths answer what enumeration could."""
    monkeypatch.setattr(fixed_size_supports, "MOST_SETS", 10)


@pytest.mark.parametrize("regime", REGIMES)
def test_estimated_sums_come_with_an_honest_error(regime, seed, sampled):
    D, noise, size, near = REGIMES[regime]
    Y, W, _, mu = drawn(seed, 60, D, 12, 6, noise=noise, size=size)
    c, model = seen(Y, W, mu, noise**2)
    exact = set_tree.posterior(c, model, 6)
    found = fixed_size_supports.summed(c, model, 6, fixed_size_supports.row_seeds(Y), 16)
    assert found.method.startswith("annealed importance sampling, 16 paths a row (its errors may")
    certain = fixed_size_supports.summed(c[:2], model, 6, fixed_size_supports.row_seeds(Y[:2]), 64)
    assert certain.method == "annealed importance sampling, 64 paths a row"
    off = found.log_sum - exact.log_sum
    assert np.sqrt(np.mean(off**2)) < near
    assert abs(off.sum()) < 6 * np.sqrt(np.square(found.error).sum()) + 0.1 * len(Y) * near
    assert np.mean(np.abs(off) < 3 * found.error + 0.05) > (0.75 if regime == "split" else 0.9)
    np.testing.assert_allclose(found.inclusion.sum(axis=1), 6.0, rtol=1e-9)
    if regime != "split":
        assert np.sqrt(np.mean((found.inclusion - exact.inclusion) ** 2)) < 0.04
    assert found.inclusion.min() >= 0.0
    assert found.inclusion.max() <= 1.0


@pytest.mark.parametrize("regime", ["clear", "soft", "split"])
def test_the_short_way_is_taken_where_pilots_agree_and_is_honest(
    regime, seed, sampled, monkeypatch
):
    D, noise, size, near = REGIMES[regime]
    Y, W, _, mu = drawn(seed, 60, D, 12, 6, noise=noise, size=size)
    c, model = seen(Y, W, mu, noise**2)
    exact = set_tree.posterior(c, model, 6)
    monkeypatch.setattr(fixed_size_supports, "MANY", 10)
    taken, annealed = [], fixed_size_supports._annealed

    def hear(rows, pilot, route, *others):
        taken.append((route is fixed_size_supports.SHORT, len(rows.c)))
        return annealed(rows, pilot, route, *others)

    monkeypatch.setattr(fixed_size_supports, "_annealed", hear)
    found = fixed_size_supports.summed(c, model, 6, fixed_size_supports.row_seeds(Y), 16)
    (first, short), (second, long) = taken
    assert (first, second, short + long) == (True, False, 60)
    assert long >= 10 if regime == "split" else long <= 5
    off = found.log_sum - exact.log_sum
    middle = np.median if regime == "split" else np.mean  # a missed mode weighs much in a mean
    assert np.sqrt(middle(off**2)) < near
    assert np.mean(np.abs(off) < 3 * found.error + 0.05) > (0.75 if regime == "split" else 0.9)


def test_rows_with_many_modes_state_errors_as_large_as_they_are(sampled, monkeypatch):
    """Little noise and fewer features than components: pilots see some of the modes only."""
    Y, W, _, mu = drawn(1, 200, 10, 14, 7, noise=0.1)
    c, model = seen(Y, W, mu, 0.01)
    exact = set_tree.posterior(c, model, 7).log_sum

    def ratio():
        found = fixed_size_supports.summed(c, model, 7, fixed_size_supports.row_seeds(Y), 16)
        return np.sqrt(np.mean(np.square((found.log_sum - exact) / found.error)))

    assert ratio() < 1.75
    monkeypatch.setattr(fixed_size_supports, "SPLIT", fixed_size_supports.LONG)
    assert ratio() > 2.5


def test_estimates_above_one_give_their_excess_to_those_with_room():
    p = np.array([[1.2, 0.5, 0.3], [1.0, 1.0, 0.0], [0.9, 0.9, 0.2]])
    wanted = [[1.0, 0.5 + 0.2 * 0.5 / 1.2, 0.3 + 0.2 * 0.7 / 1.2], *p[1:]]
    np.testing.assert_allclose(fixed_size_supports._capped(p), wanted)


def test_more_paths_bring_estimates_nearer(seed, sampled):
    Y, W, _, mu = drawn(seed, 60, 20, 10, 5, noise=1.0, size=0.5)
    c, model = seen(Y, W, mu, 1.0)
    exact = set_tree.posterior(c, model, 5).log_sum
    seeds = fixed_size_supports.row_seeds(Y)
    off = [
        np.mean((fixed_size_supports.summed(c, model, 5, seeds, n).log_sum - exact) ** 2)
        for n in (4, 64)
    ]
    assert off[1] < 0.3 * off[0]


def test_the_search_finds_nearly_every_best_set(seed, sampled):
    Y, W, _, mu = drawn(seed, 200, 20, 12, 6, noise=0.3)
    c, model = seen(Y, W, mu, 0.09)
    members, value = fixed_size_supports.best(c, model, 6, fixed_size_supports.row_seeds(Y))
    best, most = set_tree.weighed(c, model, 6)[:2]
    assert np.all(value <= most + 1e-8 * np.abs(most))
    assert np.mean(np.all(members == best, axis=1)) > 0.97


def test_estimates_are_functions_of_the_row(seed, sampled):
    Y, W, _, mu = drawn(seed, 70, 20, 10, 5, noise=0.3)
    c, model = seen(Y, W, mu, 0.09)
    some = np.array([69, 0, 31])
    whole = fixed_size_supports.summed(c, model, 5, fixed_size_supports.row_seeds(Y), 4)
    few = fixed_size_supports.summed(c[some], model, 5, fixed_size_supports.row_seeds(Y[some]), 4)
    np.testing.assert_array_equal(few.log_sum, whole.log_sum[some])
    np.testing.assert_array_equal(few.inclusion, whole.inclusion[some])


def test_sums_above_twelve_factors_are_exact(seed):
    """Where 16 paths are off by 12 times the error they state: little noise, few features."""
    Y, W, _, mu = drawn(seed, 4, 10, 16, 7, noise=0.1)
    c, model = seen(Y, W, mu, 0.01)
    found = fixed_size_supports.summed(c, model, 7, fixed_size_supports.row_seeds(Y), 16)
    assert found.method == "exact, by enumeration of 11440 sets"
    f = em_adaptive_fa.log_joint(Y, W, mu, 0.01, 7) + np.log(11440)
    log_sum = np.logaddexp.reduce(f, axis=1) - base(Y, mu, 0.01)
    np.testing.assert_allclose(found.log_sum, log_sum, rtol=1e-8)
