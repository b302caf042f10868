"""Every public figure builds and carries its numbers; texts of the data stay text."""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from appca.analysis.groups import GroupDifference
from appca.plots import check, components, data, files, groups, studies
from appca.plots.studies import Scatter
from appca.plots.style import described

K, L = (2, 4, 8), (1, 2)
VALUES = np.array([[-9.5, -8.25], [-7.0, np.nan], [-6.0, -5.0]])
GRID = check.Picture(VALUES, K, L, "nats per row")
COSINES = np.array([[1.0, 0.5], [0.8, 0.7]])
CLIMB = -100.0 + np.arange(30.0)
SHARED = np.array([[4.0, 1.0], [1.0, 2.0]])
Z = np.array([[True, False, False], [True, True, False]])
TESTS = pd.DataFrame(
    [
        ("<b>who", 2, "use", "high: a", 1.0, 9),
        ("how", 1, "score", "falls", 0.5, 5),
        ("how", 2, "use", "rises", 0.2, 9),
    ],
    columns=["column", "component", "part", "direction", "effect", "n"],
)
DRIFT = pd.DataFrame(
    [
        ("a", "level", 0.2, "higher", 1.0, 2.0, 0.2),
        ("<b>", "level", -0.5, "lower", 3.0, 1.0, 0.01),
        ("a", "spread", 0.7, "higher", 1.0, 5.0, 0.01),
    ],
    columns=["column", "part", "effect", "direction", "old", "new", "q"],
)
NUMBER = GroupDifference("feature", "a <b>bold</b> name", 2.5, -1.0, 0.8, 1.9, 1e-9, 1e-8)
SHARE = GroupDifference("use", "use of component 2", 0.1, 0.6, -0.5, None, 1e-5, 1e-4)
OF = ("explains", "variance", "none")
VARIANCE = (np.array([[0.5, 0.2, 0.3]]), ["all"], ["component 1", "2 · loop", "no component"], OF)
SURE = np.array([0.0, 0.04, 0.26, 0.49, 0.51, 1.0, 1.0000001])
MEANS = {"a": np.array([1.0, 3.0]), "b": np.array([4.0])}


def rows(*values: tuple) -> list[dict]:
    names = ("design", "K", "title", "mse", "mse_sd")
    return [dict(zip(names, value, strict=True)) for value in values]


