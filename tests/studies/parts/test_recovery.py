"""Matching and errors against every permutation and against closed forms."""

import itertools

import numpy as np
import pytest

from appca.models.sampling.query_draws import match
from appca.studies.experiments.table1 import errors, recovery


def by_trying_all(truth: np.ndarray, found: np.ndarray) -> float:
    """Largest mean |cos| over all one-to-one pairings of K true with at least K found columns."""
    unit = [W / np.linalg.norm(W, axis=1, keepdims=True) for W in (truth, found)]
    cosine = np.abs(unit[0] @ unit[1].T)
    places = range(len(truth))
    return max(
        np.mean([cosine[i, p[i]] for i in places])
        for p in itertools.permutations(range(len(found)), len(truth))
    )


@pytest.mark.parametrize(("K", "M"), [(1, 1), (2, 4), (4, 4), (3, 5)])
def test_matching_is_the_best_of_all_permutations(seed, K, M):
    rng = np.random.default_rng(seed)
    truth, found = rng.standard_normal((K, 6)), rng.standard_normal((M, 6))
    left, right, _, cosine = match(truth, found)
    assert sorted(left) == list(range(K))
    assert len(set(right)) == K
    assert cosine.mean() == pytest.approx(by_trying_all(truth, found), abs=1e-12)


def test_order_sign_and_length_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    W, Z = rng.standard_normal((4, 7)), rng.random((50, 4)) < 0.5
    order = rng.permutation(4)
    found = (W * np.array([-2.0, 0.1, 3.0, -1.0])[:, None])[order]
    told = recovery(W, Z, found, Z[:, order])
    assert told.cosine_mean == pytest.approx(1.0)
    assert told.cosine_least == pytest.approx(1.0)
    assert told.z_right == 1.0


def test_wrong_indicators_surplus_factors_and_missing_ones_are_counted():
    W = np.eye(3)
    Z = np.zeros((10, 3), dtype=bool)
    Z[:, :2] = True
    flipped = Z.copy()
    flipped[0, 0] = False
    assert recovery(W, Z, W, flipped).z_right == pytest.approx(1 - 1 / 30)
    surplus = np.column_stack([Z, np.ones(10, dtype=bool)])
    wide = np.vstack([np.eye(3, 5), np.eye(5)[4]])
    told = recovery(np.eye(3, 5), Z, wide, surplus)
    assert told.z_right == pytest.approx(1 - 10 / 40)
    only = recovery(W, Z, W[:1], Z[:, :1])
    assert (only.cosine_mean, only.cosine_least) == (0.5, 0.0)
    assert only.z_right == pytest.approx(1 - 10 / 30)


def test_factors_that_no_or_hardly_any_row_uses_are_not_judged():
    W, Z = np.eye(3), np.zeros((1000, 3), dtype=bool)
    Z[:, 0] = True
    Z[:9, 1] = True  # 0.9% of the rows; the third is used by none
    found = np.array([[1.0, 0, 0], [0, 1, 1]])
    told = recovery(W, Z, found, Z[:, :2])
    assert told.cosine_least == 1.0
    assert told.z_right == 1.0


def test_errors_are_means_over_all_entries():
    Y = np.array([[1.0, -2.0], [0.0, 5.0]])
    assert errors(Y, np.zeros((2, 2))) == (2.0, 7.5)
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.standard_normal((1000, 400))
    told = errors(noise, np.zeros_like(noise))
    assert told.absolute == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=5e-3)
    assert told.squared == pytest.approx(0.01, rel=1e-2)
