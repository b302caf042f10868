"""What a command prints: how the data are read and prepared, defaults, JSON, pipes, nothing."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from appca import cli
from appca.cli import main
from tests.commands.conftest import arrays_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "command_line.md"
SMALL = ("-K", "2", "-L", "1")


def documented(command: str) -> set[str]:
    """Return the fields that the page lists for a command; those in brackets are of parts."""
    text = DOCUMENT.read_text("utf-8")
    start = "*data*:" if command == "*data*" else f"| `{command}` | "
    line = text.split("## JSON")[1].split(start)[1].split("\n\n" if start[0] == "*" else " |\n")[0]
    own = re.sub(r"\([^)]*\)|: list of [^;]*", "", line)
    return set(re.findall(r"`(\w+)`", own))


def answer(capsys, *arguments: str) -> dict:
    """Return the object that a command prints, which must be all of standard output."""
    assert main([*arguments, "--json"]) == 0
    told = capsys.readouterr()
    assert told.out.count("\n") == 1
    return json.loads(told.out)


def piped(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.fixture
def table(folder) -> Path:
    """measurements.csv with a column that is constant and one of long texts."""
    frame = pd.read_csv("measurements.csv").assign(height=4.0, note="x" * 600)
    frame.to_csv("table.csv", index=False)
    return folder / "table.csv"


def test_a_fit_says_how_the_data_are_read_and_prepared(table, capsys):
    assert main(["fit", "table.csv", "--missing", "model", *SMALL]) == 0
    told = " ".join(capsys.readouterr().out.split())
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
    assert main(["fit", "table.csv", "--missing", "drop", *SMALL, *as_they_are]) == 0
    told = capsys.readouterr().out
    assert re.search(r"preprocessing +none\n", told)
    assert re.search(r"nats per row\n\d+ of 58 rows are doubtful: .+\n$", told)


def test_data_says_what_the_page_says_and_lists_the_columns(table, capsys):
    assert main(["data", "table.csv", "--columns"]) == 0
    told = " ".join(capsys.readouterr().out.split())
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


def test_every_option_has_its_default_in_the_help():
    _, commands = cli._parser()
    assert set(commands) >= {"data", "fit", "project", "runs", "check", "paper"}
    for name, parser in commands.items():
        options = {word for action in parser._actions for word in action.option_strings}
        assert {"--json", "--quiet"} <= options
        for action in parser._actions:
            if action.option_strings and action.dest != "help":
                assert "(default: " in (action.help or ""), f"{name} {action.option_strings}"


def test_json_has_the_documented_fields_and_nothing_else(table, appca_home, capsys):
    assert set(answer(capsys, "data")) == documented("data") == {"data_sets"}
    found = answer(capsys, "data", "table.csv", "--out", "t.npz")
    assert set(found) == documented("data DATA") | documented("*data*")
    assert {one["name"] for one in found["columns"] if one["role"] == "ignored"} == {
        "height",
        "note",
    }
    assert (found["constant"], found["written"]) == (["height"], "t.npz")
    assert found["labels"] == [{"name": "kind", "values": 2, "counts": {"x": 30, "y": 30}}]
    assert {"name": "b", "role": "feature", "kind": "numbers", "missing": 2} in found["columns"]

    fit = ("fit", "table.csv", "--missing", "model", *SMALL, "--store", "--out", "m.npz")
    found = answer(capsys, *fit)
    assert set(found) == documented("fit")
    assert set(found["data"]) == documented("*data*")
    assert found["preprocessing"]["scale"] == "feature"
    assert found["parameters"]["n_components"] == 2
    assert found["data"]["missing_cells"] == 2

    project = ("project", "m.npz", "table.csv", "--missing", "model", "--flag")
    assert set(projected := answer(capsys, *project)) == documented("project")
    assert set(projected["misfits"]) == {"level", "rows", "q", "t2"}
    (run,) = answer(capsys, "runs")["runs"]
    assert run["run"] == found["run"]
    assert run["log_likelihood_per_row"] == pytest.approx(found["log_likelihood_per_row"])
    assert set(answer(capsys, "check")) == documented("check")
    (appca_home / "x.md").touch()
    paper = answer(capsys, "paper", "--document", str(appca_home / "x.md"))
    assert set(paper) == documented("paper")


def test_json_of_a_refusal_is_empty_and_quiet_says_errors_only(capsys):
    assert main(["fit", "wine", "-K", "99", "--json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert main(["fit", "wine", *SMALL, "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["fit", "wine", "-K", "99", "--quiet"]) == 2
    assert "-K must be at most 13" in capsys.readouterr().err
    assert main(["fit", "wine", *SMALL, "-q", "--json"]) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["model"], told.err) == ("aPPCA", "")


def test_a_table_comes_from_a_pipe_and_a_model_goes_into_one(folder, monkeypatch, capfdbinary):
    content = Path("measurements.csv").read_bytes()
    fit = ("-K", "3", "-L", "1", "--missing", "drop")
    assert main(["fit", "measurements.csv", *fit, "--out", "file.npz"]) == 0
    capfdbinary.readouterr()
    piped(monkeypatch, content)
    assert main(["fit", "-", *fit, "--out", "-"]) == 0
    told = capfdbinary.readouterr()
    assert b"preprocessing" in told.err
    Path("piped.npz").write_bytes(told.out)
    one, other = arrays_of("piped.npz"), arrays_of("file.npz")
    np.testing.assert_array_equal(one["scores"], other["scores"])

    piped(monkeypatch, content)
    assert main(["project", "piped.npz", "-", "--missing", "drop", "--out", "-"]) == 0
    told = capfdbinary.readouterr()
    rows = pd.read_csv(io.BytesIO(told.out))
    names = [f"component_{k}" for k in (1, 2, 3)]
    np.testing.assert_array_equal(rows[names].to_numpy(np.float32), other["scores"])
    assert b"doubtful membership" in told.err


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_every_kind_goes_through_a_pipe_and_comes_back(kind, monkeypatch, capfdbinary):
    assert main(["data", "wine", "--out", "-", "--format", kind]) == 0
    content = capfdbinary.readouterr().out
    piped(monkeypatch, content)
    assert main(["data", "-", "--json", "-q"]) == 0
    found = json.loads(capfdbinary.readouterr().out)
    assert (found["name"], found["rows"], found["features"]) == ("standard input", 178, 13)


def test_a_terminal_is_asked_for_a_pipe_and_spared_an_archive(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main(["fit", "-"]) == 2
    assert "- reads standard input, which is empty" in capsys.readouterr().err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["fit", "wine", "--out", "-"]) == 2
    assert ".npz is not text" in capsys.readouterr().err
