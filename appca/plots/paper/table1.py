"""Methods side by side: one dot for each design, one panel for each number of factors."""

from collections.abc import Sequence

import plotly.graph_objects as go

from appca.plots.frame import above, framed
from appca.plots.palette import CATEGORICAL
from appca.plots.paper import Row

LINE_HEIGHT, FRAME_HEIGHT = 36, 130  # pixels


def dots(rows: Sequence[Row], measure: str, title: str, *, log: bool = False) -> go.Figure:
    """Draw a measure of all methods, with its spread over data sets as a line through the dot.

    `rows` are dicts with design, K, title, the measure and its spread ``<measure>_sd``; methods
    without a value are left out. `title` is the name of the axis, which may be logarithmic.
    """
    import pandas as pd
    import plotly.express as px

    columns = ["design", "K", "title", measure, f"{measure}_sd"]
    table = pd.DataFrame(rows, columns=columns).dropna(subset=[measure])
    figure = px.scatter(
        table.fillna({f"{measure}_sd": 0.0}).astype({measure: float, f"{measure}_sd": float}),
        *(measure, "title"),
        error_x=f"{measure}_sd",
        color="design",
        symbol="design",
        facet_col="K",
        facet_col_spacing=0.04,
        category_orders={"K": sorted(table["K"].unique()), "title": list(table["title"].unique())},
        color_discrete_sequence=CATEGORICAL,
        log_x=log,
    )
    figure.for_each_annotation(lambda note: note.update(text=note.text.replace("=", " = ")))
    hover = "%{y}: %{x:.4g}, sd %{error_x.array:.2g}<extra>%{fullData.name}</extra>"
    figure.update_traces(hovertemplate=hover, marker_size=8, error_x={"thickness": 1, "width": 0})
    figure.update_xaxes(title=title, matches=None, dtick="D2" if log else None)
    figure.update_yaxes(title=None, showgrid=False, zeroline=False)
    height = FRAME_HEIGHT + LINE_HEIGHT * table["title"].nunique()
    return framed(figure, height, 66, scattermode="group", legend=above(1.09) | {"title": None})
