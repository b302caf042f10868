"""Small scatters with thumbnails, and sheets of images."""

import numpy as np

from appca.plots.paper import study_panels
from appca.plots.paper.space import space


def test_thumbnails_lie_apart_and_on_their_points(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 400))
    rows = study_panels.spaced(x, y, 6)
    cells = {
        (int((a - x.min()) / np.ptp(x) * 6 - 1e-9), int((b - y.min()) / np.ptp(y) * 6 - 1e-9))
        for a, b in zip(x[rows], y[rows], strict=True)
    }
    assert len(cells) == len(rows) <= 36
    images = rng.integers(0, 255, (400, 5, 4)).astype(np.uint8)
    panel = study_panels.Scatter("A <b>", x, y, np.zeros(400, int), images=images)
    figure = study_panels.scatters([panel, panel._replace(images=None)], ["one"])
    shown = study_panels.spaced(x, y)
    assert [image.x for image in figure.layout.images] == list(x[shown])
    assert figure.layout.annotations[0].text == "A &lt;b&gt;"


def test_a_class_stands_once_in_the_legend_and_own_colours_stand_for_themselves():
    codes, x = np.array([0, 1, 1]), np.arange(3.0)
    first = study_panels.Scatter("a", x, x, codes)
    rgb = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    second = first._replace(rgb=rgb, symbols=np.array([0, 1, 7]))
    figure = study_panels.scatters([first, first, second], ["p", "q"])
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False, False]
    assert figure.data[-1].marker.color == ("#ff0000", "#00ff00", "#0000ff")
    assert figure.data[-1].marker.symbol == ("circle", "diamond", "diamond")


def test_a_sheet_holds_every_image_at_its_place():
    images = np.arange(1, 6, dtype=np.uint8)[:, None, None] * np.ones((1, 3, 2), np.uint8)
    canvas = study_panels.sheet(images, 3)
    assert canvas.shape == (10, 12)
    assert canvas[2, 1] == 1
    assert canvas[7, 5] == 5
    assert canvas[7, 9] == 128
    figure = study_panels.sheets({"x": images, "y <i>": images[:2]}, 3)
    assert len(figure.layout.images) == 2
    assert figure.layout.annotations[1].text == "y &lt;i&gt;"


def test_boxes_and_points_in_space_hold_one_mark_a_group():
    values = np.arange(101.0)
    figure = study_panels.boxes({"ink": {"a": values, "b": values + 1}, "slant": {"a": values}})
    assert [trace.median[0] for trace in figure.data] == [50, 51, 50]
    points = space(np.eye(3), np.array([0, 1, 1]), ["a", "b"], np.eye(3))
    assert [len(trace.x) for trace in points.data] == [1, 2, 4, 4, 4]
