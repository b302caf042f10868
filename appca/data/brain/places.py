"""Where the voxels of a recording are: in the grid, upright, and in slices side by side."""

from contextlib import suppress

import numpy as np

from appca.data.dataset import Dataset
from appca.words.errors import InputError

GAP = 2  # voxels between slices that are side by side


def has_places(dataset: Dataset) -> bool:
    """Whether the rows of a data set are voxels of a volume."""
    return {"grid", "affine"} <= set(dataset.provenance)


def voxels_of(dataset: Dataset) -> np.ndarray:
    """Return the indices (V, 3) of a recording's rows in its grid.

    Raises InputError when a row is not a voxel of the grid.
    """
    with suppress(ValueError):  # of names that are not those of voxels
        places = np.array([name.split("-")[1:] for name in dataset.ids.tolist()], dtype=int)
        if ((places >= 0) & (places < np.array(dataset.provenance["grid"]))).all():
            return places
    msg = f"The rows of “{dataset.name}” are not the voxels it says; open its file again."
    raise InputError(msg)


def orientation(affine: np.ndarray) -> tuple[list[int], list[int]]:
    """Return which index (axes) runs to the right, to the front and up, and which way (signs).

    ``axes[0]`` is the volume's axis nearest to left-right, ``signs[0]`` -1 if it runs left.
    """
    turn = np.array(affine, dtype=float)[:3, :3]
    turn = turn / np.maximum(np.linalg.norm(turn, axis=0), 1e-12)
    axes, signs, left = [0, 0, 0], [1, 1, 1], np.abs(turn)
    for _ in range(3):  # the clearest pair first, so that oblique axes are never taken twice
        to, of = np.unravel_index(np.argmax(left), left.shape)
        axes[to], signs[to] = int(of), -1 if turn[to, of] < 0 else 1
        left[to, :], left[:, of] = -1.0, -1.0
    return axes, signs


def upright(volume: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Turn a volume (x, y, z) so that its axes point right, front and up as nearly as they can."""
    axes, signs = orientation(affine)
    turned = np.transpose(volume, axes)
    return turned[tuple(slice(None, None, int(sign)) for sign in signs)]


def side_by_side(dataset: Dataset) -> np.ndarray:
    """Return the places (V, 2) of a recording's voxels in its horizontal slices, in millimetres.

    The lowest slice is at the top left, the next one to its right; each has the front of the head
    at the top and the right of the body on the right.

    Raises InputError when a row is not a voxel of the grid.
    """
    affine = np.array(dataset.provenance["affine"], dtype=float).reshape(4, 4)
    axes, signs = orientation(affine)
    sides = np.linalg.norm(affine[:3, axes[:2]], axis=0)
    right, front, up = (voxels_of(dataset)[:, axes] * signs).T
    heights, of_row = np.unique(up, return_inverse=True)
    width = (np.ptp(right) + 1 + GAP) * sides[0]
    height = (np.ptp(front) + 1 + GAP) * sides[1]
    columns = int(np.ceil(np.sqrt(len(heights) * height / width)))
    x = (of_row % columns) * width + (right - right.min()) * sides[0]
    y = (front - front.min()) * sides[1] - (of_row // columns) * height
    return np.column_stack([x, y])
