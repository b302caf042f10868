"""The nearest other class against a search over all pairs of rows."""

import numpy as np
import pytest

from appca.analysis.map_quality import ClassNeighbour, nearest_classes
from tests.fitted_runs import fitted_run


def nearest_in_run(fitted, codes, names) -> list[ClassNeighbour]:
    return nearest_classes(fitted.components, fitted.scores, fitted.active, codes, names)


def some_run(seed: int, n_rows: int = 150, n_classes: int = 4):
    rng = np.random.default_rng(seed)
    active = rng.random((n_rows, 4)).argsort(axis=1) < 2
    scores = np.where(active, rng.standard_normal((n_rows, 4)), 0.0)
    codes = rng.integers(-1, n_classes, n_rows)
    codes[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    fitted = fitted_run(active, scores=scores, components=rng.standard_normal((4, 6)))
    return fitted, codes


def by_all_pairs(fitted, codes, n_classes):
    """Votes (C, C), row by row."""
    drawn = fitted.scores @ fitted.components
    votes = np.zeros((n_classes, n_classes), int)
    for n in np.flatnonzero(codes >= 0):
        others = [
            (np.linalg.norm(drawn[n] - drawn[m]), m)
            for m in np.flatnonzero((codes >= 0) & (codes != codes[n]))
            if (fitted.active[n] == fitted.active[m]).all()
        ]
        if others:
            m = min(others)[1]
            votes[codes[n], codes[m]] += 1
    return votes


def test_the_nearest_other_class_is_that_of_all_pairs_of_rows(seed):
    fitted, codes = some_run(seed)
    votes = by_all_pairs(fitted, codes, 4)
    for c, found in enumerate(nearest_in_run(fitted, codes, "abcd")):
        other = int(votes[c].argmax())
        assert found.name == "abcd"[c]
        assert found.other == "abcd"[other]
        assert found.share == pytest.approx(votes[c, other] / votes[c].sum())


def test_classes_that_share_no_subspace_have_no_neighbour():
    active = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    fitted = fitted_run(active)
    for found in nearest_classes(
        fitted.components, fitted.scores, fitted.active, np.array([0, 0, 1, 1]), ["left", "right"]
    ):
        assert (found.other, found.share) == (None, 0.0)


def test_without_any_class_there_is_nothing_to_find():
    fitted, _ = some_run(0)
    found = nearest_classes(
        fitted.components, fitted.scores, fitted.active, np.full(150, -1), ["a"]
    )
    assert [(item.other, item.share) for item in found] == [(None, 0.0)]
