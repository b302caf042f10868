import gzip
import hashlib
import socket
import struct

import numpy as np
import pytest

from appca.data import downloads
from appca.data.downloads import fetch
from appca.data.sources import load
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


def test_a_file_arrives_whole_and_alone(server, tmp_path):
    path = fetch([server.url + "file"], tmp_path / "new" / "file", sha256=SHA)
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_line_that_breaks_leaves_nothing_and_the_next_mirror_is_asked(server, tmp_path):
    server.cut_after = [100_000, 50_000]
    with pytest.raises(InputError, match=r"the connection to .* failed"):
        fetch([server.url + "file"], tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
    path = fetch([server.url + "file"] * 2, tmp_path / "file", sha256=SHA)
    assert path.read_bytes() == CONTENT


def test_a_wrong_checksum_is_named_and_leaves_nothing(server, tmp_path):
    with pytest.raises(InputError, match=r"file could not .*published checksum\); ask a friend\."):
        fetch([server.url + "file"], tmp_path / "file", sha256="0" * 64, advice="ask a friend.")
    assert list(tmp_path.iterdir()) == []


def test_the_next_mirror_is_asked_when_one_refuses(server, nowhere, tmp_path):
    server.status = [404, 503]
    urls = [server.url + "file", nowhere + "file", server.url + "file", server.url + "file"]
    assert fetch(urls, tmp_path / "file", sha256=SHA).read_bytes() == CONTENT
    assert len(server.requests) == 3


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
    published, content, arrays = {}, {}, {}
    for part, count in (("train", 30), ("test", 10)):
        stem = {"train": "train", "test": "t10k"}[part]
        arrays[part] = (
            rng.integers(256, size=(count, 28, 28), dtype=np.uint8),
            rng.integers(10, size=count, dtype=np.uint8),
        )
        files = []
        for kind, array in zip(("images-idx3", "labels-idx1"), arrays[part], strict=True):
            name, data = f"{stem}-{kind}-ubyte.gz", gzip.compress(idx(array))
            content[name] = data
            files.append(downloads.Published(name, len(data), hashlib.sha256(data).hexdigest()))
        published[part] = tuple(files)
    monkeypatch.setattr(downloads, "FILES", published)
    monkeypatch.setattr(downloads, "COUNTS", {"train": 30, "test": 10})
    with serving(content) as files:
        monkeypatch.setattr(downloads, "MIRRORS", (files.url,))
        yield files, arrays


def test_mnist_is_fetched_once_and_keeps_row_image_label_and_id_together(
    little_mnist, tmp_path, seed
):
    server, arrays = little_mnist
    seen = []
    load("mnist", n=40, data_folder=tmp_path, progress=lambda *pair: seen.append(pair))
    dataset = load("mnist", n=40, data_folder=tmp_path)
    assert len(server.requests) == 4
    done = [pair[0] for pair in seen]
    assert done == sorted(done)
    assert seen[-1] == (sum(map(len, server.content.values())),) * 2
    shuffled = dataset.take(np.random.default_rng(seed).permutation(40))
    for row in range(40):
        part, number = shuffled.ids[row].split("-")
        images, labels = arrays[part]
        np.testing.assert_array_equal(shuffled.image(row), images[int(number)])
        assert shuffled.labels["digit"][row] == str(labels[int(number)])
        assert shuffled.labels["part"][row] == part


def test_without_a_network_mnist_says_which_files_to_put_where(nowhere, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "MIRRORS", (nowhere,))
    with pytest.raises(InputError) as caught:
        load("mnist", data_folder=tmp_path)
    text = str(caught.value)
    for name in ("train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"):
        assert name in text
    assert str(tmp_path / "mnist") in text
    assert "drop them onto the Data page" in text
    assert text.count("\n") == 0


def test_without_a_network_coil_20_says_which_file_to_put_where(nowhere, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "URLS", (nowhere,))
    with pytest.raises(InputError, match=r"coil-20-proc\.zip into .*coil20, or drop it onto"):
        load("coil20", data_folder=tmp_path)


def test_a_download_that_is_not_coil_20_is_refused_and_not_kept(tmp_path, monkeypatch):
    with serving({"coil-20-proc.zip": b"<html>moved</html>"}) as server:
        monkeypatch.setattr(downloads, "URLS", (server.url + "coil-20-proc.zip",))
        with pytest.raises(InputError, match=r"coil-20-proc\.zip is damaged"):
            load("coil20", data_folder=tmp_path)
    assert list((tmp_path / "coil20").iterdir()) == []
