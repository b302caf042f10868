"""Charts of sampled chains and of how sure a fit is: traces, densities, ranks, bars."""

from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import percent
from appca.plots.curves import LEAST_SPAN, LINE, likelihood
from appca.plots.frame import framed
from appca.plots.palette import CATEGORICAL, MISSING

HEIGHT = 270
MOST_POINTS = 2000  # of a chain's line; a screen has no more columns
FEW_VALUES = 25  # whole numbers with at most this many different values are drawn as bars
CLIMB_SHOWN = 1.5  # of the burn-in's climb, in heights of what was kept
GRID = 160  # places at which a density is drawn
DASHES = ("solid", "dash", "dot", "dashdot")  # chains differ in more than colour
DOUBT = 0.5  # membership below this is doubtful
DOUBTFUL = CATEGORICAL[1]
SHADE = "rgba(128, 140, 155, 0.18)"  # of the burn-in, on white and on black


def traces(draws: np.ndarray, name: str, first: int = 1, step: int = 1) -> go.Figure:
    """Value against sweep, one line per chain.

    Parameters
    ----------
    draws : ndarray, shape (chain, draw)
    name : str
        Of the quantity, on the axis.
    first, step : int
        Sweep of the first draw, and sweeps from one draw to the next.
    """
    stride = -(-draws.shape[1] // MOST_POINTS)
    sweeps = (first + step * np.arange(draws.shape[1]))[::stride]
    figure = go.Figure(
        [
            go.Scatter(
                x=sweeps,
                y=np.asarray(chain[::stride], dtype=np.float64),
                name=_chain(c),
                mode="lines",
                line={"color": _colour(c), "width": 1.1},
                opacity=0.85,
                hovertemplate=f"chain {c + 1}, sweep %{{x}}: %{{y:,.6g}}<extra></extra>",
            )
            for c, chain in enumerate(draws)
        ]
    )
    return _finish(figure, "sweep", name)


def densities(draws: np.ndarray, name: str) -> go.Figure:
    """Distribution of a quantity (chain, draw) in each chain.

    A smoothed density; bars of the share of draws for whole numbers of few values.
    """
    if _is_count(draws):
        return _finish(go.Figure(list(_count_bars(draws))), name, "share of draws", bars=True)
    low, high = float(draws.min()), float(draws.max())
    room = 0.08 * ((high - low) or 1.0)
    at = np.linspace(low - room, high + room, GRID)
    lines = [
        go.Scatter(
            x=at,
            y=_density(chain, at),
            name=_chain(c),
            mode="lines",
            line={"color": _colour(c), "width": 2, "dash": DASHES[c % len(DASHES)]},
            hovertemplate=f"chain {c + 1}: %{{x:,.6g}}<extra></extra>",
        )
        for c, chain in enumerate(draws)
    ]
    figure = _finish(go.Figure(lines), name, "density")
    return figure.update_yaxes(showticklabels=False, rangemode="tozero")


def likelihood_with_burn_in(values: np.ndarray, n_rows: int, burn_in: int) -> go.Figure:
    """Log-likelihood per row after every sweep, discarded sweeps shaded.

    Parameters
    ----------
    values : ndarray, shape (n_sweeps,)
        Total nats, mean over chains.
    n_rows : int
    burn_in : int
        Sweeps thrown away; a run stopped by hand may have fewer.
    """
    figure = likelihood(np.arange(1, len(values) + 1), values, n_rows, sampled=True)
    burned = min(burn_in, len(values))
    limits = _limits(np.asarray(values, dtype=np.float64) / n_rows, burned)
    figure.update_layout(height=HEIGHT, xaxis={"title": "sweep"}, yaxis={"range": limits})
    figure.update_traces(mode="lines", line={"width": 1.3})
    if burned:
        figure.add_vrect(
            0.5,
            burned + 0.5,
            fillcolor=SHADE,
            line_width=0,
            layer="below",
            annotation={"text": "burn-in", "font": {"size": 12}},
            annotation_position="bottom left",
        )
    return figure


def number_of_components(draws: np.ndarray) -> go.Figure:
    """Posterior of a number of components (chain, draw): share of draws with each number."""
    values, counts = np.unique(draws, return_counts=True)
    figure = go.Figure(
        go.Bar(
            x=values,
            y=counts / draws.size,
            marker={"color": LINE},
            customdata=[percent(share, 1) for share in counts / draws.size],
            hovertemplate="%{x} components: %{customdata} of draws<extra></extra>",
        )
    )
    beside = [float(values.min()) - 1.5, float(values.max()) + 1.5]
    figure.update_xaxes(dtick=max(1, round(np.ptp(values) / 12)), range=beside)
    return _finish(figure, "components in use", "share of draws", percent=True)


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
            marker={"color": [DOUBTFUL if m < DOUBT else LINE for m in middle]},
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


def _limits(values: np.ndarray, burned: int) -> list[float]:
    """Show all that was kept, and of a long climb before it as much again as fits beside that."""
    kept = values[burned:] if burned < len(values) else values
    span = CLIMB_SHOWN * float(np.ptp(kept))
    low = max(float(values.min()), float(kept.min()) - span)
    high = min(float(values.max()), float(kept.max()) + span)
    room = max(0.05 * (high - low), LEAST_SPAN / 2)
    return [low - room, high + room]


def _finish(
    figure: go.Figure, x: str, y: str, *, bars: bool = False, percent: bool = False
) -> go.Figure:
    """Give all charts of the page one shape."""
    return framed(
        figure,
        HEIGHT,
        26,
        8,
        xaxis={"title": x, "showgrid": False},
        yaxis={"title": y, "nticks": 5, "tickformat": ".0%" if percent else None},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "traceorder": "normal"},
        showlegend=len(figure.data) > 1,
        bargap=0.15,
        bargroupgap=0,
        barmode="group" if bars else None,
    )


def _chain(c: int) -> str:
    return f"chain {c + 1}"


def _colour(c: int) -> str:
    return CATEGORICAL[c % len(CATEGORICAL)]


def _is_count(draws: np.ndarray) -> bool:
    """Whether bars tell more than a smooth line."""
    return bool(np.all(draws == np.round(draws))) and len(np.unique(draws)) <= FEW_VALUES


def _count_bars(draws: np.ndarray) -> Iterator[go.Bar]:
    values = np.unique(draws)
    for c, chain in enumerate(draws):
        shares = (chain[:, None] == values).mean(axis=0)
        yield go.Bar(
            x=values,
            y=shares,
            name=_chain(c),
            marker={"color": _colour(c)},
            customdata=[percent(share, 1) for share in shares],
            hovertemplate=f"chain {c + 1}, %{{x}}: %{{customdata}} of draws<extra></extra>",
        )


def _density(draws: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Gaussian kernel density with Silverman's width; at least a step of the grid wide."""
    few = np.asarray(draws[:: -(-len(draws) // MOST_POINTS)], dtype=np.float64)
    quartiles = np.subtract(*np.quantile(few, [0.75, 0.25])) / 1.34
    spread = min(few.std(), quartiles) if quartiles > 0 else few.std()
    width = max(0.9 * spread * len(few) ** -0.2, at[1] - at[0])
    near = np.exp(-0.5 * np.square((at[:, None] - few) / width))
    return np.asarray(near.sum(axis=1) / (len(few) * width * np.sqrt(2 * np.pi)))
