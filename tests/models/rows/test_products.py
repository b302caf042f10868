"""Products in float64, tile by tile, and products whose bits depend on the row alone."""

import numpy as np
import pytest

import appca.models.products as products_module
from appca.models import threads
from appca.models.products import mean_squares, products, projected, projections, times, totals
from appca.models.rows import Rows, about


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


def from_left(numbers):
    """Sum as written down, one rounding after the other."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def loops(X, W):
    return np.array([[from_left((x * w).tolist()) for w in W.T] for x in X])


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (3, 7, 2), (5, 64, 9), (2, 33, 40)])
def test_every_bit_is_that_of_a_plain_loop(n, d, k, seed):
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((n, d)), rng.standard_normal((d, k))
    np.testing.assert_array_equal(times(X, W), loops(X, W))
    whole = d - d % 4
    places = [[*range(q, whole, 4), *(range(whole, d) if q == 0 else ())] for q in range(4)]
    sums = [[from_left((x[place] ** 2).tolist()) for place in places] for x in X]
    squares = projected(Rows(X, None, np.empty(0), d), W).squares
    np.testing.assert_array_equal(squares, [(a + b) + (c + e) for a, b, c, e in sums])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_squares_are_those_of_the_centred_rows(dtype, seed):
    rng = np.random.default_rng(seed)
    X = (50.0 + rng.standard_normal((700, 40))).astype(dtype)
    origin, W = X.mean(axis=0), rng.standard_normal((40, 6))
    H = rng.standard_normal((700, 6)) * (rng.random((700, 6)) < 0.5)
    rows, Y = Rows(X, origin, np.empty(0), 40), X.astype(np.float64) - origin
    found = projected(rows, W)
    np.testing.assert_allclose(found.products, Y @ W, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.squares, np.square(Y).sum(axis=1), rtol=1e-13)
    error = np.square(Y - H @ W.T).mean(axis=1)
    np.testing.assert_allclose(mean_squares(rows, H, W.T), error, rtol=1e-12)
    assert times(X, W).dtype == dtype


@pytest.mark.parametrize("cores", [1, 2])
def test_neither_tiles_nor_threads_nor_the_order_in_memory_move_a_bit(cores, seed, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: cores)
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((9000, 11)), rng.standard_normal((11, 5))
    whole = times(X, W)
    read_only = np.asfortranarray(X)
    read_only.flags.writeable = False
    np.testing.assert_array_equal(times(read_only, W), whole)
    np.testing.assert_array_equal(times(X[4:5], W), whole[4:5])
    monkeypatch.setattr(products_module, "TILE_BYTES", 1000)
    np.testing.assert_array_equal(times(X, W), whole)
