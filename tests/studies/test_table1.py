"""Table 1 and figure 4 on tiny data, whitening before a classifier, EM against Gibbs."""

import contextlib
import itertools
import os
import time

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, t

from appca.data.dataset import Dataset
from appca.data.sources import DESIGNS, draw_synthetic
from appca.data.store import DatasetStore
from appca.studies import speed, table1, whitening
from appca.studies.fitting import work
from appca.studies.speed import WAYS, draw, estimator, times
from appca.studies.study import Outcome
from appca.studies.synthetic import dataset_of, drawn
from appca.studies.table1 import (
    METHODS,
    POPULARITY,
    REFERENCES,
    STUDY,
    oracle,
    posterior_mean,
    recovery,
)
from appca.studies.whitening import (
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

CHOICES = {"n_rows": 60, "n_features": 8, "n_components": 4, "n_active": 2}
CHOICES |= {"noise_sd": 0.2, "seed": 3}
TINY = {"n_rows": 120, "components": [4], "seeds": 1, "n_features": 12, "burn_in": 5, "n_draws": 5}
SOME = ["sparse", "subspace", "balanced"]  # of the designs; what each is: the oracle, below
SMALL = {"n_rows": 100, "n_components": 4, "n_features": 10, "burn_in": 3, "n_draws": 3}
K, L, D, SD = 4, 2, 6, 0.3


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return STUDY.run(STUDY.options("quick", **TINY, designs=SOME), silent, 1)


def cells(outcome, design: str) -> dict[str, dict]:
    return {row["method"]: row for row in outcome.tables["table1"] if row["design"] == design}


def test_no_method_beats_the_oracle_and_factor_analysis_with_k_reconstructs_best(outcome):
    for design in SOME:
        rows = cells(outcome, design)
        assert (set(METHODS) | set(REFERENCES)) - set(rows) <= {"afa_most"}
        for key in set(METHODS) & set(rows):
            assert rows[key]["heldout"] < rows["oracle_s"]["heldout"] + 0.1
            assert rows[key]["z_right"] <= 1.0
        assert rows["oracle_z"]["mse"] < rows["noise"]["mse"]  # the factors absorb some noise
        others = ("fa_l", "fsfa", "afa", "afa_paper", "afa_gibbs")
        # Its scores are shrunk means and not least squares, hence the last percents.
        assert rows["fa_k"]["mse"] < 1.03 * min(rows[key]["mse"] for key in others)


def test_adaptive_factor_analysis_recovers_the_balanced_design(outcome):
    rows = cells(outcome, "balanced")
    assert rows["afa"]["mse"] < 1.2 * rows["oracle_s"]["mse"]
    assert rows["afa"]["cosine"] > 0.99
    assert rows["afa"]["per_row"] == rows["afa"]["L"] == 2
    assert rows["noise"]["mae"] == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.05)
    shown = STUDY.figures(outcome)["reconstruction"].data
    assert rows["afa"]["mse"] in np.concatenate([trace.x for trace in shown])


def test_mean_and_spread_are_taken_over_the_data_sets(outcome):
    first = next(row for row in outcome.tables["cells"] if row["method"] == "afa")
    second = {**first, "seed": 1, "mse": first["mse"] + 0.5, "heldout": None}
    (row,) = table1.summary([first, second])
    assert row["mse"] == pytest.approx(first["mse"] + 0.25)
    assert row["mse_sd"] == pytest.approx(0.5 / np.sqrt(2))
    assert (row["heldout"], row["heldout_sd"], row["seeds"]) == (first["heldout"], None, 2)


