"""How the training of an autoencoder went."""

import numpy as np
import plotly.graph_objects as go

from appca.plots.curves import course
from appca.plots.frame import framed

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
    figure = course(np.arange(1, len(losses) + 1), losses, "epoch")
    low, high = losses.min(), np.quantile(losses, 0.9) if len(losses) >= 10 else losses.max()
    room = 0.08 * (high - low) or 0.01 * max(abs(high), 1.0)
    return framed(
        figure,
        HEIGHT,
        8,
        8,
        xaxis={"title": "epoch", "showgrid": False},
        yaxis={"title": "loss a row, nats", "nticks": 4, "range": [low - room, high + room]},
        showlegend=False,
    )
