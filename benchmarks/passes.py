"""What an EM pass of aPPCA takes beside its two matrix products.

`APPCA_DATA=... python -m benchmarks.table --passes [--data NAME]` writes results/passes.json. A
pass is one E step over all rows and one M step; its two products are X W and X'S, in the dtype of
the data and by NumPy at once, with W (D, K) and S (N, K) given. Both take turns, on the same number
of threads; the median of the ratios counts. What is asked on MNIST, 60,000 digits: at most 1.5.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from appca.models.algebra.stiefel import polar
from appca.models.orthonormal.em import EMMap, EMSettings, SubspaceState, floor_of, worth_compiling
from appca.models.orthonormal.starts import first_state
from appca.models.rows.observations import Rows, about, centre_of
from benchmarks.shapes import Shape

TURNS = 15


def measured(shapes: Sequence[Shape], turns: int = TURNS) -> list[dict[str, Any]]:
    """Return a row a data set: seconds of processor and clock for both, and their ratios."""
    return [compared(shape, turns) for shape in shapes]


def compared(shape: Shape, turns: int) -> dict[str, Any]:
    """Time a pass and its products in turn; the first turn, which compiles, does not count."""
    X = np.ascontiguousarray(shape.draw()[0], np.float32)
    K, L = shape.n_components, shape.n_active
    rows, settings, state = prepared(X, K, L)
    narrow = state.W.astype(np.float32)
    S = X @ narrow
    times = []
    for _ in range(turns + 1):
        a_pass = seconds(lambda: EMMap(rows, settings)(state))
        products = seconds(lambda: (X @ narrow, X.T @ S))
        times.append([*a_pass, *products])
    some = np.array(times[1:])
    ratios = np.median(some[:, :2] / some[:, 2:], axis=0)
    middle = np.median(some, axis=0)
    row = {"data": shape.name, "K": K, "L": L, "pass_s": middle[0], "products_s": middle[2]}
    row |= {"ratio": float(ratios[0]), "ratio_clock": float(ratios[1])}
    print(f"{shape.name}: a pass takes {ratios[0]:.2f} times its products", flush=True)
    return row


def prepared(X: np.ndarray, K: int, L: int) -> tuple[Rows, EMSettings, SubspaceState]:
    """Make what an EM pass needs, as a fit by default settings has it, from random directions."""
    rows = about(X, centre_of(X))
    compiled = worth_compiling(len(X), K, L)
    settings = EMSettings(K, L, "shared", True, False, polar, floor_of(rows), compiled)
    W = np.linalg.qr(np.random.default_rng(0).standard_normal((X.shape[1], K)))[0]
    return rows, settings, first_state(rows, W, settings)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the processor and of the clock that some work takes."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - processor, time.perf_counter() - clock
