"""Rows that do not fit in memory: blocks that are read again, and Dask arrays.

EM needs sums over rows and a sample of rows. The workers keep the chunks of a Dask array, receive
d x K numbers once and return sums. These are added in the order of the chunks, so that the last
bits do not depend on the workers. Dask is optional and is only imported if needed.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import IO, Any, TypeVar, cast

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from appca.models.data_checks import numbers_of_rows, refuse_where
from appca.models.numerics import Array
from appca.models.rows import Block, Parts, ShiftedSparse, added, dense, is_sparse, sparse_rows
from appca.models.threads import in_order, single_threaded_blas
from appca.storage.packed import give_back

R = TypeVar("R")
Blocks = Iterable[Any] | Callable[[], Iterable[Any]]

NO_ROWS = "blocks must contain rows; got none: check the iterator."
MAPPED_BYTES = 2**25  # number of bytes read from a mapped file before its pages are released


@dataclass(frozen=True)
class Stream(Parts):
    """Observations in blocks from `read`, which yields the same blocks each time."""

    read: Callable[[], Iterator[Array]] = lambda: iter(())

    def over(self, work: Callable[[Block], R]) -> Iterator[R]:
        """Yield work(block) for all blocks, which are split further to use all cores."""
        first = 0
        for values in self.read():
            yield from in_order(lambda block: work(block()), self.pieces(values, first))
            first += len(values)
        msg = f"blocks must be the same in every pass; got {self.n} rows first and {first} "
        msg += "now: pass a list, or a function that returns a new iterator each time."
        refuse_where({msg: first != self.n})

    def take(self, which: NDArray[np.intp]) -> Array:
        """Return the rows of ascending indices, in one pass."""
        out, first = np.empty((len(which), self.d), self.dtype), 0
        for values in self.read():
            low, high = np.searchsorted(which, [first, first + len(values)])
            out[low:high] = dense(values[which[low:high] - first])
            first += len(values)
        return out


class Mapped:
    """Blocks of a memory-mapped array, whose pages are released after use."""

    def __init__(self, X: np.memmap[Any, Any]) -> None:
        self.X = X

    def __iter__(self) -> Iterator[Array]:
        itemsize = max(self.X.itemsize, 4 if self.X.dtype == np.float32 else 8)
        size = max(1, MAPPED_BYTES // max(1, self.X.shape[1] * itemsize))
        for start in range(0, len(self.X), size):
            part = np.asarray(self.X[start : start + size])
            yield part
            give_back(part)


class NamedBlocks:
    """A reader of blocks of rows that checks that values and columns are the same in each pass."""

    def __init__(self, blocks: Blocks, names: Any = None, *, once: bool = False) -> None:
        msg = "blocks must be readable more than once; got an iterator, which is not: pass it "
        msg += "to fit, which copies its rows to a temporary file, or pass a list, an object "
        msg += "with __iter__, or a function that returns a new iterator."
        refuse_where({msg: not once and not callable(blocks) and iter(blocks) is blocks})
        self.names, self._blocks = names, blocks

    def __call__(self) -> Iterator[Array]:
        """Yield the nonempty blocks."""
        width, dtype = None, None
        for i, block in enumerate(self._blocks() if callable(self._blocks) else self._blocks):
            self.names = names_of(block) if self.names is None else self.names
            refuse_other_names(self.names, block, f"block {i}")
            array: Any = block if isinstance(block, ShiftedSparse) else numbers_of_rows(block)
            array = sparse_rows(array) if is_sparse(array) else np.asarray(array)
            msg = f"blocks must be matrices of numbers, rows by features; block {i} has "
            msg += f"{array.ndim} dimension(s) and type {array.dtype}: convert it first."
            refuse_where({msg: array.ndim != 2 or array.dtype.kind not in "fiub"})
            width = width or array.shape[1]
            dtype = dtype or (np.float32 if array.dtype == np.float32 else np.float64)
            msg = f"blocks must have the same number of columns; block {i} has "
            msg += f"{array.shape[1]}, earlier blocks {width}: check the iterator."
            refuse_where({msg: array.shape[1] != width})
            if len(array):
                yield array.astype(dtype, copy=False)


def spooled(blocks: Iterator[Any], file: IO[bytes]) -> NamedBlocks:
    """Write the finite rows of an iterator to an empty file; return a reader of that file."""
    n, d, dtype, named = 0, 0, np.dtype(np.float64), NamedBlocks(blocks, once=True)
    for i, block in enumerate(named()):
        finite_sums(block, f"block {i}")
        file.write(np.ascontiguousarray(dense(block)).data)
        n, d, dtype = n + len(block), block.shape[1], block.dtype
    file.flush()
    rows: Blocks = Mapped(np.memmap(file, dtype, "r", shape=(n, d))) if n * d else []
    return NamedBlocks(rows, named.names)


def stream(blocks: Blocks, *, zero_mean: bool = False) -> Stream:
    """Read all blocks twice: for the mean, and for squared distances from it."""
    read = blocks if isinstance(blocks, NamedBlocks) else NamedBlocks(blocks)
    n, total, dtype = 0, np.zeros(1), np.dtype(np.float64)
    for i, block in enumerate(read()):
        total = total + finite_sums(block, f"block {i}")
        n, dtype = n + len(block), block.dtype
    refuse_where({NO_ROWS: n == 0})
    origin = None if zero_mean else (total / n).astype(dtype)
    return Stream(n, len(total), dtype, origin, names=read.names, read=read).looked_at()


def finite_sums(block: Any, part: str) -> Array:
    """Return the sums (d,) of a part of X, or raise ValueError unless they are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        sparse = isinstance(block, ShiftedSparse)
        sums: Array = block.sums() if sparse else block.sum(axis=0, dtype=np.float64)
    msg = f"X must be finite, but {part} contains NaN or inf: fill or drop those cells or rows."
    refuse_where({msg: not np.isfinite(sums).all()})
    return sums


