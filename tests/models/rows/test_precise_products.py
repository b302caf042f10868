"""Products in float64 of rows that are stored otherwise, tile by tile."""

import numpy as np
import pytest

import appca.models.products as products_module
from appca.models.products import products, projections, totals
from appca.models.rows import about


@pytest.fixture(params=[(700, 40), (300, 2100)], ids=["long", "wide"])
def world(request, seed):
    """Rows far from zero, and columns for both sides."""
    rng = np.random.default_rng(seed)
    n, d = request.param
    X = (50.0 + rng.normal(size=(n, d))).astype(np.float32)
    origin = X.mean(axis=0)
    return X, origin, rng.normal(size=(d, 3)), rng.normal(size=(n, 3))


def test_products_are_those_of_the_centred_rows_in_float64(world, monkeypatch):
    monkeypatch.setattr(products_module, "TILE_BYTES", 10_000)  # many tiles, the last ones partial
    X, origin, W, S = world
    rows = about(X, origin)
    assert rows.careful
    Y = X.astype(np.float64) - origin
    np.testing.assert_allclose(projections(rows, W), Y @ W, rtol=0, atol=1e-10)
    np.testing.assert_allclose(products(rows, S), Y.T @ S, rtol=0, atol=1e-10)
    total, squares = totals(rows)
    np.testing.assert_allclose(total, Y.sum(axis=0), rtol=0, atol=1e-9)
    assert squares == pytest.approx(np.square(Y).sum(), rel=1e-13)


def test_rows_that_stand_about_nothing_are_taken_as_they_are(world):
    X, _, W, S = world
    rows, Y = about(X, None), X.astype(np.float64)
    np.testing.assert_allclose(projections(rows, W), Y @ W, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(products(rows, S), Y.T @ S, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(totals(rows)[0], Y.sum(axis=0), rtol=1e-12)
