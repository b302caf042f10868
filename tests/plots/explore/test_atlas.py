import json

import numpy as np
import plotly.graph_objects as go
import pytest

from appca.plots import palette
from appca.plots.explore import atlas, points
from appca.plots.explore.panel import Cell, Name, Panel, ranges

CLASSES = palette.colour_by("Class", np.array(list("abcab")))


def panel(rows, **extra) -> Panel:
    rows = np.asarray(rows, np.int32)
    x = rows.astype(np.float32) - 1
    titles = ("{1,2} · n rows", "10%")
    return Panel(*titles, rows, x, 2 * x, "component 1", "component 2", **extra)


def cells() -> list[Cell]:
    return [Cell("+1 −2", 2, np.array([0, 1]), (1, -1))]


def painted(trace: go.Scattergl) -> list[str]:
    """Look every point's colour up as Plotly does."""
    scale = {round(float(at), 9): colour for at, colour in trace.marker.colorscale}
    span = trace.marker.cmax - trace.marker.cmin
    return [scale[round((float(c) - trace.marker.cmin) / span, 9)] for c in trace.marker.color]


def test_a_panel_holds_its_rows_and_each_has_the_colour_of_its_class():
    figure = atlas.figure([panel([4, 0, 2])], CLASSES)
    trace = figure.data[0]
    np.testing.assert_array_equal(trace.customdata, [4, 0, 2])
    assert painted(trace) == [palette.CATEGORICAL[i] for i in (1, 0, 2)]


def test_names_stand_at_their_points_and_their_marks_are_disarmed():
    names = [Name("<b>one", 0.5, -2.0)]
    figure = atlas.figure([panel([0]), panel([1, 2], names=names)])
    (note,) = (one for one in figure.layout.annotations if "one" in one.text)
    assert note.text == "<b>&lt;b&gt;one</b>"
    assert (note.xref, note.yref, note.x, note.y) == ("x2", "y2", 0.5, -2.0)


def test_one_class_has_one_colour_in_all_panels_and_the_legend():
    figure = atlas.figure([panel([0, 1]), panel([3, 2, 1])], CLASSES)
    colour_of_row = {}
    for trace in figure.data[:2]:
        for row, colour in zip(trace.customdata, painted(trace), strict=True):
            assert colour_of_row.setdefault(int(row), colour) == colour
    legend = {trace.name: trace.marker.color for trace in figure.data[2:]}
    assert colour_of_row == {row: legend["abcab"[row]] for row in range(4)}


def test_all_panels_are_in_one_figure_and_do_not_overlap():
    figure = atlas.figure([panel([0, 1])] * 12, CLASSES, columns=3)
    boxes = [
        (*figure.layout[f"xaxis{k or ''}"].domain, *figure.layout[f"yaxis{k or ''}"].domain)
        for k in [None, *range(2, 13)]
    ]
    for i, (a0, a1, b0, b1) in enumerate(boxes):
        assert 0 <= a0 < a1 <= 1
        assert 0 <= b0 < b1 <= 1
        for c0, c1, d0, d1 in boxes[i + 1 :]:
            assert c0 >= a1 or c1 <= a0 or d0 >= b1 or d1 <= b0


def test_the_selection_is_marked_at_each_panels_own_places():
    selection = np.array([False, True, False, False, True])
    figure = atlas.figure([panel([4, 0, 1]), panel([2])], CLASSES, selection=selection)
    np.testing.assert_array_equal(figure.data[0].selectedpoints, [0, 2])
    assert len(figure.data[1].selectedpoints) == 0


def test_few_points_stand_out_and_grey_context_stays_light():
    for few, many in [(50, 2000), (2000, 70_000)]:
        assert points.opacity(few) > points.opacity(many)
        assert points.faded_opacity(few) > points.faded_opacity(many)
    assert all(points.faded_opacity(n) < 0.5 * points.opacity(n) for n in (1, 100, 10_000, 10**6))


