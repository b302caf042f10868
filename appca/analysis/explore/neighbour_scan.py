"""The compiled inner loop of `neighbours`; imported when neighbours are first sought."""

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _replace_farthest(indices: np.ndarray, squares: np.ndarray, row: int, square: float) -> None:
    """Put a row in the place of the farthest of a heap (k,), and the new farthest at place 0."""
    place, child = 0, 1
    while child < len(squares):
        if child + 1 < len(squares) and squares[child + 1] > squares[child]:
            child += 1
        if squares[child] <= square:
            break
        squares[place] = squares[child]
        indices[place] = indices[child]
        place, child = child, 2 * child + 1
    squares[place] = square
    indices[place] = row


@numba.njit(fastmath=True, nogil=True, cache=True)  # type: ignore[untyped-decorator]
def scan(
    bound: np.ndarray,
    X: np.ndarray,
    first_query: int,
    first_row: int,
    indices: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Offer a tile of rows to a tile of queries; compute distances only where the bound allows it.

    Parameters
    ----------
    bound : (q, r) float32, at most the squared distance of query i and row j of the tile.
    X : (N, D) float32, all rows.
    first_query, first_row : where the tile lies among the rows.
    indices, squares : (q, k) the nearest so far as heaps, the farthest at place 0; changed.
    """
    n_queries, n_rows = bound.shape
    for i in range(n_queries):
        query = X[first_query + i]
        for j in range(n_rows):
            if bound[i, j] >= squares[i, 0]:
                continue
            row = X[first_row + j]
            square = np.float32(0.0)
            for d in range(query.shape[0]):
                difference = query[d] - row[d]
                square += difference * difference
            if square < squares[i, 0]:
                _replace_farthest(indices[i], squares[i], first_row + j, square)
