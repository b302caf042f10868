"""Sums over subsets of any size, against enumeration."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import logsumexp

from appca.models import polynomials


def enumerated(a, rho):
    """Subsets (2^K, K), and log of rho_l / C(K, l) exp(sum of a) for each row (N, 2^K)."""
    K = a.shape[1]
    every = np.array(list(product([False, True], repeat=K)))
    size = every.sum(axis=1)
    return every, a @ every.T + np.log(rho[size]) - np.log([comb(K, n) for n in size])


@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0, 3000.0])
@pytest.mark.parametrize("K", [1, 2, 5, 9])
def test_sums_inclusion_and_sizes_equal_enumeration(K, spread, seed):
    rng = np.random.default_rng(seed)
    a, rho = spread * rng.standard_normal((70, K)), rng.dirichlet(np.ones(K + 1))
    every, weights = enumerated(a, rho)
    total = logsumexp(weights, axis=1)
    p = np.exp(weights - total[:, None])
    log_sum, r, sizes = polynomials.sized_inclusion(a, rho)
    np.testing.assert_allclose(log_sum, total, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(r, p @ every, atol=1e-10)
    by_size = np.eye(K + 1)[every.sum(axis=1)]
    np.testing.assert_allclose(sizes, p @ by_size, atol=1e-10)
    chosen, value = polynomials.best(a, rho)
    np.testing.assert_array_equal(chosen, every[weights.argmax(axis=1)])
    np.testing.assert_allclose(value, weights.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(polynomials.log_weight(a, chosen, rho), value, rtol=1e-12)


def test_a_size_that_is_nearly_certain_gives_the_sums_of_fixed_size(seed):
    a = 5.0 * np.random.default_rng(seed).standard_normal((60, 8))
    rho = np.full(9, 1e-30)
    rho[3] = 1.0
    log_e, r = polynomials.inclusion(a, 3)
    log_sum, r_sizes, sizes = polynomials.sized_inclusion(a, rho)
    np.testing.assert_allclose(log_sum, log_e - np.log(56), rtol=1e-9)
    np.testing.assert_allclose(r_sizes, r, atol=1e-8)
    np.testing.assert_allclose(sizes[:, 3], 1.0)


def test_many_components_neither_overflow_nor_vanish(seed):
    rng = np.random.default_rng(seed)
    rho = rng.dirichlet(np.ones(301))
    for a in (np.zeros((3, 300)), 1e4 * rng.standard_normal((3, 300))):
        log_sum, r, sizes = polynomials.sized_inclusion(a, np.maximum(rho, 1e-10))
        assert np.isfinite(log_sum).all()
        np.testing.assert_allclose(r.sum(axis=1), sizes @ np.arange(301), rtol=1e-9)
