"""The fields of MAT files, against SciPy's reader where the files are sound."""

import io

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from appca.data.readers import read
from appca.data.readers.arrays.mat5 import values, variables
from appca.data.readers.source import ReadLimits
from appca.storage.errors import InputError

MOST = 1 << 24


def saved(content, **options):
    stream = io.BytesIO()
    savemat(stream, content, **options)
    return stream.getvalue()


def loaded(data, key="X"):
    stream = io.BytesIO(data)
    return values(stream, variables(stream, MOST)[key], MOST)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f8"]
)
@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (2, 1), (2, 3, 4), (2, 2, 2, 3)])
def test_numbers_are_those_scipy_reads(dtype, shape, packed, seed):
    X = np.random.default_rng(seed).integers(2, size=shape).astype(dtype)
    data = saved({"a": 1, "X": X, "z" * 31: X}, do_compression=packed)
    expected = loadmat(io.BytesIO(data))["X"]
    np.testing.assert_array_equal(loaded(data), expected)
    assert loaded(data).dtype == (bool if dtype == "?" else expected.dtype)
    np.testing.assert_array_equal(loaded(data, "z" * 31), expected)


def test_texts_are_one_a_row_without_the_blanks_that_fill_it():
    data = saved({"y": np.array(["ab", "c", "größe"])})
    assert loaded(data, "y").tolist() == ["ab", "c", "größe"]
    assert variables(io.BytesIO(data), MOST)["y"].shape == (3,)


def test_what_is_neither_numbers_nor_texts_is_listed_as_such():
    content = {"X": np.eye(3), "c": np.array([[1, "a"]], object), "s": {"q": 1}}
    content["i"] = np.eye(2) * 1j
    listed = variables(io.BytesIO(saved(content)), MOST)
    assert {key: one.plain for key, one in listed.items()} == {
        "X": True,
        "c": False,
        "s": False,
        "i": False,
    }


def test_labels_stand_beside_the_rows():
    content = {"X": np.arange(12.0).reshape(4, 3), "kind": np.array(["a", "bb", "a", "bb"])}
    dataset = read("x.mat", io.BytesIO(saved(content)))
    assert dataset.labels["kind"].tolist() == ["a", "bb", "a", "bb"]
    np.testing.assert_array_equal(dataset.X, content["X"])


def test_every_single_bit_may_be_wrong(seed):
    """One of them ends a process that believes the fields (a segmentation fault)."""
    data = saved({"X": np.eye(3), "Y": np.arange(3.0)[:, None]})
    refusals = set()
    for bit in range(128 * 8, len(data) * 8):
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            read("x.mat", io.BytesIO(broken))
        except InputError as error:
            refusals.add(str(error))
    assert len(refusals) > 5
    assert all(sentence.endswith(".") for sentence in refusals)


def test_a_variable_that_unpacks_beyond_the_limit_is_refused():
    data = saved({"X": np.zeros((1000, 1000))}, do_compression=True)
    with pytest.raises(InputError, match="unpacks to more than 1 MB"):
        read("x.mat", io.BytesIO(data), limits=ReadLimits(n_bytes=1_000_000))
