"""Tests of commands: examples, files, pipes, JSON, errors and interrupts."""

import io
import json
import os
import pkgutil
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import appca
from appca import cli
from appca.cli import _parser, main
from appca.commands import app, fit, jupyter
from appca.data.preprocessing import suggest
from appca.data.readers import read
from appca.data.sources import SOURCES, load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import RunConfig
from appca.runs.session import Session, pack
from appca.runs.store import RunStore
from appca.studies.catalogue import shipped
from appca.studies.store import StudyStore
from appca.ui import server
from appca.ui.frame import ICON
from appca.words import InputError
from tests.commands.conftest import Nobody, arrays_of
from tests.conftest import ROOT
from tests.data.file_makers import encoded, idx, noise
from tests.homes import NAME, copied
from tests.sentences import faults_of


def test_missing_cells_stay_missing_in_every_kind_of_file_and_columns_get_their_roles(folder, said):
    first = read("m.csv", folder / "measurements.csv", missing="model")
    for name in ("again.csv", "again.parquet", "again.npz"):
        told = said(f"data measurements.csv --out {name}").out
        assert "2 cells (0.7%) in 2 rows, kept as they are: b (2)\n" in told
        again = read(name, folder / name, missing="model")
        np.testing.assert_array_equal(again.with_gaps(), first.with_gaps())
        assert list(again.ids) == list(first.ids)
        (kind,), (found,) = first.labels.values(), again.labels.values()
        assert list(found) == list(kind)
    roles = '--label e --id name --ignore d --option roles={"a":"label"}'
    said(f"data measurements.csv {roles} --out own.npz")
    found = arrays_of("own.npz")
    assert found["X"].shape == (60, 2)
    assert set(found["label_names"]) == {"a", "e", "kind"}
    assert found["ids"][:2].tolist() == ["item 0", "item 1"]


def test_a_folder_and_several_images_are_one_data_set(folder, said):
    assert ".hidden" not in said("data faces --out folder.npz").out
    files = [str(path) for path in sorted((folder / "faces").glob("*/*.png"))]
    said(["data", *files, "--out", "files.npz"])
    one, other = arrays_of("folder.npz"), arrays_of("files.npz")
    assert one["X"].shape == (16, 400)
    assert list(one["label_0"]) == ["ada"] * 8 + ["bob"] * 8
    for name in ("X", "ids", "label_0"):
        np.testing.assert_array_equal(one[name], other[name])


def pipe(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_every_example_of_the_help_is_understood_by_its_command():
    """What commands do with their options is tested below."""
    parser, commands = _parser()
    form = r"(?:cat \S+ \| )?python -m appca (.*?)(?: > \S+)?"
    for name in {*commands} - {"open"}:  # whose examples leave its name out: see test_app
        for line in commands[name].epilog.splitlines()[1:]:
            words = shlex.split(re.fullmatch(form, line.strip())[1])
            assert words[0] == name
            assert parser.parse_args(words)


SMALL = ("-K", "2", "-L", "1", "--set", "init=pca")


def documented(command: str) -> set[str]:
    """Return the fields that the page lists for a command; those in brackets are of parts."""
    text = (ROOT / "docs" / "command_line.md").read_text("utf-8")
    start = "*data*:" if command == "*data*" else f"| `{command}` | "
    line = text.split("## JSON")[1].split(start)[1].split("\n\n" if start[0] == "*" else " |\n")[0]
    return set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)|: list of [^;]*", "", line)))


def answer(said, *arguments: str) -> dict:
    """Return the object that a command prints, which must be all of standard output."""
    told = said([*arguments, "--json"])
    assert told.out.count("\n") == 1
    return json.loads(told.out)


@pytest.fixture
def table(folder) -> Path:
    """measurements.csv with a column that is constant and one of long texts."""
    frame = pd.read_csv("measurements.csv").assign(height=4.0, note="x" * 600)
    frame.to_csv("table.csv", index=False)
    return folder / "table.csv"


