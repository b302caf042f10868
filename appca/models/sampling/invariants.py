"""Numbers about Z that do not depend on how its columns are named: what a chain may be judged by.

Components swap names and signs between draws and chains, so an average over a column's entries
means nothing before the draws are aligned; these numbers need no alignment.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Indicators = NDArray[np.bool_]
N_PAIRS = 20
IN_USE = 0.05  # share of the rows that use a component which is more than a whim of a few


def occupancy(Z: Indicators) -> NDArray[np.int64]:
    """Count the rows of every column, largest first, (K,)."""
    return np.asarray(np.sort(Z.sum(axis=0))[::-1])


def in_use(occupancies: ArrayLike, n_rows: int, share: float = IN_USE) -> NDArray[np.intp]:
    """Count the components (...) that at least a share of the rows, and any, use: (..., K)."""
    counts = np.asarray(occupancies)
    return np.asarray((counts >= max(share * n_rows, 1)).sum(axis=-1))


def row_pairs(n_rows: int, n_pairs: int = N_PAIRS) -> NDArray[np.int64]:
    """Name pairs of different rows (n_pairs, 2), the same ones every time."""
    rng = np.random.default_rng(0)
    first = rng.integers(n_rows, size=n_pairs)
    second = (first + 1 + rng.integers(n_rows - 1, size=n_pairs)) % n_rows
    return np.stack([first, second], axis=1)


def co_allocation(Z: Indicators, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the columns that both rows of a pair use, (n_pairs,)."""
    return np.asarray((Z[pairs[:, 0]] & Z[pairs[:, 1]]).sum(axis=1))
