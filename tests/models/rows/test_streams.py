"""Fits on blocks of rows against fits on all of them, and the memory they take."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.models import blocks as streams
from appca.models import climb, rows
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


@pytest.mark.parametrize("nearness", [0.0, 1e9], ids=["far origin", "near origin"])
def test_sums_over_a_stream_are_those_over_rows(nearness, data, pieces, seed, monkeypatch):
    monkeypatch.setattr(rows, "NEAR", nearness)
    monkeypatch.setattr(rows, "MIN_BLOCK_ROWS", 256)
    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 300)
    ours, theirs = stream(pieces), about(data.X, centre_of(data.X))
    assert (ours.n, ours.d, ours.n_features, ours.dtype) == (3000, 12, 12, np.float64)
    np.testing.assert_allclose(ours.origin, theirs.origin, rtol=1e-14)
    assert ours.total == pytest.approx(theirs.total, rel=1e-12)
    assert ours.careful == theirs.careful == (nearness == 0.0)
    rng = np.random.default_rng(seed)
    W, S = rng.standard_normal((12, 3)), rng.standard_normal((3000, 3))
    np.testing.assert_allclose(project(ours, W), project(theirs, W), atol=1e-11)
    np.testing.assert_allclose(
        transposed_product(ours, S), transposed_product(theirs, S), atol=1e-9
    )
    which = np.sort(rng.choice(3000, 50, replace=False))
    np.testing.assert_array_equal(ours.take(which), data.X[which])


@pytest.mark.parametrize("mean", ["learned", "sample", "zero"])
@pytest.mark.parametrize("inference", ["em", "hard"])
def test_a_fit_on_blocks_is_the_fit_on_all_rows(inference, mean, data, pieces):
    given = {"inference": inference, "mean": mean, "random_state": 0}
    whole = AdaptivePPCA(4, 2, **given).fit(data.X)
    ours = AdaptivePPCA(4, 2, **given).fit_blocks(pieces)
    assert ours.n_features_in_ == 12
    assert ours.score(data.X) == pytest.approx(whole.score(data.X), rel=1e-6)
    np.testing.assert_allclose(ours.components_, whole.components_, atol=1e-5)
    np.testing.assert_allclose(ours.mean_, whole.mean_, atol=1e-5)
    np.testing.assert_allclose(ours.scale_, whole.scale_, rtol=1e-5)
    assert ours.score_blocks(pieces) == pytest.approx(ours.score(data.X), rel=1e-12)
    joined = np.concatenate(list(ours.transform_blocks(lambda: iter(pieces))))
    np.testing.assert_allclose(joined, ours.transform(data.X), atol=1e-12)


def test_samples_of_blocks_are_those_of_rows(data, pieces, monkeypatch):
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 50)
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 50)
    seen = []
    whole = AdaptivePPCA(4, 2, random_state=0, callback=seen.append).fit(data.X)
    assert any(p.stage == "refinement on 3,000 rows" for p in seen)
    ours = AdaptivePPCA(4, 2, random_state=0).fit_blocks(lambda: iter(pieces))
    assert ours.score(data.X) == pytest.approx(whole.score(data.X), rel=1e-6)


def test_float32_blocks_are_worked_on_in_float32(data, pieces):
    small = [piece.astype(np.float32) for piece in pieces]
    ours = AdaptivePPCA(4, 2, random_state=0).fit_blocks(small)
    whole = AdaptivePPCA(4, 2, random_state=0).fit(data.X.astype(np.float32))
    assert ours.components_.dtype == ours.mean_.dtype == np.float32
    assert ours.score(data.X) == pytest.approx(whole.score(data.X), rel=1e-4)


def test_whole_numbers_are_taken_as_float64(data):
    counts = np.round(10 * data.X).astype(np.int16)
    ours = AdaptivePPCA(4, 2, random_state=0).fit_blocks(cut(counts, 1000))
    whole = AdaptivePPCA(4, 2, random_state=0).fit(counts.astype(float))
    assert ours.score(counts.astype(float)) == pytest.approx(
        whole.score(counts.astype(float)), rel=1e-6
    )


REFUSALS = {
    "a spent iterator": (lambda X: iter([X]), "blocks must be readable again for every pass"),
    "no rows": (lambda _X: [], "blocks must hold rows; got none"),
    "a vector": (lambda X: [X, X[0]], "block 1 has 1 dimension"),
    "another width": (lambda X: [X, X[:, :5]], "block 1 has 5, those before have 12"),
    "NaN": (lambda X: [X, np.full((2, 12), np.nan)], "X must be finite, but block 1 holds NaN"),
    "equal rows": (lambda _X: [np.ones((9, 12))], "X must vary, but all its 9 rows are equal"),
    "few rows": (lambda X: [X[:3]], "n_components must be at most 2, because X has 3 rows"),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_iterator_given_to_fit_is_read_once_and_fitted_as_its_rows(dtype, data, monkeypatch):
    monkeypatch.setattr(streams, "MAPPED_BYTES", 10_000)
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
    np.testing.assert_allclose(ours.components_, whole.components_, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in REFUSALS if name != "a spent iterator"])
def test_an_iterator_given_to_fit_is_refused_as_its_blocks_are(name, data):
    blocks, words = REFUSALS[name]
    with pytest.raises(ValueError, match="must") as refusal:
        AdaptivePPCA(4, 2).fit(iter(blocks(data.X)))
    assert words in str(refusal.value)


def test_the_sampler_refuses_an_iterator_and_does_not_read_it(data):
    pieces = iter([data.X])
    with pytest.raises(ValueError, match="inference must be 'em' or 'hard' to fit blocks"):
        AdaptivePPCA(4, 2, inference="gibbs").fit(pieces)
    assert next(pieces) is data.X


@pytest.mark.parametrize(("blocks", "words"), REFUSALS.values(), ids=REFUSALS)
def test_blocks_are_refused_in_one_sentence(blocks, words, data):
    with pytest.raises(ValueError, match="must") as refusal:
        AdaptivePPCA(4, 2).fit_blocks(blocks(data.X))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_sampler_refuses_blocks(pieces):
    with pytest.raises(ValueError, match="inference must be 'em' or 'hard' to fit blocks"):
        AdaptivePPCA(4, 2, inference="gibbs").fit_blocks(pieces)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_mapped_file_is_fitted_as_the_array_in_it(mode, data, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", data.X)
    X = np.load(tmp_path / "X.npy", mmap_mode=mode)
    if mode == "c":
        X[0, 0] += 1.0  # in memory only: giving the page back would lose it
    monkeypatch.setattr(streams, "LARGE_MAP_BYTES", 0)
    monkeypatch.setattr(streams, "MAPPED_BYTES", 10_000)
    kept = np.array(X)
    seen = list(Mapped(X))
    assert len(seen) > 10
    np.testing.assert_array_equal(np.concatenate(seen), kept)
    assert np.shares_memory(seen[0], X)
    ours = AdaptivePPCA(4, 2, random_state=0).fit(X)
    whole = AdaptivePPCA(4, 2, random_state=0).fit(kept)
    assert ours.score(kept) == pytest.approx(whole.score(kept), rel=1e-6)
    np.testing.assert_array_equal(X, kept)


def test_slices_of_mapped_files_are_read_where_they_lie(data, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", data.X)
    monkeypatch.setattr(streams, "MAPPED_BYTES", 10_000)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    for some in (X[17:2000], X[::3], X[:, 2:7]):
        np.testing.assert_array_equal(np.concatenate(list(Mapped(some))), np.array(some))


def test_files_in_any_order_are_read_in_blocks_of_the_same_size(data, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MAPPED_BYTES", 10_000)
    counts = np.round(data.X).astype(np.int16)
    X = np.lib.format.open_memmap(
        tmp_path / "X.npy", "w+", np.int16, counts.shape, fortran_order=True
    )
    X[:] = counts
    for some in (X, X[::-1]):
        blocks = list(Mapped(some))
        assert {block.size * 8 <= 10_000 for block in blocks} == {True}
        np.testing.assert_array_equal(np.concatenate(blocks), np.array(some))


def test_blocks_that_are_not_the_same_in_every_pass_are_refused(data):
    pieces = iter(cut(data.X, 1000))
    with pytest.raises(ValueError, match="got 3000 rows first and 0 now"):
        AdaptivePPCA(4, 2).fit_blocks(lambda: pieces)


def test_questions_need_one_pass_only(data, pieces):
    model = AdaptivePPCA(4, 2, random_state=0).fit(data.X)
    assert model.score_blocks(iter(pieces)) == pytest.approx(model.score(data.X), rel=1e-12)
    joined = np.concatenate(list(model.transform_blocks(iter(pieces))))
    np.testing.assert_allclose(joined, model.transform(data.X), atol=1e-12)
    with pytest.raises(ValueError, match="blocks must hold rows; got none"):
        model.score_blocks([])


def test_names_of_an_earlier_fit_are_forgotten(data, pieces):
    import pandas as pd

    model = AdaptivePPCA(4, 2, random_state=0)
    model.fit(pd.DataFrame(data.X, columns=[f"x{i}" for i in range(12)]))
    assert len(model.feature_names_in_) == 12
    model.fit_blocks(pieces)
    assert not hasattr(model, "feature_names_in_")
    model.transform(data.X)  # a warning would be an error


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
