"""Steering rebuilds rows as the fit does, whatever was done to the data before it."""

import numpy as np
import pytest

from appca.analysis.components import fullest_pair, steering
from appca.data.preprocessing import Preprocessing
from tests.fitted_runs import fitted_run


@pytest.mark.parametrize("options", [{}, {"divide": 4.0, "scale": "feature"}, {"pca": 3}])
def test_average_and_patterns_rebuild_what_the_fit_rebuilds(options, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6)) * np.arange(1, 7) + 5
    before = Preprocessing(**options).fit(X)
    width = before.n_features
    W, mean = rng.normal(size=(3, width)), rng.normal(size=width)
    active = rng.random((60, 3)) < 0.6
    fitted = fitted_run(active, components=W, mean=mean, preprocessing=before)
    z = rng.normal(size=3)
    found = steering(fitted)
    expected = before.inverse_transform((mean + z @ W)[None])[0]
    np.testing.assert_allclose(found.average + z @ found.patterns, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.reach, np.abs(fitted.scores).max(axis=0))


def test_of_many_columns_those_that_move_most_are_kept_in_their_order():
    X = np.random.default_rng(0).normal(size=(20, 5))
    W = np.array([[0.1, 3.0, 0.0, 2.0, 0.0]])
    fitted = fitted_run(
        np.ones((20, 1), bool),
        components=W,
        mean=np.zeros(5),
        preprocessing=Preprocessing().fit(X),
    )
    found = steering(fitted, 2)
    assert found.columns.tolist() == [1, 3]
    assert found.patterns.shape == (1, 2)


def test_the_panel_that_opens_is_the_fullest_pair():
    active = np.array([[1, 1, 0], [0, 1, 1], [0, 1, 1], [1, 0, 0]], bool)
    assert fullest_pair(active) == (1, 2)
    assert fullest_pair(np.eye(3, dtype=bool)[[0, 2, 2]]) == (2, 0)
    assert fullest_pair(np.ones((4, 1), bool)) == (0, 0)
