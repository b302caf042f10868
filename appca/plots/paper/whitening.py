"""Accuracy of a classifier against the number of dimensions, with error bars."""

from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from appca.plots.frame import below, framed
from appca.plots.paper import Row

COLOURS = {
    "pca": "#94a4a2",
    "appca": "#3f90da",
    "within": "#832db6",
    "each": "#e76300",
    "half": "#bd1f01",
    "pattern": "#ffa90e",
}
RAW = {"color": "#717581", "width": 1.8, "dash": "dash"}
HEIGHT = 520  # pixels
APART = 1.015  # factor between two methods at the same place, so that error bars can be told apart
CROWDED = 1.4  # ratio of two sizes below which only the larger gets a tick
PANELS = {"K": "components, K", "L": "non-zero scores, L"}


def curves(rows: Sequence[Row]) -> go.Figure:
    """Draw the mean accuracy over the folds, and its standard deviation as error bars.

    `rows` are dicts with method, title, K, L, accuracy and accuracy_sd; the method "raw" (without
    K) is a horizontal line, and methods without a colour (the pattern alone, far below) are left
    out.
    """
    import pandas as pd
    import plotly.express as px

    there = pd.DataFrame([row for row in rows if row["method"] in COLOURS])
    titles = {row["method"]: row["title"] for row in rows if row["method"] in COLOURS}
    table = pd.concat([there.assign(panel=axis, place=there[axis]) for axis in PANELS])
    shift = {method: APART ** (i - len(titles) / 2) for i, method in enumerate(titles)}
    figure = px.line(
        table.assign(x=table["place"] * table["method"].map(shift)).sort_values("x"),
        *("x", "accuracy"),
        error_y="accuracy_sd",
        color="title",
        symbol="title",
        facet_col="panel",
        facet_col_spacing=0.04,
        color_discrete_map={title: COLOURS[method] for method, title in titles.items()},
        category_orders={"title": [*titles.values()], "panel": [*PANELS]},
        custom_data=["K", "L", "accuracy_sd"],
        markers=True,
        render_mode="svg",
        log_x=True,
    )
    figure.layout.annotations = ()
    hover = "K = %{customdata[0]}, L = %{customdata[1]}: %{y:.1%}, sd %{customdata[2]:.1%}"
    figure.update_traces(hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>")
    figure.update_traces(line_width=1.8, marker_size=7, error_y={"thickness": 1.2, "width": 3})
    for column, (axis, title) in enumerate(PANELS.items(), start=1):
        shown = _ticks(there[axis])
        figure.update_xaxes(title=title, tickvals=shown, ticktext=shown, matches=None, col=column)
    figure.update_xaxes(tickangle=0)
    for row in rows:
        if row["method"] == "raw":
            figure.add_hline(row["accuracy"], line=RAW, annotation_text=row["title"], col=1)
            figure.add_hline(row["accuracy"], line=RAW, col=2)
    figure.update_yaxes(tickformat=".0%").update_yaxes(title=None)
    figure.update_yaxes(title="accuracy on held-out rows", col=1)
    return framed(figure, HEIGHT, legend=below(-0.16) | {"title": None})


def _ticks(places: Iterable[int]) -> list[int]:
    """Return the sizes there are, from the largest; crowded ones are left out."""
    shown: list[int] = []
    for place in sorted(set(places), reverse=True):
        if not shown or shown[-1] / place > CROWDED:
            shown.append(int(place))
    return shown
