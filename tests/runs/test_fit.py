"""Tests of runs: results for rows, stops, missing cells, previews, component numbers."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.analysis.rows import alternatives, parts
from appca.data.dataset import Dataset
from appca.data.preprocessing import Fitted, Preprocessing
from appca.data.sources import load
from appca.runs import fit as fit_module
from appca.runs import home, numbering, store
from appca.runs.fit import DESCRIBING, estimate_seconds, fit_run, prepared, preview, project
from appca.runs.numbering import ComponentNumbers, Numbering, directions, numbered, numbered_after
from appca.runs.run import MODELS as SPECS
from appca.runs.run import FitResult, RunConfig, estimator_class
from appca.runs.store import Labels, RunStore
from appca.words import InputError
from tests.fitted_runs import differing, fitted_run, info_of


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(300))


def config_of(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> RunConfig:
    return RunConfig(dataset.digest, {"divide": 16.0, "pca": 20}, model, parameters)


def explicit(dataset: Dataset, config: RunConfig) -> dict[str, np.ndarray]:
    """The same by the estimator's public methods, one at a time."""
    fitted = Preprocessing.from_dict(config.preprocessing).fit(dataset.X)
    model = estimator_class(config.model)(**config.parameters).fit(fitted.transform(dataset.X))
    Y = prepared(config, fitted, dataset.X)
    scores = model.transform(Y, support="map")
    alone = model.published() if hasattr(model, "published") else model
    return {
        "components": model.components_,
        "mean": model.mean_,
        "scores": scores,
        "active": model.allocate(Y, support="map"),
        "inclusion": model.inclusion_probabilities(Y),
        "membership": alone.allocation_probability(Y),
        "error": ((Y - alone.inverse_transform(scores)) ** 2).mean(axis=1),
        "log_likelihood_rows": model.score_samples(Y),
    }


SHORT = {"n_chains": 2, "burn_in": 6, "n_draws": 8}
FREE = {"max_components": 4, **SHORT}
MODELS = [
    ("aPPCA", {"n_components": 5, "n_active": 2, "init": "pca"}),
    ("aPPCA", {"n_components": 5, "n_active": 2, "inference": "gibbs", **SHORT}),
    ("PPCA", {"n_components": 3}),
    ("aFA", {"n_components": 5, "n_active": 2, "init": "pca"}),
    ("aFA", {"n_components": 17, "n_active": 8, "n_paths": 2}),
    ("aFA", {"n_components": 5, "n_active": 2, "inference": "gibbs", **SHORT}),
    ("NPPCA", FREE),
    pytest.param("isFA", FREE, marks=pytest.mark.thorough),
    pytest.param("fsFA", FREE, marks=pytest.mark.thorough),
]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("model", "parameters"), MODELS)
def test_arrays_and_projected_rows_are_what_the_estimators_own_methods_say(
    digits, model, parameters, monkeypatch
):
    monkeypatch.setattr(fit_module, "DESCRIBED_AT_ONCE", 128)
    config = config_of(digits, model, **parameters)
    result = fit_run(digits, config)
    fitted, info = result.fitted, result.info
    for name, expected in explicit(digits, config).items():
        got = getattr(fitted, name)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5, err_msg=name)
    assert fitted.active.dtype == bool
    for name in ("scores", "inclusion", "membership", "error"):
        assert getattr(fitted, name).dtype == np.float32
    assert info.log_likelihood == fitted.log_likelihood_rows.sum()
    assert (info.n_rows, info.n_features, info.stopped_at) == (300, 20, None)
    errors = fitted.log_likelihood_errors
    error = 0.0 if errors is None else np.sqrt(np.square(errors.astype(float)).sum())
    assert info.likelihood_error == pytest.approx(error)
    assert errors is None or errors.shape == (300,)
    assert ("importance sampling" in info.likelihood) == (error > 0)
    assert {"numpy", "scipy", "scikit-learn", "appca", "python"} == set(info.versions)
    compiled = SPECS[model].can.compiled
    for some in ([5, 17, 250], [250], np.arange(290, 300)):
        found = project(config, fitted, digits.X[some]).row_arrays()
        for name, values in fitted.take(np.array(some)).row_arrays().items():
            near = 0 if compiled else 1e-5
            np.testing.assert_allclose(found[name], values, near, near, err_msg=name)
    with pytest.raises(ValueError, match="must have the 64 features"):
        project(config, fitted, digits.X[:, :63])


