"""Tests of public figures and their numbers, pictures and colours; texts are shown literally."""

import re
from collections.abc import Callable
from unittest.mock import Mock

import matplotlib
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from fontTools.ttLib import woff2
from matplotlib import font_manager, rcParams

from appca.analysis.groups import GroupDifference
from appca.data.dataset import Dataset
from appca.plots import check, components, data, files, groups, still, studies, style
from appca.plots.components import component_figure, component_sheet, diverging
from appca.plots.data import HEIGHT, WIDTH, in_the_dark, thumbnail
from appca.plots.groups import GAP, STRIP, image_row
from appca.plots.still import styled
from appca.plots.studies import Scatter
from appca.plots.style import CATEGORICAL, described
from tests.fitted_runs import fitted_run

K, L = (2, 4, 8), (1, 2)
VALUES = np.array([[-9.5, -8.25], [-7.0, np.nan], [-6.0, -5.0]])
GRID, COSINES = check.Picture(VALUES, K, L, "nats per row"), np.array([[1.0, 0.5], [0.8, 0.7]])
CLIMB, SHARED = -100.0 + np.arange(30.0), np.array([[4.0, 1.0], [1.0, 2.0]])
Z = np.array([[True, False, False], [True, True, False]])


def rows(names: str, *values: tuple) -> list[dict]:
    return [dict(zip(names.split(), value, strict=True)) for value in values]


TESTS = rows(
    "column component part direction effect n",
    ("<b>who", 2, "use", "high: a", 1.0, 9),
    ("how", 1, "score", "falls", 0.5, 5),
    ("how", 2, "use", "rises", 0.2, 9),
)
DRIFT = rows(
    "column part effect direction old new q",
    ("a", "level", 0.2, "higher", 1.0, 2.0, 0.2),
    ("<b>", "level", -0.5, "lower", 3.0, 1.0, 0.01),
    ("a", "spread", 0.7, "higher", 1.0, 5.0, 0.01),
)
NUMBER = GroupDifference("feature", "a <b>bold</b> name", 2.5, -1.0, 0.8, 1.9, 1e-9, 1e-8)
SHARE = GroupDifference("use", "use of component 2", 0.1, 0.6, -0.5, None, 1e-5, 1e-4)
OF = ("explains", "variance", "none")
VARIANCE = (np.array([[0.5, 0.2, 0.3]]), ["all"], ["component 1", "2 · loop", "no component"], OF)
SURE = np.array([0.0, 0.04, 0.26, 0.49, 0.51, 1.0, 1.0000001])
MEANS = {"a": np.array([1.0, 3.0]), "b": np.array([4.0])}

METHODS = rows(
    "design K title mse mse_sd",
    ("sparse", 20, "FA", 3.0, None),
    ("sparse", 10, "FA", 1.0, 0.1),
    ("sparse", 10, "aFA", 2.0, 0.1),
    ("dense", 10, "aFA", 4.0, 0.1),
    ("dense", 10, "none", None, 0.1),
)


def curves(**lines: list[float]) -> list[dict]:
    return [
        {"design": design, "method": method, "title": method.upper(), "rank": i, "share": share}
        for name, shares in lines.items()
        for design, method in [name.split("_")]
        for i, share in enumerate(shares, start=1)
    ]


