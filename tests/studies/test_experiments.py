"""Tests of the experiments on tiny data: tables, whitening, EM versus Gibbs, a recording."""

import contextlib
import itertools
import os
import sys
import time
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import bernoulli, gamma, multivariate_normal, norm
from scipy.stats import t as student

from appca.analysis import brain
from appca.data import brain as recordings
from appca.data import sources
from appca.data.brain import Event, cleaned, upright
from appca.data.dataset import Dataset
from appca.data.sources import DESIGNS, draw_synthetic, load
from appca.data.store import DatasetStore
from appca.studies import coil20, digits, speed, synthetic, table1, whitening
from appca.studies.brain import STUDY as BRAIN
from appca.studies.brain import circular_p, phase_randomised, separate
from appca.studies.digits import Digits, Networks
from appca.studies.fitting import PanelFit, work
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
from appca.words import InputError, MissingExtraError

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
    rng, n = np.random.default_rng(4), 4000
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
    rng, Z = np.random.default_rng(2), np.zeros((800, 3), dtype=bool)
    Z[::2, :2] = Z[1::2, 1:] = True
    H = np.where(Z, rng.standard_normal((800, 3)), 0.0)
    y = np.where(Z[:, 0], H[:, 1] > 0, H[:, 1] < 0).astype(int)  # the sign turns round
    train, test = Scores(H[:600], Z[:600]), Scores(H[600:], Z[600:])
    options, worthless = {"hidden": 8, "epochs": 900, "seed": 0}, np.full(200, 7)
    assert (predict_each(train, y[:600], test, worthless, options) == y[600:]).mean() > 0.95
    strange = Scores(H[600:], ~Z[600:])
    np.testing.assert_array_equal(
        predict_each(train, y[:600], strange, worthless, options), worthless
    )


def test_no_row_is_tested_that_was_learnt_from_and_scales_come_from_training_rows():
    data = labelled("wine", 1000)
    divisions = folds(data, 4, 0)
    assert sorted(np.concatenate([test for _, test in divisions])) == list(range(len(data.y)))
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
    wide = student.ppf(0.975, 2) * np.sqrt(apart.var(ddof=1) * (1 / 3 + 1 / 9))
    assert error == pytest.approx(wide)


FEW = {"n_rows": 80, "n_features": 10, "n_components": 4, "n_active": 2, "seeds": 1}


@pytest.fixture(scope="module")
def courses():
    return speed.STUDY.run(speed.STUDY.options("quick", **FEW, passes=6, sweeps=8), silent, 1)


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
    assert len(speed.STUDY.figures(courses)["courses"].data) == 2 * len(WAYS)


PIECES, SPECS = "tests.jobs.echo", [{"x": x} for x in range(5)]


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


def test_the_three_planes_are_recovered_and_pca_loses_more():
    study = synthetic.PLANES
    found = study.run(study.options(), silent)
    rows = found.tables["planes"]
    assert sorted(row["plane"] for row in rows) == ["1 and 2", "1 and 3", "2 and 3"]
    assert all(row["angle"] < 2 for row in rows)
    assert sum(row["of_the_plane"] for row in rows) > 0.85 * 900
    assert [claim.holds for claim in found.claims] == ["yes", "yes"]
    figures = study.figures(found)
    assert len(figures["projections"].layout.annotations) == 4
    assert len(figures["space"].data) == 6  # points and planes


def test_projections_lose_nothing_of_rows_in_their_subspaces():
    Y = np.array([[2.0, 0, 0], [-2.0, 0, 0], [0, 3.0, 0], [0, -3.0, 0]])
    active = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    for order, lost in ((active, 0), (active[::-1], 1)):
        fitted = PanelFit(Y[:, :2], order, np.eye(3)[:2])
        assert synthetic.residual(Y, fitted) == pytest.approx(lost)


def test_width_is_compared_over_images_and_over_objects(seed):
    rng, codes = np.random.default_rng(seed), np.repeat(np.arange(6), 20)
    score = codes + 0.1 * rng.standard_normal(120)
    fitted = PanelFit(np.stack([score, -score], 1), np.stack([codes < 6, codes < 2], 1), np.eye(2))
    first, second = coil20.widths(fitted, 0.1 * codes + 0.3, codes)
    assert first["correlation_of_objects"] > 0.99
    assert (first["rows"], first["objects"]) == (120, 6)
    assert second["correlation"] < -0.9
    assert second["correlation_of_objects"] is None  # two objects are too few
    assert first["width_low_half"] < first["width_high_half"]


