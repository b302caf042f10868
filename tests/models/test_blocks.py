"""Tests of fits to blocks, mapped files, Dask arrays and batches; threads, kernels, memory."""

import importlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from threadpoolctl import threadpool_info

from appca import PPCA, AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import blocks, climb, data_checks, partial_fit, rows, stiefel, threads
from appca.models.blocks import Mapped, stream
from appca.models.rows import about, centre_of, outer_sum, project
from appca.models.threads import hold_blas, in_order, single_threaded_blas
from tests.memory import growth, needs_proc
from tests.models.synthetic import drawn, matched_cosines, planted
from tests.references import em_adaptive_ppca


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
        close(outer_sum(ours, S), outer_sum(theirs, S), atol=1e-9)
    close(stiefel.covariance(ours), stiefel.covariance(theirs), rtol=1e-10, atol=1e-10)
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

    ours = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(once())
    assert read == [1, 700, 0, 1300, 999]
    whole = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(X)
    assert ours.components_.dtype == dtype
    assert ours.score(X) == pytest.approx(whole.score(X), rel=1e-6)
    close(ours.components_, whole.components_, atol=1e-4)


REFUSED_BLOCKS = {
    "blocks must be readable more than once": lambda X: iter([X]),  # which `fit` takes
    "blocks must contain rows; got none": lambda _X: [],
    "block 1 has 1 dimension": lambda X: [X, X[0]],
    "block 1 has 5, earlier blocks 12": lambda X: [X, X[:, :5]],
    "X must be finite, but block 1 contains NaN": lambda X: [X, np.full((2, 12), np.nan)],
    "X must vary, but all its 9 rows are equal": lambda _X: [np.ones((9, 12))],
    "n_components must be at most 2, because X has 3 rows": lambda X: [X[:3]],
}
REFUSED_ARRAYS = {
    "X must be a Dask array of two dimensions": lambda X: X[:, 0],
    "X must be a Dask array of numbers": lambda X: X.astype(str),
    "X must contain rows; got an empty Dask array": lambda X: X[X[:, 0] > 1e9],
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
    monkeypatch.setattr(data_checks, "LARGE_MAP_BYTES", 0)
    monkeypatch.setattr(blocks, "MAPPED_BYTES", 10_000)
    kept, seen = np.array(X), list(Mapped(X))
    assert len(seen) > 10
    equal(np.concatenate(seen), kept)
    assert np.shares_memory(seen[0], X)
    ours = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(X)
    whole = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(kept)
    assert ours.score(kept) == pytest.approx(whole.score(kept), rel=1e-6)
    equal(X, kept)


def test_slices_and_files_in_any_order_are_read_in_blocks_of_the_same_size(
    data, tmp_path, monkeypatch
):
    monkeypatch.setattr(blocks, "MAPPED_BYTES", 10_000)
    np.save(tmp_path / "X.npy", data.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.save(tmp_path / "counts.npy", np.asfortranarray(np.round(data.X).astype(np.int16)))
    turned = np.load(tmp_path / "counts.npy", mmap_mode="r")
    assert turned.flags.f_contiguous
    for some in (X[17:2000], X[::3], X[:, 2:7], turned, turned[::-1]):
        parts = list(Mapped(some))
        assert {part.size * 8 <= 10_000 for part in parts} == {True}
        equal(np.concatenate(parts), np.array(some))


MAPPED = """
import numpy as np
from appca import AdaptivePPCA

X = np.load({!r}, mmap_mode="r")
AdaptivePPCA(3, 1, random_state=0).fit(np.array(X[:9000]))  # all loaded, both threads warm
"""
FIT = """
model = AdaptivePPCA(3, 1, random_state=0, max_iter=5).fit(X)
assert abs(model.noise_variance_ - 0.25) < 0.0025
"""


@needs_proc
@pytest.mark.thorough
def test_a_fit_on_a_mapped_file_takes_a_fraction_of_its_size(seed, tmp_path):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((400, 3)))[0].astype(np.float32)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (100_000, 400))
    for start in range(0, len(X), 10_000):
        scores = 5.0 * rng.standard_normal((10_000, 3)) * np.eye(3)[rng.integers(0, 3, 10_000)]
        noise = 0.5 * rng.standard_normal((10_000, 400), dtype=np.float32)
        X[start : start + 10_000] = scores.astype(np.float32) @ W.T + noise
    X.flush()
    assert growth(MAPPED.format(str(tmp_path / "X.npy")), FIT) < 0.6 * X.nbytes


