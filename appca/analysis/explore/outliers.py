"""Rows that do not fit: how far out within their subspace (T2), and how far off it (Q).

A row with support S is y = mu + W_S x + e with x ~ N(0, T), T = diag(tau2_S), and e ~
N(0, sigma2 I). Its least-squares coordinates b and what they leave over are independent:

    b = inv(W_S'W_S) W_S'(y - mu) ~ N(0, T + sigma2 inv(G)),   G = W_S'W_S
    T2 = b' inv(T + sigma2 inv(G)) b ~ chi-square, |S| degrees of freedom       (Hotelling's)
    Q  = |y - mu - W_S b|^2 ~ sigma2 chi-square, D - |S| degrees of freedom     (SPE)

A run keeps the posterior means m and the mean square e of y - mu - W_S m. As b = m + v with
G v = sigma2 inv(T) m, both follow without the data: T2 = b' inv(T) m and Q = D e - v'G v.
A row of scale u has u times both variances, so both statistics are divided by its posterior mean.
"""

from typing import NamedTuple

import numpy as np

from appca.analysis.fitted import FittedRun

LEVELS = (0.95, 0.99, 0.999)
_BLOCK_VALUES = 1 << 21  # of the sets' matrices that are held together
_SINGULAR = 1e-6  # of a component's square, below which the others of the set make up for it
_ORTHONORMAL = 1e-4  # float32 components are orthonormal to some 1e-6


class Distances(NamedTuple):
    """Both statistics of every row."""

    t2: np.ndarray  # (N,) Hotelling's T2
    q: np.ndarray  # (N,) squared distance from the subspace over the noise variance
    inside: np.ndarray  # (N,) degrees of freedom of T2
    outside: np.ndarray  # (N,) of Q


class DistanceLimits(NamedTuple):
    """What either statistic exceeds in one row of many; a number a row."""

    t2: np.ndarray  # (N,)
    q: np.ndarray  # (N,)


def distances(fitted: FittedRun) -> Distances:
    """Return T2 and Q of every row of a run.

    Where each feature has its own noise, T2 is in noise units and Q is 0, with no degree of
    freedom: a run does not keep what each feature of a row lacks. With row scales a row that is
    only brighter or darker than others is not unusual.
    """
    active, m = fitted.active, fitted.scores.astype(np.float64)
    by_feature = np.ndim(fitted.noise_variance) > 0
    noise = 1.0 if by_feature else fitted.noise_variance
    tau2 = np.maximum(fitted.latent_variance, np.finfo(float).tiny)
    W = fitted.components.astype(np.float64)
    gram, u = np.eye(len(W)) if by_feature else np.asarray(W @ W.T), m * (noise / tau2)
    orthonormal = np.abs(gram - np.eye(len(gram))).max() < _ORTHONORMAL
    v, inside = (u, active.sum(axis=1)) if orthonormal else _solved(gram, active, u)
    n_features = 0 if by_feature else fitted.components.shape[1]
    t2 = np.einsum("nk,nk->n", m + v, m / tau2)
    squares = fitted.error.astype(np.float64) * n_features - np.einsum("nk,nk->n", v, u)
    q = np.maximum(squares, 0.0) / noise
    scale = 1.0 if fitted.row_scales is None else fitted.row_scales.astype(np.float64)
    return Distances(t2 / scale, q / scale, inside, np.maximum(n_features - inside, 0))


def limits_of_the_model(distances: Distances, level: float) -> DistanceLimits:
    """Return what a share `level` of rows drawn from the model stays below: chi-square quantiles.

    Without a degree of freedom left there is nothing to exceed: the limit is then infinite.
    """
    return DistanceLimits(_quantile(distances.inside, level), _quantile(distances.outside, level))


def limits_of_the_data(distances: Distances, level: float, data: Distances) -> DistanceLimits:
    """Return limits of the rows of `distances` that a share `level` of the rows of `data` is below.

    Rows with more components have larger T2 for that reason alone, so ranks are those of the ratio
    to the model's limit.
    """
    shares = np.quantile(ratios(data, limits_of_the_model(data, level)), level, axis=0)
    t2, q = np.maximum(shares, np.finfo(float).tiny)
    model = limits_of_the_model(distances, level)
    return DistanceLimits(model.t2 * t2, model.q * q)


def ratios(distances: Distances, limits: DistanceLimits) -> np.ndarray:
    """Return T2 and Q over their limits, (N, 2); above 1 a row is flagged."""
    return np.column_stack([distances.t2 / limits.t2, distances.q / limits.q])


def _solved(gram: np.ndarray, active: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve G_SS v_S = u_S for every row; return v (N, K) and the ranks of G_SS (N,)."""
    v, rank = np.zeros_like(u), np.zeros(len(u), dtype=np.intp)
    sizes = active.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        members = np.nonzero(active[rows])[1].reshape(len(rows), size)
        sets, which = np.unique(members, axis=0, return_inverse=True)
        which = which.ravel()
        step = max(1, _BLOCK_VALUES // size**2)
        for start in range(0, len(sets), step):
            part = sets[start : start + step]
            blocks = gram[part[:, :, None], part[:, None, :]]
            inverse = np.linalg.pinv(blocks, rcond=_SINGULAR, hermitian=True)
            tolerance = _SINGULAR * np.trace(blocks, axis1=1, axis2=2)
            here = (which >= start) & (which < start + len(part))
            place, of_support = which[here] - start, rows[here]
            columns = part[place]
            right = np.take_along_axis(u[of_support], columns, axis=1)
            v[of_support[:, None], columns] = np.einsum("nij,nj->ni", inverse[place], right)
            rank[of_support] = np.linalg.matrix_rank(blocks, tolerance, hermitian=True)[place]
    return v, rank


def _quantile(freedom: np.ndarray, level: float) -> np.ndarray:
    from scipy.special import gammaincinv

    values, which = np.unique(freedom, return_inverse=True)
    limits = np.array([2 * gammaincinv(v / 2, level) if v else np.inf for v in values])
    return limits[which.ravel()]
