"""What is declared of each model, against what its estimator does."""

import inspect

import numpy as np
import pytest

from appca.models import gaps
from appca.models.blocks import is_dask
from appca.models.polynomials import LARGEST_FOR_COLUMNS
from appca.models.settings import supports
from appca.runs.run import MODELS, defaults, estimator_class
from tests.fitted_runs import fitted_model

EVERY = list(MODELS)
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
    arrays = fitted_model(W, **given).estimator_arrays()
    return estimator_of(model, k, n_active).restore(arrays)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def test_every_model_is_declared():
    for model in EVERY:
        assert "callback" in inspect.signature(estimator_class(model)).parameters


@pytest.mark.parametrize("model", EVERY)
def test_rows_with_missing_cells_are_fitted_where_that_is_declared(model):
    X = rows(40, 4)
    X[3, 1] = np.nan
    estimator = estimator_of(model, 2, 1)
    if MODELS[model].can.incomplete:
        assert np.isfinite(estimator.fit(X).components_).all()
    else:
        with pytest.raises(ValueError, match=r"must be finite"):
            estimator.fit(X)


@pytest.mark.parametrize("model", EVERY)
def test_more_components_than_features_are_fitted_where_that_is_declared(model):
    estimator = estimator_of(model, 5, 1)
    try:
        found = len(estimator.fit(rows(40, 3)).components_)
    except ValueError as error:
        assert "must be at most 3" in str(error)  # noqa: PT017
        found = 0
    if model == "aFA":
        assert found == 5
    assert (found > 0) if MODELS[model].can.beyond_features else (found <= 3)


@pytest.mark.parametrize("model", EVERY)
def test_chunks_of_a_dask_array_are_gone_through_where_that_is_declared(model):
    X = rows(40, 2 if model in ORTHONORMAL else 3)
    chunks = pytest.importorskip("dask.array").from_array(X, chunks=(20, -1))
    n_active = None if "max_components" in defaults(model) else 1
    answer = restored(model, 2, n_active).transform(chunks)
    assert is_dask(answer) == MODELS[model].can.dask


@pytest.mark.parametrize(
    ("model", "k", "n_active"),
    [
        ("aPPCA", 40, 20),
        ("PPCA", 40, None),
        ("NPPCA", 40, None),
        ("aFA", 16, 8),
        ("aFA", 17, 8),
        ("isFA", 16, None),
        ("isFA", 17, None),
        ("fsFA", 16, None),
        ("fsFA", 17, None),
    ],
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
    most = MODELS["aPPCA"].can.incomplete_supports
    assert most == gaps.MOST_SETS
    X = rows(3, k)
    X[1, :5] = np.nan
    found = restored("aPPCA", k, 2).describe(X)
    assert (found.method == "exact") == (supports(k, 2) <= most)


def test_more_components_than_columns_are_kept_for_wait_for_the_compiler():
    assert {MODELS[model].can.uncompiled for model in ("aPPCA", "PPCA")} == {LARGEST_FOR_COLUMNS}
    assert [model for model in EVERY if not MODELS[model].can.compiled] == ["aPPCA", "PPCA"]
