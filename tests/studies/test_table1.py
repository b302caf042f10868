"""Table 1, figure 4 and the laboratory on tiny data, and the paper's printed numbers."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from appca.data.sources import DESIGNS, draw_synthetic
from appca.data.store import DatasetStore
from appca.studies import table1
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
from appca.words import InputError

CHOICES = {"n_rows": 60, "n_features": 8, "n_components": 4, "n_active": 2}
CHOICES |= {"noise_sd": 0.2, "seed": 3}
TINY = {"n_rows": 120, "components": [4], "seeds": 1, "n_features": 12, "burn_in": 5, "n_draws": 5}
SMALL = {"n_rows": 100, "n_components": 4, "n_features": 10, "burn_in": 3, "n_draws": 3}
K, L, D, SD = 4, 2, 6, 0.3


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return STUDY.run(STUDY.options("quick", **TINY), silent, 1)


def cells(outcome, design: str) -> dict[str, dict]:
    return {row["method"]: row for row in outcome.tables["table1"] if row["design"] == design}


def test_no_method_beats_the_oracle_and_factor_analysis_with_k_reconstructs_best(outcome):
    for design in DESIGNS:
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
