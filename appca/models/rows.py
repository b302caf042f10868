"""Rows in memory, relative to an origin, processed in blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np
import scipy.sparse
from numpy.random import Generator
from numpy.typing import NDArray

from appca.models.numerics import Array
from appca.models.threads import in_order

DENSE_PRODUCTS = 0.1  # above this filled fraction, dense blocks make X'X faster
DENSE_ROWS, DENSE_COLUMNS = 1024, 512  # size of a dense block
CANCELLED = 1e-6  # relative size of a difference at which six digits are lost
NEGLIGIBLE = 1e-30  # relative to the largest number; smaller ones may be subnormal


def narrowed(S: Array, dtype: Any) -> Array:
    """Convert S to `dtype`; negligible numbers become 0, because subnormal products are slow."""
    dtype = np.dtype(dtype)
    if dtype.itemsize >= S.itemsize:
        return S.astype(dtype, copy=False)
    narrow: Array = S.astype(dtype)
    size = np.abs(narrow)
    least = least_kept(float(size.max(initial=0.0)), dtype)
    if size.min(initial=np.inf) < least:
        narrow *= size >= dtype.type(least)
    return narrow


def least_kept(largest: float, dtype: Any) -> float:
    """Return the size below which numbers become 0 in products of this dtype; 0 for float64."""
    if dtype == np.float64:
        return 0.0
    return max(NEGLIGIBLE * largest, float(np.finfo(dtype).tiny))


class ShiftedSparse:
    """Sparse rows minus a matrix of low rank, x_n - left_n right, such as centred rows.

    EM uses rows only in products and squared lengths, computed in float64 from both parts.
    """

    ndim = 2
    __array_priority__ = 1000.0  # so that array @ rows calls this class

    def __init__(self, values: Any, left: Array | None = None, right: Array | None = None) -> None:
        self.values, self.shape = values, (int(values.shape[0]), int(values.shape[1]))
        self.dtype: np.dtype[Any] = values.dtype  # float32 or float64
        self.itemsize = self.dtype.itemsize
        self.left = np.empty((values.shape[0], 0)) if left is None else left
        self.right = np.empty((0, values.shape[1])) if right is None else right

    def __array__(self, *_dtype: Any, **_copy: Any) -> Array:
        """Raise TypeError, because rows must not become dense by accident."""
        msg = "These rows are a sparse matrix minus one of low rank, which only models of appca "
        msg += "accept: call toarray() for an array."
        raise TypeError(msg)

    @property
    def filled(self) -> float:
        """Share of entries that are stored."""
        return float(self.values.nnz / max(1, self.shape[0] * self.shape[1]))

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
        left, right = self.left, self.right
        stored = np.asarray(self._wide.power(2).sum(axis=1), np.float64).ravel()
        cross = np.einsum("nr,nr->n", self.values @ right.T, left)
        far = np.einsum("nr,nr->n", left @ (right @ right.T), left)
        out: Array = stored - 2.0 * cross + far
        lost = np.flatnonzero(out < CANCELLED * (stored + far))
        for start in range(0, len(lost), DENSE_ROWS):
            some = lost[start : start + DENSE_ROWS]
            out[some] = squared_lengths(self[some].toarray())
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
        if self.filled > DENSE_PRODUCTS:  # sparse products would cancel
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
    """Wrap a sparse matrix of floats in any format; ValueError unless all values are finite."""
    if isinstance(X, ShiftedSparse):
        return X
    csr = scipy.sparse.csr_array(X)  # shares memory with X if possible
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    refuse_stored(csr.data)
    return ShiftedSparse(csr)


def refuse_stored(values: Array) -> None:
    """Raise ValueError for stored values that are NaN or infinite."""
    bad = int((~np.isfinite(values)).sum())
    if bad:
        msg = f"Sparse X must be finite, but {bad} of its {len(values)} stored values are NaN or "
        msg += "inf: fill them or drop those rows or, if NaN marks missing entries, pass "
        msg += "X.toarray()."
        raise ValueError(msg)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy or `ShiftedSparse`."""
    return isinstance(X, ShiftedSparse) or bool(scipy.sparse.issparse(X))


