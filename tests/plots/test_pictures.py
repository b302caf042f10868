"""Pictures of components, groups and runs: colours mean signs, and nothing is out of its place."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from appca.plots.components import (
    NEGATIVE,
    POSITIVE,
    ZERO,
    component_figure,
    component_image,
    component_sheet,
    data_uri,
    diverging,
    montage,
    painted,
    ranked_loadings,
)
from appca.plots.data import HEIGHT, WIDTH, in_the_dark, thumbnail
from appca.plots.groups import GAP, STRIP, image_row
from appca.plots.style import CATEGORICAL
from tests.fitted_runs import fitted_run

RED, BLUE, WHITE = (list(colour) for colour in (POSITIVE, NEGATIVE, ZERO))


def test_zero_is_white_and_the_ends_are_blue_and_red():
    colours = diverging(np.array([-2.0, 0.0, 2.0, 1.0]))
    assert colours[:3].tolist() == [BLUE, WHITE, RED]
    assert colours[3, 0] > colours[3, 2]  # half way: reddish
    rgba = painted(np.ones(3), np.array([1.0, -1.0, 0.0]), np.ones(3, bool), 1.0)
    assert rgba[0, 0] > rgba[0, 2]
    assert rgba[1, 2] > rgba[1, 0]
    assert len(set(rgba[2, :3].tolist())) == 1


def test_pixels_of_a_component_keep_their_place_and_channels_are_averaged():
    component = np.zeros(12)
    component[5] = -1.0  # row 1, column 1 of 3 x 4
    image = component_image(component, (3, 4))
    assert image[1, 1].tolist() == BLUE
    assert (np.delete(image.reshape(-1, 3), 5, axis=0) == ZERO).all()
    component = np.zeros((2, 2, 3))
    component[0, 0], component[1, 1] = [1, 1, 1], [1, 1, -2]
    image = component_image(component.ravel(), (2, 2, 3))
    assert (image[0, 0].tolist(), image[1, 1].tolist()) == (RED, WHITE)


def test_loadings_come_by_magnitude_with_their_names():
    loadings = ranked_loadings(np.array([0.1, -0.8, 0.4]), ("a", "b", "c"), n=2)
    assert [(item.name, item.value) for item in loadings] == [("b", -0.8), ("c", 0.4)]
    assert [item.share for item in loadings] == [1.0, pytest.approx(0.5, abs=1e-12)]
    assert ranked_loadings(np.array([0.0, 1.0]), None)[0].name == "feature 2"


def test_a_montage_reads_like_a_page():
    images = np.arange(5, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 3), np.uint8)
    sheet = montage(images, columns=3)
    assert sheet.shape == (5, 11)
    assert sheet[0, [0, 4, 8]].tolist() == [0, 1, 2]
    assert sheet[3, [0, 4]].tolist() == [3, 4]
    assert (sheet[2] == 255).all()
    assert (sheet[3:, 8:] == 255).all()


def test_a_data_uri_decodes_to_the_same_pixels():
    image = np.random.default_rng(0).integers(0, 255, (4, 5, 3)).astype(np.uint8)
    head, _, body = data_uri(image).partition(",")
    assert head == "data:image/png;base64"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(body)))), image)


def test_every_component_has_its_image_under_its_name(seed):
    patterns = np.random.default_rng(seed).normal(size=(8, 6))
    patterns[:, 0], patterns[:, -1] = 9, -9  # the first and the last pixel
    titles = [f"<{k}>\nhalf" for k in range(8)]
    drawn = component_figure(patterns, titles, (2, 3)).axes[:8]
    assert [axes.get_title(loc="left") for axes in drawn] == titles
    pixels = [axes.images[0].get_array() for axes in drawn]
    assert all((p[0, 0].tolist(), p[-1, -1].tolist()) == (RED, BLUE) for p in pixels)


def test_without_images_the_strongest_features_are_bars_and_a_recording_is_a_course():
    patterns = np.array([[3.0, -1, 2], [0, 5, -6]])
    axes = component_figure(patterns, ["one", "$two$"], None, ("a", "b", "c")).axes
    widths = [[bar.get_width() for bar in each.patches] for each in axes]
    assert widths == [[-1, 2, 3], [0, 5, -6]]
    names = [[label.get_text() for label in each.get_yticklabels()] for each in axes]
    assert names == [["b", "c", "a"], ["a", "b", "c"]]
    times = np.arange(3) * 2.5
    axes = component_figure(patterns, ["one", "two"], None, None, times=times).axes
    for each, pattern in zip(axes, patterns, strict=True):
        np.testing.assert_array_equal(each.lines[0].get_xydata(), np.stack([times, pattern], 1))
        assert (each.get_xlabel(), len(each.patches)) == ("seconds", 0)


def test_the_sheet_holds_all_components_in_reading_order():
    patterns = np.zeros((7, 4))
    patterns[range(7), np.arange(7) % 4] = 1
    sheet = component_sheet(patterns, (2, 2))
    side = 112 + 8
    assert sheet.shape == (2 * side - 8, 6 * side - 8, 3)
    for k in range(7):
        line, column = divmod(k, 6)
        y, x = line * side + 112 * (k % 4 // 2) // 2, column * side + 112 * (k % 4 % 2) // 2
        assert sheet[y + 5, x + 5].tolist() == RED


@pytest.mark.parametrize("colour", [False, True])
def test_images_are_side_by_side_on_their_colours(colour):
    shape = (3, 60, 70, 3) if colour else (3, 60, 70)
    images = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    row = image_row(images, ["#ff0000", "#00ff00", "#0000ff"])
    assert row.shape == (60 + STRIP, 3 * 70 + 2 * GAP, 4)
    second = row[:60, 70 + GAP : 140 + GAP, :3]
    np.testing.assert_array_equal(second, images[1] if colour else np.stack([images[1]] * 3, -1))
    assert row[-1, 70 + GAP].tolist() == [0, 255, 0, 255]
    assert row[:, 70 : 70 + GAP, 3].max() == 0
    small = np.arange(128, dtype=np.uint8).reshape(2, 8, 8)
    row = image_row(small)  # enlarged by a whole number
    assert row.shape == (56, 2 * 56 + GAP, 4)
    np.testing.assert_array_equal(row[::7, :56:7, 0], small[0])


def test_a_panel_for_each_subspace_fills_the_thumbnail_in_the_colours_of_the_classes():
    active = np.zeros((60, 3), dtype=bool)
    active[:30, :2] = active[30:, 1:] = True
    picture = thumbnail(fitted_run(active), np.repeat([0, 1], 30))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    for half, code in ((picture[:, : WIDTH // 2], 0), (picture[:, WIDTH // 2 :], 1)):
        assert (half == list(bytes.fromhex(CATEGORICAL[code][1:]))).all(axis=2).any()
    light = np.array([[[255, 255, 255], [200, 40, 60], [0, 0, 0]]], np.uint8)
    dark = in_the_dark(light)
    assert dark.tolist() == [[[0, 0, 0], [215, 55, 75], [255, 255, 255]]]
    assert np.array_equal(in_the_dark(dark), light)
