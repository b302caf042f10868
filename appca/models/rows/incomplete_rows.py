"""Rows with missing entries: the complete ones together, the others in chunks with their gaps.

A gap is a NaN. Here rows stand about an origin with zeros in their gaps, so that products with
them run over what was observed; what a gap takes out of W'W is a product with the sparse gaps.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from appca.models.algebra.gaussian import Array

__all__ = [
    "IncompleteBlock",
    "IncompleteData",
    "filled",
    "has_gaps",
    "observed_mean",
    "refuse_empty_columns",
    "split",
]

CHUNK_ROWS = 2048  # bounds the second moments that are held at a time
SAME_PATTERN = 64  # rows from which a common pattern of gaps is worth the calls of its own chunk


class IncompleteBlock(NamedTuple):
    """Some incomplete rows."""

    rows: Array  # (n,) which they are
    X: Array  # (n, D) about the origin, zero in the gaps
    gaps: scipy.sparse.csr_array  # (n, D), one where an entry is missing
    alike: bool  # whether all rows have the same gaps


class IncompleteData(NamedTuple):
    """All rows."""

    shape: tuple[int, int]
    origin: Array  # (D,)
    complete: Array  # (n, D) the rows without gaps, about the origin
    whole: Array  # (n,) which they are
    chunks: list[IncompleteBlock]  # the others

    @property
    def n_missing(self) -> int:
        """How many entries are missing."""
        return sum(chunk.gaps.nnz for chunk in self.chunks)


def has_gaps(X: Array) -> bool:
    """Whether an entry is missing; free of temporaries where none is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(not np.isfinite(X.sum(dtype=np.float64)) and np.isnan(X).any())


def refuse_empty_columns(X: Array) -> None:
    """Raise ValueError where a feature is missing in every row."""
    empty = int(np.isnan(X).all(axis=0).sum())
    if empty:
        msg = (
            f"Every feature of X must be observed in some row, but {empty} of {X.shape[1]} are "
            "missing in all of them: leave those features out."
        )
        raise ValueError(msg)


def observed_mean(X: Array) -> Array:
    """Mean (D,) of what was observed of each feature, in the dtype of X."""
    mean = np.asarray(np.nanmean(X, axis=0, dtype=np.float64))
    return mean.astype(X.dtype)


def filled(X: Array, values: Array) -> Array:
    """Copy of X (N, D) with `values` (D,) or (N, D) in its gaps."""
    full: Array = np.where(np.isnan(X), values.astype(X.dtype, copy=False), X)
    return full


def split(X: Array, origin: Array) -> IncompleteData:
    """Sort rows X (N, D) by their gaps and take them about `origin` (D,)."""
    missing = np.isnan(X)
    incomplete = np.flatnonzero(missing.any(axis=1))
    whole = np.flatnonzero(~missing.any(axis=1))
    chunks: list[IncompleteBlock] = []
    for rows, alike in _alike(missing, incomplete):
        for start in range(0, len(rows), CHUNK_ROWS):
            part = rows[start : start + CHUNK_ROWS]
            about = np.where(missing[part], X.dtype.type(0.0), X[part] - origin)
            gaps = scipy.sparse.csr_array(missing[part].astype(np.float64))
            chunks.append(IncompleteBlock(part, about, gaps, alike))
    return IncompleteData(X.shape, origin, X[whole] - origin, whole, chunks)


def _alike(missing: Array, rows: Array) -> list[tuple[Array, bool]]:
    """Rows that share their gaps with several others, pattern by pattern, then all the rest."""
    if not len(rows):
        return []
    packed = np.packbits(missing[rows], axis=1)
    _, code, count = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    code = code.ravel()
    groups = [(rows[code == i], True) for i in np.flatnonzero(count >= SAME_PATTERN)]
    rest = rows[count[code] < SAME_PATTERN]
    return [*groups, (rest, False)] if len(rest) else groups
