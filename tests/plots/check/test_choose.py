"""Pictures of a grid: every cell where it belongs, marks on the right ones, room for gaps."""

import numpy as np

from appca.plots import check

K, L = (2, 4, 8), (1, 2)
VALUES = np.array([[-9.5, -8.25], [-7.0, np.nan], [-6.0, -5.0]])


def picture(values=VALUES, **changes) -> check.Picture:
    return check.Picture(values, K, L, "nats per row", **changes)


def test_columns_are_k_rows_are_l_and_what_is_missing_is_empty():
    heat, _, waiting = check.heat_map(picture()).data
    assert (list(heat.x), list(heat.y)) == (["2", "4", "8"], ["L = 1", "L = 2"])
    assert np.array_equal(np.asarray(heat.z), VALUES.T, equal_nan=True)
    assert [list(row) for row in heat.text] == [["−9.5", "−7.0", "−6.0"], ["−8.2", "", "−5.0"]]
    assert np.argwhere(np.asarray(waiting.z) == 0).tolist() == [[1, 1]]


def test_a_click_says_which_cell_it_was():
    _, targets, _ = check.heat_map(picture()).data
    named = {(x, y): tuple(data[:2]) for x, y, data in zip(*_columns(targets), strict=True)}
    assert named == {(str(k), f"L = {n}"): (k, n) for k in K for n in L if (k, n) != (4, 2)}


def _columns(targets):
    return targets.x, targets.y, targets.customdata


def test_the_suggested_cell_is_outlined_and_errors_turn_the_colours_round():
    figure = check.heat_map(picture(), (8, 2))
    (shape,) = figure.layout.shapes
    assert (round(shape.x0 + shape.x1) / 2, round(shape.y0 + shape.y1) / 2) == (2, 1)
    turned = check.heat_map(picture(smaller_is_better=True))
    assert figure.data[0].colorscale[0][1] == turned.data[0].colorscale[-1][1]


def test_each_l_has_its_curve_and_the_suggested_one_a_ring():
    figure = check.by_budget(picture(), (8, 2))
    curves = {trace.name: trace for trace in figure.data if trace.name}
    assert list(curves["L = 1"].x) == [2, 4, 8]
    assert list(curves["L = 2"].x) == [2, 8]
    assert [(trace.x[0], trace.y[0]) for trace in figure.data if not trace.name] == [(8, -5.0)]
    assert curves["L = 2"].line.width > curves["L = 1"].line.width
    nothing = check.by_budget(picture(VALUES * np.array([1, np.nan])))
    assert [trace.name for trace in nothing.data] == ["L = 1"]


def test_every_fit_is_a_dot_and_the_bar_is_their_mean():
    cosines = np.array([[1.0, 0.5], [0.8, 0.7]])
    bars, dots = check.stability(cosines, (0.8, 0.95)).data
    assert list(bars.y) == [0.9, 0.6]
    assert list(zip(dots.x, dots.y, strict=True)) == [
        ("component 1", 1.0),
        ("component 1", 0.8),
        ("component 2", 0.5),
        ("component 2", 0.7),
    ]
