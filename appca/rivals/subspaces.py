"""K-subspaces: every row belongs to the nearest of K affine subspaces of L dimensions."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from appca.rivals.pieces import first_pieces, weighted_axes

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class KSubspaces(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Alternate between the nearest subspace of each row and the principal axes of each piece.

    Parameters
    ----------
    n_pieces, n_components : int
        Number K of subspaces and L of their dimensions.
    n_init, max_iter : int
        Starts, of which the one of least error is kept, and most iterations of each.
    random_state : int, RandomState or None

    Attributes
    ----------
    means_ (K, D), components_ (K, L, D) with orthonormal rows, error_ (mean squared distance of a
    row), n_iter_.

    Examples
    --------
    >>> import numpy as np
    >>> from appca.rivals.subspaces import KSubspaces
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> model = KSubspaces(n_pieces=2, n_components=1, random_state=0).fit(X)
    >>> model.components_.shape
    (2, 1, 5)
    """

    n_pieces: int = 3
    n_components: int = 2
    _: KW_ONLY
    n_init: int = 5
    max_iter: int = 100
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X (N, D), each counted `sample_weight` (N,) times."""
        from appca.models.base.data_checks import row_weights

        del y
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        w = row_weights(sample_weight, len(X))
        rng, Y = check_random_state(self.random_state), X.astype(np.float64)
        runs = [self._descend(rng, Y, w) for _ in range(self.n_init)]
        best = min(runs, key=lambda run: run[2])
        self.means_, self.components_, self.error_, self.n_iter_ = best
        return self

    def _descend(self, rng: Any, Y: Array, w: Array) -> tuple[Array, Array, float, int]:
        L = min(self.n_components, Y.shape[1])
        pieces = first_pieces(rng, Y, w, self.n_pieces)
        mean, _, V = weighted_axes(Y, w, L)
        means = np.repeat(mean[None], self.n_pieces, axis=0)
        axes = np.repeat(V.T[None], self.n_pieces, axis=0)
        step = 0
        while step < self.max_iter:
            step += 1
            for k in range(self.n_pieces):
                mass = w * (pieces == k)
                if mass.sum() > 0:
                    means[k], _, V = weighted_axes(Y, mass, L)
                    axes[k] = V.T
            apart = _distances(Y, means, axes)
            before, pieces = pieces, apart.argmin(axis=1)
            if (pieces == before).all():
                break
        return means, axes, float(w @ apart.min(axis=1) / w.sum()), step

    def _distances(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        Y = X.astype(np.float64)
        return Y, _distances(Y, self.means_, self.components_)

    def predict(self, X: Any) -> Array:
        """Nearest subspace (N,) of every row."""
        nearest: Array = self._distances(X)[1].argmin(axis=1)
        return nearest

    def score(self, X: Any, y: Any = None) -> float:
        """Mean squared distance of rows from their subspaces, with a minus."""
        del y
        return -float(self._distances(X)[1].min(axis=1).mean())

    def transform(self, X: Any) -> Array:
        """Coordinates (N, K L) in each row's own subspace, zero in the others."""
        Y, apart = self._distances(X)
        at, (K, L, _) = apart.argmin(axis=1), self.components_.shape
        H = np.zeros((len(Y), K, L))
        H[range(len(Y)), at] = np.einsum("nd,nld->nl", Y - self.means_[at], self.components_[at])
        return H.reshape(len(Y), K * L)

    def reconstruct(self, X: Any) -> Array:
        """Project each row (N, D) onto its own subspace."""
        H, pieces = self.transform(X), self.predict(X)
        rows: Array = self.means_[pieces] + H @ self.components_.reshape(-1, self.means_.shape[1])
        return rows


def _distances(Y: Array, means: Array, axes: Array) -> Array:
    """Squared distances (N, K) of rows from affine subspaces."""
    out = np.empty((len(Y), len(means)))
    for k, (mean, V) in enumerate(zip(means, axes, strict=True)):
        B = Y - mean
        out[:, k] = np.maximum(np.square(B).sum(axis=1) - np.square(B @ V.T).sum(axis=1), 0.0)
    return out
