"""The methods of the benchmarks, and what they are given."""

import numpy as np
import pytest

from benchmarks.methods import METHODS
from benchmarks.shapes import synthetic, tenth


@pytest.mark.parametrize("name", ["pca", "fa"])
def test_likelihoods_without_a_covariance_are_those_of_scikit_learn(name):
    X, fresh = synthetic(300, 12, 4, 2)
    model = METHODS[name].make(4, 2, X.shape).fit(X.astype(np.float64))
    assert METHODS[name].score(model, fresh) == pytest.approx(model.score(fresh), rel=1e-6)


def test_every_tenth_row_is_held_back():
    kept, back = tenth(np.arange(40.0)[:, None])
    assert back.ravel().tolist() == [9.0, 19.0, 29.0, 39.0]
    assert len(kept) == 36


def test_synthetic_rows_are_of_the_model():
    X, fresh = synthetic(20_000, 8, 4, 2)
    assert X.dtype == np.float32
    assert fresh.shape == (2000, 8)
    values = np.linalg.eigvalsh(np.cov(X.T))
    np.testing.assert_allclose(values[:4], 0.25, rtol=0.1)
    np.testing.assert_allclose(values[4:], 0.25 + 4.0 * 2 / 4, rtol=0.1)
