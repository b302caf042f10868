"""Charts of sampled chains and of how sure a fit is: traces and bars."""

import numpy as np
import plotly.graph_objects as go

from appca.plots.curves import LEAST_SPAN, LINE, likelihood
from appca.plots.frame import above, framed
from appca.plots.palette import CATEGORICAL, MISSING

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
    burned = min(burn_in, len(values))
    limits = _limits(np.asarray(values, dtype=np.float64) / n_rows, burned)
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


def _finish(figure: go.Figure, x: str, y: str) -> go.Figure:
    """Give all charts of the page one shape."""
    axes = {"xaxis": {"title": x, "showgrid": False}, "yaxis": {"title": y, "nticks": 5}}
    legend = above(1.0) | {"traceorder": "normal"}
    several = len(figure.data) > 1
    return framed(figure, HEIGHT, 26, 8, **axes, legend=legend, showlegend=several, bargap=0.15)
