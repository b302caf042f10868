"""How the time of an EM pass of aPPCA grows with N, D, K and L.

`python -m benchmarks.table --growth` writes results/growth.json.
"""

import time
from typing import Any

import numpy as np

from appca.models.algebra.threads import single_threaded_blas
from appca.models.orthonormal.em import EMMap
from benchmarks.passes import prepared
from benchmarks.shapes import synthetic

BASE = {"N": 20_000, "D": 400, "K": 40, "L": 20}
LADDERS = {
    "N": [5000, 10_000, 20_000, 40_000, 80_000],
    "D": [100, 200, 400, 800, 1600],
    "K": [25, 50, 100, 200],
    "L": [2, 5, 10, 20],
}
QUICK_BASE = {"N": 1000, "D": 50, "K": 25, "L": 5}
QUICK_LADDERS = {"N": [500, 1000, 2000], "D": [50, 100], "K": [25, 50], "L": [2, 5]}
PASSES = 5  # of which the quickest counts, as it is the one least disturbed


def measured(*, quick: bool = False) -> list[dict[str, Any]]:
    """Return a row for each rung, with the slope of its ladder, log seconds over log size."""
    base, ladders = (QUICK_BASE, QUICK_LADDERS) if quick else (BASE, LADDERS)
    rows: list[dict[str, Any]] = []
    for name, sizes in ladders.items():
        seconds = [seconds_a_pass(**{**base, name: size}) for size in sizes]
        found = slope(sizes, seconds)
        for size, second in zip(sizes, seconds, strict=True):
            at = {**base, name: size}
            rows.append({"grows": name, **at, "seconds_a_pass": second, "slope": found})
        print(f"{name}: time grows with its power {found:.2f}", flush=True)
    return rows


def seconds_a_pass(N: int, D: int, K: int, L: int) -> float:
    """Return processor seconds of one EM pass over rows of the model."""
    X, _ = synthetic(N, D, K, L)
    with single_threaded_blas():
        rows, settings, state = prepared(X, K, L)
        seconds = []
        for _ in range(PASSES + 1):  # the first one compiles
            began = time.process_time()
            _, state = EMMap(rows, settings)(state)
            seconds.append(time.process_time() - began)
    return min(seconds[1:])


def slope(sizes: list[int], seconds: list[float]) -> float:
    """Least squares slope of log seconds over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
