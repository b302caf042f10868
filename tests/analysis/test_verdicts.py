"""Tests of verdicts about fits, rows and columns on simulated data with known structure."""

import io

import numpy as np
import pandas as pd
import pytest

from appca.analysis import diagnostics
from appca.analysis.association import GAPS, SORTED, associated, measures_of_rows, proposed_names
from appca.analysis.choose import BELOW_NOISE, Stability, StabilityConfig
from appca.analysis.new_rows import odd_in_features, standing_out
from appca.analysis.rows import Distances, distances
from appca.data.dataset import Dataset
from appca.data.readers import read
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from tests.fitted_runs import fitted_run
from tests.models.synthetic import planted


def fitted_to(X, K, L, **more):
    dataset = Dataset("planted", X, np.arange(len(X)).astype(str))
    parameters = {"n_components": K, "n_active": L, "init": "quartimax"} | more
    config = RunConfig(dataset.digest, {"centre": True}, "aPPCA", parameters)
    return dataset, config, fit_run(dataset, config)


def failing(X, K, L, home=None):
    """Return the labels of the checks of a fit to X, with a home of halves, that are not good."""
    dataset, config, (fitted, info, *_) = fitted_to(X, K, L)
    checks = diagnostics.of_climb(fitted.log_likelihoods, info.stop_reason)
    checks += diagnostics.of_components(fitted, dataset.ids)
    if home:
        halves = StabilityConfig(dataset.digest, {"centre": True}, "aPPCA", config.parameters, 1)
        halves.complete(dataset, home)
        checks += diagnostics.of_halves(halves.outcome(home))
    checks += diagnostics.of_rows(fitted, len(dataset.repeated_rows))
    checks.sort(key=lambda check: -diagnostics.LEVELS.index(check.level))
    return [check.label for check in checks if check.level != "good"]


def of_model(rng, n=None, K=None, L=None):
    K = K or int(rng.integers(3, 6))
    L, D = L or int(rng.integers(1, min(K, 4))), int(rng.integers(2 * K, 25))
    n, noise = n or int(rng.integers(400, 1000)), rng.uniform(0.03, 0.12)
    return planted(n, D, K, L, seed=rng, noise=noise, offset=rng.normal(size=D)).X, K, L


FLAWS = {"": None, "row of 99%": "One row dominates", "one plane": "Worse than PCA"}


def flawed(rng, kind, n):
    """Return a data set with a flaw, and the K and L asked for."""
    X, K, L = of_model(rng, n)
    D, middle = X.shape[1], len(X) // 2
    axes = np.linalg.qr(rng.normal(size=(D, L)))[0].T
    if kind == "row of 99%":
        far = 10 * np.linalg.norm(X - X.mean(axis=0)) * axes[0]
        X = np.insert(X, middle, X.mean(axis=0) + far, axis=0)
    else:  # no rows choose
        X = rng.normal(size=(n, L)) @ axes + 0.1 * rng.normal(size=(n, D))
    return X, K, L


@pytest.mark.parametrize("kind", FLAWS)
def test_a_fit_is_relied_on_if_its_data_are_from_the_model(tmp_path, kind):
    rng = np.random.default_rng(7)
    X, K, L = flawed(rng, kind, 300) if kind else of_model(rng, 300, 3, 2)
    assert failing(X, K, L, "row" not in kind and tmp_path)[:1] == ([FLAWS[kind]] if kind else [])


def test_a_row_that_is_most_of_a_component_is_named():
    scores = np.stack([np.full(40, 100.0), 1 + 30 * (np.arange(40) == 7)], axis=1)
    fitted = fitted_run(scores > 0, scores=scores)
    assert "component 2 comes from “7”" in diagnostics.of_components(fitted, np.arange(40))[1].why


@pytest.mark.parametrize("n", [15, 30, 60])
def test_none_of_few_rows_from_the_model_dominates(n):
    X, K, L = of_model(np.random.default_rng(7), n, 3, 2)
    assert "One row dominates" not in failing(X, K, L)


