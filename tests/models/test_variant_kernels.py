"""The compiled E step of the variants against that of NumPy."""

import numpy as np
import pytest

from appca.models import rows as observations
from appca.models import stiefel
from appca.models.em import (
    GRID,
    EMSettings,
    SubspaceState,
    Variant,
    expect,
    floor_of,
    settings_on,
)
from appca.models.rows import about, centre_of
from tests.models.synthetic import planted


def problem(seed, d=12, k=5, n_active=2, *, dtype=np.float64, weights=None, row_scales=True):
    rng = np.random.default_rng(seed)
    X = planted(333, d, k, n_active, seed=seed, noise=0.5, offset=2.0).X
    X = (X * rng.choice(np.sqrt(GRID), (len(X), 1))).astype(dtype)
    rows = about(X, centre_of(X, weights), weights)
    em = EMSettings(k, n_active, "shared", True, False, stiefel.polar, floor_of(rows), True)
    settings = settings_on(rows, em._replace(variant=Variant(True, row_scales)))
    state = SubspaceState(
        np.linalg.qr(rng.standard_normal((d, k)))[0],
        0.1 * rng.standard_normal(k),
        rng.uniform(0.5, 2.0, k),
        1.0,
        0.1 * rng.standard_normal(d),
        settings.most * rng.uniform(0.2, 1.0, d),
        rng.dirichlet(np.ones(len(settings.grid))),
    )
    return state, rows, settings


def both(state, rows, settings):
    plain = settings._replace(compiled=False)
    return expect(state, rows, settings), expect(state, rows, plain)


@pytest.mark.parametrize("row_scales", [False, True])
@pytest.mark.parametrize(("k", "n_active"), [(2, 1), (5, 2), (5, 4), (8, 4), (9, 1), (9, 8)])
def test_the_compiled_e_step_equals_that_of_numpy(k, n_active, row_scales, seed):
    for found, wanted in zip(
        *both(*problem(seed, k=k, n_active=n_active, row_scales=row_scales)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-8)


def test_weights_of_rows_count_in_the_compiled_e_step(seed):
    weights = np.random.default_rng(seed).uniform(0.5, 3.0, 333)
    for found, wanted in zip(*both(*problem(seed, weights=weights)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-8)


def test_wide_rows_in_single_precision_keep_their_digits(seed):
    """By products made for few directions, against those of a BLAS in double precision."""
    state, rows, settings = problem(seed, d=300, dtype=np.float32)
    exact = about(rows.X.astype(np.float64), rows.origin.astype(np.float64))
    found, wanted = expect(state, rows, settings), expect(state, exact, settings)
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-6)
    np.testing.assert_allclose(found.A, wanted.A, atol=2e-5 * np.abs(wanted.A).max())
    np.testing.assert_allclose(found.power, wanted.power, rtol=1e-5)
    np.testing.assert_allclose(found.used, wanted.used, atol=0.05)


@pytest.mark.parametrize("as_stored", [np.ascontiguousarray, np.asfortranarray])
def test_wide_rows_add_up_alike_in_tiles_and_in_any_order_of_memory(monkeypatch, seed, as_stored):
    weights = np.random.default_rng(seed).uniform(0.5, 3.0, 333)
    state, rows, settings = problem(seed, d=300, dtype=np.float32, weights=weights)
    whole = expect(state, rows, settings)
    monkeypatch.setattr(observations, "CACHE_BYTES", 50 * 300 * 4)
    X = as_stored(rows.X)
    X.flags.writeable = False
    found = expect(state, rows._replace(X=X), settings)
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-6)
    np.testing.assert_allclose(found.A, whole.A, atol=2e-5 * np.abs(whole.A).max())
    np.testing.assert_allclose(found.power, whole.power, rtol=1e-5)


def test_logits_of_thousands_stay_exact_in_the_compiled_e_step(seed):
    state, rows, settings = problem(seed)
    state = state._replace(scale=1e3 * state.scale, latent=1e6 * state.latent)
    found, wanted = both(state, rows, settings)
    assert abs(wanted.log_likelihood) > 1e7
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(found.used, wanted.used, atol=1e-8)


def test_what_is_no_number_is_not_hidden_by_the_compiled_e_step(seed):
    state, rows, settings = problem(seed)
    sums = expect(state._replace(latent=state.latent * np.nan), rows, settings)
    assert np.isnan(sums.log_likelihood)
