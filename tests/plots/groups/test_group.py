from appca.analysis.groups import GroupDifference
from appca.plots.groups import LESS, MORE, bars, sides

NUMBER = GroupDifference("feature", "a <b>bold</b> name", 2.5, -1.0, 0.8, 1.9, 1e-9, 1e-8)
SHARE = GroupDifference("use", "use of component 2", 0.1, 0.6, -0.5, None, 1e-5, 1e-4)


def test_bars_stand_in_the_given_order_from_the_top_and_are_coloured_by_sign():
    figure = bars([NUMBER, SHARE])
    (trace,) = figure.data
    assert list(trace.x) == [0.8, -0.5]
    assert [told[3] for told in trace.customdata] == ["+0.80", "−0.50"]
    assert list(trace.marker.color) == [MORE, LESS]
    bottom, top = figure.layout.yaxis.range
    assert bottom > trace.y[1] > trace.y[0] > top
    assert figure.layout.yaxis.ticktext[1] == "use of component 2"


def test_names_from_files_are_not_read_as_html():
    figure = bars([NUMBER])
    assert figure.layout.yaxis.ticktext[0] == "a &lt;b&gt;bold&lt;/b&gt; name"
    assert figure.data[0].customdata[0][0] == "a &lt;b&gt;bold&lt;/b&gt; name"


def test_numbers_have_means_and_uses_have_shares():
    assert sides(NUMBER) == ("2.5", "−1")
    assert sides(SHARE) == ("10%", "60%")


def test_an_empty_list_of_differences_is_still_a_figure():
    assert len(bars([]).data[0].x) == 0
