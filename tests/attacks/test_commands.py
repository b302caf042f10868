"""Hostile command lines and files behind them: one sentence and its exit code, no traceback."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from appca.cli import main
from tests import bad_files as bad
from tests.sentences import faults_of

STEERING = "\x1b[2J\x1b[31mevil\x07"
REFUSED, USAGE = 1, 2


def table() -> bytes:
    """Numbers under harmless and hostile names, with a hostile class."""
    rows = [f"{i},{i * i % 7},{i % 3},{'xy'[i % 2]}{STEERING}" for i in range(20)]
    return "\n".join([f"height,a b,{STEERING},kind", *rows]).encode()


class Attack(NamedTuple):
    """A command line, what is piped in, and what must be said."""

    arguments: tuple[str, ...]
    words: str
    code: int = REFUSED
    piped: Callable[[], bytes] | None = None


ATTACKS = {
    "a label that is not there": Attack(
        ("fit", "t.csv", "--label", "hight"), "no column “hight”; the nearest is “height”, and"
    ),
    "an id that steers the terminal": Attack(
        ("data", "t.csv", "--id", f"{STEERING}!"), "no column “�[2J�[31mevil�!”; the nearest is"
    ),
    "an ignored column of 100,000 characters": Attack(
        ("data", "t.csv", "--ignore", "x" * 100_000), "no column “xxx"
    ),
    "roles that are a list": Attack(
        ("data", "t.csv", "--option", "roles=[1]"), "--option roles=[1] has the wrong type for"
    ),
    "an image shape of lists": Attack(
        ("data", "t.csv", "--option", "image_shape=[[]]"), "has the wrong type for the option"
    ),
    "a number of starts of 24 digits": Attack(
        ("fit", "wine", "--set", "n_init=99999999999999999999999"),
        "n_init must be a finite number",
        USAGE,
    ),
    "K of 24 digits": Attack(
        ("fit", "wine", "-K", "99999999999999999999999"),
        "-K must be a finite number, a text or",
        USAGE,
    ),
    "nothing piped in": Attack(("fit", "-"), "is empty", REFUSED, lambda: b""),
    "a pickle piped in": Attack(
        ("data", "-"), "Python objects", REFUSED, lambda: bad.objects(Path("unpickled"))
    ),
    "an output that is a folder": Attack(
        ("data", "wine", "--out", "folder.csv"), "“folder.csv” is a folder, so name a file"
    ),
    "a model that is a picture": Attack(
        ("project", "t.csv", "wine", "--out", "x.csv"), "is not a zip file or is damaged"
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(table())
    (tmp_path / "folder.csv").mkdir()
    np.savez("t.npz", rows_=np.eye(3), b=np.eye(4))
    return tmp_path


def told_by(attack: Attack, monkeypatch, capsys) -> str:
    if attack.piped is not None:
        given = io.TextIOWrapper(io.BytesIO(attack.piped()))
        monkeypatch.setattr(sys, "stdin", given)
    try:
        code = main(list(attack.arguments))
    except SystemExit as leaving:
        code = leaving.code
    told = capsys.readouterr()
    assert (code, told.out) == (attack.code, "")
    assert told.err.count("\n") == 1
    return told.err.removeprefix("appca: ").strip()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_hostile_command_is_one_sentence(attack, folder, monkeypatch, capsys):
    before = {path.name for path in folder.iterdir()}
    told = told_by(attack, monkeypatch, capsys)
    assert attack.words in told
    assert faults_of(told) == ""
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize("arguments", [("data", "t.csv", "--columns"), ("fit", "t.csv", "-K", "2")])
def test_names_in_a_file_never_steer_the_terminal(arguments, capsys):
    assert main([*arguments]) == 0
    told = capsys.readouterr()
    assert "�[2J" in told.out
    assert not {"\x1b", "\x07"} & set(told.out + told.err)


def test_json_of_a_hostile_table_is_one_line_of_json(capsys):
    assert main(["data", "t.csv", "--json", "-q"]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert STEERING in [column["name"] for column in json.loads(told)["columns"]]


@pytest.mark.parametrize("name", ["kind_", "Height", "a_b"])
def test_a_near_name_is_offered_whatever_its_case(name, capsys):
    assert main(["data", "t.csv", "--label", name]) == REFUSED
    near = {"kind_": "kind", "Height": "height", "a_b": "a b"}[name]
    told = capsys.readouterr().err
    assert f"the nearest is “{near}”" in told
    assert "`python -m appca data t.csv --columns` lists them." in told
