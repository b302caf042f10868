"""Whitening before a classifier: folds, local whitening, comparison, and what is claimed."""

import numpy as np
import pytest
from scipy.stats import t

from appca.data.dataset import Dataset
from appca.studies.whitening import (
    STUDY,
    Scores,
    classified,
    fold,
    folds,
    gain,
    labelled,
    predict_each,
    whitened_within,
)
from appca.words import InputError

SMALL = {"components": [3, 6], "n_rows": 500, "folds": 4, "folds_done": 2, "epochs": 15}


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture(scope="module")
def outcome():
    return STUDY.run(STUDY.options("quick", **SMALL), silent, 1)


@pytest.fixture(scope="module")
def planted():
    """Two planes among three directions: correlated and shifted differently in each."""
    rng = np.random.default_rng(4)
    n = 4000
    Z = np.zeros((n, 3), dtype=bool)
    Z[: n // 2, :2] = Z[n // 2 :, 1:] = True
    H = np.zeros((n, 3))
    H[: n // 2, :2] = rng.standard_normal((n // 2, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + [1.0, 2.0]
    H[n // 2 :, 1:] = rng.standard_normal((n // 2, 2)) @ [[2.0, -1.0], [0.0, 1.0]] - 3.0
    return Scores(H, Z)


def test_whitening_inside_a_subspace_makes_its_scores_uncorrelated(planted):
    H, H_test = whitened_within(planted, planted)
    np.testing.assert_array_equal(H, H_test)
    for rows, active in ((slice(0, 2000), [0, 1]), (slice(2000, 4000), [1, 2])):
        own = H[rows][:, active]
        np.testing.assert_allclose(own.mean(axis=0), 0.0, atol=0.02)
        np.testing.assert_allclose(np.cov(own.T), np.eye(2), atol=0.02)
        before = planted.H[rows][:, active]
        assert np.corrcoef(own[:, 0], before[:, 0])[0, 1] > 0.8  # turned as little as possible
    assert np.all(H[~planted.Z] == 0)


def test_a_test_row_is_whitened_by_the_training_rows_of_its_subspace_alone(planted):
    other = Scores(
        np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 5.0]]), np.array([[1, 1, 0], [1, 0, 1]]) > 0
    )
    H_test = whitened_within(planted, other)[1]
    np.testing.assert_allclose(H_test[0], 0.0, atol=0.06)  # at the mean of that plane
    np.testing.assert_array_equal(H_test[1], other.H[1])  # of a subspace never seen


def test_one_classifier_for_each_subspace_tells_what_depends_on_the_subspace():
    rng = np.random.default_rng(2)
    Z = np.zeros((800, 3), dtype=bool)
    Z[::2, :2] = Z[1::2, 1:] = True
    H = np.where(Z, rng.standard_normal((800, 3)), 0.0)
    y = np.where(Z[:, 0], H[:, 1] > 0, H[:, 1] < 0).astype(int)  # the sign turns round
    train, test = Scores(H[:600], Z[:600]), Scores(H[600:], Z[600:])
    options = {"hidden": 8, "epochs": 900, "seed": 0}
    worthless = np.full(200, 7)
    each = predict_each(train, y[:600], test, worthless, options)
    assert (each == y[600:]).mean() > 0.95
    strange = Scores(H[600:], ~Z[600:])
    np.testing.assert_array_equal(
        predict_each(train, y[:600], strange, worthless, options), worthless
    )


def test_no_row_is_tested_that_was_learnt_from_and_scales_come_from_training_rows():
    data = labelled("wine", 1000)
    divisions = folds(data, 4, 0)
    tested = np.concatenate([test for _, test in divisions])
    assert sorted(tested) == list(range(len(data.y)))
    assert all(not set(train) & set(test) for train, test in divisions)
    X, _, X_test, _ = fold(data, 4, 0, 1)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-4)
    train, test = divisions[1]
    expected = (data.X[test] - data.X[train].mean(axis=0)) / data.X[train].std(axis=0)
    np.testing.assert_allclose(X_test, expected, rtol=1e-3, atol=1e-4)


def test_rows_without_a_class_are_left_out_and_data_without_classes_refused():
    X = np.arange(12.0).reshape(6, 2)
    plain = Dataset("small", X, np.array(list("uvwxyz")))
    labels = {"kind": np.array(["a", "", "b", "a", "b", ""]), "same": np.array(["a"] * 6)}
    small = Dataset("small", X, plain.ids, labels)
    data = classified(small, 100)
    np.testing.assert_array_equal(data.X, X[[0, 2, 3, 4]])
    assert [data.names[code] for code in data.y] == ["a", "b", "a", "b"]
    for dataset, column, words in (
        (plain, "", "“small” has no labels"),
        (small, "same", "fewer than two classes"),
        (small, "sort", "There is no column of labels “sort” in “small”"),
    ):
        with pytest.raises(InputError, match=words):
            classified(dataset, 100, column)


def test_the_gain_is_paired_and_its_interval_knows_that_folds_share_rows():
    own, other = {0: 0.9, 1: 0.8, 2: 0.85}, {0: 0.88, 1: 0.8, 2: 0.80, 3: 0.1}
    mean, error = gain(own, other, 10)
    apart = np.array([0.02, 0.0, 0.05])
    assert mean == pytest.approx(apart.mean())
    wide = t.ppf(0.975, 2) * np.sqrt(apart.var(ddof=1) * (1 / 3 + 1 / 9))
    assert error == pytest.approx(wide)


@pytest.mark.thorough
def test_every_method_has_an_accuracy_its_spread_and_a_fair_comparison(outcome):
    table = {(r["method"], r["K"], r["L"]): r for r in outcome.tables["whitening"]}
    assert set(table) == {
        ("raw", None, None),
        *(("pca", K, K) for K in (2, 3, 5, 6)),
        *((name, K, K - 1) for name in ("appca", "within", "each") for K in (3, 6)),
        *((name, 2 * L, L) for name in ("half", "pattern", "zeros") for L in (3, 6)),
    }
    folds: dict = {}
    for row in outcome.tables["folds"]:
        folds.setdefault((row["method"], row["K"], row["L"]), []).append(row["accuracy"])
    for key, row in table.items():
        assert row["accuracy"] == pytest.approx(np.mean(folds[key]))
        assert row["accuracy_sd"] == pytest.approx(np.std(folds[key], ddof=1))
    for name, size in (("gain_at_k", 6), ("gain_at_l", 5)):
        apart = np.subtract(folds["appca", 6, 5], folds["pca", size, size])
        assert table["appca", 6, 5][name] == pytest.approx(apart.mean())
    assert table["pattern", 6, 3]["inputs"] == 3 + 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": "nowhere.csv"}, "There is no file or built-in data set “nowhere.csv”"),
        ({"components": [65]}, "components must lie between 2 and 64"),
        ({"folds": 1}, "folds must lie between 2 and"),
        ({"folds_done": 1}, "folds_done must be at least 2"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(changes, words):
    with pytest.raises(InputError, match=words):
        STUDY.run(STUDY.options("quick", **changes), silent, 1)
