"""Charts of sharing: a grid of circles between classes, and how popular each component is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import percent
from appca.plots.frame import CLEAR, framed, plain
from appca.storage.wording import counted, shortened

# One hue of growing strength, so that "more" reads on white and on black.
FAINT, STRONG = "rgba(63, 144, 218, 0.22)", "rgba(63, 144, 218, 1)"
RING = "#8a94a0"  # readable on white and on black
WIDEST, CELL, NARROWEST = 560, 76, 14  # pixels: the whole grid, one cell at most and at least
FILLED = 0.9  # of a cell by the largest circle
LETTER, RIM, SCALE = 7, 22, 84  # pixels: a letter of a name, room beside it, the colour scale
BAR_HEIGHT = 280
MOST_LETTERS = 14  # of a class's name on an axis
SHORT = 2  # letters of a name that stands upright below a column
LINE, BELOW = 34, 70  # pixels of a heat map: a line at most, and below it


def circles(
    shared: np.ndarray, names: Sequence[str], counts: np.ndarray, expected: float
) -> go.Figure:
    """Draw a circle for each pair of classes, its area proportional to what their rows share.

    Parameters
    ----------
    shared : ndarray, shape (C, C)
        Mean numbers of shared components; NaN is left blank.
    names : sequence of str
        Of the classes, C of them.
    counts : ndarray, shape (C,)
        Rows of each class.
    expected : float
        What every circle would be if the class did not matter: drawn as a ring.

    Returns
    -------
    Figure
        Colour runs from the least to the most shared number of the grid, so that differences show
        where all circles are large.
    """
    n, left = len(names), RIM + LETTER * _longest(names)
    cell = float(np.clip((WIDEST - left - SCALE) / n, NARROWEST, CELL))
    most = max(float(np.nanmax(shared, initial=0.0)), expected, np.finfo(float).tiny)
    rows, columns = np.divmod(np.arange(n * n), n)
    values = shared.ravel()
    there = np.isfinite(values)
    figure = go.Figure(
        [
            _circles(
                columns[there],
                rows[there],
                values[there],
                cell * FILLED,
                most,
                _texts(shared, names, counts, most)[there],
            ),
            _rings(columns[there], rows[there], cell * FILLED * np.sqrt(expected / most)),
        ]
    )
    _label(figure, names)
    side = cell * n
    below = left if _longest(names) > SHORT else RIM + LETTER
    return figure.update_layout(
        width=int(side + left + SCALE),
        height=int(side + 8 + below),
        margin={"l": left, "r": SCALE, "t": 8, "b": below, "autoexpand": False},
        showlegend=False,
        plot_bgcolor=CLEAR,
    )


def popularity_bars(
    shares: np.ndarray,
    components: Sequence[str],
    even: float | None = None,
    numbers: Sequence[int] = (),
) -> go.Figure:
    """Draw the share of the rows that use each component, the most popular first.

    Parameters
    ----------
    shares : ndarray, shape (K,)
    components : sequence of str
        Names of the components.
    even : float, optional
        The share if all components were equally popular: a dashed line.
    numbers : sequence of int, optional
        Of the components; they are counted from 1 without.
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
    return framed(
        figure,
        BAR_HEIGHT,
        top=8,
        bargap=0.15,
        xaxis={
            "title": "component, most popular first",
            "showgrid": False,
            **_ticks([numbers[k] if numbers else k + 1 for k in order.tolist()]),
        },
        yaxis={"title": "share of the rows", "tickformat": ".0%", "rangemode": "tozero"},
    )


def popularity_map(
    shares: np.ndarray, names: Sequence[str], numbers: Sequence[int], components: Sequence[str]
) -> go.Figure:
    """Draw the share of each class's rows that use each component as a heat map.

    Parameters
    ----------
    shares : ndarray, shape (C, K)
    names : sequence of str
        Of the C classes.
    numbers : sequence of int
        Of the components, in the order drawn.
    components : sequence of str
        Their names.
    """
    height = float(np.clip(WIDEST / len(names), NARROWEST, LINE)) * len(names)
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=np.arange(1, len(numbers) + 1),
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
            hovertemplate="%{customdata}: used by %{text}<extra></extra>",
            colorbar={"tickformat": ".0%", "thickness": 10, "title": {"text": "rows"}},
        )
    )
    return framed(
        figure,
        int(height + BELOW),
        top=8,
        xaxis={"title": "component", "showgrid": False, **_ticks(numbers)},
        yaxis=_class_axis(names),
        plot_bgcolor=CLEAR,
    )


def _circles(
    x: np.ndarray, y: np.ndarray, values: np.ndarray, full: float, most: float, texts: np.ndarray
) -> go.Scatter:
    low, high = float(values.min(initial=most)), float(values.max(initial=0.0))
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={
            "size": full * np.sqrt(values / most),
            "color": values,
            "cmin": low if low < high else 0.0,
            "cmax": high,
            "colorscale": [[0, FAINT], [1, STRONG]],
            "line": {"width": 0},
            "opacity": 1,
            "showscale": True,
            "colorbar": {
                "thickness": 10,
                "len": 0.9,
                "x": 1.02,
                "title": {"text": "shared"},
                "nticks": 6,
            },
        },
        text=texts,
        hovertemplate="%{text}<extra></extra>",
    )


def _rings(x: np.ndarray, y: np.ndarray, size: float) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"symbol": "circle-open", "size": size, "color": RING, "line": {"width": 1}},
        hoverinfo="skip",
    )


def _texts(shared: np.ndarray, names: Sequence[str], counts: np.ndarray, most: float) -> np.ndarray:
    told = [
        f"{plain(shortened(name))} ({counted(int(count), 'row')})"
        for name, count in zip(names, counts, strict=True)
    ]
    largest = max(float(np.nanmax(shared, initial=0.0)), np.finfo(float).tiny)
    return np.array(
        [
            f"{told[a]} and {told[b]}:<br>"
            f"{shared[a, b]:.2f} components shared, {percent(shared[a, b] / largest)} of the most"
            for a in range(len(told))
            for b in range(len(told))
        ]
    )


def _label(figure: go.Figure, names: Sequence[str]) -> None:
    figure.update_yaxes(**_class_axis(names))
    across = _class_axis(names)
    del across["autorange"]
    limits = [-0.5, len(names) - 0.5]
    figure.update_xaxes(**across, range=limits, tickangle=-90 if _longest(names) > SHORT else 0)
    figure.update_yaxes(range=limits[::-1], autorange=False)


def _longest(names: Sequence[str]) -> int:
    return max(len(shortened(name, MOST_LETTERS)) for name in names)


def _class_axis(names: Sequence[str]) -> dict[str, Any]:
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [plain(shortened(name, MOST_LETTERS)) for name in names],
        "showgrid": False,
        "zeroline": False,
        "autorange": "reversed",
    }


def _told(components: Sequence[str]) -> np.ndarray:
    return np.array([plain(shortened(name)) for name in components])


def _ticks(numbers: Sequence[int]) -> dict[str, Any]:
    """Name the components below the bars where there is room for all their numbers."""
    if len(numbers) > 30:
        return {}
    return {"tickvals": list(range(1, len(numbers) + 1)), "ticktext": [str(n) for n in numbers]}
