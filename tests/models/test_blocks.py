"""Fits on blocks, mapped files and Dask arrays against fits on all rows, and their memory."""

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal

from appca import PPCA, AdaptivePPCA
from appca.models import blocks, climb, rows, spectrum
from appca.models.blocks import Mapped, stream
from appca.models.rows import about, centre_of, project, transposed_product
from tests.models.synthetic import planted


@pytest.fixture
def data(seed):
    return planted(3000, 12, 4, 2, seed=seed, noise=0.5, offset=3.0)


def cut(X, *sizes):
    return np.split(X, np.cumsum(sizes))


@pytest.fixture
def pieces(data):
    return cut(data.X, 1, 700, 0, 1300)


@pytest.fixture
def da():
    return pytest.importorskip("dask.array")


@pytest.mark.parametrize("kind", ["stream", "chunks"])
@pytest.mark.parametrize("nearness", [0.0, 1e9], ids=["far origin", "near origin"])
def test_sums_over_parts_are_those_over_rows(nearness, kind, data, pieces, da, seed, monkeypatch):
    monkeypatch.setattr(rows, "NEAR", nearness)
    monkeypatch.setattr(rows, "MIN_BLOCK_ROWS", 100)
    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 300)
    monkeypatch.setattr(blocks, "CHUNKS_AT_ONCE", 3)
    chunks = da.from_array(data.X, chunks=(190, 12))
    ours = stream(pieces) if kind == "stream" else blocks.dask_rows(chunks)
    theirs = about(data.X, centre_of(data.X))
    assert (ours.n, ours.d, ours.n_features, ours.dtype) == (3000, 12, 12, np.float64)
    close(ours.origin, theirs.origin, rtol=1e-14)
    assert ours.total == pytest.approx(theirs.total, rel=1e-12)
    assert ours.careful == theirs.careful == (nearness == 0.0)
    rng = np.random.default_rng(seed)
    W, S = rng.standard_normal((12, 3)), rng.standard_normal((3000, 3))
    close(project(ours, W), project(theirs, W), atol=1e-11)
    if kind == "stream":
        close(transposed_product(ours, S), transposed_product(theirs, S), atol=1e-9)
    close(spectrum.covariance(ours), spectrum.covariance(theirs), rtol=1e-10, atol=1e-10)
    which = np.sort(rng.choice(3000, 50, replace=False))
    equal(ours.take(which), data.X[which])