@pytest.mark.parametrize("passes", [3, 45])
def test_a_fit_stopped_by_hand_is_repeated_by_its_config(digits, passes, monkeypatch):
    from threadpoolctl import threadpool_info

    monkeypatch.setattr(home, "threads", lambda: 1)
    config, seen = config_of(digits, n_components=6, n_active=3, tol=1e-9, max_iter=60), []

    def stop(progress):
        if not seen:  # a look at all libraries takes longer than a pass
            pools = (one for one in threadpool_info() if one["user_api"] == "blas")
            assert {pool["num_threads"] for pool in pools} == {1}, "as the workers get"
        seen.append(progress.stage)
        if len(seen) == passes:
            raise StopIteration

    by_hand = fit_run(digits, config, stop)
    assert by_hand.info.stopped_at == passes == len(seen)
    assert by_hand.info.stop_reason == "stopped by the callback"
    again = fit_run(digits, replace(config, stopped_at=passes))
    assert again.info.stopped_at == passes
    assert differing(by_hand.fitted, again.fitted) == []


@pytest.mark.parametrize("model", ["aFA", "aPPCA"])
def test_chains_stopped_while_they_begin_are_repeated_by_their_config(digits, model):
    few = digits.take(np.arange(120))
    starts = {"max_iter": 3} if model == "aFA" else {"init": "random"}
    parameters = SHORT | {"n_components": 4, "n_active": 2, "inference": "gibbs"} | starts
    config, seen = config_of(few, model, **parameters, chain_starts="init"), []

    def stop(progress):
        seen.append(progress.stage)
        if len(seen) >= 2 and progress.stage != DESCRIBING:  # as one that was asked once
            raise StopIteration

    by_hand, heard = fit_run(few, config, stop), [stage for stage in seen if stage != DESCRIBING]
    assert all(stage.startswith("chain ") for stage in heard)
    assert by_hand.info.stopped_at == 2 == len(heard)
    assert (by_hand.info.stop_reason, by_hand.info.n_iter) == ("stopped by the callback", 1)
    again = fit_run(few, replace(config, stopped_at=2))
    assert again.info.stopped_at == 2
    assert differing(by_hand.fitted, again.fitted) == []


def test_a_sampled_run_keeps_its_draws_and_others_have_none(digits, monkeypatch):
    config = config_of(digits, "isFA", **FREE)
    fitted = fit_run(digits, config).fitted
    posterior = fitted.posterior
    assert posterior["components"].shape == (2, 8, 4, 20)
    assert posterior["components"].dtype == np.float32
    assert posterior["log_joint"].shape == posterior["noise_variance"].shape == (2, 8)
    assert posterior["Z_mean"].shape == (2, 300, 4)
    assert fit_run(digits, config_of(digits)).fitted.posterior == {}
    monkeypatch.setattr(fit_module, "MOST_DRAWN_BYTES", 2 * 4 * 4 * 20 * 4)
    thinned = fit_run(digits, config).fitted.posterior
    np.testing.assert_array_equal(thinned["components"], posterior["components"][:, ::2])
    assert thinned["noise_variance"].shape == (2, 8)
    with pytest.raises(ValueError, match=r"InfiniteSparseFA.* weights is missing: fit the model"):
        project(config, replace(fitted, weights=None), digits.X)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        *(("aPPCA", {key: value}) for key, value in (("n", 2000), ("d", 5000), ("n_init", 5))),
        *(("aPPCA", {"n_components": 12}), ("aPPCA", {"inference": "gibbs"})),
        ("aFA", {"n_components": 12}),
        ("aFA", {"n_components": 20, "n_active": 10, "n_paths": 64}),
        *((model, {"n_draws": 2000}) for model in ("NPPCA", "isFA", "fsFA")),
        *((model, {"max_components": 40}) for model in ("NPPCA", "isFA", "fsFA")),
    ],
)
def test_the_estimate_grows_with_the_work(digits, model, more):
    def seconds(model, n=1000, d=100, **parameters) -> float:
        return estimate_seconds(n, d, config_of(digits, model, **parameters))

    assert seconds(model, **more) > 1.2 * seconds(model)
    assert seconds("aPPCA", max_iter=5) < seconds("aPPCA")
    closed = seconds("aPPCA", n_components=4, n_active=4)
    assert seconds("PPCA") < closed + 1e-9 < seconds("aPPCA")
    assert seconds("aPPCA", 1797, 64) < 1.0 < seconds("aPPCA", 70_000, 784), "digits live"


ROOT, OPTIONS = Path(__file__).resolve().parents[2], {"centre": True, "scale": "feature"}


