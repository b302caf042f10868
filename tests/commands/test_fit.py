"""`appca fit` and `project`: what the page would compute, in every kind of file."""

import json

import numpy as np
import pandas as pd
import pytest

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


@pytest.fixture
def wine(folder, capsys):
    """Fitted to wine.csv, which holds the wine data with a column more."""
    data = load("wine")
    frame = pd.DataFrame(data.X, columns=list(data.feature_names)).assign(grower="a")
    frame.to_csv("wine.csv", index=False)
    assert main(["fit", "wine.csv", "-K", "4", "--label", "grower", "--out", "wine.npz"]) == 0
    capsys.readouterr()
    return frame


def test_the_rows_of_the_fit_get_its_scores_again_in_every_kind_of_file(wine):
    found = arrays_of("wine.npz")
    for kind in ("csv", "parquet", "npz"):
        assert main(["project", "wine.npz", "wine.csv", "--out", f"rows.{kind}"]) == 0
    names = [f"component_{k}" for k in range(1, 5)]
    for table in (pd.read_csv("rows.csv"), pd.read_parquet("rows.parquet")):
        np.testing.assert_array_equal(table[names].to_numpy(np.float32), found["scores"])
        assert list(table["id"].astype(str)) == list(found["ids"])
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], found["scores"])


def test_columns_in_another_order_and_more_of_them_do_not_matter(wine, capsys):
    shuffled = wine.sample(frac=1, axis=1, random_state=0).assign(extra=2.5, more="a word")
    shuffled.to_csv("shuffled.csv", index=False)
    assert main(["project", "wine.npz", "shuffled.csv", "--out", "rows.npz"]) == 0
    told = capsys.readouterr().out
    assert "columns matched by name; their order differs" in told
    assert {"extra", "more"} <= set(told.partition("not used: ")[2].partition("\n")[0].split(", "))
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], arrays_of("wine.npz")["scores"])


def test_missing_columns_are_named_in_one_sentence(wine, capsys):
    wine.drop(columns=["ash"]).to_csv("few.csv", index=False)
    assert main(["project", "wine.npz", "few.csv", "--flag"]) == 1
    assert "“few” lacks 1 column that the fit uses, “ash”" in capsys.readouterr().err


def test_rows_that_do_not_fit_are_counted_and_marked(wine, capsys):
    strange = wine.head(20).copy()
    strange.loc[4, "ash"] = 50.0
    strange.to_csv("strange.csv", index=False)
    assert main(["project", "wine.npz", "strange.csv", "--flag", "--out", "rows.csv"]) == 0
    told = capsys.readouterr().out
    table = pd.read_csv("rows.csv")
    assert f"{(~table['fits']).sum()} of 20 rows do not fit: 1 too far from their" in told
    assert np.flatnonzero(table["q"] > table["q_limit_run"]).tolist() == [4]
    assert not table["fits"][4]
    assert main(["project", "wine.npz", "strange.csv", "--flag", "--out", "rows.npz"]) == 0
    np.testing.assert_array_equal(arrays_of("rows.npz")["fits"], table["fits"])


def test_one_of_twenty_rows_of_the_fit_is_beyond_each_limit_at_95_percent(wine, capsys):
    assert main(["project", "wine.npz", "wine.csv", "--flag", "--level", "0.95"]) == 0
    told = capsys.readouterr().out
    assert ": 9 too far from their subspace (Q), 9 too far out" in told
    assert "above the limits that 0.95 of the run's rows are below" in told


def test_gaps_in_new_rows_are_left_to_a_model_that_can(wine, capsys):
    gappy = wine.copy()
    gappy.loc[7, "hue"] = np.nan
    gappy.to_csv("gappy.csv", index=False)
    arguments = ["project", "wine.npz", "gappy.csv", "--out", "rows.npz"]
    assert main([*arguments, "--missing", "refuse"]) == 1
    assert "1 missing cell" in capsys.readouterr().err
    assert main(arguments) == 0
    off = np.abs(arrays_of("rows.npz")["scores"] - arrays_of("wine.npz")["scores"]).max(axis=1)
    assert np.flatnonzero(off > 1e-6).tolist() == [7]


def test_a_single_row_is_described_as_among_all(wine, capsys):
    wine.iloc[[7]].to_csv("one.csv", index=False)
    assert main(["project", "wine.npz", "one.csv", "--flag", "--out", "one.npz"]) == 0
    assert "1 row; " in capsys.readouterr().out
    scores = arrays_of("wine.npz")["scores"]
    np.testing.assert_allclose(arrays_of("one.npz")["scores"], scores[[7]], rtol=0, atol=1e-6)
    wine.iloc[[7, 7, 7]].to_csv("same.csv", index=False)
    assert main(["project", "wine.npz", "same.csv", "--out", "same.npz"]) == 0
    assert arrays_of("same.npz")["scores"].shape == (3, 4)
    assert main(["fit", "one.csv", "-K", "1", "--out", "no.npz"]) == 1
    assert "“one.csv” has 1 row of data; at least 2 are needed" in capsys.readouterr().err


def test_a_stored_run_whose_data_are_gone_still_describes_rows(wine, appca_home, capsys):
    assert main(["fit", "wine.csv", "-K", "4", "--label", "grower", "--store"]) == 0
    (run,) = RunStore(appca_home).list()
    DatasetStore(appca_home).delete(run.config.dataset)
    assert main(["project", run.id, "wine.csv", "--out", "rows.npz"]) == 0
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], run.fitted.scores)
