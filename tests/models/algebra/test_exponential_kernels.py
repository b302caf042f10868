"""Exponentials and logarithms in vector instructions against those of NumPy."""

import numpy as np
import pytest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_are_exact_to_a_few_roundings(dtype):
    from appca.models.algebra.exponential_kernels import LANES, exponential, exponentials

    e = exponential(np.dtype(dtype))
    given = np.linspace(1.2 * float(e.least), 0.0, 40 * LANES).astype(dtype)
    found, power = given.copy(), np.empty(LANES, dtype)
    for start in range(0, len(found), LANES):
        exponentials(found[start : start + LANES], e, power, power.view(type(e.bias)))
    inside = given > e.least
    wanted = np.exp(given[inside].astype(np.float64))
    np.testing.assert_allclose(found[inside], wanted, rtol=4.0 * np.finfo(dtype).eps)
    assert found[-1] == 1.0
    assert not found[~inside].any()
    assert (~inside).sum() > LANES


def test_logarithms_are_exact_to_a_few_roundings(seed):
    from appca.models.algebra.exponential_kernels import LANES, logarithms

    rng = np.random.default_rng(seed)
    wide = np.exp(rng.uniform(-700.0, 700.0, 40 * LANES))
    near = 1.0 + np.r_[rng.uniform(-0.5, 1.5, 20 * LANES - 2), 0.0, 1e-15]
    for given in (wide, near, np.repeat([0.5, 1.0, 2.0, np.sqrt(2.0)], LANES)):
        found, power = given.copy(), np.empty(LANES)
        for start in range(0, len(given) - LANES + 1, LANES):
            part = found[start : start + LANES]
            logarithms(part, part.view(np.int64), power)
        np.testing.assert_allclose(found, np.log(given), rtol=1e-14, atol=3e-16)
