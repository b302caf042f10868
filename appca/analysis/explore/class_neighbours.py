"""For each class its nearest other class in the projection."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from appca.analysis.explore.subspaces import ranked
from appca.analysis.groups.similar import projected

MOST_ROWS = 20_000  # of all; a fixed sample above, so that a page need not wait
_SEED = 0


class ClassNeighbour(NamedTuple):
    """A class and the other class it lies nearest to."""

    name: str
    other: str | None  # None when no row shares its subspace with another class
    share: float  # of the rows with a neighbour: those whose nearest row of another class is of it
    distance: float  # median to that class's row, where it is the nearest; in units of the fit
    rows: int  # of the class, as far as they were looked at
    alone: float  # share of them that lie in a subspace without any other class


class ProjectedRows(Protocol):
    """What is read of a fitted run."""

    @property
    def components(self) -> np.ndarray:
        """(K, D)."""

    @property
    def scores(self) -> np.ndarray:
        """(N, K)."""

    @property
    def active(self) -> np.ndarray:
        """(N, K) bool."""


def nearest_classes(
    fitted: ProjectedRows,
    codes: np.ndarray,
    names: Sequence[str],
    most: int = MOST_ROWS,
) -> list[ClassNeighbour]:
    """Find for each class the other class that its rows have nearest in the projection.

    A row's neighbours are the rows of its own subspace, by the distance of their projections. Each
    row votes for the class of its nearest row of another class.

    Parameters
    ----------
    fitted : FittedRun, or what has these of it
    codes : ndarray of int, shape (N,)
        Class of each row; negative for rows without one, which are left out.
    names : sequence of str
        Of the classes.
    most : int
        Rows looked at; of more, a sample that is always the same.

    Returns
    -------
    list of ClassNeighbour
        One for each class, in the order of `names`. Ties go to the class named first.
    """
    kept = np.flatnonzero(codes >= 0)
    if len(kept) > most:
        kept = np.sort(np.random.default_rng(_SEED).permutation(kept)[:most])
    scores, active, own = fitted.scores[kept], fitted.active[kept], codes[kept]
    nearest, distance = np.full(len(kept), -1), np.full(len(kept), np.nan)
    for subspace in ranked(active) if len(kept) else []:
        points = projected(scores, fitted.components, subspace)
        index, away = _nearest_of_another_class(points, own[subspace.rows])
        found = index >= 0
        nearest[subspace.rows[found]] = own[subspace.rows[index[found]]]
        distance[subspace.rows] = away
    return [_of_class(c, names, own, nearest, distance) for c in range(len(names))]


def _nearest_of_another_class(
    points: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Place (m,) of the nearest row of another class, -1 without one, and its distance (m,)."""
    from scipy.spatial import cKDTree

    index, away = np.full(len(points), -1), np.full(len(points), np.nan)
    if points.shape[1] == 0:  # rows that use no component lie in one point and nowhere else
        return index, away
    for code in np.unique(codes):
        inside, others = np.flatnonzero(codes == code), np.flatnonzero(codes != code)
        if len(others):
            away[inside], place = cKDTree(points[others]).query(points[inside])
            index[inside] = others[place]
    return index, away


def _of_class(
    code: int, names: Sequence[str], own: np.ndarray, nearest: np.ndarray, distance: np.ndarray
) -> ClassNeighbour:
    members = own == code
    votes = np.bincount(nearest[members & (nearest >= 0)], minlength=len(names))
    voted, rows = int(votes.sum()), int(members.sum())
    if not voted:
        return ClassNeighbour(names[code], None, 0.0, np.nan, rows, 1.0 if rows else 0.0)
    other = int(votes.argmax())
    towards = distance[members & (nearest == other)]
    return ClassNeighbour(
        names[code],
        names[other],
        float(votes[other] / voted),
        float(np.median(towards)),
        rows,
        1.0 - voted / rows,
    )
