"""Ink, slant, width and effect sizes, on drawings whose answers are known."""

import numpy as np
import pytest

from appca.analysis import components


def line(degrees: float, size: int = 41) -> np.ndarray:
    """Draw a straight stroke leaning to the right by so many degrees."""
    image = np.zeros((size, size), np.uint8)
    for y in range(5, size - 5):
        x = size // 2 + np.tan(np.radians(degrees)) * (size // 2 - y)
        image[y, round(x)] = 255
    return image


@pytest.mark.parametrize("degrees", [-30, -10, 0, 15, 35])
def test_the_slant_of_a_stroke_is_its_angle(degrees):
    assert components.slant(line(degrees)[None])[0] == pytest.approx(degrees, abs=0.7)


def test_ink_counts_lit_pixels_and_an_empty_image_has_neither_ink_nor_slant():
    images = np.stack([line(0), np.zeros((41, 41), np.uint8)])
    np.testing.assert_allclose(components.ink(images), [31, 0])
    np.testing.assert_allclose(components.ink(images // 5), [31 / 5, 0])
    assert components.slant(images)[1] == 0


def test_the_width_runs_from_the_first_lit_column_to_the_last():
    images = np.zeros((3, 8, 10), np.uint8)
    images[0, 3, [2, 6]] = 200
    images[1, :, :] = 255
    images[1, 0, 0] = 0
    images[2, 4, 4] = components.LIT - 1
    np.testing.assert_allclose(components.width(images), [0.5, 1.0, 0.0])


def test_an_effect_is_the_difference_in_pooled_standard_deviations(seed):
    rng = np.random.default_rng(seed)
    inside = np.arange(4000) < 1500
    values = rng.normal(3.0, 2.0, 4000) + 1.0 * inside
    found = components.effect(values, inside)
    assert found.size == pytest.approx(0.5, abs=5 * found.error)
    assert (found.rows, found.mean) == (1500, pytest.approx(values[:1500].mean()))
    assert components.effect(values, ~inside).size == pytest.approx(-found.size)
    assert np.isnan(components.effect(values, np.zeros(4000, bool)).size)


def test_within_classes_takes_away_what_the_classes_explain():
    codes = np.array([0, 0, 1, 1, 3])
    values = np.array([1.0, 3.0, 10.0, 14.0, 5.0])
    np.testing.assert_allclose(components.within_classes(values, codes), [-1, 1, -2, 2, 0])