def test_options_and_data_without_meaning_are_refused_in_a_sentence():
    for changes, words in (
        ({"depth": 3}, "There is no option “depth” of table1; there are “designs”"),
        ({"n_rows": True}, "n_rows must be a whole number"),
        ({"noise_sd": -1.0}, "noise_sd must be a number above 0"),
        ({"burn_in": -1}, "burn_in must be a whole number from 0"),
        ({"components": []}, "components must be a list"),
        ({"designs": [3]}, "designs must be a text"),
        ({"designs": ["odd"]}, "There is no design “odd”; there are “sparse”, “dense”"),
        ({"size": "huge"}, "There is no size “huge” of table1; there are “quick”"),
    ):
        with pytest.raises(InputError, match=words):
            STUDY.run(STUDY.options(**({"size": "quick"} | TINY | changes)), silent, 1)
    for changes, words in (
        ({"data": "nowhere.csv"}, "There is no file or built-in data set “nowhere.csv”"),
        ({"components": [65]}, "components must lie between 2 and 64"),
        ({"folds": 1}, "folds must lie between 2 and"),
        ({"folds_done": 1}, "folds_done must be at least 2"),
    ):
        with pytest.raises(InputError, match=words):
            whitening.STUDY.run(whitening.STUDY.options("quick", **changes), silent, 1)
    for changes, words in (
        ({"n_active": 5}, "n_active must be between 1 and n_components=4; got 5"),
        ({"n_rows": 20_000, "n_features": 1000}, "Rows times features must be at most"),
    ):
        with pytest.raises(InputError, match=words):
            drawn("dense", CHOICES | changes)


def log_prior(design: str, Z: np.ndarray, pattern: np.ndarray) -> float:
    if design == "balanced":
        return -np.log(6) if pattern.sum() == L else -np.inf
    if design in {"subspace", "single"}:
        return np.log((pattern == Z).all(axis=1).mean())
    pi = np.clip(Z.mean(axis=0), 1e-6, 1 - 1e-6)
    return float(np.log(np.where(pattern, pi, 1 - pi)).sum())


@pytest.mark.parametrize("design", DESIGNS)
def test_the_oracle_sums_over_every_set_the_design_allows(seed, design):
    rng = np.random.default_rng(seed)
    sizes = {"n_rows": 40, "n_features": D, "n_components": K, "n_active": L}
    truth = draw_synthetic(rng, design, **sizes, noise_sd=SD)
    patterns = np.array(list(itertools.product([False, True], repeat=K)))
    with np.errstate(divide="ignore"):
        joint = np.stack(
            [
                log_prior(design, truth.Z, pattern)
                + multivariate_normal.logpdf(
                    truth.Y, cov=(truth.W * pattern) @ truth.W.T + SD**2 * np.eye(D)
                )
                for pattern in patterns
            ]
        )
    answer = oracle(truth.Y, truth, design, truth.Z)
    np.testing.assert_allclose(answer.log_likelihood, logsumexp(joint, axis=0), rtol=1e-8)
    np.testing.assert_array_equal(answer.Z, patterns[joint.argmax(axis=0)])
    assert answer.method.startswith("exact")


def test_the_posterior_mean_is_ridge_regression_on_the_factors_of_the_row(seed):
    rng = np.random.default_rng(seed)
    sizes = {"n_rows": 30, "n_features": D, "n_components": K, "n_active": L}
    truth = draw_synthetic(rng, "dense", **sizes, noise_sd=SD)
    H = posterior_mean(truth.Y, truth.W, truth.Z, SD)
    for y, z, h in zip(truth.Y, truth.Z, H, strict=True):
        W = truth.W[:, z]
        covariance = W @ W.T + SD**2 * np.eye(D)
        np.testing.assert_allclose(h[z], W.T @ np.linalg.solve(covariance, y), atol=1e-9)
        assert not h[~z].any()


def test_recovery_counts_wrong_indicators_surplus_and_missing_factors(seed):
    rng = np.random.default_rng(seed)
    W, Z = rng.standard_normal((4, 7)), rng.random((50, 4)) < 0.5
    order = rng.permutation(4)  # order, sign and length do not matter
    estimate = (W * np.array([-2.0, 0.1, 3.0, -1.0])[:, None])[order]
    assert list(recovery(W, Z, estimate, Z[:, order]).values()) == pytest.approx([1.0] * 3)
    W, Z = np.eye(3), np.zeros((10, 3), dtype=bool)
    Z[:, :2] = True
    flipped = Z.copy()
    flipped[0, 0] = False
    assert recovery(W, Z, W, flipped)["z_right"] == pytest.approx(1 - 1 / 30)
    surplus = np.column_stack([Z, np.ones(10, dtype=bool)])
    wide = np.vstack([np.eye(3, 5), np.eye(5)[4]])
    assert recovery(np.eye(3, 5), Z, wide, surplus)["z_right"] == pytest.approx(1 - 10 / 40)
    only = recovery(W, Z, W[:1], Z[:, :1])
    assert list(only.values()) == pytest.approx([0.5, 0.0, 1 - 10 / 30])
    Z = np.zeros((1000, 3), dtype=bool)
    Z[:, 0] = True
    Z[:9, 1] = True  # 0.9% of the rows; the third is used by none
    judged = recovery(W, Z, np.array([[1.0, 0, 0], [0, 1, 1]]), Z[:, :2])
    assert (judged["cosine_least"], judged["z_right"]) == (1.0, 1.0)


