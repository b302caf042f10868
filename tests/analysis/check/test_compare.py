"""Components of two fits paired, and the rows that changed theirs, against counting by hand."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from appca.analysis.compare import ComponentPair, matched, moves


def uses(rng: np.random.Generator, n: int, k: int, active: int) -> np.ndarray:
    return np.argsort(rng.random((n, k)), axis=1) < active


def test_a_permuted_copy_with_turned_signs_is_recovered_exactly(seed):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((6, 30)) * rng.uniform(0.1, 10, (6, 1))
    order, signs = rng.permutation(6), rng.choice([-1.0, 1.0], 6)
    copy = (W * signs[:, None])[order]  # its component j is order[j] of the original
    found = matched(W, copy)
    assert [pair.first for pair in found] == list(range(6))
    for pair in found:
        assert order[pair.second] == pair.first
        assert pair.cosine == pytest.approx(1.0, abs=1e-12)
    active = uses(rng, 50, 6, 3)
    result = moves(active, active[:, order], found)
    assert not result.moved.any()
    assert (result.overlap, result.rand) == (1.0, pytest.approx(1.0))


def test_the_pairs_have_the_largest_sum_of_cosines_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    for k, other in ((4, 5), (5, 4), (4, 4)):
        A, B = rng.standard_normal((k, 6)), rng.standard_normal((other, 6))
        cosines = A @ B.T / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)
        wide = np.abs(cosines if k <= other else cosines.T)
        best = max(
            sum(wide[i, j] for i, j in enumerate(order))
            for order in permutations(range(wide.shape[1]), wide.shape[0])
        )
        found = matched(A, B, least=0.0)
        assert sum(pair.cosine for pair in found) == pytest.approx(best)
        for pair in found:
            assert pair.cosine == pytest.approx(abs(cosines[pair.first, pair.second]))
        assert [pair.first for pair in found] == sorted({pair.first for pair in found})
        assert len(found) == len({pair.second for pair in found}) == min(k, other)


def test_components_too_far_apart_or_unused_have_no_counterpart():
    first = np.eye(4)[:3]
    second = np.array([[0.0, -1, 0.1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    found = matched(first, second)
    assert found == [ComponentPair(1, 0, pytest.approx(1 / np.hypot(1, 0.1)))]


def test_moved_rows_are_those_whose_matched_sets_differ(seed):
    rng = np.random.default_rng(seed)
    first, second = uses(rng, 200, 4, 2), uses(rng, 200, 3, 2)
    W = np.eye(5)
    # Components 0, 1, 2 of the first fit are 2, 0 and 1 of the second; its fourth has none.
    found = matched(W[:4], W[[1, 2, 0]])
    assert [(p.first, p.second) for p in found] == [(0, 2), (1, 0), (2, 1)]
    names = {2: 0, 0: 1, 1: 2}
    before = [frozenset(np.flatnonzero(row).tolist()) for row in first]
    after = [frozenset(names[j] for j in np.flatnonzero(row).tolist()) for row in second]
    expected = [a != b for a, b in zip(before, after, strict=True)]
    result = moves(first, second, found)
    assert result.moved.tolist() == expected
    overlap = [len(a & b) / len(a | b) for a, b in zip(before, after, strict=True)]
    assert result.overlap == pytest.approx(np.mean(overlap))
    assert result.rand == pytest.approx(
        adjusted_rand_score(list(map(str, map(sorted, before))), list(map(str, map(sorted, after))))
    )


def test_fits_of_one_subspace_each_agree_and_an_extra_component_moves_all_rows():
    W = np.eye(3)
    every = np.ones((10, 2), dtype=bool)
    result = moves(every, every, matched(W[:2], W[:2]))
    assert (result.moved.sum(), result.rand) == (0, 1.0)
    larger = moves(every, np.ones((10, 3), dtype=bool), matched(W[:2], W))
    assert larger.moved.all()
    assert larger.overlap == pytest.approx(2 / 3)


def test_other_rows_or_features_are_refused():
    W = np.eye(3)
    with pytest.raises(ValueError, match="got 3 and 2 features"):
        matched(W, W[:, :2])
    every = np.ones((10, 3), dtype=bool)
    with pytest.raises(ValueError, match="got 10 and 9 rows"):
        moves(every, every[1:], matched(W, W))
