"""Tests of built-in data: fixed digests, options, and complete downloads."""

import gzip
import hashlib
import importlib
import io
import json
import re
import socket
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from appca.data import sources
from appca.data.folders import folder_of_files, project_folder
from appca.data.readers import read
from appca.data.sources import DESIGNS, SOURCES, ZIP, draw_indicators, draw_synthetic, fetch, load
from appca.words import InputError
from tests.data.file_makers import idx, packed

DIGESTS = {
    "digits": "3d84e84960959a95",
    "turntable": "2aa410a97e063a0f",
    "planes": "d9eafbb963302739",
    "brain": "5ba92ecda04d8ea3",
    "wine": "fcddfcc083f13b9f",
    "breast_cancer": "08d1741c226b5f82",
}


@pytest.mark.parametrize("source", [s for s in SOURCES.values() if s.offline], ids=lambda s: s.key)
def test_offline_sets_are_the_same_in_every_release(source):
    dataset = load(source.key)
    assert dataset.X.shape == (source.rows, source.features)
    assert dataset.digest.startswith(DIGESTS[source.key])
    provenance = dataset.provenance
    assert json.loads(json.dumps(provenance)) == provenance
    assert provenance["source"] == source.key
    if source.key == "digits":
        expected = load_digits()
        np.testing.assert_array_equal(dataset.X, expected.data)
        np.testing.assert_array_equal(dataset.labels["digit"], expected.target.astype(str))


@pytest.mark.parametrize(
    ("key", "options", "words"),
    [
        ("iris", {}, "no built-in data set 'iris'; choose one of digits, "),
        ("digits", {"n": 5}, "has no options; got n"),
        ("coil20", {"views": 5}, "has the options classes, n, per_class, size; got views"),
        ("coil20", {"size": 64}, "size of COIL-20 must be 32 or 128; got 64"),
        ("coil20", {"n": 1441}, "n of COIL-20 must be a whole number from 2 to 1,440; got 1441"),
        ("mnist", {"n": 1}, "n of MNIST must be a whole number from 2 to 70,000; got 1"),
        *(("mnist", {"n": n}, f"got {n!r}") for n in ("many", 2.5)),
        ("mnist", {"per_class": 0}, "per_class of MNIST must be a whole number from 1 to 6,313"),
        ("mnist", {"classes": [1, 10]}, r"must be a list of some of 0, 1, .*; got \[1, 10\]"),
        *(("mnist", {"classes": few}, re.escape(f"got {few!r}")) for few in ([], 3, "13")),
    ],
)
def test_options_without_meaning_are_refused_before_anything_is_fetched(key, options, words):
    with pytest.raises(InputError, match=words):
        load(key, **options)


def test_files_are_looked_for_where_they_were_said_to_be(monkeypatch, tmp_path, appca_home):
    monkeypatch.delenv("APPCA_DATA", raising=False)
    assert folder_of_files() == appca_home / "data"
    monkeypatch.setenv("APPCA_DATA", str(tmp_path))
    assert folder_of_files() == tmp_path
    assert folder_of_files("elsewhere").name == "elsewhere"
    monkeypatch.delenv("APPCA_DATA")
    monkeypatch.delenv("APPCA_HOME")
    assert folder_of_files().parts[-2:] == ("appca", "data")
    monkeypatch.setattr("appca.data.folders.project_folder", lambda: tmp_path)
    for key, name in (("planes", "planes.csv"), ("turntable", "turntable.npz"), ("brain", "brain")):
        with pytest.raises(InputError, match=f"{name}.* is missing .*run python sample_data/make"):
            load(key)


SAMPLES = project_folder() / "sample_data"


@pytest.fixture
def script(monkeypatch):
    """The script that made the files, imported from its folder."""
    monkeypatch.syspath_prepend(SAMPLES)
    return importlib.import_module("make")


def test_the_three_planes_are_spanned_by_pairs_of_three_orthonormal_directions(script):
    planes = load("planes")
    names, codes = planes.class_column
    assert names == ["1 and 2", "1 and 3", "2 and 3"]
    assert np.bincount(codes).tolist() == [300] * 3
    groups = [planes.X[codes == code] for code in range(3)]
    normals = np.array([np.linalg.svd(group - group.mean(0))[2][2] for group in groups])
    # The normal of the plane of two directions is the third, so normals are orthonormal, too.
    np.testing.assert_allclose(np.abs(normals @ normals.T), np.eye(3), atol=0.02)
    points, kinds, _ = script.planes(np.random.default_rng(1))
    np.testing.assert_allclose(planes.X, points, atol=6e-5)
    assert planes.labels["plane"].tolist() == kinds


def test_the_turntable_has_72_views_of_each_solid_as_the_renderer_makes_them(script):
    table = load("turntable")
    names, codes = table.class_column
    assert np.bincount(codes).tolist() == [72] * len(names)
    assert (table.labels["angle"].reshape(-1, 72) == np.arange(0, 360, 5)).all()
    assert len(np.unique(table.X, axis=0)) == table.n_rows
    for row in (72 * 6 + 20, 72 * 9 + 41):
        solid = script.SOLIDS[str(table.labels["solid"][row])]
        drawn = script.view(solid.shape, float(table.labels["angle"][row]), solid.albedo)
        difference = np.abs(drawn.astype(int) - table.images([row])[0])
        assert np.median(difference) == 0
        assert difference.mean() < 0.2  # machines round differently at a few edges


