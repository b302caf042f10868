"""What a command refuses, with which exit code, and what it says to type instead."""

import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from appca.cli import main
from appca.commands import fit


def idx(path: Path, values: np.ndarray) -> None:
    """Write bytes as an IDX file."""
    head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(head + values.astype(np.uint8).tobytes())


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_data_that_cannot_be_fitted_are_none(folder, capsys):
    np.save("huge.npy", 1e200 * np.random.default_rng(0).normal(size=(20, 4)))
    as_they_are = ["--no-centre", "--scale", "none"]
    assert main(["fit", "huge.npy", "-K", "2", "-L", "1", *as_they_are]) == 1
    assert "whose squares are beyond the range" in capsys.readouterr().err
    assert main(["fit", "measurements.csv", "-K", "2"]) == 1
    assert "2 missing cells" in capsys.readouterr().err


def never(*_: object) -> None:
    pytest.fail("the fit began")


@pytest.mark.parametrize("place", ["/proc/model.npz", f"{'x' * 300}.npz"])
def test_an_output_that_cannot_be_written_is_refused_before_the_fit(
    place, folder, monkeypatch, capsys
):
    monkeypatch.setattr(fit, "fit_run", never)
    assert main(["fit", "wine", "--out", place]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == {"measurements.csv", "new.csv", "faces"}


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
