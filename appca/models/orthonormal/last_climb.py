"""The last climb: over all rows and all features, in coordinates that grow.

After screening, the components lie in the span of some leading principal directions, and the
coordinates of all rows in these are held. In them an iteration costs a tenth of one over all
features. What EM would move outside of them is in A = sum y s' over all features. So the directions
of A that are missing, K at most, become coordinates, too; EM goes on in all of them, where
likelihoods are those of the data; and that happens again while an M step over all features promises
more than convergence allows.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.loop import CONVERGED, WINDOW, EMResult, Watch, iterate, watcher
from appca.models.algebra.stiefel import polar
from appca.models.decompositions.spectrum import Coordinates
from appca.models.orthonormal.em import EMMap, SubspaceState, SubspaceStatistics, expect
from appca.models.orthonormal.screening import EMControl
from appca.models.orthonormal.starts import ascent
from appca.models.rows.observations import Observations, project, transposed_product

ROUNDING = 1e-5  # of the largest direction of A: float32 products hold no more


class Climbed(NamedTuple):
    """Where EM ended."""

    run: EMResult[SubspaceState]  # in the features of the data
    sums: SubspaceStatistics  # with A as in `em_fit.SubspaceFit`
    held: Coordinates  # of all rows, in the span of which the components are


def climb_all(
    start: SubspaceState,
    held: Coordinates,
    rows: Observations,
    control: EMControl,
    halt: Callable[[SubspaceState], str | None],
) -> Climbed:
    """Run EM on all rows and features from a state in the span of coordinates of all rows.

    It has converged when an iteration in the coordinates improves by less than `tol`, and either
    the last directions brought no more than that or an M step over all features promises no more.
    """
    settings, least = control.settings, control.tol * rows.mass
    watch, values = watcher(control.callback, "fit", control.max_iter), list[float]()
    state, em_map = start._replace(W=polar(held.basis.T @ start.W)), EMMap(held.rows, settings)
    while True:
        if held.rows.d < rows.d:
            A = _products(em_map, state, rows)
            if values and _promised(A, held.basis @ state.W, state.noise) < least:
                break
            sums, held = em_map.sums(state), _grown(held, A, rows)
            state = state._replace(W=np.eye(held.rows.d, len(state.W)) @ state.W)
            em_map = EMMap(held.rows, settings)
            em_map.know(state, sums._replace(A=held.basis.T @ A))
        run = iterate(
            ascent(state, em_map, accelerate=control.accelerate),
            tol=WINDOW * least,
            max_iter=control.max_iter - len(values),
            window=1,
            watch=partial(_later, watch, len(values)),
            halt=halt,
        )
        state, values = run.state, values + run.log_likelihoods
        going_on = run.stop_reason.startswith(CONVERGED) and len(run.log_likelihoods) > 1
        if not going_on or len(values) == control.max_iter or held.rows.d == rows.d:
            break
    sums, W = em_map.within(state), polar(held.basis @ state.W)
    return Climbed(run._replace(state=state._replace(W=W), log_likelihoods=values), sums, held)


def _later(watch: Watch, before: int, iteration: int, value: float) -> bool:
    return watch(before + iteration, value)


def _products(em_map: EMMap, state: SubspaceState, rows: Observations) -> Array:
    """Sum over rows of (y - origin) s', (d, K), for the s under a state in coordinates."""
    S = np.empty((rows.n, state.W.shape[1]), rows.dtype)
    em_map.know(state, expect(state, em_map.rows, em_map.settings, means=S))
    return transposed_product(rows, S)


def _grown(held: Coordinates, A: Array, rows: Observations) -> Coordinates:
    """Add the directions of A (d, K) that are missing."""
    missing, size = A, np.linalg.norm(A, 2)
    for _ in range(2):  # once leaves rounding errors of the size of A
        missing = missing - held.basis @ (held.basis.T @ missing)
    Q, singular, _ = np.linalg.svd(missing, full_matrices=False)
    Q = Q[:, singular > ROUNDING * size]
    if not Q.shape[1]:
        return held
    X = np.vstack([held.rows.X.T, project(rows, Q).T]).T  # by columns, as E steps read fastest
    return Coordinates(held.rows._replace(X=X), np.hstack([held.basis, Q]))


def _promised(A: Array, W: Array, noise: float) -> float:
    """Least that an M step of W over all features adds to the log-likelihood, nats.

    tr(W'A) / sigma2 is what the expected complete log-likelihood holds of W; the polar factor of A
    makes it the sum of the singular values.
    """
    most = np.linalg.svd(A, compute_uv=False).sum()
    return float(most - np.sum(W * A)) / noise
