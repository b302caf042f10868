"""Pictures of components, groups and runs, the colours and the typeface of figures."""

import matplotlib
import numpy as np
import pytest
from matplotlib import font_manager, rcParams

from appca.plots import still, style
from appca.plots.components import (
    NEGATIVE,
    POSITIVE,
    ZERO,
    component_figure,
    component_image,
    component_sheet,
    diverging,
    montage,
    painted,
    ranked_loadings,
)
from appca.plots.data import HEIGHT, WIDTH, in_the_dark, thumbnail
from appca.plots.groups import GAP, STRIP, image_row
from appca.plots.still import styled
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


def test_classes_are_sorted_as_people_count():
    column = np.array(["obj10", "obj2", "", "obj1", "obj2"])
    colour = style.colour_by("x", column)
    assert colour.names == ("obj1", "obj2", "obj10")
    np.testing.assert_array_equal(colour.values, [2, 1, -1, 0, 1])


def test_the_same_class_has_the_same_colour_whatever_rows_are_shown():
    names = ("a", "b", "c")
    every = style.levels(style.Colour("category", "x", np.array([0, 1, 2]), names))
    some = style.levels(style.Colour("category", "x", np.array([2, 2]), names))
    assert every.table[every.codes[2]] == some.table[some.codes[0]]


def test_rows_without_a_class_have_the_colour_of_the_missing():
    levels = style.levels(style.Colour("category", "x", np.array([0, -1]), ("a",)))
    assert levels.table[levels.codes[1]] == style.MISSING
    assert levels.table[levels.codes[0]] == style.CATEGORICAL[0]


def test_forty_classes_differ_in_colour_or_shape():
    names = tuple(map(str, range(40)))
    levels = style.levels(style.Colour("category", "x", np.arange(40), names))
    looks = {(levels.table[code], levels.shapes[code]) for code in levels.codes}
    assert len(looks) == 40


def test_a_number_rises_along_its_scale_and_nan_is_missing():
    values = np.append(np.linspace(3, 5, 200), np.nan)
    levels = style.levels(style.Colour("number", "x", values))
    codes = levels.codes[:200].astype(int)
    assert np.all(np.diff(codes) >= 0)
    assert (codes[0], codes[-1]) == (0, style.LEVELS - 1)
    assert levels.table[levels.codes[200]] == style.MISSING


def test_an_outlier_does_not_flatten_the_scale():
    values = np.append(np.linspace(0, 1, 1000), 1e6)
    levels = style.levels(style.Colour("number", "x", values))
    assert levels.limits[1] < 1.01
    assert np.ptp(levels.codes[:1000].astype(int)) == style.LEVELS - 1


@pytest.mark.parametrize("values", [np.full(5, 3.0), np.full(5, np.nan)])
def test_a_constant_or_empty_number_is_drawn_without_a_warning(values):
    levels = style.levels(style.Colour("number", "x", values))
    assert len(set(levels.codes)) == 1


GROUNDS = ("#ffffff", "#f4f6f9", "#161d27", "#0c1016")  # panel and page, light and dark


@pytest.mark.parametrize("colours", [style.CATEGORICAL, style.MANY])
@pytest.mark.parametrize("ground", GROUNDS)
def test_classes_stand_out_on_both_grounds(colours, ground):
    of_ground = luminance(ground)
    for colour in colours:
        light, dark = sorted([luminance(colour), of_ground], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0, colour


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine on which no figure has been drawn, and Source Sans is not installed."""
    manager = font_manager.fontManager
    others = [font for font in manager.ttflist if font.name != still.NAME]
    monkeypatch.setattr(manager, "ttflist", others)
    monkeypatch.setattr(matplotlib, "get_cachedir", lambda: str(tmp_path))
    still.install.cache_clear()
    yield tmp_path
    still.install.cache_clear()


@pytest.mark.thorough
@pytest.mark.parametrize("gone", ["streamlit", "brotli", "room"])
def test_without_what_it_needs_figures_have_another_typeface(nowhere, monkeypatch, gone):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    if gone == "streamlit":
        monkeypatch.setattr(still, "find_spec", lambda name: None)
    elif gone == "brotli":
        monkeypatch.setattr("fontTools.ttLib.woff2.haveBrotli", False)
    else:
        monkeypatch.setattr(still.files, "write", refuse)
    with styled():
        assert still.NAME not in rcParams["font.family"]
    assert list(nowhere.iterdir()) == []


def test_many_classes_need_two_bytes_a_row():
    names = tuple(map(str, range(300)))
    levels = style.levels(style.Colour("category", "x", np.arange(300), names))
    assert levels.codes.dtype == np.uint16
    np.testing.assert_array_equal(levels.codes, np.arange(300))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.array(["a", "b"]), "category"),
        (np.array([0, 1, 1]), "category"),
        (np.array([True, False]), "category"),
        (np.arange(50), "number"),
        (np.array([0.0, 1.0]), "number"),
    ],
)
def test_text_and_few_integers_are_classes_and_the_rest_are_numbers(column, kind):
    assert style.colour_by("x", column).kind == kind


def test_a_montage_reads_like_a_page():
    images = np.arange(5, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 3), np.uint8)
    sheet = montage(images, columns=3)
    assert sheet.shape == (5, 11)
    assert sheet[0, [0, 4, 8]].tolist() == [0, 1, 2]
    assert sheet[3, [0, 4]].tolist() == [3, 4]
    assert (sheet[2] == 255).all()
    assert (sheet[3:, 8:] == 255).all()
