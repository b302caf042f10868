"""Figures of the page Check: choice of K and L, diagnostics, map quality."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from appca import words
from appca.plots.data import CURVE, LEAST_SPAN, likelihood
from appca.plots.style import CATEGORICAL, CLEAR, MISSING, above, framed
from appca.words import number, percent

CELL_HEIGHT, FRAME_HEIGHT = 64, 70  # pixels
MOST_TEXT = 16  # columns up to which a cell carries its number
SHADES = ("#e9f0f8", "#a8c8e8", "#5b95d1", "#2b66ab", "#183e6e")  # low to high
SUGGESTED = "#c87d1e"
CURVES_HEIGHT = 330
NEUTRAL = "rgba(128, 140, 155, 0.9)"
PALE = "rgba(128, 140, 155, 0.16)"  # of choices without a number yet
CELLS = {"xgap": 4, "ygap": 4, "hoverinfo": "skip", "showscale": False}


class Picture(NamedTuple):
    """A number for every cell of a grid."""

    values: np.ndarray  # (nK, nL); NaN where there is nothing yet
    components: tuple[int, ...]  # K of the columns
    actives: tuple[int, ...]  # L of the rows
    name: str  # what the number is, with its unit
    smaller_is_better: bool = False  # turns the colours round


def heat_map(picture: Picture, suggested: tuple[int, int] | None = None) -> go.Figure:
    """Draw a number for every cell, the suggested (K, L) outlined.

    A click on a cell selects a point with customdata (K, L).
    """
    values, components, actives, name, smaller_is_better = picture
    columns, rows = [str(k) for k in components], [f"L = {active}" for active in actives]
    digits = _digits(values[np.isfinite(values)])
    texts = [[_number(value, digits) for value in row] for row in values.T]
    shades = list(SHADES[::-1] if smaller_is_better else SHADES)
    told = {"text": texts if len(columns) <= MOST_TEXT else None, "texttemplate": "%{text}"}
    cells = go.Heatmap(
        z=values.T, x=columns, y=rows, colorscale=shades, textfont={"size": 12}, **told, **CELLS
    )
    possible = np.array(components)[:, None] >= np.array(actives)
    empty = np.where(possible & np.isnan(values), 0.0, np.nan).T
    pale = [[0, PALE], [1, PALE]]
    waiting = go.Heatmap(z=empty, x=columns, y=rows, colorscale=pale, **CELLS)
    figure = go.Figure([cells, _targets(picture, rows, digits + 2, name), waiting])
    if suggested is not None:
        i, j = components.index(suggested[0]), actives.index(suggested[1])
        corners = {"x0": i - 0.48, "x1": i + 0.48, "y0": j - 0.46, "y1": j + 0.46}
        figure.add_shape(type="rect", **corners, line={"color": SUGGESTED, "width": 3})
    clicks = {"clickmode": "event+select", "hovermode": "closest", "hoverdistance": 40}
    height, plain = FRAME_HEIGHT + CELL_HEIGHT * len(rows), {"dragmode": False, "showlegend": False}
    framed(figure, height, 8, 8, plot_bgcolor=CLEAR, **clicks, **plain)
    axis = {"type": "category", "showgrid": False, "zeroline": False, "automargin": True}
    figure.update_xaxes(title="K", categoryarray=columns, range=[-0.5, len(columns) - 0.5], **axis)
    return figure.update_yaxes(categoryarray=rows, range=[-0.5, len(rows) - 0.5], **axis)


def by_budget(picture: Picture, suggested: tuple[int, int] | None = None) -> go.Figure:
    """Draw one curve over K for each L, that of the suggested L strong, its K ringed."""
    values, components, actives, name, _ = picture
    figure = go.Figure()
    for j, active in enumerate(actives):
        there = np.isfinite(values[:, j])
        if not there.any():
            continue
        strong = suggested is not None and active == suggested[1]
        at, curve = np.array(components)[there], values[there, j]
        figure.add_scatter(
            x=at,
            y=curve,
            mode="lines+markers",
            name=f"L = {active}",
            line={"color": CATEGORICAL[j % len(CATEGORICAL)], "width": 3 if strong else 1.5},
            marker={"size": 7 if strong else 5},
            customdata=[words.fixed(value) for value in curve],
            hovertemplate=f"K = %{{x}}, L = {active}: %{{customdata}}<extra></extra>",
        )
        place = f"<b>L = {active}</b>" if strong else f"L = {active}"
        figure.add_annotation(
            x=at[-1], y=curve[-1], text=place, showarrow=False, xanchor="left", xshift=8
        )
        if strong and suggested is not None and suggested[0] in at:
            ring = {"size": 17, "symbol": "circle-open", "color": SUGGESTED, "line": {"width": 3}}
            ringed: dict[str, Any] = {"x": [suggested[0]], "y": curve[at == suggested[0]]}
            figure.add_scatter(**ringed, mode="markers", marker=ring, hoverinfo="skip")
    framed(figure, CURVES_HEIGHT, 8, 8, showlegend=False, hovermode="closest", dragmode=False)
    figure.update_layout(margin={"r": 54})
    figure.update_xaxes(title="K", showgrid=False, tickformat="d", nticks=12)
    return figure.update_yaxes(title=name, automargin=True)


def stability(cosines: np.ndarray, limits: tuple[float, float]) -> go.Figure:
    """Draw how well each component was found again: a dot for each fit, a bar for their mean.

    `cosines` (repeat, K) are absolute ones to the component of the reference; dotted `limits` say
    from where a component counts as roughly identified, and as identified.
    """
    repeats, k = cosines.shape
    names = [f"component {j + 1}" for j in range(k)]
    hover, bar = "%{x}: %{y:.3f}", {"color": CURVE, "opacity": 0.55}
    dot = {"size": 7, "color": CATEGORICAL[1], "line": {"width": 1, "color": CURVE}}
    figure = go.Figure(go.Bar(x=names, y=cosines.mean(axis=0), marker=bar, name="mean"))
    figure.update_traces(hovertemplate=f"{hover} on average<extra></extra>")
    dots = {"x": np.repeat(names, repeats), "y": cosines.T.ravel(), "name": "each fit"}
    figure.add_scatter(**dots, mode="markers", marker=dot, hovertemplate=f"{hover}<extra></extra>")
    for limit in limits:
        figure.add_hline(y=limit, line={"dash": "dot", "width": 1.2, "color": NEUTRAL})
    layout: dict[str, Any] = {"showlegend": True, "bargap": 0.45, "dragmode": False}
    framed(figure, CURVES_HEIGHT, bottom=8, legend=above(), **layout)
    figure.update_yaxes(title="|cos| to the reference", range=[0, 1.03])
    figure.update_xaxes(showgrid=False)
    return figure


def _targets(picture: Picture, rows: list[str], digits: int, name: str) -> go.Scatter:
    """Draw unseen points over the cells: a heat map itself cannot be clicked for a selection."""
    values, components, actives, *_ = picture
    places = np.argwhere(np.isfinite(values))
    return go.Scatter(
        x=[str(components[i]) for i, _ in places],
        y=[rows[j] for _, j in places],
        customdata=[[components[i], actives[j], _number(values[i, j], digits)] for i, j in places],
        mode="markers",
        marker={"symbol": "square", "size": 40, "opacity": 0, "color": "#ffffff"},
        selected={"marker": {"opacity": 0.35}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="K = %{customdata[0]}, L = %{customdata[1]}<br>"
        f"%{{customdata[2]}} {name}<extra></extra>",
    )


def _digits(values: np.ndarray) -> int:
    """Decimals at which neighbouring values still differ in the picture."""
    if not values.size:
        return 1
    span = float(values.max() - values.min()) or abs(float(values[0])) or 1.0
    return int(np.clip(1 - np.floor(np.log10(span)), 0, 6))


def _number(value: float, digits: int) -> str:
    return words.fixed(value, digits) if np.isfinite(value) else ""


HEIGHT = 270
MOST_POINTS = 2000  # of a chain's line; a screen has no more columns
CLIMB_SHOWN = 1.5  # of the burn-in's climb, in heights of what was kept
DOUBT = 0.5  # membership below this is doubtful
DOUBTFUL = CATEGORICAL[1]
SHADE = "rgba(128, 140, 155, 0.18)"  # of the burn-in, on white and on black


def traces(draws: np.ndarray, name: str, first: int = 1, step: int = 1) -> go.Figure:
    """Draw the draws (chain, draw) of a quantity against the sweep, one line per chain.

    `first` is the sweep of the first draw, `step` the number of sweeps from one to the next.
    """
    stride = -(-draws.shape[1] // MOST_POINTS)
    sweeps = (first + step * np.arange(draws.shape[1]))[::stride]
    figure = go.Figure(
        [
            go.Scatter(
                x=sweeps,
                y=np.asarray(chain[::stride], dtype=np.float64),
                name=f"chain {c + 1}",
                mode="lines",
                line={"color": CATEGORICAL[c % len(CATEGORICAL)], "width": 1.1},
                opacity=0.85,
                hovertemplate=f"chain {c + 1}, sweep %{{x}}: %{{y:,.6g}}<extra></extra>",
            )
            for c, chain in enumerate(draws)
        ]
    )
    return _finish(figure, "sweep", name)


def likelihood_with_burn_in(values: np.ndarray, n_rows: int, burn_in: int) -> go.Figure:
    """Log-likelihood per row after every sweep, discarded sweeps shaded.

    `values` (n_sweeps,) are total nats, mean over chains; a run stopped by hand may have fewer
    sweeps than its burn-in.
    """
    figure = likelihood(np.arange(1, len(values) + 1), values, n_rows, sampled=True)
    burned, per_row = min(burn_in, len(values)), np.asarray(values, dtype=np.float64) / n_rows
    # everything kept, and of a long climb before it a part that leaves the rest readable
    kept = per_row[burned:] if burned < len(per_row) else per_row
    span = CLIMB_SHOWN * float(np.ptp(kept))
    low = max(float(per_row.min()), float(kept.min()) - span)
    high = min(float(per_row.max()), float(kept.max()) + span)
    margin = max(0.05 * (high - low), LEAST_SPAN / 2)
    limits = [low - margin, high + margin]
    figure.update_layout(height=HEIGHT, xaxis={"title": "sweep"}, yaxis={"range": limits})
    figure.update_traces(mode="lines", line={"width": 1.3})
    if burned:
        note = {"text": "burn-in", "font": {"size": 12}}
        look = {"fillcolor": SHADE, "line_width": 0, "layer": "below", "annotation": note}
        figure.add_vrect(0.5, burned + 0.5, **look, annotation_position="bottom left")
    return figure


def membership(values: np.ndarray) -> go.Figure:
    """Histogram of rows by the probability (N,) of their set of components; doubtful ones apart."""
    edges = np.linspace(0.0, 1.0, 21)
    counts = np.histogram(np.clip(values, 0.0, 1.0), edges)[0]
    middle = (edges[1:] + edges[:-1]) / 2
    figure = go.Figure(
        go.Bar(
            x=middle,
            y=counts,
            width=0.046,
            marker={"color": [DOUBTFUL if m < DOUBT else CURVE for m in middle]},
            customdata=np.stack([edges[:-1], edges[1:]], axis=1),
            hovertemplate="%{customdata[0]:.2f} to %{customdata[1]:.2f}: %{y:,} rows"
            "<extra></extra>",
        )
    )
    figure.add_vline(
        DOUBT,
        line={"color": MISSING, "dash": "dash", "width": 1.5},
        annotation={"text": "doubtful", "font": {"size": 12}, "xanchor": "right"},
        annotation_position="top",
    )
    figure = _finish(figure, "probability of the row's set of components", "rows")
    return figure.update_xaxes(range=[0, 1], tickformat=".1f")


def _finish(figure: go.Figure, x: str, y: str) -> go.Figure:
    """Give all charts of the page one shape."""
    axes = {"xaxis": {"title": x, "showgrid": False}, "yaxis": {"title": y, "nticks": 5}}
    legend = above(1.0) | {"traceorder": "normal"}
    several = len(figure.data) > 1
    return framed(figure, HEIGHT, 26, 8, **axes, legend=legend, showlegend=several, bargap=0.15)


BAR = 46  # pixels


def neighbours_kept(shares: Mapping[str, float]) -> go.Figure:
    """Draw the share of near rows that each picture keeps near; the first is one's own."""
    values = list(shares.values())
    colours = [CURVE, *[MISSING] * (len(values) - 1)]
    texts = [percent(value) for value in values]
    figure = _bars([*shares], values, "nearest rows kept", text=texts, marker_color=colours)
    return figure.update_xaxes(tickformat=".0%", range=[0, 1])


