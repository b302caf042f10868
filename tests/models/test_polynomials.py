"""Sums over subsets by both routes, tables and Fourier points, against enumeration and integers."""

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.special import logsumexp

from appca.models import polynomials
from tests import oracles

# Probabilities below this are left out on purpose (polynomials.LEAST_WEIGHT).
NOTHING = 1e-45
ROUTES = {"tables": 10**9, "points": 0}  # components up to which there are tables


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    """Each way, whatever K is."""
    monkeypatch.setattr(polynomials, "LARGEST_FOR_COLUMNS", ROUTES[request.param])
    monkeypatch.setattr(polynomials, "MOST_ENTRIES", 0)
    return request.param


@st.composite
def wide_problems(draw):
    """Logits over thousands of nats, with ties, at any K that has tables, and any L."""
    n_columns = draw(st.integers(1, polynomials.LARGEST_FOR_COLUMNS))
    values = st.one_of(
        st.floats(-5000, 5000, allow_subnormal=False), st.floats(-3, 3), st.integers(-2, 2)
    )
    logits = draw(arrays(np.float64, (3, n_columns), elements=values.map(float)))
    return logits, draw(st.integers(0, n_columns))


def log_error(logits):
    """What rounding the logits alone may do to a sum of them."""
    return 1e-12 * max(1.0, np.abs(logits).max())


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0, 4000.0])
@pytest.mark.parametrize("n_columns", range(1, 8))
def test_sums_and_inclusion_equal_enumeration(route, seed, n_columns, scale):
    a = np.random.default_rng(seed).standard_normal((6, n_columns)) * scale
    for n_active in range(n_columns + 1):
        log_e, r = polynomials.inclusion(a, n_active)
        expected_log_e, expected_r = oracles.inclusion(a, n_active)
        nothing = NOTHING if route == "tables" else log_error(a)
        close(r, expected_r, rtol=1e-12, atol=nothing)
        close(log_e, expected_log_e, rtol=0, atol=log_error(a))
        log_e = polynomials.inclusion(a, n_active, wanted=False)[0]
        close(log_e, expected_log_e, rtol=0, atol=log_error(a))


def test_small_probabilities_keep_their_digits_in_tables(seed):
    for step in (0.3, 1.0, 4.0, 15.0, 40.0):
        a = -step * np.arange(12.0) + np.random.default_rng(seed).uniform(0, 0.1, (2, 12))
        for n_active in (1, 5, 6, 11):
            _, r = polynomials.inclusion(a, n_active)
            close(r, oracles.inclusion(a, n_active)[1], rtol=1e-12, atol=NOTHING)


@pytest.mark.parametrize(("n_columns", "n_active"), [(40, 3), (100, 50), (60, 58), (1000, 480)])
def test_large_problems_equal_integer_arithmetic(seed, n_columns, n_active):
    a, columns, expected_log_e, expected_r = oracles.large_problem(seed, n_columns, n_active)
    log_e, r = polynomials.inclusion(a, n_active)
    close(r[0, columns], expected_r, rtol=0, atol=1e-12)
    assert log_e[0] == pytest.approx(expected_log_e, rel=1e-13)
    log_sum = polynomials.inclusion(a, n_active, wanted=False)[0]
    assert log_sum[0] == pytest.approx(expected_log_e, rel=1e-13)


@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0, 100.0, 5000.0])
@pytest.mark.parametrize(("n_columns", "n_active"), [(30, 1), (90, 45), (300, 120), (300, 295)])
def test_points_equal_tables(seed, n_columns, n_active, scale, monkeypatch):
    a = np.random.default_rng(seed).standard_normal((20, n_columns)) * scale
    a[10:] = np.round(a[10:])  # with ties
    log_e, r = polynomials.by_points(a, n_active)
    monkeypatch.setattr(polynomials, "LARGEST_FOR_COLUMNS", n_columns)
    expected_log_e, expected_r = polynomials.inclusion(a, n_active)
    close(r, expected_r, rtol=0, atol=log_error(a))
    close(log_e, expected_log_e, rtol=1e-13, atol=log_error(a))
    close(r.sum(axis=1), n_active, rtol=1e-12)


def test_few_points_are_enough_for_any_variance():
    size, turn, phase = polynomials.points(np.geomspace(1e-6, 1e4, 3200), 10**5, 5 * 10**4)
    assert 10 < len(turn) <= 40
    close(np.cos(phase), np.cos(5 * 10**4 * turn), atol=1e-9)
    assert (size % 2 == 1).all()


def test_what_is_no_number_is_not_hidden(route, seed):
    a = np.random.default_rng(seed).standard_normal((3, 30))
    a[1, 4] = np.nan
    log_e, r = polynomials.inclusion(a, 7)
    assert math.isnan(log_e.sum())
    assert np.isfinite(log_e[[0, 2]]).all()
    assert np.isfinite(r[[0, 2]]).all()


def test_a_row_comes_out_the_same_in_any_company(route, seed, monkeypatch):
    a = np.random.default_rng(seed).standard_normal((100, 9)) * np.logspace(-2, 3, 100)[:, None]
    log_e, r = polynomials.inclusion(a, 4)
    monkeypatch.setattr(polynomials, "TABLE_FLOATS", 2**9)
    monkeypatch.setattr(polynomials, "MOST_NUMBERS", 2**9)
    equal(polynomials.inclusion(a[::-1], 4)[1][::-1], r)
    alone = [polynomials.inclusion(row[None], 4) for row in a]
    close(np.concatenate([one[1] for one in alone]), r, rtol=1e-13)
    close(np.concatenate([one[0] for one in alone]), log_e, rtol=1e-14)


