import numpy as np
import pytest

from appca.data.dataset import distinct


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, "U3"])
def test_rows_are_counted_once_each(dtype):
    X = np.random.default_rng(0).integers(0, 4, (3000, 5)).astype(dtype)
    assert distinct(X) == len({row.tobytes() for row in X})
    assert distinct(X[::2, 1:3]) == len({row.tobytes() for row in X[::2, 1:3]})
    assert distinct(X[:0]) == 0
