"""Charts of what a component does: its strongest features."""

import plotly.graph_objects as go

from appca.data.numbers import signed
from appca.plots.components.components import NEGATIVE, POSITIVE, Loading
from appca.plots.frame import plain

LINE_HEIGHT = 21  # of a feature's bar
BLUE, RED = (f"rgb{colour}" for colour in (NEGATIVE, POSITIVE))


def loading_bars(loadings: list[Loading]) -> go.Figure:
    """Weights of features in a component as bars, the strongest on top."""
    names = [item.name for item in loadings]
    values = [item.value for item in loadings]
    figure = go.Figure(
        go.Bar(
            x=values,
            y=list(range(len(loadings))),
            orientation="h",
            marker={"color": [RED if value > 0 else BLUE for value in values]},
            customdata=[[plain(item.name), signed(item.value)] for item in loadings],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
        )
    )
    limit = 1.05 * max(map(abs, values), default=1.0) or 1.0
    figure.update_layout(
        height=46 + LINE_HEIGHT * len(loadings),
        margin={"l": 4, "r": 8, "t": 6, "b": 4},
        bargap=0.25,
        showlegend=False,
        xaxis={"title": "weight", "range": [-limit, limit], "nticks": 6, "tickangle": 0},
        yaxis={
            "tickvals": list(range(len(loadings))),
            "ticktext": [plain(_short(name)) for name in names],
            "autorange": "reversed",
            "showgrid": False,
            "automargin": True,
        },
    )
    return figure


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
