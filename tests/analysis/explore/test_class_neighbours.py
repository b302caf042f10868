"""The nearest other class against a search over all pairs of rows."""

import numpy as np
import pytest

from appca.analysis.explore.class_neighbours import nearest_classes
from tests.fitted_runs import fitted_run


def some_run(seed: int, n_rows: int = 150, n_classes: int = 4):
    rng = np.random.default_rng(seed)
    active = rng.random((n_rows, 4)).argsort(axis=1) < 2
    scores = np.where(active, rng.standard_normal((n_rows, 4)), 0.0)
    codes = rng.integers(-1, n_classes, n_rows)
    codes[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    fitted = fitted_run(active, scores=scores, components=rng.standard_normal((4, 6)))
    return fitted, codes


def by_all_pairs(fitted, codes, n_classes):
    """Votes (C, C) and the distances behind them, row by row."""
    drawn = fitted.scores @ fitted.components
    votes, distances = np.zeros((n_classes, n_classes), int), {}
    for n in np.flatnonzero(codes >= 0):
        others = [
            (np.linalg.norm(drawn[n] - drawn[m]), m)
            for m in np.flatnonzero((codes >= 0) & (codes != codes[n]))
            if (fitted.active[n] == fitted.active[m]).all()
        ]
        if others:
            away, m = min(others)
            votes[codes[n], codes[m]] += 1
            distances.setdefault((codes[n], codes[m]), []).append(away)
    return votes, distances


def test_the_nearest_other_class_is_that_of_all_pairs_of_rows(seed):
    fitted, codes = some_run(seed)
    votes, distances = by_all_pairs(fitted, codes, 4)
    for c, found in enumerate(nearest_classes(fitted, codes, "abcd")):
        other = int(votes[c].argmax())
        assert found.name == "abcd"[c]
        assert found.other == "abcd"[other]
        assert found.share == pytest.approx(votes[c, other] / votes[c].sum())
        assert found.distance == pytest.approx(np.median(distances[c, other]), rel=1e-6)
        assert found.rows == (codes == c).sum()
        assert found.alone == pytest.approx(1 - votes[c].sum() / found.rows)


def test_classes_that_share_no_subspace_have_no_neighbour():
    active = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    fitted = fitted_run(active)
    for found in nearest_classes(fitted, np.array([0, 0, 1, 1]), ["left", "right"]):
        assert (found.other, found.alone, found.rows) == (None, 1.0, 2)
        assert np.isnan(found.distance)


def test_of_many_rows_a_sample_is_looked_at_the_same_each_time():
    fitted, codes = some_run(0)
    once, twice = (nearest_classes(fitted, codes, "abcd", most=60) for _ in "ab")
    assert once == twice
    assert sum(found.rows for found in once) == 60


def test_without_any_class_there_is_nothing_to_find():
    fitted, _ = some_run(0)
    found = nearest_classes(fitted, np.full(150, -1), ["a"])
    assert [(item.other, item.rows) for item in found] == [(None, 0)]
