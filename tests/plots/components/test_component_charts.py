"""Charts of components and of single rows show every number once, in its place."""

from html import unescape

import numpy as np

from appca.plots.components import component_charts
from appca.plots.components.components import ranked_loadings
from appca.plots.explore import point


def test_loadings_are_bars_in_their_order_with_names_disarmed():
    loadings = ranked_loadings(np.array([0.1, -0.8, 0.4]), ("a", "<b>x</b>", "c"))
    figure = component_charts.loading_bars(loadings)
    assert list(figure.data[0].x) == [-0.8, 0.4, 0.1]
    assert [value for _, value in figure.data[0].customdata] == ["−0.8", "+0.4", "+0.1"]
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;x&lt;/b&gt;", "c", "a"]
    assert list(figure.layout.xaxis.range) == [-0.8 * 1.05, 0.8 * 1.05]


def test_a_long_name_is_cut_before_it_is_disarmed():
    name = "mass & height of each & every one"
    figure = component_charts.loading_bars(ranked_loadings(np.array([1.0]), (name,)))
    (shown,) = figure.layout.yaxis.ticktext
    assert shown == "mass &amp; height of each…"
    assert unescape(figure.data[0].customdata[0][0]) == name


def test_probabilities_never_round_to_certainty():
    names = ["{1,2}", "{1,3}", "{2,3}"]
    values = np.array([0.9999, 0.00005, 1e-9])
    figure = point.probabilities(names, values, [True, False, False])
    assert list(figure.data[0].text) == ["over 99.9%", "under 0.1%", "under 0.1%"]
    assert figure.data[0].hovertemplate.startswith("%{customdata}: %{text}")
    assert figure.data[0].marker.color[0] == point.LINE
    assert figure.data[0].marker.color[1] == point.MISSING


def test_a_dumbbell_spans_the_residual_of_its_feature():
    original, rebuilt = np.array([1.0, -2.0]), np.array([0.5, -2.5])
    lines, first, second = point.dumbbells(["a", "b"], original, rebuilt).data
    assert list(lines.x)[:2] == [1.0, 0.5]
    assert list(lines.x)[3:5] == [-2.0, -2.5]
    assert list(lines.y) == [0, 0, 0, 1, 1, 1]
    assert (list(first.x), list(second.x)) == ([1.0, -2.0], [0.5, -2.5])