@pytest.fixture
def strokes() -> tuple[Digits, PanelFit]:
    """Forty thick strokes in one subspace, forty thin and leaning ones in the other."""
    images = np.zeros((80, 20, 20), np.uint8)
    for row in range(80):
        for y in range(4, 16):
            x = 9 + row % 2 + (0 if row < 40 else round((10 - y) * 0.6))
            images[row, y, x : x + (5 if row < 40 else 2)] = 255
    active = np.zeros((80, 3), bool)
    active[:40, :2] = active[40:, 1:] = True
    scores = np.random.default_rng(0).normal(size=(80, 3)) * active
    drawn = Digits(images, ["0", "1"], np.arange(80) // 2 % 2, scores)
    return drawn, PanelFit(scores, active, np.eye(3))


def test_ink_and_slant_are_measured_in_the_subspaces_they_were_put_in(strokes):
    rows = {(row["measure"], row["subspace"]): row for row in digits.effects(*strokes)}
    thick, thin = rows["ink, pixels", "{1,2}"], rows["ink, pixels", "{2,3}"]
    assert (thick["mean"], thin["mean"], thick["rows"]) == (60, 24, 40)
    assert thick["effect"] == -thin["effect"] > 5
    assert thick["above_median"] == 1
    leaning = rows["slant, degrees", "{2,3}"]
    assert leaning["mean"] == pytest.approx(np.degrees(np.arctan(0.6)), abs=2)
    assert leaning["effect_within_classes"] > 5


def test_both_experiments_share_one_autoencoder_and_draw_their_results(strokes, monkeypatch):
    drawn, fitted = strokes
    trained = []

    def train(X, dimensions, epochs, seed, _report):
        assert (X.max(), dimensions, epochs, seed) == (1, 10, 30, 0)
        trained.append(1)

    class Opened:
        n_rows, X, labels = 80, drawn.images.reshape(80, -1), {"digit": drawn.codes}

        def images(self, rows):
            return drawn.images[rows]

    changes = {"_LAST": {}, "fit": lambda *_arguments: fitted, "train": train}
    changes |= {"encode": lambda _networks, _X: drawn.Y, "load": lambda *_names, **_more: Opened()}
    changes["images_of"] = lambda _name, rows: drawn.images[rows]
    for name, value in changes.items():
        monkeypatch.setattr(digits, name, value)
    options = digits.STUDY.options("quick")
    first, second = (study.run(options, silent) for study in (digits.STUDY, digits.STROKES))
    assert len(trained) == 1
    assert len(digits.STUDY.figures(first)["digits"].layout.annotations) == 3
    figures = digits.STROKES.figures(second)
    assert len(figures["members"].layout.images) == 2
    assert len(figures["spread"].data) == 6
    assert [claim.holds for claim in second.claims] == ["yes", "yes"]


def test_digits_that_share_differ_from_chance(seed):
    rng, codes = np.random.default_rng(seed), np.repeat(np.arange(5), 60)
    active = np.zeros((300, 20), bool)
    for row, code in enumerate(codes):
        kin = 3 if code == 0 else code  # 1 and 7 use the same factors
        active[row, [4 * kin, 4 * kin + 1]] = True
        active[row, rng.choice(20, 3, replace=False)] = True
    found = digits.shared_factors(active, codes, digits.ODD)
    rows = {(row["digit"], row["other"]): row for row in found.tables["sharing"]}
    assert rows["1", "7"]["deviation"] > 10
    assert rows["5", "9"]["deviation"] < 3
    assert [claim.holds for claim in found.claims[1:]] == ["yes", "no"]
    assert "rank 1 of 10 pairs" in found.claims[1].measured
    shares = [row["share"] for row in found.tables["popularity"]]
    assert shares == sorted(shares, reverse=True)
    assert set(digits.SHARING.figures(found)) == {"grid", "popularity"}


@pytest.fixture(scope="module")
def small_digits() -> np.ndarray:
    return (load("digits").X[:900] / 16).astype(np.float32)


def test_the_loss_is_the_evidence_lower_bound(monkeypatch):
    from jax.tree_util import tree_map

    monkeypatch.setattr(digits, "HIDDEN", 7)
    rng = np.random.default_rng(3)
    X, noise = rng.random((4, 5)), rng.standard_normal((4, 2))
    start = digits.start(rng, X, 2)
    nets = tree_map(lambda v: v + 0.05 * rng.standard_normal(v.shape), start)
    value = digits.negative_bound(np, nets, X, noise)
    assert value == pytest.approx(bound(nets, X, noise), rel=1e-9)


def bound(nets: Networks, X: np.ndarray, noise: np.ndarray) -> float:
    """Minus log p(x | c) - log p(c) + log q(c | x), integrated over q where that is exact."""
    (A, a), (C, c), (S, s), (B, b), (P, p0) = nets[1:]
    hidden = np.maximum((X - nets.shift) @ A + a, 0)
    mean, sd = hidden @ C + c, np.exp((hidden @ S + s) / 2)
    hidden = np.maximum((mean + sd * noise) @ B + b, 0)
    p = 1 / (1 + np.exp(-(hidden @ P + p0)))
    fit = X * bernoulli.logpmf(1, p) + (1 - X) * bernoulli.logpmf(0, p)
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)  # E over q of log q - log p(c)
    draws = mean[..., None] + sd[..., None] * nodes
    gap = norm.logpdf(draws, mean[..., None], sd[..., None]) - norm.logpdf(draws)
    divergence = gap @ masses / masses.sum()
    return float((divergence.sum(axis=1) - fit.sum(axis=1)).mean())


