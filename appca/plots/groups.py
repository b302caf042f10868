"""A group against the rest: bars of effects, and images of rows side by side."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from appca.analysis.groups import GroupDifference
from appca.plots.components import NEGATIVE, POSITIVE
from appca.plots.style import framed, plain
from appca.words import minus, number, percent, shortened

MORE, LESS = (f"rgb{colour}" for colour in (POSITIVE, NEGATIVE))
LINE_HEIGHT, FRAME_HEIGHT = 26, 76  # pixels
NAME_LENGTH = 34


LEAST_SIDE = 56  # pixels; smaller images are enlarged by a whole number, so that pixels stay square
STRIP, GAP = 5, 4  # pixels below and between the images


def bars(differences: Sequence[GroupDifference]) -> go.Figure:
    """Draw effects as bars from zero, the first at the top: red is more in the group, blue less."""
    effects = [difference.effect for difference in differences]
    figure = go.Figure(
        go.Bar(
            x=effects,
            y=list(range(len(differences))),
            orientation="h",
            marker={"color": [MORE if effect > 0 else LESS for effect in effects]},
            customdata=[
                [plain(difference.name), *sides(difference), minus(f"{difference.effect:+.2f}")]
                for difference in differences
            ],
            hovertemplate="%{customdata[0]}<br>group %{customdata[1]}, rest %{customdata[2]}"
            "<br>effect %{customdata[3]}<extra></extra>",
        )
    )
    figure.update_xaxes(range=[-1.04, 1.04], title="effect: less in the group ← 0 → more")
    figure.update_yaxes(
        tickvals=list(range(len(differences))),
        ticktext=[plain(shortened(difference.name, NAME_LENGTH)) for difference in differences],
        range=[max(len(differences), 1) - 0.4, -0.6],
        automargin=True,
        showgrid=False,
    )
    height = FRAME_HEIGHT + LINE_HEIGHT * max(len(differences), 1)
    return framed(figure, height, 8, 8, bargap=0.35, showlegend=False)


def sides(difference: GroupDifference) -> tuple[str, str]:
    """Return mean or share of the group and of the rest as text."""
    return (
        (percent(difference.group), percent(difference.rest))
        if difference.is_share
        else (number(difference.group), number(difference.rest))
    )


def image_row(images: np.ndarray, colours: Sequence[str] | None = None) -> np.ndarray:
    """Lay images (n, h, w) or (n, h, w, 3), uint8, side by side on a transparent ground.

    `colours` are the "#rrggbb" of a strip below each. Returns uint8 (height, width, 4): red, green,
    blue and opacity.
    """
    factor = max(1, -(-LEAST_SIDE // max(images.shape[1:3])))
    large = images.repeat(factor, axis=1).repeat(factor, axis=2)
    if large.ndim == 3:
        large = np.stack([large] * 3, axis=-1)
    n, h, w, _ = large.shape
    below = 0 if colours is None else STRIP
    row = np.zeros((h + below, n * (w + GAP) - GAP, 4), np.uint8)
    for i, image in enumerate(large):
        left = i * (w + GAP)
        row[:h, left : left + w, :3] = image
        if colours is not None:
            row[h:, left : left + w, :3] = hex_to_rgb(colours[i])
        row[:, left : left + w, 3] = 255
    return row
