"""Sparse matrices of untrusted files: checked, filled with their zeros, and made a data set."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from appca.data.dataset import Dataset
from appca.data.readers.arrays.choice import Beside, kept_type, settled
from appca.data.readers.intake import FileReport
from appca.data.readers.source import ReadLimits, check_matrix
from appca.words.errors import InputError
from appca.words.wording import shortened

_EXACT = 1 << 24  # whole numbers below it are exact in float32
REMEDY = "keep fewer rows or columns, such as highly variable genes, and save the file again"


class Compressed(NamedTuple):
    """A sparse matrix as files state it, row by row (CSR) or column by column (CSC)."""

    shape: tuple[int, ...]
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    by_row: bool = True

    def turned(self) -> "Compressed":
        """Return the transposed matrix."""
        return self._replace(shape=self.shape[::-1], by_row=not self.by_row)


def filled(
    name: str, matrix: Compressed, columns: np.ndarray | None, limits: ReadLimits
) -> np.ndarray:
    """Return the matrix (N, D) with its zeros, or some of its columns.

    Raises InputError when the parts do not fit together, or the result is larger than allowed.
    """
    _check(name, matrix)
    n, d = matrix.shape[0], matrix.shape[1] if columns is None else len(columns)
    dtype = _type(matrix.data)
    check_matrix(name, n, d, dtype.itemsize, limits, REMEDY)
    from scipy import sparse

    kind = sparse.csr_matrix if matrix.by_row else sparse.csc_matrix
    parts = (matrix.data.astype(dtype), matrix.indices, matrix.indptr)
    whole = kind(parts, shape=matrix.shape)
    part = whole if columns is None else whole[:, columns]
    dense: np.ndarray = part.toarray(order="C")
    return dense


def _type(data: np.ndarray) -> np.dtype:
    if data.dtype.kind in "bui" and np.abs(data).max(initial=0) < _EXACT:
        return np.dtype(np.float32)
    return kept_type(data.dtype) if data.dtype.kind == "f" else np.dtype(np.float64)


def _check(name: str, matrix: Compressed) -> None:
    """Refuse parts with which SciPy's compiled code would read beyond an array."""
    shape, data, indices, indptr, by_row = matrix
    sides = len(shape) == 2 and min(shape) > 0
    vectors = all(part.ndim == 1 for part in (data, indices, indptr))
    plain = data.dtype.kind in "buif" and indices.dtype.kind in "ui" and indptr.dtype.kind in "ui"
    fits = sides and vectors and plain and len(data) == len(indices)
    if fits:
        major, minor = shape if by_row else shape[::-1]
        ends = len(indptr) == major + 1 and indptr[0] == 0 and indptr[-1] == len(data)
        inside = not len(indices) or (indices.min() >= 0 and indices.max() < minor)
        fits = bool(ends and inside and (indptr[:-1] <= indptr[1:]).all())
    if not fits:
        msg = (
            f"The sparse matrix in “{name}” is damaged: its values, indices and shape do not fit "
            "together; write the file again."
        )
        raise InputError(msg)


def build(
    name: str,
    X: np.ndarray,
    named: Beside,
    features: Sequence[str] | None,
    missing: str,
    report: FileReport,
    limits: ReadLimits,
) -> Dataset:
    """Make a data set of a matrix (N, D) whose features may have names."""
    names = None if features is None or len(features) > limits.columns else tuple(unique(features))
    ids = None if named.ids is None else np.array(unique(named.ids.tolist()))
    return settled(name, X, named._replace(ids=ids), names, missing, report, limits)


def unique(names: Sequence[str]) -> list[str]:
    """Return the names; a second one of the same name gets “-1”, as in anndata."""
    taken, again = set(names), dict[str, int]()
    seen: set[str] = set()
    result = []
    for name in names:
        new = name
        while new in seen or (new != name and new in taken):
            again[name] = again.get(name, 0) + 1
            new = f"{name}-{again[name]}"
        seen.add(new)
        result.append(new)
    return result


def check_rows(name: str, shape: tuple[int, ...], limits: ReadLimits) -> None:
    """Refuse a matrix with too few rows or columns to be data."""
    if len(shape) != 2 or shape[0] < limits.least_rows or shape[1] < 2:
        sides = " x ".join(f"{side:,}" for side in shape)
        msg = (
            f"“{shortened(name)}” has {sides} numbers; a matrix of at least {limits.least_rows} "
            "rows and 2 columns is needed."
        )
        raise InputError(msg)
