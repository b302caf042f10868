"""Momentum over the states of aPPCA, retracted to the manifold."""

import numpy as np

from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMSettings, SubspaceState

__all__ = ["extend"]

MAX_LOG_CHANGE = 1.0  # most a variance may change ahead of EM, in logs


def extend(
    before: SubspaceState, now: SubspaceState, beta: float, settings: EMSettings
) -> SubspaceState:
    """Go on from `before` through `now` by beta times their distance.

    W is brought back to orthonormal columns by its polar factor; variances move in logs.
    """
    logs = [np.append(np.log(x.latent), np.log(x.noise)) for x in (before, now)]
    change = np.clip(beta * (logs[1] - logs[0]), -MAX_LOG_CHANGE, MAX_LOG_CHANGE)
    variances = np.maximum(np.exp(logs[1] + change), settings.floor)
    fixed = settings.latent not in ("shared", "component")
    return SubspaceState(
        W=polar(now.W + beta * (now.W - before.W), now.W),
        shift=now.shift + beta * (now.shift - before.shift),
        latent=now.latent if fixed else variances[:-1],
        noise=float(variances[-1]),
    )
