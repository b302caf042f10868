import io

import numpy as np
import pytest

from appca.data.files import ReadLimits
from appca.data.readers import read
from appca.words import InputError

# Of version 0.1.0: stored data sets and copied scripts name it.


def saved(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def load(array, **options):
    data = array if isinstance(array, bytes) else saved(array)
    return read("data.npy", io.BytesIO(data), **options)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("u1", "u1"),
        ("f4", "f4"),
        ("f8", "f8"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("f2", "f4"),
        ("i8", "f8"),
        ("u2", "f8"),
        ("?", "f8"),
    ],
)
def test_types_are_kept_or_widened_without_changing_a_number(given, kept, seed):
    array = np.random.default_rng(seed).integers(2, size=(6, 3)).astype(given)
    dataset = load(array)
    assert dataset.X.dtype == np.dtype(kept)
    np.testing.assert_array_equal(dataset.X, array)
    assert list(dataset.column_names) == ["feature 1", "feature 2", "feature 3"]
    assert dataset.ids[0] == "row-1"


def test_columns_beyond_the_bound_of_tables_are_named_when_they_are_asked_for():
    dataset = load(np.eye(2, (1 << 17) + 1, dtype=np.uint8))
    assert dataset.feature_names is None
    assert dataset.column_names[-1] == f"feature {(1 << 17) + 1}"


def test_memory_in_column_order_is_read_row_by_row(seed):
    array = np.asfortranarray(np.random.default_rng(seed).standard_normal((5, 4)))
    np.testing.assert_array_equal(load(array).X, array)


@pytest.mark.parametrize(
    ("shape", "sides"),
    [((5, 4, 3), (4, 3)), ((5, 4, 6, 3), (4, 6, 3)), ((5, 4, 6, 1), (4, 6))],
)
def test_stacks_of_images_keep_their_sides(shape, sides, seed):
    array = np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)
    dataset = load(array)
    assert dataset.image_shape == sides
    np.testing.assert_array_equal(dataset.image(2), array[2].reshape(sides))


def test_rows_become_images_when_their_shape_is_given(seed):
    array = np.random.default_rng(seed).integers(256, size=(5, 12), dtype=np.uint8)
    np.testing.assert_array_equal(load(array, image_shape=(3, 4)).image(1), array[1].reshape(3, 4))
    with pytest.raises(InputError, match="with 12 values in all"):
        load(array, image_shape=(3, 5))


def test_gaps_are_refused_filled_or_dropped_as_chosen():
    array = np.array([[1, np.nan], [3, 4], [5, 8]], np.float32)
    with pytest.raises(InputError, match="1 missing cell, in “column 2”") as caught:
        load(array)
    assert caught.value.report["missing"] == {"column 2": 1}
    filled = load(array, missing="mean")
    assert filled.X.dtype == np.float32
    np.testing.assert_array_equal(filled.X, [[1, 6], [3, 4], [5, 8]])
    dropped = load(array, missing="drop")
    assert dropped.ids.tolist() == ["row-2", "row-3"]
    np.testing.assert_array_equal(dropped.X, array[1:])


class Explosive:
    """Unpickling would call this."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (saved(np.array([[Explosive(), 1]] * 2, object), allow_pickle=True), "Python objects"),
        (np.zeros((3, 2), complex), "values of type complex128"),
        (np.array([["a", "b"]] * 3), "values of type <U1"),
        (np.zeros(3, [("a", float), ("b", int)]), "not plain numbers"),
        (np.zeros(7), r"shape \(7,\); give a matrix"),
        (np.zeros((2, 2, 2, 2)), r"shape \(2, 2, 2, 2\); give a matrix"),
        (np.zeros((2, 2, 2, 2, 3)), "give a matrix"),
        (np.zeros((1, 5)), "at least 2 rows and 2 values"),
        (np.zeros((5, 1)), "at least 2 rows and 2 values"),
        (np.zeros((0, 5)), "at least 2 rows and 2 values"),
        (np.ones((5, 4)), "All 5 rows are the same"),
        (np.array([[1, np.inf], [2, 3]]), "“column 2” is infinite in row 1"),
        (np.array([[1, np.nan], [2, np.nan]]), "No cell of column “column 2”"),
        (b"", "is empty"),
        (b"\x93NUMPY", "is not an NPY file"),
        (b"\x93NUMPY\x01\x00\x08\x00nonsense", "is not an NPY file"),
        (b"a,b\n1,2\n", "is not an NPY file"),
        (saved(np.eye(9))[:-1], "is truncated: its header declares 648 bytes and 647"),
    ],
)
def test_a_bad_array_is_refused_in_one_sentence(array, words):
    with pytest.raises(InputError, match=words) as caught:
        load(array)
    assert "\n" not in str(caught.value)


def test_a_header_that_promises_the_world_is_not_believed():
    data = saved(np.eye(3)).replace(b"(3, 3)", b"(99999999, 99999999)"[:6].ljust(6))
    with pytest.raises(InputError):
        load(data)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}
    )
    with pytest.raises(InputError, match="is truncated"):
        load(stream.getvalue())


def test_a_matrix_beyond_the_limit_is_refused():
    with pytest.raises(InputError, match="more than"):
        load(np.eye(100, dtype=np.uint8), limits=ReadLimits(n_bytes=20_000))
