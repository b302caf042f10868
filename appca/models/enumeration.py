"""Every L-subset of K factors at once: the exact collapsed posterior of adaptive factor analysis.

What depends on a set S alone, Lam_S = prior I + A_SS, is the same for all rows, so that with few
sets the sums over them are matrix products. Notation as in `slot_kernels`:

    f(S) = -1/2 log|tau2 Lam_S| + 1/2 c_S' inv(Lam_S) c_S
"""

import itertools
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from appca.models.supports import CollapsedModel, Floats
from appca.models.threads import in_order, single_threaded_blas

if TYPE_CHECKING:
    from appca.models.set_kernels import SupportArrays

BLOCK_FLOATS = 2**18  # 2 MB: the largest array of a block of rows stays in the cache
LEAST_ROWS_A_THREAD, MOST_SHARES = 512, 16  # of rows that go through the kernel together


class SupportTable(NamedTuple):
    """All sets and what they have in common for all rows."""

    sets: NDArray[np.intp]  # (C, L), ascending
    root: Floats  # (C, L, L) with root root' = inv(Lam)
    half_log_det: Floats  # (C,) 1/2 log|tau2 Lam|


class EnumeratedPosterior(NamedTuple):
    """What the exact posterior over sets says about some rows."""

    log_sum: Floats  # (n,) log sum over S of exp f(S)
    inclusion: Floats  # (n, K) p(z_k = 1 | y)
    H: Floats  # (n, K) E[x z]
    second: Floats  # (K, K) weighted sum over rows of E[(x z)(x z)']


def table(model: CollapsedModel, n_active: int) -> SupportTable:
    """Invert Lam of every set; the prior precision may differ from factor to factor."""
    K = len(model.A)
    prior = np.broadcast_to(model.prior, K)
    sets = np.array(list(itertools.combinations(range(K), n_active)), dtype=np.intp)
    Lam = model.A[sets[:, :, None], sets[:, None, :]] + prior[sets][:, None, :] * np.eye(n_active)
    with single_threaded_blas():  # whose number would decide the last bits of large sets
        factor = np.linalg.cholesky(Lam)
        root = np.swapaxes(np.linalg.inv(factor), 1, 2)
    diagonal = np.diagonal(factor, axis1=1, axis2=2)
    half_log_det = np.log(diagonal / np.sqrt(prior)[sets]).sum(axis=1)
    return SupportTable(sets, np.ascontiguousarray(root), half_log_det)


def densities(t: SupportTable, c: Floats) -> Floats:
    """F of every set for some rows c (n, K), (n, C)."""
    u = np.einsum("ncl,clm->ncm", c[:, t.sets], t.root)
    return np.asarray(0.5 * np.square(u).sum(axis=2) - t.half_log_det)


def best_enumerated(t: SupportTable, c: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Members (N, L) of each row's most probable set, and its f(S)."""
    from appca.models import set_kernels as kernels

    which, value = np.empty(len(c), np.int64), np.empty(len(c))
    sets = _for_kernels(t)

    def share(part: slice) -> None:
        kernels.best(sets, c[part], which[part], value[part])

    deque(in_order(share, _shares(len(c))), maxlen=0)
    return t.sets[which], value


def posterior(t: SupportTable, c: Floats, weights: Floats | None = None) -> EnumeratedPosterior:
    """Posterior sums of rows c (N, K) over all sets; row n counts weights[n] times in `second`."""
    from appca.models import set_kernels as kernels

    n, K = c.shape
    out = EnumeratedPosterior(np.empty(n), np.empty((n, K)), np.empty((n, K)), np.zeros((K, K)))
    sets, counts = _for_kernels(t), np.ones(n) if weights is None else weights

    def share(part: slice) -> tuple[Floats, Floats]:
        weight, moment = np.zeros(len(t.sets)), np.zeros(t.root.shape)
        rows = out.log_sum[part], out.inclusion[part], out.H[part]
        sums = kernels.PosteriorSums(*rows, weight, moment)
        kernels.posterior(sets, c[part], counts[part], sums)
        return weight, moment

    weight, moment = np.zeros(len(t.sets)), np.zeros(t.root.shape)
    for some in in_order(share, _shares(n)):
        weight += some[0]
        moment += some[1]
    inverse = t.root @ np.swapaxes(t.root, 1, 2)
    pairs = t.sets[:, :, None], t.sets[:, None, :]
    np.add.at(out.second, pairs, moment + weight[:, None, None] * inverse)
    return out


def _for_kernels(t: SupportTable) -> "SupportArrays":
    from appca.models.set_kernels import SupportArrays

    places = np.ascontiguousarray(t.sets.T)
    return SupportArrays(places, np.ascontiguousarray(np.moveaxis(t.root, 0, 2)), t.half_log_det)


def _shares(n: int) -> list[slice]:
    """Blocks of n rows for threads; they do not depend on the number of cores."""
    size = max(LEAST_ROWS_A_THREAD, -(-n // MOST_SHARES))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
