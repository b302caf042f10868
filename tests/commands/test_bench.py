"""`bench` starts the table of `benchmarks/`, with what it was asked for."""

import csv
import sys

import pytest

from appca.cli import main
from appca.commands import bench
from benchmarks import rivals, table
from benchmarks.methods import METHODS
from benchmarks.results import RESULTS
from benchmarks.shapes import LARGE, QUICK, STANDARD
from tests.commands.conftest import asked_for

ALL = list(METHODS)


@pytest.mark.parametrize(
    ("words", "wanted"),  # data sets, methods, rounds, minutes, name of the files
    [
        ([], (STANDARD, ALL, 3, 40.0, "table")),
        (["--quick", "--rounds", "2"], (QUICK, ALL, 2, 40.0, "quick")),
        (["--large", "--data", "voxels", "--minutes", "1.5"], (LARGE, ALL, 3, 1.5, "table")),
        (["--data", "COIL", "--methods", "fa"], (STANDARD[2:3], ["pca", "fa"], 3, 40.0, "table")),
    ],
)
def test_the_table_takes_what_was_asked_for(monkeypatch, capsys, tmp_path, words, wanted):
    commands, measured = asked_for(monkeypatch), []
    assert main(["bench", *words, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"table in {tmp_path}\n"
    (command,) = commands
    assert command[:3] == [sys.executable, "-m", "benchmarks.table"]
    monkeypatch.setattr(table, "Budget", lambda minutes: minutes)
    monkeypatch.setattr(table, "compare", lambda *given: measured.append(given))
    table.main(command[3:])
    assert measured == [(*wanted[:-1], tmp_path.resolve() / wanted[-1])]


def test_without_a_word_everything_is_left_to_the_table(monkeypatch, capsys):
    commands = asked_for(monkeypatch)
    assert main(["bench"]) == 0
    assert commands == [[sys.executable, "-m", "benchmarks.table"]]
    assert capsys.readouterr().out == f"table in {RESULTS}\n"


def test_rivals_take_data_sets_and_a_folder_and_nothing_else(monkeypatch, capsys, tmp_path):
    commands, measured = asked_for(monkeypatch), []
    assert main(["bench", "rivals", "--data", "wine,iris", "--out", str(tmp_path)]) == 0
    (command,) = commands
    assert command[:3] == [sys.executable, "-m", "benchmarks.rivals"]
    monkeypatch.setattr(rivals, "lines_of", lambda name, only: measured.append(name) or iter(()))
    monkeypatch.setattr(rivals, "merged", lambda before, *_found, **_how: before)
    monkeypatch.setattr(rivals, "write_figure", lambda file, _lines: measured.append(file.parent))
    monkeypatch.setattr("sys.argv", command[2:])
    rivals.main()
    assert measured == ["wine", "iris", tmp_path.resolve()]
    capsys.readouterr()
    assert main(["bench", "rivals", "--rounds", "2"]) == 2
    assert "--rounds is for `bench table`" in capsys.readouterr().err


def test_an_installation_without_the_folder_refuses_in_a_sentence(monkeypatch, capsys, tmp_path):
    commands = asked_for(monkeypatch)
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    assert main(["bench", "--quick"]) == 1
    told = capsys.readouterr().err
    assert "no folder “benchmarks”" in told
    assert "start it in a checkout of the project.\n" in told
    assert told.count("\n") == 1
    assert commands == []


def test_the_exit_code_of_the_table_is_told(monkeypatch, capsys):
    asked_for(monkeypatch, code=3)
    assert main(["bench"]) == 1
    told = capsys.readouterr()
    assert "ended with exit code 3 and without a table" in told.err
    assert told.out == ""


def test_what_the_table_itself_refuses_is_passed_through(capfd):
    assert main(["bench", "--data", "nowhere"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert lines[-2].endswith("--data must be part of the name of a data set; got 'nowhere'.")
    assert "exit code 2" in lines[-1]


@pytest.mark.slow
def test_the_quick_table_is_measured(capfd, tmp_path):
    assert main(["bench", "--quick", "--rounds", "1", "--out", str(tmp_path)]) == 0
    with (tmp_path / "quick.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["data"] for row in rows} == {shape.name for shape in QUICK}
    assert {row["status"] for row in rows} == {"ok"}
    assert capfd.readouterr().out.endswith(f"quick.csv\ntable in {tmp_path}\n")
