"""EM in long strides: a sample of the rows stands in for all of them between passes.

EM creeps because components trade variance slowly, and that a sample tells as well as all rows do.
What a sample gets wrong is the level of the sums. So one pass over all rows, at theta_0, corrects
the sums of the sample (n of N rows),

    T~(theta) = N/n T_sample(theta) + C,   C = T(theta_0) - N/n T_sample(theta_0),

and EM runs on T~ to its end. That is EM, monotone, for

    l~(theta) = N/n l_sample(theta) + <C, eta(theta)>,

eta being the natural parameters of the complete data, and has the gradient of all rows at theta_0.
Fixed points of the strides are those of EM on all rows. (The idea of variance reduction in
stochastic gradients, Johnson & Zhang 2013, with EM steps for gradient steps.)
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import iterate, swinging
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import (
    EMSettings,
    Passes,
    SubspaceState,
    SubspaceStatistics,
    expect,
    maximise,
)
from appca.models.orthonormal.momentum import extend
from appca.models.rows.observations import Rows, about, project

__all__ = ["Sample", "strides", "widened"]

# Measured on MNIST, 16,000 of 60,000 rows, K = 10, L = 3: with 10 a stride gains less, with 60 the
# second one already believes the sample too much and falls.
INNER_PASSES, LEAST_INNER_PASSES = 20, 5
LEAST_NEW = 1e-8  # of a unit direction: what is less outside the basis is rounding


class Sample(NamedTuple):
    """Some rows about the origin of all, and coordinates to hold them in."""

    X: Array  # (n, d)
    origin: Array | None
    basis: Array  # (d, q) orthonormal


class Whole(NamedTuple):
    """What the M step needs to know of all rows."""

    n: int
    total: float
    n_features: int


def widened(basis: Array, W: Array) -> Array:
    """Orthonormal basis (d, at most q + K) of the columns of `basis` (d, q) and W (d, K)."""
    left = W
    for _ in range(2):  # once leaves rounding of the size of what is small in W
        left = left - basis @ (basis.T @ left)
    U, size, _ = np.linalg.svd(left, full_matrices=False)
    return np.hstack([basis, U[:, size > LEAST_NEW]])


def strides(
    start: SubspaceState, passes: Passes, sample: Sample
) -> Iterator[tuple[float, SubspaceState]]:
    """Yield (log-likelihood of all rows, state), one pass over all rows each.

    A stride that lowers the likelihood is not yielded but taken again at half the length. It ends
    where short ones fall, too: the sample is too small to tell more.
    """
    rows, settings = passes.rows, passes.settings
    whole = Whole(rows.n, rows.total, rows.n_features)
    state, q = start, sample.basis.shape[1]
    # In place for all strides: the leading coordinates stay, only the others are new each time.
    place = np.empty((len(sample.X), q + 2 * settings.n_components), sample.X.dtype)
    seen = about(sample.X, sample.origin)
    place[:, :q] = project(seen, sample.basis)
    sums, inner = passes.sums(state), INNER_PASSES
    yield sums.log_likelihood, state
    while inner >= LEAST_INNER_PASSES:
        basis = widened(sample.basis, np.hstack([state.W, polar(sums.A, state.W)]))
        width = basis.shape[1]
        place[:, q:width] = project(seen, basis[:, q:])
        part = Rows(place[:, :width], None, seen.squares, rows.n_features)
        inside = state._replace(W=basis.T @ state.W)
        inside = _stride(inside, sums._replace(A=basis.T @ sums.A), part, whole, settings, inner)
        ahead = inside._replace(W=polar(basis @ inside.W))
        reached = passes.sums(ahead)
        if reached.log_likelihood >= sums.log_likelihood:
            state, sums = ahead, reached
            yield sums.log_likelihood, state
        else:
            inner //= 2


def _stride(
    start: SubspaceState,
    sums: SubspaceStatistics,
    sample: Rows,
    whole: Whole,
    settings: EMSettings,
    inner: int,
) -> SubspaceState:
    """Climb l~ from `start`, where `sums` are those of all rows."""
    scale = whole.n / sample.n
    C = correction(sums, expect(start, sample, settings), scale)
    advance = partial(
        corrected_step, sample=sample, C=C, scale=scale, whole=whole, settings=settings
    )
    path = swinging(advance, start, partial(extend, settings=settings))
    return iterate(path, tol=0.0, max_iter=inner).state


def correction(
    all_rows: SubspaceStatistics, sample: SubspaceStatistics, scale: float
) -> SubspaceStatistics:
    """Return what the sums of all rows exceed N/n times those of the sample by."""
    return _combined(all_rows, 1.0, sample, -scale)


def _combined(
    a: SubspaceStatistics, p: float, b: SubspaceStatistics, q: float
) -> SubspaceStatistics:
    """P a + q b."""
    return SubspaceStatistics(
        p * a.log_likelihood + q * b.log_likelihood,
        p * a.A + q * b.A,
        p * a.s + q * b.s,
        p * a.second + q * b.second,
        p * a.used + q * b.used,
    )


def corrected_step(
    state: SubspaceState,
    sample: Rows,
    C: SubspaceStatistics,
    scale: float,
    whole: Whole,
    settings: EMSettings,
) -> tuple[float, SubspaceState]:
    """l~ of `state`, up to a constant, and the state one corrected EM step later."""
    own = expect(state, sample, settings)
    sums = _combined(own, scale, C, 1.0)
    value = scale * own.log_likelihood + complete(C, state)
    value -= (whole.total - scale * sample.total) / (2.0 * state.noise)
    if not np.isfinite(value):
        return -np.inf, state
    return value, maximise(sums, state, whole, settings)


def complete(C: SubspaceStatistics, state: SubspaceState) -> float:
    """<C, eta>: what C adds to the expected complete-data log-likelihood, up to a constant.

    [tr(W'A) + shift's] / sigma2 - 1/2 second'(1/sigma2 + 1/tau2) - 1/2 used' log tau2
    """
    gain = (np.sum(state.W * C.A) + state.shift @ C.s) / state.noise
    gain -= 0.5 * C.second @ (1.0 / state.noise + 1.0 / state.latent)
    return float(gain - 0.5 * C.used @ np.log(state.latent))
