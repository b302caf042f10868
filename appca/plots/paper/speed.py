"""Error and likelihood against time: one line per way of fitting and data set."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.plots.frame import below, framed
from appca.plots.palette import CATEGORICAL
from appca.plots.paper import Row

HEIGHT = 640  # pixels
MEASURES = {"error": "squared error", "likelihood": "log-likelihood, nats per row"}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def courses(rows: Sequence[Row]) -> go.Figure:
    """Draw what a fit has reached after each time; models are columns, measures are rows.

    Parameters
    ----------
    rows : sequence of dict
        With model, way, title, data_set, ``passes``, seconds, error and likelihood.
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))
    figure = make_subplots(
        rows=len(MEASURES),
        cols=len(models),
        column_titles=models,
        shared_xaxes="columns",
        horizontal_spacing=0.1,
        vertical_spacing=0.05,
    )
    for line, (measure, title) in enumerate(MEASURES.items(), start=1):
        figure.update_yaxes(title=title, row=line, col=1)
        for place, way in enumerate(ways):
            for number in sorted({row["data_set"] for row in rows}):
                own = [row for row in rows if (row["way"], row["data_set"]) == (way, number)]
                trace = _line(own, measure, place, number)
                trace.showlegend = line == 1 and number == 0
                figure.add_trace(trace, row=line, col=1 + models.index(own[0]["model"]))
    figure.update_xaxes(type="log", dtick=1, exponentformat="power")
    figure.update_xaxes(title="processor seconds", row=len(MEASURES))
    figure.update_yaxes(type="log", row=1)
    return framed(figure, HEIGHT, legend=below(-0.12))


def _line(own: Sequence[Row], measure: str, place: int, number: int) -> go.Scatter:
    colour = CATEGORICAL[place % len(CATEGORICAL)]
    return go.Scatter(
        x=[row["seconds"] for row in own],
        y=[row[measure] for row in own],
        customdata=[row["passes"] for row in own],
        mode="lines+markers",
        name=own[0]["title"],
        legendgroup=own[0]["way"],
        line={"color": colour, "width": 1.6, "dash": DASHES[number % len(DASHES)]},
        marker={"size": 5},
        hovertemplate="%{x:.3g} s, %{customdata} iterations: %{y:.5g}"
        f"<extra>%{{fullData.name}}, data set {number + 1}</extra>",
    )
