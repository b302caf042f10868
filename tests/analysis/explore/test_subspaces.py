"""Subspaces, pairs, colours, principal components and shares of variance, by other routes."""

from itertools import combinations

import numpy as np
import pytest

from appca.analysis import components
from appca.analysis.components import (
    explained_shares,
    fullest,
    opens_in_pair_view,
    pair_counts,
    principal_scores,
    ranked,
    title,
)
from appca.studies.coil20 import rgb
from tests.fitted_runs import fitted_run


def some_active(seed: int, n_rows: int = 400, n_components: int = 7, n_active: int = 3):
    """Rows that use unevenly popular sets of exactly n_active components."""
    rng = np.random.default_rng(seed)
    keys = rng.gumbel(size=(n_rows, n_components)) + np.linspace(2, 0, n_components)
    active = np.zeros((n_rows, n_components), dtype=bool)
    np.put_along_axis(active, np.argsort(-keys, axis=1)[:, :n_active], True, axis=1)
    return active


def test_every_row_lies_in_exactly_the_subspace_of_its_own_components(seed):
    active = some_active(seed)
    found = ranked(active)
    for subspace in found:
        for row in subspace.rows:
            assert tuple(np.flatnonzero(active[row])) == subspace.components
    assert sorted(np.concatenate([s.rows for s in found])) == list(range(len(active)))
    assert len({s.components for s in found}) == len(found)


FAR = np.zeros((3, 20), dtype=int)
FAR[0, [0, 19]] = FAR[1, [8, 19]] = FAR[2, [0, 8]] = 1


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        (
            [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0], [1, 0, 1]],
            [("{1,2}", [2, 3]), ("{1,3}", [1, 4]), ("{2,3}", [0])],
        ),
        (FAR, [("{1,9}", [2]), ("{1,20}", [0]), ("{9,20}", [1])]),  # more than a byte holds
        ([[0, 0], [1, 0], [0, 0]], [("none", [0, 2]), ("{1}", [1])]),
    ],
)
def test_subspaces_come_by_occupancy_and_ties_by_component_numbers(active, expected):
    found = ranked(np.array(active, dtype=bool))
    assert [(title(s.components), s.rows.tolist()) for s in found] == expected


def test_pairs_hold_the_rows_that_use_both_the_fullest_first(seed, monkeypatch):
    monkeypatch.setattr(components, "LEAST_ROWS", 1000)
    active = some_active(seed)
    pairs = fullest(active, 99)
    found = {s.components: s.rows for s in pairs}
    for pair in combinations(range(active.shape[1]), 2):
        expected = [n for n, row in enumerate(active) if row[pair[0]] and row[pair[1]]]
        assert found.get(pair, np.array([])).tolist() == expected
    assert [(s.components, len(s.rows)) for s in pairs] == pair_counts(active)
    assert [s.components for s in fullest(active, 11)] == [s.components for s in pairs[:11]]


@pytest.mark.parametrize(("least", "thin"), [(1, False), (2, False), (3, True)])
def test_pairs_open_where_under_half_of_the_rows_are_in_large_enough_subspaces(
    monkeypatch, least, thin
):
    sets = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1]]
    active = np.array(sets, dtype=bool)  # 4 of 5 rows in subspaces of two
    monkeypatch.setattr(components, "LEAST_ROWS", least)
    assert opens_in_pair_view(active) is thin
    assert [s.components for s in fullest(active, 2)] == (
        [(0, 2), (1, 2)] if thin else [(0, 1, 2), (0, 2, 3)]
    )
    assert not opens_in_pair_view(some_active(2, n_rows=40, n_components=12, n_active=2))


def test_each_channel_ranks_the_score_of_the_rows_own_component():
    scores = np.array([[3.0, 0, 10.0], [0, 1.0, 20.0], [2.0, 30.0, 0]])
    colours = rgb(scores, scores != 0)
    low, middle, high = (round(255 * share) for share in (0.01, 0.5, 0.99))
    assert colours[:, 0].tolist() == [high, low, middle]  # by 3, 1, 2, the first of each row
    assert colours[:, 1].tolist() == [low, middle, high]  # by 10, 20, 30, the second
    assert (colours[:, 2] == 128).all()  # no third
    red = rgb(np.array([[1.0], [1.0], [2.0], [2.0], [2.0]]), np.ones((5, 1), bool))[:, 0]
    assert red[0] == red[1] < red[2] == red[3] == red[4]


@pytest.mark.parametrize("shape", [(60, 8), (8, 60), (50, 2)])
def test_principal_scores_agree_with_a_singular_value_decomposition(shape, seed):
    X = np.random.default_rng(seed).normal(size=shape) * np.linspace(3, 0.1, shape[1])
    U, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    scores, shares = principal_scores(X, 3)
    np.testing.assert_allclose(np.abs(scores), np.abs(U * singular)[:, :3], atol=1e-5 * singular[0])
    np.testing.assert_allclose(shares, (singular**2 / (singular**2).sum())[:3], atol=1e-10)
    for found in (scores, principal_scores(-X)[0]):
        assert (found[np.abs(found).argmax(axis=0), range(found.shape[1])] > 0).all()


@pytest.mark.parametrize("orthonormal", [True, False])
def test_shares_are_what_each_component_takes_off_the_squared_error(seed, orthonormal):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, 3))
    if orthonormal:
        W, _ = np.linalg.qr(W)
    Y = rng.normal(size=(40, 6)) * np.linspace(3, 1, 6)
    mean, noise, latent = Y.mean(axis=0), 0.5, np.full(3, 2.0)
    scores = np.zeros((40, 3))
    for row, used in enumerate(rng.random((40, 3)) < 0.6):  # posterior means given the row's set
        precision = W[:, used].T @ W[:, used] / noise + np.diag(1 / latent[used])
        scores[row, used] = np.linalg.solve(precision, W[:, used].T @ (Y - mean)[row] / noise)

    def squared_error(kept):
        return np.square(Y - mean - (scores * kept) @ W.T).sum()

    fitted = fitted_run(
        scores != 0,
        components=W.T,
        scores=scores,
        error=np.square(Y - mean - scores @ W.T).mean(axis=1),
        mean=mean,
        noise_variance=noise,
        latent_variance=latent,
    )
    total, left = squared_error([0, 0, 0]), squared_error([1, 1, 1])
    expected = [(squared_error(k != np.arange(3)) - left) / total for k in range(3)]
    shares, whole = explained_shares(fitted)
    np.testing.assert_allclose(shares, expected, atol=1e-10)
    assert whole == pytest.approx(1 - left / total, abs=1e-10)
    assert (abs(whole - shares.sum()) < 1e-9) == orthonormal
