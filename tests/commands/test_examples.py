"""Every example in the help of a command is run, in the order of the help."""

import io
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from appca.cli import _parser, main
from appca.runs.store import RunStore
from appca.studies.report import paper
from appca.studies.store import ShippedResults
from tests.commands.conftest import arrays_of

EXAMPLES = {  # but for `open`, a server that runs until it is ended: see test_app
    name: [line.strip() for line in parser.epilog.splitlines()[1:]]
    for name, parser in _parser()[1].items()
    if name != "open"
}


def words_of(example: str) -> list[str]:
    start, *rest = example.split("python -m appca ")
    assert start == "" or piped_into(example), example
    return shlex.split(rest[0].partition(" > ")[0])


def piped_into(example: str) -> str | None:
    """Return the file that an example pipes in, if it does."""
    found = re.match(r"cat (\S+) \| python -m appca ", example)
    return found and found[1]


def shell(example: str, monkeypatch, capfd) -> str:
    """Do what a shell would; return what a person sees."""
    name, into = piped_into(example), example.partition(" > ")[2]
    if name:
        given = io.TextIOWrapper(io.BytesIO(Path(name).read_bytes()))
        monkeypatch.setattr("sys.stdin", given)
    told = io.StringIO() if not into else io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", told)
    assert main(words_of(example)) == 0, example
    if not into:
        return told.getvalue()
    Path(into).write_bytes(told.buffer.getvalue())
    return capfd.readouterr().err


def test_every_command_has_examples():
    assert set(EXAMPLES) == {"data", "fit", "project", "runs", "demo", "check", "paper"}
    for name, examples in EXAMPLES.items():
        assert examples
        assert all(words_of(example)[0] == name for example in examples)


def not_shipped(monkeypatch) -> list[list[str]]:
    """Let no example compute for half an hour and keep it in the package; return what it asks."""
    asked: list[list[str]] = []

    def unless_shipped(names, size, changes, store, out, say, show):
        if isinstance(store, ShippedResults):
            asked.append(names)
            say("shipped")
        else:
            paper(names, size, changes, store, out, say, show)

    monkeypatch.setattr("appca.studies.report.paper", unless_shipped)
    return asked


@pytest.mark.thorough
def test_every_example_does_what_it_says(folder, appca_home, capfd, monkeypatch):
    shipped = not_shipped(monkeypatch)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    told = {}
    for example in (example for examples in EXAMPLES.values() for example in examples):
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
    assert shipped == [[]]
    table = pd.read_parquet("measurements.parquet")
    assert list(table) == ["id", "kind", "a", "b", "c", "d", "e"]
    assert np.flatnonzero(table["b"].isna()).tolist() == [3, 8]
    assert arrays_of("faces.npz")["X"].shape == (16, 256)
    assert len(pd.read_csv("table.csv")) == 60
    assert len(pd.read_parquet("rows.parquet")) == 24
    assert len(pd.read_csv("new_rows.csv")) == 24
    assert arrays_of("model.npz")["components"].shape == (3, 5)
    (run,) = RunStore(appca_home).list()
    assert run.id in told["python -m appca runs"]
    assert "4 of 24 rows do not fit" in told["python -m appca project digits.npz new.csv --flag"]