METHODS = rows(
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
CASES: dict[str, tuple[Callable[[], go.Figure], dict[str, object]]] = {
    "a grid: columns are K, rows L, missing cells empty": (
        lambda: check.heat_map(GRID),
        {
            "data.0.x": ["2", "4", "8"],
            "data.0.y": ["L = 1", "L = 2"],
            "data.0.z": VALUES.T,
            "data.0.text": [["−9.5", "−7.0", "−6.0"], ["−8.2", "", "−5.0"]],
            "data.2.z": [[np.nan] * 3, [np.nan, 0, np.nan]],
            "data.1.customdata.2.2": "−7.000",
        },
    ),
    "each L has its curve, the suggested one is strong with a ring": (
        lambda: check.by_budget(GRID, (8, 2)),
        {
            "data.0.x": [2, 4, 8],
            "data.1.x": [2, 8],
            "data.0.line.width": 1.5,
            "data.1.line.width": 3,
            "data.2.x": [8],
            "data.2.y": [-5.0],
        },
    ),
    "every fit is a dot and the bar is their mean": (
        lambda: check.stability(COSINES, (0.8, 0.95)),
        {
            "data.0.y": [0.9, 0.6],
            "data.1.x": ["component 1", "component 1", "component 2", "component 2"],
            "data.1.y": [1.0, 0.8, 0.5, 0.7],
            "layout.shapes.1.y0": 0.95,
        },
    ),
    "a trace is every draw at its sweep": (
        lambda: check.traces(COSINES, "Noise", first=205, step=5),
        {"data.1.name": "chain 2", "data.1.x": [205, 210], "data.1.y": [0.8, 0.7]},
    ),
    "a long trace is an even selection at the right sweeps": (
        lambda: check.traces(np.arange(10_000.0)[None], "x"),
        {"data.0.x": np.arange(1, 10_001, 5), "data.0.y": np.arange(0, 10_000, 5)},
    ),
    "the burn-in is shaded": (
        lambda: check.likelihood_with_burn_in(CLIMB, 10, 12),
        {"data.0.y": CLIMB / 10, "layout.shapes.0.x0": 0.5, "layout.shapes.0.x1": 12.5},
    ),
    "membership counts every row": (
        lambda: check.membership(SURE),
        {"data.0.y": [2, *[0] * 4, 1, *[0] * 3, 1, 1, *[0] * 8, 2]},
    ),
    "neighbours kept": (
        lambda: check.neighbours_kept({"mine": 0.5, "PCA": 0.25}),
        {"data.0.x": [0.5, 0.25], "data.0.y": ["mine", "PCA"], "data.0.text": ["50%", "25%"]},
    ),
    "errors have their spread": (
        lambda: check.hidden_errors(MEANS),
        {"data.0.x": [2.0, 4.0], "data.0.error_x.array": [np.sqrt(2), 0.0]},
    ),
    "squares for use, rings for scores": (
        lambda: components.association_map(TESTS, ["component 1", "2 · <i>loop"]),
        {
            "data.0.z": [[np.nan, 0], [np.nan, 1]],
            "data.0.colorscale": [(0, "rgba(115, 51, 168, 0.56)"), (1, "rgba(200, 60, 40, 0.16)")],
            "data.0.text.0": [
                "",
                "&lt;b&gt;who, use of 2 · &lt;i&gt;loop: high: a, effect 1.00, 9 rows",
            ],
            "data.1.x": [1],
            "data.1.y": [1],
            "data.1.marker.color": ["rgba(47, 111, 179, 0.68)"],
        },
    ),
    "circles by area, rings on the same scale": (
        lambda: components.circles(SHARED, ("<b>", "b"), np.array([3, 5]), 1.5),
        {
            "data.0.x": [0, 1, 0, 1],
            "data.0.y": [0, 0, 1, 1],
            "data.0.marker.size": 76 * 0.9 / 2 * np.sqrt(SHARED.ravel()),
            "data.1.marker.size": 76 * 0.9 / 2 * np.sqrt([1.5] * 4),
            "data.0.text.1": "&lt;b&gt; (3 rows) and b (5 rows):<br>1.00 components shared, "
            "25% of the most",
        },
    ),
    "a pair without rows is left blank": (
        lambda: components.circles(np.array([[np.nan, 1], [1, 2]]), "ab", np.array([3, 5]), 1.5),
        {"data.0.x": [1, 0, 1], "data.1.x": [1, 0, 1]},
    ),
    "a map of variance names its last column": (
        lambda: components.popularity_map(*VARIANCE),
        {
            "data.0.z": VARIANCE[0],
            "layout.xaxis.ticktext": ["1", "2", "none"],
            "data.0.hovertemplate": "%{customdata}: explains %{text}<extra></extra>",
            "data.0.text.0": ["50.0% of class all", "20.0% of class all", "30.0% of class all"],
        },
    ),
    "bars fall and remember their components": (
        lambda: components.popularity_bars(np.array([0.2, 0.9, 0.5]), FACTORS, even=0.5),
        {
            "data.0.y": [0.9, 0.5, 0.2],
            "data.0.customdata.1": ["&lt;i&gt;three&lt;/i&gt;", "50.0%"],
            "layout.shapes.0.y0": 0.5,
        },
    ),
    "bars for the level, rings for the spread, pale by chance": (
        lambda: data.drift_chart(DRIFT),
        {
            "data.0.x": [0.2, -0.5],
            "data.0.y": [0, 1],
            "data.0.marker.color": ["rgba(200, 60, 40, 0.4)", "rgba(47, 111, 179, 1.0)"],
            "data.0.text.1": "&lt;b&gt;, level: lower, effect -0.50, q 0.01, old 3, new 1",
            "data.1.x": [0.7],
            "data.1.y": [0],
        },
    ),
    "the likelihood is by the row": (
        lambda: data.likelihood(np.array([1, 2, 3]), np.array([-200.0, -100.0, -50.0]), 100),
        {
            "data.0.x": [1, 2, 3],
            "data.0.y": [-2.0, -1.0, -0.5],
            "data.0.customdata": ["−2.00", "−1.00", "−0.50"],
        },
    ),
    "effects of a group from the top, coloured by sign": (
        lambda: groups.bars([NUMBER, SHARE]),
        {
            "data.0.x": [0.8, -0.5],
            "data.0.customdata.0": ["a &lt;b&gt;bold&lt;/b&gt; name", "2.5", "−1", "+0.80"],
            "data.0.customdata.1": ["use of component 2", "10%", "60%", "−0.50"],
            "data.0.marker.color": [groups.MORE, groups.LESS],
            "layout.yaxis.range": [1.6, -0.6],
            "layout.yaxis.ticktext": ["a &lt;b&gt;bold&lt;/b&gt; name", "use of component 2"],
        },
    ),
    "ones are black, factors down": (
        lambda: studies.indicators({"one": Z, "two": ~Z}),
        {
            "data.0.z": Z.T,
            "data.1.z": ~Z.T,
            "data.0.colorscale": [(0, "#ffffff"), (1, "#000000")],
            "data.0.zmax": 1,  # also where all entries are alike
            "layout.annotations.1.text": "two",
            "layout.yaxis.range": [3.5, 0.5],  # the first factor on top
        },
    ),
    "the truth is red on top and each line is named once": (
        lambda: studies.popularity(POPULAR),
        {
            "layout.annotations.0.text": "Sparse data",
            "data.0.line.color": studies.POPULARITY_COLOURS[0],
            "data.1.xaxis": "x2",
            "data.2.line.color": studies.TRUTH,
            "data.2.x": [0.9, 0.1],
            "data.2.y": [1, 2],
            "data.3.showlegend": False,
            "layout.yaxis.autorange": "reversed",
        },
    ),
    "a class is once in the legend": (
        lambda: studies.scatters([CODED, CODED, RGB], ["p", "q <i>"]),
        {
            "data.0.showlegend": True,
            "data.1.name": "q &lt;i&gt;",
            "data.1.x": [1.0, 2.0],
            "data.2.showlegend": False,
            "data.4.marker.color": ["#ff0000", "#00ff00", "#0000ff"],
            "data.4.marker.symbol": ["circle", "diamond", "diamond"],
        },
    ),
    "a sheet for each name": (
        lambda: studies.sheets({"x": np.zeros((5, 3, 2), np.uint8), "y <i>": Z[None] * 1}, 3),
        {"layout.images.1.x": 0, "layout.annotations.1.text": "y &lt;i&gt;"},
    ),
    "one box a group": (
        lambda: studies.boxes(SPREADS),
        {"data.0.median": [50], "data.1.median": [51], "data.2.q3": [3]},
    ),
    "groups by their number of objects": (
        lambda: studies.mixed_bars([{"objects": n} for n in (1, 3, 3)]),
        {"data.0.x": [1, 3], "data.0.y": [1, 2]},
    ),
    "points in space and three planes": (
        lambda: studies.space(np.eye(3), np.array([0, 1, 1]), ["a", "b"], np.eye(3)),
        {"data.0.x": [1.0], "data.1.x": [0.0, 0.0], "data.4.i": [0, 0]},
    ),
    "methods from top to bottom, one panel a size": (
        lambda: studies.dots(METHODS, "mse", "error", log=True),
        {
            "layout.annotations.1.text": "K = 20",
            "data.0.x": [1.0, 2.0],
            "data.0.y": ["FA", "aFA"],
            "data.2.error_x.array": [0.0],
            "layout.yaxis.categoryarray": ["aFA", "FA"],  # from below
            "layout.scattermode": "group",
            "layout.xaxis.type": "log",
        },
    ),
    "an empty table is an empty figure": (lambda: studies.dots([], "mse", "error"), {"data": []}),
}


def plain(value: object) -> object:
    return value if isinstance(value, str | float) else list(value)


@pytest.mark.parametrize("name", CASES)
def test_a_figure_carries_its_numbers(name):
    build, expected = CASES[name]
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


EVIL = '<img src="https://example.org/x" onerror=alert(1)>'


def loaded(html: str) -> list[str]:
    """Return everything that a page would load, apart from what its scripts say."""
    outside = re.sub(r"(?s)(<script[^>]*>).*?</script>", r"\1", html)
    names = "src|href|srcset|data|poster|action|background"
    quoted = re.findall(rf'<[^<>]*? (?:{names})="([^"]*)"', outside)
    return quoted + re.findall(r"url\(|@import", outside)


def test_a_page_of_a_figure_is_complete_and_titled():
    html = files.fragment(go.Figure(go.Scatter(y=[1, 2])), "A <b>")
    assert loaded(html) == []
    assert "<title>A &lt;b&gt;</title>" in html
    assert '"showSendToCloud": false' in html
    assert html.count('class="plotly-graph-div"') == 1


def test_a_report_loads_nothing_and_shows_texts_literally():
    picture = np.zeros((4, 4), np.uint8)
    body = "".join(
        [
            files.section(EVIL, files.paragraph(EVIL), files.paragraph(EVIL, "pre")),
            files.table([EVIL], [[EVIL], [0.123456], [None], [picture]]),
            files.facts({EVIL: EVIL}),
            files.fold(EVIL, files.image(picture, EVIL)),
            files.fragment(go.Figure(go.Scatter(y=[1, 2]))),
        ]
    )
    html = files.framed(EVIL, body, "/* plotly.js v */")
    assert [source[:22] for source in loaded(html)] == ["data:image/png;base64,"] * 2
    assert len(re.findall("<img ", html)) == 2
    assert "onerror=alert(1)>" not in html.replace("&gt;", "")
    assert "<td>0.1235</td>" in html
    assert "<td>–</td>" in html
    assert html.count("plotly.js v") == 1


def test_a_markdown_table_has_a_line_a_row_and_no_cell_ends_it():
    assert files.markdown_table(["a", "b"], [[1, "p | q\\"], ["one\n\ntwo", None]]) == (
        "| a | b |\n| --- | --- |\n| 1 | p \\| q\\\\ |\n| one two | None |"
    )
