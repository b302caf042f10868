"""Figures of the page Check: choice of K and L, diagnostics, map quality."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from appca import words
from appca.plots.data import CURVE, LEAST_SPAN, likelihood
from appca.plots.style import CATEGORICAL, CLEAR, MISSING, chart, class_colour, legend_above
from appca.words import number, percent

MOST_TEXT = 16  # maximum number of columns with numbers in the cells
SHADES = ("#e9f0f8", "#a8c8e8", "#5b95d1", "#2b66ab", "#183e6e")  # low to high
SUGGESTED = "#c87d1e"
CURVES_HEIGHT, HEIGHT = 330, 270  # pixels
PALE = "rgba(128, 140, 155, 0.16)"  # cells that are not measured yet
MOST_POINTS = 2000  # points per line
CLIMB_SHOWN = 1.5  # visible climb, in ranges of the draws after burn-in
DOUBT = 0.5  # rows with a lower membership are doubtful
DOUBTFUL = CATEGORICAL[1]


class Picture(NamedTuple):
    """A number for each cell of a grid."""

    values: np.ndarray  # (nK, nL); NaN if not measured
    components: tuple[int, ...]  # K of each column
    actives: tuple[int, ...]  # L of each row
    name: str  # name and unit of the number
    # (nK, nL) distances below the best cell, and their standard errors
    behind: tuple[np.ndarray, np.ndarray] | None = None


def heat_map(picture: Picture, suggested: tuple[int, int] | None = None) -> go.Figure:
    """Draw a heat map of the numbers, with the suggested (K, L) outlined.

    A click on a cell selects a point with customdata (K, L): invisible points cover the cells,
    because Plotly cannot select cells of a heat map.
    """
    values, components, actives, name, behind = picture
    columns, rows = [str(k) for k in components], [f"L = {active}" for active in actives]
    finite = values[np.isfinite(values)]
    span = float(np.ptp(finite) or abs(finite[0]) or 1.0) if finite.size else 1.0
    digits = int(np.clip(1 - np.floor(np.log10(span)), 0, 6))  # distinguishes neighbouring values

    def text(value: float, digits: int) -> str:
        return words.fixed(value, digits) if np.isfinite(value) else ""

    texts = [[text(value, digits) for value in row] for row in values.T]
    grid = {"type": "heatmap", "x": columns, "y": rows, "xgap": 4, "ygap": 4}
    grid |= {"hoverinfo": "skip", "showscale": False}
    cells = grid | {"z": values.T, "colorscale": SHADES}
    cells |= {"texttemplate": "%{text}", "textfont": {"size": 12}}
    cells |= {"text": texts} if len(columns) <= MOST_TEXT else {}
    places = np.argwhere(np.isfinite(values))
    about = [[components[i], actives[j], text(values[i, j], digits + 2), ""] for i, j in places]
    for line, (i, j) in zip(about, places, strict=True) if behind else ():
        gap, error = (float(part[i, j]) for part in behind or ())
        close = ", within one standard error of it" * (gap <= error)
        said = f"<br>{number(gap)} ± {number(error)} below the best{close}"
        line[3] = said * (gap > 0 or error > 0)
    hover = "K = %{customdata[0]}, L = %{customdata[1]}<br>%{customdata[2]}"
    points: dict[str, Any] = {"type": "scatter", "mode": "markers", "customdata": about}
    points |= {"x": [columns[i] for i, _ in places], "y": [rows[j] for _, j in places]}
    points["marker"] = {"symbol": "square", "size": 40, "opacity": 0, "color": "#ffffff"}
    points |= {"selected": {"marker": {"opacity": 0.35}}, "unselected": {"marker": {"opacity": 0}}}
    points["hovertemplate"] = f"{hover} {name}%{{customdata[3]}}<extra></extra>"
    possible = np.array(components)[:, None] >= np.array(actives)
    empty = np.where(possible & np.isnan(values), 0.0, np.nan).T
    waiting = grid | {"z": empty, "colorscale": [[0, PALE], [1, PALE]]}
    axis = {"type": "category", "showgrid": False, "zeroline": False, "automargin": True}
    x = axis | {"title": "K", "categoryarray": columns, "range": [-0.5, len(columns) - 0.5]}
    y = axis | {"categoryarray": rows, "range": [-0.5, len(rows) - 0.5]}
    layout = {"clickmode": "event+select", "hovermode": "closest", "hoverdistance": 40}
    layout |= {"dragmode": False, "showlegend": False, "plot_bgcolor": CLEAR}
    figure = chart([cells, points, waiting], 70 + 64 * len(rows), x, y, **layout)
    if suggested is not None:
        i, j = components.index(suggested[0]), actives.index(suggested[1])
        corners = {"x0": i - 0.48, "x1": i + 0.48, "y0": j - 0.46, "y1": j + 0.46}
        figure.add_shape(type="rect", **corners, line={"color": SUGGESTED, "width": 3})
    return figure


def by_budget(picture: Picture, suggested: tuple[int, int] | None = None) -> go.Figure:
    """Draw a curve over K for each L; the suggested L is emphasized and the suggested K ringed."""
    values, components, actives, name, _ = picture
    K, L = suggested or (None, None)
    ks = np.array(components)[np.isfinite(values).any(axis=1)]
    across = {"title": "K", "showgrid": False, "dtick": int(np.ptp(ks) if len(ks) else 0) // 10 + 1}
    layout: dict[str, Any] = {"showlegend": False, "hovermode": "closest", "dragmode": False}
    down = {"title": name, "automargin": True}
    figure = chart([], CURVES_HEIGHT, across, down, **layout).update_layout(margin={"r": 54})
    for j, active in enumerate(actives):
        there = np.isfinite(values[:, j])
        if not there.any():
            continue
        strong, title = active == L, f"L = {active}"
        x, y = np.array(components)[there], values[there, j]
        look = {"mode": "lines+markers", "name": title, "marker": {"size": 7 if strong else 5}}
        look |= {"line": {"color": class_colour(j % 10), "width": 3 if strong else 1.5}}
        look |= {"hovertemplate": f"K = %{{x}}, {title}: %{{customdata}}<extra></extra>"}
        figure.add_scatter(x=x, y=y, customdata=[words.fixed(value) for value in y], **look)
        end = {"x": x[-1], "y": y[-1], "text": f"<b>{title}</b>" if strong else title}
        figure.add_annotation(**end, showarrow=False, xanchor="left", xshift=8)
        if strong and K in x:
            ring = {"size": 17, "symbol": "circle-open", "color": SUGGESTED, "line": {"width": 3}}
            look = {"mode": "markers", "marker": ring, "hoverinfo": "skip"}
            figure.add_scatter(x=[K], y=y[x == K], **look)
    return figure


def stability(cosines: np.ndarray, limits: tuple[float, float]) -> go.Figure:
    """Draw how well each component was recovered: a dot per fit, a bar for the mean.

    `cosines` (repeat, K) are |cos| with the components of the reference. Dotted `limits` are the
    minimum |cos| of a roughly identified and of an identified component.
    """
    repeats, k = cosines.shape
    names, hover = [f"component {j + 1}" for j in range(k)], "%{x}: %{y:.3f}"
    bars = {"type": "bar", "x": names, "y": cosines.mean(axis=0), "name": "mean"}
    bars |= {"marker": {"color": CURVE, "opacity": 0.55}}
    bars |= {"hovertemplate": f"{hover} on average<extra></extra>"}
    dots = {"type": "scatter", "mode": "markers", "x": np.repeat(names, repeats)}
    dots |= {"y": cosines.T.ravel(), "name": "each fit", "hovertemplate": f"{hover}<extra></extra>"}
    dots["marker"] = {"size": 7, "color": CATEGORICAL[1], "line": {"width": 1, "color": CURVE}}
    down = {"title": "|cos| to the reference", "range": [0, 1.03]}
    layout = {"showlegend": True, "bargap": 0.45, "dragmode": False, "legend": legend_above()}
    figure = chart([bars, dots], CURVES_HEIGHT, {"showgrid": False}, down, top=34, **layout)
    for limit in limits:
        line = {"dash": "dot", "width": 1.2, "color": "rgba(128, 140, 155, 0.9)"}
        figure.add_hline(y=limit, line=line)
    return figure


def traces(draws: np.ndarray, name: str, first: int = 1, step: int = 1) -> go.Figure:
    """Draw the draws (chain, draw) of a quantity, each `step` sweeps from `first`, as lines."""
    stride = -(-draws.shape[1] // MOST_POINTS)
    sweeps, chains = (first + step * np.arange(draws.shape[1]))[::stride], []
    for c, chain in enumerate(np.asarray(draws[:, ::stride], dtype=np.float64), start=1):
        line = {"color": class_colour((c - 1) % 10), "width": 1.1}
        look = {"mode": "lines", "line": line, "opacity": 0.85, "name": f"chain {c}"}
        look |= {"hovertemplate": f"chain {c}, sweep %{{x}}: %{{y:,.6g}}<extra></extra>"}
        chains.append(go.Scatter(x=sweeps, y=chain, **look))
    look = {"legend": legend_above(1.0, traceorder="normal"), "showlegend": len(chains) > 1}
    across, down = {"title": "sweep", "showgrid": False}, {"title": name, "nticks": 5}
    return chart(chains, HEIGHT, across, down, top=26, **look)


def likelihood_with_burn_in(values: np.ndarray, n_rows: int, burn_in: int) -> go.Figure:
    """Draw the log-likelihood per row after every sweep, with discarded sweeps shaded.

    `values` (n_sweeps,) are total nats, averaged over chains; a stopped run may have fewer
    sweeps than its burn-in.
    """
    figure = likelihood(np.arange(1, len(values) + 1), values, n_rows, sampled=True)
    burned, per_row = min(burn_in, len(values)), np.asarray(values, dtype=np.float64) / n_rows
    # clip a long climb, so that the draws after burn-in stay legible
    kept = per_row[burned:] if burned < len(per_row) else per_row
    span = CLIMB_SHOWN * np.ptp(kept)
    low, high = max(per_row.min(), kept.min() - span), min(per_row.max(), kept.max() + span)
    margin = max(0.05 * (high - low), LEAST_SPAN / 2)
    figure.update_layout(height=HEIGHT, yaxis={"range": [low - margin, high + margin]})
    figure.update_traces(mode="lines", line={"width": 1.3})
    if burned:
        look = {"fillcolor": "rgba(128, 140, 155, 0.18)", "line_width": 0, "layer": "below"}
        look |= {"annotation": {"text": "burn-in", "font": {"size": 12}}}
        figure.add_vrect(0.5, burned + 0.5, annotation_position="bottom left", **look)
    return figure


def membership(values: np.ndarray) -> go.Figure:
    """Draw a histogram of membership (N,); bars of doubtful rows have a different colour."""
    edges = np.linspace(0.0, 1.0, 21)
    middle = (edges[1:] + edges[:-1]) / 2
    colours = [DOUBTFUL if m < DOUBT else CURVE for m in middle]
    hover = "%{customdata[0]:.2f} to %{customdata[1]:.2f}: %{y:,} rows<extra></extra>"
    bars = {"type": "bar", "x": middle, "width": 0.046, "marker": {"color": colours}}
    bars |= {"y": np.histogram(np.clip(values, 0.0, 1.0), edges)[0], "hovertemplate": hover}
    bars["customdata"] = np.stack([edges[:-1], edges[1:]], axis=1)
    across: dict[str, Any] = {"range": [0, 1], "tickformat": ".1f", "showgrid": False}
    across["title"] = "probability of the row's set of components"
    look: dict[str, Any] = {"top": 26, "showlegend": False, "bargap": 0.15}
    figure = chart([bars], HEIGHT, across, {"title": "rows", "nticks": 5}, **look)
    line = {"color": MISSING, "dash": "dash", "width": 1.5}
    note = {"text": "doubtful", "font": {"size": 12}, "xanchor": "right"}
    return figure.add_vline(DOUBT, line=line, annotation=note, annotation_position="top")


def neighbours_kept(shares: Mapping[str, float]) -> go.Figure:
    """Draw the share of nearest rows that each picture preserves, the fit's first."""
    colours = [CURVE, *[MISSING] * (len(shares) - 1)]
    across = {"title": "nearest rows kept", "tickformat": ".0%", "range": [0, 1]}
    return _bars(shares, across, text=[*map(percent, shares.values())], marker_color=colours)