def with_gaps():
    """Return a bundled data set with cells taken out."""
    dataset = load("wine")
    missing = np.random.default_rng(0).random(dataset.X.shape) < 0.15
    holes = np.where(missing, np.nan, dataset.X.astype(float))
    X = np.where(missing, np.nanmean(holes, axis=0), holes)
    return replace(dataset, X=X, missing=missing)


@pytest.fixture(scope="module")
def wine():
    return with_gaps()


def config_of_around(dataset, model="aPPCA", **parameters):
    sizes = {"n_components": 4, "init": "pca"} if model == "aPPCA" else {"n_components": 2}
    return RunConfig(dataset.digest, OPTIONS, model, sizes | parameters)


@pytest.mark.parametrize("model", ["aPPCA", "PPCA"])
def test_a_run_says_of_observed_cells_what_the_estimator_says(wine, model, tmp_path):
    config = config_of_around(wine, model)
    result = fit_run(wine, config)
    fitted, holes = result.fitted, wine.with_gaps()
    assert result.info.n_missing == wine.n_missing
    centre, scale = np.nanmean(holes, axis=0), np.nanstd(holes, axis=0)
    scaled = (holes - centre) / scale
    left = scaled - fitted.mean - fitted.scores @ fitted.components
    np.testing.assert_allclose(fitted.error, np.nanmean(left**2, axis=1), rtol=1e-4)
    run = RunStore(tmp_path).save(config, result)
    again = project(config, run.fitted, holes)  # the rows of the fit get its numbers again
    for name, values in again.row_arrays().items():
        np.testing.assert_array_equal(values, getattr(run.fitted, name), err_msg=name)
    if model == "PPCA":
        whole = load("wine")
        config = RunConfig(whole.digest, {"centre": True, "pca": 5}, "PPCA", {"n_components": 2})
        with pytest.raises(InputError, match="first reduces 13 features to 5"):
            project(config, fit_run(whole, config).fitted, holes)
        return
    estimator = AdaptivePPCA(n_components=4, n_active=2, init="pca", random_state=0).fit(scaled)
    full = estimator.impute(scaled) * scale + centre
    np.testing.assert_allclose(fitted.imputed, full[wine.missing], rtol=1e-4)
    filled = np.array(wine.X)
    filled[wine.missing] = fitted.imputed
    for row in wine.incomplete_rows[:10]:  # taken apart by its observed cells
        np.testing.assert_allclose(parts(wine, fitted, row).original, filled[row])
        y = fitted.preprocessing.transform(holes[row : row + 1])[0].astype(np.float64)
        support, probability = alternatives(fitted, y)[0]
        assert probability == pytest.approx(fitted.membership[row], abs=1e-4)
        assert support == tuple(np.flatnonzero(fitted.active[row]))
    found = preview(wine, config, rows=100).fitted
    assert np.isfinite(found.log_likelihood_rows).all()
    assert abs(np.mean(found.log_likelihood_rows - fitted.log_likelihood_rows)) < 1.5


@pytest.mark.parametrize(
    "config", [{"model": "aFA", "n_active": 1}, {"model": "NPPCA"}, {"inference": "gibbs"}], ids=str
)
def test_models_that_cannot_refuse_in_a_sentence_that_names_those_that_can(wine, config):
    free = config.get("model") == "NPPCA"
    run = RunConfig(wine.digest, OPTIONS, "NPPCA", {}) if free else config_of_around(wine, **config)
    for fit in (fit_run, preview):
        with pytest.raises(InputError, match="choose Adaptive PPCA by exact EM or Prob") as refusal:
            fit(wine, run)
        assert f"{wine.n_missing} cells of “{wine.name}”" in str(refusal.value)


NEEDED = """  # step by step, in a process of its own
import sys

def absent(names):
    assert not set(names.split()) & set(sys.modules), names

import appca
absent("numpy sklearn")
from appca.data.preprocessing import suggest
from appca.data.sources import load
digits = load("digits")
suggest(digits)
absent("pandas sklearn scipy PIL pooch requests")
appca.AdaptivePPCA(4, 2, max_iter=5).fit(digits.X[:50, 20:26])
absent("numba pymanopt streamlit plotly")
from appca.runs.fit import fit_run, waits_for_compiler
from tests.runs.test_fit import config_of_around, with_gaps
dataset = with_gaps()
for K, L in ((4, 4), (12, 6), (4, 2)):
    config = config_of_around(dataset, n_components=K, n_active=L, max_iter=2)
    before = waits_for_compiler(dataset, config)
    if K == 4:
        fit_run(dataset, config)
    print(before, "numba" in sys.modules, waits_for_compiler(dataset, config))
"""


