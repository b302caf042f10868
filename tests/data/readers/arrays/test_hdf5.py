import io

import h5py
import numpy as np
import pytest

from appca.data.readers import kind_of, read
from appca.words import InputError
from tests.data.fuzz_targets import hdf5


def load(data, **options):
    return read("data.h5", io.BytesIO(data), **options)


def values(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def test_the_only_matrix_is_taken_and_vectors_of_its_length_name_the_rows(seed):
    X = values(seed, 6, 4)
    arrays = {"set/values": X, "set/id": list("abcdef"), "kind": np.array([b"x", b"y"] * 3)}
    dataset = load(hdf5(arrays | {"age": np.arange(6) // 2, "weights": values([seed, 1], 6)}))
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.ids.tolist() == list("abcdef")
    assert set(dataset.labels) == {"kind", "age"}
    assert dataset.labels["kind"].tolist() == list("xyxyxy")
    assert dataset.provenance["report"]["unused"] == {"weights": "numbers, of which many differ"}


def test_rows_ids_and_labels_are_chosen_by_name(seed):
    first, second = values(seed, 5, 3), values([seed, 1], 5, 2)
    data = hdf5({"a": first, "b": second, "names": list("vwxyz"), "age": values(seed, 5)})
    with pytest.raises(InputError, match="holds several arrays, “a”"):
        load(data)
    dataset = load(data, array="b", ids="names", labels=("age",))
    np.testing.assert_array_equal(dataset.X, second)
    assert dataset.ids.tolist() == list("vwxyz")
    np.testing.assert_array_equal(dataset.labels["age"], values(seed, 5))
    with pytest.raises(InputError, match=r"There is no array “c” in “data\.h5”; choose of “a”"):
        load(data, array="a", labels=("c",))
    with pytest.raises(InputError, match=r"“b” in “data\.h5” has 5 x 2 entries for the 5 rows of"):
        load(data, array="a", ids="b")


@pytest.mark.parametrize(
    "packing", [{}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf"}]
)
def test_packed_images_keep_type_and_sides(packing, seed):
    stack = np.random.default_rng(seed).integers(256, size=(5, 4, 3), dtype=np.uint8)
    dataset = load(hdf5({"X": stack}, **packing))
    assert dataset.X.dtype == np.uint8
    assert dataset.image_shape == (4, 3)
    np.testing.assert_array_equal(dataset.image(2), stack[2])


def test_the_kind_is_known_by_name_and_by_content():
    data = io.BytesIO(hdf5({"X": np.eye(3)}))
    assert kind_of("a.hdf5") == "hdf5"
    assert kind_of("without an ending", data) == "hdf5"


def test_no_other_file_is_opened_and_circles_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("other.h5", "w") as other:
        other["X"] = np.eye(9)
    with h5py.File("given.h5", "w") as file:
        file["X"] = np.eye(4)
        file["far"] = h5py.ExternalLink("other.h5", "X")
        file["near"] = h5py.SoftLink("/X")
        file["loop/up"] = file["/"]
        layout = h5py.VirtualLayout((9, 9), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "X", (9, 9))
        file.create_virtual_dataset("virtual", layout)
    with open("given.h5", "rb") as file:  # noqa: PTH123
        data = file.read()
    dataset = load(data)
    assert dataset.n_rows == 4
    assert dataset.provenance["report"]["unused"] == {
        "far": "a link",
        "near": "a link",
        "virtual": "its numbers lie in other files",
    }
    with pytest.raises(InputError, match="no array “virtual”"):
        load(data, array="virtual")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no such file", "is not an HDF5 file or is damaged"),
        (hdf5({"X": np.eye(4)})[:-200], "is not an HDF5 file or is damaged"),
        (hdf5({"X": np.arange(5)}), "holds no matrix of numbers, only “X” "),
        (hdf5({"X": np.eye(4) * 1j}), "only “X” \\(no numbers or texts\\)"),
        (hdf5({f"g{i}": np.eye(2) for i in range(3)}), "several arrays"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(data, words):
    with pytest.raises(InputError, match=words):
        load(data)
