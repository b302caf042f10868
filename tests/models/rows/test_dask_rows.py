"""Dask arrays against the same rows in memory: by threads, and by worker processes that may die."""

import os
import signal
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from appca import PPCA, AdaptivePPCA
from appca.models import blocks, climb, rows, spectrum
from appca.models.rows import about, centre_of, project
from tests.models.synthetic import planted

WORKER_BYTES = 700_000_000
LONGEST = 90  # seconds that a fit may hang before the test fails


@pytest.fixture
def da():
    return pytest.importorskip("dask.array")


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


@pytest.fixture
def data(seed):
    return planted(3000, 12, 4, 2, seed=seed, noise=0.5, offset=3.0)


def same(ours, whole, X):
    """Compare two fits: log-likelihood and components to 1e-6, and the rest with them."""
    assert ours.score(X) == pytest.approx(whole.score(X), rel=1e-6)
    for name in ("components_", "mean_", "latent_variance_", "scale_", "explained_variance_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(whole, name), atol=1e-6)
    assert ours.n_iter_ == whole.n_iter_
    assert ours.n_features_in_ == X.shape[1]


CHUNKS = {
    "one": (3000, 12),
    "many": (101, 12),
    "uneven": ((1, 1700, 299, 1000), (12,)),
    "cut by columns": (700, (5, 7)),
}


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_a_fit_on_chunks_is_the_fit_in_memory(chunks, data, da):
    whole = AdaptivePPCA(4, 2, random_state=0).fit(data.X)
    ours = AdaptivePPCA(4, 2, random_state=0).fit(da.from_array(data.X, chunks=chunks))
    same(ours, whole, data.X)


@pytest.mark.parametrize(
    "given",
    [
        {"inference": "hard"},
        {"mean": "zero", "latent_variance": "component"},
        {"mean": "sample", "accelerate": False},
        {"n_active": 4},
    ],
    ids=str,
)
def test_every_way_to_fit_is_that_in_memory(given, data, da):
    given = {"n_components": 4, "n_active": 2, "random_state": 0, **given}
    whole = AdaptivePPCA(**given).fit(data.X)
    same(AdaptivePPCA(**given).fit(da.from_array(data.X, chunks=(800, 12))), whole, data.X)


def test_chunks_of_unknown_and_no_size_are_counted_on_the_way(data, da):
    X = da.from_array(data.X, chunks=(500, 12))
    X = da.concatenate([X, X + 1000.0])  # of which the condition leaves nothing
    X = X[X[:, 0] < 500.0]
    assert np.isnan(X.shape[0])
    ours = AdaptivePPCA(4, 2, random_state=0).fit(X)
    whole = AdaptivePPCA(4, 2, random_state=0).fit(data.X)
    same(ours, whole, data.X)
    np.testing.assert_allclose(ours.transform(X).compute(), whole.transform(data.X), atol=1e-6)
    np.testing.assert_array_equal(ours.allocate(X).compute(), ours.allocate(data.X))
    assert ours.score(X) == pytest.approx(whole.score(data.X), rel=1e-9)


@pytest.mark.parametrize("nearness", [0.0, 1e9], ids=["far origin", "near origin"])
def test_sums_over_chunks_are_those_over_rows(nearness, data, da, seed, monkeypatch):
    monkeypatch.setattr(rows, "NEAR", nearness)
    monkeypatch.setattr(rows, "MIN_BLOCK_ROWS", 100)
    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 100)
    monkeypatch.setattr(blocks, "CHUNKS_AT_ONCE", 3)
    ours = blocks.dask_rows(da.from_array(data.X, chunks=(190, 12)))
    theirs = about(data.X, centre_of(data.X))
    assert (ours.n, ours.d, ours.n_features, ours.dtype) == (3000, 12, 12, np.float64)
    assert ours.total == pytest.approx(theirs.total, rel=1e-12)
    assert ours.careful == theirs.careful == (nearness == 0.0)
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((12, 3))
    np.testing.assert_allclose(project(ours, W), project(theirs, W), atol=1e-11)
    np.testing.assert_allclose(
        spectrum.covariance(ours), spectrum.covariance(theirs), rtol=1e-10, atol=1e-10
    )
    which = np.sort(rng.choice(3000, 20, replace=False))
    np.testing.assert_array_equal(ours.take(which), data.X[which])


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
            numbers = sum(np.size(x) for answer in answers for x in np.atleast_1d(flat(answer)))
            assert numbers <= (1000 * 12 if name == "_taken" else 30 * 13), name


