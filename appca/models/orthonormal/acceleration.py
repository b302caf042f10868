"""Momentum between the states of EM for aPPCA, retracted to the manifold.

theta = (W, shift, log tau2, log sigma2) is a vector but for W, which is brought back to orthonormal
columns by its polar factor (a retraction onto the Stiefel manifold). The sequence that uses these
steps, and keeps the likelihood from falling, is in `loop`.
"""

import math

import numpy as np

from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMSettings, SubspaceState

MAX_MOMENTUM_LOG_CHANGE = 1.0  # most a variance may change ahead of EM, in logs


def extend(
    before: SubspaceState, now: SubspaceState, beta: float, settings: EMSettings
) -> SubspaceState:
    """Take a momentum step: theta = now + beta (now - before)."""
    most = math.exp(MAX_MOMENTUM_LOG_CHANGE)
    W = polar(now.W + beta * (now.W - before.W), now.W)
    shift = now.shift + beta * (now.shift - before.shift)
    # Variances (K + 1,) in logs, above the floor; fixed tau2 stay as they are.
    last, first = (np.array([*x.latent, x.noise]) for x in (now, before))
    change = np.minimum(np.maximum((last / first) ** beta, 1.0 / most), most)
    variances = np.maximum(last * change, settings.floor)
    fixed = settings.latent not in ("shared", "component")
    return SubspaceState(W, shift, now.latent if fixed else variances[:-1], float(variances[-1]))
