"""What a browser needs to rebuild rows while a hand moves their scores: an average and patterns.

A reconstruction is the average plus the sum of score times pattern, in units of the data.
"""

from typing import NamedTuple

import numpy as np

from appca.analysis.explore.subspaces import pair_counts
from appca.analysis.fitted import FittedRun


class Steering(NamedTuple):
    """A linear map from scores to some columns of the data."""

    average: np.ndarray  # (m,) in units of the data
    patterns: np.ndarray  # (K, m)
    reach: np.ndarray  # (K,) the largest score, of either sign, that a row has
    columns: np.ndarray  # (m,) which columns of the data they are


def steering(fitted: FittedRun, most_columns: int | None = None) -> Steering:
    """Return what rows are rebuilt from.

    Of more than `most_columns`, those are kept that the components move most, for their spread.
    """
    before = fitted.preprocessing
    average = before.inverse_transform(fitted.mean[None].astype(np.float64))[0]
    patterns = before.directions(fitted.components.T.astype(np.float64)).T
    reach = np.abs(fitted.scores).max(axis=0, initial=0.0).astype(np.float64)
    columns = np.arange(patterns.shape[1])
    if most_columns is not None and len(columns) > most_columns:
        unit = np.abs(before.scale * before.divide)  # a step of each column that counts as one
        unit = np.where(unit > 0, unit, 1.0)
        moved = np.abs(patterns * fitted.scale[:, None] / unit).max(axis=0)
        columns = np.sort(np.argsort(-moved, kind="stable")[:most_columns])
    return Steering(average[columns], patterns[:, columns], reach, columns)


def fullest_pair(active: np.ndarray) -> tuple[int, int]:
    """Return the two components that most rows use together; the most used ones without any."""
    if counts := pair_counts(active):
        return counts[0][0]
    order = np.argsort(-active.sum(axis=0), kind="stable")
    return int(order[0]), int(order[min(1, len(order) - 1)])
