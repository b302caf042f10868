"""The supports of all rows: compiled row kernels shared out over threads in blocks of rows.

What a row gets depends on its numbers and its seed only, not on the blocks or the threads.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from appca.models.algebra.threads import cores
from appca.models.supports.row_supports import (
    AnnealedPaths,
    AnnealingSchedule,
    CollapsedModel,
    Floats,
    Members,
    RowSupports,
    Seeds,
    SupportMoments,
)

T = TypeVar("T")

# Blocks are small enough for the threads to be busy to the end and large enough not to notice the
# 0.1 ms that a call of a compiled kernel takes.
LEAST_ROWS, MOST_BLOCKS = 64, 64
SEED_BYTES = 2**19  # of the bits of rows that are looked at together


def seeds(rng: np.random.Generator, n: int) -> Seeds:
    """Draw a fresh seed a row."""
    return rng.integers(0, 2**64, n, dtype=np.uint64)


def row_seeds(X: NDArray[np.floating]) -> Seeds:
    """Make each row's seed from its own numbers, X (n, D).

    Equal rows get equal seeds, whatever the other rows and the order: estimates for new rows are
    then functions of the row. (A random linear form of the bits, modulo 2^64.)
    """
    factors = np.random.default_rng(0).integers(0, 2**64, X.shape[1], dtype=np.uint64) | np.uint64(
        1
    )
    form = np.empty(len(X), np.uint64)
    size = max(1, SEED_BYTES // (8 * X.shape[1]))
    for start in range(0, len(X), size):
        part = np.ascontiguousarray(X[start : start + size])
        bits = part.view(np.uint64 if X.dtype == np.float64 else np.uint32)
        form[start : start + size] = bits.astype(np.uint64, copy=False) @ factors
    return form


def search(
    rows: RowSupports,
    betas: Floats,
    model: CollapsedModel,
    *,
    keep: bool = False,
    weights: Floats | None = None,
) -> tuple[Members, SupportMoments]:
    """Sweep the slots of every row once for each beta; return members (n, L) and their moments.

    `rows` have members to start from, which stay as they are, or -1 for a greedy start. Infinite
    betas put the most probable factor given the others into each slot, and end early once nothing
    changes; 1 draws from the posterior, less draws from it tempered. `keep` returns a row to its
    first support if f(S) ends lower. `weights` (n,) are how often each row counts in the second
    moments.
    """
    from appca.models.supports import slot_search_kernels as kernels
    from appca.models.supports.slot_kernels import row_state

    n, K = rows.c.shape
    mine = rows._replace(members=rows.members.copy())
    out = SupportMoments(np.empty((n, K)), np.zeros((K, K)), np.empty(n))
    betas = np.asarray(betas, dtype=np.float64)
    counts = np.ones(n) if weights is None else weights

    def share(part: slice) -> Floats:
        second = np.zeros((K, K))
        moments = SupportMoments(out.H[part], second, out.value[part])
        room = row_state(K, mine.members.shape[1])
        kernels.search((_take(mine, part), counts[part]), betas, keep, model, moments, room)
        return second

    for second in _share(share, n):
        np.add(out.second, second, out=out.second)
    return mine.members, out


def importance(
    rows: RowSupports, r: Floats, n_paths: int, schedule: AnnealingSchedule, model: CollapsedModel
) -> AnnealedPaths:
    """Annealed importance sampling of sum_S exp f(S), starting from q(S) given r (n, K).

    q is that of independent Bernoulli(r_k) given that L of them are 1; every r lies strictly
    between 0 and 1. The members of `rows` only tell L. The mean of the exponentials of the log
    weights has that sum as mean for any r; inclusion is that over the last sweeps of a path, those
    that follow at beta 1. Paths are resampled (`slot_path_kernels`), so that only those of
    different families are independent.
    """
    from appca.models.supports import slot_path_kernels as kernels
    from appca.models.supports.slot_kernels import row_state

    (n, K), L = rows.c.shape, rows.members.shape[1]
    families = np.empty((n, n_paths), np.int64)
    out = AnnealedPaths(np.empty((n, n_paths)), np.empty((n, n_paths, K)), families)

    def share(part: slice) -> None:
        mine = AnnealedPaths(out.log_weights[part], out.inclusion[part], families[part])
        w, of = row_state(K, L), kernels.walkers(n_paths, K, L)
        room = w, of, np.zeros((K + 1, L + 1))
        kernels.importance(_take(rows, part), r[part], schedule, model, mine, room)

    deque(_share(share, n), maxlen=0)
    return out


def weighted(log_weights: Floats, inclusion: Floats) -> Floats:
    """Average inclusion (n, paths, K) over the paths of each row by their weights."""
    return np.asarray(np.einsum("nr,nrk->nk", softmax(log_weights, axis=1), inclusion))


def _take(rows: RowSupports, part: slice) -> RowSupports:
    return RowSupports(rows.c[part], rows.members[part], rows.seeds[part])


def _share(work: Callable[[slice], T], n: int) -> Iterator[T]:
    """Do the work on blocks of n rows in threads; give its results in order."""
    size = max(LEAST_ROWS, -(-n // MOST_BLOCKS))
    parts = [slice(start, start + size) for start in range(0, n, size)]
    if len(parts) < 2:  # threads cost more than a few rows
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(min(len(parts), cores())) as pool:
        yield from pool.map(work, parts)
