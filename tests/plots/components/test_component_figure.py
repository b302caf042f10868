"""All components in one figure and in one picture."""

import numpy as np

from appca.plots.components import component_figure, component_sheet

RED, BLUE = [200, 60, 40], [47, 111, 179]


def test_every_component_has_its_image_under_its_name(seed):
    patterns = np.random.default_rng(seed).normal(size=(8, 6))
    patterns[:, 0], patterns[:, -1] = 9, -9  # the first and the last pixel
    titles = [f"<{k}>\nhalf" for k in range(8)]
    figure = component_figure(patterns, titles, (2, 3))
    drawn = figure.axes[:8]
    assert [axes.get_title(loc="left") for axes in drawn] == titles
    for axes in drawn:
        pixels = axes.images[0].get_array()
        assert pixels[0, 0].tolist() == RED
        assert pixels[-1, -1].tolist() == BLUE


def test_without_images_the_strongest_features_are_bars():
    patterns = np.array([[3.0, -1, 2], [0, 5, -6]])
    figure = component_figure(patterns, ["one", "$two$"], None, ("a", "b", "c"))
    assert [[bar.get_width() for bar in axes.patches] for axes in figure.axes] == [
        [-1, 2, 3],
        [0, 5, -6],
    ]
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert names == [["b", "c", "a"], ["a", "b", "c"]]


def test_a_recording_has_a_course_over_seconds(seed):
    patterns = np.random.default_rng(seed).normal(size=(2, 9))
    times = np.arange(9) * 2.5
    figure = component_figure(patterns, ["one", "two"], None, None, times=times)
    for axes, pattern in zip(figure.axes, patterns, strict=True):
        course = axes.lines[0]
        np.testing.assert_array_equal(course.get_xdata(), times)
        np.testing.assert_array_equal(course.get_ydata(), pattern)
        assert not axes.patches
        assert axes.get_xlabel() == "seconds"


def test_the_sheet_holds_all_components_in_reading_order(seed):
    patterns = np.zeros((7, 4))
    for k in range(7):
        patterns[k, k % 4] = 1
    sheet = component_sheet(patterns, (2, 2))
    side = 112 + 8
    assert sheet.shape == (2 * side - 8, 6 * side - 8, 3)
    for k in range(7):
        line, column = divmod(k, 6)
        y, x = line * side + 112 * (k % 4 // 2) // 2, column * side + 112 * (k % 4 % 2) // 2
        assert sheet[y + 5, x + 5].tolist() == RED
