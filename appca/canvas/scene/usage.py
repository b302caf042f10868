"""Which components each row uses and how much."""

from typing import NamedTuple

import numpy as np

from appca.analysis.fitted import FittedRun
from appca.canvas.scene.room import spread_order

FULL = 32_767
_ROOM_ABOVE = 4.0  # times the 99.9th percentile: beyond it a score is an outlier and is cut


class Usage(NamedTuple):
    """A run as the canvas takes it."""

    slots: np.ndarray  # (N, L) uint8 or uint16: components of a row, ascending; filled up
    scores: np.ndarray  # (N, L) int16 in units of `unit`; 0 where filled up
    unit: float
    values: np.ndarray  # (N, L) float32, the scores as the model has them; 0 where filled up
    n_components: int
    priority: np.ndarray  # (N,) uint32: the rows in the order in which room is given to them
    pictured: bool  # whether rows are images, which need room

    @property
    def most_used(self) -> int:
        """Components of the row that uses most."""
        return int(self.slots.shape[1])

    @property
    def taken(self) -> np.ndarray:
        """Slots (N, L) that hold a component."""
        return np.asarray(self.slots != np.iinfo(self.slots.dtype).max)

    @property
    def used(self) -> np.ndarray:
        """How many components each row (N,) uses."""
        return np.asarray(self.taken.sum(axis=1))

    @property
    def varies(self) -> bool:
        """Whether some rows use more components than others."""
        return bool(np.ptp(self.used))


def usage_of(fitted: FittedRun, *, pictured: bool) -> Usage:
    """List the components of each row; `pictured` says whether the rows are images."""
    rows, components = np.nonzero(fitted.active)
    scores, (N, K) = fitted.scores[rows, components], fitted.active.shape
    listed, values = row_by_row(rows, components, scores, N)
    slots = listed.astype(np.uint8 if K < 256 else np.uint16)  # which makes -1 the largest
    return usage_of_slots(slots, values, K, pictured=pictured)


def row_by_row(
    rows: np.ndarray, components: np.ndarray, scores: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """List entries (n,), ordered by row, in slots (N, L), -1 where filled up, and their values."""
    counts = np.bincount(rows, minlength=n_rows)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = np.full((n_rows, counts.max(initial=0)), -1)
    values = np.zeros(slots.shape, np.float32)
    slots[rows, places], values[rows, places] = components, scores
    return slots, values


def usage_of_slots(
    slots: np.ndarray, values: np.ndarray, n_components: int, *, pictured: bool
) -> Usage:
    """Return the usage of components that are listed row by row, as in `Usage`."""
    taken = slots != np.iinfo(slots.dtype).max
    unit = _unit(values[taken])
    scores = np.clip(np.rint(values / unit), -FULL, FULL).astype(np.int16)
    priority = spread_order(len(slots))
    return Usage(slots, scores, unit, values, n_components, priority, pictured)


def _unit(values: np.ndarray) -> float:
    """Choose the step of an int16 so that one far outlier does not coarsen all other scores."""
    sizes = np.abs(values)
    most = float(sizes.max(initial=0.0))
    if not most > 0:
        return 1.0
    usual = _ROOM_ABOVE * float(
        np.quantile(sizes[:: len(sizes) // 100_000 + 1], 0.999, method="lower")
    )
    return (min(most, usual) or most) / FULL
