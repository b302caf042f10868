"""Brain maps as slices, time courses beside the stimulus, and errors over voxels."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from appca.analysis.paper.brain_maps import BrainMaps
from appca.data.brain.places import upright
from appca.plots.components.components import data_uri
from appca.plots.frame import CLEAR, above, framed

SLICES = 8  # side by side
COLOURS = {"appca": "#3f90da", "ppca_l": "#ffa90e", "ppca_k": "#832db6"}
STIMULUS = "#717581"
TITLE_T = "Linear model, t above the family-wise threshold"
_STRONG = 0.995  # quantile of the magnitudes that gets full colour
_ROW, _GAP, HEIGHT = 132, 30, 330  # pixels
_WARM = np.array([[150, 20, 20], [235, 90, 20], [255, 225, 90]], dtype=float)
_COLD = np.array([[20, 50, 140], [40, 130, 220], [150, 225, 255]], dtype=float)


def painted(signal: np.ndarray, values: np.ndarray, inside: np.ndarray, limit: float) -> np.ndarray:
    """Lay values over a grey picture of one shape: warm above zero, cold below, clear at zero.

    What is not `inside` the mask is left clear; `limit` is the magnitude of full colour. Returns
    uint8 (..., 4): red, green, blue and cover.
    """
    top = float(np.quantile(signal[inside], 0.99)) if inside.any() else 1.0
    grey = np.clip(45 + 165 * signal / (top or 1.0), 0, 220)[..., None]
    strength = np.clip(np.abs(values) / (limit or 1.0), 0, 1)
    places = 2 * strength
    stops = np.where((values > 0)[..., None, None], _WARM, _COLD)
    low = np.minimum(places.astype(int), 1)[..., None, None]
    first = np.take_along_axis(stops, low, axis=-2)[..., 0, :]
    second = np.take_along_axis(stops, low + 1, axis=-2)[..., 0, :]
    colour = first + (second - first) * (places - low[..., 0, 0])[..., None]
    cover = np.sqrt(strength)[..., None]
    mixed = np.rint(grey + (colour - grey) * cover).astype(np.uint8)
    opaque = np.where(inside[..., None], 255, 0).astype(np.uint8)
    return np.concatenate([mixed, opaque], axis=-1)


def maps(brain: BrainMaps, titles: Mapping[str, str]) -> go.Figure:
    """Draw maps of all models, by their titles, and the reference as rows of horizontal slices."""
    shown = {titles[key]: brain.models[key].values for key in brain.different(titles)}
    if brain.stimulus is not None:
        t = brain.stimulus.t
        shown[TITLE_T] = np.where(t > brain.stimulus.threshold, t, 0.0)
    figure = make_subplots(
        rows=len(shown), cols=1, subplot_titles=list(shown), vertical_spacing=0.16 / len(shown)
    )
    for place, values in enumerate(shown.values(), start=1):
        picture = _mosaic(brain, values)
        figure.add_trace(go.Image(source=data_uri(picture), hoverinfo="skip"), row=place, col=1)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_annotations(font_size=13)
    figure.update_layout(
        height=len(shown) * (_ROW + _GAP) + 20,
        margin={"l": 0, "r": 0, "t": 26, "b": 0},
        plot_bgcolor=CLEAR,
    )
    return figure


def strong(values: np.ndarray) -> float:
    """Return the magnitude that gets full colour; the few largest do not bleach all others."""
    there = np.abs(values[values != 0])
    return float(np.quantile(there, _STRONG)) if there.size else 1.0


def _volume(brain: BrainMaps, values: np.ndarray) -> np.ndarray:
    volume = np.zeros(brain.mask.shape, dtype=np.float64)
    volume[brain.mask] = values
    return upright(volume, brain.affine)


def _mosaic(brain: BrainMaps, values: np.ndarray) -> np.ndarray:
    """Slices from low to high, front up, the brain's left on the left."""
    inside = upright(brain.mask, brain.affine)
    box = tuple(slice(max(int(at.min()) - 1, 0), int(at.max()) + 2) for at in np.nonzero(inside))
    signal = _volume(brain, brain.signal)
    rgb = painted(signal, _volume(brain, values), inside, strong(values))[box]
    heights = np.unique(np.linspace(0, rgb.shape[2] - 1, SLICES + 2).round().astype(int)[1:-1])
    return np.concatenate([rgb[:, ::-1, z].transpose(1, 0, 2) for z in heights], axis=1)


def courses(brain: BrainMaps, titles: Mapping[str, str]) -> go.Figure:
    """Draw the stimulus and the components that follow it best over time."""
    figure = go.Figure()
    times = brain.times
    if brain.stimulus is not None:
        figure.add_scatter(
            x=times,
            y=_scaled(brain.stimulus.course),
            mode="lines",
            fill="tozeroy",
            name="Stimulus, as blood answers it",
            line={"color": STIMULUS, "width": 1},
            fillcolor="rgba(113,117,129,0.25)",
        )
    for key in brain.different(titles):
        dash = "dot" if key == "ppca_k" else "solid"
        figure.add_scatter(
            x=times,
            y=_scaled(brain.models[key].course),
            mode="lines",
            name=titles[key],
            line={"color": COLOURS[key], "width": 2, "dash": dash},
        )
    figure.update_xaxes(title="seconds")
    figure.update_yaxes(title="standard deviations")
    return framed(figure, HEIGHT, 40, legend=above())


def _scaled(course: np.ndarray) -> np.ndarray:
    return np.round(course / (course.std() or 1.0), 3)


def errors(brain: BrainMaps, titles: Mapping[str, str]) -> go.Figure:
    """Draw how many voxels have which error."""
    figure = go.Figure()
    edges = brain.edges
    for key, title in titles.items():
        figure.add_scatter(
            x=(edges[:-1] + edges[1:]) / 2,
            y=brain.models[key].errors,
            mode="lines",
            line={"color": COLOURS[key], "shape": "hvh", "width": 2},
            name=title,
            hovertemplate="%{y:,} voxels at %{x:.2f}<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(title="root mean square error of a voxel", rangemode="tozero")
    figure.update_yaxes(title="voxels", rangemode="tozero")
    return framed(figure, HEIGHT, 40, legend=above())
