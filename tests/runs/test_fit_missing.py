"""Runs around missing cells."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.analysis.rows import alternatives, parts
from appca.data.sources import load
from appca.runs.fit import (
    estimate_seconds,
    fit_run,
    preview,
    project,
)
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.words import InputError
from tests.fitted_runs import differing

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {"centre": True, "scale": "feature"}


def with_gaps(name="wine", share=0.15, seed=0):
    """Return a bundled data set with cells taken out, and the whole one."""
    dataset = load(name)
    missing = np.random.default_rng(seed).random(dataset.X.shape) < share
    holes = np.where(missing, np.nan, dataset.X.astype(float))
    X = np.where(missing, np.nanmean(holes, axis=0), holes)
    return replace(dataset, X=X, missing=missing), dataset


@pytest.fixture(scope="module")
def wine():
    return with_gaps()[0]


def config_of(dataset, model="aPPCA", **parameters):
    sizes = {"n_components": 4, "n_active": 2} if model == "aPPCA" else {"n_components": 2}
    return RunConfig(dataset.digest, OPTIONS, model, sizes | parameters)


@pytest.mark.parametrize("model", ["aPPCA", "PPCA"])
def test_a_run_says_of_observed_cells_what_the_estimator_says(wine, model):
    config = config_of(wine, model)
    result = fit_run(wine, config)
    assert result.info.n_missing == wine.n_missing
    holes = wine.with_gaps()
    scaled = (holes - np.nanmean(holes, axis=0)) / np.nanstd(holes, axis=0)
    H, W = result.fitted.scores, result.fitted.components
    left = scaled - result.fitted.mean - H @ W
    np.testing.assert_allclose(result.fitted.error, np.nanmean(left**2, axis=1), rtol=1e-4)
    if model == "aPPCA":
        sizes = {"n_components": 4, "n_active": 2, "random_state": 0}
        estimator = AdaptivePPCA(**sizes).fit(scaled)
        full = estimator.impute(scaled) * np.nanstd(holes, axis=0) + np.nanmean(holes, axis=0)
        np.testing.assert_allclose(result.fitted.imputed, full[wine.missing], rtol=1e-4)


def test_ppca_around_gaps_is_watched_and_repeats_where_it_was_stopped(wine):
    config, curve = config_of(wine, "PPCA"), []
    whole = fit_run(wine, config, lambda progress: curve.append(progress.log_likelihood))
    assert curve == list(whole.fitted.log_likelihoods)
    assert whole.info.stopped_at is None
    seen = []

    def stop(progress):
        seen.append(progress.log_likelihood)
        if len(seen) == 3:
            raise StopIteration

    by_hand = fit_run(wine, config, stop)
    assert seen == curve[:3]
    assert by_hand.info.stopped_at == by_hand.info.n_iter == 3
    assert by_hand.info.stop_reason == "stopped by the callback"
    again = fit_run(wine, replace(config, stopped_at=3))
    assert differing(by_hand.fitted, again.fitted) == []
    assert whole.info.log_likelihood > by_hand.info.log_likelihood


def test_what_the_model_puts_in_is_nearer_to_the_truth_than_the_placeholders():
    gappy, whole = with_gaps()
    found = fit_run(gappy, config_of(gappy)).fitted.imputed
    spread = np.broadcast_to(whole.X.std(axis=0), whole.X.shape)[gappy.missing]
    truth = whole.X[gappy.missing]
    mine = np.square((found - truth) / spread).mean()
    assert mine < 0.85 * np.square((gappy.X[gappy.missing] - truth) / spread).mean()


def test_the_rows_of_the_fit_get_the_numbers_of_the_fit_again(wine, tmp_path):
    config = config_of(wine)
    run = RunStore(tmp_path).save(config, fit_run(wine, config))
    again = project(config, run.fitted, wine.with_gaps())
    for name, values in again.row_arrays().items():
        np.testing.assert_array_equal(values, getattr(run.fitted, name), err_msg=name)


@pytest.mark.parametrize(
    "config",
    [
        {"model": "aFA", "n_active": 1},
        {"model": "NPPCA"},
        {"inference": "gibbs"},
        {"inference": "hard"},
    ],
    ids=str,
)
def test_models_that_cannot_refuse_in_a_sentence_that_names_those_that_can(wine, config):
    if config.get("model") == "NPPCA":
        run = RunConfig(wine.digest, OPTIONS, "NPPCA", {})
    else:
        run = config_of(wine, **config)
    for fit in (fit_run, preview):
        with pytest.raises(InputError, match="choose Adaptive PPCA by exact EM or Prob") as refusal:
            fit(wine, run)
        assert f"{wine.n_missing} cells of “{wine.name}”" in str(refusal.value)


def test_a_preview_has_gaps_too(wine):
    found = preview(wine, config_of(wine), rows=100)
    assert np.isfinite(found.fitted.log_likelihood_rows).all()
    whole = fit_run(wine, config_of(wine))
    near = np.mean(found.fitted.log_likelihood_rows - whole.fitted.log_likelihood_rows)
    assert abs(near) < 1.5


def test_new_rows_with_gaps_must_be_whole_where_they_are_reduced(wine):
    whole = load("wine")
    config = RunConfig(whole.digest, {"centre": True, "pca": 5}, "PPCA", {"n_components": 2})
    result = fit_run(whole, config)
    with pytest.raises(InputError, match="reduces rows of 13 features to 5 first"):
        project(config, result.fitted, wine.with_gaps())


def test_missing_cells_cost_time(wine):
    config = config_of(wine)
    n, d = wine.X.shape
    rows = len(wine.incomplete_rows)
    assert estimate_seconds(n, d, config, incomplete=rows) > estimate_seconds(n, d, config)
    summed = config_of(wine, n_components=12, n_active=6)
    assert estimate_seconds(1080, 77, summed, incomplete=1080) < 10.0, "no long job"


NEEDS_NUMBA = """
import sys
from appca.runs.fit import fit_run, waits_for_compiler
from tests.runs.test_fit_missing import config_of, with_gaps
dataset, (K, L) = with_gaps()[0], map(int, sys.argv[1:])
config = config_of(dataset, n_components=K, n_active=L, max_iter=2)
before = waits_for_compiler(dataset, config)
fit_run(dataset, config)
print(before, "numba" in sys.modules, waits_for_compiler(dataset, config))
"""


@pytest.mark.parametrize(("sizes", "needs"), [("4 2", True), ("12 6", True), ("4 4", False)])
def test_fits_around_gaps_wait_for_a_compiler_where_supports_are_summed(sizes, needs):
    command = [sys.executable, "-W", "ignore", "-c", NEEDS_NUMBA, *sizes.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(needs), str(needs), "False"]


def test_a_row_with_gaps_is_taken_apart_by_its_observed_cells(wine):
    fitted = fit_run(wine, config_of(wine)).fitted
    filled = np.array(wine.X)
    filled[wine.missing] = fitted.imputed
    for row in wine.incomplete_rows[:10]:
        np.testing.assert_allclose(parts(wine, fitted, row).original, filled[row])
        rows = wine.with_gaps(slice(row, row + 1))
        y = fitted.preprocessing.transform(rows)[0].astype(np.float64)
        support, probability = alternatives(fitted, y)[0]
        assert probability == pytest.approx(fitted.membership[row], abs=1e-4)
        assert support == tuple(np.flatnonzero(fitted.active[row]))
