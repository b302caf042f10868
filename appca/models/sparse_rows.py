"""A sparse matrix less a matrix of low rank, which stays sparse: X - left right.

Centring and the expected counts of Pearson residuals have that form. EM reads rows only in products
and squared lengths, which are taken of both parts.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from appca.models.numerics import Array

DENSE_PRODUCTS = 0.1  # filled fraction from which X'X is cheaper from dense blocks, as measured
DENSE_ROWS, DENSE_COLUMNS = 1024, 512  # of such a block
CANCELLED = 1e-6  # of sums whose difference is a squared length, below which six digits are lost


class ShiftedSparse:
    """Rows x_n - left_n right, with sparse x_n; products are taken in float64."""

    ndim = 2
    __array_priority__ = 1000.0  # a product of an array with these rows is taken here

    def __init__(self, values: Any, left: Array | None = None, right: Array | None = None) -> None:
        self.values = values
        self.left = np.empty((values.shape[0], 0)) if left is None else left
        self.right = np.empty((0, values.shape[1])) if right is None else right

    def __array__(self, *_dtype: Any, **_copy: Any) -> Array:
        """Refuse to become dense by accident."""
        msg = (
            "These rows stay sparse, less a matrix of low rank, for the models of appca alone: "
            "call toarray() for anything else."
        )
        raise TypeError(msg)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features, (N, D)."""
        n, d = self.values.shape
        return int(n), int(d)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        dtype: np.dtype[Any] = self.values.dtype
        return dtype

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    @property
    def filled(self) -> float:
        """Share of the entries that are stored."""
        return float(self.values.nnz / max(1, self.shape[0] * self.shape[1]))

    @property
    def width(self) -> int:
        """Mean number of entries that fit in the memory of a row, at least 1."""
        return 1 + int(2 * self.filled * self.shape[1])  # each with its column

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[Any]) -> "ShiftedSparse":
        X = self.values
        if not isinstance(rows, slice):
            return ShiftedSparse(X[rows], self.left[rows], self.right)
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        low, high = X.indptr[start], X.indptr[stop]
        parts = X.data[low:high], X.indices[low:high], X.indptr[start : stop + 1] - low
        some = scipy.sparse.csr_array(parts, shape=(stop - start, X.shape[1]))
        return ShiftedSparse(some, self.left[start:stop], self.right)

    def __sub__(self, row: Array) -> "ShiftedSparse":
        left = np.hstack([self.left, np.ones((len(self), 1))])
        return ShiftedSparse(self.values, left, np.vstack([self.right, row]))

    def __matmul__(self, W: Array) -> Array:
        W = W.astype(np.float64, copy=False)
        P: Array = self.values @ W - self.left @ (self.right @ W)
        return P.astype(self.dtype, copy=False)

    def __rmatmul__(self, S: Array) -> Array:
        S = S.astype(np.float64, copy=False)
        return np.asarray(S @ self.values - (S @ self.left) @ self.right)

    def astype(self, dtype: Any, *, copy: bool = True) -> "ShiftedSparse":
        """Return the rows in another dtype."""
        return ShiftedSparse(self.values.astype(dtype, copy=copy), self.left, self.right)

    def scaled(
        self, rows: Array | None = None, columns: Array | None = None, kept: Array | None = None
    ) -> "ShiftedSparse":
        """Multiply rows by numbers (N,) or columns by numbers (D,), and select columns `kept`."""
        X, left, right = self.values, self.left, self.right
        if rows is not None:
            X, left = scipy.sparse.diags_array(rows).astype(self.dtype) @ X, left * rows[:, None]
        if columns is not None:
            X, right = X @ scipy.sparse.diags_array(columns).astype(self.dtype), right * columns
        if kept is not None:
            X, right = X[:, kept], right[:, kept]
        return ShiftedSparse(scipy.sparse.csr_array(X), left, right)

    def toarray(self) -> Array:
        """Return the rows as a dense array (N, D)."""
        return np.asarray(self.values.toarray() - self.left @ self.right, self.dtype)

    def sums(self, weights: Array | None = None) -> Array:
        """Sum (D,) of the rows times their weights (N,), float64."""
        w = np.ones((1, len(self))) if weights is None else weights[None]
        return np.asarray((w @ self)[0])

    def squares(self) -> Array:
        """Squared lengths (N,) of the rows, float64."""
        stored = np.asarray(self._wide.power(2).sum(axis=1), np.float64).ravel()
        cross = np.einsum("nr,nr->n", self.values @ self.right.T, self.left)
        far = np.einsum("nr,nr->n", self.left @ (self.right @ self.right.T), self.left)
        out: Array = stored - 2.0 * cross + far
        lost = np.flatnonzero(out < CANCELLED * (stored + far))
        for start in range(0, len(lost), DENSE_ROWS):
            some = lost[start : start + DENSE_ROWS]
            B = self[some].toarray()
            out[some] = np.einsum("nd,nd->n", B, B, dtype=np.float64)
        return out

    def products(self) -> Array:
        """Sum (D, D) of y y' over the rows y, float64."""
        if self.filled > DENSE_PRODUCTS:
            parts = (self[i : i + DENSE_ROWS] for i in range(0, len(self), DENSE_ROWS))
            blocks = (part.toarray().astype(np.float64, copy=False) for part in parts)
            return np.asarray(sum(B.T @ B for B in blocks))
        X, left, right = self._wide, self.left, self.right
        cross = (left.T @ X).T @ right
        return np.asarray((X.T @ X).toarray() - cross - cross.T + right.T @ (left.T @ left) @ right)

    def gram(self) -> Array:
        """Inner products (N, N) of the rows, float64."""
        X, left, right = self._wide, self.left, self.right
        if self.filled > DENSE_PRODUCTS:  # and differences of products would cancel
            G = np.zeros((len(self),) * 2)
            for start in range(0, self.shape[1], DENSE_COLUMNS):
                part = slice(start, start + DENSE_COLUMNS)
                B = X[:, part].toarray() - left @ right[:, part]
                G += B @ B.T
            return G
        cross = (X @ right.T) @ left.T
        return np.asarray((X @ X.T).toarray() - cross - cross.T + left @ (right @ right.T) @ left.T)

    @property
    def _wide(self) -> Any:
        return self.values.astype(np.float64, copy=False)