CHUNKS_AT_ONCE = 64  # maximum number of chunks whose results are in memory together


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame; None unless all are texts."""
    names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    return names if names and all(isinstance(name, str) for name in names) else None


def refuse_other_names(fitted: Any, X: Any, what: str) -> None:
    """Raise ValueError if X and the fit differ in columns or their order."""
    names = names_of(X)
    if fitted is not None and names is not None and names != list(fitted):
        msg = f"X must have the columns of the fit in the same order; {what} has "
        msg += f"{', '.join(names)!r:.60}: reorder or rename them."
        raise ValueError(msg)


@dataclass(frozen=True)
class DaskRows(Parts):
    """Observations in the chunks of a Dask array."""

    X: Any = None  # in chunks of whole rows; None on a worker
    sizes: Any = None  # (chunks,) number of rows of each chunk, possibly 0

    def over(self, work: Callable[[Block], R]) -> Iterator[R]:
        """Yield work(block) for all blocks in order; only the results leave the workers."""
        return chain.from_iterable(self._answers(_over, work))

    def summed(self, work: Callable[[Block], R], start: R | None = None) -> R:
        """Add work(block) of all blocks to `start`; only sums per chunk leave the workers."""
        return cast(R, reduce(added, self._answers(_summed, work), start))

    def _answers(self, answer: Callable[..., Any], work: Callable[[Block], R]) -> Iterator[Any]:
        every = by_chunks(answer, self.X, (replace(self, X=None), work))
        parts = [part for part, size in zip(every, self.sizes, strict=True) if size]
        for start in range(0, len(parts), CHUNKS_AT_ONCE):
            yield from computed(parts[start : start + CHUNKS_AT_ONCE])

    def take(self, which: NDArray[np.intp]) -> Array:
        """Return the rows of ascending indices; computes only the chunks that contain them."""
        edges = np.searchsorted(which, [*self.firsts, self.n])
        parts = by_chunks(_taken, self.X, (which, edges, self.firsts))
        rows = computed([part for part, some in zip(parts, np.diff(edges), strict=True) if some])
        if all(isinstance(part, ShiftedSparse) for part in rows):  # keep them sparse
            stored = scipy.sparse.vstack([part.values for part in rows], format="csr")
            X: Any = ShiftedSparse(stored)
        else:
            X = np.concatenate([dense(part) for part in rows])
        taken: Array = X.astype(self.dtype, copy=False)
        return taken

    @property
    def firsts(self) -> NDArray[np.intp]:
        """Return the index of the first row of each chunk."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)


def dask_rows(X: Any, *, zero_mean: bool = False) -> DaskRows:
    """Compute all chunks of a Dask array twice: for the mean, and for squared distances from it."""
    frame, X = X, matrix(X)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    sizes, sums = zip(*computed(by_chunks(_size_and_sum, X)), strict=True)
    n = sum(sizes)
    refuse_where({"X must contain rows; got an empty Dask array: check its source.": n == 0})
    origin = None if zero_mean else (reduce(np.add, sums) / n).astype(dtype)
    how: Any = {"names": names_of(frame), "X": X, "sizes": np.array(sizes, np.intp)}
    return DaskRows(n, X.shape[1], dtype, origin, **how).looked_at()


