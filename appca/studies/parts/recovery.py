"""How well an estimate tells the true factors: matching, direction of columns, indicators."""

from typing import NamedTuple

import numpy as np

LEAST_SHARE = 0.01  # of the rows must use a true factor before its direction is judged


class Recovery(NamedTuple):
    """An estimate against the truth."""

    cosine_mean: float  # over the true factors that at least `LEAST_SHARE` of the rows use
    cosine_least: float
    z_right: float  # share of all indicators


class Errors(NamedTuple):
    """How far a reconstruction is from the data, per entry."""

    absolute: float
    squared: float


def errors(Y: np.ndarray, R: np.ndarray) -> Errors:
    """Mean absolute and mean squared difference of two matrices."""
    difference = Y - R
    return Errors(float(np.abs(difference).mean()), float(np.square(difference).mean()))


def recovery(truth: np.ndarray, Z: np.ndarray, W: np.ndarray, Z_found: np.ndarray) -> Recovery:
    """Compare found components (M, D) and indicators (N, M) with the true ones, (K, D) and (N, K).

    A true factor that no row uses cannot be found and is left out of the matching; one that has no
    partner counts with |cos| 0 and as unused by every row. Found factors without a partner count as
    mistakes wherever a row uses them.
    """
    from appca.models.sampling.query_draws import match

    used = np.flatnonzero(Z.any(axis=0))
    left, right, _, paired = match(truth[used], W)
    cosine = np.zeros(Z.shape[1])
    cosine[used[left]] = paired
    judged = Z.mean(axis=0) >= LEAST_SHARE
    width = max(Z.shape[1], Z_found.shape[1])
    wrong = np.logical_xor(Z[:, used[left]], Z_found[:, right]).sum()
    wrong += np.delete(Z, used[left], axis=1).sum() + np.delete(Z_found, right, axis=1).sum()
    return Recovery(
        float(cosine[judged].mean()) if judged.any() else float("nan"),
        float(cosine[judged].min()) if judged.any() else float("nan"),
        1.0 - float(wrong) / (len(Z) * width),
    )
