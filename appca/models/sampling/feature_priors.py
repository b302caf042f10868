"""Log prior densities of the indicator matrix Z (N, K), and what a new row may expect.

The buffet is the Indian buffet process conditioned on at most K used columns. For orthonormal
columns the K positions are labelled; for free columns the pairs (z_k, w_k) form an
unordered set, so that there is no factor for positions.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtr

from appca.models.sampling.conditionals import harmonic

Indicators = NDArray[np.bool_]
LEAST_WEIGHT = 1e-12  # of a column that no row uses, shown because something must be


def log_buffet(Z: Indicators, alpha: float, labelled: bool) -> float:
    """Give log P(Z | alpha) of the buffet cut at K = Z.shape[1] columns.

    P(Z) = alpha^K+ e^(-alpha H_N) prod (m_k - 1)! (N - m_k)! / N! / Q(alpha), times
    (K - K+)! / K! for `labelled` positions.
    """
    N, K = Z.shape
    m = Z.sum(axis=0)
    m = m[m > 0]
    H = harmonic(N)
    total = len(m) * np.log(alpha) - alpha * H - np.log(pdtr(K, alpha * H))
    total += (gammaln(m) + gammaln(N - m + 1) - gammaln(N + 1)).sum()
    if labelled:
        total += gammaln(K - len(m) + 1) - gammaln(K + 1)
    return float(total)


def log_beta_bernoulli(Z: Indicators, alpha: float) -> float:
    """Give log P(Z | alpha) with pi_k ~ Beta(alpha / K, 1) integrated out."""
    N, K = Z.shape
    m, a = Z.sum(axis=0), alpha / K
    each = np.log(a) + gammaln(m + a) + gammaln(N - m + 1) - gammaln(N + 1 + a)
    return float(each.sum())


def of_used(weights: NDArray[np.float64], Z: Indicators) -> NDArray[np.float64]:
    """Weights (K,) of the columns that a row uses, zero for others; the first stands for none."""
    used = Z.any(axis=0)
    kept = np.where(used, weights, 0.0)
    if not used.any():
        kept[0] = LEAST_WEIGHT
    return kept


def expected_buffet(Z: Indicators, alpha: float) -> NDArray[np.float64]:
    """Give the probability m_k / (N + 1) that a new row uses column k."""
    del alpha  # it only matters for columns of the row's own
    return np.asarray(Z.sum(axis=0) / (len(Z) + 1))


def expected_beta_bernoulli(Z: Indicators, alpha: float) -> NDArray[np.float64]:
    """Give the probability (m_k + alpha/K) / (N + 1 + alpha/K) that a new row uses column k."""
    a = alpha / Z.shape[1]
    return np.asarray((Z.sum(axis=0) + a) / (len(Z) + 1 + a))
