import io

import numpy as np
import pytest
from scipy.io import savemat

from appca.data.files import ReadLimits
from appca.data.readers import read
from appca.data.readers.process import read_apart
from appca.words import InputError
from tests.data.fuzz_targets import hdf5


def saved(compress=True, **variables):
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=compress)
    return stream.getvalue()


def load(data, **options):
    return read("data.mat", io.BytesIO(data), **options)


def values(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("compress", [True, False])
def test_the_matrix_is_read_with_the_vectors_of_its_length_as_labels(compress, seed):
    X = values(seed, 6, 4)
    data = saved(compress, fea=X, gnd=np.array([[1.0, 1, 2, 2, 3, 3]]).T, s=np.array([[5.0]]))
    dataset = load(data)
    np.testing.assert_array_equal(dataset.X, X)
    assert list(dataset.labels) == ["gnd"]
    assert dataset.labels["gnd"].tolist() == [1, 1, 2, 2, 3, 3]


def test_columns_can_be_the_objects(seed):
    X = values(seed, 4, 6)
    np.testing.assert_array_equal(load(saved(X=X), transpose=True).X, X.T)


def test_pixels_that_run_down_the_columns_become_upright_images(seed):
    stack = np.random.default_rng(seed).integers(256, size=(5, 4, 3), dtype=np.uint8)
    down = np.stack([image.ravel(order="F") for image in stack])
    np.testing.assert_array_equal(load(saved(X=down), image_shape=(4, 3)).images(range(5)), stack)
    along = stack.reshape(5, 12)
    dataset = load(saved(X=along), image_shape=(4, 3), by_column=False)
    np.testing.assert_array_equal(dataset.images(range(5)), stack)


def test_images_stacked_along_the_third_side_are_understood(seed):
    stack = np.random.default_rng(seed).integers(256, size=(5, 4, 3), dtype=np.uint8)
    data = saved(img=np.moveaxis(stack, 0, 2), y=np.arange(5))
    dataset = load(data, transpose=True)
    np.testing.assert_array_equal(dataset.images(range(5)), stack)
    assert dataset.labels["y"].tolist() == [0, 1, 2, 3, 4]


def test_cells_structures_and_texts_are_left_alone(seed):
    X = values(seed, 3, 2)
    cells = np.array([1, "two", None], dtype=object)
    cells[2] = np.arange(3)
    dataset = load(saved(X=X, cells=cells, struct={"a": 1}, text="words"))
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.labels == {}


@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f8"]
)
def test_numbers_keep_the_type_that_the_file_states(dtype, seed):
    X = np.random.default_rng(seed).integers(2, size=(4, 3)).astype(dtype)
    X[:2] = [[1, 0, 1], [0, 1, 0]]
    dataset = load(saved(X=X, a=1))
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.X.dtype == ("u1" if dtype == "u1" else dataset.X.dtype)


def test_texts_are_labels_without_the_blanks_that_fill_them(seed):
    data = saved(X=values(seed, 4, 3), kind=np.array(["a", "größe", "a", "größe"]))
    assert load(data).labels["kind"].tolist() == ["a", "größe", "a", "größe"]


def test_a_file_that_ends_scipy_s_reader_costs_its_own_process_only(tmp_path):
    """One wrong bit in a length (SciPy 1.17) ends the process that reads it."""
    data = bytearray(saved(compress=False, X=np.eye(3), Y=np.arange(3.0)[:, None]))
    sentences = set()
    for bit in range(128 * 8, 160 * 8, 7):
        broken = data.copy()
        broken[bit // 8] ^= 1 << bit % 8
        try:
            read_apart([("x.mat", io.BytesIO(broken))], limits=ReadLimits(scratch=str(tmp_path)))
        except InputError as error:
            sentences.add(str(error))
    assert sentences
    assert all(sentence.endswith(".") for sentence in sentences)


def version_73():
    return (
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM" + bytes(384) + b"\x89HDF"
    )


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (b"", {}, "is empty"),
        (b"words", {}, "is not a MAT file of version 5 or later"),
        (version_73(), {}, "is not an HDF5 file or is damaged; write it again"),
        (saved(a=np.eye(3), b=np.eye(4)), {}, "several arrays"),
        (saved(a=np.eye(3)), {"array": "b"}, "no array “b”"),
        (saved(a="words"), {}, "no matrix of numbers"),
        (saved(a=np.eye(3) * 1j), {}, "holds complex numbers; save real ones"),
        (saved(a=np.eye(4)), {"image_shape": (3, 2)}, "Images of 3 x 2 pixels have 6 values"),
        (saved(a=np.eye(4))[:-9], {}, "damaged or no MAT file"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(data, options, words):
    with pytest.raises(InputError, match=words):
        load(data, **options)


def test_a_variable_that_unpacks_beyond_the_limit_is_refused_before_it_is_read():
    data = saved(X=np.zeros((1000, 1000)))
    assert len(data) < 100_000
    with pytest.raises(InputError, match="1,000 numbers in 8 MB, more than 1 MB"):
        load(data, limits=ReadLimits(n_bytes=1_000_000))


@pytest.mark.parametrize("kind", ["5", "7.3"])
def test_the_limits_are_those_of_the_matrix_that_is_made(kind, seed):
    """200 values of 3 rows, and by columns 3 of 200: each is refused where the other is read."""
    X = values(seed, 3, 200)
    data = saved(X=X) if kind == "5" else hdf5({"X": X}, "double")
    few, many = ReadLimits(features=20), ReadLimits(features=20, least_rows=4)
    with pytest.raises(InputError, match="200"):
        load(data, limits=few)
    assert load(data, limits=few, transpose=True).X.shape == (200, 3)
    with pytest.raises(InputError, match="at least 4 rows"):
        load(saved(X=X.T), limits=many, transpose=True)
    assert load(saved(X=X.T), limits=many).X.shape == (200, 3)


def test_vectors_of_a_file_of_version_7_3_may_lie_or_stand(seed):
    X = values(seed, 6, 4)
    standing, lying = np.array([[1.0, 1, 2, 2, 3, 3]]).T, np.array([[4.0, 4, 5, 5, 6, 6]])
    arrays = {"X": X, "one": standing, "two": lying, "three": X[:4]}
    dataset = load(hdf5(arrays, "double"), array="X")
    assert {name: column.tolist() for name, column in dataset.labels.items()} == {
        "one": [1, 1, 2, 2, 3, 3],
        "two": [4, 4, 5, 5, 6, 6],
    }


def test_version_7_3_is_read_with_its_sides_the_right_way_round(seed):
    X = values(seed, 6, 4)
    dataset = load(hdf5({"X": X, "gnd": np.array([[1.0, 1, 2, 2, 3, 3]]).T}, "double"))
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.labels["gnd"].tolist() == [1, 1, 2, 2, 3, 3]
    turned = load(hdf5({"X": X}, "double", compression="gzip"), transpose=True)
    np.testing.assert_array_equal(turned.X, X.T)