def sparse_rows(X: Any) -> ShiftedSparse:
    """Take a sparse matrix of floats of any format, unchanged; ValueError unless all are finite."""
    if isinstance(X, ShiftedSparse):
        return X
    csr = scipy.sparse.csr_array(X)  # shares what it can with X
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    refuse_stored(csr.data)
    return ShiftedSparse(csr)


def refuse_stored(values: Array) -> None:
    """Raise ValueError for stored values that are NaN or infinite."""
    bad = int((~np.isfinite(values)).sum())
    if bad:
        msg = (
            f"Sparse X must be finite, but {bad} of its {len(values)} stored values are NaN or "
            "inf: fill them in or leave out those rows, or, if NaN marks missing entries, pass "
            "X.toarray()."
        )
        raise ValueError(msg)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy, or one less a matrix of low rank."""
    return isinstance(X, ShiftedSparse) or bool(scipy.sparse.issparse(X))


def dense(X: Any) -> Array:
    """Return a few rows as an array."""
    rows: Array = X.toarray() if isinstance(X, ShiftedSparse) else X
    return rows


def stacked(parts: list[Any]) -> Any:
    """Stack rows; they stay sparse if all are sparse, as stored."""
    if not all(isinstance(part, ShiftedSparse) for part in parts):
        return np.concatenate([dense(part) for part in parts])
    return ShiftedSparse(scipy.sparse.vstack([part.values for part in parts], format="csr"))


def stored_width(X: Any) -> int:
    """Numbers that fit in the memory of a row."""
    return X.width if isinstance(X, ShiftedSparse) else int(X.shape[1])


def squared_lengths(X: Any) -> Array:
    """Squared lengths (N,) of rows, float64."""
    if isinstance(X, ShiftedSparse):
        return X.squares()
    return np.asarray(np.einsum("nd,nd->n", X, X, dtype=np.float64))
