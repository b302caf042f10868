"""MNIST and COIL-20 from their real files, against other routes to the same pixels."""

import gzip
import io
import zipfile
from functools import cache

import numpy as np
import pytest
from PIL import Image

from appca.data import downloads
from appca.data.readers import read
from appca.data.sources import load, receive
from appca.data.store import DatasetStore
from appca.words import InputError

pytestmark = pytest.mark.real_data


def raw_digit(folder, name):
    """Pixels and label of one digit, cut out of the IDX bytes by hand."""
    part, number = name.split("-")
    stem = {"train": "train", "test": "t10k"}[part]
    packed = [
        folder / "mnist" / f"{stem}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1")
    ]
    images, labels = (gzip.decompress(path.read_bytes()) for path in packed)
    start = 16 + 784 * int(number)
    return np.frombuffer(images[start : start + 784], np.uint8), str(labels[8 + int(number)])


def check_digits(dataset, rows, folder):
    for row in rows:
        pixels, label = raw_digit(folder, dataset.ids[row])
        np.testing.assert_array_equal(dataset.image(row), pixels.reshape(28, 28))
        assert dataset.labels["digit"][row] == label
        assert dataset.labels["part"][row] == dataset.ids[row].split("-")[0]


def test_all_digits_are_there_and_keep_row_image_label_and_id_together(data_folder, tmp_path, seed):
    rng = np.random.default_rng(seed)
    dataset = load("mnist", n=70_000)
    assert dataset.X.shape == (70_000, 784)
    assert np.bincount(dataset.labels["digit"].astype(int)).tolist() == [
        *(6903, 7877, 6990, 7141, 6824),
        *(6313, 6876, 7293, 6825, 6958),
    ]
    check_digits(dataset, [0, 59_999, 60_000, 69_999], data_folder)
    shuffled = dataset.take(rng.permutation(70_000))
    store = DatasetStore(tmp_path)
    back = store.get(store.put(shuffled))
    check_digits(back, rng.choice(70_000, 3, replace=False), data_folder)


def test_the_papers_odd_digits_are_500_of_each_in_file_order(data_folder, seed):
    dataset = load("mnist", classes=[1, 3, 5, 7, 9], per_class=500)
    names, codes = dataset.class_column
    assert names == ["1", "3", "5", "7", "9"]
    assert np.bincount(codes).tolist() == [500] * 5
    numbers = [int(name.split("-")[1]) for name in dataset.ids]
    assert numbers == sorted(numbers)
    check_digits(dataset, np.random.default_rng(seed).choice(2500, 3), data_folder)


def test_a_changed_digit_file_is_refused_by_its_checksum(data_folder, tmp_path):
    (tmp_path / "mnist").mkdir()
    for path in (data_folder / "mnist").glob("*.gz"):
        data = bytearray(path.read_bytes())
        if path.name.startswith("t10k-labels"):
            data[-9] ^= 1
        (tmp_path / "mnist" / path.name).write_bytes(data)
    with pytest.raises(InputError, match=r"t10k-labels.* is not the published .*delete it"):
        load("mnist", data_folder=tmp_path)


def png(folder, name):
    with zipfile.ZipFile(folder / "coil20" / downloads.ZIP) as archive:
        data = archive.read(f"coil-20-proc/{name}.png")
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize("size", [32, 128])
def test_every_view_is_the_image_its_id_names(size, data_folder, tmp_path, seed):
    rng = np.random.default_rng(seed)
    dataset = load("coil20", size=size)
    assert dataset.X.shape == (1440, size * size)
    shuffled = dataset.take(rng.permutation(1440))
    store = DatasetStore(tmp_path)
    back = store.get(store.put(shuffled))
    for row in rng.choice(1440, 20, replace=False):
        number, view = back.ids[row].removeprefix("obj").split("__")
        assert back.labels["object"][row] == number
        assert back.labels["angle"][row] == 5 * int(view)
        image = png(data_folder, back.ids[row])
        if size == 32:
            image = image.astype(float).reshape(32, 4, 32, 4).mean(axis=(1, 3))
        np.testing.assert_array_equal(back.X[row].reshape(size, size), image)


_decoded = cache(downloads.read_zip)


@pytest.fixture
def decoded_once(monkeypatch):
    """Decode Columbia's zip once for all tests that choose among its views."""
    monkeypatch.setattr(downloads, "read_zip", _decoded)


