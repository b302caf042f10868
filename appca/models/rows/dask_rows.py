"""Observations that stay where a Dask array has them: in files, or with the workers of a cluster.

Chunks are arrays of NumPy or sparse matrices of SciPy.

Rows are independent given the parameters, so an iteration is a sum over chunks of rows. What goes
out is the work, with its d x K numbers, once a worker; what comes back are its sums, added up
in a tree whose shape depends on the chunks alone: the bits are the same on any number of workers,
and if one dies and others do its part again. Each chunk goes through the kernels in blocks, as in
memory.

Chunks are computed again in every iteration, which for an array on disk is reading it; who has the
memory gives `X.persist()`. A chunk is made and looked at in one task wherever Dask can fuse the
two, and so is gone before the next one is made: as a task of its own it would lie in memory until
the worker knows what to do with it. Besides sums, samples of the rows travel: 10,000 at most,
four times as many where those are at most 256 MB, above 100 components K^2 rows, some thousand at a
time; and of data with few rows their leading coordinates (at most 128 MB).

Dask is an optional package: nothing here is reached without a Dask array, or imports it before.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from appca.models.algebra.gaussian import Array
from appca.models.algebra.threads import single_threaded_blas
from appca.models.rows.observations import Block, added, is_far
from appca.models.rows.shifted_sparse import ShiftedSparse, is_sparse, sparse_rows, stacked
from appca.models.rows.streams import cut, seen_from, square_sum

R = TypeVar("R")

FAN_IN = 8  # sums that are added up in one place
CHUNKS_AT_ONCE = 64  # whose answers are held at a time where they are not summed


def is_dask(X: Any) -> bool:
    """Whether X belongs to Dask, told without importing it."""
    return type(X).__module__.split(".")[0] == "dask"


@dataclass(frozen=True)
class Pass(Generic[R]):
    """What workers need to know to go through their chunks."""

    work: Callable[[Block], R]
    dtype: np.dtype[Any]
    origin: Array | None
    careful: bool
    firsts: NDArray[np.intp]  # number of the first row of each chunk

    def over(self, chunk: Any, number: int) -> Iterator[R]:
        """Yield work(block) for all blocks of a chunk."""
        values: Any = plain(chunk)
        first = self.firsts[number]
        for begin, end in cut(values, self.dtype.itemsize):
            X = values[begin:end].astype(self.dtype, copy=False)
            block = Block(slice(first + begin, first + end), X, None)
            with single_threaded_blas():
                answer = self.work(seen_from(block, self.origin, careful=self.careful))
            yield answer


class DaskRows(NamedTuple):
    """N observations in the chunks of a Dask array."""

    X: Any  # in chunks of whole rows
    sizes: NDArray[np.intp]  # number of rows of each chunk, of which some may have none
    d: int
    dtype: np.dtype[Any]
    origin: Array | None
    total: float  # sum over rows of |y_n - origin|^2
    careful: bool = False  # whether to subtract the origin before products, not after

    @property
    def n(self) -> int:
        """Number N of rows."""
        return int(self.sizes.sum())

    @property
    def mass(self) -> float:
        """Number N of rows: each counts once."""
        return float(self.n)

    @property
    def n_features(self) -> int:
        """Number D of features: the rows are not in other coordinates."""
        return self.d

    def over(self, work: Callable[[Block], R]) -> Iterator[R]:
        """Yield work(block) for blocks that hold all rows once, in order; the answers travel."""
        parts = self._sent(_over, work)
        for start in range(0, len(parts), CHUNKS_AT_ONCE):
            for answers in computed(parts[start : start + CHUNKS_AT_ONCE]):
                yield from answers

    def summed(self, work: Callable[[Block], R], start: R) -> R:
        """Return `start` plus work(block) of all blocks, added up where they are."""
        from dask.delayed import delayed

        parts = self._sent(_summed, work)
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [delayed(_added_up, pure=False)(group) for group in groups]
        sums: R = computed(parts)[0]
        return added(start, sums)

    def take(self, which: NDArray[np.intp]) -> Array:
        """Rows by their numbers, which rise; chunks without any of them are not computed."""
        edges = np.searchsorted(which, [*self._firsts(), self.n])
        wanted = np.diff(edges) > 0
        shared = sent_once((which, edges, self._firsts()))
        parts = np.array(by_chunks(_taken, self.X, shared))[wanted].tolist()
        rows: Array = stacked(computed(parts)).astype(self.dtype, copy=False)
        return rows

    def _firsts(self) -> NDArray[np.intp]:
        return np.cumsum(self.sizes) - self.sizes

    def _sent(self, answer: Callable[..., Any], work: Callable[[Block], R]) -> list[Any]:
        """Tasks answer(chunk, pass) for the chunks that have rows."""
        what = Pass(work, self.dtype, self.origin, self.careful, self._firsts())
        parts = by_chunks(answer, self.X, sent_once(what))
        return [part for part, size in zip(parts, self.sizes, strict=True) if size]


def dask_rows(X: Any, *, zero_mean: bool = False) -> DaskRows:
    """Take a look at all chunks of a Dask array, twice: for the mean, and distances from it.

    Chunks of columns are joined; those of rows may be of any, unlike, unknown sizes. Raises
    ValueError for what is no matrix of numbers, without rows, or with NaN or infinities.
    """
    X = matrix(X)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    seen = computed(by_chunks(_size_and_sum, X))
    for i, (_, sums) in enumerate(seen):
        if not np.isfinite(sums).all():
            msg = (
                f"X must be finite, but chunk {i} of its rows holds NaN or inf: "
                "fill in or leave out those cells or rows."
            )
            raise ValueError(msg)
    sizes = np.array([size for size, _ in seen], dtype=np.intp)
    n = int(sizes.sum())
    if n == 0:
        msg = "X must hold rows; got a Dask array without any: check what makes it."
        raise ValueError(msg)
    total = reduce(np.add, [sums for _, sums in seen])
    origin = None if zero_mean else (total / n).astype(dtype)
    observations = DaskRows(X, sizes, X.shape[1], dtype, origin, 0.0, careful=True)
    square = observations.summed(square_sum, 0.0)
    careful = origin is not None and is_far(origin, square / n)
    return observations._replace(total=square, careful=careful)


def matrix(X: Any) -> Any:
    """Return a Dask array (N, D) of numbers whose chunks hold whole rows, or say what it lacks."""
    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    dimensions = getattr(X, "ndim", None)  # of a Delayed one more Delayed
    if not (isinstance(dimensions, int) and dimensions == 2 and hasattr(X, "to_delayed")):
        shown = dimensions if isinstance(dimensions, int) else "no"
        msg = (
            "X must be a Dask array of two dimensions, rows by features; "
            f"got {type(X).__name__} with {shown}: convert or reshape it."
        )
        raise ValueError(msg)
    if X.dtype.kind not in "fiub":
        msg = f"X must be a Dask array of numbers; it holds {X.dtype}: convert it first."
        raise ValueError(msg)
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def computed(parts: list[Any]) -> list[Any]:
    """Run tasks on whatever scheduler is set: threads, or the cluster of the present Client."""
    from dask.base import compute

    return list(compute(*parts))


def sent_once(what: Any) -> Any:
    """Return a task of its own that gives a worker what all its chunks need to know."""
    from dask.delayed import delayed

    return delayed(what, name=f"pass-{uuid.uuid4().hex}", traverse=False)


def by_chunks(answer: Callable[..., Any], X: Any, shared: Any = None) -> list[Any]:
    """Tasks answer(chunk, shared=...), fused with those that make the chunk where they can be."""
    told = {} if shared is None else {"shared": shared}
    name = f"{answer.__name__}-{uuid.uuid4().hex}"
    meta = np.empty((0, 0), dtype=object)
    answers = X.map_blocks(answer, name=name, dtype=object, meta=meta, **told)
    chunks: list[Any] = answers.to_delayed(optimize_graph=True).ravel().tolist()
    return chunks


def _over(chunk: Any, *, shared: Pass[R], block_id: tuple[int, ...]) -> list[R]:
    return list(shared.over(chunk, block_id[0]))


def _summed(chunk: Any, *, shared: Pass[R], block_id: tuple[int, ...]) -> R:
    return reduce(added, shared.over(chunk, block_id[0]))


def _added_up(parts: list[R]) -> R:
    return reduce(added, parts)


def plain(chunk: Any) -> Any:
    """Rows at an address that suits their type, or sparse ones.

    What came over a wire may lie anywhere, and NumPy multiplies that without BLAS: other bits.
    """
    if is_sparse(chunk):
        floating = chunk.dtype in (np.float32, np.float64)
        return sparse_rows(chunk if floating else chunk.astype(np.float64))
    return np.require(chunk, requirements="A")


def _size_and_sum(chunk: Any) -> tuple[int, Array]:
    rows = plain(chunk)
    if isinstance(rows, ShiftedSparse):
        return len(rows), rows.sums()
    with np.errstate(over="ignore", invalid="ignore"):
        return len(rows), rows.sum(axis=0, dtype=np.float64)


def _taken(
    chunk: Any,
    *,
    shared: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
    block_id: tuple[int, ...],
) -> Array:
    (which, edges, firsts), i = shared, block_id[0]
    rows: Array = plain(chunk)[which[edges[i] : edges[i + 1]] - firsts[i]]
    return rows
