"""For each class its nearest other class in the projection."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from appca.analysis.explore.subspaces import ranked
from appca.analysis.groups.similar import projected


class ClassNeighbour(NamedTuple):
    """A class and the other class it lies nearest to."""

    name: str
    other: str | None  # None when no row shares its subspace with another class
    share: float  # of the rows with a neighbour: those whose nearest row of another class is of it


def nearest_classes(
    components: np.ndarray,
    scores: np.ndarray,
    active: np.ndarray,
    codes: np.ndarray,
    names: Sequence[str],
) -> list[ClassNeighbour]:
    """Find for each class the other class that its rows have nearest in the projection.

    A row's neighbours are the rows of its own subspace, by the distance of their projections. Each
    row votes for the class of its nearest row of another class; ties go to the class named first.

    `components` are (K, D), `scores` and `active` (N, K). `codes` (N,) count into `names`, negative
    for rows without a class, which are left out.
    """
    kept = np.flatnonzero(codes >= 0)
    used, row_codes = active[kept], codes[kept]
    nearest = np.full(len(kept), -1)
    for subspace in ranked(used) if len(kept) else []:
        points = projected(scores[kept], components, subspace)
        index = _nearest_of_another_class(points, row_codes[subspace.rows])
        has_neighbour = index >= 0
        nearest[subspace.rows[has_neighbour]] = row_codes[subspace.rows[index[has_neighbour]]]
    return [_of_class(c, names, nearest[row_codes == c]) for c in range(len(names))]


def _nearest_of_another_class(points: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Place (m,) of the nearest row of another class, -1 without one."""
    from scipy.spatial import cKDTree

    index = np.full(len(points), -1)
    if points.shape[1] == 0:  # rows that use no component lie in one point and nowhere else
        return index
    for code in np.unique(codes):
        inside, others = np.flatnonzero(codes == code), np.flatnonzero(codes != code)
        if len(others):
            index[inside] = others[cKDTree(points[others]).query(points[inside])[1]]
    return index


def _of_class(code: int, names: Sequence[str], nearest: np.ndarray) -> ClassNeighbour:
    votes = np.bincount(nearest[nearest >= 0], minlength=len(names))
    if not votes.sum():
        return ClassNeighbour(names[code], None, 0.0)
    other = int(votes.argmax())
    return ClassNeighbour(names[code], names[other], float(votes[other] / votes.sum()))
