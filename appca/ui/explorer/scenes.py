"""From what pages show to the scene of it: numbers of components, colours and texts of the rows."""

from collections.abc import Mapping

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset, categories
from appca.plots.explore.scene.scene import Map, NumberedComponent, Scene, scene_of
from appca.plots.explore.scene.texts import RowText
from appca.runs.numbering import Numbering
from appca.ui.explorer.colours import MEASURES, colour_choices, colour_of


def scene_shown(
    dataset: Dataset,
    fitted: FittedRun,
    numbering: Numbering,
    maps: Mapping[str, Map] | None = None,
    outside: np.ndarray | None = None,
    feature: str | None = None,
) -> Scene:
    """Lay out a run as pages show it.

    Parameters
    ----------
    dataset : Dataset
    fitted : FittedRun
        Turned and named already, see `numbering.numbered`.
    numbering : Numbering
    maps : mapping of str to Map, optional
        "pca" and, where there is one, "umap".
    outside : ndarray of uint8, shape (N,), optional
        Flags of rows; see `scene_of`.
    feature : str, optional
        Key of a feature that rows can be coloured by, too; see `colours.colour_of`.
    """
    pairs = zip(numbering.numbers, numbering.names, strict=True)
    components = [NumberedComponent(number, name) for number, name in pairs]
    keys = [*colour_choices(dataset), *([feature] if feature else [])]
    choices = {key: colour_of(dataset, fitted, key) for key in keys}
    lines = lines_of(dataset, fitted)
    return scene_of(fitted, dataset, components, choices, maps, outside, lines)


def lines_of(dataset: Dataset, fitted: FittedRun) -> list[RowText]:
    """Return the lines of the hover card; which components a row uses the browser knows itself."""
    found = []
    for name, values in dataset.labels.items():
        names, codes = categories(values)
        found.append(RowText(name, codes, tuple(names)))
    return found + [RowText(name, getattr(fitted, part)) for name, part in MEASURES.values()]
