"""Charts of components and of single rows show every number once, in its place."""

from html import unescape

import numpy as np
import pytest

from appca.plots.components import component_charts
from appca.plots.components.components import ranked_loadings
from appca.plots.explore import point


def test_every_user_is_in_one_bar_and_no_bar_has_two_signs():
    scores = np.random.default_rng(0).normal(1.0, 2.0, 700)
    figure = component_charts.score_histogram(scores, scores > 3)
    every, chosen = figure.data
    assert sum(every.y) == 700
    assert sum(chosen.y) == (scores > 3).sum()
    left = np.asarray(every.x) - np.asarray(every.width) / 2
    right = np.asarray(every.x) + np.asarray(every.width) / 2
    assert ((left >= -1e-9) | (right <= 1e-9)).all()
    blue = np.array(every.marker.color) == component_charts.BLUE
    assert np.asarray(every.y)[blue].sum() == (scores < 0).sum()


@pytest.mark.parametrize("scores", [np.zeros(5), np.full(3, 2.5), np.array([-1e-30])])
def test_degenerate_scores_still_make_a_histogram(scores):
    (bars,) = component_charts.score_histogram(scores, np.zeros(len(scores), dtype=bool)).data
    assert sum(bars.y) == len(scores)


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