def test_popularity_has_the_truth_and_the_models_for_both_designs():
    outcome = POPULARITY.run(POPULARITY.options("quick", **SMALL), silent, 1)
    curves: dict = {}
    for row in outcome.tables["popularity"]:
        curves.setdefault((row["design"], row["method"]), []).append(row["share"])
    assert all(curve == sorted(curve, reverse=True) for curve in curves.values())
    for design in ("sparse", "dense"):
        assert {(design, name) for name in ("truth", "isfa", "isfa_k", "afa")} <= set(curves)
    one, other = [0.9, 0.5], [0.8, 0.5, 0.2]  # a missing factor is unused
    assert table1.distance(one, other)["distance"] == pytest.approx(0.1)
    Z = np.array([[1, 0, 0, 1], [1, 0, 1, 1], [1, 0, 0, 0], [1, 0, 0, 1]], dtype=bool)
    assert table1.ordered(Z) == [1.0, 0.75, 0.25]
    assert (table1.active_for(Z), table1.active_for(Z & False)) == (2, 1)


def test_the_truth_is_on_record_with_the_data(tmp_path):
    truth, dataset = drawn("subspace", CHOICES), dataset_of("subspace", CHOICES)
    store = DatasetStore(tmp_path)
    provenance = store.get(store.put(dataset)).provenance
    np.testing.assert_array_equal(dataset.X, truth.Y)
    np.testing.assert_array_equal(provenance["truth"]["W"], truth.W)
    bits = [[bit == "1" for bit in row] for row in provenance["truth"]["Z"]]
    np.testing.assert_array_equal(bits, truth.Z)
    assert provenance["options"] == {"design": "subspace", **CHOICES}
    assert set(dataset.labels["true set"]) == {"1,2", "3,4"}
    assert dataset_of("subspace", {**CHOICES, "seed": 4}).digest != dataset.digest
    many = {**CHOICES, "n_rows": 300, "n_components": 12, "n_active": 6}
    assert dataset_of("balanced", many).labels == {}


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


FEW = {"n_rows": 80, "n_features": 10, "n_components": 4, "n_active": 2, "seeds": 1}


@pytest.fixture(scope="module")
def courses():
    options = speed.STUDY.options("quick", **FEW, passes=6, sweeps=8)
    return speed.STUDY.run(options, silent, 1)


def _course(*pairs):
    return [{"seconds": float(seconds), "error": value} for seconds, value in pairs]


def test_times_are_taken_at_the_level_that_both_reach_or_at_the_end_of_em():
    em, gibbs = _course((1, 10.0), (2, 5.0), (4, 1.0)), _course((1, 10.0), (40, 5.04), (80, 5.0))
    assert times(em, gibbs, "error") == (2.0, 40.0, True)  # 5 is the worse end; 5.05 is near enough
    assert times(gibbs, em, "error") == (40.0, 2.0, True)
    small = [[row | {"error": 1e-3 * row["error"]} for row in rows] for rows in (em, gibbs)]
    assert times(*small, "error", to_end=True) == (4.0, 80.0, False)
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


def test_every_em_is_compared_with_every_gibbs_of_its_model(courses):
    table = courses.tables["speed"]
    assert len(table) == 2 * (1 * 3 + 2 * 1)
    assert not {row["em"] for row in table} & {row["gibbs"] for row in table}
    for row in table:
        assert row["ratio_least"] <= row["ratio"] * (1 + 1e-9)
        assert row["ratio"] == pytest.approx(row["seconds_gibbs"] / row["seconds_em"])
        assert row["to_end_reached"] in (0, 1)
    ladder = courses.tables["ladder"]
    for name in WAYS:
        own = [row["seconds"] for row in ladder if row["way"] == name]
        assert own == sorted(own)  # a longer fit passes through the shorter one
        assert own[0] > 0
    figure = speed.STUDY.figures(courses)["courses"]
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
    assert time.monotonic() - stopped[0] < 300.0, "the work takes 600 s"
    for process in seen:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
