"""Pictures of a grid: every cell where it belongs, marks on the right ones, room for gaps."""

import numpy as np

from appca.plots.check import choose

K, L = (2, 4, 8), (1, 2)
VALUES = np.array([[-9.5, -8.25], [-7.0, np.nan], [-6.0, -5.0]])


def picture(values=VALUES, **changes) -> choose.Picture:
    return choose.Picture(values, K, L, "nats per row", **changes)


def test_columns_are_k_rows_are_l_and_what_is_missing_is_empty():
    heat, _ = choose.heat_map(picture()).data
    assert (list(heat.x), list(heat.y)) == (["2", "4", "8"], ["1", "2"])
    assert np.array_equal(np.asarray(heat.z), VALUES.T, equal_nan=True)
    assert [list(row) for row in heat.text] == [["−9.50", "−7.00", "−6.00"], ["−8.25", "", "−5.00"]]


def test_a_click_says_which_cell_it_was():
    _, targets = choose.heat_map(picture()).data
    named = {(x, y): tuple(data[:2]) for x, y, data in zip(*_columns(targets), strict=True)}
    assert named == {(str(k), str(n)): (k, n) for k in K for n in L if (k, n) != (4, 2)}


def _columns(targets):
    return targets.x, targets.y, targets.customdata


def test_the_best_is_outlined_in_red_and_its_equals_in_white():
    near = np.zeros((3, 2), bool)
    near[[1, 2], [0, 1]] = True
    shapes = choose.heat_map(picture(), (8, 2), near).layout.shapes
    red = [shape for shape in shapes if shape.line.color == choose.BEST]
    white = [shape for shape in shapes if shape.line.color == choose.NEAR]
    assert [(round(s.x0 + s.x1) / 2, round(s.y0 + s.y1) / 2) for s in red] == [(2, 1)]
    assert [(round(s.x0 + s.x1) / 2, round(s.y0 + s.y1) / 2) for s in white] == [(1, 0), (2, 1)]


def test_cards_are_shown_and_errors_turn_the_colours_round():
    cards = np.full((3, 2), "<br>more", dtype=object)
    plain = choose.heat_map(picture(hover=cards))
    assert {data[3] for data in plain.data[1].customdata} == {"<br>more"}
    turned = choose.heat_map(picture(smaller_is_better=True))
    first, last = plain.data[0].colorscale, turned.data[0].colorscale
    assert first[0][1] == last[-1][1]


def test_an_empty_grid_is_drawn_with_its_axes():
    figure = choose.heat_map(picture(np.full((3, 2), np.nan)))
    assert not figure.data[0].showscale
    assert len(figure.data[1].x) == 0
    assert list(figure.layout.xaxis.categoryarray) == ["2", "4", "8"]


def test_each_budget_has_its_curve_and_a_ring_at_the_k_advised():
    errors = np.full(VALUES.shape, 0.1)
    figure = choose.by_budget(VALUES, errors, K, L, name="gain", chosen={1: 4, 2: 8})
    curves = {trace.name: trace for trace in figure.data if trace.name}
    assert list(curves["L = 1"].x) == [2, 4, 8]
    assert list(curves["L = 2"].x) == [2, 8]
    assert list(curves["L = 2"].error_y.array) == [0.1, 0.1]
    rings = [(trace.x[0], trace.y[0]) for trace in figure.data if not trace.name]
    assert rings == [(4, -7.0), (8, -5.0)]


def test_a_share_is_written_in_percent_with_a_line_at_all_of_it():
    figure = choose.by_budget(VALUES, None, K, L, name="closed", chosen={}, percent=True)
    assert figure.layout.yaxis.tickformat == ".0%"
    assert list(figure.data[0].customdata) == ["−950%", "−700%", "−600%"]
    assert [shape.y0 for shape in figure.layout.shapes] == [1.0]


def test_a_budget_without_numbers_has_no_curve():
    figure = choose.by_budget(VALUES * np.array([1, np.nan]), None, K, L, name="x", chosen={2: 4})
    assert [trace.name for trace in figure.data] == ["L = 1"]


def test_every_fit_is_a_dot_and_the_bar_is_their_mean():
    cosines = np.array([[1.0, 0.5], [0.8, 0.7]])
    bars, dots = choose.stability(cosines, (0.8, 0.95)).data
    assert list(bars.y) == [0.9, 0.6]
    assert list(zip(dots.x, dots.y, strict=True)) == [
        ("component 1", 1.0),
        ("component 1", 0.8),
        ("component 2", 0.5),
        ("component 2", 0.7),
    ]
