"""Clusterwise methods: mixtures of factor analysers and of probabilistic PCA, and k-subspaces.

The mixtures (Ghahramani & Hinton 1996, Tipping 1999) are

    y_n | piece k ~ N(mu_k, W_k W_k' + Psi),  W_k of L columns,  Psi = sigma2 I or diagonal, shared

With common loadings (Baek, McLachlan & Flack 2010), all pieces are in one space of L directions:

    mu_k = mu + A xi_k,  W_k W_k' = A Omega_k A',  A of L columns

They are fitted by EM, with pieces and scores marginalized; all sums use row weights.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

Array = NDArray[Any]
FLOOR = 1e-6  # minimum variance, relative to the mean feature variance
FLOATS = [np.float64, np.float32]


def weighted_axes(Y: Array, w: Array, n_axes: int) -> tuple[Array, Array, Array]:
    """Mean (D,), feature variances (D,) and leading axes (D, at most n_axes) of weighted rows."""
    mean, D = w @ Y / w.sum(), Y.shape[1]
    B = ((Y - mean) * np.sqrt(w / w.sum())[:, None])[w > 0]
    is_wide = len(B) < D
    values, V = np.linalg.eigh(B @ B.T if is_wide else B.T @ B)
    values, V = np.maximum(values[::-1], 0.0), V[:, ::-1][:, :n_axes]
    if is_wide:
        root, wide = np.sqrt(values[: V.shape[1]]), np.zeros((D, min(n_axes, D)))
        np.divide(B.T @ V, root, out=wide[:, : len(root)], where=root > 1e-7 * root[0])
        values, V = np.pad(values, (0, D - len(values))), wide
    signs = np.where(V[np.abs(V).argmax(axis=0), range(V.shape[1])] < 0.0, -1.0, 1.0)
    return mean, values, V * signs


def first_pieces(rng: Any, Y: Array, w: Array, n_pieces: int) -> NDArray[np.intp]:
    """Return each row's piece (N,) by k-means, from centres drawn from a normal fit to the rows.

    The result does not depend on the order of rows, and repeated rows are equivalent to weights.
    """
    mean, values, V = weighted_axes(Y, w, max(2, n_pieces))
    spread = np.sqrt(values[: V.shape[1]])
    centres = mean + (rng.standard_normal((n_pieces, len(spread))) * spread) @ V.T
    means = KMeans(n_pieces, init=centres, n_init=1, max_iter=50, tol=0.0)
    return np.asarray(means.fit(Y, sample_weight=w).labels_)


class _Clusterwise(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    random_state: Any
    means_: Array  # (K, D)
    loadings_: Array  # (K, L, D)
    _suited: Any  # rows (N, D) -> the result of `_compared`

    def _training_rows(self, X: Any, sample_weight: Any) -> tuple[Array, Array, Any]:
        from appca.models.data_checks import row_weights

        X = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2)
        w = row_weights(sample_weight, len(X))
        return X.astype(np.float64), w, check_random_state(self.random_state)

    def _compared(self, X: Any) -> Any:
        """Return the fit of each row to each piece (N, K), and scores in the pieces (K, N, L)."""
        check_is_fitted(self)
        return self._suited(validate_data(self, X, reset=False, dtype=FLOATS).astype(np.float64))

    def predict(self, X: Any) -> Array:
        """Best piece (N,) of each row."""
        return np.asarray(self._compared(X)[0].argmax(axis=1))

    def transform(self, X: Any) -> Array:
        """Scores (N, K L) in each row's best piece, zero in the others."""
        suits, H = self._compared(X)
        is_in = np.arange(len(H)) == suits.argmax(axis=1)[:, None]
        return np.asarray((H.transpose(1, 0, 2) * is_in[:, :, None]).reshape(len(suits), -1))

    def reconstruct(self, X: Any) -> Array:
        """Mean of each row's piece plus scores times loadings, (N, D)."""
        H = _Clusterwise.transform(self, X)
        return np.asarray(self.means_[self.predict(X)] + H @ np.concatenate(self.loadings_))


