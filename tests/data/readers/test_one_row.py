"""A single row, or rows all the same: enough for a model fitted already, not for a data set."""

import io

import numpy as np
import pandas as pd
import pytest

from appca.data.dataset import Dataset
from appca.data.files import ONE_IS_ENOUGH
from appca.data.readers import read
from appca.data.store import DatasetStore
from appca.words import InputError
from tests.data.file_makers import encoded, idx, mat, npz, stored

ROW = np.array([[1, 7, 0, 255, 3, 2]], dtype=np.uint8)
FRAME = pd.DataFrame(ROW.astype(np.float64), columns=list("abcdef"))
FILES = {
    "a.csv": lambda rows: FRAME.iloc[[0] * len(rows)].to_csv(index=False).encode(),
    "plain.csv": lambda rows: ("1.0,7,0,255,3,2\n" * len(rows)).encode(),
    "a.parquet": lambda rows: pd.concat([FRAME] * len(rows), ignore_index=True).to_parquet(),
    "a.npy": lambda rows: stored(np.save, rows),
    "a.npz": lambda rows: npz(X=rows, offset=np.ones(6)),
    "a.mat": lambda rows: mat(X=rows),
    "a.idx": idx,
    "a.png": lambda rows: encoded(rows[:1].reshape(2, 3)),
}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", FILES)
def test_a_single_row_and_rows_all_the_same_are_read_where_that_is_enough(name, n):
    content = FILES[name](np.repeat(ROW, n, 0))
    found = read(name, io.BytesIO(content), limits=ONE_IS_ENOUGH)
    np.testing.assert_array_equal(found.X, np.repeat(ROW, 1 if name == "a.png" else n, 0))
    with pytest.raises(InputError, match=r"at least 2|are the same; choose data that vary"):
        read(name, io.BytesIO(content))


@pytest.mark.parametrize("name", ["a.csv", "a.npy"])
def test_no_row_is_never_enough(name):
    content = b"a,b\n" if name == "a.csv" else stored(np.save, np.zeros((0, 5)))
    with pytest.raises(InputError, match=r"holds a header line and no rows|at least 1 row"):
        read(name, io.BytesIO(content), limits=ONE_IS_ENOUGH)


def test_of_several_arrays_one_with_more_rows_goes_before_one_with_a_single():
    b = np.arange(10.0).reshape(2, 5)
    found = read("two.npz", io.BytesIO(npz(a=np.ones((1, 5)), b=b)), limits=ONE_IS_ENOUGH)
    np.testing.assert_array_equal(found.X, b)


@pytest.mark.parametrize("how", ["refuse", "mean", "drop", "model"])
def test_a_gap_in_a_single_row_can_only_be_left_to_the_model(how):
    content = b"a,b,c\n1.5,,2.5\n"
    if how != "model":
        with pytest.raises(InputError, match=r"missing cell|No cell of column “b” holds a number"):
            read("one.csv", io.BytesIO(content), limits=ONE_IS_ENOUGH, missing=how)
        return
    found = read("one.csv", io.BytesIO(content), limits=ONE_IS_ENOUGH, missing=how)
    np.testing.assert_array_equal(found.with_gaps(), [[1.5, np.nan, 2.5]])


def test_a_single_row_is_no_data_set_to_keep(tmp_path):
    one = Dataset("one", FRAME.to_numpy(), np.array(["a"]), least_rows=1)
    with pytest.raises(InputError, match=r"“one” has a single row; only 2 or more.*add rows\."):
        DatasetStore(tmp_path).put(one)
    assert list(tmp_path.iterdir()) == []
