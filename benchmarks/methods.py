"""The methods of `benchmarks.measure`: how each is fitted, codes, reconstructs and scores.

All have the settings their authors give them, but for K, L and the seed. SPAMS is a method where
the package is there (`pip install spams-bin`; the source package `spams` does not build with
NumPy 2).
"""

from collections.abc import Callable
from math import comb
from typing import Any, NamedTuple

import numpy as np

SWEEPS = 50  # of one chain, thrown away and kept
LIKELIHOOD_ROWS = 1000  # at a time
FEW_COMPONENTS = 100  # up to which quartimax on a sample finds a start
MOST_SUMMED_SETS = 5000  # beyond, held-out likelihoods of aFA are estimates that take minutes


class Method(NamedTuple):
    """A way to reduce rows to K numbers, of which a row uses at most L."""

    title: str
    make: Callable[[int, int, tuple[int, int]], Any]  # (K, L, shape of the rows) -> estimator
    reconstruct: Callable[[Any, np.ndarray], np.ndarray]
    score: Callable[[Any, np.ndarray], float] | None  # held-out log-likelihood, nats per row
    code: Callable[[Any, np.ndarray], np.ndarray] = lambda model, X: model.transform(X)


def back(model: Any, X: np.ndarray) -> np.ndarray:
    """Reconstruct by the model's own inverse."""
    return model.inverse_transform(model.transform(X))


def about_mean(model: Any, X: np.ndarray) -> np.ndarray:
    """Reconstruct by scores times components about the mean."""
    return model.transform(X) @ model.components_ + model.mean_


def dictionary_code(model: Any, X: np.ndarray) -> np.ndarray:
    """Code the rows about the mean that the fit took off."""
    return model.transform(X - model.offset_)


def dictionary_back(model: Any, X: np.ndarray) -> np.ndarray:
    """Reconstruct by the code of the rows about the mean that the fit took off."""
    return dictionary_code(model, X) @ model.components_ + model.offset_


def likelihood(model: Any, X: np.ndarray) -> float:
    """Mean log-likelihood."""
    return float(model.score(X))


def low_rank_likelihood(model: Any, X: np.ndarray) -> float:
    """Mean log-likelihood of PCA and factor analysis, covariance C'C + diag(noise).

    As scikit-learn's `score`, which inverts the D x D covariance and takes minutes at D = 16,384.
    """
    loadings = np.asarray(model.components_, np.float64)
    noise = np.broadcast_to(model.noise_variance_, X.shape[1]).astype(np.float64)
    if hasattr(model, "explained_variance_"):  # PCA: unit rows, and what they have beyond noise
        loadings = loadings * np.sqrt(model.explained_variance_ - model.noise_variance_)[:, None]
    inner = np.eye(len(loadings)) + (loadings / noise) @ loadings.T
    total = 0.0
    for start in range(0, len(X), LIKELIHOOD_ROWS):
        B = X[start : start + LIKELIHOOD_ROWS].astype(np.float64) - model.mean_
        P = B @ (loadings / noise).T
        total += np.sum(B * B / noise) - np.sum(P * np.linalg.solve(inner, P.T).T)
    determinant = np.linalg.slogdet(inner)[1] + np.log(noise).sum()
    return float(-0.5 * (X.shape[1] * np.log(2 * np.pi) + determinant + total / len(X)))


def summed_likelihood(model: Any, X: np.ndarray) -> float:
    """Mean log-likelihood of aFA where it is a sum over few sets, else not a number."""
    few = comb(model.n_components, model.n_active) <= MOST_SUMMED_SETS
    return float(model.score(X)) if few else float("nan")


def appca(**settings: Any) -> Callable[[int, int, tuple[int, int]], Any]:
    """Make adaptive PPCA."""

    def make(K: int, L: int, _shape: tuple[int, int]) -> Any:
        from appca import AdaptivePPCA

        return AdaptivePPCA(K, L, random_state=0, **settings)

    return make


def one_start(K: int, L: int, shape: tuple[int, int]) -> Any:
    """Make adaptive PPCA from one start, the quickest good one for so many components."""
    return appca(init="quartimax" if K <= FEW_COMPONENTS else "ica", tol=0.02)(K, L, shape)