def test_what_is_not_needed_is_not_imported_and_fits_around_gaps_may_wait_for_a_compiler():
    command = [sys.executable, "-W", "ignore", "-c", NEEDED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    said = [line.split() for line in done.stdout.splitlines()]
    no, yes = "False", "True"
    assert said == [[no, no, no], [yes, no, yes], [yes, yes, no]]


def config_of_preview(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> RunConfig:
    return RunConfig(dataset.digest, {"divide": 16.0}, model, parameters)


def test_a_preview_fits_a_fixed_sample_and_describes_all_rows(digits):
    config = config_of_preview(digits, n_components=4, n_active=2, tol=1e-3, init="pca")
    first, second = (preview(digits, config, rows=100, **how) for how in ({"passes": 5}, {}))
    assert first.info.preview
    kinds = (config_of_preview(digits, **of) for of in ({}, {"noise": "feature"}))
    assert [fit_module.on_ground(digits, one) for one in kinds] == [True, False]
    assert first.info.n_iter <= 5 < second.info.n_iter
    assert (first.fitted.scores.shape, first.info.n_rows) == ((300, 4), 300)
    whole = fit_run(digits, config)
    assert not whole.info.preview
    assert whole.info.log_likelihood > second.info.log_likelihood
    again = preview(digits, config, rows=100, passes=5)
    assert again.fitted.scores.tobytes() == first.fitted.scores.tobytes()
    flat = Dataset("flat", np.ones((20, 5)), np.arange(20).astype(str))
    with pytest.raises(ValueError, match="X must vary"):
        preview(flat, config_of_preview(flat, n_components=2, n_active=1))


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 5, "inference": "hard", "latent_variance": "component", "init": "pca"},
        {"n_components": 4, "n_active": 4, "init": "pca"},
        {"n_components": 4, "n_active": 2, "mean": "sample", "init": "pca"},
    ],
)
@pytest.mark.parametrize("more", [90, 0])  # wider than a preview's coordinates, or not
def test_a_preview_in_coordinates_says_what_its_model_says_in_features(digits, parameters, more):
    noise = np.random.default_rng(11).normal(8, 0.5, (digits.n_rows, more)).astype(np.float32)
    data = Dataset("wide", np.hstack([digits.X.astype(np.float32), noise]), digits.ids)
    config = config_of_preview(data, **parameters)
    assert (fit_module.prepare(data, config).coordinates is None) == (not more)
    fitted = preview(data, config, rows=200).fitted
    W = fitted.components.astype(np.float64)
    assert W.shape == (config.k, data.n_features)
    np.testing.assert_allclose(W @ W.T, np.eye(config.k), atol=1e-5)
    assert (W[range(config.k), np.abs(W).argmax(axis=1)] > 0).all()
    assert (np.diff(fitted.explained_variance) <= 0).all()
    # The same model, asked with all features at hand.
    model = estimator_class("aPPCA")(**config.parameters).restore(fitted.estimator_arrays())
    Y = fitted.preprocessing.transform(data.X)
    np.testing.assert_allclose(fitted.scores, model.transform(Y), atol=2e-4)
    np.testing.assert_array_equal(fitted.active, model.allocate(Y))
    np.testing.assert_allclose(fitted.membership, model.allocation_probability(Y), atol=1e-3)
    np.testing.assert_allclose(fitted.log_likelihood_rows, model.score_samples(Y), rtol=1e-4)
    rest = Y - model.inverse_transform(model.transform(Y))
    np.testing.assert_allclose(fitted.error, np.square(rest).mean(axis=1), rtol=1e-3)
    assert project(config, fitted, data.X[:3]).scores.shape == (3, config.k)


E = np.eye(8)


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def plain(k):
    return Numbering(tuple(range(k)), (1,) * k, ("",) * k)


def stored(folder, components, seed=0, scale=1.0, **settings):
    """A run with these components, as a fit with this seed stores it; `scale` divided features."""
    W = np.asarray(components, float)
    K = len(W)
    sizes = {"n_components": K, "n_active": 1, "random_state": seed}
    config = RunConfig("d" * 64, {}, "aPPCA", sizes, **settings)
    before = Fitted(1.0, np.zeros(8), scale * np.ones(8), None)
    given = {"components": W, "n_active": 1, "mean": np.zeros(8), "preprocessing": before}
    fitted = fitted_run(np.eye(K, dtype=bool)[np.arange(3 * K) % K], **given)
    return RunStore(folder).save(config, FitResult(fitted, info_of(n_rows=3 * K)))


