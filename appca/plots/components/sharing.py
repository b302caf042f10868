"""Charts of sharing: a grid of circles between classes, and how popular each component is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.plots.frame import CLEAR, framed, lines, plain
from appca.words.numbers import percent
from appca.words.wording import counted, shortened

# One hue of growing strength, so that "more" reads on white and on black.
FAINT, STRONG = "rgba(63, 144, 218, 0.22)", "rgba(63, 144, 218, 1)"
RING = "#8a94a0"  # readable on white and on black
CELL, FILLED = 76, 0.9  # pixels of a circle's cell, and the part that the largest takes
BESIDE, SCALE = 32, 84  # pixels: names of classes, the colour scale
BAR_HEIGHT = 280
MOST_LETTERS = 14  # of a class's name on an axis
TALLEST, NARROWEST, LINE, BELOW = 560, 14, 34, 70  # pixels of a heat map: all, a line, below it
LOWEST = 110  # pixels in which a scale of colours can be read


def circles(
    shared: np.ndarray, names: Sequence[str], counts: np.ndarray, expected: float
) -> go.Figure:
    """Draw a circle for each pair of classes, its area proportional to what their rows share.

    `shared` (C, C) has mean numbers of shared components, NaN is left blank; `counts` (C,) the rows
    of each class; `expected` is what every circle would be if the class did not matter: a ring.
    Colour runs from the least to the most shared number of the grid, so that differences show where
    all circles are large.
    """
    n = len(names)
    rows, columns = np.nonzero(np.isfinite(shared))
    values = shared[rows, columns]
    largest = max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    size = CELL * FILLED / np.sqrt(max(largest, expected))
    told = [
        f"{name} ({counted(int(count), 'row')})"
        for name, count in zip(_told(names), counts, strict=True)
    ]
    texts = [
        f"{told[a]} and {told[b]}:<br>"
        f"{value:.2f} components shared, {percent(value / largest)} of the most"
        for a, b, value in zip(rows, columns, values, strict=True)
    ]
    places = {"x": columns, "y": rows, "mode": "markers"}
    colours = {
        "color": values,
        "colorscale": [[0, FAINT], [1, STRONG]],
        "colorbar": {"thickness": 10, "title": {"text": "shared"}, "nticks": 6},
    }
    dots = {"size": size * np.sqrt(values), "line": {"width": 0}, "opacity": 1, **colours}
    even = np.full(len(values), size * np.sqrt(expected))  # a thumbnail keeps such sizes in scale
    ring = {"symbol": "circle-open", "size": even, "color": RING}
    hover = "%{text}<extra></extra>"
    return go.Figure(
        [
            go.Scatter(**places, marker=dots, text=texts, hovertemplate=hover),
            go.Scatter(**places, marker=ring, hoverinfo="skip"),
        ]
    ).update_layout(
        width=CELL * n + BESIDE + SCALE,
        height=CELL * n + BESIDE,
        margin={"l": BESIDE, "r": SCALE, "t": 0, "b": BESIDE, "autoexpand": False},
        xaxis=lines(names, MOST_LETTERS) | {"range": [-0.5, n - 0.5]},
        yaxis=lines(names, MOST_LETTERS),
        showlegend=False,
        plot_bgcolor=CLEAR,
    )


def popularity_bars(
    shares: np.ndarray, components: Sequence[str], even: float | None = None
) -> go.Figure:
    """Draw the share (K,) of the rows that use each component, the most popular first.

    `even`, the share if all were equally popular, is a dashed line.
    """
    order = np.argsort(-shares, kind="stable")
    figure = go.Figure(
        go.Bar(
            x=np.arange(1, len(shares) + 1),
            y=shares[order],
            customdata=[
                [name, percent(share, 1)]
                for name, share in zip(_told(components)[order], shares[order], strict=True)
            ],
            marker={"color": "#3f90da"},
            hovertemplate="%{customdata[0]}: used by %{customdata[1]} of the rows<extra></extra>",
        )
    )
    if even is not None:
        figure.add_hline(even, line={"color": RING, "dash": "dash", "width": 1.5})
    across = {"title": "component, most popular first", "showgrid": False}
    across |= _ticks((order + 1).tolist())
    down = {"title": "share of the rows", "tickformat": ".0%", "rangemode": "tozero"}
    return framed(figure, BAR_HEIGHT, top=8, bargap=0.15, xaxis=across, yaxis=down)


def popularity_map(
    shares: np.ndarray,
    names: Sequence[str],
    components: Sequence[str],
    of: tuple[str, str, str] = ("used by", "rows", ""),
) -> go.Figure:
    """Draw the share (C, K) of each class's rows that use each component as a heat map.

    `of` says what else the shares are, before a number and above the scale of colours, and what a
    last column beyond the components is called.
    """
    numbers = range(1, len(components) + 1)
    ticks = _ticks([*[*numbers][:-1], of[2]] if of[2] else numbers)
    height = max(LOWEST, np.clip(TALLEST / len(names), NARROWEST, LINE) * len(names))
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=list(numbers),
            y=np.arange(len(names)),
            zmin=0,
            zmax=1,
            colorscale=[[0, "rgba(63, 144, 218, 0.04)"], [1, STRONG]],
            xgap=1 if len(numbers) <= 60 else 0,
            ygap=1,
            customdata=np.broadcast_to(_told(components), shares.shape),
            text=[
                [f"{percent(share, 1)} of class {plain(name)}" for share in line]
                for name, line in zip(names, shares, strict=True)
            ],
            hovertemplate=f"%{{customdata}}: {of[0]} %{{text}}<extra></extra>",
            colorbar={"tickformat": ".0%", "thickness": 10, "title": {"text": of[1]}},
        )
    )
    return framed(
        figure,
        int(height + BELOW),
        top=8,
        xaxis={"title": "component", "showgrid": False, **ticks},
        yaxis=lines(names, 2 * MOST_LETTERS if of[2] else MOST_LETTERS),
        plot_bgcolor=CLEAR,
    )


def _told(components: Sequence[str]) -> np.ndarray:
    return np.array([plain(shortened(name)) for name in components])


def _ticks(numbers: Sequence[int | str]) -> dict[str, Any]:
    """Name the components below the bars where there is room for all their numbers."""
    if len(numbers) > 30:
        return {}
    return {"tickvals": list(range(1, len(numbers) + 1)), "ticktext": [str(n) for n in numbers]}