WORKER_BYTES = 700_000_000


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
    ours = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(X)
    whole = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(data.X)
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
        answers, key = plainly(parts), parts[0].key
        sent.append(((key if isinstance(key, str) else key[0]).split("-")[0], answers))
        return answers

    monkeypatch.setattr(blocks, "computed", computed)
    seen, given = [], {"random_state": 0, "latent_variance": "shared", "tol": 1e-12}
    ours = AdaptivePPCA(4, 2, **given, callback=seen.append).fit(
        da.from_array(data.X, chunks=(100, 12))
    )
    same(ours, AdaptivePPCA(4, 2, **given).fit(data.X), data.X)
    assert any(p.stage == "refinement on 700 rows" for p in seen)
    assert {name for name, _ in sent} == {"_size_and_sum", "_summed", "_taken", "_over"}
    coordinates = [part for name, chunks in sent if name == "_over" for c in chunks for part in c]
    assert sum(values.size for _, values in coordinates) == 700 * 12
    for name, answers in sent:
        if name != "_over":
            parts = [part for answer in answers for part in np.atleast_1d(flat(answer))]
            most = {"_taken": 1000 * 12, "_summed": 10 * 16 * 13}.get(name, 30 * 13)  # of 10 chunks
            assert len(parts) <= most, name


def flat(answer):
    parts = answer if isinstance(answer, tuple) else (answer,)
    return np.concatenate([np.ravel(part) for part in parts])


def test_the_order_in_which_chunks_come_back_changes_no_bit(data, da):
    dask, X = pytest.importorskip("dask"), da.from_array(data.X, chunks=(70, 12))
    ours = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(X)
    with dask.config.set(scheduler="synchronous"):
        again = AdaptivePPCA(4, 2, init="pca", random_state=0).fit(X)
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


