"""Other methods on the same rows: their densities by another route, and what happens at the cap."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA, FactorAnalysis

from appca import PPCA, AdaptivePPCA
from appca.analysis import compare
from appca.analysis.compare import Cap, Split, TimeUp
from appca.data.dataset import Dataset


def nothing(_share: float) -> None:
    """Report to nobody."""


def split_of(seed: int, n: int = 150, d: int = 6) -> Split:
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((3, d)) * [[4], [2], [1]]
    X = rng.standard_normal((n + 40, 3)) @ loadings + rng.standard_normal((n + 40, d))
    ids = np.arange(n).astype(str)
    return Split(X[:n], X[n:], Dataset("rows", X[:n], ids, {}, None, None, {}), {})


@pytest.fixture
def split(seed) -> Split:
    return split_of(seed)


class Clock:
    """A clock that jumps by a second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_the_density_without_a_large_matrix_is_the_normal_density(seed):
    rng = np.random.default_rng(seed)
    W, mean, noise = rng.standard_normal((2, 5)), rng.standard_normal(5), rng.uniform(0.1, 2, 5)
    Y = rng.standard_normal((20, 5))
    expected = multivariate_normal(mean, W.T @ W + np.diag(noise)).logpdf(Y)
    np.testing.assert_allclose(compare.log_density(Y, mean, W, noise), expected, rtol=1e-10)


def test_densities_are_those_the_methods_themselves_give(split):
    pca = compare.pca(2, split, Cap(60), nothing)
    known = PCA(2).fit(split.train)
    np.testing.assert_allclose(pca.log_likelihood, known.score_samples(split.test), rtol=1e-9)
    np.testing.assert_allclose(
        pca.reconstruction, known.inverse_transform(known.transform(split.test)), atol=1e-9
    )
    own = compare.ours(PPCA, {"n_components": 2}, split, Cap(60), nothing)
    # scikit-learn divides by N - 1, the maximum of the likelihood by N.
    assert own.log_likelihood.mean() == pytest.approx(pca.log_likelihood.mean(), abs=0.05)


def test_factor_analysis_in_parts_ends_where_one_fit_ends(split):
    found = compare.factor_analysis(2, split, Cap(60), nothing)
    known = FactorAnalysis(2, random_state=0).fit(split.train)
    assert found.note == ""
    np.testing.assert_allclose(found.log_likelihood, known.score_samples(split.test), atol=0.02)
    scores = known.transform(split.test) @ known.components_ + known.mean_
    np.testing.assert_allclose(found.reconstruction, scores, atol=0.05)


def test_the_piecewise_model_gives_scores_of_own_components_only(split):
    parameters = {"n_components": 3, "n_active": 1, "random_state": 0}
    found = compare.ours(AdaptivePPCA, parameters, split, Cap(60), nothing)
    model = AdaptivePPCA(**parameters).fit(split.train)
    np.testing.assert_array_equal(found.scores, model.transform(split.train))
    np.testing.assert_allclose(found.log_likelihood, model.score_samples(split.test))
    back = model.inverse_transform(model.transform(split.test))
    np.testing.assert_allclose(found.reconstruction, back)
    assert found.note == ""


def test_sparse_codes_and_components_explain_the_rows(split):
    codes = compare.dictionary(4, 2, split, Cap(60), nothing)
    assert codes.scores.shape == (150, 4)
    assert (codes.scores != 0).sum(axis=1).max() <= 2, "as many as allowed"
    sparse = compare.sparse_pca(2, split, Cap(60), nothing)
    assert sparse.scores.shape == (150, 2)
    alone = np.square(split.test - split.train.mean(axis=0)).mean()
    for made in (codes, sparse):
        assert np.square(made.reconstruction - split.test).mean() < alone


def test_without_noise_there_is_no_density():
    split = split_of(0)
    assert compare.pca(6, split, Cap(60), nothing).log_likelihood is None
    split.train[:, 2] = 1.0
    constant = compare.factor_analysis(2, split, Cap(60), nothing)
    assert (constant.log_likelihood, "hardly vary" in constant.note) == (None, True)


def test_what_can_stop_early_keeps_what_it_has_and_says_so(split):
    parameters = {"n_components": 3, "n_active": 1, "random_state": 0}
    stopped = compare.ours(AdaptivePPCA, parameters, split, Cap(0.5, Clock()), nothing)
    assert stopped.note == "stopped after 0.5 s, not converged"
    assert np.isfinite(stopped.log_likelihood).all()
    few = compare.factor_analysis(2, split, Cap(0.5, Clock()), nothing)
    assert "stopped after 20 iterations" in few.note or few.note == ""
    atoms = compare.dictionary(4, 2, split, Cap(0.5, Clock()), nothing)
    assert atoms.note == "stopped after 0.5 s, not converged"
    assert np.isfinite(atoms.reconstruction).all()
    with pytest.raises(TimeUp):
        compare.sparse_pca(2, split, Cap(0.5, Clock()), nothing)


def test_a_method_can_be_ended_from_outside(split):
    def stop(_share: float) -> None:
        raise KeyError

    for method in (
        lambda: compare.ours(AdaptivePPCA, {"n_components": 3}, split, Cap(60), stop),
        lambda: compare.pca(2, split, Cap(60), stop),
        lambda: compare.factor_analysis(2, split, Cap(60), stop),
        lambda: compare.sparse_pca(2, split, Cap(60), stop),
        lambda: compare.dictionary(4, 2, split, Cap(60), stop),
    ):
        with pytest.raises(KeyError):
            method()
