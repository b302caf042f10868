"""The sharing grid against all pairs of rows, one by one; what it must not depend on."""

from itertools import product

import numpy as np
import pytest

from appca.analysis.components import (
    closest_pairs,
    least_shared,
    popularity,
    popularity_by_class,
    sharing,
)
from appca.data.sources import draw_indicators


def some_rows(seed: int, n_rows: int = 90, n_components: int = 8, n_classes: int = 4):
    """Rows of unequal classes, some without one, that use any number of components."""
    rng = np.random.default_rng(seed)
    active = rng.random((n_rows, n_components)) < rng.random(n_components)
    codes = np.minimum(rng.geometric(0.4, n_rows) - 1, n_classes - 1)
    codes[:n_classes] = codes[n_classes : 2 * n_classes] = np.arange(n_classes)
    codes[-5:] = -1
    return active, codes


def of_all_pairs(active: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The same means, pair by pair."""
    grid = np.empty((n_classes, n_classes))
    for a, b in product(range(n_classes), repeat=2):
        numbers = [
            len(set(np.flatnonzero(active[n])) & set(np.flatnonzero(active[m])))
            for n in np.flatnonzero(codes == a)
            for m in np.flatnonzero(codes == b)
            if n != m
        ]
        grid[a, b] = np.mean(numbers)
    return grid


def test_the_grid_is_the_mean_over_all_distinct_pairs(seed):
    active, codes = some_rows(seed)
    found = sharing(active, codes, 4)
    expected = of_all_pairs(active, codes, 4)
    np.testing.assert_allclose(found.shared, expected, rtol=1e-12)
    np.testing.assert_allclose(found.grid, expected / expected.max(), rtol=1e-12)
    assert found.counts.tolist() == [int((codes == c).sum()) for c in range(4)]


def test_overall_is_the_grid_of_one_class(seed):
    active, codes = some_rows(seed)
    everybody = np.where(codes < 0, -1, 0)
    together = of_all_pairs(active, everybody, 1)[0, 0]
    assert sharing(active, codes, 4).overall == pytest.approx(together, rel=1e-12)


def test_no_two_rows_share_less_than_two_l_minus_k(seed):
    Z = draw_indicators(np.random.default_rng(seed), "balanced", 200, 8, 6)
    shared = Z.astype(int) @ Z.T
    assert shared.min() == least_shared(8, 6) == 4
    assert least_shared(10, 3) == 0


def test_a_class_of_one_row_has_no_pair_of_its_own():
    active = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=bool)
    found = sharing(active, np.array([0, 1, 1]), 2)
    assert np.isnan(found.shared[0, 0])
    assert found.shared[0, 1] == 1.5
    assert found.grid[1, 1] == pytest.approx(1 / 1.5)


def test_the_closest_pair_is_the_largest_off_the_diagonal():
    active = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    found = sharing(active, np.array([0, 0, 1, 2]), 3)
    assert closest_pairs(found)[0] == (0, 1, 1.0)
    assert len(closest_pairs(found)) == 3


def test_popularity_is_the_share_of_rows_overall_and_in_each_class(seed):
    active, codes = some_rows(seed)
    by_class = popularity_by_class(active, codes, 4)
    for k in range(active.shape[1]):
        assert popularity(active)[k] == pytest.approx(sum(active[:, k]) / len(active))
        for c in range(4):
            of_class = [active[n, k] for n in range(len(active)) if codes[n] == c]
            assert by_class[c, k] == pytest.approx(sum(of_class) / len(of_class))
    assert np.isnan(popularity_by_class(active, codes, 5)[4]).all()