def flat(answer):
    parts = answer if isinstance(answer, tuple) else (answer,)
    return np.concatenate([np.ravel(part) for part in parts])


def test_the_order_in_which_chunks_come_back_changes_no_bit(data, da):
    dask = pytest.importorskip("dask")
    X = da.from_array(data.X, chunks=(70, 12))
    ours = AdaptivePPCA(4, 2, random_state=0).fit(X)
    with dask.config.set(scheduler="synchronous"):
        again = AdaptivePPCA(4, 2, random_state=0).fit(X)
    np.testing.assert_array_equal(ours.components_, again.components_)
    np.testing.assert_array_equal(ours.log_likelihoods_, again.log_likelihoods_)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("kind", [AdaptivePPCA, PPCA])
def test_questions_are_answered_lazily_as_in_memory(kind, whiten, data, da):
    model = kind(3, whiten=whiten).fit(data.X)
    X = da.from_array(data.X, chunks=(900, (4, 8)))
    for question in (
        "transform",
        "allocate",
        "inclusion_probabilities",
        "allocation_probability",
        "score_samples",
    ):
        told, answer = getattr(model, question)(data.X), getattr(model, question)(X)
        assert (answer.shape, answer.dtype) == (told.shape, told.dtype), question
        assert answer.chunks[0] == X.chunks[0]
        np.testing.assert_allclose(answer.compute(), told, atol=1e-12)
    assert model.score(X) == pytest.approx(model.score(data.X), rel=1e-12)


def test_single_precision_stays_and_whole_numbers_become_double(data, da):
    X = data.X.astype(np.float32)
    ours = AdaptivePPCA(4, 2, random_state=0).fit(da.from_array(X, chunks=(999, 12)))
    whole = AdaptivePPCA(4, 2, random_state=0).fit(X)
    assert ours.components_.dtype == ours.mean_.dtype == np.float32
    assert ours.transform(da.from_array(X)).dtype == np.float32
    assert ours.score(data.X) == pytest.approx(whole.score(data.X), rel=1e-4)
    counts = np.round(10 * data.X).astype(np.int16)
    ours = AdaptivePPCA(4, 2, random_state=0).fit(da.from_array(counts, chunks=(999, 12)))
    same(ours, AdaptivePPCA(4, 2, random_state=0).fit(counts.astype(float)), counts.astype(float))


REFUSALS = {
    "a vector": (lambda X: X[:, 0], "X must be a Dask array of two dimensions"),
    "text": (lambda X: X.astype(str), "X must be a Dask array of numbers"),
    "no rows": (lambda X: X[X[:, 0] > 1e9], "X must hold rows; got a Dask array without any"),
    "NaN": (lambda X: X / (X.min() < X), "X must be finite, but chunk"),
    "equal rows": (lambda X: 0 * X + 1.0, "X must vary, but all its 3000 rows are equal"),
    "few rows": (lambda X: X[:3], "n_components must be at most 2, because X has 3 rows"),
    "a delayed array": (lambda X: X.to_delayed()[0, 0], "rows by features; got Delayed with no"),
}