def test_regions_of_the_brain_follow_their_condition():
    brain = load("brain")
    times = np.arange(brain.n_features) * brain.provenance["repetition"]
    shown = {name: np.zeros(brain.n_features) for name in ("faces", "places")}
    for event in brain.provenance["events"]:
        late = times - event["onset"] - 6  # blood answers some six seconds late
        shown[event["trial_type"]][(late >= 0) & (late < event["duration"])] = 1
    for region, faces, places in (
        *(("face area", (0.8, 1), (-1, 0.2)), ("place area", (-1, 0.2), (0.8, 1))),
        *(("visual cortex", (0.3, 1), (0.3, 1)), ("default network", (-1, 0), (-1, 1))),
        ("vessel", (-0.2, 0.2), (-1, 1)),
    ):
        course = brain.X[brain.labels["region"] == region].mean(axis=0)
        for condition, (low, high) in zip(shown.values(), (faces, places), strict=True):
            assert low < np.corrcoef(course, condition)[0, 1] < high, region


def test_designs_are_what_their_names_say():
    def indicators(design: str, seed: int, n_rows: int) -> np.ndarray:
        return draw_indicators(np.random.default_rng(seed), design, n_rows, 10, 5)

    Z = draw_indicators(np.random.default_rng(1), "balanced", 6000, 4, 2)
    assert (Z.sum(axis=1) == 2).all()
    counts = np.unique(Z @ (1 << np.arange(4)), return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5  # chi-square on 5 degrees, p = 0.001
    Z = indicators("subspace", 0, 200).astype(int)
    assert set(np.unique(Z @ Z.T)) == {0, 5}, "classes share all factors or none"
    for design, expected in (("sparse", 0.3 / 1.3), ("dense", 0.8)):
        means = [indicators(design, seed, 50).mean() for seed in range(400)]
        assert abs(np.mean(means) - expected) < 5 * np.std(means) / 20
    for design in DESIGNS:
        truth = draw_synthetic(np.random.default_rng(3), design, n_rows=500)
        assert abs((truth.Y - (truth.X * truth.Z) @ truth.W.T).std() - 0.1) < 0.003
        assert (draw_synthetic(np.random.default_rng(3), design, n_rows=500).Y == truth.Y).all()
    for design, L, words in (
        ("balanced", 11, "between 1 and n_components=10; got 11"),
        ("banana", 5, "design must be one of sparse"),
    ):
        with pytest.raises(ValueError, match=words):
            draw_indicators(np.random.default_rng(0), design, 5, 10, L)


# downloads


class Files:
    """What a server on loopback holds and does; the paths asked for are noted."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content
        self.cut_after: list[int] = []  # bytes after which the next answers break off, in order
        self.status: list[int] = []  # statuses of the next answers, in order
        self.requests: list[str] = []
        self.url = ""


@contextmanager
def serving(content: dict[str, bytes]) -> Iterator[Files]:
    """Serve the content on a free port until the block ends."""
    files = Files(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            files.requests.append(self.path.lstrip("/"))
            data = files.content.get(files.requests[-1])
            status = files.status.pop(0) if files.status else 200 if data is not None else 404
            if status != 200:
                self.send_error(status)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: files.cut_after.pop(0) if files.cut_after else None])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        files.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield files
        finally:
            server.shutdown()
            thread.join()


CONTENT = bytes(np.random.default_rng(0).integers(256, size=300_000, dtype=np.uint8))
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def nowhere():
    """An address on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}/"


def test_a_file_is_fetched_whole_or_not_at_all_from_the_first_mirror_that_has_it(nowhere, tmp_path):
    def stop(done, _):
        if done > 100_000:
            raise KeyboardInterrupt

    path = tmp_path / "new" / "file"
    with serving({"file": CONTENT}) as server:
        url = f"{server.url}file"
        server.cut_after, server.status = [100_000], [200, 404, 503]
        with pytest.raises(InputError, match=r"the connection to .* failed"):
            fetch([url], path)
        assert list(path.parent.iterdir()) == []
        fetch([url, f"{nowhere}file", url, url], path, sha256=SHA)
        assert path.read_bytes() == CONTENT
        assert len(server.requests) == 4
        path.unlink()
        with pytest.raises(InputError, match=r"file could not .*published checksum\); ask her\."):
            fetch([url], path, sha256="0" * 64, advice="ask her.")
        with pytest.raises(KeyboardInterrupt):
            fetch([url], path, sha256=SHA, progress=stop)
        assert list(path.parent.iterdir()) == []


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