def unmeasured(names: Iterable[str], title: str) -> go.Figure:
    """Draw a pale bar for each method, where there will be its number."""
    methods = list(names)
    figure = _bars(methods, [1.0] * len(methods), title, marker_color=PALE)
    figure.update_traces(hoverinfo="skip", hovertemplate=None)
    return figure.update_xaxes(range=[0, 1], showticklabels=False, showgrid=False)


def hidden_errors(errors: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw the mean error of each method, the best on top, with its spread over the repeats."""
    means = [float(error.mean()) for error in errors.values()]
    spread = [float(error.std(ddof=1)) if len(error) > 1 else 0.0 for error in errors.values()]
    look: dict[str, Any] = {"text": [number(mean) for mean in means], "insidetextanchor": "start"}
    look["error_x"] = {"array": spread, "thickness": 1.2, "width": 3}
    figure = _bars([*errors], means, "error on hidden cells", **look, marker_color=CURVE)
    return figure.update_xaxes(rangemode="tozero")


def _bars(names: Sequence[str], values: Sequence[float], title: str, **look: Any) -> go.Figure:
    bars = go.Bar(
        x=values, y=names, orientation="h", hovertemplate="%{y}: %{text}<extra></extra>", **look
    )
    figure = framed(go.Figure(bars), 60 + BAR * len(names), 8, 8, dragmode=False)
    figure.update_xaxes(title=title)
    return figure.update_yaxes(autorange="reversed", automargin=True)
