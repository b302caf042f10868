"""Files larger than the limit: the app takes some of their rows, drawn at random, and says so."""

import io

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csc_matrix, csr_matrix

from appca.cli import main
from appca.commands import opening
from appca.data.files import LIMITS
from appca.data.readers import kind_of, read_many, sampling
from appca.data.readers.process import opened
from appca.data.readers.sampling import read_sample
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.words import InputError
from tests.commands.test_app import places  # noqa: F401 (a fixture)
from tests.data.readers.sparse.test_sparse import h5ad
from tests.data.readers.sparse.test_zarr_store import same, store
from tests.ui.conftest import go, healthy, html, start  # noqa: F401 (a fixture)

N, D, MOST = 3000, 20, 200_000
KINDS = ("npy", "parquet", "parts", "zarr", "h5ad", "sparse.h5ad", "columns.h5ad")
KINDS += ("cells.zarr", "sparse.zarr", "columns.zarr")


@pytest.fixture
def X(seed):
    values = np.random.default_rng(seed).normal(size=(N, D)).astype(np.float32)
    return np.where(values > 0.5, values, np.float32(0))


def written(folder, kind, X):
    path = folder / f"large.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "parquet":
        import pandas as pd

        table = pd.DataFrame(X, columns=[f"f{j}" for j in range(D)])
        table.assign(kind=["a", "b", "c"] * (N // 3)).to_parquet(path, row_group_size=700)
    elif kind == "parts":
        path = folder / "parts"
        path.mkdir()
        whole = pq.read_table(written(folder, "parquet", X))
        for i in range(3):
            pq.write_table(whole.slice(1000 * i, 1000), path / f"part-{i}.parquet")
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr", reason="the extra dask brings it")
        array = zarr.create_array(path, shape=X.shape, dtype=X.dtype, chunks=(300, 7))
        array[...] = X
    else:
        makes = {"sparse": csr_matrix, "columns": csc_matrix}
        values = makes.get(kind.partition(".")[0], np.asarray)(X)
        kinds = [["a", "b", None][i % 3] for i in range(N)]
        data = h5ad(values, kind=kinds, depth=np.arange(N) / 2)
        if kind.endswith("zarr"):
            return store(path, data, chunk=700)
        path.write_bytes(data)
    return path


def read_here(path):
    """Read a sample in this process, which a debugger and a patch can reach."""
    place = path.parent / "read"
    place.mkdir()
    kind = "parquet" if path.name == "parts" else kind_of(path.name)
    limits = LIMITS._replace(n_bytes=MOST)
    facts = sampling.lay_down([(path.name, str(path))], place, limits, kind=kind)
    return opened(place, facts)


def path_size(folder):
    return sum(part.stat().st_size for part in folder.rglob("*") if part.is_file())


def rows_in_the_file(dataset):
    """Return the numbers of the rows by their ids, "row-1" or "cell0"."""
    if str(dataset.ids[0]).startswith("row-"):
        return np.array([int(text[4:]) - 1 for text in dataset.ids])
    return np.array([int(text[4:]) for text in dataset.ids])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_drawn_at_random_are_those_of_the_file(tmp_path, kind, X, monkeypatch):
    path = written(tmp_path, kind, X)
    monkeypatch.setattr(sampling, "_BLOCK_BYTES", 1 << 14)
    dataset = read_here(path)
    same(dataset, read_sample([(path.name, path)], limits=LIMITS._replace(n_bytes=MOST)))
    rows = rows_in_the_file(dataset)
    assert 400 < len(rows) < 1000  # half of the bytes allowed, and names
    assert (np.diff(rows) > 0).all()
    assert rows[-1] > 0.95 * N  # not the first ones
    np.testing.assert_array_equal(dataset.X, X[rows])
    assert dataset.name.endswith(f", sample of {N:,} rows")
    assert dataset.provenance["sample"] == {"of": N}
    if kind.startswith("par"):
        assert dataset.labels["kind"].tolist() == np.array(["a", "b", "c"])[rows % 3].tolist()
    if kind.endswith((".h5ad", ".zarr")):
        assert dataset.labels["kind"].tolist() == np.array(["a", "b", ""])[rows % 3].tolist()
        np.testing.assert_array_equal(dataset.labels["depth"], rows / 2)


@pytest.mark.parametrize("kind", ["npy", "parts", "zarr", "sparse.h5ad", "cells.zarr"])
def test_the_app_opens_a_file_larger_than_the_limit(
    tmp_path,
    kind,
    X,
    places,  # noqa: F811
    start,  # noqa: F811
    monkeypatch,
    capsys,
):
    path = written(tmp_path, kind, X)
    most = path_size(path) - 1 if path.is_dir() else MOST
    monkeypatch.setattr(opening, "LIMITS", LIMITS._replace(n_bytes=most))
    assert main([str(path)]) == 0
    digest = places[0]["data"]
    stored = DatasetStore(home()).get(digest)
    n = stored.n_rows
    assert f"is large: {n:,} of 3,000 rows, drawn at random" in capsys.readouterr().out
    app = start(data=digest)
    for page in ("data/this", "explore", "components", "groups", "check", "export"):
        healthy(go(app, page))
        if page == "data/this":
            assert f"{n:,} of 3,000, drawn at random" in html(app)
    assert main(["data", str(path)]) == 1  # other commands refuse it
    assert "more than" in capsys.readouterr().err


def test_files_of_other_kinds_are_refused_by_what_can_be_drawn_from(tmp_path, X):
    np.savetxt(tmp_path / "large.csv", X, delimiter=",")
    with pytest.raises(InputError, match="larger files of the kinds NPY, Parquet, Zarr and H5AD"):
        read_sample([("large.csv", tmp_path / "large.csv")])
    path = written(tmp_path, "parts", X)
    pq.write_table(pq.read_table(path / "part-2.parquet").drop("f0"), path / "part-2.parquet")
    for read in (
        read_sample,
        lambda files: read_many([(p.name, p) for p in sorted(path.iterdir())]),
    ):
        with pytest.raises(InputError, match=r"“part-2.* has other columns than the files"):
            read([(path.name, path)])
    path = tmp_path / "broken.h5ad"
    with h5py.File(io.BytesIO(), "w"):
        path.write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InputError, match="damaged or not a H5AD file"):
        read_sample([(path.name, path)])
