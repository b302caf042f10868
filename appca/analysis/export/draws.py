"""Draws as a file: ArviZ's InferenceData in NetCDF, which Python, R and Julia read."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def netcdf_bytes(posterior: Mapping[str, NDArray[Any]]) -> bytes:
    """Write draws (chain, draw, ...) as NetCDF.

    What was thinned more than the rest, components of large data, has draws of its own, named
    ``thinned_draw``, in the group of constants, where the running means are too.
    """
    from appca.models.sampling.chains import RUNNING, to_arviz

    n_draws = np.shape(posterior["log_posterior"])[1]
    short = {
        name: values
        for name, values in posterior.items()
        if name not in RUNNING and values.shape[1] != n_draws
    }
    data: Any = to_arviz({name: values for name, values in posterior.items() if name not in short})
    dimensions = {"components": ("component", "feature"), "mean": ("feature",)}
    for name, values in short.items():
        axes = dimensions.get(name, tuple(f"{name}_{i}" for i in range(values.ndim - 2)))
        data.constant_data[name] = (("chain", "thinned_draw", *axes), values)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draws.nc"
        data.to_netcdf(str(file))
        return file.read_bytes()
