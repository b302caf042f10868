"""Exponentials and logarithms in vector instructions against those of NumPy."""

import numpy as np


def test_exponentials_are_exact_to_a_few_roundings():
    from appca.models.numeric_kernels import LANES, LEAST, exponentials

    given = np.linspace(1.2 * LEAST, 0.0, 40 * LANES)
    found, power = given.copy(), np.empty(LANES)
    for start in range(0, len(found), LANES):
        exponentials(found[start : start + LANES], power, power.view(np.int64))
    inside = given > LEAST
    np.testing.assert_allclose(found[inside], np.exp(given[inside]), rtol=1e-15)
    assert found[-1] == 1.0
    assert not found[~inside].any()
    assert (~inside).sum() > LANES


def test_logarithms_are_exact_to_a_few_roundings(seed):
    from appca.models.numeric_kernels import LANES, logarithms

    rng = np.random.default_rng(seed)
    wide = np.exp(rng.uniform(-700.0, 700.0, 40 * LANES))
    near = 1.0 + np.r_[rng.uniform(-0.5, 1.5, 20 * LANES - 2), 0.0, 1e-15]
    for given in (wide, near, np.repeat([0.5, 1.0, 2.0, np.sqrt(2.0)], LANES)):
        found, power = given.copy(), np.empty(LANES)
        for start in range(0, len(given) - LANES + 1, LANES):
            part = found[start : start + LANES]
            logarithms(part, part.view(np.int64), power)
        np.testing.assert_allclose(found, np.log(given), rtol=1e-14, atol=3e-16)
