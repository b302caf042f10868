"""Every example in the help of a command is run, in the order of the help."""

import shlex

import numpy as np
import pandas as pd
import pytest

from appca.cli import COMMANDS, main
from appca.runs.store import RunStore
from tests.commands.conftest import arrays_of, asked_for

NAMES = ("data", "fit", "project", "runs", "check", "paper", "bench")


def words_of(example: str) -> list[str]:
    start, *rest = example.split("python -m appca ")
    assert start == "", example
    return shlex.split(rest[0])


@pytest.mark.parametrize(("name", "command"), list(zip(NAMES, COMMANDS, strict=True)))
def test_the_help_of_a_command_ends_with_its_examples(name, command, capsys):
    with pytest.raises(SystemExit) as leaving:
        main([name, "--help"])
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: appca {name} ")
    after = text.split("examples:\n")[1]
    assert [line.strip() for line in after.splitlines()] == list(command.EXAMPLES)
    assert all(words_of(example)[0] == name for example in command.EXAMPLES)


def test_every_example_does_what_it_says(folder, appca_home, capsys, monkeypatch):
    monkeypatch.setattr("appca.studies.files._draw", lambda _pictures: [])
    measured = asked_for(monkeypatch)  # the measurements themselves take minutes: see test_bench
    told = {}
    for command in COMMANDS:
        for example in command.EXAMPLES:
            assert main(words_of(example)) == 0, example
            told[example] = capsys.readouterr().out
            assert told[example], example
    made = {path.name for path in folder.iterdir()} - {"measurements.csv", "new.csv", "faces"}
    assert made == {
        *("measurements.parquet", "faces.npz", "digits.npz", "table.csv"),
        *("rows.parquet", "rows.csv", "results", "docs"),
    }
    assert {path.name for path in (folder / "docs").iterdir()} == {
        *("paper.md", "paper_results.json"),
    }
    table = pd.read_parquet("measurements.parquet")
    assert list(table) == ["id", "kind", "a", "b", "c", "d", "e"]
    assert np.flatnonzero(table["b"].isna()).tolist() == [3, 8]
    assert arrays_of("faces.npz")["X"].shape == (16, 256)
    assert len(pd.read_csv("table.csv")) == 60
    assert len(pd.read_parquet("rows.parquet")) == 24
    assert [command[3:] for command in measured] == [
        ["--quick", "--rounds=1", "--methods=appca_em,fa"],
        ["--minutes=10.0", "--data=COIL-20", f"--out={(folder / 'results').resolve()}"],
    ]
    (run,) = RunStore(appca_home).list()
    assert run.id in told["python -m appca runs"]
    assert "4 of 24 rows do not fit" in told["python -m appca project digits.npz new.csv --flag"]
