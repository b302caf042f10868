"""Sparse rows give the answers of the same rows as a dense array."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from appca import PPCA, AdaptivePPCA
from appca.models import rows

QUERIES = [
    "transform",
    "allocate",
    "inclusion_probabilities",
    "allocation_probability",
    "score_samples",
    "predict",
]
VARIANTS = {
    "paper": {},
    "hard": {"inference": "hard"},
    "mean zero": {"mean": "zero"},
    "mean of the sample": {"mean": "sample", "latent_variance": "component"},
    "all active": {"n_active": 6},
    "feature noise": {"noise": "feature"},
    "row scales": {"row_scale": "learned"},
    "learned sizes": {"n_active": "learned"},
}


@pytest.fixture
def X(seed):
    """Counts (800, 30) of two of six planted components a row, three of ten entries filled."""
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((6, 30)) < 0.2, 4.0 * rng.random((6, 30)), 0.0)
    Z = np.argsort(rng.random((800, 6)), axis=1) < 2
    return rng.poisson((Z * rng.gamma(2.0, 1.0, (800, 6))) @ W).astype(float)


def agree(a, b, X, S, atol):
    """Whether fits to dense X and to sparse S are the same, and what they say of rows."""
    assert a.n_iter_ == b.n_iter_
    np.testing.assert_allclose(b.components_, a.components_, atol=atol)
    np.testing.assert_allclose(b.mean_, a.mean_, atol=10 * atol)
    np.testing.assert_allclose(b.scale_, a.scale_, rtol=10 * atol)
    for got, wanted in zip(b.describe(S)[:7], a.describe(X)[:7], strict=True):
        np.testing.assert_allclose(got, wanted, atol=100 * atol, rtol=10 * atol)


@pytest.mark.default_cases(3)
@pytest.mark.filterwarnings("ignore:.* features of X are constant")
@pytest.mark.parametrize("how", VARIANTS.values(), ids=VARIANTS)
def test_a_fit_to_sparse_rows_is_the_fit_to_dense_ones(X, how):
    model = AdaptivePPCA(6, random_state=0).set_params(**{"n_active": 2, **how})
    a, b = clone(model).fit(X), clone(model).fit(scipy.sparse.csr_array(X))
    S = scipy.sparse.csc_matrix(X)
    agree(a, b, X, S, 1e-7)
    names = QUERIES if how.get("n_active") != "learned" else QUERIES[:-1]
    for name in names:
        np.testing.assert_allclose(getattr(b, name)(S), getattr(a, name)(X), atol=1e-6)
    np.testing.assert_allclose(b.transform(S, "all"), a.transform(X, "all"), atol=1e-6)
    assert b.score(S) == pytest.approx(a.score(X), abs=1e-7)
    scores = scipy.sparse.csr_array(b.transform(S))
    np.testing.assert_allclose(
        b.inverse_transform(scores), a.inverse_transform(a.transform(X)), atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:EM ended at max_iter")
@pytest.mark.filterwarnings("ignore:Components that under")
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
        agree(clone(model).fit(X), clone(model).fit(S), X, S, 1e-7)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("row_scale", ["none", "learned"])
def test_float32_agrees_to_a_thousandth(X, row_scale):
    """Also of so many features that dense rows go through compiled products."""
    X = np.hstack([X, np.zeros((800, 260))]).astype(np.float32)
    S = scipy.sparse.csr_array(X)
    model = AdaptivePPCA(6, 2, random_state=0, row_scale=row_scale)
    a, b = clone(model).fit(X), clone(model).fit(S)
    assert b.components_.dtype == b.transform(S).dtype == np.float32
    np.testing.assert_allclose(b.components_, a.components_, atol=1e-3)
    wanted = a.score_samples(X)
    np.testing.assert_allclose(b.score_samples(S), wanted, atol=1e-3 * np.ptp(wanted))


@pytest.mark.thorough
def test_weights_and_whole_numbers_and_truth_values_are_taken(X, seed):
    weights = np.random.default_rng(seed).integers(0, 3, len(X))
    model = AdaptivePPCA(6, 2, random_state=0)
    S = scipy.sparse.csr_array(X.astype(np.int64))
    before = [part.copy() for part in (S.data, S.indices, S.indptr)]
    a, b = clone(model).fit(X, sample_weight=weights), clone(model).fit(S, sample_weight=weights)
    agree(a, b, X, S, 1e-7)
    assert b.score(S, sample_weight=weights) == pytest.approx(a.score(X, sample_weight=weights))
    for part, kept in zip((S.data, S.indices, S.indptr), before, strict=True):
        np.testing.assert_array_equal(part, kept)
    agree(clone(model).fit(X > 0), clone(model).fit(S > 0), X > 0, S > 0, 1e-7)


def test_ppca_batches_and_warm_starts_agree(X):
    S = scipy.sparse.csr_array(X)
    a, b = PPCA(6).fit(X), PPCA(6).fit(S)
    agree(a, b, X, S, 1e-9)
    np.testing.assert_allclose(b.log_likelihoods_, a.log_likelihoods_, rtol=1e-10)
    model = AdaptivePPCA(6, 2, random_state=0, warm_start=True)
    a, b = clone(model), clone(model)
    for start in range(0, 800, 200):
        a.partial_fit(X[start : start + 200])
        b.partial_fit(S[start : start + 200])
    agree(a, b, X, S, 1e-6)
    for K in (6, 8):
        agree(a.set_params(n_components=K).fit(X), b.set_params(n_components=K).fit(S), X, S, 1e-6)


def test_rows_that_are_all_equal_are_refused(X):
    S = scipy.sparse.csr_array(np.tile(X[:1], (50, 1)))
    with pytest.raises(ValueError, match="all its 50 rows are equal"):
        AdaptivePPCA(2, 1).fit(S)


@pytest.mark.thorough
@pytest.mark.parametrize("how", [{}, {"row_scale": "learned"}], ids=["paper", "row scales"])
def test_sparse_blocks_of_a_dask_array_give_the_fit_of_dense_blocks(X, how):
    array = pytest.importorskip("dask.array")
    blocks = array.from_array(X, chunks=(300, 10))
    sparse = blocks.map_blocks(scipy.sparse.csr_matrix)
    model = AdaptivePPCA(6, 2, random_state=0, **how)
    a, b = clone(model).fit(blocks), clone(model).fit(sparse)
    np.testing.assert_allclose(b.components_, a.components_, atol=1e-7)
    np.testing.assert_allclose(b.log_likelihoods_, a.log_likelihoods_, rtol=1e-9)
    for name in QUERIES[:-1]:
        got = getattr(b, name)(sparse).compute()
        np.testing.assert_allclose(got, getattr(a, name)(X), atol=1e-6)
    assert b.score(sparse) == pytest.approx(a.score(X), abs=1e-7)


@pytest.mark.thorough
def test_sparse_blocks_give_the_fit_of_dense_blocks(X):
    parts = [X[:300], X[300:301], X[301:]]
    sparse = [scipy.sparse.csr_array(part) for part in parts]
    model = AdaptivePPCA(6, 2, random_state=0)
    a = clone(model).fit_blocks(parts)
    for b in (clone(model).fit_blocks(sparse), clone(model).fit(iter(sparse))):
        np.testing.assert_allclose(b.components_, a.components_, atol=1e-7)
    scores = np.concatenate(list(b.transform_blocks(sparse)))
    np.testing.assert_allclose(scores, a.transform(X), atol=1e-6)
    assert b.score_blocks(sparse) == pytest.approx(a.score(X), abs=1e-7)
