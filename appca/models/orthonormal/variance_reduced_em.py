"""Variance-reduced EM: between passes over all rows, EM on a sample whose sums are corrected.

EM is slow where components trade variance, and which way a sample tells as well as all rows do.
What a sample gets wrong is the level of the sums. So one pass over all rows, at the anchor theta_0,
corrects the expected sufficient statistics of the sample (n of N rows),

    T~(theta) = N/n T_sample(theta) + C,   C = T(theta_0) - N/n T_sample(theta_0),

and EM runs on T~ for some iterations. That is EM, monotone, for

    l~(theta) = N/n l_sample(theta) + <C, eta(theta)>,

eta being the natural parameters of the complete data, and has the gradient of all rows at theta_0.
Fixed points are those of EM on all rows. (The idea of variance reduction in stochastic gradients,
Johnson & Zhang 2013, with EM steps for gradient steps.)
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import Momentum, iterate, nesterov
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.acceleration import extend
from appca.models.orthonormal.em import (
    EMMap,
    EMSettings,
    SubspaceState,
    SubspaceStatistics,
    expect,
    maximise,
)
from appca.models.rows.observations import Rows, about, project

# Measured on MNIST, 16,000 of 60,000 rows, K = 10, L = 3: with 10 an outer iteration improves less,
# with 60 the second one already fits the sample and lowers the likelihood of all rows.
INNER_ITERATIONS, LEAST_INNER_ITERATIONS = 20, 5
LEAST_NEW = 1e-8  # of a unit direction: what is less outside the basis is rounding


class AnchoredSample(NamedTuple):
    """Some rows about the origin of all, and coordinates to hold them in."""

    X: Array  # (n, d)
    origin: Array | None
    basis: Array  # (d, q) orthonormal


class DataSize(NamedTuple):
    """What the M step needs to know of all rows."""

    mass: float
    total: float
    n_features: int


def augmented_basis(basis: Array, W: Array) -> Array:
    """Orthonormal basis (d, at most q + K) of the columns of `basis` (d, q) and W (d, K)."""
    left = W
    for _ in range(2):  # once leaves rounding of the size of what is small in W
        left = left - basis @ (basis.T @ left)
    U, size, _ = np.linalg.svd(left, full_matrices=False)
    return np.hstack([basis, U[:, size > LEAST_NEW]])


def variance_reduced_em(
    start: SubspaceState, em_map: EMMap, sample: AnchoredSample
) -> Iterator[tuple[float, SubspaceState]]:
    """Yield (log-likelihood of all rows, state), one pass over all rows each.

    An outer iteration that lowers the likelihood is not yielded but made again from the same anchor
    with half as many inner ones. It ends where few lower it, too: the sample is too small to tell
    more.
    """
    rows, settings = em_map.rows, em_map.settings
    size = DataSize(rows.mass, rows.total, rows.n_features)
    anchor, q = start, sample.basis.shape[1]
    # One buffer for all coordinates: the leading ones stay, only the others are new each time.
    coordinates = np.empty((len(sample.X), q + 2 * settings.n_components), sample.X.dtype)
    about_origin = about(sample.X, sample.origin)
    coordinates[:, :q] = project(about_origin, sample.basis)
    sums, inner = em_map.sums(anchor), INNER_ITERATIONS
    momentum: Momentum[SubspaceState] = Momentum()  # which lasts, though W is in other coordinates
    yield sums.log_likelihood, anchor
    while inner >= LEAST_INNER_ITERATIONS:
        W_next = polar(sums.A, anchor.W)  # the next EM step on all rows
        basis = augmented_basis(sample.basis, np.hstack([anchor.W, W_next]))
        width = basis.shape[1]
        coordinates[:, q:width] = project(about_origin, basis[:, q:])
        part = Rows(coordinates[:, :width], None, about_origin.squares, rows.n_features)
        inside = anchor._replace(W=basis.T @ anchor.W)
        if momentum.before is not None:
            momentum.before = momentum.before._replace(W=polar(basis.T @ momentum.before.W))
        inside = _inner_em(
            inside, sums._replace(A=basis.T @ sums.A), part, size, settings, inner, momentum
        )
        if momentum.before is not None:
            momentum.before = momentum.before._replace(W=basis @ momentum.before.W)
        proposed = inside._replace(W=polar(basis @ inside.W))
        reached = em_map.sums(proposed)
        if reached.log_likelihood >= sums.log_likelihood:
            anchor, sums = proposed, reached
            yield sums.log_likelihood, anchor
        else:
            inner, momentum = inner // 2, Momentum()


def _inner_em(
    anchor: SubspaceState,
    sums: SubspaceStatistics,
    sample: Rows,
    size: DataSize,
    settings: EMSettings,
    iterations: int,
    momentum: Momentum[SubspaceState],
) -> SubspaceState:
    """Raise l~ from the anchor, where `sums` are those of all rows."""
    scale = size.mass / sample.n
    C = correction(sums, expect(anchor, sample, settings), scale)
    advance = partial(corrected_step, sample=sample, C=C, scale=scale, size=size, settings=settings)
    path = nesterov(advance, anchor, partial(extend, settings=settings), momentum)
    return iterate(path, tol=0.0, max_iter=iterations).state


def correction(
    all_rows: SubspaceStatistics, sample: SubspaceStatistics, scale: float
) -> SubspaceStatistics:
    """C = T - scale T_sample, scale = N/n."""
    return _linear_combination(all_rows, 1.0, sample, -scale)


def _linear_combination(
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
    size: DataSize,
    settings: EMSettings,
) -> tuple[float, SubspaceState]:
    """l~ of `state`, up to a constant, and the state one EM step on T~ later."""
    own = expect(state, sample, settings)
    sums = _linear_combination(own, scale, C, 1.0)
    value = scale * own.log_likelihood + natural_product(C, state)
    value -= (size.total - scale * sample.total) / (2.0 * state.noise)
    if not np.isfinite(value):
        return -np.inf, state
    return value, maximise(sums, state, size, settings)


def natural_product(C: SubspaceStatistics, state: SubspaceState) -> float:
    """<C, eta>, the expected complete-data log-likelihood of C up to a constant.

    [tr(W'A) + shift's] / sigma2 - 1/2 second'(1/sigma2 + 1/tau2) - 1/2 used' log tau2
    """
    total = (np.sum(state.W * C.A) + state.shift @ C.s) / state.noise
    total -= 0.5 * C.second @ (1.0 / state.noise + 1.0 / state.latent)
    return float(total - 0.5 * C.used @ np.log(state.latent))
