"""A run as pages and notebooks show it: with colourings and hover cards."""

from collections.abc import Mapping

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.analysis.groups.row_query import MEASURES, measure
from appca.canvas.scene.colours import colour_choices, colour_of
from appca.canvas.scene.scene import Map, Scene, scene_of
from appca.canvas.scene.texts import RowText
from appca.data.dataset import Dataset
from appca.plots.palette import Colour
from appca.words.wording import capital


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
    lines = label_lines(dataset)
    lines += [RowText(capital(kind), measure(fitted, kind)) for kind in MEASURES]
    return scene_of(fitted, dataset, choices, maps, outside, lines)


def label_lines(dataset: Dataset) -> list[RowText]:
    """Return the lines of the hover card that need no fit."""
    labels = []
    for name in dataset.labels:
        names, codes = dataset.classes(name)
        labels.append(RowText(name, codes, tuple(names)))
    return labels


def projected(dataset: Dataset, fitted: FittedRun, rows: np.ndarray) -> np.ndarray:
    """Project rows on all components, (n, K), also on those they do not use."""
    centred = fitted.preprocessing.transform(dataset.X[rows]) - fitted.mean
    return np.asarray(centred @ fitted.components.T)