def test_without_jax_one_sentence_says_what_to_install(small_digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    words = r"needs the package (jax|optax).*pip install .appca\[vae\]"
    with pytest.raises(MissingExtraError, match=words):
        digits.train(small_digits, 4, 1, 0, silent)


EVENTS = tuple(Event(10.0 + 30.0 * i, 16.0) for i in range(7))
T, STEP = 120, 2.0


def test_the_stimulus_is_the_integral_of_the_response_over_the_events():
    def answered(seconds: np.ndarray) -> np.ndarray:
        """Integral of the response, from the distribution functions of its two gammas."""
        return (gamma.cdf(seconds, 6) - gamma.cdf(seconds, 16) / 6) / (1 - 1 / 6)

    times = STEP * np.arange(T) + 0.1  # the tenth that begins with a volume counts for it
    known = sum(answered(times - one.onset) - answered(times - one.end) for one in EVENTS)
    raw = brain.stimulus(EVENTS, T, STEP)
    np.testing.assert_allclose(raw, known, atol=1e-3)
    np.testing.assert_allclose(brain.stimulus(EVENTS, T, STEP, shift=6.0)[3:], raw[:-3], atol=1e-12)


def test_the_t_map_is_that_of_whitened_least_squares_and_finds_what_follows(seed):
    """By the precision matrix of each voxel instead of by differences."""
    rng, raw = np.random.default_rng(seed), brain.stimulus(EVENTS, T, STEP)
    series, memory = rng.standard_normal((304, T)), np.zeros(304)
    memory[:4] = 0.0, 0.3, 0.6, -0.4
    for t in range(1, T):
        series[:, t] += memory * series[:, t - 1]
    series[4:34] += 3 * brain.unit(raw) * np.sqrt(T)
    found = brain.reference(series, raw)
    X = np.column_stack([raw, np.vander(np.linspace(-1, 1, T), 4)])
    for y, t in zip(series[:8], found.t, strict=False):
        left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        rho = np.mean(left[1:] * left[:-1]) / np.mean(left**2)
        whitener = np.eye(T) - np.diag(np.full(T - 1, np.trunc(100 * rho) / 100), -1)
        precision = whitener.T @ whitener
        inverse = np.linalg.inv(X.T @ precision @ X)
        weights = inverse @ X.T @ precision @ y
        left = y - X @ weights
        wanted = weights[0] / np.sqrt(inverse[0, 0] * (left @ precision @ left) / (T - 5))
        np.testing.assert_allclose(t, wanted, rtol=1e-4)
    assert found.active[4:34].all()
    assert found.active[34:].mean() < 0.02
    normal = NormalDist().inv_cdf(1 - 0.05 / 304)
    assert normal < found.threshold < normal + 0.2  # 115 degrees of freedom


def test_a_stimulus_that_nothing_follows_is_no_rarer_than_its_shifts(seed):
    rng = np.random.default_rng(seed)
    raw = brain.stimulus([Event(float(at), 4.0) for at in rng.integers(0, 230, 9)], T, STEP)
    own = circular_p(brain.unit(raw)[None], raw)
    assert own <= 3 / T
    turned = brain.unit(np.roll(raw, 41))[None]
    assert circular_p(turned, raw) > own
    assert circular_p(turned, np.roll(raw, 41)) == own


def test_the_place_of_a_map_is_counted_by_hand():
    active = np.array([1, 1, 0, 0, 0, 0], dtype=bool)
    found = brain.place(np.array([3.0, 0.0, 2.0, -4.0, 0.0, 0.0]), active)
    wanted = {"dice": 0.5, "energy_inside": 9 / 29, "on": 0.5, "on_inside": 0.5}
    assert found == pytest.approx(wanted)
    assert brain.place(np.zeros(6), np.zeros(6, dtype=bool)) == dict.fromkeys(wanted, 0.0)


@pytest.mark.parametrize("n_volumes", [60, 61])
def test_random_phases_keep_spectra_and_lose_what_is_shared(n_volumes):
    rng, shared = np.random.default_rng(3), np.sin(np.arange(n_volumes) * 2 * np.pi * 6 / n_volumes)
    series = cleaned(shared + 0.5 * rng.standard_normal((400, n_volumes)))
    turned = phase_randomised(rng, series)
    power = [np.square(np.abs(np.fft.rfft(one, axis=1))).mean(axis=0) for one in (series, turned)]
    peak = np.argmax(power[0])
    assert np.argmax(power[1]) == peak == 6
    assert power[1][peak] == pytest.approx(power[0][peak], rel=0.1)
    largest = [np.linalg.eigvalsh(one.T @ one / 400)[-1] for one in (series, turned)]
    assert largest[1] < 0.7 * largest[0]
    assert turned.std() == pytest.approx(1.0, abs=1e-3)


@pytest.fixture(scope="module")
def found():
    return BRAIN.run(BRAIN.options("quick"), silent, 1)


@pytest.fixture(scope="module")
def small() -> recordings.Recording:
    """Every tenth voxel of the made-up brain."""
    whole = recordings.load("made-up")
    places, mask = np.argwhere(whole.mask)[::10], np.zeros_like(whole.mask)
    mask[tuple(places.T)] = True
    return whole._replace(series=whole.series[::10], signal=whole.signal[::10], mask=mask)


def tiny(**changes) -> dict:
    return BRAIN.options("quick", components=[4], active=[2], **changes)


def test_the_component_follows_the_stimulus_and_its_map_is_where_that_was_put(found):
    table, values = found.tables["fmri"], found.arrays["map_appca"]
    assert [row["data"] for row in table] == ["recording"] * 3 + ["phases randomised"] * 3
    appca, small, large = table[:3]
    assert appca["r"] > 0.7
    assert appca["p"] < 0.05 < table[3]["p"]
    for row in (appca, small, large):
        assert abs(row["r_shifted"]) < row["r"] / 2, "not one six seconds later"
    region = sources.brain().labels["region"]
    driven = np.isin(region, ["visual cortex", "face area", "place area"])
    assert driven[np.argsort(-values)[:60]].mean() > 0.9
    assert driven[found.arrays["map_t"] > found.arrays["threshold"]].mean() > 0.9
    assert (appca["on"] < 0.7, appca["on_inside"] > 0.9, small["on"]) == (True, True, 1.0)
    for own, other in ((appca, small), (table[3], table[4])):
        assert own["rmse"] < other["rmse"], "forced down by choice"


def test_without_events_nothing_is_said_of_a_stimulus(small):
    other = separate(small, tiny(events="10+16 70+16"), silent)  # instead of the recording's
    assert other.tables["recording"][0]["events"] == 2
    found = separate(small._replace(events=()), tiny(), silent)
    assert [claim.holds for claim in found.claims[2:]] == ["not tested"] * 2
    assert found.tables["fmri"][0]["r"] is None
    assert "map_t" not in found.arrays
    assert len(BRAIN.figures(found)) == 3


def test_settings_that_do_not_suit_are_one_sentence(small):
    for changes, words in (
        ({"components": [3], "active": [3]}, "L from 1 to K"),
        ({"components": [400], "active": [3]}, "K must be at most 116"),
        ({"components": [4, 5], "active": [2]}, "lists of equal length"),
        ({"events": "10+16 240+16"}, "1 of 2 events are outside"),
        ({"events": "ten"}, "written as onset"),
    ):
        with pytest.raises(InputError, match=words):
            separate(small, tiny() | changes, silent)


def test_volumes_are_turned_upright_as_nibabel_does():
    from nibabel import Nifti1Image, as_closest_canonical

    volume = np.random.default_rng(0).random((3, 4, 5))
    for affine in (
        np.diag([-2.0, 3.0, 4.0, 1.0]),
        np.array([[0, 0.2, -3, 0], [2, 0, 0.1, 0], [0, -2, 0.3, 0], [0, 0, 0, 1.0]]),
    ):
        expected = as_closest_canonical(Nifti1Image(volume, affine)).get_fdata()
        np.testing.assert_allclose(upright(volume, affine), expected)
