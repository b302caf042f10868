"""Subspaces, pairs and sign cells: every row lands where its own components and signs say."""

from itertools import combinations

import numpy as np
import pytest

from appca.analysis import subspaces
from appca.analysis.subspaces import fullest, opens_in_pair_view, pair_counts, pairs, ranked, title


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


def test_subspaces_come_by_occupancy_and_ties_by_component_numbers():
    active = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0], [1, 0, 1]], dtype=bool)
    assert [(s.components, s.rows.tolist()) for s in ranked(active)] == [
        ((0, 1), [2, 3]),
        ((0, 2), [1, 4]),
        ((1, 2), [0]),
    ]


def test_more_components_than_a_byte_holds_are_told_apart():
    active = np.zeros((3, 20), dtype=bool)
    active[0, [0, 19]] = active[1, [8, 19]] = active[2, [0, 8]] = True
    assert [s.components for s in ranked(active)] == [(0, 8), (0, 19), (8, 19)]


def test_rows_without_any_component_are_a_subspace_of_their_own():
    active = np.array([[0, 0], [1, 0], [0, 0]], dtype=bool)
    assert ranked(active)[0].components == ()
    assert ranked(active)[0].rows.tolist() == [0, 2]


def test_pairs_hold_the_rows_that_use_both(seed):
    active = some_active(seed)
    found = {s.components: s.rows for s in pairs(active)}
    for pair in combinations(range(active.shape[1]), 2):
        expected = [n for n, row in enumerate(active) if row[pair[0]] and row[pair[1]]]
        assert found.get(pair, np.array([])).tolist() == expected
    assert sum(len(rows) for rows in found.values()) == 3 * len(active)  # 3 pairs of 3


def test_the_fullest_pairs_are_the_first_of_all():
    active = some_active(0)
    everything = pairs(active)
    few = pairs(active, 11)
    assert [s.components for s in few] == [s.components for s in everything[:11]]
    assert [len(s.rows) for s in everything] == [count for _, count in pair_counts(active)]


@pytest.mark.parametrize(("least", "thin"), [(1, False), (2, False), (3, True)])
def test_pairs_open_where_under_half_of_the_rows_are_in_large_enough_subspaces(
    monkeypatch, least, thin
):
    sets = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1]]
    active = np.array(sets, dtype=bool)  # 4 of 5 rows in subspaces of two
    monkeypatch.setattr(subspaces, "LEAST_ROWS", least)
    assert opens_in_pair_view(active) is thin
    assert [s.components for s in fullest(active, 2)] == (
        [(0, 2), (1, 2)] if thin else [(0, 1, 2), (0, 2, 3)]
    )


def test_pair_view_opens_when_subspaces_are_thin_but_never_for_two_components():
    thin = some_active(2, n_rows=300, n_components=12, n_active=6)
    assert opens_in_pair_view(thin)
    assert not opens_in_pair_view(some_active(2, n_rows=40, n_components=12, n_active=2))
    assert not opens_in_pair_view(some_active(2, n_rows=400, n_components=3, n_active=3))


def test_titles_count_components_from_one():
    assert title((0, 2)) == "{1,3}"
    assert title(()) == "none"
