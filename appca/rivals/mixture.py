"""Mixtures of factor analysers and of probabilistic PCA (Ghahramani & Hinton 1996, Tipping 1999).

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

from appca.rivals.pieces import first_pieces, weighted_axes

Array = NDArray[Any]
FLOOR = 1e-6  # of the mean feature variance


class _State(NamedTuple):
    weights: Array  # (K,)
    means: Array  # (K, D)
    W: Array  # (K, D, L); with common loadings all span the same space
    noise: Array  # (D,)


class _Rows(NamedTuple):
    Y: Array  # (N, D) about `centre`
    squares: Array  # (N, D) of them
    w: Array  # (N,)
    centre: Array  # (D,)


class _Expected(NamedTuple):
    joint: Array  # (N, K) log density of rows and pieces together
    H: Array  # (K, N, L) posterior mean scores in each piece
    beta: Array  # (K, L, D) regression of scores on rows
    V: Array  # (K, L, L) covariance of scores given a row


@dataclass(eq=False, repr=False)
class MixtureOfFactorAnalysers(TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
    >>> from appca.rivals.mixture import MixtureOfFactorAnalysers
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
        from appca.models.base.data_checks import row_weights

        del y
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        w = row_weights(sample_weight, len(X))
        for name, words in (("noise", ("isotropic", "diagonal")), ("loadings", ("own", "common"))):
            if getattr(self, name) not in words:
                msg = f"{name} must be {words[0]!r} or {words[1]!r}; got {getattr(self, name)!r}."
                raise ValueError(msg)
        rng = check_random_state(self.random_state)
        rows = _about(X, w @ X.astype(np.float64) / w.sum(), w)
        runs = [self._climb(self._start(rng, rows), rows) for _ in range(self.n_init)]
        state, values, converged = max(runs, key=lambda run: run[1][-1])
        if not converged:
            msg = (
                f"EM ended at max_iter={self.max_iter} before it converged: raise max_iter or tol."
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=2)
        self.centre_ = rows.centre
        self.weights_, self.noise_variance_ = state.weights, state.noise
        self.means_, self.loadings_ = state.means + rows.centre, np.swapaxes(state.W, 1, 2)
        self.log_likelihoods_, self.n_iter_ = np.array(values), len(values)
        if self.loadings == "common":
            shares = np.sqrt(state.weights)[:, None]
            scaled = [shares * state.means, *(shares[:, :, None] * self.loadings_)]
            V = np.linalg.svd(np.vstack(scaled), full_matrices=False)[2]
            self.components_ = V[: state.W.shape[2]]
        return self

    def _start(self, rng: Any, rows: _Rows) -> _State:
        Y, w, (K, D) = rows.Y, rows.w, (self.n_pieces, rows.Y.shape[1])
        L = min(self.n_components, D)
        pieces = first_pieces(rng, Y, w, K)
        means, W, left = np.empty((K, D)), np.zeros((K, D, L)), np.zeros(D)
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
            left += C * mass.sum() / w.sum()
        shares = np.array([(w * (pieces == k)).sum() for k in range(K)]) + 1e-3 * w.sum()
        return _State(shares / shares.sum(), means, W, self._floored(left, rows))

    def _floored(self, noise: Array, rows: _Rows) -> Array:
        least = FLOOR * float((rows.w @ rows.squares).mean() / rows.w.sum())
        if self.noise == "isotropic":
            noise = np.full_like(noise, noise.mean())
        return np.maximum(noise, max(least, np.finfo(float).tiny))

    def _climb(self, state: _State, rows: _Rows) -> tuple[_State, list[float], bool]:
        values: list[float] = []
        step = _step_common if self.loadings == "common" else _step
        for _ in range(self.max_iter):
            seen = _expect(state, rows)
            each = logsumexp(seen.joint, axis=1)
            values.append(float(rows.w @ each))
            if len(values) > 1 and values[-1] - values[-2] < self.tol * rows.w.sum():
                return state, values, True
            R = rows.w[:, None] * np.exp(seen.joint - each[:, None])
            state = step(state, rows, seen, R)
            state = state._replace(noise=self._floored(state.noise, rows))
        return state, values, False

    def _seen(self, X: Any) -> tuple[_Expected, _State]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        W, means = np.swapaxes(self.loadings_, 1, 2), self.means_ - self.centre_
        state = _State(self.weights_, means, W, self.noise_variance_)
        rows = _about(X, self.centre_, np.ones(len(X)))
        seen = _expect(state, rows)
        return seen._replace(joint=_joint(state, _residual_squares(state, rows))), state

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of every row, (N,) in nats."""
        densities: Array = logsumexp(self._seen(X)[0].joint, axis=1)
        return densities

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        del y
        return float(self.score_samples(X).mean())

    def predict(self, X: Any) -> Array:
        """Most probable piece (N,) of every row."""
        pieces: Array = self._seen(X)[0].joint.argmax(axis=1)
        return pieces

    def transform(self, X: Any) -> Array:
        """Posterior mean scores (N, K L) in each row's own piece, zero in the others.

        With common loadings coordinates (N, L) on `components_`.
        """
        if self.loadings == "common":
            scores: Array = (self.reconstruct(X) - self.centre_) @ self.components_.T
            return scores
        seen, state = self._seen(X)
        pieces, (K, _, L) = seen.joint.argmax(axis=1), state.W.shape
        H = np.zeros((len(pieces), K, L))
        H[range(len(pieces)), pieces] = seen.H[pieces, range(len(pieces))]
        return H.reshape(len(pieces), K * L)

    def reconstruct(self, X: Any) -> Array:
        """Mean of each row's own piece plus its loadings times its scores, (N, D)."""
        seen, state = self._seen(X)
        pieces = seen.joint.argmax(axis=1)
        rows: Array = self.means_[pieces]
        for k in range(len(state.W)):
            rows[pieces == k] += seen.H[k, pieces == k] @ state.W[k].T
        return rows

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        check_is_fitted(self)
        K, L, D = (int(size) for size in self.loadings_.shape)
        noise = D if self.noise == "diagonal" else 1
        if self.loadings == "common":
            return D + L * (D - L) + K * (L + L * (L + 1) // 2) - L + K - 1 + noise
        return K * (D + D * L - L * (L - 1) // 2) + K - 1 + noise


def _about(X: Array, centre: Array, w: Array) -> _Rows:
    Y = X.astype(np.float64) - centre
    return _Rows(Y, np.square(Y), w, centre)


def _expect(state: _State, rows: _Rows) -> _Expected:
    """E step; of the rows with a feature each, only one product with all loadings at once."""
    (K, D, L), N = state.W.shape, len(rows.Y)
    scaled = np.swapaxes(state.W, 1, 2) / state.noise
    M = np.eye(L) + scaled @ state.W
    V = np.linalg.inv(M)
    P = (rows.Y @ scaled.reshape(K * L, D).T).reshape(N, K, L).transpose(1, 0, 2)
    P = P - np.einsum("kld,kd->kl", scaled, state.means)[:, None]
    H = P @ V
    far = state.means / state.noise
    squares = (rows.squares @ (1.0 / state.noise))[:, None] - 2.0 * rows.Y @ far.T
    squares += np.sum(far * state.means, axis=1) - np.einsum("knl,knl->nk", P, H)
    return _Expected(_joint(state, squares), H, V @ scaled, V)


def _residual_squares(state: _State, rows: _Rows) -> Array:
    """Squares (N, K) as `_expect` has them, by what scores leave of a row, which takes longer.

    The difference of two large numbers there leaves eight digits where a feature has least noise.
    """
    (K, _, L), root = state.W.shape, np.sqrt(state.noise)
    squares = np.empty((len(rows.Y), K))
    for k, W in enumerate(state.W / root[:, None]):
        Y = (rows.Y - state.means[k]) / root
        H = np.linalg.solve(np.eye(L) + W.T @ W, (Y @ W).T).T
        squares[:, k] = np.square(Y - H @ W.T).sum(axis=1) + np.square(H).sum(axis=1)
    return squares


def _joint(state: _State, squares: Array) -> Array:
    """Log-densities (N, K) of rows and pieces from their squared distances."""
    (_, D, L) = state.W.shape
    M = np.eye(L) + np.swapaxes(state.W, 1, 2) / state.noise @ state.W
    base = D * math.log(2.0 * math.pi) + np.log(state.noise).sum() + np.linalg.slogdet(M)[1]
    with np.errstate(divide="ignore"):
        joint: Array = np.log(state.weights) - 0.5 * (base + squares)
    return joint


def _step(state: _State, rows: _Rows, seen: _Expected, R: Array) -> _State:
    """M step given how much (N, K) of each row belongs to each piece."""
    sizes, (K, D, L) = R.sum(axis=0), state.W.shape
    some = np.flatnonzero(sizes > 1e-9 * rows.w.sum())
    means, W, noise = state.means.copy(), state.W.copy(), np.zeros(D)
    means[some] = (R.T @ rows.Y)[some] / sizes[some, None]
    # Scores about the new means, whose weighted mean is then zero.
    H = seen.H - np.einsum("kld,kd->kl", seen.beta, means - state.means)[:, None]
    weighted = (R.T[:, :, None] * H).transpose(1, 0, 2).reshape(-1, K * L)
    sums = (rows.Y.T @ weighted).reshape(D, K, L)
    second = R.T @ rows.squares
    for k in some:
        S = sums[:, k] / sizes[k]  # covariance times beta'
        W[k] = np.linalg.solve((seen.V[k] + seen.beta[k] @ S).T, S.T).T
        left = second[k] / sizes[k] - np.square(means[k]) - np.sum(W[k] * S, axis=1)
        noise += left * sizes[k] / rows.w.sum()
    return _State(sizes / sizes.sum(), means, W, noise)


def _step_common(state: _State, rows: _Rows, seen: _Expected, R: Array) -> _State:
    """Do the same in one space: scores u = xi_k + C_k h on A, where A = W_0 and so C_0 = I."""
    sizes = R.sum(axis=0)
    inverse = np.linalg.pinv(state.W[0])
    xi, C = state.means @ inverse.T, inverse @ state.W
    U = xi[:, None] + seen.H @ np.swapaxes(C, 1, 2)
    inside = C @ seen.V @ np.swapaxes(C, 1, 2)
    RU = R.T[:, :, None] * U
    second = np.swapaxes(U, 1, 2) @ RU + sizes[:, None, None] * inside
    B = rows.Y.T @ RU.sum(axis=0)
    A = B @ np.linalg.pinv(second.sum(axis=0), hermitian=True)
    for k in np.flatnonzero(sizes > 1e-9 * rows.w.sum()):
        xi[k] = RU[k].sum(axis=0) / sizes[k]
        omega = second[k] / sizes[k] - np.outer(xi[k], xi[k])
        values, V = np.linalg.eigh(omega)
        C[k] = V * np.sqrt(np.maximum(values, 1e-10 * max(values[-1], 0.0)))
    noise = (rows.w @ rows.squares - np.sum(A * B, axis=1)) / rows.w.sum()
    return _State(sizes / sizes.sum(), xi @ A.T, A @ C, noise)
