import numpy as np
import pytest

from appca.cli import main
from appca.data.readers import read
from appca.data.sources import SOURCES
from tests.commands.conftest import arrays_of


def test_the_list_shows_every_built_in_data_set(capsys):
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SOURCES)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_missing_cells_stay_missing_in_every_kind_of_file(folder, suffix, capsys):
    out = folder / f"again.{suffix}"
    assert main(["data", "measurements.csv", "--out", str(out)]) == 0
    assert "2 cells (0.7%) in 2 rows, kept as they are: b (2)\n" in capsys.readouterr().out
    first = read("m.csv", folder / "measurements.csv", missing="model")
    again = read(out.name, out, missing="model")
    np.testing.assert_array_equal(again.with_gaps(), first.with_gaps())
    assert list(again.ids) == list(first.ids)
    (kind,) = first.labels.values()
    assert [list(column) for column in again.labels.values()] == [list(kind)]


def test_columns_get_the_roles_asked_for(folder, capsys):
    roles = ["--label", "e", "--id", "kind", "--ignore", "d", "--ignore", "name"]
    assert main(["data", "measurements.csv", *roles]) == 1
    assert "must be unique" in capsys.readouterr().err
    roles = ["--label", "e", "--id", "name", "--ignore", "d", "--option", 'roles={"a": "label"}']
    out = folder / "own.npz"
    assert main(["data", "measurements.csv", *roles, "--out", str(out)]) == 0
    found = arrays_of(out)
    assert found["X"].shape == (60, 2)
    assert set(found["label_names"]) == {"a", "e", "kind"}
    assert found["ids"][:2].tolist() == ["item 0", "item 1"]


def test_a_folder_and_several_images_are_one_data_set(folder, capsys):
    assert main(["data", "faces", "--out", "folder.npz"]) == 0
    files = [str(path) for path in sorted((folder / "faces").glob("*/*.png"))]
    assert main(["data", *files, "--out", "files.npz"]) == 0
    one, other = arrays_of("folder.npz"), arrays_of("files.npz")
    assert one["X"].shape == (16, 400)
    assert list(one["label_0"]) == ["ada"] * 8 + ["bob"] * 8
    for name in ("X", "ids", "label_0"):
        np.testing.assert_array_equal(one[name], other[name])
    assert ".hidden" not in capsys.readouterr().out
