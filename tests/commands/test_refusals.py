"""What a command refuses: one sentence with its exit code, before anything is computed or written.

Then what may happen on its way: interrupts, readers that have gone, hostile names, little memory.
"""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from appca.cli import main
from appca.commands import app, fit
from appca.runs.fit import fit_run
from tests.commands.conftest import Nobody
from tests.conftest import ROOT
from tests.data.file_makers import idx, noise
from tests.sentences import faults_of

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
    ("fit wine --pca 0.0", "--pca must be a whole number of dimensions"),
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
    ("fit nothing", "“nothing” is not a file, a folder or a built-in data set"),
    ("fit wnie", "the nearest is “wine”"),
    ("cook", "“cook” is not a file, a folder or"),
    ("fit empty.csv", "is empty"),
    ("fit folder.csv", "holds no files; name one that holds images"),
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
    ("data measurements.csv --label e --id kind --ignore d --ignore name", "must be unique"),
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
    assert "whose squares are beyond the range" in told


def test_a_table_that_no_package_can_write_is_refused_before_the_fit(monkeypatch, said):
    monkeypatch.setattr(fit, "fit_run", never)
    for kind, package in (("csv", "pandas"), ("parquet", "pyarrow")):
        find = lambda name, absent=package: name != absent or None  # noqa: E731
        monkeypatch.setattr("appca.commands.writing.find_spec", find)
        assert f"needs the package {package}" in said(f"fit wine --out rows.{kind}", 1).err


def test_what_there_are_several_of_is_chosen_by_the_option_that_is_named(folder, said):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
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
    told = said("fit people.csv -K 2").out
    assert "population (4 values); --label population makes it one" in told
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
