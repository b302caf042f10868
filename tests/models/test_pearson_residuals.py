"""Pearson residuals against their definition, written out for a dense array."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from appca import AdaptivePPCA, PearsonResiduals
from appca.data.preprocessing import Preprocessing
from appca.models import pearson_residuals
from appca.models.preprocessed import Preprocessed
from appca.models.sparse_rows import ShiftedSparse


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


def test_blocks_are_the_rows_of_the_whole(counts, monkeypatch):
    monkeypatch.setattr(pearson_residuals, "BLOCK_NUMBERS", 1000)
    residuals, S = PearsonResiduals(100.0, "sqrt"), scipy.sparse.csr_array(counts)
    blocks = residuals.fit(S).blocks(S)
    assert max(map(len, blocks())) == 25
    equal(np.concatenate(list(blocks())), residuals.transform(counts))
    model = AdaptivePPCA(4, 2, random_state=0)
    a, b = clone(model).fit(residuals.transform(counts)), clone(model).fit_blocks(blocks)
    close(b.components_, a.components_, atol=1e-6)


def test_a_model_behind_sparse_residuals_is_that_behind_dense_ones(counts):
    S = scipy.sparse.csr_array(counts)
    model = make_pipeline(PearsonResiduals(), AdaptivePPCA(4, 2, random_state=0))
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
    S = scipy.sparse.csr_array(counts)
    mean = "learned" if "divide" in options else "zero"
    model = Preprocessed(AdaptivePPCA(4, 2, random_state=0, mean=mean), Preprocessing(**options))
    a, b = clone(model).fit(counts), clone(model).fit(S)
    assert isinstance(b.prepared(S), np.ndarray if "pca" in options else ShiftedSparse)
    close(b.components_, a.components_, atol=1e-6)
    close(b.mean_, a.mean_, atol=1e-6)
    close(b.transform(S), a.transform(counts), atol=1e-6)
    assert b.score(S) == pytest.approx(a.score(counts), abs=1e-6)


def test_what_are_no_counts_is_refused(counts):
    with pytest.raises(ValueError, match="at least 0; got -1: pass what was counted"):
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
    with pytest.raises(TypeError, match=r"stay sparse.*call toarray\(\)"):
        StandardScaler().fit(residuals.transform(X))
