"""How the training of an autoencoder went."""

import numpy as np
import plotly.graph_objects as go

from appca.data.numbers import fixed
from appca.plots.curves import LINE

HEIGHT = 190  # pixels


def loss(losses: np.ndarray) -> go.Figure:
    """Loss per row against the epoch.

    Parameters
    ----------
    losses : ndarray, shape (epochs,)
        Negative evidence lower bound, nats per row. The first epochs fall so far that they would
        hide the rest, so the axis shows all but the highest tenth in full.
    """
    losses = np.asarray(losses, np.float64)
    epochs = np.arange(1, len(losses) + 1)
    figure = go.Figure(
        go.Scatter(
            x=epochs,
            y=losses,
            mode="lines+markers" if len(losses) < 40 else "lines",
            line={"color": LINE, "width": 2},
            marker={"size": 4},
            customdata=[fixed(loss) for loss in losses],
            hovertemplate="epoch %{x}: %{customdata} nats a row<extra></extra>",
        )
    )
    low, high = losses.min(), np.quantile(losses, 0.9) if len(losses) >= 10 else losses.max()
    room = 0.08 * (high - low) or 0.01 * max(abs(high), 1.0)
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 10, "r": 10, "t": 8, "b": 8},
        xaxis={"title": "epoch", "showgrid": False},
        yaxis={"title": "loss a row, nats", "nticks": 4, "range": [low - room, high + room]},
        showlegend=False,
    )
    return figure