def dense(X: Any) -> Array:
    """Return a few rows as an array."""
    rows: Array = X.toarray() if isinstance(X, ShiftedSparse) else X
    return rows


def stored_width(X: Any) -> int:
    """Return the length of a dense row that takes as much memory as a row of X."""
    if isinstance(X, ShiftedSparse):
        return 1 + int(2 * X.filled * X.shape[1])  # values and their columns
    return int(X.shape[1])


def squared_lengths(X: Any) -> Array:
    """Squared lengths (N,) of rows, float64."""
    if isinstance(X, ShiftedSparse):
        return X.squares()
    return np.asarray(np.einsum("nd,nd->n", X, X, dtype=np.float64))


R = TypeVar("R")

# Blocks, and so the bits of a sum over blocks, do not depend on the number of cores.
BLOCK_BYTES = 2**24
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 256, 8192
CACHE_BYTES = 2**20  # size of a tile of rows
SUMMED_ROWS = 32  # number of rows summed in the dtype of the data
MIN_SHARED_ROWS = 4096  # minimum number of rows for a second thread
MIN_SHARED_BYTES = 2**21  # minimum size of a block; a thread takes as long to wake
# Up to this length of the origin, relative to a typical centred row, its products are subtracted
# from products of rows. This saves a copy of the rows and loses at most one more decimal digit.
NEAR = 10.0


class Rows(NamedTuple):
    """N observations y_n, stored relative to an origin; a sparse X is a `ShiftedSparse`."""

    X: Array  # (N, d) the data, or their coordinates in d orthonormal directions
    origin: Array | None  # (d,) still to be subtracted; None if X is centred
    squares: Array  # (N,) float64, |y_n - origin|^2 over all D features
    n_features: int  # D, at least d
    careful: bool = False  # whether to subtract the origin before products, not after
    weights: Array | None = None  # (N,) positive weights of rows; None if all are 1

    @property
    def n(self) -> int:
        """Number N of rows."""
        return len(self.X)

    @property
    def mass(self) -> float:
        """Sum of the weights of rows."""
        return float(self.n if self.weights is None else self.weights.sum())

    @property
    def d(self) -> int:
        """Number of stored coordinates."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the data."""
        return self.X.dtype

    @property
    def total(self) -> float:
        """Weighted sum over rows of |y_n - origin|^2."""
        return float(self.squares.sum() if self.weights is None else self.weights @ self.squares)

    def weighted(self, S: Array) -> Array:
        """Return S (N, ...) times the weights of the rows."""
        return _weighted(S, self.weights)

    def over(self, work: Callable[["Block"], R]) -> Iterator[R]:
        """Yield work(block) for blocks of rows, in order, computed on all cores."""
        parts = block_parts(self.X, self.dtype.itemsize)

        def block(part: slice) -> R:
            weights = None if self.weights is None else self.weights[part]
            if self.careful and self.origin is not None:
                return work(Block(part, self.X[part] - self.origin, None, weights))
            return work(Block(part, self.X[part], self.origin, weights))

        size = self.n * stored_width(self.X) * self.X.itemsize
        return (map if size < len(parts) * MIN_SHARED_BYTES else in_order)(block, parts)

    def summed(self, work: Callable[["Block"], R], start: R | None = None) -> R:
        """Return `start`, if any, plus work(block) of all blocks, in order."""
        return cast(R, reduce(added, self.over(work), start))

    def take(self, which: NDArray[np.intp]) -> Array:
        """Return rows by index."""
        taken: Array = self.X[which]
        return taken


class Block(NamedTuple):
    """Some rows; its products are those of the rows minus the origin."""

    part: slice
    X: Array  # (n, d)
    origin: Array | None  # still to be subtracted
    weights: Array | None = None  # (n,)

    def weighted(self, S: Array) -> Array:
        """Return S (n, ...) times the weights of these rows."""
        return _weighted(S, self.weights)

    def centred(self) -> Array:
        """Rows about the origin (n, d)."""
        return self.X if self.origin is None else self.X - self.origin

    def times(self, W: Array) -> Array:
        """(y - origin)' W, (n, K), in the dtype of the data."""
        P: Array = self.X @ narrowed(W, self.X.dtype)
        return P if self.origin is None else P - (self.origin @ W).astype(P.dtype)

    def transposed_times(self, S: Array) -> Array:
        """Sum of (y - origin) s', (d, K), in float64."""
        # X'S takes a third longer.
        A: Array = (narrowed(S.T, self.X.dtype) @ self.X).T.astype(np.float64)
        return A if self.origin is None else A - np.outer(self.origin, S.sum(axis=0))