@given(wide_problems())
def test_top_is_the_heaviest_subset_and_ties_go_to_lower_columns(problem):
    a, n_active = problem
    active = polynomials.top(a, n_active)
    by_rank = np.argsort(-a, axis=1, kind="stable")[:, :n_active]
    expected = np.zeros(a.shape, dtype=bool)
    np.put_along_axis(expected, by_rank, True, axis=1)
    equal(active, expected)


# Draws -------------------------------------------------------------------------------------------


def subset_z(active, logits, n_active):
    """Largest |z| of the frequency of any subset against its probability."""
    _, p = oracles.subset_probabilities(logits, n_active)
    codes = active @ (1 << np.arange(len(logits)))
    names = [sum(1 << k for k in subset) for subset in oracles.subsets_of(len(logits), n_active)]
    frequency = np.array([(codes == name).mean() for name in names])
    return np.abs((frequency - p) / np.sqrt(p * (1 - p) / len(active))).max()


def successive(rng, logits, n_active):
    """Draw members one after the other without replacement: near, but another distribution."""
    noisy = logits + rng.gumbel(size=logits.shape)
    return polynomials.top(noisy, n_active)


@pytest.mark.parametrize("n_active", [1, 2, 4])
def test_draws_have_the_frequencies_of_every_subset(route, seed, n_active):
    rng = np.random.default_rng(seed)
    logits = np.array([0.0, 2.5, -1.0, 0.7, 0.7])
    a = np.tile(logits, (20_000, 1))
    active = polynomials.draw(rng, a, n_active)
    assert (active.sum(axis=1) == n_active).all()
    assert subset_z(active, logits, n_active) < 5
    if n_active == 2:
        assert subset_z(successive(rng, a, n_active), logits, n_active) > 10


def test_draws_on_large_problems_have_the_inclusion_frequencies(seed):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal(60)
    active = polynomials.draw(rng, np.tile(logits, (5_000, 1)), 25)
    r = polynomials.inclusion(logits[None], 25)[1][0]
    assert (active.sum(axis=1) == 25).all()
    error = np.sqrt(r * (1 - r) / len(active))
    unusual = np.abs(active.mean(axis=0) - r) > 5 * error + 5 / len(active)
    assert not unusual.any()


@given(wide_problems(), st.integers(0, 2**32))
def test_a_draw_always_has_the_right_size_and_never_an_impossible_member(problem, seed):
    a, n_active = problem
    active = polynomials.draw(np.random.default_rng(seed), a, n_active)
    _, r = polynomials.inclusion(a, n_active)
    assert (active.sum(axis=1) == n_active).all()
    assert (r[active] > 1e-12).all()
    assert (r[~active] < 1 - 1e-12).all()


@pytest.mark.parametrize("number", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_the_unit_interval_still_give_subsets_of_the_right_size(seed, number):
    stuck = SimpleNamespace(random=lambda shape: np.full(shape, number))
    sizes = np.geomspace(0.1, 3000, 200)[:, None]
    a = np.random.default_rng(seed).standard_normal((200, 11)) * sizes
    for n_active in (1, 5, 10):
        assert (polynomials.draw(stuck, a, n_active).sum(axis=1) == n_active).all()


# Subsets of any size ------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0, 3000.0])
@pytest.mark.parametrize("K", [1, 2, 5, 9])
def test_sums_inclusion_and_sizes_equal_enumeration(K, spread, seed):
    rng = np.random.default_rng(seed)
    a, rho = spread * rng.standard_normal((70, K)), rng.dirichlet(np.ones(K + 1))
    every = np.array(list(product([False, True], repeat=K)))
    counts = np.log([math.comb(K, n) for n in every.sum(axis=1)])
    weights = a @ every.T + np.log(rho[every.sum(axis=1)]) - counts
    total = logsumexp(weights, axis=1)
    p = np.exp(weights - total[:, None])
    log_sum, r, sizes = polynomials.over_supports(a, rho)
    close(log_sum, total, rtol=1e-12, atol=1e-11)
    close(r, p @ every, atol=1e-10)
    by_size = np.eye(K + 1)[every.sum(axis=1)]
    close(sizes, p @ by_size, atol=1e-10)
    chosen, value = polynomials.best(a, rho)
    equal(chosen, every[weights.argmax(axis=1)])
    close(value, weights.max(axis=1), rtol=1e-12)
    close(polynomials.log_weight(a, chosen, rho), value, rtol=1e-12)


def test_a_size_that_is_nearly_certain_gives_the_sums_of_fixed_size(seed):
    a = 5.0 * np.random.default_rng(seed).standard_normal((60, 8))
    rho = np.full(9, 1e-30)
    rho[3] = 1.0
    log_e, r = polynomials.inclusion(a, 3)
    log_sum, r_sizes, sizes = polynomials.over_supports(a, rho)
    close(log_sum, log_e - np.log(56), rtol=1e-9)
    close(r_sizes, r, atol=1e-8)
    close(sizes[:, 3], 1.0)


def test_many_components_neither_overflow_nor_vanish(seed):
    rng = np.random.default_rng(seed)
    rho = rng.dirichlet(np.ones(301))
    for a in (np.zeros((3, 300)), 1e4 * rng.standard_normal((3, 300))):
        log_sum, r, sizes = polynomials.over_supports(a, np.maximum(rho, 1e-10))
        assert np.isfinite(log_sum).all()
        close(r.sum(axis=1), sizes @ np.arange(301), rtol=1e-9)
