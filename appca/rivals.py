"""Clusterwise methods: mixtures of factor analysers and of probabilistic PCA, and k-subspaces.

The mixtures (Ghahramani & Hinton 1996, Tipping 1999) are

    y_n | piece k ~ N(mu_k, W_k W_k' + Psi),  W_k of L columns,  Psi = sigma2 I or diagonal, shared

and with common loadings (Baek, McLachlan & Flack 2010), all pieces in one space of L directions:

    mu_k = mu + A xi_k,  W_k W_k' = A Omega_k A',  A of L columns

By EM with the piece and the scores integrated out; all sums are weighted by rows.
"""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

Array = NDArray[Any]
FLOOR = 1e-6  # of the mean feature variance
MOST_STEPS = 50  # of k-means
FLOATS = [np.float64, np.float32]


def weighted_axes(Y: Array, w: Array, n_axes: int) -> tuple[Array, Array, Array]:
    """Mean (D,), all variances (D,) and leading axes (D, at most n_axes) of weighted rows."""
    mean, D = w @ Y / w.sum(), Y.shape[1]
    counted = w > 0
    B = (Y[counted] - mean) * np.sqrt(w[counted] / w.sum())[:, None]
    if len(B) < D:
        squares, U = np.linalg.eigh(B @ B.T)
        values, V = np.zeros(D), np.zeros((D, min(n_axes, D)))
        values[-len(B) :] = np.maximum(squares, 0.0)
        U = U[:, ::-1][:, :n_axes]
        root = np.sqrt(np.maximum(squares[::-1][: U.shape[1]], 0.0))
        positive = root > 1e-7 * root[0]
        V[:, : len(root)][:, positive] = B.T @ (U[:, positive] / root[positive])
    else:
        values, V = np.linalg.eigh(B.T @ B)
        V = V[:, ::-1][:, :n_axes]
    signs = np.where(V[np.abs(V).argmax(axis=0), range(V.shape[1])] < 0.0, -1.0, 1.0)
    return mean, values[::-1], V * signs


def first_pieces(rng: Any, Y: Array, w: Array, n_pieces: int) -> NDArray[np.intp]:
    """Piece (N,) of every row: k-means from centres drawn from the rows' normal density.

    It depends neither on the order of the rows nor on how they are repeated.
    """
    axes = min(Y.shape[1], max(2, n_pieces))
    mean, values, V = weighted_axes(Y, w, axes)
    spread = np.sqrt(np.maximum(values[:axes], 0.0))
    centres = mean + (rng.standard_normal((n_pieces, axes)) * spread) @ V.T
    pieces = np.zeros(len(Y), np.intp)
    for _ in range(MOST_STEPS):
        before, pieces = (
            pieces,
            (np.square(centres).sum(axis=1) - 2.0 * Y @ centres.T).argmin(axis=1),
        )
        if (pieces == before).all():
            break
        for k, mass in enumerate(w * (pieces == np.arange(n_pieces)[:, None])):
            if mass.sum() > 0:
                centres[k] = mass @ Y / mass.sum()
    return pieces


def _in_own_piece(pieces: Array, H: Array) -> Array:
    """Scores (N, K L) of scores (K, N, L): those of each row's piece, zero elsewhere."""
    is_in = np.arange(len(H))[:, None] == pieces
    return np.asarray((H * is_in[:, :, None]).transpose(1, 0, 2).reshape(len(pieces), -1))


class _Clusterwise(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    random_state: Any

    def _training_rows(self, X: Any, sample_weight: Any) -> tuple[Array, Array, Any]:
        from appca.models.data_checks import row_weights

        X = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2)
        w = row_weights(sample_weight, len(X))
        return X.astype(np.float64), w, check_random_state(self.random_state)

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        rows: Array = validate_data(self, X, reset=False, dtype=FLOATS).astype(np.float64)
        return rows


class _State(NamedTuple):
    weights: Array  # (K,)
    means: Array  # (K, D)
    W: Array  # (K, D, L); with common loadings all span the same space
    noise: Array  # (D,)


class _Expected(NamedTuple):
    joint: Array  # (N, K) log density of rows and pieces together
    H: Array  # (K, N, L) posterior mean scores in each piece
    beta: Array  # (K, L, D) regression of scores on rows
    V: Array  # (K, L, L) covariance of scores given a row


