"""The heat map of associations has a square for use and a ring for the score."""

import pandas as pd

from appca.plots.components import association_map


def test_squares_and_rings_are_where_their_tests_are():
    tests = pd.DataFrame(
        [
            ("<b>who", 2, "use", "high: a", 1.0, 9),
            ("how", 1, "score", "falls", 0.5, 5),
            ("how", 2, "use", "rises", 0.2, 9),
        ],
        columns=["column", "component", "part", "direction", "effect", "n"],
    )
    squares, rings = association_map(tests, ["component 1", "2 · <i>loop"]).data
    assert squares.z.tolist()[0][1] == 0
    assert squares.z.tolist()[1][1] == 1
    assert pd.isna(squares.z[:, 0]).all()
    assert [colour for _, colour in squares.colorscale] == [
        "rgba(115, 51, 168, 0.56)",
        "rgba(200, 60, 40, 0.16)",
    ]
    assert (rings.x.tolist(), rings.y.tolist()) == ([1], [1])
    assert (
        squares.text[0][1] == "&lt;b&gt;who, use of 2 · &lt;i&gt;loop: high: a, effect 1.00, 9 rows"
    )
    assert list(rings.marker.color) == ["rgba(47, 111, 179, 0.68)"]
