"""MNIST and COIL-20 from their real files, against other routes to the same pixels."""

import gzip
import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from appca.data.readers import read
from appca.data.sources import ZIP, load
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


def test_all_digits_are_there_and_keep_row_image_label_and_id_together(data_folder, tmp_path, seed):
    rng = np.random.default_rng(seed)
    dataset = load("mnist", n=70_000)
    assert dataset.X.shape == (70_000, 784)
    assert np.bincount(dataset.labels["digit"].astype(int)).tolist() == [
        *(6903, 7877, 6990, 7141, 6824),
        *(6313, 6876, 7293, 6825, 6958),
    ]
    assert dataset.ids[[0, 59_999, 60_000, -1]].tolist() == [
        *("train-0", "train-59999", "test-0", "test-9999")
    ]
    store = DatasetStore(tmp_path)
    back = store.get(store.put(dataset.take(rng.permutation(70_000))))
    for row in rng.choice(70_000, 3, replace=False):
        pixels, label = raw_digit(data_folder, back.ids[row])
        np.testing.assert_array_equal(back.images([row])[0], pixels.reshape(28, 28))
        assert back.labels["digit"][row] == label
        assert back.labels["part"][row] == back.ids[row].split("-")[0]


def png(folder, name):
    with zipfile.ZipFile(folder / "coil20" / ZIP) as archive:
        data = archive.read(f"coil-20-proc/{name}.png")
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize("size", [32, 128])
def test_every_view_is_the_image_its_id_names(size, data_folder, seed):
    dataset = load("coil20", size=size)
    assert dataset.X.shape == (1440, size * size)
    for row in np.random.default_rng(seed).choice(1440, 20, replace=False):
        number, view = dataset.ids[row].removeprefix("obj").split("__")
        assert dataset.labels["object"][row] == number
        assert dataset.labels["angle"][row] == 5 * int(view)
        image = png(data_folder, dataset.ids[row])
        if size == 32:
            image = image.astype(float).reshape(32, 4, 32, 4).mean(axis=(1, 3))
        np.testing.assert_array_equal(dataset.X[row].reshape(size, size), image)
    if size == 32:
        assert dataset.digest.startswith("af89262ce5a39d51")
    part = load("coil20", classes=[2, 11], per_class=9, size=size, n=4)
    expected = [f"obj{number}__{view}" for number in (2, 11) for view in range(9)]
    assert part.ids.tolist() == expected
    assert part.name == f"COIL-20, {size} x {size}, objects 2, 11, 9 each"
    places = [dataset.ids.tolist().index(name) for name in expected]
    np.testing.assert_array_equal(part.X, dataset.X[places])


def test_a_zip_with_one_changed_image_is_refused(data_folder, tmp_path):
    target = tmp_path / "coil20" / ZIP
    target.parent.mkdir()
    with (
        zipfile.ZipFile(data_folder / "coil20" / ZIP) as source,
        zipfile.ZipFile(target, "w") as copy,
    ):
        for item in source.infolist():
            other = item.filename.replace("obj7__3.", "obj7__4.")
            copy.writestr(item.filename, source.read(other))
    with pytest.raises(InputError, match="are not those of COIL-20"):
        load("coil20", data_folder=tmp_path)


def test_columbias_zip_as_an_upload_has_the_classes_of_its_names(data_folder):
    dataset = read(ZIP, data_folder / "coil20" / ZIP)
    built_in = load("coil20", size=128)
    np.testing.assert_array_equal(dataset.X, built_in.X)
    np.testing.assert_array_equal(dataset.ids, built_in.ids)
    assert dataset.labels["class"][0] == "obj1"
    np.testing.assert_array_equal(dataset.labels["number"] * 5, built_in.labels["angle"])