def _weighted(S: Array, weights: Array | None) -> Array:
    return S if weights is None else np.asarray(S * weights.reshape(-1, *[1] * (S.ndim - 1)))


def added(a: R | None, b: R) -> R:
    """Add numbers, arrays, or (named) tuples of them, element by element; None counts as 0."""
    if a is None:
        return b
    if not isinstance(a, tuple):
        return cast(R, a + b)  # type: ignore[operator]
    parts = map(added, a, cast(tuple[Any, ...], b))
    return cast(R, type(a)(*parts) if hasattr(a, "_fields") else tuple(parts))


def centre_of(X: Array, weights: Array | None = None) -> Array:
    """Mean row (d,) in the dtype of X, summed about the first row to be exact if rows are equal."""
    mean: Array
    if isinstance(X, ShiftedSparse):
        return (X.sums(weights) / (len(X) if weights is None else weights.sum())).astype(X.dtype)
    if weights is not None:
        mean = np.einsum("n,nd->d", weights / weights.sum(), X)
        return mean.astype(X.dtype)
    total = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # too large numbers are refused later
        for _, B in tiles(X, X[0]):
            whole = len(B) - len(B) % SUMMED_ROWS
            groups = B[:whole].reshape(-1, SUMMED_ROWS, B.shape[1]).sum(axis=1)
            total += groups.sum(axis=0, dtype=np.float64)
            total += B[whole:].sum(axis=0, dtype=np.float64)
        mean = X[0] + total / len(X)
    return mean.astype(X.dtype)


def tiles(X: Array, origin: Array | None) -> Iterator[tuple[slice, Array]]:
    """Yield tiles of rows minus an origin; each overwrites the last."""
    size = tile_rows(X)
    place = np.empty((0 if origin is None else size, X.shape[1]), X.dtype)
    for start in range(0, len(X), size):
        part = slice(start, min(start + size, len(X)))
        if origin is None:
            yield part, dense(X[part])
        else:
            yield part, np.subtract(dense(X[part]), origin, out=place[: part.stop - start])


