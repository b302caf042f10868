"""Tests of the declared capabilities of each model against its estimator."""

import numpy as np
import pytest

from appca.models.settings import supports
from appca.runs.run import MODELS, defaults, estimator_class
from tests.fitted_runs import fitted_model

ORTHONORMAL = ("aPPCA", "PPCA", "NPPCA")  # W'W = I


def estimator_of(model: str, k: int, n_active: int | None = None):
    """Return an estimator that draws few times where it samples."""
    given = {"n_chains": 1, "burn_in": 1, "n_draws": 2, "n_paths": 2, "max_iter": 2}
    given |= {"n_components": k, "max_components": k, "n_active": n_active}
    known = defaults(model)
    return estimator_class(model)(**{name: given[name] for name in given if name in known})


def restored(model: str, k: int, n_active: int | None):
    """Return a fitted estimator with components along the first axes."""
    given = {"n_active": k if model == "PPCA" else n_active}
    if n_active is None:
        given = {"weights": np.full(k, 0.5), "alpha": 1.0}
    W = np.eye(k, k if model in ORTHONORMAL else 3)
    return estimator_of(model, k, n_active).restore(fitted_model(W, **given).estimator_arrays())


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    ("model", "k", "n_active"),
    [("aPPCA", 40, 20), ("PPCA", 40, None), ("aFA", 16, 8), ("aFA", 17, 8), ("fsFA", 17, None)],
)
def test_log_likelihoods_are_exact_up_to_as_many_supports_as_declared(model, k, n_active):
    active = k if model == "PPCA" else n_active
    found = restored(model, k, active).describe(rows(2, k if model in ORTHONORMAL else 3))
    assert found.method.startswith("exact") == MODELS[model].can.is_exact(k, active)
    if model in ("aFA", "isFA", "fsFA"):
        most = MODELS[model].can.exact_supports
        assert supports(k, active) == most or supports(k - 1, active) == most


@pytest.mark.parametrize("k", [100, 101])  # 4,950 pairs, and 5,050
def test_supports_of_incomplete_rows_are_summed_up_to_as_many_as_declared(k):
    most, X = MODELS["aPPCA"].can.incomplete_supports, rows(3, k)
    X[1, :5] = np.nan
    assert (restored("aPPCA", k, 2).describe(X).method == "exact") == (supports(k, 2) <= most)
