"""Tests of the placement of images against a quadratic reference."""

import sys
from types import ModuleType

import numpy as np
import pytest

from appca.canvas import image_placement
from appca.canvas.image_placement import SPACING, STEPS, TRIED, room_orders, spread_order

room_compiled = image_placement.room_compiled  # which tests replace


@pytest.fixture(autouse=True, params=["compiled", "plain"])
def either(request, monkeypatch):
    """Let all be compiled, or nothing."""
    compiled = request.param == "compiled"
    monkeypatch.setattr(image_placement, "LEAST_COMPILED", 0 if compiled else 10**9)
    monkeypatch.setattr(image_placement, "room_compiled", lambda: compiled)


def plain_order(x, y, most):
    """Each level in one loop over all pairs of points."""
    inside = np.flatnonzero((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)).tolist()
    order, levels, d = [], [], SPACING
    while len(levels) < STEPS and len(order) < len(inside):
        now = list(order)
        for j in range(min(len(x), TRIED * (int(1 / d) + 1) ** 2)):
            near = (max(abs(x[j] / d - x[o] / d), abs(y[j] / d - y[o] / d)) < 1 for o in now)
            if j in inside and j not in now and not any(near):
                now.append(j)
        if len(now) > most:
            break
        order, d = now, d / 2**0.25
        levels.append(len(order))
    return order + [j for j in range(len(x)) if j not in order], levels


def one_panel(x, y, most):
    order, levels = room_orders(x, y, np.array([0, len(x)]), most)
    return order.tolist(), [level for level in levels[0].tolist() if level >= 0]


@pytest.mark.parametrize("dtype", [np.float32, float])
@pytest.mark.parametrize("most", [9, 1000])
def test_room_order_is_that_of_the_plain_reference(most, dtype):
    x, y = np.random.default_rng(1).normal(0.5, 0.3, (2, 100)).astype(dtype)  # some lie outside
    x[:40], y[:40] = np.round(x[:40], 1), 0.5  # many at one place, and exactly a step apart
    assert one_panel(x, y, most) == plain_order(x.astype(float), y.astype(float), most)
    x = np.array([0.5, np.nan, 2.0, 0.5])
    order, levels = one_panel(x, np.full(4, 0.5), 4)
    assert (sorted(order), order[0]) == ([0, 1, 2, 3], 0), "never listed, and never lost"
    assert max(levels) == 1  # the fourth is at the place of the first


def test_the_listed_keep_their_distance_at_each_level():
    x, y = np.random.default_rng(3).random((2, 3000))
    order, levels = one_panel(x, y, 3000)
    for k, count in enumerate(levels[:20]):
        chosen = np.stack([x, y])[:, order[:count]]
        apart = np.abs(chosen[:, :, None] - chosen[:, None]).max(axis=0) + np.eye(count)
        assert apart.min() >= SPACING / 2 ** (k / 4) * (1 - 1e-12)
    assert levels[8] > 0.5 / (SPACING / 4) ** 2  # and few more would fit


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 610, 1797, 100_000])
def test_the_first_rows_lie_evenly_over_the_file(n):
    order = spread_order(n)
    assert np.array_equal(np.sort(order), np.arange(n))
    for first in (5, 64, 1000):
        if first < n:  # steps of the golden section leave no gap of more than 1 + 1/0.618 shares
            gaps = np.diff(np.append(np.sort(order[:first]).astype(int), n))
            assert gaps.max() <= 2.7 * n / first


def test_a_module_that_another_thread_is_importing_counts_as_not_compiled(monkeypatch):
    name = "appca.canvas.scene_kernels"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert not room_compiled()
