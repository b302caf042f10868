"""Extrapolation of EM over the states of aPPCA: SQUAREM and momentum, retracted to the manifold.

theta = (W, shift, log tau2, log sigma2) is a vector but for W, which is brought back to orthonormal
columns by its polar factor (a retraction onto the Stiefel manifold). The sequences that use these
steps, and keep the likelihood from falling, are in `loop`.
"""

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMSettings, SubspaceState

MAX_STEP = 64.0  # longest SQUAREM step, in EM steps: beyond it most fail and cost an iteration
MAX_SQUAREM_LOG_CHANGE = 3.0  # most a variance may change in one SQUAREM step, in logs
MAX_MOMENTUM_LOG_CHANGE = 1.0  # most a variance may change ahead of EM, in logs


def extrapolate(
    x0: SubspaceState, x1: SubspaceState, x2: SubspaceState, settings: EMSettings
) -> SubspaceState:
    """Take a SQUAREM step (Varadhan & Roland 2008) through three successive EM states.

    theta = theta0 - 2 alpha r + alpha^2 v,  r = theta1 - theta0,  v = theta2 - 2 theta1 + theta0,
    alpha = -|r|/|v| over (W, log tau2, log sigma2); the shift follows with the same alpha.
    alpha = -1 is x2.
    """
    logs = [_log_variances(x) for x in (x0, x1, x2)]
    alpha = step_length([x.W for x in (x0, x1, x2)], logs)
    if alpha >= -1.0:
        return x2
    change = _squarem(logs, alpha) - logs[2]
    variances = np.exp(logs[2] + np.clip(change, -MAX_SQUAREM_LOG_CHANGE, MAX_SQUAREM_LOG_CHANGE))
    W = polar(_squarem([x.W for x in (x0, x1, x2)], alpha), x2.W)
    shift = _squarem([x.shift for x in (x0, x1, x2)], alpha)
    return _retracted(W, shift, variances, x2, settings)


def step_length(W: list[Array], logs: list[Array]) -> float:
    """Return alpha = -|r|/|v|, at most -1 and at least -64; unit columns and logs share a scale."""
    r = sum(np.sum((t[1] - t[0]) ** 2) for t in (W, logs))
    v = sum(np.sum((t[2] - 2.0 * t[1] + t[0]) ** 2) for t in (W, logs))
    if r <= v or v == 0.0:
        return -1.0
    return float(-min(np.sqrt(r / v), MAX_STEP))


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


def _squarem(theta: list[Array], alpha: float) -> Array:
    r, v = theta[1] - theta[0], theta[2] - 2.0 * theta[1] + theta[0]
    return theta[0] - 2.0 * alpha * r + alpha**2 * v


def _retracted(
    W: Array, shift: Array, variances: Array, last: SubspaceState, settings: EMSettings
) -> SubspaceState:
    """Put a state together, variances (K + 1,) above the floor; fixed tau2 stay as they are."""
    variances = np.maximum(variances, settings.floor)
    fixed = settings.latent not in ("shared", "component")
    latent = last.latent if fixed else variances[:-1]
    return SubspaceState(W, shift, latent, float(variances[-1]))
