"""The rows as all chains see them: about their origin, with their sums."""

from typing import NamedTuple

from appca.models.algebra.gaussian import Array
from appca.models.rows.observations import Rows
from appca.models.rows.precise_products import totals


class ChainData(NamedTuple):
    """The rows about their origin, which are the y_n here, and their sums."""

    rows: Rows
    total: Array  # (D,)
    squares: float  # of all entries
    mass: float  # number of rows, each counted by its weight

    @property
    def size(self) -> int:
        """Number N D of entries."""
        return self.rows.n * self.rows.d


def data_of(rows: Rows) -> ChainData:
    """Sum up the rows once; the origin should be near their mean, or the sums lose digits."""
    return ChainData(rows, *totals(rows), float(rows.n))