@pytest.mark.parametrize(("made", "words"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_arrays_are_refused_in_one_sentence(made, words, data, da):
    X = made(da.from_array(data.X, chunks=(500, 12)))
    with pytest.raises(ValueError, match="must") as refusal:
        AdaptivePPCA(4, 2).fit(X)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_samplers_other_widths_and_wrong_settings_are_refused(data, da):
    X = da.from_array(data.X, chunks=(500, 12))
    with pytest.raises(ValueError, match="inference must be 'em' or 'hard'"):
        AdaptivePPCA(4, 2, inference="gibbs").fit(X)
    with pytest.raises(ValueError, match="n_components"):
        PPCA(0).fit(X)
    model = AdaptivePPCA(4, 2, random_state=0).fit(data.X)
    with pytest.raises(ValueError, match="X must have the 12 features AdaptivePPCA was fitted to"):
        model.transform(X[:, :5])
    with pytest.raises(ValueError, match="use describe_chunks, or compute it first"):
        model.describe(X)


def test_gaps_are_refused_of_a_hard_fit_wherever_the_rows_are(data, da):
    X = data.X.copy()
    X[7, 3] = np.nan
    model = AdaptivePPCA(4, 2, inference="hard", random_state=0).fit(data.X)
    with pytest.raises(ValueError, match="inference") as in_memory:
        model.transform(X)
    with pytest.raises(ValueError, match="inference") as by_chunks:
        model.transform(da.from_array(X, chunks=(500, 12))).compute()
    assert str(by_chunks.value) == str(in_memory.value)


def test_a_callback_may_stop_the_fit_and_keep_it(data, da):
    def stop(progress):
        if progress.stage == "fit" or progress.stage.startswith("screening 2"):
            raise StopIteration

    ours = AdaptivePPCA(4, 2, random_state=0, callback=stop).fit(
        da.from_array(data.X, chunks=(500, 12))
    )
    assert ours.stop_reason_ == "stopped by the callback"
    assert ours.components_.shape == (4, 12)


@pytest.mark.thorough
def test_workers_need_nothing_of_this_process(data, da, client):
    lock = threading.Lock()  # which cannot travel

    def watch(_progress):
        with lock:
            pass

    X = da.from_array(data.X, chunks=(400, 12)).persist()
    ours = AdaptivePPCA(4, 2, random_state=0, callback=watch).fit(X)
    same(ours, AdaptivePPCA(4, 2, random_state=0).fit(data.X), data.X)
    np.testing.assert_allclose(ours.transform(X).compute(), ours.transform(data.X), atol=1e-12)
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
    np.testing.assert_array_equal(ours.components_, kept.components_)
    np.testing.assert_array_equal(ours.log_likelihoods_, kept.log_likelihoods_)


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


def generated(da, n_chunks, n_rows, W):
    return da.map_blocks(
        partial(made, n_rows, W),
        chunks=((n_rows,) * n_chunks, (len(W),)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )


def directions(seed, D):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((D, 3)))[0].astype(np.float32)


# "em" would load a compiler into the workers
GIVEN = {"inference": "hard", "init": "pca", "max_iter": 1, "random_state": 0}


@pytest.mark.thorough
def test_a_worker_has_one_chunk_at_a_time(da, client, seed):
    X = generated(da, 60, 100, directions(seed, 50))
    model = AdaptivePPCA(3, 1, **GIVEN).fit(X)
    assert model.noise_variance_ == pytest.approx(0.25, rel=0.05)
    counts = client.run(most_alive).values()
    assert max(counts) > 0
    # besides the one in work, one that the worker's thread has not let go of yet
    assert max(counts) <= 2


def memory(field, forget=False):
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
@pytest.mark.slow  # half a gigabyte of rows are made a dozen times
def test_the_memory_of_workers_does_not_grow_with_the_rows(da, client, seed):
    W = directions(seed, 500)

    def peaks(n_chunks):
        """Peak memory of each worker during a fit to so many times 4 MB."""
        client.run(memory, "VmRSS", forget=True)
        model = AdaptivePPCA(3, 1, **GIVEN).fit(generated(da, n_chunks, 2000, W))
        assert model.noise_variance_ == pytest.approx(0.25, rel=0.02)
        return np.array(list(client.run(memory, "VmHWM").values()))

    few, many = 20, 120
    peaks(few)  # all loaded, and the allocator has what it keeps
    grown = np.max(peaks(many) - peaks(few))
    assert grown < 0.1 * (many - few) * 4_000_000
