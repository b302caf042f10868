"""`fit --scheduler` against the fit in memory, on a cluster of this machine."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

import appca
from appca import AdaptivePPCA
from appca.cli import main
from appca.data import lazy
from tests.models.synthetic import planted

pytestmark = pytest.mark.thorough  # tests/runs/test_cluster fits on a cluster in every run


@pytest.fixture(scope="module")
def address():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def X(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lazy, "CHUNK_BYTES", 20_000)
    return planted(1500, 6, 3, 1, seed=seed, noise=0.3, offset=1.0).X


@pytest.fixture
def whole(X):
    return AdaptivePPCA(3, 1, random_state=0).fit(X)


ARGUMENTS = ("-K", "3", "-L", "1", "--seed", "0")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_written_part_by_part(suffix, X, whole, address, capsys):
    np.save("X.npy", X)
    out = f"table.{suffix}"
    assert main(["fit", "X.npy", *ARGUMENTS, "--scheduler", address, "--out", out]) == 0
    said = capsys.readouterr().out
    assert f"on the cluster at {address}" in said
    assert f"log-likelihood {whole.score(X):.6g} nats per row" in said
    table = getattr(pd, f"read_{suffix}")(out)
    found = table[[f"component_{k}" for k in (1, 2, 3)]].to_numpy()
    np.testing.assert_allclose(found, whole.transform(X), atol=1e-5)
    np.testing.assert_allclose(table["log_likelihood"], whole.score_samples(X), atol=1e-5)
    assert table["id"].astype(int).tolist() == list(range(1500))


def test_a_model_file_comes_from_a_folder_of_tables(X, whole, address, tmp_path):
    (tmp_path / "rows").mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        table = pd.DataFrame(part, columns=list("abcdef"))
        table.to_parquet(tmp_path / "rows" / f"{i}.parquet", row_group_size=100)
    assert main(["fit", "rows", *ARGUMENTS, "--scheduler", address, "--out", "model.npz"]) == 0
    model = appca.load_model("model.npz")
    np.testing.assert_allclose(model.transform(X), whole.transform(X), atol=1e-6)
    assert model.info["n_rows"] == 1500
    assert model.info["log_likelihood"] == pytest.approx(1500 * whole.score(X), rel=1e-9)


REFUSALS = {
    "another model": (["X.npy", "--model", "aFA"], "With --scheduler, fit aPPCA or PPCA; got aFA"),
    "two files": (["X.npy", "X.npy"], "With --scheduler, name one file or folder; got 2"),
    "scaling": (["X.npy", "--scale", "global"], "--scale cannot be combined with --scheduler"),
    "another kind": (["X.csv"], "A cluster reads .npy"),
    "no file": (["none.npy"], "No such file"),
    "no array": (["bad.npy"], "is not an NPY file of numbers"),
    "no table": (["bad.parquet"], "is not a Parquet file"),
    "a vector": (["vector.npy"], "“vector.npy” must hold a matrix"),
    "words": (["words.npy"], "“words.npy” must hold numbers, but holds <U1"),
    "text": (["text.parquet"], "All columns of “text.parquet” must be numbers, but “name” is not"),
    "gaps": (["gaps.parquet"], "X must be finite, but chunk 0 of its rows holds NaN"),
    "another place": (["X.npy", "--out", "table.xlsx"], "The output's name must end in"),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(
    arguments, words, X, address, tmp_path, capsys
):
    np.save("X.npy", X)
    np.save("vector.npy", X[0])
    np.save("words.npy", np.array([["a", "b"]]))
    for name in ("X.csv", "bad.npy", "bad.parquet"):
        (tmp_path / name).write_text("1,2\n")
    pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}).to_parquet("text.parquet")
    pd.DataFrame({"a": [1.0, None], "b": [1, 2]}).to_parquet("gaps.parquet")
    code = main(["fit", *arguments, "--scheduler", address])
    said = capsys.readouterr().err
    assert code == (
        2 if "With --scheduler" in said or "cannot be combined" in said or "end in" in said else 1
    )
    assert words in said
    assert said.count("\n") == 1


@pytest.fixture
def zarr():
    return pytest.importorskip("zarr")


@pytest.mark.parametrize(
    ("where", "chunks"), [("a cluster", (400, 4)), ("threads", (70, 6)), (None, (1500, 1))]
)
def test_zarr_is_fitted_on_a_cluster_or_by_threads(where, chunks, X, whole, address, zarr, capsys):
    zarr.create_array("X.zarr", data=X, chunks=chunks)
    given = {"a cluster": ["--scheduler", address], "threads": ["--scheduler", "threads"]}
    assert main(["fit", "X.zarr", *ARGUMENTS, *given.get(where, []), "--out", "model.npz"]) == 0
    said = capsys.readouterr().out
    assert ("on the cluster" if where == "a cluster" else "by threads of this computer") in said
    model = appca.load_model("model.npz")
    np.testing.assert_allclose(model.transform(X), whole.transform(X), atol=1e-6)
    assert model.info["log_likelihood"] == pytest.approx(1500 * whole.score(X), rel=1e-9)


def test_other_files_are_read_part_by_part_without_a_cluster(X, whole, capsys):
    pytest.importorskip("dask")
    np.save("X.npy", X)
    assert main(["fit", "X.npy", *ARGUMENTS, "--scheduler", "threads", "--out", "table.csv"]) == 0
    assert "by threads of this computer" in capsys.readouterr().out
    found = pd.read_csv("table.csv")["log_likelihood"]
    np.testing.assert_allclose(found, whole.score_samples(X), atol=1e-5)


ZARR_REFUSALS = {
    "a group": (
        "group.zarr",
        "“group.zarr” is not a Zarr array; name the folder of the array itself",
    ),
    "an empty folder": ("empty.zarr", "“empty.zarr” is not a Zarr array"),
    "a broken one": ("broken.zarr", "“broken.zarr” is not a Zarr array"),
    "a file": ("file.zarr", "“file.zarr” is not a Zarr array"),
    "a vector": ("vector.zarr", "“vector.zarr” must hold a matrix, rows by features, but has 1"),
    "complex numbers": ("complex.zarr", "“complex.zarr” must hold numbers, but holds complex128"),
    "nothing": ("none.zarr", "No such file"),
}


@pytest.mark.parametrize(("name", "words"), ZARR_REFUSALS.values(), ids=ZARR_REFUSALS)
def test_zarr_that_cannot_be_fitted_is_refused_in_one_sentence(
    name, words, X, tmp_path, zarr, capsys
):
    pytest.importorskip("dask")
    zarr.open_group("group.zarr", mode="w").create_array("X", data=X)
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "broken.zarr").mkdir()
    (tmp_path / "broken.zarr" / "zarr.json").write_text("{")
    (tmp_path / "file.zarr").write_text("1,2\n")
    zarr.create_array("vector.zarr", data=X[0])
    zarr.create_array("complex.zarr", data=X * 1j)
    assert main(["fit", name, *ARGUMENTS]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_what_a_zarr_file_excludes_is_said(X, zarr, capsys):
    pytest.importorskip("dask")
    zarr.create_array("X.zarr", data=X)
    assert main(["fit", "X.zarr", "--pca", "3"]) == 2
    assert "--pca cannot be combined with a .zarr file" in capsys.readouterr().err


def test_a_package_that_is_missing_is_named(X, address, monkeypatch, capsys):
    there = importlib.util.find_spec

    def find(missing):
        return lambda name, *rest: None if name == missing else there(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find("distributed"))
    assert main(["fit", "X.npy", "--scheduler", address]) == 1
    assert "pip install 'appca[dask]'" in capsys.readouterr().err
    lazy.Path("X.zarr").mkdir()
    monkeypatch.setattr(importlib.util, "find_spec", find("zarr"))
    assert main(["fit", "X.zarr", "--scheduler", address]) == 1
    assert "pip install zarr" in capsys.readouterr().err


def test_a_scheduler_that_is_not_there_is_named(X, monkeypatch, capsys):
    pytest.importorskip("distributed")
    from appca.runs import cluster

    monkeypatch.setattr(cluster, "WAIT", 0.2)
    np.save("X.npy", X)
    for wrong in ("tcp://127.0.0.1:9", "nonsense://x"):
        assert main(["fit", "X.npy", "--scheduler", wrong]) == 1
        assert f"No scheduler answers at “{wrong}”" in capsys.readouterr().err
