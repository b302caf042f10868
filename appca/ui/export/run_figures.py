"""The figures of a run that stand alone: subspaces, components, map and climb; nothing is drawn."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from appca.analysis.explore.projection import rgb, variance_shares
from appca.analysis.explore.subspaces import opens_in_pair_view
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.numbers import percent
from appca.plots.components.component_figure import component_figure
from appca.plots.curves import likelihood
from appca.plots.explore import atlas
from appca.plots.explore.panel import Panel
from appca.plots.explore.scene.colours import colour_of
from appca.plots.explore.sprites import sprites_of
from appca.plots.explore.thumbnails import CELLS, thumbnails
from appca.plots.palette import Colour, levels
from appca.runs.configuration import RunConfig
from appca.runs.run import RunInfo
from appca.ui.export import panels
from appca.ui.parts.component_list import in_data_space, in_units_of_the_fit, title_of

COLUMNS = 3
POINT = 4
MAP_CELLS = 2 * CELLS  # thumbnails along a side of the map, which stands nearly alone


class Material(NamedTuple):
    """What the figures of a run are made of."""

    dataset: Dataset
    config: RunConfig
    info: RunInfo
    fitted: FittedRun  # with names and signs that a person gave
    colour: str  # a key of `colours.colour_choices`
    selected: np.ndarray | None = None  # (N,) bool: all other rows turn grey
    coordinates: np.ndarray | None = None  # (N, 2), of the UMAP map where there is one


class StandingFigure(NamedTuple):
    """A figure with its name; it is made when it is asked for."""

    title: str
    about: str
    make: Callable[[], go.Figure]


def figures(material: Material) -> dict[str, StandingFigure]:
    """Return the figures there are, by a word for the name of a file."""
    about = f"The {panels.PAGE} fullest; images where there is room for them."
    found = [StandingFigure("Subspaces", about, lambda: _subspaces(material))]
    about = "What each looks like and explains."
    found.append(StandingFigure("Components", about, lambda: _components(material)))
    if (coordinates := material.coordinates) is not None:
        about = "All rows, coloured by the projection and as chosen."
        found.append(StandingFigure("UMAP", about, lambda: _map(material, coordinates)))
    if len(material.fitted.log_likelihoods) > 1:
        about = "How the fit climbed, pass by pass."
        found.append(StandingFigure("Log-likelihood", about, lambda: _climb(material)))
    return {one.title.lower(): one for one in found}


def _subspaces(material: Material) -> go.Figure:
    fitted = material.fitted
    by_pair = opens_in_pair_view(fitted.active)
    drawn = panels.fullest_panels(material.dataset, fitted, by_pair=by_pair)
    return _scatters(material, drawn, CELLS)


def _map(material: Material, coordinates: np.ndarray) -> go.Figure:
    fitted = material.fitted
    x, y = np.ascontiguousarray(coordinates[:, :2].T)
    rows = np.arange(len(x), dtype=np.int32)
    plain = Panel(_colour(material).name, f"{len(x):,} rows", rows, x, y, origin=False)
    projected = plain._replace(
        title=material.config.model,
        subtitle="scores as colours",
        rgb=rgb(fitted.scores, fitted.active),
    )
    return _scatters(material, [projected, plain], MAP_CELLS)


def _scatters(material: Material, drawn: list[Panel], cells: int) -> go.Figure:
    colour = _colour(material)
    n_rows = material.dataset.n_rows
    figure = atlas.figure(
        drawn,
        colour,
        n_rows=n_rows,
        columns=COLUMNS,
        point_size=POINT,
        selection=material.selected,
    )
    if material.dataset.image_shape is None:
        return figure
    if material.selected is not None:
        drawn = [_only(panel, material.selected) for panel in drawn]
    found = thumbnails(drawn, sprites_of(material.dataset), levels(colour, n_rows), cells)
    return figure.update_layout(images=found)


def _only(panel: Panel, selected: np.ndarray) -> Panel:
    """Return the selected points of a panel, for the images on them."""
    inside = selected[panel.rows]
    own = None if panel.rgb is None else panel.rgb[inside]
    kept = {"rows": panel.rows[inside], "x": panel.x[inside], "y": panel.y[inside], "rgb": own}
    return panel._replace(**kept, hollow=None, symbol=None)


def _components(material: Material) -> go.Figure:
    dataset, fitted = material.dataset, material.fitted
    patterns = in_data_space(fitted) if dataset.image_shape else in_units_of_the_fit(fitted)
    shares = variance_shares(fitted)
    titles = [
        f"{title_of(fitted, k)}\n{percent(share, 1)} of variance" for k, share in enumerate(shares)
    ]
    return component_figure(patterns, titles, dataset.image_shape, dataset.feature_names)


def _climb(material: Material) -> go.Figure:
    curve = np.asarray(material.fitted.log_likelihoods, dtype=float)
    passes = np.arange(1, len(curve) + 1)
    n_rows = material.info.n_rows
    figure = likelihood(passes, curve, n_rows, material.config.is_sampled)
    return figure.update_layout(height=360, margin={"l": 60, "r": 20, "t": 20, "b": 50})


def _colour(material: Material) -> Colour:
    return colour_of(material.dataset, material.fitted, material.colour)
