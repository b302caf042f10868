"""k-means inside each subspace finds what was planted, and ranks it by the classes it joins."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from appca.analysis.components import Subspace, ranked
from appca.analysis.rows import SimilarRows, joined_pairs, mixtures, projected, similar

CENTRES = np.array([[6.0, 6.0], [-6.0, 6.0], [6.0, -6.0], [-6.0, -6.0]])


def planted(seed: int, n_rows: int = 240):
    """Two subspaces of three components with four far clusters each; who is in which."""
    rng = np.random.default_rng(seed)
    active = np.zeros((n_rows, 3), bool)
    pairs = np.array([[0, 1], [1, 2]])
    space, cluster = rng.integers(2, size=n_rows), rng.permutation(np.arange(n_rows) % 4)
    np.put_along_axis(active, pairs[space], True, axis=1)
    scores = np.zeros((n_rows, 3), np.float32)
    values = CENTRES[cluster] + 0.3 * rng.standard_normal((n_rows, 2))
    np.put_along_axis(scores, pairs[space], values.astype(np.float32), axis=1)
    components = np.linalg.qr(rng.standard_normal((5, 3)))[0].T
    return scores, active, components, 4 * space + cluster


def test_planted_clusters_are_recovered_nearest_rows_first_and_with_their_spread(seed):
    scores, active, components, truth = planted(seed)
    spaces = ranked(active)
    groups = similar(scores, components, spaces, len(truth) // 8)
    assert len(groups) == 8
    labels = np.full(len(truth), -1)
    for number, group in enumerate(groups):
        assert (labels[group.rows] == -1).all()
        labels[group.rows] = number
        assert active[np.ix_(group.rows, group.components)].all()
        # The projections in data space, rather than the coordinates used inside.
        W, columns = components[list(group.components)], list(group.components)
        whole = next(space.rows for space in spaces if space.components == group.components)
        own, every = (scores[rows][:, columns] @ W for rows in (group.rows, whole))
        away = np.linalg.norm(own - own.mean(axis=0), axis=1)
        assert (np.diff(away) > -1e-4).all()
        outer = np.linalg.norm(every - every.mean(axis=0), axis=1)
        expected = np.sqrt((away**2).mean() / (outer**2).mean())
        assert group.spread == pytest.approx(expected, rel=1e-5)
    assert adjusted_rand_score(truth, labels) == 1.0
    again = similar(scores, components, spaces, len(truth) // 8)
    for group, same in zip(groups, again, strict=True):
        np.testing.assert_array_equal(group.rows, same.rows)
    smaller = [group.components for group in similar(scores, components, spaces, 20)]
    for space in spaces:
        assert smaller.count(space.components) == round(len(space.rows) / 20)


def test_distances_are_those_of_the_projections_also_of_leaning_factors(seed):
    rng = np.random.default_rng(seed)
    scores, components = rng.standard_normal((12, 4)), rng.standard_normal((4, 7))
    components[3] = 2 * components[1]  # parallel ones, too
    subspace = Subspace((1, 2, 3), np.array([2, 3, 5, 7, 11]))
    points = projected(scores, components, subspace)
    drawn = scores[subspace.rows][:, [1, 2, 3]] @ components[[1, 2, 3]]
    expected = np.linalg.norm(drawn[:, None] - drawn[None], axis=2)
    np.testing.assert_allclose(
        np.linalg.norm(points[:, None] - points[None], axis=2), expected, atol=1e-7
    )


def test_equal_rows_are_one_group_and_thin_subspaces_none():
    scores = np.zeros((9, 2), np.float32)
    scores[:6] = [1.5, -0.3]
    spaces = [
        Subspace((0, 1), np.arange(6)),
        Subspace((0,), np.arange(6, 9)),
        Subspace((), np.arange(9)),
    ]
    (group,) = similar(scores, np.eye(2), spaces, 2)
    assert sorted(group.rows) == list(range(6))
    assert group.spread == 0.0


def test_a_mixture_counts_classes_and_names_those_that_are_no_strays():
    group = SimilarRows((0,), np.arange(20), 0.1)
    codes = np.array([1] * 10 + [0] * 7 + [2] + [-1] * 2)
    ((_, found),) = mixtures([group], codes, 4)
    assert found.counts.tolist() == [7, 10, 1, 0]
    assert found.joined == (1, 0)
    shares = np.array([7, 10, 1]) / 18
    assert found.effective == pytest.approx(np.prod(shares**-shares))
    assert mixtures([group], np.full(20, -1), 4)[0][1].joined == ()
    assert mixtures([group], np.repeat([0, 3], 10), 4)[0][1].effective == pytest.approx(2.0)


def test_groups_that_join_classes_come_first_and_the_tighter_among_equals():
    groups = [
        SimilarRows((0,), np.arange(4) + 4 * i, spread) for i, spread in enumerate([0.1, 0.5, 0.2])
    ]
    codes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1])
    mixed = mixtures(groups, codes, 2)
    assert [group.spread for group, _ in mixed] == [0.2, 0.5, 0.1]
    assert joined_pairs([classes for _, classes in mixed]) == [((0, 1), 2)]
