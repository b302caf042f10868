"""Draws as a NetCDF file: what is read back is what was drawn."""

import numpy as np

from appca.analysis.tables import netcdf_bytes
from appca.models.chains import load_arviz


def drawn(seed, n_kept=30):
    rng = np.random.default_rng(seed)
    scalars = ("log_likelihood", "log_posterior", "log_joint", "noise_variance")
    return {name: rng.normal(size=(2, 30)) for name in scalars} | {
        "components": rng.normal(size=(2, n_kept, 3, 5)).astype(np.float32),
        "mean": rng.normal(size=(2, 30, 5)),
        "Z_mean": rng.random((2, 7, 3)),
        "X_mean": rng.normal(size=(2, 7, 3)),
    }


def read(content, tmp_path):
    file = tmp_path / "draws.nc"
    file.write_bytes(content)
    return load_arviz().from_netcdf(str(file))


def test_draws_come_back_from_the_file(seed, tmp_path):
    draws = drawn(seed)
    data = read(netcdf_bytes(draws), tmp_path)
    for name in ("components", "mean", "noise_variance", "log_joint"):
        np.testing.assert_array_equal(data.posterior[name].values, draws[name])
    assert data.posterior["components"].dims == ("chain", "draw", "component", "feature")
    np.testing.assert_array_equal(data.sample_stats["lp"].values, draws["log_posterior"])
    np.testing.assert_array_equal(data.constant_data["Z_mean"].values, draws["Z_mean"])


def test_components_thinned_more_than_the_rest_keep_an_axis_of_their_own(seed, tmp_path):
    draws = drawn(seed, n_kept=6)
    data = read(netcdf_bytes(draws), tmp_path)
    assert "components" not in data.posterior
    found = data.constant_data["components"]
    assert found.dims == ("chain", "thinned_draw", "component", "feature")
    np.testing.assert_array_equal(found.values, draws["components"])
    np.testing.assert_array_equal(data.posterior["mean"].values, draws["mean"])
