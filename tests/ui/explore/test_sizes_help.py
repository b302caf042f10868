"""What K and L mean, in words, numbers and a drawing."""

from itertools import combinations
from math import comb

import pytest

from appca.ui.explore import sizes_help


@pytest.mark.parametrize(("k", "active"), [(4, 2), (5, 1), (6, 6), (7, 3)])
def test_the_number_of_subspaces_is_that_of_the_choices_listed_one_by_one(k, active):
    ways = len(list(combinations(range(k), active)))
    text = sizes_help.in_numbers(k, active, 1000)
    assert f"allow **{ways} subspace" in text
    assert ("all 1,000 rows" in text) == (k == active)
    if ways > 1:
        assert f"about {round(1000 / ways):,} rows each" in text


def test_one_block_is_no_blocks():
    assert 'aria-label="1 block; each' in sizes_help.drawing(1, 1)


def test_more_subspaces_than_rows_are_said_to_stay_empty():
    assert "most stay empty" in sizes_help.in_numbers(20, 10, 1797)


def test_large_numbers_are_given_roughly():
    assert sizes_help.rough(125_970) == "125,970"
    assert sizes_help.rough(comb(40, 20)) == "about 10¹¹"
    assert sizes_help.rough(2_600_000) == "about 3 × 10⁶"
    assert sizes_help.rough(9_700_000) == "about 10⁷"


@pytest.mark.parametrize(("k", "active"), [(4, 2), (3, 3), (12, 5), (100, 50), (2, 1)])
def test_the_rows_of_the_drawing_use_l_blocks_each(k, active):
    shown = min(k, sizes_help.MOST_BLOCKS)
    rows = [sizes_help.choice(k, active, row) for row in range(3)]
    assert all(len(row) == min(active, shown) and max(row) < shown for row in rows)
    drawn = sizes_help.drawing(k, active)
    assert f'aria-label="{k} blocks; each' in drawn
    assert drawn.count("<i>") + drawn.count("<i class") == shown * (1 + min(3, comb(k, active)))
    assert ("…" in drawn) == (k > shown)