@pytest.mark.usefixtures("decoded_once")
@pytest.mark.parametrize(
    ("options", "kept", "name"),
    [
        ({"n": 100}, lambda number, view: 72 * (number - 1) + view < 100, "100 views"),
        ({"per_class": 5}, lambda number, view: view < 5, "objects, 5 each"),
        ({"classes": [20, "3"]}, lambda number, view: number in (3, 20), "144 of objects 20, 3"),
        (
            {"classes": [2, 11], "per_class": 9, "size": 128, "n": 4},
            lambda number, view: number in (2, 11) and view < 9,
            "objects 2, 11, 9 each",
        ),
        (
            {"classes": [2, 11], "n": 80},
            lambda number, view: number == 2 or (number == 11 and view < 8),
            "80 of objects 2, 11",
        ),
    ],
    ids=["n", "per_class", "classes", "classes and per_class", "classes and n"],
)
def test_parts_of_coil_20_are_the_views_their_ids_name(options, kept, name, data_folder):
    every = [(number, view) for number in range(1, 21) for view in range(72)]
    expected = [f"obj{number}__{view}" for number, view in every if kept(number, view)]
    dataset, size = load("coil20", **options), options.get("size", 32)
    assert dataset.ids.tolist() == expected
    assert dataset.name == f"COIL-20, {size} x {size}, {name}"
    assert dataset.image_range == (0, 255)
    for row in (0, -1):
        image = png(data_folder, dataset.ids[row])
        if size == 32:
            image = image.astype(float).reshape(32, 4, 32, 4).mean(axis=(1, 3))
        np.testing.assert_array_equal(dataset.X[row].reshape(size, size), image)
        number, view = expected[row].removeprefix("obj").split("__")
        assert dataset.labels["object"][row] == number
        assert dataset.labels["angle"][row] == 5 * int(view)
    unchosen = {"size": 32, "n": None, "per_class": None, "classes": None}
    chosen = {"classes": [str(name) for name in options["classes"]]} if "classes" in options else {}
    assert dataset.provenance["options"] == unchosen | options | chosen


@pytest.mark.usefixtures("decoded_once")
def test_all_of_coil_20_is_the_data_set_it_was_before_parts_could_be_chosen():
    whole = load("coil20", n=None, per_class=None, classes=None)
    assert whole.digest.startswith("af89262ce5a39d51")
    assert whole.provenance["options"] == {"size": 32}
    assert load("coil20", n=1440).digest == whole.digest


def test_the_mat_file_gives_the_same_data_set_as_the_zip(data_folder, tmp_path):
    (tmp_path / "coil20").mkdir()
    (tmp_path / "coil20" / downloads.MAT).write_bytes(
        (data_folder / "coil20" / downloads.MAT).read_bytes()
    )
    assert load("coil20", data_folder=tmp_path).digest == load("coil20").digest


def test_a_zip_with_one_changed_image_is_refused(data_folder, tmp_path):
    target = tmp_path / "coil20" / downloads.ZIP
    target.parent.mkdir()
    with (
        zipfile.ZipFile(data_folder / "coil20" / downloads.ZIP) as source,
        zipfile.ZipFile(target, "w") as copy,
    ):
        for item in source.infolist():
            other = item.filename.replace("obj7__3.", "obj7__4.")
            copy.writestr(item.filename, source.read(other))
    with pytest.raises(InputError, match="are not those of COIL-20"):
        load("coil20", data_folder=tmp_path)


def test_columbias_zip_as_an_upload_has_the_classes_of_its_names(data_folder):
    dataset = read(downloads.ZIP, data_folder / "coil20" / downloads.ZIP)
    built_in = load("coil20", size=128)
    np.testing.assert_array_equal(dataset.X, built_in.X)
    np.testing.assert_array_equal(dataset.ids, built_in.ids)
    assert dataset.labels["class"][0] == "obj1"
    np.testing.assert_array_equal(dataset.labels["number"] * 5, built_in.labels["angle"])


def test_dropped_files_are_kept_where_the_loaders_look(data_folder, tmp_path):
    for path in (data_folder / "mnist").glob("*.gz"):
        with path.open("rb") as file:
            assert receive(path.name, file, tmp_path) == "mnist"
    with (data_folder / "coil20" / downloads.MAT).open("rb") as file:
        assert receive(downloads.MAT, file, tmp_path) == "coil20"
    assert load("mnist", n=100, data_folder=tmp_path).digest == load("mnist", n=100).digest
    assert load("coil20", data_folder=tmp_path).digest == load("coil20").digest
    assert not list(tmp_path.rglob(".*"))


def test_a_dropped_file_that_only_bears_the_name_is_not_kept(tmp_path):
    for name in ("train-labels-idx1-ubyte.gz", downloads.ZIP, downloads.MAT):
        with pytest.raises(InputError, match=f"“{name}” is not the published file"):
            receive(name, io.BytesIO(b"something else"), tmp_path)
    assert receive("other.csv", io.BytesIO(b"a,b"), tmp_path) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