def test_mnist_is_fetched_once_and_keeps_row_image_label_and_id_together(little_mnist, tmp_path):
    server, arrays = little_mnist
    seen = []
    load("mnist", n=40, data_folder=tmp_path, progress=lambda *pair: seen.append(pair))
    dataset = load("mnist", n=40, data_folder=tmp_path)
    assert len(server.requests) == 4
    assert {(len(data), len(data)) for data in server.content.values()} <= set(seen)
    shuffled = dataset.take(np.random.default_rng(0).permutation(40))
    for row in range(40):
        part, number = shuffled.ids[row].split("-")
        images, labels = arrays[part]
        np.testing.assert_array_equal(shuffled.images([row])[0], images[int(number)])
        assert shuffled.labels["digit"][row] == str(labels[int(number)])
        assert shuffled.labels["part"][row] == part
    name = "t10k-labels-idx1-ubyte.gz"  # files of one's own are read if they are the published ones
    (tmp_path / "mnist" / name).write_bytes(server.content[name][:-1])
    with pytest.raises(InputError, match=r"t10k-labels.* is not the published .*delete it"):
        load("mnist", n=9, data_folder=tmp_path)


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
        ("mnist", r"train-images-idx3-ubyte\.gz.*t10k-labels-idx1-ubyte\.gz into .*or drop them"),
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
    if key == "coil20":
        with serving({"coil-20-proc.zip": b"<html>moved</html>"}) as server:
            monkeypatch.setitem(sources.MIRRORS, "coil20", (server.url,))
            with pytest.raises(InputError, match=r"coil-20-proc\.zip is damaged"):
                load("coil20", data_folder=tmp_path)
        assert list((tmp_path / "coil20").iterdir()) == []


# MNIST and COIL-20 from their real files, against other routes to the same pixels


@pytest.mark.real_data
def test_every_digit_is_the_one_that_its_id_names(data_folder, seed):
    """Pixels and labels are cut out of the IDX bytes by hand."""
    dataset = load("mnist", n=70_000)
    assert dataset.X.shape == (70_000, 784)
    first = (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)
    assert np.bincount(dataset.labels["digit"].astype(int)).tolist() == list(first)
    ends = dataset.ids[[0, 59_999, 60_000, -1]].tolist()
    assert ends == ["train-0", "train-59999", "test-0", "test-9999"]
    kinds = ("images-idx3", "labels-idx1")
    for row in np.random.default_rng(seed).choice(70_000, 3, replace=False):
        part, number = dataset.ids[row].split("-")
        stem = {"train": "train", "test": "t10k"}[part]
        files = [data_folder / "mnist" / f"{stem}-{kind}-ubyte.gz" for kind in kinds]
        images, labels = (gzip.decompress(path.read_bytes()) for path in files)
        pixels = np.frombuffer(images[16 + 784 * int(number) :][:784], np.uint8)
        np.testing.assert_array_equal(dataset.images([row])[0], pixels.reshape(28, 28))
        assert dataset.labels["digit"][row] == str(labels[8 + int(number)])
        assert dataset.labels["part"][row] == part


@pytest.mark.real_data
@pytest.mark.parametrize("size", [32, 128])
def test_every_view_is_the_image_its_id_names(size, data_folder, tmp_path):
    dataset = load("coil20", size=size)
    assert dataset.X.shape == (1440, size * size)
    whole, other = data_folder / "coil20" / ZIP, tmp_path / "coil20" / ZIP
    with zipfile.ZipFile(whole) as archive:
        for row in np.random.default_rng(0).choice(1440, 12, replace=False):
            number, view = dataset.ids[row].removeprefix("obj").split("__")
            assert dataset.labels["object"][row] == number
            assert dataset.labels["angle"][row] == 5 * int(view)
            png = archive.read(f"coil-20-proc/{dataset.ids[row]}.png")
            image = np.asarray(Image.open(io.BytesIO(png))).astype(float)
            if size == 32:
                image = image.reshape(32, 4, 32, 4).mean(axis=(1, 3))
            np.testing.assert_array_equal(dataset.X[row].reshape(size, size), image)
        members = {name: archive.read(name) for name in archive.namelist()}
    if size == 128:
        upload = read(ZIP, whole)
        np.testing.assert_array_equal(upload.X, dataset.X)
        np.testing.assert_array_equal(upload.ids, dataset.ids)
        np.testing.assert_array_equal(upload.labels["number"] * 5, dataset.labels["angle"])
        return
    assert dataset.digest.startswith("af89262ce5a39d51")
    part = load("coil20", classes=[2, 11], per_class=9, size=size, n=4)
    expected = [f"obj{number}__{view}" for number in (2, 11) for view in range(9)]
    assert part.ids.tolist() == expected
    assert part.name == f"COIL-20, {size} x {size}, objects 2, 11, 9 each"
    places = [dataset.ids.tolist().index(name) for name in expected]
    np.testing.assert_array_equal(part.X, dataset.X[places])
    (changed,) = (name for name in members if name.endswith("obj7__3.png"))
    members[changed] = members[changed.replace("__3.", "__4.")]
    other.parent.mkdir()
    other.write_bytes(packed(members))
    with pytest.raises(InputError, match="are not from COIL-20"):
        load("coil20", data_folder=tmp_path)
