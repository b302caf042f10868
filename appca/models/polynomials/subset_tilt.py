"""Tilted-Bernoulli view of L-subsets: independent inclusions whose sum is L on average.

With lam such that ``sum_k sigmoid(a_k + lam) = L``, a subset is K independent coin flips given that
their sum is L. `tilt` gives the scale on which tables of any size hold probabilities; `tilted` is
the approximation that puts a normal density in place of the exact condition.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


def tilted(logits: Floats, n_active: int) -> tuple[Floats, Floats, Floats]:
    """Approximate log e_L (N,) and inclusion r (N, K), with the variance V (N,) behind them.

    ``r_k = sigmoid(a_k + lam)``, ``V = sum r (1 - r)`` and
    ``log e_L ~ sum log(1 + exp(a + lam)) - lam L - 1/2 log(2 pi V)``.

    Parameters
    ----------
    logits : float64 array of shape (N, K)
    n_active : int
        0 < L < K.
    """
    lam = tilt(logits, n_active)
    x = logits + lam[:, None]
    r = expit(x)
    variance = (r * expit(-x)).sum(axis=1)
    with np.errstate(divide="ignore"):  # V = 0 is for the caller to reject
        spread = 0.5 * np.log(2 * np.pi * variance)
    log_e = np.logaddexp(0.0, x).sum(axis=1) - lam * n_active - spread
    return log_e, r, variance


def tilt(logits: Floats, n_active: int) -> Floats:
    """Solve ``sum_k sigmoid(a_k + lam) = L`` for each row, by Newton steps kept inside a bracket.

    Parameters
    ----------
    logits : float64 array of shape (N, K)
    n_active : int
        0 < L < K, else there is no root.

    Returns
    -------
    array of shape (N,)
        lam, for which the sum is within 1e-10 L of L, or the two ends of the bracket meet.
    """
    share = math.log(n_active / (logits.shape[1] - n_active))
    lower, upper = share - logits.max(axis=1), share - logits.min(axis=1)
    n_rest = logits.shape[1] - n_active
    gap = np.partition(logits, (n_rest - 1, n_rest), axis=1)[:, n_rest - 1 : n_rest + 1]
    lam: Floats = np.clip(-gap.mean(axis=1), lower, upper)
    rows = np.arange(len(logits))
    for _ in range(100):  # bisection alone settles any float64 in fewer
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
