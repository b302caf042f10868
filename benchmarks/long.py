"""How far the quick fit of aPPCA ends below a run of 2,000 passes that goes on from there.

`APPCA_DATA=... python -m benchmarks.table --long --data MNIST` writes results/long.json. The quick
fit is "aPPCA, EM, one start" of the table; the passes are those of a fit, with momentum, and go on
where ten of them gain nothing. What is asked on MNIST, 60,000 digits, K = 10, L = 3: at most 0.05
nats per row.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from appca.models.algebra.loop import iterate
from appca.models.algebra.stiefel import polar
from appca.models.algebra.threads import single_threaded_blas
from appca.models.orthonormal.em import EMMap, SubspaceState
from appca.models.orthonormal.starts import ascent
from benchmarks.methods import METHODS
from benchmarks.passes import prepared
from benchmarks.shapes import Shape

PASSES = 2000


def measured(shapes: Sequence[Shape], passes: int = PASSES) -> list[dict[str, Any]]:
    """Return a row a data set, nats per row of the rows fitted to."""
    return [compared(shape, passes) for shape in shapes]


def compared(shape: Shape, passes: int) -> dict[str, Any]:
    """Fit quickly, go on for long, and say what that gained."""
    X = np.ascontiguousarray(shape.draw()[0], np.float32)
    K, L = shape.n_components, shape.n_active
    model = METHODS["appca_one"].make(K, L, X.shape).fit(X)
    began = time.process_time()
    values = gone_on(X, model, passes)
    quick, long = float(model.log_likelihoods_[-1]) / len(X), values[-1] / len(X)
    row = {"data": shape.name, "K": K, "L": L, "quick_nats": quick, "long_nats": long}
    row |= {"below": long - quick, "passes": len(values)}
    row["long_s"] = time.process_time() - began
    print(f"{shape.name}: {row['below']:.4f} nats per row below {len(values)} passes", flush=True)
    return row


def gone_on(X: np.ndarray, model: Any, passes: int) -> list[float]:
    """Return the log-likelihoods of so many EM passes after the end of a fit, total."""
    rows, settings, _ = prepared(X, model.n_components, model.n_active)
    W = polar(model.components_.T.astype(np.float64))
    shift = (rows.origin - model.mean_).astype(np.float64) @ W
    state = SubspaceState(W, shift, model.latent_variance_, model.noise_variance_)
    with single_threaded_blas():
        path = ascent(state, EMMap(rows, settings))
        return iterate(path, tol=-math.inf, max_iter=passes).log_likelihoods