def test_halves_are_judged_by_components_gain_and_a_larger_l():
    def said(cosine, gain, more):
        halves = Stability(np.array([[0.99, cosine]]), np.array([gain]), np.array([more]))
        return [(c.level, c.label) for c in diagnostics.of_halves(halves) if c.level != "good"]

    assert diagnostics.worst(diagnostics.of_halves(None)) == "unknown"
    assert said(0.9, (2.1, 1.0), (1.9, 1.0, 0.5)) == said(0.9, (np.nan,) * 2, (np.nan,) * 3) == []
    assert said(0.9, (2.1, 1.0), (5.0, 1.0, 0.1)) == [], "clear, but a tenth of the gain"
    assert said(0.5, (2.1, 1.0), (-1, 1, 0)) == [("bad", "1 of 2 components recovered")]
    labels = ["Gain over PCA not clear", "1 of 2 components recovered", "L could be higher"]
    failed = [("doubtful", label) for label in labels]
    assert said(0.89, (1.9, 1.0), (2.1, 1.0, 0.2)) == failed
    assert said(0.9, (1.9, 1.0), (0, 1, 0)) == failed[:1]
    assert said(0.9, (-2.1, 1.0), (0, 1, 0)) == [("bad", "Worse than PCA")]
    assert said(0.9, (2.1, 1.0), (1, 9, BELOW_NOISE)) == [("bad", "Worse than noise")]
    one = Stability(np.array([[0.99, 0.5, 0.95]]), np.zeros((1, 2)), np.zeros((1, 3)))
    texts = [diagnostics.of_halves(one, numbered)[1].why for numbered in (True, False)]
    for text, which in zip(texts, ("components 1, 3 of 3", "2 of 3 ("), strict=True):
        assert f"recover only {which}" in text


@pytest.mark.parametrize(("repeated", "level"), [(0, "good"), (3, "good"), (4, "doubtful")])
def test_few_repeated_rows_do_not_count(repeated, level):
    two, three = (fitted_run(np.eye(K, dtype=bool)[[0] * 300]) for K in (2, 3))
    checks = diagnostics.of_rows(three, repeated)
    assert [check.level for check in checks] == ["good", level]
    assert diagnostics.of_rows(two, repeated) == checks[1:], "of two choices, one is likely"
    assert diagnostics.of_rows(three, repeated, usual=True)[1].level == "good"
    told = [diagnostics.of_rows(two, 0, share) for share in (0.1, 0.2)]
    assert ([x[0].level for x in told], told[1][1]) == (["good", "doubtful"], told[0][0])


def test_a_class_that_is_described_worse_and_scales_at_their_limits_are_told():
    rng = np.random.default_rng(5)
    X, codes = of_model(rng, 400, 3, 2)[0], np.repeat([0, 1, -1], [340, 50, 10])
    X[340:] = X[:60] + rng.normal(size=X[340:].shape)
    fitted = fitted_to(X, 3, 2)[2].fitted
    (check,) = diagnostics.of_classes(fitted, [("kind", ["a", "b"], codes)])
    whole, left = np.square(X - X.mean(axis=0))[340:390].mean(), fitted.error[340:390].mean()
    told = int(check.why.split("centre, ")[1].split("% are explained")[0])
    assert told == pytest.approx(100 * (1 - left / whole), abs=2)
    assert not diagnostics.of_classes(fitted, [("kind", ["a", "b"], codes * (codes < 1))])
    scales = np.r_[np.full(30, 0.1), np.ones(270)]
    for u, told in ((scales, 1), (np.ones(300), 0), (10 / scales, 1)):
        of = {"row_scales": u, "row_scale_values": np.array([0.1, 1, 10])}
        of |= {"row_scale_probabilities": np.full(3, 1 / 3)}
        checks = diagnostics.of_scales(fitted_run(np.ones((300, 2), dtype=bool), **of))
        assert [c.label for c in checks] == ["Scales at their limits"] * told


def test_rows_with_nothing_measured_are_set_aside_and_counted():
    rng = np.random.default_rng(0)
    X = of_model(rng, 30)[0]
    table = pd.DataFrame(np.insert(X, np.sort(rng.choice(30, 30)), np.nan, axis=0)).add_prefix("x")
    table.insert(0, "name", [f"item {i}" for i in range(60)])
    dataset = read("half.csv", io.BytesIO(table.to_csv(index=False).encode()))
    np.testing.assert_allclose(dataset.X, X, atol=1e-9)
    noted = dataset.provenance["report"]["notes"]["Set aside"]
    assert (noted, dataset.missing) == ("30 rows without any measurement", None)


def test_a_file_sorted_by_a_class_is_told_from_a_drift():
    rng, kind = np.random.default_rng(0), np.repeat(["one", "two", "three"], 150)
    for drifts in (True, False):
        X, K, L = of_model(rng, 450)
        shift = np.linspace(0, 3, 450) if drifts else np.repeat([0.0, 3.0, 0.0], 150)
        X += shift[:, None] * np.linalg.qr(rng.normal(size=(X.shape[1], 1)))[0].T
        fitted, measures = fitted_to(X, K + 1, L)[2].fitted, measures_of_rows(X)
        of = fitted.scores, fitted.active, {"kind": kind} | measures
        tests = associated(*of, technical=measures, n_permutations=199, random_state=0)
        said = set(tests["technical"][tests["column"] == "kind"])
        named = any(k in name for name in proposed_names(tests).values() for k in set(kind))
        assert (said, named) == ({SORTED if drifts else ""}, not drifts)