def test_data_and_fit_say_how_the_data_are_read_and_prepared(table, said):
    assert [line.split()[0] for line in said("data").out.splitlines()] == list(SOURCES)
    told = " ".join(said("data table.csv --columns").out.split())
    for words in (
        "found 60 rows × 9",
        "2 cells (0.7%) in 2 rows, kept as they are: b (2)",
        "repeated rows 0",
        "values float64, 2.4 kB",
        "preprocessing centred, each feature divided by its standard deviation (what `fit` does",
        "first fit under 1 s for K = 4, L = 2",
        "b feature numbers, 2 missing cells",
        "note ignored long text",
    ):
        assert words in told
    told = " ".join(said(["fit", "table.csv", "--missing", "model", *SMALL]).out.split())
    for words in (
        "table: 60 rows, 5 features",
        "row names name",
        "left out height (one value), note (long text)",
        "label “kind” 2 values: x (30), y (30)",
        "missing 2 cells (0.7%) in 2 rows, fitted around: b (2)",
        "preprocessing centred, each feature divided by its standard deviation (by default; --",
        "model Adaptive PPCA, K = 2, L = 1, seed 0",
        "nats per row, of the values after preprocessing",
    ):
        assert words in told
    as_they_are = ("--divide", "1", "--no-centre", "--scale", "none")
    told = said(["fit", "table.csv", "--missing", "drop", *SMALL, *as_they_are]).out
    assert re.search(r"preprocessing +none\n", told)
    assert re.search(r"nats per row\n\d+ of 58 rows are doubtful: .+\n$", told)


def test_json_has_the_documented_fields_and_nothing_else(table, appca_home, said):
    assert set(answer(said, "data")) == documented("data") == {"data_sets"}
    found = answer(said, "data", "table.csv", "--out", "t.npz")
    assert set(found) == documented("data DATA") | documented("*data*")
    ignored = {one["name"] for one in found["columns"] if one["role"] == "ignored"}
    assert ignored == {"height", "note"}
    assert (found["constant"], found["written"]) == (["height"], "t.npz")
    assert found["labels"] == [{"name": "kind", "values": 2, "counts": {"x": 30, "y": 30}}]
    assert {"name": "b", "role": "feature", "kind": "numbers", "missing": 2} in found["columns"]
    fit = ("fit", "table.csv", "--missing", "model", *SMALL, "--store", "--out", "m.npz")
    found = answer(said, *fit)
    assert set(found) == documented("fit")
    assert set(found["data"]) == documented("*data*")
    assert found["preprocessing"]["scale"] == "feature"
    assert found["parameters"]["n_components"] == 2
    assert found["data"]["missing_cells"] == 2
    project = ("project", "m.npz", "table.csv", "--missing", "model", "--flag")
    assert set(projected := answer(said, *project)) == documented("project")
    assert set(projected["misfits"]) == {"level", "rows", "q", "t2"}
    (run,) = answer(said, "runs")["runs"]
    assert run["run"] == found["run"]
    assert run["log_likelihood_per_row"] == pytest.approx(found["log_likelihood_per_row"])
    assert set(answer(said, "check")) == documented("check")
    (appca_home / "x.md").touch()
    assert set(answer(said, "paper", "--document", str(appca_home / "x.md"))) == documented("paper")


def test_a_table_comes_from_a_pipe_and_a_model_goes_into_one(folder, monkeypatch, capfdbinary):
    content = Path("measurements.csv").read_bytes()
    fit = ("-K", "3", "-L", "1", "--missing", "drop")
    assert main(["fit", "measurements.csv", *fit, "--out", "file.npz"]) == 0
    capfdbinary.readouterr()
    pipe(monkeypatch, content)
    assert main(["fit", "-", *fit, "--out", "-"]) == 0
    told = capfdbinary.readouterr()
    assert b"preprocessing" in told.err
    Path("piped.npz").write_bytes(told.out)
    one, other = arrays_of("piped.npz"), arrays_of("file.npz")
    np.testing.assert_array_equal(one["scores"], other["scores"])

    pipe(monkeypatch, content)
    assert main(["project", "piped.npz", "-", "--missing", "drop", "--out", "-"]) == 0
    told = capfdbinary.readouterr()
    rows, names = pd.read_csv(io.BytesIO(told.out)), [f"component_{k}" for k in (1, 2, 3)]
    np.testing.assert_array_equal(rows[names].to_numpy(np.float32), other["scores"])
    assert b"doubtful membership" in told.err


