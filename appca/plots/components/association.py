"""What goes with components as a heat map: colour for use, a ring for the score."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from appca.plots.frame import CLEAR, framed, lines, plain
from appca.words.wording import shortened

if TYPE_CHECKING:
    import pandas as pd

RISES, FALLS, CLASSES = (200, 60, 40), (47, 111, 179), (115, 51, 168)
MOST_NAMES = 8
LINE, ABOVE = 24, 56  # pixels: a column, and the names of components above them
RING, MOST_LETTERS = 13, 26


def association_map(tests: "pd.DataFrame", components: Sequence[str]) -> go.Figure:
    """Draw a line a column, in the order of the tests, and K components across.

    `tests` is what `appca.association` returns, or some rows of it; cells without a test are blank.
    """
    columns = list(dict.fromkeys(tests["column"]))
    lines_of = {column: place for place, column in enumerate(columns)}
    x, y = tests["component"].to_numpy(), tests["column"].map(lines_of).to_numpy()
    use = (tests["part"] == "use").to_numpy()
    kinds = zip(tests["direction"], tests["effect"], use.tolist(), strict=True)
    colours = np.array([_colour(*of) for of in kinds])
    told = np.array([_told(test, components) for test in tests.to_dict("records")])
    cells = np.full((len(columns), len(components)), np.nan)
    cells[y[use], x[use] - 1] = np.arange(use.sum())
    steps = max(int(use.sum()) - 1, 1)
    scale = [[i / steps, colour] for i, colour in enumerate(colours[use])] or [[0, CLEAR]]
    scale += [[1, scale[-1][1]]] if len(scale) == 1 else []
    texts = np.full(cells.shape, "", dtype=object)
    texts[y[use], x[use] - 1] = told[use]
    places = {"x": np.arange(1, len(components) + 1), "y": np.arange(len(columns))}
    colouring = {"zmin": 0, "zmax": steps, "colorscale": scale, "showscale": False}
    look = {"xgap": 2, "ygap": 2, "hoverongaps": False}
    marker = {"symbol": "circle-open", "size": RING, "color": colours[~use], "opacity": 1}
    rings = {"mode": "markers", "marker": marker | {"line": {"width": 3}}}
    figure = go.Figure(
        [
            go.Heatmap(z=cells, **places, **colouring, **look, text=texts, name="use"),
            go.Scatter(x=x[~use], y=y[~use], **rings, text=told[~use], name="score"),
        ]
    ).update_traces(hovertemplate="%{text}<extra></extra>")
    heads = [plain(shortened(name, MOST_LETTERS).removeprefix("component ")) for name in components]
    if len(heads) > MOST_NAMES:  # no room for more than numbers
        heads = [str(number) for number in range(1, len(heads) + 1)]
    across = {"tickvals": list(range(1, len(components) + 1)), "ticktext": heads}
    across |= {"title": "component", "side": "top", "range": [0.5, len(components) + 0.5]}
    across |= {"showgrid": False, "zeroline": False}
    axes: dict[str, Any] = {"xaxis": across, "yaxis": lines(columns, MOST_LETTERS)}
    axes |= {"plot_bgcolor": CLEAR, "showlegend": False}
    return framed(figure, LINE * len(columns) + ABOVE, top=ABOVE, **axes)


def _colour(direction: str, effect: float, use: bool) -> str:
    """Return a colour whose strength is the effect; squares are paler, so that rings show."""
    red, green, blue = {"rises": RISES, "falls": FALLS}.get(direction, CLASSES)
    strength = 0.06 + 0.5 * effect if use else 0.35 + 0.65 * effect
    return f"rgba({red}, {green}, {blue}, {strength:.2f})"


def _told(test: "dict[Hashable, Any]", components: Sequence[str]) -> str:
    what = "score on" if test["part"] == "score" else "use of"
    name = shortened(components[test["component"] - 1])
    return plain(
        f"{shortened(test['column'])}, {what} {name}: {test['direction']}, "
        f"effect {test['effect']:.2f}, {test['n']:,} rows"
    )
