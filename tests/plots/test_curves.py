"""The likelihood curve: values by the row, and an axis that shows the end of the climb."""

import numpy as np

from appca.plots.data import likelihood


def test_the_curve_is_by_the_row():
    figure = likelihood(np.array([1, 2, 3]), np.array([-200.0, -100.0, -50.0]), n_rows=100)
    assert figure.data[0].x.tolist() == [1, 2, 3]
    assert figure.data[0].y.tolist() == [-2.0, -1.0, -0.5]
    assert list(figure.data[0].customdata) == ["−2.00", "−1.00", "−0.50"]


def test_a_steep_start_does_not_hide_the_end():
    values = np.concatenate([[-1e6, -1e5], np.linspace(-120, -100, 48)])
    low, high = likelihood(np.arange(50), values, n_rows=1).layout.yaxis.range
    assert -130 < low < -100 < high


def test_a_settled_fit_looks_settled():
    values = 5.0 + 1e-7 * np.sin(np.arange(20))
    low, high = likelihood(np.arange(20), values, n_rows=1).layout.yaxis.range
    assert low < 5.0 < high
    assert high - low >= 0.01


def test_an_empty_curve_is_an_empty_picture():
    assert len(likelihood(np.array([]), np.array([]), n_rows=5).data[0].x) == 0