def hidden_errors(errors: Mapping[str, np.ndarray]) -> go.Figure:
    """Draw the mean error of each method, best on top, with its spread over the repeats."""
    means = {name: float(error.mean()) for name, error in errors.items()}
    spread = [float(error.std(ddof=1)) if len(error) > 1 else 0.0 for error in errors.values()]
    look: dict[str, Any] = {"text": [*map(number, means.values())], "insidetextanchor": "start"}
    look["error_x"] = {"array": spread, "thickness": 1.2, "width": 3}
    across = {"title": "error on hidden cells", "rangemode": "tozero"}
    return _bars(means, across, marker_color=CURVE, **look)


def nats_of(
    nats: Mapping[str, tuple[float, float]], texts: Sequence[str], ours: Sequence[bool]
) -> go.Figure:
    """Draw nats per row and standard errors of models, with texts on hover; rivals are grey."""
    error = {"array": [error for _, error in nats.values()], "thickness": 1.2, "width": 3}
    look = {"text": texts, "marker_color": [CURVE if is_ours else MISSING for is_ours in ours]}
    across = {"title": "nats per row over the paper's model", "zeroline": True}
    means = {name: mean for name, (mean, _) in nats.items()}
    return _bars(means, across, error_x=error, textposition="none", **look)


def _bars(values: Mapping[str, float], across: dict[str, Any], **look: Any) -> go.Figure:
    bars = go.Bar(x=[*values.values()], y=[*values], orientation="h")
    bars.update({"hovertemplate": "%{y}: %{text}<extra></extra>"} | look)
    down, line = {"autorange": "reversed", "automargin": True}, 46 if len(values) < 9 else 30
    return chart([bars], 60 + line * len(values), across, down, dragmode=False)
