"""Exponential tilting of L-subsets: independent Bernoulli inclusions whose sum is L on average.

A subset with weights exp(a) is K independent Bernoulli variables of log odds a_k + lam given that
their sum is L, whatever lam; with E sum = L, tables of any size hold probabilities. (A normal
density for that sum gives log e_L ~ sum log(1 + exp(a + lam)) - lam L - 1/2 log(2 pi V),
V = sum r (1 - r), to O(1 / V) nats.)
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


def tilt(logits: Floats, n_active: int) -> Floats:
    """Solve ``sum_k sigmoid(a_k + lam) = L``, 0 < L < K, for each row of logits (N, K).

    By Newton steps kept inside a bracket. With lam (N,) the sum is within 1e-10 L of L, or the two
    ends of the bracket meet.
    """
    share = math.log(n_active / (logits.shape[1] - n_active))
    lower, upper = share - logits.max(axis=1), share - logits.min(axis=1)
    n_rest = logits.shape[1] - n_active
    gap = np.partition(logits, (n_rest - 1, n_rest), axis=1)[:, n_rest - 1 : n_rest + 1]
    lam: Floats = np.clip(-gap.mean(axis=1), lower, upper)
    rows = np.arange(len(logits))
    for _ in range(100):  # bisection alone ends for any float64 in fewer
        r = expit(logits[rows] + lam[rows, None])
        excess, slope = r.sum(axis=1) - n_active, (r * (1.0 - r)).sum(axis=1)
        off = np.abs(excess) > 1e-10 * n_active
        rows, excess, slope = rows[off], excess[off], slope[off]
        if not len(rows):
            break
        at = lam[rows]
        upper[rows] = np.where(excess > 0, at, upper[rows])
        lower[rows] = np.where(excess < 0, at, lower[rows])
        newton = at - excess / np.maximum(slope, np.finfo(float).tiny)
        inside = (newton > lower[rows]) & (newton < upper[rows])
        lam[rows] = np.where(inside, newton, (lower[rows] + upper[rows]) / 2)
    return lam
