"""The E step by Poisson-binomial probabilities against enumeration, exact integers and tables."""

import math

import numpy as np
import pytest

from appca.models import em, polynomials
from appca.models.rows import Block, about, centre_of
from appca.models.stiefel import polar
from tests import oracles


def summed(a, n_active):
    """Sum of log e_L, inclusion (N, K), and its sum."""
    log_e, r = polynomials.by_points(a, n_active)
    return log_e.sum(), r, r.sum(axis=0)


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("n_columns", [2, 3, 5, 8])
def test_sums_and_inclusion_equal_enumeration(seed, n_columns, scale):
    a = np.random.default_rng(seed).standard_normal((35, n_columns)) * scale
    for n_active in range(1, n_columns):
        value, r, totals = summed(a, n_active)
        expected_value, expected_r = oracles.inclusion(a, n_active)
        size = 1e-12 * max(1.0, np.abs(a).max())
        np.testing.assert_allclose(r, expected_r, rtol=0, atol=size)
        assert value == pytest.approx(expected_value.sum(), rel=1e-13, abs=len(a) * size)
        np.testing.assert_allclose(totals, expected_r.sum(axis=0), atol=len(a) * size)


@pytest.mark.parametrize(("n_columns", "n_active"), [(40, 3), (100, 50), (60, 58), (1000, 480)])
def test_large_problems_equal_integer_arithmetic(seed, n_columns, n_active):
    a, columns, expected_value, expected_r = oracles.large_problem(seed, n_columns, n_active)
    value, r, _ = summed(a, n_active)
    np.testing.assert_allclose(r[0, columns], expected_r, rtol=0, atol=1e-12)
    assert value == pytest.approx(expected_value, rel=1e-13)


@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0, 100.0, 5000.0])
@pytest.mark.parametrize(("n_columns", "n_active"), [(30, 1), (90, 45), (300, 120), (700, 690)])
def test_points_equal_tables(seed, n_columns, n_active, scale):
    a = np.random.default_rng(seed).standard_normal((70, n_columns)) * scale
    a[40:] = np.round(a[40:])  # with ties
    value, r, _ = summed(a, n_active)
    expected_value, expected_r = polynomials.inclusion(a, n_active)
    size = 1e-12 * max(1.0, np.abs(a).max())
    np.testing.assert_allclose(r, expected_r, rtol=0, atol=size)
    assert value == pytest.approx(expected_value.sum(), rel=1e-13, abs=len(a) * size)
    np.testing.assert_allclose(r.sum(axis=1), n_active, rtol=1e-12)


def test_flat_logits_count_subsets():
    for n_columns, n_active in [(25, 12), (2000, 1000)]:
        value, r, _ = summed(np.full((3, n_columns), -7.5), n_active)
        expected = 3 * (math.log(math.comb(n_columns, n_active)) - 7.5 * n_active)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(r, n_active / n_columns, rtol=1e-12)


def test_a_row_comes_out_the_same_in_any_company(seed):
    a = np.random.default_rng(seed).standard_normal((50, 40)) * np.logspace(-2, 3, 50)[:, None]
    a[:, 0] = a.min()  # so that all calls have the same offset
    _, r, _ = summed(a, 15)
    _, turned, _ = summed(a[::-1], 15)
    np.testing.assert_array_equal(turned[::-1], r)
    kept = np.argmin(a.min(axis=1))
    _, alone, _ = summed(a[kept : kept + 1], 15)
    np.testing.assert_array_equal(alone[0], r[kept])


def test_what_is_no_number_is_not_hidden(seed):
    a = np.random.default_rng(seed).standard_normal((3, 30))
    a[1, 4] = np.nan
    log_e, _ = polynomials.by_points(a, 7)
    assert math.isnan(log_e.sum())
    assert np.isfinite(log_e[[0, 2]]).all()


def test_few_points_are_enough_for_any_variance():
    size, turn, phase = polynomials.points(np.geomspace(1e-6, 1e4, 3200), 10**5, 5 * 10**4)
    assert 10 < len(turn) <= 40
    np.testing.assert_allclose(np.cos(phase), np.cos(5 * 10**4 * turn), atol=1e-9)
    assert (size % 2 == 1).all()


@pytest.mark.parametrize("beta", [1.0, 0.01])
def test_a_block_of_rows_has_the_sums_of_the_step_in_numpy(seed, beta):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((130, 60)) @ rng.standard_normal((60, 60))
    origin = centre_of(X)
    rows = about(X, origin)
    settings = em.EMSettings(30, 15, "component", True, False, polar, em.floor_of(rows))
    points = settings._replace(compiled=True)
    W = np.linalg.qr(rng.standard_normal((60, 30)))[0]
    state = em.SubspaceState(W, rng.standard_normal(30), rng.uniform(5, 50, 30), 2.0)
    block = Block(slice(0, 130), X, origin)
    expected = em._expect_block(block, state, settings, beta)
    found = em._expect_block(block, state, points, beta)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(other).max())