def afa(K: int, L: int, _shape: tuple[int, int]) -> Any:
    """Make adaptive factor analysis."""
    from appca import AdaptiveFactorAnalysis

    return AdaptiveFactorAnalysis(K, L, random_state=0)


def pca(K: int, _L: int, shape: tuple[int, int]) -> Any:
    """Make scikit-learn's PCA by the solver that suits the shape."""
    from sklearn.decomposition import PCA

    solver = "covariance_eigh" if shape[1] <= 2000 else "full"
    return PCA(K, svd_solver=solver, random_state=0)


def factor_analysis(K: int, _L: int, _shape: tuple[int, int]) -> Any:
    """Make scikit-learn's factor analysis."""
    from sklearn.decomposition import FactorAnalysis

    return FactorAnalysis(K, random_state=0)


def dictionary(K: int, L: int, _shape: tuple[int, int]) -> Any:
    """Make mini-batch dictionary learning, coded by orthogonal matching pursuit with L atoms."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    class Centred(MiniBatchDictionaryLearning):
        """It does not take the mean off by itself."""

        def fit(self, X: np.ndarray, y: Any = None) -> Any:
            self.offset_ = X.mean(axis=0)
            return super().fit(X - self.offset_, y)

    omp = {"transform_algorithm": "omp", "transform_n_nonzero_coefs": L}
    return Centred(K, random_state=0, **omp)


def sparse_pca(K: int, _L: int, _shape: tuple[int, int]) -> Any:
    """Make mini-batch sparse PCA."""
    from sklearn.decomposition import MiniBatchSparsePCA

    return MiniBatchSparsePCA(K, random_state=0)


class Spams:
    """Dictionary learning of SPAMS with at most L atoms a row, coded by its matching pursuit."""

    def __init__(self, n_components: int, n_active: int) -> None:
        self.n_components = n_components
        self.n_active = n_active

    def fit(self, X: np.ndarray) -> Any:
        """Learn atoms from X (N, D) about its mean; SPAMS wants columns."""
        import spams

        self.offset_ = X.mean(axis=0)
        atoms = spams.trainDL(
            np.asfortranarray((X - self.offset_).T),
            K=self.n_components,
            mode=3,  # no more atoms a row than lambda1
            lambda1=self.n_active,
            batchsize=512,
            iter=1000,
            verbose=False,
        )
        self.components_ = np.asarray(atoms).T
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Code rows about the mean."""
        import spams

        columns, atoms = np.asfortranarray(X.T), np.asfortranarray(self.components_.T)
        # Without both bounds some of its float32 codes are empty (2.6.14).
        code = spams.omp(columns, atoms, L=self.n_active, eps=0.0, lambda1=0.0)
        return np.asarray(code.todense()).T


def spams_dictionary(K: int, L: int, _shape: tuple[int, int]) -> Any:
    """Make SPAMS' dictionary learning."""
    return Spams(K, L)


CHAIN = {"inference": "gibbs", "n_chains": 1, "burn_in": SWEEPS, "n_draws": SWEEPS}
METHODS: dict[str, Method] = {
    "pca": Method("PCA (scikit-learn)", pca, back, low_rank_likelihood),
    "appca_one": Method("aPPCA, EM, one start, tol 0.02", one_start, back, likelihood),
    "appca_em": Method("aPPCA, EM", appca(), back, likelihood),
    "appca_hard": Method("aPPCA, hard", appca(inference="hard"), back, likelihood),
    "appca_gibbs": Method("aPPCA, Gibbs, 100 sweeps", appca(**CHAIN), back, likelihood),
    "afa_em": Method("aFA, EM", afa, back, summed_likelihood),
    "fa": Method("FactorAnalysis (scikit-learn)", factor_analysis, about_mean, low_rank_likelihood),
    "dictionary": Method(
        "MiniBatchDictionaryLearning + OMP (scikit-learn)",
        dictionary,
        dictionary_back,
        None,
        dictionary_code,
    ),
    "sparse_pca": Method("MiniBatchSparsePCA (scikit-learn)", sparse_pca, back, None),
    "spams": Method(
        "SPAMS dictionary + OMP", spams_dictionary, dictionary_back, None, dictionary_code
    ),
}
