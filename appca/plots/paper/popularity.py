"""Popularity of factors, sorted: the truth in red, estimates beside it."""

from collections.abc import Sequence

import plotly.graph_objects as go

from appca.plots.frame import below, framed
from appca.plots.paper import Row

COLOURS = ("#3f90da", "#92dadd", "#ffa90e", "#832db6", "#94a4a2")
TRUTH = "#d7191c"
HEIGHT = 420  # pixels


def popularity(rows: Sequence[Row]) -> go.Figure:
    """Draw sorted curves, one panel a design: share of the rows against the factor's number.

    `rows` are dicts with design, method, title, rank (from 1, most popular first) and share; the
    method "truth" is drawn in red.
    """
    import pandas as pd
    import plotly.express as px

    table = pd.DataFrame(rows)
    table = table.sort_values("method", key=lambda names: names == "truth", kind="stable")  # on top
    *others, truth = table["title"].unique()
    figure = px.line(
        table,
        *("share", "rank"),
        color="title",
        symbol="title",
        facet_col="design",
        facet_col_spacing=0.09,
        color_discrete_map=dict(zip(others, COLOURS, strict=False)) | {truth: TRUTH},
        markers=True,
        render_mode="svg",
    )
    figure.for_each_annotation(lambda note: note.update(text=f"{note.text[7:].capitalize()} data"))
    hover = "%{y}. factor: %{x:.1%} of the rows<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, line_width=1.8)
    figure.update_traces(line_width=3, selector={"name": truth})
    figure.update_xaxes(title="share of the rows", range=[-0.03, 1.03], tickformat=".0%")
    figure.update_yaxes(autorange="reversed", rangemode="tozero")
    figure.update_yaxes(title="factor, most popular first", col=1)
    return framed(figure, HEIGHT, legend=below(-0.2) | {"title": None})
