"""Matrices in files as Dask arrays: what is read when, and how much of it at once."""

import os

import numpy as np
import pandas as pd
import pytest

from appca import AdaptivePPCA
from appca.data import lazy
from tests.models.synthetic import planted

pytest.importorskip("dask")


@pytest.fixture
def zarr():
    return pytest.importorskip("zarr")


@pytest.fixture
def X(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lazy, "CHUNK_BYTES", 20_000)
    return planted(1500, 6, 3, 1, seed=seed, noise=0.3, offset=1.0).X


def test_zarr_chunks_are_read_whole_and_joined_up_to_a_size(X, zarr):
    zarr.create_array("X.zarr", data=X, chunks=(70, 4))
    opened = lazy.open_lazily(lazy.Path("X.zarr"))
    # 20,000 bytes are 416 rows of six numbers, and five chunks of seventy rows fit into that
    assert opened.chunks == ((350, 350, 350, 350, 100), (6,))
    np.testing.assert_array_equal(opened.compute(), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_row_group_is_read_in_parts(dtype, X, monkeypatch):
    monkeypatch.setattr(lazy, "MOST_BYTES", 9_000)
    monkeypatch.setattr(lazy, "BATCH_BYTES", 2_000)
    X = X.astype(dtype)
    X[7, 2] = np.nan
    table = pd.DataFrame(X, columns=list("abcdef"))
    table.to_parquet("X.parquet", row_group_size=900)
    opened = lazy.open_lazily(lazy.Path("X.parquet"))
    assert opened.dtype == dtype
    assert len(opened.chunks[0]) >= 5
    assert max(opened.chunks[0]) * 6 * opened.dtype.itemsize <= 9_000
    np.testing.assert_array_equal(opened.compute(), X)


@pytest.mark.parametrize("kind", ["npy", "zarr", "parquet"])
def test_rows_of_a_file_are_read_and_looked_at_in_one_task(kind, X, zarr):
    """So that they are gone before others are read."""
    callbacks = pytest.importorskip("dask.callbacks")
    np.save("X.npy", X)
    zarr.create_array("X.zarr", data=X, chunks=(100, 6))
    pd.DataFrame(X, columns=list("abcdef")).to_parquet("X.parquet", row_group_size=300)
    opened = lazy.open_lazily(lazy.Path(f"X.{kind}"))
    assert opened.numblocks[0] > 3
    chunks: list[object] = []

    def seen(_key, result, *_rest):
        if isinstance(result, np.ndarray) and len(result) > 50:
            chunks.append(result)

    with callbacks.Callback(posttask=seen):
        model = AdaptivePPCA(3, 1, random_state=0).fit(opened)
        list(model.describe_chunks(opened))
        assert chunks == []
        opened.persist()
        assert len(chunks) == opened.numblocks[0]


def test_whole_numbers_of_a_table_become_double(X):
    table = pd.DataFrame({"a": [True, False], "b": [1, 2], "c": np.float32([0.5, 1.5])})
    table.to_parquet("mixed.parquet")
    opened = lazy.open_lazily(lazy.Path("mixed.parquet"))
    np.testing.assert_array_equal(opened.compute(), [[1.0, 1.0, 0.5], [0.0, 2.0, 1.5]])
    assert opened.dtype == np.float64


LIMIT, BIG_ROWS, BIG_FEATURES = 600_000_000, 200_000, 500  # bytes a worker; 400 MB of float32
AT_ONCE = 5000


def big_parts(seed):
    """Yield rows with three directions, some at a time; most of the noise is drawn once."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((BIG_FEATURES, 3)))[0].astype(np.float32)
    noise = 0.5 * rng.standard_normal((AT_ONCE, BIG_FEATURES), dtype=np.float32)
    for _ in range(0, BIG_ROWS, AT_ONCE):
        scores = 5.0 * rng.standard_normal((AT_ONCE, 3), dtype=np.float32)
        scores *= np.eye(3, dtype=np.float32)[rng.integers(0, 3, AT_ONCE)]
        yield scores @ W.T + np.roll(noise, rng.integers(BIG_FEATURES), axis=1)


def write_zarr(parts, path):
    import zarr

    shape, chunks = (BIG_ROWS, BIG_FEATURES), (AT_ONCE, BIG_FEATURES)
    out = zarr.create_array(path, shape=shape, chunks=chunks, dtype=np.float32, compressors=None)
    for i, part in enumerate(parts):
        out[i * AT_ONCE : (i + 1) * AT_ONCE] = part


def write_parquet(parts, path):
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names = [f"f{j}" for j in range(BIG_FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with ParquetWriter(path, schema, compression="none", use_dictionary=False) as out:
        for part in parts:
            out.write_table(pa.Table.from_arrays(list(np.ascontiguousarray(part.T)), schema=schema))


@pytest.mark.slow  # 400 MB are written, and read a dozen times
@pytest.mark.parametrize(
    ("name", "write"), [("big.zarr", write_zarr), ("big.parquet", write_parquet)]
)
def test_a_file_larger_than_a_workers_memory_is_fitted(name, write, seed, tmp_path):
    """A worker that held the rows would be ended: it has 350 MB left, and they are 400 MB."""
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("zarr")
    write(big_parts(seed), tmp_path / name)
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            memory_limit=LIMIT,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        (pid,) = client.run(os.getpid).values()
        X = lazy.open_lazily(tmp_path / name)
        # "em" would load a compiler into the worker
        model = AdaptivePPCA(3, 1, inference="hard", random_state=0).fit(X)
        score, total = model.score(X), model.transform(X).any(axis=1).sum().compute()
        assert list(client.run(os.getpid).values()) == [pid]
    assert X.nbytes == 4 * BIG_ROWS * BIG_FEATURES
    assert model.noise_variance_ == pytest.approx(0.25, rel=0.02)
    assert score == pytest.approx(model.score(next(big_parts(seed))), rel=1e-2)
    assert total == BIG_ROWS