POPULAR = curves(
    sparse_truth=[0.9, 0.1], sparse_afa=[0.5, 0.5], dense_truth=[0.9, 0.8], dense_isfa=[0.7]
)
SPREADS = {"ink": {"a": np.arange(101.0), "b": np.arange(101.0) + 1}, "slant": {"a": np.arange(5)}}
X3 = np.arange(3.0)
CODED = Scatter("a", X3, X3, np.array([0, 1, 1]))
RGB = CODED._replace(rgb=255 * np.eye(3, dtype=np.uint8), symbols=np.array([0, 1, 7]))
FACTORS = ["one", "two", "<i>three</i>"]
# figure -> the values at paths such as data.0.x
CASES: dict[Callable[[], go.Figure], dict[str, object]] = {
    (lambda: check.heat_map(GRID)): {
        "data.0.x": ["2", "4", "8"],
        "data.0.y": ["L = 1", "L = 2"],
        "data.0.z": VALUES.T,
        "data.0.text": [["−9.5", "−7.0", "−6.0"], ["−8.2", "", "−5.0"]],
        "data.2.z": [[np.nan] * 3, [np.nan, 0, np.nan]],
    },
    (lambda: check.heat_map(GRID._replace(values=np.where(VALUES == -7, VALUES, np.nan)))): {
        "data.0.text": [["", "−7.0", ""], ["", "", ""]]
    },
    (lambda: check.by_budget(GRID, (8, 2))): {
        "layout.xaxis.dtick": 1,
        "data.0.x": [2, 4, 8],
        "data.1.x": [2, 8],
        "data.2.x": [8],
        "data.2.y": [-5.0],
    },
    (lambda: check.stability(COSINES, (0.8, 0.95))): {
        "data.0.y": [0.9, 0.6],
        "data.1.x": ["component 1", "component 1", "component 2", "component 2"],
        "data.1.y": [1.0, 0.8, 0.5, 0.7],
        "layout.shapes.1.y0": 0.95,
    },
    (lambda: check.traces(COSINES, "Noise", first=205, step=5)): {
        "data.1.name": "chain 2",
        "data.1.x": [205, 210],
        "data.1.y": [0.8, 0.7],
    },
    (lambda: check.traces(np.arange(10_000.0)[None], "x")): {
        "data.0.x": np.arange(1, 10_001, 5),
        "data.0.y": np.arange(0, 10_000, 5),
    },
    (lambda: check.likelihood_with_burn_in(CLIMB, 10, 12)): {
        "data.0.y": CLIMB / 10,
        "layout.shapes.0.x0": 0.5,
        "layout.shapes.0.x1": 12.5,
    },
    (lambda: check.membership(SURE)): {"data.0.y": [2, *[0] * 4, 1, *[0] * 3, 1, 1, *[0] * 8, 2]},
    (lambda: check.neighbours_kept({"mine": 0.5, "PCA": 0.25})): {
        "data.0.x": [0.5, 0.25],
        "data.0.y": ["mine", "PCA"],
        "data.0.text": ["50%", "25%"],
    },
    (lambda: check.hidden_errors(MEANS)): {
        "data.0.x": [2.0, 4.0],
        "data.0.error_x.array": [np.sqrt(2), 0.0],
    },
    (lambda: components.association_map(pd.DataFrame(TESTS), ["component 1", "2 · <i>loop"])): {
        "data.0.z": [[np.nan, 0], [np.nan, 1]],
        "data.0.colorscale": [(0, "rgba(115, 51, 168, 0.56)"), (1, "rgba(200, 60, 40, 0.16)")],
        "data.0.text.0.1": "&lt;b&gt;who, use of 2 · &lt;i&gt;loop: high: a, effect 1.00, 9 rows",
        "data.1.x": [1],
        "data.1.y": [1],
        "data.1.marker.color": ["rgba(47, 111, 179, 0.68)"],
    },
    (lambda: components.circles(SHARED, ("<b>", "b"), np.array([3, 5]), 1.5)): {
        "data.0.x": [0, 1, 0, 1],
        "data.0.y": [0, 0, 1, 1],
        "data.0.marker.size": 76 * 0.9 / 2 * np.sqrt(SHARED.ravel()),
        "data.1.marker.size": 76 * 0.9 / 2 * np.sqrt([1.5] * 4),
        "data.0.text.1": "&lt;b&gt; (3 rows) and b (5 rows):<br>1.00 components shared, "
        "25% of the most",
    },
    (lambda: components.circles(np.array([[np.nan, 1], [1, 2]]), "ab", np.array([3, 5]), 1.5)): {
        "data.0.x": [1, 0, 1],
        "data.1.x": [1, 0, 1],
    },
    (lambda: components.popularity_map(*VARIANCE)): {
        "data.0.z": VARIANCE[0],
        "layout.xaxis.ticktext": ["1", "2", "none"],
        "data.0.hovertemplate": "%{customdata}: explains %{text}<extra></extra>",
        "data.0.text.0": ["50.0% of class all", "20.0% of class all", "30.0% of class all"],
    },
    (lambda: components.popularity_bars(np.array([0.2, 0.9, 0.5]), FACTORS, even=0.5)): {
        "data.0.y": [0.9, 0.5, 0.2],
        "data.0.customdata.1": ["&lt;i&gt;three&lt;/i&gt;", "50.0%"],
        "layout.shapes.0.y0": 0.5,
    },
    (lambda: data.drift_chart(pd.DataFrame(DRIFT))): {
        "data.0.x": [0.2, -0.5],
        "data.0.y": [0, 1],
        "data.0.marker.color": ["rgba(200, 60, 40, 0.4)", "rgba(47, 111, 179, 1.0)"],
        "data.0.text.1": "&lt;b&gt;, level: lower, effect -0.50, q 0.01, old 3, new 1",
        "data.1.x": [0.7],
        "data.1.y": [0],
    },
    (lambda: data.likelihood(np.array([1, 2, 3]), np.array([-200.0, -100.0, -50.0]), 100)): {
        "data.0.x": [1, 2, 3],
        "data.0.y": [-2.0, -1.0, -0.5],
        "data.0.customdata": ["−2.00", "−1.00", "−0.50"],
    },
    (lambda: groups.bars([NUMBER, SHARE])): {
        "data.0.x": [0.8, -0.5],
        "data.0.customdata.0": ["a &lt;b&gt;bold&lt;/b&gt; name", "2.5", "−1", "+0.80"],
        "data.0.customdata.1": ["use of component 2", "10%", "60%", "−0.50"],
        "data.0.marker.color": [groups.MORE, groups.LESS],
        "layout.yaxis.range": [1.6, -0.6],
        "layout.yaxis.ticktext": ["a &lt;b&gt;bold&lt;/b&gt; name", "use of component 2"],
    },
    (lambda: studies.indicators({"one": Z, "two": ~Z})): {
        "data.0.z": Z.T,
        "data.1.z": ~Z.T,
        "data.0.colorscale": [(0, "#ffffff"), (1, "#000000")],
        "data.0.zmax": 1,
        "layout.annotations.1.text": "two",
        "layout.yaxis.range": [3.5, 0.5],
    },
    (lambda: studies.popularity(POPULAR)): {
        "layout.annotations.0.text": "Sparse data",
        "data.0.line.color": studies.POPULARITY_COLOURS[0],
        "data.1.xaxis": "x2",
        "data.2.line.color": studies.TRUTH,
        "data.2.x": [0.9, 0.1],
        "data.2.y": [1, 2],
        "data.3.showlegend": False,
        "layout.yaxis.autorange": "reversed",
    },
    (lambda: studies.scatters([CODED, CODED, RGB], ["p", "q <i>"])): {
        "data.0.showlegend": True,
        "data.1.name": "q &lt;i&gt;",
        "data.1.x": [1.0, 2.0],
        "data.2.showlegend": False,
        "data.4.marker.color": ["#ff0000", "#00ff00", "#0000ff"],
        "data.4.marker.symbol": ["circle", "diamond", "diamond"],
    },
    (lambda: studies.sheets({"x": np.zeros((5, 3, 2), np.uint8), "y <i>": Z[None] * 1}, 3)): {
        "layout.images.1.x": 0,
        "layout.annotations.1.text": "y &lt;i&gt;",
    },
    (lambda: studies.boxes(SPREADS)): {"data.0.median": [50], "data.2.q3": [3]},
    (lambda: studies.mixed_bars([{"objects": n} for n in (1, 3, 3)])): {
        "data.0.x": [1, 3],
        "data.0.y": [1, 2],
    },
    (lambda: studies.space(np.eye(3), np.array([0, 1, 1]), ["a", "b"], np.eye(3))): {
        "data.0.x": [1.0],
        "data.1.x": [0.0, 0.0],
        "data.4.i": [0, 0],
    },
    (lambda: studies.dots(METHODS, "mse", "error", log=True)): {
        "layout.annotations.1.text": "K = 20",
        "data.0.x": [1.0, 2.0],
        "data.0.y": ["FA", "aFA"],
        "data.2.error_x.array": [0.0],
        "layout.yaxis.categoryarray": ["aFA", "FA"],
        "layout.xaxis.type": "log",
    },
    (lambda: studies.dots([], "mse", "error")): {"data": []},
}