class _State(NamedTuple):
    weights: Array  # (K,)
    means: Array  # (K, D)
    W: Array  # (K, D, L); with common loadings, all pieces span the same space
    noise: Array  # (D,)


@dataclass(eq=False, repr=False)
class MixtureOfFactorAnalysers(_Clusterwise):
    """Mixture of factor analysers; with isotropic noise, a mixture of probabilistic PCA.

    Parameters
    ----------
    n_pieces : int
        Number K of pieces.
    n_components : int
        Number L of directions of each piece, or of all pieces with common loadings.
    noise : {"isotropic", "diagonal"}
        One noise variance, or one per feature, for all pieces.
    loadings : {"own", "common"}
        Whether pieces have their own directions or share the same directions.
    n_init, max_iter, tol
        Number of starts, maximum number of EM iterations of each, and minimum gain in nats per row.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ (K,), means_ (K, D), loadings_ (K, L, D), noise_variance_ (D,), log_likelihoods_,
    n_iter_, n_parameters_; with common loadings also components_ (L, D), the principal
    directions of their space.

    Examples
    --------
    >>> import numpy as np
    >>> from appca.rivals import MixtureOfFactorAnalysers
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> model = MixtureOfFactorAnalysers(n_pieces=2, n_components=1, random_state=0).fit(X)
    """

    n_pieces: int = 3
    n_components: int = 2
    _: KW_ONLY
    noise: str = "isotropic"
    loadings: str = "own"
    n_init: int = 3
    max_iter: int = 300
    tol: float = 1e-4
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X (N, D), each with weight `sample_weight` (N,)."""
        X, w, rng = self._training_rows(X, sample_weight)
        for name, words in (("noise", ("isotropic", "diagonal")), ("loadings", ("own", "common"))):
            if getattr(self, name) not in words:
                msg = f"{name} must be {words[0]!r} or {words[1]!r}; got {getattr(self, name)!r}."
                raise ValueError(msg)
        self.centre_ = w @ X / w.sum()
        Y = X - self.centre_
        runs = [self._climb(self._start(rng, Y, w), Y, w) for _ in range(self.n_init)]
        state, values = max(runs, key=lambda run: run[1][-1])
        if len(values) < 2 or values[-1] - values[-2] >= self.tol * w.sum():
            msg = f"EM ended at max_iter={self.max_iter} unconverged; raise max_iter or tol."
            warnings.warn(msg, ConvergenceWarning, stacklevel=2)
        self.weights_, self.noise_variance_ = state.weights, state.noise
        self.means_, self.loadings_ = state.means + self.centre_, np.swapaxes(state.W, 1, 2)
        self.log_likelihoods_, self.n_iter_ = np.array(values), len(values)
        if self.loadings == "common":
            shares = np.sqrt(state.weights)[:, None]
            scaled = np.vstack([shares * state.means, *(shares[:, :, None] * self.loadings_)])
            self.components_ = np.linalg.svd(scaled, full_matrices=False)[2][: state.W.shape[2]]
        return self

    def _start(self, rng: Any, Y: Array, w: Array) -> _State:
        K, D, L = self.n_pieces, Y.shape[1], min(self.n_components, Y.shape[1])
        pieces = first_pieces(rng, Y, w, K)
        means, W, noise = np.empty((K, D)), np.empty((K, D, L)), np.zeros(D)
        A = weighted_axes(Y, w, L)[2] if self.loadings == "common" else None
        inside = Y if A is None else Y @ A
        for k in range(K):
            mass = w * (pieces == k) if w[pieces == k].any() else w
            mean, values, V = weighted_axes(inside, mass, L)
            spare = float(values[L:].sum()) / max(D - L, 1)
            V = V * np.sqrt(np.maximum(values[:L] - spare, 1e-3 * values[0]))
            means[k], W[k] = (mean, V) if A is None else (A @ mean, A @ V)
            C = mass @ np.square(Y - means[k]) / mass.sum() - np.square(W[k]).sum(axis=1)
            noise += C * mass.sum() / w.sum()
        shares = np.bincount(pieces, w, K) + 1e-3 * w.sum()
        return _State(shares / shares.sum(), means, W, self._floored(noise, Y, w))

    def _floored(self, noise: Array, Y: Array, w: Array) -> Array:
        least = FLOOR * float((w @ np.square(Y)).mean() / w.sum())
        noise = np.full_like(noise, noise.mean()) if self.noise == "isotropic" else noise
        return np.maximum(noise, max(least, np.finfo(float).tiny))

    def _climb(self, state: _State, Y: Array, w: Array) -> tuple[_State, list[float]]:
        values: list[float] = []
        step = _step_common if self.loadings == "common" else _step
        for _ in range(self.max_iter):
            joint, *expected = _expect(state, Y)
            densities = logsumexp(joint, axis=1)
            values.append(float(w @ densities))
            if len(values) > 1 and values[-1] - values[-2] < self.tol * w.sum():
                break
            R = w[:, None] * np.exp(joint - densities[:, None])
            state = step(state, Y, R, *expected)
            state = state._replace(noise=self._floored(state.noise, Y, w))
        return state, values

    def _suited(self, X: Array) -> tuple[Array, Array]:
        W, means = np.swapaxes(self.loadings_, 1, 2), self.means_ - self.centre_
        return _expect(_State(self.weights_, means, W, self.noise_variance_), X - self.centre_)[:2]

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row, (N,) in nats."""
        return np.asarray(logsumexp(self._compared(X)[0], axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        return float(self.score_samples(X).mean())

    def transform(self, X: Any) -> Array:
        """Posterior mean scores (N, K L) in each row's piece, zero in the others.

        With common loadings, coordinates (N, L) on `components_`.
        """
        if self.loadings == "own":
            return super().transform(X)
        return np.asarray((self.reconstruct(X) - self.centre_) @ self.components_.T)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        check_is_fitted(self)
        K, L, D = (int(size) for size in self.loadings_.shape)
        noise = D if self.noise == "diagonal" else 1
        if self.loadings == "common":
            return D + L * (D - L) + K * (L + L * (L + 1) // 2) - L + K - 1 + noise
        return K * (D + D * L - L * (L - 1) // 2) + K - 1 + noise


def _expect(state: _State, Y: Array) -> tuple[Array, Array, Array, Array]:
    """E step: joint log densities (N, K), scores (K, N, L), their covariances, regressions."""
    (K, D, L), N = state.W.shape, len(Y)
    scaled = np.swapaxes(state.W, 1, 2) / state.noise
    M = np.eye(L) + scaled @ state.W
    V, P = np.linalg.inv(M), (Y @ scaled.reshape(K * L, D).T).reshape(N, K, L).transpose(1, 0, 2)
    P = P - np.einsum("kld,kd->kl", scaled, state.means)[:, None]
    H, precise = P @ V, state.means / state.noise
    squares = (np.square(Y) @ (1.0 / state.noise))[:, None] - 2.0 * Y @ precise.T
    squares += np.sum(precise * state.means, axis=1) - np.einsum("knl,knl->nk", P, H)
    base = D * np.log(2.0 * np.pi) + np.log(state.noise).sum() + np.linalg.slogdet(M)[1]
    with np.errstate(divide="ignore"):
        joint = np.log(state.weights) - 0.5 * (base + squares)
    return joint, H, V, V @ scaled


def _step(state: _State, Y: Array, R: Array, H: Array, V: Array, beta: Array) -> _State:
    """M step, given responsibilities (N, K)."""
    sizes, means, W = R.sum(axis=0), state.means.copy(), state.W.copy()
    noise = np.zeros(Y.shape[1])
    for k in np.flatnonzero(sizes > 1e-9 * sizes.sum()):
        r = R[:, k] / sizes[k]
        means[k] = r @ Y
        # Scores relative to the new mean have weighted mean zero.
        scores = H[k] - beta[k] @ (means[k] - state.means[k])
        weighted = r[:, None] * scores
        S = Y.T @ weighted
        W[k] = np.linalg.solve(V[k] + scores.T @ weighted, S.T).T
        noise += (r @ np.square(Y - means[k]) - np.sum(W[k] * S, axis=1)) * sizes[k] / sizes.sum()
    return _State(sizes / sizes.sum(), means, W, noise)


def _step_common(state: _State, Y: Array, R: Array, H: Array, V: Array, _beta: Array) -> _State:
    """M step with common loadings: scores u = xi_k + C_k h on A, where A = W_0 and so C_0 = I."""
    sizes, inverse = R.sum(axis=0), np.linalg.pinv(state.W[0])
    xi, C = state.means @ inverse.T, inverse @ state.W
    U = xi[:, None] + H @ np.swapaxes(C, 1, 2)
    inside = C @ V @ np.swapaxes(C, 1, 2)
    RU = R.T[:, :, None] * U
    second = np.swapaxes(U, 1, 2) @ RU + sizes[:, None, None] * inside
    B = Y.T @ RU.sum(axis=0)
    A = B @ np.linalg.pinv(second.sum(axis=0), hermitian=True)
    for k in np.flatnonzero(sizes > 1e-9 * sizes.sum()):
        xi[k] = RU[k].sum(axis=0) / sizes[k]
        values, axes = np.linalg.eigh(second[k] / sizes[k] - np.outer(xi[k], xi[k]))
        C[k] = axes * np.sqrt(np.maximum(values, 1e-10 * max(values[-1], 0.0)))
    noise = (R.sum(axis=1) @ np.square(Y) - np.sum(A * B, axis=1)) / sizes.sum()
    return _State(sizes / sizes.sum(), xi @ A.T, A @ C, noise)


@dataclass(eq=False, repr=False)
class KSubspaces(_Clusterwise):
    """K-subspaces: each row belongs to the nearest of K affine subspaces of L dimensions.

    Parameters
    ----------
    n_pieces, n_components : int
        Number K of subspaces, and their dimension L.
    n_init, max_iter : int
        Number of starts (the best fit is kept), and maximum number of iterations of each.
    random_state : int, RandomState or None

    Attributes
    ----------
    means_ (K, D), components_ (K, L, D) with orthonormal rows, error_ (mean squared distance of
    rows from their subspaces), n_iter_.

    Examples
    --------
    >>> import numpy as np
    >>> from appca.rivals import KSubspaces
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> model = KSubspaces(n_pieces=2, n_components=1, random_state=0).fit(X)
    """

    n_pieces: int = 3
    n_components: int = 2
    _: KW_ONLY
    n_init: int = 5
    max_iter: int = 100
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X (N, D), each with weight `sample_weight` (N,)."""
        Y, w, rng = self._training_rows(X, sample_weight)
        K, L = self.n_pieces, min(self.n_components, Y.shape[1])
        mean, _, V = weighted_axes(Y, w, L)
        runs = []
        for _ in range(self.n_init):
            pieces, before, step = first_pieces(rng, Y, w, K), None, 0
            self.means_, self.loadings_ = np.repeat(mean[None], K, 0), np.repeat(V.T[None], K, 0)
            while step < self.max_iter and (before is None or (pieces != before).any()):
                step += 1
                for k in np.unique(pieces[w > 0]):
                    self.means_[k], _, V_k = weighted_axes(Y, w * (pieces == k), L)
                    self.loadings_[k] = V_k.T
                suits = self._suited(Y)[0]
                before, pieces = pieces, suits.argmax(axis=1)
            error = -float(w @ suits.max(axis=1) / w.sum())
            runs.append((error, self.means_, self.loadings_, step))
        self.error_, self.means_, self.loadings_, self.n_iter_ = min(runs, key=lambda run: run[0])
        self.components_ = self.loadings_
        return self

    def _suited(self, X: Array) -> tuple[Array, Array]:
        """Negative squared distances (N, K) from subspaces, and coordinates in them (K, N, L)."""
        away = [X - mean for mean in self.means_]
        H = np.stack([Y @ V.T for Y, V in zip(away, self.loadings_, strict=True)])
        lengths = np.stack([np.square(Y).sum(axis=1) for Y in away], axis=1)
        return np.minimum(np.square(H).sum(axis=2).T - lengths, 0.0), H

    def score(self, X: Any, y: Any = None) -> float:
        """Negative mean squared distance of rows from their subspaces."""
        return float(self._compared(X)[0].max(axis=1).mean())
