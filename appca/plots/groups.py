"""A group versus the rest: bars of effects, and images of rows side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly.colors import hex_to_rgb

from appca.analysis.groups import GroupDifference
from appca.plots.components import NEGATIVE, POSITIVE, enlarged, montage
from appca.plots.style import category_axis, chart, plain
from appca.words import apart, minus, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

MORE, LESS = (f"rgb{colour}" for colour in (POSITIVE, NEGATIVE))
NAME_LENGTH = 34
LEAST_SIDE = 56  # pixels
STRIP, GAP = 5, 4  # pixels below and between the images


def bars(differences: Sequence[GroupDifference]) -> "go.Figure":
    """Draw effects as bars from zero, first on top: red if larger in the group, blue if smaller."""
    n, effects = len(differences), [difference.effect for difference in differences]
    texts = [[plain(d.name), *sides(d), minus(f"{d.effect:+.2f}")] for d in differences]
    colours = [MORE if effect > 0 else LESS for effect in effects]
    hover = "%{customdata[0]}<br>group %{customdata[1]}, others %{customdata[2]}<br>effect "
    trace: dict[str, Any] = {"type": "bar", "orientation": "h", "x": effects, "y": list(range(n))}
    trace |= {"marker": {"color": colours}, "customdata": texts}
    trace["hovertemplate"] = hover + "%{customdata[3]}<extra></extra>"
    title = {"text": "Cliff's delta or difference of shares: smaller ← 0 → larger", "standoff": 12}
    across = {"title": title, "range": [-1.04, 1.04], "automargin": True}
    down = category_axis([difference.name for difference in differences], NAME_LENGTH)
    down |= {"range": [max(n, 1) - 0.4, -0.6], "automargin": True, "zeroline": None}
    return chart([trace], 90 + 26 * max(n, 1), across, down, bargap=0.35, showlegend=False)


def sides(difference: GroupDifference) -> tuple[str, str]:
    """Return the typical value or share in the group and in the rest as text."""
    if difference.is_share:
        return percent(difference.group), percent(difference.rest)
    return apart(difference.group, difference.rest, 3 + (difference.kind == "feature"))


def image_row(images: np.ndarray, colours: Sequence[str] | None = None) -> np.ndarray:
    """Arrange images (n, h, w) or (n, h, w, 3), uint8, side by side on transparent background.

    `colours` are the "#rrggbb" of a strip below each image. Returns uint8 (height, width, 4): red,
    green, blue and opacity.
    """
    large = enlarged(images, LEAST_SIDE)
    if large.ndim == 3:
        large = large[..., None].repeat(3, axis=3)
    below = 0 if colours is None else STRIP
    opaque = np.pad(large, ((0, 0), (0, below), (0, 0), (0, 1)), constant_values=255)
    if colours is not None:
        opaque[:, -STRIP:, :, :3] = np.array([*map(hex_to_rgb, colours)])[:, None, None]
    return montage(opaque, len(opaque), gap=GAP, ground=0)
