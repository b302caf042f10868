"""What a figure shows, in a sentence."""

import numpy as np
import plotly.graph_objects as go
import pytest

from appca.plots.style import described

LINE = go.Scatter(x=[1, 2, 3], y=[5.0, -7.25, 6.0], mode="lines")
BARS = go.Bar(x=[0.5, 0.2], y=["{1,2}", "{1,3}"], orientation="h", name="sets")
TICKS = {"yaxis": {"tickvals": [0, 1], "ticktext": ["{1,2}", "{1,3}"]}}


@pytest.mark.parametrize(
    ("trace", "layout", "words"),
    [
        (
            LINE,
            {"xaxis_title": "pass", "yaxis_title": "gain"},
            "gain over pass; line: 3 values from −7.25 at 2 to 6 at 3",
        ),
        (BARS, {}, "sets, bars: 2 values from 0.2 at {1,3} to 0.5 at {1,2}"),
        (
            go.Bar(x=[0.5, 0.2], y=[0, 1], orientation="h"),
            TICKS,
            "bars: 2 values from 0.2 at {1,3} to 0.5 at {1,2}",
        ),
        (
            go.Heatmap(z=np.arange(6).reshape(2, 3)),
            {"title": "T"},
            "T; table of colours: 2 by 3, 6 values from 0 to 5",
        ),
        (
            go.Scatter(y=[None, 2.0, np.nan, 1.0], mode="markers", name="a"),
            {},
            "a, points: 2 values from 1 to 2",
        ),
        (go.Scatter(x=[1], y=["text"], mode="markers"), {}, "points"),
        (go.Scatter(y=[1], name="b", visible=False), {}, ""),
    ],
)
def test_a_figure_is_described_by_its_axes_and_its_extremes(trace, layout, words):
    assert described(go.Figure(trace, layout)) == (f"Figure: {words}." if words else "Figure.")


@pytest.mark.parametrize("count", [6, 9])
def test_of_many_traces_the_first_six_are_described(count):
    figure = go.Figure([go.Scatter(y=[1], name=f"t{i}", mode="lines") for i in range(count)])
    text = described(figure)
    assert text.count("line") == 6
    assert ("and 3 more" in text) == (count == 9)