def plain(value: object) -> object:
    return value if isinstance(value, str | float) else list(value)


@pytest.mark.parametrize(("build", "expected"), CASES.items())
def test_a_figure_carries_its_numbers(build, expected):
    figure = build()
    for path, value in expected.items():
        at: object = figure
        for step in path.split("."):
            at = at[int(step)] if step.isdigit() else getattr(at, step)
        if isinstance(value, str | bool) or value is None:
            assert at == value, path
        elif np.array(value).dtype.kind in "fiub":
            np.testing.assert_allclose(np.array(at, float), np.array(value, float), err_msg=path)
        else:
            assert [*map(plain, at)] == [*map(plain, value)], path


def test_thumbnails_are_apart_and_on_their_points(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 400))
    chosen = studies.spaced(x, y, 6)
    cells = {
        (int((a - x.min()) / np.ptp(x) * 6 - 1e-9), int((b - y.min()) / np.ptp(y) * 6 - 1e-9))
        for a, b in zip(x[chosen], y[chosen], strict=True)
    }
    assert len(cells) == len(chosen) <= 36
    images = rng.integers(0, 255, (400, 5, 4)).astype(np.uint8)
    panel = Scatter("A <b>", x, y, np.zeros(400, int), images=images)
    figure = studies.scatters([panel, panel._replace(images=None)], ["one"])
    assert [image.x for image in figure.layout.images] == list(x[studies.spaced(x, y)])
    assert figure.layout.annotations[0].text == "A &lt;b&gt;"


