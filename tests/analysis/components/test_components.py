"""Components by other routes: rows counted by hand, drawings with known answers, pairs of rows."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from appca.analysis import components
from appca.analysis.components import common, extremes, name_of, own_name, sharing, steering
from appca.data.preprocessing import Preprocessing
from appca.studies import coil20
from tests.fitted_runs import fitted_run

ACTIVE = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=bool)
SCORES = np.where(ACTIVE, [[3, 1, 9], [-2, 9, 1], [0.5, 2, 9], [9, 3, 2], [-7, 9, 9]], 0.0)
RUN = fitted_run(ACTIVE, scores=SCORES)


def test_components_that_hardly_any_row_uses_are_named_by_their_numbers():
    active = np.zeros((2001, 3), dtype=bool)
    active[:, 0] = active[:2, 1] = active[:3, 2] = True
    assert components.rarely_used(fitted_run(active)) == [2]


@pytest.mark.parametrize(
    ("rows", "k", "n", "low", "high"),
    [
        (slice(None), 0, 2, [4, 1], [0, 2]),
        (slice(None), 1, 12, [0], [3, 2]),
        (slice(1), 0, 5, [], [0]),
        (slice(4, None), 2, 5, [], []),
    ],
)
def test_the_ends_hold_users_only_the_most_extreme_first_and_nobody_twice(rows, k, n, low, high):
    found = extremes(fitted_run(ACTIVE[rows], scores=SCORES[rows]), k, n)
    assert [end.tolist() for end in found] == [low, high]


def test_classes_come_by_their_share():
    codes = np.array([2, 0, 2, 2, 1, 0])
    assert common(["a", "b", "c"], codes, 2) == [("c", 0.5), ("a", 2 / 6)]
    assert common(["a", "b", "c"], codes[:1]) == [("c", 1.0)]


def test_a_name_keeps_the_number_that_subspaces_are_named_by():
    named = replace(RUN, names=("", "slant", ""))
    assert [name_of(named, k) for k in range(2)] == ["component 1", "2 · slant"]
    assert name_of(RUN, 2) == "component 3"
    assert (own_name(named, 1), own_name(RUN, 1)) == ("slant", "")


@pytest.mark.parametrize("options", [{}, {"divide": 4.0, "scale": "feature"}, {"pca": 3}])
def test_average_and_patterns_rebuild_what_the_fit_rebuilds(options, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6)) * np.arange(1, 7) + 5
    before = Preprocessing(**options).fit(X)
    W, mean = rng.normal(size=(3, before.n_features)), rng.normal(size=before.n_features)
    fitted = fitted_run(rng.random((60, 3)) < 0.6, components=W, mean=mean, preprocessing=before)
    z = rng.normal(size=3)
    found = steering(fitted)
    expected = before.inverse_transform((mean + z @ W)[None])[0]
    np.testing.assert_allclose(found.average + z @ found.patterns, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.reach, np.abs(fitted.scores).max(axis=0))


def test_of_many_columns_those_that_move_most_are_kept_in_their_order():
    W = np.array([[0.1, 3.0, 0.0, 2.0, 0.0]])
    found = steering(fitted_run(np.ones((20, 1), bool), components=W), 2)
    assert found.columns.tolist() == [1, 3]
    assert found.patterns.tolist() == [[3.0, 2.0]]


def line(degrees: float, size: int = 41) -> np.ndarray:
    """Draw a straight stroke leaning to the right by so many degrees."""
    image = np.zeros((size, size), np.uint8)
    for y in range(5, size - 5):
        x = size // 2 + np.tan(np.radians(degrees)) * (size // 2 - y)
        image[y, round(x)] = 255
    return image


def test_a_stroke_has_its_angle_its_lit_pixels_and_its_width():
    angles = [-30, -10, 0, 15, 35]
    strokes = np.stack([*map(line, angles), np.zeros((41, 41), np.uint8)])
    np.testing.assert_allclose(components.slant(strokes), [*angles, 0], atol=0.7)
    images = np.zeros((3, 8, 10), np.uint8)
    images[0, 3, [2, 6]] = 200
    images[1] = 255
    images[1, 0, 0] = 0
    images[2, 4, 4] = coil20.LIT - 1
    np.testing.assert_allclose(coil20.width(images), [0.5, 1.0, 0.0])


def test_an_effect_is_the_difference_in_pooled_standard_deviations(seed):
    inside = np.arange(4000) < 1500
    values = np.random.default_rng(seed).normal(3.0, 2.0, 4000) + 1.0 * inside
    n, mean, _, size, error = components.effect(values, inside)
    assert size == pytest.approx(0.5, abs=5 * error)
    assert (n, mean) == (1500, pytest.approx(values[:1500].mean()))
    assert components.effect(values, ~inside)[3] == pytest.approx(-size)
    assert np.isnan(components.effect(values, np.zeros(4000, bool))[3])


def some_rows(seed: int, n_rows: int = 90, n_components: int = 8, n_classes: int = 4):
    """Rows of unequal classes, some without one, that use any number of components."""
    rng = np.random.default_rng(seed)
    active = rng.random((n_rows, n_components)) < rng.random(n_components)
    codes = np.minimum(rng.geometric(0.4, n_rows) - 1, n_classes - 1)
    codes[:n_classes] = codes[n_classes : 2 * n_classes] = np.arange(n_classes)
    codes[-5:] = -1
    return active, codes


def of_all_pairs(active: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The same means, from what every pair of distinct rows shares."""
    shared = active.astype(float) @ active.T
    np.fill_diagonal(shared, np.nan)
    classes = [codes == c for c in range(n_classes)]
    return np.array([[np.nanmean(shared[a][:, b]) for b in classes] for a in classes])


def test_sharing_is_the_mean_over_all_distinct_pairs_of_rows(seed):
    active, codes = some_rows(seed)
    found, expected = sharing(active, codes, 4), of_all_pairs(active, codes, 4)
    np.testing.assert_allclose(found.shared, expected, rtol=1e-12)
    assert found.counts.tolist() == [int((codes == c).sum()) for c in range(4)]
    together = of_all_pairs(active, np.where(codes < 0, -1, 0), 1)[0, 0]
    assert found.overall == pytest.approx(together, rel=1e-12)
    by_class = sharing(active, codes, 5).uses
    for k, c in product(range(active.shape[1]), range(4)):
        assert by_class[c, k] == pytest.approx(np.mean(active[codes == c, k]))
    assert np.isnan(by_class[4]).all()


def test_a_class_of_one_row_has_no_pair_and_the_closest_pair_is_off_the_diagonal():
    active = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    found = sharing(active, np.array([0, 0, 1, 2]), 3)
    assert np.isnan(found.shared[1, 1])
    pairs = components.closest_pairs(found.shared)
    assert pairs[0] == (0, 1, 1.0)
    assert len(pairs) == 3
