"""Charts of a grid over K and L, and of how stable components are."""

from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from appca.data import numbers
from appca.plots.curves import LINE
from appca.plots.frame import CLEAR, above, framed
from appca.plots.palette import CATEGORICAL

CELL_HEIGHT, FRAME_HEIGHT = 44, 96  # pixels
MOST_TEXT = 16  # columns up to which a cell carries its number
BEST, NEAR = "#bd1f01", "#ffffff"  # outlines; white is seen on all of Viridis but its yellow end
NEAR_RIM = "#1c2733"
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "x", "triangle-down")
CURVES_HEIGHT = 330
NEUTRAL = "rgba(128, 140, 155, 0.9)"


class Picture(NamedTuple):
    """A number for every cell of a grid."""

    values: np.ndarray  # (nK, nL); NaN where there is nothing yet
    components: tuple[int, ...]  # K of the columns
    actives: tuple[int, ...]  # L of the rows
    name: str  # what the number is, with its unit
    hover: np.ndarray | None = None  # (nK, nL) str: further lines of a cell's card
    smaller_is_better: bool = False  # turns the colours round


def heat_map(
    picture: Picture, best: tuple[int, int] | None = None, near: np.ndarray | None = None
) -> go.Figure:
    """Draw a number for every cell; a click on a cell selects a point with customdata (K, L, ...).

    Parameters
    ----------
    picture : Picture
    best : (K, L), optional
        Outlined in red.
    near : ndarray of bool, shape (nK, nL), optional
        Cells as good as the best; outlined in white.
    """
    values, components, actives, name, _, smaller_is_better = picture
    columns, rows = [str(k) for k in components], [str(active) for active in actives]
    finite = values[np.isfinite(values)]
    digits = _digits(finite)
    texts = [[_number(value, digits) for value in row] for row in values.T]
    figure = go.Figure(
        go.Heatmap(
            z=values.T,
            x=columns,
            y=rows,
            text=texts if len(columns) <= MOST_TEXT else None,
            texttemplate="%{text}",
            textfont={"size": 12},
            colorscale="Viridis_r" if smaller_is_better else "Viridis",
            xgap=2,
            ygap=2,
            hoverinfo="skip",
            colorbar={"title": {"text": name, "side": "right"}, "thickness": 12, "len": 1.0},
            showscale=bool(finite.size),
        )
    )
    figure.add_trace(_targets(picture))
    figure.update_layout(
        shapes=_outlines(picture, best, near),
        height=FRAME_HEIGHT + CELL_HEIGHT * len(rows),
        margin={"l": 10, "r": 10, "t": 8, "b": 8},
        clickmode="event+select",
        dragmode=False,
        hovermode="closest",
        hoverdistance=40,
        showlegend=False,
        plot_bgcolor=CLEAR,
    )
    axis = {"type": "category", "showgrid": False, "zeroline": False, "automargin": True}
    figure.update_xaxes(
        title="components K", categoryorder="array", categoryarray=columns, **axis
    ).update_xaxes(range=[-0.5, len(columns) - 0.5])
    figure.update_yaxes(
        title="used by each row L", categoryorder="array", categoryarray=rows, **axis
    ).update_yaxes(range=[-0.5, len(rows) - 0.5])
    return figure


def by_budget(
    values: np.ndarray,
    errors: np.ndarray | None,
    components: tuple[int, ...],
    actives: tuple[int, ...],
    *,
    name: str,
    chosen: dict[int, int],
    percent: bool = False,
) -> go.Figure:
    """Draw one curve over K for each L.

    Parameters
    ----------
    values : ndarray, shape (nK, nL)
    errors : ndarray, shape (nK, nL), or None
        Standard errors over folds, drawn as bars.
    components, actives : tuple of int
    name : str
        Of the number, on the axis.
    chosen : dict
        K advised for each L; ringed.
    percent : bool
        Whether the number is a share.
    """
    figure = go.Figure()
    write = numbers.percent if percent else numbers.fixed
    for j, active in enumerate(actives):
        there = np.isfinite(values[:, j])
        if not there.any():
            continue
        at = np.array(components)[there]
        colour = CATEGORICAL[j % len(CATEGORICAL)]
        symbol = SYMBOLS[j % len(SYMBOLS)]
        bars = None if errors is None else {"array": errors[there, j], "thickness": 1.2, "width": 3}
        figure.add_scatter(
            x=at,
            y=values[there, j],
            error_y=bars,
            mode="lines+markers",
            name=f"L = {active}",
            line={"color": colour, "width": 2},
            marker={"size": 7, "symbol": symbol, "color": colour},
            customdata=[write(value) for value in values[there, j]],
            hovertemplate=f"K = %{{x}}, L = {active}: %{{customdata}}<extra></extra>",
        )
        ring = [values[i, j] for i, k in enumerate(components) if k == chosen.get(active)]
        if ring and np.isfinite(ring[0]):
            figure.add_trace(_ring(chosen[active], ring[0], colour))
    if percent:
        figure.add_hline(y=1.0, line={"dash": "dot", "width": 1.2, "color": NEUTRAL})
    layout: dict[str, Any] = {"showlegend": True, "hovermode": "closest", "dragmode": False}
    framed(figure, CURVES_HEIGHT, bottom=8, legend=above(), **layout)
    figure.update_xaxes(title="components K", showgrid=False, tickformat="d", nticks=12)
    figure.update_yaxes(title=name, tickformat=".0%" if percent else None, automargin=True)
    return figure


