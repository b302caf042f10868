"""Momentum between the states of EM for aPPCA, retracted to the manifold.

theta = (W, shift, log tau2, log sigma2) is a vector but for W, which is brought back to orthonormal
columns by its polar factor (a retraction onto the Stiefel manifold). The sequence that uses these
steps, and keeps the likelihood from falling, is in `loop`.
"""

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMSettings, SubspaceState

MAX_MOMENTUM_LOG_CHANGE = 1.0  # most a variance may change ahead of EM, in logs


def extend(
    before: SubspaceState, now: SubspaceState, beta: float, settings: EMSettings
) -> SubspaceState:
    """Take a momentum step: theta = now + beta (now - before)."""
    logs = [_log_variances(x) for x in (before, now)]
    limit = MAX_MOMENTUM_LOG_CHANGE
    change = np.clip(beta * (logs[1] - logs[0]), -limit, limit)
    W = polar(now.W + beta * (now.W - before.W), now.W)
    shift = now.shift + beta * (now.shift - before.shift)
    return _retracted(W, shift, np.exp(logs[1] + change), now, settings)


def _log_variances(x: SubspaceState) -> Array:
    return np.append(np.log(x.latent), np.log(x.noise))


def _retracted(
    W: Array, shift: Array, variances: Array, last: SubspaceState, settings: EMSettings
) -> SubspaceState:
    """Put a state together, variances (K + 1,) above the floor; fixed tau2 stay as they are."""
    variances = np.maximum(variances, settings.floor)
    fixed = settings.latent not in ("shared", "component")
    latent = last.latent if fixed else variances[:-1]
    return SubspaceState(W, shift, latent, float(variances[-1]))