LINE = go.Scatter(x=[1, 2, 3], y=[5.0, -7.25, 6.0], mode="lines")
FALLS = "line: 3 values from −7.25 at 2 to 6 at 3"
BARS = go.Bar(x=[0.5, 0.2], y=["{1,2}", "{1,3}"], orientation="h", name="sets")
PLAIN = go.Bar(x=[0.5, 0.2], y=[0, 1], orientation="h")
TICKS = {"yaxis": {"tickvals": [0, 1], "ticktext": ["{1,2}", "{1,3}"]}}
GREY = go.Heatmap(z=np.arange(6).reshape(2, 3))
GAPS = go.Scatter(y=[None, 2.0, np.nan, 1.0], mode="markers", name="a")
DESCRIBED = [
    (LINE, {"xaxis_title": "pass", "yaxis_title": "gain"}, "gain over pass; " + FALLS),
    (BARS, {}, "sets, bars: 2 values from 0.2 at {1,3} to 0.5 at {1,2}"),
    (PLAIN, TICKS, "bars: 2 values from 0.2 at {1,3} to 0.5 at {1,2}"),
    (GREY, {"title": "T"}, "T; table of colours: 2 by 3, 6 values from 0 to 5"),
    (GAPS, {}, "a, points: 2 values from 1 to 2"),
    (go.Scatter(x=[1], y=["text"], mode="markers"), {}, "points"),
    (go.Scatter(y=[1], name="b", visible=False), {}, ""),
]


@pytest.mark.parametrize(("trace", "layout", "words"), DESCRIBED)
def test_a_figure_is_described_by_its_axes_and_its_extremes(trace, layout, words):
    assert described(go.Figure(trace, layout)) == (f"Figure: {words}." if words else "Figure.")


EVIL = '<img src="https://example.org/x" onerror=alert(1)>'


def loaded(html: str) -> list[str]:
    """Return everything that a page would load, apart from what its scripts say."""
    outside = re.sub(r"(?s)(<script[^>]*>).*?</script>", r"\1", html)
    names = "src|href|srcset|data|poster|action|background"
    quoted = re.findall(rf'<[^<>]*? (?:{names})="([^"]*)"', outside)
    return quoted + re.findall(r"url\(|@import", outside)