def test_samples_of_blocks_are_those_of_rows(data, pieces, monkeypatch):
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 50)
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 50)
    seen = []
    whole = AdaptivePPCA(4, 2, random_state=0, callback=seen.append).fit(data.X)
    assert any(p.stage == "refinement on 3,000 rows" for p in seen)
    ours = AdaptivePPCA(4, 2, random_state=0).fit_blocks(lambda: iter(pieces))
    assert ours.score(data.X) == pytest.approx(whole.score(data.X), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_iterator_given_to_fit_is_read_once_and_fitted_as_its_rows(dtype, data, monkeypatch):
    monkeypatch.setattr(blocks, "MAPPED_BYTES", 10_000)
    X, read = data.X.astype(dtype), []

    def once():
        for piece in cut(X, 1, 700, 0, 1300):
            read.append(len(piece))
            yield np.asfortranarray(piece)

    ours = AdaptivePPCA(4, 2, random_state=0).fit(once())
    assert read == [1, 700, 0, 1300, 999]
    whole = AdaptivePPCA(4, 2, random_state=0).fit(X)
    assert ours.components_.dtype == dtype
    assert ours.score(X) == pytest.approx(whole.score(X), rel=1e-6)
    close(ours.components_, whole.components_, atol=1e-4)


REFUSED_BLOCKS = {
    "blocks must be readable again for every pass": lambda X: iter([X]),  # which `fit` takes
    "blocks must hold rows; got none": lambda _X: [],
    "block 1 has 1 dimension": lambda X: [X, X[0]],
    "block 1 has 5, those before have 12": lambda X: [X, X[:, :5]],
    "X must be finite, but block 1 holds NaN": lambda X: [X, np.full((2, 12), np.nan)],
    "X must vary, but all its 9 rows are equal": lambda _X: [np.ones((9, 12))],
    "n_components must be at most 2, because X has 3 rows": lambda X: [X[:3]],
}
REFUSED_ARRAYS = {
    "X must be a Dask array of two dimensions": lambda X: X[:, 0],
    "X must be a Dask array of numbers": lambda X: X.astype(str),
    "X must hold rows; got a Dask array without any": lambda X: X[X[:, 0] > 1e9],
    "X must be finite, but chunk": lambda X: X / (X.min() < X),
    "X must vary, but all its 3000 rows are equal": lambda X: 0 * X + 1.0,
    "n_components must be at most 2, because X has 3 rows": lambda X: X[:3],
    "rows by features; got Delayed with no": lambda X: X.to_delayed()[0, 0],
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_blocks_iterators_and_arrays_are_refused_in_one_sentence(data, da):
    model, X = AdaptivePPCA(4, 2), da.from_array(data.X, chunks=(500, 12))
    asked = [(model.fit_blocks, words, of(data.X)) for words, of in REFUSED_BLOCKS.items()]
    asked += [(model.fit, words, iter(of(data.X))) for words, of in [*REFUSED_BLOCKS.items()][1:]]
    asked += [(model.fit, words, of(X)) for words, of in REFUSED_ARRAYS.items()]
    for fit, words, given in asked:
        with pytest.raises(ValueError, match="must") as refusal:
            fit(given)
        assert words in str(refusal.value)
        assert "\n" not in str(refusal.value)
    pieces = iter(cut(data.X, 1000))
    with pytest.raises(ValueError, match="got 3000 rows first and 0 now"):
        model.fit_blocks(lambda: pieces)


def test_samplers_and_wrong_settings_are_refused_before_rows_are_read(data, da):
    pieces, X = iter([data.X]), da.from_array(data.X, chunks=(500, 12))
    for given in (pieces, X):
        with pytest.raises(ValueError, match="inference must be 'em' or 'hard'"):
            AdaptivePPCA(4, 2, inference="gibbs").fit(given)
    assert next(pieces) is data.X
    with pytest.raises(ValueError, match="n_components"):
        PPCA(0).fit(X)
    model = AdaptivePPCA(4, 2, random_state=0).fit(data.X)
    with pytest.raises(ValueError, match="X must have the 12 features AdaptivePPCA was fitted to"):
        model.transform(X[:, :5])


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_mapped_file_is_fitted_as_the_array_in_it(mode, data, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", data.X)
    X = np.load(tmp_path / "X.npy", mmap_mode=mode)
    if mode == "c":
        X[0, 0] += 1.0  # in memory only: giving the page back would lose it
    monkeypatch.setattr(blocks, "LARGE_MAP_BYTES", 0)
    monkeypatch.setattr(blocks, "MAPPED_BYTES", 10_000)
    kept = np.array(X)
    seen = list(Mapped(X))
    assert len(seen) > 10
    equal(np.concatenate(seen), kept)
    assert np.shares_memory(seen[0], X)
    ours = AdaptivePPCA(4, 2, random_state=0).fit(X)
    whole = AdaptivePPCA(4, 2, random_state=0).fit(kept)
    assert ours.score(kept) == pytest.approx(whole.score(kept), rel=1e-6)
    equal(X, kept)


def test_slices_and_files_in_any_order_are_read_in_blocks_of_the_same_size(
    data, tmp_path, monkeypatch
):
    monkeypatch.setattr(blocks, "MAPPED_BYTES", 10_000)
    np.save(tmp_path / "X.npy", data.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    counts = np.asfortranarray(np.round(data.X).astype(np.int16))
    np.save(tmp_path / "counts.npy", counts)
    turned = np.load(tmp_path / "counts.npy", mmap_mode="r")
    assert turned.flags.f_contiguous
    for some in (X[17:2000], X[::3], X[:, 2:7], turned, turned[::-1]):
        parts = list(Mapped(some))
        assert {part.size * 8 <= 10_000 for part in parts} == {True}
        equal(np.concatenate(parts), np.array(some))


PROGRAM = """
import json, resource, sys
import numpy as np
from appca import AdaptivePPCA

def peak():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) * 1024, int(fields["VmData"].split()[0]) * 1024

X = np.load(sys.argv[1], mmap_mode="r")
AdaptivePPCA(3, 1, random_state=0).fit(np.array(X[:9000]))  # all loaded, both threads warm
before, data = peak()
limit = data + 3 * X.nbytes // 4  # of memory that is no file
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model = AdaptivePPCA(3, 1, random_state=0, max_iter=5).fit(X)
print(json.dumps([peak()[0] - before, X.nbytes, model.noise_variance_]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.thorough
def test_a_fit_on_a_mapped_file_takes_a_fraction_of_its_size(seed, tmp_path):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((400, 3)))[0].astype(np.float32)
    shape = (100_000, 400)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, shape)
    for start in range(0, len(X), 10_000):
        scores = 5.0 * rng.standard_normal((10_000, 3)) * np.eye(3)[rng.integers(0, 3, 10_000)]
        noise = 0.5 * rng.standard_normal((10_000, 400), dtype=np.float32)
        X[start : start + 10_000] = scores.astype(np.float32) @ W.T + noise
    X.flush()
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "X.npy")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    grown, size, noise_variance = json.loads(ran.stdout)
    assert size == 160_000_000
    assert grown < 0.6 * size
    assert noise_variance == pytest.approx(0.25, rel=0.01)


WORKER_BYTES = 700_000_000
LONGEST = 90  # seconds that a fit may hang before the test fails


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=WORKER_BYTES,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def same(ours, whole, X):
    """Compare two fits: log-likelihood and components to 1e-6, and the rest with them."""
    assert ours.score(X) == pytest.approx(whole.score(X), rel=1e-6)
    for name in ("components_", "mean_", "latent_variance_", "scale_", "explained_variance_"):
        close(getattr(ours, name), getattr(whole, name), atol=1e-6)
    assert ours.n_iter_ == whole.n_iter_
    assert ours.n_features_in_ == X.shape[1]


def test_chunks_of_unknown_and_no_size_are_counted_on_the_way(data, da):
    X = da.from_array(data.X, chunks=(500, 12))
    X = da.concatenate([X, X + 1000.0])  # of which the condition leaves nothing
    X = X[X[:, 0] < 500.0]
    assert np.isnan(X.shape[0])
    ours = AdaptivePPCA(4, 2, random_state=0).fit(X)
    whole = AdaptivePPCA(4, 2, random_state=0).fit(data.X)
    same(ours, whole, data.X)
    close(ours.transform(X).compute(), whole.transform(data.X), atol=1e-6)
    equal(ours.allocate(X).compute(), ours.allocate(data.X))
    assert ours.score(X) == pytest.approx(whole.score(data.X), rel=1e-9)


def test_many_rows_send_sums_and_coordinates_of_some(data, da, monkeypatch):
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 50)
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 50)
    monkeypatch.setattr(climb, "MAX_COORDINATE_BYTES", 700 * 12 * 8)
    sent = []

    def computed(parts, plainly=blocks.computed):
        answers = plainly(parts)
        key = parts[0].key
        sent.append(((key if isinstance(key, str) else key[0]).split("-")[0], answers))
        return answers

    monkeypatch.setattr(blocks, "computed", computed)
    seen = []
    given = {"random_state": 0, "latent_variance": "shared", "tol": 1e-12}
    ours = AdaptivePPCA(4, 2, **given, callback=seen.append).fit(
        da.from_array(data.X, chunks=(100, 12))
    )
    same(ours, AdaptivePPCA(4, 2, **given).fit(data.X), data.X)
    assert any(p.stage == "refinement on 700 rows" for p in seen)
    names = {name for name, _ in sent}
    assert names == {"_size_and_sum", "_added_up", "_taken", "_over"}
    coordinates = [part for name, chunks in sent if name == "_over" for c in chunks for part in c]
    assert sum(values.size for _, values in coordinates) == 700 * 12
    for name, answers in sent:
        if name != "_over":
            parts = [part for answer in answers for part in np.atleast_1d(flat(answer))]
            assert len(parts) <= (1000 * 12 if name == "_taken" else 30 * 13), name


def flat(answer):
    parts = answer if isinstance(answer, tuple) else (answer,)
    return np.concatenate([np.ravel(part) for part in parts])


def test_the_order_in_which_chunks_come_back_changes_no_bit(data, da):
    dask = pytest.importorskip("dask")
    X = da.from_array(data.X, chunks=(70, 12))
    ours = AdaptivePPCA(4, 2, random_state=0).fit(X)
    with dask.config.set(scheduler="synchronous"):
        again = AdaptivePPCA(4, 2, random_state=0).fit(X)
    equal(ours.components_, again.components_)
    equal(ours.log_likelihoods_, again.log_likelihoods_)


@pytest.mark.thorough
def test_workers_need_nothing_of_this_process(data, da, client):
    lock = threading.Lock()  # which cannot travel

    def watch(_progress):
        with lock:
            pass

    X = da.from_array(data.X, chunks=(400, 12)).persist()
    ours = AdaptivePPCA(4, 2, random_state=0, callback=watch).fit(X)
    same(ours, AdaptivePPCA(4, 2, random_state=0).fit(data.X), data.X)
    close(ours.transform(X).compute(), ours.transform(data.X), atol=1e-12)
    assert len(client.run(os.getpid)) == 2


def deadly(chunk, marker):
    """Take the worker down, once, in the middle of a pass."""
    with suppress(FileNotFoundError):
        marker.unlink()  # which one worker alone does
        os.kill(os.getpid(), signal.SIGKILL)
    return chunk


@pytest.mark.thorough  # the two processes of the test above, and a third
def test_a_worker_that_is_killed_during_a_pass_changes_no_bit(data, da, client, tmp_path):
    marker, killed = tmp_path / "kill", []

    def watch(progress):
        if progress.stage.startswith("screening") and not killed:  # coordinates follow
            killed.append(set(client.run(os.getpid).values()))
            marker.touch()

    X = da.from_array(data.X, chunks=(200, 12)).persist()
    X = X.map_blocks(deadly, marker=marker, dtype=X.dtype, meta=np.empty((0, 0)))
    given = {"random_state": 0, "init": "pca", "tol": 0.0, "max_iter": 6}
    kept = AdaptivePPCA(4, 2, **given).fit(X)
    with ThreadPoolExecutor(1) as pool:
        fit = pool.submit(AdaptivePPCA(4, 2, **given, callback=watch).fit, X)
        ours = fit.result(timeout=LONGEST)
    assert killed
    assert not marker.exists()
    client.wait_for_workers(2, timeout=LONGEST)
    assert set(client.run(os.getpid).values()) != killed[0]
    equal(ours.components_, kept.components_)
    equal(ours.log_likelihoods_, kept.log_likelihoods_)


ALIVE = {"now": 0, "most": 0}  # chunks in a worker's memory, counted there


def made(n_rows, W, block_info=None):
    """Make the rows of a chunk from its number, and count how many there are."""
    rng = np.random.default_rng(block_info[None]["chunk-location"][0])
    scores = 5.0 * rng.standard_normal((n_rows, 3), dtype=np.float32)
    scores *= np.eye(3, dtype=np.float32)[rng.integers(0, 3, n_rows)]
    noise = np.tile(rng.standard_normal((n_rows // 20, len(W)), dtype=np.float32), (20, 1))
    chunk = scores @ W.T + 0.5 * noise
    ALIVE["now"] += 1
    ALIVE["most"] = max(ALIVE.values())
    weakref.finalize(chunk, died)
    return chunk


def died():
    ALIVE["now"] -= 1


def most_alive(dask_worker=None):
    return ALIVE["most"]


@pytest.mark.thorough
def test_a_worker_has_one_chunk_at_a_time(da, client, seed):
    W = np.linalg.qr(np.random.default_rng(seed).standard_normal((50, 3)))[0].astype(np.float32)
    how = {"dtype": np.float32, "meta": np.empty((0, 0), np.float32)}
    X = da.map_blocks(partial(made, 100, W), chunks=((100,) * 60, (50,)), **how)
    # "em" would load a compiler into the workers
    given = {"inference": "hard", "init": "pca", "max_iter": 1, "random_state": 0}
    model = AdaptivePPCA(3, 1, **given).fit(X)
    assert model.noise_variance_ == pytest.approx(0.25, rel=0.05)
    counts = client.run(most_alive).values()
    assert max(counts) > 0
    # besides the one in work, one that the worker's thread has not let go of yet
    assert max(counts) <= 2


def test_columns_of_parts_keep_the_order_of_the_fit(seed):
    X = planted(150, 6, 3, 1, seed=seed, noise=0.5).X
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    blocks = [frame[:70], frame[70:]]
    turned = [block[list("bacdef")] for block in blocks]
    for fit in (
        lambda model: model.fit_blocks(blocks),
        lambda model: model.fit(iter(blocks)),
        lambda model: model.fit(dask.from_pandas(frame, 2)),
    ):
        model = fit(AdaptivePPCA(3, 1, random_state=0))
        assert list(model.feature_names_in_) == list("abcdef")
        assert model.score_blocks(blocks) == pytest.approx(model.score(frame))
        for ask in (
            model.score_blocks,
            lambda b, m=model: list(m.transform_blocks(b)),
            model.fit_blocks,
        ):
            with pytest.raises(ValueError, match="in its order; block 1 has"):
                ask([blocks[0], turned[1]])
        for ask in (model.transform, model.score, model.row_scales):
            with pytest.raises(ValueError, match="in its order; the Dask frame has"):
                ask(dask.from_pandas(frame[list("bacdef")], 2))
