"""Small charts: how a fit converged, and how classes share out."""

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import fixed

LINE = "#3f90da"
LEAST_SPAN = 0.01  # nats per row on the axis: less is rounding


def likelihood(
    iterations: np.ndarray, values: np.ndarray, n_rows: int, sampled: bool = False
) -> go.Figure:
    """Log-likelihood per row against the iteration.

    Parameters
    ----------
    iterations, values : ndarray, shape (n,)
        Iteration numbers and total log-likelihoods in nats.
    n_rows : int
        Rows of the data; fits of different size are comparable only by the row.
    sampled : bool
        Whether the iterations are sweeps of a sampler, which goes down as well as up.

    Returns
    -------
    Figure
        The first iterations climb so far that they would hide the rest, so the axis shows the upper
        nine tenths of the iterations in full.
    """
    per_row = np.asarray(values, dtype=np.float64) / n_rows
    figure = go.Figure(
        go.Scatter(
            x=np.asarray(iterations, dtype=np.float32),
            y=per_row,
            mode="lines+markers" if len(per_row) < 40 else "lines",
            line={"color": LINE, "width": 2},
            marker={"size": 4},
            customdata=[fixed(value) for value in per_row],
            hovertemplate=f"{'sweep' if sampled else 'pass'} "
            + "%{x}: %{customdata} nats a row<extra></extra>",
        )
    )
    figure.update_layout(
        height=230,
        margin={"l": 10, "r": 10, "t": 8, "b": 8},
        xaxis={"title": "sweep" if sampled else "pass over the data", "showgrid": False},
        yaxis={"title": "log-likelihood a row", "nticks": 5, "range": _range(per_row)},
        showlegend=False,
    )
    return figure


def _range(values: np.ndarray) -> list[float] | None:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    high = finite.max()
    low = np.quantile(finite, 0.1) if len(finite) >= 10 else finite.min()
    room = max(0.08 * (high - low), LEAST_SPAN / 2)
    return [float(low - room), float(high + room)]