@dataclass(eq=False, repr=False)
class MixtureOfFactorAnalysers(_Clusterwise):
    """Mixture of factor analysers; with isotropic noise, of probabilistic PCA.

    Parameters
    ----------
    n_pieces : int
        Number K of pieces.
    n_components : int
        Number L of directions of each, or with common loadings of all together.
    noise : {"isotropic", "diagonal"}
        One noise variance, or one for each feature; shared by all pieces.
    loadings : {"own", "common"}
        Directions of its own for each piece, or the same for all.
    n_init, max_iter, tol
        Starts, most EM iterations of each, and the least gain of one in nats a row.
    random_state : int, RandomState or None

    Attributes
    ----------
    weights_ (K,), means_ (K, D), loadings_ (K, L, D), noise_variance_ (D,), log_likelihoods_,
    n_iter_, n_parameters_; with common loadings components_ (L, D), the principal directions of
    their space.

    Examples
    --------
    >>> import numpy as np
    >>> from appca.rivals import MixtureOfFactorAnalysers
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> model = MixtureOfFactorAnalysers(n_pieces=2, n_components=1, random_state=0).fit(X)
    >>> model.loadings_.shape
    (2, 1, 5)
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
        """Fit to rows X (N, D), each counted `sample_weight` (N,) times."""
        X, w, rng = self._training_rows(X, sample_weight)
        for name, words in (("noise", ("isotropic", "diagonal")), ("loadings", ("own", "common"))):
            if getattr(self, name) not in words:
                msg = f"{name} must be {words[0]!r} or {words[1]!r}; got {getattr(self, name)!r}."
                raise ValueError(msg)
        self.centre_ = w @ X / w.sum()
        Y = X - self.centre_
        runs = [self._climb(self._start(rng, Y, w), Y, w) for _ in range(self.n_init)]
        state, values, converged = max(runs, key=lambda run: run[1][-1])
        if not converged:
            msg = (
                f"EM ended at max_iter={self.max_iter} before it converged: raise max_iter or tol."
            )
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
        means, W, noise = np.empty((K, D)), np.zeros((K, D, L)), np.zeros(D)
        A = weighted_axes(Y, w, L)[2] if self.loadings == "common" else None
        for k in range(K):
            mass = w * (pieces == k)
            mass = mass if mass.sum() > 0 else w
            if A is None:
                means[k], values, V = weighted_axes(Y, mass, L)
                spare = float(np.maximum(values[L:], 0.0).sum()) / max(D - L, 1)
                W[k][:, : V.shape[1]] = V * np.sqrt(np.maximum(values[:L] - spare, 0.0))
            else:
                xi, values, V = weighted_axes(Y @ A, mass, L)
                means[k] = A @ xi
                W[k] = A @ (V * np.sqrt(np.maximum(values, 1e-3 * values[0])))
            C = mass @ np.square(Y - means[k]) / mass.sum() - np.square(W[k]).sum(axis=1)
            noise += C * mass.sum() / w.sum()
        shares = np.array([(w * (pieces == k)).sum() for k in range(K)]) + 1e-3 * w.sum()
        return _State(shares / shares.sum(), means, W, self._floored(noise, Y, w))

    def _floored(self, noise: Array, Y: Array, w: Array) -> Array:
        least = FLOOR * float((w @ np.square(Y)).mean() / w.sum())
        if self.noise == "isotropic":
            noise = np.full_like(noise, noise.mean())
        return np.maximum(noise, max(least, np.finfo(float).tiny))

    def _climb(self, state: _State, Y: Array, w: Array) -> tuple[_State, list[float], bool]:
        values: list[float] = []
        step = _step_common if self.loadings == "common" else _step
        for _ in range(self.max_iter):
            expected = _expect(state, Y)
            densities = logsumexp(expected.joint, axis=1)
            values.append(float(w @ densities))
            if len(values) > 1 and values[-1] - values[-2] < self.tol * w.sum():
                return state, values, True
            R = w[:, None] * np.exp(expected.joint - densities[:, None])
            state = step(state, Y, expected, R)
            state = state._replace(noise=self._floored(state.noise, Y, w))
        return state, values, False

    def _expected(self, X: Any) -> _Expected:
        Y = self._rows(X) - self.centre_
        W, means = np.swapaxes(self.loadings_, 1, 2), self.means_ - self.centre_
        state = _State(self.weights_, means, W, self.noise_variance_)
        return _expect(state, Y)._replace(joint=_joint(state, _residual_squares(state, Y)))

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of every row, (N,) in nats."""
        return np.asarray(logsumexp(self._expected(X).joint, axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        return float(self.score_samples(X).mean())

    def predict(self, X: Any) -> Array:
        """Most probable piece (N,) of every row."""
        return np.asarray(self._expected(X).joint.argmax(axis=1))

    def transform(self, X: Any) -> Array:
        """Posterior mean scores (N, K L) in each row's own piece, zero in the others.

        With common loadings coordinates (N, L) on `components_`.
        """
        if self.loadings == "common":
            return np.asarray((self.reconstruct(X) - self.centre_) @ self.components_.T)
        expected = self._expected(X)
        return _in_own_piece(expected.joint.argmax(axis=1), expected.H)

    def reconstruct(self, X: Any) -> Array:
        """Mean of each row's own piece plus its loadings times its scores, (N, D)."""
        expected = self._expected(X)
        pieces = expected.joint.argmax(axis=1)
        H = _in_own_piece(pieces, expected.H)
        return np.asarray(self.means_[pieces] + H @ np.concatenate(self.loadings_))

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        check_is_fitted(self)
        K, L, D = (int(size) for size in self.loadings_.shape)
        noise = D if self.noise == "diagonal" else 1
        if self.loadings == "common":
            return D + L * (D - L) + K * (L + L * (L + 1) // 2) - L + K - 1 + noise
        return K * (D + D * L - L * (L - 1) // 2) + K - 1 + noise


def _expect(state: _State, Y: Array) -> _Expected:
    (K, D, L), N = state.W.shape, len(Y)
    scaled = np.swapaxes(state.W, 1, 2) / state.noise
    V = np.linalg.inv(np.eye(L) + scaled @ state.W)
    P = (Y @ scaled.reshape(K * L, D).T).reshape(N, K, L).transpose(1, 0, 2)
    P = P - np.einsum("kld,kd->kl", scaled, state.means)[:, None]
    H, precise = P @ V, state.means / state.noise
    squares = (np.square(Y) @ (1.0 / state.noise))[:, None] - 2.0 * Y @ precise.T
    squares += np.sum(precise * state.means, axis=1) - np.einsum("knl,knl->nk", P, H)
    return _Expected(_joint(state, squares), H, V @ scaled, V)


def _residual_squares(state: _State, Y: Array) -> Array:
    """Squares (N, K) as in `_expect`, from residuals: slower, but without its cancellation.

    The difference of two large numbers there leaves eight digits where a feature has least noise.
    """
    (K, _, L), root = state.W.shape, np.sqrt(state.noise)
    squares = np.empty((len(Y), K))
    for k, W in enumerate(state.W / root[:, None]):
        B = (Y - state.means[k]) / root
        H = np.linalg.solve(np.eye(L) + W.T @ W, (B @ W).T).T
        squares[:, k] = np.square(B - H @ W.T).sum(axis=1) + np.square(H).sum(axis=1)
    return squares


def _joint(state: _State, squares: Array) -> Array:
    (_, D, L) = state.W.shape
    M = np.eye(L) + np.swapaxes(state.W, 1, 2) / state.noise @ state.W
    base = D * math.log(2.0 * math.pi) + np.log(state.noise).sum() + np.linalg.slogdet(M)[1]
    with np.errstate(divide="ignore"):
        joint: Array = np.log(state.weights) - 0.5 * (base + squares)
    return joint


def _step(state: _State, Y: Array, expected: _Expected, R: Array) -> _State:
    """M step given how much (N, K) of each row belongs to each piece."""
    sizes, (K, D, L) = R.sum(axis=0), state.W.shape
    filled = np.flatnonzero(sizes > 1e-9 * sizes.sum())
    means, W, noise = state.means.copy(), state.W.copy(), np.zeros(D)
    means[filled] = (R.T @ Y)[filled] / sizes[filled, None]
    # Scores about the new means, whose weighted mean is then zero.
    H = expected.H - np.einsum("kld,kd->kl", expected.beta, means - state.means)[:, None]
    weighted = (R.T[:, :, None] * H).transpose(1, 0, 2).reshape(-1, K * L)
    sums = (Y.T @ weighted).reshape(D, K, L)
    second = R.T @ np.square(Y)
    for k in filled:
        S = sums[:, k] / sizes[k]  # covariance times beta'
        W[k] = np.linalg.solve((expected.V[k] + expected.beta[k] @ S).T, S.T).T
        residual = second[k] / sizes[k] - np.square(means[k]) - np.sum(W[k] * S, axis=1)
        noise += residual * sizes[k] / sizes.sum()
    return _State(sizes / sizes.sum(), means, W, noise)


def _step_common(state: _State, Y: Array, expected: _Expected, R: Array) -> _State:
    """M step in one space: scores u = xi_k + C_k h on A, where A = W_0 and so C_0 = I."""
    sizes = R.sum(axis=0)
    inverse = np.linalg.pinv(state.W[0])
    xi, C = state.means @ inverse.T, inverse @ state.W
    U = xi[:, None] + expected.H @ np.swapaxes(C, 1, 2)
    inside = C @ expected.V @ np.swapaxes(C, 1, 2)
    RU = R.T[:, :, None] * U
    second = np.swapaxes(U, 1, 2) @ RU + sizes[:, None, None] * inside
    B = Y.T @ RU.sum(axis=0)
    A = B @ np.linalg.pinv(second.sum(axis=0), hermitian=True)
    for k in np.flatnonzero(sizes > 1e-9 * sizes.sum()):
        xi[k] = RU[k].sum(axis=0) / sizes[k]
        omega = second[k] / sizes[k] - np.outer(xi[k], xi[k])
        values, V = np.linalg.eigh(omega)
        C[k] = V * np.sqrt(np.maximum(values, 1e-10 * max(values[-1], 0.0)))
    noise = (R.sum(axis=1) @ np.square(Y) - np.sum(A * B, axis=1)) / sizes.sum()
    return _State(sizes / sizes.sum(), xi @ A.T, A @ C, noise)


@dataclass(eq=False, repr=False)
class KSubspaces(_Clusterwise):
    """K-subspaces: every row belongs to the nearest of K affine subspaces of L dimensions.

    Alternates between the nearest subspace of each row and the principal axes of each piece.

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
    >>> from appca.rivals import KSubspaces
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
        Y, w, rng = self._training_rows(X, sample_weight)
        runs = [self._descend(rng, Y, w) for _ in range(self.n_init)]
        best = min(runs, key=lambda run: run[2])
        self.means_, self.components_, self.error_, self.n_iter_ = best
        return self

    def _descend(self, rng: Any, Y: Array, w: Array) -> tuple[Array, Array, float, int]:
        K, L, step, before = self.n_pieces, min(self.n_components, Y.shape[1]), 0, None
        pieces = first_pieces(rng, Y, w, K)
        mean, _, V = weighted_axes(Y, w, L)
        means, axes = np.repeat(mean[None], K, axis=0), np.repeat(V.T[None], K, axis=0)
        while step < self.max_iter and (before is None or (pieces != before).any()):
            step += 1
            for k in range(K):
                mass = w * (pieces == k)
                if mass.sum() > 0:
                    means[k], _, V = weighted_axes(Y, mass, L)
                    axes[k] = V.T
            distances = _distances(Y, means, axes)
            before, pieces = pieces, distances.argmin(axis=1)
        return means, axes, float(w @ distances.min(axis=1) / w.sum()), step

    def predict(self, X: Any) -> Array:
        """Nearest subspace (N,) of every row."""
        Y = self._rows(X)
        return np.asarray(_distances(Y, self.means_, self.components_).argmin(axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean squared distance of rows from their subspaces, with a minus."""
        Y = self._rows(X)
        return -float(_distances(Y, self.means_, self.components_).min(axis=1).mean())

    def transform(self, X: Any) -> Array:
        """Coordinates (N, K L) in each row's own subspace, zero in the others."""
        pieces, Y = self.predict(X), self._rows(X)
        axes = zip(self.means_, self.components_, strict=True)
        return _in_own_piece(pieces, np.stack([(Y - mean) @ V.T for mean, V in axes]))

    def reconstruct(self, X: Any) -> Array:
        """Project each row (N, D) onto its own subspace."""
        H, pieces = self.transform(X), self.predict(X)
        return np.asarray(self.means_[pieces] + H @ np.concatenate(self.components_))


def _distances(Y: Array, means: Array, axes: Array) -> Array:
    """Squared distances (N, K) of rows from affine subspaces."""
    distances = np.empty((len(Y), len(means)))
    for k, (mean, V) in enumerate(zip(means, axes, strict=True)):
        B = Y - mean
        distances[:, k] = np.square(B).sum(axis=1) - np.square(B @ V.T).sum(axis=1)
    return np.maximum(distances, 0.0)
