"""Charts of components show every number once, in its place."""

from html import unescape

import numpy as np

from appca.plots.components import component_charts
from appca.plots.components.components import ranked_loadings


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