def test_own_colours_come_before_the_colouring_and_are_nearly_kept():
    rgb = np.array([[250, 3, 128], [0, 255, 70]], np.uint8)
    trace = atlas.figure([panel([0, 1], rgb=rgb)], CLASSES).data[0]
    shown = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in painted(trace)]
    assert np.abs(np.array(shown) - rgb).max() <= 255 / 14 + 1


def test_doubtful_rows_are_rings_in_their_own_colour():
    hollow = np.array([False, True, False])
    marker = atlas.figure([panel([0, 1, 2], hollow=hollow)], CLASSES).data[0].marker
    np.testing.assert_array_equal(np.asarray(marker.line.width) > 0, hollow)
    assert marker.colorscale[int(marker.color[1])][1] == "#ffffff"
    assert marker.line.colorscale[int(marker.line.color[1])][1] == palette.CATEGORICAL[1]
    assert marker.size[1] > marker.size[0]


def test_symbols_differ_for_ten_subspaces_and_then_repeat():
    trace = atlas.figure([panel(range(12), symbol=np.arange(12, dtype=np.uint8))]).data[0]
    assert len(set(trace.marker.symbol[:10])) == 10
    assert trace.marker.symbol[10] == trace.marker.symbol[0]


def test_classes_beyond_the_tenth_have_other_shapes():
    colour = palette.colour_by("Class", np.array([f"c{i:02}" for i in range(20)]))
    symbols = atlas.figure([panel(range(20))], colour).data[0].marker.symbol
    assert len(set(symbols[:10])) == len(set(symbols[10:])) == 1
    assert symbols[0] != symbols[10]


def test_the_axes_show_zero_where_signs_matter_and_all_points():
    rows = np.array([8, 9], np.int32)
    x_range, y_range = ranges(panel(rows, cells=cells()))
    assert (x_range[0] < 0, x_range[1] > 8) == (True, True)
    assert (y_range[0] < 0, y_range[1] > 16) == (True, True)
    alone, _ = ranges(panel(rows))
    assert alone[0] > 0
    flat, _ = ranges(panel([5]))
    assert flat[0] < 4 < flat[1]
    empty, _ = ranges(panel([]))
    assert empty[0] < empty[1]


def test_axes_without_an_origin_have_no_zero_line_and_no_numbers():
    figure = atlas.figure([panel([0, 1], origin=False)])
    assert figure.layout.xaxis.zeroline is False
    assert figure.layout.yaxis.showticklabels is False


def test_titles_and_cells_are_written_and_markup_in_them_is_disarmed():
    bad = panel([0, 1], cells=cells())._replace(title="<b>x</b>")
    texts = [note.text for note in atlas.figure([bad]).layout.annotations]
    assert "&lt;b&gt;x&lt;/b&gt;" in texts[0]
    assert "+1 −2 · 2" in texts[1]


def test_a_number_has_a_colour_bar_with_its_own_values():
    colour = palette.colour_by("error", np.linspace(2, 4, 5))
    bar = atlas.figure([panel(range(5))], colour).data[-1].marker.colorbar
    assert bar.title.text == "error"
    assert bar.ticktext[0].startswith("2.0")
    assert float(bar.ticktext[-1]) == pytest.approx(3.99, abs=0.01)


def test_arrays_travel_as_bytes_not_as_lists():
    rows = np.arange(20_000)
    text = atlas.figure([panel(rows)], palette.colour_by("x", rows % 7)).to_json()
    assert len(text) < 20_000 * 20
    assert "bdata" in json.loads(text)["data"][0]["x"]


def test_more_than_twelve_panels_are_refused():
    with pytest.raises(ValueError, match="13 panels were given; one figure holds at most 12"):
        atlas.figure([panel([0])] * 13)


def test_arrays_of_different_lengths_are_refused():
    bad = panel([0, 1])._replace(y=np.zeros(3, np.float32))
    with pytest.raises(ValueError, match=r"different lengths.*give one entry a point"):
        atlas.figure([bad])
