"""Tests of rows: products about an origin, tiles, sparse minus low rank; Pearson residuals."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import appca.models.products as products_module
from appca import AdaptivePPCA, PearsonResiduals
from appca.data.preprocessing import Preprocessing
from appca.models import rows, threads
from appca.models import rows as rows_module
from appca.models.preprocessed import Preprocessed
from appca.models.products import data_of, mean_squares, products, projected, projections, times
from appca.models.rows import (
    Rows,
    ShiftedSparse,
    about,
    centre_of,
    distinct,
    outer_sum,
    project,
    sparse_rows,
    tiles,
)
from appca.models.stiefel import upright


def test_distinct_rows_are_the_same_in_any_order_and_number():
    X = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [-0.0, 5.0], [3.0, 3.0]])
    some, counts = distinct(X, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    order = np.lexsort(some.T)
    equal(some[order], [[1, 2], [3, 3], [0, 5]])
    equal(counts[order], [4, 5, 6])
    again, repeated = distinct(np.repeat(X, [1, 2, 3, 4, 5], axis=0)[::-1], None)
    equal(again, some)
    equal(repeated, counts)
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
def test_blocks_cover_all_rows_once_about_the_origin(seed, centred):
    X = np.random.default_rng(seed).standard_normal((1000, 7)) + 3.0
    origin = X.mean(axis=0) if centred else None
    rows = about(X, origin)._replace(careful=True)
    parts = list(rows.over(lambda block: (block.part, block.X.copy())))
    equal(np.concatenate([np.arange(1000)[part] for part, _ in parts]), np.arange(1000))
    seen = np.concatenate([B for _, B in parts])
    equal(seen, X - origin if centred else X)


@pytest.mark.usefixtures("block_rows", "nearness")
def test_products_and_norms_equal_those_of_a_centred_copy(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1000, 7)) + 3.0
    W, S = rng.standard_normal((7, 3)), rng.standard_normal((1000, 3))
    centred, rows = X - X.mean(axis=0), about(X, centre_of(X))
    close(project(rows, W), centred @ W, atol=1e-12)
    close(outer_sum(rows, S), centred.T @ S, atol=1e-10)
    close(rows.squares, np.sum(centred**2, axis=1), rtol=1e-12)


def test_float32_is_worked_on_in_float32_and_summed_in_float64(seed):
    X = (np.random.default_rng(seed).standard_normal((20000, 4)) + 100.0).astype(np.float32)
    rows = about(X, centre_of(X))
    assert rows.origin.dtype == np.float32
    assert rows.squares.dtype == np.float64
    assert project(rows, np.eye(4)).dtype == np.float32
    exact, ones = X.astype(np.float64) - rows.origin, np.ones((len(X), 1))
    close(outer_sum(rows, ones)[:, 0], exact.sum(axis=0), atol=1e-2)
    close(rows.squares, np.sum(exact**2, axis=1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(700, 40), (300, 2100)], ids=["long", "wide"])
def test_products_are_those_of_the_centred_rows_in_float64(n, d, dtype, seed, monkeypatch):
    monkeypatch.setattr(products_module, "TILE_BYTES", 10_000)  # many tiles, the last ones partial
    rng = np.random.default_rng(seed)
    X = (50.0 + rng.standard_normal((n, d))).astype(dtype)
    W, H = rng.standard_normal((d, 6)), rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5)
    rows = about(X, X.mean(axis=0))
    assert rows.careful
    Y = X.astype(np.float64) - rows.origin
    close(projections(rows, W), Y @ W, rtol=0, atol=1e-10)
    close(products(rows, H), Y.T @ H, rtol=0, atol=1e-10)
    _, total, squares, *_ = data_of(rows)
    close(total, Y.sum(axis=0), rtol=0, atol=1e-9)
    assert squares == pytest.approx(np.square(Y).sum(), rel=1e-13)
    found = projected(rows, W)
    close(found.products, Y @ W, rtol=0, atol=1e-10)
    close(found.squares, np.square(Y).sum(axis=1), rtol=1e-13)
    close(mean_squares(rows, H, W.T), np.square(Y - H @ W.T).mean(axis=1), rtol=1e-12)
    assert times(X, W).dtype == dtype


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
    equal(times(X, W), loops(X, W))
    whole = d - d % 4
    places = [[*range(q, whole, 4), *(range(whole, d) if q == 0 else ())] for q in range(4)]
    sums = [[from_left((x[place] ** 2).tolist()) for place in places] for x in X]
    squares = projected(Rows(X, None, np.empty(0), d), W).squares
    equal(squares, [(a + b) + (c + e) for a, b, c, e in sums])


@pytest.mark.parametrize("cores", [1, 2])
def test_neither_tiles_nor_threads_nor_the_order_in_memory_move_a_bit(cores, seed, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: cores)
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((9000, 11)), rng.standard_normal((11, 5))
    whole, read_only = times(X, W), np.asfortranarray(X)
    read_only.flags.writeable = False
    equal(times(read_only, W), whole)
    equal(times(X[4:5], W), whole[4:5])
    monkeypatch.setattr(products_module, "TILE_BYTES", 1000)
    equal(times(X, W), whole)


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
    monkeypatch.setattr(rows_module, "DENSE_PRODUCTS", fill)
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
        close(got, wanted, atol=1e-10)


def test_lengths_that_cancel_are_taken_of_the_difference(rng):
    X = 1e6 + rng.standard_normal((50, 4))
    sparse = sparse_rows(scipy.sparse.csr_array(X)) - X.mean(axis=0)
    wanted = np.square(X - X.mean(axis=0)).sum(axis=1)
    close(sparse.squares(), wanted, rtol=1e-9)


def test_float32_is_multiplied_in_float64(pair, rng):
    sparse = pair[0]
    single, W = sparse.astype(np.float32), rng.standard_normal((30, 4))
    wide = single.values.toarray().astype(float) - single.left @ single.right
    assert (single @ W).dtype == np.float32
    equal(single @ W, (wide @ W).astype(np.float32))
    close(single.squares(), np.square(wide).sum(axis=1), rtol=1e-12)
    assert single.toarray().dtype == np.float32


@pytest.mark.parametrize(
    "kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix"]
)
def test_every_format_is_taken_as_it_is(X, kind):
    given = getattr(scipy.sparse, kind)(X)
    equal(sparse_rows(given).toarray(), X)


def test_duplicates_and_unsorted_columns_are_put_in_order_in_a_copy(X):
    given = untidy(X)
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    rows = sparse_rows(given)
    close(rows.toarray(), X, rtol=1e-14)
    close(rows.squares(), np.square(X).sum(axis=1), rtol=1e-12)
    for part, kept in zip((given.data, given.indices, given.indptr), before, strict=True):
        equal(part, kept)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_stored_values_that_are_no_numbers_are_refused(X, bad):
    X[7, 7], X[9, 9] = bad, bad
    with pytest.raises(ValueError, match=r"but 2 of its \d+ stored values are NaN or inf") as error:
        sparse_rows(scipy.sparse.csr_array(X))
    assert "pass X.toarray()" in str(error.value)


@pytest.mark.filterwarnings("ignore:EM ended at max_iter")
@pytest.mark.filterwarnings("ignore:Components used by")
@pytest.mark.parametrize("K", [6, 12])
def test_wide_rows_and_samples_agree_as_well(seed, monkeypatch, K):
    """More features than rows; and more rows than starts are screened on, in several blocks."""
    rng = np.random.default_rng(seed)
    wide = np.where(rng.random((90, 200)) < 0.1, rng.gamma(2.0, 1.0, (90, 200)), 0.0)
    long = np.where(rng.random((6000, 40)) < 0.1, rng.gamma(2.0, 1.0, (6000, 40)), 0.0)
    monkeypatch.setattr(rows, "MAX_BLOCK_ROWS", 700)
    for X in (wide, long):
        model = AdaptivePPCA(K, 2, random_state=0, max_iter=20, init="annealed")
        S = scipy.sparse.csr_array(X)
        a, b = clone(model).fit(X), clone(model).fit(S)
        assert a.n_iter_ == b.n_iter_
        close(b.components_, a.components_, atol=1e-7)
        close(b.mean_, a.mean_, atol=1e-6)
        close(b.scale_, a.scale_, rtol=1e-6)
        for got, wanted in zip(b.describe(S)[:7], a.describe(X)[:7], strict=True):
            close(got, wanted, atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_sums_of_single_precision_rows_are_taken_in_double_precision(make):
    X = np.full((200_000, 2), 500.0, np.float32)
    X[:, 1] += np.random.default_rng(0).random(len(X)).astype(np.float32)
    wanted = X.mean(axis=0, dtype=np.float64)
    close(centre_of(X), wanted, rtol=2e-7)
    shares = PearsonResiduals().fit(make(X)).proportions_
    close(shares, wanted / wanted.sum(), rtol=1e-9)


def test_the_first_of_equal_entries_is_positive():
    W = np.array([[0.1, 0.7], [-0.7, -0.7000001], [0.7 + 1e-9, 0.1]])
    equal(np.sign(upright(W)[[1, 0], [0, 1]]), 1.0)


@pytest.fixture
def counts(seed):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.4, 2.0, (5, 40)) * (rng.random((5, 40)) < 0.3)
    uses = np.argsort(rng.random((600, 5)), axis=1) < 2
    counts = rng.poisson((uses * rng.gamma(2.0, 1.0, (600, 5))) @ rates).astype(float)
    counts[7], counts[:, 11] = 0.0, 0.0
    return counts


def defined(X, theta, clip):
    """The residuals as scanpy defines them; what is never counted has none."""
    with np.errstate(invalid="ignore"):
        mu = X.sum(axis=1, keepdims=True) @ X.sum(axis=0, keepdims=True) / X.sum()
        residuals = (X - mu) / np.sqrt(mu + mu**2 / theta)
    return np.clip(np.nan_to_num(residuals), -clip, clip)


@pytest.mark.parametrize("sparse", [False, True], ids=["array", "sparse"])
@pytest.mark.parametrize(
    ("theta", "clip", "limit"),
    [(np.inf, np.inf, np.inf), (100.0, "sqrt", 600**0.5), (10.0, 2.5, 2.5), (np.inf, 3.0, 3.0)],
)
def test_residuals_are_those_of_the_definition(counts, theta, clip, limit, sparse):
    X = scipy.sparse.csc_matrix(counts) if sparse else counts
    residuals = PearsonResiduals(theta, clip)
    got = residuals.fit_transform(X)
    if sparse and np.isinf([theta, limit]).all():
        assert isinstance(got, ShiftedSparse)
        assert got.values.nnz == X.nnz
        got = got.toarray()
    close(got, defined(counts, theta, limit), atol=1e-10)


def test_a_model_behind_sparse_residuals_is_that_behind_dense_ones(counts):
    S = scipy.sparse.csr_array(counts)
    model = make_pipeline(PearsonResiduals(), AdaptivePPCA(4, 2, init="pca", random_state=0))
    a, b = clone(model).fit(counts), clone(model).fit(S)
    close(b[-1].components_, a[-1].components_, atol=1e-6)
    close(b.transform(S), a.transform(counts), atol=1e-6)
    close(b.score_samples(S), a.score_samples(counts), atol=1e-6)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "options",
    [{"centre": True, "scale": "feature"}, {"divide": 4.0, "scale": "global"}, {"pca": 10}],
    ids=["standardised", "divided", "reduced"],
)
def test_preprocessing_of_sparse_rows_is_that_of_dense_ones(counts, options):
    S, mean = scipy.sparse.csr_array(counts), "learned" if "divide" in options else "zero"
    model = Preprocessed(AdaptivePPCA(4, 2, random_state=0, mean=mean), Preprocessing(**options))
    a, b = clone(model).fit(counts), clone(model).fit(S)
    assert isinstance(b.prepared(S), np.ndarray if "pca" in options else ShiftedSparse)
    close(b.components_, a.components_, atol=1e-6)
    close(b.mean_, a.mean_, atol=1e-6)
    close(b.transform(S), a.transform(counts), atol=1e-6)
    assert b.score(S) == pytest.approx(a.score(counts), abs=1e-6)


def test_what_are_no_counts_is_refused(counts):
    with pytest.raises(ValueError, match="at least 0; got -1: pass the original counts"):
        PearsonResiduals().fit(scipy.sparse.csr_array(counts - (counts > 3)[:, ::-1]))
    with pytest.raises(ValueError, match="all are 0: check how"):
        PearsonResiduals().fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="must be positive numbers, or clip 'sqrt'"):
        PearsonResiduals(theta=0.0).fit(counts)


def test_a_data_frame_of_sparse_counts_is_dense_and_other_estimators_are_told(seed):
    X = scipy.sparse.csr_array(np.random.default_rng(seed).poisson(0.7, (50, 6)).astype(float))
    residuals = PearsonResiduals().fit(X)
    frame = clone(residuals).set_output(transform="pandas").fit_transform(X)
    close(frame, residuals.transform(X).toarray())
    with pytest.raises(TypeError, match=r"sparse matrix minus one of low rank.*call toarray\(\)"):
        StandardScaler().fit(residuals.transform(X))