def matrix(X: Any) -> Any:
    """Return a Dask array (N, D) of numbers in chunks of whole rows, or raise ValueError."""
    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    dimensions = getattr(X, "ndim", None)  # for a Delayed object, a Delayed
    if not (isinstance(dimensions, int) and dimensions == 2 and hasattr(X, "to_delayed")):
        shown = dimensions if isinstance(dimensions, int) else "no"
        msg = "X must be a Dask array of two dimensions, rows by features; "
        msg += f"got {type(X).__name__} with {shown}: convert or reshape it."
        raise ValueError(msg)
    msg = f"X must be a Dask array of numbers; got {X.dtype}: convert it first."
    refuse_where({msg: X.dtype.kind not in "fiub"})
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def computed(parts: list[Any]) -> list[Any]:
    """Run tasks on the current scheduler: threads, or the cluster of the current Client."""
    from dask.base import compute

    return list(compute(*parts))


def sent_once(what: Any) -> Any:
    """Return a task that sends shared arguments to a worker once."""
    from dask.delayed import delayed

    return delayed(what, name=f"pass-{uuid.uuid4().hex}", traverse=False)


def by_chunks(answer: Callable[..., Any], X: Any, shared: Any = None) -> list[Any]:
    """Return tasks answer(rows, chunk index, shared), fused with the tasks that compute chunks."""

    def asked(chunk: Any, shared: Any, block_id: tuple[int, ...]) -> Any:
        with single_threaded_blas():
            return answer(plain(chunk), block_id[0], shared)

    how = {"name": f"{answer.__name__}-{uuid.uuid4().hex}", "meta": np.empty((0, 0), object)}
    answers = X.map_blocks(asked, shared=sent_once(shared), dtype=object, **how)
    chunks: list[Any] = answers.to_delayed(optimize_graph=True).ravel().tolist()
    return chunks


def _over(rows: Any, number: int, shared: Any) -> list[Any]:
    parts, work = shared
    return [work(block()) for block in parts.pieces(rows, int(parts.firsts[number]))]


def _summed(rows: Any, number: int, shared: Any) -> Any:
    return reduce(added, _over(rows, number, shared))


def _size_and_sum(rows: Any, number: int, _shared: Any) -> tuple[int, Array]:
    return len(rows), finite_sums(rows, f"chunk {number} of its rows")


def _taken(rows: Any, number: int, shared: Any) -> Any:
    which, edges, firsts = shared
    return rows[which[edges[number] : edges[number + 1]] - firsts[number]]


def plain(chunk: Any) -> Any:
    """Return a chunk as aligned rows, because alignment changes the bits of NumPy's products."""
    chunk = numbers_of_rows(chunk)
    if is_sparse(chunk):
        floating = chunk.dtype in (np.float32, np.float64)
        return sparse_rows(chunk if floating else chunk.astype(np.float64))
    return np.require(chunk, requirements="A")


ONE_A_ROW = ("score_samples", "allocation_probability", "row_scales")  # one number per row


def lazily(model: Any, question: str, X: Any, **how: str) -> Any:
    """Build the lazy result of a query over all chunks of a Dask array."""
    check_is_fitted(model)
    refuse_other_names(getattr(model, "feature_names_in_", None), X, "the Dask frame")
    X, (K, D) = matrix(X), model.components_.shape
    msg = f"X must have the {D} features {type(model).__name__} was fitted to; "
    msg += f"got {X.shape[1]}: choose the same columns."
    refuse_where({msg: X.shape[1] != D})
    bound = ("callback", "random_state", "init")  # bound to this process, or large
    parameters = model.get_params(deep=False).items()
    kept = {name: value for name, value in parameters if name not in bound}
    sent = sent_once(type(model)(**kept).restore(model.fitted_arrays()))
    floating = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    dtype = {"transform": floating, "allocate": np.dtype(bool)}.get(question, np.dtype(np.float64))
    flat = question in ONE_A_ROW
    nothing = np.empty(0 if flat else (0, K), dtype)

    def asked(chunk: Any, model: Any) -> Array:
        with single_threaded_blas():
            rows = plain(chunk)
            answer: Array = getattr(model, question)(rows, **how) if len(rows) else nothing
        return answer

    shape = {"drop_axis": 1} if flat else {"chunks": (X.chunks[0], (K,))}
    meta = np.empty((0,) * nothing.ndim, dtype)
    return X.map_blocks(asked, model=sent, dtype=dtype, meta=meta, **shape)
