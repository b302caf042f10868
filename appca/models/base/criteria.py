"""What a fitted model says of itself as scikit-learn's own decompositions and mixtures do."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array

LARGEST_NUMBER = 2**63 - 1


class Criteria:
    """Panel numbers, second moments and information criteria of models with L of K active."""

    components_: Array
    latent_variance_: Array
    noise_variance_: Any
    explained_variance_: Array
    n_active_: int

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the panel number (N,) of each row: the rank of its support.

        Panels are numbered in the order of `itertools.combinations(range(K), L)`, for any data.
        """
        check_is_fitted(self)
        K, L = len(self.components_), self.n_active_
        if hasattr(self, "size_probabilities_"):
            msg = (
                "predict numbers the panels of exactly L components, but n_active is 'learned' and "
                "rows use any number: use allocate, which says the components themselves."
            )
            raise ValueError(msg)
        active = self.allocate(X)  # type: ignore[attr-defined]
        if math.comb(K, L) > LARGEST_NUMBER:
            msg = (
                f"predict numbers at most 2^63 panels, but {L} of {K} components make more: "
                "use allocate, which says the components themselves."
            )
            raise ValueError(msg)
        counts = np.array([[math.comb(n, k) for k in range(L + 1)] for n in range(K)], np.int64)
        left = L - np.cumsum(active, axis=1) + active  # members still to come, with this one
        # Leaving a component out skips all panels that have it and what was chosen before.
        rest = np.arange(K - 1, -1, -1)
        skipped = np.where(left > 0, counts[rest, np.maximum(left - 1, 0)], 0)
        return np.asarray(np.where(active, 0, skipped).sum(axis=1), np.int64)

    def get_covariance(self) -> Array:
        """Return the covariance (D, D) of rows under the model: E[u] (E|z|/K W T W' + Psi).

        |z| is L unless sizes are learned, u is 1 unless row scales are learned, and Psi is
        sigma2 I unless each feature has a noise variance.
        """
        check_is_fitted(self)
        W = self.components_.astype(np.float64)
        C: Array = self._share() * (W.T * self.latent_variance_) @ W
        C.flat[:: len(C) + 1] += self.noise_variance_
        return C * self._mean_scale()

    def _share(self) -> float:
        """Return the expected share of the components that a row uses."""
        K = len(self.components_)
        sizes = getattr(self, "size_probabilities_", None)
        return float((self.n_active_ if sizes is None else np.arange(K + 1) @ sizes) / K)

    def _mean_scale(self) -> float:
        """Return the expected scale of a row."""
        p = getattr(self, "row_scale_probabilities_", None)
        return 1.0 if p is None else float(p @ self.row_scale_values_)  # type: ignore[attr-defined]

    @property
    def explained_variance_ratio_(self) -> Array:
        """Explained variance (K,) as a share of the total variance of a row under the model."""
        check_is_fitted(self)
        W = self.components_.astype(np.float64)
        total = self._share() * np.sum(self.latent_variance_ * np.square(W).sum(axis=1))
        noise = W.shape[1] * float(np.mean(self.noise_variance_))
        ratio: Array = self.explained_variance_ / (self._mean_scale() * (total + noise))
        return ratio

    def _n_loadings(self) -> int:
        """Count the dimensions of the loadings: orthonormal columns, each its own axis."""
        K, D = len(self.components_), self._n_varying()
        all_of_them = self.n_active_ == K and not hasattr(self, "size_probabilities_")
        if all_of_them and getattr(self, "latent_variance", "") == "shared":
            return K * (D - K)  # no more than the span is identified
        return D * K - K * (K + 1) // 2

    def _n_variances(self) -> int:
        """Count the variances that are estimated, and the shares of scales and sizes."""
        learned = {"shared": 1, "component": len(self.components_)}
        latent = learned.get(str(getattr(self, "latent_variance", "shared")), 0)
        noise = self._n_varying() if np.ndim(self.noise_variance_) else 1
        scales = len(getattr(self, "row_scale_probabilities_", [1])) - 1
        return latent + noise + scales + len(getattr(self, "size_probabilities_", [1])) - 1

    def _n_varying(self) -> int:
        """Count the features that the likelihood counts."""
        psi = np.broadcast_to(self.noise_variance_, self.components_.shape[1])
        return int((psi > 0.0).sum())

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, for `bic` and `aic`."""
        check_is_fitted(self)
        mean = 0 if getattr(self, "mean", "learned") == "zero" else self.components_.shape[1]
        return self._n_loadings() + mean + self._n_variances()

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; lower is better."""
        total = self.score_samples(X)  # type: ignore[attr-defined]
        return float(self.n_parameters_ * math.log(len(total)) - 2.0 * total.sum())

    def aic(self, X: Any) -> float:
        """Return the Akaike information criterion on X; lower is better."""
        total = self.score_samples(X)  # type: ignore[attr-defined]
        return float(2 * self.n_parameters_ - 2.0 * total.sum())
