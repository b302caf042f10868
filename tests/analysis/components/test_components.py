"""What a component does, against counting by hand."""

from dataclasses import replace

import numpy as np

from appca.analysis.components import common, extremes, name_of, own_name, rarely_used
from tests.fitted_runs import fitted_run

ACTIVE = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=bool)
SCORES = np.where(ACTIVE, [[3, 1, 9], [-2, 9, 1], [0.5, 2, 9], [9, 3, 2], [-7, 9, 9]], 0.0)
RUN = fitted_run(ACTIVE, scores=SCORES)


def test_components_that_hardly_any_row_uses_are_named_by_their_numbers():
    active = np.zeros((2001, 3), dtype=bool)
    active[:, 0] = active[:2, 1] = active[:3, 2] = True
    assert rarely_used(fitted_run(active)) == [2]


def test_the_ends_hold_users_only_the_most_extreme_first():
    found = extremes(RUN, 0, 2)
    assert found.low.tolist() == [4, 1]
    assert found.high.tolist() == [0, 2]


def test_no_row_is_at_both_ends():
    found = extremes(RUN, 1, 12)
    assert found.low.tolist() == [0]
    assert found.high.tolist() == [3, 2]
    alone = extremes(fitted_run(ACTIVE[:1], scores=SCORES[:1]), 0, 5)
    assert (alone.low.tolist(), alone.high.tolist()) == ([], [0])
    nobody = extremes(fitted_run(ACTIVE[4:], scores=SCORES[4:]), 2, 5)
    assert (len(nobody.low), len(nobody.high)) == (0, 0)


def test_classes_come_by_their_share():
    codes = np.array([2, 0, 2, 2, 1, 0])
    assert common(["a", "b", "c"], codes, 2) == [("c", 0.5), ("a", 2 / 6)]
    assert common(["a", "b", "c"], codes[:1]) == [("c", 1.0)]


def test_a_name_keeps_the_number_that_subspaces_are_named_by():
    named = replace(RUN, names=("", "slant", ""))
    assert [name_of(named, k) for k in range(2)] == ["component 1", "2 · slant"]
    assert name_of(RUN, 2) == "component 3"
    assert (own_name(named, 1), own_name(RUN, 1)) == ("slant", "")
