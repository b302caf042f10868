"""Compiled kernels on disk."""

import importlib
import sys

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
