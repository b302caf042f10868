"""Incomplete data: the complete rows together, the others in blocks with a mask of what is missing.

A missing entry is a NaN. Here rows stand about an origin with zeros where they are missing, so that
products with them run over what was observed; what missing entries take out of W'W is a product
with their sparse mask.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from appca.models.algebra.gaussian import Array
from appca.models.rows.shifted_sparse import is_sparse

BLOCK_ROWS = 512  # bounds the second moments that are held at a time, and shares rows out
SAME_PATTERN = 64  # rows from which a common pattern of missing entries pays for a block of its own


class IncompleteBlock(NamedTuple):
    """Some incomplete rows."""

    rows: Array  # (n,) which they are
    X: Array  # (n, D) about the origin, zero where missing
    missing: scipy.sparse.csr_array  # (n, D), one where an entry is missing
    same_pattern: bool  # whether the same entries are missing in all rows


class IncompleteData(NamedTuple):
    """All rows."""

    shape: tuple[int, int]
    origin: Array  # (D,)
    complete: Array  # (n, D) the complete rows, about the origin
    complete_rows: Array  # (n,) which they are
    blocks: list[IncompleteBlock]  # the others

    @property
    def n_missing(self) -> int:
        """How many entries are missing."""
        return sum(block.missing.nnz for block in self.blocks)


def is_incomplete(X: Any) -> bool:
    """Whether an entry is missing; free of temporaries where none is."""
    if is_sparse(X):  # which are refused with NaN
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(not np.isfinite(X.sum()) and np.isnan(X).any())


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


def imputed(X: Array, values: Array) -> Array:
    """Copy of X (N, D) with `values` (D,) or (N, D) where entries are missing."""
    full: Array = np.where(np.isnan(X), values.astype(X.dtype, copy=False), X)
    return full


def split_incomplete(X: Array, origin: Array) -> IncompleteData:
    """Sort rows X (N, D) by what is missing and take them about `origin` (D,)."""
    missing = np.isnan(X)
    incomplete = np.flatnonzero(missing.any(axis=1))
    complete = np.flatnonzero(~missing.any(axis=1))
    blocks: list[IncompleteBlock] = []
    for rows, same_pattern in _by_pattern(missing, incomplete):
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            about = np.where(missing[part], X.dtype.type(0.0), X[part] - origin)
            mask = scipy.sparse.csr_array(missing[part].astype(np.float64))
            blocks.append(IncompleteBlock(part, about, mask, same_pattern))
    return IncompleteData(X.shape, origin, X[complete] - origin, complete, blocks)


def _by_pattern(missing: Array, rows: Array) -> list[tuple[Array, bool]]:
    """Rows whose pattern of missing entries many share, pattern by pattern, then all the rest."""
    if not len(rows):
        return []
    packed = np.packbits(missing[rows], axis=1)
    _, code, count = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    code = code.ravel()
    groups = [(rows[code == i], True) for i in np.flatnonzero(count >= SAME_PATTERN)]
    rest = rows[count[code] < SAME_PATTERN]
    return [*groups, (rest, False)] if len(rest) else groups