def stability(cosines: np.ndarray, limits: tuple[float, float]) -> go.Figure:
    """Draw how well each component was found again: a dot for each fit, a bar for their mean.

    Parameters
    ----------
    cosines : ndarray, shape (repeat, K)
        Absolute cosine to the component of the reference.
    limits : (float, float)
        From where a component counts as roughly identified, and as identified; dotted lines.
    """
    repeats, k = cosines.shape
    names = [f"component {j + 1}" for j in range(k)]
    figure = go.Figure(
        [
            go.Bar(
                x=names,
                y=cosines.mean(axis=0),
                marker={"color": LINE, "opacity": 0.55},
                name="mean",
                hovertemplate="%{x}: %{y:.3f} on average<extra></extra>",
            ),
            go.Scatter(
                x=np.repeat(names, repeats),
                y=cosines.T.ravel(),
                mode="markers",
                name="each fit",
                marker={"size": 7, "color": CATEGORICAL[1], "line": {"width": 1, "color": LINE}},
                hovertemplate="%{x}: %{y:.3f}<extra></extra>",
            ),
        ]
    )
    for limit in limits:
        figure.add_hline(y=limit, line={"dash": "dot", "width": 1.2, "color": NEUTRAL})
    layout: dict[str, Any] = {"showlegend": True, "bargap": 0.45, "dragmode": False}
    framed(figure, CURVES_HEIGHT, bottom=8, legend=above(), **layout)
    figure.update_yaxes(title="|cos| to the reference", range=[0, 1.03])
    figure.update_xaxes(showgrid=False)
    return figure


def _targets(picture: Picture) -> go.Scatter:
    """Draw unseen points over the cells: a heat map itself cannot be clicked for a selection."""
    values, components, actives, name, hover, _ = picture
    places = np.argwhere(np.isfinite(values))
    cards = ["" if hover is None else str(hover[i, j]) for i, j in places]
    digits = _digits(values[np.isfinite(values)]) + 2
    texts = [_number(values[i, j], digits) for i, j in places]
    return go.Scatter(
        x=[str(components[i]) for i, _ in places],
        y=[str(actives[j]) for _, j in places],
        customdata=[
            [components[i], actives[j], text, card]
            for (i, j), text, card in zip(places, texts, cards, strict=True)
        ],
        mode="markers",
        marker={"symbol": "square", "size": 34, "opacity": 0, "color": "#ffffff"},
        selected={"marker": {"opacity": 0.35}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="K = %{customdata[0]}, L = %{customdata[1]}<br>"
        f"%{{customdata[2]}} {name}%{{customdata[3]}}<extra></extra>",
    )


def _outlines(
    picture: Picture, best: tuple[int, int] | None, near: np.ndarray | None
) -> list[dict[str, Any]]:
    places = [] if near is None else [(int(i), int(j)) for i, j in np.argwhere(near)]
    shapes = [_outline(i, j, NEAR, 4) for i, j in places]
    shapes += [_outline(i, j, NEAR_RIM, 1.5) for i, j in places]
    if best is not None:
        i, j = picture.components.index(best[0]), picture.actives.index(best[1])
        shapes.append(_outline(i, j, BEST, 3))
    return shapes


def _outline(i: int, j: int, colour: str, width: float) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": i - 0.47,
        "x1": i + 0.47,
        "y0": j - 0.45,
        "y1": j + 0.45,
        "line": {"color": colour, "width": width},
        "layer": "above",
    }


def _ring(k: int, value: float, colour: str) -> go.Scatter:
    return go.Scatter(
        x=[k],
        y=[value],
        mode="markers",
        marker={"size": 17, "symbol": "circle-open", "color": colour, "line": {"width": 2.5}},
        showlegend=False,
        hoverinfo="skip",
    )


def _digits(values: np.ndarray) -> int:
    """Decimals at which neighbouring values still differ in the picture."""
    if not values.size:
        return 1
    span = float(values.max() - values.min()) or abs(float(values[0])) or 1.0
    return int(np.clip(2 - np.floor(np.log10(span)), 0, 6))


def _number(value: float, digits: int) -> str:
    return numbers.fixed(value, digits) if np.isfinite(value) else ""
