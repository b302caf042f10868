"""Draws as a NetCDF file: what is read back is what was drawn."""

import numpy as np
import pytest

from appca.models.chains import load_arviz, netcdf_bytes


def drawn(seed, n_kept):
    rng = np.random.default_rng(seed)
    scalars = ("log_likelihood", "log_posterior", "log_joint", "noise_variance")
    return {name: rng.normal(size=(2, 30)) for name in scalars} | {
        "components": rng.normal(size=(2, n_kept, 3, 5)).astype(np.float32),
        "mean": rng.normal(size=(2, 30, 5)),
        "Z_mean": rng.random((2, 7, 3)),
        "X_mean": rng.normal(size=(2, 7, 3)),
    }


@pytest.mark.parametrize("n_kept", [30, 6])
def test_draws_come_back_from_the_file_and_thinned_components_have_an_axis(seed, n_kept, tmp_path):
    draws, file = drawn(seed, n_kept), tmp_path / "draws.nc"
    file.write_bytes(netcdf_bytes(draws))
    data = load_arviz().from_netcdf(str(file))
    for name in ("mean", "noise_variance", "log_joint"):
        np.testing.assert_array_equal(data.posterior[name].values, draws[name])
    group, axis = data.posterior, "draw"
    if n_kept == 6:
        assert "components" not in data.posterior
        group, axis = data.constant_data, "thinned_draw"
    assert group["components"].dims == ("chain", axis, "component", "feature")
    np.testing.assert_array_equal(group["components"].values, draws["components"])
    np.testing.assert_array_equal(data.sample_stats["lp"].values, draws["log_posterior"])
    np.testing.assert_array_equal(data.constant_data["Z_mean"].values, draws["Z_mean"])
