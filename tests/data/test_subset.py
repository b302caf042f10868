import numpy as np
import pytest

from appca.data.columns import choose_rows
from appca.data.sources import load
from appca.words import InputError


def column(seed, n=200):
    return np.random.default_rng(seed).integers(5, size=n)


def test_the_first_rows_are_the_first_rows(seed):
    np.testing.assert_array_equal(choose_rows(column(seed), first=7), np.arange(7))


def test_chosen_classes_come_in_file_order(seed):
    rows = choose_rows(column(seed), classes=[3, "1"])
    np.testing.assert_array_equal(rows, np.flatnonzero(np.isin(column(seed), [1, 3])))


def test_so_many_of_each_class_are_the_first_of_each(seed):
    codes = column(seed)
    rows = choose_rows(codes, per_class=10, classes=[0, 4])
    assert (np.diff(rows) > 0).all()
    for digit in (0, 4):
        np.testing.assert_array_equal(
            rows[codes[rows] == digit], np.flatnonzero(codes == digit)[:10]
        )
    assert len(rows) == 20


def test_first_cuts_what_the_other_choices_leave(seed):
    rows = choose_rows(column(seed), first=5, classes=[2])
    np.testing.assert_array_equal(rows, np.flatnonzero(column(seed) == 2)[:5])


def test_classes_of_text_are_chosen_by_name():
    grower = load("wine").labels["cultivar"]
    chosen = grower[choose_rows(grower, per_class=20, classes=["class_2", "class_0"])]
    assert sorted(chosen.tolist()) == ["class_0"] * 20 + ["class_2"] * 20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"classes": [1, 9]}, "Choose classes among 0, 1, 2, 3, 4; got 9"),
        ({"classes": []}, "got none"),
        ({"classes": 3}, r"given as a list, such as \[0, 1\]; got 3"),
        ({"classes": "13"}, "given as a list, .* got '13'"),
        ({"per_class": 1000}, "1000 rows of each class were asked for, but class"),
        ({"per_class": 0}, "rows of each class must be a whole number from 1 on; got 0"),
        ({"first": -3}, "number of rows must be a whole number from 1 on; got -3"),
        ({"first": 2.5}, "got 2.5"),
    ],
)
def test_choices_that_cannot_be_met_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        choose_rows(column(0), **options)
