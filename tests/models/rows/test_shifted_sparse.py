"""Sparse rows less a matrix of low rank, against the same rows as a dense array."""

import numpy as np
import pytest
import scipy.sparse

import appca.models.sparse_rows as sparse_rows_module
from appca.models.rows import about, centre_of, project, tiles, transposed_product
from appca.models.sparse_rows import ShiftedSparse, dense, sparse_rows

FORMATS = ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix"]


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def X(rng):
    X = np.where(rng.random((700, 30)) < 0.06, rng.gamma(2.0, 1.0, (700, 30)), 0.0)
    X[5], X[:, 3] = 0.0, 0.0
    return X


@pytest.fixture
def pair(X, rng):
    """A shifted sparse matrix, and the same as an array."""
    left, right = rng.random((700, 2)), rng.random((2, 30))
    return ShiftedSparse(scipy.sparse.csr_array(X), left, right), X - left @ right


def untidy(X):
    """The same matrix with unsorted columns, explicit zeros and entries in two parts."""
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    data = np.concatenate([values / 4, 3 * values / 4, np.zeros(20)])
    rows = np.concatenate([rows, rows, np.arange(20)])
    columns = np.concatenate([columns, columns, np.arange(20)])
    order = np.lexsort((-columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    return scipy.sparse.csr_array((data[order], columns[order], indptr), shape=X.shape)


@pytest.mark.parametrize("fill", [0.0, 1.0], ids=["from dense blocks", "sparse products"])
def test_products_sums_and_lengths_are_those_of_the_array(pair, rng, monkeypatch, fill):
    monkeypatch.setattr(sparse_rows_module, "DENSE_PRODUCTS", fill)
    sparse, X = pair
    W, S, w = rng.standard_normal((30, 4)), rng.standard_normal((4, 700)), rng.random(700)
    for got, wanted in [
        (sparse @ W, X @ W),
        (S @ sparse, S @ X),
        (sparse.sums(), X.sum(axis=0)),
        (sparse.sums(w), w @ X),
        (sparse.squares(), np.square(X).sum(axis=1)),
        (sparse.products(), X.T @ X),
        (sparse.gram(), X @ X.T),
        ((sparse - W[:, 0]).toarray(), X - W[:, 0]),
        (sparse[100:230].toarray(), X[100:230]),
        (sparse[-10:].toarray(), X[-10:]),
        (sparse[[3, 5, 600]].toarray(), X[[3, 5, 600]]),
        (sparse[w > 0.5].toarray(), X[w > 0.5]),
        (sparse.scaled(w).toarray(), X * w[:, None]),
        (sparse.scaled(columns=W[:, 1]).toarray(), X * W[:, 1]),
        (sparse.scaled(kept=W[:, 1] > 0).toarray(), X[:, W[:, 1] > 0]),
        (np.concatenate([B for _, B in tiles(sparse, None)]), X),
        (np.concatenate([B for _, B in tiles(sparse, W[:, 2])]), X - W[:, 2]),
    ]:
        np.testing.assert_allclose(got, wanted, atol=1e-10)


def test_rows_about_their_mean_are_those_of_the_array(X, rng):
    rows, W = about(X, centre_of(X)), rng.standard_normal((30, 3))
    sparse = sparse_rows(scipy.sparse.csr_array(X))
    seen = about(sparse, centre_of(sparse))
    np.testing.assert_allclose(seen.origin, rows.origin, atol=1e-12)
    np.testing.assert_allclose(seen.squares, rows.squares, rtol=1e-10)
    np.testing.assert_allclose(project(seen, W), project(rows, W), atol=1e-10)
    S = rng.standard_normal((700, 2))
    np.testing.assert_allclose(transposed_product(seen, S), transposed_product(rows, S), atol=1e-10)


def test_lengths_that_cancel_are_taken_of_the_difference(rng):
    X = 1e6 + rng.standard_normal((50, 4))
    sparse = sparse_rows(scipy.sparse.csr_array(X)) - X.mean(axis=0)
    wanted = np.square(X - X.mean(axis=0)).sum(axis=1)
    np.testing.assert_allclose(sparse.squares(), wanted, rtol=1e-9)


def test_float32_is_multiplied_in_float64(pair, rng):
    sparse = pair[0]
    single, W = sparse.astype(np.float32), rng.standard_normal((30, 4))
    wide = single.values.toarray().astype(float) - single.left @ single.right
    assert (single @ W).dtype == np.float32
    np.testing.assert_array_equal(single @ W, (wide @ W).astype(np.float32))
    np.testing.assert_allclose(single.squares(), np.square(wide).sum(axis=1), rtol=1e-12)
    assert single.toarray().dtype == np.float32


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_taken_as_it_is(X, kind):
    given = getattr(scipy.sparse, kind)(X)
    np.testing.assert_array_equal(sparse_rows(given).toarray(), X)


def test_duplicates_and_unsorted_columns_are_put_in_order_in_a_copy(X):
    given = untidy(X)
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    rows = sparse_rows(given)
    np.testing.assert_allclose(rows.toarray(), X, rtol=1e-14)
    np.testing.assert_allclose(rows.squares(), np.square(X).sum(axis=1), rtol=1e-12)
    for part, kept in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(part, kept)


def test_nothing_makes_a_dense_array_by_accident(pair):
    with pytest.raises(TypeError):
        np.asarray(pair[0])
    assert dense(pair[0]) is not pair[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_stored_values_that_are_no_numbers_are_refused(X, bad):
    X[7, 7], X[9, 9] = bad, bad
    with pytest.raises(ValueError, match=r"but 2 of its \d+ stored values are NaN or inf") as error:
        sparse_rows(scipy.sparse.csr_array(X))
    assert "pass X.toarray()" in str(error.value)
