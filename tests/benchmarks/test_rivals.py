"""Measures of the benchmark of rivals, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.rivals import naming


def test_naming_is_the_best_area_under_the_curve_of_each_axis() -> None:
    """Areas one class and axis at a time, with ties as zeros of unused axes make them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 200)
    scores = rng.normal(size=(200, 5)) * (rng.random((200, 5)) < 0.6)
    scores[:, 1] += labels == 2
    seen = (scores, scores != 0)
    best = [
        max(abs(2 * roc_auc_score(labels == c, by[:, k]) - 1) for c in range(4) for by in seen)
        for k in range(5)
    ]
    assert naming(scores, labels) == pytest.approx(np.mean(best))
    assert naming(np.eye(4)[labels], labels) == pytest.approx(1.0)
