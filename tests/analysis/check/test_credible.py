"""Credible bands of a stored run against quantiles of its aligned draws."""

import numpy as np
import pytest

from appca.analysis.check.credible import clear_of_zero, loading_bands, number_band
from appca.analysis.components.alignment import align
from appca.data.dataset import Dataset
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from tests.fitted_runs import fitted_model
from tests.models.synthetic import planted


def test_bands_are_quantiles_of_aligned_draws():
    given = planted(80, 5, 3, 1, seed=0, noise=0.4, scales=3.0)
    data = Dataset("planted", given.X, np.arange(80).astype(str))
    sizes = {"n_components": 3, "n_active": 1, "inference": "gibbs"}
    chains = {"n_chains": 2, "burn_in": 20, "n_draws": 40}
    fitted = fit_run(data, RunConfig(data.digest, {}, "aPPCA", sizes | chains)).fitted
    aligned = align(fitted.posterior["components"], fitted.components).components
    some = aligned[fitted.draws["chain"], fitted.draws["draw"]]
    expected = np.quantile(some, [0.05, 0.95], axis=0)
    bands = loading_bands(fitted)
    np.testing.assert_allclose(bands, expected, atol=1e-5)  # kept in single precision elsewhere
    share = clear_of_zero(bands)
    held = (expected[0] <= 0) & (expected[1] >= 0)
    np.testing.assert_allclose(share, 1 - held.mean(axis=1))
    assert loading_bands(fitted_model()) is None


def test_the_band_of_the_number_of_components():
    numbers = np.repeat([3, 4, 5, 9], [4, 60, 32, 4])
    assert number_band(numbers, 0.9) == (4, 5)
    assert number_band(numbers, 0.95) == (3, 9)
    with pytest.raises(ValueError, match=r"level must be a number between 0 and 1; got 1\.0\."):
        number_band(numbers, 1.0)
