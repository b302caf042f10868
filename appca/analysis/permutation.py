"""Permutation p values with as many permutations as a test needs, and a model of the tail.

A test stops once 20 permutations have reached its statistic (Besag and Clifford, 1991). If no
permutation has, a generalized Pareto distribution extrapolates the tail (Knijnenburg et al.,
2009), so that p can be small enough to correct for multiple tests.
"""

from collections.abc import Callable

import numpy as np

ENOUGH = 20  # a test stops when this many permutations reach the statistic
MORE = 10  # maximum factor of permutations for tests that have not stopped
TAIL = 250  # maximum number of statistics used to fit the tail; at most a quarter of all
LEAST_TAIL = 25  # minimum number
CLEAR = 1e-7  # smallest p of the extrapolated tail
ROUNDING = 1e-9  # tolerance for statistics summed in different orders


def permuted(
    observed: np.ndarray,
    draw: Callable[[int, np.ndarray], np.ndarray],
    n_permutations: int,
    least: np.ndarray | float = 0.0,
    step: int = 500,
) -> tuple[np.ndarray, np.ndarray]:
    """Return p >= `least` of observed values and mean permuted ones, (T,); `draw` permutes."""
    n_tests = len(observed)
    counts, total = np.zeros(n_tests), np.zeros(n_tests)
    top = np.full((n_tests, TAIL + 1), -np.inf)  # for `_tail`
    p, done, tests = np.ones(n_tests), 0, np.arange(n_tests)
    for n in range(n_permutations, MORE * (n_permutations + 1), n_permutations + 1):
        for start in range(done, n, step):
            null = draw(min(step, n - start), tests)
            counts[tests] += (null >= observed[tests, None] - ROUNDING).sum(axis=1)
            total[tests] += null.sum(axis=1) if not done else 0.0
            none = counts[tests] == 0
            both = np.hstack([top[tests[none]], null[none]])
            top[tests[none]] = np.partition(both, -TAIL - 1)[:, -TAIL - 1 :]
        done, none = n, tests[counts[tests] == 0]
        p[tests] = (1 + counts[tests]) / (1 + n)
        p[none] = np.minimum(p[none], _tail(observed[none], top[none], n))
        tests = tests[(counts[tests] < ENOUGH) & (p[tests] > CLEAR)]
        if not len(tests):
            break
    return np.maximum(p, least), total / n_permutations


def _tail(observed: np.ndarray, top: np.ndarray, n: int) -> np.ndarray:
    """Return P(statistic >= observed) (t,) by a Pareto tail above the m-th of the `top` of n."""
    # by weighted moments (Hosking and Wallis, 1987); xi < 0 would bound the statistic, so xi = 0
    m = min(TAIL, n // 4)
    if m < LEAST_TAIL or not len(observed):
        return np.ones(len(observed))
    ordered = np.sort(top)
    start = (ordered[:, -m] + ordered[:, -m - 1]) / 2
    above, place = ordered[:, -m:] - start[:, None], (np.arange(1, m + 1) - 0.35) / m
    mean, weighted = above.mean(axis=1), (above * (1 - place)).mean(axis=1)
    with np.errstate(all="ignore"):
        xi = 2 - mean / (mean - 2 * weighted)
        z = (observed - start) / np.where(xi > 0, 2 * mean * weighted / (mean - 2 * weighted), mean)
        beyond = np.where(xi > 0, (1 + xi * z) ** (-1 / xi), np.exp(-z))
    sound = (mean > ROUNDING) & (z > 0) & np.isfinite(beyond)
    return np.where(sound, np.maximum(m / n * beyond, CLEAR), 1.0)


def corrected(p: np.ndarray) -> np.ndarray:
    """Return q: p (T,) corrected for multiple tests (Benjamini and Hochberg, 1995)."""
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p)) if len(p) else p