def seen(folder, run, screen=None):
    """The run as it is on screen after another one."""
    before = None if screen is None else directions(screen)
    return numbered(run.fitted, ComponentNumbers(folder).of_run(run, before))


def test_every_walk_over_k_counts_from_1_to_k_and_keeps_what_it_can(folder):
    rng, screen, first, last = np.random.default_rng(0), None, {}, {}
    for step, K in enumerate([4, 7, 5, 8, 3, 6, 4, 2, 7, 5]):
        rows = rng.permutation(8)[:K]
        run = stored(folder, E[rows] * rng.choice([-1, 1], (K, 1)), seed=step)
        found = seen(folder, run, screen)
        assert sorted(ComponentNumbers(folder).of_run(run).order) == list(range(K))
        now = {int(np.abs(w).argmax()): (j, w.sum()) for j, w in enumerate(found.components)}
        for axis, (place, sign) in now.items():
            assert sign == first.setdefault(axis, sign), "a direction keeps its sign for good"
            if last.get(axis, K) < K:
                assert place == last[axis]
        screen, last = found, {axis: place for axis, (place, _) in now.items()}


def test_components_are_compared_at_length_one_in_scaled_units(folder):
    def mixed(a, b, degrees):
        return np.cos(np.deg2rad(degrees)) * a + np.sin(np.deg2rad(degrees)) * b

    screen = seen(folder, stored(folder, [E[0], mixed(E[1], E[2], 45)]))
    scale = np.array([1, 1e6, 1, 1, 1, 1, 1, 1.0])  # in data units, feature 2 outweighs all
    turned = stored(folder, [-2 * mixed(E[1], E[2], 45), E[0]], seed=1, scale=scale)
    other = seen(folder, turned, screen)
    assert np.array_equal(directions(other).round(6), directions(screen).round(6))
    far = stored(folder, [E[5], 3 * mixed(E[0], E[3], 60)], seed=2)
    found = ComponentNumbers(folder).of_run(far, directions(screen))
    assert found.order == (0, 1), "60 degrees apart is another component, however long"


def test_one_above_k_takes_a_free_number_with_its_name_and_sign(folder):
    numbers, six = ComponentNumbers(folder), stored(folder, E[:6])
    numbers.rename(six, 5, "stroke")
    numbers.flip(six, 5)
    screen = seen(folder, six)
    found = seen(folder, stored(folder, [-E[5], E[7], E[1], E[0]], seed=1), screen)
    assert found.names == ("", "", "stroke", "")
    assert np.array_equal(found.components, [E[0], E[1], -E[5], E[7]])
    again = seen(folder, stored(folder, np.roll(E[:6], 2, axis=0), seed=2), found)
    assert np.array_equal(again.components[:3], found.components[:3])
    assert again.names[2] == "stroke"


def test_a_fit_made_ahead_is_seen_with_the_numbers_it_gets_and_decides_nothing(folder):
    numbers, screen = ComponentNumbers(folder), directions(seen(folder, stored(folder, E[:3])))
    ahead = stored(folder / "elsewhere", [E[5], -E[2], E[0], E[1]], seed=1)
    expected = numbers.expected(ahead.config, ahead.fitted, screen)
    assert expected == ((2, 3, 1, 0), (1, 1, -1, 1), ("",) * 4)
    assert not (folder / "runs" / ahead.id).exists()
    assert numbers.of_run(stored(folder, [E[5], -E[2], E[0], E[1]], seed=1), screen) == expected
    shown = seen(folder, stored(folder, E[:3]))
    after = numbered_after(stored(folder / "x", [E[2], -E[0]], seed=2).fitted, shown)
    assert np.array_equal(after.components, [E[0], E[2]]), "with the sign on screen"


