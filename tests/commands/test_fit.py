"""`appca fit`, `project` and `appca DATA`: what the page would compute, in every kind of file."""

import json
import pkgutil
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import appca
from appca.cli import main
from appca.commands import jupyter
from appca.data.preprocessing import suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import RunConfig
from appca.runs.session import Session, pack
from appca.runs.store import RunStore
from appca.ui import server
from appca.ui.frame import ICON
from appca.words import InputError
from tests.commands.conftest import arrays_of
from tests.conftest import ROOT
from tests.data.file_makers import encoded, noise


def test_fit_writes_what_the_page_would_compute(folder, said):
    told, wine = said("fit wine -K 3 -L 1 --seed 4 --out wine.npz").out, load("wine")
    parameters = {"n_components": 3, "n_active": 1, "random_state": 4}
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", parameters)
    expected = fit_run(wine, config)
    found = arrays_of("wine.npz")
    for name, values in expected.fitted.to_arrays().items():
        assert found[name].tobytes() == values.tobytes(), name
    np.testing.assert_array_equal(found["ids"], wine.ids)
    assert RunConfig.from_dict(json.loads(str(found["run"]))["config"]) == config
    assert "nats per row" in told
    doubtful = int((found["membership"] < 0.5).sum())
    assert f"{doubtful} of 178 rows are doubtful" in told


def test_a_file_of_ones_own_is_fitted_with_options_settings_and_preprocessing(folder, said):
    np.save("own.npy", np.random.default_rng(0).standard_normal((60, 5)))
    how = "-K 2 -L 1 --set max_iter=3 --set init=pca --scale global --centre --pca 3 --divide 2"
    for suffix in ("csv", "parquet"):
        told = said(f"fit own.npy {how} --out table.{suffix}").out
        assert "reached max_iter=3" in told
        table = getattr(pd, f"read_{suffix}")(f"table.{suffix}")
        assert len(table) == 60
        assert {"component_1", "component_2", "membership"} <= set(table)
    assert "2 cells" in said("fit measurements.csv -K 2 --missing mean").out


def test_rows_are_chosen_by_conditions_and_those_left_out_are_projected(folder, said):
    wine, alcohol = load("wine"), load("wine").X[:, 0]
    gone = (
        np.isin(wine.ids, wine.ids[[7, 9]])
        | (alcohol > 14)
        | (wine.labels["cultivar"] == "class_2")
    )
    names = ",".join(wine.ids[[7, 9]])
    chosen = ["--drop", f"id={names}", "--where", "alcohol<=14", "--where", "cultivar!=class_2"]
    told = said(["fit", "wine", "-K", "2", "-L", "1", *chosen, "--out", "some.npz"]).out
    assert f"wine, {(~gone).sum()} of 178 rows" in told.lower()
    assert list(arrays_of("some.npz")["ids"]) == list(wine.ids[~gone])
    said(f"project some.npz wine --where id={names} --out gone.csv")
    assert list(pd.read_csv("gone.csv")["id"].astype(str)) == list(wine.ids[[7, 9]])


def test_a_stored_run_is_where_the_app_looks_for_it(tmp_path, appca_home, said):
    out = tmp_path / "rows.csv"
    assert "no runs are stored" in said("runs").out
    assert main(["fit", "wine", "--model", "PPCA", "-K", "2", "--store"]) == 0
    (run,) = RunStore(appca_home).list()
    assert run.config.model == "PPCA"
    assert DatasetStore(appca_home).get(run.config.dataset).n_rows == 178
    line = said("runs").out
    assert line.startswith(run.id)
    assert "PPCA, K = 2" in line
    assert "Wine" in line
    DatasetStore(appca_home).delete(run.config.dataset)  # it still describes rows
    assert main(["project", run.id, "wine", "--out", str(out)]) == 0
    scores = pd.read_csv(out)[["component_1", "component_2"]].to_numpy(np.float32)
    np.testing.assert_array_equal(scores, run.fitted.scores)


@pytest.fixture
def wine(folder):
    """Fitted to wine.csv, which holds the wine data with a column more."""
    data = load("wine")
    frame = pd.DataFrame(data.X, columns=list(data.feature_names)).assign(grower="a")
    frame.to_csv("wine.csv", index=False)
    assert main(["fit", "wine.csv", "-K", "4", "--label", "grower", "--out", "wine.npz"]) == 0
    return frame


def test_the_rows_of_the_fit_get_its_scores_again_whatever_their_file_and_columns(wine, said):
    found = arrays_of("wine.npz")
    for kind in ("csv", "parquet", "npz"):
        assert main(["project", "wine.npz", "wine.csv", "--out", f"rows.{kind}"]) == 0
    names = [f"component_{k}" for k in range(1, 5)]
    for table in (pd.read_csv("rows.csv"), pd.read_parquet("rows.parquet")):
        np.testing.assert_array_equal(table[names].to_numpy(np.float32), found["scores"])
        assert list(table["id"].astype(str)) == list(found["ids"])
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], found["scores"])
    shuffled = wine.sample(frac=1, axis=1, random_state=0).assign(extra=2.5, more="a word")
    shuffled.to_csv("shuffled.csv", index=False)
    told = said("project wine.npz shuffled.csv --out rows.npz").out
    assert "columns matched by name; their order differs" in told
    assert {"extra", "more"} <= set(told.partition("not used: ")[2].partition("\n")[0].split(", "))
    np.testing.assert_array_equal(arrays_of("rows.npz")["scores"], found["scores"])
    wine.drop(columns=["ash"]).to_csv("few.csv", index=False)
    told = said("project wine.npz few.csv --flag", 1).err
    assert "“few” lacks 1 column that the fit uses, “ash”" in told
    gappy = wine.copy()
    gappy.loc[7, "hue"] = np.nan
    gappy.to_csv("gappy.csv", index=False)
    arguments = ["project", "wine.npz", "gappy.csv", "--out", "rows.npz"]
    assert "1 missing cell" in said([*arguments, "--missing", "refuse"], 1).err
    assert main(arguments) == 0
    off = np.abs(arrays_of("rows.npz")["scores"] - found["scores"]).max(axis=1)
    assert np.flatnonzero(off > 1e-6).tolist() == [7]


