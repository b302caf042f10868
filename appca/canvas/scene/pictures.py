"""Pictures of the components, for headers and the diagonal: one sheet, light and dark."""

import math
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components.components import in_units_of_the_fit, patterns
from appca.analysis.fitted import FittedRun
from appca.canvas.scene.sheets import FAST, cell_of, on_sheet
from appca.canvas.sprites import SHEET_SIDE, resized, tile_of
from appca.data.brain.places import has_places
from appca.data.dataset import Dataset
from appca.plots.components.components import (
    COURSE,
    picture_of,
    picture_shape,
    png,
    ranked_loadings,
)


class ComponentSheet(NamedTuple):
    """The pictures of all components on one sheet."""

    header: dict[str, Any]
    png: bytes


def component_pictures(fitted: FittedRun, dataset: Dataset) -> ComponentSheet | None:
    """Draw the components, first as on white, then as in the dark.

    Those of ordered features are lines. None of a table.
    """
    if picture_shape(dataset) is None or not len(fitted.components):
        return None
    light, dark = (picture_list(fitted, dataset, dark=on) for on in (False, True))
    return sheet_of(np.stack(light + dark), light[0].shape)


def picture_list(fitted: FittedRun, dataset: Dataset, *, dark: bool) -> list[np.ndarray]:
    """Return the components (K) as images or lines; those of a recording have their maps below.

    Empty for a table.
    """
    directions = patterns(fitted, picture_shape(dataset))
    drawn = [picture_of(direction, dataset, dark=dark) for direction in directions]
    pictures = [picture for picture in drawn if picture is not None]
    if not has_places(dataset):
        return pictures
    from appca.plots.components.slices import slices_of

    maps = slices_of(dataset, fitted.scores, COURSE, dark=dark)
    return [np.concatenate(pair) for pair in zip(pictures, maps, strict=True)]


def sheet_of(drawn: np.ndarray, shape: tuple[int, ...]) -> ComponentSheet | None:
    """Lay pictures (2K, h, w, 3) out, all as on white and then in the dark.

    None where there are more than a sheet has room for.
    """
    tile = tile_of(shape)
    cell = cell_of(max(tile))
    if len(drawn) > (SHEET_SIDE // cell) ** 2:
        return None
    both = resized(drawn, tile)
    seams = [((cell - side) // 2, -(-(cell - side) // 2)) for side in tile]
    cells = np.pad(both, [(0, 0), *seams, (0, 0)], mode="edge")  # no dark rim when enlarged
    columns = SHEET_SIDE // cell
    header = {
        "tile": [*tile, 3],
        "cell": cell,
        "columns": min(columns, len(both)),
        "per_sheet": len(both),
        "count": 1,
    }
    return ComponentSheet(header, png(on_sheet(cells, cell, columns), compress_level=FAST))


def strongest_columns(fitted: FittedRun, dataset: Dataset) -> list[list[tuple[str, float]]]:
    """Return of each component the columns of a table that weigh most, from -1 to 1.

    None of images and ordered features.
    """
    if dataset.image_shape is not None or dataset.is_ordered:
        return [[] for _ in fitted.components]
    return heaviest(in_units_of_the_fit(fitted), dataset.feature_names)


def heaviest(
    components: np.ndarray, names: tuple[str, ...] | None
) -> list[list[tuple[str, float]]]:
    """Return the features that weigh most in each component (K, D), from -1 to 1."""
    return [
        [
            (loading.name, round(math.copysign(loading.share, loading.value), 3))
            for loading in ranked_loadings(weights, names)
        ]
        for weights in components
    ]
