import numpy as np
import pytest

from appca.models import rows as rows_module
from appca.models.rows import Rows, about, centre_of, distinct, project, transposed_product


@pytest.fixture
def X(seed):
    return np.random.default_rng(seed).standard_normal((1000, 7)) + 3.0


def test_distinct_rows_are_the_same_in_any_order_and_number():
    X = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [-0.0, 5.0], [3.0, 3.0]])
    some, counts = distinct(X, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    order = np.lexsort(some.T)
    np.testing.assert_array_equal(some[order], [[1, 2], [3, 3], [0, 5]])
    np.testing.assert_array_equal(counts[order], [4, 5, 6])
    again, repeated = distinct(np.repeat(X, [1, 2, 3, 4, 5], axis=0)[::-1], None)
    np.testing.assert_array_equal(again, some)
    np.testing.assert_array_equal(repeated, counts)
    assert distinct(X[[0, 1, 4]], None)[1] is None


@pytest.fixture(params=[1, 333, 8192], ids=lambda n: f"blocks of {n}")
def block_rows(request, monkeypatch):
    monkeypatch.setattr(rows_module, "MIN_BLOCK_ROWS", request.param)
    monkeypatch.setattr(rows_module, "MAX_BLOCK_ROWS", request.param)


@pytest.fixture(params=[0.0, 1e9], ids=["far origin", "near origin"])
def nearness(request, monkeypatch):
    """Subtract the origin before the products, or after them."""
    monkeypatch.setattr(rows_module, "NEAR", request.param)


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("centred", [True, False])
def test_blocks_cover_all_rows_once_about_the_origin(X, centred):
    origin = X.mean(axis=0) if centred else None
    rows = about(X, origin)._replace(careful=True)
    parts = list(rows.over(lambda block: (block.part, block.X.copy())))
    np.testing.assert_array_equal(
        np.concatenate([np.arange(1000)[part] for part, _ in parts]), np.arange(1000)
    )
    seen = np.concatenate([B for _, B in parts])
    np.testing.assert_array_equal(seen, X - origin if centred else X)


@pytest.mark.usefixtures("block_rows", "nearness")
def test_products_and_norms_equal_those_of_a_centred_copy(X, seed):
    rng = np.random.default_rng(seed)
    W, S = rng.standard_normal((7, 3)), rng.standard_normal((1000, 3))
    centred = X - X.mean(axis=0)
    rows = about(X, centre_of(X))
    np.testing.assert_allclose(project(rows, W), centred @ W, atol=1e-12)
    np.testing.assert_allclose(transposed_product(rows, S), centred.T @ S, atol=1e-10)
    np.testing.assert_allclose(rows.squares, np.sum(centred**2, axis=1), rtol=1e-12)


def test_float32_is_worked_on_in_float32_and_summed_in_float64(seed):
    X = (np.random.default_rng(seed).standard_normal((20000, 4)) + 100.0).astype(np.float32)
    rows = about(X, centre_of(X))
    assert rows.origin.dtype == np.float32
    assert rows.squares.dtype == np.float64
    assert project(rows, np.eye(4)).dtype == np.float32
    exact = X.astype(np.float64) - rows.origin
    ones = np.ones((len(X), 1))
    np.testing.assert_allclose(transposed_product(rows, ones)[:, 0], exact.sum(axis=0), atol=1e-2)
    np.testing.assert_allclose(rows.squares, np.sum(exact**2, axis=1), rtol=1e-6)


def test_the_data_are_not_copied(X):
    assert about(X, None).X is X
    for origin in (None, centre_of(X)):
        rows = Rows(X, origin, np.empty(0), 7)
        assert all(rows.over(lambda block: np.shares_memory(block.X, X)))


def test_a_far_origin_does_not_cost_float32_its_digits(seed):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((500, 6)) + 3e4).astype(np.float32)
    W = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    rows = about(X, centre_of(X))
    exact = (X.astype(np.float64) - rows.origin) @ W
    np.testing.assert_allclose(project(rows, W), exact, atol=1e-5)
