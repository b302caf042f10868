"""Observations that are read again in every pass, a block of rows at a time.

EM needs sums over rows and a sample of them, so nothing here grows with the number of rows. A
cluster stands in for a `Stream` by offering what `Observations` asks for, see `dask_rows`.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import pairwise
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra.gaussian import Array
from appca.models.algebra.threads import in_order
from appca.models.rows.observations import Block, added, block_count, is_far
from appca.models.rows.shifted_sparse import (
    ShiftedSparse,
    dense,
    is_sparse,
    sparse_rows,
    stored_width,
)
from appca.storage.packed import give_back

R = TypeVar("R")
Blocks = Iterable[Any] | Callable[[], Iterable[Any]]

NO_ROWS = "blocks must hold rows; got none: check what yields them."
LARGE_MAP_BYTES = 2**26
MAPPED_BYTES = 2**25  # of a mapped file looked at before its pages are given back


class Stream(NamedTuple):
    """N observations that `read` yields in blocks, the same ones each time."""

    read: Callable[[], Iterator[Array]]
    n: int
    d: int
    dtype: np.dtype[Any]
    origin: Array | None
    total: float  # sum over rows of |y_n - origin|^2
    careful: bool = False  # whether to subtract the origin before products, not after

    @property
    def mass(self) -> float:
        """Number N of rows: each counts once."""
        return float(self.n)

    @property
    def n_features(self) -> int:
        """Number D of features: streams are not in other coordinates."""
        return self.d

    def over(self, work: Callable[[Block], R]) -> Iterator[R]:
        """Yield work(block) for blocks of rows, in order, each block as read cut for all cores."""
        first = 0
        for values in self.read():
            begin = first

            def look(ends: tuple[int, int], values: Array = values, begin: int = begin) -> R:
                block = Block(slice(begin + ends[0], begin + ends[1]), values[slice(*ends)], None)
                return work(seen_from(block, self.origin, careful=self.careful))

            yield from in_order(look, cut(values, self.dtype.itemsize))
            first += len(values)
        if first != self.n:
            msg = (
                f"blocks must be the same in every pass; got {self.n} rows first and {first} now: "
                "pass a list, or a function that returns a new iterator each time."
            )
            raise ValueError(msg)

    def summed(self, work: Callable[[Block], R], start: R) -> R:
        """Return `start` plus work(block) of all blocks, in order."""
        return reduce(added, self.over(work), start)

    def take(self, which: NDArray[np.intp]) -> Array:
        """Rows by their numbers, which rise; one pass."""
        out, first = np.empty((len(which), self.d), self.dtype), 0
        for values in self.read():
            low, high = np.searchsorted(which, [first, first + len(values)])
            out[low:high] = dense(values[which[low:high] - first])
            first += len(values)
        return out


def cut(values: Array, itemsize: int) -> list[tuple[int, int]]:
    """Where blocks of some rows begin and end, of a size that suits the kernels.

    `itemsize` is that of the numbers they will be worked on as.
    """
    count = block_count(len(values), stored_width(values), itemsize)
    return list(pairwise(len(values) * i // count for i in range(count + 1))) if count else []


def seen_from(block: Block, origin: Array | None, *, careful: bool) -> Block:
    """Take rows as they are about an origin, which is subtracted at once where care is needed."""
    block = block._replace(origin=origin)
    return block._replace(X=block.centred(), origin=None) if careful else block


def square_sum(block: Block) -> float:
    """Sum over rows that are about their origin already of |y|^2."""
    if isinstance(block.X, ShiftedSparse):
        return float(block.X.squares().sum())
    return float(np.einsum("nd,nd->", block.X, block.X, dtype=np.float64))


class Mapped:
    """Blocks of a memory-mapped array, whose pages are given back once they were used."""

    def __init__(self, X: np.memmap[Any, Any]) -> None:
        self.X = X

    def __iter__(self) -> Iterator[Array]:
        """Yield views of some rows at a time."""
        # As many as fit once they are float32 or float64, however they lie in the file.
        itemsize = max(self.X.itemsize, 4 if self.X.dtype == np.float32 else 8)
        size = max(1, MAPPED_BYTES // max(1, self.X.shape[1] * itemsize))
        for start in range(0, len(self.X), size):
            part = np.asarray(self.X[start : start + size])
            yield part
            give_back(part)


def is_large_map(X: Any) -> bool:
    """Whether X is a memory-mapped matrix of some size: smaller ones may as well be in memory."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > LARGE_MAP_BYTES