def test_pages_reports_and_tables_load_nothing_and_show_texts_literally():
    picture, figure = np.zeros((4, 4), np.uint8), go.Figure(go.Scatter(y=[1, 2]))
    html = files.fragment(figure, "A <b>")
    assert loaded(html) == []
    assert "<title>A &lt;b&gt;</title>" in html
    assert '"showSendToCloud": false' in html
    assert html.count('class="plotly-graph-div"') == 1
    body = files.section(EVIL, files.paragraph(EVIL), files.paragraph(EVIL, "pre"))
    cells = [EVIL, 0.123456, 11279.6, None, picture]
    body += files.table([EVIL] * 5, [cells]) + files.facts({EVIL: EVIL})
    body += files.fold(EVIL, files.image(picture, EVIL)) + files.fragment(figure)
    html = files.framed(EVIL, body, "/* plotly.js v */")
    assert [source[:22] for source in loaded(html)] == ["data:image/png;base64,"] * 2
    assert len(re.findall("<img ", html)) == 2
    assert "onerror=alert(1)>" not in html.replace("&gt;", "")
    assert "<td>0.1235</td><td>11,280</td><td>–</td>" in html
    assert html.count("plotly.js v") == 1
    assert files.markdown_table(["a", "b"], [[1, "p | q\\"], ["one\n\ntwo", None]]) == (
        "| a | b |\n| --- | --- |\n| 1 | p \\| q\\\\ |\n| one two | None |"
    )


RED, BLUE, WHITE = map(list, (components.POSITIVE, components.NEGATIVE, components.ZERO))


def test_pixels_and_loadings_of_components_have_their_colours_places_and_names():
    colours = diverging(np.array([-2.0, 0.0, 2.0, 1.0]))
    assert colours[:3].tolist() == [BLUE, WHITE, RED]
    assert colours[3, 0] > colours[3, 2]  # half way: reddish
    rgba = components.painted(np.ones(3), np.array([1.0, -1.0, 0.0]), np.ones(3, bool), 1.0)
    assert rgba[0, 0] > rgba[0, 2]
    assert rgba[1, 2] > rgba[1, 0]
    assert len(set(rgba[2, :3].tolist())) == 1
    component = np.zeros(12)
    component[5] = -1.0  # row 1, column 1 of 3 x 4
    image = components.component_image(component, (3, 4))
    assert image[1, 1].tolist() == BLUE
    assert (np.delete(image.reshape(-1, 3), 5, axis=0) == components.ZERO).all()
    component = np.zeros((2, 2, 3))
    component[0, 0], component[1, 1] = [1, 1, 1], [1, 1, -2]
    image = components.component_image(component.ravel(), (2, 2, 3))
    assert (image[0, 0].tolist(), image[1, 1].tolist()) == ([191] * 3, [191, 191, 0])
    loadings = components.ranked_loadings(np.array([0.1, -0.8, 0.4]), ("a", "b", "c"), n=2)
    assert [(item.name, item.value) for item in loadings] == [("b", -0.8), ("c", 0.4)]
    assert [item.share for item in loadings] == [1.0, pytest.approx(0.5, abs=1e-12)]
    assert components.ranked_loadings(np.array([0.0, 1.0]), None)[0].name == "feature 2"


def test_every_component_has_its_image_under_its_name(seed):
    patterns = np.random.default_rng(seed).normal(size=(8, 6))
    patterns[:, 0], patterns[:, -1] = 9, -9  # the first and the last pixel
    titles = [f"<{k}>\nhalf" for k in range(8)]
    drawn = component_figure(patterns, titles, (2, 3)).axes[:8]
    assert [axes.get_title(loc="left") for axes in drawn] == titles
    pixels = [axes.images[0].get_array() for axes in drawn]
    assert all((p[0, 0].tolist(), p[-1, -1].tolist()) == (RED, BLUE) for p in pixels)


def test_without_images_the_strongest_features_are_bars():
    patterns = np.array([[3.0, -1, 2], [0, 5, -6]])
    axes = component_figure(patterns, ["one", "$two$"], None, ("a", "b", "c")).axes
    assert [[bar.get_width() for bar in each.patches] for each in axes] == [[-1, 2, 3], [0, 5, -6]]
    names = [[label.get_text() for label in each.get_yticklabels()] for each in axes]
    assert names == [["b", "c", "a"], ["a", "b", "c"]]


