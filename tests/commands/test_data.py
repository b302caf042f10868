"""What commands print: every example of the help, how data are read, JSON, pipes, nothing."""

import io
import json
import re
import shlex
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from appca import cli
from appca.cli import _parser, main
from appca.data.readers import read
from appca.data.sources import SOURCES
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.studies.catalogue import shipped
from appca.studies.report import paper
from appca.studies.store import ShippedResults, StudyStore
from tests.commands.conftest import arrays_of
from tests.conftest import ROOT
from tests.homes import NAME, copied


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


EXAMPLES = {  # but for `open`, a server that runs until it is ended: see test_app
    name: [line.strip() for line in parser.epilog.splitlines()[1:]]
    for name, parser in _parser()[1].items()
    if name != "open"
}


def shell(example: str, monkeypatch, capfd) -> str:
    """Do what a shell would; return what a person sees."""
    form = r"(?:cat (\S+) \| )?python -m appca (.*?)(?: > (\S+))?"
    piped, call, into = re.fullmatch(form, example).groups()
    if piped:
        pipe(monkeypatch, Path(piped).read_bytes())
    told = io.TextIOWrapper(io.BytesIO()) if into else io.StringIO()
    monkeypatch.setattr("sys.stdout", told)
    assert main(shlex.split(call)) == 0, example
    if not into:
        return told.getvalue()
    Path(into).write_bytes(told.buffer.getvalue())
    return capfd.readouterr().err


@pytest.mark.thorough
def test_every_example_does_what_it_says(folder, appca_home, capfd, monkeypatch):
    opened: list[str] = []
    asked: list[list[str]] = []

    def unless_shipped(names, size, changes, store, out, say, show):
        """Compute nothing for half an hour, and keep nothing in the package."""
        if isinstance(store, ShippedResults):
            asked.append(names)
            say("shipped")
        else:
            paper(names, size, changes, store, out, say, show)

    monkeypatch.setattr("appca.studies.report.paper", unless_shipped)
    monkeypatch.setattr("webbrowser.open", opened.append)
    told = {}
    for example in chain(*EXAMPLES.values()):
        told[example] = shell(example, monkeypatch, capfd)
        assert told[example], example
    made = {path.name for path in folder.iterdir()} - {"measurements.csv", "new.csv", "faces"}
    assert opened == [(folder / "wine.html").resolve().as_uri()]
    assert made == {
        *("measurements.parquet", "faces.npz", "digits.npz", "table.csv"),
        *("rows.parquet", "rows.csv", "results", "docs", "model.npz", "new_rows.csv"),
        *("wine.html", "planes.html"),
    }
    assert [path.name for path in (folder / "docs").iterdir()] == ["paper.md"]
    assert asked == [[]]
    table = pd.read_parquet("measurements.parquet")
    assert list(table) == ["id", "kind", "a", "b", "c", "d", "e"]
    assert np.flatnonzero(table["b"].isna()).tolist() == [3, 8]
    assert arrays_of("faces.npz")["X"].shape == (16, 256)
    read = (pd.read_csv("table.csv"), pd.read_parquet("rows.parquet"), pd.read_csv("new_rows.csv"))
    assert [len(one) for one in read] == [60, 24, 24]
    assert arrays_of("model.npz")["components"].shape == (3, 5)
    (run,) = RunStore(appca_home).list()
    assert run.id in told["python -m appca runs"]
    assert "4 of 24 rows do not fit" in told["python -m appca project digits.npz new.csv --flag"]


SMALL = ("-K", "2", "-L", "1")


def documented(command: str) -> set[str]:
    """Return the fields that the page lists for a command; those in brackets are of parts."""
    text = (ROOT / "docs" / "command_line.md").read_text("utf-8")
    start = "*data*:" if command == "*data*" else f"| `{command}` | "
    line = text.split("## JSON")[1].split(start)[1].split("\n\n" if start[0] == "*" else " |\n")[0]
    own = re.sub(r"\([^)]*\)|: list of [^;]*", "", line)
    return set(re.findall(r"`(\w+)`", own))


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
    lines = said("data").out.splitlines()
    assert [line.split()[0] for line in lines] == list(SOURCES)
    told = " ".join(said("data table.csv --columns").out.split())
    for words in (
        "found 60 rows × 9",
        "2 cells (0.7%) in 2 rows, kept as they are: b (2)",
        "repeated rows 0",
        "values float64, 2.4 kB",
        "preprocessing centred, each feature divided by its standard deviation (what `fit` does",
        "first fit under 1 s for K = 4, L = 2",
        "b feature numbers, 2 missing cells",
        "note ignored long texts",
    ):
        assert words in told
    told = " ".join(said(["fit", "table.csv", "--missing", "model", *SMALL]).out.split())
    for words in (
        "table: 60 rows, 5 features",
        "row names name",
        "left out height (one value), note (long texts)",
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
    paper = answer(said, "paper", "--document", str(appca_home / "x.md"))
    assert set(paper) == documented("paper")


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
    rows = pd.read_csv(io.BytesIO(told.out))
    names = [f"component_{k}" for k in (1, 2, 3)]
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
        f"run {run.name} “{NAME}”: arrays.npz has been changed since it was "
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