def checked(blocks: Blocks, *, once: bool = False) -> Callable[[], Iterator[Array]]:
    """Make a reader of blocks, (n_i, D) arrays or sparse matrices, that refuses what is none.

    `blocks` can be gone through again and again, or is a function that returns a new iterator each
    time; with `once` any iterator will do. Raises ValueError for one that is then spent;
    while reading, for blocks that are no matrices of numbers or of unlike widths.
    """
    if not once and not callable(blocks) and iter(blocks) is blocks:
        msg = (
            "blocks must be readable again for every pass; got an iterator that is spent after "
            "one: pass it to fit, which keeps its rows in a temporary file, or pass a list, an "
            "object with __iter__, or a function that returns a new iterator."
        )
        raise ValueError(msg)

    def read() -> Iterator[Array]:
        width, dtype = None, None
        for i, block in enumerate(blocks() if callable(blocks) else blocks):
            array: Any = sparse_rows(block) if is_sparse(block) else np.asarray(block)
            if array.ndim != 2 or array.dtype.kind not in "fiub":
                msg = (
                    f"blocks must be matrices of numbers, rows by features; block {i} has "
                    f"{array.ndim} dimension(s) and holds {array.dtype}: convert it first."
                )
                raise ValueError(msg)
            width = array.shape[1] if width is None else width
            dtype = dtype or (np.float32 if array.dtype == np.float32 else np.float64)
            if array.shape[1] != width:
                msg = (
                    f"blocks must have the same number of columns; block {i} has "
                    f"{array.shape[1]}, those before have {width}: check what yields them."
                )
                raise ValueError(msg)
            if len(array):
                yield array.astype(dtype, copy=False)

    return read


def spooled(blocks: Iterator[Any], file: IO[bytes]) -> Blocks:
    """Write the rows of an iterator to an empty file, from which they can be read again.

    Raises ValueError for blocks that are refused, see `checked`, or not finite.
    """
    n, d, dtype = 0, 0, np.dtype(np.float64)
    for i, block in enumerate(checked(blocks, once=True)()):
        _finite_sums(i, block)
        file.write(np.ascontiguousarray(dense(block)).data)
        n, d, dtype = n + len(block), block.shape[1], block.dtype
    file.flush()
    return Mapped(np.memmap(file, dtype, "r", shape=(n, d))) if n * d else []


def stream(blocks: Blocks, *, zero_mean: bool = False) -> Stream:
    """Take a look at all blocks, twice: for the mean, and for squared distances from it.

    Raises ValueError for blocks that are refused, see `checked`, and where there is not a single
    row.
    """
    read = checked(blocks)
    n, total, dtype = 0, np.zeros(0), np.dtype(np.float64)
    for i, block in enumerate(read()):
        sums = _finite_sums(i, block)
        total = total + sums if n else sums
        n, dtype = n + len(block), block.dtype
    if n == 0:
        raise ValueError(NO_ROWS)
    origin = None if zero_mean else (total / n).astype(dtype)
    observations = Stream(read, n, len(total), dtype, origin, 0.0, careful=True)
    square = observations.summed(square_sum, 0.0)
    careful = origin is not None and is_far(origin, square / n)
    return observations._replace(total=square, careful=careful)


def _finite_sums(number: int, block: Any) -> Array:
    """Return the sums (d,) of the columns of a block, whose cells must be finite."""
    sparse = isinstance(block, ShiftedSparse)
    sums: Array = block.sums() if sparse else block.sum(axis=0, dtype=np.float64)
    if not np.isfinite(sums).all():
        msg = (
            f"X must be finite, but block {number} holds NaN or inf: "
            "fill in or leave out those cells or rows."
        )
        raise ValueError(msg)
    return sums
