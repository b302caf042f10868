import gzip
import hashlib
import socket
import struct

import numpy as np
import pytest

from appca.data import sources
from appca.data.sources import fetch, load
from appca.words import InputError
from tests.data.loopback import serving

CONTENT = bytes(np.random.default_rng(0).integers(256, size=300_000, dtype=np.uint8))
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server():
    with serving({"file": CONTENT}) as files:
        yield files


@pytest.fixture
def nowhere():
    """An address on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}/"


def test_a_line_that_breaks_leaves_nothing_and_the_next_mirror_is_asked(server, nowhere, tmp_path):
    path = tmp_path / "new" / "file"
    server.cut_after, server.status = [100_000], [200, 404, 503]
    with pytest.raises(InputError, match=r"the connection to .* failed"):
        fetch([server.url + "file"], path)
    assert list(path.parent.iterdir()) == []
    urls = [server.url + "file", nowhere + "file", server.url + "file", server.url + "file"]
    fetch(urls, path, sha256=SHA)
    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 4
    assert list(path.parent.iterdir()) == [path]


def test_a_wrong_checksum_is_named_and_leaves_nothing(server, tmp_path):
    with pytest.raises(InputError, match=r"file could not .*published checksum\); ask a friend\."):
        fetch([server.url + "file"], tmp_path / "file", sha256="0" * 64, advice="ask a friend.")
    assert list(tmp_path.iterdir()) == []


def test_whoever_watches_the_progress_can_stop_it(server, tmp_path):
    def stop(done, _):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch([server.url + "file"], tmp_path / "file", sha256=SHA, progress=stop)
    assert list(tmp_path.iterdir()) == []


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def little_mnist(monkeypatch):
    """MNIST with 30 + 10 digits, served on loopback in place of its mirrors."""
    rng = np.random.default_rng(0)
    content, arrays = {}, {}
    for part, stem, count in (("train", "train", 30), ("test", "t10k", 10)):
        images = rng.integers(256, size=(count, 28, 28), dtype=np.uint8)
        arrays[part] = (images, rng.integers(3, size=count, dtype=np.uint8))
        for kind, array in zip(("images-idx3", "labels-idx1"), arrays[part], strict=True):
            content[f"{stem}-{kind}-ubyte.gz"] = gzip.compress(idx(array))
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    monkeypatch.setitem(sources.FILES, "mnist", digests)
    with serving(content) as files:
        monkeypatch.setitem(sources.MIRRORS, "mnist", (files.url,))
        yield files, arrays


def test_mnist_is_fetched_once_and_keeps_row_image_label_and_id_together(
    little_mnist, tmp_path, seed
):
    server, arrays = little_mnist
    seen = []
    load("mnist", n=40, data_folder=tmp_path, progress=lambda *pair: seen.append(pair))
    dataset = load("mnist", n=40, data_folder=tmp_path)
    assert len(server.requests) == 4
    assert {(len(data), len(data)) for data in server.content.values()} <= set(seen)
    shuffled = dataset.take(np.random.default_rng(seed).permutation(40))
    for row in range(40):
        part, number = shuffled.ids[row].split("-")
        images, labels = arrays[part]
        np.testing.assert_array_equal(shuffled.images([row])[0], images[int(number)])
        assert shuffled.labels["digit"][row] == str(labels[int(number)])
        assert shuffled.labels["part"][row] == part


@pytest.mark.parametrize(
    ("options", "chosen", "name"),
    [
        ({"n": 35}, lambda digit: np.arange(35), "35 digits"),
        ({"classes": [2, "0"]}, lambda digit: np.flatnonzero(digit != 1), "of digits 2, 0"),
        ({"classes": [1], "n": 3}, lambda digit: np.flatnonzero(digit == 1)[:3], "3 of digits 1"),
        (
            {"per_class": 2, "n": 3},
            lambda digit: np.sort([i for d in range(3) for i in np.flatnonzero(digit == d)[:2]]),
            "digits, 2 each",
        ),
    ],
)
def test_chosen_digits_come_in_file_order(little_mnist, tmp_path, options, chosen, name):
    digit = np.concatenate([labels for _, labels in little_mnist[1].values()])
    dataset = load("mnist", data_folder=tmp_path, **options)
    ids = [f"train-{row}" if row < 30 else f"test-{row - 30}" for row in chosen(digit)]
    assert dataset.ids.tolist() == ids
    assert dataset.name.endswith(name)
    classes = {"classes": list(map(str, options["classes"]))} if "classes" in options else {}
    usual = {"n": 10_000, "per_class": None, "classes": None}
    assert dataset.provenance["options"] == usual | options | classes


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            "mnist",
            r"train-images-idx3-ubyte\.gz.*t10k-labels-idx1-ubyte\.gz into .*mnist, or drop them",
        ),
        ("coil20", r"coil-20-proc\.zip into .*coil20, or drop it onto the Data page"),
    ],
)
def test_without_a_network_the_sentence_says_which_files_to_put_where(
    key, words, nowhere, tmp_path, monkeypatch
):
    monkeypatch.setitem(sources.MIRRORS, key, (nowhere,))
    with pytest.raises(InputError, match=words) as caught:
        load(key, data_folder=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_download_that_is_not_coil_20_is_refused_and_not_kept(tmp_path, monkeypatch):
    with serving({"coil-20-proc.zip": b"<html>moved</html>"}) as server:
        monkeypatch.setitem(sources.MIRRORS, "coil20", (server.url,))
        with pytest.raises(InputError, match=r"coil-20-proc\.zip is damaged"):
            load("coil20", data_folder=tmp_path)
    assert list((tmp_path / "coil20").iterdir()) == []


def test_files_in_the_data_folder_are_read_if_they_are_the_published_ones(little_mnist, tmp_path):
    server, _ = little_mnist
    (tmp_path / "mnist").mkdir()
    for name, data in server.content.items():
        (tmp_path / "mnist" / name).write_bytes(data)
    assert load("mnist", n=9, data_folder=tmp_path).n_rows == 9
    assert server.requests == []
    (tmp_path / "mnist" / name).write_bytes(data[:-1])
    with pytest.raises(InputError, match=r"t10k-labels.* is not the published .*delete it"):
        load("mnist", n=9, data_folder=tmp_path)
