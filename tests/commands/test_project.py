import numpy as np
import pandas as pd
import pytest

from appca.cli import main
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import RunInfo
from appca.runs.store import RunStore
from tests.commands.conftest import arrays_of


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


def test_a_file_with_the_model_alone_has_the_model_s_limits(wine, folder, capsys):
    config, info, fitted, _ = read_model("wine.npz", folder / "wine.npz")
    (folder / "model.npz").write_bytes(model_bytes(config, fitted, RunInfo.from_dict(info)))
    assert main(["project", "model.npz", "wine.csv", "--ignore", "grower", "--flag"]) == 0
    assert "rows drawn from the model" in capsys.readouterr().out


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


def test_a_gap_in_a_single_row_is_left_to_the_model_as_among_all(wine):
    gappy = wine.copy()
    gappy.loc[7, "hue"] = np.nan
    for name, rows in (("all", gappy), ("one", gappy.iloc[[7]])):
        rows.to_csv(f"{name}.csv", index=False)
        arguments = ["project", "wine.npz", f"{name}.csv", "--missing", "model"]
        assert main([*arguments, "--out", f"{name}.npz"]) == 0
    one, among_all = arrays_of("one.npz")["scores"], arrays_of("all.npz")["scores"]
    np.testing.assert_allclose(one, among_all[[7]], rtol=0, atol=1e-6)


def test_a_stored_run_whose_data_are_gone_still_describes_rows(wine, appca_home, capsys):
    assert main(["fit", "wine.csv", "-K", "4", "--label", "grower", "--store"]) == 0
    (run,) = RunStore(appca_home).list()
    DatasetStore(appca_home).delete(run.config.dataset)
    assert main(["project", run.id, "wine.csv", "--out", "rows.npz"]) == 0
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], run.fitted.scores)


def test_a_model_that_learns_the_number_is_fitted_and_projects(tmp_path, capsys):
    out, rows = tmp_path / "wine.npz", tmp_path / "rows.npz"
    few = [part for name in ("burn_in=5", "n_draws=5") for part in ("--set", name)]
    assert main(["fit", "wine", "--model", "isFA", "-K", "5", *few, "--out", str(out)]) == 0
    assert "made all 10 sweeps" in capsys.readouterr().out
    fitted = arrays_of(out)
    assert fitted["posterior_components"].shape == (2, 5, 5, 13)
    assert main(["project", str(out), "wine", "--out", str(rows)]) == 0
    np.testing.assert_array_equal(arrays_of(rows)["active"], fitted["active"])


def test_new_rows_with_other_features_are_refused(folder, capsys):
    main(["fit", "wine", "-K", "2", "-L", "1", "--out", "wine.npz"])
    capsys.readouterr()
    assert main(["project", "wine.npz", "digits", "--out", "x.csv"]) == 1
    assert "has 64 features, but the fit uses 13" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04 and no more", "“file.npz” is not a zip file or is damaged"),
        (b"", "“file.npz” is not a zip file or is damaged"),
        (None, "“file.npz” is not a model file: it lacks “run”"),
    ],
)
def test_files_that_are_no_model_are_one_sentence(folder, capsys, content, words):
    if content is None:
        np.savez("file.npz", components=np.eye(3))
    else:
        (folder / "file.npz").write_bytes(content)
    assert main(["project", "file.npz", "wine", "--out", "x.csv"]) == 1
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_what_a_stranger_wrote_about_the_rows_is_not_trusted(wine, folder, capsys):
    found = arrays_of("wine.npz")
    found["feature_names"] = np.array(["a", "a"])
    found["image_shape"] = np.array([-1, -13])
    found["data_type"] = np.array("object")
    np.savez("odd.npz", **found)
    assert main(["project", "odd.npz", "wine.csv", "--out", "rows.npz"]) == 0
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], found["scores"])