def test_every_option_has_its_default_in_the_help_and_quiet_says_errors_only(said):
    _, commands = cli._parser()
    assert set(commands) >= {"data", "fit", "project", "runs", "check", "paper"}
    for name, parser in commands.items():
        options = {word for action in parser._actions for word in action.option_strings}
        assert {"--json", "--quiet"} <= options
        for action in parser._actions:
            if action.option_strings and action.dest != "help":
                assert "(default: " in (action.help or ""), f"{name} {action.option_strings}"
    told = said("fit wine -K 99 --quiet --json", 2)
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "-K must be at most 13" in told.err
    assert said("data wine -q") == ("", "")
    told = said(["fit", "wine", *SMALL, "-q", "--json"])
    assert (json.loads(told.out)["model"], told.err) == ("aPPCA", "")


def test_every_kind_goes_through_a_pipe_and_comes_back(monkeypatch, capfdbinary):
    for kind in ("csv", "parquet", "npz"):
        assert main(["data", "wine", "--out", "-", "--format", kind]) == 0
        pipe(monkeypatch, capfdbinary.readouterr().out)
        assert main(["data", "-", "--json", "-q"]) == 0
        found = json.loads(capfdbinary.readouterr().out)
        assert (found["name"], found["rows"], found["features"]) == ("standard input", 178, 13)


def test_a_terminal_is_asked_for_a_pipe_and_spared_an_archive(monkeypatch, said):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert "- reads standard input, which is empty" in said("fit -", 2).err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert ".npz is not text" in said("fit wine --out -", 2).err


def test_what_is_damaged_is_named_with_its_file_and_what_would_repair_it(tmp_path, said):
    home = copied(tmp_path / "home")
    assert said(["check", "--home", str(home)]).out == f"{home} is sound\n"
    run = next(path.parent for path in home.glob("runs/*/config.json") if NAME in path.read_text())
    (run / "arrays.npz").write_bytes(b"x" * (run / "arrays.npz").stat().st_size)
    (next(home.glob("studies/*/config.json")).parent / "arrays.npz").unlink()
    out = said(["check", "--home", str(home)], 1).out.replace(str(home), "HOME")
    for line in (
        f"run {run.name} “{NAME}”: arrays.npz has changed since it was "
        f"stored (runs/{run.name}/arrays.npz); fit it again: aPPCA, K = 4, L = 2",
        "arrays.npz is missing",
        "2 damaged files in HOME\n",
    ):
        assert line in out, out
    told = json.loads(said(["check", "--home", str(home), "--json"], 1).out)["files"]
    assert len(told) == 2
    assert set(told[0]) == {"what", "file", "problem", "remedy"}


def test_experiments_are_printed_written_shipped_and_become_a_page(tmp_path, said, monkeypatch):
    out, file = tmp_path / "paper", tmp_path / "docs" / "paper.md"
    told = said(["paper", "z-priors", "--quick", "--set", "n_rows=30", "--out", str(out)]).out
    assert "\ufffd" not in told
    assert "n_rows 30; n_components 20" in told
    table = pd.read_csv(out / "z-priors-designs.csv")
    assert list(table["design"]) == ["sparse", "dense", "subspace", "balanced", "single"]
    assert f"balanced  {table['per_row'][3]:.0f}" in told
    assert "plotly" in (out / "z-priors-designs.html").read_text("utf-8")
    (kept,) = StudyStore(home()).list("z-priors")
    assert kept.options["n_rows"] == 30
    monkeypatch.setattr("appca.studies.store.FOLDER", tmp_path / "results")
    assert main(["paper", "z-priors", "--ship"]) == 0
    assert len(StudyStore(home()).list()) == 1
    shipped.cache_clear()
    assert "wrote paper.md: 1 of" in said(["paper", "--document", str(file)]).out
    shipped.cache_clear()
    page = file.read_text("utf-8")
    assert "(#z-priors) | `z-priors` | 1 of 1 | default |" in page
    assert "`planes` | not computed" in page