def test_columns_of_parts_keep_the_order_of_the_fit(seed):
    X, dask = planted(150, 6, 3, 1, seed=seed, noise=0.5).X, pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    blocks = [frame[:70], frame[70:]]
    turned = [block[list("bacdef")] for block in blocks]
    for fit in (
        lambda model: model.fit_blocks(blocks),
        lambda model: model.fit(iter(blocks)),
        lambda model: model.fit(dask.from_pandas(frame, 2)),
    ):
        model = fit(AdaptivePPCA(3, 1, init="pca", random_state=0))
        assert list(model.feature_names_in_) == list("abcdef")
        assert model.score_blocks(blocks) == pytest.approx(model.score(frame))
        for ask in (
            model.score_blocks,
            lambda b, m=model: list(m.transform_blocks(b)),
            model.fit_blocks,
        ):
            with pytest.raises(ValueError, match="in the same order; block 1 has"):
                ask([blocks[0], turned[1]])


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_and_errors_come_in_the_order_of_the_items(cores, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: cores)
    assert list(in_order(lambda x: x**2, range(12))) == [x**2 for x in range(12)]
    assert list(in_order(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda x: 1 // x, [1, 0, 1]))
    assert threads._holders.count == 0


def in_another_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.fixture
def two_threads():
    before = blas_threads()
    hold_blas(2)
    yield
    hold_blas(max(before))


@pytest.mark.usefixtures("two_threads")
def test_whichever_thread_holds_blas_it_is_held():
    def held():
        with single_threaded_blas():
            return blas_threads()

    for _ in range(2):
        assert held() == {1}
        assert in_another_thread(held) == {1}
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_blas_gets_its_threads_back_whichever_thread_is_the_last_to_hold_it():
    first, last = single_threaded_blas(), single_threaded_blas()
    with ThreadPoolExecutor(1) as other:
        first.__enter__()
        other.submit(last.__enter__).result()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        other.submit(last.__exit__, None, None, None).result()
    assert blas_threads() == {2}
    in_another_thread(lambda: hold_blas(1))
    assert blas_threads() == {1}


def test_blas_gets_its_threads_back_after_an_error_and_those_asked_for_in_the_middle():
    before = blas_threads()
    with pytest.raises(KeyError), single_threaded_blas():
        raise KeyError
    assert blas_threads() == before
    with single_threaded_blas():
        hold_blas(2)
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    hold_blas(max(before))
    assert blas_threads() == before


def test_neither_fits_beside_it_nor_the_number_of_cores_move_a_bit(seed, monkeypatch):
    X = planted(9000, 20, 4, 2, seed=seed).X
    models = [AdaptivePPCA(4, 2, random_state=0, max_iter=5) for _ in range(5)]
    for cores, model in enumerate(models[:2], start=1):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        model.fit(X)
    workers = [threading.Thread(target=model.fit, args=(X,)) for model in models[2:]]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for model in models[1:]:
        equal(model.components_, models[0].components_)
        equal(model.score_samples(X), models[0].score_samples(X))


FORKED = """
import os, signal, sys
from appca.models import threads
from appca.models.threads import in_order, single_threaded_blas

threads.cores = lambda: 2
assert list(in_order(abs, [-1, -2, -3])) == [1, 2, 3]  # the parent has threads now
with single_threaded_blas():
    child = os.fork()
    if child == 0:
        signal.alarm(300)  # a child that waits for threads it does not have dies of this
        assert threads._holders.count == 0
        assert list(in_order(abs, [-4, -5, -6])) == [4, 5, 6]
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_of_its_own():
    ran = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


SOURCE = """
from typing import NamedTuple

from appca.models.numeric_kernels import kernel


class {name}(NamedTuple):
    x: float


@kernel
def doubled(given):
    return {factor} * given.x
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def load(name, factor):
        source, path = SOURCE.format(name=name, factor=factor), tmp_path / "cached_kernels.py"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        importlib.invalidate_caches()
        sys.modules.pop("cached_kernels", None)
        return importlib.import_module("cached_kernels")

    yield load
    sys.modules.pop("cached_kernels", None)


def test_a_cache_that_names_a_class_of_an_earlier_version_is_no_obstacle(loaded):
    before = loaded("Before", 2.0)
    assert before.doubled(before.Before(3.0)) == 6.0
    after = loaded("Afterwards", 4.0)
    assert after.doubled(after.Afterwards(3.0)) == 12.0


def test_exponentials_are_exact_to_a_few_roundings():
    from appca.models.numeric_kernels import LANES, LEAST, exponentials

    given = np.linspace(1.2 * LEAST, 0.0, 40 * LANES)
    found, power = given.copy(), np.empty(LANES)
    for start in range(0, len(found), LANES):
        exponentials(found[start : start + LANES], power, power.view(np.int64))
    inside = given > LEAST
    close(found[inside], np.exp(given[inside]), rtol=1e-15)
    assert found[-1] == 1.0
    assert not found[~inside].any()
    assert (~inside).sum() > LANES


def test_logarithms_are_exact_to_a_few_roundings(seed):
    from appca.models.numeric_kernels import LANES, logarithms

    rng = np.random.default_rng(seed)
    wide = np.exp(rng.uniform(-700.0, 700.0, 40 * LANES))
    near = 1.0 + np.r_[rng.uniform(-0.5, 1.5, 20 * LANES - 2), 0.0, 1e-15]
    for given in (wide, near, np.repeat([0.5, 1.0, 2.0, np.sqrt(2.0)], LANES)):
        found, power = given.copy(), np.empty(LANES)
        for start in range(0, len(given) - LANES + 1, LANES):
            part = found[start : start + LANES]
            logarithms(part, part.view(np.int64), power)
        close(found, np.log(given), rtol=1e-14, atol=3e-16)


# Fits of a few rows come first: libraries and compiled kernels stay once they are loaded.
BEFORE = """
import numpy as np
from appca import (
    AdaptiveFactorAnalysis, AdaptivePPCA, FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
)

rng = np.random.default_rng(0)
W = {}
X = np.empty(({}, {}), np.float32)
for part in np.array_split(X, 10):
    Z = rng.random((len(part), 3)).argsort(axis=1) < 2
    part[:] = ({} * Z * rng.standard_normal(Z.shape)).astype(np.float32) @ W
    part += rng.standard_normal(part.shape, dtype=np.float32) + 1.0
chain = {{"n_chains": 1, "burn_in": 2, "n_draws": 3, "random_state": 0}}
em = {{"inference": "gibbs", "init": "pca", "max_iter": 3}}
models = [{}]
for model in models:
    model.fit(X[:1000].copy())  # enough for the compiled E step
"""
# Large arrays are always new to the process, so a copy of the rows shows in whatever fit makes it.
WORK = """
wide = X.reshape(1000, -1)  # fewer rows than features
for model, rows in [*((model, X) for model in models), (models[0], wide)][: {}]:
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("RssAnon")
    noise = model.fit(rows).noise_variance_
    assert rows is wide or abs(noise - 1.0) < 0.05, (model, noise)
    share = (peak() - before) / rows.nbytes
    assert share < 1.0, (model, rows.shape, share)
"""
CHAINS = """
    AdaptivePPCA(13, 2, **em, **chain),
    AdaptivePPCA(13, 2, w_update="polar", z_update="swap", **em, **chain),
    NonparametricPPCA(13, **chain),
"""
FACTORS = """
    AdaptiveFactorAnalysis(3, 2, max_iter=3, random_state=0),
    AdaptiveFactorAnalysis(3, 2, max_iter=2, allocation="best", annealing=1, random_state=0),
    AdaptiveFactorAnalysis(3, 2, max_iter=3, inference="gibbs", **chain),
    FiniteSparseFA(3, **chain),
    InfiniteSparseFA(3, **chain),
"""


@needs_proc
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("W", "n", "d", "size", "models", "n_fits"),
    [
        ("np.linalg.qr(rng.standard_normal((750, 3)))[0].T.astype(np.float32)", 20_000, 750, 9.0,
         CHAINS, 4),
        ("rng.standard_normal((3, 500), dtype=np.float32)", 24_000, 500, 3.0, FACTORS, 5),
    ],
)  # fmt: skip
def test_fits_take_less_memory_than_their_rows(W, n, d, size, models, n_fits):
    before, work = BEFORE.format(W, n, d, size, models), WORK.format(n_fits)
    assert growth(before, work) < 2 * n * d * 4  # with what was kept after all the fits before


BOTH = pytest.mark.parametrize("kind", [AdaptivePPCA, AdaptiveFactorAnalysis])


def batches(X, size):
    return [X[start : start + size] for start in range(0, len(X), size)]


@pytest.mark.parametrize("settings", [{}, {"mean": "zero"}, {"inference": "hard"}])
def test_batches_lead_to_the_fit_of_all_rows(settings, seed):
    offset = 0.0 if settings.get("mean") == "zero" else 3.0
    data = planted(3_000, 12, 4, 2, seed=seed, noise=0.3, offset=offset)
    whole = AdaptivePPCA(4, 2, random_state=0, **settings).fit(data.X)
    model = AdaptivePPCA(4, 2, random_state=0, **settings)
    for batch in batches(data.X, 300):
        model.partial_fit(batch)
    assert matched_cosines(model.components_, data.W).min() > 0.998
    assert model.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.03)
    close(model.mean_, whole.mean_, atol=0.05)
    assert model.score(data.X) > whole.score(data.X) - 0.02


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("settings", [{}, {"mean": "zero"}, {"allocation": "best"}])
def test_batches_lead_factors_to_the_fit_of_all_rows(settings, seed):
    Y, W, _, mu = drawn(seed, 6_500, 12, 5, 2)
    X = Y - mu if settings.get("mean") == "zero" else Y
    whole = AdaptiveFactorAnalysis(5, 2, random_state=0, **settings).fit(X[:6_000])
    model = AdaptiveFactorAnalysis(5, 2, random_state=0, **settings)
    for batch in batches(X[:6_000], 500):
        model.partial_fit(batch)
    C = model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]
    assert matched_cosines(C, W / np.linalg.norm(W, axis=0)).min() > 0.99
    assert model.score(X[6_000:]) > whole.score(X[6_000:]) - 0.05
    close(np.sort(model.scale_), np.sort(whole.scale_), rtol=0.2)


