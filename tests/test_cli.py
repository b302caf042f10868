"""The command line as a whole: help, refusals, and what may happen to a command on its way."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from appca.cli import main

ROOT = Path(__file__).resolve().parents[1]


USAGE = (  # what is said of the command line, whatever the data are
    *("invalid choice", "invalid int", "must be of the form", "not allowed", "required", "; give "),
    *("needs --out", "with --out, or", "is for", "are for", "name must end"),
    *("one file from", "--level", "raise it"),
    *(
        "tol must",
        "init must",
        "DATA must",
        "-K must",
        "-L must",
        "--seed must",
        "--pca must",
        "--divide must",
        "has the settings",
    ),
)


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "wine", "-K", "0"], "-K must be"),
        (["fit", "wine", "-L", "7"], "-L must be"),
        (["fit", "wine", "--seed", "-1"], "--seed must be"),
        (["fit", "wine", "--set", "tol=-1"], "tol must be"),
        (["fit", "wine", "--set", "init=[[1,2]]"], "init"),
        (["fit", "wine", "--pca", "99"], "--pca must be"),
        (["fit", "wine", "--out", "fitted.h5ad"], "DATA must be one .h5ad file"),
        (["fit", "wine", "--out", "/proc/x.csv"], "“x.csv” could not be stored in /proc"),
        (["fit", "nothing"], "“nothing” is not a file, a folder or a built-in data set"),
        (["fit", "wnie"], "the nearest is “wine”"),
        (["fit", "wine", "-K", "99"], "-K must be at most 13"),
        (["fit", "wine", "-K", "2", "-L", "3"], "-L must be at most -K 2; got 3: lower -L or"),
        (["fit", "wine", "--model", "PPCA", "-L", "2"], "has the settings -K, --seed; got -L."),
        (["fit", "wine", "-K", "four"], "invalid int value: 'four'"),
        (["fit", "wine", "--model", "PCA"], "invalid choice: 'PCA'"),
        (["fit", "wine", "--set", "depth=3"], "aPPCA has the settings"),
        (["fit", "wine", "--set", "depth"], "“depth” must be of the form name=value"),
        (["fit", "wine", "--option", "size=3"], "has no options; got size"),
        (["fit", "wine", "--label", "hue"], "--label is for files, and “wine” is built in, with"),
        (["fit", "wine", "--missing", "drop"], "--missing is for files, and “wine” is built in"),
        (["fit", "wine", "--pca", "0.0"], "--pca must be a whole number of dimensions"),
        (["fit", "wine", "--divide", "0"], "--divide must be a positive number"),
        (["fit", "wine", "--out", "x.txt"], "must end in .csv, .parquet, .npz; got “x.txt”"),
        (["fit", "wine", "--out", "no/such/x.csv"], "there is no “no/such”"),
        (
            ["fit", "wine", "--json", "--out", "-"],
            "--json and --out - both write to standard output",
        ),
        (["fit", "wine", "--format", "csv"], "--format needs --out -"),
        (["fit", "-", "wine"], "- reads one file from standard input; got 2 names"),
        (["project", "nothing.npz", "wine", "--out", "x.csv"], "neither an .npz file from `fit`"),
        (["project", "wine", "wine"], "--out"),
        (["project", "wine", "wine", "--flag", "--level", "1"], "--level must be a share"),
        (["paper", "--quick", "--full"], "not allowed with argument"),
        (["cook"], "“cook” is not a file, a folder or"),
    ],
)
def test_what_is_refused_is_one_sentence_with_its_exit_code(capsys, arguments, words):
    try:
        code = main(arguments)
    except SystemExit as leaving:  # argparse's own way
        code = leaving.code
    told = capsys.readouterr()
    usage = any(word in told.err for word in USAGE)
    assert code == (2 if usage else 1)
    assert words in told.err
    assert told.err.count("\n") == 1
    assert told.err.startswith("appca")
    assert told.out == ""


def test_files_that_are_not_what_they_say_are_one_sentence(tmp_path, capsys):
    (tmp_path / "no.csv").write_bytes(b"")
    assert main(["fit", str(tmp_path / "no.csv")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    (tmp_path / "empty").mkdir()
    assert main(["fit", str(tmp_path / "empty")]) == 1
    assert "holds no files; name one that holds images" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_pass_is_shown_on_a_terminal_only(monkeypatch, capsys):
    assert main(["fit", "wine", "-K", "3", "-L", "1"]) == 0
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["fit", "wine", "-K", "3", "-L", "1"]) == 0
    shown = terminal.getvalue()
    assert "fit, pass 1: " in shown
    assert shown.endswith("\r" + " " * 79 + "\r")  # nothing of it stays


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


def test_more_than_the_memory_holds_is_one_sentence(monkeypatch, capsys):
    def too_much(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("appca.commands.fit.fit_run", too_much)
    assert main(["fit", "wine"]) == 1
    assert "not enough memory" in capsys.readouterr().err
