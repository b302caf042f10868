"""Compiled kernels on disk, and exponentials and logarithms against those of NumPy."""

import importlib
import sys

import numpy as np
import pytest

SOURCE = """
from typing import NamedTuple

from appca.models.numeric_kernels import kernel


class {name}(NamedTuple):
    x: float


@kernel
def doubled(given):
    return {factor} * given.x
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def load(name, factor):
        source, path = SOURCE.format(name=name, factor=factor), tmp_path / "cached_kernels.py"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        importlib.invalidate_caches()
        sys.modules.pop("cached_kernels", None)
        return importlib.import_module("cached_kernels")

    yield load
    sys.modules.pop("cached_kernels", None)


def test_a_cache_that_names_a_class_of_an_earlier_version_is_no_obstacle(loaded):
    before = loaded("Before", 2.0)
    assert before.doubled(before.Before(3.0)) == 6.0
    after = loaded("Afterwards", 4.0)
    assert after.doubled(after.Afterwards(3.0)) == 12.0


def test_a_cache_of_the_same_version_is_used(loaded):
    once = loaded("Same", 2.0)
    once.doubled(once.Same(3.0))
    again = loaded("Same", 2.0)
    again.doubled(again.Same(3.0))
    assert sum(again.doubled.stats.cache_hits.values()) == 1


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
