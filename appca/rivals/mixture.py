"""Mixtures of factor analysers and of probabilistic PCA (Ghahramani & Hinton 1996, Tipping 1999).

    y_n | piece k ~ N(mu_k, W_k W_k' + Psi),  W_k of L columns,  Psi = sigma2 I or diagonal, shared

By EM with the piece and the scores integrated out; all sums are weighted by rows.
"""

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_is_fitted,
    check_random_state,
    validate_data,
)

from appca.rivals.pieces import first_pieces, row_weights, weighted_axes

Array = NDArray[Any]
FLOOR = 1e-6  # of the mean feature variance


class _State(NamedTuple):
    weights: Array  # (K,)
    means: Array  # (K, D)
    W: Array  # (K, D, L)
    noise: Array  # (D,)


class MixtureOfFactorAnalysers(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Mixture of factor analysers; with isotropic noise, of probabilistic PCA.

    Parameters
    ----------
    n_pieces : int
        Number K of pieces.
    n_components : int
        Number L of directions of each.
    noise : {"isotropic", "diagonal"}
        One noise variance, or one for each feature; shared by all pieces.
    n_init, max_iter, tol
        Starts, most EM iterations of each, and the least gain of one in nats a row.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ (K,), means_ (K, D), loadings_ (K, L, D), noise_variance_ (D,), log_likelihoods_,
    n_iter_, n_parameters_.
    """

    def __init__(
        self,
        n_pieces: int = 3,
        n_components: int = 2,
        *,
        noise: str = "isotropic",
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_pieces = n_pieces
        self.n_components = n_components
        self.noise = noise
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X (N, D), each counted `sample_weight` (N,) times."""
        del y
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        w = row_weights(sample_weight, len(X))
        if self.noise not in ("isotropic", "diagonal"):
            msg = f"noise must be 'isotropic' or 'diagonal'; got {self.noise!r}."
            raise ValueError(msg)
        rng, Y = check_random_state(self.random_state), X.astype(np.float64)
        runs = [self._climb(self._start(rng, Y, w), Y, w) for _ in range(self.n_init)]
        state, values, converged = max(runs, key=lambda run: run[1][-1])
        if not converged:
            msg = (
                f"EM ended at max_iter={self.max_iter} before it converged: raise max_iter or tol."
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=2)
        self.weights_, self.means_, self.noise_variance_ = state.weights, state.means, state.noise
        self.loadings_ = np.swapaxes(state.W, 1, 2)
        self.log_likelihoods_, self.n_iter_ = np.array(values), len(values)
        return self

    def _start(self, rng: Any, Y: Array, w: Array) -> _State:
        L = min(self.n_components, Y.shape[1])
        pieces = first_pieces(rng, Y, w, self.n_pieces)
        K, D = self.n_pieces, Y.shape[1]
        means, W, left = np.empty((K, D)), np.zeros((K, D, L)), np.zeros(D)
        for k in range(K):
            own = w * (pieces == k)
            own = own if own.sum() > 0 else w
            means[k], values, V = weighted_axes(Y, own, L)
            spare = float(np.maximum(values[L:], 0.0).sum()) / max(D - L, 1)
            W[k][:, : V.shape[1]] = V * np.sqrt(np.maximum(values[:L] - spare, 0.0))
            C = own @ np.square(Y - means[k]) / own.sum() - np.square(W[k]).sum(axis=1)
            left += C * own.sum() / w.sum()
        shares = np.array([(w * (pieces == k)).sum() for k in range(K)]) + 1e-3 * w.sum()
        return _State(shares / shares.sum(), means, W, self._floored(left, Y, w))

    def _floored(self, noise: Array, Y: Array, w: Array) -> Array:
        total = w @ np.square(Y - w @ Y / w.sum()) / w.sum()
        if self.noise == "isotropic":
            noise = np.full_like(noise, noise.mean())
        return np.maximum(noise, max(FLOOR * float(total.mean()), np.finfo(float).tiny))

    def _climb(self, state: _State, Y: Array, w: Array) -> tuple[_State, list[float], bool]:
        values: list[float] = []
        for _ in range(self.max_iter):
            joint = _joint(state, Y)
            rows = logsumexp(joint, axis=1)
            values.append(float(w @ rows))
            if len(values) > 1 and values[-1] - values[-2] < self.tol * w.sum():
                return state, values, True
            state = self._step(state, Y, w, w[:, None] * np.exp(joint - rows[:, None]))
        return state, values, False

    def _step(self, state: _State, Y: Array, w: Array, R: Array) -> _State:
        """M step given how much (N, K) of each row belongs to each piece."""
        sizes = R.sum(axis=0)
        means, W, noise = state.means.copy(), state.W.copy(), np.zeros(Y.shape[1])
        for k in np.flatnonzero(sizes > 1e-9 * w.sum()):
            means[k] = R[:, k] @ Y / sizes[k]
            B = Y - means[k]
            beta, V = _posterior(W[k], state.noise)
            S = B.T @ (R[:, k, None] * (B @ beta.T)) / sizes[k]  # covariance times beta'
            W[k] = np.linalg.solve((V + beta @ S).T, S.T).T
            left = R[:, k] @ np.square(B) / sizes[k] - np.sum(W[k] * S, axis=1)
            noise += left * sizes[k] / w.sum()
        return _State(sizes / sizes.sum(), means, W, self._floored(noise, Y, w))

    def _fitted(self) -> _State:
        check_is_fitted(self)
        W = np.swapaxes(self.loadings_, 1, 2)
        return _State(self.weights_, self.means_, W, self.noise_variance_)

    def _joint(self, X: Any) -> tuple[Array, Array, _State]:
        state = self._fitted()
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        Y = X.astype(np.float64)
        return _joint(state, Y), Y, state

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of every row, (N,) in nats."""
        found: Array = logsumexp(self._joint(X)[0], axis=1)
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        del y
        return float(self.score_samples(X).mean())

    def predict(self, X: Any) -> Array:
        """Most probable piece (N,) of every row."""
        found: Array = self._joint(X)[0].argmax(axis=1)
        return found

    def transform(self, X: Any) -> Array:
        """Posterior mean scores (N, K L) in each row's own piece, zero in the others."""
        joint, Y, state = self._joint(X)
        own, (K, _, L) = joint.argmax(axis=1), state.W.shape
        H = np.zeros((len(Y), K, L))
        for k in range(K):
            beta, _ = _posterior(state.W[k], state.noise)
            H[own == k, k] = (Y[own == k] - state.means[k]) @ beta.T
        return H.reshape(len(Y), K * L)

    def reconstruct(self, X: Any) -> Array:
        """Mean of each row's own piece plus its loadings times its scores, (N, D)."""
        joint, _, state = self._joint(X)
        H = self.transform(X).reshape(len(joint), *state.W.shape[::2])
        found: Array = state.means[joint.argmax(axis=1)] + np.einsum("nkl,kdl->nd", H, state.W)
        return found

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        K, D, L = (int(size) for size in self._fitted().W.shape)
        return K * (D + D * L - L * (L - 1) // 2) + K - 1 + (D if self.noise == "diagonal" else 1)


def _posterior(W: Array, noise: Array) -> tuple[Array, Array]:
    """Regression (L, D) of scores on rows, and their covariance (L, L) given a row."""
    scaled = W.T / noise
    V = np.linalg.inv(np.eye(W.shape[1]) + scaled @ W)
    return V @ scaled, V


def _joint(state: _State, Y: Array) -> Array:
    """Log density of rows and pieces together, (N, K)."""
    N, D = Y.shape
    out = np.empty((N, len(state.weights)))
    base = D * math.log(2.0 * math.pi) + np.log(state.noise).sum()
    for k, share in enumerate(state.weights):
        B = Y - state.means[k]
        scaled = state.W[k].T / state.noise
        M = np.eye(len(scaled)) + scaled @ state.W[k]
        Q = B @ scaled.T
        inside = np.sum(Q * np.linalg.solve(M, Q.T).T, axis=1)
        squares = np.square(B) @ (1.0 / state.noise) - inside
        log_share = math.log(share) if share > 0 else -math.inf
        out[:, k] = log_share - 0.5 * (base + np.linalg.slogdet(M)[1] + squares)
    return out
