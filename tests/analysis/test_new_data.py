"""New rows under a run: its own rows again, rows held back, and the job that describes them."""

import numpy as np
import pytest
from scipy.stats import chi2

from appca.analysis.new_rows import new_rows_table, verdict
from appca.analysis.rows import distances
from appca.data.columns import matched, wanted_by
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.jobs import tasks
from appca.runs.fit import fit_run, keep_rows, key_of, project, stored
from appca.runs.run import MODELS, RunConfig, defaults
from appca.runs.store import RunStore
from appca.words import InputError

FEW = {"burn_in": 2, "n_draws": 3, "max_components": 5}
DIGITS = load("digits")


def run_of(dataset: Dataset, model: str = "aPPCA", **parameters):
    config = RunConfig(dataset.digest, suggest(dataset).to_dict(), model, parameters)
    return config, fit_run(dataset, config).fitted


@pytest.mark.parametrize("model", MODELS)
def test_the_rows_of_the_fit_get_its_numbers_again_also_from_shuffled_columns(model, seed):
    dataset = load("wine")
    few = {name: value for name, value in FEW.items() if name in defaults(model)}
    config, fitted = run_of(dataset, model, **few)
    names = dataset.feature_names
    order = np.random.default_rng(seed).permutation(len(names))
    shuffled = Dataset(
        "shuffled",
        dataset.X[:, order].astype(np.float64),
        dataset.ids,
        feature_names=[names[j] for j in order],
    )
    again = matched(shuffled, wanted_by(dataset))
    assert again.reordered
    found = project(config, fitted, again.dataset.X)
    for name, values in found.row_arrays().items():
        np.testing.assert_allclose(values, getattr(fitted, name), rtol=0, atol=1e-10, err_msg=name)
    own, new = distances(fitted), distances(fitted.with_rows(found))
    np.testing.assert_allclose(new.t2, own.t2, rtol=1e-10)
    np.testing.assert_allclose(new.q, own.q, rtol=1e-10)


def test_many_rows_of_a_compiled_model_are_described_in_the_blocks_of_the_fit():
    config, fitted = run_of(DIGITS, "aFA", max_iter=2)  # 1,797 rows are more than one block
    told = []
    found = project(config, fitted, DIGITS.X, told.append)
    np.testing.assert_array_equal(found.scores, fitted.scores)
    assert [(one.iteration, one.max_iter) for one in told] == [(i, 4) for i in range(1, 5)]


def test_limits_pass_one_in_a_hundred_rows_of_the_fit_few_held_back_and_no_noise(seed):
    rng = np.random.default_rng(seed)
    some = DIGITS.take(np.sort(rng.permutation(DIGITS.n_rows)[:900]))
    classes = np.asarray(some.class_column[1])
    rest = rng.permutation(np.flatnonzero(classes != 2))
    noise = rng.integers(0, 17, (100, 64)).astype(np.uint8)
    config, fitted = run_of(some.take(np.sort(rest[:-200])), n_components=8, n_active=4)
    own = distances(fitted)
    said = verdict(own, own)
    assert (np.abs((said.ratios > 1).sum(axis=0) - 0.01 * len(own.t2)) <= 1.5).all()
    parts = (some.X[rest[-200:]], some.X[classes == 2], noise)
    said = verdict(distances(fitted.with_rows(project(config, fitted, np.vstack(parts)))), own)
    held_back, left_out = said.fits[:200], said.fits[200:-100]
    assert held_back.mean() > 0.92
    assert left_out.mean() < 0.75, "a class that was left out of the fit"
    assert not said.fits[-100:].any()
    assert (said.order[:100] >= len(said.fits) - 100).mean() > 0.95  # those that fit least first


def test_the_table_adds_distances_limits_and_fit_to_the_projection():
    wine = load("wine")
    clashing = Dataset("w", wine.X, wine.ids, {"fits": np.full(178, "label")})
    config, fitted = run_of(wine, n_components=4, n_active=2)
    found = project(config, fitted, wine.X)
    own = distances(fitted.with_rows(found))
    for run, level, limits in (
        (distances(fitted), 0.99, ["model", "run"]),
        (None, 0.95, ["model"]),
    ):
        said = verdict(own, run, level)
        table = new_rows_table(clashing, found, said)
        names = [f"{name}_limit_{limit}" for limit in limits for name in ("t2", "q")]
        assert list(table.columns[-3 - len(names) :]) == ["t2", "q", *names, "fits"]
        np.testing.assert_allclose(table["t2_limit_model"], chi2.ppf(level, 2))
        np.testing.assert_allclose(table["q_limit_model"], chi2.ppf(level, 11))
        np.testing.assert_array_equal(table["q"], own.q)
        within = table["t2"] <= table[f"t2_limit_{limits[-1]}"]
        within &= table["q"] <= table[f"q_limit_{limits[-1]}"]
        np.testing.assert_array_equal(table["fits"], within)
        assert set(table["label_fits"]) == {"label"}


def test_rows_are_described_once_and_kept_under_run_and_rows(tmp_path):
    wine = load("wine")
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aFA", {"max_iter": 5})
    result = fit_run(wine, config)
    RunStore(tmp_path).save(config, result)
    key = key_of(config.id, wine.digest)
    assert key != key_of(config.id, "0" * 64) != key_of("0" * 12, wine.digest)
    assert stored(tmp_path, key) is None
    keep_rows(tmp_path, key, wine.X)
    spec = {"key": key, "run": config.id}
    assert tasks.project(spec, tasks.Context(tmp_path)) == {"key": key}
    found = stored(tmp_path, key)
    for name in ("scores", "active", "membership", "error", "log_likelihood_rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(result.fitted, name))
    (kept,) = (tmp_path / "projections").iterdir()  # the rows themselves are gone
    RunStore(tmp_path).delete(config.id)
    assert tasks.project(spec, tasks.Context(tmp_path)) == {"key": key}  # known
    kept.unlink()
    with pytest.raises(InputError, match="not there any more; open both again"):
        tasks.project(spec, tasks.Context(tmp_path))
    kept.parent.rmdir()
    kept.parent.write_text("a file where the folder would be")
    with pytest.raises(InputError, match=r"^The new rows could not be stored in .*; free some"):
        keep_rows(tmp_path, "k", wine.X)
