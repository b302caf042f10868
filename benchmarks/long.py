"""How far the quick fit of aPPCA ends below a run of 2,000 passes that goes on from there.

`APPCA_DATA=... python -m benchmarks.table --long [--data NAME]` writes results/long.csv. The quick
fit is "aPPCA, EM, one start" of the table, the long one has tol = 0, its directions and the usual
momentum; it ends before 2,000 passes where ten of them gain nothing but rounding. What is asked on
MNIST, 60,000 digits, K = 10, L = 3: at most 0.05 nats a row.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.methods import METHODS
from benchmarks.shapes import Shape

__all__ = ["PASSES", "measured"]

PASSES = 2000


def measured(shapes: Sequence[Shape], passes: int = PASSES) -> list[dict[str, Any]]:
    """Return a row a data set, nats a row of the rows fitted to."""
    return [compared(shape, passes) for shape in shapes]


def compared(shape: Shape, passes: int) -> dict[str, Any]:
    """Fit quickly, go on for long, and say what that gained."""
    from appca import AdaptivePPCA

    X = np.ascontiguousarray(shape.draw()[0], np.float32)
    K, L = shape.n_components, shape.n_active
    quick = METHODS["appca_one"].make(K, L, X.shape).fit(X)
    began = time.process_time()
    directions = quick.components_.astype(np.float64)
    long = AdaptivePPCA(K, L, init=directions, tol=0.0, max_iter=passes, random_state=0).fit(X)
    ends = [float(model.log_likelihoods_[-1]) / len(X) for model in (quick, long)]
    row = {"data": shape.name, "K": K, "L": L, "quick_nats": ends[0], "long_nats": ends[1]}
    row |= {"below": ends[1] - ends[0], "passes": long.n_iter_}
    row["long_s"] = time.process_time() - began
    print(f"{shape.name}: {row['below']:.4f} nats a row below {long.n_iter_} passes", flush=True)
    return row
