"""A run as pages and notebooks show it: with colourings and hover cards."""

from collections.abc import Mapping

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.canvas.scene.colours import MEASURES, colour_choices, colour_of
from appca.canvas.scene.scene import Map, Scene, scene_of
from appca.canvas.scene.texts import RowText
from appca.data.dataset import Dataset, categories
from appca.plots.palette import Colour


def scene_shown(
    dataset: Dataset,
    fitted: FittedRun,
    maps: Mapping[str, Map] | None = None,
    *,
    outside: np.ndarray | None = None,
    feature: str | None = None,
    colourings: Mapping[str, Colour] | None = None,
) -> Scene:
    """Lay out a run as pages show it, with components as `numbering.numbered` returns them.

    `maps` are "pca" and "umap"; rows `outside` (N,) are marked (see `scene_of`); `feature` is the
    key of a feature that rows can be coloured by, too (see `colours.colour_of`).
    """
    keys = [*colour_choices(dataset), *([feature] if feature else [])]
    choices = {key: colour_of(dataset, fitted, key) for key in keys} | dict(colourings or {})
    lines = lines_of(dataset, fitted)
    return scene_of(fitted, dataset, choices, maps, outside, lines)


def lines_of(dataset: Dataset, fitted: FittedRun) -> list[RowText]:
    """Return the lines of the hover card; which components a row uses the browser knows itself."""
    measured = [RowText(name, getattr(fitted, part)) for name, part in MEASURES.values()]
    return label_lines(dataset) + measured


def label_lines(dataset: Dataset) -> list[RowText]:
    """Return the lines of the hover card that need no fit."""
    labels = []
    for name, values in dataset.labels.items():
        names, codes = categories(values)
        labels.append(RowText(name, codes, tuple(names)))
    return labels


def projected(dataset: Dataset, fitted: FittedRun, rows: np.ndarray) -> np.ndarray:
    """Project rows on all components, (n, K), also on those they do not use."""
    centred = fitted.preprocessing.transform(dataset.X[rows]) - fitted.mean
    scores: np.ndarray = centred @ fitted.components.T
    return scores


def plane(coordinates: np.ndarray) -> np.ndarray:
    """Return two coordinates of each row, the second zero where there is one alone."""
    if coordinates.shape[1] > 1:
        return coordinates[:, :2]
    return np.column_stack([coordinates[:, 0], np.zeros(len(coordinates))])
