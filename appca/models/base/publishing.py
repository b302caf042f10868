"""From a state of inference to the fitted attributes of an estimator.

Loadings are (d, K) in kernels and (K, d) in `components_`; they are transposed here.
"""

from typing import Any

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.algebra.stiefel import upright
from appca.models.rows.observations import Observations


def publish(
    model: Any,
    rows: Observations,
    state: Any,
    power: Array,
    latent: Array,
    *,
    same_order: bool = False,
) -> Array:
    """Set what needs no rows but their origin; return the order of components.

    It is by explained variance `power` (K,), the mean over rows of |w_k|^2 E[(x z)^2], with the
    largest entry of each positive, unless the state has the same order and signs as a fit before.
    `latent` (K,) are variances of x.
    """
    order = np.arange(len(power)) if same_order else np.argsort(-power, kind="stable")
    W = state.W if same_order else upright(state.W[:, order])
    origin = 0.0 if rows.origin is None else rows.origin
    model.components_ = np.ascontiguousarray(W.T, dtype=rows.dtype)
    model.mean_ = (origin - state.W @ state.shift).astype(rows.dtype)
    model.noise_variance_ = float(state.noise)
    model.latent_variance_ = latent[order]
    model.explained_variance_ = power[order]
    return order
