import json

import numpy as np
import pandas as pd
import pytest

import appca
from appca.cli import main
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from tests.commands.conftest import arrays_of


def test_fit_writes_what_the_page_would_compute(tmp_path, capsys):
    out = tmp_path / "wine.npz"
    assert main(["fit", "wine", "-K", "3", "-L", "1", "--seed", "4", "--out", str(out)]) == 0
    wine = load("wine")
    parameters = {"n_components": 3, "n_active": 1, "random_state": 4}
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", parameters)
    expected = fit_run(wine, config)
    found = arrays_of(out)
    for name, values in expected.fitted.to_arrays().items():
        assert found[name].tobytes() == values.tobytes(), name
    np.testing.assert_array_equal(found["ids"], wine.ids)
    assert RunConfig.from_dict(json.loads(str(found["run"]))["config"]) == config
    told = capsys.readouterr().out
    assert "nats per row" in told
    doubtful = int((found["membership"] < 0.5).sum())
    assert f"{doubtful} of 178 rows are doubtful" in told


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_ones_own_is_fitted_with_options_settings_and_preprocessing(
    folder, suffix, capsys
):
    np.save("own.npy", np.random.default_rng(0).standard_normal((60, 5)))
    arguments = ["-K", "2", "-L", "1", "--set", "max_iter=3", "--set", "init=pca"]
    preprocessing = ["--scale", "global", "--centre", "--pca", "3", "--divide", "2"]
    out = f"table.{suffix}"
    assert main(["fit", "own.npy", *arguments, *preprocessing, "--out", out]) == 0
    assert "reached max_iter=3" in capsys.readouterr().out
    table = getattr(pd, f"read_{suffix}")(out)
    assert len(table) == 60
    assert {"component_1", "component_2", "membership"} <= set(table)


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("refuse", 1, "2 missing cells"),
        ("mean", 0, "nats per row"),
        ("drop", 0, "nats per row"),
        ("model", 0, "2 cells (0.7%) in 2 rows, fitted around: b (2)"),
    ],
)
def test_missing_cells_are_dealt_with_as_asked(folder, capsys, how, code, words):
    assert main(["fit", "measurements.csv", "-K", "2", "--missing", how]) == code
    told = capsys.readouterr()
    assert words in told.out + told.err


def test_a_stored_run_is_where_the_app_looks_for_it(tmp_path, appca_home, capsys):
    out = tmp_path / "rows.csv"
    assert main(["runs"]) == 0
    assert "no runs are stored" in capsys.readouterr().out
    assert main(["fit", "wine", "--model", "PPCA", "-K", "2", "--store"]) == 0
    (run,) = RunStore(appca_home).list()
    assert run.config.model == "PPCA"
    assert DatasetStore(appca_home).get(run.config.dataset).n_rows == 178
    capsys.readouterr()
    assert main(["runs"]) == 0
    line = capsys.readouterr().out
    assert line.startswith(run.id)
    assert "PPCA, K = 2" in line
    assert "Wine" in line
    assert main(["project", run.id, "wine", "--out", str(out)]) == 0
    assert len(pd.read_csv(out)) == 178


@pytest.mark.thorough
def test_extensions_have_flags_and_reach_the_file(tmp_path, capsys):
    out = tmp_path / "wine.npz"
    flags = ["--noise", "feature", "--row-scale", "learned", "-L", "learned"]
    assert main(["fit", "wine", "-K", "3", *flags, "--out", str(out)]) == 0
    assert "L learned, noise per feature, row scales" in capsys.readouterr().out
    wine, model = load("wine"), appca.load_model(out)
    extended = {"noise": "feature", "row_scale": "learned", "n_active": "learned"}
    assert extended.items() <= model.config.parameters.items()
    expected = fit_run(wine, model.config)
    table = pd.DataFrame(wine.X, columns=list(wine.feature_names))
    np.testing.assert_allclose(
        model.score_samples(table), expected.fitted.log_likelihood_rows, rtol=1e-9
    )
    assert model.estimator.size_probabilities_.shape == (4,)
    assert model.estimator.noise_variance_.shape == (wine.n_features,)
    sampled = ["--set", "inference=gibbs", "--set", "burn_in=5", "--set", "n_draws=10"]
    assert main(["fit", "wine", "-K", "3", *flags[2:], *sampled, "--out", str(out)]) == 0
    assert "L learned, row scales" in capsys.readouterr().out
    model = appca.load_model(out)
    assert model.estimator.query_draws_.size_probabilities.shape[1:] == (4,)
    assert np.isfinite(model.score_samples(table)).all()
    assert main(["fit", "wine", *flags, *sampled]) == 2
    assert "inference must be 'em' with noise='feature'" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["fit", "wine", "-L", "some"])
    assert "must be a whole number or “learned”" in capsys.readouterr().err