def test_fit_writes_what_the_page_would_compute(folder, said):
    told, wine = said("fit wine -K 3 -L 1 --seed 4 --set init=random --out w.npz").out, load("wine")
    parameters = {"n_components": 3, "n_active": 1, "random_state": 4, "init": "random"}
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", parameters)
    expected, found = fit_run(wine, config), arrays_of("w.npz")
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
        assert "reached max_iter=3" in said(f"fit own.npy {how} --out table.{suffix}").out
        table = getattr(pd, f"read_{suffix}")(f"table.{suffix}")
        assert len(table) == 60
        assert {"component_1", "component_2", "membership"} <= set(table)
    assert "2 cells" in said("fit measurements.csv -K 2 --missing mean").out
    assert (
        "normal variate (SNV), centred" in said("fit own.npy -K 2 --prepare snv --out own.npz").out
    )
    said("project own.npz own.npy --out same.npz")
    assert arrays_of("same.npz")["scores"].tobytes() == arrays_of("own.npz")["scores"].tobytes()


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
    how = "-K 4 --label grower --set init=pca --out wine.npz"
    assert main(["fit", "wine.csv", *how.split()]) == 0
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
    with pytest.raises(InputError, match="elsewhere, use `appca FILE`"):
        appca.open_app("rows.npy")


STEERING = "\x1b[2J\x1b[31mevil\x07"
TABLE = "\n".join(  # numbers under harmless and hostile names, with a hostile class
    [
        f"height,a b,{STEERING},kind",
        *(f"{i},{i * i % 7},{i % 3},{'xy'[i % 2]}{STEERING}" for i in range(20)),
    ]
)
USAGE: list[tuple[str, str]] = [  # what is wrong whatever the data are: exit code 2
    ("fit wine -K 0", "-K must be"),
    ("fit wine -L 7", "-L must be"),
    ("fit wine --seed -1", "--seed must be"),
    ("fit wine --set tol=-1", "tol must be"),
    ("fit wine --set init=[[1,2]]", "init must"),
    ("fit wine --set n_init=99999999999999999999999", "n_init must be a finite number"),
    ("fit wine -K 99999999999999999999999", "-K must be a finite number, a text or"),
    ("fit wine --pca 99", "--pca must be"),
    ("fit wine --pca 0.0", "--pca must be a positive whole number of dimensions"),
    ("fit wine --divide 0", "--divide must be a positive number"),
    ("fit wine -K 99", "-K must be at most 13"),
    ("fit wine -K 2 -L 3", "-L must be at most -K 2; got 3: lower -L or"),
    ("fit wine --model PPCA -L 2", "has the settings -K, --seed; got -L."),
    ("fit wine -K four", "invalid int value: 'four'"),
    ("fit wine --model PCA", "invalid choice: 'PCA'"),
    ("fit wine --set depth=3", "aPPCA has the settings"),
    ("fit wine --set depth", "“depth” must be of the form name=value"),
    ("fit wine --label hue", "--label is for files, and “wine” is built in, with"),
    ("fit wine --missing drop", "--missing is for files, and “wine” is built in"),
    ("fit wine --out fitted.h5ad", "DATA must be one .h5ad file"),
    ("fit wine --out x.txt", "must end in .csv, .parquet, .npz; got “x.txt”"),
    ("fit wine --html a.htm", "must end in .html"),
    ("fit wine --json --out -", "--json and --out - both write to standard output"),
    ("fit wine --format csv", "--format needs --out -"),
    ("fit - wine", "- reads one file from standard input; got 2 names"),
    ("project wine wine", "--out"),
    ("project wine wine --flag --level 1", "--level must be a share"),
    ("open --labels y.npy", "--labels needs DATA"),
    ("wine --address 0.0.0.0 --no-token", "add --behind-proxy"),
    ("paper", "one of the arguments NAME --all --ship --document is required"),
    ("paper --quick --full", "not allowed with argument"),
    ("paper table1 --all", "not allowed with argument"),
    ("paper z-priors --document x.md", "not allowed with argument"),
    ("paper --document x.md --quick", "--document computes nothing"),
    ("paper --document x.md --set seeds=1", "--document computes nothing"),
]
REFUSED: list[tuple[str, str]] = [  # what the data or the disk do not allow: exit code 1
    ("fit measurements.csv -K 2", "2 missing cells"),
    ("fit wine --out /proc/x.csv", "“x.csv” could not be stored in /proc"),
    ("fit wine --html /proc/a.html", "could not be stored in /proc"),
    ("fit wine --out no/such/x.csv", "there is no “no/such”"),
    (f"fit wine --out {'x' * 300}.npz", "xxx"),
    ("data wine --out folder.csv", "“folder.csv” is a folder, so name a file"),
    ("fit wine --where alcohol", "A condition is like 'alcohol>12'"),
    ("fit wine --drop alcohol>much", "must have a number after >"),
    ("fit wine --drop alcool>1", "no column “alcool”; the nearest is “alcohol”"),
    ("fit wine --where alcohol>99", "No row meets --where alcohol>99; correct its value"),
    ("fit nothing", "“nothing” is not a file, a folder or a built-in data set"),
    ("fit wnie", "the nearest is “wine”"),
    ("cook", "“cook” is not a file, a folder or"),
    ("fit empty.csv", "is empty"),
    ("fit folder.csv", "has no files; name one with images"),
    ("fit -", "is empty"),
    ("fit wine --option size=3", "has no options; got size"),
    ("project nothing.npz wine --out x.csv", "neither an .npz file from `fit`"),
    ("project t.csv wine --out x.csv", "is not a zip file or is damaged"),
    ("fit t.csv --label hight", "no column “hight”; the nearest is “height”, and"),
    ("data t.csv --label Height", "the nearest is “height”"),
    ("data t.csv --label a_b", "`python -m appca data t.csv --columns` lists them."),
    (f"data t.csv --id {STEERING}!", "no column “�[2J�[31mevil�!”; the nearest is"),
    (f"data t.csv --ignore {'x' * 100_000}", "no column “xxx"),
    ("data t.csv --option roles=[1]", "--option roles=[1] has the wrong type for"),
    ("data t.csv --option image_shape=[[]]", "has the wrong type for the option"),
    ("data measurements.csv --id kind --ignore d --ignore name", "must be unique"),
    ("check --home none", "There is no folder"),
    ("wine --labels y.npy", "No such file"),
    ("paper table9", "There is no experiment “table9”; the nearest is “table1”"),
    ("paper table1 --set depth=3", "There is no option “depth” of table1; there are"),
    ("paper table1 --set n_rows=0", "n_rows must be a whole number above 0; got 0"),
    ("paper --all --set seeds=1", "There is no option “seeds” of planes"),
    (f"paper z-priors --out {__file__}", "must be a folder"),
    (f"paper --document {__file__}/x.md", "could not be written"),
]


