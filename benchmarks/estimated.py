"""Estimated likelihoods of rows with many supports, and their stated errors, against exact sums.

`python -m benchmarks.estimated [--rows 400]`. Rows are drawn from the model. Annealed importance
sampling estimates what is then summed over all supports, 2^K for sparse factor analysis (`fsFA`)
and K over L for adaptive factor analysis (`aFA`), also where the library itself would not sum so
many. "off" is the root mean square of estimate minus exact log-likelihood, "stated" that of the
stated standard errors, both in nats, and z their ratio row by row. In the last lines the parameters
are draws of a fit, over which likelihoods are averaged.
"""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from appca import FiniteSparseFA
from appca.models.supports import fixed_size_supports, free_supports, row_blocks
from appca.models.supports.free_supports import Question
from appca.models.supports.row_supports import CollapsedModel
from benchmarks import results

EVERY = 20  # columns whose sets are all summed here
SPARSE = ((14, 20, 0.3), (14, 8, 0.1), (18, 20, 0.3), (18, 20, 0.1), (20, 30, 0.3))  # K, D, noise
ADAPTIVE = ((18, 7, 20, 0.3), (18, 7, 10, 0.1), (18, 7, 8, 0.03))  # K, L, D, noise
FITTED = (14, 18)  # K
PATHS = (4, 16, 64)


def main() -> None:
    """Compare, print and write."""
    parser = results.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=400, help="rows of each case")
    parser.add_argument("--adaptive", action="store_true", help="aFA alone; other rows stay")
    chosen = parser.parse_args()
    rows = [row for case in ADAPTIVE for row in adaptive(*case, chosen.rows)]
    before = results.read(chosen.out, "estimated")
    if chosen.adaptive and before is not None:
        others = [row for row in before.rows if row["model"] != "aFA"]
    else:
        others = [row for case in SPARSE for row in sparse(*case, chosen.rows)]
        others += [averaged(K, chosen.rows // 4) for K in FITTED]
    rows = sorted(others + rows, key=lambda row: row["model"] != "fsFA")
    results.write(chosen.out, "estimated", rows)


def sparse(K: int, D: int, noise: float, n_rows: int) -> list[results.Row]:
    """Estimate rows in which each factor is used with a probability of its own, 0.1 to 0.8."""
    rng = np.random.default_rng(0)
    W, weights = rng.normal(size=(D, K)), rng.uniform(0.1, 0.8, K)
    Y = drawn(rng, W, rng.random((n_rows, K)) < weights, noise)
    q = Question(Y @ W / noise**2, W.T @ W / noise**2, 1.0, weights)
    with mock.patch.object(free_supports, "MOST_COLUMNS", EVERY):
        exact = free_supports.summed(q, 2).log_sum
    case = {"model": "fsFA", "K": K, "L": None, "D": D, "noise": noise}
    with mock.patch.object(free_supports, "MOST_COLUMNS", 0):
        return compared(case, exact, lambda n: free_supports.summed(q, n))


def adaptive(K: int, L: int, D: int, noise: float, n_rows: int) -> list[results.Row]:
    """Estimate rows that use L of K factors."""
    rng = np.random.default_rng(0)
    W, Z = rng.normal(size=(D, K)), rng.random((n_rows, K)).argsort(axis=1) < L
    Y = drawn(rng, W, Z, noise)
    c, model, seeds = (
        Y @ W / noise**2,
        CollapsedModel(W.T @ W / noise**2, 1.0),
        row_blocks.row_seeds(Y),
    )
    with mock.patch.object(fixed_size_supports, "MOST_SETS", 10**6):
        exact = fixed_size_supports.summed(c, model, L, seeds, 2).log_sum
    case = {"model": "aFA", "K": K, "L": L, "D": D, "noise": noise}
    return compared(case, exact, lambda n: fixed_size_supports.summed(c, model, L, seeds, n))


def averaged(K: int, n_rows: int) -> results.Row:
    """Average the estimates of new rows over the draws of a fit."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(20, K))
    Y = drawn(rng, W, rng.random((300 + n_rows, K)) < 0.4, 0.3)
    fit = FiniteSparseFA(K, n_chains=1, burn_in=100, n_draws=100, random_state=0).fit(Y[:300])
    with mock.patch.object(free_supports, "MOST_COLUMNS", EVERY):
        exact = fit.estimate_score_samples(Y[300:])
    with mock.patch.object(free_supports, "MOST_COLUMNS", 0):
        estimate = fit.estimate_score_samples(Y[300:])
    off = estimate.log_likelihood - exact.log_likelihood
    case = {"model": "fsFA, averaged over draws", "K": K, "L": None, "D": 20, "noise": 0.3}
    return case | calibration(off, estimate.error) | {"paths": fit.n_paths // 4}


def drawn(rng: np.random.Generator, W: Any, Z: Any, noise: float) -> Any:
    """Draw rows (N, D) that use the factors Z (N, K)."""
    signal = (rng.normal(size=Z.shape) * Z) @ W.T
    return signal + noise * rng.normal(size=signal.shape)


def compared(case: results.Row, exact: Any, estimate: Callable[[int], Any]) -> list[results.Row]:
    """Return a row for each number of paths."""
    rows = []
    for n_paths in PATHS:
        found = estimate(n_paths)
        rows.append(case | {"paths": n_paths} | calibration(found.log_sum - exact, found.error))
        print(rows[-1], flush=True)
    return rows


def calibration(off: Any, error: Any) -> results.Row:
    """Compare errors (n,) with those that were stated."""
    z = np.abs(off / error)
    return {
        "rows": len(z),
        "off": float(np.sqrt(np.mean(off**2))),
        "stated": float(np.sqrt(np.mean(error**2))),
        "z": float(np.sqrt(np.mean(z**2))),
        "beyond_3": float(np.mean(z > 3)),
        "worst": float(z.max()),
    }


if __name__ == "__main__":
    main()