def test_rows_that_do_not_fit_are_counted_and_a_single_row_is_described_as_among_all(wine, said):
    strange = wine.head(20).copy()
    strange.loc[4, "ash"] = 50.0
    strange.to_csv("strange.csv", index=False)
    told = said("project wine.npz strange.csv --flag --out rows.csv").out
    table = pd.read_csv("rows.csv")
    assert f"{(~table['fits']).sum()} of 20 rows do not fit: 1 too far from their" in told
    assert np.flatnonzero(table["q"] > table["q_limit_run"]).tolist() == [4]
    assert not table["fits"][4]
    assert main(["project", "wine.npz", "strange.csv", "--flag", "--out", "rows.npz"]) == 0
    np.testing.assert_array_equal(arrays_of("rows.npz")["fits"], table["fits"])
    told = said("project wine.npz wine.csv --flag --level 0.95").out
    assert ": 9 too far from their subspace (Q), 9 too far out" in told, "one of twenty"
    assert "above the limits that 0.95 of the run's rows are below" in told
    wine.iloc[[7]].to_csv("one.csv", index=False)
    assert "1 row; " in said("project wine.npz one.csv --flag --out one.npz").out
    scores = arrays_of("wine.npz")["scores"]
    np.testing.assert_allclose(arrays_of("one.npz")["scores"], scores[[7]], rtol=0, atol=1e-6)
    wine.iloc[[7, 7, 7]].to_csv("same.csv", index=False)
    assert main(["project", "wine.npz", "same.csv", "--out", "same.npz"]) == 0
    assert arrays_of("same.npz")["scores"].shape == (3, 4)
    told = said("fit one.csv -K 1 --out no.npz", 1).err
    assert "“one.csv” has 1 row of data; at least 2 are needed" in told


def test_data_and_sessions_are_opened_without_an_upload(tmp_path, monkeypatch, places, said):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    np.save("X.npy", X)
    np.save("kind.npy", np.arange(30) % 3)
    Path("t.csv").write_text("a,b,c\n1,2,3\n4,,6\n7,8,1\n2,2,2\n")
    assert main(["X.npy", "--labels", "kind.npy"]) == 0
    assert main([]) == 0
    assert main(["t.csv"]) == 0
    stored, table = (DatasetStore(home()).get(places[at]["data"]) for at in (0, 2))
    np.testing.assert_array_equal(stored.X, X)
    assert list(stored.labels["kind"][:4]) == ["0", "1", "2", "0"]
    assert table.n_missing == 1
    Path("work.appca").write_bytes(pack(Session(table, [])))
    assert main(["work.appca"]) == 0
    assert places[1:] == [{}, places[2], places[2]]
    for name in "ab":
        Path(f"{name}.png").write_bytes(encoded(noise(ord(name), 6, 6)))
    assert main(["a.png", "b.png"]) == 0
    origins = [DatasetStore(home()).origin(places[at]["data"]) for at in (2, -1)]
    assert origins == [Path("t.csv").absolute(), None], "two files are none to write into"
    for content in (b"", b"a\nb\n", b"\x93NUMPY\x01\x00"):  # labels that do not fit
        for name in ("y.npy", "y.txt"):
            Path(name).write_bytes(content)
            assert "y." in said(["wine", "--labels", name], 1).err


def test_jupyter_starts_it_at_a_socket_with_a_token_of_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = project["entry-points"]["jupyter_serverproxy_servers"]
    told, again = pkgutil.resolve_name(named[jupyter.NAME])(), jupyter.server()
    assert told["unix_socket"]
    assert told["environment"]["STREAMLIT_SERVER_ALLOWED_HOSTS"] == "*"
    assert "{unix_socket}" in told["command"]
    secret = told["environment"]["APPCA_TOKEN"]
    assert told["request_headers_override"] == {jupyter.HEADER: secret}
    assert secret != again["environment"]["APPCA_TOKEN"]
    assert all(secret not in word for word in told["command"]), "everybody can read these"
    assert jupyter.HEADER.lower() == server.HEADER
    assert Path(told["launcher_entry"]["icon_path"]).read_text() == ICON


def test_a_notebook_gets_a_link_to_a_file_and_outside_of_jupyter_a_sentence(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(20, 3)))
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ann/")
    link = appca.open_app(tmp_path / "rows.npy")
    ((digest, name, *_),) = DatasetStore(home()).list()
    assert name == "rows"
    assert link.url == f"/user/ann/appca/?data={digest}"
    assert f'href="{link.url}"' in link._repr_html_()
    with pytest.raises(InputError, match="not a file"):
        appca.open_app(tmp_path / "other.npy")
    monkeypatch.delenv("JUPYTERHUB_SERVICE_PREFIX")
    with pytest.raises(InputError, match="open them by `appca FILE`"):
        appca.open_app("rows.npy")