def test_names_come_from_no_missing_answer_and_from_no_component_of_gaps():
    lines = [
        (GAPS, 1, "rises", 0.5, "", ()),
        *((column, 1, "rises", 0.4, "", ()) for column in ("age", "size")),
        ("size", 2, "rises", 0.4, "", ()),
        ("answer", 3, "high: n/a", 0.9, "", ("N/A", "no")),
        ("smokes", 3, "high: Yes", 0.3, "", ("Yes",)),
    ]
    names = ["column", "component", "direction", "effect", "technical", "high"]
    tests = pd.DataFrame(lines, columns=names).eval("low = high").assign(q=0.001, part="use")
    assert proposed_names(tests) == {2: "size", 3: "smokes Yes"}


@pytest.mark.parametrize("kind", ["normal", "t", "skewed"])
@pytest.mark.parametrize("n", [60, 300, 5000])
def test_planted_outliers_stand_out_however_many_and_heavy_tails_do_not(kind, n):
    rng, D, none = np.random.default_rng(n), 10, np.zeros(n)
    for planted_rows in (0, 3, 6, n // 20):
        found, false = 0, 0
        for _ in range(20):
            x = rng.normal(size=(n, D)) if kind != "skewed" else rng.exponential(size=(n, D)) - 1
            x /= np.sqrt(rng.chisquare(5, size=(n, 1)) / 5) if kind == "t" else 1
            q = np.square(x).sum(axis=1)
            q[:planted_rows] = np.quantile(q, 0.99) * rng.uniform(5, 9, planted_rows)
            out = ~standing_out(Distances(none, q, none, none + D)).fits
            found += out[:planted_rows].mean() / 20 if planted_rows else 0.05
            false += out[planted_rows:].mean() / 20
        assert false <= 0.005
        assert found >= 0.8, planted_rows


def test_a_row_far_in_a_feature_or_against_the_correlations_is_named_with_it():
    for rng in map(np.random.default_rng, range(10)):
        heavy = np.hstack([rng.normal(size=(400, 1)), rng.standard_t(3, size=(400, 4))])
        heavy[7, 0] = 8.0  # not far among the other features, whose tails are heavy
        rows, features, _ = odd_in_features(heavy, np.asarray)
        assert (7 in rows, features[7]) == (True, 0)
        both = rng.normal(size=(400, 2)) @ [[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]]
        X = both + 0.1 * rng.normal(size=(400, 6))
        alone = odd_in_features(X, np.asarray)[0]
        X[7, 4] += 1.5  # small for the feature, but not for what the others say of it
        found, features, ratios = odd_in_features(X, np.asarray)
        assert (len(alone) <= 4, found[0], features[7], ratios.argmax()) == (True, 7, -1 - 4, 7)
    assert len(odd_in_features(X[:29], np.asarray)[0]) == 0, "too few rows"
    waves = rng.normal(size=(50, 2)) @ [np.sin(np.arange(40) / 6), np.cos(np.arange(40) / 6)]
    waves[3, 20] += 0.2  # small for a value, but not beside its neighbours
    rows, features, _ = odd_in_features(waves, np.asarray, waves == waves[5, 9], ordered=True)
    assert (rows.tolist(), features[3]) == ([3], 20)


@pytest.mark.parametrize("far", [0.0, 1.0, 5.0])
def test_planted_outliers_come_first_and_few_others_stand_out(seed, far):
    rng = np.random.default_rng(seed)
    X = planted(10_000, 12, 4, 2, seed=rng, noise=0.1).X
    rows = rng.choice(10_000, 100, replace=False)
    if far == 1.0:  # off their subspace
        off = rng.normal(size=(100, 12))
        X[rows] += 3 * off / np.linalg.norm(off, axis=1, keepdims=True)
    elif far:
        X[rows] *= far
    said = standing_out(distances(fitted_to(X, 4, 2, n_init=1, max_iter=15)[2].fitted))
    assert (~said.fits).sum() <= 100 * (1 + bool(far))
    if far:
        assert np.isin(said.order[:100], rows).sum() >= (100 if far == 1.0 else 90)
