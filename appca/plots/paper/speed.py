"""Error and likelihood against time: one line per way of fitting and data set."""

from collections.abc import Sequence

import plotly.graph_objects as go

from appca.plots.frame import below, framed
from appca.plots.palette import CATEGORICAL
from appca.plots.paper import Row

HEIGHT = 640  # pixels
MEASURES = {"error": "squared error", "likelihood": "log-likelihood, nats per row"}


def courses(rows: Sequence[Row]) -> go.Figure:
    """Draw what a fit has reached after each time; models are columns, measures are rows.

    `rows` are dicts with model, way, title, data_set, ``passes``, seconds, error and likelihood.
    """
    import pandas as pd
    import plotly.express as px

    table = pd.DataFrame(rows)
    methods = [name for name in table.columns if name not in MEASURES]
    figure = px.line(
        table.melt(methods, list(MEASURES), "measure"),
        *("seconds", "value"),
        color="title",
        line_group="data_set",
        facet_row="measure",
        facet_row_spacing=0.05,
        facet_col="model",
        facet_col_spacing=0.1,
        color_discrete_sequence=CATEGORICAL,
        custom_data=["passes"],
        log_x=True,
        markers=True,
        render_mode="svg",
    )
    figure.layout.annotations = figure.layout.annotations[: table["model"].nunique()]
    figure.for_each_annotation(lambda note: note.update(text=note.text.removeprefix("model=")))
    hover = "%{x:.3g} s, %{customdata[0]} iterations: %{y:.5g}<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, line_width=1.6, marker_size=5)
    figure.update_xaxes(dtick=1, exponentformat="power", title=None)
    figure.update_xaxes(title="processor seconds", row=1)
    figure.update_yaxes(title=None, matches=None, showticklabels=True)
    figure.update_yaxes(title=MEASURES["likelihood"], row=1, col=1)  # counted from below
    figure.update_yaxes(type="log", row=2).update_yaxes(title=MEASURES["error"], row=2, col=1)
    return framed(figure, HEIGHT, legend=below(-0.12) | {"title": None})