def never(*given: object) -> None:
    fit_run(*given)  # which may refuse, too
    pytest.fail("the fit was made")


@pytest.fixture
def tables(folder) -> Path:
    Path("t.csv").write_text(TABLE)
    Path("empty.csv").touch()
    Path("folder.csv").mkdir()
    return folder


def test_a_refusal_is_one_sentence_with_its_exit_code_and_no_effect(tables, monkeypatch, capsys):
    monkeypatch.setattr(fit, "fit_run", never)
    monkeypatch.setattr(app, "_started", lambda *_: Nobody())
    before = {path.name for path in tables.iterdir()}
    for call, words, expected in [*((*one, 2) for one in USAGE), *((*one, 1) for one in REFUSED)]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        try:
            code = main(call.split(" "))
        except SystemExit as leaving:  # argparse's own way
            code = leaving.code
        told = capsys.readouterr()
        assert (code, told.out, told.err.count("\n")) == (expected, "", 1), call
        assert told.err.startswith("appca")
        assert words in told.err
        sentence = told.err.removeprefix("appca: ").strip()
        of_others = re.search("error:|usage|argument|too long|No such file", sentence)
        assert of_others or faults_of(sentence) == "", sentence
        assert {path.name for path in tables.iterdir()} == before, call


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_data_that_cannot_be_fitted_are_none(folder, said):
    np.save("huge.npy", 1e200 * np.random.default_rng(0).normal(size=(20, 4)))
    told = said("fit huge.npy -K 2 -L 1 --no-centre --scale none", 1).err
    assert "whose squares overflow" in told


