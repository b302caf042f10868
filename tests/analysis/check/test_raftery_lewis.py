"""Raftery-Lewis against published numbers, hand-computed ones, and simulated two-state chains."""

import numpy as np
import pytest
from scipy import stats

from appca.analysis import diagnostics as rl
from appca.analysis.diagnostics import Goal, raftery_lewis, required


@pytest.mark.parametrize(
    ("goal", "published"),
    [
        (Goal(), 3746),  # Raftery and Lewis (1992), q = 0.025, r = 0.005, s = 0.95
        (Goal(r=0.0125), 600),  # the same paper's coarser goal
        (Goal(q=0.5), 38415),  # 0.25 (1.959964 / 0.005)^2 = 38414.59
    ],
)
def test_least_numbers_of_draws_are_the_published_ones(goal, published):
    assert required(0.5, 0.5, 1, goal=goal).least == published


def test_burn_in_and_length_agree_with_a_calculation_by_hand():
    # alpha = 0.01, beta = 0.39: state 1 has probability 0.01 / 0.4 = 0.025.
    # burn-in: log(0.001 * 0.4 / 0.39) / log(0.6) = 6.8824 / 0.51083 = 13.47
    # length: 0.01 * 0.39 * 1.6 / 0.064 * (1.959964 / 0.005)^2 = 0.0975 * 153658.4 = 14981.7
    got = required(0.01, 0.39, n_draws=4000)
    assert (got.burn_in, got.total, got.least) == (14, 14982, 3746)
    assert got.dependence == pytest.approx(14996 / 3746)
    assert got.enough
    thinned = required(0.01, 0.39, n_draws=3000, thin=3)
    assert (thinned.burn_in, thinned.total, thinned.enough) == (42, 44946, False)


def test_independent_draws_need_the_least_number_and_no_burn_in():
    got = required(0.025, 0.975, n_draws=4000)
    assert (got.burn_in, got.total) == (0, 3746)
    assert got.dependence == pytest.approx(1.0)


def test_the_memory_statistic_agrees_with_a_count_by_hand():
    # triples of 0 0 1 1 0 1: 001, 011, 110, 101, one each.
    # (i, j) pairs among them: 00, 01, 11, 10 one each; (j, k): 01, 11, 10, 01; j: 0 twice, 1 twice.
    # expected n_ij. n_.jk / n_.j.: 001: 1 * 2 / 2, 011: 1 / 2, 110: 1 / 2, 101: 1 * 2 / 2
    # G2 = 2 (log 1 + log 2 + log 2 + log 1)
    assert rl.memory_statistic(np.array([0, 0, 1, 1, 0, 1])) == pytest.approx(4 * np.log(2))


def two_state_chain(rng, alpha, beta, n):
    """Simulate from stationarity: runs in each state are geometric."""
    runs = np.stack([rng.geometric(alpha, n), rng.geometric(beta, n)], axis=1)
    if rng.random() < alpha / (alpha + beta):
        runs = runs[:, ::-1]
        return np.repeat(np.tile([1, 0], n), runs.ravel())[:n].astype(bool)
    return np.repeat(np.tile([0, 1], n), runs.ravel())[:n].astype(bool)


def test_a_chain_of_the_required_length_reaches_the_goal(seed):
    rng = np.random.default_rng(seed)
    goal = Goal(q=0.25, r=0.02)
    alpha, beta = 0.05, 0.15
    n = required(alpha, beta, 10**6, goal=goal).total
    shares = [two_state_chain(rng, alpha, beta, n).mean() for _ in range(400)]
    within = np.mean(np.abs(np.array(shares) - goal.q) < goal.r)
    # 400 trials: standard error 0.011
    assert within == pytest.approx(goal.s, abs=0.055)


def test_rates_are_recovered_without_thinning_and_a_longer_memory_is_thinned(seed):
    rng = np.random.default_rng(seed)
    z = two_state_chain(rng, 0.05, 0.3, 40_000)
    got, expected = raftery_lewis((~z).astype(float)), required(0.3, 0.05, 40_000)
    assert got.thin == 1
    assert got.total == pytest.approx(expected.total, rel=0.15)
    held = np.repeat(two_state_chain(rng, 0.1, 0.3, 8000), 3)  # every state stays for three steps
    assert rl.thinning(held) > 1


def test_an_autoregressive_chain_asks_for_more_than_independent_draws(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=20_000)
    slow = np.empty_like(noise)
    slow[0] = noise[0]
    for i in range(1, len(noise)):
        slow[i] = 0.95 * slow[i - 1] + np.sqrt(1 - 0.95**2) * noise[i]
    independent, sticky = raftery_lewis(noise), raftery_lewis(slow)
    assert independent.dependence < 1.3
    assert sticky.dependence > 5
    assert independent.enough
    assert sticky.enough


def test_a_chain_stuck_in_a_step_does_not_get_away_with_nothing():
    got = raftery_lewis(np.repeat([0.0, 1.0], 500))
    assert got.total > 1000


def test_the_share_below_a_quantile_of_the_normal_is_judged_like_its_indicator():
    x = stats.norm.rvs(size=5000, random_state=1)
    below = x <= np.quantile(x, 0.025)
    changes = below[1:] != below[:-1]
    rates = (changes[below[:-1] == side].mean() for side in (False, True))
    assert raftery_lewis(x)[:3] == required(*map(float, rates), 5000)[:3]


@pytest.mark.parametrize("bad", [np.zeros(50), np.arange(5.0), np.zeros((20, 2))])
def test_what_cannot_be_judged_is_refused(bad):
    with pytest.raises(ValueError, match="one chain of at least 10 numbers"):
        raftery_lewis(bad)
