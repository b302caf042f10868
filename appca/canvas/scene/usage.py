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
    dense: np.ndarray  # (N, K) float32, as the model has them
    active: np.ndarray  # (N, K) bool
    priority: np.ndarray  # (N,) uint32: the rows in the order in which room is given to them
    pictured: bool  # whether rows are images, which need room

    @property
    def most_used(self) -> int:
        """Components of the row that uses most."""
        return int(self.slots.shape[1])

    @property
    def varies(self) -> bool:
        """Whether some rows use more components than others."""
        return bool(np.ptp(self.active.sum(axis=1)))


def usage_of(fitted: FittedRun, *, pictured: bool) -> Usage:
    """List the components of each row; `pictured` says whether the rows are images."""
    active, dense = fitted.active, fitted.scores
    rows, components = np.nonzero(active)
    counts = active.sum(axis=1)
    starts = np.cumsum(counts) - counts
    places = np.arange(len(rows)) - np.repeat(starts, counts)
    shape = (len(active), int(counts.max(initial=0)))
    dtype = np.uint8 if active.shape[1] < 256 else np.uint16
    slots = np.full(shape, np.iinfo(dtype).max, dtype)
    slots[rows, places] = components
    values = dense[rows, components]
    unit = _unit(values)
    scores = np.zeros(shape, np.int16)
    scores[rows, places] = np.clip(np.rint(values / unit), -FULL, FULL)
    return Usage(slots, scores, unit, dense, active, spread_order(len(active)), pictured)


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
