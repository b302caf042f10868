"""Whitening before a classifier, EM against Gibbs, and work shared out over processes."""

import contextlib
import os
import time

import numpy as np
import pytest
from scipy.stats import t

from appca.data.dataset import Dataset
from appca.studies import speed
from appca.studies.fitting import work
from appca.studies.speed import WAYS, draw, estimator, times
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


def silent(_stage: str, _share: float) -> None:
    pass


def test_what_cannot_be_done_is_said_in_one_sentence():
    for changes, words in (
        ({"data": "nowhere.csv"}, "There is no file or built-in data set “nowhere.csv”"),
        ({"components": [65]}, "components must lie between 2 and 64"),
        ({"folds": 1}, "folds must lie between 2 and"),
        ({"folds_done": 1}, "folds_done must be at least 2"),
    ):
        with pytest.raises(InputError, match=words):
            STUDY.run(STUDY.options("quick", **changes), silent, 1)


SMALL = {"n_rows": 80, "n_features": 10, "n_components": 4, "n_active": 2, "seeds": 1}


@pytest.fixture(scope="module")
def outcome():
    options = speed.STUDY.options("quick", **SMALL, passes=6, sweeps=8)
    return speed.STUDY.run(options, silent, 1)


def _course(*pairs):
    return [{"seconds": float(seconds), "error": value} for seconds, value in pairs]


def test_times_are_taken_at_the_level_that_both_reach_or_at_the_end_of_em():
    em, gibbs = _course((1, 10.0), (2, 5.0), (4, 1.0)), _course((1, 10.0), (40, 5.04), (80, 5.0))
    assert times(em, gibbs, "error") == (2.0, 40.0, True)  # 5 is the worse end; 5.05 is near enough
    assert times(gibbs, em, "error") == (40.0, 2.0, True)
    assert times(em, gibbs, "error", to_end=True) == (4.0, 80.0, False)  # a lower bound
    arrives = _course((1, 10.0), (40, 1.05), (80, 1.0))
    assert times(em, arrives, "error", to_end=True) == (4.0, 40.0, True)
    better = _course((1, 10.0), (20, 0.5))
    assert times(em, better, "error", to_end=True) == (4.0, 20.0, True)  # EM's end counts
    higher = [[row | {"likelihood": -row["error"]} for row in rows] for rows in (em, gibbs)]
    assert times(*higher, "likelihood") == (2.0, 40.0, True)  # a higher likelihood is better


def test_data_are_of_the_model_and_the_same_for_all_ways():
    options = speed.STUDY.options("quick", n_rows=2000, noise_sd=0.1)
    Y, fresh = draw("aPPCA", 1, options)
    assert Y.shape == fresh.shape == (2000, 50)
    values = np.linalg.eigvalsh(np.cov(Y.T))[::-1]
    np.testing.assert_allclose(values[:8], 4 * 4 / 8, rtol=0.2)  # variance 4, half of the time
    np.testing.assert_allclose(values[8:], 0.01, rtol=0.45)
    assert not np.array_equal(Y, draw("aPPCA", 2, options)[0])
    for way in WAYS.values():
        assert estimator(way, 5, options).init == "pca"


def test_every_em_is_compared_with_every_gibbs_of_its_model(outcome):
    table = outcome.tables["speed"]
    assert len(table) == 2 * (1 * 3 + 2 * 1)
    for row in table:
        assert row["ratio_least"] <= row["ratio"] * (1 + 1e-9)
        assert row["ratio"] == pytest.approx(row["seconds_gibbs"] / row["seconds_em"])
        assert row["to_end_reached"] in (0, 1)
    ladder = outcome.tables["ladder"]
    for name in WAYS:
        own = [row["seconds"] for row in ladder if row["way"] == name]
        assert own == sorted(own)  # a longer fit passes through the shorter one
        assert own[0] > 0
    figure = speed.STUDY.figures(outcome)["courses"]
    assert len(figure.data) == 2 * len(WAYS)


PIECES = "tests.jobs.echo"
SPECS = [{"x": x} for x in range(5)]


def test_results_come_in_order_progress_grows_and_a_dead_process_is_one_sentence():
    for processes in (1, 2):
        told = []
        rows = work(
            f"{PIECES}:square", SPECS, lambda *what, told=told: told.append(what), processes
        )
        assert [row["square"] for row in rows] == [0, 1, 4, 9, 16]
        assert (os.getpid() in {row["process"] for row in rows}) == (processes == 1)
        shares = [share for _, share in told]
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] <= 1
        assert any(stage.startswith("squaring") for stage, _ in told)
        with pytest.raises(ValueError, match="x must be small; got"):
            work(f"{PIECES}:refuse", SPECS, silent, processes)
    with pytest.raises(InputError, match="ended before it was done; start it again"):
        work(f"{PIECES}:die", SPECS, silent, 2)


def test_stopping_ends_the_processes_at_once_in_the_middle_of_their_work():
    class Stopped(Exception):
        pass

    seen: set[int] = set()
    stopped = []

    def report(stage: str, _share: float) -> None:
        if stage.startswith("process"):
            seen.add(int(stage.split()[1]))
            stopped.append(time.monotonic())
            raise Stopped

    with contextlib.suppress(Stopped):
        work(f"{PIECES}:hang", SPECS[:2], report, 2)
    assert len(stopped) == 1
    assert time.monotonic() - stopped[0] < 2.0
    for process in seen:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
