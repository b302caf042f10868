"""The command line as a whole: help, refusals, hostile input, and what may happen on its way."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from appca.cli import main
from tests.sentences import faults_of

ROOT = Path(__file__).resolve().parents[1]


def run(arguments: list[str], cwd: Path, **how) -> subprocess.CompletedProcess:
    """Run ``python -m appca`` as a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "appca", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, text=True, check=False, stderr=subprocess.PIPE, **how
    )


def test_help_names_every_command_and_starts_from_any_folder(tmp_path):
    done = run(["--help"], tmp_path, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    for word in ("data", "fit", "project", "runs", "check", "paper", "COMMAND --help"):
        assert word in done.stdout


def test_ctrl_c_ends_a_command_with_130_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    def interrupted(*_arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("appca.commands.fit.Meter", lambda *_: interrupted)
    out = tmp_path / "wine.npz"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process ignores it
    try:
        assert main(["fit", "wine", "-K", "3", "--out", str(out)]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_has_gone_is_no_trouble(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = run(["data"], tmp_path, stdout=writing)
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""


STEERING = "\x1b[2J\x1b[31mevil\x07"
TABLE = "\n".join(  # numbers under harmless and hostile names, with a hostile class
    [
        f"height,a b,{STEERING},kind",
        *(f"{i},{i * i % 7},{i % 3},{'xy'[i % 2]}{STEERING}" for i in range(20)),
    ]
)
USAGE: list[tuple[list[str], str]] = [  # what is wrong whatever the data are
    (["fit", "wine", "-K", "0"], "-K must be"),
    (["fit", "wine", "-L", "7"], "-L must be"),
    (["fit", "wine", "--seed", "-1"], "--seed must be"),
    (["fit", "wine", "--set", "tol=-1"], "tol must be"),
    (["fit", "wine", "--set", "init=[[1,2]]"], "init must"),
    (["fit", "wine", "--set", "n_init=99999999999999999999999"], "n_init must be a finite number"),
    (["fit", "wine", "-K", "99999999999999999999999"], "-K must be a finite number, a text or"),
    (["fit", "wine", "--pca", "99"], "--pca must be"),
    (["fit", "wine", "--out", "fitted.h5ad"], "DATA must be one .h5ad file"),
    (["fit", "wine", "-K", "99"], "-K must be at most 13"),
    (["fit", "wine", "-K", "2", "-L", "3"], "-L must be at most -K 2; got 3: lower -L or"),
    (["fit", "wine", "--model", "PPCA", "-L", "2"], "has the settings -K, --seed; got -L."),
    (["fit", "wine", "-K", "four"], "invalid int value: 'four'"),
    (["fit", "wine", "--model", "PCA"], "invalid choice: 'PCA'"),
    (["fit", "wine", "--set", "depth=3"], "aPPCA has the settings"),
    (["fit", "wine", "--set", "depth"], "“depth” must be of the form name=value"),
    (["fit", "wine", "--label", "hue"], "--label is for files, and “wine” is built in, with"),
    (["fit", "wine", "--missing", "drop"], "--missing is for files, and “wine” is built in"),
    (["fit", "wine", "--pca", "0.0"], "--pca must be a whole number of dimensions"),
    (["fit", "wine", "--divide", "0"], "--divide must be a positive number"),
    (["fit", "wine", "--out", "x.txt"], "must end in .csv, .parquet, .npz; got “x.txt”"),
    (["fit", "wine", "--json", "--out", "-"], "--json and --out - both write to standard output"),
    (["fit", "wine", "--format", "csv"], "--format needs --out -"),
    (["fit", "-", "wine"], "- reads one file from standard input; got 2 names"),
    (["project", "wine", "wine"], "--out"),
    (["project", "wine", "wine", "--flag", "--level", "1"], "--level must be a share"),
    (["paper", "--quick", "--full"], "not allowed with argument"),
]
REFUSED: list[tuple[list[str], str]] = [  # what the data or the disk do not allow
    (["fit", "wine", "--out", "/proc/x.csv"], "“x.csv” could not be stored in /proc"),
    (["fit", "wine", "--out", "no/such/x.csv"], "there is no “no/such”"),
    (["data", "wine", "--out", "folder.csv"], "“folder.csv” is a folder, so name a file"),
    (["fit", "nothing"], "“nothing” is not a file, a folder or a built-in data set"),
    (["fit", "wnie"], "the nearest is “wine”"),
    (["fit", "empty.csv"], "is empty"),
    (["fit", "folder.csv"], "holds no files; name one that holds images"),
    (["fit", "-"], "is empty"),
    (["fit", "wine", "--option", "size=3"], "has no options; got size"),
    (["project", "nothing.npz", "wine", "--out", "x.csv"], "neither an .npz file from `fit`"),
    (["project", "t.csv", "wine", "--out", "x.csv"], "is not a zip file or is damaged"),
    (["cook"], "“cook” is not a file, a folder or"),
    (["fit", "t.csv", "--label", "hight"], "no column “hight”; the nearest is “height”, and"),
    (["data", "t.csv", "--label", "kind_"], "the nearest is “kind”"),
    (["data", "t.csv", "--label", "Height"], "the nearest is “height”"),
    (["data", "t.csv", "--label", "a_b"], "`python -m appca data t.csv --columns` lists them."),
    (["data", "t.csv", "--id", f"{STEERING}!"], "no column “�[2J�[31mevil�!”; the nearest is"),
    (["data", "t.csv", "--ignore", "x" * 100_000], "no column “xxx"),
    (["data", "t.csv", "--option", "roles=[1]"], "--option roles=[1] has the wrong type for"),
    (["data", "t.csv", "--option", "image_shape=[[]]"], "has the wrong type for the option"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder.csv").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words", "expected"),
    [*((*one, 2) for one in USAGE), *((*one, 1) for one in REFUSED)],
)
def test_what_is_refused_is_one_sentence_with_its_exit_code(
    folder, monkeypatch, capsys, arguments, words, expected
):
    before = {path.name for path in folder.iterdir()}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    try:
        code = main(arguments)
    except SystemExit as leaving:  # argparse's own way
        code = leaving.code
    told = capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (expected, "", 1)
    assert told.err.startswith("appca")
    assert words in told.err
    sentence = told.err.removeprefix("appca: ").strip()
    assert faults_of(sentence) == "" or "error:" in sentence or "usage" in sentence, sentence
    assert {path.name for path in folder.iterdir()} == before


def test_names_in_a_file_never_steer_the_terminal(folder, capsys):
    for arguments in (["data", "t.csv", "--columns"], ["fit", "t.csv", "-K", "2"]):
        assert main(arguments) == 0
        told = capsys.readouterr()
        assert "�[2J" in told.out
        assert not {"\x1b", "\x07"} & set(told.out + told.err)
    assert main(["data", "t.csv", "--json", "-q"]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert STEERING in [column["name"] for column in json.loads(told)["columns"]]


def test_the_pass_is_shown_on_a_terminal_only(monkeypatch, capsys):
    assert main(["fit", "wine", "-K", "3", "-L", "1"]) == 0
    assert capsys.readouterr().err == ""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["fit", "wine", "-K", "3", "-L", "1"]) == 0
    shown = terminal.getvalue()
    assert "fit, pass 1: " in shown
    assert shown.endswith("\r" + " " * 79 + "\r")  # nothing of it stays


def test_more_than_the_memory_holds_is_one_sentence(monkeypatch, capsys):
    def too_much(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("appca.commands.fit.fit_run", too_much)
    assert main(["fit", "wine"]) == 1
    assert "not enough memory" in capsys.readouterr().err