@pytest.mark.default_cases(1)
@BOTH
def test_the_same_batch_again_and_again_is_em_on_it(kind, seed):
    X = planted(400, 8, 4, 2, seed=seed, noise=0.3).X
    best = kind(4, 2, random_state=0, init="pca", tol=1e-10).fit(X)
    model = kind(4, 2, random_state=0, init="pca", max_iter=2)
    with pytest.warns(UserWarning, match="max_iter"):
        model.partial_fit(X)
    for _ in range(300):
        model.partial_fit(X)
    assert model.score(X) == pytest.approx(best.score(X), abs=1e-3)


@BOTH
def test_the_curve_has_the_likelihood_of_each_batch_before_it_was_learned_from(kind, seed):
    X = planted(900, 6, 3, 2, seed=seed, noise=0.5, offset=2.0).X
    model = kind(3, 2, random_state=0, init="pca").fit(X[:300])
    for batch in batches(X[300:], 150):
        w = np.arange(len(batch)) % 3 + 0.5
        expected = w @ model.score_samples(batch)
        model.partial_fit(batch, sample_weight=w)
        assert model.log_likelihoods_[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.default_cases(1)
@BOTH
def test_another_fit_begins_anew_and_what_cannot_be_learned_from_is_refused(kind, seed):
    X = planted(300, 6, 3, 2, seed=seed, noise=0.5).X
    model = kind(3, 2, random_state=0, init="pca").partial_fit(X).partial_fit(2 * X)
    equal(model.fit(X).components_, kind(3, 2, random_state=0, init="pca").fit(X).components_)
    with pytest.raises(ValueError, match="finite"):
        model.partial_fit(np.full((2, 6), np.nan))
    sampled = kind(3, 2, inference="gibbs")
    assert not hasattr(sampled, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit uses EM, but inference is 'gibb"):
        sampled.partial_fit(X)


@BOTH
def test_one_row_more_hardly_moves_a_fit_of_many(kind, seed):
    X = planted(2_001, 10, 4, 2, seed=seed, noise=0.3, offset=5.0).X + 7.0  # far from zero
    model = kind(4, 2, random_state=0, init="pca").fit(X[:-1])
    before, value = model.components_.copy(), model.score(X)
    model.partial_fit(X[-1:])
    assert model.score(X) == pytest.approx(value, abs=0.01)
    close(model.components_, before, atol=0.02 * np.abs(before).max())
    model.partial_fit(X[-1:] + 30.0 * before[:1])
    assert model.score(X) > value - 0.2


def test_a_batch_after_a_fit_counts_for_as_many_rows_as_it_has(seed):
    X = planted(320, 7, 4, 2, seed=seed, noise=0.4, offset=1.0).X
    old, new = X[:300], X[300:]
    model = AdaptivePPCA(4, 2, random_state=0, init="pca", tol=1e-13, max_iter=5000).fit(old)
    mean, noise = X.mean(axis=0), model.noise_variance_
    W, unit = model.components_.T, np.sqrt(noise)
    at = em_adaptive_ppca.of_paper(W, model.mean_, model.latent_variance_, noise, 2)
    _, supports, p = em_adaptive_ppca.e_step(X, at)  # old rows as the end of the fit has them
    r, (m, v) = p[:, :, 0] @ supports, em_adaptive_ppca.scores(X, at)
    h, second = unit * r * m, noise * (r * (m**2 + v)).mean(axis=0)
    A, s = (X - mean).T @ h / 320, h.mean(axis=0)
    U, _, Vt = np.linalg.svd(A, full_matrices=False)
    W, power = U @ Vt, np.square(X - mean).sum() / len(X)
    noise = (power - 2.0 * np.sum(W * A) - s @ s + second.sum()) / X.shape[1]
    model.partial_fit(new)
    close(model.components_, W.T, atol=1e-5)
    close(model.mean_, mean - W @ s, atol=1e-5)
    assert model.noise_variance_ == pytest.approx(noise, rel=1e-5)
    close(model.latent_variance_, second.sum() / 2, rtol=1e-5)


@pytest.mark.default_cases(1)
@BOTH
@pytest.mark.parametrize("size", [40, 160])
def test_a_stream_sorted_by_class_loses_little_however_it_is_cut(kind, size, seed):
    # Three classes in planes of their own: the first batches show but one of them.
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    parts = [3.0 * rng.standard_normal((320, 2)) @ W[:, [0, k]].T for k in (1, 2, 3)]
    X = np.concatenate(parts) + 0.3 * rng.standard_normal((960, 9))
    best = kind(4, 2, random_state=0, init="pca").fit(X).score(X)
    model = kind(4, 2, random_state=0, init="pca")
    for batch in batches(X, size):
        model.partial_fit(batch)
    assert model.score(X) > best - 0.3


@BOTH
def test_a_restored_model_stays_where_it_is_but_for_what_a_batch_says(kind, seed):
    X = planted(3_000, 8, 4, 2, seed=seed, noise=0.3, offset=2.0).X
    arrays = kind(4, 2, random_state=0, init="pca").fit(X).fitted_arrays()
    arrays["components"] = -arrays["components"][::-1]
    for name in ("latent_variance", "explained_variance", "scale"):
        arrays[name] = arrays[name][::-1]
    model = kind(4, 2, random_state=0, init="pca").restore(arrays)
    model.n_iter_, model.log_likelihoods_, value = 0, np.empty(0), model.score(X)
    for batch in batches(X[:300], 100):
        model.partial_fit(batch)
    # Neither order nor signs are those a fit would give.
    cosines = np.einsum("kd,kd->k", model.components_, arrays["components"])
    assert (cosines > 0.99 * np.square(arrays["components"]).sum(axis=1)).all()
    assert model.score(X) > value - 0.01


def test_a_batch_that_fails_changes_nothing(seed, monkeypatch):
    X = planted(150, 6, 3, 1, seed=seed, noise=0.5).X
    model = AdaptivePPCA(3, 1, random_state=0, init="pca").fit(X)
    before = model.__dict__.copy()
    monkeypatch.setattr(partial_fit, "publish", None)
    with pytest.raises(TypeError):
        model.partial_fit(X)
    assert model.__dict__ == before
