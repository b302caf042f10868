"""The maximum of the likelihood of PPCA in closed form (Tipping & Bishop 1999)."""

import numpy as np

from appca.models.orthonormal.em import SubspaceState
from appca.models.rows.observations import Observations
from appca.models.rows.spectrum import Principal


def closed_form(rows: Observations, leading: Principal, floor: float) -> SubspaceState:
    """Maximum of the likelihood given the leading eigenvectors (their eqs. 7 and 8, R = I).

    sigma2 = mean of all D - q discarded eigenvalues, zero ones included; tau2_k = lambda_k - sigma2
    """
    n, q = rows.mass, len(leading.values)
    total, spare = rows.total / n, rows.n_features - q
    noise = max((total - leading.values.sum()) / spare if spare else 0.0, floor)
    return SubspaceState(leading.V, np.zeros(q), np.maximum(leading.values - noise, floor), noise)
