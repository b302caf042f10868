"""A bar for the level and a ring for the spread, the largest effects first, pale by chance."""

import pandas as pd

from appca.plots.data import drift_chart


def test_bars_and_rings_are_where_their_tests_are():
    tests = pd.DataFrame(
        [
            ("a", "level", 0.2, "higher", 1.0, 2.0, 0.2),
            ("<b>", "level", -0.5, "lower", 3.0, 1.0, 0.01),
            ("a", "spread", 0.7, "higher", 1.0, 5.0, 0.01),
        ],
        columns=["column", "part", "effect", "direction", "old", "new", "q"],
    )
    bars, rings = drift_chart(tests).data
    assert list(zip(bars.x, bars.y, strict=True)) == [(0.2, 0), (-0.5, 1)]
    assert list(zip(rings.x, rings.y, strict=True)) == [(0.7, 0)]
    assert list(bars.marker.color) == ["rgba(200, 60, 40, 0.4)", "rgba(47, 111, 179, 1.0)"]
    assert bars.text[1] == "&lt;b&gt;, level: lower, effect -0.50, q 0.01, old 3, new 1"
