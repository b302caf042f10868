"""Circles by area, rings, bars in order; and rows of images."""

import numpy as np
import pytest

from appca.plots.components import circles, popularity_bars, popularity_map
from appca.plots.groups import GAP, STRIP, image_row

SHARED = np.array([[4.0, 1.0], [1.0, 2.0]])


def drawn(shared=SHARED, names=("a", "b"), expected=1.5):
    return circles(shared, names, np.array([3, 5]), expected)


def test_areas_are_proportional_to_what_is_shared():
    dots = drawn().data[0]
    areas = np.square(dots.marker.size)
    np.testing.assert_allclose(areas / areas.max(), SHARED.ravel() / 4)
    assert [(x, y) for x, y in zip(dots.x, dots.y, strict=True)] == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_rings_have_the_expected_size_on_the_same_scale():
    dots, rings = drawn().data
    assert (rings.marker.size[0] / dots.marker.size[0]) ** 2 == pytest.approx(1.5 / 4)


def test_hover_says_both_classes_and_the_number_and_names_stay_text():
    text = drawn(names=("<b>x</b>", "y")).data[0].text[1]
    assert "&lt;b&gt;x&lt;/b&gt; (3 rows) and y (5 rows)" in text
    assert "1.00 components shared, 25% of the most" in text


def test_a_pair_without_rows_is_left_blank():
    figure = drawn(np.array([[np.nan, 1.0], [1.0, 2.0]]))
    assert len(figure.data[0].x) == len(figure.data[1].x) == 3


def test_a_map_of_variance_names_its_last_column():
    shares = np.array([[0.5, 0.2, 0.3]])
    of = ("explains", "variance", "none")
    figure = popularity_map(shares, ["all"], ["component 1", "2 · loop", "no component"], of)
    assert figure.layout.xaxis.ticktext == ("1", "2", "none")
    assert figure.data[0].hovertemplate == "%{customdata}: explains %{text}<extra></extra>"


def test_bars_fall_and_remember_their_components():
    figure = popularity_bars(np.array([0.2, 0.9, 0.5]), ["one", "two", "<i>three</i>"], even=0.5)
    assert figure.data[0].y.tolist() == [0.9, 0.5, 0.2]
    assert [list(line) for line in figure.data[0].customdata] == [
        ["two", "90.0%"],
        ["&lt;i&gt;three&lt;/i&gt;", "50.0%"],
        ["one", "20.0%"],
    ]
    assert figure.layout.shapes[0].y0 == 0.5
    assert not popularity_bars(np.array([0.2]), ["one"]).layout.shapes


def test_the_map_bears_the_numbers_of_the_components():
    shares = np.array([[0.1, 0.8], [0.3, 1.0]])
    figure = popularity_map(shares, ["a", "b"], ["two", "seven"])
    np.testing.assert_array_equal(figure.data[0].z, shares)
    assert figure.data[0].customdata[0].tolist() == ["two", "seven"]
    assert list(figure.data[0].text[1]) == ["30.0% of class b", "100% of class b"]
    assert list(figure.layout.xaxis.ticktext) == ["1", "2"]


@pytest.mark.parametrize("colour", [False, True])
def test_images_stand_side_by_side_on_their_colours(colour):
    shape = (3, 60, 70, 3) if colour else (3, 60, 70)
    images = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    row = image_row(images, ["#ff0000", "#00ff00", "#0000ff"])
    assert row.shape == (60 + STRIP, 3 * 70 + 2 * GAP, 4)
    second = row[:60, 70 + GAP : 140 + GAP, :3]
    np.testing.assert_array_equal(second, images[1] if colour else np.stack([images[1]] * 3, -1))
    assert row[-1, 70 + GAP].tolist() == [0, 255, 0, 255]
    assert row[:, 70 : 70 + GAP, 3].max() == 0


def test_small_images_are_enlarged_by_a_whole_number():
    images = np.arange(128, dtype=np.uint8).reshape(2, 8, 8)
    row = image_row(images)
    assert row.shape == (56, 2 * 56 + GAP, 4)
    np.testing.assert_array_equal(row[::7, :56:7, 0], images[0])
