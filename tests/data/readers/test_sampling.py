"""Files larger than the limit: the app takes some of their rows, drawn at random, and says so."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from appca.cli import main
from appca.commands import opening
from appca.data.files import LIMITS
from appca.data.readers import process, read_many
from appca.data.readers.process import read_sample
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.words import InputError
from tests.commands.test_app import places  # noqa: F401 (a fixture)

N, D, MOST = 3000, 20, 200_000


def written(folder, kind):
    X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    path = folder / f"large.{kind}"
    if kind == "npy":
        np.save(path, X)
        return path, X
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(D)])
    table.assign(kind=["a", "b", "c"] * (N // 3)).to_parquet(path, row_group_size=700)
    if kind == "parts":
        whole, folder = pq.read_table(path), folder / "parts"
        folder.mkdir()
        for i in range(3):
            pq.write_table(whole.slice(1000 * i, 1000), folder / f"part-{i}.parquet")
        return folder, X
    return path, X


@pytest.mark.parametrize("kind", ["npy", "parquet", "parts"])
def test_rows_drawn_at_random_are_those_of_the_file(tmp_path, kind, monkeypatch):
    path, X = written(tmp_path, kind)
    monkeypatch.setattr(process, "_BLOCK_BYTES", 1 << 14)
    dataset = read_sample([(path.name, path)], limits=LIMITS._replace(n_bytes=MOST))
    rows = np.array([int(text[4:]) - 1 for text in dataset.ids])
    assert 400 < len(rows) < 1500  # half of the bytes allowed, and names
    assert (np.diff(rows) > 0).all()
    assert rows[-1] > 0.95 * N  # not the first ones
    np.testing.assert_array_equal(dataset.X, X[rows])
    assert dataset.name.endswith(f", sample of {N:,} rows")
    assert dataset.provenance["sample"] == {"of": N}
    if kind != "npy":
        assert dataset.labels["kind"].tolist() == np.array(["a", "b", "c"])[rows % 3].tolist()


@pytest.mark.parametrize("kind", ["npy", "parts"])
def test_the_app_opens_a_file_larger_than_the_limit(tmp_path, kind, places, monkeypatch, capsys):  # noqa: F811
    path, _ = written(tmp_path, kind)
    monkeypatch.setattr(opening, "LIMITS", LIMITS._replace(n_bytes=MOST))
    assert main([str(path)]) == 0
    stored = DatasetStore(home()).get(places[0]["data"])
    told = f"is large: {stored.n_rows:,} of 3,000 rows, drawn at random"
    assert told in capsys.readouterr().out
    assert main(["data", str(path)]) == 1  # other commands refuse it
    assert "more than" in capsys.readouterr().err


def test_files_of_other_kinds_are_refused_by_what_can_be_drawn_from(tmp_path):
    (tmp_path / "large.csv").write_text("1,2\n3,4\n")
    with pytest.raises(InputError, match="larger files of the kinds NPY and Parquet"):
        read_sample([("large.csv", tmp_path / "large.csv")])
    path, _ = written(tmp_path, "parts")
    pq.write_table(pq.read_table(path / "part-2.parquet").drop("f0"), path / "part-2.parquet")
    for read in (
        read_sample,
        lambda files: read_many([(p.name, p) for p in sorted(path.iterdir())]),
    ):
        with pytest.raises(InputError, match=r"“part-2.* has other columns than the files"):
            read([(path.name, path)])
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match="damaged or not a NPY file"):
        read_sample([("broken.npy", tmp_path / "broken.npy")])
