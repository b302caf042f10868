"""Combining selections, keeping them on disk, and choosing rows by rules."""

from dataclasses import replace

import numpy as np
import pytest

from appca.analysis.fitted import FittedRun
from appca.analysis.groups import (
    RowValues,
    column_of,
    feature_name,
    matching,
    names_of,
)
from appca.analysis.selections import COMBINATIONS, NAME_LENGTH, SelectionStore, token_of
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.words import InputError
from tests.fitted_runs import fitted_run

DIGEST = "ab" * 32


def mask_of(*rows: int, n: int = 10) -> np.ndarray:
    mask = np.zeros(n, dtype=bool)
    mask[list(rows)] = True
    return mask


@pytest.mark.parametrize(
    ("how", "expected"),
    [("replace", {2, 3}), ("union", {1, 2, 3}), ("intersect", {2}), ("minus", {1})],
)
def test_combinations_are_those_of_sets(how, expected):
    found = COMBINATIONS[how][2](mask_of(1, 2), mask_of(2, 3))
    assert set(np.flatnonzero(found)) == expected


def test_named_selections_come_back_from_the_disk(tmp_path):
    """Damaged files, and those of other rows: tests/attacks/test_stored.py."""
    store = SelectionStore(tmp_path)
    store.save(DIGEST, "door", mask_of(1))
    store.save(DIGEST, "  odd\n ones ", mask_of(1))
    store.save(DIGEST, "odd ones", mask_of(1, 3, 9))
    store.save(DIGEST, "All of <b>it</b> /../..", ~mask_of())
    again = SelectionStore(tmp_path).list(DIGEST, 10)
    assert [saved.name for saved in again] == ["All of <b>it</b> /../..", "door", "odd ones"]
    assert set(np.flatnonzero(again[2].mask)) == {1, 3, 9}
    assert SelectionStore(tmp_path).list("cd" * 32, 10) == []
    inside = [path.relative_to(tmp_path).parts for path in tmp_path.rglob("*.npz")]
    assert {parts[:2] for parts in inside} == {("selections", DIGEST)}
    assert not list(tmp_path.rglob(".*")), "no draft"
    for _ in range(2):
        store.delete(DIGEST, "door")
    assert len(store.list(DIGEST, 10)) == 2
    tokens = {token_of(mask) for mask in (mask_of(1, 2), mask_of(1), mask_of(2), mask_of(1, n=11))}
    assert len(tokens) == 4


@pytest.mark.parametrize(
    ("digest", "name", "mask", "words"),
    [
        (DIGEST, " \n ", mask_of(1), "needs a name"),
        (DIGEST, "empty", mask_of(), "no rows to keep as “empty”"),
        ("../../x", "name", mask_of(1), "64 hex digits"),
    ],
)
def test_a_selection_without_name_or_rows_is_not_kept(tmp_path, digest, name, mask, words):
    store = SelectionStore(tmp_path)
    with pytest.raises(InputError, match=words):
        store.save(digest, name, mask)
    assert len(store.save(DIGEST, "n" * 500, mask_of(1))) == NAME_LENGTH
    assert len(list(tmp_path.rglob("*.npz"))) == 1


CLASSES = RowValues("kind", np.array([0, 1, 2, 1]), ("a", "b", "c"))
NUMBERS = RowValues("size", np.array([1.0, 2.0, np.nan, 4.0]))
NOTHING = RowValues("size", np.full(4, np.nan))


@pytest.mark.parametrize(
    ("column", "relation", "value", "rows"),
    [
        (CLASSES, "is", ["b"], {1, 3}),
        (CLASSES, "is", ["a", "c"], {0, 2}),
        (CLASSES, "is not", ["b"], {0, 2}),
        (CLASSES, "is", [], set()),
        (NUMBERS, "above", 1.5, {1, 3}),
        (NUMBERS, "below", 2.0, {0}),
        (NUMBERS, "highest", 40, {3}),
        (NUMBERS, "lowest", 40, {0}),
        (NOTHING, "highest", 99, set()),
    ],
)
def test_a_rule_finds_its_rows(column, relation, value, rows):
    assert set(np.flatnonzero(matching(column, relation, value))) == rows


@pytest.mark.parametrize(
    ("column", "relation", "value", "words"),
    [
        (CLASSES, "above", 1, "“kind” has classes"),
        (NUMBERS, "is", ["a"], "“size” has numbers"),
        (NUMBERS, "highest", 0, "between 0 and 100"),
        (NUMBERS, "lowest", 100, "between 0 and 100"),
    ],
)
def test_rules_that_do_not_suit_the_column_are_refused(column, relation, value, words):
    with pytest.raises(InputError, match=words):
        matching(column, relation, value)


def run_of(n: int) -> FittedRun:
    active = np.zeros((n, 2), dtype=bool)
    active[:, 0], active[0, 1] = True, True
    numbers = np.arange(n, dtype=np.float32)
    return fitted_run(
        active=active,
        scores=active * numbers[:, None],
        error=numbers,
        membership=numbers + 1,
        log_likelihood_rows=-numbers,
    )


def test_every_name_offered_has_its_column():
    wine = load("wine")
    fitted = replace(run_of(wine.n_rows), names=("", "slant"))
    names = names_of(wine, fitted)
    columns = {key: column_of(wine, fitted, key) for key in names}
    assert {key: column.name for key, column in columns.items()} == names
    assert {len(column.values) for column in columns.values()} == {178}
    assert np.array_equal(columns["feature:12"].values, wine.X[:, 12])
    assert columns["subspace"].names == ("{1}", "{1,2}")
    assert columns["subspace"].values.tolist() == [1] + [0] * 177
    assert np.array_equal(columns["likelihood"].values, -np.arange(178, dtype=np.float32))
    assert (names["score:0"], names["score:1"]) == ("score on component 1", "score on 2 · slant")
    assert np.isnan(columns["score:1"].values).tolist() == [False] + [True] * 177, "not used"
    assert not any(key.startswith("feature") for key in names_of(load("digits"), run_of(4)))


def test_labels_are_classes_where_they_are_text_or_few_and_missing_cells_stay_missing():
    X, gaps = np.arange(6.0).reshape(3, 2), np.zeros((3, 2), dtype=bool)
    gaps[1, 0] = True
    labels = {"a:b": np.array(["x", "y", "x"]), "digit": np.array([3, 1, 3])}
    labels |= {"angle": np.arange(3), "weight": np.array([0.5, 0.5, 1])}
    dataset = Dataset("d", X, np.arange(3), labels, missing=gaps)
    columns = {name: column_of(dataset, run_of(3), f"label:{name}") for name in labels}
    assert columns["digit"].names == ("1", "3")
    assert columns["angle"].names is columns["weight"].names is None
    assert matching(columns["a:b"], "is", ["x"]).tolist() == [True, False, True]
    feature = column_of(dataset, run_of(3), "feature:0")
    assert matching(feature, "above", -1).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("shape", "j", "name"),
    [
        (None, 11, "feature 12"),
        ((3, 4), 11, "pixel row 3, column 4"),
        ((2, 2, 3), 11, "pixel row 2, column 2, blue"),
    ],
)
def test_features_without_names_are_called_by_their_place(shape, j, name):
    rows = np.arange(24.0).reshape(2, 12)
    assert feature_name(Dataset("d", rows, list("ab"), image_shape=shape), j) == name
