"""Figures of the experiments: every mark at its numbers, names of classes as text."""

import numpy as np

from appca.plots.studies import (
    INK,
    MOST_INDICATORS,
    PAPER,
    POPULARITY_COLOURS,
    TRUTH,
    Scatter,
    boxes,
    dots,
    indicators,
    popularity,
    scatters,
    sheet,
    sheets,
    space,
    spaced,
)


def test_ones_are_black_and_zeros_white_with_factors_down():
    Z = np.array([[True, False, False], [True, True, False]])
    figure = indicators({"one": Z, "two": ~Z})
    image, other = figure.data
    np.testing.assert_array_equal(image.z, Z.T)
    np.testing.assert_array_equal(other.z, ~Z.T)
    assert [colour for _, colour in image.colorscale] == [PAPER, INK]
    assert (image.zmin, image.zmax) == (0, 1)  # also where all entries are alike
    assert [note.text for note in figure.layout.annotations] == ["one", "two"]
    assert figure.layout.yaxis.range == (3.5, 0.5)  # the first factor on top


def test_a_long_matrix_is_cut_and_one_alone_is_larger():
    Z = np.ones((2 * MOST_INDICATORS, 2), dtype=bool)
    figure = indicators({"long": Z})
    assert figure.data[0].z.shape == (2, MOST_INDICATORS)
    assert indicators({"a": Z, "b": Z}).layout.height < 2 * figure.layout.height


def curve(design: str, method: str, *shares: float) -> list[dict]:
    return [
        {"design": design, "method": method, "title": method.upper(), "rank": i, "share": share}
        for i, share in enumerate(shares, start=1)
    ]


def test_the_truth_is_red_on_top_and_each_line_is_named_once():
    table = curve("sparse", "truth", 0.9, 0.1) + curve("sparse", "afa", 0.5, 0.5)
    table += curve("dense", "truth", 0.9, 0.8) + curve("dense", "isfa", 0.7)
    figure = popularity(table)
    assert [note.text for note in figure.layout.annotations] == ["Sparse data", "Dense data"]
    lines = [(line.name, line.line.color, line.showlegend, line.xaxis) for line in figure.data]
    assert lines == [
        ("AFA", POPULARITY_COLOURS[0], True, "x"),
        ("ISFA", POPULARITY_COLOURS[1], True, "x2"),
        ("TRUTH", TRUTH, True, "x"),
        ("TRUTH", TRUTH, False, "x2"),
    ]
    truth = figure.data[2]
    assert (truth.x.tolist(), truth.y.tolist()) == ([0.9, 0.1], [1, 2])
    assert figure.layout.yaxis.autorange == "reversed"  # the most popular factor on top


def test_thumbnails_lie_apart_and_on_their_points(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 400))
    rows = spaced(x, y, 6)
    cells = {
        (int((a - x.min()) / np.ptp(x) * 6 - 1e-9), int((b - y.min()) / np.ptp(y) * 6 - 1e-9))
        for a, b in zip(x[rows], y[rows], strict=True)
    }
    assert len(cells) == len(rows) <= 36
    images = rng.integers(0, 255, (400, 5, 4)).astype(np.uint8)
    panel = Scatter("A <b>", x, y, np.zeros(400, int), images=images)
    figure = scatters([panel, panel._replace(images=None)], ["one"])
    shown = spaced(x, y)
    assert [image.x for image in figure.layout.images] == list(x[shown])
    assert figure.layout.annotations[0].text == "A &lt;b&gt;"


def test_a_class_stands_once_in_the_legend_and_own_colours_stand_for_themselves():
    codes, x = np.array([0, 1, 1]), np.arange(3.0)
    first = Scatter("a", x, x, codes)
    rgb = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    second = first._replace(rgb=rgb, symbols=np.array([0, 1, 7]))
    figure = scatters([first, first, second], ["p", "q"])
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False, False]
    assert figure.data[-1].marker.color == ("#ff0000", "#00ff00", "#0000ff")
    assert figure.data[-1].marker.symbol == ("circle", "diamond", "diamond")


def test_a_sheet_holds_every_image_at_its_place():
    images = np.arange(1, 6, dtype=np.uint8)[:, None, None] * np.ones((1, 3, 2), np.uint8)
    canvas = sheet(images, 3)
    assert canvas.shape == (10, 12)
    assert canvas[2, 1] == 1
    assert canvas[7, 5] == 5
    assert canvas[7, 9] == 128
    figure = sheets({"x": images, "y <i>": images[:2]}, 3)
    assert len(figure.layout.images) == 2
    assert figure.layout.annotations[1].text == "y &lt;i&gt;"


def test_boxes_and_points_in_space_hold_one_mark_a_group():
    values = np.arange(101.0)
    figure = boxes({"ink": {"a": values, "b": values + 1}, "slant": {"a": values}})
    assert [trace.median[0] for trace in figure.data] == [50, 51, 50]
    points = space(np.eye(3), np.array([0, 1, 1]), ["a", "b"], np.eye(3))
    assert [len(trace.x) for trace in points.data] == [1, 2, 4, 4, 4]


def row(design: str, K: int, title: str, value: float | None, spread: float | None = 0.1) -> dict:
    return {"design": design, "K": K, "title": title, "mse": value, "mse_sd": spread}


def test_one_panel_a_size_one_colour_a_design_methods_from_top_to_bottom():
    table = [
        row("sparse", 20, "FA", 3.0, None),
        row("sparse", 10, "FA", 1.0),
        row("sparse", 10, "aFA", 2.0),
        row("dense", 10, "aFA", 4.0),
        row("dense", 10, "none", None),
    ]
    figure = dots(table, "mse", "error", log=True)
    assert [note.text for note in figure.layout.annotations] == ["K = 10", "K = 20"]
    found = {(trace.name, trace.xaxis): trace for trace in figure.data}
    assert set(found) == {("sparse", "x"), ("sparse", "x2"), ("dense", "x")}
    assert found["sparse", "x"].x.tolist() == [1.0, 2.0]
    assert found["sparse", "x2"].error_x.array.tolist() == [0.0]
    assert found["sparse", "x"].marker.color != found["dense", "x"].marker.color
    assert tuple(figure.layout.yaxis.categoryarray) == ("aFA", "FA")  # from below: the first on top
    assert found["sparse", "x"].y.tolist() == ["FA", "aFA"]
    assert figure.layout.scattermode == "group"  # designs beside one another
    assert figure.layout.xaxis.type == "log"
    assert dots(table, "mse", "error").layout.xaxis.type is None


def test_an_empty_table_makes_an_empty_figure():
    assert dots([], "mse", "error").data == ()
