"""Small charts: how a fit went."""

import numpy as np
import plotly.graph_objects as go

from appca.plots.frame import framed
from appca.words.numbers import fixed

LINE = "#3f90da"
LEAST_SPAN = 0.01  # nats per row on the axis: less is rounding


def likelihood(
    iterations: np.ndarray, values: np.ndarray, n_rows: int, sampled: bool = False
) -> go.Figure:
    """Log-likelihood per row against the iteration, or the sweep of a sampler.

    `values` (n,) are total nats of `n_rows` rows: fits of different size are comparable only by the
    row. The first iterations climb so far that they would hide the rest, so the axis shows the
    upper nine tenths of the iterations in full.
    """
    step = "sweep" if sampled else "iteration"
    per_row = np.asarray(values, dtype=np.float64) / n_rows
    figure = course(np.asarray(iterations, np.float32), per_row, step)
    across = {"title": step, "showgrid": False}
    down = {"title": "log-likelihood per row", "nticks": 5, "range": _range(per_row)}
    return framed(figure, 230, 8, 8, xaxis=across, yaxis=down, showlegend=False)


def course(places: np.ndarray, values: np.ndarray, step: str) -> go.Figure:
    """Draw nats per row (n,) after steps of a fit, with dots where there are few."""
    return go.Figure(
        go.Scatter(
            x=places,
            y=values,
            mode="lines+markers" if len(values) < 40 else "lines",
            line={"color": LINE, "width": 2},
            marker={"size": 4},
            customdata=[fixed(value) for value in values],
            hovertemplate=step + " %{x}: %{customdata} nats per row<extra></extra>",
        )
    )


def _range(values: np.ndarray) -> list[float] | None:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    high = finite.max()
    low = np.quantile(finite, 0.1) if len(finite) >= 10 else finite.min()
    room = max(0.08 * (high - low), LEAST_SPAN / 2)
    return [float(low - room), float(high + room)]
