"""What a command refuses, with which exit code, and what it says to type instead."""

import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from appca.cli import main
from appca.commands import app, fit
from appca.runs.home import home
from appca.studies.catalogue import shipped
from appca.studies.store import StudyStore
from tests.commands.test_app import Nobody


def idx(path: Path, values: np.ndarray) -> None:
    """Write bytes as an IDX file."""
    head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(head + values.astype(np.uint8).tobytes())


def never(*_: object) -> None:
    pytest.fail("the fit began")


CALLS = [
    ("fit measurements.csv -K 2", 1, "2 missing cells"),
    ("fit wine --out /proc/model.npz", 1, "/proc"),
    (f"fit wine --out {'x' * 300}.npz", 1, "xxx"),
    ("fit wine --html a.htm", 2, "must end in .html"),
    ("fit wine --html /proc/a.html", 1, "could not be stored in /proc"),
    ("fit wine --html no/a.html", 1, "there is no “no”"),
    ("data measurements.csv --label e --id kind --ignore d --ignore name", 1, "must be unique"),
    ("check --home none", 1, "There is no folder"),
    ("cook", 1, "not a file, a folder or a built-in data set"),
    ("open --labels y.npy", 2, "--labels needs DATA"),
    ("wine --labels y.npy", 1, "No such file"),
    ("wine --address 0.0.0.0 --no-token", 2, "add --behind-proxy"),
    ("paper", 2, "one of the arguments NAME --all --ship --document is required"),
    ("paper table9", 1, "There is no experiment “table9”; the nearest is “table1”"),
    ("paper table1 --all", 2, "not allowed with argument"),
    ("paper table1 --quick --full", 2, "not allowed with argument"),
    ("paper table1 --set depth=3", 1, "There is no option “depth” of table1; there are"),
    ("paper table1 --set n_rows=0", 1, "n_rows must be a whole number above 0; got 0"),
    ("paper --all --set seeds=1", 1, "There is no option “seeds” of planes"),
    (f"paper z-priors --out {__file__}", 1, "must be a folder"),
    ("paper z-priors --document x.md", 2, "not allowed with argument"),
    ("paper --document x.md --quick", 2, "--document computes nothing"),
    ("paper --document x.md --set seeds=1", 2, "--document computes nothing"),
    (f"paper --document {__file__}/x.md", 1, "could not be written"),
]


@pytest.mark.parametrize(("call", "code", "words"), CALLS)
def test_a_refusal_has_its_exit_code_one_sentence_and_no_effect(
    call, code, words, folder, monkeypatch, capsys
):
    monkeypatch.setattr(fit, "fit_run", never)
    monkeypatch.setattr(app, "_started", lambda *_: Nobody())
    try:
        found = main(call.split())
    except SystemExit as leaving:
        found = leaving.code
    told = capsys.readouterr()
    assert (found, told.out) == (code, "")
    assert words in told.err
    assert told.err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == {"measurements.csv", "new.csv", "faces"}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_data_that_cannot_be_fitted_are_none(folder, capsys):
    np.save("huge.npy", 1e200 * np.random.default_rng(0).normal(size=(20, 4)))
    as_they_are = ["--no-centre", "--scale", "none"]
    assert main(["fit", "huge.npy", "-K", "2", "-L", "1", *as_they_are]) == 1
    assert "whose squares are beyond the range" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "package"), [("csv", "pandas"), ("parquet", "pyarrow")])
def test_a_table_that_no_package_can_write_is_refused_before_the_fit(
    kind, package, monkeypatch, capsys
):
    monkeypatch.setattr(fit, "fit_run", never)
    monkeypatch.setattr("appca.commands.writing.find_spec", lambda name: name != package or None)
    assert main(["fit", "wine", "--out", f"rows.{kind}"]) == 1
    assert f"needs the package {package}" in capsys.readouterr().err


def test_the_labels_of_idx_are_a_file(folder, capsys):
    rng = np.random.default_rng(0)
    idx(folder / "images-idx3-ubyte", rng.integers(0, 256, (30, 4, 4)))
    idx(folder / "classes.idx", np.arange(30) % 3)
    arguments = ["data", "images-idx3-ubyte", "--label", "classes.idx"]
    assert main(arguments) == 0
    assert "label “class”      3 values: 0 (10), 1 (10), 2 (10)" in capsys.readouterr().out
    assert main([*arguments[:-1], "kind"]) == 2
    assert "those of IDX from a file, `--label FILE`" in capsys.readouterr().err


def test_what_there_are_several_of_is_chosen_by_the_option_that_is_named(folder, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File("two.h5", "w") as file:
        for name in ("first part", "second"):
            file[name] = np.random.default_rng(0).random((20, 4))
    assert main(["data", "two.h5"]) == 1
    assert "for example --option 'array=first part'." in capsys.readouterr().err
    assert main(["data", "two.h5", "--option", "array=first part"]) == 0
    Image.fromarray(np.zeros((9, 7), np.uint8)).save("faces/ada/0.png")
    capsys.readouterr()
    assert main(["data", "faces"]) == 1
    assert "for example --option 'size=[9,7]'." in capsys.readouterr().err
    assert main(["data", "faces", "--option", "size=[9,7]"]) == 0


def test_a_column_that_may_be_a_label_is_offered_as_one(folder, capsys):
    frame = pd.read_csv("measurements.csv").drop(columns=["kind", "b"])
    frame.assign(population=np.arange(60) % 4).to_csv("people.csv", index=False)
    assert main(["fit", "people.csv", "-K", "2"]) == 0
    assert "population (4 values); --label population makes it one" in capsys.readouterr().out
    assert main(["fit", "people.csv", "-K", "2", "--label", "population"]) == 0
    assert "label “population”" in capsys.readouterr().out


def test_the_paper_s_experiments_are_printed_stored_and_written(tmp_path, capsys):
    out = tmp_path / "paper"
    assert main(["paper", "z-priors", "--quick", "--set", "n_rows=30", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "\ufffd" not in told
    assert "n_rows 30; n_components 20" in told
    table = pd.read_csv(out / "z-priors-designs.csv")
    assert list(table["design"]) == ["sparse", "dense", "subspace", "balanced", "single"]
    assert f"balanced  {table['per_row'][3]:.0f}" in told
    assert "plotly" in (out / "z-priors-designs.html").read_text("utf-8")
    (kept,) = StudyStore(home()).list("z-priors")
    assert kept.options["n_rows"] == 30


def test_results_ship_and_become_a_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("appca.studies.store.FOLDER", tmp_path / "results")
    assert main(["paper", "z-priors", "--ship"]) == 0
    assert not StudyStore(home()).list()
    shipped.cache_clear()
    file = tmp_path / "docs" / "paper.md"
    assert main(["paper", "--document", str(file)]) == 0
    shipped.cache_clear()
    assert "wrote paper.md: 1 of" in capsys.readouterr().out
    page = file.read_text("utf-8")
    assert "(#z-priors) | `z-priors` | 1 of 1 | default |" in page
    assert "`planes` | not computed" in page