def tile_rows(X: Array) -> int:
    """Return the maximum number of rows in a tile."""
    return int(max(1, min(CACHE_BYTES // (X.shape[1] * X.itemsize), len(X))))


def distinct(X: Array, weights: Array | None) -> tuple[Array, Array | None]:
    """Return the distinct rows of X (N, d), in any order, and their counts."""
    plain = np.ascontiguousarray(X + X.dtype.type(0.0))  # converts -0.0 to 0.0
    lines = plain.view(np.dtype((np.void, plain.shape[1] * plain.itemsize))).ravel()
    _, first, number = np.unique(lines, return_index=True, return_inverse=True)
    counts = np.bincount(number, weights)
    return plain[first], None if (counts == 1.0).all() else counts.astype(np.float64)


def block_parts(X: Any, itemsize: int) -> list[slice]:
    """Split rows into blocks, an even number if a second core is worthwhile."""
    n, most = len(X), BLOCK_BYTES // (stored_width(X) * itemsize)
    count = -(-n // min(max(most, MIN_BLOCK_ROWS), MAX_BLOCK_ROWS))
    count += count % 2 if n >= 2 * MIN_SHARED_ROWS else 0
    return [slice(n * i // count, n * (i + 1) // count) for i in range(count)]


def is_far(origin: Array | None, mean_square: float) -> bool:
    """Whether an origin must be subtracted before products, to keep all digits."""
    far = origin is not None and np.sum(np.square(origin, dtype=np.float64)) > NEAR**2 * mean_square
    return bool(far)


def about(X: Array, origin: Array | None, weights: Array | None = None) -> Rows:
    """Return X (N, D) relative to an origin, without a copy; computes squared norms."""
    rows = Rows(X, origin, np.empty(0), X.shape[1], weights=weights)
    rows = rows._replace(squares=np.concatenate(list(rows.over(_squares))))
    return rows._replace(careful=is_far(origin, rows.total / rows.mass))


def _squares(block: Block) -> Array:
    if isinstance(block.X, ShiftedSparse):
        return np.asarray(block.centred().squares())
    out = np.empty(len(block.X))
    with np.errstate(over="ignore", invalid="ignore"):  # too large numbers are refused later
        for part, B in tiles(block.X, block.origin):
            out[part] = np.vecdot(B, B)
    return out


@dataclass(frozen=True)
class Parts:
    """N observations with weight 1 that are never all in memory."""

    n: int
    d: int
    dtype: np.dtype[Any]
    origin: Array | None
    total: float = 0.0  # sum over rows of |y_n - origin|^2
    careful: bool = True  # whether to subtract the origin before products, not after
    names: list[str] | None = None  # names of features

    @property
    def mass(self) -> float:
        """Number N of rows."""
        return float(self.n)

    @property
    def n_features(self) -> int:
        """Number D of features."""
        return self.d

    over: ClassVar[Any]  # work -> an iterator of work(block), for blocks of all rows in order
    take: ClassVar[Any]  # ascending row indices -> these rows

    def summed(self, work: Callable[[Block], R], start: R | None = None) -> R:
        """Return `start`, if any, plus work(block) of all blocks, in order."""
        return cast(R, reduce(added, self.over(work), start))

    def pieces(self, values: Any, first: int) -> list[Callable[[], Block]]:
        """Split values, the rows from index `first` on, into blocks for all cores."""

        def block(part: slice) -> Block:
            X = values[part].astype(self.dtype, copy=False)
            block = Block(slice(first + part.start, first + part.stop), X, self.origin)
            return block._replace(X=block.centred(), origin=None) if self.careful else block

        return [partial(block, part) for part in block_parts(values, self.dtype.itemsize)]

    def looked_at(self) -> Self:
        """Sum the squares in one pass."""
        square = self.summed(lambda block: float(squared_lengths(block.X).sum()), 0.0)
        return replace(self, total=square, careful=is_far(self.origin, square / self.n))


Observations = Rows | Parts  # rows in memory or elsewhere, summed in blocks


def project(rows: Observations, W: Array, order: Literal["C", "F"] = "C") -> Array:
    """Projections (y_n - origin)' W, (N, K) in the dtype of the data."""
    P = np.empty((rows.n, W.shape[1]), rows.dtype, order)
    for part, values in rows.over(lambda block: (block.part, block.times(W))):
        P[part] = values
    return P


def outer_sum(rows: Observations, S: Array) -> Array:
    """Sum over rows of (y_n - origin) s_n', (d, K) float64, for S (N, K)."""
    start = np.zeros((rows.d, S.shape[1]))
    return rows.summed(lambda block: block.transposed_times(S[block.part]), start)


def some_rows(rng: Generator, rows: Observations, size: int, *, learn_mean: bool) -> Rows:
    """Draw rows, relative to their mean if it is learned."""
    which = np.sort(rng.choice(rows.n, size, replace=False))
    weights = rows.weights[which] if isinstance(rows, Rows) and rows.weights is not None else None
    X = rows.take(which)
    origin = centre_of(X, weights) if learn_mean else rows.origin
    sample = about(X, origin, weights)._replace(n_features=rows.n_features)
    if isinstance(rows, Rows) and rows.d < rows.n_features:  # add variance outside coordinates
        outside = rows.squares[which] - np.einsum("nd,nd->n", X, X, dtype=np.float64)
        sample = sample._replace(squares=sample.squares + outside)
    return sample


def is_incomplete(X: Any) -> bool:
    """Whether an entry is missing; allocates nothing if none is."""
    if is_sparse(X):  # sparse rows with NaN are refused
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(not np.isfinite(X.sum()) and np.isnan(X).any())
