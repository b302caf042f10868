"""The table of rows that fit least: each number under its own heading."""

from types import SimpleNamespace

import numpy as np

from appca.data.sources import load
from appca.ui.rows import table_of
from tests.fitted_runs import fitted_run


def test_each_number_stands_under_its_own_heading():
    wine = load("wine")
    active = np.random.default_rng(0).random((178, 3)) < 0.5
    fitted = fitted_run(active)
    ratios = np.stack([np.arange(178) + 0.25, 1000.0 - np.arange(178)], axis=1)
    said = SimpleNamespace(fits=np.arange(178) != 7, ratios=ratios)
    rows = np.array([7, 3])
    table = table_of(wine, fitted, said, rows, {})
    assert table["id"].tolist() == wine.ids[rows].tolist()
    assert table["fits"].tolist() == ["no", "yes"]
    assert table["T² / limit"].tolist() == [7.25, 3.25]
    assert table["Q / limit"].tolist() == [993.0, 997.0]
    assert np.allclose(table["log-likelihood"], fitted.log_likelihood_rows[rows], atol=0.005)
    assert np.allclose(table["membership"], fitted.membership[rows], atol=0.0005)
