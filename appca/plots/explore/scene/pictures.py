"""Pictures of the components, for headers and the diagonal: one sheet, light and dark."""

import math
from typing import Any, NamedTuple

import numpy as np

from appca.analysis.components.components import in_data_space, in_units_of_the_fit
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.plots.components.components import pixels_of, ranked_loadings
from appca.plots.explore.scene.sheets import cell_of, on_sheet, png_of
from appca.plots.explore.sprites import LARGEST_TILE, SHEET_SIDE, resized

# below zero, zero and above, on white and on a dark ground, where zero is the panel
LIGHT = ((47, 111, 179), (250, 250, 250), (200, 60, 40))
DARK = ((106, 169, 233), (22, 29, 39), (242, 133, 123))


class ComponentSheet(NamedTuple):
    """The pictures of all components on one sheet."""

    header: dict[str, Any]
    png: bytes


def component_pictures(
    fitted: FittedRun, dataset: Dataset, order: np.ndarray
) -> ComponentSheet | None:
    """Draw the components in an order, first as on white, then as in the dark.

    None where they are no images.
    """
    shape = dataset.image_shape
    if shape is None or not len(order):
        return None
    values = np.stack([pixels_of(one, shape) for one in in_data_space(fitted)[order]])
    limit = np.abs(values).max(axis=(1, 2), keepdims=True)
    values = values / np.where(limit > 0, limit, 1.0)
    tile = _tile(values.shape[1:])
    both = resized(np.concatenate([_coloured(values, ends) for ends in (LIGHT, DARK)]), tile)
    cell = cell_of(max(tile))
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
    return ComponentSheet(header, png_of(on_sheet(cells, cell, columns)))


def strongest_columns(fitted: FittedRun, dataset: Dataset) -> list[list[tuple[str, float]]]:
    """Return of each component the columns of a table that weigh most, from -1 to 1.

    None of images.
    """
    if dataset.image_shape is not None:
        return [[] for _ in fitted.components]
    return [
        [
            (one.name, round(math.copysign(one.share, one.value), 3))
            for one in ranked_loadings(weights, dataset.feature_names)
        ]
        for weights in in_units_of_the_fit(fitted)
    ]


def _tile(shape: tuple[int, ...]) -> tuple[int, int]:
    shrink = min(1.0, LARGEST_TILE / max(shape))
    return max(1, round(shape[0] * shrink)), max(1, round(shape[1] * shrink))


def _coloured(values: np.ndarray, ends: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """Signed values from -1 to 1 as colours between three."""
    low, zero, high = (np.array(end, np.float64) for end in ends)
    strength = np.abs(values)[..., None]
    end = np.where(values[..., None] < 0, low, high)
    colours: np.ndarray = np.rint(zero + (end - zero) * strength)
    return colours.astype(np.uint8)