def test_a_table_that_no_package_can_write_is_refused_before_the_fit(monkeypatch, said):
    monkeypatch.setattr(fit, "fit_run", never)
    for kind, package in (("csv", "pandas"), ("parquet", "pyarrow")):
        find = lambda name, absent=package: name != absent or None  # noqa: E731
        monkeypatch.setattr("appca.commands.writing.find_spec", find)
        assert f"needs the package {package}" in said(f"fit wine --out rows.{kind}", 1).err


def test_what_there_are_several_of_is_chosen_by_the_option_that_is_named(folder, said):
    h5py, rng = pytest.importorskip("h5py"), np.random.default_rng(0)
    with h5py.File("two.h5", "w") as file:
        for name in ("first part", "second"):
            file[name] = rng.random((20, 4))
    assert "for example --option 'array=first part'." in said("data two.h5", 1).err
    assert main(["data", "two.h5", "--option", "array=first part"]) == 0
    Image.fromarray(np.zeros((9, 7), np.uint8)).save("faces/ada/0.png")
    assert "for example --option 'size=[9,7]'." in said("data faces", 1).err
    Path("images-idx3-ubyte").write_bytes(idx(noise(0, 30, 4, 4)))
    Path("classes.idx").write_bytes(idx(np.arange(30, dtype=np.uint8) % 3))
    told = said("data images-idx3-ubyte --label classes.idx").out
    assert "label “class”      3 values: 0 (10), 1 (10), 2 (10)" in told
    told = said("data images-idx3-ubyte --label kind", 2).err
    assert "those of IDX from a file, `--label FILE`" in told
    frame = pd.read_csv("measurements.csv").drop(columns=["kind", "b"])
    frame.assign(population=np.arange(60) % 4).to_csv("people.csv", index=False)
    assert "population (4 values); use --label population" in said("fit people.csv -K 2").out
    assert "label “population”" in said("fit people.csv -K 2 --label population").out


# on its way


def run(arguments: list[str], cwd: Path, **how) -> subprocess.CompletedProcess:
    """Run ``python -m appca`` as a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "appca", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, text=True, check=False, stderr=subprocess.PIPE, **how
    )


def test_help_names_every_command_and_a_reader_that_has_gone_is_no_trouble(tmp_path):
    done = run(["--help"], tmp_path, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    for word in ("data", "fit", "project", "runs", "check", "paper", "COMMAND --help"):
        assert word in done.stdout
    reading, writing = os.pipe()
    os.close(reading)
    done = run(["data"], tmp_path, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_ctrl_c_ends_with_130_and_little_memory_is_a_sentence(tmp_path, monkeypatch, capsys, said):
    def interrupted(*_arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "wine.npz"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process ignores it
    try:
        with monkeypatch.context() as now:
            now.setattr("appca.commands.fit.Meter", lambda *_: interrupted)
            assert main(["fit", "wine", "-K", "3", "--out", str(out)]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setattr("appca.commands.fit.fit_run", Mock(side_effect=MemoryError))
    assert "not enough memory" in said("fit wine", 1).err


def test_names_in_a_file_never_steer_the_terminal(tables, said):
    for arguments in (["data", "t.csv", "--columns"], ["fit", "t.csv", "-K", "2"]):
        told = said(arguments)
        assert "�[2J" in told.out
        assert not {"\x1b", "\x07"} & set(told.out + told.err)
    told = said("data t.csv --json -q").out
    assert "\x1b" not in told
    assert STEERING in [column["name"] for column in json.loads(told)["columns"]]


def test_the_pass_is_shown_on_a_terminal_only(monkeypatch, said):
    assert said("fit wine -K 3 -L 1").err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["fit", "wine", "-K", "3", "-L", "1"]) == 0
    shown = terminal.getvalue()
    assert "fit, pass 1: " in shown
    assert shown.endswith("\r" + " " * 79 + "\r")  # nothing of it stays
