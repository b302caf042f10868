"""What the exports of a run are made of, and its figures: subspaces, components, map."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from appca.analysis.components.components import name_of, patterns
from appca.analysis.explore.projection import variance_shares
from appca.analysis.export.as_python import Recipe
from appca.canvas.scene.scene import Map, Scene
from appca.canvas.scene.shown import scene_shown
from appca.data.dataset import Dataset
from appca.plots.components.component_figure import component_figure
from appca.runs.home import threads
from appca.runs.store import title as run_title
from appca.ui.session.fitting import Shown
from appca.ui.settings import umap
from appca.words.numbers import percent
from appca.words.wording import capital

if TYPE_CHECKING:
    from appca.plots.still import StillFigure

MAP = "umap"


class Material(NamedTuple):
    """What the figures of a run are made of."""

    dataset: Dataset
    shown: Shown  # the run, with names and signs that a person gave
    colour: str  # a key of `colours.colour_choices`
    selected: np.ndarray | None = None  # (N,) bool: all other rows turn grey
    coordinates: np.ndarray | None = None  # (N, 2), of the UMAP map where there is one


class StandingFigure(NamedTuple):
    """A figure with its name; it is made when it is asked for."""

    title: str
    about: str
    make: Callable[[], "StillFigure"]


def material(dataset: Dataset, shown: Shown, colour: str, rows: np.ndarray | None) -> Material:
    """Gather what the figures show; `rows` None marks no selection."""
    selected = None
    if rows is not None:
        selected = np.zeros(dataset.n_rows, dtype=bool)
        selected[rows] = True
    embedding = umap.at_hand(dataset, shown.config)
    map_ = None if embedding is None else embedding.coordinates[:, :2]
    return Material(dataset, shown, colour, selected, map_)


def recipe(shown: Shown) -> Recipe:
    """Return what a run was made with."""
    config = shown.config
    return Recipe(
        run=config.id,
        title=run_title(config),
        settings=config.of_import(None).to_dict(),
        threads=threads(),
        log_likelihood=shown.info.log_likelihood,
        imported=config.imported is not None,
        order=shown.numbering.order,
        signs=shown.numbering.signs,
    )


def figures(material: Material) -> dict[str, StandingFigure]:
    """Return the figures there are, by a word for the name of a file."""
    scene = cache(lambda: _scene(material))
    about = "As Explore shows them; images where there is room for them."
    standing = [StandingFigure("Subspaces", about, lambda: _drawn(material, scene()))]
    about = "What each looks like and explains."
    standing.append(StandingFigure("Components", about, lambda: _components(material)))
    if material.coordinates is not None:
        standing.append(StandingFigure("UMAP", "All rows.", lambda: _drawn(material, scene(), MAP)))
    return {figure.title.lower(): figure for figure in standing}


def _scene(material: Material) -> Scene:
    places, colour = material.coordinates, material.colour
    maps = {} if places is None else {MAP: Map("UMAP", places)}
    feature = colour if colour.startswith("feature:") else None
    return scene_shown(material.dataset, material.shown.fitted, maps, feature=feature)


def _drawn(material: Material, scene: Scene, layout: str = "") -> "StillFigure":
    from appca.canvas.figure import draw

    layout = layout or scene.meta["first"]
    return draw(scene, layout, material.colour, selected=material.selected)


def _components(material: Material) -> "StillFigure":
    dataset, fitted = material.dataset, material.shown.fitted
    shares = variance_shares(fitted)
    titles = [
        f"{capital(name_of(fitted, k))}\n{percent(share, 1)} of variance"
        for k, share in enumerate(shares)
    ]
    shape, names = dataset.image_shape, dataset.feature_names
    return component_figure(patterns(fitted, shape), titles, shape, names, times=dataset.times)
