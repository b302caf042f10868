"""Figures of a fitted model that stand alone, for papers and notebooks."""

from typing import Any

import numpy as np

from appca.canvas.figure import draw
from appca.canvas.from_model import map_of, rows_of, run_of, scene_of_rows
from appca.canvas.scene.scene import Scene
from appca.plots.components.component_figure import component_figure
from appca.plots.still import StillFigure
from appca.runs.numbering import numbered_after
from appca.words.errors import InputError

MAP = "Map"


def plot_subspaces(
    model: Any, X: Any, y: Any = None, images: Any = None, *, by: str = "", dark: bool = False
) -> StillFigure:
    """Plot every subspace, or pair of components, in a panel of its own.

    Parameters
    ----------
    model : fitted estimator of appca, or what `appca.load_model` gave
    X : array-like, shape (N, D)
    y : array-like of shape (N,), mapping or data frame, optional
        Values to colour points by; of several, named by key or column, the first is used.
    images : tuple or ndarray, optional
        The shape (h, w) or (h, w, 3) of rows that are images, or an image for each row.
    by : {"", "subspaces", "pairs"}
        By default subspaces while at most 60 are in use.
    dark : bool

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`; `savefig` writes PNG, SVG and PDF.

    Raises
    ------
    InputError
        When the parts do not fit together.
    """
    scene = _scene(model, X, y, images)
    layout = by or scene.meta["first"]
    there = [name for name in scene.meta["layouts"] if name != "pca"]
    if layout not in there:
        msg = f"by is one of {', '.join(map(repr, there))}; got {by!r}."
        raise InputError(msg)
    return draw(scene, layout, _colouring(scene, y), dark=dark)


def plot_map(
    model: Any,
    X: Any,
    y: Any = None,
    images: Any = None,
    *,
    coordinates: Any = None,
    dark: bool = False,
) -> StillFigure:
    """Plot all rows on one map, by default their first two principal components.

    Parameters
    ----------
    model, X, y, images, dark
        As for `plot_subspaces`.
    coordinates : array-like, shape (N, 2), optional
        Of another map, such as a UMAP of `model.transform(X)`.

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`.
    """
    maps = None if coordinates is None else {MAP: coordinates}
    scene = _scene(model, X, y, images, maps)
    return draw(scene, MAP if maps else "pca", _colouring(scene, y), dark=dark)


def plot_components(
    model: Any, image_shape: tuple[int, ...] | None = None, names: Any = None, *, dark: bool = False
) -> StillFigure:
    """Plot what each component looks like: as an image, or as its strongest features.

    Parameters
    ----------
    model : fitted estimator of appca, or what `appca.load_model` gave
    image_shape : tuple, optional
        (h, w) or (h, w, 3), of rows that are images.
    names : sequence of str, optional
        Of the D features.
    dark : bool

    Returns
    -------
    StillFigure
        A `matplotlib.figure.Figure`.
    """
    if not hasattr(model, "components_"):
        msg = f"Components are plotted of a fitted estimator; got {type(model).__name__}."
        raise InputError(msg)
    patterns = np.asarray(model.components_)
    titles = [f"Component {k + 1}" for k in range(len(patterns))]
    feature_names = None if names is None else tuple(map(str, names))
    return component_figure(patterns, titles, image_shape, feature_names, dark=dark)


def _scene(model: Any, X: Any, y: Any, images: Any, maps: dict[str, Any] | None = None) -> Scene:
    rows = rows_of(X, y, images)
    run = numbered_after(run_of(model, rows.dataset), None)
    coordinates = {key: map_of(key, xy, rows.dataset) for key, xy in (maps or {}).items()}
    return scene_of_rows(rows, run, coordinates)


def _colouring(scene: Scene, y: Any) -> str:
    return "" if y is None else next(iter(scene.meta["colourings"]))
