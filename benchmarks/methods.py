"""The methods of the benchmark table: how each is fitted, reconstructs and scores."""

from collections.abc import Callable
from math import comb
from typing import Any, NamedTuple

import numpy as np

__all__ = ["METHODS", "REFERENCE", "Method"]

SWEEPS = 50  # of one chain, thrown away and kept
MOST_SUMMED_SETS = 5000  # beyond, held-out likelihoods of aFA are estimates that take minutes


class Method(NamedTuple):
    """A way to reduce rows to K numbers, of which a row uses at most L."""

    title: str
    make: Callable[[int, int, tuple[int, int]], Any]  # (K, L, shape of the rows) -> estimator
    reconstruct: Callable[[Any, np.ndarray], np.ndarray]
    score: Callable[[Any, np.ndarray], float] | None  # held-out log-likelihood, nats a row


def back(model: Any, X: np.ndarray) -> np.ndarray:
    """Reconstruct by the model's own inverse."""
    return model.inverse_transform(model.transform(X))


def about_mean(model: Any, X: np.ndarray) -> np.ndarray:
    """Reconstruct by scores times components about the mean."""
    return model.transform(X) @ model.components_ + model.mean_


def dictionary_back(model: Any, X: np.ndarray) -> np.ndarray:
    """Reconstruct by the code of the rows about the mean that the fit took off."""
    return model.transform(X - model.offset_) @ model.components_ + model.offset_


def likelihood(model: Any, X: np.ndarray) -> float:
    """Mean log-likelihood."""
    return float(model.score(X))


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


REFERENCE = "pca"
CHAIN = {"inference": "gibbs", "n_chains": 1, "burn_in": SWEEPS, "n_draws": SWEEPS}
METHODS: dict[str, Method] = {
    "pca": Method("PCA (scikit-learn)", pca, back, likelihood),
    "appca_em": Method("aPPCA, EM", appca(), back, likelihood),
    "appca_one": Method(
        "aPPCA, EM, one start, tol 0.02", appca(init="quartimax", tol=0.02), back, likelihood
    ),
    "appca_hard": Method("aPPCA, hard", appca(inference="hard"), back, likelihood),
    "appca_gibbs": Method("aPPCA, Gibbs, 100 sweeps", appca(**CHAIN), back, likelihood),
    "afa_em": Method("aFA, EM", afa, back, summed_likelihood),
    "fa": Method("FactorAnalysis (scikit-learn)", factor_analysis, about_mean, likelihood),
    "dictionary": Method(
        "MiniBatchDictionaryLearning + OMP (scikit-learn)", dictionary, dictionary_back, None
    ),
    "sparse_pca": Method("MiniBatchSparsePCA (scikit-learn)", sparse_pca, back, None),
}