AXES = {  # names of features or seconds between them: the axis of a component's curve
    "wavenumbers": ([str(4000 - 4 * j) for j in range(60)], 4000 - 4.0 * np.arange(60), ""),
    "units": ([f"{400 + j / 2} nm" for j in range(60)], 400 + np.arange(60) / 2, "nm"),
    "no names": (None, np.arange(1.0, 61), "feature"),
    "words": ([chr(97 + j // 26) + chr(97 + j % 26) for j in range(60)], np.arange(1.0, 61), ""),
    "a recording": (2.5, np.arange(60) * 2.5, "seconds"),
}


@pytest.mark.parametrize("name", AXES)
def test_components_of_ordered_features_are_curves_over_the_numbers_in_their_names(name, seed):
    names, places, unit = AXES[name]
    patterns = np.random.default_rng(seed).normal(size=(2, 60)).cumsum(axis=1)
    facts = {"repetition": names} if isinstance(names, float) else {"ordered": True}
    names = None if isinstance(names, float) else tuple(names or ()) or None
    data = Dataset("x", patterns, ["a", "b"], feature_names=names, provenance=facts)
    figure = component_figure(patterns, ["one", "$two$"], None, names, axis=data.axis)
    for each, pattern in zip(figure.axes, patterns, strict=True):
        np.testing.assert_allclose(each.lines[0].get_xydata(), np.stack([places, pattern], 1))
        assert (each.get_xlabel(), len(each.patches)) == (unit or "feature" * (name == "words"), 0)
        assert each.get_xlim() == (places[0], places[-1])
        assert len(each.get_xticks()) > 2


def test_the_sheet_holds_all_components_in_reading_order():
    patterns = np.zeros((7, 4))
    patterns[range(7), np.arange(7) % 4] = 1
    sheet, side = component_sheet(patterns, (2, 2)), 112 + 8
    assert sheet.shape == (2 * side - 8, 6 * side - 8, 3)
    assert (sheet[side - 8 : side] == 255).all()
    assert (sheet[side:, side - 8 :] == 255).all(), "no image stands there"
    for k in range(7):
        line, column = divmod(k, 6)
        y, x = line * side + 112 * (k % 4 // 2) // 2, column * side + 112 * (k % 4 % 2) // 2
        assert sheet[y + 5, x + 5].tolist() == RED


@pytest.mark.parametrize("colour", [False, True])
def test_images_are_side_by_side_on_their_colours(colour):
    shape = (3, 60, 70, 3) if colour else (3, 60, 70)
    images = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    row = image_row(images, ["#ff0000", "#00ff00", "#0000ff"])
    assert row.shape == (60 + STRIP, 3 * 70 + 2 * GAP, 4)
    second = row[:60, 70 + GAP : 140 + GAP, :3]
    np.testing.assert_array_equal(second, images[1] if colour else np.stack([images[1]] * 3, -1))
    assert row[-1, 70 + GAP].tolist() == [0, 255, 0, 255]
    assert row[:, 70 : 70 + GAP, 3].max() == 0
    small = np.arange(128, dtype=np.uint8).reshape(2, 8, 8)
    row = image_row(small)  # enlarged by a whole number
    assert row.shape == (56, 2 * 56 + GAP, 4)
    np.testing.assert_array_equal(row[::7, :56:7, 0], small[0])


def test_a_panel_for_each_subspace_fills_the_thumbnail_in_the_colours_of_the_classes():
    active = np.zeros((60, 3), dtype=bool)
    active[:30, :2] = active[30:, 1:] = True
    picture = thumbnail(fitted_run(active), np.repeat([0, 1], 30))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    for half, code in ((picture[:, : WIDTH // 2], 0), (picture[:, WIDTH // 2 :], 1)):
        assert (half == list(bytes.fromhex(CATEGORICAL[code][1:]))).all(axis=2).any()
    light = np.array([[[255, 255, 255], [200, 40, 60], [0, 0, 0]]], np.uint8)
    dark = in_the_dark(light)
    assert dark.tolist() == [[[0, 0, 0], [215, 55, 75], [255, 255, 255]]]
    assert np.array_equal(in_the_dark(dark), light)


def test_columns_become_classes_or_numbers_and_classes_are_sorted_as_people_count():
    for column, kind in (
        (np.array(["a", "b"]), "category"),
        (np.array([0, 1, 1]), "category"),
        (np.array([True, False]), "category"),
        (np.arange(50), "number"),
        (np.array([0.0, 1.0]), "number"),
    ):
        assert style.colour_by("x", column).kind == kind
    colour = style.colour_by("x", np.array(["obj10", "obj2", "", "obj1", "obj2"]))
    assert colour.names == ("obj1", "obj2", "obj10")
    np.testing.assert_array_equal(colour.values, [2, 1, -1, 0, 1])


def levels_of(values, n_classes: int = 0) -> style.Levels:
    kind, names = "category" if n_classes else "number", tuple(f"{i}" for i in range(n_classes))
    return style.levels(style.Colour(kind, "x", np.asarray(values), names))


def test_a_class_keeps_its_colour_and_a_number_rises_along_its_scale_without_its_outliers():
    every, some = levels_of([0, 1, 2], 3), levels_of([2, 2], 3)
    assert every.table[every.codes[2]] == some.table[some.codes[0]]
    gaps = levels_of([0, -1], 1)
    assert gaps.table[gaps.codes[1]] == style.MISSING
    assert gaps.table[gaps.codes[0]] == style.CATEGORICAL[0]
    forty = levels_of(np.arange(40), 40)
    assert len({(forty.table[code], forty.shapes[code]) for code in forty.codes}) == 40
    many = levels_of(np.arange(300), 300)
    assert many.codes.dtype == np.uint16
    np.testing.assert_array_equal(many.codes, np.arange(300))
    levels = levels_of(np.append(np.linspace(3, 5, 200), np.nan))
    codes = levels.codes[:200].astype(int)
    assert np.all(np.diff(codes) >= 0)
    assert (codes[0], codes[-1]) == (0, style.LEVELS - 1)
    assert levels.table[levels.codes[200]] == style.MISSING
    levels = levels_of(np.append(np.linspace(0, 1, 1000), 1e6))
    assert levels.limits[1] < 1.01
    assert levels.clipped == (True, True)
    ages = levels_of(np.r_[3, np.repeat(np.arange(12, 63), 20), 74, 86, np.nan])
    assert (ages.limits, ages.clipped) == ((12.0, 62.0), (True, True)), "whole numbers"
    assert levels_of(np.array([1, 2, 5])).clipped == (False, False)
    assert np.ptp(levels.codes[:1000].astype(int)) == style.LEVELS - 1
    for values in (np.full(5, 3.0), np.full(5, np.nan)):
        assert len(set(levels_of(values).codes)) == 1


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def test_classes_stand_out_on_panel_and_page_light_and_dark():
    for ground in map(luminance, ("#ffffff", "#f4f6f9", "#161d27", "#0c1016")):
        for colour in (*style.CATEGORICAL, *style.MANY):
            light, dark = sorted([luminance(colour), ground], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3.0, colour


def test_without_what_it_needs_figures_have_another_typeface(tmp_path, monkeypatch):
    """On a machine on which no figure has been drawn, and Source Sans is not installed."""

    refuse = Mock(side_effect=OSError(28, "No space left on device"))
    manager = font_manager.fontManager
    others = [font for font in manager.ttflist if font.name != still.NAME]
    monkeypatch.setattr(manager, "ttflist", others)
    monkeypatch.setattr(matplotlib, "get_cachedir", lambda: str(tmp_path))
    lacks = ((still, "find_spec", lambda _: None), (woff2, "haveBrotli", False))
    for place, name, value in (*lacks, (still.files, "write", refuse)):
        still.install.cache_clear()
        with monkeypatch.context() as now:
            now.setattr(place, name, value)
            with styled():
                assert still.NAME not in rcParams["font.family"]
    still.install.cache_clear()
    assert list(tmp_path.iterdir()) == []
