"""Columns of new rows against those of a fit."""

import io

import numpy as np
import pytest

from appca.data.columns import Wanted, matched, read_as, wanted_by
from appca.data.dataset import Dataset
from appca.data.readers import read
from appca.data.sources import load
from appca.words import InputError
from tests.sentences import faults_of

NAMES = ("a", "b", "c")


def rows(X, names=NAMES, **more) -> Dataset:
    X = np.asarray(X)
    return Dataset("new", X, np.arange(len(X)), feature_names=names, **more)


@pytest.fixture
def X(seed) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(5, 3))


def test_columns_are_found_by_name_in_any_order_and_others_left_out(X):
    shuffled = rows(np.column_stack([X[:, 2], np.ones(5), X[:, 0], X[:, 1]]), ("c", "x", "a", "b"))
    found = matched(shuffled, Wanted(3, NAMES))
    np.testing.assert_array_equal(found.dataset.X, X)
    assert (found.dataset.feature_names, list(found.dataset.ids)) == (NAMES, list("01234"))
    assert (found.by_name, found.reordered, found.ignored) == (True, True, ("x",))
    found = matched(rows(np.column_stack([X, X[:, 0]]), (*NAMES, "x")), Wanted(3, NAMES))
    assert (found.reordered, found.ignored) == (False, ("x",))
    np.testing.assert_array_equal(found.dataset.X, X)


SQUARE, OBLONG = ({"names": None, "image_shape": shape} for shape in ((2, 2), (3, 4)))


@pytest.mark.parametrize(
    ("X", "how", "wanted", "words"),
    [
        (np.eye(3), {}, Wanted(4, ("a", "b", "hue", "ash")), "lacks 2 .* “hue”, “ash”; add"),
        (np.eye(3), {}, Wanted(9, tuple("abmnopqrs")), "lacks 7 .*, “q”, “r” and 1 more; add"),
        (np.eye(3), {"names": None}, Wanted(4, tuple("abcd")), "has 3 features, .* 4 features;"),
        (np.eye(4), SQUARE, Wanted(9, image_shape=(3, 3)), "have 2 × 2 .* the fit 3 × 3 pixels;"),
        (np.eye(12), OBLONG, Wanted(12, image_shape=(2, 2, 3)), "3 × 4 .* 2 × 2 pixels in colour;"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(X, how, wanted, words):
    with pytest.raises(InputError, match=words) as refused:
        matched(rows(X, **how), wanted)
    assert faults_of(str(refused.value), "“new”") == ""


@pytest.mark.parametrize(
    ("X", "dtype", "expected"),
    [
        (np.array([[0.0, 255.0], [3.0, 4.0]]), np.uint8, np.uint8),
        (np.array([[0.5, 255.0], [3.0, 4.0]]), np.uint8, np.float64),
        (np.array([[0.5, 255.0], [3.0, 4.0]]), np.float32, np.float32),
        (np.array([[1, 2], [3, 4]], np.uint8), np.float64, np.float64),
    ],
)
def test_values_come_in_the_run_s_type_unless_that_would_change_them(X, dtype, expected):
    found = matched(rows(X, None), Wanted(2, dtype=np.dtype(dtype))).dataset.X
    assert found.dtype == expected
    np.testing.assert_array_equal(found, X)


def test_numbers_that_were_read_as_a_label_and_gaps_go_with_their_columns(X):
    label, gaps = np.array([1, 2, 1, 2, 3]), np.zeros((5, 2), dtype=bool)
    gaps[1, 1] = True
    new = rows(X[:, [2, 0]], ("c", "a"), labels={"b": label, "d": label}, missing=gaps)
    found = matched(new, Wanted(3, NAMES)).dataset
    np.testing.assert_array_equal(found.X, np.column_stack([X[:, 0], label, X[:, 2]]))
    assert list(found.labels) == ["d"]
    assert np.argwhere(found.missing).tolist() == [[1, 0]]


def test_columns_without_names_and_pixels_are_taken_in_order(X):
    found = matched(rows(X, None), Wanted(3, NAMES))
    assert not found.by_name
    assert found.dataset.feature_names == NAMES
    np.testing.assert_array_equal(found.dataset.X, X)
    new = rows(np.eye(4), ("p1", "p2", "p3", "p4"), image_shape=(2, 2))
    found = matched(new, Wanted(4, ("x0", "x1", "x2", "x3"), (2, 2), image_range=(0.0, 16.0)))
    assert not found.by_name
    assert (found.dataset.image_range, found.dataset.image_shape) == ((0.0, 16.0), (2, 2))
    digits, wine = load("digits"), load("wine")
    assert wanted_by(digits)[2:] == ((8, 8), digits.X.dtype, digits.image_range)
    assert matched(wine, wanted_by(wine)).dataset.digest == wine.digest


def test_a_new_file_is_read_by_the_columns_of_the_run():
    def opened(text: str):
        return lambda roles: read(
            "new.csv", io.BytesIO(text.encode()), **({"roles": roles} if roles else {})
        )

    # "id" counts up and would be the rows' name; "y" holds few whole numbers and would be a label.
    table = "id,y,a,extra\n1,0,0.5,\n2,1,0.25,7\n3,0,0.125,8\n"
    found = read_as(opened(table), Wanted(3, ("y", "a", "id")))
    np.testing.assert_array_equal(found.dataset.X, [[0, 0.5, 1], [1, 0.25, 2], [0, 0.125, 3]])
    assert found.ignored == ("extra",)  # its gap does not matter
    for cells, key, value in (
        ("x,2,3", "not_numbers", {"a": {"x": 1}}),
        ("1,,3", "missing", {"b": 1}),
    ):
        with pytest.raises(InputError, match="1 missing cell") as refused:
            read_as(opened(f"a,b,c\n{cells}\n4,5,6\n7,8,9\n"), Wanted(3, NAMES))
        assert refused.value.report[key] == value