def test_what_was_decided_stays_with_the_run_whatever_becomes_of_the_registry(folder):
    screen, run = seen(folder, stored(folder, [E[1], -E[0]], seed=1)), stored(folder, E[:2])
    found = ComponentNumbers(folder).of_run(run, directions(screen))
    assert found == ((1, 0), (1, -1), ("", ""))
    assert ComponentNumbers(folder).rename(run, 1, "tilt").names == ("", "tilt")  # on the screen
    assert store.labels(run).names == ("tilt", ""), "in the order of the estimator"
    assert RunStore(folder).get(run.id).kept
    assert ComponentNumbers(folder).rename(run, 1, "") == found
    for file in (folder / "numbers").glob("*/*"):
        file.write_bytes(b"damaged")
    assert ComponentNumbers(folder).of_run(run) == found
    assert ComponentNumbers(folder).of_run(stored(folder, E[:1], seed=3)).signs == (-1,)
    run = stored(folder, E[6:], seed=4)
    found = ComponentNumbers(folder).of_run(run)
    for numbers, more in (([1, 1], ""), ([1, 2], ', "places": [1, 3]')):
        text = f'{{"numbers": {numbers}, "signs": [1, 1], "names": ["", ""]{more}}}'
        for damaged in ("", "{", text):
            (run.path / numbering.FILE).write_text(damaged)
            assert ComponentNumbers(folder).of_run(run) == found


def test_old_names_and_signs_stay_and_names_from_a_file_are_of_their_run(folder):
    one, other = stored(folder, E[:3]), stored(folder, [E[2], E[1], E[5]], seed=1)
    store.put(one, Labels(("", "slant", ""), (1, 1, -1)))
    store.put(other, Labels(("width", "tilt", ""), (1, 1, -1)))
    numbers = ComponentNumbers(folder)
    assert numbers.of_run(one) == ((0, 1, 2), (1, 1, -1), ("", "slant", ""))
    assert numbers.of_run(other) == ((0, 1, 2), (-1, 1, -1), ("width", "tilt", ""))
    assert numbers.of_run(one).names == ("", "slant", "width")
    assert numbers.rename(other, 1, "lean").names == ("width", "lean", "")
    assert numbers.of_run(one).names == ("", "lean", "width")
    foreign = stored(folder, E[6:], imported="a" * 64)
    store.put(foreign, Labels(("buy now", ""), (1, 1)))
    own = stored(folder, E[6:])
    assert numbers.of_run(foreign) == ((0, 1), (1, 1), ("buy now", ""))
    assert numbers.of_run(own) == plain(2)


def test_two_windows_at_once_agree(folder):
    runs = [stored(folder, np.roll(E, k, axis=0)[:5], seed=k) for k in range(4)]
    screens = [directions(run.fitted) for run in runs]
    with ThreadPoolExecutor(8) as pool:
        asked = (runs * 4, [screen for screen in screens for _ in runs])
        found = list(pool.map(ComponentNumbers(folder).of_run, *asked))
    assert found == found[:4] * 4


def test_names_and_turns_are_those_of_the_direction_in_all_runs(folder):
    numbers = ComponentNumbers(folder)
    one, other = stored(folder, E[:3]), stored(folder, [E[2], -E[1]], seed=1)
    numbers.of_run(one), numbers.of_run(other)
    assert numbers.rename(one, 1, "  slant \n of a digit ").names == ("", "slant of a digit", "")
    assert numbers.flip(one, 1).signs == (1, -1, 1)
    assert numbers.of_run(other) == ((0, 1), (1, 1), ("", "slant of a digit"))
    turned = [numbered(run.fitted, numbers.of_run(run)) for run in (one, other)]
    assert np.array_equal(turned[0].components[1], turned[1].components[1])
    assert numbers.rename(other, 1, "").names == ("", "")
    assert numbers.flip(other, 1).signs == (1, -1)
    assert numbers.of_run(one) == plain(3)


def test_an_adopted_numbering_is_shown_as_it_came_unless_there_is_one(folder):
    numbers, came = ComponentNumbers(folder), Numbering((2, 0, 1), (-1, 1, -1), ("a", "", "b"))
    numbers.flip(stored(folder, E[:3], seed=5), 0)  # the registry here has opinions of its own
    run = stored(folder, E[:3], imported="a" * 64)
    numbers.adopt(run, came)
    assert numbers.of_run(run) == came
    numbers.adopt(run, plain(3))
    assert numbers.of_run(run) == came


def test_a_full_disk_shows_numbers_and_refuses_names(folder, monkeypatch):
    full, run = Mock(side_effect=OSError(28, "No space left on device")), stored(folder, E[:2])
    monkeypatch.setattr(numbering, "write_numbered", full)
    monkeypatch.setattr(numbering, "write_json", full)
    assert ComponentNumbers(folder).of_run(run) == plain(2)
    with pytest.raises(InputError, match=r"names of fit .* could not be stored in .*No space left"):
        ComponentNumbers(folder).rename(run, 0, "slant")
