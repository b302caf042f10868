"""SQUAREM leaps (Varadhan & Roland 2008) over the states of aPPCA, retracted to the manifold."""

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMSettings, SubspaceState

__all__ = ["extrapolate"]

MAX_STEP = 64.0  # longest leap, in EM steps: beyond it leaps mostly fail and cost a pass
MAX_LOG_CHANGE = 3.0  # most a variance may change in one leap, in logs


def extrapolate(
    x0: SubspaceState, x1: SubspaceState, x2: SubspaceState, settings: EMSettings
) -> SubspaceState:
    """Leap along the curve through three successive EM states.

    theta = theta0 - 2 alpha r + alpha^2 v,  r = theta1 - theta0,  v = theta2 - 2 theta1 + theta0,
    alpha = -|r|/|v|, over theta = (W, log tau2, log sigma2); the mean's shift follows with the
    same alpha. W is brought back to orthonormal columns by its polar factor. alpha = -1 is x2.
    """
    logs = [np.append(np.log(x.latent), np.log(x.noise)) for x in (x0, x1, x2)]
    alpha = step_length([x.W for x in (x0, x1, x2)], logs)
    if alpha >= -1.0:
        return x2
    change = _leap(logs, alpha) - logs[2]
    variances = np.exp(logs[2] + np.clip(change, -MAX_LOG_CHANGE, MAX_LOG_CHANGE))
    variances = np.maximum(variances, settings.floor)
    fixed = settings.latent not in ("shared", "component")
    return SubspaceState(
        W=polar(_leap([x.W for x in (x0, x1, x2)], alpha), x2.W),
        shift=_leap([x.shift for x in (x0, x1, x2)], alpha),
        latent=x2.latent if fixed else variances[:-1],
        noise=float(variances[-1]),
    )


def step_length(W: list[Array], logs: list[Array]) -> float:
    """Return alpha = -|r|/|v|, at most -1 and at least -64; unit columns and logs share a scale."""
    r = sum(np.sum((t[1] - t[0]) ** 2) for t in (W, logs))
    v = sum(np.sum((t[2] - 2.0 * t[1] + t[0]) ** 2) for t in (W, logs))
    if r <= v or v == 0.0:
        return -1.0
    return float(-min(np.sqrt(r / v), MAX_STEP))


def _leap(theta: list[Array], alpha: float) -> Array:
    r, v = theta[1] - theta[0], theta[2] - 2.0 * theta[1] + theta[0]
    return theta[0] - 2.0 * alpha * r + alpha**2 * v
