import numpy as np
import plotly.graph_objects as go
import pytest

from appca.plots.style import described


def test_a_line_is_told_by_its_axes_and_its_ends():
    figure = go.Figure(go.Scatter(x=[1, 2, 3], y=[5.0, -7.25, 6.0], mode="lines"))
    figure.update_layout(xaxis_title="pass", yaxis_title="gain")
    assert described(figure) == "Figure: gain over pass; line: 3 values from −7.25 at 2 to 6 at 3."


def test_lying_bars_are_told_by_their_length_and_name():
    figure = go.Figure(go.Bar(x=[0.5, 0.2], y=["{1,2}", "{1,3}"], orientation="h", name="sets"))
    assert described(figure) == "Figure: sets, bars: 2 values from 0.2 at {1,3} to 0.5 at {1,2}."


def test_places_with_names_on_the_axis_are_told_by_them():
    figure = go.Figure(go.Bar(x=[0.5, 0.2], y=[0, 1], orientation="h"))
    figure.update_layout(yaxis={"tickvals": [0, 1], "ticktext": ["{1,2}", "{1,3}"]})
    assert "from 0.2 at {1,3} to 0.5 at {1,2}" in described(figure)


def test_a_table_of_colours_is_told_by_its_shape_and_extremes():
    figure = go.Figure(go.Heatmap(z=np.arange(6).reshape(2, 3)))
    assert described(figure) == "Figure: table of colours: 2 by 3, 6 values from 0 to 5."


def test_gaps_are_left_out_and_what_has_no_numbers_is_only_named():
    gaps = go.Figure(go.Scatter(y=[None, 2.0, np.nan, 1.0], mode="markers", name="a"))
    assert described(gaps) == "Figure: a, points: 2 values from 1 to 2."
    words = go.Figure(go.Scatter(x=[1], y=["text"], mode="markers"))
    assert described(words) == "Figure: points."
    assert described(go.Figure()) == "Figure."


@pytest.mark.parametrize("count", [6, 9])
def test_of_many_traces_the_first_six_are_told(count):
    figure = go.Figure([go.Scatter(y=[1], name=f"t{i}", mode="lines") for i in range(count)])
    text = described(figure)
    assert text.count("line") == 6
    assert ("and 3 more" in text) == (count == 9)


def test_hidden_traces_are_not_told():
    figure = go.Figure([go.Scatter(y=[1], name="a"), go.Scatter(y=[1], name="b", visible=False)])
    assert "b" not in described(figure)
